"""Several runs in flight: random graphs, each run with inputs of its own, against onnx.reference; models in stages; and
the tool's --in-flight: the plan, the check of bits, the figures of a stream of runs, and a trace in which runs overlap.
labels: ctypes
timeout: 600
"""
import json

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402
from reference import evaluate, graphs, io, placements, sizes  # noqa: E402
from test_trace import Trace, graph_file  # noqa: E402
from tool_case import DIGITS, failing, good  # noqa: E402

ON_BOTH = ("--device", "cpu,sim")
RUNS = 5
MODES = [
    (2, ("cpu", "sim:0", "sim:1"), dict(sim__delay_us=30)),
    (3, ("cpu", "sim:0", "sim:1"), dict(sim__coherent=0, sim__peer="off", sim__delay_us=30)),
    (3, ("sim:0", "sim:1", "cpu"), dict(sim__unified=1, sim__coherent=0)),
    (2, ("cpu", "opencl:0", "opencl:1"), dict()),
    (2, ("cpu", "opencl:0", "sim:0"), dict(opencl__unified=0, sim__delay_us=30)),
]


def sets_of_inputs(inputs, seed):
    """RUNS times the inputs: as they are, and shuffled."""
    made = [inputs]
    for k in range(1, RUNS):
        rng = np.random.default_rng([seed, k])
        made.append({name: rng.permuted(x) if x.dtype == np.float32 else x for name, x in inputs.items()})
    return made


@pytest.mark.parametrize("mode", range(len(MODES)))
def test_each_run_has_its_own_values(mode):
    n, devices, settings = MODES[mode]
    if any(d.startswith("opencl") for d in devices):
        pocl.need()
    ctx = capi.Context(**settings)
    for seed in sizes.seeds(40 * mode, 40 * mode + (8 if mode < 3 else 3)):
        graph, params, inputs = graphs.random_graph(seed)
        placement = placements.placements(graph, seed, devices)[0]
        g, p = capi.Graph(json.dumps(graph)), capi.Params(io.params_blob(params)) if params else None
        rules = [f"{name}={device}" for name, device in placement.items()]
        m = capi.Model(ctx, g, p, ",".join(devices), rules, in_flight=n)
        ex = capi.Executor(m)
        every = sets_of_inputs(inputs, seed)
        started = 0
        for k in range(RUNS):
            while started < RUNS and started - k < n:
                for name, value in every[started].items():
                    ex.set_input(name, value)
                ex.start()
                started += 1
            ex.wait()
            values, bounds = evaluate.evaluate(graph, params, every[k])
            numpy32 = evaluate.float32_error(graph, params, every[k])
            random_graphs.check(f"seed {seed}, run {k}", graph, ex.outputs(), values, bounds, numpy32)
        for x in (ex, m, g, *([p] if p else [])):
            x.close()
    ctx.close()


# ---- the tool


def test_plan():
    text = good("plan", DIGITS, *ON_BOTH, "--in-flight", 3)
    assert "in flight 3 runs" in text and "in flight" not in good("plan", DIGITS, *ON_BOTH)
    one, three = (json.loads(good("plan", DIGITS, *ON_BOTH, "--json", "--in-flight", n)) for n in (1, 3))
    assert (one["in_flight"], one["stream_sets"], three["in_flight"], three["stream_sets"]) == (1, 1, 3, 3)
    assert {a["sets"] for a in one["allocations"]} == {1}
    assert all(a["sets"] == (1 if a["use"] == "constant" else 3) for a in three["allocations"])
    assert one["steps"] == three["steps"]
    for a, b in zip(one["memory"], three["memory"]):
        assert a["constants"] == b["constants"]
        assert all(3 * a[key] == b[key] for key in ("arena", "inputs", "outputs"))


def test_memory_is_what_the_plan_says():
    for n in (1, 2):
        plan = json.loads(good("plan", DIGITS, *ON_BOTH, "--json", "--in-flight", n))
        said = sum(m["arena"] + m["inputs"] + m["outputs"] for m in plan["memory"])
        held = json.loads(good("bench", DIGITS, *ON_BOTH, "--json", "--repeat", 1, "--in-flight", n))["memory_bytes"]
        assert said <= held <= said + 64 * sum(a["sets"] for a in plan["allocations"])  # rounded up to what is imported


