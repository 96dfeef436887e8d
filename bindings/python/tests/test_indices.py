"""Indices out of range are errors on cpu, for every operator that has such an operand (operators/indices.def), whether
they are known before the run or not, by one thread and by several."""
import pathlib
import re

import heddle
import numpy as np
import onnx
import pytest
from heddle import errors
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
F, I = np.float32, np.int64


def f(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(F)


def ints(*numbers):
    return np.array(numbers, I)


# operator: attributes, operands, which of them has the indices, results, numbers in range and out of it
CASES = {
    "Gather": ({"axis": 1}, [f(3, 4), ints(0, 3)], 1, 1, [-4, 3], [-5, 4, 2**62, -2**63]),
    "GatherElements": ({"axis": 1}, [f(2, 3), ints(0, 2, 1, 0).reshape(2, 2)], 1, 1, [-3, 2], [-4, 3]),
    "GatherND": ({"batch_dims": 1}, [f(2, 3, 4), ints(0, 1, 2, 3).reshape(2, 2)], 1, 1, [-4, 3], [-5, 4]),
    "ScatterElements": ({"axis": 0}, [f(3, 2), ints(0, 2).reshape(1, 2), f(1, 2)], 1, 1, [-3, 2], [-4, 3]),
    "ScatterND": ({}, [f(3, 2), ints(0, 2).reshape(2, 1), f(2, 2)], 1, 1, [-3, 2], [-4, 3]),
    "TensorScatter": ({"axis": 1}, [f(2, 5, 2), f(2, 3, 2), ints(0, 2)], 2, 1, [0, 2], [-1, 3]),
    "MaxUnpool": ({"kernel_shape": [2, 2], "strides": [2, 2]}, [f(1, 1, 1, 2), ints(0, 7).reshape(1, 1, 1, 2)], 1, 1,
                  [0, 7], [-1, 8]),
    "NegativeLogLikelihoodLoss": ({"ignore_index": -7}, [f(2, 3), ints(0, 2)], 1, 1, [0, 2, -7], [-1, 3]),
    "SoftmaxCrossEntropyLoss": ({}, [f(2, 3), ints(0, 2)], 1, 1, [0, 2], [-1, 3]),
    "RoiAlign": ({"output_height": 2, "output_width": 2}, [f(2, 1, 4, 4), f(2, 4), ints(0, 1)], 2, 1, [0, 1], [-1, 2]),
    "RotaryEmbedding": ({}, [f(1, 2, 2, 4), f(6, 2), f(6, 2), ints(0, 5).reshape(1, 2)], 3, 1, [0, 5], [-1, 6]),
    "ReverseSequence": ({"time_axis": 0, "batch_axis": 1}, [f(4, 2), ints(1, 4)], 1, 1, [0, 4], [-1, 5]),
    "RNN": ({"hidden_size": 2}, [f(3, 2, 2), f(1, 2, 2), f(1, 2, 2), None, np.array([1, 3], np.int32)], 4, 2, [0, 3], [-1, 4]),
    "GRU": ({"hidden_size": 2}, [f(3, 2, 2), f(1, 6, 2), f(1, 6, 2), None, np.array([1, 3], np.int32)], 4, 2, [0, 3], [-1, 4]),
    "LSTM": ({"hidden_size": 2}, [f(3, 2, 2), f(1, 8, 2), f(1, 8, 2), None, np.array([1, 3], np.int32)], 4, 2, [0, 3], [-1, 4]),
}
NEWER = {"TensorScatter": 24, "RotaryEmbedding": 23}
EXEMPT = {("OneHot", 0), ("Attention", 6), ("Scatter", 1)}  # a row of zeros; a length of keys; ScatterElements by the reader


def model(op, operands, results=1, known=(), **attributes):
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(operands)]
    given = {name: value for name, value in zip(names, operands) if value is not None}
    node = helper.make_node(op, names, [f"y{k}" for k in range(results)], name="picker", **attributes)
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [helper.make_tensor_value_info(name, kind(value.dtype), value.shape) for name, value in given.items() if name not in known]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in node.output]
    constants = [onnx.numpy_helper.from_array(given[name], name) for name in known]
    graph = helper.make_graph([node], op, inputs, outputs, constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWER.get(op, 17))], ir_version=10)
    return proto, {name: value for name, value in given.items() if name not in known}


