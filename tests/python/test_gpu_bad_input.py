"""What goes wrong with a GPU, on the doubles: no driver, an old one, no device, no compiler, an architecture that it does not
know, no memory left, an illegal address in a kernel, a lost device, a hang. Each is a clear error, of `heddle devices --all`
or of the run, and other devices keep working.
timeout: 600"""

import re
import time

import numpy as np
import pytest

from gpu_doubles import CUDA, ENV, HIP, REAL, need
from tool_case import DIGITS, good, heddle

GPU = {"cuda": dict(driver="HEDDLE_CUDA_DRIVER", compiler="HEDDLE_CUDA_NVRTC", library=CUDA, api="CUDA"),
       "rocm": dict(driver="HEDDLE_ROCM_DRIVER", compiler="HEDDLE_ROCM_HIPRTC", library=HIP, api="HIP")}
PLUGINS = list(GPU)
LAUNCH = {"cuda": "cuLaunchKernel", "rocm": "hipModuleLaunchKernel"}


@pytest.fixture(scope="module", autouse=True)
def doubles():
    if REAL:
        pytest.skip("these are for the doubles")
    need("cuda", "rocm")


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.npy"
    np.save(path, np.load(DIGITS.parent / "images.npy")[7:8].astype(np.float32))
    return "--input", f"image={path}"


def is_right(folder):
    return np.abs(np.load(folder / "output_0.npy") - np.load(DIGITS.parent / "expected.npy")[7:8]).max() < 1e-4


def run(plugin, image, folder, *more, **env):
    return heddle("run", DIGITS, "--device", f"{plugin}:0", "--place", f"*={plugin}:0", *image, "--output-dir", folder, *more,
                  **{**ENV, **env})


def others_work(plugin, image, folder, **env):
    """cpu, and the other GPU, in the same environment."""
    other = "rocm" if plugin == "cuda" else "cuda"
    for device in ("cpu", f"{other}:0"):
        good("run", DIGITS, "--device", f"cpu,{device}", "--place", f"*={device}", *image, "--output-dir", folder,
             **{**ENV, **env})
        assert is_right(folder)


def why_not(plugin, **env):
    """What `heddle devices --all` says of a plugin that is not used."""
    text = good("devices", "--all", **{**ENV, **env})
    assert not re.search(rf"^{plugin}:", text, re.M), text
    lines = text.split(f"libheddle_plugin_{plugin}.so\n")[1].splitlines()
    assert lines[1].strip().startswith("not used:"), text
    return lines[1]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_driver(plugin, image, tmp_path):
    env = {GPU[plugin]["driver"]: "/nonexistent/libdriver.so"}
    words = why_not(plugin, **env)
    assert "/nonexistent/libdriver.so" in words and f"no {GPU[plugin]['api']} device" in words, words
    r = run(plugin, image, tmp_path, **env)
    assert r.status == 1 and "/nonexistent/libdriver.so" in r.err and f"{plugin}:0" in r.err, r
    others_work(plugin, image, tmp_path, **env)
    assert "driver is off" in why_not(plugin, **{GPU[plugin]["driver"]: "off"})


@pytest.mark.parametrize("plugin", PLUGINS)
def test_one_of_two_is_not_described(plugin, image, tmp_path):
    """The other one is used, as the first, and the log says what is missing."""
    call = {"cuda": "cuDeviceGetName", "rocm": "hipDeviceGetName"}[plugin]
    env = {"FAKE_GPU_FAIL": f"{call}:1:999", "HEDDLE_LOG": "warn"}
    r = heddle("devices", **{**ENV, **env})
    assert re.findall(rf"^{plugin}:\d", r.out, re.M) == [f"{plugin}:0"], r.out
    assert "a device is left out" in r.err and "(999)" in r.err, r.err
    assert run(plugin, image, tmp_path, **env).status == 0 and is_right(tmp_path)
    r = heddle("devices", "--all", **{**ENV, "FAKE_GPU_FAIL": f"{call}:1+:999"})
    assert re.search(r"not used: .*does not describe the device.*\(999\)", r.out), r.out


def test_old_driver(image, tmp_path):
    """A symbol is missing that every driver has that will do."""
    env = {"HEDDLE_CUDA_DRIVER": str(CUDA.parents[1] / "cuda-ancient" / "libcuda.so.1")}
    words = why_not("cuda", **env)
    assert re.search(r"has no cu\w+: the driver is older than CUDA 11", words), words
    others_work("cuda", image, tmp_path, **env)


def test_an_old_driver_that_has_every_call():
    """No NVRTC that would do makes code for it."""
    assert "the driver is of CUDA 10.2, older than CUDA 11.0" in why_not("cuda", FAKE_GPU_VERSION="10020")


