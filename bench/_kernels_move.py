"""Cells of `scripts/bench kernels`: products, pools, normalisations and what moves elements, an operator each.

A cell is a name, an operator, its operands (arrays; constants in a Known), the types of its results and its attributes.
"""
import numpy as np
from onnx import helper, numpy_helper

F, D, H, I, L = np.float32, np.float64, np.float16, np.int32, np.int64
RNG = np.random.default_rng(11)


class Known:
    """A constant operand."""

    def __init__(self, value, dtype=L):
        self.value = np.array(value, dtype)


def some(dtype, *shape):
    if np.dtype(dtype) == bool:
        return RNG.integers(0, 2, shape).astype(bool)
    whole = np.dtype(dtype).kind in "iu"
    return (RNG.integers(0, 100, shape) if whole else RNG.standard_normal(shape)).astype(dtype)


def cell(op, operands, results=None, opset=20, **attrs):
    value, inputs, known, names = helper.make_tensor_value_info, {}, [], []
    for i, x in enumerate(operands):
        names.append("" if x is None else f"x{i}")
        if isinstance(x, Known):
            known.append(numpy_helper.from_array(x.value, f"x{i}"))
        elif x is not None:
            inputs[f"x{i}"] = x
    results = [operands[0].dtype] if results is None else results
    outs = [f"y{i}" for i in range(len(results))]
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, **attrs)], "cell",
        [value(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in inputs.items()],
        [value(k, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None) for k, t in zip(outs, results)], known)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return made.SerializeToString(), inputs


def products():
    for equation, *shapes in (("ij,jk->ik", (128, 256), (256, 192)), ("bij,bjk->bik", (8, 64, 64), (8, 64, 64)),
                              ("bhid,bhjd->bhij", (2, 4, 64, 32), (2, 4, 64, 32)), ("i,i->", (4096,), (4096,)),
                              ("bij,kj->bik", (4, 64, 96), (80, 96)), ("ij,kj->ik", (96, 64), (80, 64)),
                              ("i,j->ij", (300,), (300,)),
                              ("bij->bji", (8, 96, 96)), ("ij->i", (512, 512)), ("ii->i", (512, 512)),
                              ("bchw,cd->bdhw", (2, 32, 24, 24), (32, 48)),
                              ("bi,ij,bj->b", (16, 48), (48, 48), (16, 48))):
        yield f"Einsum {equation}", cell("Einsum", [some(F, *s) for s in shapes], equation=equation)
    yield "Einsum float64", cell("Einsum", [some(D, 96, 128), some(D, 128, 96)], equation="ij,jk->ik")
    for t in (D, I, L, np.uint32, np.uint64):
        kind = np.dtype(t).name
        yield f"MatMul {kind}", cell("MatMul", [some(t, 128, 160), some(t, 160, 144)])
        yield f"MatMul {kind} batch", cell("MatMul", [some(t, 8, 48, 64), some(t, 8, 64, 48)])
        yield f"MatMul {kind} row", cell("MatMul", [some(t, 1, 512), some(t, 512, 512)])
        yield f"MatMul {kind} column", cell("MatMul", [some(t, 512, 512), some(t, 512, 1)])
    for t in (D, F):
        kind = np.dtype(t).name
        for flags in range(4):
            a = some(t, *((160, 128) if flags & 1 else (128, 160)))
            b = some(t, *((144, 160) if flags & 2 else (160, 144)))
            yield f"Gemm {kind} {flags}", cell("Gemm", [a, b, some(t, 144)], transA=flags & 1, transB=flags >> 1)
    yield "MatMul float32", cell("MatMul", [some(F, 128, 160), some(F, 160, 144)])
    yield "MatMul float32 row", cell("MatMul", [some(F, 1, 512), some(F, 512, 512)])
    yield "MatMulInteger", cell("MatMulInteger", [some(np.uint8, 128, 160), some(np.int8, 160, 144)], [I])
    three = {"strides": [2, 2, 2], "pads": [1] * 6}
    yield "ConvTranspose 3-D", cell("ConvTranspose", [some(F, 1, 32, 8, 16, 16), some(F, 32, 16, 4, 4, 4)], **three)
    yield "ConvTranspose 3-D few", cell("ConvTranspose", [some(F, 1, 16, 8, 16, 16), some(F, 16, 2, 4, 4, 4)], **three)
    yield "Conv 3-D", cell("Conv", [some(F, 1, 16, 8, 24, 24), some(F, 24, 16, 3, 3, 3)], pads=[1] * 6)
    yield "Conv 1-D", cell("Conv", [some(F, 1, 64, 400), some(F, 64, 64, 5)], pads=[2, 2])
    yield "Conv dilated", cell("Conv", [some(F, 1, 32, 48, 48), some(F, 32, 32, 3, 3)], pads=[2] * 4, dilations=[2, 2])
    yield "ConvTranspose 1-D", cell("ConvTranspose", [some(F, 1, 64, 200), some(F, 64, 32, 8)], strides=[4])
    for n in (12, 97, 256, 400, 509, 1000, 1021):
        yield f"DFT {n}", cell("DFT", [some(F, 16, n, 1), None, Known(1)], onesided=1)
    yield "DFT 509 complex", cell("DFT", [some(F, 16, 509, 2), None, Known(1)])


