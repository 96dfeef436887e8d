"""heddle__prove against the oracle: they agree on random plans, on 5,000 mutants of them, and on real plans.
timeout: 900"""

import collections
import json
import os
import pathlib
import subprocess

import pytest
from reference import sizes

from . import mutate, oracle, plans

PER_PLAN = 10
MUTANTS, EACH_LABEL = sizes.count(500) * PER_PLAN, sizes.count(500) * PER_PLAN // 5
NAMED = {"drop_wait", "move_wait", "overlap_ranges", "remove_copy", "redirect_copy", "drop_sync", "overwrite"}


@pytest.fixture(scope="module")
def prove():
    """A function from plans to the answers of heddle__prove: "ok" or "refused: TEXT"."""
    program = pathlib.Path(os.environ.get("HEDDLE_BUILD", "."), "bin", "prove_plan")
    if not program.exists():
        pytest.fail(f"{program} is not there: build the tests, and set HEDDLE_BUILD to the build folder")

    def ask(some):
        lines = "".join(json.dumps(plan, separators=(",", ":")) + "\n" for plan in some)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(some)
        assert all(a == "ok" or a.startswith("refused: ") for a in answers)
        return answers

    return ask


@pytest.fixture(scope="module")
def originals():
    """Plans of 10 to 60 steps, as many as the mutants need."""
    found, seed = [], 0
    while len(found) < MUTANTS // PER_PLAN:
        plan = plans.random_plan(seed)
        if 10 <= len(plan["steps"]) <= 60:
            found.append(plan)
        seed += 1
    return found


def disagreements(names, some, answers):
    """Plans that one of the two refuses and the other does not, as sentences."""
    for name, plan, answer in zip(names, some, answers):
        fault = oracle.first_fault(plan)
        if (fault is None) != (answer == "ok"):
            yield f"{name}: prove says '{answer}', the oracle '{fault or 'ok'}'"


def test_random_plans_are_good(originals, prove):
    assert all(answer == "ok" for answer in prove(originals))
    assert [f for plan in originals for f in oracle.faults(plan)] == []


def test_random_plans_use_everything(originals):
    kinds = {s["kind"] for p in originals for s in p["steps"]}
    assert {"op", "h2d", "d2h", "peer", "host_copy", "release", "acquire", "finish"} <= kinds
    assert {(p["in_flight"], p["stream_sets"]) for p in originals} == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)}
    assert {a["mode"] for p in originals for s in p["steps"] for a in s["accesses"] if a["value"] == -1} == {
        "read", "write", "release", "acquire"}
    reused = sum(any(mutate.overlap(a, b) and a["value"] != b["value"] for i, (_, a) in enumerate(writes)
                     for _, b in writes[i + 1:]) for writes in (mutate.accesses(p, "write") for p in originals))
    assert reused > len(originals) / 2


