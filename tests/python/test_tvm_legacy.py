"""Libraries as TVM v0.3 to v0.20 compiled them, written here as C: the graphs, parameters and results are what a real
TVM v0.14 wrote (tests/data/tvm_v0_14). Blobs flat and with a tree, models inside of libraries, parallel loops with
barriers, scratch memory, sorting by name; and what is refused.
labels: ctypes
timeout: 300
"""
import json
import os
import pathlib

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from tool_case import failing, good
from tvm_graph import Call, tvm_graph

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "tvm_v0_14"
F32 = "float32"
HAS_CXX = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle_tvm_cxx.so.0"))

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module", params=[1, 3], ids=["1 thread", "3 threads"])
def ctx(request):
    context = capi.Context(config="off", threads=request.param)
    yield context
    context.close()


def binary(name, dtype, shape, expression, out=None):
    n = int(np.prod(shape))
    return legacy.kernel(name, [("a", dtype, shape), ("b", dtype, shape), ("c", out or dtype, shape)],
                         f"for (int i = 0; i < {n}; i++) c[i] = {expression};")


def elementwise(dtype):
    return [binary("tvmgen_default_fused_add", dtype, (3, 5), "a[i] + b[i]"),
            binary("tvmgen_default_fused_multiply", dtype, (3, 5), "a[i] * b[i]"),
            binary("tvmgen_default_fused_maximum", dtype, (3, 5), "a[i] > b[i] ? a[i] : b[i]")]


def dense(name, rows, inner, outer, unroll):
    """Weights lie in blocks of so many columns, as TVM packs them."""
    body = f"""for (int i = 0; i < {rows}; i++) for (int o = 0; o < {outer}; o++) for (int u = 0; u < {unroll}; u++) {{
  float sum = 0;
  for (int k = 0; k < {inner}; k++) sum += x[i * {inner} + k] * w[(o * {inner} + k) * {unroll} + u];
  y[i * {outer * unroll} + o * {unroll} + u] = sum; }}"""
    return legacy.kernel(name, [("x", F32, (rows, inner)), ("w", F32, (outer, inner, unroll)),
                                ("y", F32, (rows, outer * unroll))], body)


TOPK = """void *f; TVMValue v[8]; int c[8];
if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "tvm.contrib.sort.topk", &f) != 0) return -1;
for (int i = 0; i < 3; i++) { v[i] = args[i]; c[i] = 7; }
v[3].v_int64 = 3; v[4].v_int64 = -1; v[5].v_str = "both"; v[6].v_int64 = 0;
c[3] = c[4] = c[6] = 0; c[5] = 11;
if (TVMFuncCall(f, v, c, 7, &v[7], &c[7]) != 0) return -1;
if (c[7] != 4) return -1;"""

MODELS = {
    "dtype_float32": elementwise(F32),
    "dtype_int8": elementwise("int8"),
    "dtype_bool": [binary("tvmgen_default_fused_logical_and", "uint1", (3, 5), "a[i] && b[i]"),
                   legacy.kernel("tvmgen_default_fused_logical_not", [("a", "uint1", (3, 5)), ("c", "uint1", (3, 5))],
                                 "for (int i = 0; i < 15; i++) c[i] = !a[i];"),
                   binary("tvmgen_default_fused_logical_or_cast", "uint1", (3, 5), "a[i] || b[i]", "int32")],
    "reshape_nop": [dense("tvmgen_default_fused_nn_contrib_dense_pack", 1, 16, 1, 4),
                    dense("tvmgen_default_fused_nn_contrib_dense_pack_1", 2, 2, 1, 2)],
    "multi_output": [
        legacy.kernel("tvmgen_default_fused_nn_relu_exp", [("x", F32, (4, 8)), ("y", F32, (4, 8))],
                      "for (int i = 0; i < 32; i++) y[i] = expf(x[i] > 0 ? x[i] : 0);"),
        legacy.kernel("tvmgen_default_fused_split",
                      [("x", F32, (4, 8)), *[(f"y{k}", F32, (4, 2)) for k in range(4)]],
                      "float *y[] = {y0, y1, y2, y3};\n"
                      "for (int i = 0; i < 32; i++) y[i % 8 / 2][i / 8 * 2 + i % 2] = x[i];"),
        legacy.kernel("tvmgen_default_fused_topk", [("x", F32, (4, 8)), ("top", F32, (4, 3)), ("where", "int32", (4, 3))],
                      TOPK),
        legacy.kernel("tvmgen_default_fused_argmax", [("x", F32, (4, 8)), ("y", "int32", (4,))],
                      "for (int i = 0; i < 4; i++) { y[i] = 0; for (int k = 1; k < 8; k++) "
                      "if (x[i * 8 + k] > x[i * 8 + y[i]]) y[i] = k; }"),
        legacy.kernel("tvmgen_default_fused_sum", [("x", F32, (4, 8)), ("y", F32, ())],
                      "y[0] = 0; for (int i = 0; i < 32; i++) y[0] += x[i];")],
    "flatten_data_2d": [legacy.kernel("myadd", [("a", F32, (12,)), ("b", F32, (12,))],
                                      "for (int i = 0; i < 12; i++) b[i] = a[i] + 1;")],
    "identity": [],
    "const_zero_input_ops": [binary("tvmgen_default_fused_multiply", F32, (2, 3), "a[i] * b[i]"),
                             binary("tvmgen_default_fused_add", F32, (2, 3), "a[i] + b[i]")],
    "const_zero_input_folded": [],
}


