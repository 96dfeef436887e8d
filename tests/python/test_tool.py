"""The tool as a user types it: every command and option, wrong words, missing files, devices that are not there.
timeout: 900"""

import json
import os
import re
import shutil
import statistics
import subprocess
import time

import numpy as np
import pytest
from tool_case import DIGITS, SOURCE, TOOL, environment, failing, good, heddle

COMMANDS = ("devices", "info", "plan", "run", "bench", "compare")
ON_BOTH = ("--device", "cpu,sim")
PLAIN = {"HEDDLE_CPU_ONEDNN": "off"}  # the plan without the cpu's layouts, built with oneDNN or not


@pytest.fixture
def image(tmp_path):
    """A held-back digit as the network wants it: the option's words, and the expected output."""
    path = tmp_path / "image.npy"
    np.save(path, np.load(DIGITS.parent / "images.npy")[7:8].astype(np.float32))
    return ("--input", f"image={path}"), np.load(DIGITS.parent / "expected.npy")[7:8]


@pytest.fixture
def chain(tmp_path):
    """A chain of 100 Relus on an input of two by three."""

    def make(shape=(2, 3), n=100, dtype="float32", op="Relu"):
        nodes = [{"op": "null", "name": "x", "inputs": []}]
        nodes += [{"op": op, "name": f"r{i}", "inputs": [[i, 0, 0]]} for i in range(n)]
        graph = {
            "heddle": {"version": 1, "opset": 17},
            "nodes": nodes,
            "arg_nodes": [0],
            "heads": [[n, 0, 0]],
            "node_row_ptr": list(range(n + 2)),
            "attrs": {
                "dltype": ["list_str", [dtype] + [None] * n],
                "shape": ["list_shape", [list(shape)] + [None] * n],
            },
        }
        path = tmp_path / "chain.json"
        path.write_text(json.dumps(graph))
        return path

    return make


# ---- words


def test_no_words():
    assert "devices" in failing(2)


def test_help_and_version():
    everything = good("help")
    assert good("--help") == everything and good("-h") == everything
    for command in COMMANDS:
        assert command in everything
        text = good(command, "--help")
        assert text == good("help", command) == good(command, "-h")
        assert text.startswith(f"heddle {command}") and "--help" in text
    assert "--lib FILE" in good("run", "--help") and "--lib" not in good("devices", "--help")
    assert good("--version") == "heddle 0.1.0\n"


@pytest.mark.parametrize(
    "words, hint",
    [
        (["pln", DIGITS], "did you mean plan"),
        (["frobnicate"], "no command 'frobnicate'"),
        (["help", "pln"], "did you mean plan"),
        (["help", "plan", "run"], "too many"),
        (["plan", DIGITS, "--devices", "cpu"], "did you mean --device"),
        (["plan", DIGITS, "--zzzzzz"], "no option '--zzzzzz'"),
        (["plan", DIGITS, "-x"], "-x"),
        (["plan"], "which model"),
        (["plan", DIGITS, DIGITS], "too many"),
        (["devices", "cpu"], "too many"),
        (["plan", DIGITS, "--device"], "--device needs"),
        (["plan", DIGITS, "--device="], "--device needs"),
        (["plan", DIGITS, "--json=yes"], "takes no value"),
        (["plan", DIGITS, "--json", "--svg", "x.svg"], "only one of"),
        (["plan", DIGITS, "--place", "conv"], "PATTERN=DEVICE"),
        (["run", DIGITS, "--input", "image"], "NAME=FILE.npy"),
        (["run", DIGITS, "--input", "=x.npy"], "NAME=FILE.npy"),
        (["run", DIGITS, "--set", "sim.delay_us"], "KEY=VALUE"),
        (["run", DIGITS, "--timeout", "soon"], "number"),
        (["run", DIGITS, "--timeout", "-1"], "number"),
        (["run", DIGITS, "--timeout", "nan"], "number"),
        (["run", DIGITS, "--threads", "1.5"], "whole number"),
        (["bench", DIGITS, "--repeat", "-3"], "whole number"),
        (["bench", DIGITS, "--repeat", "99999999999999999999"], "whole number"),
        (["bench", DIGITS, "--repeat", "0"], "at least 1"),
        (["bench", DIGITS, "--number=0"], "at least 1"),
    ],
)
def test_wrong_words(words, hint):
    assert hint in failing(2, *words)


