"""Precision fast on lavapipe: weights of products and convolutions are float16 on the device, all else is float32.
labels: slow ctypes
timeout: 300
"""
import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from tool_case import heddle  # noqa: E402

FAST, STRICT = 16, 32


@pytest.fixture(scope="module")
def ctx():
    """Under the validation layer, where that is installed."""
    lavapipe.need()
    validate = "vulkan:0" in heddle("devices", "--set", "vulkan.validate=1", **lavapipe.ENV).out
    c = capi.Context(config="off", threads=2, vulkan__cache_dir="off", vulkan__validate=int(validate))
    yield c
    c.close()


@pytest.fixture(autouse=True)
def nothing_said(capfd):
    """What the validation layer says is a failure."""
    yield
    said = capfd.readouterr().err
    assert "VUID" not in said and "SYNC-" not in said and "UNASSIGNED" not in said, said


def half(w):
    return w.astype(np.float16).astype(np.float32)


class Case:
    """One node: x goes in, w and b are constants; x_first: the node reads x before w. half: does w become float16?"""

    def __init__(self, op, x, w, b=None, x_first=True, half=True, scale=1.0, **attrs):
        rng = np.random.default_rng(len(w) + w[0])
        self.op, self.attrs, self.x_first, self.half = op, attrs, x_first, half
        self.x = rng.standard_normal(x).astype(np.float32)
        self.w = (rng.standard_normal(w) * scale).astype(np.float32)
        self.b = None if b is None else rng.standard_normal(b).astype(np.float32)

    def model(self, w, dtype=np.float32):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        names = (["x", "w"] if self.x_first else ["w", "x"]) + ([] if self.b is None else ["b"])
        constants = [numpy_helper.from_array(w.astype(dtype), "w")]
        if self.b is not None:
            constants.append(numpy_helper.from_array(self.b.astype(dtype), "b"))
        graph = helper.make_graph([helper.make_node(self.op, names, ["y"], name="node", **self.attrs)], "case",
                                  [helper.make_tensor_value_info("x", kind, self.x.shape)],
                                  [helper.make_tensor_value_info("y", kind, None)], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def expected(self, w):
        """With sums in float64, and the most that sums in float32 may be off."""
        (want,) = ReferenceEvaluator(self.model(w, np.float64)).run(None, {"x": self.x.astype(np.float64)})
        terms = Case.__new__(Case)
        terms.__dict__.update(self.__dict__, x=np.abs(self.x), b=None if self.b is None else np.abs(self.b))
        (size,) = ReferenceEvaluator(terms.model(np.abs(w), np.float64)).run(None, {"x": terms.x.astype(np.float64)})
        return want, 4e-6 * size


CONV = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
CASES = {
    "matmul": Case("MatMul", (96, 128), (128, 80)),
    "matmul_of_odd_sizes": Case("MatMul", (19, 37), (37, 21)),
    "matmul_little": Case("MatMul", (3, 5), (5, 7)),
    "matmul_stack": Case("MatMul", (3, 64, 96), (3, 96, 70)),
    "matmul_row": Case("MatMul", (1, 515), (515, 261)),
    "matmul_wide_row": Case("MatMul", (1, 300), (300, 1024)),
    "matmul_wide_odd_row": Case("MatMul", (1, 301), (301, 1031)),
    "matmul_column": Case("MatMul", (515, 1), (261, 515), x_first=False),
    "matmul_weights_first": Case("MatMul", (64, 130), (72, 64), x_first=False),
    "gemm": Case("Gemm", (33, 300), (300, 77), (77,), alpha=0.5, beta=2.0),
    "gemm_down": Case("Gemm", (130, 300), (72, 300), (72,), transB=1),
    "gemm_row_down": Case("Gemm", (1, 1024), (1000, 1024), (1000,), transB=1),
    "gemm_row_down_odd": Case("Gemm", (1, 301), (257, 301), (257,), transB=1),
    "conv": Case("Conv", (1, 32, 28, 28), (48, 32, 3, 3), (48,), **CONV),
    "conv_of_a_picture": Case("Conv", (2, 3, 33, 33), (64, 3, 7, 7), kernel_shape=[7, 7], strides=[2, 2]),
    "conv_groups": Case("Conv", (1, 32, 14, 14), (64, 8, 3, 3), (64,), group=4, **CONV),
    "conv_1x1": Case("Conv", (2, 64, 14, 14), (130, 64, 1, 1), (130,), kernel_shape=[1, 1]),
    "conv_1x1_odd": Case("Conv", (1, 21, 5, 7), (19, 21, 1, 1), kernel_shape=[1, 1]),
    "small_numbers": Case("MatMul", (16, 64), (64, 32), scale=2.0**-14),
    # These stay float32.
    "depthwise": Case("Conv", (1, 32, 28, 28), (32, 1, 3, 3), (32,), half=False, group=32, **CONV),
    "transposed": Case("ConvTranspose", (1, 16, 14, 14), (16, 12, 2, 2), half=False, kernel_shape=[2, 2]),
    "too_large": Case("MatMul", (16, 64), (64, 32), half=False, scale=1e5),
    "too_small": Case("MatMul", (16, 64), (64, 32), half=False, scale=1e-7),
}


def run(ctx, path, x, flags, device="vulkan:0"):
    """The output, and the bytes that the plan has for constants on the device."""
    made = [capi.Model.load(ctx, path, devices=device, flags=flags)]
    try:
        made.append(capi.Executor(made[0]))
        made[1].set_input("x", x)
        made[1].run()
        taken = sum(m["constants"] for m in made[0].explain_json()["memory"])
        return np.array(made[1].outputs()[0]), taken
    finally:
        for thing in reversed(made):
            thing.close()


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_float16(ctx, tmp_path, name):
    case = CASES[name]
    path = str(tmp_path / "case.onnx")
    onnx.save(case.model(case.w), path)
    fast, planned = run(ctx, path, case.x, FAST)
    strict, planned_all = run(ctx, path, case.x, STRICT)
    exact, bound = case.expected(case.w)
    assert fast.shape == strict.shape == exact.shape and fast.dtype == np.float32
    assert np.all(np.abs(strict - exact) <= bound), np.max(np.abs(strict - exact) / bound)
    if not case.half:
        assert fast.tobytes() == strict.tobytes() and planned == planned_all
        return
    want, bound = case.expected(half(case.w))
    assert np.all(np.abs(fast - want) <= bound), np.max(np.abs(fast - want) / bound)
    assert np.abs(want - exact).max() > bound.max(), "the rounding is too small to be seen"
    assert np.abs(fast - exact).mean() > 2 * np.abs(fast - want).mean(), "those weights were not rounded"
    assert planned_all - planned >= case.w.nbytes, "the weights are in the plan's memory still"


def test_weights_are_rounded_to_nearest_even(ctx, tmp_path):
    """Each of them, by a product with the identity: ties, numbers that float16 holds in fewer digits, zeros."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 0x7C00, 2048).astype(np.uint16).view(np.float16).astype(np.float32)
    ties = (bits + np.nextafter(bits.astype(np.float16), np.float16(0)).astype(np.float32)) / 2
    near = np.nextafter(ties, np.float32(np.inf))
    w = np.concatenate([bits, ties, near, -near]).reshape(64, 128)
    assert np.abs(w).max() <= 65504 and (np.abs(w) < 2.0**-14).any()
    case = Case("MatMul", (64, 64), w.shape)
    case.x, case.w = np.eye(64, dtype=np.float32), w
    path = str(tmp_path / "case.onnx")
    onnx.save(case.model(w), path)
    np.testing.assert_array_equal(run(ctx, path, case.x, FAST)[0], half(w))
    np.testing.assert_array_equal(run(ctx, path, case.x, STRICT)[0], w)
