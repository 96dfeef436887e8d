"""Models that TVM v0.14 wrote, with its own results: each as graph, library and parameters and as one file, for v0.4 to
v0.18, on cpu and on OpenCL. The libraries are written here (fixtures/tvm_legacy); graphs whose weights are too large
to keep get others, and numpy says what is right.
labels: ctypes slow
timeout: 600
"""
import json
import lzma

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators  # noqa: E402
from test_tvm import clean_environment  # noqa: E402, F401
from test_tvm_legacy import DATA  # noqa: E402
from tool_case import failing, good  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
F32 = "float32"
PRE = operators.PREFIX


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


def stored(name, file):
    path = DATA / name / file
    return path.read_bytes() if path.exists() else lzma.decompress(path.with_suffix(path.suffix + ".xz").read_bytes())


def case(name):
    """Graph, parameters, inputs and TVM's own outputs."""
    inputs = {p.stem[len("input_"):]: np.load(p) for p in (DATA / name).glob("input_*.npy")}
    outputs = [np.load(DATA / name / f"output_{i}.npy") for i in range(len(list((DATA / name).glob("output_*.npy"))))]
    return stored(name, "graph.json").decode(), stored(name, "params.bin"), inputs, outputs


def devices_of(text):
    """What a graph's device_index asks for; skips where there are no OpenCL devices."""
    if 4 not in json.loads(text)["attrs"]["device_index"][1]:
        return "cpu"
    pocl.need()
    return "cpu,opencl:0"


def run(model, inputs):
    """Outputs of a run, equal to those of a second one."""
    executor = capi.Executor(model)
    try:
        for name, array in inputs.items():
            executor.set_input(name, array)
        executor.run()
        first = executor.outputs()
        executor.run()
        for a, b in zip(first, executor.outputs(), strict=True):
            np.testing.assert_array_equal(a, b)
        return first
    finally:
        executor.close()


def run_files(ctx, graph, inputs, library, params):
    """The three files of old: graph, library, parameters."""
    held = [capi.Library(ctx, library), capi.Graph(graph)]
    try:
        held.append(capi.Params(params))
        held.append(capi.Model(ctx, held[1], held[2], devices=devices_of(graph), library=held[0]))
        return run(held[3], inputs)
    finally:
        for p in reversed(held):
            p.close()


def run_one_file(ctx, graph, inputs, library, params=None):
    model = capi.Model.load(ctx, library, params, devices=devices_of(graph))
    try:
        return run(model, inputs)
    finally:
        model.close()


def same(got, expected, rtol=1e-5):
    for out, e in zip(got, expected, strict=True):
        assert out.shape == e.shape and out.dtype == e.dtype
        np.testing.assert_allclose(out, e, rtol=rtol, atol=1e-5 if out.dtype.kind == "f" else 0)


def elementwise(text):
    """add, multiply and maximum of two, in C, of any dtype that C has; float16 is rounded after each."""
    if '"float16"' in text:
        two = "float p = __gnu_h2f_ieee(x0[i]), q = __gnu_h2f_ieee(x1[i]); uint16_t r = __gnu_f2h_ieee({});"
    else:
        two = "__typeof__(*y0) p = x0[i], q = x1[i], r = {};"
    return {PRE + name: two.format(code) for name, code in {"add": "p + q", "multiply": "p * q",
                                                            "maximum": "p > q ? p : q"}.items()}


DTYPES = ["float16", "float64", "int32", "int64", "uint64", "uint8"]
SCALAR_ADD = {PRE + "add": "float r = x0[i] + x1[0];"}
MULTIPLY = {PRE + "multiply": "float r = x0[i] * 0.5f;"}
SOFT_HALF = "float __gnu_h2f_ieee(uint16_t); uint16_t __gnu_f2h_ieee(float);"
# name: (what the names of functions do not tell, more for the library, tolerance)
MODELS = {"conv_bn_cpu": ({}, {}, 1e-5), "conv_bn_opencl": ({}, {}, 1e-4), "import_tree": (MULTIPLY, {}, 1e-4),
          "legacy_no_import_tree": ({}, {}, 1e-4), "share_params_bound_b1": ({}, {}, 1e-5),
          "share_params_bound_b4": ({}, {}, 1e-5), "c_target": ({}, {"plain": True}, 1e-5),
          "chain1000_add1": (SCALAR_ADD, {}, 1e-5),
          **{f"dtype_{t}": (elementwise, {}, 1e-3 if t == "float16" else 1e-6) for t in DTYPES}}


