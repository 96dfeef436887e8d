"""Seeded random graphs over twelve operators: branches, shared inputs and weights, several outputs, inner outputs.
Values are tracked in float64 with their error bounds while a graph grows: all stay within [-4, 4], none fades away,
and a node whose bound would say nothing (more than LOOSEST of its largest value) is not taken."""

import numpy as np

from . import bounds, ops

LIMIT, FAINTEST, LOOSEST, ELEMENTS = 4.0, 2.0**-6, 5e-4, 4096


class Builder:
    """A graph that grows at its end; every node has one output, so node ids are entry ids."""

    def __init__(self, rng):
        self.rng, self.nodes, self.values, self.errs = rng, [], [], []
        self.params, self.inputs, self.used, self.counts = {}, {}, set(), {}

    # Choices.

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def data(self):
        """Ids of what may be an operand: inputs and operators' values."""
        return [i for i, n in enumerate(self.nodes) if n["name"] not in self.params]

    def operand(self, fits=lambda shape: True):
        """An id whose shape fits: often one that is not used yet, often a late one; None if there is none."""
        ids = [i for i in self.data() if fits(self.values[i].shape)]
        if not ids:
            return None
        fresh, r = [i for i in ids if i not in self.used], self.rng.random()
        waiting = sum(i not in self.used for i in self.data())
        if fresh and r < (0.5 if waiting < 5 else 0.95):
            return self.pick(fresh)
        return self.pick(ids[-10:]) if self.chance(0.5) else self.pick(ids)

    # Growing.

    def null(self, name, value, table):
        table[name] = value
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        self.values.append(value.astype(np.float64) if value.dtype == np.float32 else value)
        self.errs.append(np.zeros(value.shape))
        return len(self.nodes) - 1

    def param(self, name, value, share=0.3):
        """A parameter, or one of equal bytes that is there already."""
        for i, node in enumerate(self.nodes):
            old = self.params.get(node["name"])
            if old is not None and old.dtype == value.dtype and np.array_equal(old, value) and self.chance(share):
                return i
        return self.null(name, value, self.params)

    def name(self, op):
        return f"{op.lower()}{self.counts.get(op, 0)}"

    def add(self, op, ids, **attrs):
        """Appends an operator; returns its id, or None (and nothing is appended) where its value is unfit."""
        args = [None if i < 0 else self.values[i] for i in ids]
        errs = [None if i < 0 else self.errs[i] for i in ids]
        value = ops.apply(op, attrs, args)
        top = float(np.abs(value).max())
        if value.size > ELEMENTS or not FAINTEST <= top <= LIMIT:
            if op != "Softmax" or value.size > ELEMENTS:
                return None
        err = bounds.bound(op, attrs, args, errs, value)
        if err.max() > LOOSEST * top:
            return None
        node = {"op": op, "name": self.name(op), "inputs": [[i, 0, 0] for i in ids]}
        if attrs:
            node["attrs"] = attrs
        self.counts[op] = self.counts.get(op, 0) + 1
        self.used.update(ids)
        self.nodes.append(node)
        self.values.append(value)
        self.errs.append(err)
        return len(self.nodes) - 1

    def mark(self):
        return len(self.nodes), dict(self.counts), set(self.used)

    def back_to(self, mark):
        for node in self.nodes[mark[0] :]:
            self.params.pop(node["name"], None)
            self.inputs.pop(node["name"], None)
        for column in (self.nodes, self.values, self.errs):
            del column[mark[0] :]
        _, self.counts, self.used = mark

    def damped(self, i, largest):
        """i, or i times a power of two that brings it to at most `largest`."""
        top = float(np.abs(self.values[i]).max())
        if top <= largest:
            return i
        factor = 2.0 ** np.floor(np.log2(largest / top))
        return self.add("Mul", [i, self.param(self.name("Mul") + ".factor", np.array(factor, np.float32), 0.7)])

    def input(self, shape):
        value = np.clip(self.rng.normal(0, 1, shape), -2, 2).astype(np.float32)
        return self.null(f"input{len(self.inputs)}", value, self.inputs)

    def weight(self, name, shape, multiply):
        """A weight (new, or one of that shape that is in use) for which multiply(weight) is of a fair size."""
        old = [i for i, n in enumerate(self.nodes) if n["name"].endswith(".weight") and self.values[i].shape == shape]
        if old and self.chance(0.3):
            i = self.pick(old)
            return i if np.abs(multiply(self.values[i])).max() <= 3 else None
        w, style = self.rng.normal(0, 1, shape), self.rng.random()
        if style < 0.35:
            w = np.abs(w)
        elif style < 0.55:
            w *= self.rng.random(shape) < 0.25
        w = w.astype(np.float32)
        top = float(np.abs(multiply(w.astype(np.float64))).max())
        if top < 2.0**-5:
            return None
        return self.null(name, w * np.float32(2.0 ** np.floor(np.log2(3 / top))), self.params)

    def bias(self, name, shape):
        return self.param(name, self.rng.uniform(-0.5, 0.5, shape).astype(np.float32))


