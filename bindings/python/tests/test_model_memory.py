"""Models in memory: bytes of any kind and ModelProto, weights in a folder that is given, and what is refused."""
import heddle
import numpy as np
import onnx
import pytest
from heddle import errors
from onnx import TensorProto, helper, numpy_helper

X = np.random.default_rng(3).standard_normal((2, 300)).astype(np.float32)
W = np.random.default_rng(4).standard_normal((300, 300)).astype(np.float32)


def product():
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                              [info("x", TensorProto.FLOAT, ["n", 300])], [info("y", TensorProto.FLOAT, ["n", 300])],
                              [numpy_helper.from_array(W, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("form", [lambda m: m, lambda m: m.SerializeToString(), lambda m: bytearray(m.SerializeToString()),
                                  lambda m: memoryview(m.SerializeToString())])
def test_loads_what_is_in_memory(form):
    model = heddle.load(form(product()), devices="cpu")
    np.testing.assert_allclose(model(X), X @ W, rtol=1e-4, atol=1e-4)
    assert model.path is None


def test_bytes_may_change_and_go_after_the_load():
    data = bytearray(product().SerializeToString())
    model = heddle.load(data, devices="cpu")
    data[:] = bytes(len(data))
    del data
    np.testing.assert_allclose(model(X), X @ W, rtol=1e-4, atol=1e-4)


def test_json_in_memory():
    graph = heddle.load(product(), devices="cpu").graph_json()
    with pytest.raises(errors.InvalidError, match="'w'"):
        heddle.load(graph.encode(), devices="cpu")(X)  # without parameters, w is an input
    np.testing.assert_allclose(heddle.load(graph.encode(), devices="cpu")(x=X, w=W), X @ W, rtol=1e-4, atol=1e-4)


def test_weights_outside_need_the_folder(tmp_path):
    onnx.save_model(product(), str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    model = heddle.load(data, folder=tmp_path, devices="cpu")
    np.testing.assert_allclose(model(X), X @ W, rtol=1e-4, atol=1e-4)
    with pytest.raises(errors.UnsupportedError, match="'w'"):
        heddle.load(data, devices="cpu")
    with pytest.raises(errors.FileError, match="w.bin"):
        heddle.load(data, folder=tmp_path / "elsewhere", devices="cpu")
    with pytest.raises(TypeError, match="folder"):
        heddle.load(tmp_path / "m.onnx", folder=tmp_path)


def test_weights_outside_stay_in_the_folder(tmp_path):
    (tmp_path / "inside").mkdir()
    onnx.save_model(product(), str(tmp_path / "m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnx.load(str(tmp_path / "m.onnx"), load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../w.bin"
    with pytest.raises(errors.FormatError, match="outside of the model's folder"):
        heddle.load(model, folder=tmp_path / "inside", devices="cpu")


@pytest.mark.parametrize("what, kind, words", [
    (b"", errors.InvalidError, "bytes"), (b"\x08", errors.FormatError, "no ONNX model"), (b"\x7fELF  ", errors.UnsupportedError, "file"),
    (b"{}", errors.FormatError, "nodes"), (3, TypeError, "not builtins.int"), (None, TypeError, "onnx.ModelProto"),
    (np.zeros(3), TypeError, "numpy.ndarray"), (memoryview(b"abcd")[::2], BufferError, "."),
])
def test_what_is_no_model_is_refused(what, kind, words):
    with pytest.raises(kind, match=words):
        heddle.load(what, devices="cpu")


def test_every_cut_of_a_model_is_an_error_or_a_model():
    data = product().SerializeToString()
    for end in list(range(1, 120)) + list(range(len(data) - 200, len(data))):
        with pytest.raises(heddle.Error):
            heddle.load(data[:end], devices="cpu")


def refused(nodes, imports):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [2, 2])], [info("y", TensorProto.FLOAT, [2, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in imports], ir_version=8)
    with pytest.raises(errors.UnsupportedError) as caught:
        heddle.load(model, devices="cpu")
    return str(caught.value), caught.value.node


def test_a_refusal_has_one_entry_for_each_operator():
    nodes = [helper.make_node("NoSuch", ["x"], [f"a{i}"], name=f"n{i}", domain="com.microsoft") for i in range(400)]
    nodes += [helper.make_node("Nothing", ["x"], [f"b{i}"], name=f"m{i}") for i in range(7)]
    nodes += [helper.make_node("LikeNone", ["a0"], ["y"], name="last", domain="org.example")]
    text, node = refused(nodes, [("", 17), ("com.microsoft", 1)])
    assert text.count("NoSuch") == 1 and "400 nodes (com.microsoft: NoSuch), the first is 'n0'" in text
    assert "opset 1 of com.microsoft" in text
    assert "7 nodes (Nothing), the first is 'm0': the operator is not known in opset 17" in text
    assert "node 'last' (org.example: LikeNone)" in text and "imports no opset of org.example" in text
    assert node == "n0"


def test_a_refusal_of_more_than_there_is_room_for_counts_the_rest():
    nodes = [helper.make_node(f"Op{i}", ["x"], [f"a{i}"], domain="com.microsoft") for i in range(60)]
    nodes += [helper.make_node("Relu", ["x"], ["y"])]
    text, _ = refused(nodes, [("", 17), ("com.microsoft", 3)])
    listed = sum(f": Op{i})" in text for i in range(60))
    assert listed >= 5 and f"and {60 - listed} more" in text
