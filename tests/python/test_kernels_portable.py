"""The kernels as CUDA C and as HIP: what the plugin builds for a GPU, by NVRTC and hiprtc where those are installed.

labels: slow
timeout: 1200

The plugin writes the source of each program that it plans (source_dir) for ONNX's node cases and a few random graphs,
in the forms for GPUs (gpu_kernels). Options become lines in front of the source, since the compilers' own headers have
short names of the same spelling. No kernel is run. Planning and each compiler have a process of their own: their copies
of LLVM end a process that they share.
"""
import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def child(*words):
    """Runs this file; its standard output. A child that is to be skipped gives the reason."""
    path = os.pathsep.join([HERE, os.path.dirname(HERE)])
    done = subprocess.run([sys.executable, os.path.abspath(__file__), *map(str, words)], text=True, timeout=1000,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path})
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


# ---------------------------------------------------------------- planning

def leave(reason):
    print(reason)
    sys.exit(SKIPPED)


def prepare(capi, io, ctx, graph, params):
    """Plans and prepares; what the device does not take is passed over."""
    g = capi.Graph(json.dumps(graph))
    p = capi.Params(io.params_blob(params)) if params else None
    made = []
    try:
        made.append(capi.Model(ctx, g, p, devices="opencl:0"))
        made.insert(0, capi.Executor(made[0]))
    except capi.HeddleError as e:
        if e.status in (5, 6):  # no such device, no such name
            leave(f"no OpenCL device: {e}")
    finally:
        for x in made + [p, g]:
            if x is not None:
                x.close()


def write(folder):
    """Sources of all programs into folder."""
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        leave("the plugin opencl is not built")
    import capi
    import numpy as np
    import onnx_cases
    import random_graphs
    from reference import io
    ctx = capi.Context(opencl__gpu_kernels=1, opencl__source_dir=folder, log="off")
    for seed in range(1000, 1008):
        graph, params, *_ = random_graphs.expected(seed)
        prepare(capi, io, ctx, graph, params)
    for _, model, inputs, *_ in onnx_cases.load():
        used = {n.op_type for n in model.graph.node}
        if not used or used - onnx_cases.OPERATORS or not all(isinstance(x, np.ndarray) for x in inputs):
            continue
        try:
            model, opset = onnx_cases.restated(model)
            named = {v.name: np.asarray(x) for v, x in zip(model.graph.input, inputs)}
            prepare(capi, io, ctx, *onnx_cases.graph(model, opset, named))
        except (onnx_cases.LeftOut, capi.HeddleError):
            continue
    ctx.close()


@pytest.fixture(scope="module")
def programs():
    """A folder of sources, and the kernels in them."""
    with tempfile.TemporaryDirectory(prefix="heddle-kernels-") as folder:
        os.environ["POCL_DEVICES"] = "pthread pthread"
        os.environ["POCL_CACHE_DIR"] = folder
        sources, kernels = os.path.join(folder, "sources"), set()
        child("write", sources)
        paths = glob.glob(os.path.join(sources, "*.cl"))
        for path in paths:
            with open(path) as f:
                options, text = f.read().split("\n", 1)
            words = [o[2:].split("=", 1) for o in options.split() if o.startswith("-D")]
            with open(path, "w") as f:
                f.write("".join(f"#define {' '.join(w)}\n" for w in words) + text)
            kernels |= set(re.findall(r"KERNEL void (\w+)", text))
        assert len(paths) > 30
        assert {"contract", "direct", "thin", "softmax_group", "reduce_item", "norm_group", "average_pool",
                "walk"} <= kernels
        yield sources


# ---------------------------------------------------------------- compiling

class Compiler:
    """NVRTC's calls, which hiprtc has under other names."""

    def __init__(self, library, prefix, arch, code_size):
        self.library, self.prefix, self.arch, self.code_size = library, prefix, arch, code_size

    def call(self, name, *args):
        return getattr(self.library, self.prefix + name)(*args)

    def build(self, text):
        """None, or the compiler's log. Also where no code came of it."""
        program = ctypes.c_void_p()
        assert self.call("CreateProgram", ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
        try:
            words = (ctypes.c_char_p * 1)(f"--gpu-architecture={self.arch}".encode())
            failed = self.call("CompileProgram", program, 1, words)
            size = ctypes.c_size_t()
            if failed:
                self.call("GetProgramLogSize", program, ctypes.byref(size))
                log = ctypes.create_string_buffer(size.value + 1)
                self.call("GetProgramLog", program, log)
                return log.value.decode(errors="replace") or f"status {failed}"
            assert self.call(self.code_size, program, ctypes.byref(size)) == 0
            return None if size.value > 0 else "no code"
        finally:
            self.call("DestroyProgram", ctypes.byref(program))


def compile_all(prefix, arch, code_size, folder, *names):
    """Prints what does not compile."""
    library = None
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    if library is None or not hasattr(library, prefix + "CompileProgram"):
        leave(f"{prefix} is not installed")
    compiler = Compiler(library, prefix, arch, code_size)
    for path in sorted(glob.glob(os.path.join(folder, "*.cl"))):
        with open(path) as f:
            text = f.read()
        log = compiler.build(text)
        if log is not None:
            print(f"{os.path.basename(path)}: {text[:text.index('/*')]}{log[:2000]}")


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_cuda(programs, arch):
    wrong = child("compile", "nvrtc", arch, "GetCUBINSize", programs, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                  "libnvrtc.so.11.2")
    assert not wrong, wrong[:8000]


def test_hip(programs):
    """gfx90a only: an architecture that hiprtc does not know ends the process."""
    wrong = child("compile", "hiprtc", "gfx90a", "GetCodeSize", programs, "libhiprtc.so", "libhiprtc.so.6",
                  "libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5")
    assert not wrong, wrong[:8000]


if __name__ == "__main__":
    {"write": write, "compile": compile_all}[sys.argv[1]](*sys.argv[2:])