def test_names_after_two_dashes(tmp_path):
    shutil.copy(DIGITS, tmp_path / "--odd.json")
    assert "28 nodes" in heddle("info", "--", "--odd.json", cwd=tmp_path).out


def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(TOOL), "info", str(DIGITS)], stdout=full, stderr=subprocess.PIPE, env=environment())
    assert done.returncode == 1 and b"cannot write" in done.stderr


# ---- devices


def test_devices():
    text = good("devices")
    assert "cpu:0" in text and "sim:0" in text and "used by default" in text and "only when named" in text
    assert "in use: cpu:0   (list from: default)" in text


def test_devices_all_says_where_values_come_from():
    text = good("devices", "--all", "--set", "threads=3", HEDDLE_DEVICES="sim:1,cpu", HEDDLE_SIM_DELAY_US="5")
    assert re.search(r"sim\.delay_us +5 +\(from: HEDDLE_SIM_DELAY_US\)", text)
    assert "in use: sim:1, cpu:0   (list from: HEDDLE_DEVICES)" in text
    assert "(from: HEDDLE_DEVICES)" in text and "(from: call)" in text and "libheddle_plugin_cpu.so" in text


def test_devices_json():
    got = json.loads(good("devices", "--json"))
    assert {"devices", "used", "plugins", "settings", "version"} == set(got)
    names = [d["name"] for d in got["devices"]]
    assert "cpu:0" in names and "sim:2" in names
    assert got["used"] == {"names": ["cpu:0"], "from": "default", "problem": None}
    assert all(p["used"] == (p["reason"] == "") for p in got["plugins"])
    assert {"cpu", "null", "sim"} <= {p["name"] for p in got["plugins"] if p["used"]}  # others may find no driver
    assert got["settings"]["threads"]["from"] == "default"


def test_a_plugin_that_is_none_is_listed_with_the_reason(tmp_path):
    path = tmp_path / "libheddle_plugin_text.so"
    path.write_text("not a library")
    assert f"not used: {path}: " in good("devices", HEDDLE_PLUGIN_PATH=str(tmp_path))
    plugins = json.loads(good("devices", "--json", HEDDLE_PLUGIN_PATH=str(tmp_path)))["plugins"]
    assert [p["reason"] != "" for p in plugins if p["path"] == str(path)] == [True]


def test_devices_that_are_not_there_do_not_stop_the_list():
    r = heddle("devices", HEDDLE_DEVICES="warp:9")
    assert r.status == 1 and "cpu:0 " in r.out, r
    assert "in use: none: " in r.out and "warp:9" in r.out and "HEDDLE_DEVICES" in r.out


# ---- info


def test_info_of_a_file_of_parameters(tmp_path):
    params = DIGITS.with_suffix(".params")
    text = good("info", params)
    assert text.startswith(f"params     21 tensors, 141.6 KiB, in {params}\n") and "unused" not in text
    assert "param      stem.weight  float32 [16, 1, 3, 3]\n" in text
    got, whole = json.loads(good("info", params, "--json")), json.loads(good("info", DIGITS, "--json"))
    assert (got["model"], got["library"], got["signature"]) == (None, None, None)
    assert got["params"] == {**whole["params"], "file": str(params)}
    assert "leave out --params" in failing(1, "info", params, "--params", params)
    (tmp_path / "cut").write_bytes(params.read_bytes()[:1000])
    assert "cut" in failing(1, "info", tmp_path / "cut")


