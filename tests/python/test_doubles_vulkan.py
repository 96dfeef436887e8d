"""Functions in float64 on lavapipe, which GLSL lacks and the plugin's shaders have as their own, against those of libm: of
ordinary numbers, of all sizes, and of those that are no ordinary ones.
labels: slow ctypes
timeout: 300
"""
import math

import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2e-308,
                    1e-200, 1.7e308, -1.7e308, 1e-10, 709.7, -745.0, 2.0**52 + 1, 2.0**53, -(2.0**53) + 1, 1e22, np.pi, np.pi / 2,
                    -np.pi / 4, 355.0])
RNG = np.random.default_rng(7)
SIZES = np.ldexp(RNG.uniform(0.5, 1, 2000) * RNG.choice([-1, 1], 2000), RNG.integers(-1060, 1024, 2000))
NEAR = np.concatenate([RNG.uniform(-1, 1, 2000), RNG.uniform(-8, 8, 2000), RNG.uniform(-1000, 1000, 1000)])


def libm(function):
    """Not numpy's, whose angles are less exact."""
    return np.vectorize(lambda x: function(x) if math.isfinite(x) else math.nan, otypes=[np.float64])


erf = np.vectorize(math.erf, otypes=[np.float64])
FUNCTIONS = {"Sin": (libm(math.sin), 2), "Cos": (libm(math.cos), 2), "Tan": (libm(math.tan), 4), "Asin": (np.arcsin, 3), "Acos": (np.arccos, 3),
             "Atan": (np.arctan, 3), "Erf": (erf, 4), "Exp": (np.exp, 3), "Log": (np.log, 3)}


@pytest.fixture(scope="module")
def ctx():
    lavapipe.need()
    c = capi.Context(config="off", vulkan__cache_dir="off")
    yield c
    c.close()


def run(ctx, path, op, *inputs):
    names = [f"x{k}" for k in range(len(inputs))]
    kinds = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "case",
                              [helper.make_tensor_value_info(n, k, x.shape) for n, k, x in zip(names, kinds, inputs)],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    made = [capi.Model.load(ctx, str(path), devices="vulkan:0")]
    try:
        made.append(capi.Executor(made[0]))
        for name, x in zip(names, inputs):
            made[1].set_input(name, x)
        made[1].run()
        return np.array(made[1].outputs()[0])
    finally:
        for thing in reversed(made):
            thing.close()


def check(got, want, ulps, *operands):
    """Within so many units in the last place, which below the normal range are the least number; zeros of one sign."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(want), 2.3e-308))
        off = np.where(np.isfinite(want), np.abs(got - want) / unit, np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0, np.inf))
    worst = np.nanargmax(np.where(np.isnan(off), np.inf, off))
    assert off[worst] <= ulps, f"of {[repr(x[worst]) for x in operands]}: {got[worst]!r} instead of {want[worst]!r}"
    zeros = want == 0
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions(ctx, tmp_path, op):
    function, ulps = FUNCTIONS[op]
    x = np.concatenate([SPECIAL, SIZES, NEAR])
    with np.errstate(all="ignore"):
        want = function(x)
    check(run(ctx, tmp_path / "case.onnx", op, x), want, ulps, x)


def test_the_number_nearest_to_a_multiple_of_a_quarter_turn(ctx, tmp_path):
    """Of which libm's own results may be several units off: these are of an evaluation with 1,500 bits."""
    x = np.array([6381956970095103.0 * 2.0**797])
    for op, want in (("Cos", -4.6871659242546276111e-19), ("Tan", -2133485385753703843.7), ("Sin", 1.0)):
        check(run(ctx, tmp_path / "case.onnx", op, x), np.array([want]), 2, x)


def test_powers(ctx, tmp_path):
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    base = np.abs(np.concatenate([SIZES, NEAR]))
    to = np.concatenate([RNG.uniform(-1, 1, 2000), RNG.uniform(-300, 300, 5000)])
    x, y = np.concatenate([a, base]), np.concatenate([b, to])
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    check(run(ctx, tmp_path / "case.onnx", "Pow", x, y), want, 8, x, y)
    whole = RNG.integers(-9, 10, len(NEAR))
    with np.errstate(all="ignore"):
        want = np.power(NEAR, whole.astype(np.float64))
    check(run(ctx, tmp_path / "case.onnx", "Pow", NEAR, whole), want, 8, NEAR, whole)
    check(run(ctx, tmp_path / "case.onnx", "Pow", NEAR, whole.astype(np.float32)), want, 8, NEAR, whole)
