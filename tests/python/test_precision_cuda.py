"""Both precisions on the double of CUDA, with the doubles of cuBLASLt and cuDNN and with kernels alone, against numpy.

Products of weights are bfloat16 with precision fast, convolutions by cuDNN TF32, and all else float32.
labels: slow ctypes
timeout: 300
"""
import gpu_doubles

gpu_doubles.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from test_precision import CASES, conv, rounded  # noqa: E402
from test_precision import Case as AnyCase  # noqa: E402

FAST, STRICT = 16, 32
LIBRARIES = {} if gpu_doubles.REAL else dict(cuda__cublaslt=str(gpu_doubles.CUDA.parent / "libcublasLt.so.13"),
                                             cuda__cudnn=str(gpu_doubles.CUDA.parent / "libcudnn.so.9"))
# Products that are large enough for bfloat16, and convolutions that cuDNN rounds to TF32.
HALF = {"matmul", "gemm_of_rows", "stack", "gemm_added", "conv_1x1"}
CONVOLUTIONS = {"conv", "conv_of_a_picture", "depthwise", "groups", "residual"}
MORE = {
    "gemm_added": AnyCase((70, 96), [("Gemm", "x w b", "y", dict(alpha=0.5, beta=-2.0))], (70, 80), w=(96, 80),
                          b=(70, 1)),
    "little": AnyCase((3, 5), [("MatMul", "x w", "y", {})], (3, 7), w=(5, 7)),
    "uneven_pads": AnyCase((1, 16, 12, 12), [("Conv", "x w", "y", dict(conv(3, 3), pads=[0, 1, 2, 1]))],
                           (1, 24, 12, 12), w=(24, 16, 3, 3)),
}
ALL = {**CASES, **MORE}


@pytest.fixture(scope="module", params=["libraries", "kernels"])
def kind(request):
    gpu_doubles.need("cuda")
    ctx = capi.Context(threads=1, cuda__libraries="auto" if request.param == "libraries" else 0,
                       **(LIBRARIES if request.param == "libraries" else {}))
    yield request.param, ctx
    ctx.close()


def run(ctx, path, x, flags):
    made = [capi.Model.load(ctx, path, devices="cuda:0", flags=flags)]
    try:
        made.append(capi.Executor(made[0]))
        made[1].set_input("x", x)
        for _ in range(2):  # a recorded run too
            made[1].run()
        return np.array(made[1].outputs()[0])
    finally:
        for thing in reversed(made):
            thing.close()


def evaluated(case, change):
    model = case.model({k: change(v) if k in "xw" else v for k, v in case.constants.items()})
    return ReferenceEvaluator(model).run(None, {"x": change(case.x)})[0]


def magnitude(case):
    """What is multiplied and added up for each result, without signs; a bias is not rounded."""
    model = case.model({k: np.abs(v) if k == "w" else np.zeros_like(v) for k, v in case.constants.items()})
    return np.abs(ReferenceEvaluator(model).run(None, {"x": np.abs(case.x)})[0])


def tf32(x):
    """To 11 digits, halves away from zero."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize("name", ALL)
def test_both_precisions(kind, tmp_path, name):
    with_libraries, ctx = kind[0] == "libraries", kind[1]
    case = ALL[name]
    path = str(tmp_path / "case.onnx")
    onnx.save(case.model(case.constants), path)
    fast, strict = run(ctx, path, case.x, FAST), run(ctx, path, case.x, STRICT)
    exact = evaluated(case, lambda v: v)
    assert fast.shape == strict.shape == exact.shape and fast.dtype == np.float32
    np.testing.assert_allclose(strict, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
    assert np.all(np.abs(fast - exact) <= 3 * 2.0**-9 * magnitude(case) + 1e-6)
    if name in HALF:
        want = evaluated(case, rounded)
    elif name in CONVOLUTIONS and with_libraries:
        want = evaluated(case, tf32)
    else:
        assert fast.tobytes() == strict.tobytes() or (with_libraries and name not in ("little", "uneven_pads"))
        return
    if name == "residual":  # what is added is not rounded
        return
    np.testing.assert_allclose(fast, want, rtol=1e-5, atol=2e-5 * np.abs(want).max())
    assert np.abs(want - exact).max() > 1e-4 * np.abs(exact).max(), "the rounding is too small to be seen"
