"""Static programs with all parts, against glibc and musl, and the names in a backtrace of one.

labels: slow soak
timeout: 900"""
import os
import pathlib
import shutil

import pytest
from test_parts import DIGITS, JANSSON, SOURCE, build, call, environment
from tool_case import good

pytestmark = pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="static libraries have no sanitizers")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build(tmp_path_factory.mktemp("whole"))


def test_a_static_program_reads_the_digits(whole):
    text = call("readelf", "-l", whole / "digits")
    assert "INTERP" not in text  # no dynamic loader
    assert call(whole / "digits", DIGITS, env=environment()) == "linked in: cpu, used\n355 of 360 digits are right\n"


def linked(tmp_path):
    """The folder for MODEL, and the data alone."""
    good("link", DIGITS / "digits.json", "--name", "digits_model", "-o", tmp_path / "model")
    (tmp_path / "data").mkdir()
    for name in "images.npy", "labels.npy":
        shutil.copy(DIGITS / name, tmp_path / "data")
    return f"-DMODEL={tmp_path / 'model'}", tmp_path / "data"


def test_a_static_program_with_its_model(tmp_path):
    option, data = linked(tmp_path)
    folder = build(tmp_path / "b", option, "-DMINIMAL=ON")
    assert call(folder / "digits", data, env=environment()).endswith("355 of 360 digits are right\n")


def test_a_backtrace_within_a_pass_has_names(whole, tmp_path):
    """With the flags of a release: the stack can be walked from a plugin's query to main, and each frame has its name."""
    lib = whole / "heddle" / "lib"
    call("cc", "-O2", "-no-pie", "-I", SOURCE / "include", SOURCE / "tests" / "fixtures" / "backtrace.c",
         lib / "libheddle_plugin_cpu.a", lib / "libheddle.a", "-ljansson", "-lm", "-pthread", "-ldl", "-o", tmp_path / "trace")
    frames = call(tmp_path / "trace", DIGITS / "digits.json", env=environment()).split()
    names = call("addr2line", "-f", "-e", tmp_path / "trace", *frames).splitlines()[::2]
    for name in "query", "heddle__pass_place", "heddle__plan_make", "main":
        assert name in names, names


def test_a_static_program_with_musl_reads_the_digits(tmp_path):
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed (musl-tools)")
    if not pathlib.Path(JANSSON).is_dir():
        pytest.skip("jansson's sources are not there (HEDDLE_JANSSON_SOURCE)")
    option, data = linked(tmp_path)
    folder = build(tmp_path / "b", option, "-DMINIMAL=ON", "-DCMAKE_C_COMPILER=musl-gcc", f"-DHEDDLE_JANSSON_SOURCE={JANSSON}")
    assert call(folder / "digits", data, env=environment()).endswith("355 of 360 digits are right\n")
