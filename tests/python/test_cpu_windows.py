"""Kernels of the cpu plugin that have a fast form, at odd sizes and with values that are no numbers: depthwise convolutions of
bytes and of float32 in one to three dimensions and transposed ones against sums written out, AffineGrid and Col2Im by their
definitions, RoiAlign with NaN, quotients of int32 against Python's, Tanh and Sigmoid of float64 against long double, rows that
are reduced, blocks of bytes and the first k of rows against numpy.

labels: ctypes
timeout: 240
"""
import itertools

import capi
import numpy as np
import pytest
from test_cpu_families import one

F, D = np.float32, np.float64
CASES = [  # size, kernel, strides, dilations, pads
    ((37,), (5,), (1,), (1,), (2, 2)), ((1100,), (3,), (1,), (2,), (0, 4)), ((50,), (4,), (3,), (2,), (3, 1)),
    ((9, 20), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), ((10, 35), (5, 2), (2, 2), (1, 2), (1, 2, 0, 3)),
    ((7, 19), (2, 4), (1, 3), (2, 1), (0, 5, 2, 1)), ((40, 40), (7, 7), (1, 1), (1, 1), (3, 3, 3, 3)),
    ((4, 9, 17), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1,) * 6), ((5, 6, 11), (2, 1, 3), (2, 1, 2), (1, 2, 2), (1, 0, 2, 0, 3, 1)),
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0,) * 6)]


@pytest.fixture(scope="module", params=["auto", "off"])
def ctx(request):
    context = capi.Context(config="off", cpu__onednn=request.param, threads="2")
    yield context
    context.close()


