"""A locale with a decimal comma changes nothing: not in a program that calls setlocale before it reads and writes
graphs, settings, plans and traces, and not in the tool. The locale is made here, so that the test never lacks it.
labels: ctypes
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from tool_case import BUILD, DIGITS, SOURCE, environment, good

GRAPH = {
    "heddle": {"version": 1, "opset": 17},
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {"op": "Gemm", "name": "g", "device": "sim:0",
         "attrs": {"alpha": 0.3125, "beta": 1e-3, "transB": 0}, "inputs": [[0, 0, 0], [1, 0, 0]]},
        {"op": "Gemm", "name": "h", "attrs": {"alpha": 1.1, "beta": -2.5e+20}, "inputs": [[2, 0, 0], [1, 0, 0]]},
        {"op": "FusedElementwise", "name": "f", "domain": "heddle", "inputs": [[3, 0, 0]],
         "attrs": {"expression": "LeakyRelu(Add(x0, 0.375), alpha=1.25e-1)"}},
    ],
    "arg_nodes": [0, 1],
    "heads": [[4, 0, 0]],
    "node_row_ptr": [0, 1, 2, 3, 4, 5],
    "attrs": {"dltype": ["list_str", ["float32", "float32", None, None, None]],
              "shape": ["list_shape", [[2, 2], [2, 2], None, None, None]],
              "note": ["list_double", [0.25]]},
}

# Prints one JSON object of all that could show a comma; the last argument says whether a comma is expected of libc.
PROGRAM = """
import ctypes, json, os, sys, tempfile
libc = ctypes.CDLL(None)
libc.setlocale.restype = ctypes.c_char_p
assert libc.setlocale(6, b"") is not None, "the locale is not there"
text = ctypes.create_string_buffer(16)
libc.snprintf(text, 16, b"%g", ctypes.c_double(0.5))
assert text.value == (b"0,5" if sys.argv[2] == "comma" else b"0.5"), text.value
import capi
import numpy as np

def words(p):
    text = ctypes.cast(p, ctypes.c_char_p).value.decode()
    capi.LIB.heddle_free(p)
    return text

folder = tempfile.mkdtemp()
config = os.path.join(folder, "config.json")
open(config, "w").write('{"sim": {"delay_us": 1}, "mine": {"rate": 0.5}}')
ctx = capi.Context(config=config, threads="1")
graph = capi.Graph(sys.argv[1])
out = {}
size = ctypes.c_size_t()
p = ctypes.c_void_p()
capi.call("heddle_graph_text", graph.p, ctypes.byref(p), ctypes.byref(size))
out["graph"] = words(p)
again = capi.Graph(out["graph"])
capi.call("heddle_graph_text", again.p, ctypes.byref(p), ctypes.byref(size))
assert words(p) == out["graph"]
model = capi.Model(ctx, again, devices="cpu,sim:0")
capi.call("heddle_trace_begin", ctx.p)
ex = capi.Executor(model)
ex.set_input("x", np.array([[1, 2], [3, 4]], "float32"))
ex.set_input("w", np.array([[0.5, 0.25], [1, 2]], "float32"))
ex.run()
out["result"] = ex.output(0).tolist()
for kind in range(3):
    capi.call("heddle_model_explain", model.p, ctypes.c_int(kind), None, None, ctypes.c_size_t(0), ctypes.byref(p))
    out["plan%d" % kind] = words(p)
trace = os.path.join(folder, "trace.json")
capi.call("heddle_trace_write", ctx.p, trace.encode())
spans = json.load(open(trace))
out["spans"] = len(spans["traceEvents"] if isinstance(spans, dict) else spans)
for bad in ('{"nodes": 1.5}', sys.argv[1].replace('"transB": 0', '"transB": 0.5')):
    try:
        capi.Graph(bad)
        out["bad"] = out.get("bad", []) + ["taken"]
    except capi.HeddleError as e:
        out["bad"] = out.get("bad", []) + [str(e)]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def comma(tmp_path_factory):
    """The environment of a process whose locale has a decimal comma."""
    if shutil.which("localedef") is None or not pathlib.Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("there are no sources of locales; scripts/setup installs them")
    folder = tmp_path_factory.mktemp("locales")
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")],
                          capture_output=True, text=True)
    assert (folder / "de_DE.UTF-8").is_dir(), made.stderr
    return {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}


def program(env, mode):
    path = os.pathsep.join([str(SOURCE / "tests" / "python"), os.environ.get("PYTHONPATH", "")])
    more = {**env, "HEDDLE_BUILD": str(BUILD), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(GRAPH), mode], capture_output=True, text=True,
                          timeout=120, env=environment(**more))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_program_with_a_comma_locale(comma):
    with_point, with_comma = program({"LC_ALL": "C"}, "point"), program(comma, "comma")
    assert with_comma == with_point
    attrs = json.loads(with_comma["graph"])["nodes"][2]["attrs"]
    assert attrs["alpha"] == 0.3125 and attrs["beta"] == 1e-3
    assert json.loads(with_comma["plan1"])["nodes"]
    assert "taken" not in with_comma["bad"] and with_comma["spans"] > 0


def test_the_tool_with_a_comma_locale(comma, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(GRAPH))
    for words in (["plan", path, "--json"], ["plan", path], ["info", path, "--json"], ["info", path],
                  ["run", path, "--random"], ["plan", DIGITS, "--json"], ["devices", "--all", "--json"]):
        words = [*words, *(["--device", "cpu,sim:0"] if words[0] in ("plan", "run") else [])]
        assert good(*words, **comma) == good(*words, LC_ALL="C"), words
    bench = json.loads(good("bench", path, "--json", "--repeat", "1", "--min-repeat-ms", "0.5", "--device", "cpu,sim:0",
                            **comma))
    assert bench["mean"] > 0


@pytest.mark.parametrize("name", ["core_config", "common_expr"])
def test_the_unit_test_runs(comma, name):
    unit = BUILD / "tests" / f"test_unit_{name}"
    if not unit.exists():
        pytest.skip("the C tests are not built")
    done = subprocess.run([str(unit), "a_comma_locale_changes_nothing"], capture_output=True, text=True, timeout=60,
                          env=environment(**comma))
    assert done.returncode == 0, done.stdout + done.stderr  # 77 is skipped