def model_files(name):
    folder = DATA / name
    inputs = {p.stem[len("input_"):]: np.load(p) for p in folder.glob("input_*.npy")}
    outputs = [np.load(folder / f"output_{i}.npy") for i in range(len(list(folder.glob("output_*.npy"))))]
    return (folder / "graph.json").read_text(), (folder / "params.bin").read_bytes(), inputs, outputs


def run(ctx, graph, inputs, library, params=None, **options):
    g, p, m, e = capi.Graph(graph), capi.Params(params) if params else None, None, None
    try:
        m = capi.Model(ctx, g, p, devices="cpu", library=library, **options)
        e = capi.Executor(m)
        for key, value in inputs.items():
            e.set_input(key, value)
        e.run()
        first = e.outputs()
        e.run()
        for a, b in zip(first, e.outputs()):
            np.testing.assert_array_equal(a, b)
        return first
    finally:
        for x in (e, m, p, g):
            if x is not None:
                x.close()


def same(outputs, expected):
    assert len(outputs) == len(expected)
    for out, e in zip(outputs, expected):
        np.testing.assert_allclose(out, e.reshape(out.shape), rtol=1e-5, atol=1e-5)
        assert out.dtype == e.dtype


@pytest.mark.parametrize("era", legacy.ERAS)
@pytest.mark.parametrize("name", MODELS)
def test_models(ctx, tmp_path, name, era):
    graph, params, inputs, outputs = model_files(name)
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", era, MODELS[name]))
    got = run(ctx, graph, inputs, library, params)
    library.close()
    same(got, outputs)
    shapes = json.loads(graph)["attrs"]["shape"][1]
    if name == "flatten_data_2d":
        assert got[0].shape == tuple(shapes[-1]) == (3, 4)


