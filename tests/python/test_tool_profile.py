"""heddle run --profile and --profile-json: steps, sums and the critical path, checked against the plan that heddle plan
--json reports, on cpu, two sims and PoCL; runs of known order; what is said where it cannot be had.
timeout: 600"""

import json
import re

import pytest
from profile_case import before, check_path, check_sums, reads, taken
from tool_case import DIGITS, failing, good, heddle

ON_SIMS = ("--device", "cpu,sim:0,sim:1", "--place", "wide*=sim:0", "--place", "fine*=sim:1")


@pytest.mark.parametrize("words", [("--device", "cpu", "--place", "*=cpu:0"), ("--device", "sim", "--place", "*=sim:0"), ON_SIMS,
                                   (*ON_SIMS, "--set", "sim.delay_us=300"), (*ON_SIMS, "--set", "sim.views=0")],
                         ids=["cpu", "sim", "both", "slow", "slots"])
def test_sums_and_path(words, tmp_path):
    p, plan = taken(tmp_path, DIGITS, *words)
    assert p["model"] == str(DIGITS) and p["format"] == 1
    check_sums(p, plan)
    check_path(p, plan)


@pytest.mark.parametrize("place", [("--place", "*=opencl:0"), ("--place", "wide*=opencl:0", "--place", "fine*=sim:0")],
                         ids=["alone", "mixed"])
def test_on_opencl(place, tmp_path):
    from pocl import ENV, need
    need()
    p, plan = taken(tmp_path, DIGITS, "--device", "cpu,opencl:0,sim:0", *place, runs=3, **ENV)
    check_sums(p, plan)
    check_path(p, plan)


def chain(tmp_path, devices, length=8, n=192):
    """Relu and MatMul by turns, each on the next of the devices."""
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": "MatMul" if i % 2 else "Relu", "name": f"n{i}", "inputs": [[i, 0, 0]] * (2 if i % 2 else 1),
               "device": devices[i % len(devices)]} for i in range(length)]
    path = tmp_path / "chain.json"
    path.write_text(json.dumps({
        "heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0], "heads": [[length, 0, 0]],
        "node_row_ptr": list(range(length + 2)),
        "attrs": {"dltype": ["list_str", ["float32"] + [None] * length],
                  "shape": ["list_shape", [[n, n]] + [None] * length]}}))
    return path


@pytest.mark.parametrize("devices", ["cpu,opencl:0", "sim:0,opencl:0", "opencl:0,cpu", "opencl:1,opencl:0,cpu", "opencl:0,sim:0,cpu"])
def test_one_clock(devices, tmp_path):
    """On graphs of unlike devices no step begins before what it needs is done, and steps of one stream fit into the run."""
    from pocl import ENV, need
    need()
    p, plan = taken(tmp_path, chain(tmp_path, devices.split(",")), "--device", devices, runs=3, **ENV)
    check_sums(p, plan)
    check_path(p, plan)
    steps, streams = {s["step"]: s for s in p["steps"]}, {}
    assert len({s["device"] for s in p["steps"]}) == len(devices.split(","))
    for step, s in steps.items():
        streams[s["stream"]] = streams.get(s["stream"], 0) + s["end_ns"] - s["start_ns"]
        for other in [*before(plan, step), *(k for k in range(step) if reads(plan, step, k))]:
            assert steps[other]["end_ns"] <= s["start_ns"], (steps[other], s)
    assert all(taken_ns <= p["wall_ns"] for taken_ns in streams.values()), (streams, p["wall_ns"])


def fork(tmp_path, heavy, light):
    """x goes two ways, a large product and a small Relu, which meet in an Add."""
    n = 320
    names = ["x", "first", "heavy", "light", "join"]
    graph = {
        "heddle": {"version": 1, "opset": 17},
        "nodes": [{"op": "null", "name": "x", "inputs": []},
                  {"op": "Relu", "name": "first", "inputs": [[0, 0, 0]], "device": "cpu"},
                  {"op": "MatMul", "name": "heavy", "inputs": [[1, 0, 0], [1, 0, 0]], "device": heavy},
                  {"op": "Relu", "name": "light", "inputs": [[1, 0, 0]], "device": light},
                  {"op": "Add", "name": "join", "inputs": [[2, 0, 0], [3, 0, 0]], "device": "cpu"}],
        "arg_nodes": [0], "heads": [[4, 0, 0]], "node_row_ptr": list(range(len(names) + 1)),
        "attrs": {"dltype": ["list_str", ["float32"] + [None] * 4], "shape": ["list_shape", [[n, n]] + [None] * 4]}}
    path = tmp_path / "fork.json"
    path.write_text(json.dumps(graph))
    return path


@pytest.mark.parametrize("heavy, light", [("sim:0", "sim:1"), ("sim:1", "sim:0")])
def test_the_path_goes_by_the_slow_branch(heavy, light, tmp_path):
    """33 million products in plain C take 20 ms and more, a Relu of 102,400 numbers less than one."""
    p, plan = taken(tmp_path, fork(tmp_path, heavy, light), "--device", "cpu,sim:0,sim:1")
    check_sums(p, plan)
    check_path(p, plan)
    names = [next(s for s in p["steps"] if s["step"] == part["step"]) for part in p["path"]]
    ops = [(s["op"], s["device"]) for s in names]
    assert ops == [("Relu", "cpu:0"), ("h2d", heavy), ("MatMul", heavy), ("d2h", heavy), ("Add", "cpu:0")]
    assert [part["reads"] for part in p["path"]] == [False, True, True, True, True]
    assert [part["by"] for part in p["path"]] == ["begin", "host", "stream", "stream", "fence"]
    assert p["path"][2]["takes_ns"] == max(part["takes_ns"] for part in p["path"]) and p["operators"][0]["op"] == "MatMul"
    assert {s["bytes"] for s in p["steps"] if s["op"] in ("h2d", "d2h")} == {320 * 320 * 4}


