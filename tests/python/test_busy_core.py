"""With one of two cores kept busy by another program, a second thread must not make a node slower than it is alone.

labels: slow serial soak
timeout: 300
"""
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx_cases
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import io
from tool_case import TOOL, environment

ROUNDS, LIMIT = 9, 3.0
FLOOR_US = 30.0  # what waking a thread takes and a shorter node cannot hide


def model():
    rng = np.random.default_rng(1)
    nodes, weights = [], []

    def weight(*shape):
        weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.05, f"w{len(weights)}"))
        return weights[-1].name

    def node(op, inputs, name, **attrs):
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    x = node("Conv", ["x", weight(64, 3, 7, 7)], "first", pads=[3, 3, 3, 3], strides=[2, 2])
    x = node("Conv", [x, weight(64, 64, 3, 3)], "wide", pads=[1, 1, 1, 1])
    x = node("Conv", [x, weight(256, 64, 1, 1)], "point")
    x = node("Conv", [x, weight(256, 1, 3, 3)], "depth", group=256, pads=[1, 1, 1, 1])
    x = node("MaxPool", [x], "pool", kernel_shape=[2, 2], strides=[2, 2])
    x = node("Conv", [x, weight(256, 256, 3, 3)], "deep", pads=[1, 1, 1, 1])
    x = node("Sigmoid", [x], "sigmoid")
    x = node("Flatten", [node("GlobalAveragePool", [x], "mean")], "flat")
    x = node("Gemm", [x, weight(4096, 256), weight(4096)], "full", transB=1)
    x = node("Softmax", [x], "soft", axis=1)
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 112, 112])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def profile(path, threads, cores):
    """Microseconds of each step of one run."""
    done = subprocess.run([str(TOOL), "run", str(path), "--random", "--device", "cpu", "--profile", "--threads",
                           str(threads)], capture_output=True, text=True, timeout=60, env=environment(),
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("takes us\n")[1]
    rows = re.findall(r"^(\S+)\s+\S+\s+cpu:0\s+\S+\s+[\d.]+\s+([\d.]+)$", table, re.M)
    assert len(rows) >= 8, done.stdout
    return {name: float(took) for name, took in rows}


def others():
    """How many more threads want a core just now: the median of a second."""
    seen = []
    for _ in range(20):
        with open("/proc/loadavg") as f:
            seen.append(int(f.read().split()[3].split("/")[0]) - 1)
        time.sleep(0.05)
    return statistics.median(seen)


def test_a_busy_core(tmp_path):
    """The other core must be free: a waiting thread that sleeps leaves it to the one that was held up."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("one core")
    if others() >= 1:
        pytest.skip("both cores have other work, which decides the times")
    graph, params = onnx_cases.graph(model(), 17, {"x": np.zeros((1, 3, 112, 112), np.float32)})
    io.write_graph(tmp_path / "net.json", graph)
    io.write_params(tmp_path / "net.params", params)
    busy = subprocess.Popen([sys.executable, "-c",
                             f"import os\nos.sched_setaffinity(0, [{cores[1]}])\nwhile True: pass"])
    try:
        times = {1: [], 2: []}
        for _ in range(ROUNDS):
            for threads in times:
                times[threads].append(profile(tmp_path / "net.json", threads, cores))
    finally:
        busy.kill()
        busy.wait()
    slow = {}
    for name in times[1][0]:
        one, two = (statistics.median(t[name] for t in times[n]) for n in (1, 2))
        print(f"{name}: {one:.0f} us on one thread, {two:.0f} on two")
        if two > LIMIT * one + FLOOR_US:
            slow[name] = (one, two)
    assert not slow, slow
