"""Reads digits.json and digits.params with a reader that shares nothing with their writer, and checks them.
The graph becomes an ONNX model in memory, is run by onnx.reference in float64, and is held against expected.npy."""

import json
import struct

import numpy as np

DTYPES = {(0, 64): "<i8", (2, 32): "<f4"}


class Blob:
    """A cursor over bytes that refuses to run past the end."""

    def __init__(self, data):
        self.data, self.at = memoryview(data), 0

    def bytes(self, count):
        if count < 0 or count > len(self.data) - self.at:
            raise ValueError(f"params: {count} bytes wanted at {self.at}, the file has {len(self.data)}")
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def numbers(self, form):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))


def read_params(path):
    blob = Blob(path.read_bytes())
    magic, _, count = blob.numbers("QQQ")
    if magic != 0xF7E58D4F05049CB7:
        raise ValueError(f"params: not a parameter list (magic {magic:#x})")
    names = [blob.bytes(blob.numbers("Q")[0]).decode() for _ in range(count)]
    if blob.numbers("Q")[0] != count:
        raise ValueError("params: two counts that differ")
    tensors = {}
    for name in names:
        magic, _, device, _, ndim = blob.numbers("QQiii")
        code, bits, lanes = blob.numbers("BBH")
        shape = blob.numbers(f"{ndim}q")
        (size,) = blob.numbers("q")
        if magic != 0xDD5E40F096B4A13F or device != 1 or lanes != 1:
            raise ValueError(f"params: bad record of {name}")
        tensors[name] = np.frombuffer(blob.bytes(size), DTYPES[code, bits]).reshape(shape)
    if blob.at != len(blob.data):
        raise ValueError("params: bytes left over")
    return tensors


def onnx_model(graph, params, output_shape):
    """The graph in ONNX with every float32 made float64, so that the evaluation is."""
    from onnx import TensorProto, helper, numpy_helper

    entry = {}  # entry id -> value name
    dtypes, shapes = graph["attrs"]["dltype"][1], graph["attrs"]["shape"][1]
    rows = graph["node_row_ptr"]
    initial, inputs, nodes = [], [], []
    for i, node in enumerate(graph["nodes"]):
        name, e = node["name"], rows[i]
        entry[e] = name
        if node["op"] != "null":
            args = ["" if n < 0 else entry[rows[n] + k] for n, k, _ in node["inputs"]]
            nodes.append(helper.make_node(node["op"], args, [name], name=name, **node.get("attrs", {})))
            continue
        if i not in graph["arg_nodes"]:
            raise ValueError(f"{name} is missing in arg_nodes")
        if name not in params:
            inputs.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, shapes[e]))
            continue
        value = params[name]
        if [value.dtype.name, list(value.shape)] != [dtypes[e], shapes[e]]:
            raise ValueError(f"{name} is {value.dtype} {value.shape} in the params, else in the graph")
        wide = value.astype(np.float64) if value.dtype == np.float32 else value
        initial.append(numpy_helper.from_array(wide, name))
    heads = [entry[rows[n] + k] for n, k, _ in graph["heads"]]
    outputs = [helper.make_tensor_value_info(h, TensorProto.DOUBLE, output_shape) for h in heads]
    body = helper.make_graph(nodes, "digits", inputs, outputs, initial)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", graph["heddle"]["opset"])], ir_version=8)


def check(folder):
    import onnx
    from onnx.reference import ReferenceEvaluator

    graph = json.loads((folder / "digits.json").read_text(encoding="utf-8"))
    params = read_params(folder / "digits.params")
    images, labels, expected = (np.load(folder / f"{n}.npy") for n in ("images", "labels", "expected"))
    model = onnx_model(graph, params, [1, expected.shape[1]])
    onnx.checker.check_model(model, full_check=True)
    run = ReferenceEvaluator(model)
    got = np.concatenate([run.run(None, {"image": x[None].astype(np.float64)})[0] for x in images])
    error = float(np.abs(got - expected).max())
    right = float((got.argmax(axis=1) == labels).mean())
    devices = {}
    for node in graph["nodes"]:
        if node["op"] != "null":
            devices[node["device"]] = devices.get(node["device"], 0) + 1
    count = sum(p.size for p in params.values() if p.dtype == np.float32)
    print(f"{len(graph['nodes'])} nodes, {count} parameters, operators by device {devices}")
    print(f"max error against expected.npy {error:.3g}, accuracy {right:.4f} of {len(labels)}")
    ok = error <= 1e-6 and right >= 0.975
    print("ok" if ok else "FAILED: expected error <= 1e-6 and accuracy >= 0.975")
    return 0 if ok else 1
