"""Makes the quantised digits network: the float network of examples/digits, calibrated on the first images, in the form
that exporters write (QuantizeLinear and DequantizeLinear around every operator).

    quantise.py FOLDER-OF-DIGITS OUT.onnx [--batch N] [--images N]

Weights are int8 around 0, with a scale for each channel of the result; activations are uint8, from the least to the
greatest value that calibration met. Only numpy and onnx are needed."""

import argparse
import json
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

CALIBRATED = ("Conv", "Gemm")  # operators that the accelerator shall run, with the Relu behind them


class Writer:
    """Collects the nodes and constants of the quantised graph."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, value):
        self.constants.setdefault(name, np.asarray(value, order="C"))
        return name

    def node(self, op, inputs, name, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def through_bytes(self, value, name, scale, zero):
        """The value after it has been uint8 and is float again."""
        s = self.constant(f"{name}.scale", np.float32(scale))
        z = self.constant(f"{name}.zero", np.uint8(zero))
        self.node("QuantizeLinear", [value, s, z], f"{name}.q")
        return self.node("DequantizeLinear", [f"{name}.q", s, z], f"{name}.dq")

    def weights(self, name, w):
        """int8 with a scale for each of the first dimension, as floats."""
        flat = np.abs(w.reshape(len(w), -1)).max(axis=1)
        scale = np.where(flat > 0, flat / 127, 1).astype(np.float32)
        each = scale.reshape([-1] + [1] * (w.ndim - 1))
        q = self.constant(f"{name}.q", np.clip(np.rint(w / each), -127, 127).astype(np.int8))
        zero = self.constant(f"{name}.zero", np.zeros(len(w), np.int8))
        self.node("DequantizeLinear", [q, self.constant(f"{name}.scale", scale), zero], f"{name}.dq", axis=0)
        return f"{name}.dq", scale

    def bias(self, name, b, scale):
        q = self.constant(f"{name}.q", np.rint(b / scale).astype(np.int32))
        zero = self.constant(f"{name}.zero", np.zeros(len(b), np.int32))
        steps_of = self.constant(f"{name}.scale", scale.astype(np.float32))
        self.node("DequantizeLinear", [q, steps_of, zero], f"{name}.dq", axis=0)
        return f"{name}.dq"


def steps(values):
    """Scale and zero point of uint8 for these values; 0 is one of the steps."""
    low, high = min(float(values.min()), 0), max(float(values.max()), 0)
    scale = np.float32((high - low) / 255 if high > low else 1)
    return scale, int(np.clip(np.rint(-low / scale), 0, 255))


def quantise(graph, params, images, layers, batch):
    """The ONNX model for so many images a run. images: float32 [n, 1, 8, 8], what the ranges are taken from."""
    nodes = graph["nodes"]
    values, _ = layers.forward(nodes, {**params, "image": images})
    users = {}
    for node in nodes:
        for entry in node["inputs"]:
            users.setdefault(entry[0], []).append(node)
    w, made, quantum = Writer(), {}, {}  # made: node -> its value as floats; quantum: value -> scale and zero point

    def as_bytes(i):
        """The operand of a convolution, which was bytes."""
        value = made[i]
        if value not in quantum:
            name = f"{nodes[i]['name']}.in"
            quantum[f"{name}.dq"] = steps(values[i])
            made[i] = w.through_bytes(value, name, *quantum[f"{name}.dq"])
        return made[i]

    for i, node in enumerate(nodes):
        name, op, attrs = node["name"], node["op"], node.get("attrs", {})
        ids = [entry[0] for entry in node["inputs"]]
        if op == "null":
            made[i] = name if name == "image" else None
            continue
        if op in CALIBRATED:
            x = as_bytes(ids[0])
            weight, scale = w.weights(nodes[ids[1]]["name"], params[nodes[ids[1]]["name"]])
            bias = w.bias(nodes[ids[2]]["name"], params[nodes[ids[2]]["name"]], scale * quantum[x][0])
            made[i] = w.node(op, [x, weight, bias], name, **attrs)
        else:
            names = [nodes[j]["name"] for j in ids]
            inputs = [made[j] if made[j] is not None else w.constant(n, params[n]) for j, n in zip(ids, names)]
            made[i] = w.node(op, inputs, name, **attrs)
            if op == "MaxPool" and inputs[0] in quantum:  # the same steps: it can compare bytes
                quantum[f"{name}.y.dq"] = quantum[inputs[0]]
                made[i] = w.through_bytes(name, f"{name}.y", *quantum[inputs[0]])
        relu = op == "Relu"
        alone = op in CALIBRATED and [u["op"] for u in users.get(i, [])] != ["Relu"]
        if relu or alone:
            quantum[f"{name}.y.dq"] = steps(values[i])
            made[i] = w.through_bytes(made[i], f"{name}.y", *quantum[f"{name}.y.dq"])
    head = made[graph["heads"][0][0]]
    body = helper.make_graph(
        w.nodes, "digits-int8",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 1, 8, 8])],
        [helper.make_tensor_value_info(head, TensorProto.FLOAT, [batch, 10])],
        [numpy_helper.from_array(value, name) for name, value in w.constants.items()])
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("digits", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=1, help="images a run (1)")
    parser.add_argument("--images", type=int, default=60, help="how many of the images calibrate (60)")
    args = parser.parse_args()
    sys.path.insert(0, str(args.digits))
    import check
    import layers
    graph = json.loads((args.digits / "digits.json").read_text(encoding="utf-8"))
    params = check.read_params(args.digits / "digits.params")
    images = np.load(args.digits / "images.npy")[: args.images].astype(np.float32)
    save(quantise(graph, params, images, layers, args.batch), args.out)
    print(f"{args.out}: calibrated on {len(images)} images")


if __name__ == "__main__":
    main()
