"""What exporters write of decoders: rotary embeddings, and keys and values that are repeated. Against onnx.reference in float64, with and without; and
what must not be joined. labels: ctypes
timeout: 300
"""
import capi
import numpy as np
import pytest
from optimize_case import Net, Run, check, close, rms_norm

END = 2 ** 63 - 1


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context()
    yield c
    c.close()


def whole(n, name, *values):
    return n.w(name, np.array(values, np.int64))


def piece(n, x, first, last, axis, step=None):
    more = [whole(n, f"step{step}", step)] if step else []
    return n.op("Slice", x, whole(n, f"at{first}", first), whole(n, f"at{last}", last), whole(n, f"at{axis}", axis), *more)


def cut(n, x, width, form):
    """The parts of x: halves, or each second element."""
    half = width // 2
    if "split" in form:
        if n.opset >= 18 and "sizes" not in form:
            return n.op("Split", x, outputs=2, axis=-1, num_outputs=2)
        return n.op("Split", x, whole(n, "sizes", half, half), outputs=2, axis=-1)
    if "pairs" in form:
        return piece(n, x, 0, END, 3, 2), piece(n, x, 1, END, 3, 2)
    if "exact" in form:
        return piece(n, x, 0, half, 3), piece(n, x, half, width, 3, 1)
    return piece(n, x, 0, half, -1), piece(n, x, half, END, -1)


def joined(n, p, q, shape, form):
    if "pairs" not in form:
        return n.op("Concat", p, q, axis=-1)
    last = whole(n, "last", -1 if "negative" in form else len(shape))
    both = n.op("Concat", n.op("Unsqueeze", p, last), n.op("Unsqueeze", q, last), axis=-1)
    return n.op("Reshape", both, whole(n, "shape", *shape))


def turned(n, x, shape, form):
    p, q = cut(n, x, shape[-1], form)
    minus = n.op("Mul", q, n.w("minus", np.float32(-1))) if "minus" in form else n.op("Neg", q)
    return joined(n, minus, p, shape, form)


def summed(n, x, cos, sin, shape, form):
    t = turned(n, x, shape, form)
    own = n.op("Mul", cos, x) if "left" in form else n.op("Mul", x, cos)
    other = n.op("Mul", sin, t) if "left" in form else n.op("Mul", t, sin)
    return n.op("Add", other, own) if "swapped" in form else n.op("Add", own, other)


def of_parts(n, x, cos, sin, shape, form):
    p, q = cut(n, x, shape[-1], form)
    pc, qs = (n.op("Mul", cos, p), n.op("Mul", sin, q)) if "left" in form else (n.op("Mul", p, cos), n.op("Mul", q, sin))
    qc, ps = n.op("Mul", q, cos), n.op("Mul", p, sin)
    add = n.op("Add", ps, qc) if "swapped" in form else n.op("Add", qc, ps)
    return joined(n, n.op("Sub", pc, qs), add, shape, form)


FORMS = ["slices", "slices exact left", "split swapped", "split sizes left", "slices minus", "pairs", "pairs left swapped", "pairs negative minus"]


@pytest.mark.parametrize("opset", [13, 18, 24])
@pytest.mark.parametrize("form", FORMS)
def test_rotary(ctx, form, opset):
    shape = (2, 3, 5, 8)
    for make, wide in ((summed, 8), (of_parts, 4)):
        for of_angles in ((2, 1, 5, wide), (5, wide), (1, 1, 5, wide)):
            n = Net(opset)
            x = n.x("x", *shape)
            y = make(n, x, n.weights("cos", *of_angles), n.x("sin", *of_angles), shape, form)
            r, _ = check(ctx, n, [n.op("Tanh", y, name="after")])
            assert r.ops() == ["Rotary", "Tanh"] and r.passes() == ["rotary"]


def test_rotary_of_open_shapes(ctx):
    """The axes count from the front: the number of dimensions is that of a Transpose."""
    for form in ("slices", "slices exact", "split"):
        n = Net(18)
        x = n.op("Transpose", n.x("x", 2, "length", 3, 8), perm=[0, 2, 1, 3])
        y = n.op("Tanh", summed(n, x, n.x("cos", 2, 1, "length", 8), n.x("sin", 2, 1, "length", 8), (2, 3, 5, 8), form))
        assert "Rotary" in check(ctx, n, [y], fixed={"length": 5})[0].ops()


