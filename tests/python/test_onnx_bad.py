"""ONNX files that are cut short, hostile or beyond what Heddle runs: each is refused with a message that names the file
and the place, at once, and all that is not supported is listed together.
timeout: 600
"""
import pathlib
import subprocess

import numpy as np
import onnx
import onnx_files as files
import pytest
from onnx import TensorProto, helper
from tool_case import TOOL, environment

TRACES = ("Sanitizer", "runtime error:", "core dumped")


def refused(path, *needles, words=("info",), status=1):
    env = environment(ASAN_OPTIONS="allocator_may_return_null=1")
    done = subprocess.run([str(TOOL), words[0], str(path), *words[1:]], capture_output=True, timeout=20, env=env,
                          stdin=subprocess.DEVNULL)
    text = done.stderr.decode(errors="replace")
    what = f"status {done.returncode}\n{text}"
    assert done.returncode == status and text.strip(), what
    assert not any(t in text for t in TRACES) and len(text) < 4000, what
    for needle in (path.name, *needles):
        assert str(needle) in text, f"'{needle}' is not said: {what}"
    return text


def relu(**more):
    return files.model([helper.make_node("Relu", ["x"], ["y"], name="relu")], {"x": (np.float32, (2, 3))}, ["y"], **more)


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if n == 0:
            return bytes(out)


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def raw(folder, content):
    path = folder / "bad.onnx"
    path.write_bytes(content)
    return path


def test_cut_short_anywhere(tmp_path):
    """No part of a model but the whole is one; parts that end between two fields lack something."""
    whole = relu().SerializeToString()
    for n in range(0, len(whole), 3):
        done = subprocess.run([str(TOOL), "info", str(raw(tmp_path, whole[:n]))], capture_output=True, timeout=20,
                              env=environment())
        if done.returncode == 0:  # all that follows may be left out
            onnx.checker.check_model(onnx.ModelProto.FromString(whole[:n]))
        else:
            assert done.returncode == 1 and b"bad.onnx: " in done.stderr, (n, done.stderr)


@pytest.mark.parametrize("content, words", [
    (b"", "format 0"), (b"hello, world\n", "byte 2"), (b"\x00" * 64, "byte 0"), (b"\xff" * 64, "byte 0"),
    (b'{"nodes": []}', "byte 0"), (b"\x7fELF", "byte"), (b"\x08\x08\x3a\xff\xff\xff\xff\x0f", "4294967295 bytes where 0"),
    (b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "bytes where 0 are left"), (b"\x08", "cut short"),
    (b"\x08\x08\x3a\x82\x80", "cut short"), (b"\x3b\x3c", "known kind"), (b"\x08\x08", "no graph")])
def test_no_model(tmp_path, content, words):
    if content == b"":
        words = "no graph"
    refused(raw(tmp_path, content), words)


def test_nested_deeper_than_a_stack(tmp_path):
    """An attribute that is a graph with a node with an attribute, a hundred thousand times."""
    content, parts = b"", []
    inner = 0
    for _ in range(100_000):
        for number in (1, 6, 5):
            head = varint(number << 3 | 2) + varint(inner)
            parts.append(head)
            inner += len(head)
    content = b"".join(reversed(parts))
    refused(raw(tmp_path, b"\x08\x08" + field(7, field(1, content))), "nested deeper than 64")