@pytest.mark.parametrize("name", MODELS)
def test_memory_is_no_more_than_the_storage_ids(ctx, tmp_path, name):
    """What the plan needs, against the graph's own storage ids, each rounded up to 256 bytes."""
    text, blob, _, _ = model_files(name)
    attrs, sizes, ids = json.loads(text)["attrs"], {"float32": 4, "int32": 4, "int8": 1, "uint1": 1}, {}
    for shape, dtype, k in zip(*(attrs[key][1] for key in ("shape", "dltype", "storage_id")), strict=True):
        ids[k] = max(ids.get(k, 0), int(np.prod(shape)) * sizes[dtype])
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", MODELS[name]))
    held = [capi.Graph(text), capi.Params(blob) if len(blob) > 32 else None]
    held.append(capi.Model(ctx, *held, devices="cpu", library=library))
    allocations = held[2].explain_json()["allocations"]
    for p in reversed(held):
        if p is not None:
            p.close()
    library.close()
    copies = 256 if name in ("identity", "const_zero_input_folded") else 0  # the output is an input: it is copied
    assert sum(a["bytes"] for a in allocations) <= sum((n + 255) // 256 * 256 for n in ids.values()) + copies


@pytest.mark.parametrize("era", ["v0.8", "v0.14", "v0.18"])
@pytest.mark.parametrize("name", MODELS)
def test_models_inside_of_libraries(tmp_path, name, era):
    """One file is all of a model: the tool runs it, and says what is in it."""
    graph, params, inputs, outputs = model_files(name)
    kind = "GraphRuntimeFactory" if era == "v0.8" else "GraphExecutorFactory"
    values = legacy.params_records(params)
    data = legacy.blob([legacy.factory(graph, values, kind=kind), legacy.LIB], [[1], []])
    path = legacy.library(tmp_path / "deploy.so", era, MODELS[name], data=data)
    words = []
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        words += ["--input", f"{key}={tmp_path / key}.npy"]
    good("run", path, "--device", "cpu", *words, "--output-dir", tmp_path / "out")
    same([np.load(tmp_path / "out" / f"output_{i}.npy") for i in range(len(outputs))], outputs)
    said = json.loads(good("info", path, "--json"))
    assert said["library"]["abi"] == "packed" and said["library"]["imports"][0]["kind"] == kind
    assert len(said["params"]["tensors"]) == len(values)
    assert "no model 'other'" in failing(1, "run", path, "--model", "other") and "default" in failing(
        1, "info", path, "--model", "other")


def test_two_models_in_one_library(tmp_path):
    """Module 0 is the root; both share the host library, which has two parents."""
    graphs = [tvm_graph({"x": (F32, [4])}, [Call(f, ["x"], [(F32, [4])])], [f]) for f in ("twice", "thrice")]
    kernels = [legacy.kernel(f, [("x", F32, (4,)), ("y", F32, (4,))], f"for (int i = 0; i < 4; i++) y[i] = x[i] * {n};")
               for f, n in (("twice", 2), ("thrice", 3))]
    data = legacy.blob([legacy.factory(graphs[0], {}, "model_a"), legacy.factory(graphs[1], {}, "model_b"), legacy.LIB],
                       [[1, 2], [2], []])
    path = legacy.library(tmp_path / "two.so", "v0.14", kernels, data=data)
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    for words, factor in (([], 2), (["--model", "model_a"], 2), (["--model", "model_b"], 3)):
        good("run", path, *words, "--device", "cpu", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "o")
        np.testing.assert_array_equal(np.load(tmp_path / "o" / "output_0.npy"), np.arange(4) * factor)


def test_the_tool_with_a_library(tmp_path):
    """Plans name functions; bfloat16 is uint16 in .npy files, in and out; info lists parameters without an input."""
    flip = legacy.kernel("flip", [("x", "bfloat16", (4,)), ("y", "bfloat16", (4,))],
                         "for (int i = 0; i < 4; i++) y[i] = x[i] ^ 0x8000;")
    path = legacy.library(tmp_path / "lib.so", "v0.14", [flip])
    graph = tmp_path / "g.json"
    graph.write_text(tvm_graph({"x": ("bfloat16", [4])}, [Call("flip", ["x"], [("bfloat16", [4])], "node")], ["node"]))
    bits = np.array([0x3f80, 0xc000, 0, 0x4049], np.uint16)
    np.save(tmp_path / "x.npy", bits)
    words = [graph, "--lib", path, "--device", "cpu"]
    good("run", *words, "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), bits ^ 0x8000)
    assert " flip " in good("plan", *words) and "cpu:0" in good("plan", *words)
    assert json.loads(good("plan", *words, "--json"))["nodes"][0]["op"] == "flip"
    (tmp_path / "more.params").write_bytes(legacy.params_blob({"p9": np.ones(2, np.float32)}))
    said = json.loads(good("info", graph, "--lib", path, "--params", tmp_path / "more.params", "--json"))
    assert said["params"]["unused"] == ["p9"] and said["library"]["functions"] == ["flip"]
    assert "unused     p9" in good("info", graph, "--params", tmp_path / "more.params")
    assert json.loads(good("bench", *words, "--json", "--repeat", "1"))["scratch_bytes"] == 0
    assert "no_such.so" in failing(1, "run", graph, "--lib", tmp_path / "no_such.so")


# ---- what code asks of its host

PARALLEL = legacy.kernel(
    "parallel", [("x", F32, (1000,)), ("y", F32, (1000,))],
    "struct job j = {x, y, {0}};\nif (TVMBackendParallelLaunch(work, &j, 0) != 0) return -1;",
    static="""struct job { float *x, *y; float sums[256]; };
static int work(int task, Group *g, void *data) {
  struct job *j = data;
  float *scratch = TVMBackendAllocWorkspace(1, 0, 4000, 2, 32), *second = TVMBackendAllocWorkspace(1, 0, 3000000, 2, 32);
  if (scratch == NULL || second == NULL || (uintptr_t)scratch % ALIGNED != 0) return -1;
  int from = 1000 * task / g->num_task, to = 1000 * (task + 1) / g->num_task;
  second[749999] = 1;
  for (int i = from; i < to; i++) scratch[i] = j->x[i] * 2;
  j->sums[task] = 0;
  for (int i = from; i < to; i++) j->sums[task] += scratch[i];
  if (TVMBackendFreeWorkspace(1, 0, second) != 0 || TVMBackendFreeWorkspace(1, 0, scratch) != 0) return -1;
  if (TVMBackendParallelBarrier(task, g) != 0) return -1;
  float total = 0;
  for (int i = 0; i < g->num_task; i++) total += j->sums[i];
  for (int i = from; i < to; i++) j->y[i] = total;
  return 0;
}""")

BROKEN = legacy.kernel(
    "broken", [("x", F32, (4,)), ("y", F32, (4,))],
    "if (TVMBackendParallelLaunch(fails, x, 0) != 0) return -1;",
    static="""static int fails(int task, Group *g, void *data) {
  if (task == g->num_task - 1) { TVMAPISetLastError("the last task has no luck"); return -1; }
  return TVMBackendParallelBarrier(task, g);
}""")

ASKS = legacy.kernel("asks", [("x", F32, (4,)), ("y", F32, (4,))], 'void *f;\nif (TVMBackendGetFuncFromEnv('
                     '__tvm_module_ctx, "tvm.contrib.cblas.matmul", &f) != 0) return -1;')


def one_node(function, shape):
    return tvm_graph({"x": (F32, shape)}, [Call(function, ["x"], [(F32, shape)], "node")], ["node"])


@pytest.mark.parametrize("plain", [False, True], ids=["pointers", "plain names"])
def test_parallel_loops_and_scratch_memory(ctx, tmp_path, plain):
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", [PARALLEL, BROKEN, ASKS], plain=plain))
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    out, = run(ctx, one_node("parallel", [1000]), {"x": x}, library)
    np.testing.assert_allclose(out, np.full(1000, 2 * x.sum()), rtol=1e-4)
    for function, words in (("broken", "the last task has no luck"), ("asks", "tvm.contrib.cblas.matmul")):
        with pytest.raises(capi.HeddleError, match=words) as caught:
            run(ctx, one_node(function, [4]), {"x": np.zeros(4, np.float32)}, library)
        assert "node 'node' on cpu:0" in str(caught.value)
        assert function != "broken" or "task " in str(caught.value)
    library.close()


@pytest.mark.parametrize("plain", [False, True], ids=["pointers", "plain names"])
def test_values_and_the_entry(ctx, tmp_path, plain):
    answer = """FUNCTION(answer) {
  TVMValue *a = args_;
  CHECK(num_args == 2 && codes[0] == 0 && codes[1] == 2, "answer: expected (int, float)");
  out_ret->v_float64 = (double)a[0].v_int64 + a[1].v_float64;
  *out_code = 2;
  return 0;
}"""
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", [answer], main="answer", plain=plain))
    assert library.functions() == ["answer"]
    assert library.call("answer", 40, 2.5) == 42.5 == library.call("__tvm_main__", 40, 2.5)
    with pytest.raises(capi.HeddleError, match="expected .int, float."):
        library.call("answer", "40", 2.5)
    library.close()


def test_sorting_by_name(ctx, tmp_path):
    """Stable, either way, along any axis, against numpy."""
    def sorts(name, function, tensors, tail):
        fill = "".join(f"v[{i}] = args[{i}]; c[{i}] = 7;" for i in range(len(tensors)))
        for k, value in enumerate(tail, len(tensors)):
            fill += f"v[{k}].v_int64 = {value}; c[{k}] = 0;"
        n = len(tensors) + len(tail)
        return legacy.kernel(name, tensors, f'void *f; TVMValue v[9]; int c[9];\nif (TVMBackendGetFuncFromEnv('
                             f'__tvm_module_ctx, "tvm.contrib.sort.{function}", &f) != 0) return -1;\n{fill}'
                             f"return TVMFuncCall(f, v, c, {n}, &v[{n}], &c[{n}]);")
    shape = (3, 5, 2)
    kernels = [sorts("sort_up", "sort", [("x", F32, shape), ("y", F32, shape)], [1, 1]),
               sorts("argsort_down", "argsort", [("x", F32, shape), ("y", "int64", shape)], [-2, 0]),
               sorts("whole", "sort", [("x", "int64", shape), ("y", "int64", shape)], [0, 0]),
               sorts("nms", "argsort_nms", [("x", F32, (2, 6)), ("n", "int32", (2,)), ("y", "int32", (2, 6))], [1, 0])]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", kernels))
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, size=shape).astype(np.float32)  # with equal elements
    y, index = np.zeros_like(x), np.zeros(shape, np.int64)
    library.call("sort_up", x, y)
    np.testing.assert_array_equal(y, np.sort(x, axis=1))
    library.call("argsort_down", x, index)
    np.testing.assert_array_equal(index, np.argsort(-x, axis=1, kind="stable"))
    large = rng.integers(-2**62, 2**62, size=shape)  # more digits than a double has
    library.call("whole", large, index)
    np.testing.assert_array_equal(index, -np.sort(-large, axis=0))
    scores, n = rng.normal(size=(2, 6)).astype(np.float32), np.array([4, 9], np.int32)
    order = np.zeros((2, 6), np.int32)
    library.call("nms", scores, n, order)
    np.testing.assert_array_equal(order[0], [*np.argsort(-scores[0, :4], kind="stable"), 4, 5])
    np.testing.assert_array_equal(order[1], np.argsort(-scores[1], kind="stable"))
    library.close()


# ---- modules inside

OPENCL = legacy.device_module(
    "opencl", "cl", {"scale_kernel": ([(3, 64), (3, 64)], ["blockIdx.x", "threadIdx.x"]),
                     "other_kernel": ([(3, 64)], ["threadIdx.x", "threadIdx.x"])},
    "// Function: scale_kernel\n__kernel void scale_kernel() {}\n// Function: other_kernel\n__kernel void other() {}\n")
CUDA = legacy.device_module("cuda", "ptx", {"k": ([(3, 64)], ["blockIdx.x"])}, "//ptx")
ADD = binary("add", F32, (4,), "a[i] + b[i]")


@pytest.mark.parametrize("era,data", [
    ("v0.4", legacy.blob([OPENCL, CUDA])), ("v0.6", legacy.blob([CUDA, OPENCL])),
    ("v0.8", legacy.blob([legacy.LIB, OPENCL, CUDA], [[1, 2], [], []])),
    ("v0.18", legacy.blob([legacy.LIB, CUDA, OPENCL], [[1], [2], []]))], ids=["v0.4", "v0.6", "v0.8", "v0.18"])
def test_modules_are_listed(tmp_path, era, data):
    path = legacy.library(tmp_path / "lib.so", era, [ADD], data=data)
    graph = tmp_path / "g.json"
    graph.write_text(tvm_graph({"a": (F32, [4])}, [Call("add", ["a", "a"], [(F32, [4])])], ["add"]))
    imports = json.loads(good("info", graph, "--lib", path, "--json"))["library"]["imports"]
    assert {m["kind"]: (m["format"], m["kernels"]) for m in imports} == {
        "opencl": ("cl", ["scale_kernel", "other_kernel"]), "cuda": ("ptx", ["k"])}
    assert "scale_kernel, other_kernel" in good("info", graph, "--lib", path)


def test_constants_of_external_code(ctx, tmp_path):
    """Without its function they are passed over; with it, they are given as objects of TVM's C++ runtime."""
    loader = legacy.const_loader({"c0": np.ones(3, np.float32)}, {"ext_0": ["c0"]})
    data = legacy.blob([loader, legacy.LIB], [[1], []])
    capi.Library(ctx, legacy.library(tmp_path / "a.so", "v0.14", [ADD], data=data)).close()
    path = legacy.library(tmp_path / "b.so", "v0.14", [ADD], data=data, more="int __init_ext_0(void) { return 0; }")
    if HAS_CXX:
        capi.Library(ctx, path).close()
        return
    with pytest.raises(capi.HeddleError, match="__init_ext_0.*C\\+\\+"):
        capi.Library(ctx, path)


def test_names_that_are_missing(ctx, tmp_path):
    """Said when the library is opened, not when the function is called."""
    for name, words in (("no_such_name", "undefined symbol: no_such_name"),
                        ("_ZN3tvm7runtime10DeviceAPI3GetE8DLDeviceb", "TVM's own C.. headers")):
        path = legacy.library(tmp_path / "lib.so", "v0.14", [ADD], more=f"void {name}(void); "
                              f"FUNCTION(other) {{ {name}(); return 0; }}")
        with pytest.raises(capi.HeddleError, match=words):
            capi.Library(ctx, path)


def test_half_precision_in_software(ctx, tmp_path):
    """Code for processors without it imports two conversions; every half, and floats between them, against numpy."""
    body = """float *y = args[1].v_handle ? ((DLTensor *)args[1].v_handle)->data : 0;
const uint16_t *x = ((DLTensor *)args[0].v_handle)->data;
uint16_t *z = ((DLTensor *)args[3].v_handle)->data;
const float *w = ((DLTensor *)args[2].v_handle)->data;
for (int i = 0; i < 65536; i++) { y[i] = __gnu_h2f_ieee(x[i]); z[i] = __gnu_f2h_ieee(w[i]); }
return 0;"""
    library = capi.Library(ctx, legacy.library(
        tmp_path / "lib.so", "v0.14", ["float __gnu_h2f_ieee(uint16_t); uint16_t __gnu_f2h_ieee(float);\n"
                                       "FUNCTION(both) { TVMValue *args = args_;\n" + body + "}"]))
    halves = np.arange(65536, dtype=np.uint16)
    rng = np.random.default_rng(5)
    floats = np.concatenate([rng.normal(size=30000) * 10.0 ** rng.integers(-9, 6, 30000), [np.inf, -np.inf, 0.0, -0.0]])
    halfway = halves.view(np.float16).astype(np.float64)[:31744]
    floats = np.concatenate([floats, (halfway[:-1] + halfway[1:]) / 2])[:65536].astype(np.float32)
    floats = np.concatenate([floats, np.zeros(65536 - len(floats), np.float32)])
    wide, narrow = np.zeros(65536, np.float32), np.zeros(65536, np.uint16)
    library.call("both", halves, wide, floats, narrow)
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16)
    np.testing.assert_array_equal(wide, halves.view(np.float16).astype(np.float32))
    np.testing.assert_array_equal(narrow, expected.view(np.uint16))
    library.close()


