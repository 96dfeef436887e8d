"""The tool with OpenCL, as a new user has it: what is there, a model over cpu, OpenCL and sim, times, and what is said
where something is missing.
timeout: 600"""

import json
import re

import numpy as np
import pytest

from fixtures import tvm_legacy as legacy
from pocl import ENV, PLUGIN, need
from tool_case import DIGITS, failing, good

MIXED = ("--device", "cpu,opencl:0,opencl:1,sim:0", "--place", "wide*=opencl:0", "--place", "fine*=opencl:1",
         "--place", "mix*=sim:0")


@pytest.fixture(scope="module", autouse=True)
def devices():
    need()


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.npy"
    np.save(path, np.load(DIGITS.parent / "images.npy")[7:8].astype(np.float32))
    return "--input", f"image={path}"


def test_devices():
    text = good("devices", "--all", **ENV)
    for k in (0, 1):
        assert re.search(rf"^opencl:{k} .*used only when named$", text, re.M), text
    assert "OpenCL" in text and "PoCL" in text and "2 devices" in text
    listed = {d["name"]: d for d in json.loads(good("devices", "--json", **ENV))["devices"]}
    assert {"cpu:0", "opencl:0", "opencl:1", "sim:0"} <= set(listed)


@pytest.mark.parametrize("words", [MIXED, ("--device", "opencl", "--place", "*=opencl"),
                                   ("--device", "cpu,opencl", "--place", "wide*=opencl", "--set", "opencl.unified=0")],
                         ids=["mixed", "alone", "copies"])
def test_run(words, image, tmp_path):
    out = good("run", DIGITS, *words, *image, "--output-dir", tmp_path, "--profile", **ENV)
    assert np.abs(np.load(tmp_path / "output_0.npy") - np.load(DIGITS.parent / "expected.npy")[7:8]).max() < 1e-4
    table = out.split("takes us\n")[1].split("\n\n")[0]  # of steps; those of operators and of the path come after it
    rows = [line.split() for line in table.splitlines() if re.search(r" (cpu|opencl|sim):\d ", line)]
    assert any(r[2].startswith("opencl:0") for r in rows), out
    assert all(float(r[-1]) >= 0 and float(r[-2]) >= 0 for r in rows), out
    starts = [float(r[-2]) for r in rows]
    assert starts == sorted(starts) and "steps in" in out


def test_plan():
    text = good("plan", DIGITS, *MIXED, **ENV)
    assert "5 on opencl:0, 3 on opencl:1" in text and "rule wide*=opencl:0" in text
    plan = json.loads(good("plan", DIGITS, *MIXED, "--json", "--set", "opencl.unified=0", "--set", "cpu.onednn=off", **ENV))
    labels = {s["label"]: s["kind"] for s in plan["steps"]}
    assert labels["wide.pool to host"] == "d2h" and labels["res.relu to opencl:0"] == "h2d"


def test_bench():
    told = json.loads(good("bench", DIGITS, *MIXED, "--json", "--repeat", "2", "--number", "2", **ENV))
    assert told["repeat"] == 2 and told["mean"] > 0
    assert all(d in str(told["devices"]) for d in ("cpu:0", "opencl:0", "opencl:1", "sim:0"))


def test_bench_by_the_clock_of_a_device():
    """OpenCL's commands have a begin and an end of their own."""
    told = json.loads(good("bench", DIGITS, "--device", "opencl", "--place", "*=opencl", "--timer", "device", "--json",
                           "--repeat", "3", "--number", "2", **ENV))
    assert told["timer"] == "device" and len(told["results"]) == 3 and 0 < told["min"] <= told["max"] < 60


@pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
def test_bench_of_a_function_on_a_device(tmp_path):
    """Its tensors are brought to the device before; on the host, or where it has no code for, it is refused."""
    code = ("// Function: twice_kernel\n__kernel void twice_kernel(__global float *y, __global const float *x) "
            "{ int i = get_global_id(0); y[i] = 2 * x[i]; }\n")
    kernels = {"twice_kernel": ([(3, 64), (3, 64)], ["blockIdx.x", "threadIdx.x"])}
    host = legacy.launcher("twice", [("x", "float32", (64,)), ("y", "float32", (64,))],
                           [("twice_kernel", ["y", "x"], [8, 8])])
    path = legacy.library(tmp_path / "lib.so", "v0.14", [host], data=legacy.blob(
        [legacy.LIB, legacy.device_module("opencl", "cl", kernels, code)], [[1], []]))
    words = ("bench", path, "--func", "twice", "--input", "x=float32:64", "--input", "y=float32:64", "--json")
    told = json.loads(good(*words, "--device", "opencl:1", **ENV))
    assert told["devices"] == ["opencl:1"] and told["func"] == "twice" and told["min"] > 0
    assert "device_type" in failing(1, *words, **ENV)
    assert "plugin 'opencl'" in failing(1, *words, "--device", "sim:0", **ENV)
    checked = (*words, "--device", "opencl:1", "--set", "layers=check,fault", "--repeat", "2")
    assert len(json.loads(good(*checked, **ENV))["results"]) == 2
    for call in ("load", "kernel_get", "launch"):
        said = failing(1, *checked, "--set", f"fault.fail=module.{call}:1", **ENV)
        assert "made to fail by fault.fail" in said and f"module.{call}" in said


def test_what_is_missing_is_said():
    assert "no device 'opencl:7'" in failing(1, "run", DIGITS, "--device", "cpu,opencl:7", "--random", **ENV)
    text = failing(1, "run", DIGITS, "--device", "cpu,opencl", "--random", **ENV)
    assert "'wide1' is annotated for device 'sim:0'" in text and "(wide1=cpu:0)" in text
    nowhere = {**ENV, "OCL_ICD_VENDORS": "/nonexistent"}
    assert "no OpenCL platform" in failing(1, "plan", DIGITS, "--device", "cpu,opencl", **nowhere)
    assert f"not used: {PLUGIN}" in good("devices", **nowhere)
