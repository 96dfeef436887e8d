"""OpenCL drivers that are missing, broken, wrong or there twice, as a user of the tool meets them.

labels: serial
timeout: 300
"""

import json
import os
import shutil
import signal
import subprocess

import pytest
from tool_case import BUILD, SOURCE, failing, good, heddle

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="module", autouse=True)
def pocl(tmp_path_factory):
    if not (BUILD / "lib/heddle/plugins/libheddle_plugin_opencl.so").exists():
        pytest.skip("the plugin opencl is not built")
    os.environ["POCL_DEVICES"] = "pthread pthread"
    os.environ["POCL_CACHE_DIR"] = str(tmp_path_factory.mktemp("pocl"))


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    """The path of a driver that answers wrongly."""
    path = tmp_path_factory.mktemp("driver") / "libfake.so"
    made = subprocess.run([COMPILER or "cc", "-shared", "-fPIC", "-fvisibility=hidden", "-std=c11", "-Wall", "-Wextra",
                           "-Werror", str(SOURCE / "tests/python/fake_icd.c"), "-o", str(path)],
                          capture_output=True, text=True)
    if "CL/cl_icd.h: No such file" in made.stderr:
        pytest.skip("the header of OpenCL drivers, CL/cl_icd.h, is not installed")
    assert made.returncode == 0, made.stderr
    return path


