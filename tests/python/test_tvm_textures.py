"""Graphs whose tensors are textures (storage_scope): on devices with images they are images, and what comes out is what buffers
give, to the bit.
labels: ctypes
timeout: 300
"""
import json

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators, textures  # noqa: E402
from test_tvm import clean_environment  # noqa: E402, F401
from test_tvm_models import stored  # noqa: E402
from tool_case import failing, good  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
SCOPES = ["global.texture", "global.texture-weight", "global.texture-nhwc"]


@pytest.fixture(scope="module")
def ctx():
    pocl.need()
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


def ran(ctx, library, graph, inputs, params=(), **options):
    """Outputs of two runs, which are equal, and the plan."""
    held = [capi.Library(ctx, library), capi.Graph(graph), capi.Params(legacy.params_blob(dict(params)))]
    try:
        held.append(capi.Model(ctx, held[1], held[2], devices="opencl:0", library=held[0], **options))
        plan = held[-1].explain_json()
        held.append(capi.Executor(held[-1]))
        for name, array in inputs.items():
            held[-1].set_input(name, array)
        held[-1].run()
        first = held[-1].outputs()
        held[-1].run()
        for a, b in zip(first, held[-1].outputs(), strict=True):
            np.testing.assert_array_equal(a, b)
        return first, plan
    finally:
        for p in reversed(held):
            p.close()


def images(plan):
    return [m for m in plan["memory"] if m["kind"] == "image"]


def conv(x, w):
    """NCHW with OIHW4o; relu."""
    o = w.transpose(0, 4, 1, 2, 3).reshape(-1, *w.shape[1:4])
    k = w.shape[2] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (k, k), (k, k)))
    out = sum(np.einsum("nchw,oc->nohw", padded[:, :, p:p + x.shape[2], q:q + x.shape[3]], o[:, :, p, q])
              for p in range(w.shape[2]) for q in range(w.shape[3]))
    return np.maximum(out, 0)


def test_a_model_for_adreno(ctx, tmp_path):
    """The graph that TVM v0.14 wrote for Adreno: activations and a weight as textures."""
    text = stored("texture_opencl_compile_only", "graph.json").decode()
    random = np.random.default_rng(19)
    shapes = {"p0": (8, 32, 3, 3, 4), "p1": (8, 32, 1, 1, 4)}
    params = {k: random.standard_normal(v, dtype="f4") * 0.1 for k, v in shapes.items()}
    x = random.standard_normal((1, 32, 16, 16), dtype="f4")
    (got,), plan = ran(ctx, textures.build(tmp_path / "t.so", text), text, {"data": x}, params)
    np.testing.assert_allclose(got, conv(conv(x, params["p0"]), params["p1"]), rtol=1e-4, atol=1e-4)
    # One image serves the activations, which are of one size, one after another or two at a time; one holds the weight.
    kinds = images(plan)
    assert len(kinds) == 2 and sorted(m["constants"] for m in kinds) == [0, 8 * 32 * 4 * 4]


def step(scope, dtype="float32", shape=(2, 3, 5, 4)):
    """x -> twice, as a texture -> one more, as plain bytes."""
    nodes = [("x", None, []), ("a", "twice", ["x"]), ("b", "more", ["a"])]
    return textures.graph_of(nodes, {"x": (dtype, shape, ""), "a": (dtype, shape, scope), "b": (dtype, shape, "")})


def code(dtype):
    number = textures.KINDS[dtype][2][:-1]
    return {"twice": f"{number} r = x0[i] + x0[i];", "more": f"{number} r = x0[i] + 1;"}


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (3, 7, 4), (1, 2, 3, 2, 4)])
def test_scopes(ctx, tmp_path, shape):
    """Which dimensions are rows is the scope's."""
    names = ["x", "a", "b", "c", "d"]
    graph = textures.graph_of([("x", None, []), *((y, "f" + y, [x]) for x, y in zip(names, names[1:]))],
                              {k: ("float32", shape, s) for k, s in zip(names, ["", *SCOPES, ""])})
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    known = {"f" + k: f"float r = x0[i] + {i + 1};" for i, k in enumerate(names[1:])}
    (got,), plan = ran(ctx, textures.build(tmp_path / "t.so", graph, known), graph, {"x": x})
    np.testing.assert_array_equal(got, x + 10)
    assert len(images(plan)) == len({textures.sides(shape, s) for s in SCOPES})


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_types(ctx, tmp_path, dtype):
    shape, graph = (6, 4), step("global.texture", dtype, (6, 4))
    x = (np.arange(24) - 12).astype(dtype).reshape(shape)
    (got,), _ = ran(ctx, textures.build(tmp_path / "t.so", graph, code(dtype)), graph, {"x": x})
    np.testing.assert_array_equal(got, x * 2 + 1)


def test_copies_between_textures_and_buffers(ctx, tmp_path):
    """__copy is where a tensor becomes a texture and bytes again: an input and a parameter that are textures, one that is
    read both ways, and outputs from each."""
    f, shape = "float32", (2, 6, 3, 4)
    nodes = [("x", None, []), ("w", None, []), ("x_t", "__copy", ["x"]), ("s", "sum", ["x_t", "w"]),
             ("s_b", "__copy", ["s"]), ("t", "sum_plain", ["s_b", "x"]), ("u", "sum_mixed", ["t", "x_t"])]
    graph = textures.graph_of(nodes, {
        "x": (f, shape, ""), "w": (f, shape, "global.texture-weight"), "x_t": (f, shape, "global.texture"),
        "s": (f, shape, "global.texture-nhwc"), "s_b": (f, shape, ""), "t": (f, shape, ""), "u": (f, shape, "")})
    both = "float r = x0[i] + x1[i];"
    library = textures.build(tmp_path / "t.so", graph, {"sum": both, "sum_plain": both, "sum_mixed": both})
    x, w = (np.random.default_rng(i).integers(-99, 99, shape).astype("f4") for i in range(2))
    (got,), plan = ran(ctx, library, graph, {"x": x}, {"w": w})
    np.testing.assert_array_equal(got, 3 * x + w)
    assert len(images(plan)) == 2  # texture and texture-nhwc have one size
    graph = json.loads(graph)
    graph["heads"] = [[3, 0, 0], [2, 0, 0], [6, 0, 0]]  # a texture, a copy of an input, bytes
    got, _ = ran(ctx, library, json.dumps(graph), {"x": x}, {"w": w})
    for out, wanted in zip(got, (x + w, x, 3 * x + w), strict=True):
        np.testing.assert_array_equal(out, wanted)