def damaged():
    good_tree = legacy.blob([legacy.LIB, OPENCL], [[1], []])
    yield "length", legacy.u64(2**63) + good_tree[8:], "byte 0"
    yield "short", good_tree[:-40], "byte 0"
    yield "count", good_tree[:8] + legacy.u64(2**62) + good_tree[16:], "count of modules"
    yield "circle", legacy.blob([legacy.LIB, OPENCL], [[1], [0]]), "circle"
    yield "self", legacy.blob([legacy.LIB, OPENCL], [[1], [1]]), "circle"
    yield "child", legacy.blob([legacy.LIB, OPENCL], [[7], []]), "children"
    yield "rows", legacy.blob([legacy.LIB, OPENCL], [[1]]), "row"
    yield "kind", legacy.blob([legacy.LIB, legacy.string("vta") + legacy.string("x")], [[1], []]), "kind 'vta'"
    yield "hosts", legacy.blob([legacy.LIB, legacy.LIB], [[1], []]), "two host libraries"
    yield "source", legacy.blob([legacy.LIB, legacy.device_module("opencl", "cl", {"k": ([], [])}, "// Function: j\n")],
                                [[1], []]), "kernel that its list has not"
    yield "kernels", legacy.blob([legacy.device_module("opencl", "cl", {"k": ([], []), "j": ([], [])},
                                                       "// Function: j\n")]), "lists 2 kernels"
    yield "name", legacy.blob([legacy.string("op\0encl") + OPENCL[14:]]), "kind of a module"


