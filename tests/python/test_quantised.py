"""Quantised operators on cpu, exactly: sums as integers, and results rounded half to even after one float32 product, by
numpy; with oneDNN and without, on several threads.

labels: slow ctypes
timeout: 600
"""
import os
import subprocess
import sys

import capi
import numpy as np
import pytest
from optimize_case import Net, Run

SETTINGS = [dict(threads=1), dict(threads=3), dict(cpu__onednn="off", threads=2)]
BYTES = (np.uint8, np.int8)


@pytest.fixture(scope="module")
def contexts():
    made = [capi.Context(**s) for s in SETTINGS]
    yield made
    for ctx in made:
        ctx.close()


def some(rng, dtype, *shape):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, shape, dtype, endpoint=True)


def conv_sums(x, w, pads, strides, dilations, groups):
    """Of [N, C, H, W] and [M, C / groups, h, w] in int64; what is outside counts as 0."""
    (top, left, bottom, right), (kh, kw) = pads, w.shape[2:]
    x = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    high = (x.shape[2] - (kh - 1) * dilations[0] - 1) // strides[0] + 1
    wide = (x.shape[3] - (kw - 1) * dilations[1] - 1) // strides[1] + 1
    each_in, each_out = x.shape[1] // groups, w.shape[0] // groups
    y = np.zeros((x.shape[0], w.shape[0], high, wide), np.int64)
    for g in range(groups):
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * each_in:(g + 1) * each_in, i * dilations[0]:, j * dilations[1]:]
                part = part[:, :, :(high - 1) * strides[0] + 1:strides[0], :(wide - 1) * strides[1] + 1:strides[1]]
                y[:, g * each_out:(g + 1) * each_out] += np.einsum(
                    "nchw,mc->nmhw", part, w[g * each_out:(g + 1) * each_out, :, i, j])
    return y


def rounded(sums, x_scale, w_scale, y_scale, y_zero):
    scale = np.float32(x_scale) * np.asarray(w_scale, np.float32) / np.float32(y_scale)
    limits = np.iinfo(y_zero.dtype)
    return np.clip(np.rint(sums.astype(np.float32) * scale) + y_zero, limits.min, limits.max).astype(y_zero.dtype)


def zero_point(rng, dtype, how, *shape):
    if how == 0:
        return np.zeros(shape, dtype)
    return np.full(shape, 128 if dtype == np.uint8 else 0, dtype) if how == 1 else some(rng, dtype, *shape)


def check(contexts, net, heads, feed, want, label):
    for settings, ctx in zip(SETTINGS, contexts):
        run = Run(ctx, net, heads, feed, optimize="off")
        for got, w in zip(run.outputs, want):
            assert got.dtype == w.dtype and got.shape == w.shape
            assert np.array_equal(got, w), f"{label}, {settings}: {np.sum(got != w)} of {w.size} differ"


# ---- products, one node each


@pytest.mark.parametrize("x_dtype, w_dtype", [(a, b) for a in BYTES for b in BYTES])
def test_sums_that_float32_does_not_hold(contexts, x_dtype, w_dtype):
    """An odd sum over 2^24, as a matrix product and as a convolution."""
    k, (x_most, w_most) = 2048, (np.iinfo(d).max for d in (x_dtype, w_dtype))
    x, w = np.full((3, k), x_most, x_dtype), np.full((k, 32), w_most, w_dtype)
    w[5] -= 1
    want = x.astype(np.int64) @ w.astype(np.int64)
    assert np.all(want % 2 == 1) and np.all(want > 2**24)
    net = Net()
    net.x("x", *x.shape, dtype=x.dtype.name)
    net.op("MatMulInteger", "x", net.w("w", w), name="y")
    check(contexts, net, ["y"], {"x": x}, [want.astype(np.int32)], "matrix")
    x, w = np.full((1, k, 2, 3), x_most, x_dtype), np.ascontiguousarray(w.T[:, :, None, None])
    net = Net()
    net.x("x", *x.shape, dtype=x.dtype.name)
    net.op("ConvInteger", "x", net.w("w", w), name="y")
    check(contexts, net, ["y"], {"x": x}, [np.full((1, 32, 2, 3), want[0, 0], np.int32)], "convolution")