def test_info():
    text = good("info", DIGITS)
    assert "28 nodes" in text and "input      image  float32 [1, 1, 8, 8]" in text and "Conv 8" in text
    assert "output     digit" in text and "cpu 23, sim:0 5" in text and "21 tensors" in text


def test_info_json():
    got = json.loads(good("info", DIGITS, "--json"))
    assert got["nodes"] == 28 and got["operators"]["Conv"] == 8 and got["annotations"] == {"cpu": 23, "sim:0": 5}
    assert got["inputs"] == [{"name": "image", "dtype": "float32", "shape": [1, 1, 8, 8]}]
    assert [o["name"] for o in got["outputs"]] == ["digit"]
    assert len(got["params"]["tensors"]) == 21
    assert got["params"]["bytes"] == sum(t["bytes"] for t in got["params"]["tensors"])


def test_info_without_params(tmp_path):
    shutil.copy(DIGITS, tmp_path / "alone.json")
    text = good("info", tmp_path / "alone.json")
    assert "params     none" in text and "stem.weight" in text


def test_missing_and_broken_files(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"nodes": [')
    for command in ("info", "plan", "run", "bench"):
        assert "/none/m.json" in failing(1, command, "/none/m.json")
        assert "broken.json" in failing(1, command, broken)
        assert "none.params" in failing(1, command, DIGITS, "--params", "/none.params")


# ---- plan


def test_plan_text():
    text = good("plan", DIGITS, *ON_BOTH, **PLAIN)
    assert "devices   cpu:0, sim:0   (list from: call)" in text
    assert "nodes     23 on cpu:0, 5 on sim:0" in text and "copies    2 a run" in text
    for heading in ("nodes (28)", "between devices (2)", "streams (2)", "memory ("):
        assert heading in text
    assert "annotation" in text and "a view: nothing to run" in text


def test_plan_says_why():
    text = good("plan", DIGITS, "--device", "cpu,sim:0,sim:1", "--place", "fine*=sim:1", HEDDLE_DEVICES="cpu")
    assert "plain to nchw8c" in text
    assert "rule fine*=sim:1" in text and "3 on sim:1" in text
    assert "(list from: HEDDLE_DEVICES)" in good("plan", DIGITS, HEDDLE_DEVICES="sim,cpu")
    last = good("plan", DIGITS, *ON_BOTH, "--place", "*=sim:0", "--place", "*=cpu")
    assert "28 on cpu:0" in last


def test_a_rule_that_matches_nothing_is_said():
    r = heddle("plan", DIGITS, *ON_BOTH, "--place", "wyde*=sim:0")
    assert r.status == 0 and "--place wyde*=sim:0: no node has such a name" in r.err


def test_automatic_placement_of_what_is_placed_is_said():
    said = "--place auto: rules and the model's annotations place every node"
    r = heddle("plan", DIGITS, *ON_BOTH, "--place", "auto")
    assert r.status == 0 and said in r.err


def test_plan_of_a_long_graph_is_cut(chain):
    path = chain()
    text, whole = good("plan", path), good("plan", path, "--all")
    assert "--all prints them" in text and "r99 " not in text and "memory (" in text
    assert "r99 " in whole and "--all" not in whole and len(whole.splitlines()) > 100


def check_places(plan):
    """Every reference of a plan's JSON is to something that is there."""
    n = {key: len(plan[key]) for key in ("devices", "streams", "values", "allocations", "steps")}
    for key in n:
        assert [x["id"] for x in plan[key]] == list(range(n[key]))
    for x in plan["initial"] + [a for s in plan["steps"] for a in s["accesses"]]:
        assert x["offset"] + x["bytes"] <= plan["allocations"][x["alloc"]]["bytes"] and x["value"] < n["values"]
    for s in plan["steps"]:
        assert 0 <= s["stream"] < n["streams"] and all(w["step"] < s["id"] for w in s["waits"])
        assert {a["mode"] for a in s["accesses"]} <= {"read", "write", "release", "acquire"}
        assert {w["by"] for w in s["waits"]} <= {"event", "fence", "host"}
    assert plan["steps"][-1]["kind"] == "finish"


def test_plan_json():
    text = good("plan", DIGITS, *ON_BOTH, "--json", **PLAIN)
    assert text == good("plan", DIGITS, *ON_BOTH, "--json", **PLAIN)
    plan = json.loads(text)
    check_places(plan)
    assert plan["format"] == 1 and plan["in_flight"] == 1
    assert [(d["name"], d["inline"], d["nodes"]) for d in plan["devices"]] == [("cpu:0", True, 23), ("sim:0", False, 5)]
    crossings = [(plan["values"][c["value"]]["name"], c["from"], c["to"], c["route"]) for c in plan["crossings"]]
    assert crossings[0] == ("res.relu", 0, 1, "direct") and crossings[1][1:] == (1, 0, "direct")
    assert plan["counts"]["copies"] == sum(s["kind"] in ("h2d", "d2h") for s in plan["steps"]) == 2
    assert {n["name"] for n in plan["nodes"] if n["device"] == 1} == {
        "wide1", "wide1.relu", "wide2", "wide2.relu", "wide.pool"}
    flat = next(v for v in plan["values"] if v["name"] == "average.flat")
    assert plan["values"][flat["same_as"]]["name"] == "average"


def test_plan_for_another_shape(chain, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 3), np.float32))
    path = chain(shape=("batch", 3), n=2)
    plan = json.loads(good("plan", path, "--json", "--input", f"x={tmp_path}/x.npy"))
    assert plan["values"][0]["shape"] == [5, 3]
    assert "x" in failing(1, "plan", path)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_plan_svg(tmp_path):
    assert good("plan", DIGITS, *ON_BOTH, "--svg", tmp_path / "p.svg") == f"wrote {tmp_path}/p.svg\n"
    text = (tmp_path / "p.svg").read_text()
    assert "<svg" in text and "wide1" in text and "4096 B direct" in text
    assert "/none/p.svg" in failing(1, "plan", DIGITS, *ON_BOTH, "--svg", "/none/p.svg")


