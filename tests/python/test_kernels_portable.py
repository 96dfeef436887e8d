"""The kernels as CUDA C, HIP and OpenCL C 1.2 and 3.0: what plans ask for, through the real NVRTC, hiprtc and clang where
those are installed.

labels: slow
timeout: 600

Plans come from the plugin planned (tests/kernels), which writes down each program; no device is needed and no kernel is
run. A program alone costs a compiler mostly its start, so that many go together into one source: each in a namespace,
its options and its own macros as lines that are taken back behind it. Every program is compiled for one architecture of
each vendor at least, and for all of them one of each text and those with long indices, as the plugins compile them.
Whatever a compiler says is a failure. Each compiler has processes of its own: their copies of LLVM end a process that
they share, and an architecture that hiprtc does not know ends it too.
"""
import ctypes
import functools
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from reference import sizes

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.path.join(HERE, "..", "..", "plugins", "common", "kernels")
SKIPPED = 77
BATCH = 12


def child(*words, **more):
    """Runs this file; its standard output. A child that is to be skipped gives the reason."""
    path = os.pathsep.join([HERE, os.path.dirname(HERE)])
    done = subprocess.run([sys.executable, os.path.abspath(__file__), *map(str, words)], text=True, timeout=500,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path, **more})
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def leave(reason):
    print(reason)
    sys.exit(SKIPPED)


# ---------------------------------------------------------------- planning

LARGER = [  # op, shapes, attributes: what asks for kernels that small shapes do not
    ("MatMul", [[512, 512]] * 2, {}), ("Gemm", [[512, 512], [512, 512], [512]], {"transA": 1, "transB": 1}),
    ("Conv", [[1, 64, 56, 56], [64, 64, 3, 3]], {"pads": [1, 1, 1, 1]}),
    ("Conv", [[1, 64, 56, 56], [256, 64, 1, 1], [256]], {}), ("ReduceSum", [[8, 100000]], {"keepdims": 0}),
    ("Softmax", [[4, 50000]], {"axis": 1})]


# Operators whose operands behind the first say what shape a result has: constants, so that plans are whole.
SHAPED = {"AffineGrid", "BlackmanWindow", "CenterCropPad", "Col2Im", "Expand", "HammingWindow", "HannWindow",
          "MelWeightMatrix", "Pad", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape",
          "Resize",
          "Slice", "Split", "Squeeze", "Tile", "TopK", "Unsqueeze"}
# What products in reduced precision need (plugins/common/gpu).
OTHERS = [("half", "-DIDX=long", ""), ("tensor", "-DIDX=int", ""), ("tensor", "-DIDX=int -DHAS_C", "")]