# One maker an operator: appends it with what it needs and returns its id, or returns None.


def _partner(g, shape):
    """A second operand for Add and Mul: of the same shape, of one that broadcasts with it, or a new constant."""
    r = g.rng.random()
    if r < 0.55:
        return g.operand(lambda s: s == shape)
    if r < 0.75:

        def joins(s):
            try:
                return int(np.prod(np.broadcast_shapes(s, shape))) <= ELEMENTS
            except ValueError:
                return False

        return g.operand(joins)
    part = tuple(d if g.chance(0.6) else 1 for d in shape)[int(g.rng.integers(len(shape) + 1)) :]
    return g.param(f"{g.name('Add')}.constant{len(g.nodes)}", g.rng.uniform(-1.5, 1.5, part).astype(np.float32))


def make_binary(g, op):
    a = g.operand()
    b = _partner(g, g.values[a].shape)
    if b is None:
        return None
    a, b = (a, b) if g.chance(0.5) else (b, a)
    if np.abs(ops.apply(op, {}, [g.values[a], g.values[b]])).max() > LIMIT:
        same, a = a == b, g.damped(a, 2.0)
        b = a if same else g.damped(b, 2.0) if a is not None else None
        if a is None or b is None:
            return None
    return g.add(op, [a, b])


def _two_values(g, fits):
    """Two values to be multiplied, the second damped so that the product is bounded."""
    a = g.operand(lambda s: len(s) >= 2)
    b = None if a is None else g.operand(lambda s: fits(g.values[a].shape, s))
    if b is None:
        return None
    top = float(np.abs(g.values[a] @ g.values[b]).max())
    b = g.damped(b, float(np.abs(g.values[b]).max()) * 3 / top) if top > 3 else b
    return None if b is None else (a, b)


