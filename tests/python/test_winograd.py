"""Convolutions through Winograd on cpu, against direct convolution in float64.

labels: ctypes
timeout: 300
"""
import json
import os

import capi
import numpy as np
import onnx_cases
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import io
from tool_case import heddle

BUILT = os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3")
with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
    FLAGS = f.read()
VECTORS = " avx512f " in FLAGS or (" avx2 " in FLAGS and " fma " in FLAGS)

# docs/cpu.md: the error of a result is at most so many eps times the sum, over input channels, of the largest input that
# its tile sees times the sum of the kernel's magnitudes.
EPS = 2.0**-23
BOUND = {3: 8, 5: 16}
TILE = {3: 6, 5: 8}  # positions along the largest input tile


class Net:
    """Convolutions in a row, each with what is fused behind it. Each value is computed in float64 beside it."""

    def __init__(self, rng, shape, spread=0):
        self.rng, self.spread = rng, spread
        self.nodes, self.weights = [], []
        self.x = self.draw(*shape)
        self.name = "x"

    def draw(self, *shape):
        a = self.rng.standard_normal(shape)
        return (a * 10.0**self.rng.uniform(-self.spread, self.spread, shape)).astype(np.float32)

    def constant(self, array):
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, op, inputs, **attrs):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def conv(self, name, channels, out, r, pads, bias=True):
        """The node, its weights and its bias."""
        w = self.draw(out, channels, r, r)
        b = self.draw(out) if bias else np.zeros(out, np.float32)
        inputs = [name, self.constant(w)] + ([self.constant(b)] if bias else [])
        return self.node("Conv", inputs, kernel_shape=[r, r], pads=pads), w, b

    def run(self, ctx, outputs):
        outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)
        graph = helper.make_graph(self.nodes, "net", [x], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)
        graph, params = onnx_cases.graph(model, 24, {"x": self.x})
        made = []
        try:
            made.append(capi.Graph(json.dumps(graph)))
            made.append(capi.Params(io.params_blob(params)))
            made.append(capi.Model(ctx, made[0], made[1], devices="cpu"))
            made.append(capi.Executor(made[2]))
            made[3].set_input("x", self.x)
            made[3].run()
            first = [np.array(o) for o in made[3].outputs()]
            made[3].run()
            assert all(a.tobytes() == np.array(b).tobytes() for a, b in zip(first, made[3].outputs())), "two runs differ"
            return first
        finally:
            for thing in reversed(made):
                thing.close()


def windows(x, r, pads):
    """x padded, and its r x r windows behind the first four dimensions."""
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    return np.lib.stride_tricks.sliding_window_view(x, (r, r), axis=(2, 3))


def direct(x, w, b, pads):
    """In float64: the result."""
    return np.einsum("nchwij,ocij->nohw", windows(x.astype(np.float64), w.shape[2], pads), w.astype(np.float64),
                     optimize=True) + b.astype(np.float64)[:, None, None]