def test_they_agree_on_mutants(originals, prove):
    made = [mutate.mutant(originals[seed // PER_PLAN], seed) for seed in range(MUTANTS)]
    names = [f"mutant {seed} ({name})" for seed, (name, _) in enumerate(made)]
    mutants = [plan for _, plan in made]
    answers = prove(mutants)
    assert list(disagreements(names, mutants, answers)) == []
    labels = collections.Counter(answer == "ok" for answer in answers)
    assert min(labels[True], labels[False]) >= EACH_LABEL, labels
    alone = collections.Counter((name, answer == "ok") for (name, _), answer in zip(made, answers))
    print(f"\n{labels[False]} refused, {labels[True]} ok; of one change alone (refused/ok):",
          ", ".join(f"{k.__name__} {alone[k.__name__, False]}/{alone[k.__name__, True]}" for k in mutate.KINDS))
    for name in NAMED | {"swap_in_stream", "one_buffer", "more_runs"}:
        assert alone[name, False] >= MUTANTS // 500, f"{name} alone is hardly ever a fault"


def agree_on_real_plans(prove, first, n, *where):
    path, words = plans.tool()
    if path is None:
        pytest.skip(words)
    pytest.importorskip("numpy")
    real = list(plans.real_plans(path, range(first, first + n), *where))
    names, some = [name for name, _ in real], [plan for _, plan in real]
    assert list(disagreements(names, some, prove(some))) == []
    assert [f"{name}: {oracle.first_fault(plan)}" for name, plan in real if oracle.first_fault(plan)] == []
    made = [mutate.mutant(plan, f"{first} {i} {k}") for i, plan in enumerate(some) for k in range(4)]
    mutants = [plan for _, plan in made]
    assert list(disagreements([name for name, _ in made], mutants, prove(mutants))) == []


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_they_agree_on_real_plans(first, prove):
    agree_on_real_plans(prove, first, 8)


@pytest.mark.parametrize("in_flight", [2, 3])
def test_they_agree_on_plans_of_runs_in_flight(in_flight, prove):
    agree_on_real_plans(prove, 40, 3, ("cpu", "sim:0", "sim:1"), ("--in-flight", str(in_flight)))


@pytest.mark.parametrize("in_flight", [2, 4])
def test_what_is_written_is_there_once_a_run(in_flight, prove):
    """Both refuse a plan with one buffer too few of any memory that runs write, and no other."""
    path, words = plans.tool()
    if path is None:
        pytest.skip(words)
    pytest.importorskip("numpy")
    made, outputs = [], 0
    for name, plan in plans.real_plans(path, range(60, 65 - in_flight), more=("--in-flight", str(in_flight))):
        assert plan["in_flight"] == plan["stream_sets"] == in_flight
        for alloc in plan["allocations"]:
            if alloc["use"] == "constant":
                assert alloc["sets"] == 1
                continue
            assert alloc["sets"] == in_flight
            written = any(a["alloc"] == alloc["id"] and a["bytes"] > 0 for _, a in mutate.accesses(plan, "write"))
            fewer = json.loads(json.dumps(plan))
            fewer["allocations"][alloc["id"]]["sets"] = in_flight - 1
            made.append((f"{name}, {alloc['space']}", fewer, written))
            outputs += alloc["use"] == "output"
    assert outputs >= 2
    some = [plan for _, plan, _ in made]
    answers = prove(some)
    assert list(disagreements([name for name, _, _ in made], some, answers)) == []
    assert [name for (name, _, written), answer in zip(made, answers) if written != answer.startswith("refused")] == []


PAGES = ("--set", "sim.unified=1", "--set", "sim.import_unified=on")


def test_they_agree_on_plans_with_pages_of_several_devices(prove):
    agree_on_real_plans(prove, 32, 8, ("cpu", "sim:0", "sim:1", "sim:2"), PAGES)


def test_they_agree_on_plans_with_pages_and_no_host(prove):
    agree_on_real_plans(prove, 40, 4, ("sim:0", "sim:1"), PAGES)


@pytest.mark.parametrize("setting", ["opencl.unified=1", "opencl.unified=0"])
def test_they_agree_on_plans_with_opencl(setting, prove, monkeypatch):
    build = pathlib.Path(os.environ.get("HEDDLE_BUILD", "."))
    if not (build / "lib" / "heddle" / "plugins" / "libheddle_plugin_opencl.so").exists():
        pytest.skip("the plugin opencl is not built")
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    if "opencl:1" not in subprocess.run([build / "bin" / "heddle", "devices"], capture_output=True, text=True).stdout:
        pytest.skip("there are no two OpenCL devices")
    agree_on_real_plans(prove, 24, 4, ("cpu", "opencl:0", "opencl:1", "sim:0"), ("--set", setting, *PAGES))


def caches(layers):
    """A model with caches along their first dimension: one is read beside its update, one has another reader."""
    onnx = pytest.importorskip("onnx")
    helper, info, real = onnx.helper, onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes, inputs, outputs = [], [info("x0", real, [1, 64])], []
    for n in range(layers):
        inputs.append(info(f"past_{n}", real, ["past", 64]))
        outputs.append(info(f"present_{n}", real, ["total", 64]))
        nodes += [helper.make_node("Sigmoid", [f"x{n}"], [f"new_{n}"], name=f"new_{n}"),
                  helper.make_node("Concat", [f"past_{n}", f"new_{n}"], [f"present_{n}"], name=f"present_{n}", axis=0),
                  helper.make_node("ReduceSum", [f"present_{n}"], [f"sum_{n}"], name=f"sum_{n}"),
                  helper.make_node("ReduceMax", [f"past_{n}"] if n % 2 else [f"new_{n}"], [f"most_{n}"], name=f"most_{n}"),
                  helper.make_node("Sub", [f"sum_{n}", f"most_{n}"], [f"change_{n}"], name=f"change_{n}"),
                  helper.make_node("Add", [f"new_{n}", f"change_{n}"], [f"x{n + 1}"], name=f"x{n + 1}")]
    outputs.append(info(f"x{layers}", real, [1, 64]))
    graph = helper.make_graph(nodes, "caches", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize("devices, place", [
    ("cpu", ()), ("sim:0", ()), ("sim:0,cpu", ("--place", "*1=cpu")),
    ("sim:0,sim:1,cpu", ("--place", "sum_*=sim:1", "--place", "*2=cpu"))])
def test_they_agree_on_state_values(devices, place, prove, tmp_path):
    path, words = plans.tool()
    if path is None:
        pytest.skip(words)
    (tmp_path / "caches.onnx").write_bytes(caches(4).SerializeToString())
    done = subprocess.run([path, "plan", "--json", tmp_path / "caches.onnx", "--state", "auto", "--dim", "past=6",
                           "--device", devices, *place], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert len(mutate.states(plan)) == sum(one["in_place"] for one in plan["states"]) > 0, plan["states"]
    assert prove([plan]) == ["ok"] and oracle.first_fault(plan) is None
    made = [mutate.mutant(plan, f"state {k}", mutate.OF_STATES) for k in range(max(150, sizes.count(300)))]
    answers = prove([plan for _, plan in made])
    assert list(disagreements([name for name, _ in made], [plan for _, plan in made], answers)) == []
    alone = {name for (name, _), answer in zip(made, answers) if answer.startswith("refused") and "+" not in name}
    assert {"drop_keep", "borrow_state", "read_state"} <= alone, alone
