"""Elementwise operators, reductions, scans and extremes of every type of numbers on cpu against numpy: rows of many
lengths, broadcast, NaN and infinities, integers that wrap, the polynomials of float32 against float64.
timeout: 120"""
import heddle
import numpy as np
import pytest
from onnx import helper, numpy_helper

REALS = ["f4", "f8"]
TYPES = REALS + ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
SHAPES = [((3, 5, 65), (5, 1)), ((2, 130), (130,)), ((7, 64, 3), (3,)), ((4, 300), (4, 1)), ((1, 17), ()),
          ((2, 3, 140), (2, 1, 140))]
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
          "Equal": np.equal, "Greater": np.greater, "LessOrEqual": np.less_equal}
REDUCE = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod}
FLOAT32 = {"Sin": (np.sin, 4), "Cos": (np.cos, 4), "Atan": (np.arctan, 5), "Asin": (np.arcsin, 4),
           "Acos": (np.arccos, 4), "Exp": (np.exp, 3), "Tanh": (np.tanh, 5),
           "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), 6)}


def run(op, inputs, dtype, constants=(), **attrs):
    value, kind = helper.make_tensor_value_info, helper.np_dtype_to_tensor_dtype
    names = [*inputs, *(c.name for c in constants)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attrs)], "g",
                              [value(k, kind(x.dtype), x.shape) for k, x in inputs.items()],
                              [value("y", kind(np.dtype(dtype)), None)], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return np.asarray(heddle.load(model.SerializeToString(), devices="cpu")(*inputs.values()))


def numbers(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    x = np.array(np.round(4 * rng.standard_normal(shape)) / 4)
    for special, share in (np.nan, 0.02), (np.inf, 0.02), (-np.inf, 0.02), (-0.0, 0.05):
        x[rng.random(shape) < share] = special
    return x.astype(dtype)


def same(got, want, bound=0.0):
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    rng = np.random.default_rng(5)
    bound = {"f4": 1e-5, "f8": 1e-12}.get(dtype, 0.0)
    wide = "f8" if dtype in REALS else dtype
    for shape, other in SHAPES:
        a, b = numbers(rng, dtype, shape), numbers(rng, dtype, other)
        for op, function in BINARY.items():
            want = function(a, b)
            same(run(op, {"a": a, "b": b}, want.dtype), want)
        for op, function in ("Abs", np.abs), ("Sign", np.sign):
            same(run(op, {"a": a}, dtype), function(a))
        for axes in [(i,) for i in range(a.ndim)] + [(0, a.ndim - 1), tuple(range(a.ndim))]:
            constant = numpy_helper.from_array(np.array(axes), "axes")
            for op, function in REDUCE.items():
                more = {"dtype": wide} if op in ("ReduceSum", "ReduceProd") else {}
                want = function(a, axis=axes, keepdims=True, **more).astype(dtype)
                same(run(op, {"a": a}, dtype, [constant]), want, bound)
        for axis in range(a.ndim):
            for op, function in ("ArgMax", np.argmax), ("ArgMin", np.argmin):
                same(run(op, {"a": a}, "i8", axis=axis, keepdims=0), function(a, axis))
            if dtype in ("f4", "f8", "i4", "i8", "u4", "u8"):
                constant = numpy_helper.from_array(np.array(axis), "axis")
                want = np.flip(np.cumsum(np.flip(a, axis), axis, dtype=wide), axis).astype(dtype)
                same(run("CumSum", {"a": a}, dtype, [constant], reverse=1), want, bound)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", FLOAT32)
def test_functions_of_float32(op):
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 2**32, 50_001, dtype=np.uint32).view("f4")
    quarters = (np.arange(20_000) * (np.pi / 2)).astype("f4")
    ends = np.array([0, -0.0, 1, -1, 8e5, np.inf], "f4")
    x = np.concatenate([bits, rng.uniform(-1, 1, 20_000).astype("f4"), quarters, ends])
    function, ulps = FLOAT32[op]
    got, want = run(op, {"x": x}, "f4"), function(x.astype("f8"))
    room = ulps * np.maximum(np.spacing(np.abs(want.astype("f4"))).astype("f8"), 1.2e-38)
    near = np.abs(got - want) <= room
    assert np.all(near | (np.isnan(got) & np.isnan(want)) | (got == want.astype("f4")))
    zero = x == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
