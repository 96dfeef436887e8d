"""What is wrong with libraries, blobs inside of them, parameters and kernels is reported, with file, node and
device; nothing stays behind: after each failure a good library loads and runs.
labels: ctypes
timeout: 300
"""
import ctypes
import json
import struct

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators  # noqa: E402
from test_tvm_legacy import DATA, MLP, VARIANTS  # noqa: E402
from tool_case import failing, good  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
F32 = "float32"
F = [("x", F32, (8,)), ("y", F32, (8,))]
GOOD = legacy.kernel("twice", F, "for (int i = 0; i < 8; i++) y[i] = x[i] * 2;")
X = np.arange(8, dtype=np.float32)
HUGE = struct.pack("<Q", 2**63)


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


@pytest.fixture(scope="module")
def fine(tmp_path_factory):
    return legacy.library(tmp_path_factory.mktemp("fine") / "fine.so", "v0.14", [GOOD])


def graph_of(function, *, shape=(8,), device=1, device_index=True):
    return tvm_graph({"x": (F32, shape)}, [Call(function, ["x"], [(F32, shape)], "node", device=device)], ["node"],
                     device_index=device_index)


def run(ctx, text, library, inputs, params=None, devices="cpu"):
    held = [capi.Graph(text)]
    try:
        if params is not None:
            held.append(capi.Params(params))
        held.append(capi.Model(ctx, held[0], held[1] if params is not None else None, devices=devices, library=library))
        held.append(capi.Executor(held[-1]))
        for name, value in inputs.items():
            held[-1].set_input(name, value)
        held[-1].run()
        return held[-1].outputs()
    finally:
        for p in reversed(held):
            p.close()


def still_works(ctx, fine):
    library = capi.Library(ctx, fine)
    np.testing.assert_array_equal(run(ctx, graph_of("twice"), library, {"x": X})[0], X * 2)
    library.close()


def refused(ctx, fine, words, call):
    with pytest.raises(capi.HeddleError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), caught.value
    still_works(ctx, fine)


# ---- blobs

def code(fmt="cl", kernels=b"", text=b""):
    return legacy.string("opencl") + legacy.string(fmt) + kernels + legacy.string(text)


def hostile():
    """Bytes of what stands in a library's blob, each with the words that must be in the error."""
    lib, u64, string = legacy.LIB, legacy.u64, legacy.string
    record = legacy.array(np.ones((2, 3), np.float32))

    def flat(*records):
        return legacy.blob(records)

    yield "kind 2^63", flat(HUGE + b"opencl"), "kind of a module"
    yield "format 2^63", flat(string("opencl") + HUGE), "format"
    yield "kernels 2^63", flat(string("opencl") + string("cl") + HUGE), "kernel"
    yield "arguments 2^63", flat(string("opencl") + string("cl") + u64(1) + string("k") + string("") + HUGE), "byte"
    yield "tags 2^63", flat(string("opencl") + string("cl") + u64(1) + string("k") + string("") + u64(0) + HUGE), "byte"
    yield "tag 2^63", flat(string("opencl") + string("cl") + u64(1) + string("k") + string("") + u64(0) + u64(1) +
                           HUGE), "byte"
    yield "code 2^63", flat(string("opencl") + string("cl") + u64(0) + HUGE), "code"
    yield "shaders 2^63", flat(string("vulkan") + string("v") + u64(0) + HUGE), "shaders"
    yield "shader 2^63", flat(string("vulkan") + string("v") + u64(0) + u64(1) + string("k") + bytes(4) +
                              HUGE), "shader"
    yield "graph 2^63", flat(string("GraphExecutorFactory") + HUGE + b"{}"), "graph"
    yield "tensors 2^63", flat(string("GraphExecutorFactory") + string("{}") + HUGE), "tensors"
    yield "names 2^63", flat(string("GraphExecutorFactory") + string("{}") + u64(0) + HUGE), "names"
    yield "name of none", flat(string("GraphExecutorFactory") + string("{}") + u64(1) + u64(0) + record +
                               string("default")), "as many names"
    yield "tensor's end", flat(string("GraphExecutorFactory") + string("{}") + u64(1) + legacy.strings(["p"]) +
                               record[:-8]), "byte"
    yield "tensor's magic", flat(string("GraphExecutorFactory") + string("{}") + u64(1) + legacy.strings(["p"]) +
                                 b"\0" * 8 + record[8:] + string("default")), "byte"
    yield "tensor's rank", flat(string("GraphExecutorFactory") + string("{}") + u64(1) + legacy.strings(["p"]) +
                                record[:24] + struct.pack("<i", 2**31 - 1) + record[28:] + string("default")), "byte"
    yield "tree's rows", flat(lib, string("_import_tree") + HUGE), "byte"
    yield "tree's children", flat(lib, string("_import_tree") + u64(2) + u64(0) + u64(1) + HUGE), "byte"
    yield "row's bounds", legacy.blob([lib, code(kernels=u64(0)), string("_import_tree") + u64(3) + u64(0) + HUGE +
                                       u64(1) + u64(1) + u64(1)]), "row"
    yield "two trees", legacy.blob([lib, *[string("_import_tree") + u64(2) + u64(0) + u64(0) + u64(0)] * 2]), "tree"
    yield "long circle", legacy.blob([lib, *[code(kernels=u64(0))] * 3], [[1], [2], [3], [1]]), "circle"
    yield "unknown", legacy.blob([lib, string("relax.Executable") + string("x")], [[1], []]), "relax.Executable"
    yield "fewer", u64(3 * 8 + len(lib)) + u64(2) + lib + u64(0) * 2, "kind"


