"""Convolutional networks of realistic sizes on cpu with oneDNN, against ONNX Runtime.

labels: slow ctypes
timeout: 600
"""
import json
import os

import capi
import numpy as np
import onnx_cases
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import io

CHANNELS = (3, 8, 16, 20, 32, 48, 64)


class Net:
    """A random network: convolutions of all kinds with what stands between them in real ones, then a classifier."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        self.batch = int(self.rng.choice([1, 1, 2, 5]))
        shape = [self.batch, int(self.rng.choice(CHANNELS)), int(self.rng.choice([7, 14, 28, 33]))]
        self.shape = shape + [shape[2]]
        x, shape, seen = "x", self.shape, []
        for _ in range(int(self.rng.integers(4, 9))):
            x, shape = self.layer(x, shape, seen)
            seen.append((x, shape))
        inner = x
        self.outputs = [inner, self.classify(x, shape)]

    def weight(self, *shape, low=-1.0, scale=None):
        name = f"w{len(self.weights)}"
        scale = scale if scale is not None else 1 / np.sqrt(max(1, np.prod(shape[1:])))
        self.weights.append(numpy_helper.from_array(
            (self.rng.uniform(low, 1, shape) * scale).astype(np.float32), name))
        return name

    def node(self, op, inputs, **attrs):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def conv(self, x, shape):
        n, c, h, w = shape
        k, s, d = int(self.rng.choice([1, 3, 3, 5])), int(self.rng.choice([1, 1, 2])), int(self.rng.choice([1, 1, 2]))
        kind = self.rng.random()
        out = int(self.rng.choice(CHANNELS))
        groups = c if kind < 0.25 else 4 if kind < 0.4 and c % 4 == 0 else 1
        out = c * int(self.rng.integers(1, 3)) if groups == c else (out + 3) // 4 * 4 if groups == 4 else out
        reach = (k - 1) * d + 1
        if reach > h:
            return x, shape
        before, after = (int(v) for v in self.rng.integers(0, reach // 2 + 1, 2))
        inputs = [x, self.weight(out, c // groups, k, k)] + ([self.weight(out)] if self.rng.random() < 0.6 else [])
        size = (h + before + after - reach) // s + 1
        y = self.node("Conv", inputs, group=groups, strides=[s, s], dilations=[d, d], kernel_shape=[k, k],
                      pads=[before, before, after, after])
        return y, [n, out, size, size]

    def layer(self, x, shape, seen):
        n, c, h, _ = shape
        kind = self.rng.random()
        if kind < 0.65 or h < 4:
            x, shape = self.conv(x, shape)
        elif kind < 0.75:
            x = self.node(str(self.rng.choice(["MaxPool", "AveragePool"])), [x], kernel_shape=[3, 3], strides=[2, 2],
                          pads=[1, 1, 1, 1])
            shape = [n, c, (h - 1) // 2 + 1, (h - 1) // 2 + 1]
        elif kind < 0.82:
            x = self.node("ConvTranspose", [x, self.weight(c, 16, 2, 2), self.weight(16)], strides=[2, 2],
                          kernel_shape=[2, 2])
            shape = [n, 16, 2 * h, 2 * h]
        elif kind < 0.9:
            x = self.node("BatchNormalization", [x, self.weight(c), self.weight(c), self.weight(c),
                                                 self.weight(c, low=0.5, scale=1.0)])
        else:
            x = self.node("Concat", [x, self.node("Mul", [x, self.weight(1, c, 1, 1)])], axis=1)
            shape = [n, 2 * c, h, h]
        same = [name for name, s in seen if s == shape]
        if same and self.rng.random() < 0.7:
            x = self.node("Add", [x, same[-1]])
        how = self.rng.random()
        if how < 0.5:
            x = self.node("Relu", [x])
        elif how < 0.85:
            x = self.node(str(self.rng.choice(["LeakyRelu", "Elu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish"])), [x])
        return x, shape

    def classify(self, x, shape):
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x])])
        x = self.node("Relu", [self.node("Gemm", [x, self.weight(300, shape[1]), self.weight(300)], transB=1)])
        x = self.node("Add", [self.node("MatMul", [x, self.weight(300, 257)]), self.weight(257)])
        return self.node("Softmax", [x], axis=1)

    def model(self):
        outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def input(self):
        return self.rng.standard_normal(self.shape).astype(np.float32)


def heddle(ctx, model, x, plans=None):
    graph, params = onnx_cases.graph(model, 17, {"x": x})
    made = []
    try:
        made.append(capi.Graph(json.dumps(graph)))
        made.append(capi.Params(io.params_blob(params)))
        made.append(capi.Model(ctx, made[0], made[1], devices="cpu"))
        made.append(capi.Executor(made[2]))
        made[3].set_input("x", x)
        if plans is not None:
            plans.append(made[3].explain_json())
        runs = []
        for _ in range(2):
            made[3].run()
            runs.append([np.array(o) for o in made[3].outputs()])
        assert all(a.tobytes() == b.tobytes() for a, b in zip(*runs)), "two runs differ"
        return runs[0]
    finally:
        for thing in reversed(made):
            thing.close()


SETTINGS = [dict(cpu__onednn="auto", threads=1), dict(cpu__onednn="auto", threads=3),
            dict(cpu__onednn="always", threads=2), dict(cpu__onednn="always", threads=4, cpu__fuse=0),
            dict(cpu__onednn="off", threads=2)]


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_networks(first):
    contexts = [capi.Context(**s) for s in SETTINGS]
    again = capi.Context(**SETTINGS[1])
    try:
        for seed in range(first, first + 12):
            net = Net(seed)
            model, x = net.model(), net.input()
            want = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
                None, {"x": x})
            results = [heddle(ctx, model, x) for ctx in contexts]
            for settings, got in zip(SETTINGS, results):
                for k, (g, w) in enumerate(zip(got, want)):
                    assert g.shape == w.shape
                    worst = np.max(np.abs(g - w)) / max(np.max(np.abs(w)), 1e-6)
                    assert worst < 2e-5, f"seed {seed}, {settings}: output {k} differs by {worst} of the largest"
            second = heddle(again, model, x)
            assert all(a.tobytes() == b.tobytes() for a, b in zip(results[1], second)), f"seed {seed}: other bits"
    finally:
        for ctx in [*contexts, again]:
            ctx.close()


def classifier(rng):
    """A 1x1 convolution, the mean of each channel, and one row times 8 MB of weights."""
    weights = {"c": (rng.standard_normal((2048, 32, 1, 1)) / 6).astype(np.float32),
               "w": (rng.standard_normal((1000, 2048)) / 45).astype(np.float32),
               "b": rng.standard_normal(1000).astype(np.float32)}
    nodes = [helper.make_node("Conv", ["x", "c"], ["y"], name="conv"),
             helper.make_node("GlobalAveragePool", ["y"], ["p"], name="pool"),
             helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
             helper.make_node("Gemm", ["f", "w", "b"], ["out"], name="gemm", transB=1)]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 32, 14, 14))],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), weights


@pytest.mark.parametrize("threads", [1, 2])
def test_one_row_times_a_large_matrix(threads):
    rng = np.random.default_rng(5)
    model, w = classifier(rng)
    x = rng.standard_normal((1, 32, 14, 14)).astype(np.float32)
    want = x[0].astype(np.float64).mean((1, 2)) @ w["c"][:, :, 0, 0].T.astype(np.float64) @ w["w"].T + w["b"]
    ctx = capi.Context(threads=threads)
    try:
        plans = []
        got = heddle(ctx, model, x, plans)[0]
        # What the pool writes, one pixel a channel, is row-major as it is.
        behind = [r["label"] for r in plans[0]["regions"] if r["kind"] == "reorder" and "pool" in r["label"]]
        assert behind == []
        assert np.max(np.abs(got[0] - want)) < 1e-5 * np.max(np.abs(want))
    finally:
        ctx.close()


@pytest.mark.skipif(not os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3")),
                    reason="built without oneDNN")
def test_a_wrong_word_is_refused():
    with pytest.raises(capi.HeddleError, match="auto, always or off"):
        ctx = capi.Context(cpu__onednn="sometimes")
        try:
            heddle(ctx, Net(0).model(), Net(0).input())
        finally:
            ctx.close()
