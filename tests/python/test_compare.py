"""heddle compare: a wrong kernel that is planted in sim is found by the name of its node, whatever the operator; devices
that compute rightly are equal; what is written shows the difference again with heddle run.
timeout: 600"""

import json
import shlex

import lavapipe
import numpy as np
import onnx
import pocl
import pytest
from fixtures import tvm_legacy as legacy
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tool_case import DIGITS, failing, good, heddle
from tvm_graph import Call, tvm_graph

# A node for each: its name is its operator's, in small letters.
NODES = [
    ("Conv", ["x", "w"], ["conv"], {"pads": [1, 1, 1, 1]}),
    ("Relu", ["conv"], ["relu"], {}),
    ("MaxPool", ["relu"], ["maxpool"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("BatchNormalization", ["maxpool", "scale", "bias", "mean", "var"], ["batchnormalization"], {}),
    ("Split", ["batchnormalization"], ["split", "other_half"], {"axis": 1, "num_outputs": 2}),
    ("Concat", ["other_half", "split"], ["concat"], {"axis": 1}),
    ("Transpose", ["concat"], ["transpose"], {"perm": [0, 2, 3, 1]}),
    ("LayerNormalization", ["transpose", "gain"], ["layernormalization"], {}),
    ("Sigmoid", ["layernormalization"], ["sigmoid"], {}),
    ("ReduceMean", ["sigmoid", "axes"], ["reducemean"], {"keepdims": 0}),
    ("Gemm", ["reducemean", "m", "c"], ["gemm"], {}),
    ("Sqrt", ["gemm"], ["sqrt"], {}),  # of negative numbers too: NaN is equal to NaN
    ("Greater", ["gemm", "zero"], ["greater"], {}),
    ("Where", ["greater", "gemm", "zero"], ["where"], {}),
    ("Cast", ["where"], ["cast"], {"to": TensorProto.FLOAT16}),
    ("Mul", ["cast", "cast"], ["mul"], {}),
    ("MatMul", ["gemm", "m2"], ["matmul"], {}),
    ("Softmax", ["matmul"], ["softmax"], {}),
    ("ArgMax", ["softmax"], ["argmax"], {"axis": 1, "keepdims": 0}),
    ("TopK", ["softmax", "two"], ["tops", "places"], {}),
    ("NonZero", ["greater"], ["nonzero"], {}),  # its shape is in its data
]
OUTPUTS = {"sqrt": TensorProto.FLOAT, "mul": TensorProto.FLOAT16, "argmax": TensorProto.INT64, "tops": TensorProto.FLOAT,
           "places": TensorProto.INT64, "nonzero": TensorProto.INT64, "if": TensorProto.FLOAT}


def branch(op):
    body = [helper.make_node(op, ["softmax", "where"], [op.lower() + "_out"], name=op.lower())]
    return helper.make_graph(body, op, [], [helper.make_tensor_value_info(op.lower() + "_out", TensorProto.FLOAT, None)])


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """A model with an operator of each kind, and its input."""
    folder = tmp_path_factory.mktemp("zoo")
    random = np.random.default_rng(9)

    def floats(*shape):
        return random.standard_normal(shape).astype(np.float32)

    constants = {
        "w": floats(8, 3, 3, 3), "scale": floats(8), "bias": floats(8), "mean": floats(8), "var": np.abs(floats(8)),
        "gain": floats(8), "axes": np.array([1, 2]), "m": floats(8, 8), "c": floats(8), "zero": np.zeros(1, np.float32),
        "m2": floats(8, 8), "two": np.array([2]), "yes": np.array(True)}
    nodes = [helper.make_node(op, ins, outs, name=op.lower(), **attrs) for op, ins, outs, attrs in NODES]
    nodes.append(helper.make_node("If", ["yes"], ["if"], name="if", then_branch=branch("Add"), else_branch=branch("Sub")))
    graph = helper.make_graph(
        nodes, "zoo", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8, 8])],
        [helper.make_tensor_value_info(name, dtype, None) for name, dtype in OUTPUTS.items()],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "zoo.onnx")
    np.save(folder / "x.npy", floats(2, 3, 8, 8))
    return folder / "zoo.onnx", "--input", f"x={folder}/x.npy"


def compare(status, *words, **env):
    r = heddle("compare", *words, "--json", **env)
    assert r.status == status and r.err == "", r
    return json.loads(r.out)


# ---- what is right