def allowed(x, w, b, pads):
    """The bound on the error of each result: whatever its tile may be, it lies so many positions around."""
    r = w.shape[2]
    reach = TILE[r] - r  # results of a tile lie that far from each other
    most = np.pad(np.abs(x.astype(np.float64)), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    most = np.pad(most, [(0, 0), (0, 0), (reach, reach), (reach, reach)])
    size = r + 2 * reach
    most = np.lib.stride_tricks.sliding_window_view(most, (size, size), axis=(2, 3)).max(axis=(4, 5))
    total = np.einsum("nchw,oc->nohw", most, np.abs(w.astype(np.float64)).sum(axis=(2, 3)))
    return BOUND[r] * EPS * (total + np.abs(b.astype(np.float64))[:, None, None])


CASES = [  # n, channels, out, height, width, r, pads, spread
    (1, 16, 16, 12, 12, 3, [1, 1, 1, 1], 0),
    (1, 64, 64, 28, 28, 3, [1, 1, 1, 1], 0),
    (2, 32, 48, 13, 9, 3, [0, 0, 0, 0], 0),
    (3, 16, 80, 7, 7, 3, [1, 1, 1, 1], 0),
    (1, 256, 64, 7, 7, 3, [1, 1, 1, 1], 0),
    (1, 128, 160, 14, 14, 3, [1, 1, 1, 1], 0),
    (1, 20, 36, 17, 11, 3, [1, 0, 0, 1], 0),
    (2, 3, 5, 19, 23, 3, [2, 2, 2, 2], 0),
    (1, 1, 1, 3, 3, 3, [0, 0, 0, 0], 0),
    (1, 17, 33, 1, 30, 3, [1, 1, 1, 1], 0),
    (1, 16, 16, 56, 56, 5, [2, 2, 2, 2], 0),
    (2, 16, 16, 6, 6, 5, [0, 0, 0, 0], 0),
    (1, 40, 24, 15, 21, 5, [2, 1, 0, 3], 0),
    (1, 1, 2, 5, 5, 5, [0, 0, 0, 0], 0),
    (1, 32, 32, 20, 20, 3, [1, 1, 1, 1], 6),
    (1, 32, 32, 20, 20, 5, [2, 2, 2, 2], 6),
]


@pytest.fixture(scope="module", params=[1, 2, 5])
def always(request):
    ctx = capi.Context(cpu__winograd="always", threads=request.param)
    yield ctx
    ctx.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_convolution(always, case):
    n, channels, out, h, w, r, pads, spread = case
    net = Net(np.random.default_rng([channels, h, r]), (n, channels, h, w), spread)
    y, weights, bias = net.conv("x", channels, out, r, pads)
    got, = net.run(always, [y])
    want = direct(net.x, weights, bias, pads)
    assert got.shape == want.shape
    worst = np.max(np.abs(got - want) / allowed(net.x, weights, bias, pads))
    assert worst <= 1, f"{case}: the error is {worst} of what is allowed"


@pytest.mark.parametrize("channels", [16, 48, 21])
def test_what_is_fused_behind(always, channels):
    """Relu; LeakyRelu; Clip; Swish, Mish and HardSwish; a residual and Relu: layouts are carried from one to the next."""
    net = Net(np.random.default_rng(channels), (2, channels, 14, 18))
    pads, want, name = [1, 1, 1, 1], net.x.astype(np.float64), "x"
    seen = []
    for kind in ("Relu", "LeakyRelu", "Clip", "Above", "Swish", "Mish", "HardSwish", "Add"):
        y, weights, bias = net.conv(name, channels, channels, 3, pads, bias=kind != "Clip")
        scale = np.float32(1 / (3 * np.sqrt(channels)))
        net.weights[-1 if kind == "Clip" else -2] = numpy_helper.from_array(weights * scale, net.nodes[-1].input[1])
        want = direct(want, weights * scale, bias, pads)
        if kind == "Relu":
            name, want = net.node("Relu", [y]), np.maximum(want, 0)
        elif kind == "LeakyRelu":
            name, want = net.node("LeakyRelu", [y], alpha=0.25), np.where(want > 0, want, 0.25 * want)
        elif kind in ("Clip", "Above"):  # the second is not 0 at 0, so channels that fill up a block would not stay 0
            low, high = (np.float32(-0.5), np.float32(2)) if kind == "Clip" else (np.float32(0.125), np.float32(3))
            name = net.node("Clip", [y, net.constant(low), net.constant(high)])
            want = np.clip(want, low, high)
        elif kind == "Swish":
            name, want = net.node("Swish", [y], alpha=1.5), want / (1 + np.exp(-1.5 * want))
        elif kind == "Mish":
            name, want = net.node("Mish", [y]), want * np.tanh(np.log1p(np.exp(want)))
        elif kind == "HardSwish":
            name, want = net.node("HardSwish", [y]), want * np.clip(want / 6 + 0.5, 0, 1)
        else:
            name = net.node("Relu", [net.node("Add", [y, seen[0][0]])])
            want = np.maximum(want + seen[0][1], 0)
        seen.append((name, want))
    for got, (name, want) in zip(net.run(always, [name for name, _ in seen]), seen):
        assert np.max(np.abs(got - want)) < 2e-6 * np.max(np.abs(want)), name
    got, = net.run(always, [seen[-1][0]])
    assert np.max(np.abs(got - seen[-1][1])) < 2e-6 * np.max(np.abs(seen[-1][1]))


def test_a_kernel_that_is_no_constant_of_the_model(always):
    """Known when the plan is made, as the Identity of one is: it is packed in the run."""
    net = Net(np.random.default_rng(6), (1, 64, 28, 28))
    y, weights, bias = net.conv("x", 64, 64, 3, [1, 1, 1, 1])
    conv = net.nodes.pop()
    conv.input[1] = net.node("Identity", [conv.input[1]])
    net.nodes.append(conv)
    got, = net.run(always, [y])
    assert np.all(np.abs(got - direct(net.x, weights, bias, [1, 1, 1, 1])) <= allowed(net.x, weights, bias, [1, 1, 1, 1]))


@pytest.mark.skipif(not VECTORS, reason="needs AVX2; without it the Relu is oneDNN's, which gives a number for a NaN (docs/cpu.md)")
def test_a_nan_stays_in_its_tile(always):
    """What is not finite spreads to the results of the tiles that see it, and no further; Relu keeps a NaN."""
    net = Net(np.random.default_rng(1), (1, 16, 24, 24))
    net.x[0, 3, 10, 10] = np.nan
    y, weights, bias = net.conv("x", 16, 16, 3, [1, 1, 1, 1])
    got, = net.run(always, [net.node("Relu", [y])])
    bad = np.isnan(got).any(axis=(0, 1))
    assert bad[9:12, 9:12].all()
    assert not bad[:4].any() and not bad[16:].any() and not bad[:, :4].any() and not bad[:, 16:].any()
    want = np.maximum(direct(np.nan_to_num(net.x), weights, bias, [1, 1, 1, 1]), 0)
    assert np.max(np.abs(got[..., 16:] - want[..., 16:])) < 1e-5 * np.max(want)


def plan(tmp_path, winograd, channels=64, size=28, width=28, r=3, stride=1, group=1):
    rng = np.random.default_rng(5)
    w = numpy_helper.from_array(rng.standard_normal((channels, channels // group, r, r)).astype(np.float32), "kernel")
    node = helper.make_node("Conv", ["x", "kernel"], ["y"], name="conv", pads=[r // 2] * 4, strides=[stride] * 2,
                            group=group)
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, size, width] if name == "x" else None)
             for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "net", value[:1], value[1:], [w]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "conv.onnx"
    path.write_bytes(model.SerializeToString())
    return heddle("plan", path, "--device", "cpu", "--set", f"cpu.winograd={winograd}")


@pytest.mark.skipif(not (VECTORS and os.path.exists(BUILT)), reason="needs AVX2 and a build with oneDNN")
def test_the_plan_shows_it(tmp_path):
    assert "kernel as winograd:4x3" in plan(tmp_path, "auto").out
    assert "kernel as winograd:4x5" in plan(tmp_path, "auto", r=5).out
    assert "winograd" not in plan(tmp_path, "off").out
    assert "winograd" not in plan(tmp_path, "always", size=4, width=200000).out
    assert "winograd" not in plan(tmp_path, "always", stride=2).out
    assert "winograd" not in plan(tmp_path, "always", group=4).out
    assert "winograd" not in plan(tmp_path, "auto", channels=3).out
    assert "winograd" in plan(tmp_path, "always", channels=3).out


@pytest.mark.skipif(not os.path.exists(BUILT), reason="built without oneDNN")
def test_a_wrong_word_is_refused(tmp_path):
    assert "cpu.winograd is auto, always or off, not 'maybe'" in plan(tmp_path, "maybe").err