def test_casts_of_open_shapes(ctx):
    """Types come from the lines of operators: a Cast to what a value is goes, also behind operators of several results and of
    a type of their own; one to another type stays."""
    n = Net(18)
    x = n.x("x", "length", 4)
    v, at = n.op("TopK", n.op("Floor", x), whole(n, "two", 2), outputs=2)
    v = n.op("Cast", n.op("Tile", v, whole(n, "twice", 1, 2)), to=1)
    at = n.op("Cast", n.op("Cast", at, to=7), to=1)
    y = n.op("Add", v, n.op("Tile", n.op("Cast", n.op("Cast", n.op("Less", at, v), to=9), to=1), whole(n, "once", 1, 1)))
    y = n.op("Tanh", n.op("Where", n.op("Less", v, y), v, y))
    assert check(ctx, n, [y], fixed={"length": 5})[0].ops().count("Cast") == 2


def test_pairs_by_reshape(ctx):
    """As complex numbers: [.., 4, 2], the places of whose last axis are taken by Gather, Split or Slice."""
    for how in ("gather", "split", "slice", "squeezed"):
        n = Net(18)
        x = n.x("x", 2, 5, 3, 8)
        z = n.op("Reshape", x, whole(n, "cut", 2, 5, 3, 4, 2))
        if how == "gather":
            p, q = (n.op("Gather", z, n.w(f"place{k}", np.int64(k)), axis=-1) for k in (0, 1))
        elif how == "slice":
            p, q = (n.op("Squeeze", piece(n, z, k, k + 1, -1), whole(n, "gone", -1)) for k in (0, 1))
        else:
            p, q = (n.op("Squeeze", v, whole(n, "gone", 4)) for v in n.op("Split", z, outputs=2, axis=4, num_outputs=2))
        cos, sin = n.weights("cos", 5, 1, 4), n.weights("sin", 5, 1, 4)
        first = n.op("Sub", n.op("Mul", p, cos), n.op("Mul", q, sin))
        second = n.op("Add", n.op("Mul", p, sin), n.op("Mul", q, cos))
        y = n.op("Tanh", joined(n, first, second, (2, 5, 3, 8), "pairs"))
        r, _ = check(ctx, n, [y])
        assert "Rotary" in r.ops() and "Concat" not in r.ops(), how


def test_part_of_a_head(ctx):
    """GPT-NeoX and Phi turn the first numbers of each head."""
    n = Net(18)
    x = n.x("x", 2, 3, 5, 12)
    low = summed(n, piece(n, x, 0, 8, 3), n.weights("cos", 5, 8), n.weights("sin", 5, 8), (2, 3, 5, 8), "slices")
    y = n.op("Tanh", n.op("Concat", low, piece(n, x, 8, END, 3), axis=-1))
    assert check(ctx, n, [y])[0].ops() == ["Concat", "Rotary", "Slice", "Slice", "Tanh"]


def spoiled(n, x, cos, sin, what):
    """Nearly a rotary embedding of [2, 3, 5, 8]."""
    at = {"other start": (5, END), "too short": (4, 7), "overlap": (3, 7)}.get(what, (4, END))
    p, q = piece(n, x, 0, 8 - (min(at[1], 8) - at[0]), 3), piece(n, x, *at, 3)
    if what == "other x":
        q = piece(n, n.x("z", 2, 3, 5, 8), 4, END, 3)
    minus = q if what == "no minus" else n.op("Neg", q)
    if what == "minus of the first":
        minus, p = q, n.op("Neg", p)
    t = n.op("Concat", p, minus, axis=-1) if what == "order" else n.op("Concat", minus, p, axis=-1)
    if what == "half of the other":
        t = n.op("Mul", t, n.w("half", np.float32(0.5)))
    own = n.op("Mul", n.op("Tanh", x) if what == "other own" else x, cos)
    return n.op("Sub" if what == "difference" else "Add", own, n.op("Mul", t, sin)), t


