"""examples/c and examples/cpp in the tree: short, right, and with a message where something is wrong.
timeout: 300
"""
import importlib.util
import re
import subprocess

import numpy as np
import pytest
from tool_case import BUILD, SOURCE, environment

DIGITS = SOURCE / "examples" / "digits"
needs_cxx = pytest.mark.skipif(not (BUILD / "examples" / "digits_cpp").exists(), reason="there is no C++ compiler")
spec = importlib.util.spec_from_file_location("net", SOURCE / "examples" / "tvm-c-api" / "net.py")
net = importlib.util.module_from_spec(spec)
spec.loader.exec_module(net)
PROGRAMS = [("c", "digits.c"), ("cpp", "digits.cpp"), ("cpp", "deploy.cpp")]


def run(program, *words, **env):
    return subprocess.run([str(w) for w in (program, *words)], capture_output=True, text=True, timeout=120,
                          env=environment(**env))


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """A compiled net, an image, and what numpy makes of it."""
    folder = tmp_path_factory.mktemp("net")
    net.write(folder)
    image = np.random.default_rng(5).random((1, 3, 224, 224), np.float32)
    image.tofile(folder / "image.bin")
    return folder, net.scores(image, net.parameters())


def check_digits(program):
    """As many as those that were calculated in float64 have right."""
    expected, labels = np.load(DIGITS / "expected.npy"), np.load(DIGITS / "labels.npy")
    right = int((expected.argmax(axis=1) == labels).sum())
    for devices in ("cpu", "cpu,sim:0", "sim:1"):
        done = run(program, DIGITS, devices)
        assert done.returncode == 0 and done.stdout == f"{right} of {len(labels)} digits right\n", done


def check_deploy(program, deployed):
    folder, scores = deployed
    words = [folder / "net.so", folder / "net.json", folder / "net.params", folder / "image.bin"]
    done = run(program, *words, HEDDLE_DEVICES="cpu")
    found = re.fullmatch(r"class (\d+), score (\S+)\n", done.stdout)
    assert found, done
    assert int(found[1]) == scores.argmax()
    np.testing.assert_allclose(float(found[2]), scores.max(), rtol=1e-5)
    for missing in range(4):
        wrong = [w if i != missing else folder / "missing" for i, w in enumerate(words)]
        done = run(program, *wrong, HEDDLE_DEVICES="cpu")
        assert done.returncode == 1 and done.stderr.startswith("deploy: ") and "missing" in done.stderr, done


def test_they_are_short():
    for folder, name in PROGRAMS:
        lines = (SOURCE / "examples" / folder / name).read_text().count("\n")
        assert lines <= (40 if name == "deploy.cpp" else 99), (name, lines)


def test_digits_in_c():
    check_digits(BUILD / "examples" / "digits_c")
    done = run(BUILD / "examples" / "digits_c", "/nowhere")
    assert done.returncode == 1 and "/nowhere/digits.json" in done.stderr
    assert run(BUILD / "examples" / "digits_c").returncode == 2


@needs_cxx
def test_digits_in_cpp():
    check_digits(BUILD / "examples" / "digits_cpp")
    done = run(BUILD / "examples" / "digits_cpp", DIGITS, "gpu:7")
    assert done.returncode == 1 and "gpu:7" in done.stderr


@needs_cxx
def test_deploy(deployed):
    check_deploy(BUILD / "examples" / "deploy_cpp", deployed)

