"""What `heddle plan` says of open dimensions: values, bounds, maxima, and how many steps are resized."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tool_case import failing, good


@pytest.fixture
def model(tmp_path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    w = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros((2, 16, 8), np.float32))
    np.save(tmp_path / "long.npy", np.zeros((2, 65, 8), np.float32))
    return tmp_path / "m.onnx"


def plan(model, *words):
    return json.loads(good("plan", model, "--device", "sim:0", "--json", *words))


def dims(batch, length):
    """Value, bound and maximum of each."""
    return [dict(zip(("input", "dimension", "name", "value", "bound", "maximum"), ("x", i, name, *three)))
            for i, (name, three) in enumerate((("batch", batch), ("length", length)))]


def test_maxima_are_planned_for_and_shown(model):
    made = plan(model, "--dim", "batch<=4", "--dim", "length<=64")  # no input is needed
    assert made["dimensions"] == dims((4, 4, 4), (64, 64, 64)) and made["growths"] == 0
    assert {r["sizes"] for r in made["regions"]} == {"resized"}
    given = ("--input", f"x={model.parent / 'x.npy'}")
    assert plan(model, "--dim", "length<=64", *given)["dimensions"] == dims((2, 2, None), (64, 64, 64))
    alone = plan(model, *given)
    assert alone["dimensions"] == dims((2, None, None), (16, None, None))
    assert {r["sizes"] for r in alone["regions"]} == {None}
    text = good("plan", model, "--device", "sim:0", "--dim", "batch<=4", "--dim", "length<=64")
    assert "dimension 1 of 'x' ('length'): 64, planned for 1 to 64, at most 64 by the options" in text
    assert "resized" in text


def test_what_is_beyond_or_open_is_an_error(model):
    said = failing(1, "plan", model, "--device", "cpu", "--dim", "length<=64", "--input", f"x={model.parent / 'long.npy'}")
    assert "'length'" in said and "65" in said and "64" in said
    said = failing(1, "plan", model, "--device", "cpu", "--dim", "length<=64")  # batch is open still
    assert "'x'" in said and "--dim" in said and "batch" in said


def test_numbers_that_are_no_dimensions(model):
    for rule, words in {"length=-1": "0 to", "length=4x": "0 to", "length=99999999999": "0 to", "length<=0": "1 to",
                        "length<=-4": "1 to", "length<=99999999999": "1 to", "width=3": "batch, length"}.items():
        for command in "plan", "run":
            said = failing(1, command, model, "--device", "cpu", "--dim", rule)
            assert words in said and f"'{rule}'" in said, said
    assert plan(model, "--dim", "batch=1", "--dim", "length=0")["counts"]["copied_bytes"] == 0