@pytest.mark.parametrize("what", ["none", "other start", "too short", "overlap", "other x", "no minus", "minus of the first", "order", "half of the other",
                                  "other own", "difference", "read"])
def test_what_is_no_rotary(ctx, what):
    n = Net(18)
    x, cos, sin = n.x("x", 2, 3, 5, 8), n.weights("cos", 5, 8), n.weights("sin", 5, 8)
    y, t = spoiled(n, x, cos, sin, what)
    heads = [n.op("Tanh", y)] + ([n.op("Abs", t)] if what == "read" else [])
    assert ("Rotary" in check(ctx, n, heads)[0].ops()) == (what == "none")


def test_angles_larger_than_x(ctx):
    """The result is larger than x then, which the operator's is not."""
    n = Net(18)
    y = summed(n, n.x("x", 1, 3, 5, 8), n.weights("cos", 2, 1, 5, 8), n.weights("sin", 2, 1, 5, 8), (1, 3, 5, 8), "slices")
    assert "Rotary" not in check(ctx, n, [n.op("Tanh", y)])[0].ops()


# ---- keys and values that are repeated for groups of heads


def repeated(n, x, heads, group, axis=2, reader=False):
    """[2, heads, 6, 8] as [2, heads * group, 6, 8]."""
    wide = [2, heads, 6, 8]
    wide.insert(axis, group)
    y = n.op("Expand", n.op("Unsqueeze", x, whole(n, f"lift{axis}", axis)), whole(n, f"wide{axis}", *wide))
    z = n.op("Reshape", y, whole(n, "flat", 2, heads * group, 6, 8))
    return (z, y) if reader else z


def attention(n, mask="rows", form="", heads=2, group=3, q=None, k=None, v=None, batch=2):
    """[2, 5, heads * group * 8] of queries of 5, and keys and values of 6."""
    q = q or n.x("q", 2, heads * group, 5, 8)
    k, v = k or repeated(n, n.x("k", 2, heads, 6, 8), heads, group), v or repeated(n, n.x("v", 2, heads, 6, 8), heads, group)
    y = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
    y = n.op("Div", y, n.w("root", np.float32(8 ** 0.5))) if "div" in form else n.op("Mul", n.w("scale", np.float32(0.3)), y)
    if "cap" in form:
        cap = n.w("cap", np.float32(5))
        y = n.op("Mul", n.op("Tanh", n.op("Div", y, cap)), cap)
    shape = {"rows": (5, 6), "each": (2, 1, 5, 6), "one": (1, 1, 5, 6), "three": (1, 5, 6), "heads": (2, heads * group, 5, 6)}.get(mask)
    if shape:
        y = n.op("Add", n.x("mask", *shape), y) if "left" in form else n.op("Add", y, n.x("mask", *shape))
    y = n.op("MatMul", n.op("Softmax", y, axis=-1 if "last" in form else 3), v)
    to = whole(n, "to", 0, 0, -1) if "zeros" in form else whole(n, "to", 2, 5, heads * group * 8)
    return n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), to)


@pytest.mark.parametrize("opset", [13, 18, 24])
@pytest.mark.parametrize("mask", ["rows", "each", "one", "three", "none"])
def test_grouped_attention(ctx, mask, opset):
    for form in ("", "div left zeros", "cap last"):
        for heads, group in ((2, 3), (1, 4)):
            n = Net(opset)
            r, _ = check(ctx, n, [n.op("Tanh", attention(n, mask, form, heads, group))])
            assert "Expand" not in r.ops() and "grouped" in r.passes(), (form, heads)


def test_grouped_attention_on_sim(ctx):
    n = Net(18)
    r, _ = check(ctx, n, [n.op("Tanh", attention(n, "each"))], devices="sim", rtol=1e-4)
    assert "Expand" not in r.ops()


