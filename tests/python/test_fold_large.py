"""Shapes that are computed through values of any size, type and operator, from constants, from the shape of an input and
from an input's value: no such model is refused, and the shapes are those of onnx.reference.
timeout: 600"""

import itertools

import numpy as np
import onnx
import pytest
from node_graph import NodeGraph
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from reference import sizes
from tool_case import good, heddle

I64, F32 = TensorProto.INT64, TensorProto.FLOAT
TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16, "int32": TensorProto.INT32,
         "uint64": TensorProto.UINT64, "float16": TensorProto.FLOAT16, "float32": F32, "float64": TensorProto.DOUBLE}


def real(g, v):
    return g.Cast(v, to=F32)


def rows(g, v):
    """Of a multiple of 8 numbers."""
    return g.Reshape(real(g, v), np.array([1, 1, -1, 8]))


# From a row of int64, whose length is a multiple of 8, to any numbers.
STEPS = {
    "plain": lambda g, v: v,
    "concat_many": lambda g, v: g.Concat(*[v] * 20, axis=0),
    "max_many": lambda g, v: g.Max(*[v] * 18),
    "split": lambda g, v: g.Split(v, n=8, axis=0, num_outputs=8)[5],
    "top_k": lambda g, v: g.TopK(v, np.array([5]), n=2)[1],
    "cum_sum": lambda g, v: g.CumSum(v, np.int64(0)),
    "mod": lambda g, v: g.Mod(v, np.int64(13)),
    "transpose": lambda g, v: g.Transpose(rows(g, v)),
    "soft_max": lambda g, v: g.Softmax(rows(g, v)),
    "mat_mul": lambda g, v: g.MatMul(rows(g, v), np.ones((8, 3), np.float32)),
    "max_pool": lambda g, v: g.MaxPool(rows(g, v), n=2, kernel_shape=[1, 2], strides=[1, 2])[1],
    "layer_norm": lambda g, v: g.LayerNormalization(rows(g, v), np.ones(8, np.float32)),
    "non_zero": lambda g, v: g.NonZero(v),
    "unique": lambda g, v: g.Unique(g.Slice(g.Mod(v, np.int64(5)), np.array([0]), np.array([4000])), n=4)[3],
    "compress": lambda g, v: g.Compress(v, g.Equal(g.Mod(v, np.int64(3)), np.int64(1)), axis=0),
    "empty": lambda g, v: g.Concat(np.array([3]), g.Slice(v, np.array([0]), np.array([0])), axis=0),
    "gelu": lambda g, v: g.Mul(g.Mul(real(g, v), np.float32(0.5)), g.Add(g.Erf(g.Div(real(g, v), np.float32(2**0.5))),
                                                                     np.float32(1))),
    "one_hot": lambda g, v: g.OneHot(g.Mod(v, np.int64(4)), np.int64(4), np.array([0, 1])),
    "of_float": lambda g, v: g.Identity(g.Sqrt(real(g, v))),
    **{f"through_{name}": lambda g, v, to=to: g.Concat(g.Cast(g.Mod(v, np.int64(100)), to=to),
                                                       g.Cast(np.array([1]), to=to), axis=0)
       for name, to in TYPES.items()},
}
SOURCES = ("constant", "range", "input_shape", "input")


def model_of(step, source, count):
    g, inputs, feeds = NodeGraph(), [], {"x": np.zeros((2, 3), np.float32)}
    inputs.append(helper.make_tensor_value_info("x", F32, [2, 3]))
    if source == "constant":
        v = g.Identity(np.arange(count))
    elif source == "range":
        v = g.Range(np.int64(0), np.int64(count), np.int64(1))
    elif source == "input_shape":
        v = g.Range(np.int64(0), g.Mul(g.ReduceProd(g.Shape("x"), keepdims=0), np.int64(count // 6)), np.int64(1))
    else:
        inputs.append(helper.make_tensor_value_info("v", I64, [count]))
        v, feeds["v"] = "v", np.arange(count)
    number = g.Cast(g.ReduceMax(g.Cast(STEPS[step](g, v), to=TensorProto.DOUBLE), keepdims=0), to=I64)
    dim = g.Add(g.Mod(number, np.int64(7)), np.int64(1))
    g.nodes.append(helper.make_node("Expand", [g.name(np.float32(2)), g.Reshape(dim, np.array([1]))], ["y"], name="y"))
    graph = helper.make_graph(g.nodes, "large", inputs, [helper.make_tensor_value_info("y", F32, ["n"])], g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), feeds


def check(folder, step, source, count, optimize):
    made, feeds = model_of(step, source, count)
    onnx.save(made, folder / "m.onnx")
    words = []
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    good("run", folder / "m.onnx", "--device", "cpu", *words, "--optimize", optimize, "--output-dir", folder)
    want, got = ReferenceEvaluator(made).run(None, feeds)[0], np.load(folder / "output_0.npy")
    assert got.shape == want.shape and np.array_equal(got, want), (step, source, count, optimize, got.shape, want.shape)


@pytest.mark.parametrize("step", STEPS)
def test_shapes(step, tmp_path):
    cases = list(itertools.product(SOURCES, (48, 24000), ("off", "on")))
    first = list(STEPS).index(step)
    for k in range(sizes.count(5)):
        check(tmp_path, step, *cases[(5 * first + 3 * k) % len(cases)])


def test_a_million_numbers(tmp_path):
    """More than the plan keeps: the value is used while planning, and computed in the run where an output wants it."""
    for source in SOURCES:
        check(tmp_path, "cum_sum", source, 1_200_000, "off")


def test_too_large_to_plan_with(tmp_path):
    """A file of a few bytes asks for no memory without limit."""
    made, feeds = model_of("plain", "range", 48)
    for t in made.graph.initializer:
        if numpy_helper.to_array(t).shape == () and numpy_helper.to_array(t) == 48:
            t.CopyFrom(numpy_helper.from_array(np.int64(2**50), t.name))
    onnx.save(made, tmp_path / "m.onnx")
    r = heddle("plan", tmp_path / "m.onnx", "--device", "cpu")
    assert r.status == 1 and "planning takes" in r.err and "(Range)" in r.err, r