@pytest.mark.parametrize("data,words", [h[1:] for h in hostile()], ids=[h[0] for h in hostile()])
def test_hostile_blobs(ctx, fine, tmp_path, data, words):
    path = legacy.library(tmp_path / "bad.so", "v0.14", [GOOD], data=data)
    for _ in range(2):
        refused(ctx, fine, ["bad.so", words], lambda: capi.Library(ctx, path))


def test_names_that_a_terminal_would_obey(ctx, fine, tmp_path):
    data = legacy.blob([legacy.LIB, legacy.string("red \x1b[31m\x07kind")], [[1], []])
    path = legacy.library(tmp_path / "bad.so", "v0.14", [GOOD], data=data)
    refused(ctx, fine, ["red ?[31m?kind"], lambda: capi.Library(ctx, path))


@pytest.mark.parametrize("change,words", [
    (lambda g, p: ("{", p), ["bad.so"]),
    (lambda g, p: (g.replace("twice", "thrice"), p), ["'thrice'", "twice", "node"]),
    (lambda g, p: (g, {"x": np.zeros(7, np.float32)}), ["'x'", "[7]", "[8]"]),
    (lambda g, p: (g, {"x": np.zeros(8, np.int32)}), ["'x'", "int32", "float32"])],
    ids=["graph", "function", "shape", "dtype"])
def test_models_inside_that_disagree(ctx, fine, tmp_path, change, words):
    text, params = change(graph_of("twice"), {})
    data = legacy.blob([legacy.factory(text, params), legacy.LIB], [[1], []])
    path = legacy.library(tmp_path / "bad.so", "v0.14", [GOOD], data=data)


    def whole():
        model = capi.Model.load(ctx, path, devices="cpu")
        try:
            executor = capi.Executor(model)
            try:
                executor.set_input("x", X)
                executor.run()
            finally:
                executor.close()
        finally:
            model.close()
    refused(ctx, fine, words, whole)


def test_kernels_that_their_source_has_not(ctx, fine, tmp_path):
    """Of v0.4's source, which names no kernel in comments, the device's compiler reports it, and a wrong name there."""
    pocl.need()
    half = legacy.launcher("there", F, [("there_kernel", ["x", "y"], [2, 4])])
    args = "__global const float *x, __global float *y"
    listed = {"there_kernel": ([operators.HANDLE] * 2, operators.TAGS)}
    for era, text in (("v0.4", f"__kernel void other({args}) {{}}\n"),
                      ("v0.14", f"// Function: there_kernel\n__kernel void other({args}) {{}}\n")):
        module = legacy.device_module("opencl", "cl", listed, text)
        library = capi.Library(ctx, legacy.library(tmp_path / f"{era}.so", era, [half],
                                                   data=operators.blob(era, [module])))
        refused(ctx, fine, ["node 'node' on opencl:0", "there_kernel"], lambda: run(
            ctx, graph_of("there", device=4), library, {"x": X}, devices="cpu,opencl:0"))
        library.close()
    swapped = "".join(f"// Function: {n}\n__kernel void {n}({args}) {{}}\n" for n in ("there_kernel", "more_kernel"))
    path = legacy.library(tmp_path / "more.so", "v0.14", [half], data=operators.blob(
        "v0.14", [legacy.device_module("opencl", "cl", listed, swapped)]))
    refused(ctx, fine, ["more.so", "kernel"], lambda: capi.Library(ctx, path))