def build(tmp_path, name, era, graph, **options):
    known, more, _ = MODELS[name]
    if '"float16"' in graph:  # declared before the functions, as an included header would
        options["declared"] = SOFT_HALF
    return operators.build(tmp_path / "lib.so", era, graph, known=known(graph) if callable(known) else known,
                           flat=name == "legacy_no_import_tree", **more, **options)


def cases(first):
    """Each model for each version; of dtypes, which versions treat alike, for the first and for v0.14."""
    return [(name, era) for name in MODELS for era, n in legacy.ERAS.items()
            if n >= first and (not name.startswith("dtype_") or n in (first, 14))]


@pytest.mark.parametrize("name,era", cases(4))
def test_graph_library_and_params(ctx, tmp_path, name, era):
    graph, params, inputs, outputs = case(name)
    same(run_files(ctx, graph, inputs, build(tmp_path, name, era, graph), params), outputs, MODELS[name][2])


@pytest.mark.parametrize("name,era", cases(8))
def test_one_file(ctx, tmp_path, name, era):
    graph, params, inputs, outputs = case(name)
    library = build(tmp_path, name, era, graph, factory=legacy.params_records(params))
    same(run_one_file(ctx, graph, inputs, library), outputs, MODELS[name][2])


SIZES = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "float16": 2}


