"""What the table of expansions needs around it: models of older opsets, graphs inside of nodes, functions, tensors of 4 and 2
bits, malformed nodes; and operators that ONNX Runtime has no CPU kernel for, against numpy.
timeout: 600
"""
import re

import numpy as np
import onnx_files as files
import pytest
import tool_case
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_onnx_microsoft import F32, MS, floats, judge, model, node, numbers, packed, quanta, typed

RNG = np.random.default_rng(22)


def run(tmp_path, proto, inputs):
    return files.run(files.save(tmp_path, proto), inputs)


def like_ort(tmp_path, proto, inputs, key=""):
    got = run(tmp_path, proto, inputs)
    judge(got, files.expected(proto, inputs), key)
    return got


def onnx_node(op, inputs, outputs, **attrs):
    return helper.make_node(op, list(inputs), list(outputs), **attrs)


def test_the_document_lists_the_table():
    """docs/onnx.md has a row for each operator of com.microsoft that the reader replaces, and for no other."""
    with open(tool_case.SOURCE / "frontends" / "onnx" / "expand.c") as f:
        table = set(re.findall(r'{MS, "(\w+)"', f.read()))
    with open(tool_case.SOURCE / "docs" / "onnx.md") as f:
        part = f.read().split("## Operators of com.microsoft", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\w+) \|", part, re.M)
    assert rows[1:] == sorted(rows[1:], key=str.lower) and set(rows[1:]) == table and rows[0] == "operator"


# ---- models around a fusion

@pytest.mark.parametrize("opset", [9, 11, 12, 13, 16, 17, 18, 21])
def test_a_model_of_an_older_opset_is_raised(opset, tmp_path):
    split = {} if opset >= 13 else {"split": [3, 5]}
    mean = {} if opset >= 18 else {"axes": [1]}
    nodes = [node("SkipLayerNormalization", ["x", "s", "g", "b"], ["n"]),
             onnx_node("ReduceMean", ["n", "axes"] if opset >= 18 else ["n"], ["m"], keepdims=1, **mean),
             onnx_node("ReduceMax", ["n"], ["most"], keepdims=1),
             onnx_node("Split", ["n", "sizes"] if opset >= 13 else ["n"], ["p", "q"], axis=2, **split),
             onnx_node("Split", ["n"], ["h", "k"], axis=2, **({"num_outputs": 2} if opset >= 18 else {})),
             onnx_node("Softmax", ["n"], ["t"], axis=1),
             node("BiasGelu", ["t", "b"], ["u"]),
             onnx_node("LayerNormalization", ["u", "g", "b"], ["v"]),
             onnx_node("Add", ["v", "m"], ["w"]), onnx_node("Mul", ["w", "most"], ["y"]),
             onnx_node("Concat", ["q", "p", "h", "k"], ["z"], axis=2)]
    tensors = {"g": floats(8), "b": floats(8), "axes": np.array([1], np.int64), "sizes": np.array([3, 5], np.int64)}
    inputs = {"x": floats(2, 4, 8), "s": floats(2, 4, 8)}
    like_ort(tmp_path, model(nodes, inputs, tensors, typed("yz"), opset=opset), inputs)


def test_another_meaning_in_the_later_opset_is_refused(tmp_path):
    nodes = [onnx_node("GroupNormalization", ["x", "g", "b"], ["n"], num_groups=2),
             node("SkipSimplifiedLayerNormalization", ["n", "n", "w"], ["y"])]
    proto = model(nodes, {"x": floats(1, 4, 8)}, {"g": floats(2), "b": floats(2), "w": floats(8)}, opset=18)
    text = tool_case.failing(1, "info", files.save(tmp_path, proto))
    assert "GroupNormalization" in text and "another node needs operators of opset 23" in text


