"""Each optimisation of patterns (conv, gemm, activation, layer_norm) against onnx.reference in float64, with and without;
which nodes are left; and what must not be joined. labels: ctypes
timeout: 300
"""
import math
import os

import capi
import numpy as np
import optimize_case
import pytest
from optimize_case import Net, Run, batch_norm, check, erf_form, layer_norm, rms_norm, tanh_form


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context()
    yield c
    c.close()


# ---- conv


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norm_goes_into_the_conv(ctx, bias, groups):
    n = Net()
    x = n.x("x", 2, 4, 7, 6)
    w = n.weights("w", 6, 4 // groups, 3, 3)
    y = n.op("Conv", x, w, *([n.weights("b", 6)] if bias else []), name="conv", group=groups, pads=[1, 1, 1, 1],
             strides=[2, 1])
    y = n.op("Relu", batch_norm(n, y, 6, "bn", epsilon=1e-3), name="relu")
    r, off = check(ctx, n, [y])
    assert r.ops() == ["Conv", "Relu"] and r.names() == ["bn", "relu"] and r.passes() == ["conv"]
    assert r.plan["optimizations"][0]["nodes"] == ["conv", "bn"]
    assert off.ops() == ["BatchNormalization", "Conv", "Relu"]


def test_residual_block(ctx):
    """Conv, BatchNormalization, Add of a residual and Relu: what is left behind the Conv is computed on its way out."""
    n = Net()
    x = n.x("x", 1, 8, 6, 6)
    y = n.op("Conv", x, n.weights("w1", 8, 8, 3, 3), pads=[1, 1, 1, 1])
    y = n.op("Relu", batch_norm(n, y, 8, "bn1"))
    y = n.op("Conv", y, n.weights("w2", 8, 8, 3, 3), pads=[1, 1, 1, 1])
    y = n.op("Relu", n.op("Add", batch_norm(n, y, 8, "bn2"), x))
    r, off = check(ctx, n, [y], rtol=1e-4)
    assert r.ops() == ["Add", "Conv", "Conv", "Relu", "Relu"]
    regions = [sum(s["kind"] == "op" for s in plan["regions"]) for plan in (r.plan, off.plan)]
    assert regions[0] <= regions[1] - 2


def test_arithmetic_a_channel(ctx):
    """What batch norms become in some exporters; one number serves all channels."""
    n = Net()
    x = n.x("x", 1, 3, 5, 5)
    y = n.op("Conv", x, n.weights("w", 4, 3, 3, 3), n.weights("b", 4))
    y = n.op("Mul", n.weights("s", 1, 4, 1, 1), y)
    y = n.op("Sub", y, n.weights("t", 4, 1, 1))
    y = n.op("Div", y, n.w("half", np.float32(2)))
    y = n.op("Add", y, n.w("one", np.ones((1, 1, 1, 1))), name="last")
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["Conv"] and r.names() == ["last"]


def test_what_is_no_number_a_channel_stays(ctx):
    n = Net()
    x = n.x("x", 1, 3, 5, 5)
    c = n.op("Conv", x, n.weights("w", 4, 3, 3, 3), name="conv")
    heads = [n.op("Add", c, n.weights("row", 3)), n.op("Mul", c, n.weights("map", 3, 3))]
    r, _ = check(ctx, n, heads)  # the last axis, not the channels; and the Conv has two users
    assert "conv" not in r.passes()
    n = Net()
    y = n.op("Sub", n.weights("t", 4, 1, 1), n.op("Conv", n.x("x", 1, 3, 5, 5), n.weights("w", 4, 3, 3, 3)))
    assert check(ctx, n, [y])[0].passes() == []
    n = Net()
    y = n.op("Add", n.op("Conv", n.x("x", 1, 3, 5, 5), n.weights("w", 4, 3, 3, 3)), n.weights("t", 2, 4, 1, 1))
    assert check(ctx, n, [y])[0].passes() == []  # it widens the batch


def test_conv_that_others_read(ctx):
    n = Net()
    c = n.op("Conv", n.x("x", 1, 3, 5, 5), n.weights("w", 4, 3, 3, 3), name="conv")
    y = batch_norm(n, c, 4, "bn")
    assert check(ctx, n, [y, c])[0].ops() == ["BatchNormalization", "Conv"]
    values = n.values()
    r = Run(ctx, n, [y], values, keep=["conv"])
    assert r.ops() == ["BatchNormalization", "Conv"] and len(r.outputs) == 2
    optimize_case.close(r.outputs[1], n.reference([c], values)[0])


PADS = [  # of a Pad, what else it has, pads of the Conv, and whether the Conv takes the Pad's
    ([0, 0, 1, 2, 0, 0, 2, 0], {}, None, True),
    ([0, 0, 0, 1, 0, 0, 1, 1], {"value": 0}, [1, 0, 0, 1], True),
    ([1, 2, 2, 1], {"axes": [-2, 3]}, None, True),
    ([0, 0, 1, 1, 0, 0, 1, 1], {"value": 0.5}, None, False),
    ([0, 1, 1, 1, 0, 0, 1, 1], {}, None, False),
    ([0, 0, 2, 0, 0, 0, 0, 0], {}, [1, 0, 0, 0], False),  # places that read nothing of the input
    ([0, 0, 1, 1, 0, 0, 1, 1], {"mode": "edge"}, None, False)]


@pytest.mark.parametrize("pads, more, own, goes", PADS)
def test_pad_goes_into_the_conv(ctx, pads, more, own, goes):
    n = Net(18)
    inputs = [n.x("x", 2, 4, 6, 7), n.w("pads", np.array(pads, np.int64))]
    if "value" in more or "axes" in more:
        inputs.append(n.w("value", np.array(more.get("value", 0), np.float32)))
    if "axes" in more:
        inputs.append(n.w("axes", np.array(more["axes"], np.int64)))
    p = n.op("Pad", *inputs, name="pad", mode=more.get("mode", "constant"))
    channels = 4 + (pads[1] + pads[5] if len(pads) == 8 else 0)
    y = n.op("Conv", p, n.weights("w", 6, channels, 3, 3), name="conv", strides=[2, 1], **({"pads": own} if own else {}))
    r, _ = check(ctx, n, [y])
    assert r.ops() == (["Conv"] if goes else ["Conv", "Pad"])


def test_pad_that_others_read(ctx):
    n = Net(18)
    p = n.op("Pad", n.x("x", 1, 3, 5, 5), n.w("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)))
    y = n.op("Conv", p, n.weights("w", 4, 3, 3, 3))
    assert check(ctx, n, [y, p])[0].ops() == ["Conv", "Pad"]


# ---- gemm


def test_matmul_and_bias(ctx):
    n = Net()
    y = n.op("MatMul", n.x("x", 5, 8), n.weights("w", 8, 3))
    y = n.op("Relu", n.op("Add", n.weights("b", 3), y, name="dense"))
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["Gemm", "Relu"] and r.passes() == ["gemm"] and "dense" in r.names()


def test_transposes_go_into_the_gemm(ctx):
    n = Net()
    a = n.op("Transpose", n.x("a", 8, 5), perm=[1, 0])
    b = n.op("Transpose", n.x("b", 3, 8))
    y = n.op("Gemm", a, b, n.weights("c", 5, 1), alpha=0.5, beta=2.0)
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["Gemm"]


def test_what_is_no_bias(ctx):
    n = Net()
    y = n.op("Add", n.op("MatMul", n.x("x", 1, 8), n.weights("w", 8, 3)), n.weights("b", 4, 3))
    assert check(ctx, n, [y])[0].passes() == []  # the bias widens the product
    n = Net()
    y = n.op("Add", n.op("MatMul", n.x("x", 4, 8), n.weights("w", 8, 3)), n.x("residual", 4, 3))
    assert check(ctx, n, [y])[0].passes() == []  # a residual, which is no row
    n = Net()
    y = n.op("Add", n.op("MatMul", n.x("x", 2, 5, 8), n.weights("w", 8, 3)), n.weights("b", 3))
    assert check(ctx, n, [y])[0].passes() == []  # Gemm is of matrices


# ---- activation


@pytest.mark.parametrize("form", range(7))
@pytest.mark.parametrize("opset", [13, 18])
def test_gelu(ctx, form, opset):
    """Behind a bias, whose Add is elementwise too and no part of it; the output and an inner value of another row."""
    n = Net(opset)
    x = n.op("Add", n.x("x", 4, 33), n.weights("b", 33), name="bias")
    y = erf_form(n, x, form) if form < 4 else tanh_form(n, x, form - 4)
    r, off = check(ctx, n, [y], rtol=4e-6)
    assert r.ops() == ["Add", "Gelu"] and r.names()[-1] == y
    assert len(off.ops()) >= 6
    change = [c for c in r.plan["optimizations"] if c["pass"] == "activation"]
    assert len(change) == 1 and change[0]["nodes"][-1] == y and len(change[0]["nodes"]) == len(off.ops()) - 1


def test_gelu_of_open_shapes(ctx):
    n = Net()
    y = erf_form(n, n.x("x", "batch", 5), 0)
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["Gelu"]


@pytest.mark.parametrize("clip", [False, True])
def test_hard_swish(ctx, clip):
    n = Net()
    x = n.x("x", 3, 17)
    if clip:
        six = n.w("six", np.float32(6))
        y = n.op("Clip", n.op("Add", x, n.w("three", np.float32(3))), n.w("zero", np.float32(0)), six)
        y = n.op("Div", n.op("Mul", x, y), six)
    else:
        y = n.op("Mul", x, n.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["HardSwish"]


@pytest.mark.parametrize("alpha", [None, 1.702, 0.25])
def test_swish(ctx, alpha):
    """With a factor inside the sigmoid too, as CLIP has it."""
    n = Net()
    x = n.x("x", 2, 33)
    inner = x if alpha is None else n.op("Mul", n.w("alpha", np.float32(alpha)), x)
    y = n.op("Mul", n.op("Sigmoid", inner), x)
    r, off = check(ctx, n, [y], rtol=4e-6)
    assert r.ops() == ["Swish"] and len(off.ops()) == (2 if alpha is None else 3)


def test_mish(ctx):
    n = Net()
    x = n.x("x", 2, 33)
    r, _ = check(ctx, n, [n.op("Mul", x, n.op("Tanh", n.op("Softplus", x)))], rtol=4e-6)
    assert r.ops() == ["Mish"]


def test_what_only_looks_like_swish(ctx):
    n = Net()
    x, gate = n.x("x", 2, 7), n.x("gate", 2, 7)
    assert "Swish" not in check(ctx, n, [n.op("Mul", x, n.op("Sigmoid", gate))])[0].ops()
    n = Net()
    x = n.x("x", 2, 7)
    inner = n.op("Sigmoid", x)
    y = n.op("Mul", x, inner)
    assert check(ctx, n, [y, inner])[0].passes() == []  # the Sigmoid is read
    n = Net()
    x = n.x("x", 2, 7)
    shifted = n.op("Sigmoid", n.op("Add", x, n.w("one", np.float32(1))))
    assert "Swish" not in check(ctx, n, [n.op("Mul", x, shifted)])[0].ops()


def test_what_only_looks_like_gelu(ctx):
    n = Net()
    x = n.x("x", 3, 5)
    n.w("half", np.float32(0.5)), n.w("one", np.float32(1))
    wrong = n.op("Div", x, n.w("root", np.float32(1.5)))  # another constant
    y = n.op("Mul", n.op("Mul", x, n.op("Add", n.op("Erf", wrong), "one")), "half")
    assert "Gelu" not in check(ctx, n, [y])[0].ops()
    n = Net()
    y = erf_form(n, n.x("x", 3, 5), 0)
    inner = n.nodes[1][3][0]
    assert check(ctx, n, [y, inner])[0].passes() == []  # the Erf is read
    n = Net()
    x = n.x("x", 5)
    n.params["half"] = np.full((1, 1), 0.5, np.float32)
    n.nulls["half"] = ("float32", [1, 1])
    inner = n.op("Add", n.op("Erf", n.op("Div", x, n.w("root", np.float32(math.sqrt(2))))), n.w("one", np.float32(1)))
    y = n.op("Mul", n.op("Mul", x, inner), "half")
    r, _ = check(ctx, n, [y])
    assert r.outputs[0].shape == (1, 5)  # a constant that widens is none of it


@pytest.mark.parametrize("form", [1, 5])
def test_gelu_behind_a_product_is_computed_on_the_way_out(form):
    """By oneDNN, where it is built in: one step, as exact as the plain kernels."""
    n = Net()
    x = n.op("Add", n.op("MatMul", n.x("x", 2, 64, 96), n.weights("w", 96, 128, low=-0.3, high=0.3)),
             n.weights("b", 128), name="dense")
    y = erf_form(n, x, form) if form < 4 else tanh_form(n, x, form - 4)
    steps = {}
    for onednn in ("off", "auto"):
        c = capi.Context(cpu__onednn=onednn)
        r, _ = check(c, n, [y], rtol=4e-6)
        steps[onednn] = sum(s["kind"] == "op" for s in r.plan["steps"])
        c.close()
    built_in = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3"))
    assert steps == {"off": 2, "auto": 1 if built_in else 2}


# ---- layer_norm


@pytest.mark.parametrize("form", ["pow", "mul", "twice", "inverse", "scale", "bare"])
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_layer_norm(ctx, form, opset):
    n = Net(opset)
    y = n.op("Tanh", layer_norm(n, n.x("x", 2, 5, 24), [24], form), name="after")
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["LayerNormalization", "Tanh"]


def test_layer_norm_over_two_axes_and_open_shapes(ctx):
    n = Net()
    y = layer_norm(n, n.x("x", 2, 5, 24), [5, 24], "pow", axes=(1, 2))
    assert check(ctx, n, [y])[0].ops() == ["LayerNormalization"]
    n = Net()
    y = layer_norm(n, n.x("x", "batch", 5, 24), [24], "pow")
    assert check(ctx, n, [y])[0].ops() == ["LayerNormalization"]


@pytest.mark.parametrize("form", ["pow", "mul", "pow-power", "mul-reciprocal", "pow-one-left"])
@pytest.mark.parametrize("opset", [13, 18])
def test_rms_norm(ctx, form, opset):
    for shape, width, axes in (((2, 5, 24), [24], (-1,)), ((2, 5, 24), [5, 24], (1, 2)), (("batch", 5, 40), [40], (-1,))):
        n = Net(opset)
        y = n.op("Tanh", rms_norm(n, n.x("x", *shape), width, form, axes), name="after")
        r, _ = check(ctx, n, [y])
        assert r.ops() == ["RMSNormalization", "Tanh"]


def test_what_is_no_rms_norm(ctx):
    n = Net(18)
    x = n.x("x", 2, 5, 24)
    assert "RMSNormalization" not in check(ctx, n, [rms_norm(n, x, [1, 5, 1], "pow", (1,))])[0].ops()
    n = Net(18)
    y = rms_norm(n, n.x("x", 2, 5, 24), [24], "pow")
    square = n.op("Pow", n.x("z", 2, 5, 24), n.w("three", np.float32(3)))
    assert "RMSNormalization" in check(ctx, n, [n.op("Add", y, square)])[0].ops()
    n = Net(18)  # the root is read elsewhere too
    x, scale = n.x("x", 2, 5, 24), n.weights("scale", 24)
    root = n.op("Sqrt", n.op("Add", n.op("ReduceMean", n.op("Mul", x, x), n.w("axes", np.array([-1], np.int64))), n.w("e", np.float32(1e-5))))
    y = n.op("Mul", n.op("Div", x, root), scale)
    assert "RMSNormalization" not in check(ctx, n, [y, n.op("Neg", root)])[0].ops()


def test_what_is_no_layer_norm(ctx):
    n = Net()
    y = layer_norm(n, n.x("x", 2, 5, 24), [1, 5, 1], "pow", axes=(1,))  # another axis
    assert "LayerNormalization" not in check(ctx, n, [y])[0].ops()
    n = Net()
    y = layer_norm(n, n.x("x", 2, 5, 24), [5, 24], "pow")  # a scale of more than what is normalised
    r, _ = check(ctx, n, [y])
    assert r.ops() == ["Add", "LayerNormalization", "Mul"]
    n = Net(13)
    x = n.op("ReduceMax", n.x("x", 2, 5, 24), axes=[0])  # opset 18 reads its axes from an input, 17 does not
    assert "LayerNormalization" in check(ctx, n, [layer_norm(n, x, [24], "pow")])[0].ops()
    n = Net(13)
    x = n.op("BatchNormalization", n.x("x", 2, 5, 24), *[n.weights(k, 5, low=0.5, high=1) for k in "sbmv"])
    assert "LayerNormalization" in check(ctx, n, [layer_norm(n, x, [24], "pow")])[0].ops()
