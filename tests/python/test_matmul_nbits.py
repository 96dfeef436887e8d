"""Products with weights of 2, 4 and 8 bits in blocks (MatMulNBits), which stay packed, against float64 products with the weights
that they stand for: every block size, zero points of both kinds, groups, rows few and many, halves, sizes that fill no vector.
timeout: 300
labels: ctypes
"""
import capi
import ml_dtypes
import numpy as np
import onnx_files as files
import pytest
from test_onnx_microsoft import model, node, packed

F32 = np.float32
FAST = 16


class Weights:
    """Random ones: their packed form as tensors, and their values."""

    def __init__(self, rng, n, k, block, bits, zeros=None, grouped=False, dtype=F32):
        kb = -(-k // block)
        q, half = rng.integers(0, 2 ** bits, (n, kb * block)), 2 ** (bits - 1)
        s = (rng.standard_normal((n, kb)) * 0.1).astype(dtype)
        z = np.full((n, kb), half, np.float64)
        self.tensors, self.names = {"b": packed(q, bits).reshape(n, kb, -1), "s": s}, ["a", "b", "s", "", "", ""]
        if zeros == "packed":
            whole = rng.integers(0, 2 ** bits, (n, kb))
            z, self.tensors["z"], self.names[3] = whole.astype(np.float64), packed(whole, bits), "z"
        elif zeros == "floats":
            self.tensors["z"], self.names[3] = (rng.random((n, kb)) * 2 ** bits).astype(dtype), "z"
            z = self.tensors["z"].astype(np.float64)
        at = np.arange(k) // block
        if grouped:
            at = rng.integers(0, kb, k)
            self.tensors["g"], self.names[4] = at.astype(np.int32), "g"
        self.w = (q[:, :k] - z[:, at]) * s.astype(np.float64)[:, at]
        self.attrs = {"K": k, "N": n, "bits": bits, "block_size": block}


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(threads=2)
    yield c
    c.close()


def product(ctx, tmp_path, weights, a, bias=None, flags=0, **attrs):
    tensors, names = dict(weights.tensors), list(weights.names)
    if bias is not None:
        tensors["c"], names[5] = bias, "c"
    proto = model([node("MatMulNBits", names, **weights.attrs, **attrs)], {"a": a}, tensors, {"y": (a.dtype, None)})
    made = [capi.Model.load(ctx, files.save(tmp_path, proto), devices="cpu", flags=flags)]
    try:
        made.append(capi.Executor(made[0]))
        made[1].set_input("a", a)
        made[1].run()
        return np.array(made[1].outputs()[0])
    finally:
        for thing in reversed(made):
            thing.close()


def close(got, want, magnitude, dtype=F32):
    """Within the rounding of sums in float32, and of the result."""
    step = 2.0 ** {"float32": -24, "float16": -11, "bfloat16": -8}[np.dtype(dtype).name]
    assert (np.abs(got.astype(np.float64) - want) <= 64 * 2.0 ** -24 * magnitude + 2 * step * np.abs(want) + 1e-30).all()


@pytest.mark.parametrize("bits", (2, 4, 8))
@pytest.mark.parametrize("block", (16, 32, 64, 128, 256))
def test_sizes(ctx, tmp_path, bits, block):
    rng = np.random.default_rng(block + bits)
    for n, k, zeros in ((1, 16, None), (5, 72, "packed"), (33, 256, "floats"), (37, 520, None), (64, 384, "packed")):
        w = Weights(rng, n, k, block, bits, zeros)
        for shape in ((k,), (2, 1, k), (7, k), (31, k)):
            a = rng.standard_normal(shape).astype(F32)
            close(product(ctx, tmp_path, w, a), a.astype(np.float64) @ w.w.T, np.abs(a).astype(np.float64) @ np.abs(w.w).T)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_halves_groups_and_bias(ctx, tmp_path, dtype):
    rng = np.random.default_rng(3)
    for rows in (1, 9, 70):
        for zeros in (None, "packed", "floats"):
            for grouped in (False, True):
                w = Weights(rng, 19, 136, 32, 4, zeros, grouped, dtype)
                a, bias = rng.standard_normal((rows, 136)).astype(dtype), rng.standard_normal(19).astype(dtype)
                wide = a.astype(np.float64)
                close(product(ctx, tmp_path, w, a, bias), wide @ w.w.T + bias.astype(np.float64), np.abs(wide) @ np.abs(w.w).T + 1, dtype)


def rounded(a, block):
    """Each block as int8, by its greatest magnitude."""
    cut = np.concatenate([a, np.zeros(a.shape[:-1] + (-a.shape[-1] % block,))], -1).reshape(*a.shape[:-1], -1, block)
    scale = np.abs(cut).max(-1, keepdims=True) / 127
    q = np.rint(np.divide(cut, scale, out=np.zeros_like(cut), where=scale > 0))
    return (q * scale).reshape(*a.shape[:-1], -1)[..., :a.shape[-1]]


@pytest.mark.parametrize("zeros", (None, "packed", "floats"))
def test_level_4_is_int8_where_fast_is_asked_for(ctx, tmp_path, zeros):
    rng = np.random.default_rng(5)
    for block in (16, 32, 64, 128):
        w = Weights(rng, 45, 296, block, 4, zeros)
        for rows in (1, 6):
            a = rng.standard_normal((rows, 296)).astype(F32)
            exact, magnitude = a.astype(np.float64) @ w.w.T, np.abs(a).astype(np.float64) @ np.abs(w.w).T
            close(product(ctx, tmp_path, w, a, accuracy_level=4), exact, magnitude)
            close(product(ctx, tmp_path, w, a, flags=FAST), exact, magnitude)  # the model does not allow it
            fast = product(ctx, tmp_path, w, a, accuracy_level=4, flags=FAST)
            np.testing.assert_allclose(fast, rounded(a.astype(np.float64), block) @ w.w.T, atol=2e-3 * magnitude.max())
            assert np.abs(fast - exact).max() > 1e-4


@pytest.mark.parametrize("zeros", (None, "packed", "floats"))
def test_many_rows_are_rounded_by_32(ctx, tmp_path, zeros):
    rng = np.random.default_rng(15)
    for block in (16, 32, 64, 128, 256):
        for n, k in ((45, 296), (16, 40), (33, 512)):
            w = Weights(rng, n, k, block, 4, zeros)
            for rows in (7, 66):
                a = rng.standard_normal((rows, k)).astype(F32)
                near = rounded(a.astype(np.float64), 32)
                got = product(ctx, tmp_path, w, a, accuracy_level=4, flags=FAST)
                half = np.abs(near) @ np.abs(w.w).T * 16  # zero points are subtracted apart
                close(got, near @ w.w.T, half)


def test_zeros_and_what_is_not_finite(ctx, tmp_path):
    w = Weights(np.random.default_rng(6), 9, 160, 32, 4)
    for flags in (0, FAST):
        assert not product(ctx, tmp_path, w, np.zeros((2, 160), F32), accuracy_level=4, flags=flags).any()
        a = np.ones((2, 160), F32)
        a[1, 70] = np.nan
        y = product(ctx, tmp_path, w, a, accuracy_level=4, flags=flags)
        assert np.isfinite(y[0]).all() and np.isnan(y[1]).all()
    w.tensors["s"][4, 1] = np.nan
    y = product(ctx, tmp_path, w, a, accuracy_level=4)
    assert np.isnan(y[0, 4]) and np.isfinite(np.delete(y[0], 4)).all()


def test_weights_stay_packed(ctx, tmp_path):
    n, k = 512, 2048
    w = Weights(np.random.default_rng(7), n, k, 32, 4)
    proto = model([node("MatMulNBits", w.names, **w.attrs)], {"a": np.zeros((1, k), F32)}, w.tensors, None)
    made = capi.Model.load(ctx, files.save(tmp_path, proto), devices="cpu")
    try:
        plan = made.explain_json()
    finally:
        made.close()
    assert [r["kind"] for r in plan["regions"] if r["kind"] != "view"] == ["op"]
    held = sum(v for of_device in plan["memory"] for key, v in of_device.items() if key.endswith("bytes"))
    assert held < n * k, plan["memory"]


WRONG = {
    "blocks": ({"block_size": 24}, "power of two"), "bits": ({"bits": 3}, "none of 2, 4 and 8"), "deep": ({"K": 96}, "K"),
    "columns": ({"N": 7}, "N rows"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_what_is_malformed(ctx, tmp_path, what):
    change, words = WRONG[what]
    w = Weights(np.random.default_rng(8), 6, 64, 32, 4)
    w.attrs |= change
    with pytest.raises(Exception, match=words):
        product(ctx, tmp_path, w, np.zeros((2, 64), F32))


def test_a_group_that_is_not_there(ctx, tmp_path):
    w = Weights(np.random.default_rng(9), 6, 64, 32, 4, grouped=True)
    w.tensors["g"][5] = 2
    with pytest.raises(Exception, match="'g': number 5 is 2"):
        product(ctx, tmp_path, w, np.zeros((2, 64), F32))