@pytest.mark.parametrize("name,data,words", list(damaged()), ids=[d[0] for d in damaged()])
def test_damaged_blobs(ctx, tmp_path, name, data, words):
    path = legacy.library(tmp_path / f"{name}.so", "v0.14", [ADD], data=data)
    with pytest.raises(capi.HeddleError, match=words) as caught:
        capi.Library(ctx, path)
    assert f"{name}.so" in str(caught.value)


def test_params_that_do_not_fit_the_function(ctx, tmp_path):
    """The graph says what the function does not expect: the function's own words, with the node."""
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.8", [ADD]))
    text = tvm_graph({"a": (F32, [5])}, [Call("add", ["a", "a"], [(F32, [4])])], ["add"])
    with pytest.raises(capi.HeddleError, match="node 'add' on cpu:0.*a.shape\\[0\\]"):
        run(ctx, text, {"a": np.zeros(5, np.float32)}, library)
    library.close()


# ---- every variant of a graph, run

def packing(name, rows, columns, width):
    return legacy.kernel(name, [("x", F32, (rows, columns)), ("y", F32, (rows // width, columns, width))],
                         f"for (int r = 0; r < {rows}; r++) for (int c = 0; c < {columns}; c++) "
                         f"y[(r / {width} * {columns} + c) * {width} + r % {width}] = x[r * {columns} + c];")


def packed_layer(name, inner, outer, width, relu):
    body = f"""for (int o = 0; o < {outer}; o++) {{
  float sum = b[o];
  for (int k = 0; k < {inner}; k++) sum += x[k] * w[(o / {width} * {inner} + k) * {width} + o % {width}];
  y[o] = {'sum > 0 ? sum : 0' if relu else 'sum'}; }}"""
    return legacy.kernel(name, [("x", F32, (1, inner)), ("w", F32, (outer // width, inner, width)),
                                ("b", F32, (outer,)), ("y", F32, (1, outer))], body)


PRE = "tvmgen_default_fused_"
MLP = [packing(PRE + "layout_transform", 128, 784, 16), packing(PRE + "layout_transform_1", 64, 128, 16),
       packing(PRE + "layout_transform_2", 10, 64, 10),
       packed_layer(PRE + "nn_contrib_dense_pack_expand_dims_add_nn_relu", 784, 128, 16, True),
       packed_layer(PRE + "nn_contrib_dense_pack_expand_dims_add_nn_relu_1", 128, 64, 16, True),
       packed_layer(PRE + "nn_contrib_dense_pack_expand_dims_add", 64, 10, 10, False),
       legacy.kernel(PRE + "nn_softmax", [("x", F32, (1, 10)), ("y", F32, (1, 10))],
                     "float sum = 0; for (int i = 0; i < 10; i++) sum += y[i] = expf(x[i]);"
                     "for (int i = 0; i < 10; i++) y[i] /= sum;")]
VARIANTS = DATA.parent / "graph_json_variants"
EXPECTED = json.loads((VARIANTS / "expect.json").read_text())


@pytest.fixture(scope="module")
def mlp(ctx, tmp_path_factory):
    library = capi.Library(ctx, legacy.library(tmp_path_factory.mktemp("mlp") / "lib.so", "v0.14", MLP))
    yield library
    library.close()


@pytest.mark.parametrize("name", EXPECTED)
def test_variants_of_a_graph(ctx, mlp, name):
    rng = np.random.default_rng(1)
    shapes = [(1, 784), (128, 784), (128,), (64, 128), (64,), (10, 64), (10,)]
    values = [(rng.normal(size=s) / np.sqrt(s[-1])).astype(np.float32) for s in shapes]
    x, w0, b0, w1, b1, w2, b2 = values
    y = np.maximum(np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, 0) @ w2.T + b2
    expected = np.exp(y) / np.exp(y).sum()

    def whole():
        held = []
        try:
            held.append(capi.Graph((VARIANTS / f"{name}.json").read_text()))
            held.append(capi.Model(ctx, held[0], devices="cpu", library=mlp))
            held.append(capi.Executor(held[1]))
            for i, value in enumerate(values):
                t = capi.tensor(value)
                try:
                    capi.call("heddle_executor_set_input", held[2].p, capi.c.c_uint32(i), t)
                finally:
                    capi.LIB.heddle_tensor_release(t)
            held[2].run()
            return held[2].output(0)
        finally:
            for p in reversed(held):
                p.close()

    if EXPECTED[name] == "read":
        np.testing.assert_allclose(whole(), expected, rtol=1e-4, atol=1e-6)
    else:
        with pytest.raises(capi.HeddleError) as caught:
            whole()
        assert len(str(caught.value)) > 20
