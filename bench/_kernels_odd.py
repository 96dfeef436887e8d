"""Cells of `scripts/bench kernels` at odd sizes: convolutions and pools in one and three dimensions, grouped, dilated
and strided; normalisations, products and sums along each axis; what moves elements, of several types; scales per axis
and per block."""
import numpy as np
from onnx import helper

from _kernels_move import D, F, H, I, L, Known, cell, some

B, S = np.uint8, np.int8
RNG = np.random.default_rng(1)


def name_of(dtype):
    return np.dtype(dtype).name


def weights(*shape):
    return Known(RNG.standard_normal(shape), F)


def convolutions():
    for words, shape, kernel, attrs in (
            ("1-D grouped", (1, 64, 333), (64, 16, 3), {"group": 4, "pads": [1] * 2}),
            ("1-D dilated", (1, 48, 501), (48, 48, 3), {"dilations": [4], "pads": [4] * 2}),
            ("1-D strided", (1, 1, 8000), (64, 1, 80), {"strides": [16]}),
            ("3-D strided", (1, 8, 15, 31, 31), (16, 8, 3, 3, 3), {"strides": [2] * 3, "pads": [1] * 6}),
            ("3-D grouped", (1, 16, 7, 21, 21), (16, 4, 3, 3, 3), {"group": 4, "pads": [1] * 6}),
            ("3-D dilated", (1, 8, 9, 20, 20), (8, 8, 3, 3, 3), {"dilations": [2] * 3, "pads": [2] * 6}),
            ("2-D grouped", (1, 64, 29, 29), (64, 8, 3, 3), {"group": 8, "pads": [1] * 4}),
            ("2-D 11x11", (1, 8, 63, 63), (8, 8, 11, 11), {"pads": [5] * 4}),
            ("2-D 1x7", (1, 64, 17, 17), (64, 64, 1, 7), {"pads": [0, 3, 0, 3]}),
            ("2-D odd", (1, 37, 31, 29), (41, 37, 3, 3), {"pads": [1] * 4}),
            ("2-D patches", (1, 3, 224, 224), (96, 3, 16, 16), {"strides": [16] * 2}),
            ("depthwise times 2", (1, 32, 28, 28), (64, 1, 3, 3), {"group": 32, "pads": [1] * 4}),
            ("depthwise stride 3", (1, 32, 60, 60), (32, 1, 3, 3), {"group": 32, "strides": [3] * 2}),
            ("depthwise small", (1, 512, 7, 7), (512, 1, 3, 3), {"group": 512, "pads": [1] * 4})):
        yield f"Conv {words}", cell("Conv", [some(F, *shape), weights(*kernel)], **attrs)
    for words, shape, kernel, attrs in (
            ("1-D grouped", (1, 32, 200), (32, 8, 4), {"group": 4, "strides": [2]}),
            ("2-D grouped", (1, 32, 28, 28), (32, 8, 3, 3), {"group": 4, "strides": [2] * 2, "pads": [1] * 4}),
            ("2-D dilated", (1, 16, 28, 28), (16, 16, 3, 3), {"dilations": [2] * 2}),
            ("2-D odd", (1, 31, 17, 19), (31, 29, 3, 3), {"strides": [2] * 2, "output_padding": [1] * 2}),
            ("3-D 2x2x2", (1, 32, 8, 8, 8), (32, 16, 2, 2, 2), {"strides": [2] * 3})):
        yield f"ConvTranspose {words}", cell("ConvTranspose", [some(F, *shape), weights(*kernel)], **attrs)


def windows():
    for op in ("MaxPool", "AveragePool"):
        for words, shape, attrs in (
                ("3-D 3x3x3", (1, 16, 9, 27, 27), {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6}),
                ("3-D ceil", (1, 16, 9, 27, 27), {"kernel_shape": [2] * 3, "strides": [2] * 3, "ceil_mode": 1}),
                ("1-D dilated", (1, 64, 801), {"kernel_shape": [3], "dilations": [3]}),
                ("1-D ceil", (1, 64, 801), {"kernel_shape": [4], "strides": [3], "ceil_mode": 1}),
                ("2-D ceil", (1, 32, 57, 57), {"kernel_shape": [3] * 2, "strides": [2] * 2, "ceil_mode": 1}),
                ("2-D 13x13", (1, 64, 13, 13), {"kernel_shape": [13] * 2, "pads": [6] * 4}),
                ("2-D all", (1, 256, 7, 7), {"kernel_shape": [7] * 2}),
                ("2-D 1x2", (1, 32, 32, 100), {"kernel_shape": [1, 2], "strides": [1, 2]})):
            yield f"{op} {words}", cell(op, [some(F, *shape)], opset=22, **attrs)


def lines():
    for shape in ((2, 33, 401), (1, 16, 8, 20, 20), (4, 64, 17, 17)):
        channels, words = shape[1], "x".join(map(str, shape))
        operands = [some(F, *shape), some(F, channels), some(F, channels)]
        yield f"InstanceNormalization {words}", cell("InstanceNormalization", operands)
    for shape, axis in (((4, 7, 9, 33), -2), ((100, 1, 77), -1), ((16, 100, 5), 1)):
        operands = [some(F, *shape), some(F, *shape[axis:]), some(F, *shape[axis:])]
        yield f"LayerNormalization {shape} {axis}", cell("LayerNormalization", operands, axis=axis)
    for shape, axis in (((8, 12, 50, 50), 1), ((2, 19, 65, 65), 1), ((3, 77, 77), -1), ((10, 3, 5000), 0)):
        yield f"Softmax {shape} {axis}", cell("Softmax", [some(F, *shape)], axis=axis)
    for t in (F, I, S):
        for axes in ([0], [1], [2], [0, 1], [1, 2], [0, 2]):
            operands = [some(t, 17, 33, 65), Known(axes)]
            yield f"ReduceMax {axes} {name_of(t)}", cell("ReduceMax", operands)
            if t is not S:
                yield f"ReduceSum {axes} {name_of(t)}", cell("ReduceSum", operands)
    for axis in range(3):
        yield f"ArgMax {axis}", cell("ArgMax", [some(F, 17, 33, 65)], [L], axis=axis)
        yield f"CumSum {axis} back", cell("CumSum", [some(F, 17, 33, 65), Known(axis)], reverse=1, exclusive=1)
    for n in (64, 100, 191, 300, 400):
        for t in (F, D, S):
            yield f"rows of {n} {name_of(t)}", cell("ReduceMax", [some(t, 500, n), Known([1])])