def test_run(tmp_path):
    once = good("run", DIGITS, *ON_BOTH, "--random")
    text = good("run", DIGITS, *ON_BOTH, "--random", "--in-flight", 4, "--set", "sim.delay_us=200")
    assert "4 runs in flight gave the same bits\n" in text
    assert text.replace("4 runs in flight gave the same bits\n", "") == once
    good("run", DIGITS, *ON_BOTH, "--random", "--in-flight", 2, "--profile", "--output-dir", tmp_path, "--debug-dir",
         tmp_path / "all")
    assert np.load(tmp_path / "output_0.npy").shape == (1, 10)


def test_a_run_that_fails():
    words = ("--random", "--in-flight", 3, "--set", "sim.fail=run:9:async")
    assert "sim:0" in failing(1, "run", DIGITS, *ON_BOTH, *words)
    hangs = ("--in-flight", 2, "--timeout", 0.2, "--set", "sim.hang=60")
    assert "seconds" in failing(1, "bench", DIGITS, *ON_BOTH, *hangs)


def test_bench():
    got = json.loads(good("bench", DIGITS, *ON_BOTH, "--json", "--in-flight", 2, "--repeat", 3, "--end-to-end"))
    assert got["in_flight"] == 2 and len(got["stream"]["results"]) == 3 == len(got["results"])
    assert got["stream"]["min"] == min(got["stream"]["results"]) > 0 and got["stream"]["number"] == 5
    assert json.loads(good("bench", DIGITS, *ON_BOTH, "--json", "--repeat", 1))["stream"] is None
    text = good("bench", DIGITS, *ON_BOTH, "--in-flight", 3, "--repeat", 2)
    assert "2 x 5 runs, milliseconds a run" in text and "of a stream with 3 in flight" in text


def test_words_that_are_wrong():
    for command in ("plan", "run", "bench"):
        for n in ("0", "65"):
            assert "--in-flight is a number from 1 to 64" in failing(2, command, DIGITS, *ON_BOTH, "--in-flight", n)
        failing(2, command, DIGITS, "--in-flight", "two")
    assert "host's clock" in failing(2, "bench", DIGITS, *ON_BOTH, "--in-flight", 2, "--timer", "device")
    assert "--func" in failing(2, "bench", DIGITS, *ON_BOTH, "--in-flight", 2, "--func", "f")


def test_runs_overlap_in_a_trace(tmp_path):
    """The first device works on the second run before the second device is through with the first, by the order of the
    begins and ends, where no step takes less than its place: a busy machine may hide that, but not each time."""
    chain = [("Relu", f"a{i}", "sim:0", [f"a{i - 1}" if i else "x"], {}) for i in range(12)]
    chain += [("Relu", f"b{i}", "sim:1", [f"b{i - 1}" if i else "a11"], {}) for i in range(12)]
    model = graph_file(tmp_path / "stages.json", [("x", [1, 64])], chain, ["b11"])
    words = ("--device", "sim:0,sim:1", "--random", "--in-flight", 2, "--set", "sim.delay_us=3000", "--optimize", "off")
    for _ in range(5):
        good("run", model, *words, "--trace", tmp_path / "t.json")
        trace = Trace(tmp_path / "t.json")
        for (process, row), spans in trace.rows.items():  # each run has rows of its own
            spans.sort()
            assert all(b[0] >= a[1] - 0.002 for a, b in zip(spans, spans[1:])), (process, row)
        runs = [trace.rows["host", row] for row in ("runs", "runs 2")]
        assert [len(r) for r in runs] == [1, 1]
        seconds = sorted((begin, end) for (process, row), spans in trace.rows.items() if process == "sim:1"
                         for begin, end, name in spans if name.startswith("Relu"))
        firsts = sorted((begin, end) for (process, row), spans in trace.rows.items() if process == "sim:0"
                        for begin, end, name in spans if name.startswith("Relu"))
        assert len(firsts) == len(seconds) == 24
        if runs[1][0][0] < runs[0][0][1] and firsts[-1][1] > seconds[0][0]:
            return
    pytest.fail("no run began before the one before had ended")