@pytest.mark.parametrize("name", [*MODELS, "mlp_cpu", "mlp_opencl", "mobilenet_v1_cpu"])
def test_memory_is_no_more_than_the_storage_ids(ctx, tmp_path, name):
    """What the plan needs, against the graph's own storage ids, each rounded up to 256 bytes; of a device with memory of
    its own also the host's side of what goes in and out."""
    text = stored(name, "graph.json").decode()
    attrs, ids = json.loads(text)["attrs"], {}
    for shape, dtype, k in zip(*(attrs[key][1] for key in ("shape", "dltype", "storage_id")), strict=True):
        ids[k] = max(ids.get(k, 0), int(np.prod(shape)) * SIZES.get(dtype, 1))
    params = (legacy.params_blob(random_params(text, ["data"])) if name not in MODELS else stored(name, "params.bin"))
    library = (build(tmp_path, name, "v0.14", text) if name in MODELS else
               operators.build(tmp_path / "lib.so", "v0.14", text))
    held = [capi.Library(ctx, library), capi.Graph(text), capi.Params(params)]
    held.append(capi.Model(ctx, held[1], held[2], devices=devices_of(text), library=held[0]))
    allocations = held[3].explain_json()["allocations"]
    for p in reversed(held):
        p.close()
    between = sum(a["bytes"] for a in allocations if a["use"] in ("arena", "slot"))
    whole = sum(a["bytes"] for a in allocations)
    limit = sum((n + 255) // 256 * 256 for n in ids.values())
    assert between <= limit
    if 4 not in attrs["device_index"][1]:
        assert whole <= limit


@pytest.mark.parametrize("name", ["conv_bn_cpu", "conv_bn_opencl", "chain1000_add1", "import_tree"])
def test_the_tool(tmp_path, name):
    """Three files, and one; a plan of either says where each node runs, and of cpu and OpenCL what is copied."""
    graph, params, inputs, outputs = case(name)
    devices = devices_of(graph)
    (tmp_path / "g.json").write_text(graph)
    (tmp_path / "p.params").write_bytes(params)
    words = ["--device", devices]
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        words += ["--input", f"{key}={tmp_path / key}.npy"]
    three = build(tmp_path, name, "v0.14", graph)
    (tmp_path / "one").mkdir()
    one = build(tmp_path / "one", name, "v0.14", graph, factory=legacy.params_records(params))
    plans = []
    for model in ([tmp_path / "g.json", "--lib", three, "--params", tmp_path / "p.params"], [one]):
        good("run", *model, *words, "--output-dir", tmp_path / "out", **pocl.ENV)
        same([np.load(tmp_path / "out" / f"output_{i}.npy") for i in range(len(outputs))], outputs, MODELS[name][2])
        plans.append(json.loads(good("plan", *model, "--device", devices, "--json", **pocl.ENV)))
        (tmp_path / "out" / "output_0.npy").unlink()
    three, one = plans
    assert three["nodes"] == one["nodes"] and three["steps"] == one["steps"]
    names = {d["id"]: d["name"] for d in one["devices"]}
    wanted = {n["name"]: d for n, d in zip(json.loads(graph)["nodes"], json.loads(graph)["attrs"]["device_index"][1])}
    for node in one["nodes"]:
        assert names[node["device"]] == {1: "cpu:0", 4: "opencl:0"}[wanted[node["name"]]], node
    if name == "import_tree":
        assert one["crossings"]


def test_one_file_without_its_parameters(ctx, tmp_path):
    """deploy_params_removed: TVM's remove_params. Those beside it are taken; without them they are inputs."""
    graph, params, inputs, outputs = case("share_params_bound_b1")
    library = build(tmp_path, "share_params_bound_b1", "v0.14", graph, factory={})
    (tmp_path / "p.params").write_bytes(params)
    same(run_one_file(ctx, graph, inputs, library, tmp_path / "p.params"), outputs)
    with pytest.raises(capi.HeddleError, match="p[0-5]"):
        run_one_file(ctx, graph, inputs, library)
    np.save(tmp_path / "x.npy", inputs["data"])
    good("run", library, "--params", tmp_path / "p.params", "--device", "cpu", "--input", f"data={tmp_path / 'x.npy'}",
         "--output-dir", tmp_path)
    same([np.load(tmp_path / "output_0.npy")], outputs)


def test_parameters_of_another_executor(ctx, tmp_path):
    """share_params: two batch sizes, one set of weights; the blob is used for its names only."""
    made = {}
    held = []
    for name in ("share_params_bound_b1", "share_params_bound_b4"):
        graph, params, inputs, outputs = case(name)
        (tmp_path / name).mkdir()
        held.append(capi.Library(ctx, build(tmp_path / name, name, "v0.14", graph)))
        held.append(capi.Graph(graph))
        held.append(capi.Model(ctx, held[-1], devices="cpu", library=held[-2]))
        held.append(capi.Executor(held[-1]))
        made[name] = (held[-1], inputs, outputs)
    held.append(capi.Params(params))
    first, other = (m[0] for m in made.values())
    with pytest.raises(capi.HeddleError):
        other.set_input("data", made["share_params_bound_b4"][1]["data"])
        other.run()
    capi.call("heddle_executor_load_params", first.p, held[-1].p)
    capi.call("heddle_executor_share_params", other.p, first.p, held[-1].p)
    for executor, inputs, outputs in made.values():
        executor.set_input("data", inputs["data"])
        executor.run()
        same(executor.outputs(), outputs)
    for p in reversed(held):
        p.close()


EXTRA = """FUNCTION(extra_answer) {
  TVMValue *a = args_;
  CHECK(num_args == 1 && codes[0] == 0, "extra_answer: expected an int");
  out_ret->v_int64 = 42 + a[0].v_int64;
  *out_code = 0;
  return 0;
}"""


def test_two_device_modules_and_c_source(ctx, tmp_path):
    """import_tree: a function that is in no graph, and one whose kernel is in the second module, called by name."""
    pocl.need()
    graph, params, inputs, outputs = case("import_tree")
    sources, kernels = [EXTRA], {}
    for node in operators.nodes(graph):
        if node.device == 1:
            sources.append(operators.host(node, MULTIPLY.get(node.function)))
        else:
            half, kernel = operators.device(node)
            sources.append(half)
            kernels.update(kernel)
    sources.append(legacy.launcher("extra_double", [("a", F32, (16,)), ("b", F32, (16,))],
                                   [("extra_double_kernel", ["a", "b"], [4, 4])]))
    second = {"extra_double_kernel": ([operators.HANDLE] * 2, operators.TAGS, "__global const float *a, "
                                      "__global float *b", "b[i] = a[i] * 2;")}
    modules = [operators.opencl_module("v0.14", kernels), operators.opencl_module("v0.14", second)]
    for tree in ([[1, 2], [], []], [[1], [2], []]):  # side by side, and one below the other
        path = legacy.library(tmp_path / f"lib{len(tree[0])}.so", "v0.14", sources,
                              data=legacy.blob([legacy.LIB, *modules], tree))
        same(run_files(ctx, graph, inputs, path, params), outputs, 1e-4)
        library = capi.Library(ctx, path)
        assert library.call("extra_answer", 8) == 50
        a, b = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
        there = [capi.on_device(ctx, "opencl:0", v) for v in (a, b)]
        library.call("extra_double", *there)
        np.testing.assert_array_equal(capi.from_device(there[1], b), a * 2)
        for t in there:
            capi.LIB.heddle_tensor_release(t)
        library.close()


def test_bfloat16(tmp_path):
    """Bits in .npy files; the sum is rounded to nearest even."""
    graph, _, inputs, outputs = case("dtype_bfloat16")
    widen = "union { uint32_t b; float f; } p = {(uint32_t)x0[i] << 16}, q = {(uint32_t)x1[i] << 16}; p.f += q.f; "
    library = operators.build(tmp_path / "lib.so", "v0.14", graph, known={
        PRE + "add": widen + "uint16_t r = (p.b + 0x7fff + (p.b >> 16 & 1)) >> 16;"})
    (tmp_path / "g.json").write_text(graph)
    words = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    good("run", tmp_path / "g.json", "--lib", library, "--device", "cpu", *words, "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), outputs[0])


# ---- weights of our own

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def random_params(text, inputs, seed=11):
    """Values for all null nodes but the inputs, scaled so that sums stay near one."""
    graph, rng = json.loads(text), np.random.default_rng(seed)
    rows, shapes = graph["node_row_ptr"], graph["attrs"]["shape"][1]
    made = {}
    for i, node in enumerate(graph["nodes"]):
        if node["op"] == "null" and node["name"] not in inputs:
            shape = shapes[rows[i]]
            inner = max(1, int(np.prod(shape)) // max(1, max(shape) if len(shape) > 1 else 1))
            made[node["name"]] = (rng.normal(size=shape) * (2 / inner) ** 0.5).astype(np.float32)
    return made


def unpack(w):
    """NC16n back to NC."""
    return w if w.ndim == 2 else w.transpose(0, 2, 1).reshape(-1, w.shape[1])


@pytest.mark.parametrize("name", ["mlp_cpu", "mlp_opencl"])
def test_perceptron(ctx, tmp_path, name):
    graph = stored(name, "graph.json").decode()
    params, x = random_params(graph, ["data"]), np.random.default_rng(2).normal(size=(1, 784)).astype(np.float32)
    y = x.astype(np.float64)
    for k in range(0, 6, 2):
        y = y @ unpack(params[f"p{k}"]).T + params[f"p{k + 1}"]
        y = np.maximum(y, 0) if k < 4 else softmax(y)
    expected = [y.astype(np.float32)]
    path = operators.build(tmp_path / "lib.so", "v0.14", graph)
    same(run_files(ctx, graph, {"data": x}, path, legacy.params_blob(params)), expected, 1e-4)
    path = operators.build(tmp_path / "deploy.so", "v0.14", graph, factory=params)
    same(run_one_file(ctx, graph, {"data": x}, path), expected, 1e-4)


def plain(x):
    """NCHW8c back to NCHW."""
    n, c, h, w, k = x.shape
    return x.transpose(0, 1, 4, 2, 3).reshape(n, c * k, h, w)


def windows(x, size, step):
    if size == 1:
        return x[:, :, ::step, ::step, None, None]
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::step, ::step]


def mobilenet(text, params, x):
    """The graph's convolutions in NCHW with numpy, in float64."""
    graph, values = json.loads(text), {}
    shapes = graph["attrs"]["shape"][1]
    for i, node in enumerate(graph["nodes"]):
        name = node["attrs"]["func_name"] if node["op"] != "null" else ""
        given = [values[k] for k, *_ in node["inputs"]]
        if node["op"] == "null":
            values[i] = x.astype(np.float64) if node["name"] == "data" else params[node["name"]].astype(np.float64)
        elif "conv2d" in name:
            data, w, b = given
            o, c, kh, kw, ci, co = w.shape
            w = w.transpose(0, 5, 1, 4, 2, 3).reshape(o * co, c * ci, kh, kw)
            seen = windows(data, kh, data.shape[2] // shapes[i][2])
            y = np.einsum("nchwpq,cpq->nchw", seen, w[:, 0]) if "depthwise" in name else (
                np.tensordot(seen, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2))
            values[i] = np.maximum(y + plain(b), 0)
        elif "global_avg_pool2d" in name:
            values[i] = given[0].mean(axis=(2, 3), keepdims=True)
        elif "dense_pack" in name:
            values[i] = given[0] @ unpack(given[1]).T + given[2]
        elif "softmax" in name:
            values[i] = softmax(given[0])
        else:  # changes of layout alone
            values[i] = given[0].reshape(1, -1) if "batch_flatten" in name else given[0]
    return values[len(graph["nodes"]) - 1].astype(np.float32)


def test_mobilenet(ctx, tmp_path):
    graph = stored("mobilenet_v1_cpu", "graph.json").decode()
    params = random_params(graph, ["data"])
    x = np.random.default_rng(5).normal(size=(1, 3, 224, 224)).astype(np.float32)
    expected = mobilenet(graph, params, x)
    assert expected.max() > 2e-3 and np.argmax(expected) != 0  # not all alike: the net says something
    path = operators.build(tmp_path / "deploy.so", "v0.14", graph, factory=params)
    same(run_one_file(ctx, graph, {"data": x}, path), [expected], 1e-3)


# ---- what is read and listed, and cannot run here

def compiled_for(kind, fmt, names):
    kernels = {n + "_kernel": ([operators.HANDLE] * 3, operators.TAGS) for n in names}
    code = {n: [0x07230203, 0] for n in kernels} if kind == "vulkan" else "code"
    return legacy.device_module(kind, fmt, kernels, code)


@pytest.mark.parametrize("name,kind,fmt,plugin", [
    ("mlp_cuda_compile_only", "cuda", "ptx", "cuda"), ("ewise_rocm_compile_only", "hsaco", "hsaco", "rocm"),
    ("hetero_cpu_cuda_compile_only", "cuda", "ptx", "cuda"), ("mlp_vulkan_compile_only", "vulkan", "spirv", "vulkan"),
    ("dense_metal_compile_only", "metal", "metal", "metal")])
def test_code_for_devices_that_are_not_here(tmp_path, name, kind, fmt, plugin):
    """What is inside is listed; the plugin that would run it is named, with device_index and without it."""
    graph = stored(name, "graph.json").decode()
    found = operators.nodes(graph)
    there = [n.function for n in found if n.device != 1]
    sources = [legacy.launcher(n.function, n.tensors, [(n.function + "_kernel", [t[0] for t in n.tensors], [1, 1])],
                               device_type=n.device) if n.device != 1 else operators.host(n, MULTIPLY.get(n.function))
               for n in found]
    path = legacy.library(tmp_path / "lib.so", "v0.14", sources,
                          data=operators.blob("v0.14", [compiled_for(kind, fmt, there)]))
    (tmp_path / "g.json").write_text(graph)
    said = json.loads(good("info", tmp_path / "g.json", "--lib", path, "--json"))["library"]
    assert said["functions"] == sorted(n.function for n in found)
    assert [(m["kind"], m["format"], m["kernels"]) for m in said["imports"]] == [(kind, fmt,
                                                                                 [n + "_kernel" for n in there])]
    words = failing(1, "plan", tmp_path / "g.json", "--lib", path, "--device", "cpu")
    assert f"plugin '{plugin}'" in words and f"type {max(n.device for n in found)} " in words
    attrs = json.loads(graph)["attrs"]
    (tmp_path / "g.json").write_text(graph.replace('"device_index"', '"other"'))
    assert "device_index" in attrs and "device_index" not in (tmp_path / "g.json").read_text()
    words = failing(1, "plan", tmp_path / "g.json", "--lib", path, "--device", "cpu")
    for part in (there[0], f"kind '{kind}'", f"plugin '{plugin}'", "cpu:0"):
        assert part in words, words


def test_three_kinds_of_device(ctx, tmp_path):
    """hetero_cpu_opencl_vulkan, which TVM itself cannot run: what is missing is named; with the Vulkan half compiled for
    cpu its result is that of numpy, which is what is kept for it."""
    graph, _, inputs, outputs = case("hetero_cpu_opencl_vulkan")
    pocl.need()
    known = {PRE + "exp": "float r = exp(x0[i]);", PRE + "add": "float r = x0[i] + 1;",
             PRE + "sqrt": "float r = sqrt(x0[i]);"}
    path = operators.build(tmp_path / "lib.so", "v0.14", graph.replace("4, 7, 7,", "4, 1, 1,"), known=known)
    library = capi.Library(ctx, path)
    held = [capi.Graph(graph), capi.Params(legacy.params_blob({}))]
    with pytest.raises(capi.HeddleError, match="type 7.*plugin 'vulkan'"):
        model = capi.Model(ctx, held[0], devices="cpu,opencl:0", library=library)
        held.append(model)
        held.append(capi.Executor(model))
        held[-1].set_input("x", inputs["x"])
        held[-1].run()
    for p in reversed(held):
        p.close()
    library.close()
    same(run_files(ctx, graph.replace("4, 7, 7,", "4, 1, 1,"), inputs, path, legacy.params_blob({})), outputs, 1e-4)