def test_a_driver_without_what_is_newer(image, tmp_path):
    """No pools, no updates of graphs: done without."""
    r = run("cuda", image, tmp_path, HEDDLE_CUDA_DRIVER=str(CUDA.parents[1] / "cuda-old" / "libcuda.so.1"))
    assert r.status == 0 and r.err == "" and is_right(tmp_path), r


def test_a_library_that_is_no_driver():
    words = why_not("cuda", HEDDLE_CUDA_DRIVER=str(HIP))
    assert "has no cuInit" in words, words


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_device(plugin):
    """Both doubles read the same variables."""
    for env in ({"FAKE_GPU_DEVICES": "0"}, {"FAKE_GPU_INIT": "100"}):
        words = why_not(plugin, **env)
        assert "no device" in words, words
    words = why_not(plugin, FAKE_GPU_INIT="803")
    assert "803" in words and "restart" in words, words


@pytest.mark.parametrize("value, words", [("9", "the driver has 2, and no number 9"), ("0;1", "no list of numbers"),
                                          ("-1", "no list of numbers")])
def test_numbers_of_devices(value, words):
    assert words in why_not("cuda", HEDDLE_CUDA_DEVICES=value)


def test_a_word_that_a_setting_cannot_have():
    """Also of a setting of the libraries' that names no file."""
    for key in ("TENSOR_CORES", "LIBRARIES", "CAPTURE"):
        words = why_not("cuda", **{f"HEDDLE_CUDA_{key}": "perhaps"})
        assert key.lower() in words and "'perhaps'" in words, words


def test_one_device_twice(image, tmp_path):
    env = {**ENV, "HEDDLE_CUDA_DEVICES": "1,1"}
    good("run", DIGITS, "--device", "cuda:0,cuda:1", "--place", "*=cuda:0", "--place", "wide*=cuda:1", *image,
         "--output-dir", tmp_path, **env)
    assert is_right(tmp_path)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_compiler(plugin, image, tmp_path):
    """Operators are compiled for the device: without a compiler it has none, and reports it."""
    env = {GPU[plugin]["compiler"]: "/nonexistent/libcompiler.so", "XDG_CACHE_HOME": str(tmp_path / "empty")}
    assert re.search(rf"^{plugin}:0 ", good("devices", "--all", **{**ENV, **env}), re.M)
    r = run(plugin, image, tmp_path, **env)
    assert r.status == 1 and "/nonexistent/libcompiler.so" in r.err, r
    good("run", DIGITS, "--device", f"{plugin}:0,cpu", "--place", "*=cpu", *image, "--output-dir", tmp_path,
         **{**ENV, **env})
    assert is_right(tmp_path)
    others_work(plugin, image, tmp_path, **env)


@pytest.mark.parametrize("plugin, arch", [("cuda", "sm_30"), ("rocm", "gfx602")])
def test_an_architecture_that_the_compiler_does_not_know(plugin, arch, image, tmp_path):
    env = {"FAKE_GPU_ARCH": arch, "XDG_CACHE_HOME": str(tmp_path / "empty")}
    r = run(plugin, image, tmp_path, **env)
    assert r.status == 1 and arch in r.err, r
    good("run", DIGITS, "--device", "cpu", "--place", "*=cpu", *image, "--output-dir", tmp_path, **{**ENV, **env})
    assert is_right(tmp_path)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_no_memory(plugin, image, tmp_path):
    r = run(plugin, image, tmp_path, FAKE_GPU_MEMORY="96K")
    assert r.status == 1 and f"{plugin}:0" in r.err and "memory" in r.err, r
    assert re.search(r"\d+ bytes", r.err), r


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("capture", ["1", "0"])
def test_an_illegal_address(plugin, capture, image, tmp_path):
    """The driver reports it late, and by its own code; the text is the driver's."""
    r = run(plugin, image, tmp_path, "--set", f"{plugin}.capture={capture}", FAKE_GPU_FAULT="launch:5")
    assert r.status == 1 and f"{plugin}:0" in r.err and "700" in r.err, r
    assert re.search("ILLEGAL_ADDRESS|IllegalAddress", r.err), r


@pytest.mark.parametrize("plugin, code, name", [("cuda", 719, "CUDA_ERROR_LAUNCH_FAILED"), ("rocm", 719, "hipErrorLaunch"),
                                                ("cuda", 214, "CUDA_ERROR_ECC_UNCORRECTABLE")])
def test_a_lost_device(plugin, code, name, image, tmp_path):
    r = run(plugin, image, tmp_path, FAKE_GPU_FAIL=f"{LAUNCH[plugin]}:4+:{code}")
    assert r.status == 1 and name in r.err and str(code) in r.err, r


def test_a_hang(image, tmp_path):
    """The run ends by its time limit, and the process by itself, although a kernel never ends."""
    start = time.monotonic()
    r = run("cuda", image, tmp_path, "--timeout", "1", FAKE_GPU_HANG="launch:5", FAKE_GPU_STRICT="0")
    assert r.status == 1 and "1 s" in r.err and time.monotonic() - start < 30, r
