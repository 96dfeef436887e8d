"""Nodes of older opsets than graphs have and of the newest, as files: the forms of the specification, against ONNX Runtime,
and against onnx.reference for what ONNX Runtime does not run.
timeout: 600
"""
import json
import pathlib
import re

import numpy as np
import onnx_files as files
import pytest
from onnx import defs, helper, reference

RNG = np.random.default_rng(7)
F32 = np.float32


def floats(*shape):
    return RNG.standard_normal(shape).astype(F32)


def node(op, *inputs, outputs=("y",), **attrs):
    return helper.make_node(op, list(inputs), list(outputs), **attrs)


X = {"x": floats(2, 3, 4)}
IMAGE = {"x": floats(1, 2, 4, 5)}
CHANNELS = {k: floats(3) for k in ("s", "b", "m")} | {"v": np.abs(floats(3)) + F32(0.5)}


def cases():
    """(id, opset, nodes, inputs, tensors, outputs)"""
    for opset in (7, 9, 11, 12):
        for op in ("Softmax", "LogSoftmax"):
            for axis in (0, 1, 2):
                yield f"{op}-axis{axis}", opset, [node(op, "x", axis=axis)], X, {}, ["y"]
            yield f"{op}-default", opset, [node(op, "x")], X, {}, ["y"]
        yield "Softmax-negative", max(opset, 11), [node("Softmax", "x", axis=-2)], X, {}, ["y"]
        # The rank is not known here: Reshape's result has no description.
        yield ("Softmax-behind-Reshape", opset, [node("Reshape", "x", "shape", outputs=["r"]), node("Softmax", "r", axis=1)],
               X, {"shape": np.array([2, 2, 6], np.int64)}, ["y"])
        yield "Squeeze", opset, [node("Squeeze", "x", axes=[0, 2])], {"x": floats(1, 3, 1)}, {}, ["y"]
        yield "Squeeze-all", opset, [node("Squeeze", "x")], {"x": floats(1, 3, 1)}, {}, ["y"]
        yield "Unsqueeze", opset, [node("Unsqueeze", "x", axes=[0, 3])], X, {}, ["y"]
        yield "ReduceSum", opset, [node("ReduceSum", "x", axes=[1], keepdims=0)], X, {}, ["y"]
        yield "ReduceSum-all", opset, [node("ReduceSum", "x")], X, {}, ["y"]
        yield "ReduceMean", opset, [node("ReduceMean", "x", axes=[0, 2])], X, {}, ["y"]
        yield "Split", opset, [node("Split", "x", outputs=["y", "z"], axis=1, split=[1, 2])], X, {}, ["y", "z"]
        yield "Split-even", opset, [node("Split", "x", outputs=["y", "z"], axis=2)], X, {}, ["y", "z"]
        yield "Sum", opset, [node("Sum", "x", "x", "w")], X, {"w": floats(4) if opset >= 8 else floats(2, 3, 4)}, ["y"]
        yield "Sum-one", opset, [node("Sum", "x")], X, {}, ["y"]
        yield "Mean", opset, [node("Mean", "x", "w", "x")], X, {"w": floats(2, 3, 4)}, ["y"]
        yield "Dropout", opset, [node("Dropout", "x", outputs=["d"]), node("Relu", "d")], X, {}, ["y"]
        yield "Constant", opset, [node("Constant", outputs=["c"], value=helper.make_tensor("c", 1, [4], [1, 2, 3, 4])),
                                  node("Mul", "x", "c")], X, {}, ["y"]
        yield "Flatten", opset, [node("Flatten", "x", axis=2)], X, {}, ["y"]
        yield ("BatchNormalization", opset, [node("BatchNormalization", "x", "s", "b", "m", "v", epsilon=1e-3)],
               {"x": floats(2, 3, 4)}, CHANNELS, ["y"])
        yield "Gemm", opset, [node("Gemm", "x", "w", "b", transB=1)], {"x": floats(2, 3)}, {
            "w": floats(5, 3), "b": floats(5)}, ["y"]
        yield "MaxPool", opset, [node("MaxPool", "x", kernel_shape=[2, 2], strides=[1, 2])], IMAGE, {}, ["y"]
        yield "AveragePool", opset, [node("AveragePool", "x", kernel_shape=[2, 3], pads=[1, 1, 0, 1])], IMAGE, {}, ["y"]
    for opset in (7, 9, 10):
        yield "Clip", opset, [node("Clip", "x", min=-0.25, max=0.5)], X, {}, ["y"]
        yield "Clip-low", opset, [node("Clip", "x", min=-0.25)], X, {}, ["y"]
        yield "Clip-high", opset, [node("Clip", "x", max=0.25)], X, {}, ["y"]
        yield "Clip-none", opset, [node("Clip", "x")], X, {}, ["y"]
        yield "Pad", opset, [node("Pad", "x", pads=[0, 1, 0, 0, 0, 2], value=0.5)], X, {}, ["y"]
        yield "Pad-zero", opset, [node("Pad", "x", pads=[0, 1, 0, 0, 0, 2])], X, {}, ["y"]
        yield "Pad-edge", opset, [node("Pad", "x", pads=[0, 1, 1, 0, 1, 0], mode="edge")], X, {}, ["y"]
    for opset in (7, 9):
        yield "Slice", opset, [node("Slice", "x", starts=[1, -3], ends=[9, -1], axes=[1, 2])], X, {}, ["y"]
        yield "Slice-no-axes", opset, [node("Slice", "x", starts=[0, 1], ends=[1, 3])], X, {}, ["y"]
        yield "TopK", opset, [node("TopK", "x", outputs=["y", "i"], k=2, axis=2)], X, {}, {
            "y": (F32, None), "i": (np.int64, None)}
    for mode in ("nearest", "linear"):
        yield f"Upsample-{mode}", 7, [node("Upsample", "x", mode=mode, scales=[1.0, 1.0, 2.0, 3.0])], IMAGE, {}, ["y"]
        scales = {"scales": np.array([1, 1, 2, 2], F32)}
        yield f"Upsample-{mode}", 9, [node("Upsample", "x", "scales", mode=mode)], IMAGE, scales, ["y"]
        yield f"Resize-{mode}", 10, [node("Resize", "x", "scales", mode=mode)], IMAGE, scales, ["y"]
        down = {"scales": np.array([1, 1, 0.6, 0.7], F32)}
        yield f"Resize-{mode}-down", 10, [node("Resize", "x", "scales", mode=mode)], IMAGE, down, ["y"]
    shape = {"shape": np.array([2, 3], np.int64)}
    for opset in (9, 12):
        filled = helper.make_tensor("value", 1, [1], [2.5])
        yield "ConstantOfShape", opset, [node("ConstantOfShape", "shape", value=filled, outputs=["f"]), node("Relu", "f")], {
        }, shape, ["y"]
        ones = helper.make_tensor("value", 7, [1], [3])
        yield "ConstantOfShape-int64", opset, [node("ConstantOfShape", "shape", value=ones)], {}, shape, {
            "y": (np.int64, None)}
    yield "Constant-forms", 12, [node("Constant", outputs=["a"], value_float=1.5),
                                 node("Constant", outputs=["b"], value_floats=[1.0, 2.0, 3.0, 4.0]),
                                 node("Mul", "x", "a", outputs=["c"]), node("Add", "c", "b")], X, {}, ["y"]


