"""Sequences and optionals whose length is known when a model is read, against onnx.reference."""
import heddle
import numpy as np
import onnx
import pytest
from heddle import errors
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
X = np.arange(30, dtype=np.float32).reshape(5, 6)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def model(nodes, shape=(5, 6), outputs=("y",), **weights):
    tensors = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, shape)],
                              [helper.make_empty_tensor_value_info(o) for o in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def check(proto):
    want = ReferenceEvaluator(proto).run(None, {"x": X})
    typed = onnx.ModelProto.FromString(proto.SerializeToString())
    for value, array in zip(typed.graph.output, want):
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, [None] * np.asarray(array).ndim))
    got = heddle.load(typed, devices="cpu").run(None, {"x": X})
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype and g.shape == w.shape


@pytest.mark.parametrize("shape", [(5, 6), (None, None)], ids=["known", "open"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_equal_size(shape, axis):
    for at in (0, 1, 2, -1) if shape[0] else (0, 1, 2):
        check(model([node("SplitToSequence", "x n", "s", axis=axis), node("SequenceAt", "s i", "y")], shape, n=2, i=at))
        for keeps in (0, 1):
            check(model([node("SplitToSequence", "x", "s", axis=axis, keepdims=keeps), node("SequenceAt", "s i", "y")],
                        shape, i=at))


@pytest.mark.parametrize("shape", [(5, 6), (None, None)], ids=["known", "open"])
def test_parts_of_given_sizes(shape):
    nodes = [node("SplitToSequence", "x n", "s", axis=1), node("SequenceLength", "s", "k"), node("SequenceAt", "s i", "a"),
             node("SequenceErase", "s i", "t"), node("ConcatFromSequence", "t", "b", axis=1),
             node("ConcatFromSequence", "s", "c", axis=-1)]
    check(model(nodes, shape, ("k", "a", "b", "c"), n=[1, 3, 2], i=-2))


def test_lists():
    nodes = [
        node("Neg", "x", "m"), node("SequenceConstruct", "x m", "s"), node("SequenceEmpty", "", "e"),
        node("SequenceInsert", "e x", "f"), node("SequenceInsert", "s x one", "t"), node("SequenceInsert", "t m last", "u"),
        node("SequenceErase", "u", "v"), node("Identity", "v", "w"), node("SequenceLength", "w", "k"),
        node("SequenceLength", "e", "z"), node("ConcatFromSequence", "w", "a", axis=0),
        node("ConcatFromSequence", "u", "b", axis=1, new_axis=1), node("SequenceAt", "u last", "c"),
        node("ConcatFromSequence", "f", "d", axis=1)]
    check(model(nodes, (5, 6), ("k", "z", "a", "b", "c", "d"), one=1, last=-1))


def test_optionals():
    kind = helper.make_tensor_type_proto(FLOAT, [5, 6])
    nodes = [node("Optional", "x", "o"), node("OptionalHasElement", "o", "h"), node("OptionalGetElement", "o", "y"),
             helper.make_node("Optional", [], ["n"], type=kind), node("OptionalHasElement", "n", "i"),
             node("OptionalHasElement", "x", "j"), helper.make_node("OptionalHasElement", [], ["k"])]
    proto = model(nodes, (5, 6), ("h", "y", "i", "j", "k"))
    for value in proto.graph.output:
        plain = ("y", FLOAT, [5, 6]) if value.name == "y" else (value.name, TensorProto.BOOL, [])
        value.CopyFrom(helper.make_tensor_value_info(*plain))
    h, y, i, j, k = heddle.load(proto, devices="cpu").run(None, {"x": X})
    assert (h, i, j, k) == (True, False, True, False)
    np.testing.assert_array_equal(y, X)


def test_refusals():
    typed = ("y", FLOAT, None)
    cases = [
        ([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")], dict(i=2), "position 2 of a sequence of 2"),
        ([node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s i", "y")], dict(i=-3), "position -3 of a sequence of 2"),
        ([node("SequenceEmpty", "", "s"), node("SequenceErase", "s", "t"), node("SequenceAt", "t i", "y")], dict(i=0), "empty"),
        ([node("SequenceConstruct", "x x", "s"), node("Neg", "s", "y")], {}, "it takes a sequence"),
        ([node("SplitToSequence", "x n", "s", axis=0), node("SequenceAt", "s i", "y")], dict(i=0, n=0), "not above 0"),
        ([node("SequenceConstruct", "x x", "y")], {}, "'y' is a sequence, no tensor"),
        ([node("SequenceLength", "x", "y")], {}, "not a sequence whose length is known"),
        ([node("OptionalGetElement", "o", "y")], {}, "nothing before it makes its input 'o'"),
    ]
    for nodes, weights, words in cases:
        proto = model(nodes, (5, 6), **weights)
        proto.graph.output[0].CopyFrom(helper.make_tensor_value_info(*typed))
        with pytest.raises((errors.UnsupportedError, errors.FormatError), match=words):
            heddle.load(proto, devices="cpu")
