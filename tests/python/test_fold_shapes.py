"""Shapes that a model computes from the shapes of its inputs: each operator that planning computes itself gives what
onnx.reference gives, for the shape and for the values, and the model stays one program.
timeout: 300"""

import json

import numpy as np
import onnx
import pytest
from node_graph import NodeGraph
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tool_case import good

INT, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


class Graph(NodeGraph):
    def __init__(self):
        super().__init__()
        self.outputs = []

    def shape(self, name, dims):
        """The values of dims, and a tensor of that shape, are outputs of the model."""
        one = self.Expand(np.float32(7), dims)
        for kind, value, dtype in (("dims", dims, INT), ("made", one, FLOAT)):
            self.nodes.append(helper.make_node("Identity", [value], [f"{name}.{kind}"], name=f"{name}.{kind}"))
            self.outputs.append(helper.make_tensor_value_info(f"{name}.{kind}", dtype, None))


def truths(g, what):
    """1 and 2 for truths."""
    return g.Add(g.Cast(what, to=INT), [1])


def reals(g, s, step):
    """A float32 in the middle: halves, then whole numbers of at least 1 again."""
    return g.Cast(step(g.Mul(g.Cast(s, to=FLOAT), [0.5])), to=INT)


CASES = {
    "add_mul": lambda g, s: g.Mul(g.Add(s, [1, 0]), [1, 2]),
    "sub": lambda g, s: g.Sub(s, [1, 2]),
    "div": lambda g, s: g.Div(s, [2, 3]),
    "div_to_zero": lambda g, s: g.Div(g.Sub(s, [20, 20]), [-4, -7]),
    "div_by_minus_one": lambda g, s: g.Div(g.Neg(s), [-1, -1]),
    "min": lambda g, s: g.Min(s, [4, 4], [9, 3]),
    "max": lambda g, s: g.Max(s, [4, 4], [2, 6]),
    "one_of_min": lambda g, s: g.Min(s),
    "neg_abs": lambda g, s: g.Abs(g.Neg(s)),
    "where": lambda g, s: g.Where(g.Greater(s, [4, 4]), s, [2, 2]),
    "equal": lambda g, s: truths(g, g.Equal(s, [3, 3])),
    "greater_or_equal": lambda g, s: truths(g, g.GreaterOrEqual(s, [3, 6])),
    "less": lambda g, s: truths(g, g.Less(s, [4, 4])),
    "less_or_equal": lambda g, s: truths(g, g.LessOrEqual(s, [3, 4])),
    "and_not": lambda g, s: truths(g, g.And(g.Less(s, [4, 9]), g.Not(g.Equal(s, [3, 9])))),
    "or": lambda g, s: truths(g, g.Or(g.Less(s, [2, 9]), g.Equal(s, [3, 9]))),
    "xor": lambda g, s: truths(g, g.Xor(g.Less(s, [4, 9]), g.Less(s, [9, 9]))),
    "reals": lambda g, s: reals(g, s, lambda x: g.Add(g.Sub(g.Div(x, [0.5]), [0.25]), [0.75])),
    "reals_min_max": lambda g, s: reals(g, s, lambda x: g.Max(g.Min(x, [2.5]), [1.25], [1.5])),
    "reals_neg_abs": lambda g, s: reals(g, s, lambda x: g.Abs(g.Neg(g.Add(x, [1.0])))),
    "reals_compared": lambda g, s: truths(g, g.Less(g.Cast(s, to=FLOAT), [3.5])),
    "int32": lambda g, s: g.Cast(g.Mul(g.Cast(s, to=TensorProto.INT32), np.array([2], np.int32)), to=INT),
    "range": lambda g, s: g.Range(np.int64(1), g.Gather(s, np.int64(0)), np.int64(1)),
    "range_down": lambda g, s: g.Range(g.Gather(s, np.int64(0)), np.int64(0), np.int64(-1)),
    "expand": lambda g, s: g.Expand(g.Slice(s, [0], [1]), [3]),
    "gather": lambda g, s: g.Gather(s, [-1, 0, -2]),
    "split": lambda g, s: g.Concat(*reversed(g.Split(s, n=2, axis=0, num_outputs=2)), axis=0),
    "split_sizes": lambda g, s: g.Concat(*reversed(g.Split(g.Concat(s, [2], axis=0), [2, 1], n=2, axis=0)), axis=0),
    "slice_back": lambda g, s: g.Slice(g.Concat(s, [2], axis=0), [-1], [-9], [0], [-1]),
    "transpose": lambda g, s: g.Reshape(g.Transpose(g.Reshape(g.Concat(s, [1, 2], axis=0), [2, 2])), [-1]),
    "transpose_perm": lambda g, s: g.Reshape(g.Transpose(g.Reshape(g.Concat(s, [1, 2], axis=0), [1, 2, 2]),
                                                         perm=[2, 0, 1]), [-1]),
    "sum_of_all": lambda g, s: g.ReduceSum(s, keepdims=1),
    "product_of_all": lambda g, s: g.ReduceProd(s, keepdims=1),
    "most_of_all": lambda g, s: g.Concat(g.ReduceMax(s, keepdims=1), g.ReduceMin(s, keepdims=1), axis=0),
    "constant_of_shape": lambda g, s: g.Add(s, g.ConstantOfShape([2], value=helper.make_tensor("v", INT, [1], [2]))),
    "constants": lambda g, s: g.Add(s, g.Constant(value_ints=[1, 2])),
    "part_of_a_shape": lambda g, s: g.Concat(g.Shape("x", start=1), g.Shape("x", start=-2, end=-1), axis=0),
    "by_a_kernel": lambda g, s: g.Add(g.Mod(s, [3, 2]), [1]),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    g = Graph()
    s = g.Shape("x")
    for name, make in CASES.items():
        g.shape(name, make(g, s))
    graph = helper.make_graph(g.nodes, "shapes", [helper.make_tensor_value_info("x", FLOAT, ["rows", "columns"])],
                              g.outputs, g.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = tmp_path_factory.mktemp("shapes") / "shapes.onnx"
    onnx.save(made, path)
    return path, made


@pytest.mark.parametrize("shape", [(3, 5), (4, 9)])
@pytest.mark.parametrize("optimize", ["on", "off"])
def test_shapes(model, shape, optimize, tmp_path):
    path, made = model
    x = np.zeros(shape, np.float32)
    np.save(tmp_path / "x.npy", x)
    words = (path, "--device", "cpu", "--input", f"x={tmp_path}/x.npy", "--optimize", optimize)
    assert "stages" not in json.loads(good("plan", *words, "--json"))  # planning knew every shape
    good("run", *words, "--output-dir", tmp_path)
    for k, (info, want) in enumerate(zip(made.graph.output, ReferenceEvaluator(made).run(None, {"x": x}))):
        got = np.load(tmp_path / f"output_{k}.npy")
        assert got.shape == want.shape and np.array_equal(got, want), f"{info.name}: {got.shape}, {got}, not {want}"