def write():
    """Every program that plans of random graphs, of ONNX's node cases and of larger ones ask for."""
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "tests", "kernels", "libheddle_plugin_planned.so")
    if not os.path.exists(plugin):
        leave("the plugin cpu is not built")
    os.environ["HEDDLE_PLUGIN_PATH"] = os.path.dirname(plugin)
    import capi
    import fused
    import numpy as np
    import onnx
    import onnx_cases
    import random_graphs
    from reference import io
    ctx = capi.Context(planned__onednn="off", log="off")

    def plan(graph, params):
        made = []
        try:
            made.append(capi.Graph(json.dumps(graph)))
            given = capi.Params(io.params_blob(params)) if params else None
            made += [given] if given else []
            made.append(capi.Model(ctx, made[0], given, devices="planned:0"))
            made.append(capi.Executor(made[-1]))
        except capi.HeddleError as e:
            if e.status != 7:  # no device runs a node, and words why
                raise
        finally:
            for x in reversed(made):
                x.close()

    for seed in range(1000, 1008):
        graph, params, *_ = random_graphs.expected(seed)
        plan(graph, params)
    for op, shapes, attrs in LARGER:
        arrays = {f"x{k}": np.zeros(shape, np.float32) for k, shape in enumerate(shapes)}
        node = onnx.helper.make_node(op, list(arrays), ["y"], **attrs)
        model = onnx.helper.make_model(onnx.helper.make_graph(
            [node], op, [], [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]))
        plan(*onnx_cases.graph(model, 17, arrays))
    nbits = fused.Builder()  # of domain heddle, which ONNX's cases do not have
    operands = [nbits.null("a", np.zeros((3, 40), np.float32)), nbits.null("b", np.zeros((5, 3, 8), np.uint8)),
                nbits.null("s", np.zeros((5, 3), np.float32))]
    head = nbits.add("MatMulNBits", operands, "heddle", K=40, N=5, block_size=16)
    plan(json.loads(nbits.text([head])), {})
    blocks = fused.Builder()
    x, w = blocks.null("a", np.zeros((3, 64), np.float32)), blocks.null("b", np.zeros((5, 36), np.uint8))
    plan(json.loads(blocks.text([blocks.add("MatMulBlocks", [x, w], "heddle", K=64, N=5, form="q4_0"),
                                 blocks.add("FromBlocks", [w], "heddle", K=64, form="q4_0")])), {})
    for packed in (False, True):
        experts = fused.Builder()
        w = np.zeros((4, 5, 20), np.uint8) if packed else np.zeros((4, 5, 40), np.float32)
        operands = [experts.null("a", np.zeros((3, 40), np.float32)), experts.null("b", w),
                    experts.null("s", np.zeros((4, 5, 1), np.float32)) if packed else -1, -1,
                    experts.null("i", np.zeros((3, 2), np.int32))]
        head = experts.add("MatMulExperts", operands, "heddle", K=40, N=5, **({"bits": 4, "block_size": 64} if packed else {}))
        plan(json.loads(experts.text([head])), {})
    for _, model, inputs, *_ in onnx_cases.load():
        used = {n.op_type for n in model.graph.node}
        if not used or used - onnx_cases.OPERATORS or not all(isinstance(x, np.ndarray) for x in inputs):
            continue
        try:
            model, opset = onnx_cases.restated(model)
            named = {v.name: np.asarray(x) for v, x in zip(model.graph.input, inputs)}
            graph, params = onnx_cases.graph(model, opset, named)
        except onnx_cases.LeftOut:
            continue
        fixed = {x for n in model.graph.node if n.op_type in SHAPED for x in n.input[1:]}
        plan(graph, params | {k: v for k, v in named.items() if k in fixed})
    ctx.close()


# ---------------------------------------------------------------- programs

INCLUDED = {"prelude", "portable", "portable_flash"}  # in other texts


def read(name):
    """As cmake/embed_kernel.cmake embeds it."""
    with open(os.path.join(KERNELS, name)) as f:
        return re.sub(r'^#include "(portable.*)"$', lambda m: read(m.group(1)), f.read(), flags=re.MULTILINE)


def variants():
    """Every variant of the portable texts, by their lines "//! NAME: TYPES; TYPES", as plugins/common/kernels/plan_portable.c asks
    for it. Where sweeps are smaller, an eighth."""
    found = []
    for path in sorted(glob.glob(os.path.join(KERNELS, "*.cl"))):
        text = os.path.basename(path)[:-3]
        with open(path) as f:
            lines = re.findall(r"^//! (\w+):([^;\n]*);?(.*)$", f.read(), re.MULTILINE)
        for kernel, first, second in lines if text != "portable" else []:
            for types in itertools.product(*(x.split() for x in (first, second) if x)):
                words = "".join(f" -DT{k}={t}" + (f" -DT{k}_REAL" if "f" in t else "") for k, t in enumerate(types))
                found.append((text, f"-DIDX=int -DV0=1 -DK_{kernel}{words}", ""))
    assert len(found) > 300
    return found if sizes.SCALE >= 1 else found[::8]


MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
SHARED = set(MACRO.findall(read("prelude.cl") + read("params.h")))


