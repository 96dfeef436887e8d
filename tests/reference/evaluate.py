"""Evaluates a graph with onnx.reference in float64, with a bound on the error of float32 beside every value.
Also evaluates it in numpy float32, to say what an ordinary float32 execution makes of the same graph."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from . import bounds as error_bounds
from . import ops

EXACT = {"Concat", "Flatten", "MaxPool", "Relu", "Reshape"}  # these round nothing
ONNX_TYPES = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


def _check(graph):
    count = len(graph["nodes"])
    if graph["node_row_ptr"] != list(range(count + 1)):
        raise ValueError("only graphs whose nodes have one output each")
    if len({n["name"] for n in graph["nodes"]}) != count:
        raise ValueError("two nodes of one name")


def _arguments(node, known):
    return [None if i < 0 else known[i] for i, _, _ in node["inputs"]]


def _cast(value, kind):
    value = np.asarray(value)
    return value.astype(kind) if value.dtype.kind == "f" else value


def _padded_pool(node, x, kind, initial):
    """MaxPool as Pad and MaxPool: onnx.reference (1.23) takes unequal pads of a stride of 1 in the wrong order."""
    attrs = dict(node["attrs"])
    top, left, bottom, right = attrs.pop("pads")
    pads, low = node["name"] + ".pads", node["name"] + ".low"
    initial.append(numpy_helper.from_array(np.array([0, 0, top, left, 0, 0, bottom, right], np.int64), pads))
    initial.append(numpy_helper.from_array(np.array(-np.inf, kind), low))
    wide = node["name"] + ".padded"
    return [
        helper.make_node("Pad", [x, pads, low], [wide], name=wide),
        helper.make_node("MaxPool", [wide], [node["name"]], name=node["name"], **attrs),
    ]


def to_onnx(graph, params, kind=np.float64, outputs=None, for_reference=False):
    """An ONNX model of the graph with all floats made `kind`; its outputs are the heads, or the names given.
    for_reference writes what onnx.reference gets wrong in another way of the same meaning."""
    _check(graph)
    nodes, inputs, initial, names = [], [], [], [n["name"] for n in graph["nodes"]]
    for i, node in enumerate(graph["nodes"]):
        if node["op"] != "null":
            args = ["" if n < 0 else names[n] for n, _, _ in node["inputs"]]
            if for_reference and node["op"] == "MaxPool" and any(node["attrs"].get("pads", [])):
                nodes += _padded_pool(node, args[0], kind, initial)
                continue
            nodes.append(helper.make_node(node["op"], args, [names[i]], name=names[i], **node.get("attrs", {})))
        elif names[i] in params:
            initial.append(numpy_helper.from_array(np.ascontiguousarray(_cast(params[names[i]], kind)), names[i]))
        else:
            dtype = graph["attrs"]["dltype"][1][i]
            dtype = np.dtype(kind).name if dtype.startswith("float") else dtype
            inputs.append(helper.make_tensor_value_info(names[i], ONNX_TYPES[dtype], graph["attrs"]["shape"][1][i]))
    if outputs is None:
        outputs = list(dict.fromkeys(names[i] for i, _, _ in graph["heads"]))
    kinds = ONNX_TYPES[np.dtype(kind).name]
    infos = [helper.make_tensor_value_info(name, kinds, None) for name in outputs]
    body = helper.make_graph(nodes, "reference", inputs, infos, initial)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", graph["heddle"]["opset"])], ir_version=8)


def evaluate(graph, params, inputs):
    """Returns (values, bounds), both by node name and for every node, null nodes too: the float64 value of the node,
    and for each of its elements how far a float32 execution may be from it (0 for inputs and parameters)."""
    names = [n["name"] for n in graph["nodes"] if n["op"] != "null"]
    run = ReferenceEvaluator(to_onnx(graph, params, outputs=names, for_reference=True))
    got = dict(zip(names, run.run(None, {k: _cast(v, np.float64) for k, v in inputs.items()})))
    values, limits = [], []
    for node in graph["nodes"]:
        if node["op"] == "null":
            value = _cast(params[node["name"]] if node["name"] in params else inputs[node["name"]], np.float64)
            limit = np.zeros(value.shape)
        else:
            value = np.asarray(got[node["name"]])
            if value.dtype != np.float64:
                raise TypeError(f"{node['name']}: the reference left float64 for {value.dtype}")
            args, errs = _arguments(node, values), _arguments(node, limits)
            limit = error_bounds.bound(node["op"], node.get("attrs", {}), args, errs, value)
        values.append(value)
        limits.append(limit)
    order = [n["name"] for n in graph["nodes"]]
    return dict(zip(order, values)), dict(zip(order, limits))


def numpy_values(graph, params, inputs, kind, change=None):
    """The value of every node by name, calculated by numpy with floats of type `kind`. change(op, value): what is taken for
    the value of an operator."""
    _check(graph)
    values = []
    for node in graph["nodes"]:
        name = node["name"]
        if node["op"] == "null":
            values.append(_cast(params[name] if name in params else inputs[name], kind))
        else:
            value = ops.apply(node["op"], node.get("attrs", {}), _arguments(node, values))
            values.append(value if change is None else change(node["op"], value))
    return dict(zip([n["name"] for n in graph["nodes"]], values))


class Float32(dict):
    """The float32 values of every node by name, as numpy calculates them. Their error is one of many that float32 may
    have: a rounding that happens to be small early in a graph can leave it several times below what is usual."""

    def __init__(self, *case):
        super().__init__(numpy_values(*case, np.float32))
        self.case = case

    def moved(self, seed):
        """The same with every result that is rounded moved by at most a unit in the last place, at random."""
        rng = np.random.default_rng(seed)

        def move(op, value):
            if op in EXACT or value.dtype != np.float32:
                return value
            return value + np.spacing(value) * rng.integers(-1, 2, value.shape).astype(np.float32)
        return numpy_values(*self.case, np.float32, move)


def float32_error(graph, params, inputs):
    """The float32 values of every node by name: their distance from `evaluate`'s is the error to be compared with."""
    return Float32(graph, params, inputs)
