"""Kernels of the cpu plugin that have a fast form, at shapes that meet its edges: RNN, GRU and LSTM of float32 against the
general kernels in float64, DFT against numpy, depthwise Conv and ConvTranspose to few channels against sums written out,
float16 through float32's kernels, the operators that pick elements, 16-bit quantisation, exponentials and their kin
against float64, Resize against products of matrices, pools whose window reaches over the end.

labels: ctypes
timeout: 240
"""
import itertools
import math

import capi
import ml_dtypes
import numpy as np
import pytest
from test_rare_operators import run

F, D = np.float32, np.float64


@pytest.fixture(scope="module", params=["auto", "off"])
def ctx(request):
    context = capi.Context(config="off", cpu__onednn=request.param, threads="2")
    context.onednn = request.param
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


def erf(x):
    return np.vectorize(math.erf)(x)


CURVES = {"Exp": np.exp, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh, "Erf": erf,
          "Gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2}


@pytest.mark.parametrize("op", CURVES)
def test_curves(ctx, op):
    """Within a few units in the last place, also below the normal range, and the same wherever an element lies."""
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.uniform(-104, 88.7, 500), rng.standard_normal(500), rng.standard_normal(507) * 1e-3]).astype(F)
    got, = one(ctx, op, {}, {"x": x}, ["y"])
    want = CURVES[op](x.astype(D))
    if op == "Gelu":  # near 0 it is a difference of like numbers
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-7 * np.maximum(1, np.abs(x)).max())
    else:
        np.testing.assert_allclose(got, want, rtol=4e-7, atol=2e-45)
    later, = one(ctx, op, {}, {"x": x[11:]}, ["y"])
    if ctx.onednn == "off":
        np.testing.assert_array_equal(got[11:], later)
    ends, = one(ctx, op, {}, {"x": np.array([np.inf, -np.inf, np.nan, 0.0], F)}, ["y"])
    assert np.isnan(ends[2]) and ends[3] == want.dtype.type(CURVES[op](np.zeros(1)))[0]
    if op != "Gelu":
        np.testing.assert_array_equal(ends[:2], CURVES[op](np.array([np.inf, -np.inf])).astype(F))


def blend(n, size, mode):
    """The matrix that resizes n elements to size: half_pixel, linear or Keys' cubic."""
    m = np.zeros((size, n))
    for i in range(size):
        x = (i + 0.5) * n / size - 0.5
        for k in range(math.floor(x) - 1, math.floor(x) + 3):
            d, a = abs(x - k), -0.75
            near = ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            m[i, min(max(k, 0), n - 1)] += max(0, 1 - d) if mode == "linear" else near if d < 2 else 0
    return m


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize(ctx, mode):
    rng = np.random.default_rng(9)
    for shape, sizes in (((2, 3, 9, 70), (2, 3, 17, 150)), ((1, 2, 20, 30), (1, 2, 7, 61)), ((3, 5), (3, 129)),
                         ((2, 3, 4, 5, 6), (2, 3, 9, 7, 66))):
        x = rng.standard_normal(shape).astype(F)
        got, = one(ctx, "Resize", {"mode": mode}, {"x": x, "s": np.array(sizes)}, ["y"], ["x", "", "", "s"])
        want = x.astype(D)
        for d, (n, size) in enumerate(zip(shape, sizes)):
            if n != size:
                want = np.moveaxis(np.tensordot(blend(n, size, mode), want, (1, d)), 0, d)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_repeated(ctx):
    rng = np.random.default_rng(10)
    attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for down, across, width in itertools.product((1, 2, 3), (1, 2, 3, 4), (1, 5, 40)):
        x = rng.standard_normal((2, 3, 4, width)).astype(F)
        got, = one(ctx, "Resize", attrs, {"x": x, "s": np.array([2, 3, 4 * down, width * across])}, ["y"], ["x", "", "", "s"])
        np.testing.assert_array_equal(got, x.repeat(down, 2).repeat(across, 3))


def test_many_elements(ctx):
    rng = np.random.default_rng(11)
    for axis, dtype, kind in itertools.product((0, 1), (F, D, np.uint8), (np.int64, np.int32)):
        x = rng.integers(0, 200, (9, 21)).astype(dtype)
        index = rng.integers(-x.shape[axis], x.shape[axis], (7, 19)).astype(kind)
        got, = one(ctx, "GatherElements", {"axis": axis}, {"x": x, "i": index}, ["y"])
        cut = x[:, :19] if axis == 0 else x[:7]
        np.testing.assert_array_equal(got, np.take_along_axis(cut, index.astype(np.int64), axis))
        index[0] = 0
        for at, value in itertools.product((0, 8, 18), (x.shape[axis], -x.shape[axis] - 1)):
            bad = index.copy()
            bad[0, at] = value
            with pytest.raises(capi.HeddleError, match="out of range"):
                one(ctx, "GatherElements", {"axis": axis}, {"x": x, "i": bad}, ["y"])


def test_windows_over_the_end(ctx):
    """With ceil_mode a window that is larger than the padded operand counts once if it is no stride too large."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((2, 3, 4, 5)).astype(F)
    attrs = {"kernel_shape": [6, 7], "strides": [3, 4], "pads": [1, 0, 0, 1], "ceil_mode": 1}
    got, = one(ctx, "MaxPool", attrs, {"x": x}, ["y"])
    np.testing.assert_array_equal(got, x.max((2, 3), keepdims=True))
    for dilations in ([1, 1], [2, 1]):
        got, = one(ctx, "AveragePool", {**attrs, "dilations": dilations, "kernel_shape": [6 if dilations[0] == 1 else 3, 7]},
                   {"x": x}, ["y"])
        want = x[:, :, [0, 1, 2, 3] if dilations[0] == 1 else [1, 3]].astype(D).mean((2, 3), keepdims=True)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(capi.HeddleError, match="at least 9 with padding"):
        one(ctx, "MaxPool", {**attrs, "kernel_shape": [9, 7]}, {"x": x}, ["y"])