def test_equal(zoo):
    got = compare(0, *zoo, "--a", "cpu", "--b", "sim")
    assert got["equal"] and got["differences"] == [] and got["replay"] is None and not got["outputs_differ"]
    assert got["compared"] == got["nodes"] >= len(NODES) + 1
    assert [o["name"] for o in got["outputs"]][0] == "sqrt" and all(o["error"] < 1e-3 for o in got["outputs"])
    text = good("compare", *zoo, "--a", "cpu", "--b", "sim", "--set", "sim.fuse=1", "--optimize", "off")
    assert text.splitlines()[-1] == f"equal: {got['nodes']} nodes, each within its own error bound"


def test_equal_on_vulkan(zoo):
    """Kernels that round otherwise than the cpu's stay within their bounds."""
    lavapipe.need()
    got = compare(0, *zoo, "--a", "cpu", "--b", "vulkan:0,cpu", **lavapipe.ENV)
    assert got["equal"] and got["compared"] == got["nodes"] and max(o["error"] for o in got["outputs"]) > 0


@pytest.mark.parametrize("where", [pocl, lavapipe], ids=["opencl", "vulkan"])
def test_digits_on_other_devices(where):
    where.need()
    device = "opencl:0" if where is pocl else "vulkan:0"
    got = compare(0, DIGITS, "--a", "cpu", "--b", f"{device},cpu", "--random", **where.ENV)
    assert got["equal"] and got["compared"] == 28


def library(tmp_path, second):
    """A graph of two functions, the second of which computes y[i] of x[i]; words for it."""
    if legacy.compiler() is None:
        pytest.skip("there is no C compiler to write libraries with")
    f32, operands = "float32", [("x", "float32", (4,)), ("y", "float32", (4,))]
    functions = [legacy.kernel("twice", operands, "for (int i = 0; i < 4; i++) y[i] = 2 * x[i];"),
                 legacy.kernel("more", operands, second)]
    lib = legacy.library(tmp_path / "lib.so", "v0.14", functions)
    calls = [Call("twice", ["x"], [(f32, [4])]), Call("more", ["twice"], [(f32, [4])])]
    (tmp_path / "g.json").write_text(tvm_graph({"x": (f32, [4])}, calls, ["more"]))
    return tmp_path / "g.json", "--lib", lib, "--a", "cpu", "--b", "cpu", "--random", "--output-dir", tmp_path / "out"


def test_a_library(tmp_path):
    """Functions of a library are walked like other nodes."""
    got = compare(0, *library(tmp_path, "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"), "--threads", "1")
    assert got["equal"] and got["compared"] == 2


# ---- what is wrong

@pytest.mark.parametrize("op", [op for op, *_ in NODES] + ["Add"])
def test_a_planted_fault_is_found(zoo, op, tmp_path):
    got = compare(1, *zoo, "--a", "cpu", "--b", "sim", "--set-b", f"sim.wrong={op}", "--output-dir", tmp_path / "out")
    first = got["differences"][0]
    name = "if" if op == "Add" else op.lower()  # a branch is a part of its node
    assert (first["node"], first["op"], first["output"]) == (name, "If" if op == "Add" else op, 0)
    assert first["beyond"] == 1 and first["alone"] and not got["equal"] and len(got["differences"]) == 1
    last = [n - 1 for n in first["shape"]]
    assert first["first"]["index"] == first["worst"]["index"] == first["low"] == first["high"] == last


def test_which_element_and_side(zoo, tmp_path):
    words = (*zoo, "--a", "sim:1", "--b", "sim:2", "--set", "sim.2.wrong=MatMul:5", "--output-dir", tmp_path / "out")
    text = heddle("compare", *words)
    assert text.status == 1 and "node matmul (MatMul), output 0, float32 [2, 8]\n  a: sim:1, b: sim:2\n" in text.out
    assert "1 of 16 elements are beyond their bounds; the first is [0, 5]:" in text.out and "(sum)" in text.out


def test_later_nodes_are_not_blamed(zoo, tmp_path):
    got = compare(1, *zoo, "--a", "cpu", "--b", "sim", "--set-b", "sim.wrong=Conv", "--all", "--output-dir", tmp_path)
    assert [d["node"] for d in got["differences"]] == ["conv"] and got["compared"] == got["nodes"]


