"""MatMulBlocks and FromBlocks of domain heddle, whose weights are blocks as GGUF files have them, against numpy in float64: every
form, rows few and many, sizes that fill no vector, biases, halves, and what is refused.
timeout: 300
labels: ctypes
"""
import pathlib
import sys

import capi
import fused
import ml_dtypes
import numpy as np
import pytest
from reference import io

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from lm import gguf  # noqa: E402

F32 = np.float32
FAST = 16


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(threads=2)
    yield c
    c.close()


def run(ctx, op, inputs, constants=(), flags=0, **attrs):
    """The operator's result; inputs named in constants are parameters."""
    b, made = fused.Builder(), []
    ids = [b.null(name, x, name in constants) for name, x in inputs.items()]
    try:
        made.append(capi.Graph(b.text([b.add(op, ids, "heddle", **attrs)])))
        made.append(capi.Params(io.params_blob(b.params)) if b.params else None)
        made.append(capi.Model(ctx, made[0], made[1], devices="cpu", flags=flags))
        made.append(capi.Executor(made[-1]))
        for name, x in inputs.items():
            if name not in constants:
                made[-1].set_input(name, x)
        made[-1].run()
        return np.array(made[-1].outputs()[0])
    finally:
        for thing in reversed(made):
            if thing is not None:
                thing.close()


def weights(rng, n, k, kind):
    """Bytes [n, bytes of a row], and the numbers that they stand for."""
    raw = gguf.random_bytes(rng, n * k, kind)
    return np.frombuffer(raw, np.uint8).reshape(n, -1), gguf.decode(raw, kind).reshape(n, k)


def check(got, a, w, bias=None, dtype=F32):
    wide, w = a.astype(np.float64), w.astype(np.float64)
    want, magnitude = wide @ w.T, np.abs(wide) @ np.abs(w).T
    if bias is not None:
        want, magnitude = want + bias.astype(np.float64), magnitude + np.abs(bias.astype(np.float64))
    step = 2.0 ** {"float32": -24, "float16": -11, "bfloat16": -8}[np.dtype(dtype).name]
    # what Q4_K subtracts is added up apart, so its terms are larger than the weights
    assert (np.abs(got.astype(np.float64) - want) <= 256 * 2.0 ** -24 * magnitude + 2 * step * np.abs(want) + 1e-30).all()


