"""What the tests of optimisations share: a network by names, as a graph of Heddle's and as an ONNX model; a run with its
plan; and onnx.reference on float64 as what is right."""
import json
import math

import capi
import numpy as np
import onnx
import onnx.helper
import onnx.reference

from reference import io


class Net:
    def __init__(self, opset=17, wish=None):
        self.opset, self.wish, self.nodes, self.nulls, self.params = opset, wish, [], {}, {}
        self.rng = np.random.default_rng(7)

    def x(self, name, *shape, dtype="float32"):
        self.nulls[name] = (dtype, list(shape))
        return name

    def w(self, name, value):
        value = np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        self.params[name] = value
        self.nulls[name] = (value.dtype.name, list(value.shape))
        return name

    def weights(self, name, *shape, low=-1.0, high=1.0):
        return self.w(name, self.rng.uniform(low, high, shape).astype(np.float32))

    def op(self, kind, *inputs, name=None, outputs=1, domain="", **attrs):
        name = name or f"{kind.lower()}{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}:{i}" for i in range(outputs)]
        self.nodes.append((kind, name, list(inputs), names, domain, attrs))
        return name if outputs == 1 else names

    def device(self, name, device):
        """An annotation of a node."""
        self.nodes = [(*n[:5], {**n[5], "_device": device}) if n[1] == name else n for n in self.nodes]

    def text(self, heads):
        entry, nodes, dtypes, shapes, rows = {}, [], [], [], [0]
        for name, (dtype, shape) in self.nulls.items():
            entry[name] = [len(nodes), 0, 0]
            nodes.append({"op": "null", "name": name, "inputs": []})
            dtypes.append(dtype), shapes.append(shape), rows.append(rows[-1] + 1)
        for kind, name, inputs, outputs, domain, attrs in self.nodes:
            node = {"op": kind, "name": name, "inputs": [entry[i] if i else [-1, 0, 0] for i in inputs]}
            shown = {k: v for k, v in attrs.items() if k != "_device"}
            if shown:
                node["attrs"] = shown
            if "_device" in attrs:
                node["device"] = attrs["_device"]
            if domain:
                node["domain"] = domain
            for i, o in enumerate(outputs):
                entry[o] = [len(nodes), i, 0]
            nodes.append(node)
            dtypes += [None] * len(outputs)
            shapes += [None] * len(outputs)
            rows.append(rows[-1] + len(outputs))
        head = {"version": 1, "opset": self.opset}
        if self.wish is not None:
            head["optimize"] = self.wish
        return json.dumps({"heddle": head, "nodes": nodes, "arg_nodes": list(range(len(self.nulls))),
                           "heads": [entry[h] for h in heads],
                           "attrs": {"dltype": ["list_str", dtypes], "shape": ["list_shape", shapes]},
                           "node_row_ptr": rows})

    def values(self, **fixed):
        """Values for the inputs that are no parameters: dimensions that are names are 3."""
        made = {}
        for name, (dtype, shape) in self.nulls.items():
            if name in self.params:
                continue
            shape = [d if isinstance(d, int) else fixed.get(d, 3) for d in shape]
            made[name] = self.rng.uniform(-2, 2, shape).astype(dtype)
        return made

    def reference(self, heads, values):
        """onnx.reference in float64; opset 18 has all that these networks use as they use it, but for reductions."""
        def wide(a):
            return a.astype(np.float64) if a.dtype == np.float32 else a

        h = onnx.helper
        types = {"float64": onnx.TensorProto.DOUBLE, "int64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL,
                 "int32": onnx.TensorProto.INT32}
        feed = {k: wide(v) for k, v in {**self.params, **values}.items()}
        inputs = [h.make_tensor_value_info(k, types[v.dtype.name], v.shape) for k, v in feed.items()]
        nodes = [h.make_node(kind, inputs_, outputs, **{k: 11 if (kind, k, v) == ("Cast", "to", 1) else v for k, v in attrs.items() if k != "_device"})
                 for kind, _, inputs_, outputs, _, attrs in self.nodes]
        outputs = [h.make_tensor_value_info(o, onnx.TensorProto.DOUBLE, None) for o in heads]
        model = h.make_model(h.make_graph(nodes, "g", inputs, outputs),
                             opset_imports=[h.make_opsetid("", self.opset)])
        return onnx.reference.ReferenceEvaluator(model).run(None, feed)


# ---- what exporters write


def batch_norm(n, x, channels, name, **attrs):
    return n.op("BatchNormalization", x, n.weights(name + ".scale", channels, low=0.5, high=2),
                n.weights(name + ".bias", channels), n.weights(name + ".mean", channels),
                n.weights(name + ".var", channels, low=0.1, high=3), name=name, **attrs)


def erf_form(n, x, form):
    half, one, two = n.w("half", np.float32(0.5)), n.w("one", np.float32(1)), n.w("two", np.float32(2))
    if form in (0, 1):
        inner = n.op("Div", x, n.w("root", np.float32(math.sqrt(2))))
    else:
        inner = n.op("Mul", n.w("root", np.float32(1 / math.sqrt(2))), x)
    inner = n.op("Add", n.op("Erf", inner), one)
    if form == 0:
        return n.op("Mul", n.op("Mul", x, inner), half)
    if form == 1:
        return n.op("Mul", n.op("Mul", x, half), inner)
    if form == 2:
        return n.op("Mul", x, n.op("Mul", half, inner))
    return n.op("Div", n.op("Mul", inner, x), two)


