"""Libraries with CUDA and HIP code inside, as TVM v0.6 to v0.14 wrote them, on the doubles of the drivers: PTX and cubins
of the real NVRTC, whose kernels are C functions there (FAKE_GPU_KERNELS), and source that the doubles compile; graphs
that TVM v0.14 wrote for CUDA and ROCm; what is refused.
labels: ctypes
timeout: 300
"""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import gpu_doubles

gpu_doubles.in_process()
FOLDER = tempfile.TemporaryDirectory(prefix="heddle-tvm-cuda-")
KERNELS = os.path.join(FOLDER.name, "kernels.so")
os.environ["FAKE_GPU_KERNELS"] = KERNELS

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators  # noqa: E402
from test_tvm_models import random_params, stored  # noqa: E402

F32, PRE = np.float32, operators.PREFIX
GRAPHS = {"mlp": "mlp_cuda_compile_only", "mixed": "hetero_cpu_cuda_compile_only", "relu": "ewise_rocm_compile_only"}
TEXTS = {k: stored(folder, "graph.json").decode() for k, folder in GRAPHS.items()}
KNOWN = {"mixed": {PRE + "multiply": "float r = x0[i] * 0.5f;"},
         "relu": {PRE + "multiply_nn_relu": "float r = x0[i] * x1[i]; r = r > 0 ? r : 0;"}}
TYPES = {"cuda": 2, "hip": 10}


def code_of(graph, node):
    return KNOWN.get(graph, {}).get(node.function) or operators.body(node)


def on_device(graph):
    return [n for n in operators.nodes(TEXTS[graph]) if n.device != 1]


def kernel_name(graph, node):
    return f"{node.function}_kernel_{graph}"


def parameters(node, word=""):
    return ", ".join(f"{word}{'const ' if n[0] == 'x' else ''}float *{n}" for n, *_ in node.tensors)


def source(graph):
    """CUDA C and HIP, and OpenCL C for the doubles' compilers."""
    text = """#ifdef __OPENCL_VERSION__
#define KERNEL __kernel
#define GLOBAL __global
#define AT ((int)get_global_id(0))
#else
#define KERNEL extern "C" __global__
#define GLOBAL
#define AT ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#endif
"""
    for node in on_device(graph):
        n = int(np.prod(node.outputs[0][1]))
        text += (f"KERNEL void {kernel_name(graph, node)}({parameters(node, 'GLOBAL ')}) {{\n  int i = AT;\n"
                 f"  if (i >= {n}) return;\n  {code_of(graph, node)}\n  y0[i] = r;\n}}\n")
    return text


def functions():
    """C in place of kernels that no host runs."""
    text = "#include <math.h>\n#define exp expf\n"
    for graph in ("mlp", "mixed"):
        for node in on_device(graph):
            n = int(np.prod(node.outputs[0][1]))
            takes = "".join(f"  {'const ' if t[0] == 'x' else ''}float *{t} = *(float *const *)args[{k}];\n"
                            for k, (t, *_) in enumerate(node.tensors))
            text += (f"void {kernel_name(graph, node)}(const void *const *args, const unsigned grid[3], "
                     f"const unsigned block[3]) {{\n{takes}"
                     f"  for (int i = 0; i < {n} && i < (int)(grid[0] * block[0]); i++) {{\n"
                     f"    {code_of(graph, node)}\n    y0[i] = r;\n  }}\n}}\n")
    return text


COMPILE = """
import ctypes, glob, os, sys
library, arch, what, path = sys.argv[1:]
for builtins in glob.glob(os.path.join(os.path.dirname(library) or "/nowhere", "libnvrtc-builtins.so.*")):
    ctypes.CDLL(builtins)  # it opens them by their name alone
nvrtc, program, size = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_size_t()
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), sys.stdin.buffer.read(), b"tvm.cu", 0, None, None) == 0
assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=" + arch.encode())) == 0
assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
code = ctypes.create_string_buffer(size.value)
assert getattr(nvrtc, "nvrtcGet" + what)(program, code) == 0
open(path, "wb").write(code.raw)
"""


def compiled(text, arch, what):
    """Code of the real NVRTC, in a process of its own: the doubles have another compiler inside."""
    wheels = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    path = os.path.join(FOLDER.name, "code")
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", *wheels):
        if subprocess.run([sys.executable, "-c", COMPILE, name, arch, what, path], input=text.encode(), env=env,
                          capture_output=True, timeout=120).returncode == 0:
            with open(path, "rb") as f:
                return f.read()
    pytest.skip("there is no NVRTC to write PTX with")


@pytest.fixture(scope="module", autouse=True)
def devices():
    gpu_doubles.need("cuda", count=1)
    if legacy.compiler() is None:
        pytest.skip("there is no C compiler to write libraries with")
    legacy.compile_c(KERNELS, functions(), ["-shared"])


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


