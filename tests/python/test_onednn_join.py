"""Branches of convolutions that a Concat puts side by side, on cpu with oneDNN: results against ONNX Runtime's, and by the
plan which of them are written to their places at once.

labels: ctypes
timeout: 300
"""
import os

import capi
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_onednn import heddle

BUILT_IN = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3"))


class Branches:
    """x, and a Concat of one convolution a branch: (channels, kernel, what follows)."""

    def __init__(self, branches, images=1, axis=1, ndim=4):
        self.rng = np.random.default_rng(7)
        self.nodes, self.weights, self.outputs = [], [], ["out"]
        self.shape = [images, 32] + [20] * (ndim - 2)
        parts = [self.branch(k, *b) for k, b in enumerate(branches)]
        self.node("Concat", parts, "cat", axis=axis)
        self.node("Neg", ["cat"], "out")

    def node(self, op, inputs, name, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def weight(self, name, *shape):
        scale = 1 / np.sqrt(max(1, np.prod(shape[1:])))
        self.weights.append(numpy_helper.from_array((self.rng.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def branch(self, k, channels, kernel, then):
        spatial = len(self.shape) - 2
        size = [kernel] * spatial
        x = "x"
        if then == "pool":
            x = self.node("MaxPool", [x], f"pool{k}", kernel_shape=[3] * spatial, pads=[1] * 2 * spatial)
        y = self.node("Conv", [x, self.weight(f"w{k}", channels, 32, *size), self.weight(f"b{k}", channels)], f"conv{k}",
                      kernel_shape=size, pads=[kernel // 2] * 2 * spatial)
        if then in ("Relu", "Tanh", "seen"):
            y = self.node("Relu" if then == "seen" else then, [y], f"then{k}")
        if then == "seen":
            self.outputs.append(y)
        if then == "Clip":
            for name, value in (("low", -0.5), ("high", 0.5)):
                self.weights.append(numpy_helper.from_array(np.float32(value), f"{name}{k}"))
            y = self.node("Clip", [y, f"low{k}", f"high{k}"], f"then{k}")
        if then == "Add":
            y = self.node("Relu", [self.node("Add", [y, "x"], f"sum{k}")], f"then{k}")
        return y

    def model(self):
        outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "net",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)], outputs,
                                  self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


BLOCKS = [(32, 1, "Relu"), (32, 3, "Relu"), (48, 5, "Tanh"), (32, 1, "pool")]
CASES = {
    "blocks": (Branches(BLOCKS), True),
    "clip": (Branches([(32, 1, "Clip"), (64, 3, "none")]), True),
    "residual": (Branches([(32, 3, "Add"), (32, 1, "Relu")]), True),
    "last_axis_but_two": (Branches(BLOCKS, axis=-3), True),
    "one_dimension": (Branches(BLOCKS, ndim=3), True),
    "odd_channels": (Branches([(32, 1, "Relu"), (20, 3, "Relu")]), False),
    "two_images": (Branches(BLOCKS, images=2), False),
    "rows": (Branches([(32, 1, "Relu"), (32, 3, "Relu")], axis=2), False),
    "seen_outside": (Branches([(32, 1, "seen"), (32, 3, "Relu")]), False),
    "single_blocks": (Branches([(16, 1, "Relu"), (16, 3, "Relu")]), None),  # cannot be cut for threads
    "nine": (Branches([(32, 1, "Relu")] * 9), False),
}


def joined(plan):
    ops = {node["id"]: node["op"] for node in plan["nodes"]}
    return any(len(r["nodes"]) > 1 and ops[max(r["nodes"])] == "Concat" for r in plan["regions"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("settings", [dict(threads=1), dict(threads=2), dict(threads=1, cpu__onednn="off"),
                                      dict(threads=2, cpu__fuse=0)], ids=str)
def test_branches(name, settings):
    net, wanted = CASES[name]
    model = net.model()
    x = np.random.default_rng(1).standard_normal(net.shape).astype(np.float32)
    want = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    ctx = capi.Context(**settings)
    plans = []
    try:
        got = heddle(ctx, model, x, plans)
    finally:
        ctx.close()
    for g, w in zip(got, want):
        assert g.shape == w.shape and np.max(np.abs(g - w)) < 2e-5 * np.max(np.abs(w))
    on = BUILT_IN and settings.get("cpu__onednn") != "off" and settings.get("cpu__fuse") != 0
    if wanted is not None or settings["threads"] == 1:
        assert joined(plans[0]) == (wanted is not False and on)
