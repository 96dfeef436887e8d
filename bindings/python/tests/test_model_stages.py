"""Profiles of models in stages, and what model.plan says of a model whose shapes are open."""
import heddle
import numpy as np
import onnx
import pytest

import small_models as small


def looped(tmp_path):
    info, number = onnx.helper.make_tensor_value_info, onnx.TensorProto
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["v", "v"], ["w"], name="twice"), onnx.helper.make_node("Identity", ["c"], ["d"])], "body",
        [info("i", number.INT64, []), info("c", number.BOOL, []), info("v", number.FLOAT, [4])],
        [info("d", number.BOOL, []), info("w", number.FLOAT, [4])])
    nodes = [onnx.helper.make_node("Relu", ["x"], ["r"], name="first"),
             onnx.helper.make_node("Loop", ["n", "", "r"], ["z"], body=body, name="loop"),
             onnx.helper.make_node("Neg", ["z"], ["y"], name="last")]
    return small.save(tmp_path, "looped", nodes, [("x", (4,)), ("n", (), number.INT64)], [("y", (4,))])


def test_profile_of_stages_has_a_row_for_each_time_that_a_step_ran(tmp_path):
    model = heddle.load(looped(tmp_path), devices="cpu")
    x = np.ones(4, np.float32)
    for times in 3, 0, 5:
        profile = model.profile(x, np.array(times, np.int64), runs=3)
        names = [row["name"] for row in profile.rows if row["op"] != "host_copy"]
        assert names == ["first"] + ["twice"] * times + ["last"]
        assert [row["step"] for row in profile.rows] == sorted(row["step"] for row in profile.rows)
        assert {one["op"]: one["count"] for one in profile.operators}.get("Add", 0) == times
    np.testing.assert_array_equal(model(x, np.array(2, np.int64)), -4 * x)


def test_plan_of_open_shapes_says_what_it_needs(tmp_path):
    model = heddle.load(small.perceptron(tmp_path), devices="cpu")
    for show in (str, repr, lambda plan: plan.json, lambda plan: plan._repr_html_()):
        with pytest.raises(heddle.errors.InvalidError, match=r"input 'x' is \[batch, 8\].*plan_for.*dims=\{\"batch\": \.\.\.\}"):
            show(model.plan)
    x = np.ones((3, 8), np.float32)
    assert "first" in str(model.plan_for(x))
    model(x)
    assert "first" in str(model.plan)
    model.close()
    with pytest.raises(heddle.errors.InvalidError, match="closed"):
        str(model.plan)
