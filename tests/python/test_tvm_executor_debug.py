"""The debug executor of TVM as a module, and what is timed: values of nodes, profiles, seconds of nodes and of calls;
run_from_inputs, which timing with transfers takes.
labels: ctypes
timeout: 300
"""
import json
import struct
import time

import numpy as np
import pytest

import tvm_handles as tvm
from fixtures import tvm_legacy as legacy
from test_tvm_legacy import model_files, same
from tvm_executors import create, library, model, needs_compiler, refused  # noqa: F401
from tvm_graph import Call, tvm_graph

F32 = "float32"

pytestmark = needs_compiler


# ---- run_from_inputs, timing

def test_run_from_inputs(model):
    ex, inputs, outputs = model("multi_output")
    x = inputs["x"]
    got = ex["run_from_inputs"](1, 0, "x", x)
    assert got["size"]() == len(outputs)
    same([got["get"](i).numpy() for i in range(len(outputs))], outputs)
    ex["run_from_inputs"](1, 0, "x", x * 0)
    same([got["get"](0).numpy()], outputs[:1])  # copies
    refused(got["get"], [99], "99")
    refused(ex["run_from_inputs"], [1, 0, "nope", x], "nope")
    refused(ex["run_from_inputs"], [1, 0, "x"], "pairs")
    refused(ex["run_from_inputs"], [99, 0, "x", x], "type 99")


def test_time_evaluator(model):
    ex, inputs, _ = model("reshape_nop")
    make = tvm.function("runtime.RPCTimeEvaluator")
    seconds = struct.unpack("<3d", make(ex, "run", 1, 0, 2, 3, 0, 100, 0, 1, 0, "")())
    assert all(0 < s < 1 for s in seconds)
    (key, value), = inputs.items()
    end_to_end = make(ex, "run_from_inputs", 1, 0, 1, 2, 0)
    assert len(end_to_end(1, 0, key, value)) == 16
    refused(end_to_end, [1, 0, "nope", value], "nope")
    refused(make, [ex, "foo", 1, 0], "foo")
    refused(make, [None, "no.such.function", 1, 0], "no.such.function")
    refused(make, [ex, "run", 1, 0, 0], "argument 4")


def test_min_repeat_ms_counts_calls():
    """Calls grow until a measurement takes that long; the first is not timed; pauses are between measurements."""
    made = tvm.function("runtime.RPCTimeEvaluator")
    ex = create(tvm_graph({"x": (F32, [2])}, [Call("__nop", ["x"], [(F32, [2])], "n")], ["n"]), None)
    ex["set_input"]("x", np.zeros(2, np.float32))
    start = time.monotonic()
    one, two = struct.unpack("<2d", made(ex, "run", 1, 0, 1, 2, 20)())
    took = time.monotonic() - start
    assert took >= 0.04 and 0 < one < 0.02 and 0 < two < 0.02
    start = time.monotonic()
    made(ex, "run", 1, 0, 1, 4, 0, 100, 50, 2)()
    assert 0.05 <= time.monotonic() - start < 0.5  # one pause, after the second of four


# ---- the debug executor

@pytest.fixture
def debug(model):
    return lambda name: model(name, "tvm.graph_executor_debug.create")


def test_debug_get_output(model, debug):
    """By node, number or name, in both executors: after a node of several outputs TVM gives another tensor."""
    graph = json.loads(model_files("multi_output")[0])
    for ex, inputs, outputs in (model("multi_output"), debug("multi_output")):
        for i, (node, k, _) in enumerate(graph["heads"]):
            name = graph["nodes"][node]["name"]
            out = tvm.Array.empty(outputs[i].shape, outputs[i].dtype)
            for key in ([f"{name}:{k}"] if k else [node, name, f"{name}:0"]):
                out.write(np.zeros_like(outputs[i]))
                ex["debug_get_output"](key, out)
                same([out.numpy()], [outputs[i]])
                same([ex["debug_get_output"](key).numpy()], [outputs[i]])
        np.testing.assert_array_equal(ex["debug_get_output"](0).numpy(), inputs["x"])  # an input
        refused(ex["debug_get_output"], ["nope"], "nope")
        refused(ex["debug_get_output"], [99], "99")
        refused(ex["debug_get_output"], [0, tvm.Array.empty((1,), F32)], "debug_get_output")


def test_debug_get_output_of_reused_memory(debug, tmp_path):
    """Values whose memory the plan gives to later nodes: each as it was."""
    kernels = [legacy.kernel("inc", [("x", F32, (8,)), ("y", F32, (8,))], "for (int i = 0; i < 8; i++) y[i] = x[i] + 1;")]
    lib = tvm.load(legacy.library(tmp_path / "lib.so", "v0.14", kernels))
    calls = [Call("inc", [f"n{i - 1}" if i else "x"], [(F32, [8])], f"n{i}") for i in range(9)]
    ex = create(tvm_graph({"x": (F32, [8])}, calls, ["n8"]), lib, by="tvm.graph_executor_debug.create")
    x = np.arange(8, dtype=np.float32)
    ex["set_input"]("x", x)
    ex["run"]()
    for i in range(9):
        np.testing.assert_array_equal(ex["debug_get_output"](f"n{i}").numpy(), x + i + 1)
        ex["execute_node"](i + 1)
        np.testing.assert_array_equal(ex["get_node_output"](i + 1, 0).numpy(), x + i + 1)
    ex["execute_node"](2)  # back again
    np.testing.assert_array_equal(ex["get_node_output"](2, 0).numpy(), x + 2)
    ex["set_input"]("x", x * 0)
    ex["execute_node"](2)
    np.testing.assert_array_equal(ex["get_node_output"](2, 0).numpy(), np.full(8, 2))
    refused(ex["execute_node"], [99], "99")
    refused(ex["get_node_output"], [1, 5], "5")
    np.testing.assert_array_equal(ex["get_output"](0).numpy(), x + 9)  # of the last whole run


