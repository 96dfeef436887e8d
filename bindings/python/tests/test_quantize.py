"""heddle.quantize: what the tool does, with the lines as objects."""
import heddle
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(1)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"], name="one"), helper.make_node("MatMul", ["h", "v"], ["y"], name="two")],
                              "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 32])],
                              [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in (("w", (64, 48)), ("v", (48, 32)))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_layers_and_values(path):
    out = path.parent / "q.onnx"
    x = np.random.default_rng(2).standard_normal((3, 64)).astype(np.float32)
    want = np.asarray(heddle.load(path, devices="cpu")(x))
    for form in ("nbits", "qdq"):
        layers = heddle.quantize(path, out, weights="int8", form=form, keep="two")
        assert [(x.node, x.op, x.tensor, x.kept) for x in layers] == [("one", "MatMul", "w", None), ("two", "MatMul", "v", "it is to be kept")]
        assert layers[0].rows == 48 and layers[0].columns == 64 and 0 < layers[0].error < 0.01 and layers[0].bytes_after < layers[0].bytes_before / 2
        np.testing.assert_allclose(np.asarray(heddle.load(out, devices="cpu")(x)), want, atol=0.02 * np.abs(want).max())


def test_what_is_refused(path):
    for words in ({"weights": "int3"}, {"form": "x"}, {"block": 48}):
        with pytest.raises(ValueError):
            heddle.quantize(path, path.parent / "q.onnx", **words)
    with pytest.raises(heddle.Error, match="missing.onnx"):
        heddle.quantize(path.parent / "missing.onnx", path.parent / "q.onnx")