def test_grouped_attention_of_open_shapes(ctx):
    """The shapes are computed, as a decoder with caches has them."""
    for batch, length, past in ((1, 1, 7), (2, 5, 0), (3, 4, 3)):
        n = Net(18)
        q = n.op("Transpose", n.x("q", "batch", "length", 6, 8), perm=[0, 2, 1, 3])
        both = []
        for name in "kv":
            x = n.x(name, "batch", 2, "total", 8)
            shape = n.op("Shape", x)
            b, t = (n.op("Gather", shape, whole(n, f"at{i}", i)) for i in (0, 2))
            wide = n.op("Concat", b, whole(n, "heads", 2, 3), t, whole(n, "size", 8), axis=0)
            flat = n.op("Concat", b, whole(n, "all", 6), t, whole(n, "size", 8), axis=0)
            both.append(n.op("Reshape", n.op("Expand", n.op("Unsqueeze", x, whole(n, "lift", 2)), wide), flat))
        y = n.op("MatMul", q, n.op("Transpose", both[0], perm=[0, 1, 3, 2]))
        y = n.op("Add", n.op("Mul", y, n.w("scale", np.float32(0.3))), n.x("mask", "batch", 1, "length", "total"))
        y = n.op("MatMul", n.op("Softmax", y, axis=-1), both[1])
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), whole(n, "to", 0, 0, 48))
        r, _ = check(ctx, n, [n.op("Tanh", y)], fixed={"batch": batch, "length": length, "total": length + past})
        assert "Expand" not in r.ops()


@pytest.mark.parametrize("what", ["none", "other order", "read", "mask of each head", "keys alone", "other groups", "no transpose"])
def test_what_is_not_grouped(ctx, what):
    n = Net(18)
    k, v = n.x("k", 2, 2, 6, 8), n.x("v", 2, 2, 6, 8)
    heads = []
    keys = values = None
    if what == "other order":  # heads 0 1 0 1 0 1 instead of 0 0 0 1 1 1
        keys, values = repeated(n, k, 2, 3, axis=1), repeated(n, v, 2, 3, axis=1)
    if what == "read":
        keys, wide = repeated(n, k, 2, 3, reader=True)
        heads.append(n.op("Abs", wide))
    if what == "keys alone":
        values = n.x("w", 2, 6, 6, 8)
    if what == "other groups":
        wide = n.op("Unsqueeze", n.x("w", 2, 3, 6, 8), whole(n, "lift2", 2))
        values = n.op("Reshape", n.op("Expand", wide, whole(n, "other", 2, 3, 2, 6, 8)), whole(n, "flat", 2, 6, 6, 8))
    y = attention(n, "heads" if what == "mask of each head" else "each", k=keys or repeated(n, k, 2, 3), v=values or repeated(n, v, 2, 3))
    if what == "no transpose":
        n.nodes = [(kind, name, ins, outs, d, {"perm": [0, 1, 2, 3]} if name == n.nodes[-2][1] else a) for kind, name, ins, outs, d, a in n.nodes]
        n.params["to"] = np.array([2, 6, 40], np.int64)
    r, _ = check(ctx, n, [n.op("Tanh", y), *heads])
    assert ("grouped" in r.passes()) == (what == "none")


# ---- scaled_dot_product_attention


def sdpa(n, open_shapes=False, guard="nan", detour=True, zero=0.0):
    """As the exporters write it: roots of the scale on both operands, a mask of minus infinity, and a guard for rows of it alone."""
    lead = ("batch", 2, "length", 8) if open_shapes else (2, 2, 5, 8)
    mask = ("batch", 1, "length", "length") if open_shapes else (2, 1, 5, 5)
    q, k, v = n.x("q", *lead), n.x("k", *lead), n.x("v", *lead)
    root = n.w("root", np.float32(0.6))
    if detour and open_shapes:
        shape = n.op("Shape", k)
        others, rows, columns = (n.op("Slice", shape, whole(n, f"at{a}", a), whole(n, f"at{b}", b)) for a, b in ((0, -2), (-2, -1), (-1, END)))
        flat = n.op("Reshape", k, n.op("Concat", whole(n, "all", -1), rows, columns, axis=0))
        kt = n.op("Reshape", n.op("Transpose", flat, perm=[0, 2, 1]), n.op("Concat", others, columns, rows, axis=0))
    elif detour:
        flat = n.op("Transpose", n.op("Reshape", k, whole(n, "flat", -1, 5, 8)), perm=[0, 2, 1])
        kt = n.op("Reshape", flat, whole(n, "four", 2, 2, 8, 5))
    else:
        kt = n.op("Transpose", k, perm=[0, 1, 3, 2])
    y = n.op("MatMul", n.op("Mul", q, root), n.op("Mul", kt, root))
    seen = n.op("Where", n.op("Greater", n.x("mask", *mask), n.w("zero", np.float32(0))), n.w("nothing", np.float32(0)), n.w("low", np.float32(-np.inf)))
    p = n.op("Softmax", n.op("Add", y, seen), axis=-1)
    if guard == "nan":
        p = n.op("Where", n.op("IsNaN", p), n.w("none", np.float32(zero)), p)
    return n.op("Tanh", n.op("Transpose", n.op("MatMul", p, v), perm=[0, 2, 1, 3]))


