"""heddle.runtime.profiling: reports as tables, CSV and JSON, from given metrics and from what an executor said.
"""
import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import small_models as small
from onnx import helper

import heddle
from heddle import debug_executor
from heddle.runtime.profiling import Count, Duration, Percent, Ratio, Report, report_of_run

CALLS = [{"Name": "conv", "Duration (us)": Duration(1234.5), "Count": Count(1), "Percent": Percent(60), "Device": "cpu0",
          "Hash": "h1", "Argument Shapes": "float32[2]", "Cache": Ratio(0.5)},
         {"Name": "relu", "Duration (us)": Duration(10), "Count": Count(1), "Percent": Percent(10), "Device": "cpu0",
          "Argument Shapes": "float32[2], \"x\""},
         {"Name": "conv", "Duration (us)": Duration(100), "Count": Count(1), "Percent": Percent(30), "Device": "cpu0",
          "Hash": "h1", "Argument Shapes": "float32[2]", "Cache": Ratio(0.25)}]
DEVICES = {"cpu0": {"Duration (us)": Duration(2000), "Count": Count(1), "Percent": Percent(100)}}


@pytest.fixture
def report():
    return Report(CALLS, DEVICES, {"Executor": "Graph", "Number of threads": Count(2)})


def lines(text):
    return [line.split() for line in text.splitlines()]


def test_table_joins_calls_of_one_operator_and_sorts(report):
    said = lines(report.table())
    assert said[0][:2] == ["Name", "Duration"]
    assert said[1][:5] == ["conv", "1,334.50", "90.00", "cpu0", "2"] and said[2][0] == "relu"
    assert said[1][-1] == "h1" and "0.38" in said[1]  # of ratios the mean
    assert said[3] == ["----------"] and said[4][:4] == ["Sum", "1,344.50", "100.00", "3"]
    assert said[5][:4] == ["Total", "2,000.00", "100.00", "cpu0"]
    assert said[-4:] == [["Configuration"], ["-------------"], ["Executor:", "Graph"], ["Number", "of", "threads:", "2"]]
    assert str(report) == report.table()


def test_table_as_called(report):
    said = lines(report.table(sort=False, aggregate=False, col_sums=False))
    assert [line[0] for line in said[1:4]] == ["conv", "relu", "conv"] and said[4] == []
    assert "Sum" not in report.table(col_sums=False) and "Total" not in report.table(col_sums=False)
    unnamed = Report([{"Name": n, "Hash": "", "Duration (us)": Duration(1)} for n in "ab"], {})
    assert [line[0] for line in lines(unnamed.table(col_sums=False))[1:]] == ["a", "b"]
    empty = Report([], {})
    assert empty.table() == "\n" and json.loads(empty.json()) == {"calls": [], "device_metrics": {}, "configuration": {}}


def test_csv(report):
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert [r["Name"] for r in rows] == ["conv", "relu", "conv"] and float(rows[0]["Duration (us)"]) == 1234.5
    assert rows[1]["Argument Shapes"] == 'float32[2], "x"' and rows[1]["Hash"] == "" and rows[0]["Cache"] == "0.5"


def test_json_there_and_back(report):
    said = json.loads(report.json())
    assert said["calls"][0]["Duration (us)"] == {"microseconds": 1234.5} and said["calls"][0]["Name"] == {"string": "conv"}
    assert said["device_metrics"]["cpu0"]["Percent"] == {"percent": 100.0}
    assert said["configuration"]["Number of threads"] == {"count": 2} and said["calls"][0]["Cache"] == {"ratio": 0.5}
    back = Report.from_json(report.json())
    assert back.calls == report.calls and back.device_metrics == report.device_metrics
    assert back.configuration == report.configuration and back.table() == report.table()
    with pytest.raises(TypeError, match="metric"):
        Report([{"Name": 3}], {}).json()