def test_images_as_scratch_memory(ctx, tmp_path):
    """What a function copies into a texture for itself it asks device_api.opencl.alloc_nd for."""
    shape, n = (4, 6, 4), 96
    tensors = [("x0", "float32", shape), ("y0", "float32", shape)]
    fill, extents = {}, {}
    for name, used, kinds in (("f_kernel", [("x0", *tensors[0][1:]), ("y0", *tensors[0][1:])], ["", SCOPES[0]]),
                              ("f_kernel_1", tensors, [SCOPES[0], ""])):
        types, source, extents[name] = textures.kernel(name, used, kinds, "float r = x0[i] + 1;")
        fill[name] = (types, source)
    call = legacy.launcher("f", tensors, [("f_kernel", ["x0", "t"], extents["f_kernel"]),
                                          ("f_kernel_1", ["t", "y0"], extents["f_kernel_1"])])
    ask = """static void *get, *put; int64_t size[2] = {%d, %d};
if (get == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "device_api.opencl.alloc_nd", &get) != 0) return -1;
if (put == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "device_api.opencl.free_nd", &put) != 0) return -1;
v[0].v_int64 = 4; v[1].v_int64 = t0->device_id; v[2].v_int64 = 2; v[3].v_int64 = 32;
v[4].v_handle = "global.texture"; v[5].v_int64 = 2; v[6].v_handle = size;
c[0] = c[1] = c[2] = c[3] = c[5] = 0; c[4] = 11; c[6] = 3;
if (TVMFuncCall(get, v, c, 7, &v[7], &c[7]) != 0) return -1;
void *t = v[7].v_handle;
""" % textures.sides(shape, SCOPES[0])[::-1]
    give = """v[0].v_int64 = 4; v[1].v_int64 = t0->device_id; v[2].v_handle = "global.texture"; v[3].v_handle = t;
c[0] = c[1] = 0; c[2] = 11; c[3] = 3;
if (TVMFuncCall(put, v, c, 4, &v[4], &c[4]) != 0) return -1;
return 0;"""
    before, after = call.split("static void *f0;", 1)
    half = before + ask + "static void *f0;" + after.replace("return 0;", give, 1)
    library = legacy.library(tmp_path / "t.so", "v0.14", [half],
                             data=operators.blob("v0.14", [textures.module(fill)]))
    graph = textures.graph_of([("x", None, []), ("y", "f", ["x"])], {k: ("float32", shape, "") for k in "xy"})
    x = np.arange(n, dtype="f4").reshape(shape)
    (got,), _ = ran(ctx, library, graph, {"x": x})
    np.testing.assert_array_equal(got, x + 2)


def refused(tmp_path, graph, **settings):
    (tmp_path / "g.json").write_text(graph)
    kernels = {name: (([textures.HANDLE] * 2, textures.TAGS), f"// Function: {name}\n__kernel void {name}() {{}}\n")
               for name in ("twice_kernel", "more_kernel")}
    tensor = ("float32", json.loads(graph)["attrs"]["shape"][1][0])
    library = legacy.library(tmp_path / "r.so", "v0.14", [
        legacy.launcher(f, [("x0", *tensor), ("y0", *tensor)], [(f + "_kernel", ["x0", "y0"], [1, 1])])
        for f in ("twice", "more")], data=operators.blob("v0.14", [textures.module(kernels)]))
    return failing(1, "plan", tmp_path / "g.json", "--lib", library, "--device", "opencl:0", *settings.pop("words", ()),
                   **pocl.ENV)


def test_what_is_refused(ctx, tmp_path):
    words = refused(tmp_path, step("global.texture"), words=("--set", "opencl.images=0"))
    assert "'twice'" in words and "'global.texture'" in words and "opencl:0 has no images" in words
    words = refused(tmp_path, step("global.texture", shape=(2, 5, 3)))
    assert "its last dimension is 4" in words and "'a'" in words
    assert "its last dimension is 4" in refused(tmp_path, step("global.texture-nhwc", shape=(2, 4)))
    assert "images of at most" in refused(tmp_path, step("global.texture-weight", shape=(1, 2, 1 << 20, 4)))
    assert "no memory of this kind" in refused(tmp_path, step("global.vtcm"))
    assert "such a tensor cannot be" in refused(tmp_path, step("global.texture-of-tomorrow"))


def test_devices_of_two_kinds(ctx, tmp_path):
    """The second device has images of its own."""
    graph = step("global.texture")
    library = textures.build(tmp_path / "t.so", graph, code("float32"))
    (tmp_path / "g.json").write_text(graph)
    np.save(tmp_path / "x.npy", x := np.arange(120, dtype="f4").reshape(2, 3, 5, 4))
    good("run", tmp_path / "g.json", "--lib", library, "--device", "opencl:0,opencl:1", "--place", "b=opencl:1",
         "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out", **pocl.ENV)
    np.testing.assert_array_equal(np.load(next((tmp_path / "out").glob("*.npy"))), x * 2 + 1)
