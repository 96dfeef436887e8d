"""The doubles of GPU drivers (tests/fakes) for a test: ENV for programs that are started, with two devices each of cuda and
rocm; in_process() for libheddle in Python, before a driver is loaded; need() skips where there are none.

With HEDDLE_TEST_GPU=real the plugins meet the drivers that are installed instead: what scripts/gpu-test does."""

import json
import os
import tempfile

import pytest
from tool_case import BUILD, DIGITS, heddle

REAL = os.environ.get("HEDDLE_TEST_GPU") == "real"
FOLDER = tempfile.TemporaryDirectory(prefix="heddle-gpu-")
FAKES = BUILD / "tests" / "fakes"
CUDA, NVRTC, HIP = FAKES / "cuda" / "libcuda.so.1", FAKES / "cuda" / "libnvrtc.so.13", FAKES / "rocm" / "libamdhip64.so"
PLUGINS = BUILD / "lib" / "heddle" / "plugins"
# Kernels that were compiled once stay for the next test; of PoCL's too, which the doubles run them with.
CACHE, POCL_CACHE = BUILD / "tests" / "cache", os.environ.get("POCL_CACHE_DIR", str(BUILD / "tests" / "pocl-cache"))

ENV = {"HEDDLE_TEST_GPU": "real"} if REAL else {
    "HEDDLE_CUDA_DRIVER": str(CUDA), "HEDDLE_CUDA_NVRTC": str(NVRTC), "HEDDLE_CUDA_LIBRARIES": "0",
    "HEDDLE_ROCM_DRIVER": str(HIP), "HEDDLE_ROCM_HIPRTC": str(HIP), "HEDDLE_ROCM_LIBRARIES": "0",
    "XDG_CACHE_HOME": str(CACHE), "FAKE_GPU_STRICT": "1", "POCL_DEVICES": "pthread", "POCL_CACHE_DIR": POCL_CACHE}
if os.environ.get("HEDDLE_SANITIZE"):  # PoCL has leaks of its own; the doubles count what is left
    ENV["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
if REAL:  # what the caller chose, of which tool_case takes away the plugins' settings
    ENV.update((k, v) for k, v in os.environ.items() if k.startswith(("HEDDLE_CUDA_", "HEDDLE_ROCM_")))
else:
    CACHE.mkdir(parents=True, exist_ok=True)


def in_process():
    os.environ.update(ENV)


def built(plugin):
    """The plugin, and the double of its driver."""
    driver = {"cuda": CUDA, "rocm": HIP}[plugin]
    return (PLUGINS / f"libheddle_plugin_{plugin}.so").exists() and (REAL or driver.exists())


def there(plugin="cuda", count=2):
    return built(plugin) and f"{plugin}:{count - 1}" in heddle("devices", **ENV).out


def those_there(*names):
    """Of names of devices those that there are: all of them on doubles, fewer perhaps on a real machine."""
    listed = heddle("devices", **ENV).out
    return [name for name in names if name in listed]


def need(*plugins, count=2):
    for plugin in plugins or ("cuda",):
        if not built(plugin):
            pytest.skip(f"the plugin {plugin} or the double of its driver is not built")
        if not there(plugin, count):
            if REAL:
                pytest.skip(f"there are no {count} devices of {plugin}")
            words = heddle("plan", DIGITS, "--device", f"{plugin}:{count - 1}", **ENV).err
            pytest.fail(f"the double of {plugin} is there, and its devices are not: {words}")


def reporting(path, **more):
    """ENV with a report of the double's at the process's end; clean() reads it."""
    return {**ENV, "FAKE_GPU_REPORT": str(path), **more}


def clean(path):
    """A report in which nothing is alive and nothing was misused; gives its counts of calls."""
    report = json.loads(path.read_text())
    assert not report["misuse"], report
    assert not any(report["live"].values()), report["live"]
    return report["calls"]
