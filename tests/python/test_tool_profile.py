"""heddle run --profile and --profile-json: steps, sums and the critical path, checked against the plan that heddle plan
--json tells, on cpu, two sims and PoCL; runs of known order; what is said where it cannot be had.
timeout: 600"""

import collections
import json
import re
import statistics

import numpy as np
import pytest
from tool_case import DIGITS, failing, good, heddle

COPIES = ("h2d", "d2h", "d2d", "peer", "host_copy")
ON_SIMS = ("--device", "cpu,sim:0,sim:1", "--place", "wide*=sim:0", "--place", "fine*=sim:1")


def taken(tmp_path, model, *words, runs=5, **env):
    """The profile and the plan of the same model on the same devices."""
    path = tmp_path / "profile.json"
    assert f"wrote {path}" in good("run", model, *words, "--random", "--profile-json", path, "--profile-runs", runs,
                                   **env)
    return json.loads(path.read_text()), json.loads(good("plan", model, *words, "--json", **env))


def before(plan, step):
    """What a step comes after by the plan, and by what: the one before it on its stream, and its waits."""
    found = {w["step"]: w["by"] for w in plan["steps"][step]["waits"]}
    same = [s["id"] for s in plan["steps"][:step] if s["stream"] == plan["steps"][step]["stream"]]
    if same:
        found[same[-1]] = "stream"
    return found


def reads(plan, step, other):
    """Whether a step reads what another wrote: the same value in the same place."""
    where = lambda s, mode: {(a["value"], a["alloc"], a["offset"]) for a in plan["steps"][s]["accesses"] if a["mode"] == mode}
    return bool(where(step, "read") & where(other, "write"))


def check_sums(p, plan):
    steps = p["steps"]
    assert {s["step"] for s in steps} == {s["id"] for s in plan["steps"] if s["kind"] != "finish"}
    assert p["runs"] == len(p["walls_ns"]) == len(p["plains_ns"])
    assert p["wall_ns"] == statistics.median_low(p["walls_ns"]) and p["plain_ns"] == statistics.median_low(p["plains_ns"])
    assert [s["start_ns"] for s in steps] == sorted(s["start_ns"] for s in steps) and steps[0]["start_ns"] == 0
    assert max(s["end_ns"] for s in steps) == p["wall_ns"] and all(s["end_ns"] >= s["start_ns"] for s in steps)
    totals, counts = collections.Counter(), collections.Counter()
    for s in steps:
        said = plan["steps"][s["step"]]
        moved = sum(a["bytes"] for a in said["accesses"] if a["mode"] == "write") if said["kind"] in COPIES else 0
        assert (s["stream"], s["bytes"]) == (said["stream"], moved) and (moved > 0) == (s["op"] in COPIES)
        device = plan["streams"][s["stream"]]["device"]
        assert s["device"] == (plan["devices"][device]["name"] if device >= 0 else "host")
        totals[s["op"], s["device"]] += s["median_ns"]
        counts[s["op"], s["device"]] += 1
    assert p["total_ns"] == sum(totals.values())
    assert {(o["op"], o["device"]): (o["total_ns"], o["count"]) for o in p["operators"]} == {
        k: (totals[k], counts[k]) for k in totals}
    assert [o["total_ns"] for o in p["operators"]] == sorted(totals.values(), reverse=True)
    for o in p["operators"]:
        assert o["share"] == pytest.approx(o["total_ns"] / p["total_ns"]) and 0 <= o["share"] <= 1
        assert o["mean_ns"] == pytest.approx(o["total_ns"] / o["count"])


def check_path(p, plan):
    """Every part follows one that it has to come after, of which none ended later; together they are the whole run."""
    at, sums, times = 0, collections.Counter(), {s["step"]: s for s in p["steps"]}
    for i, part in enumerate(p["path"]):
        at += part["gap_ns"] + part["busy_ns"]
        assert part["start_ns"] == at and min(part["gap_ns"], part["busy_ns"], part["takes_ns"]) >= 0
        at += part["takes_ns"]
        assert times[part["step"]]["start_ns"] >= part["start_ns"] and at <= times[part["step"]]["end_ns"]
        earlier = before(plan, part["step"])
        if i == 0:
            assert part["by"] == part["gap"] == "begin" and not earlier and not part["reads"]
        else:
            last = p["path"][i - 1]["step"]
            assert times[last]["end_ns"] == max(times[s]["end_ns"] for s in earlier)
            assert part["by"] == earlier[last] and part["gap"] == ("launch" if part["by"] == "stream" else "wait")
            assert part["reads"] == reads(plan, part["step"], last)
        sums["busy_ns"] += part["busy_ns"]
        sums["steps_ns"] += part["takes_ns"]
        sums[part["gap"] + "_ns"] += part["gap_ns"]
    assert at == p["wall_ns"] == sum(p["sums"].values()) and times[p["path"][-1]["step"]]["end_ns"] == at
    assert {**p["sums"], **sums} == p["sums"] and set(p["sums"]) == {"steps_ns", "launch_ns", "wait_ns", "begin_ns",
                                                                  "busy_ns"}


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


def fork(tmp_path, heavy, light):
    """x goes two ways, a large product and a small Relu, which meet in an Add."""
    n = 192
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
    """7 million products in plain C take milliseconds, a Relu of 36,864 numbers some microseconds."""
    p, plan = taken(tmp_path, fork(tmp_path, heavy, light), "--device", "cpu,sim:0,sim:1")
    check_sums(p, plan)
    check_path(p, plan)
    names = [next(s for s in p["steps"] if s["step"] == part["step"]) for part in p["path"]]
    ops = [(s["op"], s["device"]) for s in names]
    assert ops == [("Relu", "cpu:0"), ("h2d", heavy), ("MatMul", heavy), ("d2h", heavy), ("Add", "cpu:0")]
    assert [part["reads"] for part in p["path"]] == [False, True, True, True, True]
    assert [part["by"] for part in p["path"]] == ["begin", "host", "stream", "stream", "fence"]
    took = p["path"][2]["takes_ns"]
    assert took > 0.5 * p["wall_ns"] and p["operators"][0]["op"] == "MatMul"
    assert {s["bytes"] for s in p["steps"] if s["op"] in ("h2d", "d2h")} == {192 * 192 * 4}


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
    """sim records segments unless it is told not to; timed, each step has times all the same."""
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
