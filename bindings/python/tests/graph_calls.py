"""Calls of graph executors by the thousand with errors among them, and what they leave behind."""
import ctypes
import gc
import sys

import numpy as np

import heddle as tvm
from flat import memory
from heddle import graph_executor
from tvm_models import write_files


def one_round(m, other, x, blob, graph, lib, i):
    """30 calls or more; every 20th round makes executors too, and lets them go."""
    m.set_input("data", x)
    m.set_input(0, tvm.nd.array(x))
    m.set_input(data=x, nope=x)
    m.set_input("data", x.tolist() if i % 20 == 0 else x.astype("float64"))
    m.run()
    out = m.get_output(0)
    out.numpy(), m.get_output(0, tvm.nd.empty((1, 10))), m.get_input("w0"), m.get_input("nope")
    m.get_input_info(), m.get_output_info(), m.get_num_inputs(), m.get_num_outputs(), m.get_input_index("b0")
    m["run"](), m.module["get_output"](0)
    m["run_from_inputs"](1, 0, "data", x)
    other.set_input_zero_copy("data", tvm.nd.array(x))
    other.set_output_zero_copy(0, np.zeros((1, 10), "float32"))
    other.run()
    if i % 20 == 0:
        m.benchmark(tvm.cpu(), repeat=2, number=1)
        str(m.profile())
        m.debug_get_output(7)
        made = graph_executor.create(graph, lib, tvm.cpu())
        made.share_params(other, blob)
        made.run(data=x)
    for call in (lambda: m.set_input("nope", x), lambda: m.set_input("data", x[:, :3]), lambda: m.get_output(9),
                 lambda: m.get_output(0, tvm.nd.empty((3,))), lambda: m["nope"], lambda: m.load_params(b"none"),
                 lambda: m.set_input_zero_copy("data", x[:, ::2]), lambda: m.set_input_zero_copy("data", [1]),
                 lambda: m.debug_get_output("nope"), lambda: graph_executor.create("{", lib, tvm.cpu()),
                 lambda: graph_executor.create(graph, lib, tvm.cuda(99)), lambda: m["set_input"]("data")):
        try:
            call()
        except (tvm.Error, ValueError, TypeError, AttributeError):
            continue
        raise AssertionError("a call that must fail did not")


def stays_flat(folder, rounds):
    """Bytes by which the process has grown; references are as they were."""
    write_files(folder)
    x, blob = np.load(folder / "data.npy"), (folder / "deploy.params").read_bytes()
    graph, lib = (folder / "deploy.json").read_text(), tvm.runtime.load_module(folder / "deploy.so")
    m, other = (graph_executor.create(graph, lib, tvm.cpu()) for _ in range(2))
    for g in (m, other):
        g.load_params(blob)
    watched = [x, blob, graph, lib, m, other, m.module, tvm.nd.NDArray, tvm.Device, tvm.runtime.Module]
    for i in range(60):
        one_round(m, other, x, blob, graph, lib, i)
    gc.collect()
    before, counts, objects = memory(), [sys.getrefcount(w) for w in watched], len(gc.get_objects())
    for i in range(rounds):
        one_round(m, other, x, blob, graph, lib, i)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    assert [sys.getrefcount(w) for w in watched] == counts
    assert abs(len(gc.get_objects()) - objects) < 50
    return memory() - before
