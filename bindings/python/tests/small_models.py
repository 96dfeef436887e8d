"""Small ONNX models for the tests of calls, and what they give by onnx.reference."""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

FLOAT = TensorProto.FLOAT


def save(folder, name, nodes, inputs, outputs, constants=()):
    """inputs and outputs: (name, shape) or (name, shape, type); gives the path."""
    info = [[helper.make_tensor_value_info(one[0], one[2] if len(one) > 2 else FLOAT, one[1]) for one in many]
            for many in (inputs, outputs)]
    weights = [onnx.numpy_helper.from_array(np.asarray(value), key) for key, value in constants]
    graph = helper.make_graph(nodes, name, info[0], info[1], initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = os.path.join(str(folder), f"{name}.onnx")
    onnx.save(model, path)
    return path


def add(folder, shape=(4,), name="add"):
    node = helper.make_node("Add", ["x", "y"], ["z"], name="sum")
    return save(folder, name, [node], [("x", shape), ("y", shape)], [("z", shape)])


def perceptron(folder, rows="batch"):
    rng = np.random.default_rng(7)
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="first"),
             helper.make_node("Relu", ["h"], ["r"], name="relu"),
             helper.make_node("MatMul", ["r", "w2"], ["s"], name="second"),
             helper.make_node("Softmax", ["s"], ["p"], name="softmax", axis=-1)]
    constants = [("w1", rng.standard_normal((8, 16)).astype(np.float32)), ("b1", np.ones(16, np.float32)),
                 ("w2", rng.standard_normal((16, 5)).astype(np.float32))]
    return save(folder, "perceptron", nodes, [("x", (rows, 8))], [("p", (rows, 5)), ("s", (rows, 5))], constants)


def chain(folder, nodes, shape=(4,)):
    """x + 1 + 1 ...; each node has a name, n0 and so on."""
    made = [helper.make_node("Add", ["x" if i == 0 else f"v{i - 1}", "one"], [f"v{i}"], name=f"n{i}") for i in range(nodes)]
    return save(folder, f"chain{nodes}", made, [("x", shape)], [(f"v{nodes - 1}", shape)],
                [("one", np.ones(shape, np.float32))])


def reference(path, **inputs):
    return ReferenceEvaluator(onnx.load(path)).run(None, inputs)