@pytest.mark.parametrize("uni", [0, 1])
def test_a_layer_of_bert(uni, tmp_path):
    """The lengths that EmbedLayerNormalization counts are the mask of Attention."""
    d, n = 12, 3
    tables = {"w": floats(11, d), "q": floats(6, d), "r": floats(2, d), "g": floats(d), "b": floats(d), "p": floats(d, 3 * d),
              "c": floats(3 * d)}
    inputs = {"i": np.array([[3, 1, 2, 0, 0], [5, 6, 7, 8, 9]], np.int32), "t": np.zeros((2, 5), np.int32),
              "m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)}
    nodes = [node("EmbedLayerNormalization", "itwqrgbm", ("x", "l")),
             node("Attention", ["x", "p", "c", "l"], ["a"], num_heads=n, unidirectional=uni),
             node("SkipLayerNormalization", ["a", "x", "g", "b", "g"], ["s"]), node("BiasGelu", ["s", "b"])]
    like_ort(tmp_path, model(nodes, inputs, tables, opset=11), inputs)


def test_inside_of_branches_and_functions(tmp_path):
    gelu = [node("BiasGelu", ["x", "b"], ["inner"])]
    other = [onnx_node("Add", ["x", "b"], ["outer"])]
    out = helper.make_tensor_value_info
    branch = onnx_node("If", ["c"], ["t"], then_branch=helper.make_graph(gelu, "a", [], [out("inner", 1, None)]),
                       else_branch=helper.make_graph(other, "b", [], [out("outer", 1, None)]))
    call = helper.make_node("Twice", ["t", "b"], ["y"], domain="my")
    inputs = {"x": floats(2, 8), "c": np.array(True)}
    proto = model([branch, call], inputs, {"b": floats(8)})
    proto.opset_import.append(helper.make_opsetid("my", 1))
    proto.functions.append(helper.make_function(
        "my", "Twice", ["p", "q"], ["r"], [node("BiasGelu", ["p", "q"], ["s"]), node("BiasGelu", ["s", "q"], ["r"])],
        [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]))
    for c in (True, False):
        like_ort(tmp_path, proto, inputs | {"c": np.array(c)})


def test_control_flow_in_a_function(tmp_path):
    out = helper.make_tensor_value_info
    add = helper.make_graph([onnx_node("Add", ["p", "one"], ["a"])], "a", [], [out("a", 1, None)],
                            [numpy_helper.from_array(np.ones(1, F32), "one")])
    sub = helper.make_graph([onnx_node("Neg", ["p"], ["n"])], "b", [], [out("n", 1, None)])
    body = helper.make_graph(
        [onnx_node("Identity", ["go"], ["on"]), onnx_node("Add", ["sum", "p"], ["next"])], "body",
        [out("i", 7, []), out("go", 9, []), out("sum", 1, None)], [out("on", 9, []), out("next", 1, None)])
    nodes = [onnx_node("If", ["c"], ["f"], then_branch=add, else_branch=sub),
             onnx_node("Constant", [], ["three"], value=helper.make_tensor("t", 7, [], [3])),
             onnx_node("Loop", ["three", "", "f"], ["r"], body=body)]
    inputs = {"x": floats(2, 8), "c": np.array(True)}
    calls = [helper.make_node("Choose", ["x", "c"], ["u"], domain="my"), helper.make_node("Choose", ["u", "c"], ["y"], domain="my")]
    proto = model(calls, inputs)
    proto.opset_import.append(helper.make_opsetid("my", 1))
    proto.functions.append(helper.make_function("my", "Choose", ["p", "c"], ["r"], nodes, [helper.make_opsetid("", 17)]))
    for c in (True, False):
        like_ort(tmp_path, proto, inputs | {"c": np.array(c)})


# ---- numbers of few bits

def few_bits(name, q, kind, raw):
    bits = 4 if kind in (TensorProto.INT4, TensorProto.UINT4) else 2
    data = packed((q & (2 ** bits - 1)).reshape(-1), bits)
    t = TensorProto(name=name, data_type=kind, dims=q.shape)
    if raw:
        t.raw_data = data.tobytes()
    else:
        t.int32_data.extend(int(x) for x in data)
    return t


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("form", ["tensor", "axis", "block", "transpose", "gather"])
def test_weights_of_four_bits(kind, form, raw, tmp_path):
    low = -8 if kind == "INT4" else 0
    q = RNG.integers(low, low + 16, (32, 6))
    shape = {"tensor": (), "axis": (6,), "block": (2, 6), "transpose": (6,), "gather": (6,)}[form]
    s, z = np.abs(floats(*shape)) + F32(0.1), RNG.integers(low, low + 16, shape)
    attrs = {"block": {"axis": 0, "block_size": 16}, "tensor": {}}.get(form, {"axis": 1})
    inputs = {"x": floats(3, 32)}
    nodes = [onnx_node("DequantizeLinear", ["q", "s", "z"], ["w"], **attrs), onnx_node("MatMul", ["x", "w"], ["y"])]
    if form == "transpose":
        q = q.T.copy()
        nodes.insert(0, onnx_node("Transpose", ["q"], ["qt"]))
        nodes[1].input[0] = "qt"
    if form == "gather":
        nodes = [onnx_node("Gather", ["q", "i"], ["r"], axis=0), onnx_node("DequantizeLinear", ["r", "s", "z"], ["y"], axis=1)]
        inputs = {"i": np.array([3, 0, 31], np.int64)}
    proto = model(nodes, inputs, {"s": s}, opset=21)
    kind = getattr(TensorProto, kind)
    proto.graph.initializer.extend([few_bits("q", q, kind, raw), few_bits("z", z, kind, raw)])
    if form == "gather":
        judge(run(tmp_path, proto, inputs), [((q - z) * s)[inputs["i"]].astype(F32)], "")
    else:
        like_ort(tmp_path, proto, inputs)


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2)])
def test_gather_of_four_bits(kind, axes, tmp_path):
    low = -8 if kind == "INT4" else 0
    shape = [5, 32, 32]
    q = RNG.integers(low, low + 16, shape)
    shape[axes[1]] = -(-shape[axes[1]] // 16)
    z = RNG.integers(low, low + 16, shape)
    for with_zero in (False, True):
        inputs = {"i": np.array([[3, 0], [4, 1]], np.int64)}
        names = ["q", "i", "s"] + ["z"] * with_zero
        proto = model([node("GatherBlockQuantized", names, gather_axis=axes[0], quantize_axis=axes[1], block_size=16)], inputs,
                      {"s": floats(*shape)}, opset=21)
        proto.graph.initializer.extend([few_bits("q", q, getattr(TensorProto, kind), True)]
                                       + [few_bits("z", z, getattr(TensorProto, kind), True)] * with_zero)
        like_ort(tmp_path, proto, inputs)


def test_two_bits(tmp_path):
    for kind, low in (("INT2", -2), ("UINT2", 0)):
        q = RNG.integers(low, low + 4, (3, 7))
        proto = model([onnx_node("DequantizeLinear", ["q", "s"], ["y"])], {}, {"s": F32(0.5)}, opset=25)
        proto.graph.initializer.append(few_bits("q", q, getattr(TensorProto, kind), True))
        judge(run(tmp_path, proto, {}), [(q * 0.5).astype(F32)], "")


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT2", "UINT2"])
def test_values_of_few_bits(kind, tmp_path):
    """Made by QuantizeLinear and moved before they are dequantised."""
    to = getattr(TensorProto, kind)
    x = {"x": floats(3, 7, scale=3.0)}
    nodes = [onnx_node("QuantizeLinear", ["x", "s", "z"], "q"), onnx_node("Transpose", "q", "t"), onnx_node("Slice", ["t", "a", "b"], "u"),
             onnx_node("DequantizeLinear", ["u", "s", "z"], "y"), onnx_node("Cast", "u", "w", to=TensorProto.INT32)]
    proto = model(nodes, x, {"s": F32(0.7), "a": np.array([1], np.int64), "b": np.array([6], np.int64)},
                  {"y": (F32, None), "w": (np.int32, None)}, opset=25)
    proto.graph.initializer.append(few_bits("z", np.array([1]).reshape(()), to, True))
    low, high = (-8, 7) if kind == "INT4" else (0, 15) if kind == "UINT4" else (-2, 1) if kind == "INT2" else (0, 3)
    q = np.clip(np.rint(x["x"] / F32(0.7)) + 1, low, high).T[1:6]
    judge(run(tmp_path, proto, x), [((q - 1) * F32(0.7)).astype(F32), q.astype(np.int32)], "")


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_float8(kind, saturate, tmp_path):
    """Every number of the type, those between two, and those that are too large, through the type and back."""
    to = getattr(TensorProto, kind)
    every = np.arange(256, dtype=np.uint8).view(helper.tensor_dtype_to_np_dtype(to)).astype(F32)
    every = np.sort(every[np.isfinite(every)])
    x = np.concatenate([every, (every[1:] + every[:-1]) / 2, np.nextafter((every[1:] + every[:-1]) / 2, F32(np.inf)),
                        floats(500) * F32(100), np.array([1e6, -1e6, np.inf, -np.inf, np.nan, -0.0, 464, 480, 250], F32)]).astype(F32)
    nodes = [onnx_node("Cast", "x", "e", to=to, saturate=saturate), onnx_node("Cast", "e", "y", to=1)]
    proto = model(nodes, {"x": x}, opset=19)
    want = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_array_equal(run(tmp_path, proto, {"x": x})[0], want[0])
    q = [onnx_node("QuantizeLinear", ["x", "s", "z"], "e", saturate=saturate), onnx_node("DequantizeLinear", ["e", "s", "z"], "y")]
    proto = model(q, {"x": x}, {"s": F32(0.5)}, opset=19)
    proto.graph.initializer.append(TensorProto(name="z", data_type=to, int32_data=[0]))
    got = run(tmp_path, proto, {"x": x})[0]
    np.testing.assert_array_equal(got, ReferenceEvaluator(proto).run(None, {"x": x})[0])


# ---- what ONNX Runtime has on other processors only

def erf_gelu(x):
    from math import erf
    return (0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2.0)))).astype(F32)


