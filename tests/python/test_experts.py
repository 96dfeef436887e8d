"""Mixtures of experts (MoE, QMoE) against what their description says, in float64, on cpu; test_experts_opencl.py and _vulkan.py
take its tests: each activation, layers with and without a bias, gates in one layer or in two, every choice of experts, packed
weights of each size, few rows of an expert and many, and models that are malformed.
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


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(threads=2)
    c.place = "cpu"
    yield c
    c.close()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


PLAIN = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu, "silu": lambda x: x * sigmoid(x), "identity": lambda x: x,
         "relu2": lambda x: np.maximum(x, 0) ** 2}


def softmax(x):
    y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def sparse(r):
    """The two experts of a row and their weights."""
    first = r.argmax()
    masked = np.where(np.arange(r.size) == first, -np.inf, r)
    second, weights = masked.argmax(), []
    for at, scores in ((first, r), (second, masked)):
        near = (r[at] - r) <= 0.02 * np.maximum(np.abs(r), r[at])
        weights.append(1 / np.exp(scores[near] - r[at]).sum())
    return [first, second], weights


class Mixture:
    """Operands of a node, and what comes of them."""

    def __init__(self, seed, tokens=(5,), experts=4, width=32, inner=48, bits=0, block=0, zeros=False, bias=True, third=False,
                 dtype=F32, router_weights=False, **attrs):
        rng = np.random.default_rng(seed)
        self.op, self.attrs, self.dtype, self.experts = "QMoE" if bits else "MoE", attrs, dtype, experts
        if bits:
            self.attrs = attrs | {"expert_weight_bits": bits} | ({"block_size": block} if block else {})
        both = 2 if attrs.get("swiglu_fusion", 0) else 1
        self.x = {"x": rng.standard_normal((*tokens, width)).astype(dtype),
                  "r": (rng.standard_normal((int(np.prod(tokens)), experts)) * 2).astype(dtype)}
        self.tensors, self.w, self.b = {}, [], []
        self.names = ["x", "r"] + [""] * (13 if bits else 6)
        for k, (rows, depth) in enumerate(((inner * both, width), (width, inner), (inner, width))[:3 if third else 2]):
            at = (2, 5, 8)[k] if bits else (2, 4, 6)[k]
            if bits:
                self.pack(rng, k, at, rows, depth, bits, block, zeros)
            else:
                w = (rng.standard_normal((experts, rows, depth)) / np.sqrt(depth)).astype(dtype)
                self.add(f"w{k}", at, w)
                self.w.append(w.astype(np.float64))
            b = rng.standard_normal((experts, rows)).astype(dtype)
            self.b.append(b.astype(np.float64) if bias else 0 * b.astype(np.float64))
            if bias:
                self.add(f"b{k}", at + (2 if bits else 1), b)
        self.mix = None
        if router_weights:
            self.x["m"], self.names[14] = rng.random(self.x["r"].shape).astype(dtype), "m"
            self.mix = self.x["m"].astype(np.float64)

    def add(self, name, at, tensor):
        self.tensors[name], self.names[at] = tensor, name

    def pack(self, rng, k, at, rows, depth, bits, block, zeros):
        blocks = depth // block if block else 1
        q = rng.integers(0, 2 ** bits, (self.experts, rows, depth))
        s = ((rng.random((self.experts, rows, blocks)) - 0.3) * 2.0 ** -bits).astype(self.dtype)
        z = np.full(s.shape, 2 ** (bits - 1), np.float64)
        self.add(f"w{k}", at, packed(q, bits))
        self.add(f"s{k}", at + 1, s if block else s[..., 0])
        if zeros:
            whole = rng.integers(0, 2 ** bits, s.shape)
            z = whole.astype(np.float64)
            self.add(f"z{k}", 11 + k, packed(whole if block else whole[..., 0], bits))
        of = np.arange(depth) // (block or depth)
        self.w.append((q - z[..., of]) * s.astype(np.float64)[..., of])

    def proto(self):
        names = list(self.names)
        while not names[-1]:
            names.pop()
        return model([node(self.op, names, **self.attrs)], self.x, self.tensors, {"y": (self.dtype, None)})

    def run(self, ctx, tmp_path, flags=0):
        made = [capi.Model.load(ctx, files.save(tmp_path, self.proto()), devices=ctx.place, flags=flags)]
        try:
            made.append(capi.Executor(made[0]))
            for name, value in self.x.items():
                made[1].set_input(name, value)
            made[1].run()
            return np.array(made[1].outputs()[0])
        finally:
            for thing in reversed(made):
                thing.close()

    def choice(self, row):
        k, r = self.attrs.get("k", 1), self.x["r"][row].astype(np.float64)
        if self.attrs.get("use_sparse_mixer"):
            return sparse(r)
        at = np.argsort(-r, kind="stable")[:k]
        normalised = self.attrs.get("normalize_routing_weights", 0) or (self.op == "QMoE" and self.mix is None)
        w = (softmax(r) if self.mix is None else self.mix[row])[at]
        return at, w / w.sum() if normalised else w

    def activated(self, x, e):
        kind, y = self.attrs.get("activation_type", "relu"), self.w[0][e] @ x + self.b[0][e]
        third = self.w[2][e] @ x + self.b[2][e] if len(self.w) == 3 else None
        if kind not in ("swiglu", "geglu"):
            return PLAIN[kind](y) * (1 if third is None else third)
        g, other = {0: (y, third), 1: (y[0::2], y[1::2]), 2: (y[:y.size // 2], y[y.size // 2:])}[self.attrs.get("swiglu_fusion", 0)]
        if kind == "geglu":
            return gelu(g) * other
        limit, after = self.attrs.get("swiglu_limit", np.inf), self.attrs.get("swiglu_limit_after_activation")
        g, other = g if after else np.minimum(g, limit), np.clip(other, -limit, limit)
        y = g * sigmoid(self.attrs.get("activation_alpha", 1.0) * g)
        return (np.minimum(y, limit) if after else y) * (other + self.attrs.get("activation_beta", 0.0))

    def exact(self):
        x = self.x["x"].astype(np.float64)
        rows = x.reshape(-1, x.shape[-1])
        y = np.zeros_like(rows)
        for t, row in enumerate(rows):
            for e, weight in zip(*self.choice(t)):
                y[t] += weight * (self.w[1][e] @ self.activated(row, e) + self.b[1][e])
        return y.reshape(x.shape)

    def check(self, ctx, tmp_path, **how):
        got, want = self.run(ctx, tmp_path, **how), self.exact()
        assert got.dtype == self.dtype and got.shape == want.shape
        step = {"float32": 2e-6, "float16": 3e-3, "bfloat16": 2.5e-2}[np.dtype(self.dtype).name]
        assert np.abs(got.astype(np.float64) - want).max() <= 4 * step * max(1, np.abs(want).max()), np.abs(got.astype(np.float64) - want).max()


KINDS = {
    "relu": {}, "gelu": {}, "silu": {}, "identity": {}, "relu2": {}, "silu and third": {"third": True}, "swiglu in two": {"third": True},
    "swiglu by turns": {"swiglu_fusion": 1}, "swiglu by halves": {"swiglu_fusion": 2}, "geglu": {"swiglu_fusion": 2},
    "swiglu of gpt-oss": {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.0},
    "swiglu afterwards": {"swiglu_fusion": 1, "swiglu_limit": 0.5, "swiglu_limit_after_activation": 1},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("bits", (0, 4))
def test_activations(ctx, tmp_path, kind, bits):
    for bias in (False, True):
        Mixture(1, (2, 3), k=2, bits=bits, block=16 if bits and bias else 0, bias=bias, activation_type=kind.split()[0], **KINDS[kind]).check(ctx, tmp_path)


@pytest.mark.parametrize("bits", (0, 4))
def test_choices(ctx, tmp_path, bits):
    for k in (1, 2, 5):
        for normalise in (0, 1):
            Mixture(2, (7,), experts=5, bits=bits, k=k, normalize_routing_weights=normalise, activation_type="silu").check(ctx, tmp_path)
    for seed in range(3):
        m = Mixture(seed, (9,), experts=8, bits=bits, k=2, use_sparse_mixer=1, activation_type="silu")
        m.x["r"][3] = m.x["r"][3, 0] + np.arange(8) * 0.001  # near each other
        m.check(ctx, tmp_path)
    if bits:
        for normalise in (0, 1):
            Mixture(2, (7,), bits=bits, k=2, normalize_routing_weights=normalise, router_weights=True).check(ctx, tmp_path)


@pytest.mark.parametrize("bits", (2, 4, 8))
def test_packed_weights(ctx, tmp_path, bits):
    for width, inner, block in ((32, 64, 0), (40, 72, 0), (64, 32, 16), (96, 128, 32), (256, 128, 128)):
        for zeros in (False, True):
            Mixture(block + bits, (3,), width=width, inner=inner, bits=bits, block=block, zeros=zeros, k=2).check(ctx, tmp_path)
    Mixture(3, (5,), bits=4, fc1_expert_weight_bits=4, fc2_expert_weight_bits=4, k=2).check(ctx, tmp_path)


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_halves(ctx, tmp_path, dtype):
    for bits, block in ((0, 0), (4, 0), (4, 16), (8, 16)):
        Mixture(4, (2, 3), dtype=dtype, bits=bits, block=block, k=2, activation_type="silu").check(ctx, tmp_path)


def test_many_rows(ctx, tmp_path):
    """More rows of an expert than are multiplied at once, and experts without any."""
    for bits in (0, 4, 8):
        m = Mixture(5, (300,), experts=3, width=64, inner=80, bits=bits, block=16 if bits else 0, k=2, activation_type="silu")
        m.x["r"][:, 1] = -50
        m.check(ctx, tmp_path)


def test_no_rows(ctx, tmp_path):
    for bits in (0, 4):
        for tokens in ((0,), (1, 0), (0, 3)):
            assert Mixture(1, tokens, k=2, bits=bits).run(ctx, tmp_path).shape == (*tokens, 32)


def test_int8_where_it_is_asked_for(ctx, tmp_path):
    m = Mixture(6, (4,), width=64, inner=64, bits=4, block=32, k=2, accuracy_level=4, activation_type="silu")
    exact, fast = m.run(ctx, tmp_path), m.run(ctx, tmp_path, flags=FAST)
    np.testing.assert_allclose(exact, m.exact(), atol=2e-5)
    if ctx.place == "cpu":
        assert 1e-5 < np.abs(fast - m.exact()).max() < 0.05


def changed(tensor, shape=None, name=None):
    def change(m):
        if name is not None:
            m.names[m.names.index(tensor)] = name
        else:
            m.tensors[tensor] = np.resize(m.tensors[tensor], shape)
    return change


def with_attr(**attrs):
    return lambda m: m.attrs.update(attrs)


WRONG = {
    "columns of layer 1": ({}, changed("w0", (4, 48, 24)), "'w0' is 24, expected 32"),
    "experts of layer 1": ({}, changed("w0", (3, 48, 32)), "'w0' is 3, expected 4"),
    "dimensions of layer 2": ({}, changed("w1", (128, 48)), "'w1' has 2 dimensions"),
    "bias": ({}, changed("b1", (4, 33)), "'b1' is 33, expected 32"),
    "k": ({}, with_attr(k=5), "k is 5"),
    "k of none": ({}, with_attr(k=0), "k is 0"),
    "sparse": ({}, with_attr(use_sparse_mixer=1), "needs k = 2"),
    "fusion": ({}, with_attr(activation_type="swiglu"), "needs a third layer"),
    "activation": ({}, with_attr(activation_type="tanh"), "'tanh' is not supported"),
    "bytes": ({"bits": 4}, changed("w0", (4, 48, 32)), "'w0' is 32, expected 16"),
    "no scales": ({"bits": 4}, changed("s0", name=""), "no scales of layer 1"),
    "scales": ({"bits": 4, "block": 16}, changed("s1", (4, 32, 2)), "'s1' is 2, expected 3"),
    "zero points": ({"bits": 4, "zeros": True}, changed("z0", (4, 48)), "'z0' is 48, expected 24"),
    "block": ({"bits": 4}, with_attr(block_size=24), "no power of two"),
    "block that does not divide": ({"bits": 4}, with_attr(block_size=32), "does not divide the 48 columns of 'w1'"),
    "bits": ({"bits": 4}, with_attr(expert_weight_bits=5), "have 5 bits"),
    "bits 3": ({"bits": 4}, with_attr(expert_weight_bits=3), "3 bits"),
    "prepacked": ({"bits": 4}, with_attr(weights_prepacked=1), "weights_prepacked"),
    "fp4": ({"bits": 4}, with_attr(quant_type="fp4"), "quant_type"),
    "router": ({}, lambda m: m.x.update(r=np.zeros((5, 6), F32)), "router has 6 columns"),
    "router's rows": ({}, lambda m: m.x.update(r=np.zeros((6, 4), F32)), "operand 4 has 6 experts"),
    "input": ({}, lambda m: m.x.update(x=np.zeros((5, 30), F32)), "input has 30 columns"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_what_is_malformed(ctx, tmp_path, what):
    how, change, words = WRONG[what]
    m = Mixture(7, **how)
    change(m)
    with pytest.raises(Exception, match=words):
        m.run(ctx, tmp_path)