def moves():
    for t in (np.uint8, H, F, L):
        kind = np.dtype(t).name
        if t is not L:  # which ONNX Runtime does not take here
            yield f"SpaceToDepth {kind}", cell("SpaceToDepth", [some(t, 1, 32, 56, 56)], blocksize=2)
        for mode in ("DCR", "CRD") if t is not L else ():
            yield f"DepthToSpace {mode} {kind}", cell("DepthToSpace", [some(t, 1, 64, 28, 28)], blocksize=2, mode=mode)
        for perm, shape in (([1, 0], (384, 512)), ([0, 2, 1], (8, 96, 128)), ([0, 2, 3, 1], (1, 64, 56, 56)),
                            ([0, 3, 1, 2], (1, 56, 56, 64)), ([0, 2, 1, 3], (1, 128, 8, 64)), ([2, 1, 0], (32, 48, 64)),
                            ([0, 2, 3, 1], (1, 3, 224, 224)), ([0, 3, 1, 2], (1, 224, 224, 3))):
            words = "".join(map(str, perm)) + " " + "x".join(map(str, shape))
            yield f"Transpose {words} {kind}", cell("Transpose", [some(t, *shape)], perm=perm)
        yield f"Tile {kind}", cell("Tile", [some(t, 16, 3, 64), Known([2, 4, 3])])
        yield f"Tile short {kind}", cell("Tile", [some(t, 64, 64, 2), Known([1, 1, 8])])
        yield f"Expand rows {kind}", cell("Expand", [some(t, 64, 1, 64), Known([64, 32, 64])])
        yield f"Expand elements {kind}", cell("Expand", [some(t, 64, 32, 1), Known([64, 32, 64])])
        yield f"Slice step 2 {kind}", cell("Slice", [some(t, 64, 64, 64), Known([0, 0]), Known([64, 64]), Known([1, 2]),
                                                     Known([2, 2])])
        yield f"Slice back {kind}", cell("Slice", [some(t, 64, 32, 64), Known([-1]), Known([-1000]), Known([2]),
                                                   Known([-1])])
        yield f"Slice {kind}", cell("Slice", [some(t, 64, 64, 64), Known([3, 5]), Known([60, 50]), Known([1, 2])])
        for mode in ("constant", "reflect", "edge", "wrap"):
            if mode in ("constant", "edge") or np.dtype(t).itemsize > 2:
                yield f"Pad {mode} {kind}", cell("Pad", [some(t, 1, 32, 56, 56), Known([0, 0, 2, 2, 0, 0, 2, 2])],
                                                 mode=mode)
        pieces = [some(t, 512, 3) for _ in range(4)]
        yield f"Concat short {kind}", cell("Concat", pieces, axis=1)
        yield f"Concat {kind}", cell("Concat", [some(t, 8, 48, 56) for _ in range(3)], axis=1)
        index = RNG.integers(-64, 64, (64, 100, 64))
        for axis in (0, 1, 2):
            yield f"GatherElements {axis} {kind}", cell("GatherElements", [some(t, 128, 128, 64), index], axis=axis)
            inputs = [some(t, 128, 128, 64), index, some(t, *index.shape)]
            yield f"ScatterElements {axis} {kind}", cell("ScatterElements", inputs, axis=axis)
        for words, n, tail in (("rows", 2, (64,)), ("elements", 3, ())):
            places = RNG.integers(0, 32, (4000 if tail else 40000, n))
            source = some(t, 32, 32, 64)
            yield f"GatherND {words} {kind}", cell("GatherND", [source, places])
            update = some(t, len(places), *tail)
            yield f"ScatterND {words} {kind}", cell("ScatterND", [source, places, update])
        yield f"Gather {kind}", cell("Gather", [some(t, 500, 64), RNG.integers(0, 500, (16, 64))])
        yield f"Gather inner {kind}", cell("Gather", [some(t, 256, 200), RNG.integers(0, 200, 128)], axis=1)
    yield "ScatterElements add", cell("ScatterElements", [some(F, 128, 128, 64), index, some(F, *index.shape)], axis=1,
                                      reduction="add")
    yield "ScatterND add", cell("ScatterND", [some(F, 32, 32, 64), RNG.integers(0, 32, (4000, 2)), some(F, 4000, 64)],
                                reduction="add")
    yield "ReverseSequence", cell("ReverseSequence", [some(F, 64, 32, 32), RNG.integers(1, 64, 32)])
    for t in (F, L):
        kind = np.dtype(t).name
        for axis, k, shape in ((-1, 10, (64, 1000)), (1, 5, (8, 100, 64)), (-1, 1, (256, 256)), (-1, 500, (16, 1000)),
                               (-1, 100, (1, 50000))):
            x = RNG.permutation(int(np.prod(shape))).reshape(shape).astype(t)
            yield f"TopK {k} of {shape} {kind}", cell("TopK", [x, Known([k])], [t, L], axis=axis)
    for t in (F, np.uint8):
        for mode in ("nearest", "linear", "cubic"):
            for words, sizes in (("up", [1, 16, 64, 80]), ("down", [1, 16, 20, 24]), ("odd", [1, 16, 45, 53])):
                if t is not F and mode != "nearest":  # ONNX Runtime cuts what is rounded here
                    continue
                yield f"Resize {mode} {words} {np.dtype(t).name}", cell(
                    "Resize", [some(t, 1, 16, 32, 40), None, None, Known(sizes)], mode=mode)
    for words, shape, sizes in (("3-D", (1, 4, 8, 24, 24), [1, 4, 16, 48, 48]), ("1-D", (1, 32, 400), [1, 32, 800])):
        yield f"Resize linear {words}", cell("Resize", [some(F, *shape), None, None, Known(sizes)], mode="linear")
    yield "Resize last", cell("Resize", [some(F, 1, 32, 40, 16), None, None, Known([1, 64, 80, 16])], mode="linear")
    boxes = np.sort(RNG.uniform(0, 50, (40, 2, 2)).astype(F), axis=1).reshape(40, 4)
    for mode in ("avg", "max"):
        yield f"RoiAlign {mode}", cell("RoiAlign", [some(F, 1, 32, 50, 50), boxes, np.zeros(40, L)], output_height=7,
                                       output_width=7, sampling_ratio=2, mode=mode)


