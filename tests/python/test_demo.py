"""scripts/demo, its main part: what it prints and writes, and that it fails when something is not as it should be."""

import json
import os
import re
import shutil
import subprocess

import lavapipe
import numpy as np
import pytest
from pocl import ENV, PLUGIN, need
from tool_case import BUILD, SOURCE, environment

PROGRAM = BUILD / "examples" / "digits"
FOLDER = SOURCE / "examples" / "digits"


NO_DRIVER = {"OCL_ICD_VENDORS": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}


def call(*words, **env):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, cwd="/",
                          stdin=subprocess.DEVNULL, env=environment(**env))


def demo(env, *trials):
    """Runs it and checks what is the same with and without OpenCL; gives what it printed."""
    out = BUILD / "demo"
    shutil.rmtree(out, ignore_errors=True)
    # Settings of the caller's must not get in its way.
    done = call(SOURCE / "scripts" / "demo", "--build", BUILD, HEDDLE_DEVICES="sim:2", HEDDLE_SIM_DELAY_US="1000", **env)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    for words in ("devices found:", "cpu:0", "sim:0", "memory ", "all is well", *(f"  {t} " for t in trials)):
        assert words in text, text
    right, n = map(int, re.search(r"accuracy: (\d+) of (\d+) held-back digits right", text).groups())
    assert n == 360 and right / n >= 0.97
    assert float(re.search(r"time: ([\d.]+) us an image", text)[1]) > 0
    apart = [float(x) for x in re.findall(r"([\d.e+-]+) apart,.*  same$", text, re.M)]
    assert len(apart) == len(trials) and max(apart) < 1e-4 and "DIFFERENT" not in text
    trace = json.loads((out / "trace.json").read_text())
    pictures = [p for p in (out / "plan.svg", out / "plan.dot") if p.exists()]
    assert pictures and "wide1" in pictures[0].read_text() and str(pictures[0].name) in text
    return text, {c["name"] for c in trace["otherData"]["clocks"]}, pictures[0].read_text()


def test_demo():
    need()
    vulkan = ["vulkan alone", "cpu + opencl + vulkan"] if lavapipe.there() else []
    text, traced, picture = demo({**ENV, **lavapipe.ENV}, *vulkan, "cpu + opencl", "cpu + sim", "cpu + opencl + sim", "cpu + sim x 2", "cpu alone",
                                 "opencl alone", "sim alone")
    assert "nodes     23 on cpu:0, 5 on opencl:0" in text and "no OpenCL" not in text
    assert traced == {"host", "cpu:0", "opencl:0"} and "opencl:0" in picture


def test_demo_without_opencl():
    text, traced, picture = demo(NO_DRIVER, "cpu + sim", "cpu + sim x 2", "cpu alone", "sim alone")
    assert "no OpenCL device, so the demo goes on with sim" in text
    if PLUGIN.exists():
        assert "no OpenCL platform" in text  # the reason
    assert "nodes     23 on cpu:0, 5 on sim:0" in text and "copies    2 a run" in text
    assert traced == {"host", "cpu:0", "sim:0"} and "sim:0" in picture


def test_words_that_are_wrong():
    assert call(SOURCE / "scripts" / "demo", "--fast").returncode == 2
    assert call(SOURCE / "scripts" / "demo", "--build").returncode == 2
    assert call(PROGRAM).returncode == 2


@pytest.fixture
def folder(tmp_path):
    """A copy of examples/digits that may be changed."""
    for name in ("digits.json", "digits.params", "images.npy", "labels.npy", "expected.npy"):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path


def test_wrong_answers_fail_it(folder):
    np.save(folder / "labels.npy", (np.load(folder / "labels.npy") + 1) % 10)
    done = call(PROGRAM, folder, folder, **NO_DRIVER)
    assert done.returncode == 1 and "accuracy" in done.stdout


def test_other_outputs_fail_it(folder):
    expected = np.load(folder / "expected.npy")
    expected[200, 3] += 1e-3
    np.save(folder / "expected.npy", expected)
    done = call(PROGRAM, folder, folder, **NO_DRIVER)
    assert done.returncode == 1 and "DIFFERENT" in done.stdout


def test_missing_things_fail_it(folder):
    np.save(folder / "labels.npy", np.zeros(3, np.int64))
    done = call(PROGRAM, folder, folder, **NO_DRIVER)
    assert done.returncode == 1 and "do not belong together" in done.stderr
    os.remove(folder / "labels.npy")
    done = call(PROGRAM, folder, folder, **NO_DRIVER)
    assert done.returncode == 1 and "labels.npy" in done.stderr
    done = call(PROGRAM, FOLDER, folder, HEDDLE_PLUGINS="off", **NO_DRIVER)
    assert done.returncode == 1 and "cpu" in done.stderr


@pytest.mark.skipif(shutil.which("ninja") is None or not (BUILD / "build.ninja").exists(), reason="not built by ninja")
def test_the_tool_is_built_with_all_that_libheddle_opens():
    """The demo builds the tool and no more; what stands beside libheddle has to come with it."""
    done = call("ninja", "-C", BUILD, "-t", "inputs", "bin/heddle")
    beside = {str(p.relative_to(BUILD)) for p in [*(BUILD / "lib").glob("libheddle_*.so"),
                                                  *(BUILD / "lib/heddle/plugins").glob("libheddle_[!p]*.so")]}
    beside.discard("lib/libheddle_ort_ep.so")  # which ONNX Runtime opens
    beside.discard("lib/libheddle_rpc.so")  # which programs link, and libheddle does not open
    assert {"lib/libheddle_tvm.so"} <= beside <= set(done.stdout.split())
