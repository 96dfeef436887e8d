"""The cache of built OpenCL programs as a user meets it: where it is, what it refuses, damaged and foreign entries, two
processes at once.

timeout: 600
"""

import json
import os
import resource
import struct
import subprocess

import numpy as np
import onnx_files
import pytest
from tool_case import BUILD, DIGITS, TOOL, environment, failing, good, heddle

MASK = (1 << 64) - 1


@pytest.fixture(scope="module", autouse=True)
def pocl(tmp_path_factory):
    """Two PoCL devices, whose own cache is CTest's; a skip where there are none."""
    if not (BUILD / "lib/heddle/plugins/libheddle_plugin_opencl.so").exists():
        pytest.skip("the plugin opencl is not built")
    os.environ["POCL_DEVICES"] = "pthread pthread"
    os.environ.setdefault("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
    if "opencl:0" not in heddle("devices", "--all").out:
        pytest.skip("there is no OpenCL device")


PLAIN = ["run", DIGITS, "--random", "--device", "opencl:0", "--place", "*=opencl:0"]
WORDS = [*PLAIN, "--set", "opencl.cache_always=1"]


def run(out, *words, **env):
    """The network's output, and what was said on stderr."""
    r = heddle(*WORDS, "--output-dir", out, *words, **env)
    assert r.status == 0, r
    return np.load(out / "output_0.npy"), r.err


def entries(folder):
    return sorted(folder.glob("*.clbin"))


def test_it_is_in_the_user_s_cache_folder(tmp_path):
    settings = json.loads(good("devices", "--all", "--json", XDG_CACHE_HOME=str(tmp_path / "x")))["settings"]
    assert settings["opencl.cache_dir"] == {"value": str(tmp_path / "x/heddle/opencl"), "from": "default"}
    run(tmp_path, XDG_CACHE_HOME=str(tmp_path / "x"))
    folder = tmp_path / "x/heddle/opencl"
    assert entries(folder)
    for path in (tmp_path / "x", folder.parent, folder):
        assert path.stat().st_mode & 0o777 == 0o700, path
    assert all(e.stat().st_mode & 0o777 == 0o600 for e in entries(folder))
    run(tmp_path, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="")
    assert entries(tmp_path / "home/.cache/heddle/opencl")
    run(tmp_path, HOME=str(tmp_path / "other"), XDG_CACHE_HOME="not/absolute")
    assert entries(tmp_path / "other/.cache/heddle/opencl")


def test_programs_of_pocl_are_left_to_its_own_cache(tmp_path):
    good(*PLAIN, XDG_CACHE_HOME=str(tmp_path / "x"))
    assert not (tmp_path / "x/heddle/opencl").exists()


def test_a_second_device_has_entries_too(tmp_path):
    if "opencl:1" not in heddle("devices", "--all").out:
        pytest.skip("there is no second OpenCL device")
    folder = tmp_path / "cache"
    good("run", DIGITS, "--random", "--device", "opencl:1", "--place", "*=opencl:1", "--set", f"opencl.cache_dir={folder}",
         "--set", "opencl.cache_always=1")
    assert entries(folder)


@pytest.mark.parametrize("value", ["off", "0"])
def test_it_can_be_off(tmp_path, value):
    run(tmp_path, "--set", f"opencl.cache_dir={value}", XDG_CACHE_HOME=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_a_path_that_is_not_absolute_is_refused(tmp_path):
    said = failing(1, *WORDS, "--set", "opencl.cache_dir=here")
    assert "cache_dir" in said and "'here'" in said and "absolute" in said


@pytest.mark.parametrize("how", ["under a file", "a file", "everybody's"])
def test_a_folder_that_cannot_be_is_one_line(tmp_path, how):
    folder = tmp_path / "place"
    if how == "everybody's":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.write_text("no folder")
    value = folder / "deeper" if how == "under a file" else folder
    _, said = run(tmp_path, "--set", f"opencl.cache_dir={value}")
    assert said.count("\n") == 1 and "not kept" in said and str(folder) in said and "off" in said, said


def hash_of(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 & MASK
    return h


def damage(path, how, other):
    data = bytearray(path.read_bytes())
    if how == "a byte":
        data[-1] ^= 1
    elif how == "cut":
        del data[len(data) // 2:]
    elif how == "empty":
        data = b""
    elif how == "header only":
        del data[40:]
    elif how == "longer":
        data += b"more"
    elif how == "another's":
        data = other
    elif how == "not a program":  # all is right but what the driver is given
        junk = b"this is no program " * 8
        data = bytes(data[:24]) + struct.pack("<QQ", len(junk), hash_of(junk)) + junk
    path.write_bytes(bytes(data))
    return bytes(data)


@pytest.mark.parametrize("how", ["a byte", "cut", "empty", "header only", "longer", "another's", "not a program"])
def test_damaged_entries_are_built_again(tmp_path, how):
    cache = tmp_path / "programs"
    words = ["--set", f"opencl.cache_dir={cache}"]
    want, said = run(tmp_path, *words)
    before = entries(cache)
    assert before and said == ""
    kept = before[0].read_bytes()
    wrong = [damage(e, how, kept) for e in before]
    got, said = run(tmp_path, *words)
    assert np.array_equal(got, want) and entries(cache) == before
    if how != "not a program":  # of which the driver's refusal is logged at level info
        assert "damaged" in said
    for e, w in zip(before, wrong):
        assert e.read_bytes() != w or (how == "another's" and w == kept and e == before[0]), e
    got, said = run(tmp_path, *words)
    assert np.array_equal(got, want) and said == ""


def test_two_processes_fill_it_at_once(tmp_path):
    cache = tmp_path / "programs"
    words = [str(TOOL), *map(str, WORDS), "--set", f"opencl.cache_dir={cache}"]
    made = [subprocess.Popen([*words, "--output-dir", str(tmp_path / str(i))], env=environment(), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for i in range(4)]
    for p in made:
        _, said = p.communicate(timeout=120)
        assert p.returncode == 0 and said == "", said
    outputs = [np.load(tmp_path / str(i) / "output_0.npy") for i in range(4)]
    assert all(np.array_equal(o, outputs[0]) for o in outputs)
    assert sorted(cache.iterdir()) == entries(cache)  # nothing is left lying beside the entries
    got, said = run(tmp_path, "--set", f"opencl.cache_dir={cache}", "--set", "log=info")
    assert np.array_equal(got, outputs[0]) and "damaged" not in said and "refused" not in said


@pytest.mark.parametrize("devices, status", [("opencl:0", 1), ("opencl:0,cpu", 0)])
def test_a_limit_of_file_sizes_does_not_end_the_process(tmp_path, devices, status):
    """PoCL's compiler writes files itself: under such a limit its device takes no operator, and the reason is given."""
    path = tmp_path / "m.onnx"
    node = onnx_files.helper.make_node("Relu", ["x"], ["y"])
    path.write_bytes(onnx_files.model([node], {"x": (np.float32, (4,))}, ["y"]).SerializeToString())

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (80 * 1024, 80 * 1024))

    r = subprocess.run([TOOL, "run", path, "--random", "--device", devices], preexec_fn=limit, capture_output=True,
                       text=True, timeout=120, env=environment(POCL_CACHE_DIR=str(tmp_path / "pocl"),
                                                               XDG_CACHE_HOME=str(tmp_path / "x")))
    assert r.returncode == status and "RLIMIT_FSIZE" in r.stderr, r
    assert status == 1 or "heddle warning: opencl: " in r.stderr and r.stderr.count("\n") == 1


def test_the_folder_has_a_limit(tmp_path):
    folder = tmp_path / "cache"
    words = ["--set", f"opencl.cache_dir={folder}"]
    run(tmp_path, *words)
    sizes = sorted(e.stat().st_size for e in entries(folder))
    for e in entries(folder):
        e.unlink()
    run(tmp_path, *words, "--set", f"opencl.cache_bytes={sizes[-1]}")
    assert 0 < sum(e.stat().st_size for e in entries(folder)) <= sizes[-1]
    other = tmp_path / "other"
    run(tmp_path, "--set", f"opencl.cache_dir={other}", "--set", "opencl.cache_bytes=0")
    assert not other.exists()
    assert "cache_bytes" in failing(1, *WORDS, "--set", "opencl.cache_bytes=much")