def test_the_table(tmp_path):
    """What is printed is what the file has, in microseconds."""
    path = tmp_path / "p.json"
    text = good("run", DIGITS, *ON_SIMS, "--random", "--profile", "--profile-json", path, "--profile-runs", 2)
    p = json.loads(path.read_text())
    us = lambda ns: f"{ns / 1e3:.1f}"
    steps, operators, chain = (part.splitlines() for part in text.split("\n\n")[1:])
    assert steps[0].split()[:5] == ["step", "operator", "device", "stream", "bytes"] and steps[0].endswith("takes us")
    assert len(steps) == len(p["steps"]) + 3 and "of 2;" in steps[-2]
    for line, s in zip(steps[1:], p["steps"]):
        moved = [str(s["bytes"])] if s["bytes"] else []
        assert line.split() == [*s["name"].split(), s["op"], s["device"], str(s["stream"]), *moved,
                                us(s["start_ns"]), us(s["median_ns"])]
    for line, o in zip(operators[1:], p["operators"]):
        assert line.split() == [o["op"], o["device"], str(o["count"]), us(o["total_ns"]), f"{100 * o['share']:.1f}",
                                "%", us(o["mean_ns"])]
    assert len(operators) == len(p["operators"]) + 2 and operators[-1].split()[-1] == us(p["total_ns"])
    assert chain[0] == f"critical path: {len(p['path'])} of {len(p['steps'])} steps" and len(chain) >= len(p["path"]) + 3
    for line, part in zip(chain[2:], p["path"]):
        numbers = (us(part["start_ns"]), us(part["takes_ns"]), us(part["gap_ns"] + part["busy_ns"]))
        assert re.search(r" +".join(map(re.escape, numbers)), line), line
        assert (", reads its result" in line) == part["reads"] and f" {part['gap']}" in line
    assert f"together {us(p['wall_ns'])} us" in text


def test_replays_are_taken_apart(tmp_path):
    """sim records segments unless a setting turns that off; timed, each step has times all the same."""
    for capture, number in ((1, 1), (0, 0)):
        path = tmp_path / f"{capture}.json"
        text = good("run", DIGITS, "--device", "sim", "--place", "*=sim:0", "--random", "--profile", "--profile-json",
                    path, "--set", f"sim.capture={capture}", "--profile-runs", 1)
        p = json.loads(path.read_text())
        assert (p["replays"] >= 1) == bool(number) and ("taken apart" in text) == bool(number)
        assert p["runs"] == 1 and len(p["steps"]) > 20 and len({s["start_ns"] for s in p["steps"]}) > 10


def test_how_many_runs(tmp_path):
    path = tmp_path / "p.json"
    words = ("run", DIGITS, *ON_SIMS, "--random", "--profile-json", path)
    assert "steps in" not in good(*words)  # --profile prints
    assert json.loads(path.read_text())["runs"] == 5
    good(*words, "--profile-runs", 4)
    assert len(json.loads(path.read_text())["walls_ns"]) == 4


def test_wrong_words(tmp_path):
    words = ("run", DIGITS, "--device", "cpu", "--place", "*=cpu:0", "--random")
    for more in (("--profile", "--profile-runs", 0), ("--profile", "--profile-runs", 1001)):
        assert "at least 1 and at most 1000" in failing(2, *words, *more)
    assert "--profile-json" in failing(2, *words, "--profile-runs", 3)
    assert "whole number" in failing(2, *words, "--profile", "--profile-runs", "many")
    done = heddle(*words, "--profile-json", "/none/p.json")
    assert done.status == 1 and "/none/p.json" in done.err
    assert "cannot write" in failing(1, *words, "--profile-json", tmp_path)


def test_one_step_and_none(tmp_path):
    """A graph of one node has a path of one step; one without nodes has copies alone."""
    graph = {"heddle": {"version": 1, "opset": 17},
             "nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "Relu", "name": "r", "inputs": [[0, 0, 0]]}],
             "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
             "attrs": {"dltype": ["list_str", ["float32", None]], "shape": ["list_shape", [[4], None]]}}
    path = tmp_path / "one.json"
    path.write_text(json.dumps(graph))
    p, plan = taken(tmp_path, path, "--device", "cpu")
    check_path(p, plan)
    assert [s["name"] for s in p["steps"]] == ["r"] and len(p["path"]) == 1
    graph.update(nodes=graph["nodes"][:1], heads=[[0, 0, 0]], node_row_ptr=[0, 1])
    graph["attrs"] = {"dltype": ["list_str", ["float32"]], "shape": ["list_shape", [[4]]]}
    path.write_text(json.dumps(graph))
    p, plan = taken(tmp_path, path, "--device", "cpu")
    check_path(p, plan)
    assert [s["op"] for s in p["steps"]] == ["host_copy"] and p["steps"][0]["bytes"] == 16
