"""Rows of operators in one recording of Vulkan's, in which a pipeline and what was pushed stay bound from one to the next:
likes and unlikes in turn, of lengths with and without a rest, copies between them, against numpy; and the profile.
timeout: 300"""

import numpy as np
import pytest
from onnx import helper

import lavapipe
import onnx_files as files
import profile_case as profile
from tool_case import DIGITS

F = np.float32


@pytest.fixture(scope="module", autouse=True)
def devices():
    lavapipe.need()


@pytest.mark.parametrize("more", [(), ("--set", "vulkan.max_streams=1")], ids=["two", "one"])
@pytest.mark.parametrize("seed", range(4))
def test_rows(seed, more, tmp_path, monkeypatch):
    """Each result depends on all before it, so that a stale binding anywhere shows at the end."""
    monkeypatch.setattr(files, "DEVICE", ("--device", "vulkan:0", "--set", "vulkan.fuse=0", *more))
    rng = np.random.default_rng(seed)
    lengths = [1, 3, 4, 5, 63, 64, 255, 257, 1024]
    inputs = {f"x{n}": rng.standard_normal(n).astype(F) for n in lengths}
    values, nodes = dict(inputs), []
    by_length = {n: [f"x{n}"] for n in lengths}
    ops = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Max": np.maximum,
           "LeakyRelu": lambda a: np.where(a >= 0, a, F(0.25) * a), "Relu": lambda a: np.maximum(a, F(0)),
           "Neg": lambda a: -a}
    for i in range(120):
        n = int(rng.choice(lengths))
        op = str(rng.choice(list(ops)))
        arguments = [str(rng.choice(by_length[n])) for _ in range(ops[op].__code__.co_argcount if op != "Max" else 2)]
        attributes = {"alpha": 0.25} if op == "LeakyRelu" else {}
        nodes.append(helper.make_node(op, arguments, [f"r{i}"], **attributes))
        values[f"r{i}"] = np.clip(ops[op](*[values[a] for a in arguments]), F(-1e4), F(1e4)).astype(F)
        nodes.append(helper.make_node("Clip", [f"r{i}", "low", "high"], [f"c{i}"]))
        values[f"c{i}"] = values[f"r{i}"]
        by_length[n].append(f"c{i}")
    ends = [names[-1] for names in by_length.values()]
    nodes.append(helper.make_node("Concat", ends, ["all"], axis=0))
    nodes.append(helper.make_node("Add", ["all", "all"], ["twice"]))
    path = files.save(tmp_path, files.model(nodes, inputs, ["twice"], {"low": F(-1e4), "high": F(1e4)}))
    want = 2 * np.concatenate([values[name] for name in ends])
    got, = files.run(path, inputs, env=lavapipe.ENV)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("words", [("--device", "vulkan:0", "--place", "*=vulkan:0"),
                                   ("--device", "cpu,vulkan:0,sim:0", "--place", "wide*=vulkan:0", "--place", "fine*=sim:0")],
                         ids=["alone", "mixed"])
def test_profile(words, tmp_path):
    p, plan = profile.taken(tmp_path, DIGITS, *words, runs=3, **lavapipe.ENV)
    profile.check_sums(p, plan)
    profile.check_path(p, plan)
    assert p["replays"] >= 1 and any(s["device"] == "vulkan:0" and s["median_ns"] > 0 for s in p["steps"])
