"""What the real NVRTC compiles is read by the double of CUDA's driver: the kernels of PTX and cubin images, and their
parameters. A C function of the kernel's name runs in its place (tests/fakes/native/kernels.c).

labels: ctypes
timeout: 120
"""
import ctypes
import glob
import os
import subprocess
import sys

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(os.environ["HEDDLE_BUILD"], "tests", "fakes", "cuda")
SOURCE = b"""
struct pair { long a, b, c; };
extern "C" __global__ void unused(const pair p, char c) {}
extern "C" __global__ void scale(float *x, float factor, unsigned n) {
  if (threadIdx.x < n) x[threadIdx.x] *= factor;
}
"""


def image(form, arch):
    found = glob.glob(os.path.join(ROOT, ".venv/lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    if not found:
        pytest.skip("the real NVRTC is not installed")
    for builtins in glob.glob(os.path.join(os.path.dirname(found[0]), "libnvrtc-builtins.so.*")):
        ctypes.CDLL(builtins)  # NVRTC opens them by their name alone
    nvrtc, program, size = ctypes.CDLL(found[0]), ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"scale.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
    assert nvrtc.nvrtcCompileProgram(program, 1, options) == 0
    assert getattr(nvrtc, f"nvrtcGet{form}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{form}")(program, text) == 0
    assert nvrtc.nvrtcDestroyProgram(ctypes.byref(program)) == 0
    return text


class Driver:
    """Its calls; one that does not give 0 fails."""

    def __init__(self):
        self.library = ctypes.CDLL(os.path.join(FOLDER, "libcuda.so.1"))

    def __getattr__(self, name):
        call = getattr(self.library, name)

        def checked(*args):
            assert call(*args) == 0, name
        return checked


def run(text):
    cuda, context, module, kernel = Driver(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuModuleLoadData(ctypes.byref(module), text)
    cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"unused")
    cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"scale")
    x = np.arange(8, dtype=np.float32)
    address, bytes_ = ctypes.c_uint64(), ctypes.c_size_t(x.nbytes)
    cuda.cuMemAlloc_v2(ctypes.byref(address), bytes_)
    cuda.cuMemcpyHtoD_v2(address, ctypes.c_void_p(x.ctypes.data), bytes_)
    values = [address, ctypes.c_float(3), ctypes.c_uint(6)]
    args = (ctypes.c_void_p * 3)(*[ctypes.addressof(v) for v in values])
    cuda.cuLaunchKernel(kernel, 1, 1, 1, 8, 1, 1, 0, None, args, None)
    y = np.empty_like(x)
    cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(y.ctypes.data), address, bytes_)
    np.testing.assert_array_equal(y, np.where(np.arange(8) < 6, x * 3, x))
    assert cuda.library.fake_gpu_misuse() == 0


@pytest.mark.parametrize("form, arch", [("PTX", "compute_75"), ("CUBIN", "sm_75"), ("CUBIN", "sm_90")])
def test_kernels_of_an_image(form, arch):
    if not os.path.exists(os.path.join(FOLDER, "libcuda.so.1")):
        pytest.skip("the double of CUDA's driver is not built")
    environment = {**os.environ, "FAKE_GPU_KERNELS": os.path.join(FOLDER, "fake_kernels.so")}
    text = image(form, arch)
    child = subprocess.run([sys.executable, os.path.abspath(__file__)], input=text.raw, env=environment, timeout=60,
                           capture_output=True)
    assert child.returncode == 0, child.stderr.decode()


if __name__ == "__main__":
    run(ctypes.create_string_buffer(sys.stdin.buffer.read()))