def tanh_form(n, x, form):
    half, one = n.w("half", np.float32(0.5)), n.w("one", np.float32(1))
    c, root = n.w("c", np.float32(0.044715)), n.w("root", np.float32(math.sqrt(2 / math.pi)))
    if form == 0:
        inner = n.op("Add", x, n.op("Mul", c, n.op("Pow", x, n.w("three", np.float32(3)))))
    elif form == 1:
        inner = n.op("Add", x, n.op("Mul", c, n.op("Mul", n.op("Mul", x, x), x)))
    else:
        inner = n.op("Mul", x, n.op("Add", one, n.op("Mul", n.op("Mul", x, c), x)))
    tanh = n.op("Add", n.op("Tanh", n.op("Mul", root, inner)), one)
    return n.op("Mul", n.op("Mul", half, x), tanh) if form != 1 else n.op("Mul", half, n.op("Mul", x, tanh))


def layer_norm(n, x, width, form, axes=(-1,), epsilon=1e-5):
    def mean(v):
        if n.opset < 18:
            return n.op("ReduceMean", v, axes=list(axes))
        return n.op("ReduceMean", v, n.w("axes", np.array(axes, np.int64)))

    d = n.op("Sub", x, mean(x))
    again = n.op("Sub", x, mean(x)) if form == "twice" else d
    square = n.op("Mul", d, d) if form == "mul" else n.op("Pow", d, n.w("two", np.float32(2)))
    root = n.op("Sqrt", n.op("Add", mean(square), n.w("epsilon", np.float32(epsilon))))
    y = n.op("Mul", again, n.op("Div", n.w("unit", np.float32(1)), root)) if form == "inverse" else n.op("Div", again, root)
    if form != "bare":
        y = n.op("Mul", y, n.weights("scale", *width))
    if form not in ("bare", "scale"):
        y = n.op("Add", n.weights("bias", *width), y)
    return y


def rms_norm(n, x, width, form, axes=(-1,), epsilon=1e-5):
    """As exporters write it; form: how the square and the division are spelled, and on which side the scale is."""
    square = n.op("Mul", x, x) if "mul" in form else n.op("Pow", x, n.w("two", np.float32(2)))
    mean = n.op("ReduceMean", square, axes=list(axes)) if n.opset < 18 else n.op("ReduceMean", square, n.w("axes", np.array(axes, np.int64)))
    add = n.op("Add", mean, n.w("epsilon", np.float32(epsilon)))
    if "power" in form:
        y = n.op("Mul", x, n.op("Pow", add, n.w("minus", np.float32(-0.5))))
    elif "reciprocal" in form:
        y = n.op("Mul", n.op("Reciprocal", n.op("Sqrt", add)), x)
    elif "one" in form:
        y = n.op("Mul", x, n.op("Div", n.w("unit", np.float32(1)), n.op("Sqrt", add)))
    else:
        y = n.op("Div", x, n.op("Sqrt", add))
    scale = n.weights("scale", *width)
    return n.op("Mul", scale, y) if "left" in form else n.op("Mul", y, scale)


class Run:
    """The outputs of one run, the plan, and what became of the nodes."""

    def __init__(self, ctx, net, heads, values, optimize="on", devices="cpu", place=(), keep=(), after=None, flags=0):
        g = capi.Graph(net.text(heads))
        p = capi.Params(io.params_blob(net.params)) if net.params else None
        m = e = None
        try:
            m = capi.Model(ctx, g, p, devices, place=place, keep=keep, optimize=optimize, flags=flags)
            open_shapes = any(not isinstance(d, int) for _, shape in net.nulls.values() for d in shape)
            self.plan = None if open_shapes else m.explain_json()
            e = capi.Executor(m)
            for name, value in values.items():
                e.set_input(name, value)
            e.run()
            self.outputs = e.outputs()
            if open_shapes:
                self.plan = e.explain_json()
            self.more = after(e) if after else None
        finally:
            for x in (e, m, p, g):
                if x is not None:
                    x.close()

    def ops(self):
        return sorted(n["op"] for n in self.plan["nodes"])

    def names(self):
        return [n["name"] for n in self.plan["nodes"]]

    def passes(self):
        return [c["pass"] for c in self.plan["optimizations"]]


def close(got, want, label="", rtol=2e-5):
    assert got.shape == np.shape(want), f"{label}: shape {got.shape}, expected {np.shape(want)}"
    scale = max(1.0, float(np.max(np.abs(want), initial=0)))
    error = float(np.max(np.abs(got.astype(np.float64) - want), initial=0))
    assert error <= rtol * scale, f"{label}: error {error} of {scale}"


def check(ctx, net, heads, optimize="on", devices="cpu", rtol=2e-5, **more):
    """Runs with and without; both are what the reference says. Gives both runs."""
    values = net.values(**more.pop("fixed", {}))
    want = net.reference(heads, values)
    runs = []
    for wish in (optimize, "off"):
        r = Run(ctx, net, heads, values, wish, devices, **more)
        for name, g, w in zip(heads, r.outputs, want):
            close(g, w, f"optimize={wish}: {name}", rtol)
        runs.append(r)
    assert runs[1].plan["optimizations"] == []
    return runs
