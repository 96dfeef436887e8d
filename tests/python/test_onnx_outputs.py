"""Outputs and inputs that a node leaves out (a name ""), at the end and between others: for each operator that has such,
what is left is what the whole node gives, on each device, optimised or not, and after conversion to graph JSON.
timeout: 600"""

import itertools
import random

import lavapipe
import numpy as np
import onnx
import pocl
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from reference import sizes
from tool_case import good, heddle


RNG = np.random.default_rng(3)
F = np.float32


def f(*shape):
    return RNG.uniform(0.1, 1, shape).astype(F)


def graph(nodes, outputs, inputs=()):
    info = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    return helper.make_graph(nodes, "inner", info, [helper.make_tensor_value_info(n, t, None) for n, t in outputs])


def branch(scale):
    nodes = [helper.make_node("Constant", [], [f"k{scale}"], value_float=scale)]
    nodes += [helper.make_node("Mul", ["x", f"k{scale}"], [f"r{i}{scale}"]) for i in range(3)]
    return graph(nodes, [(f"r{i}{scale}", 1) for i in range(3)])


def loop_body():
    return graph([helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["s", "s"], ["s2"]),
                  helper.make_node("Neg", ["s"], ["a"]), helper.make_node("Exp", ["s"], ["b"])],
                 [("c2", TensorProto.BOOL), ("s2", 1), ("a", 1), ("b", 1)],
                 [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("s", 1, [2])])


def scan_body():
    return graph([helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Neg", ["e"], ["a"]),
                  helper.make_node("Exp", ["e"], ["b"])], [("s2", 1), ("a", 1), ("b", 1)], [("s", 1, [2]), ("e", 1, [2])])


# name: operator, opset, number of outputs, how many of the first may not be left out, inputs, attributes
NODES = {
    "split": ("Split", 13, 4, 0, [f(12, 2)], {}),
    "split_11": ("Split", 11, 4, 0, [f(12, 2)], {}),
    "split_attribute": ("Split", 11, 3, 0, [f(12, 2)], {"split": [3, 4, 5]}),
    "split_sizes": ("Split", 13, 3, 0, [f(12, 2), np.array([3, 4, 5])], {}),
    "split_number": ("Split", 18, 5, 0, [f(12, 2)], {"num_outputs": 5}),
    "dropout": ("Dropout", 13, 2, 1, [f(3, 4)], {}),
    "max_pool": ("MaxPool", 13, 2, 1, [f(1, 2, 6, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "lstm": ("LSTM", 14, 3, 0, [f(3, 2, 4), f(1, 20, 4), f(1, 20, 5)], {"hidden_size": 5}),
    "gru": ("GRU", 14, 2, 0, [f(3, 2, 4), f(1, 15, 4), f(1, 15, 5)], {"hidden_size": 5}),
    "rnn": ("RNN", 14, 2, 0, [f(3, 2, 4), f(1, 5, 4), f(1, 5, 5)], {"hidden_size": 5}),
    "top_k": ("TopK", 13, 2, 0, [f(3, 8), np.array([3])], {}),
    "unique": ("Unique", 13, 4, 1, [np.array([2.0, 1, 1, 3, 4, 3], F)], {}),
    "layer_norm": ("LayerNormalization", 17, 3, 1, [f(2, 3, 4), f(4), f(4)], {}),
    "attention": ("Attention", 23, 4, 1, [f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4), None, f(1, 2, 2, 4),
                                          f(1, 2, 2, 4)], {}),
    "cross_entropy": ("SoftmaxCrossEntropyLoss", 13, 2, 1, [f(3, 5), np.array([0, 4, 2])], {}),
    "dynamic_quantize": ("DynamicQuantizeLinear", 13, 3, 0, [f(6)], {}),
    "if": ("If", 16, 3, 0, [np.array(True)], {"then_branch": branch(2.0), "else_branch": branch(3.0)}),
    "loop": ("Loop", 16, 3, 0, [np.array(3), np.array(True), f(2)], {"body": loop_body()}),
    "scan": ("Scan", 16, 3, 0, [f(2), f(4, 2)], {"body": scan_body(), "num_scan_inputs": 1}),
}

TYPES = {("dropout", 1): TensorProto.BOOL, ("max_pool", 1): TensorProto.INT64, ("top_k", 1): TensorProto.INT64,
         **{("unique", k): TensorProto.INT64 for k in (1, 2, 3)},
         **{("dynamic_quantize", k): TensorProto.UINT8 for k in (0, 2)}}  # others are float32


def model_of(name, wanted):
    """wanted: a bool per output."""
    op, opset, _, _, inputs, attrs = NODES[name]
    outs = [f"y{k}" if w else "" for k, w in enumerate(wanted)]
    ins = [f"x{k}" if v is not None else "" for k, v in enumerate(inputs)]
    feeds = {n: v for n, v in zip(ins, inputs) if n}
    constant = {n: v for n, v in feeds.items() if v.dtype == np.int64 and name != "loop"}
    if name == "if":
        feeds["x"] = np.array([1, 2], F)
    typed = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for n, v in feeds.items() if n not in constant]
    heads = [helper.make_tensor_value_info(n, TYPES.get((name, k), 1), None) for k, n in enumerate(outs) if n]
    made = helper.make_graph([helper.make_node(op, ins, outs, **attrs)], "g", typed, heads,
                             [numpy_helper.from_array(v, n) for n, v in constant.items()])
    return (helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=10),
            {n: v for n, v in feeds.items() if n not in constant})


