"""Random graphs of the operators that move data, pick, order, compare and convert, over cpu, two PoCL devices and sim.

labels: slow
timeout: 600

Every result is exact, so it must be numpy's to the bit. Each seed runs with all nodes on opencl:0, and with a device drawn
for each node.
"""
import json

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
from reference import io  # noqa: E402

DEVICES = ["cpu", "opencl:0", "opencl:1", "sim:0"]
SEEDS = range(40, 56)
STEPS = 14
ONNX_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "uint32": 12}


class NothingFits(Exception):
    """No value so far can be an operator's operand."""


class Builder:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.args, self.types, self.shapes, self.params = [], [], [], [], {}
        self.row, self.values, self.used, self.inputs = [0], [], set(), {}

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def add(self, node, arrays, known):
        at = len(self.nodes)
        self.nodes.append(node)
        self.row.append(self.row[-1] + len(arrays))
        for a in arrays:
            self.types.append(str(a.dtype) if known else None)
            self.shapes.append(list(a.shape) if known else None)
        return [at, 0, 0]

    def null(self, array, constant):
        name = f"v{len(self.nodes)}"
        self.args.append(len(self.nodes))
        entry = self.add({"op": "null", "name": name, "inputs": []}, [array], True)
        (self.params if constant else self.inputs)[name] = array
        return entry

    def constant(self, values, dtype=np.int64):
        return self.null(np.asarray(values, dtype), True)

    def input(self, array):
        self.values.append((self.null(array, False), array))

    def op(self, op, inputs, results, **attrs):
        self.used |= {tuple(e) for e in inputs if e[0] >= 0}
        at = self.add({"op": op, "name": f"n{len(self.nodes)}", "attrs": attrs, "inputs": inputs}, results, False)[0]
        for k, r in enumerate(results):
            self.values.append(([at, k, 0], np.array(r, order="C")))

    def value(self, good=lambda a: True):
        fits = [v for v in self.values if 0 < v[1].size <= 800 and good(v[1])]
        if not fits:
            raise NothingFits
        return fits[self.rng.integers(len(fits))]

    def graph(self):
        heads = [e for e, _ in self.values if self.nodes[e[0]]["op"] != "null" and tuple(e) not in self.used]
        by_entry = {tuple(e): a for e, a in self.values}
        return {"heddle": {"version": 1, "opset": 18}, "nodes": self.nodes, "arg_nodes": self.args, "heads": heads,
                "attrs": {"dltype": ["list_str", self.types], "shape": ["list_shape", self.shapes]},
                "node_row_ptr": self.row}, [by_entry[tuple(e)] for e in heads]


def ranked(a):
    return 0 < a.ndim < 5


def transpose(b):
    e, x = b.value(ranked)
    perm = [int(i) for i in b.rng.permutation(x.ndim)]
    b.op("Transpose", [e], [x.transpose(perm)], perm=perm)


def take_slice(b):
    e, x = b.value(ranked)
    axis, step = int(b.rng.integers(x.ndim)), int(b.pick(1, 2, -1, -3))
    n = x.shape[axis]
    start, end = sorted(int(i) for i in b.rng.integers(0, n + 1, 2))
    which = [slice(None)] * x.ndim
    if step > 0:
        which[axis] = slice(start, end, step)
        bounds = [start, end if end < n else 2**40]
    else:
        which[axis] = slice(n - 1, None if start == 0 else start - 1, step)
        bounds = [-1, -2**40 if start == 0 else start - 1]
    b.op("Slice", [e, b.constant([bounds[0]]), b.constant([bounds[1]]), b.constant([axis - x.ndim]), b.constant([step])],
         [x[tuple(which)]])


def split(b):
    e, x = b.value(lambda a: ranked(a) and max(a.shape) > 1)
    axis = int(np.argmax(x.shape))
    at = sorted(int(i) for i in b.rng.integers(0, x.shape[axis] + 1, 2))
    sizes = [at[0], at[1] - at[0], x.shape[axis] - at[1]]
    b.op("Split", [e, b.constant(sizes)], np.split(x, at, axis), axis=axis)


def concat(b):
    e, x = b.value(ranked)
    axis = int(b.rng.integers(x.ndim))
    parts = [(e, x)] * 2 + [v for v in b.values if v[1].dtype == x.dtype and v[1].ndim == x.ndim and v[1].size < 800 and
                            np.delete(v[1].shape, axis).tolist() == np.delete(x.shape, axis).tolist()]
    parts = [parts[i] for i in b.rng.permutation(len(parts))[:3]]
    b.op("Concat", [p[0] for p in parts], [np.concatenate([p[1] for p in parts], axis)], axis=axis)