def test_against_numpy(tmp_path):
    x, b, skip = floats(2, 5, 8), floats(8), floats(2, 5, 8)
    got = run(tmp_path, model([node("BiasAdd", "xbs")], {"x": x, "s": skip}, {"b": b}), {"x": x, "s": skip})
    judge(got, [x + b + skip], "")
    got = run(tmp_path, model([node("BiasSplitGelu", "xb")], {"x": x}, {"b": b}), {"x": x})
    judge(got, [(x + b)[..., :4] * erf_gelu((x + b)[..., 4:])], "Gelu")
    for axis, shape in ((2, (1, 5, 8)), (1, (5, 8))):
        bias = floats(*shape)
        got = run(tmp_path, model([node("BiasSoftmax", "xb", axis=axis)], {"x": x}, {"b": bias}), {"x": x})
        z = (x + bias).reshape(-1, int(np.prod(x.shape[axis:])))
        z = np.exp(z - z.max(1, keepdims=True))
        judge(got, [(z / z.sum(1, keepdims=True)).reshape(x.shape).astype(F32)], "")


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("silu", [0, 1])
def test_group_norm(last, silu, tmp_path):
    x, g, b = floats(2, 6, 3, 4), floats(6), floats(6)
    z = x.reshape(2, 3, -1).astype(np.float64)
    z = ((z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True) + 1e-3)).reshape(x.shape)
    z = z * g[:, None, None] + b[:, None, None]
    z = (z / (1 + np.exp(-z)) if silu else z).astype(F32)
    x, z = ((t.transpose(0, 2, 3, 1).copy() if last else t) for t in (x, z))
    n = node("GroupNorm", "xgb", groups=3, epsilon=1e-3, channels_last=last, activation=silu)
    judge(run(tmp_path, model([n], {"x": x}, {"g": g, "b": b}), {"x": x}), [z], "")


