"""Attention in the forms of exporters, against onnx.reference in float64, with and without the optimisation and with and
without oneDNN; that it is one step of cpu where oneDNN is built in; and what must stay apart. labels: ctypes
timeout: 300
"""
import math
import os

import capi
import numpy as np
import optimize_case
import pytest
from optimize_case import Net, Run, check

BUILT_IN = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3"))


@pytest.fixture(scope="module", params=["auto", "off"])
def ctx(request):
    c = capi.Context(cpu__onednn=request.param, threads=2)
    c.fast = request.param == "auto" and BUILT_IN
    yield c
    c.close()


def number(n, value):
    return n.w(f"number{len(n.params)}", np.float32(value))


def ints(n, *values):
    return n.w(f"ints{len(n.params)}", np.array(values, np.int64))


def core(n, q, k, v, scaled="div", mask=None, size=8):
    s = n.op("MatMul", q, k, name="scores")
    if scaled == "div":
        s = n.op("Div", s, number(n, math.sqrt(size)))
    if scaled == "mul":
        s = n.op("Mul", number(n, 1 / math.sqrt(size)), s)
    if mask:
        s = n.op("Add", s, mask)
    return n.op("MatMul", n.op("Softmax", s, axis=-1, name="weights"), v, name="mix")


def regions(r):
    """The operators of each region that is computed."""
    made = {}
    for node in r.plan["nodes"]:
        made[node["name"]] = node["op"]
    return [[made[m] for m in s["label"].split("+")] for s in r.plan["regions"] if s["kind"] == "op"]


def one_region(ctx, r):
    """Where oneDNN computes, all between the Reshapes is one step."""
    if not ctx.fast:
        return
    every = regions(r)
    found = [ops for ops in every if "Softmax" in ops]
    assert len(found) == 1 and found[0].count("MatMul") == 2, every
    rest = {op for ops in every for op in ops if ops is not found[0]}
    assert not rest & {"Transpose", "Split", "Slice", "Gather", "Mul", "Div"}, every


def apart(n, x, heads, size, perm, batch=2, rows=12, name="q", scale=None):
    """A projection of its own, and into heads."""
    y = n.op("MatMul", x, n.weights(f"w{name}", heads * size, heads * size, low=-0.3, high=0.3))
    if scale == "before":
        y = n.op("Div", y, number(n, math.sqrt(size)))
    y = n.op("Transpose", n.op("Reshape", y, ints(n, batch, rows, heads, size)), perm=perm, name=f"{name}_turned")
    if scale == "after":
        y = n.op("Mul", y, number(n, size**-0.25))
    return y


def joined(n, y, batch=2, rows=12, width=32):
    y = n.op("Transpose", y, perm=[0, 2, 1, 3])
    return n.op("Reshape", y, ints(n, batch, rows, width), name="joined")


