"""Random chains of mathematics over cpu, two PoCL devices and sim, against onnx.reference in float64.

labels: slow ctypes
timeout: 1200

Every graph has convolutions, pools, normalisations, reductions and softmaxes in a random order, with shortcuts between
them; it runs on each device alone and with its nodes dealt out. Results agree to 1e-4 of the largest.
"""
import os

import pocl

pocl.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import onnx_cases  # noqa: E402
import pytest  # noqa: E402
import random_graphs  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx.reference.op_run import OpRun  # noqa: E402

DEVICES = ["cpu", "opencl:0", "opencl:1", "sim:0"]
SEEDS = range(24)
REDUCTIONS = ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]


class Chain:
    """A model of float32 tensors [N, C, H, W]; weights are inputs too."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inputs, self.last = [], {}, "x"
        self.inputs["x"] = self.draw(2, int(self.rng.integers(2, 13)), *self.rng.integers(3, 15, 2))
        self.shape = self.inputs["x"].shape
        for _ in range(int(self.rng.integers(5, 10))):
            getattr(self, str(self.rng.choice(STEPS)))()

    def draw(self, *shape, low=-1.0):
        return self.rng.uniform(low, 1.0, shape).astype(np.float32)

    def pick(self, *of):
        return of[int(self.rng.integers(len(of)))]

    def weights(self, array):
        name = f"w{len(self.inputs)}"
        self.inputs[name] = array
        return name

    def add(self, op, *more, shape=None, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *more], [out], **attrs))
        self.last, self.shape = out, self.shape if shape is None else tuple(shape)

    def out_side(self, d, kernel, stride, pads):
        return (self.shape[2 + d] + pads[d] + pads[2 + d] - kernel[d]) // stride[d] + 1

    def conv(self):
        n, c = self.shape[:2]
        groups = self.pick(*[g for g in (1, 1, 2, c) if c % g == 0])
        out = groups * int(self.rng.integers(1, 17 if groups < 3 else 3))
        kernel, stride = [self.pick(1, 3, min(self.shape[2:]) % 3 + 1)] * 2, [self.pick(1, 1, 2)] * 2
        pads = [int(p) for p in self.rng.integers(0, kernel[0], 4)]
        sides = [self.out_side(d, kernel, stride, pads) for d in range(2)]
        if min(sides) < 1:
            return
        bias = [self.weights(self.draw(out))] if self.pick(True, False) else []
        scale = np.float32(1 / np.sqrt(c // groups * kernel[0] ** 2))
        self.add("Conv", self.weights(scale * self.draw(out, c // groups, *kernel)), *bias, shape=(n, out, *sides),
                 group=groups, kernel_shape=kernel, strides=stride, pads=pads)

    def conv_transpose(self):
        n, c, h, w = self.shape
        groups = self.pick(*[g for g in (1, 1, 2, c) if c % g == 0])
        out, kernel, stride = int(self.rng.integers(1, 12)), self.pick(2, 3, 4), self.pick(1, 2, 3)
        more = int(self.rng.integers(0, stride))
        sides = [stride * (side - 1) + kernel + more - 1 for side in (h, w)]
        if max(sides) > 40:
            return
        scale = np.float32(1 / np.sqrt(c // groups * kernel**2))
        self.add("ConvTranspose", self.weights(scale * self.draw(c, out, kernel, kernel)), shape=(n, out * groups, *sides),
                 group=groups, strides=[stride] * 2, output_padding=[more] * 2, pads=[0, 1, 1, 0])

    def average_pool(self):
        kernel = [min(self.pick(2, 3), side) for side in self.shape[2:]]
        stride, pads = [self.pick(1, 2)] * 2, [k // 2 for k in kernel] * 2
        sides = [self.out_side(d, kernel, stride, pads) for d in range(2)]
        self.add(self.pick("AveragePool", "AveragePool", "MaxPool"), shape=(*self.shape[:2], *sides), kernel_shape=kernel,
                 strides=stride, pads=pads)
        if self.nodes[-1].op_type == "AveragePool":
            self.nodes[-1].attribute.append(helper.make_attribute("count_include_pad", self.pick(0, 1)))

    def batch_norm(self):
        c = self.shape[1]
        rest = [self.draw(c), self.draw(c), self.draw(c), self.draw(c, low=0.5)]
        self.add("BatchNormalization", *map(self.weights, rest), epsilon=0.01)

    def instance_norm(self):
        if self.shape[2] * self.shape[3] > 3:
            rest = [self.draw(self.shape[1]), self.draw(self.shape[1])]
            self.add("InstanceNormalization", *map(self.weights, rest), epsilon=0.1)

    def layer_norm(self):
        axis = self.pick(1, 2, 3)
        tail = self.shape[axis:]
        if np.prod(tail) > 3:
            self.add("LayerNormalization", *map(self.weights, [self.draw(*tail), self.draw(*tail)]), axis=axis,
                     epsilon=0.1)

    def lrn(self):
        self.add("LRN", size=self.pick(1, 2, 3, 5), alpha=0.5, beta=0.75, bias=1.5)

    def softmax(self):
        self.add(self.pick("Softmax", "LogSoftmax"), axis=self.pick(-1, 1, 2))

    def reduction(self):
        """Subtracts what goes along axes from the operand."""
        before, shape = self.last, self.shape
        op, axes = self.pick(*REDUCTIONS), self.pick([1], [3], [2, 3], [0, 2], [-3, -1], [0, 1, 2, 3])
        if op == "ReduceSum":
            self.add(op, self.weights(np.array(axes, np.int64)), keepdims=1)
            self.add("Mul", self.weights(np.full((1,), 1 / np.prod([shape[a] for a in axes]), np.float32)))
        else:
            self.add(op, axes=axes, keepdims=1)
        self.add("Sub", before, shape=shape)

    def global_pool(self):
        """Scales the operand by what is greatest or usual in its plane."""
        before, shape = self.last, self.shape
        self.add(self.pick("GlobalMaxPool", "GlobalAveragePool"))
        self.add("Sigmoid")
        self.add("Mul", before, shape=shape)

    def model(self):
        def info(name, array):
            kind = TensorProto.INT64 if array.dtype == np.int64 else TensorProto.FLOAT
            return helper.make_tensor_value_info(name, kind, array.shape)
        out = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "chain", [info(k, v) for k, v in self.inputs.items()], [out])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


STEPS = ["conv", "conv", "conv_transpose", "average_pool", "batch_norm", "instance_norm", "layer_norm", "lrn", "softmax",
         "reduction", "reduction", "global_pool"]


class LRN(OpRun):
    """onnx.reference's own takes the number of images for that of channels."""

    op_domain = ""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        below, squares = (size - 1) // 2, x**2
        sums = [squares[:, max(0, c - below):c + size - below].sum(axis=1) for c in range(x.shape[1])]
        return (x / (bias + alpha / size * np.stack(sums, axis=1)) ** beta,)


