"""Checks the reference itself: its graphs are what they promise, and numpy float32 stays within its bounds.
Fast enough to run with every change; nothing of Heddle is needed."""

import collections
import json
import pathlib
import struct

import numpy as np
import pytest

from . import evaluate, graphs, io, placements

SEEDS = range(20)
DEVICES = ["cpu", "sim:0", "sim:1", "sim:2"]


def operators(graph):
    return [n for n in graph["nodes"] if n["op"] != "null"]


@pytest.mark.parametrize("seed", SEEDS)
def test_float32_lies_within_the_bound(seed):
    graph, params, inputs = graphs.random_graph(seed)
    values, limits = evaluate.evaluate(graph, params, inputs)
    again = evaluate.numpy_values(graph, params, inputs, np.float64)
    single = evaluate.float32_error(graph, params, inputs)
    for node in graph["nodes"]:
        name = node["name"]
        assert values[name].shape == limits[name].shape == single[name].shape == again[name].shape, name
        if node["op"] == "null":
            continue
        assert single[name].dtype == np.float32 and values[name].dtype == np.float64, name
        assert np.abs(again[name] - values[name]).max() <= 1e-9 * limits[name].max() + 1e-12, name
        assert (np.abs(single[name] - values[name]) <= limits[name]).all(), name
        assert np.abs(values[name]).max() <= 4 and values[name].size <= 4096, name
        assert limits[name].max() <= 1e-3 * np.abs(values[name]).max(), name  # the bound says something


def test_a_wrong_value_lies_outside_the_bound():
    """One element changed by a thousandth in a parameter is seen, in most graphs, at the heads."""
    seen = 0
    for seed in SEEDS:
        graph, params, inputs = graphs.random_graph(seed, 60)
        values, limits = evaluate.evaluate(graph, params, inputs)
        wrong = {k: v * np.float32(1.001) if v.dtype == np.float32 else v for k, v in inputs.items()}
        got = evaluate.float32_error(graph, params, wrong)
        heads = [graph["nodes"][i]["name"] for i, _, _ in graph["heads"]]
        seen += any((np.abs(got[h] - values[h]) > limits[h]).any() for h in heads)
    assert seen >= 0.9 * len(SEEDS)


def test_sizes_and_operators():
    counts, sizes, heads, inner, shared = collections.Counter(), [], 0, 0, 0
    for seed in range(1000, 1050):
        graph, params, inputs = graphs.random_graph(seed)
        sizes.append(len(graph["nodes"]))
        counts.update(n["op"] for n in operators(graph))
        users = collections.Counter(i for n in operators(graph) for i in {j for j, _, _ in n["inputs"]})
        assert all(users[i] for i in graph["arg_nodes"]), "an input or parameter that nobody uses"
        shared += sum(users[i] > 1 for i in graph["arg_nodes"])
        ids = [i for i, _, _ in graph["heads"]]
        assert len(set(ids)) == len(ids)
        assert all(users[i] or i in ids for i in range(len(graph["nodes"]))), "a node without effect"
        heads += len(ids) > 1
        inner += any(users[i] for i in ids)
        for name, value in {**params, **inputs}.items():
            assert value.size <= 4096, name
    assert min(sizes) >= 5 and max(sizes) <= 200 and max(sizes) - min(sizes) > 150
    assert min(counts[op] for op in graphs.OPERATORS) >= 20, counts
    assert heads >= 30 and inner >= 20 and shared >= 50


def test_form():
    for seed in SEEDS:
        graph, params, inputs = graphs.random_graph(seed, 80, odd_heads=True)
        nodes, count = graph["nodes"], len(graph["nodes"])
        assert len({n["name"] for n in nodes}) == count <= 80
        assert graph["arg_nodes"] == [i for i, n in enumerate(nodes) if n["op"] == "null"]
        assert {nodes[i]["name"] for i in graph["arg_nodes"]} == {*params, *inputs}
        assert all(-1 <= j < i for i, n in enumerate(nodes) for j, _, _ in n["inputs"])
        for i, node in enumerate(nodes):
            dtype, shape = graph["attrs"]["dltype"][1][i], graph["attrs"]["shape"][1][i]
            assert (dtype is None) == (shape is None) == (node["op"] != "null")
        assert any(nodes[i]["op"] == "null" for i, _, _ in graph["heads"])


def test_same_seed_same_graph():
    one, two, other = (graphs.random_graph(s, 100) for s in (7, 7, 8))
    assert json.dumps(one[0]) == json.dumps(two[0]) != json.dumps(other[0])
    assert io.params_blob(one[1]) == io.params_blob(two[1])
    assert placements.placements(one[0], 3) == placements.placements(two[0], 3) != placements.placements(one[0], 4)


@pytest.mark.parametrize("devices", [DEVICES, DEVICES[:3], DEVICES[:2]])
def test_placements_cross(devices):
    parts, used = [], set()
    for seed in SEEDS:
        graph, _, _ = graphs.random_graph(seed)
        made = placements.placements(graph, seed, devices)
        assert len(made) == 4
        for placement in made:
            assert set(placement) == {n["name"] for n in operators(graph)}
            used |= set(placement.values())
            parts.append(placements.crossing_fraction(graph, placement))
            marked = placements.with_placement(graph, placement)
            assert [n["device"] for n in operators(marked)] == list(placement.values())
    assert used == set(devices)
    assert np.mean(parts) >= 0.4 and np.mean(np.array(parts) >= 0.3) >= 0.8


def test_one_device_never_crosses():
    graph, _, _ = graphs.random_graph(1)
    assert [placements.crossing_fraction(graph, p) for p in placements.placements(graph, 1, ["cpu"])] == [0] * 4


def test_params_worked_example():
    """The 97 bytes that the format's description gives for one tensor."""
    blob = io.params_blob({"w": np.array([1.0, -2.5], np.float32)})
    assert len(blob) == 97 and blob[:8].hex() == "b79c04054f8de5f7" and blob[0x29:0x31].hex() == "3fa1b496f0405edd"
    assert blob[0x41:0x49].hex() == "0100000002200100" and blob[0x59:].hex() == "0000803f000020c0"
    for cut in range(len(blob)):
        with pytest.raises(ValueError):
            io.parse_params(blob[:cut])
    with pytest.raises(ValueError):
        io.parse_params(blob[:16] + struct.pack("<Q", 2**60) + blob[24:])


def test_files_round_trip(tmp_path):
    graph, params, inputs = graphs.random_graph(11)
    params = {**params, "odd": np.array(True), "empty": np.zeros((0, 3), np.float16), "u": np.arange(3, dtype=np.uint8)}
    path = io.write_case(tmp_path / "case", graph, params, inputs)
    assert io.read_graph(path) == graph
    got = io.read_params(path.with_suffix(".params"))
    assert list(got) == list(params)
    for name, value in params.items():
        assert got[name].dtype == value.dtype and np.array_equal(got[name], value), name
    for name, value in inputs.items():
        assert np.array_equal(io.read_npy(pathlib.Path(path).parent / f"{name}.npy"), value), name