@pytest.mark.parametrize("scaled", ["div", "mul", "none"])
@pytest.mark.parametrize("mask", [None, (12, 12), (2, 1, 1, 12), (2, 4, 12, 12), (1, 12), (4, 1, 12)])
def test_three_projections(ctx, scaled, mask):
    """As bench/models.py's encoder, tf2onnx and older exporters of PyTorch write it."""
    n = Net()
    x = n.x("x", 2, 12, 32)
    q, k, v = (apart(n, x, 4, 8, p, name=m) for m, p in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
    y = joined(n, core(n, q, k, v, scaled, n.x("mask", *mask) if mask else None))
    r, _ = check(ctx, n, [y], rtol=1e-5)
    one_region(ctx, r)
    assert "attention" not in r.passes()  # it has its form


def test_scaled_on_both_operands(ctx):
    """PyTorch's scaled_dot_product_attention: the root of the scale on the query and on the key, which is turned twice."""
    n = Net()
    x = n.x("x", 2, 12, 32)
    q = apart(n, x, 4, 8, [0, 2, 1, 3], name="q", scale="after")
    k = n.op("Transpose", apart(n, x, 4, 8, [0, 2, 1, 3], name="k"), perm=[0, 1, 3, 2])
    k = n.op("Mul", k, number(n, 8**-0.25), name="k_scaled")
    y = joined(n, core(n, q, k, apart(n, x, 4, 8, [0, 2, 1, 3], name="v"), "none", n.x("mask", 12, 12)))
    r, off = check(ctx, n, [y], rtol=1e-5)
    assert r.ops().count("Mul") == 1 and off.ops().count("Mul") == 2 and "attention" in r.passes()
    assert sum(c["change"].startswith("scaled once") for c in r.plan["optimizations"]) == 1
    one_region(ctx, r)


@pytest.mark.parametrize("scaled", ["div", "none"])
def test_scaled_query(ctx, scaled):
    """nn.MultiheadAttention: the query is scaled as it comes out of its projection."""
    n = Net()
    x = n.x("x", 2, 12, 32)
    q = apart(n, x, 4, 8, [0, 2, 1, 3], name="q", scale="before")
    k, v = (apart(n, x, 4, 8, p, name=m) for m, p in (("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
    r, _ = check(ctx, n, [joined(n, core(n, q, k, v, scaled))], rtol=1e-5)
    assert r.ops().count("Div") + r.ops().count("Mul") == 1
    assert ("attention" in r.passes()) == (scaled == "div")


@pytest.mark.parametrize("how", ["split", "slice", "gather", "squeeze"])
def test_joint_projection(ctx, how):
    """One product for all three: cut before it is put into heads (GPT-2, TensorFlow), or behind (ViT)."""
    n = Net()
    y = n.op("MatMul", n.x("x", 2, 12, 32), n.weights("w", 32, 96, low=-0.3, high=0.3), name="qkv")
    if how in ("split", "slice"):
        if how == "split":
            parts = n.op("Split", y, ints(n, 32, 32, 32), axis=2, outputs=3, name="cut")
        else:
            parts = [n.op("Slice", y, ints(n, 32 * i), ints(n, 32 * i + 32), ints(n, -1)) for i in range(3)]
        q, k, v = (n.op("Transpose", n.op("Reshape", p, ints(n, 2, 12, 4, 8)), perm=t)
                   for p, t in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    else:
        y = n.op("Transpose", n.op("Reshape", y, ints(n, 2, 12, 3, 4, 8)), perm=[2, 0, 3, 1, 4])
        if how == "gather":
            q, k, v = (n.op("Gather", y, n.w(f"at{i}", np.array(i, np.int64)), axis=0) for i in range(3))
        else:
            parts = n.op("Split", y, ints(n, 1, 1, 1), axis=0, outputs=3, name="cut")
            q, k, v = (n.op("Squeeze", p, ints(n, 0)) for p in parts)
        k = n.op("Transpose", k, perm=[0, 1, 3, 2])
    r, off = check(ctx, n, [joined(n, core(n, q, k, v))], rtol=1e-5)
    one_region(ctx, r)
    assert ("attention" in r.passes()) == (how != "gather")


def test_parts_of_different_widths(ctx):
    """Fewer heads for keys and values, of which one is used for all."""
    n = Net()
    y = n.op("MatMul", n.x("x", 2, 12, 32), n.weights("w", 32, 48, low=-0.3, high=0.3))
    parts = n.op("Split", y, ints(n, 32, 8, 8), axis=-1, outputs=3, name="cut")
    q, k, v = (n.op("Transpose", n.op("Reshape", p, ints(n, 2, 12, h, 8)), perm=t)
               for p, h, t in zip(parts, (4, 1, 1), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
    r, _ = check(ctx, n, [joined(n, core(n, q, k, v))], rtol=1e-5)
    assert r.passes() == ["attention"]
    one_region(ctx, r)


def test_heads_and_batch_in_one(ctx):
    """nn.MultiheadAttention with rows first: [rows, batch * heads, size], turned, and cut to four dimensions."""
    n = Net()
    x = n.x("x", 12, 2, 32)

    def head(name):
        y = n.op("MatMul", x, n.weights(f"w{name}", 32, 32, low=-0.3, high=0.3))
        y = n.op("Transpose", n.op("Reshape", y, ints(n, 12, 8, 8)), perm=[1, 0, 2])
        return n.op("Reshape", y, ints(n, 2, 4, 12, 8))

    q, k, v = head("q"), n.op("Transpose", head("k"), perm=[0, 1, 3, 2]), head("v")
    y = n.op("Transpose", core(n, q, k, v), perm=[2, 0, 1, 3])
    r, _ = check(ctx, n, [n.op("Reshape", y, ints(n, 24, 32))], rtol=1e-5)
    one_region(ctx, r)
    n = Net()
    x = n.x("x", 12, 2, 32)
    q, k, v = (n.op("Transpose", n.op("Reshape", n.op("MatMul", x, n.weights(f"w{i}", 32, 32)), ints(n, 12, 8, 8)),
                    perm=p) for i, p in enumerate(([1, 0, 2], [1, 2, 0], [1, 0, 2])))
    r, _ = check(ctx, n, [n.op("Transpose", core(n, q, k, v), perm=[1, 0, 2])], rtol=1e-5)
    one_region(ctx, r)


@pytest.mark.parametrize("batch, heads, rows, keys, size, wide", [
    (1, 1, 1, 9, 5, 3), (1, 3, 7, 1, 4, 4), (5, 2, 33, 17, 8, 16), (1, 2, 700, 301, 16, 8), (9, 2, 200, 100, 8, 8),
    (40, 2, 70, 65, 8, 8)])
def test_sizes(ctx, batch, heads, rows, keys, size, wide):
    """Rows in several tiles with a shorter last one, batches likewise; queries that are not keys."""
    n = Net()
    q = n.op("Transpose", n.x("q", batch, rows, heads, size), perm=[0, 2, 1, 3])
    k = n.op("Transpose", n.x("k", batch, keys, heads, size), perm=[0, 2, 3, 1])
    v = n.op("Transpose", n.x("v", batch, keys, heads, wide), perm=[0, 2, 1, 3])
    y = n.op("Transpose", core(n, q, k, v, mask=n.x("mask", batch, 1, rows, keys)), perm=[0, 2, 1, 3])
    r, _ = check(ctx, n, [y], rtol=1e-5)
    if rows > 1 and keys > 1:
        one_region(ctx, r)


def test_dense_matrices(ctx):
    n = Net()
    y = core(n, n.x("q", 20, 16), n.x("k", 16, 40), n.x("v", 40, 24), "mul", size=16)
    r, _ = check(ctx, n, [n.op("Relu", y)], rtol=1e-5)
    one_region(ctx, r)


def test_masked_rows_and_nan(ctx):
    """Minus infinity hides a key; a row without any key, and one with a NaN, are NaN, in numpy as here."""
    n = Net()
    q, k, v = n.x("q", 2, 20, 16), n.x("k", 2, 16, 40), n.x("v", 2, 40, 24)
    y = core(n, q, k, v, "mul", n.x("mask", 20, 40), 16)
    values = n.values()
    mask = np.where(values["mask"] < 0, -np.inf, 0).astype(np.float32)
    mask[:, 3], mask[7] = 0, -np.inf
    values["mask"] = mask
    values["q"][1, 5, 2] = np.nan
    s = values["q"].astype(np.float64) @ values["k"] / 4 + mask
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True))
        want = e / e.sum(-1, keepdims=True) @ values["v"]
    got = Run(ctx, n, [y], values).outputs[0]
    assert np.isnan(want[:, 7]).all() and np.isnan(want[1, 5]).all() and np.isnan(want).sum() == 3 * 24
    assert (np.isnan(got) == np.isnan(want)).all()
    optimize_case.close(np.nan_to_num(got), np.nan_to_num(want))


def test_what_others_read_stays(ctx):
    """The weights, or the turned query, are an output: the region is without them, or there is none."""
    for head in ("weights", "q_turned", "scores"):
        n = Net()
        x = n.x("x", 2, 12, 32)
        q, k, v = (apart(n, x, 4, 8, p, name=m)
                   for m, p in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
        r, _ = check(ctx, n, [joined(n, core(n, q, k, v)), head], rtol=1e-5)
        if ctx.fast:
            with_softmax = [ops for ops in regions(r) if "Softmax" in ops]
            assert (len(with_softmax[0]) > 1) == (head == "q_turned")
    n = Net()
    x = n.x("x", 2, 12, 32)
    q = apart(n, x, 4, 8, [0, 2, 1, 3], name="q", scale="after")
    k, v = (apart(n, x, 4, 8, p, name=m) for m, p in (("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
    y = joined(n, core(n, q, k, v, "div"))
    assert "attention" not in check(ctx, n, [y, q], rtol=1e-5)[0].passes()  # the scaled query is an output


def test_what_is_no_attention(ctx):
    n = Net()
    q, k, v = n.x("q", 2, 20, 16), n.x("k", 2, 16, 40), n.x("v", 2, 40, 24)
    s = n.op("Softmax", n.op("MatMul", q, k), axis=1)  # along the rows
    check(ctx, n, [n.op("MatMul", s, v)], rtol=1e-5)
    n = Net()
    q, k, v = n.x("q", 20, 16), n.x("k", 16, 20), n.x("v", 20, 20)
    s = n.op("Softmax", n.op("MatMul", q, k), axis=-1)
    check(ctx, n, [n.op("MatMul", v, s)], rtol=1e-5)  # on the other side
    n = Net()
    q, k, v = n.x("q", 20, 16), n.x("k", 16, 20), n.x("v", 20, 20)
    s = n.op("Mul", n.op("MatMul", q, k), n.w("each", np.linspace(0.1, 1, 20)))  # a factor for each key
    r, _ = check(ctx, n, [n.op("MatMul", n.op("Softmax", s), v)], rtol=1e-5)
    if ctx.fast:
        assert all(len(ops) <= 2 for ops in regions(r))


def test_another_device_runs_it_apart():
    """A device that has no region for it runs the nodes, and mixes of devices too."""
    c = capi.Context()
    for place in ([], ["scores=sim:0"], ["weights=sim:0"], ["mix=sim:0"]):
        n = Net()
        x = n.x("x", 2, 12, 32)
        q, k, v = (apart(n, x, 4, 8, p, name=m)
                   for m, p in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
        y = joined(n, core(n, q, k, v))
        check(c, n, [y], devices="cpu,sim:0" if place else "sim:0", place=place, rtol=1e-5)
    c.close()


@pytest.mark.parametrize("shape, axis", [((3, 5, 130), -1), ((40, 1000), 1), ((2, 3, 4, 33), 3), ((6, 40, 9), 1), ((1, 8), -1)])
def test_softmax_alone(ctx, shape, axis):
    n = Net()
    r, _ = check(ctx, n, [n.op("Softmax", n.x("x", *shape), axis=axis)], rtol=1e-6)
    values = {"x": np.random.default_rng(2).uniform(-90, 90, shape).astype(np.float32)}
    flat = values["x"].reshape(-1)
    flat[1], flat[-2] = np.inf, np.nan
    x = values["x"].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        e = np.exp(x - x.max(axis, keepdims=True))
        want = e / e.sum(axis, keepdims=True)
    got = Run(ctx, n, [n.nodes[0][1]], values).outputs[0]
    assert (np.isnan(got) == np.isnan(want)).all() and np.isnan(got).any()
    optimize_case.close(np.nan_to_num(got), np.nan_to_num(want), rtol=1e-6)


@pytest.mark.parametrize("axis, shape", [(-1, (3, 40, 384)), (1, (6, 20, 30)), (-1, (700, 96)), (0, (5, 300))])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_alone(ctx, axis, shape, bias):
    n = Net()
    inner = shape[axis:]
    operands = [n.weights("scale", *inner)] + ([n.weights("bias", *inner)] if bias else [])
    check(ctx, n, [n.op("LayerNormalization", n.x("x", *shape), *operands, axis=axis, epsilon=1e-6)], rtol=2e-6)


@pytest.mark.parametrize("shape", [(1, 4100), (70, 4100), (3, 5, 1030), (1000,), (1024,)])
def test_gelu_alone(ctx, shape):
    """Large enough to be cut for two threads, and with a rest behind whole vectors."""
    n = Net()
    y = optimize_case.erf_form(n, n.x("x", *shape), 2)
    r, _ = check(ctx, n, [y], rtol=1e-6)
    assert r.ops() == ["Gelu"]
    values = {"x": np.linspace(-12, 12, math.prod(shape), dtype=np.float32).reshape(shape)}
    want = n.reference([y], values)[0]
    values["x"].reshape(-1)[-4:] = np.nan, np.inf, -0.0, 1e30
    want.reshape(-1)[-4:] = np.nan, np.inf, 0, values["x"].reshape(-1)[-1]
    got = Run(ctx, n, [y], values).outputs[0]
    assert (np.isnan(got) == np.isnan(want)).all()
    finite = np.isfinite(want)
    assert (np.abs(got - want)[finite] <= 5e-7 * (1 + np.abs(values["x"][finite]))).all()
    assert list(got.reshape(-1)[-3:]) == [np.inf, 0, want.reshape(-1)[-1]]
