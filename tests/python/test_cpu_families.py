"""Kernels of the cpu plugin that have a fast form, at shapes that meet its edges: RNN, GRU and LSTM of float32 against the
general kernels in float64, DFT against numpy, depthwise Conv and ConvTranspose to few channels against sums written out,
float16 through float32's kernels, the operators that pick elements, 16-bit quantisation.

labels: ctypes
timeout: 240
"""
import itertools

import capi
import ml_dtypes
import numpy as np
import pytest
from test_rare_operators import run

F, D = np.float32, np.float64


@pytest.fixture(scope="module", params=["auto", "off"])
def ctx(request):
    context = capi.Context(config="off", cpu__onednn=request.param, threads="2")
    yield context
    context.close()


def one(ctx, op, attrs, inputs, outputs, names=None, opset=22):
    """The results of one node; names: of its operands where some are absent."""
    return run(ctx, [(op, attrs, names or list(inputs), outputs)], inputs, outputs, opset=opset)


def recurrent(rng, op, sizes, direction, lengths, extra):
    steps, batch, inputs, hidden = sizes
    gates, count = {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 2 if direction == "bidirectional" else 1
    attrs = {"hidden_size": hidden, "direction": direction}
    arrays = {"x": (steps, batch, inputs), "w": (count, gates * hidden, inputs), "r": (count, gates * hidden, hidden),
              "b": (count, 2 * gates * hidden), "h": (count, batch, hidden)}
    names, outputs = ["x", "w", "r", "b", "", "h"], ["y", "yh"]
    if extra:
        attrs["clip"] = 0.7
        attrs |= {"GRU": {"linear_before_reset": 1}, "LSTM": {"input_forget": 1},
                  "RNN": {"activations": ["Softsign"] * count}}[op]
    if op == "LSTM":
        outputs.append("yc")
        arrays["c"] = arrays["h"]
        names += ["c", "p"]
        arrays["p"] = (count, 3 * hidden)
    arrays = {k: rng.standard_normal(shape) / (1 if k in "xbh" else hidden ** 0.5) for k, shape in arrays.items()}
    if lengths:
        names[4] = "l"
        arrays["l"] = rng.integers(1, steps + 1, batch).astype(np.int32)
    return attrs, arrays, names, outputs


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_recurrent(ctx, op):
    rng = np.random.default_rng(1)
    for sizes, direction, lengths, extra in itertools.product(
            ((1, 1, 1, 1), (7, 3, 19, 33), (20, 6, 40, 17)), ("forward", "reverse", "bidirectional"), (0, 1), (0, 1)):
        attrs, arrays, names, outputs = recurrent(rng, op, sizes, direction, lengths, extra)
        narrow = {k: x.astype(F) if x.dtype == D else x for k, x in arrays.items()}
        wide = {k: x.astype(D) if x.dtype == F else x for k, x in narrow.items()}
        for got, want in zip(one(ctx, op, attrs, narrow, outputs, names), one(ctx, op, attrs, wide, outputs, names)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"{sizes} {direction} {lengths} {extra}")


def test_transforms(ctx):
    rng = np.random.default_rng(2)
    for n, dtype in itertools.product((*range(1, 20), 49, 64, 97, 100, 121, 210, 256, 400, 1031), (F, D)):
        x = rng.standard_normal((2, n, 3, 2)).astype(dtype)
        got, = one(ctx, "DFT", {"axis": 1}, {"x": x}, ["y"], opset=17)
        want = np.fft.fft(x[..., 0].astype(D) + 1j * x[..., 1], axis=1)
        far = np.abs(got[..., 0] + 1j * got[..., 1] - want).max() / np.abs(want).max()
        assert far < 8 * np.finfo(dtype).eps * np.log2(n + 1), (n, dtype)
    x = np.ones((1, 8, 1, 1), F)
    x[0, 3] = np.inf
    got, = one(ctx, "DFT", {"axis": 1}, {"x": x}, ["y"], opset=17)
    assert not np.isfinite(got).any() and np.isinf(got[0, 0, 0, 0])


def windowed(x, w, strides, dilations, pads, groups):
    """Conv in two dimensions by its definition."""
    x = np.pad(x.astype(D), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    size = [(n - s) // t + 1 for n, s, t in zip(x.shape[2:], spans, strides)]
    y, each = np.zeros((x.shape[0], w.shape[0], *size)), w.shape[0] // groups
    for m, c, i, j in np.ndindex(*w.shape):
        top, left = i * dilations[0], j * dilations[1]
        part = x[:, m // each * w.shape[1] + c, top:top + size[0] * strides[0]:strides[0],
                 left:left + size[1] * strides[1]:strides[1]]
        y[:, m] += w[m, c, i, j] * part
    return y


def test_depthwise(ctx):
    rng = np.random.default_rng(3)
    for kernel, stride, dilation, width, times in itertools.product(((3, 3), (5, 2)), (1, 2, 3), (1, 2), (5, 35, 100),
                                                                    (1, 2)):
        pads, strides, dilations = [1, 2, 0, 3], [1, stride], [dilation, dilation]
        x = rng.standard_normal((2, 3, 10, width)).astype(F)
        w = rng.standard_normal((3 * times, 1, *kernel)).astype(F)
        if (kernel[1] - 1) * dilation + 1 > width:
            continue
        got, = one(ctx, "Conv", {"group": 3, "strides": strides, "dilations": dilations, "pads": pads},
                   {"x": x, "w": w}, ["y"])
        np.testing.assert_allclose(got, windowed(x, w, strides, dilations, pads, 3), rtol=1e-5, atol=1e-5)


def test_transposed_to_few_channels(ctx):
    rng = np.random.default_rng(4)
    for kernel, stride, width, channels in itertools.product(((4, 4), (1, 5), (2, 3)), (1, 2, 3), (3, 70, 300), (1, 9, 20)):
        x = rng.standard_normal((1, channels, 4, width)).astype(F)
        w = rng.standard_normal((channels, 3, *kernel)).astype(F)
        got, = one(ctx, "ConvTranspose", {"strides": [stride, stride]}, {"x": x, "w": w}, ["y"])
        want = np.zeros((1, 3, 3 * stride + kernel[0], (width - 1) * stride + kernel[1]))
        for i, j in np.ndindex(*kernel):
            want[:, :, i:i + 3 * stride + 1:stride, j:j + (width - 1) * stride + 1:stride] += np.einsum(
                "nchw,cm->nmhw", x.astype(D), w[:, :, i, j].astype(D))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_as_float32(ctx, dtype):
    """A network in halves is as the same in float32 with its operands rounded, but for the rounding at the end."""
    rng = np.random.default_rng(5)
    arrays = {"x": (2, 3, 30, 30), "w": (32, 3, 3, 3), "b": (32,), "v": (32, 32, 3, 3), "g": (225, 40)}
    halves = {k: (rng.standard_normal(s) / max(1, np.prod(s[1:])) ** 0.5).astype(dtype) for k, s in arrays.items()}
    nodes = [("Conv", {"pads": [1] * 4}, ["x", "w", "b"], ["c"]), ("Relu", {}, ["c"], ["r"]),
             ("Conv", {"pads": [1] * 4}, ["r", "v"], ["d"]), ("Add", {}, ["d", "r"], ["a"]),
             ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, ["a"], ["p"]), ("Flatten", {"axis": 2}, ["p"], ["f"]),
             ("MatMul", {}, ["f", "g"], ["m"]), ("Transpose", {"perm": [1, 0]}, ["m"], ["t"]),
             ("Softmax", {"axis": 0}, ["t"], ["q"]), ("Exp", {}, ["q"], ["e"]), ("Concat", {"axis": 1}, ["e", "t"], ["y"])]
    got, early = run(ctx, nodes, halves, ["y", "r"], opset=17)
    wanted, wide = run(ctx, nodes, {k: v.astype(F) for k, v in halves.items()}, ["y", "r"], opset=17)
    step = float(ml_dtypes.finfo(dtype).eps)
    assert got.dtype == early.dtype == dtype
    np.testing.assert_allclose(early.astype(F), wide, rtol=step, atol=step)
    np.testing.assert_allclose(got.astype(F), wanted, rtol=12 * step, atol=12 * step)


def test_elements(ctx):
    rng = np.random.default_rng(6)
    for axis, dtype, kind in itertools.product((0, 1, 2), (F, D, np.uint8), (np.int64, np.int32)):
        x = rng.integers(0, 200, (5, 6, 7)).astype(dtype)
        shape = [4, 5, 6]
        shape[axis] = 3
        index = np.stack([rng.permutation(x.shape[axis])[:3] for _ in range(np.prod(shape) // 3)], -1)
        index = np.moveaxis(index.reshape([n for d, n in enumerate(shape) if d != axis] + [3]), -1, axis).astype(kind)
        index[0] -= x.shape[axis]
        got, = one(ctx, "GatherElements", {"axis": axis}, {"x": x, "i": index}, ["y"])
        cut = tuple(slice(n) if d != axis else slice(None) for d, n in enumerate(index.shape))
        np.testing.assert_array_equal(got, np.take_along_axis(x[cut], index.astype(np.int64), axis))
        u = rng.integers(0, 200, index.shape).astype(dtype)
        got, = one(ctx, "ScatterElements", {"axis": axis}, {"x": x, "i": index, "u": u}, ["y"])
        want = x.copy()
        np.put_along_axis(want[cut], index.astype(np.int64), u, axis)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_quantised_to_16_bits(ctx, dtype):
    rng = np.random.default_rng(7)
    limits = np.iinfo(dtype)
    x = np.concatenate([rng.uniform(-80, 80, 997), [np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, 2.5]]).astype(F)
    for scale, zero in ((1e-3, 7), (0.5, limits.max), (1.0, limits.min)):
        s, z = np.array(scale, F), np.array(zero, dtype)
        got, back = run(ctx, [("QuantizeLinear", {}, ["x", "s", "z"], ["q"]), ("DequantizeLinear", {}, ["q", "s", "z"], ["y"])],
                        {"x": x, "s": s, "z": z}, ["q", "y"], opset=21)
        want = np.clip(np.rint((x / s).astype(D)) + zero, limits.min, limits.max).astype(dtype)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(back, (want.astype(F) - F(zero)) * s)