def test_plan_svg_without_graphviz(tmp_path):
    text = good("plan", DIGITS, *ON_BOTH, "--svg", tmp_path / "p.svg", PATH=str(tmp_path))
    assert "p.dot" in text and "not installed" in text
    dot = (tmp_path / "p.dot").read_text()
    assert dot.startswith("digraph") and "res.relu" in dot and not (tmp_path / "p.svg").exists()


# ---- devices that are wrong


@pytest.mark.parametrize("command", ["plan", "run", "bench"])
def test_unknown_devices(command):
    for device in ("warp", "sim:7", "cpu,sim:7"):
        message = failing(1, command, DIGITS, "--device", device)
        assert "cpu:0" in message and "sim:2" in message, message
    assert "sim:0" in failing(1, command, DIGITS, "--device", "cpu")
    assert failing(1, command, DIGITS, "--device", "CPU!")
    assert "sim:1" in failing(1, command, DIGITS, *ON_BOTH, "--place", "wide*=sim:1")
    assert "devices   cpu:0, sim:0   (list from: call)" in good("plan", DIGITS, "--device", "warp?,cpu,sim")


def test_settings_that_are_wrong():
    assert "Delay" in failing(1, "run", DIGITS, "--set", "Delay!=1")
    assert "delay_us" in good("devices", "--set", "sim.delay_us=soon")


# ---- run


def test_run(image, tmp_path):
    words, expected = image
    text = good("run", DIGITS, *ON_BOTH, *words, "--output-dir", tmp_path / "out", "--threads", 1)
    assert "output 0  digit  float32 [1, 10]" in text and "output_0.npy" in text
    got = np.load(tmp_path / "out" / "output_0.npy")
    assert got.shape == (1, 10) and np.abs(got - expected).max() < 1e-5


