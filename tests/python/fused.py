"""Random elementwise expressions: as text, as a graph of ordinary nodes, and as numbers in float64 by numpy and math."""
import json
import math

import numpy as np

import capi
from reference import io

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


# name: (function of float64 arrays and attributes, operands). Domains are kept by what a tree puts inside.
UNARY = {
    "Abs": np.abs,
    "Elu": lambda x, alpha=1.0: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "Erf": erf,
    "Gelu": gelu,
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu": lambda x, alpha=0.01: np.where(x < 0, alpha * x, x),
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
}
BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
}
MANY = {"Min": np.minimum, "Max": np.maximum}
ATTRS = {"Elu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "LeakyRelu": ["alpha"]}


class Node:
    def __init__(self, op, args=(), attrs=None, value=None):
        self.op, self.args, self.attrs, self.value = op, list(args), attrs or {}, value

    def text(self):
        if self.op == "x":
            return f"x{self.value}"
        if self.op == "number":
            return repr(float(self.value))
        words = [a.text() for a in self.args] + [f"{k}={v}" for k, v in self.attrs.items()]
        return f"{self.op}({', '.join(words)})"

    def numbers(self, inputs):
        if self.op == "x":
            return inputs[self.value]
        if self.op == "number":
            return np.float64(np.float32(self.value))
        args = [a.numbers(inputs) for a in self.args]
        attrs = {k: v if isinstance(v, str) else float(np.float32(v)) for k, v in self.attrs.items()}
        if self.op in MANY:
            out = args[0]
            for a in args[1:]:
                out = MANY[self.op](out, a)
            return out
        table = {**UNARY, **BINARY, "Clip": lambda x, low=-np.inf, high=np.inf: np.clip(x, low, high),
                 "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Div": np.divide, "Pow": np.power}
        return table[self.op](*args, **attrs)


def random_tree(rng, depth, n_inputs):
    """Values stay within a few units; Exp, Log, Sqrt, Div and Pow get operands that they like."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            return Node("number", value=round(float(rng.uniform(-2, 2)), 3))
        return Node("x", value=int(rng.integers(n_inputs)))

    def sub():
        return random_tree(rng, depth - 1, n_inputs)

    def positive():
        return Node("Add", [Node("Abs", [sub()]), Node("number", value=0.5)])

    r = rng.random()
    if r < 0.38:
        op = list(UNARY)[int(rng.integers(len(UNARY)))]
        attrs = {k: round(float(rng.uniform(0.05, 0.6)), 3) for k in ATTRS.get(op, []) if rng.random() < 0.6}
        if op == "Gelu" and rng.random() < 0.5:
            attrs["approximate"] = "tanh"
        return Node(op, [sub()], attrs)
    if r < 0.72:
        op = list(BINARY)[int(rng.integers(len(BINARY)))]
        args = [sub(), sub()]
        if op == "Mul":
            args[0] = Node("Tanh", [args[0]])
        if op == "PRelu":  # its slope is no larger than its operand
            args[0] = Node("Add", [args[0], Node("x", value=0)])
        return Node(op, args)
    if r < 0.82:
        return Node(("Min", "Max")[int(rng.integers(2))], [sub() for _ in range(int(rng.integers(1, 5)))])
    if r < 0.88:
        bounds = sorted(round(float(b), 3) for b in rng.uniform(-1.5, 1.5, 2))
        return Node("Clip", [sub()] + [Node("number", value=b) for b in bounds[:int(rng.integers(3))]])
    if r < 0.91:
        return Node("Exp", [Node("Min", [sub(), Node("number", value=1.5)])])
    if r < 0.94:
        return Node(("Log", "Sqrt")[int(rng.integers(2))], [positive()])
    if r < 0.97:
        return Node("Div", [sub(), positive()])
    return Node("Pow", [positive(), Node("Tanh", [sub()])])


def steps(tree):
    if tree.op in ("x", "number"):
        return 0
    own = max(len(tree.args) - 1, 0) if tree.op in MANY else 1
    return own + sum(steps(a) for a in tree.args)


def inputs_of(tree):
    return {tree.value} if tree.op == "x" else set().union(*[inputs_of(a) for a in tree.args], set())


def numbers_of(tree):
    found = {tree.value} if tree.op == "number" else set().union(*[numbers_of(a) for a in tree.args], set())
    return found | ({"-inf", "inf"} if tree.op == "Clip" else set())


def renumber(tree, names):
    if tree.op == "x":
        tree.value = names[tree.value]
    for a in tree.args:
        renumber(a, names)


def random_case(seed, most_steps=24):
    """A tree and its inputs' values: some broadcast, one of the result's full shape."""
    rng = np.random.default_rng(seed)
    while True:
        n_inputs = int(rng.integers(1, 9))
        tree = random_tree(rng, int(rng.integers(1, 6)), n_inputs)
        used = sorted(inputs_of(tree))
        if tree.op not in ("x", "number") and used and steps(tree) <= most_steps and len(numbers_of(tree)) <= 8:
            break
    renumber(tree, {k: i for i, k in enumerate(used)})
    rank = int(rng.integers(0, 5))
    shape = [int(rng.integers(1, 9)) for _ in range(rank)]
    if seed % 5 == 0:
        shape = [int(rng.integers(200, 3000))]
    if seed % 17 == 0 and shape:
        shape[0] = 0
    values = []
    for k in range(len(used)):
        own = [d if k == 0 or rng.random() < 0.6 else 1 for d in shape]
        if k > 0 and rng.random() < 0.3:
            own = own[int(rng.integers(len(own) + 1)):]
        values.append(rng.uniform(-2, 2, own).astype(np.float32))
    return tree, values


class Builder:
    """A graph in Heddle's JSON."""

    def __init__(self, opset=17):
        self.nodes, self.params, self.shapes, self.dtypes, self.opset = [], {}, [], [], opset

    def null(self, name, value, is_param=False):
        if is_param:
            self.params[name] = value
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        self.shapes.append(list(value.shape))
        self.dtypes.append(value.dtype.name)
        return len(self.nodes) - 1

    def add(self, op, inputs, domain="", **attrs):
        node = {"op": op, "name": f"n{len(self.nodes)}", "inputs": [[i, 0, 0] for i in inputs]}
        if domain:
            node["domain"] = domain
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        self.shapes.append(None)
        self.dtypes.append(None)
        return len(self.nodes) - 1

    def tree(self, tree, ids):
        if tree.op == "x":
            return ids[tree.value]
        if tree.op == "number":
            return self.null(f"c{len(self.nodes)}", np.array(tree.value, np.float32), True)
        args = [self.tree(a, ids) for a in tree.args]
        return self.add(tree.op, args, "heddle" if tree.op == "Gelu" else "", **tree.attrs)

    def text(self, heads):
        n = len(self.nodes)
        return json.dumps({"heddle": {"version": 1, "opset": self.opset}, "nodes": self.nodes,
                           "arg_nodes": [i for i, x in enumerate(self.nodes) if x["op"] == "null"],
                           "heads": [[h, 0, 0] for h in heads],
                           "attrs": {"dltype": ["list_str", self.dtypes], "shape": ["list_shape", self.shapes]},
                           "node_row_ptr": list(range(n + 1))})


def run(ctx, builder, heads, inputs, devices, keep=(), runs=1):
    """The outputs, and the plan."""
    g = capi.Graph(builder.text(heads))
    p = capi.Params(io.params_blob(builder.params)) if builder.params else None
    made = [x for x in (p, g) if x]
    try:
        m = capi.Model(ctx, g, p, devices, keep=keep)
        made.insert(0, m)
        ex = capi.Executor(m)
        made.insert(0, ex)
        for name, value in inputs.items():
            ex.set_input(name, value)
        for _ in range(runs):
            ex.run()
        return ex.outputs(), m.explain_json()
    finally:
        for x in made:
            x.close()


def as_node(tree, values):
    b = Builder()
    ids = [b.null(f"x{k}", v) for k, v in enumerate(values)]
    return b, b.add("FusedElementwise", ids, "heddle", expression=tree.text())


def as_nodes(tree, values):
    b = Builder()
    ids = [b.null(f"x{k}", v) for k, v in enumerate(values)]
    return b, b.tree(tree, ids)


def close(label, got, want, shape=None):
    assert got.shape == np.shape(want), f"{label}: shape {got.shape}, expected {np.shape(want)}"
    error = np.abs(got.astype(np.float64) - want)
    bound = 4e-6 * (1 + np.abs(want))
    assert np.all(error <= bound), f"{label}: {np.max(error - bound, initial=0)} over the bound"
