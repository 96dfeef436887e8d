"""Attributes that are lists of strings, and values between the stages of a model, by the tool: against numpy and
onnx.reference.
timeout: 300"""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tool_case import failing, good

STEPS, BATCH, SIZE, HIDDEN = 3, 2, 4, 5


@pytest.fixture
def recurrent(tmp_path):
    """A graph of one RNN with the activations that are given; its operands, which words hand over."""
    random = np.random.default_rng(4)
    values = {"x": random.standard_normal((STEPS, BATCH, SIZE)), "w": random.standard_normal((1, HIDDEN, SIZE)),
              "r": random.standard_normal((1, HIDDEN, HIDDEN)) / 4}
    values = {k: v.astype(np.float32) for k, v in values.items()}
    words = []
    for name, value in values.items():
        np.save(tmp_path / f"{name}.npy", value)
        words += ["--input", f"{name}={tmp_path}/{name}.npy"]

    def make(activations):
        shapes = [list(v.shape) for v in values.values()]
        graph = {
            "heddle": {"version": 1, "opset": 17},
            "nodes": [{"op": "null", "name": k, "inputs": []} for k in values] +
                     [{"op": "RNN", "name": "rnn", "inputs": [[k, 0, 0] for k in range(3)],
                       "attrs": {"hidden_size": HIDDEN, "activations": activations}}],
            "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 5],
            "attrs": {"dltype": ["list_str", ["float32"] * 3 + [None] * 2],
                      "shape": ["list_shape", shapes + [None] * 2]},
        }
        (tmp_path / "rnn.json").write_text(json.dumps(graph))
        return tmp_path / "rnn.json", *words, "--device", "cpu"

    return make, values


@pytest.mark.parametrize("activation, function", [("Relu", lambda v: np.maximum(v, 0)), ("Tanh", np.tanh),
                                                  ("Sigmoid", lambda v: 1 / (1 + np.exp(-v)))])
def test_a_list_of_strings(recurrent, activation, function, tmp_path):
    make, v = recurrent
    good("run", *make([activation]), "--output-dir", tmp_path)
    h = np.zeros((BATCH, HIDDEN))
    for t, got in enumerate(np.load(tmp_path / "output_0.npy")):
        h = function(v["x"][t].astype(float) @ v["w"][0].T + h @ v["r"][0].T)
        assert np.abs(got[0] - h).max() < 1e-5, t


@pytest.mark.parametrize("wrong", [[1], "Relu", ["Relu", 2], {"0": "Relu"}])
def test_what_is_no_list_of_strings(recurrent, wrong):
    said = failing(1, "run", *recurrent[0](wrong))
    assert "rnn.json" in said and "activations" in said


def test_values_of_a_model_in_stages(tmp_path):
    """--debug-dir gives what each node made, before and behind the shape that only the run gives."""
    nodes = [("Relu", ["x"], "relu", {}), ("NonZero", ["relu"], "places", {}), ("Transpose", ["places"], "rows", {}),
             ("GatherND", ["relu", "rows"], "found", {}), ("Exp", ["found"], "exp", {}), ("Neg", ["exp"], "y", {})]
    graph = helper.make_graph([helper.make_node(op, ins, [out], name=out, **attrs) for op, ins, out, attrs in nodes], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "g.onnx")
    x = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    good("run", tmp_path / "g.onnx", "--device", "cpu", "--input", f"x={tmp_path}/x.npy", "--optimize", "off",
         "--debug-dir", tmp_path / "values")
    del graph.output[:]
    for _, _, out, _ in nodes:
        dtype = TensorProto.INT64 if out in ("places", "rows") else TensorProto.FLOAT
        graph.output.append(helper.make_tensor_value_info(out, dtype, None))
    reference = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    for (_, _, out, _), want in zip(nodes, reference.run(None, {"x": x})):
        got = np.load(next((tmp_path / "values").glob(f"{out}*_0.npy")))
        assert got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=0), out
