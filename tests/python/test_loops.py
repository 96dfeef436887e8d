"""The loops of products, of what moves elements, of pools, normalisations and transforms, on cpu: against numpy and
onnx.reference, over sizes round the widths of vectors, tiles and panels.

labels: ctypes
"""
import capi
import numpy as np
import onnx
import pytest
from onnx import reference

import test_rare_operators as rare

F, D, H, L = np.float32, np.float64, np.float16, np.int64


@pytest.fixture(scope="module")
def ctx():
    made = capi.Context(config="off")
    yield made
    made.close()


def one(ctx, op, operands, attrs=None, results=1, opset=23):
    inputs = {f"x{i}": x for i, x in enumerate(operands) if x is not None}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    outs = [f"y{i}" for i in range(results)]
    return rare.run(ctx, [(op, attrs or {}, names, outs)], inputs, outs, opset=opset)


def expected(op, operands, attrs=None, results=1, opset=23):
    inputs = {f"x{i}": x for i, x in enumerate(operands) if x is not None}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    node = onnx.helper.make_node(op, names, [f"y{i}" for i in range(results)], **(attrs or {}))
    value, kind = onnx.helper.make_tensor_value_info, onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph([node], "g", [value(n, kind(x.dtype), x.shape) for n, x in inputs.items()],
                                   [value(f"y{i}", 1, None) for i in range(results)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return reference.ReferenceEvaluator(model).run(None, inputs)


def some(rng, dtype, *shape):
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
    return rng.standard_normal(shape).astype(dtype)


def close(got, want, dtype, terms=1):
    assert got.shape == want.shape
    if np.dtype(dtype).kind in "iu":
        np.testing.assert_array_equal(got, want)
    else:
        unit = np.finfo(dtype).eps * (terms + 4)
        np.testing.assert_allclose(got.astype(D), want.astype(D), rtol=unit, atol=unit * 4)


@pytest.mark.parametrize("dtype", [D, H, np.int32, L, np.uint32, np.uint64])
def test_products_are_numpys(ctx, dtype):
    rng = np.random.default_rng(3)
    wide = D if np.dtype(dtype).kind == "f" else dtype
    for m, k, n in ((1, 1, 1), (1, 300, 70), (2, 1100, 65), (3, 17, 5), (4, 129, 33), (65, 130, 67), (70, 2, 1),
                    (9, 1025, 1), (5, 0, 3)):
        for batch in ((), (3,), (2, 1)):
            a, b = some(rng, dtype, *batch, m, k), some(rng, dtype, *batch[-1:], k, n)
            got, = one(ctx, "MatMul", [a, b])
            close(got, a.astype(wide) @ b.astype(wide), dtype, k)
        for flags in range(4):
            a, b = some(rng, dtype, m, k), some(rng, dtype, k, n)
            for c in (None, some(rng, dtype, n), some(rng, dtype, m, 1), some(rng, dtype, m, n)):
                got, = one(ctx, "Gemm", [np.ascontiguousarray(a.T) if flags & 1 else a,
                                         np.ascontiguousarray(b.T) if flags & 2 else b, c],
                           {"transA": flags & 1, "transB": flags >> 1})
                want = a.astype(wide) @ b.astype(wide)
                close(got, want if c is None else want + c.astype(wide), dtype, k)


@pytest.mark.parametrize("left", [np.int8, np.uint8])
@pytest.mark.parametrize("right", [np.int8, np.uint8])
def test_products_of_bytes_are_numpys(ctx, left, right):
    rng = np.random.default_rng(12)
    for m, k, n in ((1, 5, 3), (3, 600, 20), (4, 257, 16), (33, 31, 17), (70, 513, 270), (5, 0, 4)):
        a, b = some(rng, left, 2, m, k), some(rng, right, k, n)
        for zeros in ((None, None), (some(rng, left), some(rng, right)), (some(rng, left, m), some(rng, right, n))):
            x, y = a.astype(np.int32), b.astype(np.int32)
            if zeros[0] is not None:
                x = x - zeros[0].astype(np.int32).reshape(-1, 1) if zeros[0].ndim else x - np.int32(zeros[0])
                y = y - zeros[1].astype(np.int32)
            operands = [a, b] if zeros[0] is None else [a, b, *(np.asarray(z) for z in zeros)]
            np.testing.assert_array_equal(one(ctx, "MatMulInteger", operands)[0], x @ y)


def random_equation(rng):
    """Letters of two or three operands, each in any order; the result has some of them."""
    letters = list("abcdef")[:rng.integers(1, 6)]
    sizes = {c: int(rng.choice([1, 2, 3, 5, 17])) for c in letters}
    terms = []
    for _ in range(rng.integers(1, 4)):
        terms.append("".join(rng.permutation(letters)[:rng.integers(0, min(4, len(letters)) + 1)]))
    used = sorted(set("".join(terms)))
    out = "".join(rng.permutation(used)[:rng.integers(0, min(5, len(used)) + 1)])
    return f"{','.join(terms)}->{out}", [tuple(sizes[c] for c in t) for t in terms]


def test_equations_are_numpys(ctx):
    rng = np.random.default_rng(4)
    for i in range(120):
        equation, shapes = random_equation(rng)
        dtype = (D, np.int32, F, L)[i % 4]
        arrays = [some(rng, dtype, *s) for s in shapes]
        got, = one(ctx, "Einsum", arrays, {"equation": equation})
        wide = D if np.dtype(dtype).kind == "f" else dtype
        want = np.einsum(equation, *[a.astype(wide) for a in arrays])
        sizes = np.einsum(equation, *[np.abs(a.astype(D)) for a in arrays])
        if wide is D:
            assert (np.abs(got - want) <= 64 * np.finfo(dtype).eps * (sizes + 1)).all(), equation
        else:
            np.testing.assert_array_equal(got, want.astype(dtype), equation)


@pytest.mark.parametrize("dtype", [np.uint8, H, F, L])
def test_turns_are_numpys(ctx, dtype):
    rng = np.random.default_rng(5)
    for shape in ((2, 17, 35), (65, 3), (3, 70), (1, 4, 33, 18), (5, 16, 2, 64), (130, 131)):
        x = some(rng, dtype, *shape)
        for _ in range(3):
            perm = [int(p) for p in rng.permutation(len(shape))]
            got, = one(ctx, "Transpose", [x], {"perm": perm})
            np.testing.assert_array_equal(got, x.transpose(perm))
    for b in (1, 2, 3):
        x = some(rng, dtype, 2, 2 * b * b, 5, 33)
        for mode in ("DCR", "CRD"):
            attrs = {"blocksize": b, "mode": mode}
            np.testing.assert_array_equal(one(ctx, "DepthToSpace", [x], attrs)[0],
                                          expected("DepthToSpace", [x], attrs)[0])
        x = some(rng, dtype, 2, 3, 5 * b, 18 * b)
        np.testing.assert_array_equal(one(ctx, "SpaceToDepth", [x], {"blocksize": b})[0],
                                      expected("SpaceToDepth", [x], {"blocksize": b})[0])


@pytest.mark.parametrize("dtype", [np.uint8, H, F, D, np.int32, L])
def test_scatters_are_the_references(ctx, dtype):
    rng = np.random.default_rng(6)
    x = some(rng, dtype, 5, 7, 19)
    for index in (L, np.int32):
        for axis in range(3):
            at = rng.permuted(np.broadcast_to(np.arange(5, dtype=index), (4, 6, 5)), axis=2)
            at = np.ascontiguousarray(np.moveaxis(at, 2, axis))
            at = np.where(rng.random(at.shape) < 0.5, at, at - x.shape[axis])
            u = some(rng, dtype, *at.shape)
            at, u = at[:5, :7, :19], u[:5, :7, :19]
            at, u = np.ascontiguousarray(at), np.ascontiguousarray(u)
            np.testing.assert_array_equal(one(ctx, "GatherElements", [x, at], {"axis": axis})[0],
                                          np.take_along_axis(x[tuple(slice(0, s) if d != axis else slice(None)
                                                                     for d, s in enumerate(at.shape))],
                                                             np.where(at < 0, at + x.shape[axis], at).astype(L), axis))
            want = x.copy()
            np.put_along_axis(want[tuple(slice(0, s) if d != axis else slice(None) for d, s in enumerate(at.shape))],
                              np.where(at < 0, at + x.shape[axis], at).astype(L), u, axis)
            np.testing.assert_array_equal(one(ctx, "ScatterElements", [x, at, u], {"axis": axis})[0], want)
    places = np.array([[0, 6], [4, -7], [2, 3], [-1, -1]], L)
    u = some(rng, dtype, 4, 19)
    for how in ("none", "add", "mul", "max", "min"):
        want = x.copy()
        for (i, j), row in zip(places, u):
            old = want[i, j]
            want[i, j] = {"none": row, "add": old + row, "mul": old * row, "max": np.maximum(old, row),
                          "min": np.minimum(old, row)}[how]
        close(one(ctx, "ScatterND", [x, places, u], {"reduction": how})[0], want, dtype)


@pytest.mark.parametrize("dtype", [F, D, np.int8, np.uint8])
def test_pools_are_windows(ctx, dtype):
    rng = np.random.default_rng(7)
    for shape, attrs in (((2, 3, 20, 37), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
                         ((1, 2, 18, 70), {"kernel_shape": [2, 4], "dilations": [2, 3], "pads": [1, 2, 0, 3]}),
                         ((1, 2, 2100), {"kernel_shape": [5], "strides": [3]}),
                         ((1, 1, 1500), {"kernel_shape": [1200]}),
                         ((1, 2, 5, 9, 11), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 1]})):
        x = some(rng, dtype, *shape)
        if np.dtype(dtype).kind == "f":
            x[rng.random(shape) < 0.002] = np.nan
            x[rng.random(shape) < 0.002] = -np.inf
        n = len(shape) - 2
        k, s, d = attrs["kernel_shape"], attrs.get("strides", [1] * n), attrs.get("dilations", [1] * n)
        pads = attrs.get("pads", [0] * 2 * n)
        least = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
        ends = [(0, 0)] * 2 + [(pads[i], pads[n + i]) for i in range(n)]
        padded = np.pad(x, ends, constant_values=least)
        number = np.pad(np.arange(x.size, dtype=L).reshape(shape), ends, constant_values=-1)

        def windows(v):
            reach = tuple((k[i] - 1) * d[i] + 1 for i in range(n))
            found = np.lib.stride_tricks.sliding_window_view(v, reach, tuple(range(2, 2 + n)))
            found = found[(slice(None),) * 2 + tuple(slice(None, None, s[i]) for i in range(n)) +
                          tuple(slice(None, None, d[i]) for i in range(n))]
            return found.reshape(*found.shape[:2 + n], -1)
        values, numbers = windows(padded), windows(number)
        got, = one(ctx, "MaxPool", [x], attrs)
        want = values.max(-1)
        known = ~np.isnan(want) if dtype is F else np.full(want.shape, True)  # oneDNN's maxima pass NaN over
        np.testing.assert_array_equal(got[known], want[known])
        if dtype is not F:
            continue
        got, where = one(ctx, "MaxPool", [x], attrs, 2)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(x.reshape(-1)[where], want)
        with np.errstate(invalid="ignore"):
            first = np.where(numbers >= 0, np.where(np.isnan(values), np.inf, values), -np.inf).argmax(-1)
        firsts = np.take_along_axis(numbers, first[..., None], -1)[..., 0]
        plain = ~np.isnan(want) & np.isfinite(want)
        np.testing.assert_array_equal(where[plain], firsts[plain])
        inside = numbers >= 0
        x = some(rng, dtype, *shape)
        values = windows(np.pad(x, ends)).astype(D)
        for count in (0, 1):
            got, = one(ctx, "AveragePool", [x], {**attrs, "count_include_pad": count})
            divisor = inside.sum(-1) if count == 0 else inside.shape[-1]
            np.testing.assert_allclose(got, np.where(inside, values, 0).sum(-1) / divisor, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [F, D])
def test_norms_are_numpys(ctx, dtype):
    rng = np.random.default_rng(8)
    unit = 40 * np.finfo(dtype).eps
    for shape in ((2, 6, 5, 7), (1, 4, 33), (3, 2, 1)):
        x = some(rng, dtype, *shape) + dtype(3)
        scale, bias = some(rng, dtype, shape[1]), some(rng, dtype, shape[1])
        along = (1, shape[1]) + (1,) * (len(shape) - 2)
        wide = x.astype(D)

        epsilon = float(F(1e-5))

        def normal(y, axes):
            return (y - y.mean(axes, keepdims=True)) / np.sqrt(y.var(axes, keepdims=True) + epsilon)
        if dtype is F:
            want = normal(wide, tuple(range(2, len(shape)))) * scale.reshape(along) + bias.reshape(along)
            got, = one(ctx, "InstanceNormalization", [x, scale, bias])
            np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
        want = normal(wide.reshape(shape[0], 2, -1), 2).reshape(shape) * scale.reshape(along) + bias.reshape(along)
        got, = one(ctx, "GroupNormalization", [x, scale, bias], {"num_groups": 2})
        np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
        scale, bias = some(rng, dtype, *shape[-2:]), some(rng, dtype, *shape[-2:])
        got, mean, inverse = one(ctx, "LayerNormalization", [x, scale, bias], {"axis": -2}, 3)
        np.testing.assert_allclose(got, normal(wide, (-2, -1)) * scale + bias, rtol=unit, atol=unit)
        np.testing.assert_allclose(mean, wide.mean((-2, -1), keepdims=True), rtol=1e-6)
        np.testing.assert_allclose(inverse, 1 / np.sqrt(wide.var((-2, -1), keepdims=True) + epsilon), rtol=1e-5)
        got, = one(ctx, "RMSNormalization", [x, scale], {"axis": -2})
        want = wide / np.sqrt((wide**2).mean((-2, -1), keepdims=True) + epsilon) * scale
        np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
        for p in (1, 2):
            for axis in (1, -1):
                got, = one(ctx, "LpNormalization", [x], {"p": p, "axis": axis})
                want = wide / np.linalg.norm(wide, p, axis, keepdims=True)
                np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
        for axis in range(len(shape)):
            y = np.exp(wide - wide.max(axis, keepdims=True))
            want = y / y.sum(axis, keepdims=True)
            got, = one(ctx, "Softmax", [x], {"axis": axis})
            np.testing.assert_allclose(got, want, rtol=unit, atol=unit)
            got, = one(ctx, "LogSoftmax", [x], {"axis": axis})
            np.testing.assert_allclose(got, np.log(want), rtol=unit, atol=unit)


def test_transforms_of_primes_are_numpys(ctx):
    rng = np.random.default_rng(10)
    for n in (53, 97, 2 * 101, 509):
        x = rng.standard_normal((2, n, 2))
        whole = x[..., 0] + 1j * x[..., 1]
        for inverse in (0, 1):
            got, = one(ctx, "DFT", [x], {"axis": 1, "inverse": inverse}, opset=19)
            want = (np.fft.ifft if inverse else np.fft.fft)(whole)
            np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=0, atol=1e-14 * np.abs(want).max())


def test_boxes_are_the_references(ctx):
    rng = np.random.default_rng(11)
    x = some(rng, F, 2, 3, 20, 24)
    boxes = np.sort(rng.uniform(-2, 22, (6, 2, 2)).astype(F), axis=1).reshape(6, 4)
    image = rng.integers(0, 2, 6)
    for mode in ("avg", "max"):
        for ratio in (1, 2, 3):
            attrs = {"output_height": 3, "output_width": 5, "sampling_ratio": ratio, "mode": mode}
            np.testing.assert_allclose(one(ctx, "RoiAlign", [x, boxes, image], attrs)[0],
                                       expected("RoiAlign", [x, boxes, image], attrs)[0], rtol=1e-4, atol=1e-5)
