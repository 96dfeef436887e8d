"""The digits network as a Heddle graph, its first weights, and the writers of digits.json and digits.params.
The graph is a plain dict in the graph JSON dialect; the weights are a dict from null node name to array."""

import json
import struct

import numpy as np

CPU, SIDE = "cpu", "sim:0"  # SIDE runs one of the two parallel branches


class Builder:
    """Appends nodes in order; every operator has one output, so a node's id is also its entry."""

    def __init__(self, rng):
        self.rng, self.nodes, self.tensors = rng, [], {}

    def null(self, name, value):
        self.tensors[name] = value
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        return len(self.nodes) - 1

    def op(self, op, name, inputs, device=CPU, **attrs):
        node = {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs]}
        if attrs:
            node["attrs"] = attrs
        node["device"] = device
        self.nodes.append(node)
        return len(self.nodes) - 1

    def conv(self, name, x, cin, cout, k, device=CPU, gain=2.0):
        std = (gain / (cin * k * k)) ** 0.5
        w = self.null(name + ".weight", self.rng.normal(0, std, (cout, cin, k, k)).astype(np.float32))
        b = self.null(name + ".bias", np.zeros(cout, np.float32))
        return self.op("Conv", name, [x, w, b], device, kernel_shape=[k, k], pads=[k // 2] * 4)

    def relu(self, name, x, device=CPU):
        return self.op("Relu", name, [x], device)


def build(rng):
    """Returns (graph, first weights); the node that gives the logits is named `classes`."""
    g = Builder(rng)
    image = g.null("image", np.zeros((1, 1, 8, 8), np.float32))
    x = g.op("Mul", "scale", [image, g.null("scale.factor", np.full((1, 1, 1, 1), 1 / 16, np.float32))])
    stem = g.relu("stem.relu", g.conv("stem", x, 1, 16, 3))

    # A residual block.
    y = g.relu("res1.relu", g.conv("res1", stem, 16, 16, 3))
    y = g.op("Add", "res.add", [stem, g.conv("res2", y, 16, 16, 3, gain=0.5)])
    y = g.relu("res.relu", y)

    # Two branches side by side: small windows on one device, large ones on the other.
    b = g.relu("wide1.relu", g.conv("wide1", y, 16, 8, 1, SIDE), SIDE)
    b = g.relu("wide2.relu", g.conv("wide2", b, 8, 24, 5, SIDE), SIDE)
    b = g.op("MaxPool", "wide.pool", [b], SIDE, kernel_shape=[2, 2], strides=[2, 2])
    a = g.relu("fine1.relu", g.conv("fine1", y, 16, 24, 3))
    a = g.op("MaxPool", "fine.pool", [a], kernel_shape=[2, 2], strides=[2, 2])
    y = g.op("Concat", "join", [a, b], axis=1)

    # A learned scale for each channel, then what is seen anywhere (average) and where it is seen (map).
    y = g.op("Mul", "gain", [y, g.null("gain.factor", np.ones((1, 48, 1, 1), np.float32))])
    y = g.relu("mix.relu", g.conv("mix", y, 48, 48, 3))
    average = g.op("Flatten", "average.flat", [g.op("GlobalAveragePool", "average", [y])], axis=1)
    where = g.relu("map.relu", g.conv("map", y, 48, 8, 1))
    where = g.op("Reshape", "map.flat", [where, g.null("map.shape", np.array([-1, 128], np.int64))])
    y = g.op("Concat", "features", [average, where], axis=1)
    w = g.null("classes.weight", rng.normal(0, 0.05, (10, 176)).astype(np.float32))
    bias = g.null("classes.bias", np.zeros(10, np.float32))
    y = g.op("Gemm", "classes", [y, w, bias], transB=1)
    head = g.op("Softmax", "digit", [y], axis=1)

    nulls = [i for i, n in enumerate(g.nodes) if n["op"] == "null"]
    tensor = [g.tensors.get(n["name"]) for n in g.nodes]
    graph = {
        "heddle": {"version": 1, "opset": 17},
        "nodes": g.nodes,
        "arg_nodes": nulls,
        "heads": [[head, 0, 0]],
        "node_row_ptr": list(range(len(g.nodes) + 1)),
        "attrs": {
            "dltype": ["list_str", [None if t is None else str(t.dtype) for t in tensor]],
            "shape": ["list_shape", [None if t is None else list(t.shape) for t in tensor]],
        },
    }
    return graph, {name: t for name, t in g.tensors.items() if name != "image"}


def write_graph(path, graph):
    """One node a line, so that a change of the graph shows as a change of lines."""
    parts = []
    for key, value in graph.items():
        if key == "nodes":
            lines = ",\n".join("  " + json.dumps(n, allow_nan=False) for n in value)
            parts.append(' "nodes": [\n' + lines + "]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("{\n" + ",\n".join(parts) + "\n}\n")


def write_params(path, weights):
    """TVM's parameter list: header, names, then one record a tensor; little-endian, no padding."""
    codes = {"float32": (2, 32), "int64": (0, 64)}
    out = [struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(weights))]
    for name in weights:
        raw = name.encode()
        out.append(struct.pack("<Q", len(raw)) + raw)
    out.append(struct.pack("<Q", len(weights)))
    for value in weights.values():
        code, bits = codes[str(value.dtype)]
        data = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
        out.append(struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, value.ndim, code, bits, 1))
        out.append(struct.pack(f"<{value.ndim}qq", *value.shape, len(data)) + data)
    with open(path, "wb") as f:
        f.write(b"".join(out))