# ---- libraries

def test_libraries_of_others(ctx, fine, tmp_path):
    """A library that TVM has not made has no such function, and no model; one of a version to come has none either."""
    for name, source in {"plain.so": "double cosine(double x) { return x; }", "empty.so": "",
                         "later.so": "int __tvm_ffi9_twice(void *a, void *b, int n, void *r) { return 0; }"}.items():
        path = legacy.library(tmp_path / name, "v0.14", [], more=source)
        library = capi.Library(ctx, path)
        refused(ctx, fine, [name, "'twice'", "node"], lambda: run(ctx, graph_of("twice"), library, {"x": X}))
        refused(ctx, fine, [name, "'twice'"], lambda: library.call("twice"))
        library.close()
        refused(ctx, fine, [name, "no model"], lambda: capi.Model.load(ctx, path, devices="cpu"))
        assert said(path) == "packed"
    assert "no model" in failing(1, "run", tmp_path / "plain.so", "--device", "cpu")


def said(path):
    return json.loads(good("info", path, "--json"))["library"]["abi"]


def test_libraries_with_nothing_of_tvm(ctx, fine, tmp_path):
    """Its functions may be kernels all the same (C source without checks): heddle info reports that, and so does
    the error about a missing function. Of a graph without functions TVM's own library is such a one."""
    other = legacy.compile_c(tmp_path / "other.so", "double cosine(double x) { return x; }", ["-shared"])
    library = capi.Library(ctx, other)
    refused(ctx, fine, ["other.so", "'twice'", "cosine", "nothing in it says that TVM compiled it"],
            lambda: run(ctx, graph_of("twice"), library, {"x": X}))
    library.close()
    assert said(other) == "unknown"
    assert "nothing in it says that TVM compiled it" in good("info", other)
    kernel = legacy.compile_c(tmp_path / "kernel.so", """typedef struct { float *data; } tensor;
int twice(tensor **args, int *codes, int n) {
  for (int i = 0; i < 8; i++) args[1]->data[i] = args[0]->data[i] * 2;
  return 0;
}""", ["-shared"])
    library = capi.Library(ctx, kernel)
    np.testing.assert_array_equal(run(ctx, graph_of("twice"), library, {"x": X})[0], X * 2)
    library.close()
    plain = legacy.compile_c(tmp_path / "plain.so", "int TVMBackendGetFuncFromEnv(void *, const char *, void **);\n"
                             "int f(void) { void *p; return TVMBackendGetFuncFromEnv(0, \"\", &p); }", ["-shared"])
    assert said(plain) == "packed"
    empty, x = legacy.compile_c(tmp_path / "empty.so", "", ["-shared"]), np.load(DATA / "identity" / "input_x.npy")
    library = capi.Library(ctx, empty)
    np.testing.assert_array_equal(run(ctx, (DATA / "identity" / "graph.json").read_text(), library, {"x": x})[0], x)
    library.close()
    assert said(empty) == "unknown" and "are called" not in good("info", empty)


def test_a_library_that_needs_tvms_compiler(ctx, fine, tmp_path):
    """A system library that was linked to it, say: by name, with what to do."""
    there = legacy.compile_c(tmp_path / "libtvm.so", "", ["-shared", "-Wl,-soname,libtvm.so"])
    path = legacy.library(tmp_path / "linked.so", "v0.14", [GOOD],
                          link=["-Wl,--no-as-needed", f"-L{tmp_path}", "-ltvm"])
    there.unlink()
    refused(ctx, fine, ["linked.so", "libtvm.so", "link it again"], lambda: capi.Library(ctx, path))