def build(path, graph, kind="cuda", fmt="cuda", code=None, era="v0.14"):
    sources, table = [], {}
    for node in operators.nodes(TEXTS[graph]):
        if node.device == 1:
            sources.append(operators.host(node, code_of(graph, node)))
            continue
        n, names = int(np.prod(node.outputs[0][1])), [t[0] for t in node.tensors]
        name = kernel_name(graph, node)
        sources.append(legacy.launcher(node.function, node.tensors, [(name, names, [(n + 31) // 32, 32])],
                                       device_type=TYPES[kind]))
        table[name] = ([operators.HANDLE] * len(names), operators.TAGS)
    module = legacy.device_module(kind, fmt, table, source(graph) if code is None else code)
    return legacy.library(path, era, sources, data=operators.blob(era, [module]))


def run(ctx, graph, path, devices, x):
    """Outputs of a run, equal to those of two others: the segments of those are graphs that the driver replays."""
    params = random_params(TEXTS[graph], list(x))
    held = [capi.Library(ctx, path), capi.Graph(TEXTS[graph]), capi.Params(legacy.params_blob(params))]
    try:
        held.append(capi.Model(ctx, held[1], held[2], devices=devices, library=held[0]))
        held.append(capi.Executor(held[-1]))
        for name, array in x.items():
            held[-1].set_input(name, array)
        held[-1].run()
        first = held[-1].outputs()
        for _ in range(2):
            held[-1].run()
            np.testing.assert_array_equal(first[0], held[-1].outputs()[0])
        return first[0], {k: v.astype(np.float64) for k, v in params.items()}
    finally:
        for p in reversed(held):
            p.close()


def softmax(y):
    e = np.exp(y - y.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mlp(x, p):
    y = np.maximum(x @ p["p0"].T + p["p1"], 0)
    return softmax(np.maximum(y @ p["p2"].T + p["p3"], 0) @ p["p4"].T + p["p5"])


def mixed(x, p):
    return softmax(np.maximum(x * 0.5 @ p["p0"].T + p["p1"], 0) @ p["p2"].T)


REFERENCES = {"mlp": ("data", (1, 784), mlp), "mixed": ("data", (1, 64), mixed),
              "relu": ("x", (1, 64), lambda x, p: np.maximum(x * p["p0"], 0))}


def check(ctx, graph, path, devices):
    name, shape, reference = REFERENCES[graph]
    x = np.random.default_rng(5).normal(size=shape).astype(F32)
    got, params = run(ctx, graph, path, devices, {name: x})
    np.testing.assert_allclose(got, reference(x.astype(np.float64), params), rtol=1e-4, atol=1e-5)


FORMATS = [("v0.6", "ptx", "compute_75", "PTX"), ("v0.14", "ptx", "compute_75", "PTX"),
           ("v0.14", "cubin", "sm_90", "CUBIN")]


@pytest.mark.parametrize("graph", ["mlp", "mixed"])
@pytest.mark.parametrize("era,fmt,arch,what", FORMATS, ids=lambda v: v)
def test_compiled_code(ctx, tmp_path, graph, era, fmt, arch, what):
    """The blob does not end PTX with a zero."""
    if gpu_doubles.REAL and fmt == "cubin":
        pytest.skip("a cubin is for one architecture")
    code = compiled(source(graph), arch, what).rstrip(b"\0") if fmt == "ptx" else compiled(source(graph), arch, what)
    check(ctx, graph, build(tmp_path / "lib.so", graph, fmt=fmt, code=code, era=era), "cuda:0,cpu")


@pytest.mark.parametrize("fmt", ["cu", "cuda"])
def test_source(ctx, tmp_path, fmt):
    """What TVM writes where there is no nvcc."""
    check(ctx, "mlp", build(tmp_path / "lib.so", "mlp", fmt=fmt), "cuda:0")
    check(ctx, "mixed", build(tmp_path / "mixed.so", "mixed", fmt=fmt), "cuda:0,cpu")


def test_hip(ctx, tmp_path):
    gpu_doubles.need("rocm", count=1)
    check(ctx, "relu", build(tmp_path / "lib.so", "relu", kind="hip", fmt="hip"), "rocm:0")


def refused(ctx, words, *args):
    with pytest.raises(capi.HeddleError) as caught:
        check(ctx, *args)
    for word in words:
        assert word in str(caught.value), caught.value


def test_code_that_is_no_code_is_refused(ctx, tmp_path):
    """With the kernel, the device, and what is wrong."""
    name = kernel_name("mlp", on_device("mlp")[0])
    refused(ctx, [f"kernel '{name}' on cuda:0", "ELF"],
            "mlp", build(tmp_path / "a.so", "mlp", fmt="cubin", code=b"\x7fELF but not for long"), "cuda:0")
    refused(ctx, [f"kernel '{name}' on cuda:0", "hsaco", "these are: cubin,ptx"],
            "mlp", build(tmp_path / "b.so", "mlp", fmt="hsaco", code=b"?"), "cuda:0")
    refused(ctx, [f"kernel '{name}' on cuda:0", "made by a test"],
            "mlp", build(tmp_path / "c.so", "mlp", code="#error made by a test\n"), "cuda:0")
    other = source("mlp").replace(name, "another")
    refused(ctx, [f"kernel '{name}' on cuda:0", name], "mlp", build(tmp_path / "d.so", "mlp", code=other), "cuda:0")
