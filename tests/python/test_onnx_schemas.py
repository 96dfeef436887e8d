"""Operators and attributes of each opset are those of onnx.defs: each attribute that any version of an operator has is taken
in the opsets whose version has it, and refused in the others; so are attributes given twice, of another kind, and flags
that are neither 0 nor 1; axes that name a dimension twice are refused.

labels: ctypes
timeout: 300
"""
import ctypes as c
import json
import re

import capi
import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper
from tool_case import SOURCE

KIND = {getattr(defs.OpSchema.AttrType, k): k for k in
        "INT FLOAT STRING INTS FLOATS STRINGS GRAPH TENSOR SPARSE_TENSOR TYPE_PROTO".split()}

# Operators that are not there at all.
LEFT_OUT = {
    "values that are no tensors": "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt "
                                  "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
                                  "SplitToSequence",
    "strings and files": "RegexFullMatch StringConcat StringNormalizer StringSplit ImageDecoder",
    "not used by any model since opset 1": "MaxRoiPool",
    "taken out of opset 21 and still read": "GroupNormalization",
    "opset 8 has another Scan": "Scan",
}
LEFT_OUT = {op for ops in LEFT_OUT.values() for op in ops.split()}

# Attributes of the specification that are 0 or 1.
FLAGS = set("""align_corners allowzero antialias ceil_mode center_point_box count_include_pad detect_negative detect_positive
exclude_outside exclusive fmod inverse input_forget interleaved is_causal keepdims largest layout linear_before_reset
noop_with_empty_axes onesided periodic reverse saturate select_last_index sorted storage_order training_mode transA transB
upper""".split())

HISTORY = {}
for one in defs.get_all_schemas_with_history():
    if one.domain == "":
        HISTORY.setdefault(one.name, []).append(one)


def schema(op, opset):
    """Of the version in that opset; None where there is none."""
    found = [s for s in HISTORY[op] if s.since_version <= opset]
    last = max(found, key=lambda s: s.since_version, default=None)
    return None if last is None or last.deprecated else last


def opsets(op):
    """Those in which something changes, with the last one before, and some that are the same."""
    edges = {v for s in HISTORY[op] for v in (s.since_version - 1, s.since_version)}
    return [v for v in range(7, 29) if v in edges | {7, 12, 13, 20, 28}]


def attribute(name, kind):
    value = {"INT": 1, "FLOAT": 0.5, "STRING": "x", "INTS": [1], "FLOATS": [0.5], "STRINGS": ["x"],
             "TENSOR": helper.make_tensor("t", 1, [1], [1.0]),
             "GRAPH": helper.make_graph([], "g", [], [])}.get(kind)
    if value is None:
        return None
    return helper.make_attribute(name, value)


