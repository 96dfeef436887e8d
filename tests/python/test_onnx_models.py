"""Whole ONNX models as files: the light models of the onnx package with its expected outputs, networks of the kinds that
people run against ONNX Runtime, the digits network, dimensions with names, converted files, weights outside of the file.
timeout: 900
"""
import json
import os
import pathlib
import struct

import numpy as np
import onnx
import onnx_files as files
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import io
from tool_case import DIGITS, SOURCE, failing, good

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIGHT_MODELS = sorted(p.stem for p in LIGHT.glob("*.onnx"))


def test_the_light_models_are_there():
    assert len(LIGHT_MODELS) == 9


def check_light(tmp_path, name, devices, **env):
    """On the input that the package's expected outputs belong to."""
    path = LIGHT / f"{name}.onnx"
    proto = onnx.load(path)
    given = {t.name for t in proto.graph.initializer}
    inputs = {}
    for v in proto.graph.input:
        if v.name not in given:
            shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
            inputs[v.name] = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    good("run", path, "--device", devices, *files.words_for(tmp_path, inputs), "--output-dir", tmp_path, **env)
    want = TensorProto.FromString((LIGHT / f"{name}_output_0.pb").read_bytes())
    files.same(files.outputs_of(tmp_path), [numpy_helper.to_array(want)], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_light(tmp_path, name):
    """Opset 9. Weights are constants: most of the outputs are 0.001 throughout, so it is the networks below that tell one
    value from another."""
    check_light(tmp_path, name, "cpu")


# ---- networks


class Net:
    """Appends nodes to a model; values are names, and the writer of a network keeps track of shapes."""

    def __init__(self, seed):
        self.rng, self.nodes, self.tensors = np.random.default_rng(seed), [], {}

    def tensor(self, array):
        name = f"t{len(self.tensors)}"
        self.tensors[name] = np.asarray(array)
        return name

    def weights(self, *shape, fan=1):
        return self.tensor((self.rng.standard_normal(shape) * fan ** -0.5).astype(np.float32))

    def op(self, op, *inputs, **attrs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"{op}_{len(self.nodes)}", **attrs))
        return out

    def conv(self, x, cin, cout, k, stride=1, group=1, act="Relu"):
        w = self.weights(cout, cin // group, k, k, fan=cin // group * k * k)
        y = self.op("Conv", x, w, self.weights(cout, fan=100), kernel_shape=[k, k], strides=[stride] * 2,
                    pads=[k // 2] * 4, group=group)
        if act == "Clip":
            return self.op("Clip", y, self.tensor(np.float32(0)), self.tensor(np.float32(6)))
        return self.op(act, y) if act else y

    def dense(self, x, cin, cout):
        return self.op("Gemm", x, self.weights(cout, cin, fan=cin), self.weights(cout, fan=100), transB=1)

    def save(self, folder, out, shape, name="x"):
        proto = files.model(self.nodes, {name: (np.float32, shape)}, [out], self.tensors)
        return files.save(folder, proto), proto


def mobilenet(net, batch):
    y = net.conv("x", 3, 8, 3, 2, act="Clip")
    for cin, cout, stride in ((8, 16, 1), (16, 32, 2), (32, 32, 1)):
        y = net.conv(y, cin, cin, 3, stride, group=cin, act="Clip")
        y = net.conv(y, cin, cout, 1, act="Clip")
    y = net.op("Flatten", net.op("GlobalAveragePool", y), axis=1)
    return net.op("Softmax", net.dense(y, 32, 10), axis=1), (batch, 3, 32, 32)


def resnet(net, batch):
    y = net.op("MaxPool", net.conv("x", 3, 16, 7, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for cin, cout, stride in ((16, 32, 1), (32, 64, 2)):
        z = net.conv(net.conv(net.conv(y, cin, cin, 1), cin, cin, 3, stride), cin, cout, 1, act=None)
        y = net.op("Relu", net.op("Add", z, net.conv(y, cin, cout, 1, stride, act=None)))
    y = net.op("Flatten", net.op("GlobalAveragePool", y), axis=1)
    return net.dense(y, 64, 10), (batch, 3, 32, 32)


def encoder(net, batch, length=12, width=24, heads=3):
    def linear(x, cin, cout):
        return net.op("Add", net.op("MatMul", x, net.weights(cin, cout, fan=cin)), net.weights(cout, fan=100))

    def norm(x):
        return net.op("LayerNormalization", x, net.tensor(np.linspace(0.5, 1.5, width, dtype=np.float32)),
                      net.weights(width), axis=-1, epsilon=1e-6)

    split = net.tensor(np.array([0, length, heads, width // heads], np.int64))
    joined = net.tensor(np.array([0, length, width], np.int64))
    y = norm("x")
    for _ in range(2):
        q, k, v = (net.op("Reshape", linear(y, width, width), split) for _ in range(3))
        q, v = (net.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        a = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 3, 1]))
        a = net.op("Softmax", net.op("Div", a, net.tensor(np.float32((width / heads) ** 0.5))), axis=-1)
        c = net.op("Reshape", net.op("Transpose", net.op("MatMul", a, v), perm=[0, 2, 1, 3]), joined)
        y = norm(net.op("Add", linear(c, width, width), y))
        f = linear(y, width, 2 * width)
        e = net.op("Erf", net.op("Div", f, net.tensor(np.float32(2 ** 0.5))))
        e = net.op("Mul", net.op("Mul", f, net.op("Add", e, net.tensor(np.float32(1)))), net.tensor(np.float32(0.5)))
        y = norm(net.op("Add", linear(e, 2 * width, width), y))
    return y, (batch, length, width)


def perceptron(net, batch):
    y = net.op("Relu", net.dense("x", 64, 32))
    return net.dense(net.op("Relu", net.dense(y, 32, 32)), 32, 10), (batch, 64)


def branches(net, batch):
    y = "x"
    for _ in range(2):
        a = net.conv(y, 16, 4, 1)
        b = net.conv(net.conv(y, 16, 4, 1), 4, 4, 3)
        c = net.conv(net.conv(y, 16, 4, 1), 4, 4, 5)
        d = net.conv(net.op("MaxPool", y, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4), 16, 4, 1)
        y = net.op("Concat", a, b, c, d, axis=1)
    return y, (batch, 16, 14, 14)


NETWORKS = {f.__name__: f for f in (mobilenet, resnet, encoder, perceptron, branches)}


def made(folder, name, batch):
    net = Net(sum(map(ord, name)))
    out, shape = NETWORKS[name](net, batch)
    path, proto = net.save(folder, out, shape)
    x = np.random.default_rng(5).standard_normal([2 if d == "batch" else d for d in shape]).astype(np.float32)
    return path, proto, {"x": x}


@pytest.mark.parametrize("devices", ["cpu", "sim:0,cpu"])
@pytest.mark.parametrize("name", NETWORKS)
def test_network(tmp_path, name, devices):
    path, proto, inputs = made(tmp_path, name, 2)
    got = files.run(path, inputs, "--device", devices)
    files.same(got, files.expected(proto, inputs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_batch_has_a_name(tmp_path, name):
    """Bound by the input's shape, by --dim, or not at all."""
    path, proto, inputs = made(tmp_path, name, "batch")
    want = files.expected(proto, inputs)
    files.same(files.run(path, inputs), want, rtol=1e-3, atol=1e-4)
    files.same(files.run(path, inputs, "--dim", "batch=2"), want, rtol=1e-3, atol=1e-4)
    words = files.words_for(tmp_path, inputs)
    assert "batch" in good("info", path)
    assert "[3, " in good("run", path, "--device", "cpu", "--dim", "batch=3", "--random")
    assert json.loads(good("plan", path, "--device", "cpu", "--dim", "batch=5", "--json"))["steps"]
    assert json.loads(good("bench", path, "--device", "cpu", "--dim=batch=1", "--json", "--repeat", 1, "--number", 1))
    assert "'x'" in failing(1, "run", path, "--device", "cpu", "--dim", "batch=3", *words)
    text = failing(1, "run", path, "--device", "cpu", "--dim", "bath=3", *words)
    assert "'bath=3'" in text and "names of dimensions: batch" in text
    assert "NAME=NUMBER" in failing(1, "run", path, "--device", "cpu", "--dim", "batch=many", *words)
    assert "shape is not known" in failing(1, "run", path, "--device", "cpu", "--random")


@pytest.mark.parametrize("name", NETWORKS)
def test_converted(tmp_path, name):
    """The same bytes come out of the .onnx file and of what it was converted to."""
    path, _, inputs = made(tmp_path, name, "batch")
    written = tmp_path / "converted.json"
    assert "wrote" in good("convert", path, "-o", written)
    want = files.run(path, inputs)
    for g, w in zip(files.run(written, inputs), want, strict=True):
        assert g.tobytes() == w.tobytes()
    good("convert", path, "--output", written, "--dim", "batch=2")
    assert "batch" not in written.read_text()
    for g, w in zip(files.run(written, inputs), want, strict=True):
        assert g.tobytes() == w.tobytes()


def test_convert_has_to_know_where_to(tmp_path):
    path, _, _ = made(tmp_path, "perceptron", 1)
    assert ".json" in failing(2, "convert", path)
    assert ".json" in failing(2, "convert", path, "-o", tmp_path / "x.params")
    assert ".onnx" in failing(2, "convert", DIGITS, "-o", tmp_path / "x.json")
    assert "no/such" in failing(1, "convert", path, "-o", "no/such/folder/x.json")


def test_digits(tmp_path):
    """The digits network, restated as ONNX, gives what its trainer wrote down."""
    graph = io.read_graph(DIGITS)
    params = io.parse_params(DIGITS.with_suffix(".params").read_bytes())
    names = [n["name"] for n in graph["nodes"]]
    nodes = [helper.make_node(n["op"], [names[i[0]] for i in n["inputs"]], [n["name"]], name=n["name"], **n.get("attrs", {}))
             for n in graph["nodes"] if n["op"] != "null"]
    images = np.load(DIGITS.parent / "images.npy").astype(np.float32).reshape(-1, 1, 8, 8)
    want = np.load(DIGITS.parent / "expected.npy")
    first = graph["attrs"]["shape"][1][0]
    proto = files.model(nodes, {"image": (np.float32, first)}, [names[h[0]] for h in graph["heads"]], params,
                        opset=graph["heddle"]["opset"])
    path = files.save(tmp_path, proto)
    for i in range(0, len(images), 90):
        got = files.run(path, {"image": images[i:i + 1]})
        np.testing.assert_allclose(got[0].reshape(-1), want[i].reshape(-1), rtol=1e-3, atol=1e-5)


# ---- weights


def external(folder, location="weights.bin", offset=4096, length=None, array=None):
    array = np.arange(5000, dtype=np.float32) if array is None else array
    proto = files.model([helper.make_node("Add", ["x", "w"], ["y"], name="add")], {"x": array}, ["y"])
    t = proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=array.shape)
    t.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length or array.nbytes)):
        t.external_data.add(key=key, value=str(value))
    (folder / "weights.bin").write_bytes(bytes(4096) + array.tobytes())
    return files.save(folder, proto), {"x": np.ones_like(array)}, array


@pytest.mark.parametrize("folder", [".", "sub/folder"])
def test_weights_outside(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    path, inputs, array = external(tmp_path, f"{folder}/weights.bin")
    if folder != ".":
        (tmp_path / "weights.bin").rename(tmp_path / folder / "weights.bin")
    files.same(files.run(path, inputs), [array + 1])
    os.chdir(tmp_path)  # and by a path without a folder
    assert "output 0" in good("run", "model.onnx", "--device", "cpu", *files.words_for(tmp_path, inputs))
    os.chdir(SOURCE)


def test_weights_that_leave_the_folder(tmp_path):
    inside = tmp_path / "model"
    inside.mkdir()
    path, _, _ = external(inside)
    (inside / "weights.bin").rename(tmp_path / "weights.bin")
    (inside / "link.bin").symlink_to("../weights.bin")
    (inside / "up").symlink_to("..")
    (tmp_path / "model2").mkdir()
    (tmp_path / "model2" / "weights.bin").write_bytes(bytes(30000))
    for location in ("../weights.bin", str(tmp_path / "weights.bin"), "link.bin", "up/weights.bin", "../model2/weights.bin",
                     "./x/../../weights.bin"):
        external(inside, location)
        (inside / "weights.bin").unlink()
        text = failing(1, "run", path, "--device", "cpu", "--random")
        assert "tensor 'w'" in text and location.split("/")[-1] in text, text
        assert any(w in text for w in ("outside of the model's folder", "relative to the model's folder", "does not hold")), text


@pytest.mark.parametrize("change, words", [
    (dict(offset=8192), "has 24096"), (dict(offset=2 ** 63), "has 24096"), (dict(offset="x"), "expected a number"),
    (dict(length=19999), "needs 20000"), (dict(location="weights2.bin"), "No such file"), (dict(location=""), "relative"),
    (dict(location="."), "outside of the model")])
def test_weights_that_lie(tmp_path, change, words):
    path, _, _ = external(tmp_path, **change)
    text = failing(1, "info", path)
    assert "tensor 'w'" in text and words in text, text


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint32",
                                   "uint64", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("raw", [False, True])
def test_types_of_tensors(tmp_path, dtype, raw):
    """The bytes of a tensor in each type, as raw data and in its typed field, come out as parameters."""
    number = getattr(TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper()))
    values = [0, 1, 1, 0, 1, 0] if dtype == "bool" else [0, 1, 2, 100, 7, 3] if dtype[0] == "u" else [0, -1, 2, 100, -7, 3]
    stored = helper.tensor_dtype_to_np_dtype(number)
    array = np.array(values).astype(stored).reshape(2, 3)
    t = helper.make_tensor("w", number, [2, 3], array.tobytes() if raw else array.reshape(-1).tolist(), raw=raw)
    proto = files.model([helper.make_node("Identity", ["w"], ["y"])], {}, [])
    proto.graph.output.append(helper.make_tensor_value_info("y", number, [2, 3]))
    proto.graph.initializer.append(t)
    written = tmp_path / "converted.json"
    good("convert", files.save(tmp_path, proto), "-o", written)
    blob = written.with_suffix(".params").read_bytes()
    assert blob.endswith(struct.pack("<2qQ", 2, 3, array.nbytes) + array.tobytes())


# ---- names and versions


def test_names(tmp_path):
    """Names of nodes are kept where they can be, made where there are none, and each is one node's; outputs keep theirs."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="same"), helper.make_node("Neg", ["a"], ["b"], name="same"),
             helper.make_node("Split", ["b"], ["left", "right"], name="x", axis=0, num_outputs=2),
             helper.make_node("Abs", ["left"], ["plain"])]
    proto = files.model(nodes, {"x": (np.float32, (2, 3))}, ["plain", "right", "x"], opset=18)
    good("convert", files.save(tmp_path, proto), "-o", tmp_path / "c.json")
    graph = io.read_graph(tmp_path / "c.json")
    names = [n["name"] for n in graph["nodes"]]
    assert len(set(names)) == len(names) and {"x", "same", "same_1", "x_1", "plain", "right"} == set(names)
    assert [names[h[0]] for h in graph["heads"]] == ["plain", "right", "x"]
    x = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
    files.same(files.run(tmp_path / "model.onnx", {"x": x}), [np.maximum(x[:1], 0), -np.maximum(x[1:], 0), x])


def test_outputs_of_a_node_with_several_keep_their_names(tmp_path):
    """The node has no name of its own, or that of its first output."""
    for name in (None, "left"):
        nodes = [helper.make_node("Split", ["x"], ["left", "right"], name=name, axis=0, num_outputs=2)]
        path = files.save(tmp_path, files.model(nodes, {"x": (np.float32, (2, 1))}, ["left", "right"], opset=18))
        lines = good("run", path, *files.DEVICE, *files.words_for(tmp_path, {"x": np.float32([[1], [2]])})).splitlines()
        assert [line.split()[:3] for line in lines if line.startswith("output")] == [["output", "0", "left"],
                                                                                    ["output", "1", "right"]]


@pytest.mark.parametrize("number", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_halves_are_printed(tmp_path, number):
    """Exact in both types, but for the smallest number that float16 has."""
    want = [1, -2.5, 65280, 2.0 ** -24, float("inf"), float("-inf"), 0, 0.15625]
    path = files.save(tmp_path, files.model([helper.make_node("Cast", ["x"], ["y"], to=number)], {"x": (np.float32, (8,))}, {
        "y": (helper.tensor_dtype_to_np_dtype(number), (8,))}, opset=13))
    out = good("run", path, *files.DEVICE, *files.words_for(tmp_path, {"x": np.float32(want)})).splitlines()
    assert [float(v) for v in out[-1].split()] == [float(f"{v:.6g}") for v in want]


def test_an_input_with_a_value_of_its_own(tmp_path):
    """Models of the first formats list their weights among the inputs; a value that is given takes its place."""
    w, x = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    proto = files.model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": x, "w": w}, ["y"], {"w": w}, opset=9, ir=3)
    path = files.save(tmp_path, proto)
    files.same(files.run(path, {"x": x}), [x + w])
    files.same(files.run(path, {"x": x, "w": x}), [x + x])


@pytest.mark.parametrize("change, words", [
    (dict(opset=10 ** 9), "opset 1000000000; this library reads 7 to"), (dict(opset=6), "opset 6; this library reads 7 to"),
    (dict(opset=-1), "opset -1"), (dict(ir=10 ** 9), "format 1000000000"), (dict(ir=0), "format 0")])
def test_versions_that_are_not_read(tmp_path, change, words):
    proto = files.model([helper.make_node("Relu", ["x"], ["y"])], {"x": (np.float32, (2,))}, ["y"], **change)
    text = failing(1, "info", files.save(tmp_path, proto))
    assert words in text and "model.onnx" in text, text


def test_parameters_from_elsewhere(tmp_path):
    """--params takes the place of what is inside of the file."""
    x, w = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    proto = files.model([helper.make_node("Mul", ["x", "w"], ["y"])], {"x": x}, ["y"], {"w": w})
    path = files.save(tmp_path, proto)
    io.write_params(tmp_path / "other.params", {"w": w * 2})
    files.same(files.run(path, {"x": x}, "--params", tmp_path / "other.params"), [x * w * 2])


# ---- functions of a model


def function(name, inputs, outputs, nodes, attributes=(), opset=17):
    return helper.make_function("mine", name, inputs, outputs, nodes,
                                [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)], attributes)


def with_functions(functions, nodes, inputs, outputs, tensors=None):
    proto = files.model(nodes, inputs, outputs, tensors)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    proto.functions.extend(functions)
    return proto


def calls(op, inputs, outputs, name, **attrs):
    return helper.make_node(op, inputs, outputs, name=name, domain="mine", **attrs)


def refers(node, name, to):
    node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=to, type=onnx.AttributeProto.FLOAT))
    return node


def test_functions(tmp_path):
    """Called twice, from each other, with attributes of the caller's, an input that is left out, an output handed on."""
    slope = refers(helper.make_node("LeakyRelu", ["a"], ["t"], name="leaky"), "alpha", "slope")
    inner = function("Inner", ["a", "b"], ["c"], [slope, helper.make_node("Mul", ["t", "b"], ["c"], name="mul")], ["slope"])
    outer = function("Outer", ["p", "q", "none"], ["r", "p2", "p"], [
        refers(calls("Inner", ["p", "q"], ["t"], "first"), "slope", "steep"),
        calls("Inner", ["t", "p"], ["u"], "second", slope=0.5), helper.make_node("Add", ["u", "q"], ["r"], name="add"),
        helper.make_node("Clip", ["p", "", "none"], ["p2"], name="clip")], ["steep"])
    nodes = [calls("Outer", ["x", "w", ""], ["h", "k", "l"], "one", steep=0.25),
             calls("Outer", ["h", "x", ""], ["y", "", "z"], "two", steep=0.125), helper.make_node("Add", ["k", "l"], ["kl"])]
    x = np.random.default_rng(4).standard_normal((2, 3)).astype(np.float32)
    proto = with_functions([inner, outer], nodes, {"x": x}, ["y", "z", "kl"], {"w": np.full((1, 3), 1.5, np.float32)})
    path = files.save(tmp_path, proto)

    def leaky(v, slope):
        return np.where(v < 0, v * np.float32(slope), v)

    def outer_of(p, q, steep):
        return leaky(leaky(p, steep) * q, 0.5) * p + q

    h = outer_of(x, np.float32(1.5), 0.25)
    files.same(files.run(path, {"x": x}), [outer_of(h, x, 0.125), h, x + x])
    good("convert", path, "-o", tmp_path / "c.json")
    names = [n["name"] for n in io.read_graph(tmp_path / "c.json")["nodes"]]
    assert len(set(names)) == len(names) and {"one/first/leaky", "two/second/mul", "one/add", "two/add"} <= set(names)


def test_functions_with_values_of_their_own(tmp_path):
    """The caller's attribute counts, then the function's own value, also through another function; then the operator's."""
    def own(name, value):
        return helper.make_attribute(name, value)

    leaky = refers(helper.make_node("LeakyRelu", ["a"], ["b"], name="leaky"), "alpha", "slope")
    inner = helper.make_function("mine", "Inner", ["a"], ["b"], [leaky], [helper.make_opsetid("", 17)], [],
                                 [own("other", 7), own("slope", 0.5)])
    outer = helper.make_function("mine", "Outer", ["p"], ["q", "r"], [
        refers(calls("Inner", ["p"], ["q"], "given"), "slope", "steep"), calls("Inner", ["p"], ["r"], "left")],
        [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], [], [own("steep", 0.125)])
    nodes = [calls("Outer", ["x"], ["a", "b"], "one"), calls("Outer", ["x"], ["c", "d"], "two", steep=2.0),
             calls("Inner", ["x"], ["e"], "three", slope=-1.0)]
    x = np.array([[-4.0, 3.0]], np.float32)
    path = files.save(tmp_path, with_functions([inner, outer], nodes, {"x": x}, list("abcde")))
    files.same(files.run(path, {"x": x}), [np.array([[-4 * s, 3]], np.float32) for s in (0.125, 0.5, 2, 0.5, -1)])

    damaged = bytearray(path.read_bytes())
    at = damaged.index(b"steep\x15") + 5  # the attribute's number becomes a field that runs past its end
    damaged[at] = 0x12
    (tmp_path / "damaged.onnx").write_bytes(damaged)
    assert "damaged" in failing(1, "info", tmp_path / "damaged.onnx")


def test_functions_that_never_end(tmp_path):
    forever = function("Loop", ["a"], ["b"], [calls("Loop", ["a"], ["b"], "again")])
    proto = with_functions([forever], [calls("Loop", ["x"], ["y"], "loop")], {"x": (np.float32, (2,))}, ["y"])
    assert "too deep" in failing(1, "info", files.save(tmp_path, proto))
    grow = [function(f"F{i}", ["a"], ["b"], [calls(f"F{i + 1}", ["a"], [f"t{k}"], f"n{k}") for k in range(30)] +
                     [calls(f"F{i + 1}", ["a"], ["b"], "last")]) for i in range(12)] + [function("F12", ["a"], ["b"], [])]
    proto = with_functions(grow, [calls("F0", ["x"], ["y"], "grow")], {"x": (np.float32, (2,))}, ["y"])
    assert "limit" in failing(1, "info", files.save(tmp_path, proto))
    other = function("Old", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], opset=6)
    proto = with_functions([other], [calls("Old", ["x"], ["y"], "old")], {"x": (np.float32, (2,))}, ["y"])
    assert "is of opset 6; this library reads 7 to" in failing(1, "info", files.save(tmp_path, proto))


# ---- where weights lie


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("words", [(), ("--set", "cpu.onednn=off"), ("--set", "optimize=off")])
def test_large_weights_at_odd_addresses(tmp_path, shift, words):
    """Weights that stay where they are in the file, at each distance from a multiple of four: in a product, a sum, a
    convolution with other weights after its normalisation, and as they are converted."""
    rng = np.random.default_rng(shift)
    tensors = {"a" * (shift + 1): rng.standard_normal((300, 512)), "sum": rng.standard_normal((300, 512)),
               "conv": rng.standard_normal((128, 64, 3, 3)) / 24}
    tensors.update({name: rng.random(128) + 0.5 for name in ("scale", "shift", "mean", "variance")})
    tensors = {name: array.astype(np.float32) for name, array in tensors.items()}
    nodes = [helper.make_node("MatMul", ["x", "a" * (shift + 1)], ["y"]), helper.make_node("Add", ["sum", "y"], ["z"]),
             helper.make_node("Conv", ["image", "conv"], ["c"], pads=[1] * 4),
             helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"])]
    inputs = {"x": rng.standard_normal((300, 300)).astype(np.float32),
              "image": rng.standard_normal((1, 64, 9, 9)).astype(np.float32)}
    proto = files.model(nodes, inputs, ["z", "n"], tensors)
    path = files.save(tmp_path, proto)
    raw = path.read_bytes()
    odd = [raw.index(array.tobytes()) % 4 for array in tensors.values() if array.nbytes > 1 << 18]
    assert len(odd) == 3
    want = files.expected(proto, inputs)
    files.same(files.run(path, inputs, *words), want, rtol=1e-4, atol=1e-4)
    good("convert", path, "-o", tmp_path / "converted.json")
    files.same(files.run(tmp_path / "converted.json", inputs, *words), want, rtol=1e-4, atol=1e-4)