def test_report_of_a_run():
    """Argument shapes by entry, not by node: of a node with two outputs, and of one behind it."""
    graph = {"nodes": [{"op": "null", "name": "x", "inputs": []},
                       {"op": "tvm_op", "name": "split", "inputs": [[0, 0, 0]], "attrs": {"hash": "s"}},
                       {"op": "tvm_op", "name": "last", "inputs": [[1, 1, 0]], "attrs": {}}],
             "node_row_ptr": [0, 1, 3, 4],
             "attrs": {"dltype": ["list_str", ["float32", "int8", "int32", "bool"]],
                       "shape": ["list_shape", [[4], [1], [2, 3], []]]}}
    steps = [{"name": "split", "op": "f", "device": "cpu:0", "stream": 0, "start_us": 0, "duration_us": 2},
             {"name": "copy", "op": "Copy", "device": "opencl:1", "stream": 0, "start_us": 3, "duration_us": 1},
             {"name": "last", "op": "g", "device": "cpu:0", "stream": 0, "start_us": 6, "duration_us": 4}]
    made = report_of_run(json.dumps({"duration_us": 10, "calls": steps}), json.dumps(graph), {})
    assert [c["Name"] for c in made.calls] == ["f", "Copy", "g"]
    assert [c["Argument Shapes"] for c in made.calls] == ["float32[4], int8[1], int32[2, 3]", "", "int32[2, 3], bool[]"]
    assert [c["Hash"] for c in made.calls] == ["s", "", ""] and made.calls[2]["Percent"] == Percent(40)
    assert made.device_metrics["cpu0"]["Duration (us)"].microseconds == 10
    assert made.device_metrics["opencl1"]["Percent"].percent == 10


AFTER_A_PAUSE = """
import sys, time, heddle, numpy as np
model = heddle.load(sys.argv[1], devices="opencl:0")
x = np.ones((64, 64), "float32")
executor = model.executor()
executor.set_input("x", x)
executor.profile()
for _ in range(2):
    executor.run()
    time.sleep(0.4)
    print(sum(row["end_ns"] - row["start_ns"] for row in executor.profile()))
"""


def test_the_first_step_after_a_pause(tmp_path):
    """A step does not begin with the end of what its stream did before, in a run that was not timed."""
    env = {**os.environ, "POCL_DEVICES": "pthread"}
    devices = [sys.executable, "-c", "import heddle; print([d['name'] for d in heddle.devices()])"]
    if "opencl:0" not in subprocess.run(devices, capture_output=True, text=True, timeout=100, env=env).stdout:
        pytest.skip("there is no OpenCL device")
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    path = small.save(tmp_path, "pause", nodes, [("x", (64, 64))], [("z", (64, 64))])
    done = subprocess.run([sys.executable, "-c", AFTER_A_PAUSE, path], capture_output=True, text=True, timeout=100, env=env)
    assert done.returncode == 0, done.stderr
    sums = [int(line) for line in done.stdout.split()]
    assert len(sums) == 2 and min(sums) < 300e6, sums


def test_times_of_nodes_that_run_as_one(capsys):
    """The debug executor gives the time of a region of several nodes to the last of them, and ends."""
    graph = {"heddle": {"version": 1, "opset": 17}, "arg_nodes": [0], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
             "nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "Relu", "name": "a", "inputs": [[0, 0, 0]]},
                       {"op": "Relu", "name": "b", "inputs": [[1, 0, 0]]}],
             "attrs": {"dltype": ["list_str", ["float32", None, None]], "shape": ["list_shape", [[64, 64], None, None]]}}
    m = debug_executor.create(json.dumps(graph), None, heddle.device("cpu", 0))
    m.set_input("x", np.ones((64, 64), np.float32))
    x, a, b = (row[0] for row in m.run_individual(3, 1, 1))
    assert x == 0 and a == 0 and b > 0
    m.run()
    assert "Total_time" in capsys.readouterr().out
    m.exit()