def model(op, opset, attrs, inputs=None):
    """Of one node with as few inputs as may be."""
    s = schema(op, opset) or HISTORY[op][0]
    names = [f"i{k}" for k in range(s.min_input if inputs is None else inputs)]
    node = helper.make_node(op, names, ["y"], name="n")
    node.attribute.extend(attrs)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, 1, [2]) for n in names],
                              [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The reader's error for a model; "" where there is none."""
    path = str(tmp_path_factory.mktemp("schemas") / "m.onnx")

    def words(made):
        with open(path, "wb") as f:
            f.write(made.SerializeToString())
        g, error = c.c_void_p(), capi.Error()
        if capi.LIB.heddle_graph_load(path.encode(), None, c.byref(g), c.byref(error)) == 0:
            capi.LIB.heddle_graph_release(g)
            return ""
        return error.text.decode()
    return words


def test_operators(read):
    wrong = []
    for op in sorted(set(HISTORY) - LEFT_OUT):
        for opset in opsets(op):
            text = read(model(op, opset, []))
            if op == "LayerNormalization":
                assert text == ""  # ONNX Runtime's optimiser writes it in models of every opset
                continue
            refused = "came with opset" in text or "went after opset" in text or "is not known in opset" in text
            if "it has no scales" not in text and refused != (schema(op, opset) is None):
                wrong.append((op, opset, text))
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"


def test_attributes(read):
    wrong, seen = [], 0
    for op in sorted(set(HISTORY) - LEFT_OUT):
        every = {name: a for s in HISTORY[op] for name, a in s.attributes.items()}
        every.update({name: None for name in ("dtype", "captured", "mode", "reduction", "axes", "value_int") if name not in every})
        for opset in opsets(op):
            s = schema(op, opset)
            for name, a in every.items():
                made = attribute(name, KIND[(s.attributes[name] if s and name in s.attributes else a).type] if a else "INT")
                if s is None or made is None or name == "pool_strings":  # strings are not supported, in other words
                    continue
                seen += 1
                text = read(model(op, opset, [made]))
                if (f"no attribute '{name}'" in text) != (name not in s.attributes) or "another kind" in text:
                    wrong.append((op, opset, name, text))
    assert seen > 3000 and not wrong, f"{len(wrong)} of {seen}: {wrong[:5]}"


def test_messages_say_what_there_is(read):
    text = read(model("ArgMax", 11, [attribute("select_last_index", "INT")]))
    assert all(w in text for w in ("'n'", "ArgMax", "opset 11", "select_last_index", "axis, keepdims")), text


def test_given_twice_and_of_another_kind(read):
    for op in sorted(set(HISTORY) - LEFT_OUT):
        for opset in (7, 11, 13, 18, 28):
            s = schema(op, opset)
            for name, a in (s.attributes.items() if s else ()):
                made = attribute(name, KIND[a.type])
                if made is None or name == "pool_strings":
                    continue
                text = read(model(op, opset, [made, made]))
                assert f"attribute '{name}' is given twice" in text, (op, opset, name, text)
                other = attribute(name, "STRINGS" if KIND[a.type] == "FLOATS" else "FLOATS")
                text = read(model(op, opset, [other]))
                assert f"attribute '{name}' is of another kind" in text, (op, opset, name, text)


def test_flags(read):
    """In a graph whose node has all else that it needs, or not: the flag is looked at before."""
    seen = 0
    for op in sorted(set(HISTORY) - LEFT_OUT):
        for opset in (7, 9, 11, 13, 15, 18, 20, 28):
            s = schema(op, opset)
            for name in FLAGS & set(s.attributes if s else ()):
                assert KIND[s.attributes[name].type] == "INT"
                for value in (-1, 0, 1, 2, 2**40):
                    text = read(model(op, opset, [helper.make_attribute(name, value)]))
                    refused = f"attribute '{name}' is {value}, expected 0 or 1" in text
                    assert refused == (value not in (0, 1)), (op, opset, name, value, text)
                    seen += 1
    assert seen > 500


def test_absent_inputs_and_outputs_at_the_end(read):
    """Names "" at the end are as good as none."""
    seen = 0
    for op in sorted(set(HISTORY) - LEFT_OUT):
        for opset in opsets(op):
            s = schema(op, opset)
            if s is None:
                continue
            whole = read(model(op, opset, []))
            made = model(op, opset, [])
            if s.max_input < 100:
                made.graph.node[0].input.extend([""] * (s.max_input - s.min_input))
            if s.max_output < 100:
                made.graph.node[0].output.extend([""] * (s.max_output - 1))
            assert read(made) == whole, (op, opset)
            seen += 1
    assert seen > 400


# Operator, opset, attributes and further inputs with an axis twice, in one way or the other, for 3 dimensions.
TWICE = [[0, 0], [1, -2], [-1, 2]]


def axes_cases():
    reduce = [op for op in HISTORY if op.startswith("Reduce")]
    for op in sorted(reduce):
        first = 13 if op == "ReduceSum" else 18
        for opset in (7, 11, 13, 17, 18, 20, 28):
            for axes in TWICE:
                yield op, opset, *(({"axes": axes}, []) if opset < first else ({}, [axes]))
    for axes in TWICE:
        for opset in (7, 11):
            yield "Squeeze", opset, {"axes": axes}, []
            yield "Unsqueeze", opset, {"axes": [axes[0] - 2 * (axes[0] < 0), axes[1] - 2 * (axes[1] < 0)]}, []
        for opset in (13, 21, 28):
            yield "Squeeze", opset, {}, [axes]
            yield "Unsqueeze", opset, {}, [[axes[0] - 2 * (axes[0] < 0), axes[1] - 2 * (axes[1] < 0)]]
        for opset in (18, 19, 28):
            yield "Pad", opset, {}, [[1, 1, 1, 1], None, axes]
        for opset in (10, 13, 28):
            yield "Slice", opset, {}, [[0, 0], [1, 1], axes]
        yield "Slice", 9, {"starts": [0, 0], "ends": [1, 1], "axes": axes}, []
        for opset in (18, 28):
            yield "Resize", opset, {"axes": axes}, [None, None, [2, 2]]
            yield "CenterCropPad", opset, {"axes": axes}, [[1, 1]]
        yield "MeanVarianceNormalization", 13, {"axes": axes}, []
        yield "Transpose", 13, {"perm": [*axes, 0 if 0 not in axes else 1]}, []


def test_axes_twice(read):
    for op, opset, attrs, more in axes_cases():
        names = ["x"] + [f"i{k}" if v is not None else "" for k, v in enumerate(more)]
        node = helper.make_node(op, names, ["y"], name="n", **attrs)
        shape = [1, 1, 1] if op in ("Squeeze",) else [3, 3, 3]
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, shape)],
                                  [helper.make_tensor_value_info("y", 1, None)],
                                  [numpy_helper.from_array(np.array(v, np.int64), f"i{k}") for k, v in enumerate(more)
                                   if v is not None])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        text = read(made) or plan(made)
        assert "twice" in text or "permutation" in text or "-1" in text, (op, opset, attrs, more, text)


