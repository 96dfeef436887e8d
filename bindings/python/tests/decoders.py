"""Tiny attention decoders with a cache, as exporters write them, and the loop that feeds their outputs back by hand."""
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

HEADS, WIDTH, WORDS = 2, 4, 11
EMBEDDED = HEADS * WIDTH
INFO = helper.make_tensor_value_info


class Net:
    def __init__(self, seed):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def constant(self, name, value):
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, name, *shape):
        return self.constant(name, (self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output + "_node", **attributes))
        return output

    def model(self, inputs, outputs, opset=17):
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        onnx.checker.check_model(model)
        return model


def growing(layers=2, seed=0):
    """past_key_values.N.key and present.N.key: Concat along a dimension that grows with each run."""
    net = Net(seed)
    inputs = [INFO("ids", TensorProto.INT64, ["batch", "sequence"])]
    outputs = [INFO("logits", TensorProto.FLOAT, ["batch", "sequence", WORDS])]
    x = net.node("Gather", [net.weights("table", WORDS, EMBEDDED), "ids"], "x0")
    net.constant("split", np.array([0, 0, HEADS, WIDTH], np.int64))
    net.constant("joined", np.array([0, 0, EMBEDDED], np.int64))
    net.constant("scale", np.float32(WIDTH ** -0.5))
    for n in range(layers):
        q, k, v = (net.node("Transpose", [net.node("Reshape", [net.node(
            "MatMul", [x, net.weights(f"w{t}{n}", EMBEDDED, EMBEDDED)], f"{t}m{n}"), "split"], f"{t}r{n}")], f"{t}{n}",
            perm=[0, 2, 1, 3]) for t in "qkv")
        for what in "key", "value":
            inputs.append(INFO(f"past_key_values.{n}.{what}", TensorProto.FLOAT, ["batch", HEADS, "past", WIDTH]))
            outputs.append(INFO(f"present.{n}.{what}", TensorProto.FLOAT, ["batch", HEADS, "total", WIDTH]))
        keys = net.node("Concat", [f"past_key_values.{n}.key", k], f"present.{n}.key", axis=2)
        values = net.node("Concat", [f"past_key_values.{n}.value", v], f"present.{n}.value", axis=2)
        scores = net.node("Mul", [net.node("MatMul", [q, net.node("Transpose", [keys], f"kt{n}", perm=[0, 1, 3, 2])],
                                           f"s{n}"), "scale"], f"ss{n}")
        mixed = net.node("MatMul", [net.node("Softmax", [scores], f"p{n}", axis=-1), values], f"a{n}")
        mixed = net.node("Reshape", [net.node("Transpose", [mixed], f"at{n}", perm=[0, 2, 1, 3]), "joined"], f"ar{n}")
        x = net.node("Add", [x, net.node("MatMul", [mixed, net.weights(f"wo{n}", EMBEDDED, EMBEDDED)], f"o{n}")], f"x{n + 1}")
    net.node("MatMul", [x, net.weights("head", EMBEDDED, WORDS)], "logits")
    return net.model(inputs, outputs)


def fixed(op="ScatterND", room=64, seed=1):
    """A cache of a fixed size, written at a position: ScatterND, or TensorScatter of opset 24."""
    net = Net(seed)
    cache = [room, HEADS, WIDTH] if op == "ScatterND" else [1, HEADS, room, WIDTH]
    inputs = [INFO("ids", TensorProto.INT64, [1]), INFO("at", TensorProto.INT64, [1]),
              INFO("mask", TensorProto.FLOAT, [room])]
    inputs += [INFO(f"cache_{t}", TensorProto.FLOAT, cache) for t in "kv"]
    outputs = [INFO("logits", TensorProto.FLOAT, [1, WORDS])]
    outputs += [INFO(f"written_{t}", TensorProto.FLOAT, cache) for t in "kv"]
    x = net.node("Gather", [net.weights("table", WORDS, EMBEDDED), "ids"], "x0")
    shape = [1, HEADS, WIDTH] if op == "ScatterND" else [1, HEADS, 1, WIDTH]
    net.constant("split", np.array(shape, np.int64))
    net.constant("joined", np.array([1, EMBEDDED], np.int64))
    q, k, v = (net.node("Reshape", [net.node("MatMul", [x, net.weights("w" + t, EMBEDDED, EMBEDDED)], t + "m"), "split"], t)
               for t in "qkv")
    if op == "ScatterND":
        where = net.node("Reshape", ["at", net.constant("column", np.array([1, 1], np.int64))], "where")
        keys = net.node("ScatterND", ["cache_k", where, k], "written_k")
        values = net.node("ScatterND", ["cache_v", where, v], "written_v")
        keys, values = (net.node("Transpose", [keys], "kt", perm=[1, 2, 0]), net.node("Transpose", [values], "vt", perm=[1, 0, 2]))
        q, back = net.node("Transpose", [q], "qt", perm=[1, 0, 2]), [1, 0, 2]
    else:
        keys = net.node("TensorScatter", ["cache_k", k, "at"], "written_k", axis=2)
        values = net.node("TensorScatter", ["cache_v", v, "at"], "written_v", axis=2)
        keys, back = net.node("Transpose", [keys], "kt", perm=[0, 1, 3, 2]), [0, 2, 1, 3]
    scores = net.node("Add", [net.node("MatMul", [q, keys], "s"), "mask"], "ss")
    mixed = net.node("MatMul", [net.node("Softmax", [scores], "p", axis=-1), values], "a")
    mixed = net.node("Reshape", [net.node("Transpose", [mixed], "at_", perm=back), "joined"], "ar")
    x = net.node("Add", [x, net.node("MatMul", [mixed, net.weights("wo", EMBEDDED, EMBEDDED)], "o")], "x1")
    net.node("MatMul", [x, net.weights("head", EMBEDDED, WORDS)], "logits")
    return net.model(inputs, outputs, 17 if op == "ScatterND" else 24)


class Loop:
    """What a decoder gives where each output is fed back by hand; runs by onnx.reference."""
    def __init__(self, model, batch=1):
        self.run, self.batch = ReferenceEvaluator(model).run, batch
        self.names = [one.name for one in model.graph.output]
        shapes = {one.name: [d.dim_value for d in one.type.tensor_type.shape.dim] for one in model.graph.input}
        self.state = {name: np.zeros([batch if i == 0 and size == 0 else size for i, size in enumerate(shape)], np.float32)
                      for name, shape in shapes.items() if name.startswith(("past", "cache"))}

    def step(self, feed):
        out = dict(zip(self.names, self.run(None, {**feed, **self.state})))
        for name, value in out.items():
            other = name.replace("present", "past_key_values").replace("written", "cache")
            if other in self.state:
                self.state[other] = value
        return out


def feeds(model, tokens, seed=3, batch=1, first=1):
    """What the runs are given besides the state: first tokens at once, then one by one."""
    rng = np.random.default_rng(seed)
    room = next((one.type.tensor_type.shape.dim[0].dim_value for one in model.graph.input if one.name == "mask"), 0)
    for t in range(tokens):
        if room:
            yield {"ids": rng.integers(0, WORDS, (1,)), "at": np.array([t]),
                   "mask": np.where(np.arange(room) <= t, 0, -1e9).astype(np.float32)}
        else:
            yield {"ids": rng.integers(0, WORDS, (batch, 1 if t else first))}
