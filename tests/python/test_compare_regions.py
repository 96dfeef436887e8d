"""heddle compare and regions: a plugin whose nodes are right one by one and whose fused regions are not is found by its
region, of which the smallest part that is wrong is named; PLUGIN.regions=0 runs such a model rightly.
timeout: 300"""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tool_case import BUILD, failing, good, heddle

FOLDER = BUILD / "tests" / "broken-plugins"


def plugin(name):
    return {"HEDDLE_PLUGIN_PATH": str(FOLDER / f"libheddle_plugin_{name}.so")}


def value(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8])


def saved(path, nodes, outputs):
    """A model of nodes (operator, inputs, output), each named as its output is; the words that run it."""
    random = np.random.default_rng(1)
    made = [helper.make_node(op, ins, [out], name=out) for op, ins, out in nodes]
    constants = {"w": random.standard_normal((8, 8)), "b": random.standard_normal((4, 8))}
    graph = helper.make_graph(made, "regions", [value("x"), value("y")], [value(n) for n in outputs],
                              [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path, "--a", "cpu", "--random", "--output-dir", path.parent / "out"


@pytest.fixture
def words(tmp_path):
    return saved(tmp_path / "m.onnx", [("Add", ["x", "y"], "sum"), ("Sub", ["y", "sum"], "less"),
                                       ("Gemm", ["less", "w", "b"], "gemm"), ("Relu", ["gemm"], "relu"),
                                       ("Add", ["relu", "less"], "last")], ["last"])


def compared(status, *words, **env):
    r = heddle("compare", *words, "--json", **env)
    assert r.status == status and r.err == "", r
    return json.loads(r.out)


# ---- the region

@pytest.mark.parametrize("name,smallest,at", [("region_skips", ["gemm", "relu"], "relu"),
                                              ("region_order", ["sum", "less"], "less")])
def test_the_smallest_part(words, name, smallest, at):
    got = compared(1, *words, "--b", name, **plugin(name))
    (region,) = got["regions"]
    assert region["nodes"] == ["sum", "less", "gemm", "relu", "last"] and region["smallest"] == smallest, region
    assert (region["node"], region["device"], region["setting"]) == (at, f"{name}:0", f"{name}.regions=0")
    assert region["beyond"] > 0 and abs(region["got"] - region["expected"]) > region["bound"]
    assert got["differences"] == [] and got["compared"] == got["nodes"] and not got["equal"]


def test_as_text(words):
    r = heddle("compare", *words, "--b", "region_skips", **plugin("region_skips"))
    assert r.status == 1 and "region of 5 nodes on region_skips:0: it differs, and its nodes one by one agree" in r.out, r
    assert "smallest part that differs: gemm (Gemm), relu (Relu)\n" in r.out, r
    assert "--set region_skips.regions=0 runs the nodes one by one\n" in r.out, r


def test_the_advice_works(words):
    got = compared(0, *words, "--b", "region_skips", "--set", "region_skips.regions=0", **plugin("region_skips"))
    assert got["equal"] and got["regions"] == [] and got["regions_compared"] == 0


def test_a_value_that_leaves(tmp_path):
    """A result of the region that it does not write."""
    words = saved(tmp_path / "m.onnx", [("Add", ["x", "y"], "sum"), ("Relu", ["sum"], "relu")], ["relu", "sum"])
    got = compared(1, *words, "--b", "region_one_use", **plugin("region_one_use"))
    assert [r["smallest"] for r in got["regions"]] == [["sum", "relu"]] and got["regions"][0]["node"] == "sum"


def test_sound_regions(words):
    got = compared(0, *words, "--b", "sound_fused", **plugin("sound_fused"))
    assert got["equal"] and got["regions_compared"] == 1 and got["regions"] == []


def test_a_region_of_the_rewritten_model(tmp_path):
    """In the model as it is written another device's node lies between the two."""
    words = saved(tmp_path / "m.onnx", [("Gemm", ["x", "w", "b"], "gemm"), ("Max", ["gemm"], "same"),
                                        ("Relu", ["same"], "relu")], ["relu"])
    words = (*words, "--b", "region_skips,cpu")
    r = heddle("compare", *words, **plugin("region_skips"))
    assert r.status == 1 and "agree with --set-b region_skips.regions=0" in r.err and "gemm+relu" in r.err, r
    got = compared(1, *words, **plugin("region_skips"))
    assert got["outputs_differ"] and got["rewritten_region"] == "gemm+relu" and got["regions"] == []
    assert compared(0, *words, "--set-b", "region_skips.regions=0", **plugin("region_skips"))["equal"]


def test_a_wrong_node_in_a_right_region(words):
    """The reverse: sim's planted fault is in the node, alone and in a region."""
    got = compared(1, *words, "--b", "sim", "--set-b", "sim.fuse=1", "--set-b", "sim.wrong=Gemm")
    (first,) = got["differences"]
    assert first["node"] == "gemm" and first["region"] in ("differs", "right"), first


# ---- the setting

def plan(path, *words, **env):
    return json.loads(good("plan", path, "--json", *words, **env))


@pytest.mark.parametrize("device,more", [("cpu", ()), ("sim", ("--set", "sim.fuse=1"))])
def test_nodes_one_by_one(tmp_path, device, more):
    path = saved(tmp_path / "m.onnx", [("Sub", ["x", "y"], "a"), ("Add", ["a", "y"], "b2"), ("Relu", ["b2"], "c")], ["c"])[0]
    fused = plan(path, "--device", device, *more)
    assert max(len(r["nodes"]) for r in fused["regions"]) > 1 and fused["devices"][0]["regions"]
    plain = plan(path, "--device", device, *more, "--set", f"{device}.regions=0")
    assert {len(r["nodes"]) for r in plain["regions"]} == {1} and not plain["devices"][0]["regions"]
    by_variable = plan(path, "--device", device, *more, **{f"HEDDLE_{device.upper()}_REGIONS": "0"})
    assert by_variable["regions"] == plain["regions"]
    text = good("plan", path, "--device", device, *more, "--set", f"{device}.regions=0")
    assert f"regions   off, nodes run one by one on {device}:0\n" in text


def test_of_any_plugin(words):
    """A plugin that does not ask for it, in the file too; names that are near are found."""
    (words[0].parent / "config.json").write_text('{"sound_fused": {"regions": 0}}')
    env = plugin("sound_fused")
    file = {**env, "HEDDLE_CONFIG": str(words[0].parent / "config.json")}
    assert plan(words[0], "--device", "sound_fused", **env)["devices"][0]["regions"]
    assert not plan(words[0], "--device", "sound_fused", **file)["devices"][0]["regions"]
    r = heddle("plan", words[0], "--device", "sound_fused", "--set", "sound_fused.region=0", **env)
    assert r.status == 0 and "did you mean 'sound_fused.regions'?" in r.err, r


def test_other_values(words):
    env = plugin("sound_fused")
    said = failing(1, "plan", words[0], "--device", "sound_fused", "--set", "sound_fused.regions=2", **env)
    assert "setting 'sound_fused.regions' is '2' (call); it must be a whole number from 0 to 1" in said
