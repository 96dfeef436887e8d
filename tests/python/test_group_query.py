"""GroupQueryAttention against its description in float64, on cpu; test_group_query_opencl.py and _vulkan.py take its tests: caches of each type, shared by one memory or not, sinks, windows,
rows of different lengths, and more keys than are looked at in one piece.
timeout: 300
labels: ctypes
"""
import capi
import ml_dtypes
import numpy as np
import onnx_files as files
import pytest
from test_onnx_microsoft import model, node

F32 = np.float32
OUT = ("y", "k1", "v1")


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(threads=2)
    c.place = "cpu"
    yield c
    c.close()


def rotated(x, positions, cos, sin, interleaved):
    """x: [heads, rows, size]"""
    half = cos.shape[1]
    y = x.copy()
    one, two = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    c, s = cos[positions], sin[positions]
    y[..., one], y[..., two] = x[..., one] * c - x[..., two] * s, x[..., two] * c + x[..., one] * s
    return y


def normal(x, weight):
    return x if weight is None else x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


class Step:
    """Operands of a step, and what comes of them."""

    def __init__(self, seed, b, s, ends, past, n=4, kv=2, size=16, dtype=F32, packed=False, bits=0, per_channel=False, **attrs):
        rng = np.random.default_rng(seed)
        self.b, self.s, self.n, self.kv, self.size, self.bits = b, s, n, kv, size, bits
        self.ends, self.total = np.array(ends), max(ends)
        self.q, self.k, self.v = (rng.standard_normal((b, s, h * size)).astype(dtype) for h in (n, kv, kv))
        self.attrs = {"num_heads": n, "kv_num_heads": kv} | attrs
        self.x = {"seq": np.array(ends, np.int32) - 1, "total": np.array(self.total, np.int32)}
        self.names = ["q", "k", "v", "", "", "seq", "total"] + [""] * 9
        if packed:
            self.x["q"], self.names[1:3] = np.concatenate([self.q, self.k, self.v], -1), ["", ""]
        else:
            self.x |= {"q": self.q, "k": self.k, "v": self.v}
        self.scales = None
        if bits:
            self.scales = [(rng.random(kv * size if per_channel else 1) * 0.02 + (0.02 if bits == 8 else 0.3)).astype(F32) for _ in "kv"]
            self.x |= {"ks": self.scales[0], "vs": self.scales[1]}
            self.names[12:14] = "ks", "vs"
            kind = "PER_CHANNEL" if per_channel else "PER_TENSOR"
            self.attrs |= {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
        self.past = None
        if past is not None:
            shape = (b, kv, past, size)
            if bits == 8:
                self.past = [rng.integers(-128, 128, shape).astype(np.int8) for _ in "kv"]
            elif bits == 4:
                self.past = [rng.integers(0, 256, (b, kv, past, (size + 1) // 2)).astype(np.uint8) for _ in "kv"]
            else:
                self.past = [rng.standard_normal(shape).astype(dtype) for _ in "kv"]
            self.x |= {"k0": self.past[0], "v0": self.past[1]}
            self.names[3:5] = "k0", "v0"
        self.more = {}

    def operand(self, place, name, value):
        self.x[name], self.names[place], self.more[place] = value, name, value.astype(np.float64) if value.dtype.kind != "i" else value
        return self

    def rotary(self, rng, half=8):
        angles = rng.random((64, half)) * 6
        self.attrs["do_rotary"] = 1
        return self.operand(7, "cos", np.cos(angles).astype(self.q.dtype)).operand(8, "sin", np.sin(angles).astype(self.q.dtype))

    def scale_of(self, k, h):
        s = self.scales[k].astype(np.float64)
        return s if s.size == 1 else s[h * self.size:(h + 1) * self.size]

    def stored(self, k, h, x):
        """What a cache holds of new rows, as numbers."""
        if not self.bits:
            return x.astype(self.q.dtype).astype(np.float64)
        low = -(1 << (self.bits - 1))
        return np.clip(np.rint(x / self.scale_of(k, h)), low, -low - 1) * self.scale_of(k, h)

    def held(self, k, cache, b, h):
        """Rows of a cache, as numbers."""
        rows = cache[b, h]
        if self.bits == 4:
            rows = np.stack([rows & 15, rows >> 4], -1).reshape(len(rows), -1)[:, :self.size].astype(np.float64) - 8
        rows = rows.astype(np.float64)
        return rows * self.scale_of(k, h) if self.bits else rows

    def wanted(self):
        """y, and for each row and head of keys the valid rows of both caches."""
        size, share, attr = self.size, self.n // self.kv, self.attrs
        y, caches = np.zeros((self.b, self.s, self.n, size)), {}
        for b in range(self.b):
            end = int(self.ends[b])
            p = 0 if self.s == self.total else end - self.s
            at = self.more[9][b] if 9 in self.more else np.arange(p, p + self.s)
            for kv in range(self.kv):
                new = [t[b].reshape(self.s, self.kv, size)[:, kv].astype(np.float64) for t in (self.k, self.v)]
                new[0] = normal(new[0], self.more.get(15))
                if 7 in self.more:
                    new[0] = rotated(new[0], at, self.more[7], self.more[8], attr.get("rotary_interleaved"))
                for k in range(2):
                    before = self.held(k, self.past[k], b, kv)[:p] if self.past is not None else np.zeros((0, size))
                    caches[b, kv, k] = np.concatenate([before, self.stored(k, kv, new[k])])
                for h in range(kv * share, (kv + 1) * share):
                    q = normal(self.q[b].reshape(self.s, self.n, size)[:, h].astype(np.float64), self.more.get(14))
                    if 7 in self.more:
                        q = rotated(q, at, self.more[7], self.more[8], attr.get("rotary_interleaved"))
                    for s in range(self.s):
                        last = end if attr.get("causal", 1) == 0 else min(p + s + 1, end)
                        window = attr.get("local_window_size", -1)
                        first = max(0, last - window) if window > 0 else 0
                        score = caches[b, kv, 0][first:last] @ q[s] * (attr.get("scale") or size ** -0.5)
                        if attr.get("softcap"):
                            score = attr["softcap"] * np.tanh(score / attr["softcap"])
                        if 10 in self.more:
                            bias = self.more[10]
                            score = score + bias[b % len(bias), h % bias.shape[1], s, first:last]
                        sink = [self.more[11][h]] if 11 in self.more else [0.0] if attr.get("smooth_softmax") else []
                        weight = np.exp(score - max([score.max(), *sink]))
                        total = weight.sum() + sum(np.exp(x - max([score.max(), *sink])) for x in sink)
                        y[b, s, h] = weight @ caches[b, kv, 1][first:last] / total
        return y.reshape(self.b, self.s, -1), caches

    def check(self, ctx, tmp_path, results=OUT):
        kept = {4: np.uint8, 8: np.int8}.get(self.bits, self.q.dtype)
        proto = model([node("GroupQueryAttention", self.names, results, **self.attrs)], self.x, {},
                      {"y": (self.q.dtype, None)} | dict.fromkeys(results[1:], (kept, None)))
        made = [capi.Model.load(ctx, files.save(tmp_path, proto), devices=ctx.place)]
        try:
            made.append(capi.Executor(made[0]))
            for name, value in self.x.items():
                made[1].set_input(name, value)
            made[1].run()
            got = [np.array(o) for o in made[1].outputs()]
        finally:
            for thing in reversed(made):
                thing.close()
        y, caches = self.wanted()
        near = {"float32": 2e-5, "float16": 6e-3, "bfloat16": 5e-2}[np.dtype(self.q.dtype).name]
        np.testing.assert_allclose(got[0].astype(np.float64), y, rtol=near, atol=near)
        for (b, h, k), rows in caches.items() if len(results) > 1 else ():
            held = self.held(k, got[k + 1], b, h)[:len(rows)]
            quantum = self.scale_of(k, h).max() if self.bits else near  # a tie may round either way
            np.testing.assert_allclose(held, rows, rtol=near, atol=1.01 * quantum if self.bits else near)
        return got


def test_forms(ctx, tmp_path):
    rng = np.random.default_rng(1)
    for extra in ({}, {"smooth_softmax": 1}, {"local_window_size": 4, "softcap": 1.5}, {"causal": 0}, {"scale": 0.4}):
        for packed in (False, True):
            Step(2, 1, 6, [6], None, packed=packed, **extra).check(ctx, tmp_path)
            Step(3, 3, 6, [6, 2, 4], None, packed=packed, **extra).rotary(rng).check(ctx, tmp_path)
            Step(4, 3, 1, [8, 5, 1], 9, packed=packed, **extra).rotary(rng, 4).check(ctx, tmp_path)
            Step(5, 1, 3, [8], 5, packed=packed, rotary_interleaved=1, **extra).rotary(rng).check(ctx, tmp_path)


def test_sinks_biases_norms_and_positions(ctx, tmp_path):
    rng = np.random.default_rng(6)
    for s, past in ((6, None), (2, 4)):
        ends, norm = [6] if s == 2 else [6, 6], rng.random(16).astype(F32) + F32(0.5)
        b = len(ends)
        Step(7, b, s, ends, past).operand(11, "sink", rng.standard_normal(4).astype(F32)).check(ctx, tmp_path)
        for shape in ((1, 1), (b, 4)):
            Step(8, b, s, ends, past).operand(10, "bias", rng.standard_normal((*shape, s, 6)).astype(F32)).check(ctx, tmp_path)
        Step(9, b, s, ends, past).operand(14, "qn", norm).operand(15, "kn", norm[::-1].copy()).rotary(rng).check(ctx, tmp_path)
        Step(10, b, s, ends, past).rotary(rng).operand(9, "at", rng.integers(0, 64, (b, s))).check(ctx, tmp_path)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_halves(ctx, tmp_path, dtype):
    rng = np.random.default_rng(11)
    Step(12, 2, 5, [5, 3], None, dtype=dtype).rotary(rng).check(ctx, tmp_path)
    Step(13, 2, 1, [7, 4], 8, dtype=dtype).rotary(rng).check(ctx, tmp_path)


@pytest.mark.parametrize("bits", (4, 8))
@pytest.mark.parametrize("per_channel", (False, True))
def test_quantised_caches(ctx, tmp_path, bits, per_channel):
    rng = np.random.default_rng(14)
    for dtype in (F32, np.float16, ml_dtypes.bfloat16):
        Step(15, 2, 1, [7, 4], 8, bits=bits, per_channel=per_channel, dtype=dtype).rotary(rng).check(ctx, tmp_path)
    Step(16, 1, 4, [9], 8, bits=bits, per_channel=per_channel).check(ctx, tmp_path)
    Step(23, 2, 3, [3, 3], None, bits=bits, per_channel=per_channel, packed=True).rotary(rng, 5).check(ctx, tmp_path)
    Step(24, 2, 1, [7, 4], 8, bits=bits, per_channel=per_channel, size=15).rotary(rng, 4).check(ctx, tmp_path)
    Step(25, 1, 2, [70], 68, bits=bits, per_channel=per_channel, n=6, kv=3, size=64, local_window_size=50).check(ctx, tmp_path)


def test_caches_that_are_no_results(ctx, tmp_path):
    for bits in (0, 4, 8):
        Step(26, 2, 1, [7, 4], 8, bits=bits).check(ctx, tmp_path, ["y"])
        Step(27, 2, 3, [3, 3], None, bits=bits).check(ctx, tmp_path, ["y"])


def test_many_keys_and_heads(ctx, tmp_path):
    rng = np.random.default_rng(17)
    for size, n, kv in ((64, 14, 2), (72, 3, 1), (128, 4, 4)):
        Step(18, 1, 1, [300], 320, n=n, kv=kv, size=size).check(ctx, tmp_path)
        Step(19, 1, 40, [40], None, n=n, kv=kv, size=size, local_window_size=9).check(ctx, tmp_path)
        Step(20, 1, 5, [200], 195, n=n, kv=kv, size=size, smooth_softmax=1).rotary(rng).operand(9, "at", np.arange(5)[None] % 64).check(
            ctx, tmp_path)


def test_what_is_behind_is_zero(ctx, tmp_path):
    got = Step(21, 1, 1, [4], 9).check(ctx, tmp_path)
    assert not got[1][:, :, 4:].any() and not got[2][:, :, 4:].any()


def test_lengths_beyond_the_cache(ctx, tmp_path):
    for end in (0, 12):
        step = Step(22, 1, 1, [4], 9)
        step.x["seq"] = np.array([end - 1], np.int32)
        with pytest.raises(Exception, match="GroupQueryAttention: element 0 of input 5 is"):
            step.check(ctx, tmp_path)