def test_nodes_before_one_that_fails(tmp_path):
    kernels = [legacy.kernel("inc", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"),
               legacy.kernel("bad", [("x", F32, (4,)), ("y", F32, (4,))], 'CHECK(x[0] < 0, "no luck");\ny[0] = x[0];')]
    lib = tvm.load(legacy.library(tmp_path / "lib.so", "v0.14", kernels))
    t = [(F32, [4])]
    ex = create(tvm_graph({"x": (F32, [4])}, [Call("inc", ["x"], t, "a"), Call("bad", ["a"], t, "b")], ["b"]), lib,
                by="tvm.graph_executor_debug.create")
    refused(ex["execute_node"], [1], "'x'", "never set")
    ex["set_input"]("x", np.zeros(4, np.float32))
    ex["execute_node"](1)
    np.testing.assert_array_equal(ex["get_node_output"](1, 0).numpy(), np.ones(4))
    refused(ex["execute_node"], [2], "node 'b'", "no luck")
    refused(ex["get_node_output"], [2, 0], "node 'b'", "no luck")
    ex["load_params"](tvm.function("runtime.SaveParams")("x", np.full(4, -3, np.float32)))
    ex["execute_node"](2)
    assert ex["get_node_output"](2, 0).numpy()[0] == -2


def test_debug_every_node(debug):
    """As TVM's front end writes all values of a run to files."""
    graph = json.loads(model_files("multi_output")[0])
    ex, inputs, outputs = debug("multi_output")
    heads = {(n, k): i for i, (n, k, _) in enumerate(graph["heads"])}
    for i, node in enumerate(graph["nodes"]):
        ex["execute_node"](i)
        for k in range(1 if node["op"] == "null" else int(node["attrs"]["num_outputs"])):
            got = ex["get_node_output"](i, k).numpy()
            if (i, k) in heads:
                same([got], [outputs[heads[i, k]]])


def test_profile(debug):
    ex, _, _ = debug("multi_output")
    said = json.loads(ex["profile"]())
    graph = json.loads(model_files("multi_output")[0])
    nodes = {n["name"]: n["attrs"]["func_name"] for n in graph["nodes"] if n["op"] == "tvm_op"}
    ran = [c for c in said["calls"] if c["name"] in nodes]
    assert {c["name"]: c["op"] for c in ran} == nodes and len(ran) == len(nodes)
    assert all(c["device"] == "cpu:0" and c["duration_us"] >= 0 for c in ran)
    assert said["duration_us"] > 0
    json.loads(ex["profile"](None))
    refused(ex["profile"], [3], "collectors")


def test_run_individual(debug, tmp_path):
    """Seconds of each node; a slow one shows, though another has its name."""
    slow = legacy.kernel("slow", [("x", F32, (4,)), ("y", F32, (4,))],
                         "volatile int n = 0; for (int i = 0; i < 2000000; i++) n += i; y[0] = x[0] + (n == 7);")
    fast = legacy.kernel("fast", [("x", F32, (4,)), ("y", F32, (4,))], "y[0] = x[0];")
    lib = tvm.load(legacy.library(tmp_path / "lib.so", "v0.14", [slow, fast]))
    t = [(F32, [4])]
    graph = tvm_graph({"x": (F32, [4])}, [Call("fast", ["x"], t, "a"), Call("slow", ["a"], t, "b"),
                                          Call("fast", ["b"], t, "c")], ["c"])
    graph = graph.replace('"name": "c"', '"name": "a"')  # a name need not be unique
    ex = create(graph, lib, by="tvm.graph_executor_debug.create")
    ex["set_input"]("x", np.ones(4, np.float32))
    data = ex["run_individual"](2, 3, 0, 100, 0, 1)
    count, *seconds = struct.unpack("<q12d", data)
    times = np.array(seconds).reshape(4, 3)
    assert count == 4 and not times[0].any() and (times[1:] > 0).all()
    assert np.median(times[2]) > 10 * np.median(times[1]) and np.median(times[2]) > 10 * np.median(times[3])
    one = struct.unpack("<2d", ex["run_individual_node"](2, 1, 2, 5))
    assert np.median(times[2]) / 20 < np.median(one) < np.median(times[2]) * 20
    assert struct.unpack("<1d", ex["run_individual_node"](0, 1, 1)) == (0,)
    refused(ex["run_individual_node"], [9, 1, 1], "9")
    refused(ex["run_individual"], [0], "argument 0")
