"""The option seed: other numbers of random operators that have no seed of their own, in the graphs of nodes too."""
import pathlib
import subprocess

import heddle
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT
TOOL = pathlib.Path(heddle.__file__).parents[2] / "bin" / "heddle"


def model():
    inner = [helper.make_graph([helper.make_node("RandomUniform", [], [name], name=name, shape=[9])], name, [],
                               [helper.make_tensor_value_info(name, FLOAT, [9])]) for name in ("p", "q")]
    nodes = [helper.make_node("RandomNormal", [], ["a"], name="a", shape=[9]), helper.make_node("RandomNormal", [], ["b"], name="b", shape=[9]),
             helper.make_node("RandomNormal", [], ["c"], name="c", shape=[9], seed=5.0), helper.make_node("Bernoulli", ["x"], ["d"], name="d"),
             helper.make_node("Dropout", ["x", "half", "on"], ["e"], name="e"),
             helper.make_node("If", ["on"], ["f"], name="f", then_branch=inner[0], else_branch=inner[1])]
    weights = [helper.make_tensor("half", FLOAT, [], [0.5]), helper.make_tensor("on", TensorProto.BOOL, [], [True])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [64])],
                              [helper.make_tensor_value_info(name, FLOAT, [64 if name in "de" else 9]) for name in "abcdef"], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def numbers(**options):
    loaded = heddle.load(model(), devices="cpu", **options)
    feed = {"x": np.full(64, 0.5, np.float32)}
    first, again = loaded.run(None, feed), loaded.run(None, feed)
    assert all(np.array_equal(x, y) for x, y in zip(first, again))
    return dict(zip("abcdef", first))


def test_seed():
    plain, one, two, large = numbers(), numbers(seed=1), numbers(seed=2), numbers(seed=2**64 - 1)
    for some, other in ((plain, one), (one, two), (two, large)):
        for name in "abdef":
            assert not np.array_equal(some[name], other[name]), name
        assert np.array_equal(some["c"], other["c"])
    assert not np.array_equal(one["a"], one["b"])
    assert all(np.array_equal(one[name], again) for name, again in numbers(seed=1).items())
    assert all(np.array_equal(plain[name], again) for name, again in numbers(seed=0).items())


def test_tool(tmp_path):
    if not TOOL.exists():
        pytest.skip("the package is installed without the tool beside it")
    onnx.save(model(), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.full(64, 0.5, np.float32))
    got = {}
    for seed in ("0", "1"):
        folder = tmp_path / seed
        folder.mkdir()
        done = subprocess.run([str(TOOL), "run", str(tmp_path / "m.onnx"), "--device", "cpu", "--seed", seed,
                               "--input", f"x={tmp_path}/x.npy", "--output-dir", str(folder)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        got[seed] = np.load(folder / "output_0.npy")
    np.testing.assert_array_equal(got["1"], numbers(seed=1)["a"])
    np.testing.assert_array_equal(got["0"], numbers()["a"])
