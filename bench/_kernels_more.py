"""Cells of `scripts/bench kernels`: casts, quantised operators, results whose shapes depend on data, and
images."""
import numpy as np
from onnx import helper

from _kernels_move import D, F, I, L, Known, cell, some

B, S = np.uint8, np.int8
RNG = np.random.default_rng(3)


def number(x, dtype=F):
    return Known(x, dtype)


def casts():
    for a, b in ((F, D), (F, I), (F, L), (F, bool), (F, B), (L, F), (I, F), (L, I), (I, L), (bool, F), (bool, L),
                 (B, F)):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(b))
        yield f"Cast {np.dtype(a).name} {np.dtype(b).name}", cell("Cast", [some(a, 64, 1024)], [b], to=to)
    for exponent in (2, 3, 0.5, -1):
        yield f"Pow {exponent}", cell("Pow", [abs(some(F, 64, 1024)) + F(1), number(exponent)])


def quantised():
    def weights(*shape):
        return number(RNG.integers(-100, 100, shape), S)

    x, w, y = [number(0.02), number(120, B)], [number(0.01), number(0, S)], [number(0.5), number(100, B)]
    for words, shape, kernel, attrs in (("3x3", (1, 32, 28, 28), (32, 32, 3, 3), {"pads": [1] * 4}),
                                        ("1x1", (1, 64, 28, 28), (64, 64, 1, 1), {}),
                                        ("depthwise", (1, 64, 28, 28), (64, 1, 3, 3), {"pads": [1] * 4, "group": 64})):
        yield f"QLinearConv {words}", cell("QLinearConv", [some(B, *shape), *x, weights(*kernel), *w, *y], [B], **attrs)
    yield "ConvInteger", cell("ConvInteger", [some(B, 1, 32, 28, 28), weights(32, 32, 3, 3), x[1]], [I], pads=[1] * 4)
    yield "QLinearMatMul", cell("QLinearMatMul", [some(B, 64, 256), *x, weights(256, 128), *w, *y], [B])
    for rows in (1, 64):
        yield f"MatMulInteger {rows}", cell("MatMulInteger", [some(B, rows, 256), weights(256, 128), x[1]], [I])
    yield "DynamicQuantizeLinear", cell("DynamicQuantizeLinear", [some(F, 64, 1024)], [B, F, B])
    for axis, shape in ((0, (64, 288)), (1, (512, 64))):
        scale, zero = number(RNG.random(64) + 0.1), number(np.zeros(64), S)
        yield f"QuantizeLinear axis {axis}", cell("QuantizeLinear", [some(F, *shape), scale, zero], [S], axis=axis)
        yield f"DequantizeLinear axis {axis}", cell("DequantizeLinear", [some(S, *shape), scale, zero], [F], axis=axis)
    operands = [some(S, 256, 256), number(RNG.random((256, 8)) + 0.1)]
    yield "DequantizeLinear blocks", cell("DequantizeLinear", operands, [F], opset=21, axis=1, block_size=32)


def data():
    for t in (F, L, bool):
        yield f"NonZero {np.dtype(t).name}", cell("NonZero", [(RNG.random((64, 512)) < 0.3).astype(t)], [L])
    yield "Compress", cell("Compress", [some(F, 400, 64), RNG.random(400) < 0.5], axis=0)
    yield "Unique", cell("Unique", [RNG.integers(0, 300, 5000)], [L])
    boxes = np.sort(RNG.uniform(0, 1, (1, 500, 2, 2)).astype(F), axis=2).reshape(1, 500, 4)
    operands = [boxes, RNG.random((1, 3, 500)).astype(F), Known([100]), number([0.5]), number([0.1])]
    yield "NonMaxSuppression", cell("NonMaxSuppression", operands, [L])
    for k, n in ((300, 8400), (50, 50000)):
        yield f"TopK {k} of {n}", cell("TopK", [some(F, 1, n), Known([k])], [F, L])


def images():
    grid = RNG.uniform(-1, 1, (2, 32, 32, 2)).astype(F)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            yield f"GridSample {mode} {padding}", cell("GridSample", [some(F, 2, 16, 40, 40), grid], mode=mode,
                                                       padding_mode=padding)
    yield "Col2Im", cell("Col2Im", [some(F, 1, 144, 900), Known([30, 30]), Known([3, 3])], pads=[1] * 4)
    yield "AffineGrid", cell("AffineGrid", [some(F, 2, 2, 3), Known([2, 3, 64, 64])])
    places = np.arange(16 * 28 * 28).reshape(1, 16, 28, 28) * 4
    yield "MaxUnpool", cell("MaxUnpool", [some(F, *places.shape), places], kernel_shape=[2, 2], strides=[2, 2])
    for mode in ("linear", "nearest"):
        operands = [some(F, 1, 40, 40, 32), None, None, Known([1, 80, 80, 32])]
        yield f"Resize channels last {mode}", cell("Resize", operands, mode=mode)
    yield "Resize antialias", cell("Resize", [some(F, 1, 3, 128, 128), None, None, Known([1, 3, 64, 64])], mode="cubic",
                                   antialias=1)
    for words, channels, kernel, attrs in (("7x7", 96, (7, 7), {"pads": [3] * 4}),
                                           ("1-D", 96, (31,), {"pads": [15] * 2}),
                                           ("3-D", 16, (3, 3, 3), {"pads": [1] * 6})):
        shape = {1: (784,), 2: (28, 28), 3: (8, 16, 16)}[len(kernel)]
        operands = [some(F, 1, channels, *shape), number(RNG.standard_normal((channels, 1, *kernel)))]
        yield f"Conv depthwise {words}", cell("Conv", operands, group=channels, **attrs)
    operands = [some(F, 1, 64, 14, 14), number(RNG.standard_normal((64, 1, 4, 4)))]
    yield "ConvTranspose depthwise", cell("ConvTranspose", operands, strides=[2, 2], pads=[1] * 4, group=64)


FAMILIES = (casts, quantised, data, images)


def cases():
    return {f"{family.__name__}: {name}": made for family in FAMILIES for name, made in family()}