@pytest.mark.parametrize("x_dtype, w_dtype", [(a, b) for a in BYTES for b in BYTES])
@pytest.mark.parametrize("depth, groups, taps", [(640, 1, 3), (2080, 1, 1), (2 * 640, 2, 3)])
def test_sums_that_are_computed_in_pieces(contexts, x_dtype, w_dtype, depth, groups, taps):
    """Weights that differ, so that each has to be in one piece, and in no other."""
    rng = np.random.default_rng(depth + groups)
    x = rng.integers(*np.array([-1, 1] if x_dtype == np.int8 else [0, 2]) * 128, (1, depth, 4, 5)).astype(x_dtype)
    w = rng.integers(*np.array([-1, 1] if w_dtype == np.int8 else [0, 2]) * 128, (32, depth // groups, taps, taps)).astype(w_dtype)
    zero = 0 if w_dtype == np.int8 else 128
    assert 128 * np.abs(w.astype(np.int64) - zero).sum((1, 2, 3)).max() > 2**24
    sums = conv_sums(x.astype(np.int64) - 3, w.astype(np.int64) - zero, [taps // 2] * 4, [1, 1], [1, 1], groups)
    net = Net()
    net.x("x", *x.shape, dtype=x.dtype.name)
    net.op("ConvInteger", "x", net.w("w", w), net.w("xz", np.array(3, x_dtype)), net.w("wz", np.array(zero, w_dtype)), name="y",
           group=groups, pads=[taps // 2] * 4)
    check(contexts, net, ["y"], {"x": x}, [sums.astype(np.int32)], "pieces")


def test_images_of_one_place(contexts):
    rng = np.random.default_rng(3)
    x, w = some(rng, np.uint8, 5, 16, 1, 1), some(rng, np.int8, 24, 16, 1, 1)
    net = Net()
    net.x("x", *x.shape, dtype=x.dtype.name)
    net.op("ConvInteger", "x", net.w("w", w), name="y")
    check(contexts, net, ["y"], {"x": x}, [conv_sums(x.astype(np.int64), w.astype(np.int64), [0] * 4, [1, 1], [1, 1], 1)
                                           .astype(np.int32)], "one place")


@pytest.mark.parametrize("seed", range(40))
def test_conv(contexts, seed):
    rng = np.random.default_rng(seed)
    net, integer = Net(), seed % 4 == 3
    groups = int(rng.choice([1, 1, 1, 2, 8]))
    depth, each = (1, int(rng.integers(1, 3))) if groups == 8 else (int(rng.integers(1, 40)), int(rng.integers(1, 80)))
    kernel, strides, dilations = rng.integers(1, 4, 2), rng.integers(1, 3, 2), rng.integers(1, 3, 2)
    pads = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
    x_type, w_type, y_type = (BYTES[i] for i in rng.integers(0, 2, 3))
    x = some(rng, x_type, int(rng.integers(1, 3)), groups * depth, *rng.integers(7, 30, 2))
    w = some(rng, w_type, groups * each, depth, *kernel)
    channels = bool(rng.integers(0, 2))
    x_zero, w_zero = zero_point(rng, x_type, seed % 3), zero_point(
        rng, w_type, int(rng.integers(0, 3)) if groups == 1 else 1, *([w.shape[0]] if channels else []))
    attrs = dict(pads=pads, strides=strides.tolist(), dilations=dilations.tolist(), group=groups)
    sums = conv_sums(x.astype(np.int64) - x_zero, w.astype(np.int64) - w_zero.reshape(-1, 1, 1, 1), pads, strides,
                     dilations, groups)
    net.x("x", *x.shape, dtype=x.dtype.name)
    if integer:
        net.op("ConvInteger", "x", net.w("w", w), net.w("xz", x_zero), net.w("wz", w_zero), name="y", **attrs)
        want = sums.astype(np.int32)
    else:
        bias = rng.integers(-5000, 5000, w.shape[0]).astype(np.int32)
        w_scale = rng.uniform(0.001, 0.1, [w.shape[0]] if channels else []).astype(np.float32)
        y_zero = some(rng, y_type)
        x_scale, y_scale = np.float32(0.02), np.float32(rng.uniform(0.001, 0.5) * np.sqrt(w[0].size))
        net.op("QLinearConv", "x", net.w("xs", x_scale), net.w("xz", x_zero), net.w("w", w), net.w("ws", w_scale),
               net.w("wz", w_zero), net.w("ys", y_scale), net.w("yz", y_zero), net.w("b", bias), name="y", **attrs)
        want = rounded(sums + bias.reshape(-1, 1, 1), x_scale, w_scale.reshape(-1, 1, 1), y_scale, y_zero)
    check(contexts, net, ["y"], {"x": x}, [want], f"seed {seed}")


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_wide_convs(contexts, kernel, stride):
    """Channels that fill a processor's blocks and that do not, with kernels and strides of each width."""
    for channels in (16, 32, 80, 96, 160, 288):
        rng = np.random.default_rng(channels)
        x, w = some(rng, np.uint8, 1, channels, 4, 12), some(rng, np.int8, 48, channels, 1, kernel)
        pads = [0, 0, 0, int(rng.integers(0, kernel))]
        net = Net()
        net.x("x", *x.shape, dtype=x.dtype.name)
        net.op("ConvInteger", "x", net.w("w", w), name="y", strides=[1, stride], pads=pads)
        check(contexts, net, ["y"], {"x": x}, [conv_sums(x.astype(np.int64), w.astype(np.int64), pads, [1, stride], [1, 1], 1)
                                               .astype(np.int32)], f"{channels} channels")


@pytest.mark.parametrize("seed", range(40))
def test_matmul(contexts, seed):
    rng = np.random.default_rng(seed)
    net, integer = Net(), seed % 2 == 1
    x_type, w_type, y_type = (BYTES[i] for i in rng.integers(0, 2, 3))
    before = [int(n) for n in rng.integers(1, 5, int(rng.integers(0, 3)))]
    k, n, rows = int(rng.integers(1, 300)), int(rng.integers(1, 600)), int(rng.choice([1, 2, 7, 64, 129]))
    x, w = some(rng, x_type, *before, rows, k), some(rng, w_type, k, n)
    x_zero = some(rng, x_type)
    w_zero = zero_point(rng, w_type, int(rng.integers(0, 3)), *([n] if rng.integers(0, 2) else []))
    sums = np.matmul(x.astype(np.int64) - x_zero, w.astype(np.int64) - w_zero)
    net.x("x", *x.shape, dtype=x.dtype.name)
    feed = {"x": x}
    if integer:
        if seed % 4 == 1:
            feed["xz"] = x_zero
            net.x("xz", dtype=x_zero.dtype.name)
        else:
            net.w("xz", x_zero)
        net.op("MatMulInteger", "x", net.w("w", w), "xz", net.w("wz", w_zero), name="y")
        want = sums.astype(np.int32)
    else:
        w_scale = rng.uniform(0.001, 0.1, [n] if w_zero.ndim else []).astype(np.float32)
        y_zero, y_scale = some(rng, y_type), np.float32(rng.uniform(0.1, 2) * np.sqrt(k))
        net.op("QLinearMatMul", "x", net.w("xs", np.float32(0.03)), net.w("xz", x_zero), net.w("w", w),
               net.w("ws", w_scale), net.w("wz", w_zero), net.w("ys", y_scale), net.w("yz", y_zero), name="y")
        want = rounded(sums, 0.03, w_scale, y_scale, y_zero)
    check(contexts, net, ["y"], feed, [want], f"seed {seed}")


# ---- to bytes and back


def quantised(x, scale, zero):
    limits = np.iinfo(zero.dtype)
    q = np.rint(x / scale).astype(np.float64) + zero
    return np.nan_to_num(np.clip(q, limits.min, limits.max), nan=0).astype(zero.dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_to_bytes_and_back(contexts, dtype, axis):
    rng = np.random.default_rng(axis)
    shape, net = (3, 5, 4099), Net()
    sizes = [] if axis is None else [shape[axis]]
    scale = rng.uniform(0.01, 0.1, sizes).astype(np.float32)
    zero = some(rng, dtype, *sizes)
    x = rng.uniform(-20, 20, shape).astype(np.float32)
    x[0, 0, :6] = np.inf, -np.inf, np.nan, 1e30, -1e30, -0.0
    along = [1, 1, 1]
    if axis is not None:
        along[axis] = -1
    s, z = scale.reshape(along), zero.reshape(along)
    x[:, :, 100:200] = (np.arange(100) - 50 + 0.5) * s[:, :, :1]  # halves, for even
    q = some(rng, dtype, *shape)
    attrs = {} if axis is None else {"axis": axis}
    net.x("x", *shape), net.x("q", *shape, dtype=q.dtype.name)
    net.w("s", scale), net.w("z", zero)
    net.op("QuantizeLinear", "x", "s", "z", name="to", **attrs)
    net.op("DequantizeLinear", "q", "s", "z", name="from", **attrs)
    with np.errstate(invalid="ignore"):
        want = [quantised(x, s, z), (q.astype(np.int32) - z).astype(np.float32) * s]
    check(contexts, net, ["to", "from"], {"x": x, "q": q}, want, f"{dtype}, axis {axis}")


@pytest.mark.parametrize("low, high", [(-3, 5), (0.5, 2), (-7, -1), (0, 0)])
def test_dynamic(contexts, low, high):
    net, x = Net(), np.random.default_rng(3).uniform(low, high, (7, 40001)).astype(np.float32)
    net.x("x", *x.shape)
    net.op("DynamicQuantizeLinear", "x", name="q", outputs=3)
    least, most = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (most - least) / np.float32(255)
    zero = np.uint8(np.rint(-least / scale) if scale else 0)
    q = quantised(x, scale, zero) if scale else np.zeros_like(x, np.uint8)
    check(contexts, net, ["q:0", "q:1", "q:2"], {"x": x}, [q, scale, zero], f"{low} to {high}")


# ---- what is put together


@pytest.mark.parametrize("seed", range(16))
def test_dynamic_products(contexts, seed):
    """MatMulInteger with the Cast, Mul and Add that make floats of it."""
    rng = np.random.default_rng(seed)
    net, rows, k, n = Net(), int(rng.choice([1, 9, 200])), int(rng.integers(1, 200)), int(rng.integers(2, 300))
    w_zero = zero_point(rng, np.int8, seed % 3, *([n] if seed % 2 else []))
    x, w, x_zero = some(rng, np.uint8, 2, rows, k), some(rng, np.int8, k, n), some(rng, np.uint8)
    factor = rng.uniform(0.001, 0.1, [[], [1], [n]][seed % 3]).astype(np.float32)
    bias = rng.uniform(-9, 9, n).astype(np.float32)
    net.x("x", *x.shape, dtype="uint8"), net.x("xz", dtype="uint8"), net.x("f", *factor.shape)
    y = net.op("Cast", net.op("MatMulInteger", "x", net.w("w", w), "xz", net.w("wz", w_zero)), to=1)
    y = net.op("Mul", *((y, "f") if seed % 4 < 2 else ("f", y)), name="mul")
    want = np.matmul(x.astype(np.int64) - x_zero, w.astype(np.int64) - w_zero).astype(np.float32) * factor
    if seed % 5:
        y = net.op("Add", *((y, net.w("b", bias)) if seed % 2 else (net.w("b", bias), y)), name="add")
        want = want + bias
    check(contexts, net, [y], {"x": x, "xz": x_zero, "f": factor}, [want], f"seed {seed}")


@pytest.mark.parametrize("seed", range(16))
def test_sums(contexts, seed):
    """Two dequantised tensors, their sum, maybe a Relu, quantised again; also where they are laid out otherwise."""
    rng = np.random.default_rng(seed)
    net, shape = Net(), (1, int(rng.integers(1, 70)), 9, 11)
    types = [BYTES[i] for i in rng.integers(0, 2, 3)]
    scales, zeros = rng.uniform(0.01, 0.05, 3).astype(np.float32), [some(rng, t) for t in types]
    a, b = some(rng, types[0], *shape), some(rng, types[1], *shape)
    feed = {"a": a, "b": b}
    for name, q in feed.items():
        net.x(name, *shape, dtype=q.dtype.name)
    for i in range(3):
        net.w(f"s{i}", scales[i]), net.w(f"z{i}", zeros[i])
    pool = seed % 2 == 1  # what takes its input channels last
    left = net.op("MaxPool", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]) if pool else "a"
    operands = [net.op("DequantizeLinear", left, "s0", "z0"), net.op("DequantizeLinear", "b", "s1", "z1")]
    y = net.op("Add", *operands[::1 if seed % 3 else -1])
    if pool:
        wide = np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=np.iinfo(types[0]).min)
        a = np.max([wide[:, :, i:i + 9, j:j + 11] for i in range(3) for j in range(3)], axis=0)
    want = (a.astype(np.int32) - zeros[0]).astype(np.float32) * scales[0] + (
        b.astype(np.int32) - zeros[1]).astype(np.float32) * scales[1]
    if seed % 4 > 1:
        y, want = net.op("Relu", y), np.maximum(want, 0)
    y = net.op("QuantizeLinear", y, "s2", "z2", name="y")
    check(contexts, net, [y], feed, [quantised(want, scales[2], zeros[2])], f"seed {seed}")


STEPS = {  # of floats, with float32 constants
    "Relu": lambda x: np.maximum(x, 0), "Neg": lambda x: -x, "Abs": np.abs, "Add": lambda x: x + np.float32(0.7),
    "Mul": lambda x: x * np.float32(1.3), "Div": lambda x: x / np.float32(1.7), "Sub": lambda x: x - np.float32(0.2),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))), "Tanh": lambda x: np.tanh(x.astype(np.float64))}
NUMBERS = {"Add": 0.7, "Mul": 1.3, "Div": 1.7, "Sub": 0.2}


@pytest.mark.parametrize("seed", range(24))
def test_functions_of_bytes(contexts, seed):
    """Operators of one operand between DequantizeLinear and QuantizeLinear, and the product of two tensors."""
    rng = np.random.default_rng(seed)
    net, shape = Net(), (2, int(rng.integers(1, 300)), 7, 5)[:int(rng.integers(2, 5))]
    types = [BYTES[i] for i in rng.integers(0, 2, 3)]
    scales, zeros = rng.uniform(0.01, 0.03, 3).astype(np.float32), [some(rng, t) for t in types]
    feed = {"a": some(rng, types[0], *shape), "b": some(rng, types[1], *shape)}
    for i in range(3):
        net.w(f"s{i}", scales[i]), net.w(f"z{i}", zeros[i])
    values = []
    for i, (name, q) in enumerate(feed.items()):
        net.x(name, *shape, dtype=q.dtype.name)
        values.append((net.op("DequantizeLinear", name, f"s{i}", f"z{i}"),
                       (q.astype(np.int32) - zeros[i]).astype(np.float32) * scales[i]))
    if seed % 6 == 0:
        y, want = net.op("Mul", values[0][0], values[1][0]), values[0][1] * values[1][1]
    else:
        del feed["b"]
        y, want = values[0]
        for step in rng.choice(list(STEPS), int(rng.integers(0, 5))):
            step = str(step)
            more = [net.w(f"c{step}", np.float32(NUMBERS[step]))] if step in NUMBERS else []
            y, want = net.op(step, y, *more), STEPS[step](want).astype(np.float32)
    y = net.op("QuantizeLinear", y, "s2", "z2", name="y")
    if seed % 6:
        net.nulls.pop("b"), net.nodes.pop(1)
    want = quantised(want, scales[2], zeros[2])
    for settings, ctx in zip(SETTINGS, contexts):
        got = Run(ctx, net, [y], feed, optimize="off").outputs[0]
        apart = np.abs(got.astype(int) - want)  # sigmoid and tanh are numpy's in float64 here: beside a half
        assert apart.max() <= (1 if seed % 6 else 0) and np.count_nonzero(apart) <= want.size / 50, settings


def test_without_instructions_for_products_of_bytes():
    """All of this file where oneDNN may use no more than AVX2."""
    with open("/proc/cpuinfo") as f:
        if "vnni" not in f.read() or "ONEDNN_MAX_CPU_ISA" in os.environ:
            pytest.skip("this CPU has none: the other cases are without them")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__],
                          env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