class ConvTranspose(OpRun):
    """onnx.reference's own does not take all groups."""

    op_domain = ""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
             output_shape=None, pads=None, strides=None):
        (n, c, h, wide), (_, m, kh, kw), (sh, sw) = x.shape, w.shape, strides
        y = np.zeros((n, m * group, sh * (h - 1) + kh + output_padding[0], sw * (wide - 1) + kw + output_padding[1]))
        for g in range(group):
            some, kernel = x[:, g * (c // group):(g + 1) * (c // group)], w[g * (c // group):(g + 1) * (c // group)]
            for i in range(kh):
                for j in range(kw):
                    part = y[:, g * m:(g + 1) * m, i:i + sh * (h - 1) + 1:sh, j:j + sw * (wide - 1) + 1:sw]
                    part += np.einsum("nchw,cm->nmhw", some, kernel[:, :, i, j])
        return (y[:, :, pads[0]:y.shape[2] - pads[2], pads[1]:y.shape[3] - pads[3]],)


def expected(chain, model):
    doubles = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in chain.inputs.items()}
    return ReferenceEvaluator(model, new_ops=[ConvTranspose, LRN]).run(None, doubles)[0]


@pytest.fixture(scope="module")
def ctx():
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        pytest.skip("the plugin opencl is not built")
    context = capi.Context()
    yield context
    context.close()


def test_chains(ctx):
    seen = set()
    for seed in SEEDS:
        chain = Chain(seed)
        model = chain.model()
        want = expected(chain, model)
        assert want.shape == chain.shape and np.all(np.isfinite(want)), f"seed {seed}"
        seen |= {n.op_type for n in chain.nodes}
        graph, params = onnx_cases.graph(model, 17, chain.inputs)
        names = [n["name"] for n in graph["nodes"] if n["op"] != "null"]
        dealt = {n: DEVICES[(i + seed) % len(DEVICES)] for i, n in enumerate(names)}
        for placement in [dict.fromkeys(names, d) for d in DEVICES] + [dealt]:
            try:
                got = random_graphs.run_case(ctx, graph, params, chain.inputs, placement)[0]
            except capi.HeddleError as e:
                if e.status in (5, 6):  # no such device, no such name
                    pytest.skip(f"no two OpenCL devices: {e}")
                raise
            worst = np.max(np.abs(got - want)) / max(1.0, np.max(np.abs(want)))
            assert got.shape == want.shape and worst <= 1e-4, f"seed {seed} on {sorted(set(placement.values()))}: {worst}"
    assert seen >= {"Conv", "ConvTranspose", "AveragePool", "MaxPool", "BatchNormalization", "InstanceNormalization",
                    "LayerNormalization", "LRN", "Softmax", "LogSoftmax", "GlobalMaxPool", "GlobalAveragePool",
                    *REDUCTIONS}