@pytest.mark.parametrize("op", ["Conv", "LayerNormalization", "ReduceMean"])
def test_replay(zoo, op, tmp_path):
    """The node that was written is ONNX's reference's on cpu, and wrong again where the fault is."""
    got = compare(1, *zoo, "--a", "cpu", "--b", "sim:0", "--set-b", f"sim.wrong={op}", "--output-dir", tmp_path / "it")
    on_a, on_b = (tmp_path / "it" / "replay.txt").read_text().splitlines()
    assert on_b == got["replay"]
    results = []
    for k, line in enumerate((on_a, on_b)):
        command, *words = shlex.split(line)
        assert command == "heddle"
        good(*words, "--output-dir", tmp_path / str(k))
        results.append(np.load(tmp_path / str(k) / "output_0.npy"))
    expected = np.load(tmp_path / "it" / "expected_0.npy")
    model = onnx.load(str(zoo[0]))
    node = next(n for n in model.graph.node if n.op_type == op)
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    feeds = {name: values.get(name, np.load(tmp_path / "it" / f"in{k}.npy")) for k, name in enumerate(node.input)}
    reference = ReferenceEvaluator(node).run(None, feeds)[0]
    bound = 1e-4 * np.abs(reference).max()
    assert np.abs(expected - reference).max() < bound and np.abs(results[0] - reference).max() < bound
    assert np.abs(results[1] - expected).argmax() == expected.size - 1
    assert np.abs(results[1] - expected).max() > got["differences"][0]["first"]["bound"]


def replayed(line, folder):
    good(*shlex.split(line)[1:], "--output-dir", folder)
    return np.load(folder / "output_0.npy")


def test_replay_where_it_ran(zoo, tmp_path):
    """A rule, not the order of the list, had placed the node."""
    got = compare(1, *zoo, "--a", "cpu", "--b", "cpu,sim", "--place-b", "matmul=sim", "--set-b", "sim.wrong=MatMul",
                  "--output-dir", tmp_path)
    assert got["differences"][0]["device_b"] == "sim:0"
    assert not np.array_equal(replayed(got["replay"], tmp_path / "b"), np.load(tmp_path / "expected_0.npy"))


def test_replay_of_a_node_that_runs_graphs(zoo, tmp_path):
    got = compare(1, *zoo, "--a", "cpu", "--b", "cpu,sim", "--place-b", "add=sim", "--set-b", "sim.wrong=Add",
                  "--output-dir", tmp_path)
    assert got["differences"][0]["node"] == "if"
    assert not np.array_equal(replayed(got["replay"], tmp_path / "b"), np.load(tmp_path / "expected_0.npy"))


def test_replay_of_a_model_in_a_library(tmp_path):
    """Its functions are those of the library that the model is in."""
    if legacy.compiler() is None:
        pytest.skip("there is no C compiler to write libraries with")
    f32, operands = "float32", [("x", "float32", (4,)), ("y", "float32", (4,))]
    twice = "static int calls; calls++; for (int i = 0; i < 4; i++) y[i] = 2 * x[i] + (i == 2 && calls == 3);"
    graph = tvm_graph({"x": (f32, [4])}, [Call("twice", ["x"], [(f32, [4])])], ["twice"])
    data = legacy.blob([legacy.factory(graph, {}, "default"), legacy.LIB], [[1], []])
    path = legacy.library(tmp_path / "lib.so", "v0.14", [legacy.kernel("twice", operands, twice)], data=data)
    got = compare(1, path, "--a", "cpu", "--b", "cpu", "--random", "--output-dir", tmp_path / "out")
    assert got["differences"][0]["op"] == "twice"
    assert np.array_equal(replayed(got["replay"], tmp_path / "b"), np.load(tmp_path / "out" / "expected_0.npy"))


def test_digits_and_annotations(tmp_path):
    """The nodes' own wishes for devices are passed over; rules are not."""
    words = (DIGITS, "--random", "--a", "cpu", "--b", "sim,cpu", "--place-b", "*=cpu", "--place-b", "classes=sim")
    assert compare(0, *words, "--set-b", "sim.wrong=Conv", "--output-dir", tmp_path)["equal"]
    got = compare(1, *words, "--set-b", "sim.wrong=Gemm", "--output-dir", tmp_path)
    assert [(d["node"], d["device_b"]) for d in got["differences"]] == [("classes", "sim:0")]