def test_names_that_are_no_text(tmp_path):
    graph = field(1, field(1, b"x") + field(2, b"y\x00z") + field(4, b"Relu")) + field(12, field(1, b"y"))
    refused(raw(tmp_path, b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")), "zero byte")
    graph = field(1, field(1, b"x") + field(2, b"\xff\xfe") + field(4, b"Relu")) + field(12, field(1, b"y"))
    refused(raw(tmp_path, b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")), "not UTF-8")


def tensor(**members):
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    if members.get("data_type") == TensorProto.STRING:  # which Add does not take
        node = helper.make_node("Identity", ["w"], ["y"], name="same")
    proto = files.model([node], {"x": (np.float32, (2,))}, ["y"])
    proto.graph.initializer.append(TensorProto(**{"name": "w", "data_type": 1, **members}))
    return proto


@pytest.mark.parametrize("members, words", [
    (dict(dims=[2], raw_data=bytes(7)), "raw_data has 7 bytes, and its shape needs 8"),
    (dict(dims=[2, 3], raw_data=bytes(8)), "raw_data has 8 bytes, and its shape needs 24"),
    (dict(dims=[2], float_data=[1]), "float_data has 1 numbers, and its shape needs 2"),
    (dict(dims=[2]), "float_data has 0 numbers"), (dict(dims=[-2], float_data=[1, 2]), "dimension 0 is -2"),
    (dict(dims=[2 ** 62, 2 ** 62], raw_data=bytes(8)), "more bytes than any memory"),
    (dict(dims=[2 ** 40], raw_data=bytes(8)), "needs 4398046511104"),
    (dict(dims=[2], data_type=10, int32_data=[1, 2 ** 16]), "number 1 of int32_data does not fit"),
    (dict(dims=[2], data_type=17, int32_data=[1, 256]), "number 1 of int32_data does not fit"),
    (dict(dims=[1] * 40, raw_data=bytes(4)), "over 32 dimensions"), (dict(dims=[2], data_type=8, string_data=[b"a"]), "1 strings"),
    (dict(dims=[2], data_type=8, string_data=[b"a", b"\xff"]), "not UTF-8"), (dict(dims=[1], data_type=8, string_data=[b"a\0"]), "a byte 0"),
    (dict(dims=[3], data_type=22, raw_data=bytes(3)), "raw_data has 3 bytes, and its shape needs 2"), (dict(dims=[2], data_type=99, raw_data=bytes(8)), "type 99"),
    (dict(dims=[2], data_type=-1, raw_data=bytes(8)), "type -1"), (dict(dims=[2], data_type=14, float_data=[1] * 4), "COMPLEX64")])
def test_tensors_that_lie(tmp_path, members, words):
    refused(files.save(tmp_path, tensor(**members), "bad"), "tensor 'w'", words)


def nodes(*made, inputs=None, outputs=("y",), **more):
    return files.model([helper.make_node(op, i, o, name=n) for n, op, i, o in made],
                       inputs or {"x": (np.float32, (2, 3))}, list(outputs), **more)


@pytest.mark.parametrize("proto, words", [
    (nodes(("a", "Add", ["x", "b"], ["a"]), ("b", "Relu", ["a"], ["y"]), ("c", "Neg", ["y"], ["b"])), ["'a' (Add)", "'c' (Neg)", "cycle"]),
    (nodes(("a", "Relu", ["nobody"], ["y"])), ["node 'a' (Relu)", "'nobody'"]),
    (nodes(("a", "Relu", ["x"], ["z"])), ["nothing makes output 'y'"]),
    (nodes(("a", "Relu", ["x"], ["y"]), ("b", "Neg", ["x"], ["y"])), ["'y'", "name of another value"]),
    (nodes(("a", "Relu", ["x"], ["x"]), outputs=["x"]), ["'x'", "name of another value"]),
    (nodes(("a", "Relu", ["x"], ["y"]), outputs=[]), ["no output"]),
    (nodes(("a", "Relu", ["x", "x"], ["y"])), ["'a' (Relu)", "2 inputs"]),
    (nodes(("a", "MatMul", ["x", "x"], ["y"])), ["'a' (MatMul)"]),
], ids=lambda p: None if isinstance(p, list) else "")
def test_graphs_that_are_wrong(tmp_path, proto, words):
    refused(files.save(tmp_path, proto, "bad"), *words)


def test_inputs_of_one_name(tmp_path):
    proto = relu()
    proto.graph.input.append(proto.graph.input[0])
    refused(files.save(tmp_path, proto, "bad"), "two inputs are named 'x'")


def test_an_output_that_is_described_wrongly(tmp_path):
    proto = files.model([helper.make_node("Relu", ["x"], ["y"], name="relu")], {"x": (np.float32, (2, 3))},
                        {"y": (np.int32, (2, 3))})
    refused(files.save(tmp_path, proto, "bad"), "int32 [2, 3]", "float32 [2, 3]")


def test_all_that_is_not_supported_is_listed(tmp_path):
    """Operators, types, graphs within nodes: one error, with the names of all."""
    inner = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "inner", [],
                              [helper.make_tensor_value_info("z", 1, [2])])
    made = [helper.make_node("Choose", ["c"], ["i"], name="choice", first=inner, second=inner),
            helper.make_node("Frobnicate", ["i"], ["f"], name="frob"),
            helper.make_node("Special", ["f"], ["s"], name="special", domain="com.example"),
            helper.make_node("Add", ["s", "w"], ["y"], name="add"), helper.make_node("Add", ["t", "y"], ["z"], name="more")]
    proto = files.model(made, {"x": (np.float32, (2,)), "c": (np.bool_, ())}, ["z"], {"w": np.zeros(2, np.complex64)})
    proto.graph.input.append(helper.make_tensor_value_info("t", TensorProto.STRING, [2]))
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, [])))
    proto.graph.input.append(helper.make_value_info("q", kind))
    refused(files.save(tmp_path, proto, "bad"), "'choice' (Choose)", "graph of its own", "'frob' (Frobnicate)", "'special'",
            "com.example: Special", "'w' is of COMPLEX64", "'more' (Add): it takes strings", "'q' is a sequence, no tensor")