def tile(b):
    e, x = b.value(lambda a: ranked(a) and a.size < 200)
    times = [int(i) for i in b.rng.integers(1, 3, x.ndim)]
    b.op("Tile", [e, b.constant(times)], [np.tile(x, times)])


def pad(b):
    e, x = b.value(lambda a: ranked(a) and min(a.shape) > 1)
    mode = b.pick("constant", "reflect", "edge")
    axes = [int(i) for i in b.rng.permutation(x.ndim)[:b.rng.integers(1, x.ndim + 1)]]
    ends = [[0, 0] for _ in range(x.ndim)]
    for a in axes:
        ends[a] = [int(i) for i in b.rng.integers(0, 2, 2)]
    pads = [ends[a][0] for a in axes] + [ends[a][1] for a in axes]
    filled = mode == "constant" and b.pick(True, False)
    extra = {"constant_values": np.asarray(1, x.dtype)} if filled else {}
    b.op("Pad", [e, b.constant(pads), b.constant(1, x.dtype) if filled else [-1, 0, 0], b.constant(axes)],
         [np.pad(x, ends, mode=mode, **extra)], mode=mode)


def gather(b):
    e, x = b.value(ranked)
    axis = int(b.rng.integers(x.ndim))
    shape = b.pick((), (3,), (2, 2))
    at = b.rng.integers(-x.shape[axis], x.shape[axis], shape).astype(b.pick(np.int32, np.int64))
    index = b.null(at, b.pick(True, False))
    b.op("Gather", [e, index], [np.take(x, at, axis)], axis=axis)


def expand(b):
    e, x = b.value(lambda a: a.ndim < 4 and a.size < 200)
    shape = [2] + [3 if n == 1 else n for n in x.shape]
    b.op("Expand", [e, b.constant(shape)], [np.broadcast_to(x, shape)])


def where(b):
    e, x = b.value(ranked)
    mask = b.rng.integers(0, 2, x.shape[-1:]).astype(bool)
    other = b.rng.integers(0, 2, x.shape[:-1] + (1,)).astype(x.dtype)
    b.op("Where", [b.null(mask, False), e, b.null(other, True)], [np.where(mask, x, other)])


def cast(b):
    e, x = b.value(lambda a: np.all(np.abs(a.astype(np.float64)) < 100))
    to = b.pick(*ONNX_TYPES)
    if np.any(x.astype(np.float64) < 0) and to.startswith("u"):
        to = "int32"
    b.op("Cast", [e], [x.astype(to)], to=ONNX_TYPES[to])


def reshape(b):
    e, x = b.value()
    kind = b.pick("Reshape", "Flatten", "Unsqueeze", "Identity")
    if kind == "Reshape":
        b.op(kind, [e, b.constant([-1])], [x.reshape(-1)])
    elif kind == "Flatten":
        b.op(kind, [e], [x.reshape(int(np.prod(x.shape[:1])) if x.ndim else 1, -1)], axis=min(1, x.ndim))
    elif kind == "Unsqueeze":
        b.op(kind, [e, b.constant([0])], [x[None]])
    else:
        b.op(kind, [e], [x])


def dropout(b):
    e, x = b.value(lambda a: a.dtype == np.float32)
    b.op("Dropout", [e], [x, np.ones(x.shape, bool)])


def squeeze(b):
    e, x = b.value(lambda a: 1 in a.shape)
    axis = x.shape.index(1)
    b.op("Squeeze", [e, b.constant([axis])], [x.squeeze(axis)])


def order(b):
    e, x = b.value(lambda a: ranked(a) and a.dtype != bool)
    axis = int(b.rng.integers(x.ndim))
    if b.pick(True, False):
        op, keep = b.pick("ArgMax", "ArgMin"), int(b.pick(0, 1))
        at = (np.argmax if op == "ArgMax" else np.argmin)(x, axis)
        b.op(op, [e], [np.expand_dims(at, axis) if keep else at], axis=axis, keepdims=keep)
        return
    k, largest = int(b.rng.integers(1, x.shape[axis] + 1)), int(b.pick(0, 1))
    wide = x.astype(np.float64)
    at = np.take(np.argsort(-wide if largest else wide, axis, kind="stable"), range(k), axis)
    b.op("TopK", [e, b.constant([k])], [np.take_along_axis(x, at, axis), at], axis=axis, largest=largest)