def masked(n, **fixed):
    """Values with a row that sees nothing, and one that sees all."""
    values = n.values(**fixed)
    values["mask"][0, 0, 1] = -1
    values["mask"][1, 0, 2] = 1
    return values


@pytest.mark.parametrize("open_shapes", [False, True])
@pytest.mark.parametrize("detour", [False, True])
def test_scaled_dot_product_attention(ctx, detour, open_shapes):
    n = Net(18)
    y = sdpa(n, open_shapes, detour=detour)
    values = masked(n, batch=2, length=5)
    want = n.reference([y], values)[0]
    assert np.isfinite(want).all() and (want[0, 1] == 0).all()
    for wish in ("on", "off", "on,-attention"):
        r = Run(ctx, n, [y], values, wish)
        close(r.outputs[0], want, wish)
        if wish == "on":
            assert [c for c in r.ops() if c in ("Reshape", "Mul")] == ["Mul"] and r.ops().count("Transpose") == 2
            region = [s for s in r.plan["regions"] if s["kind"] == "op" and len(s["nodes"]) > 6]
            assert len(region) == 1, r.plan["regions"]


@pytest.mark.parametrize("guard, zero", [("none", 0.0), ("nan", 0.5)])
def test_other_guards(ctx, guard, zero):
    """Without a guard a row that sees nothing is NaN; with another number it is that number's."""
    n = Net(18)
    y = sdpa(n, guard=guard, zero=zero)
    values = masked(n)
    want = n.reference([y], values)[0]
    got = Run(ctx, n, [y], values).outputs[0]
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.isnan(want).any() == (guard == "none")
    close(np.nan_to_num(got), np.nan_to_num(want))


def test_casts_of_open_shapes(ctx):
    """The type of a value is known where its shape is not."""
    n = Net(18)
    x = n.op("Gather", n.weights("table", 9, 24), n.w("rows", np.array([1, 3, 5], np.int64)), axis=0)
    x = n.op("Mul", n.x("z", "batch", 3, 24), x)
    y = rms_norm(n, n.op("Cast", x, to=1), [24], "pow")
    assert "Cast" not in check(ctx, n, [n.op("Tanh", y)])[0].ops()
    n = Net(18)
    y = n.op("Cast", n.op("Cast", n.x("z", "batch", 3, 24), to=7), to=1)
    assert check(ctx, n, [n.op("Tanh", y)])[0].ops().count("Cast") == 2


# ---- the operator Attention