def run(folder, made, feeds, device, optimize, convert, **env):
    path = folder / "m.onnx"
    onnx.save(made, path)
    if convert:
        good("convert", path, "-o", folder / "m.json")
        path = folder / "m.json"
    words = []
    for n, v in feeds.items():
        np.save(folder / f"{n}.npy", v)
        words += ["--input", f"{n}={folder}/{n}.npy"]
    good("run", path, "--device", device, "--optimize", optimize, *words, "--output-dir", folder, **env)
    return [np.load(folder / f"output_{k}.npy") for k in range(len(made.graph.output))]


def devices():
    yield "cpu", {}
    yield "sim:0,cpu", {}
    if pocl.there():
        yield "opencl:0,cpu", pocl.ENV
    if lavapipe.there():
        yield "vulkan:0,cpu", lavapipe.ENV


DEVICES = list(devices())


@pytest.mark.parametrize("name", NODES)
def test_outputs_left_out(name, tmp_path):
    _, _, n, least, _, _ = NODES[name]
    whole = run(tmp_path, *model_of(name, [True] * n), "cpu", "off", False)
    if name != "cross_entropy":  # which the reference computes in another way
        for got, want in zip(whole, ReferenceEvaluator(model_of(name, [True] * n)[0]).run(None, model_of(name, [True] * n)[1])):
            assert got.shape == want.shape and np.allclose(got, want, rtol=1e-4, atol=1e-5)
    subsets = [w for w in itertools.product((True, False), repeat=n) if any(w) and all(w[:least])]
    rng = random.Random(name)
    for k, wanted in enumerate(subsets):
        all_ways = list(itertools.product(DEVICES, ("on", "off"), (False, True)))
        for (device, env), optimize, convert in rng.sample(all_ways, min(len(all_ways), sizes.count(2))):
            got = run(tmp_path, *model_of(name, wanted), device, optimize, convert, **env)
            want = [v for v, w in zip(whole, wanted) if w]
            for a, b in zip(got, want):
                assert a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5), (wanted, device, optimize, convert)


def test_fewer_outputs_than_num_outputs(tmp_path):
    """Outputs at the end may be left out by not naming them either."""
    op, opset, _, _, inputs, attrs = NODES["split_number"]
    made, feeds = model_of("split_number", [True, True])
    want = np.split(inputs[0], [3, 6])[:2]
    for optimize, convert in itertools.product(("on", "off"), (False, True)):
        got = run(tmp_path, made, feeds, "cpu", optimize, convert)
        assert all(np.array_equal(a, b) for a, b in zip(got, want)), got


def test_a_split_that_does_not_fit(tmp_path):
    made, _ = model_of("split_number", [True, True, False, False, False, False])
    onnx.save(made, tmp_path / "m.onnx")
    assert "num_outputs" in heddle("plan", tmp_path / "m.onnx", "--device", "cpu").err