def changed(op, number):
    attributes, operands, at, results, *_ = CASES[op]
    operands = list(operands)
    operands[at] = operands[at].copy()
    operands[at].flat[-1] = number
    return operands, at, results, attributes


@pytest.mark.parametrize("op", CASES)
def test_numbers_in_range_run_and_others_are_errors(op):
    _, operands, at, results, good, bad = CASES[op]
    proto, given = model(op, operands, results, **CASES[op][0])
    loaded = heddle.load(proto, devices="cpu")
    for number in good:
        given[f"i{at}"] = changed(op, number)[0][at]
        loaded.run(given)
    for number in bad:
        given[f"i{at}"] = changed(op, number)[0][at]
        with pytest.raises(errors.InvalidError) as caught:
            loaded.run(given)
        text = str(caught.value)
        assert str(int(given[f"i{at}"].flat[-1])) in text and f"input {at}" in text and "out of range" in text
        assert caught.value.node == "picker" and "picker" in text and op in text
    given[f"i{at}"] = operands[at]
    loaded.run(given)  # it goes on working


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("everything", [True, False])
def test_indices_that_the_file_has(op, optimize, everything):
    operands, at, results, attributes = changed(op, CASES[op][5][-1])
    known = [f"i{k}" for k, value in enumerate(operands) if value is not None] if everything else [f"i{at}"]
    proto, given = model(op, operands, results, known, **attributes)
    with pytest.raises(errors.InvalidError, match="out of range"):
        heddle.load(proto, devices="cpu", optimize=optimize).run(given)


@pytest.mark.parametrize("place", [0, 77777, 199999])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_one_of_many(place, kind):
    at = np.random.default_rng(1).integers(0, 50, (200, 1000)).astype(kind)
    for op, data in ("GatherElements", f(200, 50)), ("Gather", f(50)):
        axis = 1 if op == "GatherElements" else 0
        proto, given = model(op, [data, at], axis=axis)
        loaded = heddle.load(proto, devices="cpu", context=heddle.Context({"threads": "4"}))
        want = np.take_along_axis(data, at, 1) if axis else data[at]
        assert (loaded(**given) == want).all()
        wrong = at.copy()
        wrong.flat[place] = 50
        with pytest.raises(errors.InvalidError, match=f"element {place} of input 1 is 50"):
            loaded(i0=data, i1=wrong)
        assert (loaded(**given) == want).all()


def test_an_empty_dimension_has_no_indices():
    proto, given = model("Gather", [np.zeros((0, 2), F), ints(0)])
    with pytest.raises(errors.InvalidError, match="empty"):
        heddle.load(proto, devices="cpu")(**given)
    proto, given = model("Gather", [np.zeros((0, 2), F), np.zeros(0, I)])
    assert heddle.load(proto, devices="cpu")(**given).shape == (0, 2)


def test_every_operand_of_indices_is_in_the_table():
    """By ONNX's names of operands: what one calls an index, a position or a length is in the table or exempt."""
    lines = set(re.findall(r"INDEX\(ONNX, (\w+), (\d+), \w+\)", (ROOT / "operators/indices.def").read_text()))
    table = {(op, int(at)) for op, at in lines}
    known = {name for path in (ROOT / "operators").glob("*.def")
             for name in re.findall(r"OPERATOR\(ONNX, (\w+)", path.read_text())}
    wanted = {(s.name, k) for s in onnx.defs.get_all_schemas() if s.domain == "" and s.name in known
              for k, one in enumerate(s.inputs) if re.search(r"indi[ce]|position_ids|lens?$|^target$|seqlen", one.name)}
    assert wanted - EXEMPT <= table
    assert {op for op, _ in table} == set(CASES)