@pytest.mark.parametrize("kind", gguf.KINDS)
def test_products(ctx, kind):
    rng = np.random.default_rng(kind)
    unit = gguf.BLOCKS[kind][0]
    for n, k in ((1, unit), (5, 3 * unit), (33, 4 * unit), (64, 7 * unit), (70, (1024 // unit + 1) * unit)):
        q, w = weights(rng, n, k, kind)
        for shape in ((k,), (2, 1, k), (6, k), (7, k), (70, k)):
            a = rng.standard_normal(shape).astype(F32)
            constants = ("w",) if len(shape) == 2 else ()
            check(run(ctx, "MatMulBlocks", {"a": a, "w": q}, constants, K=k, N=n, form=gguf.FORMS[kind]), a, w)


def rounded(a):
    """Each 32 numbers as int8, by their greatest magnitude; in float32, since what is next to a half decides."""
    cut = a.reshape(*a.shape[:-1], -1, 32)
    most = np.abs(cut).max(-1, keepdims=True)
    return (np.rint(cut * (F32(127) / most)) * (most / F32(127)).astype(np.float64)).reshape(a.shape)


@pytest.mark.parametrize("kind", [k for k in gguf.KINDS if k not in (gguf.F16, gguf.BF16)])
def test_fast_rounds_to_int8(ctx, kind):
    """Exactly the product of what was rounded, but for the sums' rounding; with weights at the ends of their range, whose products come
    next to 16 bits."""
    rng = np.random.default_rng(20 + kind)
    unit = gguf.BLOCKS[kind][0]
    attrs = {"form": gguf.FORMS[kind], "flags": FAST}
    for n, k in ((1, unit), (5, 3 * unit), (33, 4 * unit), (70, (1024 // unit + 1) * unit)):
        q, w = weights(rng, n, k, kind)
        for shape in ((k,), (2, 1, k), (6, k), (7, k), (70, k)):
            a = rng.standard_normal(shape).astype(F32)
            a[..., :unit // 2] = 100  # all are rounded to 127
            got = run(ctx, "MatMulBlocks", {"a": a, "w": q}, K=k, N=n, **attrs)
            check(got, rounded(a), w)
            strict = run(ctx, "MatMulBlocks", {"a": a, "w": q}, K=k, N=n, form=gguf.FORMS[kind])
            check(strict, a, w)
    q = np.full((40, q.shape[1]), 0xff if kind != gguf.Q8_0 else 0x80, np.uint8)  # 15, 63 and -128
    ones = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    blocks = q.reshape(40, -1, gguf.BLOCKS[kind][1])
    for at in {gguf.Q4_K: (0, 2), gguf.Q6_K: (208,)}.get(kind, (0,)):
        blocks[:, :, at:at + 2] = ones
    w = gguf.decode(q.tobytes(), kind).reshape(40, k)
    for rows in (1, 9):
        for sign in (1, -1):
            a = np.full((rows, k), sign, F32)
            check(run(ctx, "MatMulBlocks", {"a": a, "w": q}, K=k, N=40, **attrs), a, w)


def test_fast_with_what_is_not_finite(ctx):
    q, _ = weights(np.random.default_rng(8), 35, 512, gguf.Q4_K)
    for rows in (3, 9):
        for bad in (np.nan, np.inf, -np.inf):
            a = np.ones((rows, 512), F32)
            a[1, 300] = bad
            a[2] = 0
            got = run(ctx, "MatMulBlocks", {"a": a, "w": q}, K=512, N=35, form="q4_k", flags=FAST)
            assert np.isnan(got[1]).all() and np.isfinite(np.delete(got, 1, 0)).all() and not got[2].any()


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_halves_and_biases(ctx, dtype):
    rng = np.random.default_rng(2)
    for kind in gguf.KINDS:
        q, w = weights(rng, 35, 256, kind)
        for rows in (1, 9):
            a, bias = rng.standard_normal((rows, 256)).astype(dtype), rng.standard_normal(35).astype(dtype)
            inputs = {"a": a, "w": q, "b": bias}
            check(run(ctx, "MatMulBlocks", inputs, ("w",), K=256, N=35, form=gguf.FORMS[kind]), a, w, bias, dtype)


def test_float64(ctx):
    rng = np.random.default_rng(3)
    for kind in gguf.KINDS:
        q, w = weights(rng, 3, 512, kind)
        a = rng.standard_normal((2, 512))
        got = run(ctx, "MatMulBlocks", {"a": a, "w": q}, K=512, N=3, form=gguf.FORMS[kind])
        np.testing.assert_allclose(got, a @ w.astype(np.float64).T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", gguf.KINDS)
def test_numbers(ctx, kind):
    """Exactly those of the definition, of any bytes."""
    rng = np.random.default_rng(4)
    elements, size = gguf.BLOCKS[kind]
    raw = rng.integers(0, 256, (3, 5, 2 * size), np.uint8)
    with np.errstate(invalid="ignore"):
        want = gguf.decode(raw.tobytes(), kind).reshape(3, 5, 2 * elements)
    for x in (raw, raw.view(np.int8)):
        np.testing.assert_array_equal(run(ctx, "FromBlocks", {"x": x}, K=2 * elements, form=gguf.FORMS[kind]), want)


def test_refused(ctx):
    a, w = np.zeros((2, 64), F32), np.zeros((5, 36), np.uint8)
    for attrs, inputs, words in (
            ({"K": 48}, {}, "no multiple of a block"), ({"K": 0}, {}, "K is out of range"), ({"N": -1}, {}, "N is out of range"),
            ({"form": "q3"}, {}, "q3"), ({"form": "none"}, {}, "form"), ({"K": 32}, {}, "64 deep"),
            ({}, {"w": w[:4]}, "operand 1 has 144"), ({}, {"w": w.view(np.int8)}, "uint8"),
            ({}, {"b": np.zeros(4, F32)}, "operand 2 has 4")):
        with pytest.raises(capi.HeddleError, match=words):
            run(ctx, "MatMulBlocks", {"a": a, "w": w, **inputs}, **{"K": 64, "N": 5, "form": "q4_0", **attrs})
    with pytest.raises(capi.HeddleError, match="expected 34"):
        run(ctx, "FromBlocks", {"x": w}, K=32, form="q8_0")
