"""NonMaxSuppression of any number of boxes, beside ONNX Runtime: many boxes, equal scores, limits, centres."""
import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper

theirs = pytest.importorskip("onnxruntime")


def suppression(centers, inputs):
    info = helper.make_tensor_value_info
    names = ["boxes", "scores", "most", "overlap", "least"][:inputs]
    kinds = [(TensorProto.FLOAT, ["n", "b", 4]), (TensorProto.FLOAT, ["n", "c", "b"]), (TensorProto.INT64, [1]),
             (TensorProto.FLOAT, [1]), (TensorProto.FLOAT, [1])]
    node = helper.make_node("NonMaxSuppression", names, ["chosen"], center_point_box=centers)
    graph = helper.make_graph([node], "g", [info(name, *kind) for name, kind in zip(names, kinds)],
                              [info("chosen", TensorProto.INT64, ["k", 3])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("batch, classes, boxes, most, levels", [
    (1, 1, 1, 5, 0), (1, 2, 0, 5, 0), (2, 3, 40, 7, 0), (2, 2, 300, 300, 5), (1, 1, 4097, 100, 0), (1, 3, 6000, 200, 9), (1, 1, 20000, 50, 0),
    (1, 2, 30, 0, 0)])
@pytest.mark.parametrize("centers", [0, 1])
@pytest.mark.parametrize("inputs", [4, 5])
def test_chooses_what_onnx_runtime_does(batch, classes, boxes, most, levels, centers, inputs):
    rng = np.random.default_rng(boxes + inputs)
    where = rng.random((batch, boxes, 4), np.float32) * np.array([8, 8, 1, 1], np.float32) + np.array([0, 0, .1, .1], np.float32)
    if not centers:
        where[..., 2:] += where[..., :2]
    scores = rng.random((batch, classes, boxes), np.float32)
    if levels:
        scores = np.floor(scores * levels).astype(np.float32) / levels
    feed = dict(zip(["boxes", "scores", "most", "overlap", "least"], [where, scores, np.array([most]), np.array([.5], np.float32),
                                                                      np.array([.3], np.float32)][:inputs]))
    data = suppression(centers, inputs)
    (want,) = theirs.InferenceSession(data).run(None, feed)
    got = heddle.load(data, devices="cpu").run(feed)["chosen"]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