def test_a_function_that_is_wrong_once(tmp_path):
    """Its third call is b's, from node to node: alone it is right again. A function has no bound of its own."""
    once = "static int calls; calls++; for (int i = 0; i < 4; i++) y[i] = x[i] + 1 + (i == 2 && calls == 3);"
    words = library(tmp_path, once)
    first = compare(1, *words)["differences"][0]
    assert (first["node"], first["op"], first["rule"], first["alone"]) == ("more", "more", "none", False)
    assert first["first"]["index"] == [2] and first["first"]["got"] == pytest.approx(first["first"]["expected"] + 1)
    x, y = np.load(tmp_path / "out" / "in0.npy"), np.load(tmp_path / "out" / "expected_0.npy")
    assert np.array_equal(y, x + 1)
    on_a = (tmp_path / "out" / "replay.txt").read_text().splitlines()[0]
    good(*shlex.split(on_a)[1:], "--output-dir", tmp_path / "again")
    assert np.array_equal(np.load(tmp_path / "again" / "output_0.npy"), y)


def test_between_the_nodes(tmp_path):
    """A fault in a node that only the rewritten model has: every node of the file is right, the outputs are not."""
    nodes = [helper.make_node(op, ins, [out], name=out) for op, ins, out in (
        ("Div", ["x", "root"], "d"), ("Erf", ["d"], "e"), ("Add", ["e", "one"], "a"), ("Mul", ["x", "a"], "m"),
        ("Mul", ["m", "half"], "y"))]
    constants = {"root": np.sqrt(2), "one": 1, "half": 0.5}
    graph = helper.make_graph(
        nodes, "gelu", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.array(v, np.float32), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "g.onnx")
    np.save(tmp_path / "x.npy", np.array([3, 2, 1, 0.001], np.float32))
    words = (tmp_path / "g.onnx", "--input", f"x={tmp_path}/x.npy", "--a", "cpu", "--b", "sim")
    fault = ("--set-b", "sim.wrong=Gelu", "--output-dir", tmp_path / "out")
    r = heddle("compare", *words, *fault)
    assert r.status == 1 and "all 5 nodes agree one by one, but the model's outputs do not" in r.err, r
    assert compare(0, *words, *fault, "--optimize", "off")["equal"]
    r = heddle("compare", *words, *fault, "--json")
    got = json.loads(r.out)
    assert got["outputs_differ"] and not got["equal"] and got["differences"] == [] and got["outputs"][0]["error"] > 0.1


def test_between_the_nodes_of_a_quantised_model(tmp_path):
    """Results of 8 bits count too: the planted fault is in the operator that the rewritten model alone has."""
    nodes = [helper.make_node(op, ins, [out], name=out) for op, ins, out in (
        ("DequantizeLinear", ["x", "one", "zero"], "xf"), ("DequantizeLinear", ["w", "one", "signed"], "wf"),
        ("MatMul", ["xf", "wf"], "m"), ("QuantizeLinear", ["m", "one", "zero"], "y"))]
    constants = {"one": np.float32(1), "zero": np.uint8(0), "signed": np.int8(0), "w": np.ones((4, 3), np.int8)}
    graph = helper.make_graph(
        nodes, "quantised", [helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "q.onnx")
    words = (tmp_path / "q.onnx", "--a", "cpu", "--b", "sim", "--random")
    assert compare(0, *words)["outputs"][0]["error"] == 0
    r = heddle("compare", *words, "--set-b", "sim.wrong=QLinearMatMul", "--json")
    got = json.loads(r.out)
    assert r.status == 1 and got["outputs_differ"] and got["outputs"][0]["error"] == 2, r


def test_memory(zoo):
    """A limit may be of a device that only one side has."""
    words = (*zoo, "--a", "cpu", "--b", "sim")
    assert compare(0, *words, "--memory", "sim:0=64MiB")["equal"]
    assert "more than its limit of 1024" in failing(1, "compare", *words, "--memory", "sim:0=1KiB")


# ---- words

def test_wrong_words(zoo, tmp_path):
    assert "which devices?" in failing(2, "compare", *zoo, "--a", "cpu")
    assert "did you mean --place-b" in failing(2, "compare", *zoo, "--plase-b", "x=1")
    assert "nowhere" in failing(1, "compare", *zoo, "--a", "cpu", "--b", "nowhere")
    assert "sim.wrong" not in failing(1, "compare", *zoo, "--a", "cpu", "--b", "sim", "--set-b", "sim.wrong=Conv:x")
    assert "x  float32 [2, 3, 8, 8]" in failing(1, "compare", zoo[0], "--a", "cpu", "--b", "sim")
    (tmp_path / "file").write_text("")
    words = ("--a", "cpu", "--b", "sim", "--set-b", "sim.wrong=Conv", "--output-dir", tmp_path / "file")
    assert "cannot make the folder" in failing(1, "compare", *zoo, *words)