CASES = list(cases())


@pytest.mark.parametrize("opset, nodes, inputs, tensors, outputs", [c[1:] for c in CASES],
                         ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_older(tmp_path, opset, nodes, inputs, tensors, outputs):
    proto = files.model(nodes, inputs, outputs, tensors, opset=opset, ir=4)
    got = files.run(files.save(tmp_path, proto), inputs)
    want = files.expected(proto, inputs)
    files.same(got, want)


DOUBLES = {"x": RNG.standard_normal((2, 3))}


@pytest.mark.parametrize("nodes", [[node("Clip", "x", min=-0.25, max=0.5)], [node("Pad", "x", pads=[1, 0, 0, 1], value=0.1)]],
                         ids=["Clip", "Pad"])
def test_operands_have_the_type_of_the_input(tmp_path, nodes):
    proto = files.model(nodes, DOUBLES, {"y": (np.float64, None)}, opset=10, ir=4)
    path = files.save(tmp_path, proto)
    got = files.tool_case.heddle("run", path, "--device", "cpu", *files.words_for(tmp_path, DOUBLES), "--output-dir",
                                 tmp_path)
    if "does not take this type" in got.err or "it takes" in got.err:
        pytest.skip("the kernel of this operator does not take float64")
    assert got.status == 0, got
    files.same(files.outputs_of(tmp_path), reference.ReferenceEvaluator(proto).run(None, DOUBLES), rtol=1e-6)


NEWER = [
    ("Gelu", 20, [node("Gelu", "x")], X, {}),
    ("Gelu-tanh", 22, [node("Gelu", "x", approximate="tanh")], X, {}),
    ("AveragePool", 22, [node("AveragePool", "x", kernel_shape=[2, 2], dilations=[1, 1])], IMAGE, {}),
    ("AveragePool-dilated", 22, [node("AveragePool", "x", kernel_shape=[2, 2], dilations=[2, 2])], IMAGE, {}),
    ("Cast", 24, [node("Cast", "x", outputs=["i"], to=7, saturate=1), node("Cast", "i", to=1, round_mode="up")], X, {}),
    ("Range", 27, [node("Range", "a", "b", "c", stash_type=1)], {},
     {"a": np.array(1, F32), "b": np.array(7, F32), "c": np.array(2, F32)}),
    ("Reshape", 25, [node("Reshape", "x", "shape")], X, {"shape": np.array([4, -1], np.int64)}),
    ("Conv", 28, [node("Conv", "x", "w", pads=[1, 1, 1, 1])], IMAGE, {"w": floats(3, 2, 3, 3)}),
    ("Softmax", 28, [node("Softmax", "x", axis=1)], X, {}),
    ("Dropout", 22, [node("Dropout", "x")], X, {}),
]


@pytest.mark.parametrize("opset, nodes, inputs, tensors", [c[1:] for c in NEWER], ids=[f"{c[0]}-{c[1]}" for c in NEWER])
def test_newer(tmp_path, opset, nodes, inputs, tensors):
    proto = files.model(nodes, inputs, ["y"], tensors, opset=opset, ir=10)
    got = files.run(files.save(tmp_path, proto), inputs)
    files.same(got, reference.ReferenceEvaluator(proto).run(None, inputs))


@pytest.mark.parametrize("opset", [21, 28])
def test_parts_are_made_of_operators_that_plugins_join(tmp_path, opset):
    """Sum, Mean and Gelu of float32: opencl has no others, and cpu's chains neither."""
    nodes = [node("Sum", "x", "x", "x", outputs=["a"]), node("Mean", "a", "x", outputs=["b"]), node("Gelu", "b")]
    proto = files.model(nodes, X, ["y"], opset=opset, ir=10)
    path = files.save(tmp_path, proto)
    made = json.loads(files.tool_case.heddle("info", path, "--json").out)["operators"]
    assert made == {"Add": 3, "Div": 1, "heddle.Gelu": 1}
    files.same(files.run(path, X), reference.ReferenceEvaluator(proto).run(None, X))


def test_the_newest_opset_is_the_specification_s():
    """A newer package of ONNX brings versions of operators that the schemas have to be looked through for."""
    text = (pathlib.Path(__file__).parents[2] / "operators" / "operators.h").read_text()
    assert int(re.search(r"OPSET_LAST = (\d+)", text)[1]) == defs.onnx_opset_version()