def test_a_blob_of_another_generation(ctx, fine, tmp_path):
    """What is behind the symbol of v0.22 and later has the tree first."""
    old = legacy.blob([legacy.LIB, code(kernels=legacy.u64(0))], [[1], []])
    path = legacy.library(tmp_path / "odd.so", "v0.14", [], more='__asm__(".globl __tvm_ffi__library_bin\\n.type '
                          '__tvm_ffi__library_bin, @object\\n__tvm_ffi__library_bin:\\n.byte ' +
                          ",".join(map(str, old)) + f'\\n.size __tvm_ffi__library_bin, {len(old)}");')
    refused(ctx, fine, ["odd.so", "byte"], lambda: capi.Library(ctx, path))


def test_functions_that_fail(ctx, fine, tmp_path):
    """With words of their own, with none, and long ones."""
    functions = [legacy.kernel("says", F, 'TVMAPISetLastError("the third wheel is flat"); return -1;'),
                 legacy.kernel("silent", F, "return -1;"),
                 legacy.kernel("lengthy", F, "static char text[5000]; memset(text, 'w', 4999); TVMAPISetLastError(text); "
                               "return -1;"),
                 legacy.kernel("null", F, "TVMAPISetLastError(NULL); return -1;")]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", functions))
    for name, words in (("says", "the third wheel is flat"), ("silent", "no words"), ("lengthy", "wwww"), ("null", "")):
        refused(ctx, fine, ["node 'node' on cpu:0", name, "lib.so", words],
                lambda: run(ctx, graph_of(name), library, {"x": X}))
    library.close()


class ModuleInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("abi", ctypes.c_char_p),
                ("n_functions", ctypes.c_uint32), ("n_imports", ctypes.c_uint32), ("scratch_bytes", ctypes.c_uint64)]


LEAVES = """static int leaves(int task, Group *group, void *data) {
  void *mine = TVMBackendAllocWorkspace(1, 0, 300000, 2, 32);
  TVMAPISetLastError("the loop gives up");
  return mine != NULL ? -1 : 0;
}"""


def test_functions_that_fail_and_keep_scratch_memory(ctx, fine, tmp_path):
    """Compiled code returns at once when something in it fails. Its scratch memory is free for the next run, of a node and
    of a call, whatever thread it was on."""
    hold = "void *p = TVMBackendAllocWorkspace(1, 0, 1000000, 2, 32); if (p == NULL) return -1;"
    functions = [legacy.kernel("loop", F, hold + "return TVMBackendParallelLaunch(leaves, y, 0);", static=LEAVES),
                 legacy.kernel("alone", F, hold + "void *q = TVMBackendAllocWorkspace(1, 0, 50, 2, 32); "
                               "TVMBackendFreeWorkspace(1, 0, p); return q != NULL ? -1 : 0;"),
                 legacy.kernel("null", F, "int code; TVMValue r; return TVMFuncCall(NULL, NULL, NULL, 0, &r, &code);")]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", functions))

    def most():
        info = ModuleInfo(ctypes.sizeof(ModuleInfo))
        capi.call("heddle_module_get_info", library.p, ctypes.byref(info))
        return info.scratch_bytes

    def fail(name, times):
        x, y = capi.aligned(X), capi.aligned(np.zeros(8, np.float32))
        for _ in range(times):
            with pytest.raises(capi.HeddleError):
                library.call(name, x, y)
            with pytest.raises(capi.HeddleError):
                run(ctx, graph_of(name), library, {"x": X})

    for name in ("loop", "alone"):
        fail(name, 2)
        before = most()
        fail(name, 30)
        assert most() == before > 0
    refused(ctx, fine, ["null", "no function"], lambda: run(ctx, graph_of("null"), library, {"x": X}))
    library.close()


def test_what_the_graph_says_and_the_function_does_not(ctx, fine):
    """Another shape, another number of arguments, another dtype: in the function's own words, with the node."""
    library = capi.Library(ctx, fine)
    few = tvm_graph({"x": (F32, [8])}, [Call("twice", ["x", "x"], [(F32, [8])], "node")], ["node"])
    for text, value, word in ((graph_of("twice", shape=(9,)), np.zeros(9, np.float32), "shape[0]"),
                              (few, X, "num_args"), (graph_of("twice", shape=(2, 4)), X.reshape(2, 4), "ndim"),
                              (graph_of("twice").replace(F32, "int32"), X.astype(np.int32), "dtype")):
        refused(ctx, fine, ["node 'node' on cpu:0", word], lambda: run(ctx, text, library, {"x": value}))
    library.close()