def depthwise(x, w, strides, dilations, pads):
    """What lies outside counts as 0; channel c of the result is of channel c // (channels of w / channels of x) of x."""
    n, times = w.ndim - 2, w.shape[0] // x.shape[1]
    x = np.repeat(np.pad(x, [(0, 0)] * 2 + list(zip(pads[:n], pads[n:]))), times, axis=1)
    out = [(x.shape[2 + d] - (w.shape[2 + d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(n)]
    y = np.zeros((*x.shape[:2], *out), x.dtype)
    for tap in np.ndindex(*w.shape[2:]):
        part = tuple(slice(t * a, t * a + (o - 1) * s + 1, s) for t, a, o, s in zip(tap, dilations, out, strides))
        y += x[(slice(None), slice(None), *part)] * w[(slice(None), 0, *tap)].reshape(-1, *[1] * n)
    return y


@pytest.mark.parametrize("size, kernel, strides, dilations, pads", CASES)
def test_depthwise(ctx, size, kernel, strides, dilations, pads):
    rng = np.random.default_rng(len(size))
    attrs = {"group": 3, "strides": list(strides), "dilations": list(dilations), "pads": list(pads)}
    rest = (strides, dilations, pads)
    for times, x_type, w_type in ((1, np.uint8, np.int8), (2, np.int8, np.uint8), (1, np.int8, np.int8)):
        x, w = (rng.integers(np.iinfo(t).min, np.iinfo(t).max, s, t, endpoint=True)
                for t, s in ((x_type, (2, 3, *size)), (w_type, (3 * times, 1, *kernel))))
        xz, wz = np.array(rng.integers(0, 100), x_type), rng.integers(0, 100, 3 * times).astype(w_type)
        sums = depthwise(x.astype(np.int64) - xz, w.astype(np.int64) - wz.reshape(-1, *[1] * (w.ndim - 1)), *rest)
        got, = one(ctx, "ConvInteger", attrs, {"x": x, "w": w, "xz": xz, "wz": wz}, ["y"])
        assert np.array_equal(got, sums)
        scales = {"xs": F(0.02), "ws": rng.uniform(0.001, 0.01, 3 * times).astype(F), "ys": F(0.7)}
        yz, bias = np.array(90, x_type), rng.integers(-5000, 5000, 3 * times).astype(np.int32)
        inputs = {"x": x, "xs": np.array(scales["xs"]), "xz": xz, "w": w, "ws": scales["ws"], "wz": wz,
                  "ys": np.array(scales["ys"]), "yz": yz, "b": bias}
        got, = one(ctx, "QLinearConv", attrs, inputs, ["y"])
        over = [-1] + [1] * len(size)
        scale = (scales["xs"] * scales["ws"] / scales["ys"]).reshape(over)
        limits = np.iinfo(x_type)
        want = np.clip(np.rint((sums + bias.reshape(over)).astype(F) * scale) + float(yz), limits.min, limits.max)
        assert np.array_equal(got, want)
        x, w = rng.standard_normal(x.shape).astype(F), rng.standard_normal(w.shape).astype(F)
        b = rng.standard_normal(3 * times).astype(F)
        got, = one(ctx, "Conv", attrs, {"x": x, "w": w, "b": b}, ["y"])
        want = depthwise(x.astype(D), w.astype(D), *rest) + b.astype(D).reshape(over)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


def test_depthwise_keeps_what_is_no_number(ctx):
    x = np.zeros((1, 2, 5, 6, 30), F)
    x[0, 0, 2, 3, 20], x[0, 1, 4, 0, 0] = np.inf, np.nan
    got, = one(ctx, "Conv", {"group": 2, "pads": [1] * 6}, {"x": x, "w": np.ones((2, 1, 3, 3, 3), F)}, ["y"])
    want = np.zeros(x.shape, F)
    want[0, 0, 1:4, 2:5, 19:22], want[0, 1, 3:, :2, :2] = np.inf, np.nan
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kernel, stride", [((4,), 2), ((4, 4), 2), ((3, 5), 1), ((2, 3, 4), 3)])
def test_transposed(ctx, kernel, stride):
    rng = np.random.default_rng(2)
    for width in (1, 14, 300):
        size = (*(3, 2)[:len(kernel) - 1], width)
        x, w = rng.standard_normal((2, 5, *size)).astype(F), rng.standard_normal((5, 1, *kernel)).astype(F)
        got, = one(ctx, "ConvTranspose", {"strides": [stride] * len(kernel), "group": 5}, {"x": x, "w": w}, ["y"])
        want = np.zeros((2, 5, *((n - 1) * stride + k for n, k in zip(size, kernel))))
        for tap in np.ndindex(*kernel):
            part = tuple(slice(t, t + (n - 1) * stride + 1, stride) for t, n in zip(tap, size))
            want[(slice(None), slice(None), *part)] += x * w[(slice(None), 0, *tap)].reshape(-1, *[1] * len(kernel)).astype(D)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def places(n, corners):
    return -1 + 2 * np.arange(n) / (n - 1) if corners else -1 + (2 * np.arange(n) + 1) / n


@pytest.mark.parametrize("dtype", [F, D, np.float16])
def test_affine_grid(ctx, dtype):
    rng = np.random.default_rng(3)
    for size, corners in itertools.product(((2, 3, 5, 7), (1, 1, 3, 300), (2, 1, 3, 4, 5), (0, 1, 4, 4), (1, 1, 0, 5)), (0, 1)):
        n = len(size) - 2
        inputs = {"theta": rng.standard_normal((size[0], n, n + 1)).astype(dtype), "size": np.array(size, np.int64)}
        got, = one(ctx, "AffineGrid", {"align_corners": corners}, inputs, ["y"])
        at = np.meshgrid(*(places(size[2 + d], corners) for d in range(n)), indexing="ij")
        homogeneous = np.stack([*at[::-1], np.ones(size[2:])], axis=-1)
        want = np.einsum("...c,brc->b...r", homogeneous, inputs["theta"].astype(D))
        np.testing.assert_allclose(got.astype(D), want, rtol=2 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


def test_col2im(ctx):
    rng = np.random.default_rng(4)
    for image, block, attrs in (([30], [4], {}), ([9, 33], [3, 2], {"pads": [1, 0, 2, 1]}), ([8, 31], [2, 3], {"strides": [2, 3]}),
                                ([12, 40], [3, 3], {"dilations": [2, 5], "pads": [1] * 4})):
        n = len(image)
        pads, strides, dilations = (attrs.get(k, [v] * m) for k, v, m in (("pads", 0, 2 * n), ("strides", 1, n), ("dilations", 1, n)))
        places = [(image[d] + pads[d] + pads[n + d] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(n)]
        x = rng.standard_normal((2, 3 * np.prod(block), np.prod(places))).astype(F)
        got, = one(ctx, "Col2Im", attrs, {"x": x, "i": np.array(image, np.int64), "b": np.array(block, np.int64)}, ["y"])
        want = np.zeros((2, 3, *(s + pads[d] + pads[n + d] for d, s in enumerate(image))))
        parts = x.reshape(2, 3, *block, *places)
        for tap in np.ndindex(*block):
            at = tuple(slice(t * a, t * a + (p - 1) * s + 1, s) for t, a, p, s in zip(tap, dilations, places, strides))
            want[(slice(None), slice(None), *at)] += parts[(slice(None), slice(None), *tap)]
        inside = tuple(slice(pads[d], pads[d] + s) for d, s in enumerate(image))
        np.testing.assert_allclose(got, want[(slice(None), slice(None), *inside)], rtol=1e-5, atol=1e-5)


def test_greatest_of_boxes(ctx):
    """NaN wins wherever it is among the samples; what is -inf does not hide the others."""
    x = np.random.default_rng(5).standard_normal((1, 4, 12, 12)).astype(F)
    x[0, 1, 5, 5], x[0, 2, 5, 5] = np.nan, -np.inf
    boxes = np.array([[0, 0, 11, 11]], F)
    attrs = {"output_height": 1, "output_width": 1, "sampling_ratio": 12, "mode": "max"}
    got, = one(ctx, "RoiAlign", attrs, {"x": x, "r": boxes, "b": np.zeros(1, np.int64)}, ["y"])
    assert np.isnan(got[0, 1]) and np.isfinite(got[0, (0, 2, 3)]).all()


def test_quotients_of_int32(ctx):
    rng = np.random.default_rng(6)
    ends = [-2**31, -2**31 + 1, -3, -2, -1, 0, 1, 2, 3, 2**31 - 2, 2**31 - 1]
    for dtype, low, high in ((np.int32, -2**31, 2**31), (np.int16, -2**15, 2**15), (np.int8, -2**7, 2**7)):
        pairs = [p for p in itertools.product(ends, ends) if all(low <= v < high for v in p)]
        pairs += zip(rng.integers(low, high, 500).tolist(), (rng.integers(low, high, 500) >> rng.integers(0, 30, 500)).tolist())
        a, b = (np.array(v).astype(dtype) for v in zip(*pairs))
        cut = [0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a.tolist(), b.tolist())]
        got, = one(ctx, "Div", {}, {"a": a, "b": b}, ["y"])
        assert np.array_equal(got, np.array(cut, np.int64).astype(dtype))  # which wraps, as -2^31 / -1 does


@pytest.mark.parametrize("op", ["Tanh", "Sigmoid"])
def test_float64(ctx, op):
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.uniform(-v, v, 2001) for v in (1e-300, 1e-9, 0.1, 1, 5, 25, 750)] +
                       [[0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -1e308, -708.5, -745.2, 20, -20, 36.9]])
    for n in (len(x), 3):  # 3: fewer than a vector has
        got, = one(ctx, op, {}, {"x": x[-n:]}, ["y"])
        wide = x[-n:].astype(np.longdouble)
        with np.errstate(over="ignore", under="ignore"):
            want = (np.tanh(wide) if op == "Tanh" else 1 / (1 + np.exp(-wide))).astype(D)
        assert np.array_equal(np.isnan(got), np.isnan(x[-n:]))
        there = ~np.isnan(want)
        assert np.all(np.abs(got - want)[there] <= 4 * np.spacing(np.abs(want[there])))
        assert op == "Sigmoid" or np.array_equal(np.signbit(got[there]), np.signbit(x[-n:][there]))


def test_rows_that_are_reduced(ctx):
    """Rows about as long as those that are folded in one way and in the other; NaN comes through."""
    rng, axes = np.random.default_rng(8), np.array([1], np.int64)
    for n, rows in itertools.product((31, 64, 65, 191, 192, 193), (1, 3, 300)):
        x = rng.standard_normal((rows, n)).astype(F)
        wide = x.astype(D)
        for op, want in (("ReduceSum", wide.sum(1)), ("ReduceMean", wide.mean(1)), ("ReduceL2", np.sqrt((wide**2).sum(1))),
                         ("ReduceLogSumExp", np.log(np.exp(wide).sum(1)))):
            got, = one(ctx, op, {"keepdims": 0}, {"x": x, "axes": axes}, ["y"])
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=f"{op} {n} {rows}")
        x[rows // 2, n - 1] = np.nan
        for dtype in (F, D, np.int8, np.int64):
            y = (x if np.dtype(dtype).kind == "f" else rng.integers(-100, 100, x.shape)).astype(dtype)
            for op, of in (("ReduceMax", np.max), ("ReduceMin", np.min)):
                got, = one(ctx, op, {"keepdims": 0}, {"x": y, "axes": axes}, ["y"])
                assert np.array_equal(got, of(y, axis=1), equal_nan=np.dtype(dtype).kind == "f"), (op, n, rows, dtype)


def test_blocks_of_bytes(ctx):
    """A scale for each block along an axis, the last or another, of sizes that blocks do not divide; int32 with one scale."""
    rng = np.random.default_rng(9)
    for dtype, axis, shape in itertools.product((np.uint8, np.int8), (0, 1, 2), ((5, 9, 33), (7, 1, 700), (3, 40, 1))):
        block = 4
        count = [-(-n // block) if d == axis else n for d, n in enumerate(shape)]
        x, zero = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, s, dtype, endpoint=True) for s in (shape, count))
        scale = rng.uniform(0.1, 2, count).astype(F)
        each = np.repeat(np.arange(count[axis]), block)[:shape[axis]]
        s, z = scale.take(each, axis), zero.take(each, axis)
        attrs = {"axis": axis, "block_size": block}
        for named in (True, False):
            inputs = {"x": x, "s": scale} | ({"z": zero} if named else {})
            got, = one(ctx, "DequantizeLinear", attrs, inputs, ["y"])
            assert np.array_equal(got, (x.astype(np.int32) - (z.astype(np.int32) if named else 0)).astype(F) * s)
        real = rng.uniform(-300, 300, shape).astype(F)
        real.flat[0], real.flat[-1] = np.inf, np.nan
        got, = one(ctx, "QuantizeLinear", attrs, {"x": real, "s": scale, "z": zero}, ["y"])
        limits = np.iinfo(dtype)
        want = np.clip(np.rint(real / s) + z.astype(F), limits.min, limits.max)
        assert np.array_equal(got, np.nan_to_num(want, nan=0).astype(dtype))
    x = np.array([-2**31, 2**31 - 1, -1, 0, 12345] * 9, np.int32)
    got, = one(ctx, "DequantizeLinear", {}, {"x": x, "s": np.array(0.3, F), "z": np.array(0, np.int32)}, ["y"])
    assert np.array_equal(got, (x.astype(D) * D(F(0.3))).astype(F))


def test_first_of_rows(ctx):
    """TopK of few among many, with equal elements, zeros of both signs and NaN, which is the greatest: the order of a stable sort."""
    rng = np.random.default_rng(10)
    for dtype, (n, k), largest in itertools.product((F, D, np.int8, np.int64, np.uint8), ((1, 1), (5, 2), (257, 1), (1000, 10), (2000, 3)), (0, 1)):
        x = rng.integers(-100 if np.dtype(dtype).kind != "u" else 0, 100, (3, n)).astype(dtype)
        if np.dtype(dtype).kind == "f":
            x[0, n // 2], x[1, ::2], x[2, n - 1] = np.nan, -0.0, -np.inf
        values, at = one(ctx, "TopK", {"axis": 1, "largest": largest}, {"x": x, "k": np.array([k], np.int64)}, ["v", "i"])
        keys = np.where(np.isnan(x.astype(D)), 1e300, x.astype(D))
        want = np.argsort(-keys if largest else keys, axis=1, kind="stable")[:, :k]
        assert np.array_equal(at, want), (dtype, n, k, largest)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis=1))
