"""How functions with device code run: on which device and stream, on which thread, never inside of a recorded segment;
handles that their code keeps serve every model, device and context.
labels: ctypes
timeout: 200
"""
import ctypes as c
import json
import threading

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
F32 = "float32"
F = [("x", F32, (8,)), ("y", F32, (8,))]
T = [(F32, [8])]
X = np.linspace(-1, 1, 8, dtype=np.float32)


class Stats(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_uint64) for name in (
        "runs", "bytes_copied", "copies", "device_bytes", "orphan_bytes", "replays")]


@pytest.fixture(scope="module", autouse=True)
def devices():
    pocl.need()


def build(path):
    """there: twice its input, by a kernel; here: one more, on cpu. Both count and keep the thread that called."""
    def watched(source):
        first = "TVMValue *args = args_;"
        return source.replace(first, first + " calls++; caller = syscall(SYS_gettid);")

    source = [watched(legacy.launcher("there", F, [("there_kernel", ["x", "y"], [2, 4])])),
              watched(legacy.kernel("here", F, "for (int i = 0; i < 8; i++) y[i] = x[i] + 1;")),
              "FUNCTION(count) { out_ret->v_int64 = calls; *out_code = 0; return 0; }",
              "FUNCTION(thread) { out_ret->v_int64 = caller; *out_code = 0; return 0; }"]
    kernel = {"there_kernel": ([operators.HANDLE] * 2, operators.TAGS, "__global const float *x, __global float *y",
                               "y[i] = x[i] * 2;")}
    data = operators.blob("v0.14", [operators.opencl_module("v0.14", kernel)])
    return legacy.library(path, "v0.14", source, data=data,
                          declared="#include <unistd.h>\n#include <sys/syscall.h>\nstatic long calls, caller;")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build(tmp_path_factory.mktemp("lib") / "lib.so")


class Run:
    def __init__(self, ctx, text, library, devices, **options):
        self.held = [capi.Graph(text)]
        self.held.append(capi.Model(ctx, self.held[0], devices=devices, library=library, **options))
        self.held.append(capi.Executor(self.held[1]))
        self.model, self.executor = self.held[1:]
        self.executor.set_input("x", X)

    def plan(self):
        plan = self.model.explain_json()
        names = {d["id"]: d["name"] for d in plan["devices"]}
        return {n["name"]: names[n["device"]] for n in plan["nodes"]}, plan, names

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in reversed(self.held):
            p.close()


@pytest.fixture
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


@pytest.fixture
def library(ctx, path):
    opened = capi.Library(ctx, path)
    yield opened
    opened.close()


MIXED = tvm_graph({"x": (F32, [8])}, [Call("there", ["x"], T, "a"), Call("here", ["a"], T, "b"),
                                      Call("there", ["b"], T, "d")], ["d"], device_index=False)


@pytest.mark.parametrize("devices,first", [("cpu,opencl:1,opencl:0", "opencl:1"),
                                           ("opencl:0,opencl:1,cpu", "opencl:0")])
def test_devices_without_device_index(ctx, library, devices, first):
    """The first device that the function's kernels are for; without kernels cpu, whatever is first in the list."""
    with Run(ctx, MIXED, library, devices) as r:
        where, plan, names = r.plan()
        assert (where["a"], where["b"], where["d"]) == (first, "cpu:0", first)
        streams = {s["id"]: s for s in plan["streams"]}
        on = {plan["regions"][s["region"]]["label"]: streams[s["stream"]] for s in plan["steps"] if s["kind"] == "op"}
        assert names[on["a"]["device"]] == names[on["d"]["device"]] == first and not on["a"]["host"]
        inline = {d["name"]: d["inline"] for d in plan["devices"]}
        assert inline["cpu:0"] and (on["b"]["host"] or names[on["b"]["device"]] == "cpu:0")
        r.executor.run()
        np.testing.assert_allclose(r.executor.output(0), (X * 2 + 1) * 2, rtol=1e-6)


def test_accesses_count_on_the_devices_stream(ctx, library):
    """A function's step reads its input and writes its output there: what the proof checks. Many runs, one result."""
    with Run(ctx, MIXED, library, "cpu,opencl:0") as r:
        _, plan, _ = r.plan()
        for step in plan["steps"]:
            if step["kind"] == "op":
                assert sorted(a["mode"] for a in step["accesses"]) == ["read", "write"], step
        for _ in range(20):
            r.executor.run()
            np.testing.assert_allclose(r.executor.output(0), (X * 2 + 1) * 2, rtol=1e-6)


