"""Cells of `scripts/bench kernels`: operators on elements, comparisons, reductions, scans and what is picked along an
axis, by operator, type and shape, each a model of one node."""
import numpy as np

REALS = "float32 float64"
WHOLE = "int8 uint8 int32 int64"
FLAT, SMALL = (256, 1024), (64, 512)
PAIRS = {"flat": (FLAT, FLAT), "number": (FLAT, ()), "row": (FLAT, (1024,)), "column": (FLAT, (256, 1)),
         "middle": ((16, 32, 512), (16, 1, 512)), "channel": ((2, 64, 28, 28), (1, 64, 1, 1)), "narrow": ((65536, 3), (3,))}
AXES = {"inner": (256, 1024, (1,)), "outer": (256, 1024, (0,)), "middle": (16, 64, 256, (1,)), "ends": (16, 64, 256, (0, 2)),
        "short": (16384, 8, (1,)), "all": (256, 1024, (0, 1))}
# operator: the types that ONNX Runtime has too
UNARY = {"Abs": f"{REALS} {WHOLE}", "Neg": "float32 float64 int8 int32 int64", "Sign": f"{REALS} {WHOLE}",
         "Relu": "float32 float64 int8 int32", "Floor": REALS, "Ceil": REALS, "Round": REALS, "Reciprocal": REALS,
         "Sqrt": REALS, "Exp": REALS, "Log": REALS, "Tanh": REALS, "Sigmoid": REALS, "Erf": "float32", "Sin": REALS, "Cos": REALS,
         "Tan": "float32", "Asin": "float32", "Acos": "float32", "Atan": "float32", "Sinh": "float32", "Cosh": "float32",
         "Asinh": "float32", "Acosh": "float32", "Atanh": "float32", "Elu": "float32", "Selu": "float32", "Celu": "float32",
         "Softplus": "float32", "Softsign": "float32", "HardSigmoid": "float32", "HardSwish": "float32",
         "LeakyRelu": "float32", "Mish": "float32", "ThresholdedRelu": "float32", "IsNaN": "float32", "IsInf": "float32",
         "Not": "bool", "BitwiseNot": "int32 uint8"}
BINARY = {"Add": f"{REALS} int32 int64", "Sub": "float32 int64", "Mul": f"{REALS} int32 int64", "Div": f"{REALS} int32 int64",
          "Max": f"{REALS} {WHOLE}", "Min": f"float32 {WHOLE}", "Equal": f"{REALS} bool {WHOLE}", "Greater": f"{REALS} {WHOLE}",
          "LessOrEqual": f"float32 {WHOLE}", "And": "bool", "Xor": "bool", "Pow": f"{REALS} int32 int64", "Mod": "int8 int32 int64",
          "PRelu": REALS, "BitwiseAnd": "int32 uint8", "BitShift": "uint8 uint32"}
REDUCE = {"ReduceSum": f"{REALS} int32 int64", "ReduceMean": f"{REALS} int32", "ReduceMax": f"{REALS} {WHOLE}",
          "ReduceMin": f"{REALS} {WHOLE}", "ReduceProd": "float32 int32", "ReduceL1": "float32 int32", "ReduceL2": "float32",
          "ReduceSumSquare": f"{REALS}", "ReduceLogSum": "float32", "ReduceLogSumExp": REALS}
ALONG = {"ArgMax": f"{REALS} int8 int32", "ArgMin": "float32 int32", "CumSum": f"{REALS} int32 int64",
         "Softmax": REALS, "Hardmax": "float32", "LpNormalization": "float32"}
COMPARES = "IsNaN IsInf Not Equal Greater LessOrEqual And Xor".split()
RNG = np.random.default_rng(3)


def values(op, dtype, *shape):
    """Numbers that every operator takes."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return RNG.integers(0, 2, shape).astype(bool)
    low, high = (1, 7) if op in ("Log", "Acosh", "Sqrt", "Pow", "Div", "Mod", "ReduceLogSum", "Reciprocal", "BitShift") else (-3, 3)
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
        for dtype in types.split():
            shaped(op, dtype, "flat", FLAT)
    for op, types in BINARY.items():
        attrs = {"direction": "LEFT"} if op == "BitShift" else {}
        for dtype in types.split():
            for where in PAIRS if dtype == "float32" or op == "Equal" else ("flat", "middle"):
                if where != "number" or op != "PRelu":
                    shaped(op, dtype, where, *PAIRS[where], **attrs)
    for op, types in REDUCE.items():
        for dtype in types.split():
            for where, (*shape, axes) in AXES.items():
                add(f"{op}_{dtype}_{where}", op, {"x": values(op, dtype, *shape)}, dtype, [constant("axes", axes, np.int64)])
    for op, types in ALONG.items():
        for dtype in types.split():
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
            add(f"Where_{dtype}_{where}", "Where", {"c": values("", bool, *a), "x": values("", dtype, *a), "z": values("", dtype, *b)},
                dtype)
    for dtype in f"{REALS} {WHOLE}".split():
        ends = [constant("low", 1, dtype), constant("high", 2, dtype)]
        add(f"Clip_{dtype}", "Clip", {"x": values("", dtype, *FLAT)}, dtype, ends)
    add("MeanVarianceNormalization", "MeanVarianceNormalization", {"x": values("", "float32", 4, 16, 64, 64)}, np.float32)
    add("EyeLike", "EyeLike", {"x": values("", "float32", 512, 512)}, np.float32)
    return found
