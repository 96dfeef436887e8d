"""The real NVRTC under the plugin cuda, with the double of the driver: every program of a network becomes code for the
device's architecture, or PTX for an older one, and a device that is too old is refused with a message. Nothing runs:
the double has no GPU for such code.

timeout: 120
"""
import glob
import os
import subprocess
import sys

import pytest

import gpu_doubles
from tool_case import DIGITS, TOOL, environment, failing

HEADER = 40  # of an entry of the cache: what it is, its key, its size and a hash


@pytest.fixture(scope="module")
def nvrtc():
    gpu_doubles.need("cuda", count=1)
    if gpu_doubles.REAL:
        pytest.skip("the driver is no double")
    found = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    found += glob.glob("/usr/local/cuda/lib64/libnvrtc.so")
    if not found:
        pytest.skip("there is no NVRTC")
    return found[0]


def said(nvrtc, folder, arch):
    env = {**gpu_doubles.ENV, "HEDDLE_CUDA_NVRTC": nvrtc, "FAKE_GPU_ARCH": arch, "FAKE_GPU_STRICT": "0"}
    return failing(1, "run", DIGITS, "--random", "--device", "cuda:0", "--place", "*=cuda:0", "--set",
                   f"cuda.cache_dir={folder}", **env)


def codes(folder):
    return [path.read_bytes()[HEADER:] for path in folder.iterdir()]


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_code_for_the_device(nvrtc, tmp_path, arch):
    """The driver's double takes the cubins, finds the kernels in them, and has no function in their place."""
    text = said(nvrtc, tmp_path, arch)
    assert "run an operator" in text and "cuda:0" in text, text
    made = codes(tmp_path)
    assert len(made) > 3 and all(code.startswith(b"\x7fELF") for code in made)


LOADER = "/lib64/ld-linux-x86-64.so.2"


@pytest.mark.skipif(not os.path.exists(LOADER), reason="the loader is elsewhere")
@pytest.mark.skipif("address" in os.environ.get("HEDDLE_SANITIZE", ""), reason="AddressSanitizer wants to be started itself")
def test_its_builtins_are_found_beside_it(nvrtc, tmp_path):
    """NVRTC opens libnvrtc-builtins by its name, which the loader, here without its list of folders, does not know."""
    env = environment(**{**gpu_doubles.ENV, "HEDDLE_CUDA_NVRTC": nvrtc, "FAKE_GPU_STRICT": "0"})
    env.pop("LD_LIBRARY_PATH", None)
    words = [LOADER, "--inhibit-cache", TOOL, "run", DIGITS, "--random", "--device", "cuda:0", "--place", "*=cuda:0", "--set",
             f"cuda.cache_dir={tmp_path}"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=100, env=env)
    assert "run an operator" in done.stderr, done.stderr
    assert len(codes(tmp_path)) > 3


def test_ptx_for_an_older_one(nvrtc, tmp_path):
    said(nvrtc, tmp_path, "sm_99")
    made = codes(tmp_path)
    assert len(made) > 3 and all(b".target sm_90\n" in code and b".entry" in code for code in made)


def test_a_device_that_is_too_old(nvrtc, tmp_path):
    text = said(nvrtc, tmp_path, "sm_35")
    assert "compiles for sm_" in text and "the device is sm_35" in text and "cuda.nvrtc" in text, text
    assert not list(tmp_path.iterdir())
