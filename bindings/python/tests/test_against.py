"""heddle bench and heddle compare --against onnxruntime, by the tool and by the module."""
import json
import os
import pathlib
import subprocess
import sys

import heddle
import numpy as np
import onnx
import pytest
from heddle import against, against_plan
from onnx import TensorProto, helper, numpy_helper

import small_models as small

pytest.importorskip("onnxruntime")
TOOL = pathlib.Path(heddle.__file__).parents[2] / "bin" / "heddle"


def tool(*words, env=None, status=0):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "HEDDLE_PYTHON": sys.executable, **(env or {})}, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def test_bench(tmp_path):
    if not TOOL.exists():
        pytest.skip("no tool in this build")
    path = small.perceptron(tmp_path)
    report = json.loads(tool("bench", path, "--against", "onnxruntime", "--threads", 1, "--repeat", 2, "--number", 2, "--dim",
                             "batch=3", "--json"))
    assert report["inputs"] == {"x": ["float32", [3, 8]]} and report["threads"] == 1 and report["devices"] == ["cpu:0"]
    assert set(report["wall_ms"]) == {"heddle", "onnxruntime"} and all(n > 0 for n in report["wall_ms"].values())
    assert report["ratio"] == report["wall_ms"]["heddle"] / report["wall_ms"]["onnxruntime"]
    for one in report["losers"]:
        assert one["longer_us"] > 0 and one["causes"][-1].startswith("onnxruntime: ")
    text = tool("bench", path, "--against", "onnxruntime", "--repeat", 2)
    assert "wall ms" in text and "ratio" in text and "operator" in text


def test_bench_of_stages(tmp_path):
    body = [helper.make_graph([helper.make_node(op, ["x"], ["o"])], op, [], [helper.make_tensor_value_info("o", 1, [4])])
            for op in ("Neg", "Relu")]
    node = helper.make_node("If", ["c"], ["y"], then_branch=body[0], else_branch=body[1])
    path = small.save(tmp_path, "choice", [node], [("x", (4,)), ("c", (), TensorProto.BOOL)], [("y", (4,))])
    assert "ratio" in tool("bench", path, "--against", "onnxruntime", "--repeat", 1, "--number", 1)


def test_compare(tmp_path):
    if not TOOL.exists():
        pytest.skip("no tool in this build")
    path = small.perceptron(tmp_path)
    assert "agree on 2 outputs" in tool("compare", path, "--against", "onnxruntime")
    x = tmp_path / "x.npy"
    np.save(x, np.full((2, 8), np.nan, np.float32))
    report = json.loads(tool("compare", path, "--against", "onnxruntime", "--input", f"x={x}", "--json"))
    assert not report["differs"] and [row["shape"] for row in report["outputs"]] == [[2, 5], [2, 5]]


@pytest.mark.parametrize("words, status, needs", [
    (["bench", "m.json", "--against", "onnxruntime"], 1, ".onnx file"), (["bench", "m.onnx", "--against", "tflite"], 1, "only onnxruntime"),
    (["bench", "none.onnx", "--against", "onnxruntime"], 1, "No such file"),
    (["bench", "m.onnx", "--against", "onnxruntime", "--end-to-end"], 2, "leave out"),
    (["compare", "m.onnx", "--against", "onnxruntime", "--a", "cpu"], 2, "leave out"),
    (["bench", "m.onnx", "--against", "onnxruntime", "--device", "vulkan:0"], 1, "no provider"),
    (["compare", "m.onnx", "--against", "onnxruntime", "--input", "q=x.npy"], 1, ""),
])
def test_words_that_are_wrong(tmp_path, monkeypatch, words, status, needs):
    if not TOOL.exists():
        pytest.skip("no tool in this build")
    monkeypatch.chdir(tmp_path)
    os.rename(small.add(tmp_path), "m.onnx")
    assert needs in tool(*words, status=status)


def test_what_is_missing_is_named(tmp_path):
    if not TOOL.exists():
        pytest.skip("no tool in this build")
    path = small.add(tmp_path)
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('none here')")
    assert "onnxruntime is not installed" in tool("bench", path, "--against", "onnxruntime", status=1,
                                                  env={"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert "needs Python" in tool("bench", path, "--against", "onnxruntime", status=1, env={"HEDDLE_PYTHON": "/nowhere/python"})


def test_differences_are_found():
    a = np.array([1, 2, np.nan, np.inf], np.float32)
    assert against._difference(a, a)["beyond"] == 0
    assert against._difference(a + np.array([0, 1e-4, 0, 0], np.float32), a)["beyond"] == 0
    for wrong in ([1, 2.1, np.nan, np.inf], [1, 2, 0, np.inf], [1, 2, np.nan, -np.inf], [np.nan, 2, np.nan, np.inf]):
        assert against._difference(np.array(wrong, np.float32), a)["beyond"] == 1
    assert against._difference(np.array([1, 2]), np.array([1, 3]))["beyond"] == 1
    assert against._difference(a, a.astype(np.float64))["beyond"] == 4


def test_losers_and_families():
    assert [against_plan.family_of(op) for op in ("Conv+Sigmoid+Mul", "FusedConv", "QuickGelu", "Sigmoid+Mul", "Add", "h2d")] == [
        "Conv", "Conv", "Sigmoid", "Sigmoid", "Add", "copies"]
    theirs = against_plan.theirs_by_family([{"name": "a", "op": "FusedConv", "us": 5.0}, {"name": "b", "op": "Conv", "us": 5.0}])
    rows = against_plan.losers_of({"Conv": 30.0, "Add": 40.0, "Relu": 0.1}, theirs)
    assert [(row["operator"], row["longer_us"], row["against_us"]) for row in rows] == [("Add", 40.0, None), ("Conv", 20.0, 10.0)]


def test_causes_name_what_the_plan_chose(tmp_path):
    weights = [numpy_helper.from_array(np.ones((16, 3, 3, 3), np.float32), "w")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"], name="relu")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", 1, [1, 16, 8, 8])], weights)
    path = str(tmp_path / "c.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    model = heddle.load(path, devices="cpu")
    profile = model.profile()
    families = {against_plan.family_of(row["op"]) for row in profile.rows}
    causes = against_plan.causes_of(sorted(families), profile.rows, model.plan, {"Conv": {"us": 1.0, "ops": {"FusedConv": 1}}})
    assert "'conv" in causes["Conv"][0] and "reads" in causes["Conv"][0] and "placed by preference" in causes["Conv"][0]
    assert causes["Conv"][-1] == "onnxruntime: 1 x FusedConv"