class Program:
    def __init__(self, text, options, tail):
        self.text, self.options, self.tail = text, options, tail
        words = [o[2:].split("=", 1) for o in options.split()]
        self.names = [w[0] for w in words]
        self.lines = "".join(f"#define {w[0]} {w[1] if len(w) > 1 else 1}\n" for w in words)
        scalars = os.path.join(os.environ["HEDDLE_BUILD"], "scalars.cl")  # made of operators/
        self.code = (read(scalars) if text == "elementwise" else "") + read(text + ".cl") + tail

    def __str__(self):
        return f"{self.text}.cl with {self.options}" + (" and a tail" if self.tail else "")

    def alone(self):
        """As plugins/common/gpu/compile.c writes it."""
        return self.lines + read("prelude.cl") + read("params.h") + self.code

    def part(self, number):
        """Among others."""
        macros = self.names + [m for m in MACRO.findall(self.code) if m not in SHARED]
        return (f"{self.lines}namespace part{number} {{\n{self.code}\n}}\n" +
                "".join(f"#undef {name}\n" for name in dict.fromkeys(macros)))


def together(programs):
    if len(programs) == 1:
        return programs[0].alone()
    return (read("prelude.cl") + "#undef KERNEL\n#define KERNEL __global__\n" + read("params.h") +
            "".join(p.part(i) for i, p in enumerate(programs)))


@pytest.fixture(scope="module")
def programs():
    """All programs, and those that stand for the others, with long indices: of each portable text one, of others one a kernel."""
    found, kernels = {words: Program(*words) for words in OTHERS + variants()}, set()
    with tempfile.TemporaryDirectory(prefix="heddle-kernels-") as folder:
        child("write", HEDDLE_PLANNED=folder)
        for path in sorted(glob.glob(os.path.join(folder, "*.txt"))):
            with open(path) as f:
                text, options, kernel, tail = f.read().split("\n", 3)
            found[text, options, tail] = Program(text, options, tail)
            kernels.add(kernel)
    assert len(found) > 150
    assert {"contract", "direct", "thin", "softmax_group", "reduce_item", "average_pool", "walk",
            "fused"} <= kernels
    texts = {os.path.basename(p)[:-3] for p in glob.glob(os.path.join(KERNELS, "*.cl"))} - INCLUDED
    assert {p.text for p in found.values()} == texts
    firsts = {}
    for p in found.values():
        kernel = "" if "#include" in open(os.path.join(KERNELS, p.text + ".cl")).read() else p.names[0]
        firsts.setdefault((p.text, kernel, bool(p.tail)), p)
    longs = [Program(p.text, p.options.replace("IDX=int", "IDX=long"), p.tail) for p in firsts.values()]
    return list(found.values()), longs


def sources(programs, arch, archs):
    """Lists of programs to be compiled for arch: a share of all, and those that stand for the others alone; of these a share
    too where sweeps are smaller, and half of all where they are smaller than half."""
    every, longs = programs
    batches = [every[i:i + BATCH] for i in range(0, len(every), BATCH)]
    alone = longs if sizes.SCALE >= 1 else longs[archs.index(arch)::len(archs)]
    made = batches[archs.index(arch)::len(archs)] + [[p] for p in alone]
    return made if sizes.SCALE >= 0.5 else made[::2]


# ---------------------------------------------------------------- compiling