def test_run_prints_outputs(image):
    words, expected = image
    printed = good("run", DIGITS, *ON_BOTH, *words).splitlines()[1].split()
    assert np.abs(np.array(printed, float) - expected[0]).max() < 1e-5


def test_run_with_delays_and_rules(image, tmp_path):
    words, expected = image
    for more in (("--device", "cpu", "--place", "*=cpu"), ("--device", "sim", "--place", "*=sim"),
                 ("--device", "cpu,sim:0,sim:1", "--place", "fine*=sim:1", "--set", "sim.delay_us=5")):
        good("run", DIGITS, *words, *more, "--output-dir", tmp_path)
        assert np.abs(np.load(tmp_path / "output_0.npy") - expected).max() < 1e-5


def test_inputs_that_are_wrong(image, tmp_path):
    words, _ = image
    np.save(tmp_path / "wide.npy", np.zeros((1, 1, 8, 9), np.float32))
    np.save(tmp_path / "bytes.npy", np.zeros((1, 1, 8, 8), np.uint8))
    assert "image  float32 [1, 1, 8, 8]" in failing(1, "run", DIGITS, *ON_BOTH)
    assert "image" in failing(1, "run", DIGITS, *ON_BOTH, *words, "--input", f"picture={tmp_path}/image.npy")
    assert "twice" in failing(1, "run", DIGITS, *ON_BOTH, *words, *words)
    for file in ("wide", "bytes", "none"):
        message = failing(1, "run", DIGITS, *ON_BOTH, "--input", f"image={tmp_path}/{file}.npy")
        assert "image" in message or "none.npy" in message


def test_random_inputs():
    once = good("run", DIGITS, *ON_BOTH, "--random")
    assert "input image is made up" in once and once == good("run", DIGITS, *ON_BOTH, "--random")


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_random_inputs_of_other_types(chain, tmp_path, dtype):
    path = chain(shape=(4, 16), n=1, dtype=dtype, op="Identity")
    r = heddle("run", path, "--random", "--output-dir", tmp_path)
    if r.status != 0:
        pytest.skip(r.err.strip())
    got = np.load(tmp_path / "output_0.npy").astype(float)
    assert got.min() >= -1 and got.max() <= 1 and got.std() > 0.2


def test_random_needs_a_shape(chain):
    assert "give --input x=" in failing(1, "run", chain(shape=("batch", 3)), "--random")


def test_run_profile(image):
    words, _ = image
    text = good("run", DIGITS, *ON_BOTH, *words, "--profile")
    for word in ("takes us", "wide1", "sim:0", "cpu:0", "h2d", "d2h", "steps in"):
        assert word in text