def products():
    for a, b in (((2, 1, 33, 40), (1, 5, 40, 21)), ((40,), (3, 40, 50)), ((6, 33, 40), (40,)),
                 ((16, 1, 64), (16, 64, 64)), ((197, 192), (192, 576)),
                 ((1000, 3), (3, 3)), ((2, 300, 300), (2, 300, 2)), ((7,), (7,))):
        yield f"MatMul {a} {b}", cell("MatMul", [some(F, *a), some(F, *b)])
    for equation, *shapes in (("abc,cd->abd", (8, 33, 40), (40, 50)), ("ij,ij->i", (300, 200), (300, 200)),
                              ("ij,ij->", (300, 200), (300, 200)), ("ibh,hd->ibd", (50, 4, 60), (60, 30)),
                              ("bhwc,hkc->bhwk", (2, 14, 14, 32), (14, 14, 32)), ("abij->ab", (8, 16, 20, 20)),
                              ("nctkv,kvw->nctw", (2, 8, 30, 3, 18), (3, 18, 18))):
        yield f"Einsum {equation}", cell("Einsum", [some(F, *s) for s in shapes], equation=equation)


def moves():
    for t in (F, L, B, bool):
        kind = name_of(t)
        if t is not bool:
            yield f"Where {kind}", cell("Where", [some(bool, 64, 1, 100), some(t, 64, 30, 100), some(t, 1, 30, 1)], [t])
        yield f"Expand middle {kind}", cell("Expand", [some(t, 9, 1, 7, 13), Known([9, 31, 7, 13])])
        yield f"Tile odd {kind}", cell("Tile", [some(t, 7, 5, 33), Known([3, 2, 5])])
        for words, first, end, step in (("step 3", 1, 301, 3), ("back", -1, -1000, -1)):
            operands = [some(t, 200, 301), Known([first]), Known([end]), Known([1]), Known([step])]
            yield f"Slice {words} {kind}", cell("Slice", operands)
        yield f"Pad negative {kind}", cell("Pad", [some(t, 1, 16, 60, 61), Known([0, 0, -2, 3, 0, 0, 1, -3])])
        yield f"Split odd {kind}", cell("Split", [some(t, 2, 85, 20, 20), Known([4, 1, 80])], [t] * 3, axis=1)
        yield f"Gather middle {kind}", cell("Gather", [some(t, 16, 100, 33), RNG.integers(0, 100, 40)], axis=1)
        for perm, shape in (((0, 2, 1), (7, 33, 65)), ((0, 3, 1, 2), (2, 17, 19, 5)),
                            ((2, 0, 3, 1, 4), (4, 7, 3, 8, 16)), ((0, 1, 4, 2, 5, 3), (1, 8, 2, 7, 7, 2))):
            yield f"Transpose {perm} {kind}", cell("Transpose", [some(t, *shape)], perm=list(perm))
    for a, b in (((33, 1, 65), (1, 17, 65)), ((33, 17, 1), (33, 1, 65)), ((1, 65), (300, 1)),
                 ((2, 8, 77, 77), (2, 1, 1, 77))):
        for t in (F, L):
            yield f"Add {a} {b} {name_of(t)}", cell("Add", [some(t, *a), some(t, *b)])


def scales():
    for axis, shape in ((0, (100, 33)), (1, (2, 33, 20, 20)), (2, (3, 50, 64))):
        scale, zero = Known(RNG.random(shape[axis]) + 0.1, F), Known(np.full(shape[axis], 3), S)
        yield f"QuantizeLinear {axis}", cell("QuantizeLinear", [some(F, *shape), scale, zero], [S], axis=axis)
        yield f"DequantizeLinear {axis}", cell("DequantizeLinear", [some(S, *shape), scale, zero], [F], axis=axis)
    blocks = {"opset": 21, "block_size": 32}
    operands = [some(F, 64, 256), Known(RNG.random((64, 8)) + 0.1, F), Known(np.zeros((64, 8)), S)]
    yield "QuantizeLinear blocks", cell("QuantizeLinear", operands, [S], axis=1, **blocks)
    operands = [some(S, 256, 64), Known(RNG.random((8, 64)) + 0.1, F)]
    yield "DequantizeLinear blocks 0", cell("DequantizeLinear", operands, [F], axis=0, **blocks)
    yield "DequantizeLinear int32", cell("DequantizeLinear", [some(I, 100, 64), Known(0.1, F)], [F])
    for a, b in ((F, H), (H, F), (F, S), (bool, I), (L, bool), (D, L), (S, I), (L, B)):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(b))
        yield f"Cast {name_of(a)} {name_of(b)}", cell("Cast", [some(a, 101, 333)], [b], to=to)


FAMILIES = (convolutions, windows, lines, products, moves, scales)


def cases():
    return {f"odd {family.__name__}: {name}": made for family in FAMILIES for name, made in family()}