def vendors(folder, *libraries):
    """A folder for the loader that names these drivers; gives the environment for it."""
    folder.mkdir(exist_ok=True)
    for i, library in enumerate(libraries):
        (folder / f"{i}.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(folder)}


def chain(path, width=1024):
    """One Add of two vectors."""
    nodes = [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "y", "inputs": []},
             {"op": "Add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]}]
    path.write_text(json.dumps({
        "heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3], "attrs": {"dltype": ["list_str", ["float32", "float32", None]],
                                                "shape": ["list_shape", [[width], [width], None]]}}))
    return path


def plugin(**env):
    listed = json.loads(good("devices", "--all", "--json", **env))
    found = [p for p in listed["plugins"] if p["path"].endswith("libheddle_plugin_opencl.so")]
    return found[0], {d["name"]: d for d in listed["devices"]}, listed


@pytest.mark.parametrize("content", [None, "", "/nowhere/libnone.so", "not a library", "no driver"])
def test_a_driver_that_is_none(tmp_path, content):
    """No entry, an empty one, one to a file that is not there, is no library, or is a library and no driver."""
    env = vendors(tmp_path / "vendors")
    if content is not None:
        named = content
        if content == "not a library":
            (tmp_path / "text.so").write_text("words")
            named = tmp_path / "text.so"
        elif content == "no driver":
            named = BUILD / "lib/heddle/plugins/libheddle_plugin_null.so"
        env = vendors(tmp_path / "vendors", named)
    refused, devices, _ = plugin(**env)
    assert not refused["used"] and "no OpenCL platform" in refused["reason"]
    assert not any(d.startswith("opencl") for d in devices) and "cpu:0" in devices
    said = failing(1, "run", chain(tmp_path / "g.json"), "--random", "--device", "opencl:0", **env)
    assert "'opencl:0'" in said and "no OpenCL platform" in said and "cpu:0" in said


@pytest.mark.parametrize("how", ["platforms", "devices"])
def test_a_driver_that_lists_nothing(tmp_path, fake, how):
    refused, devices, _ = plugin(**vendors(tmp_path / "vendors", fake), FAKE_ICD=how)
    assert not refused["used"] and "no OpenCL" in refused["reason"] and "cpu:0" in devices


def test_a_driver_beside_a_broken_one(tmp_path, fake):
    """What works is used."""
    used, devices, _ = plugin(**vendors(tmp_path / "vendors", "/nowhere/libnone.so", fake))
    assert used["used"] and "opencl:0" in devices


def test_a_device_that_answers_nothing(tmp_path, fake):
    """It is listed, with what is known, and nothing is run on it: its largest work-group is unknown."""
    env = vendors(tmp_path / "vendors", fake)
    used, devices, _ = plugin(**env, FAKE_ICD="answers")
    assert used["used"] and "opencl:0" in devices
    said = failing(1, "run", chain(tmp_path / "g.json"), "--random", "--device", "opencl:0", **env, FAKE_ICD="answers")
    assert "sum" in said and "work-groups" in said


def test_a_platform_that_counts_wrongly(tmp_path, fake):
    used, devices, _ = plugin(**vendors(tmp_path / "vendors", fake), FAKE_ICD="many")
    assert used["used"] and sum(d.startswith("opencl:") for d in devices) == 256


def test_one_device_by_two_drivers(tmp_path, fake):
    """Two entries, one physical device: both can be named, one is used by default, and the list says why."""
    copy = tmp_path / "libcopy.so"
    shutil.copy(fake, copy)
    env = vendors(tmp_path / "vendors", fake, copy)
    _, devices, _ = plugin(**env)
    assert devices["opencl:0"]["uuid"] == devices["opencl:1"]["uuid"]
    text = good("devices", "--all", **env)
    assert "it is the same physical device as opencl:0" in text and "in use: opencl:0, cpu:0" in text
    assert "Fake GPU" in text and "0000:07:01.0" in text
    assert "opencl:1" in good("plan", chain(tmp_path / "g.json"), "--device", "opencl:1", **env)


def test_one_driver_named_twice(tmp_path, fake):
    text = good("devices", "--all", **vendors(tmp_path / "vendors", fake, fake))
    assert "in use: opencl:0, cpu:0" in text


def test_parts_of_devices_on_two_platforms(tmp_path, fake):
    """Each device that can be is split; one that cannot is used whole."""
    whole = [d for d in plugin()[1].values() if d["name"].startswith("opencl:")]
    if not whole or whole[0]["compute_units"] < 2:
        pytest.skip("there is no PoCL device with two compute units")
    entries = sorted(os.path.join("/etc/OpenCL/vendors", f) for f in os.listdir("/etc/OpenCL/vendors"))
    libraries = [open(e).read().strip() for e in entries]
    _, devices, _ = plugin(**vendors(tmp_path / "vendors", *libraries, fake), HEDDLE_OPENCL_SUB_DEVICES="1")
    ours = [d for d in devices.values() if d["name"].startswith("opencl:")]
    parts = [d for d in ours if "Portable" in d["driver"]]
    assert len(parts) == sum(d["compute_units"] for d in whole) and all(d["compute_units"] == 1 for d in parts)
    assert [d["compute_units"] for d in ours if "Fake" in d["driver"]] == [4]
    out = good("run", chain(tmp_path / "g.json"), "--random", "--device", f"{parts[-1]['name']}",
               **vendors(tmp_path / "vendors", *libraries, fake), HEDDLE_OPENCL_SUB_DEVICES="1")
    assert "sum" in out


@pytest.mark.parametrize("key, value", [("sub_devices", "two"), ("max_streams", "-1"), ("peer", "maybe"),
                                        ("unified", "2"), ("capture", "sometimes"), ("driver", "gone"),
                                        ("capture", "a word that is much too long"), ("peer", "1" * 40),
                                        ("sub_devices", " 2"), ("gpu_kernels", "2"), ("cache_always", "2"), ("clblast", "2"), ("fuse", "2"),
                                        ("cache_dir", "relative/folder"), ("source_dir", "relative/folder")])
def test_settings_that_are_wrong(key, value):
    refused, _, _ = plugin(**{f"HEDDLE_OPENCL_{key.upper()}": value})
    assert not refused["used"] and key in refused["reason"] and f"'{value[:15]}" in refused["reason"]


@pytest.mark.parametrize("key, value", [("driver", "on"), ("capture", "off"), ("peer", "no"), ("unified", "true"),
                                        ("clblast", "off"), ("cache_dir", "0"), ("source_dir", "off")])
def test_words_for_on_and_off(key, value):
    found, _, _ = plugin(**{f"HEDDLE_OPENCL_{key.upper()}": value})
    assert found["used"], found["reason"]


def test_a_driver_that_crashes(tmp_path, fake):
    """Nothing can catch that in the process; what can be done is to say where it was, and to leave drivers out."""
    env = vendors(tmp_path / "vendors", fake)
    r = heddle("devices", "--set", "log=info", **env, FAKE_ICD="crash")
    assert r.status in (-signal.SIGSEGV, 1) and "opencl.driver=off" in r.err  # AddressSanitizer makes it 1
    listed = good("devices", "--all", "--set", "opencl.driver=off", **env, FAKE_ICD="crash")
    assert "the setting driver is off" in listed and "cpu:0" in listed


@pytest.mark.parametrize("how, words", [
    ("context", ["opencl:0", "make a context", "CL_OUT_OF_RESOURCES"]),
    ("build", ["plugin 'opencl' offered to run node 'sum' (Add) on opencl:0 and cannot prepare it", "build kernel",
               "CL_BUILD_PROGRAM_FAILURE", "kernel.cl:3: the fake compiler has had enough"]),
    ("memory", ["opencl:0", "allocate", "bytes", "CL_MEM_OBJECT_ALLOCATION_FAILURE"]),
    ("small", ["opencl:0", "4096"]),
])
def test_a_device_that_refuses(tmp_path, fake, how, words):
    env = vendors(tmp_path / "vendors", fake)
    r = heddle("run", chain(tmp_path / "g.json", 4096), "--random", "--device", "opencl:0", **env, FAKE_ICD=how)
    assert r.status == 1 and r.err.count("\n") == 1, r
    for word in words:
        assert word in r.err, r.err


def test_a_refusal_is_no_reason_to_run_elsewhere(tmp_path, fake):
    env = vendors(tmp_path / "vendors", fake)
    said = failing(1, "run", chain(tmp_path / "g.json"), "--random", **env, FAKE_ICD="build")
    assert "plugin 'opencl' offered to run node 'sum'" in said


def test_values_over_what_a_device_takes(tmp_path):
    """On PoCL: more than one buffer may have."""
    if "opencl:0" not in heddle("devices", "--all").out:
        pytest.skip("there is no OpenCL device")
    wide = chain(tmp_path / "g.json", 1 << 34)
    r = heddle("run", wide, "--device", "opencl:0", "--set", "opencl.unified=0", "--random")
    assert r.status == 1 and "bytes" in r.err and r.err.count("\n") == 1, r