def test_channels_last(tmp_path):
    x, w, b, z = floats(2, 4, 6, 6), floats(8, 2, 3, 3), floats(8), floats(2, 8, 6, 6)
    attrs = {"group": 2, "pads": [1, 1, 1, 1], "strides": [1, 1]}
    like = model([onnx_node("Conv", "xwb", "c", **attrs), onnx_node("Add", "cz", "s"), onnx_node("Relu", "s", "y")],
                 {"x": x, "z": z}, {"w": w, "b": b})
    want = files.expected(like, {"x": x, "z": z})[0].transpose(0, 2, 3, 1)
    x, z = (t.transpose(0, 2, 3, 1).copy() for t in (x, z))
    got = run(tmp_path, model([node("NhwcFusedConv", "xwbz", activation="Relu", **attrs)], {"x": x, "z": z}, {"w": w, "b": b}),
              {"x": x, "z": z})
    judge(got, [want], "")
    got = run(tmp_path, model([node("NhwcConv", "xwb", "c", **attrs), onnx_node("Add", "cz", "s"), onnx_node("Relu", "s", "y")],
                              {"x": x, "z": z}, {"w": w, "b": b}), {"x": x, "z": z})
    judge(got, [want], "")


def test_mean_of_quantised(tmp_path):
    x = numbers(np.uint8, 2, 3, 4)
    t = quanta(("x", 0.02, np.uint8(9)), ("y", 0.03, np.uint8(4)))
    n = node("QLinearReduceMean", ["x", "xs", "xz", "ys", "yz"], axes=[1, 2], keepdims=0)
    want = np.clip(np.rint(((x.astype(F32) - 9) * F32(0.02)).mean((1, 2)) / F32(0.03)) + 4, 0, 255).astype(np.uint8)
    judge(run(tmp_path, model([n], {"x": x}, t, typed("y", np.uint8)), {"x": x}), [want], "")


