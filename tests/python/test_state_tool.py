"""State values by the tool: plan, run with files of state, bench; the plan's proof by the independent one.
timeout: 200"""
import json
import pathlib
import sys

import numpy as np
import onnx
import pytest
from oracle import oracle
from reference import io
from tool_case import failing, good

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python" / "tests"))
from decoders import Loop, feeds, fixed, growing  # noqa: E402

SIZES = ("--dim", "batch=1", "--dim", "sequence=1", "--dim", "past=8")


@pytest.fixture
def files(tmp_path):
    onnx.save(growing(), tmp_path / "growing.onnx")
    onnx.save(fixed(), tmp_path / "fixed.onnx")
    return tmp_path


def run(folder, model, feed, *words):
    for name, value in feed.items():
        io.write_npy(folder / f"{name}.npy", value)
    inputs = [word for name in feed for word in ("--input", f"{name}={folder / name}.npy")]
    good("run", folder / model, *inputs, "--output-dir", folder / "out", *words)
    return io.read_npy(folder / "out" / "output_0.npy")


@pytest.mark.parametrize("model, rules", [("growing.onnx", "auto"), ("fixed.onnx", "cache_*:written_*")])
def test_runs_hand_on_their_state(files, model, rules):
    """A process a token: the state goes through a file, between devices."""
    net = onnx.load(files / model)
    loop, state = Loop(net), files / "state"
    for n, feed in enumerate(feeds(net, 4)):
        words = ("--load-state", state) if n else ()
        device = ("cpu", "sim:0", "sim:0,cpu")[n % 3]
        got = run(files, model, feed, "--state", rules, "--device", device, "--save-state", state, *words)
        np.testing.assert_allclose(got, loop.step(feed)["logits"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model, rules, more", [("growing.onnx", "past*:present*", SIZES), ("fixed.onnx", "cache_*:written_*", ())])
def test_plans_are_proved_by_another(files, model, rules, more):
    crossing = {}
    for device in "cpu", "sim:0", "sim:0,cpu", "sim:0,sim:1":
        place = ("--place", "*v*=sim:1") if device.endswith("1") else ()
        plan = json.loads(good("plan", files / model, "--json", "--device", device, "--state", rules, *place, *more))
        assert oracle.first_fault(plan) is None, device
        crossing[device] = plan["counts"]["copied_bytes"]
    plain = json.loads(good("plan", files / model, "--json", "--device", "sim:0", *more))
    assert crossing["cpu"] == 0 < crossing["sim:0"] < plain["counts"]["copied_bytes"] / 2


def test_bad_words(files):
    model = files / "growing.onnx"
    for rules, words in {"nothing:present.0.key": "no input is called", "past*": "a rule is"}.items():
        assert words in failing(1, "run", model, "--state", rules, "--random")
    ids = ("--input", f"ids={files / 'ids.npy'}")
    io.write_npy(files / "ids.npy", np.array([[1]]))
    assert "no state values" in failing(1, "run", files / "fixed.onnx", "--random", "--save-state", files / "s")
    (files / "s").write_bytes(b"HEDDLESTnothing else")
    assert "state file" in failing(1, "run", model, *ids, "--state", "auto", "--load-state", files / "s")
    good("bench", model, *ids, "--state", "auto", "--device", "cpu", "--number", "2", "--repeat", "2")