def compare(b):
    e, x = b.value(lambda a: ranked(a) and a.dtype != bool)
    y = b.rng.integers(0, 5, x.shape[-1:]).astype(x.dtype)
    op, f = b.pick(("Equal", np.equal), ("Less", np.less), ("GreaterOrEqual", np.greater_equal), ("Max", np.maximum),
                   ("Min", np.minimum), ("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply))
    with np.errstate(over="ignore"):
        b.op(op, [e, b.null(y, b.pick(True, False))], [f(x, y)])


def logic(b):
    e, x = b.value(lambda a: a.dtype == bool)
    op, f = b.pick(("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor), ("Not", None))
    other = b.rng.integers(0, 2, x.shape).astype(bool)
    b.op(op, [e] + ([b.null(other, False)] if f else []), [f(x, other) if f else ~x])


def resize(b):
    e, x = b.value(lambda a: ranked(a) and a.dtype == np.float32 and a.size < 200)
    scales = [int(i) for i in b.rng.integers(1, 3, x.ndim)]
    y = x
    for axis, s in enumerate(scales):
        y = np.repeat(y, s, axis)
    b.op("Resize", [e, [-1, 0, 0], b.constant(scales, np.float32)], [y], mode="nearest", nearest_mode="floor",
         coordinate_transformation_mode="asymmetric")


KINDS = [transpose, take_slice, split, concat, tile, pad, gather, expand, where, cast, reshape, dropout, squeeze, order,
         compare, logic, resize]


def build(seed):
    b = Builder(seed)
    for dtype in (np.float32, b.pick(np.int64, np.int32), b.pick(np.int8, np.uint8, np.int16, np.uint16, np.uint32)):
        shape = tuple(int(i) for i in b.rng.integers(1, 6, b.rng.integers(1, 5)))
        x = b.rng.integers(0 if np.dtype(dtype).kind == "u" else -20, 20, shape)
        b.input((x / 2 if dtype == np.float32 else x).astype(dtype))
    b.input(b.rng.integers(0, 2, shape).astype(bool))
    while sum(n["op"] != "null" for n in b.nodes) < STEPS:
        try:
            KINDS[b.rng.integers(len(KINDS))](b)
        except NothingFits:
            pass
    return b


def run(ctx, b, graph, rules, devices):
    g = capi.Graph(json.dumps(graph))
    p = capi.Params(io.params_blob(b.params)) if b.params else None
    made = [x for x in (p, g) if x]
    try:
        m = capi.Model(ctx, g, p, ",".join(devices), rules)
        made.insert(0, m)
        ex = capi.Executor(m)
        made.insert(0, ex)
        for name, value in b.inputs.items():
            ex.set_input(name, value)
        ex.run()
        return ex.outputs()
    finally:
        for x in made:
            x.close()


@pytest.fixture(scope="module")
def ctx():
    pocl.need()
    made = capi.Context(sim__delay_us=0)
    yield made
    made.close()


@pytest.mark.parametrize("part", range(4))
def test_seeds(ctx, part):
    for seed in SEEDS[part::4]:
        b = build(seed)
        graph, want = b.graph()
        names = [n["name"] for n in graph["nodes"] if n["op"] != "null"]
        drawn = [f"{n}={DEVICES[b.rng.integers(len(DEVICES))]}" for n in names]
        for devices, rules in (["opencl:0"], []), (DEVICES, drawn):
            got = run(ctx, b, graph, rules, devices)
            for head, g, w in zip(graph["heads"], got, want):
                node = graph["nodes"][head[0]]
                words = f"seed {seed}, {node['name']} ({node['op']}, result {head[1]}), {rules or devices}"
                assert g.dtype == w.dtype and g.shape == w.shape, f"{words}: {g.dtype}{g.shape}, not {w.dtype}{w.shape}"
                assert np.array_equal(g, w), f"{words}: {g} is not {w}"


def test_every_operator_occurs():
    ops = {n["op"] for seed in SEEDS for n in build(seed).nodes}
    missing = {"Transpose", "Slice", "Split", "Concat", "Tile", "Pad", "Gather", "Expand", "Where", "Cast", "Reshape",
               "Flatten", "Unsqueeze", "Squeeze", "Identity", "Dropout", "ArgMax", "ArgMin", "TopK", "Equal", "Less",
               "Max", "Min", "Add", "And", "Or", "Xor", "Not", "Resize"} - ops
    assert not missing