FOREVER = (1 << 64) - 1


def one(function):
    return tvm_graph({"x": (F32, [8])}, [Call(function, ["x"], T, "a")], ["a"], device_index=False)


@pytest.mark.parametrize("function", ["there", "here"])
def test_called_by_the_thread_that_submits(ctx, library, function):
    """Nothing but the thread that waits for a run without a limit calls a function of it; with a limit, and a function takes as
    long as it takes, it is a thread of the executor's."""
    with Run(ctx, one(function), library, "cpu,opencl:0") as r:
        r.executor.run(FOREVER)
        assert library.call("thread") == threading.get_native_id()
        found = []

        def work():
            r.executor.run(FOREVER)
            found.append((library.call("thread"), threading.get_native_id()))
        other = threading.Thread(target=work)
        other.start()
        other.join()
        assert found and found[0][0] == found[0][1] != threading.get_native_id()


def test_not_in_a_recorded_segment(path):
    """Operators around it are replayed; it is called in every run."""
    graph = {"heddle": {"version": 1, "opset": 17}, "nodes": [{"op": "null", "name": "x", "inputs": []}],
             "arg_nodes": [0], "heads": [[7, 0, 0]], "node_row_ptr": list(range(9)),
             "attrs": {"dltype": ["list_str", [F32] + 7 * [None]], "shape": ["list_shape", [[8]] + 7 * [None]]}}
    for i, op in enumerate(("Neg", "Abs", "Neg", "", "Neg", "Abs", "Neg")):
        node = {"op": op, "name": f"n{i}", "inputs": [[i, 0, 0]], "device": "opencl:0"}
        if op == "":
            node = {"op": "tvm_op", "name": f"n{i}", "inputs": [[i, 0, 0]], "attrs": {
                "func_name": "there", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}}
            graph["attrs"]["dltype"][1][i + 1], graph["attrs"]["shape"][1][i + 1] = F32, [8]
        graph["nodes"].append(node)
    replayed = {}
    for capture in (1, 0):
        context = capi.Context(config="off", opencl__capture=capture, opencl__fuse=0)
        library = capi.Library(context, path)
        with Run(context, json.dumps(graph), library, "opencl:0") as r:
            r.executor.run()
            before = library.call("count")
            for k in range(5):
                r.executor.set_input("x", X * k)
                r.executor.run()
                np.testing.assert_allclose(r.executor.output(0), -np.abs(X * k * 2), rtol=1e-6)
            assert library.call("count") - before == 5
            stats = Stats(struct_size=c.sizeof(Stats))
            capi.call("heddle_executor_get_stats", r.executor.p, c.byref(stats))
            replayed[capture] = stats.replays
        library.close()
        context.close()
    assert replayed[0] == 0
    if replayed[1] == 0:
        pytest.skip("the OpenCL devices here record nothing")


def test_calls_outside_of_runs_are_done_when_they_return(ctx, library):
    for device in ("opencl:0", "opencl:1"):
        x, y = (capi.on_device(ctx, device, v) for v in (X, X * 0))
        for k in range(10):
            library.call("there", *((x, y) if k % 2 == 0 else (y, x)))
            np.testing.assert_allclose(capi.from_device(y if k % 2 == 0 else x, X), X * 2 ** (k + 1), rtol=1e-6)
        for t in (x, y):
            capi.LIB.heddle_tensor_release(t)


def test_handles_outlive_models_and_contexts(path):
    """The code keeps its kernel's handle from the first call on, in a variable of its own."""
    contexts = [capi.Context(config="off") for _ in range(3)]
    libraries = [capi.Library(context, path) for context in contexts]
    for i, device in ((0, "opencl:0"), (1, "opencl:1"), (2, "opencl:0")):
        for place in ([], [f"*={device}"]):
            listed = "opencl:0,opencl:1" if place else device
            with Run(contexts[i], one("there"), libraries[i], listed, place=place) as r:
                r.executor.run()
                np.testing.assert_allclose(r.executor.output(0), X * 2)
        libraries[i].close()
        contexts[i].close()
