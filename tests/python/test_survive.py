"""A device fails in a run of the digits net and of random graphs, under each policy: the outputs of a run without a failure
or an error, nothing left, and the next run works. test_survive_all.py fails every call; here every 5th or 7th of most kinds.
timeout: 600"""
import json

import numpy as np
import pytest
from reference import io
from survive_case import POLICIES, sweep, write_graphs
from test_control import both, check, if_model
from tool_case import DIGITS, failing, good, heddle

QUICK = ("sim.fail=run:#@0:fault", "fault.fail=any:#@sim:0")


@pytest.mark.parametrize("policy", POLICIES)
def test_some_calls(policy, tmp_path):
    digits, first, _, _ = write_graphs(tmp_path)
    for model, fault, stride in ((digits, QUICK[0], 1), (digits, QUICK[1], 5), (first, QUICK[1], 7)):
        last, errors, saved, _ = sweep(model, policy, fault, stride)
        assert last > 3 and (saved == 0 and errors > 0 if policy == "error" else saved > 0), (model, fault, last)


def test_two_devices_lost(tmp_path):
    digits = write_graphs(tmp_path)[0]
    _, errors, saved, _ = sweep(digits, "failover", "sim.fail=run:#@0:fault,run:#@1:fault", 3)
    assert errors == 0 and saved > 0


def run_tool(tmp_path, *words, **env):
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8) / 64
    io.write_npy(tmp_path / "x.npy", x)
    name = next(n["name"] for n in json.loads(DIGITS.read_text())["nodes"] if n["op"] == "null")
    return heddle("run", DIGITS, "--device", "sim:0,sim:1,cpu", "--input", f"{name}={tmp_path / 'x.npy'}",
                  "--output-dir", tmp_path / "out", *words, **env)


def test_the_tool(tmp_path):
    """--on-failure of run, plan and bench; the log and the trace say what was done."""
    r = run_tool(tmp_path)
    assert r.status == 0, r
    want = io.read_npy(tmp_path / "out" / "output_0.npy")
    lost = ("--set", "sim.fail=h2d:1@0:async:fault")
    r = run_tool(tmp_path, *lost)
    assert r.status == 1 and "sim:0" in r.err, r
    r = run_tool(tmp_path, *lost, "--on-failure", "failover", "--trace", tmp_path / "trace.json")
    assert r.status == 0 and "survived: 0 tries as it was, 1 new plans" in r.out, r
    assert "planned again without sim:0" in r.err and "code" in r.err, r
    assert np.array_equal(io.read_npy(tmp_path / "out" / "output_0.npy"), want)
    r = run_tool(tmp_path, *lost, HEDDLE_RUN_ON_FAILURE="retry")
    assert r.status == 0 and "survived: 1 tries as it was, 0 new plans" in r.out and "opened anew" in r.err, r
    assert np.array_equal(io.read_npy(tmp_path / "out" / "output_0.npy"), want)
    r = run_tool(tmp_path, "--on-failure", "perhaps")
    assert r.status == 1 and "retry:N" in r.err, r
    plan = json.loads(good("plan", DIGITS, "--device", "sim:0,sim:1,cpu", "--json", "--on-failure", "retry:3"))
    assert plan["on_failure"] == "retry:3"
    assert "on failure retry:3" in good("plan", DIGITS, "--device", "sim:0,sim:1,cpu", "--on-failure", "retry:3")
    assert json.loads(good("plan", DIGITS, "--device", "cpu,sim:0,sim:1", "--json"))["on_failure"] == "error"
    failing(2, "bench", DIGITS, "--device", "cpu,sim:0,sim:1", "--func", "f", "--on-failure", "retry")


def test_stages(tmp_path):
    """If: each stage goes on by itself, from its own inputs."""
    inputs = both(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    for policy, fault in (("failover", "run:2@0:fault"), ("failover", "run:2@0:async:fault"), ("retry", "submit:2@0"),
                          ("failover", "alloc:3@0"), ("failover", "open:2@0:fault")):
        check(tmp_path, if_model(), *inputs, devices=("sim:0,cpu",),
              more=("--set", f"sim.fail={fault}", "--set", "log=off", "--on-failure", policy))
    words = [w for name in inputs[0] for w in ("--input", f"{name}={tmp_path / name}.npy")]
    for name, value in inputs[0].items():
        io.write_npy(tmp_path / f"{name}.npy", value)
    failing(1, "run", tmp_path / "made.json", "--device", "sim:0,cpu", "--set", "sim.fail=run:2@0:fault", *words)
