"""Random graphs with all optimisations on: those of random_graphs over placements, within the same bounds, and nets put
together of what exporters write, against onnx.reference in float64. labels: ctypes slow
timeout: 600
"""
import collections

import capi
import numpy as np
import pytest
import random_graphs
from optimize_case import Net, batch_norm, check, erf_form, layer_norm, tanh_form
from reference import placements

PASSES = {"dead", "fold", "identity", "cse", "reshapes", "transposes", "conv", "activation", "layer_norm", "gemm"}


def test_random_graphs():
    ctx = capi.Context(optimize="on")
    for seed in range(400, 460):
        graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(seed)
        for k, placement in enumerate(placements.placements(graph, seed)):
            outputs = random_graphs.run_case(ctx, graph, params, inputs, placement)
            random_graphs.check(f"seed {seed} placement {k}", graph, outputs, values, bounds, numpy32)
    ctx.close()


class Maker:
    """A net of images [2, C, H, W], then of rows [2, T, D], that grows a block at a time."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.net = Net(int(self.rng.choice([14, 17, 18])))  # onnx.reference takes BatchNormalization of 13 for training
        self.net.rng = self.rng
        self.n = 0
        self.shape = [2, int(self.rng.integers(2, 6)), int(self.rng.integers(4, 8)), int(self.rng.integers(4, 8))]
        self.last = self.net.x("x", "batch" if self.rng.random() < 0.3 else 2, *self.shape[1:])
        self.heads = []

    def scalar(self, value, dtype=np.float32):
        self.n += 1
        return self.net.w(f"s{self.n}", np.array(value, dtype))

    def weights(self, *shape, **more):
        self.n += 1
        return self.net.weights(f"w{self.n}", *shape, **more)

    def apart(self, block, *more):
        """A block that names its constants itself, under names that no other has."""
        self.n += 1
        inner, net, prefix = self.last, self.net, f"b{self.n}."

        class Prefixed:
            opset = net.opset
            op, weights = net.op, staticmethod(lambda name, *a, **k: net.weights(prefix + name, *a, **k))
            w = staticmethod(lambda name, value: net.w(prefix + name, value))

        self.last = block(Prefixed(), inner, *more)

    # Blocks.

    def conv(self):
        c, out = self.shape[1], int(self.rng.integers(2, 7))
        y = self.net.op("Conv", self.last, self.weights(out, c, 3, 3, low=-0.5, high=0.5),
                        *([self.weights(out)] if self.rng.random() < 0.5 else []), pads=[1, 1, 1, 1])
        self.last, self.shape = y, [self.shape[0], out, *self.shape[2:]]
        if self.rng.random() < 0.7:
            self.apart(lambda n, x: batch_norm(n, x, out, f"bn{self.n}"))
        if self.rng.random() < 0.5:
            self.last = self.net.op("Mul", self.last, self.weights(out, 1, 1))
        if self.rng.random() < 0.3:
            self.heads.append(y)

    def gelu(self):
        form = int(self.rng.integers(0, 7))
        self.apart(lambda n, x: erf_form(n, x, form) if form < 4 else tanh_form(n, x, form - 4))

    def channels_last(self):
        rank = len(self.shape)
        there = [0, *range(2, rank), 1]
        x = self.net.op("Transpose", self.last, perm=there)
        x = self.net.op("Add", x, self.weights(self.shape[1]))
        x = self.net.op(str(self.rng.choice(["Tanh", "Sigmoid", "Abs"])), x)
        if self.rng.random() < 0.7:
            x = self.net.op("Mul", x, self.net.op("Transpose", self.last, perm=there))
        self.last = self.net.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])

    def nothing(self):
        x = self.net.op("Identity", self.last)
        x = self.net.op("Reshape", x, self.scalar(self.shape, np.int64))
        self.last = self.net.op("Dropout", x)
        self.net.op("Exp", self.last)

    def twice(self):
        x = [self.net.op("Tanh", self.net.op("Mul", self.last, self.scalar(0.75))) for _ in range(2)]
        self.last = self.net.op("Add", *x)

    def by_constants(self):
        c = self.net.op("Exp", self.net.op("Transpose", self.weights(self.shape[-1], self.shape[-2]), perm=[1, 0]))
        self.last = self.net.op("Div", self.last, c)

    def rows(self):
        """From images to rows, by the shape as the graph computes it."""
        if len(self.shape) == 3:
            return
        n, c, h, w = self.shape
        first = self.net.op("Gather", self.net.op("Shape", self.last), self.scalar(0, np.int64), axis=0)
        first = self.net.op("Unsqueeze", first, self.scalar([0], np.int64))
        to = self.net.op("Concat", first, self.scalar([-1], np.int64), self.scalar([w], np.int64), axis=0)
        x = self.net.op("Flatten", self.last, axis=2)
        self.last, self.shape = self.net.op("Reshape", x, to), [n, c * h, w]

    def norm(self):
        if len(self.shape) != 3:
            return
        form = str(self.rng.choice(["pow", "mul", "twice", "inverse", "scale", "bare"]))
        self.apart(lambda n, x: layer_norm(n, x, [self.shape[-1]], form))

    def dense(self):
        if len(self.shape) != 3:
            return
        n, t, d = self.shape
        out = int(self.rng.integers(3, 9))
        x = self.net.op("Reshape", self.last, self.scalar([n * t, d], np.int64))
        x = self.net.op("MatMul", x, self.net.op("Transpose", self.weights(out, d)))
        x = self.net.op("Add", x, self.weights(out))
        self.last, self.shape = self.net.op("Reshape", x, self.scalar([n, t, out], np.int64)), [n, t, out]


def made(seed):
    m = Maker(seed)
    for block in m.rng.choice(["conv", "gelu", "channels_last", "nothing", "twice", "by_constants"], 4):
        getattr(m, str(block))()
    m.rows()
    for block in m.rng.choice(["norm", "dense", "gelu", "nothing", "twice", "by_constants", "norm", "dense"], 5):
        getattr(m, str(block))()
    return m.net, list(dict.fromkeys([m.last, *m.heads]))


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_nets_of_what_exporters_write(first):
    ctx = capi.Context()
    seen, fewer = collections.Counter(), 0
    for seed in range(first, first + 20):
        net, heads = made(seed)
        device = ["cpu", "sim:0", "sim:1,cpu"][seed % 3]
        try:
            r, off = check(ctx, net, heads, devices=device, rtol=1e-4, fixed={"batch": 2})
        except AssertionError as e:
            raise AssertionError(f"seed {seed} on {device}") from e
        seen.update(r.passes())
        fewer += len(r.names()) < len(off.names())
    assert fewer == 20 and set(seen) == PASSES, seen
    ctx.close()
