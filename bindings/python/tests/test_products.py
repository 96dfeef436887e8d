"""Products of float32 on cpu of all shapes that a kernel treats apart, alone, in stacks, transposed and with what is computed on
their results, against numpy in float64."""
import math

import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import sizes

SHAPES = [(1, 64, 64), (1, 37, 70), (2, 33, 45), (3, 64, 80), (4, 5, 16), (5, 256, 17), (6, 16, 32), (7, 257, 15), (12, 40, 64),
          (13, 40, 64), (20, 300, 33), (64, 64, 64), (97, 520, 48), (128, 64, 130), (1, 600, 500)]
erf = np.vectorize(math.erf)
ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh,
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
}


def run(nodes, feed, weights, opset=17):
    """The model's only output `y`."""
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in feed.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v, n) for n, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return heddle.load(model.SerializeToString(), devices="cpu").run(None, feed)[0]


def near(got, want, depth):
    assert got.shape == want.shape
    assert np.array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=4e-7 * math.sqrt(depth) + 2e-6)


def operands(rng, m, k, n, batch=()):
    a = rng.normal(size=(*batch, m, k)).astype(np.float32)
    return a, (rng.normal(size=(k, n)) / math.sqrt(k)).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("swapped", ["", "A", "B", "AB"])
def test_gemm(shape, constant, swapped):
    rng = np.random.default_rng(sum(shape))
    a, b = operands(rng, *shape)
    want = a.astype(np.float64) @ b
    x, w = (a.T.copy() if "A" in swapped else a), (b.T.copy() if "B" in swapped else b)
    node = helper.make_node("Gemm", ["a", "b"], ["y"], transA=int("A" in swapped), transB=int("B" in swapped))
    near(run([node], {"a": x} if constant else {"a": x, "b": w}, {"b": w} if constant else {}), want, shape[1])


@pytest.mark.parametrize("kind", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(1, 64, 64), (5, 48, 80), (30, 270, 50)], ids=str)
def test_with_activations(shape, kind):
    rng = np.random.default_rng(3)
    a, b = operands(rng, *shape)
    bias = rng.normal(size=shape[2]).astype(np.float32)
    a *= 4
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["t"]), helper.make_node(kind, ["t"], ["y"])]
    near(run(nodes, {"a": a}, {"b": b, "c": bias}), ACTIVATIONS[kind](a.astype(np.float64) @ b + bias), 16 * shape[1])


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_with_gelu(approximate):
    rng = np.random.default_rng(4)
    a, b = operands(rng, 40, 64, 72)
    a *= 3
    x = a.astype(np.float64) @ b
    want = 0.5 * x * (1 + (erf(x / math.sqrt(2)) if approximate == "none" else np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"]), helper.make_node("Gelu", ["t"], ["y"], approximate=approximate)]
    near(run(nodes, {"a": a}, {"b": b}, opset=20), want, 64)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("other", [(9, 50), (50,), (1, 50), (9, 1), ()], ids=str)
def test_with_another_operand(op, other):
    rng = np.random.default_rng(5)
    a, b = operands(rng, 9, 33, 50)
    c = rng.uniform(1, 2, other).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"]), helper.make_node(op, ["t", "c"], ["u"]), helper.make_node("Relu", ["u"], ["y"])]
    x = a.astype(np.float64) @ b
    want = {"Add": x + c, "Sub": x - c, "Mul": x * c, "Div": x / c}[op]
    near(run(nodes, {"a": a, "c": c}, {"b": b}), np.maximum(want, 0), 33)


@pytest.mark.parametrize("batch, repeated", [((3,), False), ((3,), True), ((2, 4), False), ((2, 4), True)])
@pytest.mark.parametrize("shape", [(1, 64, 20), (7, 40, 33), (20, 64, 64)], ids=str)
def test_stacks(batch, repeated, shape):
    rng = np.random.default_rng(6)
    a = rng.normal(size=(*batch, shape[0], shape[1])).astype(np.float32)
    b = rng.normal(size=((1,) if repeated else batch) + (shape[1], shape[2])).astype(np.float32)
    c = rng.normal(size=(*batch, 1, shape[2])).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"]), helper.make_node("Add", ["t", "c"], ["y"])]
    near(run(nodes, {"a": a, "b": b, "c": c}, {}), a.astype(np.float64) @ b + c, shape[1] * 16)


@pytest.mark.parametrize("image", [(1, 24, 9, 7), (3, 17, 4, 4), (2, 64, 1, 1)], ids=str)
@pytest.mark.parametrize("strides, pads", [([1, 1], [0, 0, 0, 0]), ([2, 2], [1, 1, 1, 1]), ([1, 1], [1, 0, 0, 1])])
@pytest.mark.parametrize("tail", ["", "Relu", "Add", "row"])
def test_convolutions_of_one_pixel(image, strides, pads, tail):
    """Those that are a product, and those that only look so."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=image).astype(np.float32)
    w, c = rng.normal(size=(30, image[1], 1, 1)).astype(np.float32), rng.normal(size=30).astype(np.float32)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))[:, :, ::strides[0], ::strides[1]]
    want = np.einsum("oi,nihw->nohw", w[:, :, 0, 0], padded) + c[:, None, None]
    nodes = [helper.make_node("Conv", ["x", "w", "c"], ["t" if tail else "y"], strides=strides, pads=pads)]
    feed = {"x": x}
    if tail == "Relu":
        nodes.append(helper.make_node("Relu", ["t"], ["y"]))
        want = np.maximum(want, 0)
    elif tail:
        feed["z"] = rng.normal(size=want.shape if tail == "Add" else (1, 30, 1, 1)).astype(np.float32)
        nodes.append(helper.make_node("Add", ["t", "z"], ["y"]))
        want = want + feed["z"]
    near(run(nodes, feed, {"w": w, "c": c}), want, 16 * image[1])


@pytest.mark.parametrize("kind", ["", "Relu", "Clip"])
def test_what_is_not_finite(kind):
    """NaN goes through, and minus infinity becomes what the activation makes of it."""
    a = np.ones((13, 20), np.float32)
    a[2, 3], a[4, 5], a[6, 7] = np.nan, -np.inf, np.inf
    b = np.ones((20, 18), np.float32)
    x = a.astype(np.float64) @ b
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t" if kind else "y"])]
    if kind:
        nodes.append(helper.make_node(kind, ["t"] + (["low", "high"] if kind == "Clip" else []), ["y"]))
    limits = {"low": np.float32(-1), "high": np.float32(9)} if kind == "Clip" else {}
    want = x if not kind else np.maximum(x, 0) if kind == "Relu" else np.clip(x, -1, 9)
    near(run(nodes, {"a": a}, {"b": b, **{n: np.array(v) for n, v in limits.items()}}), want, 20)


@pytest.mark.parametrize("seed", range(int(40 * sizes.SCALE) + 1))
def test_any_shape(seed):
    rng = np.random.default_rng(seed)
    m, k, n = (int(v) for v in rng.integers(1, 150, 3))
    a, b = operands(rng, m, k, n)
    bias = rng.normal(size=n).astype(np.float32)
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["t"]), helper.make_node("Sigmoid", ["t"], ["y"])]
    near(run(nodes, {"a": a}, {"b": b, "c": bias}), 1 / (1 + np.exp(-(a.astype(np.float64) @ b + bias))), k)
