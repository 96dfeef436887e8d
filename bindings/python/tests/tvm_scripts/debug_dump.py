"""The debug executor: what it writes, and values and times of nodes."""
import json
import os
import re
import sys

import numpy as np
import tvm
from tvm.contrib.debugger import debug_executor
from tvm.contrib.debugger.debug_executor import GraphModuleDebug

folder = sys.argv[1]
x = np.load(os.path.join(folder, "data.npy"))
expected = np.load(os.path.join(folder, "expected.npy"))
graph = open(os.path.join(folder, "deploy.json")).read()
lib = tvm.runtime.load_module(os.path.join(folder, "deploy.so"))
dev = tvm.cpu(0)
m = debug_executor.create(graph, lib, dev, dump_root=os.path.join(folder, "dump"))
m.load_params(open(os.path.join(folder, "deploy.params"), "rb").read())
m.set_input("data", x)
m.run(number=2, repeat=3)
tvm.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

written = os.path.join(folder, "dump", "_tvmdbg_device_CPU_0")
assert sorted(os.listdir(written)) == ["_tvmdbg_execution_trace.json", "_tvmdbg_graph_dump.json", "output_tensors.params"]
nodes = json.load(open(os.path.join(written, "_tvmdbg_graph_dump.json")))["nodes"]
assert len(nodes) == 10 and nodes[0]["op"] == "param" and nodes[7]["inputs"] == ["data", "w0", "b0"]
events = json.load(open(os.path.join(written, "_tvmdbg_execution_trace.json")))["traceEvents"]
assert [e["ph"] for e in events] == ["B", "E"] * 10 and events[-1]["ts"] > 0
values = tvm.runtime.load_param_dict(open(os.path.join(written, "output_tensors.params"), "rb").read())
assert len(values) == 10
name = "tvmgen_default_fused_nn_softmax"
tvm.testing.assert_allclose(values[name + "____topo-index:9____output-num:0"].numpy(), expected, rtol=1e-4, atol=1e-5)
tvm.testing.assert_allclose(values["data____topo-index:0____output-num:0"].numpy(), x)
assert set(m.debug_datum.get_output_tensors()) == set(values)

# values of single nodes, by name and number
out = tvm.nd.empty((1, 10))
m.debug_get_output(name, out)
tvm.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
hidden = tvm.nd.empty((1, 16))
m.debug_get_output(7, hidden)
params = tvm.runtime.load_param_dict(open(os.path.join(folder, "deploy.params"), "rb").read())
first = np.maximum(x @ params["w0"].numpy().T + params["b0"].numpy(), 0)
tvm.testing.assert_allclose(hidden.numpy(), first, rtol=1e-4, atol=1e-4)
for wrong, kind in (("nope", AttributeError), (1.5, RuntimeError)):
    try:
        m.debug_get_output(wrong, out)
    except kind:
        continue
    raise AssertionError(wrong)

# times
times = m.run_individual(number=2, repeat=3, min_repeat_ms=0)
assert len(times) == 10 and all(len(t) == 3 for t in times) and times[0] == [0, 0, 0] and min(times[7]) > 0
one = m.run_individual_node(7, number=2, repeat=4)
assert len(one.results) == 4 and one.mean > 0
assert "tvmgen_default_fused_nn_softmax" in m.get_debug_result() and "Total_time" in m.get_debug_result()

lines = [re.split(r"  [ ]*", line) for line in m.debug_datum.get_debug_result().split("\n")]
assert lines[0] == ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)", ""]
assert {line[1] for line in lines[2:5]} == {n["op"] for n in m.debug_datum.get_graph_nodes() if n["op"] != "param"}
assert lines[5][0] == "Total_time" and abs(float(lines[5][2]) - sum(float(line[2]) for line in lines[2:5])) < 0.01
assert m.run_individual_node(0, number=1).mean == 0
try:
    m.run_individual_node(10)
    raise AssertionError("there is no node 10")
except tvm.TVMError:
    pass

# a report
report = m.profile(data=x)
assert "tvmgen_default_fused_nn_softmax" in str(report) and "Total" in str(report) and "Hash" in str(report)
parsed = json.loads(report.json())
for call in parsed["calls"]:
    assert isinstance(call["Name"]["string"], str) and isinstance(call["Count"]["count"], int)
    assert isinstance(call["Duration (us)"]["microseconds"], float)
assert report.csv().splitlines()[0].startswith("Name,Duration (us)") and len(report.calls) >= 3
again = tvm.runtime.profiling.Report.from_json(report.json())
assert again.table(aggregate=False, col_sums=False) == report.table(aggregate=False, col_sums=False)
assert [c["Argument Shapes"] for c in report.calls if c["Name"] == name] == [
    "float32[1, 12], float32[10, 12], float32[10], float32[1, 10]"]
assert "cpu0" in report.device_metrics and report.configuration["Executor"] == "Graph"
m.exit()
assert not os.path.exists(written)

# of a factory, in a folder of its own
factory = tvm.runtime.load_module(os.path.join(folder, "model.so"))
g = GraphModuleDebug(factory["debug_create"]("default", dev), [dev], factory["get_graph_json"](), None)
g.run(data=x)
tvm.testing.assert_allclose(g.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
h = debug_executor.create(factory["get_graph_json"](), factory, dev)  # its parameters come with it
h.set_input("data", x)
h._run_per_layer()
tvm.testing.assert_allclose(h.debug_datum.get_output_tensors()[name + "____topo-index:9____output-num:0"].numpy(), expected,
                            rtol=1e-4, atol=1e-5)
h.exit()
own = g._dump_root
assert os.path.isdir(own)
g.exit()
assert not os.path.exists(own)
print("ok")