def by_parts(values, mask=None, scale=None):
    """softmax(q k' scale + mask) v in float64; a query without a key is zeros."""
    q, k, v = (values[name].astype(np.float64) for name in "qkv")
    with np.errstate(invalid="ignore"):
        scores = q @ np.swapaxes(k, -1, -2) * (scale or q.shape[-1] ** -0.5)
        if mask is not None:
            scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == bool else mask)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        y = p / p.sum(-1, keepdims=True) @ v
    if mask is None:
        return y
    lost = ~mask.any(-1) if mask.dtype == bool else (mask == -np.inf).all(-1)
    return np.where(np.broadcast_to(lost, y.shape[:-1])[..., None], 0, y)


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("kind", ["none", "float32", "bool"])
def test_attention_in_its_parts(ctx, kind, opset):
    for shape in ((5, 6), (2, 1, 5, 6), (2, 3, 1, 6)):
        n = Net(opset)
        ins = [n.x("q", 2, 3, 5, 8), n.x("k", 2, 3, 6, 8), n.x("v", 2, 3, 6, 4)]
        if kind != "none":
            ins.append(n.x("mask", *shape, dtype=kind))
        y = n.op("Attention", *ins, **({"scale": 0.4} if opset == 24 else {}))
        values = n.values()
        mask = None
        if kind != "none":
            mask = n.rng.uniform(size=shape) < 0.7 if kind == "bool" else n.rng.normal(size=shape).astype(np.float32)
            mask[..., -1, :] = False if kind == "bool" else -np.inf
            values["mask"] = mask
        values["q"][0, 0, 0, 0] = np.nan
        want = by_parts(values, mask, 0.4 if opset == 24 else None)
        r = Run(ctx, n, [y], values)
        assert "Attention" not in r.ops() and "Softmax" in r.ops() and y in r.names()
        for got in (r.outputs[0], Run(ctx, n, [y], values, "off").outputs[0]):
            assert np.array_equal(np.isnan(got), np.isnan(want))
            close(np.nan_to_num(got), np.nan_to_num(want))


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("rows, columns", [(5, 5), (3, 7), (7, 3), (1, 4)])
def test_causal_attention_in_its_parts(ctx, rows, columns, opset):
    """The mask is a constant."""
    n = Net(opset)
    y = n.op("Attention", n.x("q", 2, 3, rows, 8), n.x("k", 2, 3, columns, 8), n.x("v", 2, 3, columns, 4), is_causal=1)
    assert {"Attention", "Softmax"} & set(check(ctx, n, [y])[0].ops()) == {"Softmax"}


@pytest.mark.parametrize("what", ["none", "softcap", "causal", "keys alone", "read"])
def test_repeated_keys_of_the_operator(ctx, what):
    """What stays the operator reads keys and values of fewer heads where they lie."""
    n = Net(24)
    k = repeated(n, n.x("k", 2, 2, 6, 8), 2, 3, reader=True)
    v = n.x("v", 2, 6, 6, 8) if what == "keys alone" else repeated(n, n.x("v", 2, 2, 6, 8), 2, 3)
    attrs = {"none": {}, "causal": {"is_causal": 1}}.get(what, {"softcap": 3.0})
    y = n.op("Tanh", n.op("Attention", n.x("q", 2, 6, 5, 8), k[0], v, **attrs))
    ops = check(ctx, n, [y, *([n.op("Abs", k[1])] if what == "read" else [])])[0].ops()
    assert ("Attention" in ops) == (what not in ("none", "causal")) and ("Expand" not in ops) == (what == "softcap"), ops


@pytest.mark.parametrize("what", ["none", "causal and mask", "softcap", "groups", "flat", "second result", "float64", "shorter mask", "cache"])
def test_attention_that_stays(ctx, what):
    n = Net(24)
    dtype, heads = "float64" if what == "float64" else "float32", 1 if what == "groups" else 3
    q, k, v = ([n.x(name, 2, 5, 24) for name in "qkv"] if what == "flat" else
               [n.x("q", 2, 3, 5, 8, dtype=dtype), n.x("k", 2, heads, 5, 8, dtype=dtype), n.x("v", 2, heads, 5, 8, dtype=dtype)])
    attrs = {"causal and mask": {"is_causal": 1}, "softcap": {"softcap": 3.0}, "flat": {"q_num_heads": 3, "kv_num_heads": 3}}.get(what, {})
    ins = [q, k, v]
    if what in ("shorter mask", "causal and mask"):
        ins.append(n.x("mask", 5, 3 if what == "shorter mask" else 5))
    if what == "cache":
        ins += ["", n.x("pk", 2, 3, 2, 8), n.x("pv", 2, 3, 2, 8)]
    made = n.op("Attention", *ins, outputs=3 if what in ("second result", "cache") else 1, **attrs)
    heads_ = [n.op("Abs", y) for y in (made if isinstance(made, list) else [made])]
    values = n.values()
    runs = [Run(ctx, n, heads_, values, wish) for wish in ("on", "off")]
    assert ("Attention" in runs[0].ops()) == (what != "none")
    for g, w in zip(runs[0].outputs, runs[1].outputs):
        close(g, w.astype(np.float64))