def test_a_long_list_is_cut(tmp_path):
    made = [helper.make_node(f"Frobnicate{i}", [f"v{i}" if i else "x"], [f"v{i + 1}"], name=f"frob{i}") for i in range(500)]
    proto = files.model(made, {"x": (np.float32, (2,))}, ["v500"])
    assert " more" in refused(files.save(tmp_path, proto, "bad"), "'frob0'", "'frob5'")


def test_shapes_that_are_not_there(tmp_path):
    """A shape, and dimensions without a name, are known when the input is."""
    x = np.array([[-1, 2]], np.float32)
    for shape in (None, (None, 2)):
        proto = files.model([helper.make_node("Relu", ["x"], ["y"])], {"x": (np.float32, shape)}, ["y"])
        files.same(files.run(files.save(tmp_path, proto), {"x": x}), [np.maximum(x, 0)])


def test_limits(tmp_path):
    """The settings that hold for graphs and parameters hold here."""
    proto = tensor(dims=[20000], raw_data=bytes(80000))
    del proto.graph.input[0].type.tensor_type.shape.dim[:]
    proto.graph.input[0].type.tensor_type.shape.dim.add(dim_value=20000)
    path = files.save(tmp_path, proto, "bad")
    run = ("run", "--device", "cpu", "--random")
    assert "output" in files.tool_case.good("run", path, *run[1:])
    refused(path, "limit", words=(*run, "--set", "limit.params_bytes=70000"))
    refused(path, "limit", words=(*run, "--set", "limit.graph_bytes=100"))
    assert "output" in files.tool_case.good("run", path, *run[1:], "--set", "limit.graph_bytes=100000")


def test_files_that_are_none(tmp_path):
    refused(pathlib.Path("no/such/model.onnx"), "No such file")
    folder = tmp_path / "folder.onnx"
    folder.mkdir()
    refused(folder, "not a regular file")


def test_many_nodes_of_one_name(tmp_path):
    """Made unique without looking at all that came before."""
    count = 10000
    made = [helper.make_node("Clip", [f"v{i}" if i else "x"], [f"v{i + 1}"], name="same", min=-1.0) for i in range(count)]
    proto = files.model(made, {"x": (np.float32, (2,))}, [f"v{count}"], opset=9, ir=4)
    text = files.tool_case.good("info", files.save(tmp_path, proto))
    assert f"Clip {count}" in text