class Compiler:
    """NVRTC's calls, which hiprtc has under other names."""

    def __init__(self, library, prefix, arch, code_size):
        self.library, self.prefix, self.arch, self.code_size = library, prefix, arch, code_size

    def call(self, name, *args):
        return getattr(self.library, self.prefix + name)(*args)

    def build(self, text):
        """Nothing, or what the compiler says. Also where no code came of it."""
        program = ctypes.c_void_p()
        assert self.call("CreateProgram", ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
        try:
            words = (ctypes.c_char_p * 1)(f"--gpu-architecture={self.arch}".encode())
            failed = self.call("CompileProgram", program, 1, words)
            size = ctypes.c_size_t()
            self.call("GetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value + 1)
            self.call("GetProgramLog", program, log)
            if failed:
                return log.value.decode(errors="replace") or f"status {failed}"
            assert self.call(self.code_size, program, ctypes.byref(size)) == 0
            return log.value.decode(errors="replace").strip() if size.value > 0 else "no code"
        finally:
            self.call("DestroyProgram", ctypes.byref(program))


def open_library(names):
    for name in names:
        try:
            library = ctypes.CDLL(name)
            for builtins in glob.glob(os.path.join(os.path.dirname(name) or "/nowhere", "libnvrtc-builtins.so.*")):
                ctypes.CDLL(builtins)  # NVRTC opens them by their name alone
            return library
        except OSError:
            continue
    return None


def compile_all(prefix, arch, code_size, path, *names):
    """Prints what a compiler says about each source of a file, by its number."""
    library = open_library(names)
    if library is None or not hasattr(library, prefix + "CompileProgram"):
        leave(f"{prefix} is not installed")
    compiler = Compiler(library, prefix, arch, code_size)
    with open(path) as f:
        texts = json.load(f)
    print(json.dumps([compiler.build(text) for text in texts]))


def compiled(lists, *words):
    """What a compiler says about lists of programs."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump([together(p) for p in lists], f)
        f.flush()
        return json.loads(child("compile", *words[:3], f.name, *words[3:]))


def check(programs, arch, archs, prefix, code_size, *names):
    lists = sources(programs, arch, archs)
    said = compiled(lists, prefix, arch, code_size, *names)
    wrong = [p for log, group in zip(said, lists) if log for p in group]
    if not wrong:
        return
    alone = compiled([[p] for p in wrong], prefix, arch, code_size, *names)
    named = "".join(f"{p}:\n{log[:2000]}\n" for p, log in zip(wrong, alone) if log)
    pytest.fail(named or f"only together: {[log[:2000] for log in said if log]}")


CUDA = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]
HIP = ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100"]


@functools.lru_cache(maxsize=None)
def knows(prefix, arch, *names):
    """Whether the compiler that is installed makes code for arch at all; that of an older ROCm aborts at newer ones."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(["extern \"C\" __global__ void nothing() {}"], f)
        f.flush()
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "compile", prefix, arch, "GetCodeSize", f.name, *names],
                              capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": HERE + os.pathsep + os.path.dirname(HERE)})
    return done.returncode == SKIPPED or (done.returncode == 0 and json.loads(done.stdout) == [""])


@pytest.mark.parametrize("arch", CUDA)
def test_cuda(programs, arch):
    """NVRTC of the toolkit, or of the Python package nvidia-cuda-nvrtc."""
    wheels = glob.glob(os.path.join(sys.prefix, "lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    check(programs, arch, CUDA, "nvrtc", "GetCUBINSize", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", *wheels)


HIPRTC = ("libhiprtc.so", "libhiprtc.so.6", "libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5")


@pytest.mark.parametrize("arch", HIP)
def test_hip(programs, arch):
    known = [a for a in HIP if a in ("gfx906", "gfx90a", "gfx1030") or knows("hiprtc", a, *HIPRTC)]
    if arch not in known:
        pytest.skip(f"the hiprtc that is installed does not know {arch}")
    check(programs, arch, known, "hiprtc", "GetCodeSize", *HIPRTC)


@pytest.mark.parametrize("standard", ["CL1.2", "CL3.0"])
def test_opencl(programs, standard):
    """By clang's front end for both languages, with double precision as the only thing that a driver need not have. A 40th of
    the programs; with HEDDLE_KERNELS=all, which scripts/soak sets, all."""
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    share = 1 if os.environ.get("HEDDLE_KERNELS") == "all" else 40
    every = [p for p in programs[0] + programs[1] if p.text not in {text for text, *_ in OTHERS}][standard == "CL3.0"::share]
    has = "-all,+cl_khr_fp64" + (",+__opencl_c_fp64,+__opencl_c_int64" if standard == "CL3.0" else "")
    command = ["clang", "-x", "cl", f"-cl-std={standard}", "-target", "spir64-unknown-unknown", "-fsyntax-only", "-Xclang",
               "-finclude-default-header", "-Xclang", "-fdeclare-opencl-builtins", "-Xclang", f"-cl-ext={has}", "-Wall",
               "-Wno-unused-function", "-Werror", "-"]
    done = [(p, subprocess.run(command, input=p.alone(), capture_output=True, text=True, check=False)) for p in every]
    wrong = [f"{p}: {d.stderr[:1500]}" for p, d in done if d.returncode != 0 or d.stderr.strip()]
    assert not wrong, "\n".join(wrong[:5]) + f"\n{len(wrong)} of {len(every)}"


if __name__ == "__main__":
    {"write": write, "compile": compile_all}[sys.argv[1]](*sys.argv[2:])
