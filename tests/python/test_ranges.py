"""Shapes that change from run to run, in random order: programs over ranges of shapes against ONNX Runtime. An encoder, and
models in which Slice, Concat, Pad, Resize, Expand, Range and Loop depend on dimensions; on cpu, sim, OpenCL and mixtures. Attention
over keys that lie apart by their number, as in caches, against onnx.reference.

labels: ctypes
timeout: 300
"""
import os
import random

import capi
import numpy as np
import onnxruntime
import pocl
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tool_case import heddle

RUNS = int(20 * float(os.environ.get("HEDDLE_TEST_SCALE", 1)))
WIDTH = 16
RNG = np.random.default_rng(11)


class Net:
    def __init__(self):
        self.nodes, self.weights = [], []

    def const(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape):
        return self.const((RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(self, op, *inputs, **attrs):
        name = f"n{len(self.nodes)}_{op}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def size(self, x, axis):
        """A dimension of x as a list of one number."""
        return self.node("Gather", self.node("Shape", x), self.const(np.array([axis], np.int64)), axis=0)

    def list(self, *parts):
        return self.node("Concat", *(self.const(np.array([p], np.int64)) if isinstance(p, int) else p for p in parts), axis=0)

    def model(self, y):
        graph = helper.make_graph(self.nodes, "ranges", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "n", WIDTH])],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def encoder():
    net, heads = Net(), 2
    x = net.node("LayerNormalization", "x", net.weight(WIDTH), net.weight(WIDTH))
    shape = net.list(net.size("x", 0), net.size("x", 1), heads, WIDTH // heads)

    def apart(order):
        y = net.node("Add", net.node("MatMul", x, net.weight(WIDTH, WIDTH)), net.weight(WIDTH))
        return net.node("Transpose", net.node("Reshape", y, shape), perm=order)

    q, k, v = apart([0, 2, 1, 3]), apart([0, 2, 3, 1]), apart([0, 2, 1, 3])
    scores = net.node("Mul", net.node("MatMul", q, k), net.const(np.float32(0.3)))
    y = net.node("Transpose", net.node("MatMul", net.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    y = net.node("Reshape", y, net.list(net.size("x", 0), net.size("x", 1), WIDTH))
    y = net.node("Add", net.node("MatMul", y, net.weight(WIDTH, WIDTH)), x)
    return net.model(net.node("Relu", net.node("MatMul", y, net.weight(WIDTH, 4 * WIDTH))))


def moves():
    """Half of the rows behind all of them, padded, resized, with positions and a row mean added."""
    net = Net()
    n = net.size("x", 1)
    one = net.const(np.array([1], np.int64))
    half = net.node("Div", net.node("Add", n, one), net.const(np.array([2], np.int64)))
    start, axis = net.const(np.array([0], np.int64)), net.const(np.array([1], np.int64))
    y = net.node("Concat", "x", net.node("Slice", "x", start, half, axis), axis=1)
    rest = net.node("Mod", n, net.const(np.array([3], np.int64)))
    y = net.node("Pad", y, net.list(0, rest, 0, 0, one, 0), net.const(np.float32(0.5)))
    rows = net.size(y, 1)
    y = net.node("Unsqueeze", y, net.const(np.array([1], np.int64)))
    twice = net.node("Mul", rows, net.const(np.array([2], np.int64)))
    y = net.node("Resize", y, "", "", net.list(net.size("x", 0), 1, twice, WIDTH), mode="nearest")
    y = net.node("Squeeze", y, net.const(np.array([1], np.int64)))
    count = net.node("Squeeze", twice, net.const(np.array([0], np.int64)))
    places = net.node("Cast", net.node("Range", net.const(np.int64(0)), count, net.const(np.int64(1))), to=TensorProto.FLOAT)
    y = net.node("Add", y, net.node("Unsqueeze", places, net.const(np.array([0, 2], np.int64))))
    mean = net.node("Expand", net.node("ReduceMean", y, axes=[1], keepdims=1), net.list(net.size("x", 0), twice, WIDTH))
    return net.model(net.node("Where", net.node("Greater", y, mean), y, net.node("MatMul", mean, net.weight(WIDTH, WIDTH))))


def loop():
    """As many turns as there are rows, each of a product."""
    net = Net()
    w = net.weight(WIDTH, WIDTH)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["v", w], ["m"]), helper.make_node("Tanh", ["m"], ["t"]),
         helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
    turns = net.node("Squeeze", net.node("Mod", net.size("x", 1), net.const(np.array([5], np.int64))),
                     net.const(np.array([0], np.int64)))
    y = net.node("Loop", turns, net.const(np.array(True)), net.node("Relu", "x"), body=body)
    return net.model(net.node("Add", y, "x"))


MODELS = {"encoder": encoder, "moves": moves, "loop": loop}
PLACES = [("cpu", (), 1), ("cpu", (), 3), ("sim:0,cpu", ("*Add=cpu", "*Reshape=cpu"), 2), ("sim:0,sim:1", ("*MatMul=sim:1",), 2),
          ("opencl:0,cpu", ("*Softmax=cpu", "*Pad=cpu"), 2)]


@pytest.mark.parametrize("devices,place,threads", PLACES)
@pytest.mark.parametrize("name", MODELS)
def test_random_shapes(tmp_path, name, devices, place, threads):
    if "opencl" in devices:
        pocl.need()
        pocl.in_process()
    model = MODELS[name]()
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ctx = capi.Context(threads=threads, optimize="on", layers="check")
    ours = capi.Model.load(ctx, path, devices=devices, place=place)
    ex = capi.Executor(ours)
    rand = random.Random(len(name))
    for _ in range(RUNS):
        b, n = rand.choice([1, 1, 2, 3]), rand.randint(1, rand.choice([6, 40, 90]))
        x = RNG.standard_normal((b, n, WIDTH)).astype(np.float32)
        ex.set_input("x", x)
        ex.run()
        want, got = session.run(None, {"x": x})[0], ex.output(0)
        assert got.shape == want.shape
        assert np.abs(got - want).max(initial=0) <= 1e-4 * max(1, np.abs(want).max(initial=0)), (b, n)
    for thing in (ex, ours, ctx):
        thing.close()


def over_a_cache(heads, groups, size, turned, mask):
    """Softmax(q k' / 2 + mask) v. k is [b, groups, s, size], or turned; a mask has as many dimensions as are given."""
    net = Net()
    k = "k" if turned else net.node("Transpose", "k", perm=[0, 1, 3, 2])
    scores = net.node("Mul", net.node("MatMul", "q", k), net.const(np.float32(0.5)))
    if mask:
        scores = net.node("Add", scores, "mask")
    y = net.node("Transpose", net.node("MatMul", net.node("Softmax", scores, axis=-1), "v"), perm=[0, 2, 1, 3])
    shapes = {"q": ["b", heads, "r", size], "k": ["b", groups, size, "s"] if turned else ["b", groups, "s", size],
              "v": ["b", groups, "s", size], "mask": {0: None, 1: ["s"], 2: ["r", "s"], 4: ["b", 1, "r", "s"]}[mask]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items() if shape]
    graph = helper.make_graph(net.nodes, "cache", inputs, [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
                              net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), shapes


@pytest.mark.parametrize("heads,groups,size,turned,mask,threads", [
    (4, 4, 64, False, 0, 1), (3, 3, 20, False, 4, 2), (4, 1, 16, False, 1, 2), (2, 2, 37, True, 2, 1), (5, 5, 1, True, 4, 1)])
def test_attention_over_a_cache(tmp_path, heads, groups, size, turned, mask, threads):
    model, shapes = over_a_cache(heads, groups, size, turned, mask)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    reference, rand = ReferenceEvaluator(model), random.Random(size)
    ctx = capi.Context(threads=threads, optimize="on", layers="check")
    ours = capi.Model.load(ctx, path, devices="cpu")
    ex = capi.Executor(ours)
    for turn in range(RUNS + 6):
        sizes = {"b": rand.choice([1, 1, 2]), "r": rand.choice([1, 1, 1, 2, 7, 8, 9, 30]), "s": rand.randint(1, rand.choice([6, 50, 120]))}
        if turn == 1:
            sizes = {"b": 2, "r": 32, "s": 128}  # the bound
        feed = {name: RNG.standard_normal([sizes.get(d, d) for d in shape]).astype(np.float32) for name, shape in shapes.items() if shape}
        if mask and sizes["s"] > 1:
            feed["mask"][..., 1::3] = -np.inf
        for name, value in feed.items():
            ex.set_input(name, value)
        ex.run()
        np.testing.assert_allclose(ex.output(0), reference.run(None, feed)[0], rtol=1e-4, atol=1e-5, err_msg=str(sizes))
    for thing in (ex, ours, ctx):
        thing.close()


@pytest.mark.parametrize("dims", [[1000000, 1000000], ["rows", 1000000]])
def test_memory_is_missing_for_fixed_dimensions(tmp_path, dims):
    """The error says which dimensions of the largest input are how large, and what was needed; a number for an open one fixes it."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", dims), ("s", [4]), ("y", dims))]
    nodes = [helper.make_node("ReduceSum", ["s"], ["t"], keepdims=0), helper.make_node("Mul", ["x", "t"], ["y"])]
    graph = helper.make_graph(nodes, "large", info[:2], info[2:])
    path = tmp_path / "large.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    done = heddle("run", path, "--device", "cpu", "--random", *(("--dim", "rows=1000000") if "rows" in dims else ()))
    assert done.status != 0 and "Traceback" not in done.err
    assert "'x' dimension 0 = 1000000, 'x' dimension 1 = 1000000: 4000000000000 bytes" in done.err, done.err
    assert "'s'" not in done.err
