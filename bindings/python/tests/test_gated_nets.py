"""Networks of depthwise convolutions, gates and squeeze-and-excitation on cpu: layouts stay from one convolution to the next,
and means of images are right in every layout. Against numpy in float64, and against the convolutions' own results."""
import glob
import os

import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

ONEDNN = bool(glob.glob(os.path.join(os.environ.get("HEDDLE_BUILD", ""), "lib/heddle/plugins/libdnnl.so.3")))


class Net:
    def __init__(self, shape, seed=0):
        self.rng, self.shape = np.random.default_rng(seed), shape
        self.nodes, self.weights, self.channels = [], [], {"x": shape[1]}

    def constant(self, array):
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, op, inputs, channels=None, **attrs):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        self.channels[name] = channels or self.channels[inputs[0]]
        return name

    def conv(self, x, out, r=1, stride=1, group=1):
        each = self.channels[x] // group
        w = (self.rng.standard_normal((out, each, r, r)) / np.sqrt(each * r * r)).astype(np.float32)
        inputs = [x, self.constant(w), self.constant(self.rng.standard_normal(out).astype(np.float32))]
        return self.node("Conv", inputs, out, pads=[r // 2] * 4, strides=[stride] * 2, group=group)

    def silu(self, x):
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def mean(self, x, axes=(2, 3), keep=1):
        return self.node("ReduceMean", [x, self.constant(np.array(axes, np.int64))], keepdims=keep)

    def model(self, outputs, context=None):
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, self.shape if n == "x" else None) for n in ["x", *outputs]]
        graph = helper.make_graph(self.nodes, "net", values[:1], values[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        return heddle.load(model.SerializeToString(), devices="cpu", context=context)


@pytest.fixture(scope="module", params=[1, 3])
def threads(request):
    return heddle.Context({"threads": str(request.param)})


@pytest.mark.parametrize("shape", [(1, 16, 1, 2), (1, 20, 7, 7), (2, 33, 13, 5), (1, 64, 40, 41), (3, 7, 112, 112), (1, 300, 4, 4)], ids=str)
@pytest.mark.parametrize("behind", [False, True], ids=["alone", "behind"])
def test_means(threads, shape, behind):
    """Row-major, and in the layout that convolutions leave."""
    n = Net(shape)
    y = n.conv(n.conv("x", shape[1]), shape[1], 3) if behind else "x"
    outputs = [n.mean(y), n.mean(y, keep=0), n.mean(y, axes=(-1, -2)), n.node("GlobalAveragePool", [y])] + [y] * behind
    x = (n.rng.standard_normal(shape) + 3).astype(np.float32)
    got = n.model(outputs, threads).run(None, {"x": x})
    values = got[4].astype(np.float64) if behind else x.astype(np.float64)
    want, size = values.mean(axis=(2, 3)), np.abs(values).mean(axis=(2, 3))
    for k, result in enumerate(got[:4]):
        assert result.shape == (shape[:2] if k == 1 else (*shape[:2], 1, 1))
        assert np.all(np.abs(result.reshape(want.shape) - want) <= 1e-6 * size), k


def test_means_of_what_is_not_finite(threads):
    n = Net((1, 24, 9, 9))
    x = np.ones(n.shape, np.float32)
    x[0, 3, 2, 2], x[0, 5, 0, 0], x[0, 7, 1, 1], x[0, 7, 4, 4] = np.nan, np.inf, np.inf, -np.inf
    got, = n.model([n.mean("x", keep=0)], threads).run(None, {"x": x})
    assert np.isnan(got[0, [3, 7]]).all() and got[0, 5] == np.inf and np.isfinite(np.delete(got, [3, 5, 7])).all()


@pytest.mark.parametrize("channels", [32, 40])
def test_a_gated_block(threads, channels):
    """Inverted bottleneck with SiLU, a gate and a residual."""
    n = Net((1, 3, 64, 64))
    x = n.silu(n.conv("x", channels, 3, 2))
    y = n.silu(n.conv(x, 2 * channels))
    y = n.silu(n.conv(y, 2 * channels, 5, group=2 * channels))
    gate = n.node("Sigmoid", [n.conv(n.silu(n.conv(n.mean(y), 8)), 2 * channels)])
    y = n.node("Add", [n.conv(n.node("Mul", [y, gate]), channels), x])
    model = n.model([y], threads)
    image = n.rng.standard_normal(n.shape).astype(np.float32)
    got, = model.run(None, {"x": image})
    want, = n.model([y], heddle.Context({"cpu.onednn": "off", "optimize": "off"})).run(None, {"x": image})
    assert np.max(np.abs(got - want)) <= 4e-6 * np.max(np.abs(want))
    plan = model.plan.json if isinstance(model.plan.json, dict) else model.plan.json()
    if ONEDNN:  # the image may change its layout once on its way in, and the result on its way out
        moved = [r["label"] for r in plan["regions"] if r["kind"] == "reorder"]
        assert len(moved) <= 2, moved
    assert sum("Swish" in step["label"] for step in plan["steps"]) == 4


@pytest.mark.parametrize("sizes", [(16, 16), (8, 24, 32), (20, 12)], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
def test_split_between_convolutions(threads, sizes, batch):
    """As YOLO has it: parts go on alone, and are joined again. Parts that are no whole blocks are split row-major."""
    n = Net((batch, 6, 30, 34))
    y = n.silu(n.conv("x", sum(sizes), 3))
    parts = [f"part{k}" for k in range(len(sizes))]
    n.nodes.append(helper.make_node("Split", [y, n.constant(np.array(sizes, np.int64))], parts, name="split", axis=1))
    n.channels.update(zip(parts, sizes))
    y = n.node("Concat", [*parts, n.silu(n.conv(parts[-1], 16, 3))], sum(sizes) + 16, axis=1)
    y = n.conv(y, 24)
    model = n.model([y, parts[0]], threads)
    image = n.rng.standard_normal(n.shape).astype(np.float32)
    got = model.run(None, {"x": image})
    want = n.model([y, parts[0]], heddle.Context({"cpu.onednn": "off", "optimize": "off"})).run(None, {"x": image})
    for a, b in zip(got, want):
        assert np.max(np.abs(a - b)) <= 4e-6 * np.max(np.abs(b))


@pytest.mark.parametrize("mean", ["GlobalAveragePool", "ReduceMean"])
def test_the_number_of_images_changes(threads, mean):
    """Everything that follows convolutions runs image by image then: gates, means, parts, residuals."""
    n = Net((4, 3, 32, 34))
    x = n.silu(n.conv("x", 32, 3, 2))
    y = n.silu(n.conv(x, 64, 3, group=32))
    pooled = n.mean(y) if mean == "ReduceMean" else n.node("GlobalAveragePool", [y])
    gate = n.node("Sigmoid", [n.conv(n.silu(n.conv(pooled, 8)), 64)])
    y = n.node("Mul", [y, gate])
    n.nodes.append(helper.make_node("Split", [y, n.constant(np.array([16, 48], np.int64))], ["a", "b"], name="split", axis=1))
    n.channels.update(a=16, b=48)
    y = n.node("Add", [n.conv(n.node("Concat", ["b", "a"], 64, axis=1), 32, 3), x])
    n.shape = ("images", *n.shape[1:])
    model = n.model([y, pooled], threads)
    plain = n.model([y, pooled], heddle.Context({"cpu.onednn": "off", "optimize": "off", "ranges": "off"}))
    for images in (4, 2, 3, 1, 4, 7, 5):
        x = n.rng.standard_normal((images, *n.shape[1:])).astype(np.float32)
        for a, b in zip(model.run(None, {"x": x}), plain.run(None, {"x": x})):
            assert a.shape == b.shape and np.max(np.abs(a - b)) <= 4e-6 * np.max(np.abs(b)), images
