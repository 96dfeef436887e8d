"""A run's deadline and cancellation hold inside a step, on cpu, for every operator: each with the largest instance that is
cheap to hold, under a deadline; and planning has a limit. What takes how long is printed. No time decides but
a guard that is many times what is promised (docs/threading.md). HEDDLE_TEST_SCALE above 1: larger instances.

labels: python
timeout: 900
"""

import os
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import heddle

SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))
GUARD = 10.0  # seconds; 0.2 are promised on an idle machine
OPSET = min(onnx.defs.onnx_opset_version(), 26)
F, I64, I32, U8, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL
LONG = SCALE > 1  # by hand: larger, with the deadline of a second
M = 1 << (20 if LONG else 17)
DEADLINE = 1.0 if LONG else 0.1


class Known:
    """An operand whose bytes the model has."""

    def __init__(self, array):
        self.array = np.asarray(array)


def x(*shape, type=F):
    return (type, shape)


def k(*numbers, type=np.int64):
    return Known(np.array(numbers, type))


def rows(n):
    """A matrix with long rows of about n elements."""
    return x(4, max(1, n // 4))


SIDE = max(16, int((16 * M) ** 0.5) // 16 * 16)  # of a square of 16 M elements
UNARY = ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN "
         "LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
         "ThresholdedRelu").split()
BINARY = "Add Div Mul Sub Pow Equal Greater GreaterOrEqual Less LessOrEqual PRelu Max Mean Min Sum".split()
REDUCE = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
BIG = 48 * M

# operator: attributes, operands, number of results
HUGE = {
    **{op: ({}, [x(BIG)], 1) for op in UNARY},
    **{op: ({}, [x(BIG // 2), x(BIG // 2)], 1) for op in BINARY},
    **{"Reduce" + op: ({"keepdims": 0}, [x(64, BIG // 64)], 1) for op in REDUCE},
    **{op: ({}, [x(BIG, type=B), x(BIG, type=B)], 1) for op in ("And", "Or", "Xor")},
    **{op: ({}, [x(BIG // 2, type=I32), x(BIG // 2, type=I32)], 1) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod")},
    "BitShift": ({"direction": "LEFT"}, [x(BIG // 2, type=U8), x(BIG // 2, type=U8)], 1),
    "BitwiseNot": ({}, [x(BIG, type=I32)], 1),
    "Not": ({}, [x(BIG, type=B)], 1),
    **{op: ({"axis": 1}, [rows(BIG)], 1) for op in ("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "Softmax", "LpNormalization")},
    "Attention": ({}, [x(1, 8, SIDE, 64)] * 3, 1),
    "AveragePool": ({"kernel_shape": [257, 257], "pads": [128] * 4}, [x(1, 1, 2048, 2048)], 1),
    "MaxPool": ({"kernel_shape": [257, 257], "pads": [128] * 4}, [x(1, 1, 2048, 2048)], 1),
    "LpPool": ({"kernel_shape": [257, 257], "pads": [128] * 4}, [x(1, 1, 2048, 2048)], 1),
    "BatchNormalization": ({}, [x(1, 4, BIG // 4)] + [x(4)] * 4, 1),
    "InstanceNormalization": ({}, [x(1, 4, BIG // 4), x(4), x(4)], 1),
    "GroupNormalization": ({"num_groups": 1}, [x(1, 4, BIG // 4), x(4), x(4)], 1),
    "LayerNormalization": ({}, [rows(BIG), x(BIG // 4)], 1),
    "RMSNormalization": ({}, [rows(BIG), x(BIG // 4)], 1),
    "MeanVarianceNormalization": ({}, [x(1, 1, 1024, BIG // 1024)], 1),
    "LRN": ({"size": 65}, [x(1, 512, 256, 256)], 1),
    "Cast": ({"to": TensorProto.FLOAT16}, [x(BIG)], 1),
    "CastLike": ({}, [x(BIG), x(1, type=TensorProto.FLOAT16)], 1),
    "Clip": ({}, [x(BIG), k(0, type=np.float32).array.reshape(()), k(1, type=np.float32).array.reshape(())], 1),
    "Col2Im": ({}, [x(1, 4096, 4096), k(127, 127), k(64, 64)], 1),
    "Concat": ({"axis": 0}, [x(BIG // 2), x(BIG // 2)], 1),
    "Compress": ({"axis": 0}, [x(SIDE, SIDE), Known(np.ones(SIDE, bool))], 1),
    "Conv": ({"kernel_shape": [15, 15]}, [x(1, 64, 1024, 1024), Known(np.zeros((64, 64, 15, 15), np.float32))], 1),
    "ConvInteger": ({"kernel_shape": [15, 15]}, [x(1, 64, 512, 512, type=U8), x(64, 64, 15, 15, type=U8)], 1),
    "ConvTranspose": ({"kernel_shape": [15, 15]}, [x(1, 64, 512, 512), x(64, 64, 15, 15)], 1),
    "DeformConv": ({"kernel_shape": [5, 5]}, [x(1, 16, 512, 512), x(16, 16, 5, 5), x(1, 50, 508, 508)], 1),
    "CumSum": ({}, [x(BIG), Known(np.int64(0))], 1),
    "CumProd": ({}, [x(BIG), Known(np.int64(0))], 1),
    "DepthToSpace": ({"blocksize": 2}, [x(1, 4, SIDE, SIDE)], 1),
    "SpaceToDepth": ({"blocksize": 2}, [x(1, 1, 2 * SIDE, 2 * SIDE)], 1),
    "DequantizeLinear": ({}, [x(BIG, type=U8), Known(np.float32(1))], 1),
    "QuantizeLinear": ({}, [x(BIG), Known(np.float32(1)), Known(np.uint8(0))], 1),
    "DynamicQuantizeLinear": ({}, [x(BIG)], 3),
    "Det": ({}, [x(2048, 2048)], 1),
    "DFT": ({}, [x(1, 1 << 17, 1)], 1),
    "STFT": ({}, [x(1, 1 << 20, 1), k(1 << 10).array.reshape(()), x(1 << 14)], 1),
    "Einsum": ({"equation": "ij,jk->ik"}, [x(4096, 4096), x(4096, 4096)], 1),
    "Expand": ({}, [x(1), k(BIG)], 1),
    "EyeLike": ({}, [x(SIDE, SIDE)], 1),
    "Gather": ({}, [x(1 << 16), x(BIG // 4, type=I64)], 1),
    "GatherElements": ({}, [x(1 << 16), x(BIG // 4, type=I64)], 1),
    "GatherND": ({}, [x(1 << 16), x(BIG // 4, 1, type=I64)], 1),
    "ScatterElements": ({}, [x(1 << 16), x(BIG // 4, type=I64), x(BIG // 4)], 1),
    "ScatterND": ({}, [x(1 << 16), x(BIG // 4, 1, type=I64), x(BIG // 4)], 1),
    "TensorScatter": ({}, [x(1, 1, 1 << 20, 16), x(1, 1, 1 << 20, 16)], 1),
    "Gemm": ({}, [x(6000, 6000), x(6000, 6000)], 1),
    "MatMul": ({}, [x(6000, 6000), x(6000, 6000)], 1),
    "MatMulInteger": ({}, [x(6000, 6000, type=U8), x(6000, 6000, type=U8)], 1),
    **{"Global" + op: ({}, [x(1, 2, BIG // 2)], 1) for op in ("AveragePool", "LpPool", "MaxPool")},
    "GridSample": ({"mode": "cubic"}, [x(1, 16, 256, 256), x(1, 1024, 1024, 2)], 1),
    "AffineGrid": ({}, [x(1, 2, 3), k(1, 1, 4096, 4096)], 1),
    "RNN": ({"hidden_size": 512}, [x(2000, 8, 512), x(1, 512, 512), x(1, 512, 512)], 1),
    "GRU": ({"hidden_size": 512}, [x(2000, 8, 512), x(1, 1536, 512), x(1, 1536, 512)], 1),
    "LSTM": ({"hidden_size": 512}, [x(2000, 8, 512), x(1, 2048, 512), x(1, 2048, 512)], 1),
    **{op + "Window": ({}, [Known(np.int64(BIG))], 1) for op in ("Blackman", "Hamming", "Hann")},
    "MaxUnpool": ({"kernel_shape": [2]}, [x(1, 1, BIG // 4), x(1, 1, BIG // 4, type=I64)], 1),
    "NegativeLogLikelihoodLoss": ({}, [x(BIG // 64, 64), x(BIG // 64, type=I64)], 1),
    "SoftmaxCrossEntropyLoss": ({}, [x(BIG // 64, 64), x(BIG // 64, type=I64)], 1),
    "OneHot": ({}, [x(BIG // 256, type=I64), Known(np.int64(256)), Known(np.array([0, 1], np.float32))], 1),
    "Pad": ({}, [x(1), k(0, BIG)], 1),
    "CenterCropPad": ({"axes": [0]}, [x(1), k(BIG)], 1),
    "QLinearConv": ({"kernel_shape": [15, 15]},
                    [x(1, 64, 512, 512, type=U8), Known(np.float32(1)), Known(np.uint8(0)), x(64, 64, 15, 15, type=U8),
                     Known(np.float32(1)), Known(np.uint8(0)), Known(np.float32(1)), Known(np.uint8(0))], 1),
    "QLinearMatMul": ({}, [x(6000, 6000, type=U8), Known(np.float32(1)), Known(np.uint8(0)), x(6000, 6000, type=U8),
                           Known(np.float32(1)), Known(np.uint8(0)), Known(np.float32(1)), Known(np.uint8(0))], 1),
    **{op: ({"shape": [BIG]}, [], 1) for op in ("RandomNormal", "RandomUniform")},
    **{op: ({}, [x(BIG)], 1) for op in ("Bernoulli", "RandomNormalLike", "RandomUniformLike")},
    "Multinomial": ({"sample_size": 1 << 12}, [x(16, 1 << 14)], 1),
    "Range": ({}, [Known(np.float32(0)), Known(np.float32(1 << 24)), Known(np.float32(1))], 1),
    "Resize": ({"mode": "cubic"}, [x(1, 1, 64, 64), None, None, k(1, 1, SIDE, SIDE)], 1),
    "ReverseSequence": ({}, [x(SIDE, SIDE), x(SIDE, type=I64)], 1),
    "RoiAlign": ({"output_height": 32, "output_width": 32, "sampling_ratio": 64},
                 [x(1, 16, 64, 64), x(64, 4), x(64, type=I64)], 1),
    "RotaryEmbedding": ({}, [x(1, 8, 1 << 15, 64), x(1, 1 << 15, 32), x(1, 1 << 15, 32)], 1),
    "Shrink": ({}, [x(BIG)], 1),
    "Slice": ({}, [x(BIG), k(0), k(BIG), k(0), k(2)], 1),
    "Split": ({"num_outputs": 2}, [x(BIG)], 2),
    "TfIdfVectorizer": ({"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
                         "ngram_indexes": list(range(4096)), "pool_int64s": list(range(4096))}, [x(16, 1 << 17, type=I64)], 1),
    "Tile": ({}, [x(1 << 10), k(BIG >> 10)], 1),
    "TopK": ({}, [x(BIG // 4), k(BIG // 8)], 2),
    "Transpose": ({}, [x(SIDE, SIDE)], 1),
    "Trilu": ({}, [x(SIDE, SIDE)], 1),
    "SwiGLU": ({}, [rows(BIG)], 1),
    "Where": ({}, [x(BIG // 2, type=B), x(BIG // 2), x(BIG // 2)], 1),
}

# Those without work of their own that grows, and those whose result is known before the run, by a plan that bounds it.
SMALL = {"BitCast", "Constant", "ConstantOfShape", "Dropout", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze",
         "Unsqueeze", "MelWeightMatrix", "NonMaxSuppression", "NonZero", "Unique", "If", "Loop", "Scan",
         "CausalConvWithState", "LinearAttention", "Upsample", "ReduceLogSumExp"}


def model(op, attributes, operands, results):
    ins, infos, constants = [], [], []
    for i, v in enumerate(operands):
        name = f"x{i}"
        if isinstance(v, np.ndarray):
            v = Known(v)
        ins.append(name if v is not None else "")
        if isinstance(v, Known):
            constants.append(onnx.numpy_helper.from_array(v.array, name))
        elif v is not None:
            infos.append(helper.make_tensor_value_info(name, v[0], v[1]))
    outs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, ins, outs, **attributes)
    graph = helper.make_graph([node], "huge", infos, [onnx.ValueInfoProto(name=o) for o in outs], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    for o, found in zip(made.graph.output, onnx.shape_inference.infer_shapes(made).graph.output):
        o.type.tensor_type.elem_type = found.type.tensor_type.elem_type or F
    return made


def inputs_of(m):
    """Zeros, which take no memory until they are written."""
    for i in m.graph.input:
        t = i.type.tensor_type
        yield i.name, np.zeros([d.dim_value for d in t.shape.dim], helper.tensor_dtype_to_np_dtype(t.elem_type))


def listed():
    """The operators of docs/operators.md."""
    import pathlib
    import re
    text = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "operators.md").read_text()
    return set(re.findall(r"^\| ([A-Z]\w+) \|", text, re.M)) & {s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}


def known_to_onnx(op):
    try:
        return onnx.defs.get_schema(op, OPSET) is not None
    except onnx.defs.SchemaError:
        return False


def test_every_operator_is_here():
    assert listed() - set(HUGE) - SMALL == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("huge")


@pytest.mark.parametrize("op", sorted(op for op in HUGE if known_to_onnx(op)))
def test_a_deadline_holds(folder, op, capsys):
    m = model(op, *HUGE[op])
    path = folder / "m.onnx"
    onnx.save(m, path)
    loaded = heddle.load(str(path), devices="cpu", optimize="off")
    ex = loaded.executor()
    for name, value in inputs_of(m):
        ex.bind_input(name, value)
    ex.start()
    late = False
    began = time.monotonic()
    try:
        ex.wait(timeout=DEADLINE)
    except heddle.errors.RunTimeoutError:
        late = True
    waited = time.monotonic() - began
    ended = began
    if late:
        began = time.monotonic()
        ex.cancel()
        stopped = False  # it may have ended just before
        try:
            ex.wait()
        except heddle.Error:
            stopped = True
        ended = time.monotonic()
        if stopped:
            with pytest.raises(heddle.Error):  # what a stopped run has written is not an output
                ex.get_output(0)
    with capsys.disabled():
        print(f"\n{op}: waited {waited:.3f} s, cancelled in {ended - began:.3f} s" if late else f"\n{op}: {waited:.3f} s",
              end="")
    assert waited < DEADLINE + GUARD and ended - began < GUARD
    ex.close() if hasattr(ex, "close") else None
    loaded.close()


def run_of(folder, op, attributes, operands, results=1, **options):
    m = model(op, attributes, operands, results)
    path = folder / "m.onnx"
    onnx.save(m, path)
    loaded = heddle.load(str(path), devices="cpu", **options)
    return loaded, dict(inputs_of(m))


def test_a_stopped_executor_runs_again(folder):
    """What was cancelled in the middle of a kernel leaves an executor that gives right results."""
    m, values = run_of(folder, "CumSum", {}, [x(BIG // 4), Known(np.int64(0))])
    ex = m.executor()
    ones = np.ones_like(values["x0"])
    ex.set_input("x0", ones)
    for _ in range(3):
        ex.start()
        threading.Timer(0.05, ex.cancel).start()
        try:
            ex.wait()
        except heddle.Error:
            pass
    time.sleep(0.1)
    ex.run()
    y = np.from_dlpack(ex.get_output(0))
    assert y[9] == 10 and y[-1] == min(len(y), 1 << 24)


@pytest.mark.parametrize("op,more", [("MaxPool", {}), ("AveragePool", {}), ("LpPool", {}),
                                     ("AveragePool", {"count_include_pad": 1})])
@pytest.mark.parametrize("huge", [1 << 20, 1 << 30])
def test_pools_loop_over_what_meets_the_image(folder, op, more, huge):
    pad = huge - 1
    m, values = run_of(folder, op, {"kernel_shape": [huge], "pads": [pad, pad // 2], "strides": [huge // 4], **more},
                       [x(1, 1, 7)])
    values["x0"][:] = np.arange(1, 8)
    y = np.from_dlpack(m.run(values, timeout=GUARD)["y0"]).ravel()
    out = (7 + pad + pad // 2 - huge) // (huge // 4) + 1
    want = []
    for i in range(out):
        low = i * (huge // 4) - pad
        inside = [v for j, v in enumerate(range(1, 8)) if low <= j < low + huge]
        padded = min(low + huge, 7 + pad // 2) - low
        if op == "MaxPool":
            want.append(max(inside))
        elif op == "LpPool":
            want.append(float(np.sqrt(sum(v * v for v in inside))))
        else:
            want.append(sum(inside) / (padded if more else len(inside)))
    np.testing.assert_allclose(y, np.array(want, np.float32), rtol=1e-5)


def test_tables_are_in_the_memory_figures(folder):
    import json
    m, values = run_of(folder, "Resize", {"mode": "cubic", "antialias": 1}, [x(1 << 20), None, None, k(1 << 14)])
    taken = json.loads(m.explain("json"))["memory"] if "memory" in json.loads(m.explain("json")) else None
    text = m.explain("text")
    assert taken is None or taken
    numbers = [int(w) for w in text.replace(",", " ").split() if w.isdigit()]
    assert max(numbers) > (1 << 14) * 200, text
    with pytest.raises(heddle.Error, match="more than its limit"):
        run_of(folder, "Resize", {"mode": "cubic", "antialias": 1}, [x(1 << 20), None, None, k(1 << 14)],
               memory="cpu:0=5MiB")[0].executor()


PLANNED = ("Resize", {"mode": "cubic", "antialias": 1}, [x(1 << 20), None, None, k((1 << 25) - 1)])


def test_a_plan_has_a_limit(folder):
    """plan_timeout of a model, as HEDDLE_LIMIT_PLAN_SECONDS: a plan past it names its node; one without is made."""
    began = time.monotonic()
    m, _ = run_of(folder, *PLANNED, plan_timeout=0.05)
    with pytest.raises(heddle.errors.RunTimeoutError, match="y0|Resize"):
        m.executor()
    assert time.monotonic() - began < GUARD
    m, _ = run_of(folder, "Relu", {}, [x(4)], plan_timeout=float("inf"))
    m.executor()
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="number of seconds"):
            run_of(folder, "Relu", {}, [x(4)], plan_timeout=wrong)