def plan(made):
    """The error of a model's making and planning."""
    ctx = capi.Context()
    try:
        model = capi.Model.load(ctx, save(made), devices="cpu")
        try:
            model.explain_json()
        finally:
            model.close()
    except capi.HeddleError as e:
        return str(e)
    finally:
        ctx.close()
    return ""


def save(made, name="m.onnx"):
    import tempfile
    folder = tempfile.mkdtemp()
    onnx.save(made, f"{folder}/{name}")
    return f"{folder}/{name}"


def test_graph_json():
    """Graph JSON is held to the same tables."""
    for op, opset, attrs, word in (("Cast", 19, {"to": 1, "round_mode": "up"}, "no attribute 'round_mode' in opset 19"),
                                   ("Cast", 24, {"to": 1, "round_mode": "up"}, ""),
                                   ("ArgMax", 13, {"keepdims": 2}, "attribute 'keepdims' is 2, expected 0 or 1"),
                                   ("SpaceToDepth", 27, {"blocksize": 1, "mode": "DCR"}, "no attribute 'mode' in opset 27"),
                                   ("ReduceMax", 17, {"noop_with_empty_axes": 0}, "no attribute 'noop_with_empty_axes'")):
        nodes = [{"op": "null", "name": "x", "inputs": []},
                 {"op": op, "name": "n", "inputs": [[0, 0, 0]], "attrs": attrs}]
        text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
                           "attrs": {"dltype": ["list_str", ["float32", None]],
                                     "shape": ["list_shape", [[1, 1, 2, 2], None]]},
                           "heddle": {"version": 1, "opset": opset}})
        try:
            capi.Graph(text).close()
            found = ""
        except capi.HeddleError as e:
            found = str(e)
        assert word in found and (word != "" or found == ""), (op, found)