def test_queries_padded_at_the_end(tmp_path):
    """A prompt of rows of several lengths: what each row's own tokens get is what it gets alone."""
    n, kv, h, s = 4, 2, 16, 6
    x = {"q": floats(2, s, n * h), "k": floats(2, s, kv * h), "v": floats(2, s, kv * h)}

    def step(values, lengths):
        inputs = values | {"n": np.array(lengths, np.int32) - 1, "t": np.array(values["q"].shape[1], np.int32)}
        g = node("GroupQueryAttention", ["q", "k", "v", "", "", "n", "t"], ("y", "k1", "v1"), num_heads=n, kv_num_heads=kv)
        return run(tmp_path, model([g], inputs, {}, typed(("y", "k1", "v1"))), inputs)
    both = step(x, [4, 6])
    alone = step({k: v[:1, :4] for k, v in x.items()}, [4])
    judge([both[0][:1, :4]], [alone[0]], "")


def test_norms_of_queries_and_keys(tmp_path):
    n, kv, h, s = 4, 2, 16, 5
    x = {"q": floats(1, s, n * h), "k": floats(1, s, kv * h), "v": floats(1, s, kv * h)}
    w = {"a": floats(h), "b": floats(h)}
    count = {"n": np.array([s - 1], np.int32), "t": np.array(s, np.int32)}

    def normal(t, g):
        t = t.reshape(1, s, -1, h)
        return (t / np.sqrt((t * t).mean(-1, keepdims=True) + F32(1e-6)) * g).reshape(1, s, -1).astype(F32)
    rest = ["", "", "n", "t"]
    plain = model([node("GroupQueryAttention", ["q", "k", "v"] + rest, num_heads=n, kv_num_heads=kv)], x | count)
    want = files.expected(plain, x | count | {"q": normal(x["q"], w["a"]), "k": normal(x["k"], w["b"])})
    names = ["q", "k", "v"] + rest + [""] * 7 + ["a", "b"]
    judge(run(tmp_path, model([node("GroupQueryAttention", names, num_heads=n, kv_num_heads=kv)], x | count, w), x | count), want, "")


# ---- malformed nodes

