"""Cells of `scripts/bench kernels`: operators on elements, comparisons, reductions, scans and what is picked along an
axis, by operator, type and shape, each a model of one node."""
import numpy as np

REALS = "float32 float64"
WHOLE = "int8 uint8 int32 int64"
FLAT = (256, 1024)
PAIRS = {"flat": (FLAT, FLAT), "number": (FLAT, ()), "row": (FLAT, (1024,)), "column": (FLAT, (256, 1)),
         "middle": ((16, 32, 512), (16, 1, 512)), "channel": ((2, 64, 28, 28), (1, 64, 1, 1)),
         "narrow": ((65536, 3), (3,))}
AXES = {"inner": (256, 1024, (1,)), "outer": (256, 1024, (0,)), "middle": (16, 64, 256, (1,)),
        "ends": (16, 64, 256, (0, 2)), "short": (16384, 8, (1,)), "all": (256, 1024, (0, 1))}


def table(*rows):
    """(types, operators): the types of each operator, which ONNX Runtime has too."""
    return {op: types.split() for types, ops in rows for op in ops.split()}


UNARY = table(
    (f"{REALS} {WHOLE}", "Abs Sign"), ("float32 float64 int8 int32 int64", "Neg"),
    ("float32 float64 int8 int32", "Relu"), (REALS, "Floor Ceil Round Reciprocal Sqrt Exp Log Tanh Sigmoid Sin Cos"),
    ("bool", "Not"), ("int32 uint8", "BitwiseNot"),
    ("float32", "Erf Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Elu Selu Celu Softplus Softsign HardSigmoid"),
    ("float32", "HardSwish LeakyRelu Mish ThresholdedRelu IsNaN IsInf"))
BINARY = table(
    (f"{REALS} int32 int64", "Add Mul Div Pow"), ("float32 int64", "Sub"), (f"{REALS} {WHOLE}", "Max Greater"),
    (f"float32 {WHOLE}", "Min LessOrEqual"), (f"{REALS} bool {WHOLE}", "Equal"), ("bool", "And Xor"),
    ("int8 int32 int64", "Mod"), (REALS, "PRelu"), ("int32 uint8", "BitwiseAnd"), ("uint8 uint32", "BitShift"))
REDUCE = table(
    (f"{REALS} int32 int64", "ReduceSum"), (f"{REALS} int32", "ReduceMean"),
    (f"{REALS} {WHOLE}", "ReduceMax ReduceMin"), ("float32 int32", "ReduceProd ReduceL1"),
    ("float32", "ReduceL2 ReduceLogSum"), (REALS, "ReduceSumSquare ReduceLogSumExp"))
ALONG = table(
    (f"{REALS} int8 int32", "ArgMax"), ("float32 int32", "ArgMin"), (f"{REALS} int32 int64", "CumSum"),
    (REALS, "Softmax"), ("float32", "Hardmax LpNormalization"))
COMPARES = "IsNaN IsInf Not Equal Greater LessOrEqual And Xor".split()
FROM_ONE = "Log Acosh Sqrt Pow Div Mod ReduceLogSum Reciprocal BitShift".split()
RNG = np.random.default_rng(3)


def values(op, dtype, *shape):
    """Numbers that every operator takes."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return RNG.integers(0, 2, shape).astype(bool)
    low, high = (1, 7) if op in FROM_ONE else (-3, 3)
    if op in ("Asin", "Acos", "Atanh"):
        low, high = -0.9, 0.9
    if op == "ReduceProd" and dtype.kind == "f":
        low, high = 0.99, 1.01
    if dtype.kind == "f":
        return RNG.uniform(low, high, shape).astype(dtype)
    return RNG.integers(max(low, np.iinfo(dtype).min, 0 if dtype.kind == "u" else -3), high, shape).astype(dtype)


def cases(model, node, constant):
    """The models by name; model, node and constant are those of kernels.py."""
    found = {}

    def add(name, op, inputs, out, constants=(), opset=18, **attrs):
        names = ",".join([*inputs, *(c.name for c in constants)])
        found[name] = model([node(op, names, "y", **attrs)], inputs, {"y": out}, constants, opset)

    def shaped(op, dtype, where, *shapes, **attrs):
        inputs = {f"x{k}": values(op, dtype, *shape) for k, shape in enumerate(shapes)}
        add(f"{op}_{dtype}_{where}", op, inputs, bool if op in COMPARES else dtype, **attrs)

    for op, types in UNARY.items():
        for dtype in types:
            shaped(op, dtype, "flat", FLAT)
    for op, types in BINARY.items():
        attrs = {"direction": "LEFT"} if op == "BitShift" else {}
        for dtype in types:
            for where in PAIRS if dtype == "float32" or op == "Equal" else ("flat", "middle"):
                if where != "number" or op != "PRelu":
                    shaped(op, dtype, where, *PAIRS[where], **attrs)
    for op, types in REDUCE.items():
        for dtype in types:
            for where, (*shape, axes) in AXES.items():
                add(f"{op}_{dtype}_{where}", op, {"x": values(op, dtype, *shape)}, dtype,
                    [constant("axes", axes, np.int64)])
    for op, types in ALONG.items():
        for dtype in types:
            for where in ("inner", "outer", "middle", "short"):
                *shape, (axis,) = AXES[where]
                x = {"x": values(op, dtype, *shape)}
                if op == "CumSum":
                    add(f"{op}_{dtype}_{where}", op, x, dtype, [constant("axis", axis, np.int64)])
                else:
                    add(f"{op}_{dtype}_{where}", op, x, np.int64 if op.startswith("Arg") else dtype, axis=axis)
    for dtype in ("float32", "int64"):
        add(f"Trilu_{dtype}", "Trilu", {"x": values("", dtype, 16, 128, 128)}, dtype, upper=1)
        add(f"OneHot_{dtype}", "OneHot", {"x": RNG.integers(0, 256, (1024,))}, dtype,
            [constant("depth", 256, np.int64), constant("values", (0, 1), dtype)])
        for where in ("flat", "middle"):
            a, b = PAIRS[where]
            inputs = {"c": values("", bool, *a), "x": values("", dtype, *a), "z": values("", dtype, *b)}
            add(f"Where_{dtype}_{where}", "Where", inputs, dtype)
    for dtype in f"{REALS} {WHOLE}".split():
        ends = [constant("low", 1, dtype), constant("high", 2, dtype)]
        add(f"Clip_{dtype}", "Clip", {"x": values("", dtype, *FLAT)}, dtype, ends)
    for op, shape in (("MeanVarianceNormalization", (4, 16, 64, 64)), ("EyeLike", (512, 512))):
        add(op, op, {"x": values(op, "float32", *shape)}, np.float32)
    return found