@pytest.mark.parametrize("era", ["v0.8", "v0.14"])
def test_memory_that_is_less_aligned(ctx, fine, tmp_path, era):
    """Generated code does not look, and would die: a call refuses, a graph copies."""
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", era, [GOOD]))
    for offset in (4, 16, 32, 64):
        x, y = (capi.aligned(np.zeros(128, np.uint8))[offset:offset + 32].view(np.float32) for _ in range(2))
        x[:] = X
        if offset < 64:
            refused(ctx, fine, ["aligned to 64 bytes"], lambda: library.call("twice", x, y, align=False))
        graph = capi.Graph(graph_of("twice"))
        model = capi.Model(ctx, graph, devices="cpu", library=library)
        executor = capi.Executor(model)
        tensors = [capi.tensor(x), capi.tensor(y)]
        capi.call("heddle_executor_bind_input", executor.p, 0, tensors[0])
        capi.call("heddle_executor_bind_output", executor.p, 0, tensors[1])
        for k in (2, 3):
            executor.run()
            np.testing.assert_array_equal(y, x * 2)
            x[:] = X * k
        for t in tensors:
            capi.LIB.heddle_tensor_release(t)
        for p in (executor, model, graph):
            p.close()
    library.close()


# ---- parameters

PARAMS = DATA.parent / "params_variants"
EXPECTED = json.loads((PARAMS / "expect.json").read_text())


@pytest.fixture(scope="module")
def mlp(ctx, tmp_path_factory):
    library = capi.Library(ctx, legacy.library(tmp_path_factory.mktemp("mlp") / "lib.so", "v0.14", MLP))
    yield library
    library.close()


@pytest.mark.parametrize("late", [False, True], ids=["with the model", "loaded later"])
@pytest.mark.parametrize("name", EXPECTED)
def test_variants_of_parameters(ctx, mlp, name, late):
    """Taken with the graph that they are for, and run; or refused before a run, and the executor goes on with its
    own."""
    rng = np.random.default_rng(1)
    shapes = {"data": (1, 784), "w0": (128, 784), "b0": (128,), "w1": (64, 128), "b1": (64,), "w2": (10, 64),
              "b2": (10,)}
    values = {k: (rng.normal(size=s) / np.sqrt(s[-1])).astype(np.float32) for k, s in shapes.items()}
    blob, held = (PARAMS / f"{name}.bin").read_bytes(), [capi.Graph((VARIANTS / "base.json").read_text())]

    def expected():
        y = values["data"]
        for k in range(3):
            y = y @ values[f"w{k}"].T + values[f"b{k}"]
            y = np.maximum(y, 0) if k < 2 else np.exp(y) / np.exp(y).sum()
        return y

    def session(params):
        held.append(capi.Model(ctx, held[0], params, devices="cpu", library=mlp))
        held.append(capi.Executor(held[-1]))
        for key, value in values.items():
            held[-1].set_input(key, value)
        return held[-1]

    def take():
        params = capi.Params(blob)
        held.append(params)
        if not late:
            session(params)
        else:
            capi.call("heddle_executor_load_params", executor.p, params.p)

    executor = session(None) if late else None
    if EXPECTED[name] == "read":
        take()
        records = {k: np.frombuffer(v[-values[k].nbytes:], np.float32).reshape(values[k].shape)
                   for k, v in legacy.params_records(blob).items() if k in values} if late else {}
        values.update(records)
    else:
        with pytest.raises(capi.HeddleError) as caught:
            take()
        assert "params" in str(caught.value) or "'b0'" in str(caught.value)
        executor = executor or session(None)
    executor = executor or next(p for p in reversed(held) if isinstance(p, capi.Executor))
    executor.run()
    np.testing.assert_allclose(executor.output(0), expected(), rtol=1e-4, atol=1e-6)
    for p in reversed(held):
        p.close()


def test_a_kernel_that_calls_nothing(tmp_path):
    """A handle that is NULL, or none of a function."""
    lib = legacy.library(tmp_path / "lib.so", "v0.14", [
        f"FUNCTION({name}) {{ static long odd[8]; return TVMFuncCall({handle}, args_, codes, 0, out_ret, out_code); }}"
        for name, handle in (("nothing", "0"), ("odd", "odd"))])
    for name in ("nothing", "odd"):
        words = failing(1, "bench", lib, "--func", name)
        assert f"'{name}'" in words and "it calls what is no function" in words