def pools():
    for words, attrs in (("3x3", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
                         ("2x2", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                         ("dilated", {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2] * 4}),
                         ("5x5", {"kernel_shape": [5, 5], "pads": [2] * 4})):
        for op in ("MaxPool", "AveragePool"):
            yield f"{op} {words}", cell(op, [some(F, 1, 32, 56, 56)], opset=20, **attrs)
        for t in (D, np.uint8, np.int8):
            yield f"MaxPool {words} {np.dtype(t).name}", cell("MaxPool", [some(t, 1, 32, 56, 56)], **attrs)
        yield f"MaxPool {words} indices", cell("MaxPool", [some(F, 1, 32, 56, 56)], [F, L], **attrs)
        if "dilations" not in attrs:
            yield f"LpPool {words}", cell("LpPool", [some(F, 1, 32, 56, 56)], **attrs)
    for op in ("MaxPool", "AveragePool"):
        yield f"{op} 3-D", cell(op, [some(F, 1, 8, 16, 28, 28)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
        yield f"{op} 1-D", cell(op, [some(F, 1, 64, 800)], kernel_shape=[3], strides=[2])
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        for shape in ((1, 256, 14, 14), (1, 512, 7, 7), (1, 32, 112, 112)):
            yield f"{op} {shape}", cell(op, [some(F, *shape)])


def norms():
    for shape in ((1, 64, 56, 56), (2, 256, 14, 14), (1, 32, 8, 16, 16)):
        c = shape[1]
        scale, bias, words = some(F, c), some(F, c), "x".join(map(str, shape))
        x = some(F, *shape)
        yield f"InstanceNormalization {words}", cell("InstanceNormalization", [x, scale, bias])
        yield f"GroupNormalization {words}", cell("GroupNormalization", [x, scale, bias], opset=21, num_groups=8)
        if len(shape) == 4:
            yield f"LRN {words}", cell("LRN", [x], size=5)
        yield f"BatchNormalization {words}", cell("BatchNormalization", [x, scale, bias, bias, abs(scale)])
    for t in (F, D, H):
        for shape in ((128, 768), (512, 64), (16, 4096)):
            words = f"{np.dtype(t).name} {shape}"
            x, scale, bias = some(t, *shape), some(t, shape[1]), some(t, shape[1])
            yield f"LayerNormalization {words}", cell("LayerNormalization", [x, scale, bias])
            if t is not H:
                yield f"RMSNormalization {words}", cell("RMSNormalization", [x, scale], opset=23)
    for t in (F, D):
        for axis, shape in ((-1, (128, 512)), (1, (4, 100, 64)), (0, (64, 256)), (1, (1, 21, 64, 64)), (-1, (4096, 8))):
            for op in ("Softmax", "LogSoftmax"):
                yield f"{op} {axis} of {shape} {np.dtype(t).name}", cell(op, [some(t, *shape)], axis=axis)
    yield "LpNormalization", cell("LpNormalization", [some(F, 64, 512)])
    yield "LpNormalization 1", cell("LpNormalization", [some(F, 4, 100, 64)], axis=1)


FAMILIES = (products, moves, pools, norms)


def cases():
    return {f"{family.__name__}: {name}": made for family in FAMILIES for name, made in family()}