def make_matmul(g, op):
    if g.chance(0.35):

        def fits(s, t):
            return t[:-2] in ((), s[:-2]) and s[-1] == t[-2] and int(np.prod(s[:-1])) * t[-1] <= ELEMENTS

        pair = _two_values(g, lambda s, t: len(t) >= 2 and fits(s, t))
        return None if pair is None else g.add(op, list(pair))
    x = g.operand(lambda s: s[-1] <= 512)
    if x is None:
        return None
    shape = g.values[x].shape
    most = min(48, ELEMENTS // shape[-1], ELEMENTS // int(np.prod(shape[:-1])))
    w_shape = (shape[-1], int(g.rng.integers(1, most + 1)))
    if len(shape) > 2 and g.chance(0.3) and int(np.prod(shape[:-2] + w_shape)) <= ELEMENTS:
        w_shape = shape[:-2] + w_shape  # one matrix for each of the batch
    w = g.weight(g.name(op) + ".weight", w_shape, lambda w: g.values[x] @ w)
    return None if w is None else g.add(op, [x, w])


def make_gemm(g, op):
    if g.chance(0.2):
        pair = _two_values(g, lambda s, t: len(s) == len(t) == 2 and s[1] == t[0] and s[0] * t[1] <= ELEMENTS)
        return None if pair is None else g.add(op, list(pair))
    x = g.operand(lambda s: len(s) == 2 and max(s) <= 1024)
    if x is None:
        return None
    attrs = {}
    if g.chance(0.3):
        attrs["transA"] = 1
    m, k = g.values[x].shape[:: -1 if "transA" in attrs else 1]
    n = int(g.rng.integers(1, min(48, ELEMENTS // max(k, m)) + 1))
    w_shape = (k, n)
    if g.chance(0.5):
        attrs["transB"], w_shape = 1, (n, k)
    if g.chance(0.3):
        attrs["alpha"] = g.pick([0.5, 0.25, 1.5])
    w = g.weight(g.name(op) + ".weight", w_shape, lambda w: ops.gemm(attrs, g.values[x], w))
    if w is None:
        return None
    ids = [x, w]
    if g.chance(0.75):
        if g.chance(0.3):
            attrs["beta"] = g.pick([0.5, 2.0, 1.0])
        ids.append(g.bias(g.name(op) + ".bias", g.pick([(n,), (1, n), (m, 1), (m, n), (1,)])))
    elif g.chance(0.3):
        ids.append(-1)
    return g.add(op, ids, **attrs)


def _window(g, attrs, shape, kernel, most_pad):
    """Adds pads and strides to attrs; False where the window does not fit."""
    pads = [0, 0, 0, 0]
    if g.chance(0.6):
        same = min(most_pad)
        pads = [min(1, same)] * 4 if g.chance(0.6) else [int(g.rng.integers(0, p + 1)) for p in most_pad * 2]
    if any(pads) or g.chance(0.3):
        attrs["pads"] = pads
    if g.chance(0.4):
        attrs["strides"] = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 3))]
    dilations = attrs.get("dilations", [1, 1])
    return all(shape[2 + i] + pads[i] + pads[2 + i] > (kernel[i] - 1) * dilations[i] for i in (0, 1))


def make_conv(g, op):
    x = g.operand(lambda s: len(s) == 4 and s[1] <= 64)
    if x is None:
        return None
    shape = g.values[x].shape
    kernel, attrs = g.pick([[1, 1], [3, 3], [3, 3], [5, 5], [1, 3], [3, 2]]), {}
    if g.chance(0.2):
        attrs["dilations"] = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 3))]
    if not _window(g, attrs, shape, kernel, [k // 2 for k in kernel]):
        return None
    if g.chance(0.8):
        attrs["kernel_shape"] = kernel
    group = g.pick([d for d in range(1, shape[1] + 1) if shape[1] % d == 0]) if g.chance(0.3) else 1
    if group > 1:
        attrs["group"] = group
    room = ELEMENTS // max(shape[1] // group * kernel[0] * kernel[1], shape[0] * shape[2] * shape[3])
    cout = group * int(g.rng.integers(1, 17) if group == 1 else g.rng.integers(1, 3))
    if cout > room:
        return None
    w_shape = (cout, shape[1] // group, *kernel)
    w = g.weight(g.name(op) + ".weight", w_shape, lambda w: ops.conv(attrs, g.values[x], w))
    if w is None:
        return None
    ids = [x, w]
    if g.chance(0.7):
        ids.append(g.bias(g.name(op) + ".bias", (cout,)))
    elif g.chance(0.3):
        ids.append(-1)
    return g.add(op, ids, **attrs)


def make_max_pool(g, op):
    x = g.operand(lambda s: len(s) == 4 and s[2] * s[3] > 1)
    if x is None:
        return None
    attrs = {"kernel_shape": g.pick([[2, 2], [3, 3], [1, 2], [2, 3]])}
    if not _window(g, attrs, g.values[x].shape, attrs["kernel_shape"], [k // 2 for k in attrs["kernel_shape"]]):
        return None
    return g.add(op, [x], **attrs)


def make_average(g, op):
    x = g.operand(lambda s: len(s) == 4 and s[2] * s[3] > 1)
    return None if x is None else g.add(op, [x])


def make_softmax(g, op):
    x = g.operand(lambda s: max(s) > 1)
    if x is None:
        return None
    shape = g.values[x].shape
    axis = g.pick([i for i, d in enumerate(shape) if d > 1])
    if axis == len(shape) - 1 and g.chance(0.5):
        return g.add(op, [x])
    return g.add(op, [x], axis=axis - len(shape) if g.chance(0.3) else axis)


def make_reshape(g, op):
    x = g.operand()
    shape, left, dims = g.values[x].shape, g.values[x].size, []
    for _ in range(int(g.rng.integers(0, 4))):
        dims.append(g.pick([d for d in range(1, left + 1) if left % d == 0 and d <= 64]))
        left //= dims[-1]
    dims.insert(int(g.rng.integers(len(dims) + 1)), left)
    for i in range(min(len(dims), len(shape))):
        if dims[i] == shape[i] and g.chance(0.3):
            dims[i] = 0
    if g.chance(0.3):
        dims[int(g.rng.integers(len(dims)))] = -1
    return g.add(op, [x, g.param(g.name(op) + ".shape", np.array(dims, np.int64), 0.8)])


def make_flatten(g, op):
    x = g.operand()
    rank = g.values[x].ndim
    axis = int(g.rng.integers(-rank, rank + 1))
    return g.add(op, [x]) if g.chance(0.4) else g.add(op, [x], axis=axis)


def make_concat(g, op):
    x = g.operand()
    shape = g.values[x].shape
    axis = int(g.rng.integers(len(shape)))

    def joins(s):
        return len(s) == len(shape) and all(a == b or i == axis for i, (a, b) in enumerate(zip(s, shape)))

    ids = [x] + [g.operand(joins) for _ in range(int(g.rng.integers(1, 4)))]
    if len(set(ids)) == 1 and g.chance(0.7):
        ids[-1] = g.param(g.name(op) + ".constant", g.rng.uniform(-1.5, 1.5, shape).astype(np.float32))
    if sum(g.values[i].size for i in ids) > ELEMENTS:
        return None
    return g.add(op, ids, axis=axis - len(shape) if g.chance(0.2) else axis)


MAKERS = {
    "Add": make_binary,
    "Mul": make_binary,
    "Relu": lambda g, op: g.add(op, [g.operand()]),
    "MatMul": make_matmul,
    "Gemm": make_gemm,
    "Conv": make_conv,
    "MaxPool": make_max_pool,
    "GlobalAveragePool": make_average,
    "Softmax": make_softmax,
    "Reshape": make_reshape,
    "Flatten": make_flatten,
    "Concat": make_concat,
}
OPERATORS = tuple(MAKERS)
_SHRINKING = {"GlobalAveragePool": 0.5, "Softmax": 0.7, "Flatten": 0.5, "Reshape": 0.8}


def _first_input(g):
    if g.chance(0.7):
        return g.input((g.pick([1, 1, 2]), int(g.rng.integers(1, 9)), *(int(d) for d in g.rng.integers(4, 13, 2))))
    rank = g.pick([2, 2, 3])
    return g.input(tuple(int(d) for d in g.rng.integers(2, 33 if rank == 2 else 15, rank)))


def _heads(g, odd):
    """All values that are not used, and some that others use as well."""
    operators = [i for i, n in enumerate(g.nodes) if n["op"] != "null"]
    heads = [i for i in operators if i not in g.used]
    inner = [i for i in operators if i in g.used]
    count = min(len(inner), int(g.rng.integers(0, 4)))
    heads += [int(i) for i in g.rng.choice(inner, count, replace=False)] if count else []
    if odd:
        heads += [g.pick(heads), g.pick([i for i in g.data() if g.nodes[i]["op"] == "null"])]
    return [heads[i] for i in g.rng.permutation(len(heads))]


def random_graph(seed, max_nodes=200, odd_heads=False):
    """Returns (graph, params, inputs): the graph as a dict in Heddle's JSON dialect with 5 to max_nodes nodes, null
    nodes included; the arrays of its parameters and of its inputs by name. The same seed and numpy give the same
    graph. odd_heads adds a repeated head and one that is an input."""
    rng = np.random.default_rng([seed, 0x68656464])
    g, target = Builder(rng), int(rng.integers(5, max(5, max_nodes) + 1))
    _first_input(g)
    misses = 0
    while len(g.nodes) < target:
        mark = g.mark()
        if 0 in g.used and len(g.inputs) < 4 and len(g.nodes) + 3 < target and g.chance(0.03):
            i = g.input(g.values[0].shape) if g.chance(0.5) else _first_input(g)
            done = g.add("Relu", [i]) if g.chance(0.5) else g.add("Mul", [i, i])
        else:
            p = np.array([_SHRINKING.get(op, 1.0) / (1 + g.counts.get(op, 0)) ** 0.5 for op in OPERATORS])
            op = OPERATORS[int(rng.choice(len(OPERATORS), p=p / p.sum()))]
            done = MAKERS[op](g, op)
        if done is None or len(g.nodes) > target:
            g.back_to(mark)
            misses += 1
            if misses > 50 * target:
                raise RuntimeError(f"seed {seed}: no operator fits any more")

    nulls = [i for i, n in enumerate(g.nodes) if n["op"] == "null"]
    tensors = {**g.params, **g.inputs}
    known = [tensors.get(n["name"]) for n in g.nodes]
    graph = {
        "heddle": {"version": 1, "opset": 17},
        "nodes": g.nodes,
        "arg_nodes": nulls,
        "heads": [[i, 0, 0] for i in _heads(g, odd_heads)],
        "node_row_ptr": list(range(len(g.nodes) + 1)),
        "attrs": {
            "dltype": ["list_str", [None if t is None else str(t.dtype) for t in known]],
            "shape": ["list_shape", [None if t is None else list(t.shape) for t in known]],
        },
    }
    return graph, g.params, g.inputs