WEIGHTS = {"b": numbers(np.uint8, 4, 2, 8), "s": floats(4, 2)}
BAD = [
    ([node("MatMulNBits", "abs", K=32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)},
     {"b": numbers(np.uint8, 4, 2, 7), "s": floats(4, 2)}, "operand B has not N rows"),
    ([node("MatMulNBits", "abs", K=32, N=5, bits=4, block_size=16)], {"a": floats(2, 32)}, WEIGHTS, "operand B has not N rows"),
    ([node("MatMulNBits", "abs", K=32, N=4, bits=4, block_size=24)], {"a": floats(2, 32)}, WEIGHTS, "block_size is no power of two"),
    ([node("MatMulNBits", "abs", K=32, N=4, bits=5, block_size=16)], {"a": floats(2, 32)}, WEIGHTS, "bits is none of"),
    ([node("MatMulNBits", "abs", K=-32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)}, WEIGHTS, "K is out of range"),
    ([node("MatMulNBits", "abs", K=32, N=2 ** 40, bits=4, block_size=16)], {"a": floats(2, 32)}, WEIGHTS, "N is out of range"),
    ([node("MatMulNBits", "abs", K=32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)},
     WEIGHTS | {"s": floats(3)}, "operand scales has not a number for each block"),
    ([node("MatMulNBits", "absz", K=32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)},
     WEIGHTS | {"z": numbers(np.uint8, 3)}, "operand zero_points has not a number for each block"),
    ([node("MatMulNBits", "absi", K=32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)},
     WEIGHTS | {"i": np.zeros(32, np.int64)}, "operand zero_points is neither"),
    ([node("MatMulNBits", ["a", "b", "s", "", "i"], K=32, N=4, bits=4, block_size=16)], {"a": floats(2, 32)},
     WEIGHTS | {"i": np.full(32, 7, np.int32)}, "number 0 is 7, and there are 2 blocks"),
    ([node("MatMulNBits", "abs", K=32, N=4, block_size=16, weight_prepacked=1)], {"a": floats(2, 32)}, WEIGHTS, "CUDA"),
    ([node("GroupQueryAttention", ["q", "k", "v", "", "", "n", "t"], num_heads=-4, kv_num_heads=2)],
     {"q": floats(1, 2, 64), "k": floats(1, 2, 32), "v": floats(1, 2, 32), "n": np.array([1], np.int32), "t": np.array(2, np.int32)},
     {}, "num_heads -4"),
    ([node("GroupQueryAttention", ["q", "k", "v", "", "", "n", "t"], num_heads=4, kv_num_heads=3)],
     {"q": floats(1, 2, 64), "k": floats(1, 2, 32), "v": floats(1, 2, 32), "n": np.array([1], np.int32), "t": np.array(2, np.int32)},
     {}, "kv_num_heads 3"),
    ([node("Attention", "xw", num_heads=-2)], {"x": floats(1, 2, 4)}, {"w": floats(4, 12)}, "num_heads is -2"),
    ([node("Attention", "xw", num_heads=2, qkv_hidden_sizes=[4, 4])], {"x": floats(1, 2, 4)}, {"w": floats(4, 12)},
     "qkv_hidden_sizes"),
    ([node("Attention", "xw", num_heads=5)], {"x": floats(1, 2, 4)}, {"w": floats(4, 12)}, "Reshape"),
    ([node("MultiHeadAttention", "q", num_heads=2)], {"q": floats(1, 2, 2, 3, 4)}, {}, "packed queries"),
    ([node("Gelu", "x", speed=3)], {"x": floats(2)}, {}, "no attribute 'speed'"),
    ([node("QuickGelu", "x", alpha=3)], {"x": floats(2)}, {}, "attribute 'alpha' is of another kind"),
    ([node("BiasGelu", "x")], {"x": floats(2)}, {}, "it has 1 inputs, expected 2 to 2"),
    ([node("FusedConv", "xw", activation="Sin")], {"x": floats(1, 1, 3, 3)}, {"w": floats(1, 1, 1, 1)}, "activation 'Sin'"),
    ([node("QLinearConcat", ["s", "z", "a", "s"], axis=0)], {"a": numbers(np.uint8, 2)}, quanta(("", 1, np.uint8(0))),
     "not two and three for each part"),
    ([node("QLinearConcat", ["s"], axis=0)], {"s": floats(1)}, {}, "it has 1 inputs"),
    ([node("SkipLayerNormalization", ["x", "x", "g"], ["y", "", "", "", "z"])], {"x": floats(1, 2, 4)}, {"g": floats(4)}, "outputs"),
    ([node("NoSuchThing", "x")], {"x": floats(2)}, {}, "not known in opset 1 of com.microsoft"),
]


@pytest.mark.parametrize("at", range(len(BAD)))
def test_malformed(at, tmp_path):
    nodes, inputs, tensors, words = BAD[at]
    outputs = {o: (F32, None) for o in nodes[0].output if o}
    path = files.save(tmp_path, model(nodes, inputs, tensors, outputs))
    text = tool_case.failing(1, "run", path, *files.DEVICE, *files.words_for(tmp_path, inputs), "--output-dir", tmp_path)
    assert words in text and ("the_y" in text or "tensor 'i'" in text), text