def test_run_trace(image, tmp_path):
    words, _ = image
    assert "trace.json" in good("run", DIGITS, *ON_BOTH, *words, "--trace", tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert len([e for e in events if e.get("ph") == "X"]) > 10
    assert "/none/t.json" in failing(1, "run", DIGITS, *ON_BOTH, *words, "--trace", "/none/t.json")


def test_run_debug_dir(image, tmp_path):
    words, expected = image
    assert "28 files" in good("run", DIGITS, *ON_BOTH, *words, "--debug-dir", tmp_path / "nodes")
    assert len(list((tmp_path / "nodes").iterdir())) == 28
    assert np.abs(np.load(tmp_path / "nodes" / "digit_0.npy") - expected).max() < 1e-5
    before, after = (np.load(tmp_path / "nodes" / f"{n}_0.npy") for n in ("wide1", "wide1.relu"))
    assert (np.maximum(before, 0) == after).all() and before.min() < 0


def test_debug_dir_with_odd_names(chain, tmp_path):
    path = chain(n=4)
    graph = json.loads(path.read_text())
    for node, name in zip(graph["nodes"][1:], ("a/b", "same", "same", "..")):
        node["name"] = name
    path.write_text(json.dumps(graph))
    good("run", path, "--random", "--debug-dir", tmp_path / "d")
    assert sorted(os.listdir(tmp_path / "d")) == ["_.#4_0.npy", "a_b#1_0.npy", "same#2_0.npy", "same#3_0.npy"]


def test_folders_that_cannot_be_made(image):
    words, _ = image
    for option in ("--output-dir", "--debug-dir"):
        assert "/dev/null/x" in failing(1, "run", DIGITS, *ON_BOTH, *words, option, "/dev/null/x")


# Long enough for planning beside other tests: that it ends within the limit is not what these look at.
LIMIT = "2"


def test_run_timeout(image):
    words, _ = image
    assert good("run", DIGITS, *ON_BOTH, *words, "--timeout", "60.5")
    for command in ("run", "bench"):
        assert f"within {LIMIT} seconds" in failing(1, command, DIGITS, *ON_BOTH, *words, "--timeout", LIMIT, "--set",
                                                    "sim.hang=12")


def test_the_timeout_is_of_uploads_too(image):
    """Without it they have a minute."""
    words, _ = image
    start = time.monotonic()
    for command in ("run", "bench"):
        error = failing(1, command, DIGITS, "--device", "sim,cpu", *words, "--timeout", LIMIT, "--set", "sim.hang=1")
        assert "sim:0: upload of constants" in error
    assert time.monotonic() - start < 50


# ---- bench


def test_bench_json():
    got = json.loads(good("bench", DIGITS, *ON_BOTH, "--repeat", 7, "--number", 2, "--json"))
    r = got["results"]
    assert len(r) == got["repeat"] == 7 and got["number"] == 2 and min(r) > 0
    for key, value in (("mean", statistics.fmean(r)), ("median", statistics.median(r)), ("min", min(r)),
                       ("max", max(r)), ("std", statistics.pstdev(r))):
        assert got[key] == pytest.approx(value, rel=1e-9)
    assert got["random_inputs"] == ["image"] and got["end_to_end"] is False and got["devices"] == ["cpu:0", "sim:0"]


def test_bench_text(image):
    words, _ = image
    text = good("bench", DIGITS, *ON_BOTH, "--repeat=2", "--number=3", "--end-to-end")
    assert "input image is made up" in text and "2 x 3 runs with inputs set and outputs read" in text
    assert "made up" not in good("bench", DIGITS, *ON_BOTH, *words, "--repeat", 1, "--number", 1)


def test_bench_grows(chain):
    got = json.loads(good("bench", chain(n=3), "--repeat", 3, "--number", 1, "--min-repeat-ms", 20, "--json"))
    assert got["number"] > 10 and all(t * got["number"] > 0.002 for t in got["results"])


def test_bench_cools_down(chain):
    start = time.monotonic()
    good("bench", chain(n=1), "--repeat", 5, "--number", 1, "--cooldown-interval-ms", 100, "--repeats-to-cooldown", 2)
    assert time.monotonic() - start > 0.2


def test_end_to_end_sets_a_parameter_too(image, tmp_path):
    words, _ = image
    np.save(tmp_path / "b.npy", np.ones(10, np.float32))
    got = json.loads(good("bench", DIGITS, *ON_BOTH, *words, "--input", f"classes.bias={tmp_path}/b.npy",
                          "--end-to-end", "--repeat", 1, "--number", 1, "--json"))
    assert got["end_to_end"] is True and got["random_inputs"] == []


# ---- the tool keeps to the public interface


def test_sources_use_public_headers_only():
    # Bounds of operators, for compare (docs/decisions/tool-and-kit.md), and conversions of halves, without calls.
    common = ('#include "plugins/common/check/bound.h"', '#include "plugins/common/float16.h"')
    for path in (SOURCE / "tools").glob("*.[ch]"):
        for line in path.read_text().splitlines():
            if line.startswith('#include "') and "/" in line:
                assert line.startswith('#include "heddle/') or line in common, f"{path.name}: {line}"