# ---- random numbers and training

def draw(tmp_path, op, inputs, name="n", **attrs):
    dtype = helper.tensor_dtype_to_np_dtype(attrs["dtype"]) if "dtype" in attrs else F32
    n = helper.make_node(op, list(inputs), ["y"], name=name, **attrs)
    return run(tmp_path, files.model([n], inputs, {"y": (dtype, None)}, opset=17), inputs)[0]


def test_random_numbers(tmp_path):
    x = {"x": np.zeros((100, 200), F32)}
    normal = draw(tmp_path, "RandomNormalLike", x, seed=1.0, mean=2.0, scale=3.0)
    assert abs(normal.mean() - 2) < 0.1 and abs(normal.std() - 3) < 0.1 and normal.shape == (100, 200)
    z = (normal - 2) / 3
    assert abs((z ** 3).mean()) < 0.1 and abs((z ** 4).mean() - 3) < 0.2
    assert abs(np.corrcoef(normal.reshape(-1)[:-1], normal.reshape(-1)[1:])[0, 1]) < 0.03
    even = draw(tmp_path, "RandomUniform", {}, seed=1.0, low=-1.0, high=3.0, shape=[200, 100])
    assert even.min() >= -1 and even.max() < 3 and abs(even.mean() - 1) < 0.05
    np.testing.assert_array_equal(normal, draw(tmp_path, "RandomNormalLike", x, "other", seed=1.0, mean=2.0, scale=3.0))
    free = draw(tmp_path, "RandomNormalLike", x)
    np.testing.assert_array_equal(free, draw(tmp_path, "RandomNormalLike", x))
    assert (free != draw(tmp_path, "RandomNormalLike", x, "other")).mean() > 0.99
    assert (normal != draw(tmp_path, "RandomNormalLike", x, seed=2.0, mean=2.0, scale=3.0)).mean() > 0.99
    p = {"x": np.full((100, 100), 0.3, F32)}
    assert abs(draw(tmp_path, "Bernoulli", p, seed=5.0).mean() - 0.3) < 0.02
    log = {"x": np.log(np.array([[0.1, 0.2, 0.7]], F32))}
    picked = draw(tmp_path, "Multinomial", log, seed=5.0, sample_size=5000, dtype=7)
    np.testing.assert_allclose(np.bincount(picked[0]) / 5000, [0.1, 0.2, 0.7], atol=0.03)


def test_philox(tmp_path):
    """The known answer of the generator's authors for a counter and a key of zeros: 6627e8d5 e169c58d bc57ac4c 9b00dbd8."""
    got = draw(tmp_path, "RandomUniform", {}, seed=0.0, shape=[4], dtype=11)
    want = (np.array([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]) + 0.5) / 2.0 ** 32
    np.testing.assert_array_equal(got, want)


def test_dropout_in_training(tmp_path):
    x = {"x": np.abs(floats(100, 100)) + F32(1)}
    n = helper.make_node("Dropout", ["x", "r", "t"], ["y", "m"], name="n", seed=4)
    proto = files.model([n], x, {"y": (F32, None), "m": (np.bool_, None)}, {"r": F32(0.25), "t": np.array(True)})
    y, m = run(tmp_path, proto, x)
    assert abs(m.mean() - 0.75) < 0.02
    np.testing.assert_allclose(y, np.where(m, x["x"] / F32(0.75), 0), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 3, 5)])
def test_batch_normalization_in_training(dtype, shape, tmp_path):
    x = {"x": floats(*shape).astype(dtype)}
    t = {k: floats(4).astype(dtype) for k in "sbm"} | {"v": np.abs(floats(4)).astype(dtype)}
    for outputs, attrs in (("ymv", {"training_mode": 1, "momentum": 0.7, "epsilon": 1e-3}), ("y", {"training_mode": 1}), ("y", {})):
        names = ["y", "m1", "v1"][:len(outputs)]
        n = helper.make_node("BatchNormalization", list("xsbmv"), names, **attrs)
        proto = files.model([n], x, {k: (dtype, None) for k in names}, t, opset=15)
        judge(run(tmp_path, proto, x), ReferenceEvaluator(proto).run(None, x), "")
