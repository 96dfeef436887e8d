"""examples/plugin-cpp, a plugin in C++, built outside the tree against an installation: listed, and each of its operators
against numpy.
labels: slow installed
timeout: 900
"""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from installed import exports, project, tool
from tool_case import SOURCE

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)
if shutil.which("c++") is None:
    pytest.skip("there is no C++ compiler", allow_module_level=True)

EXAMPLE = SOURCE / "examples" / "plugin-cpp"
OPERATORS = {"Abs": np.abs, "Relu": lambda a: np.maximum(a, 0), "Add": np.add, "Sub": np.subtract, "Mul": np.multiply,
             "Max": np.maximum}


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    return project(EXAMPLE, tmp_path_factory.mktemp("cpp") / "source", CXX_FLAGS="-Werror")


def graph(nodes, shapes):
    """A graph of operators on inputs x0, x1, ...: nodes are (operator, numbers of inputs or nodes before)."""
    names = [f"x{i}" for i in range(len(shapes))] + [f"{op}{k}" for k, (op, _) in enumerate(nodes)]
    listed = [{"op": "null", "name": n, "inputs": []} for n in names[:len(shapes)]]
    for name, (op, ins) in zip(names[len(shapes):], nodes):
        listed.append({"op": op, "name": name, "inputs": [[i, 0, 0] for i in ins]})
    rest = [None] * len(nodes)
    return {"heddle": {"version": 1, "opset": 17}, "nodes": listed, "arg_nodes": list(range(len(shapes))),
            "heads": [[i, 0, 0] for i in range(len(shapes), len(names))], "node_row_ptr": list(range(len(names) + 1)),
            "attrs": {"dltype": ["list_str", ["float32"] * len(shapes) + rest],
                      "shape": ["list_shape", [list(s) for s in shapes] + rest]}}


def test_it_is_listed(plugins):
    assert exports(plugins / "libheddle_plugin_cpp.so") == ["heddle_plugin_entry"]
    assert json.loads((plugins / "cpp.json").read_text())["priority"] == -1
    assert "cpp:0" in [d["name"] for d in json.loads(tool("devices", "--all", "--json", plugins=plugins))["devices"]]
    assert len((EXAMPLE / "plugin.cpp").read_text().splitlines()) < 300


@pytest.mark.parametrize("layers", ["", "check"])
def test_its_operators_are_numpy_s(plugins, tmp_path, layers):
    rng = np.random.default_rng(5)
    x = [rng.standard_normal((3, 5)).astype(np.float32) for _ in range(2)]
    x[0][0, :3] = [np.nan, 0, -np.inf]
    nodes = [(op, [0] if op in ("Abs", "Relu") else [0, 1]) for op in OPERATORS] + [("Add", [0, 0])]
    (tmp_path / "g.json").write_text(json.dumps(graph(nodes, [v.shape for v in x])))
    for i, v in enumerate(x):
        np.save(tmp_path / f"x{i}.npy", v)
    tool("run", "g.json", "--device", "cpp", "--input", "x0=x0.npy", "--input", "x1=x1.npy", "--output-dir", ".",
         plugins=plugins, cwd=tmp_path, HEDDLE_LAYERS=layers)
    for k, (op, ins) in enumerate(nodes):
        wanted = OPERATORS[op](*[x[i] for i in ins])
        np.testing.assert_array_equal(np.load(tmp_path / f"output_{k}.npy"), wanted, err_msg=op)


def test_what_it_cannot_run_is_refused_by_name(plugins, tmp_path):
    (tmp_path / "g.json").write_text(json.dumps(graph([("Add", [0, 1])], [(3, 5), (5,)])))
    words = tool("run", "g.json", "--device", "cpp", "--random", plugins=plugins, cwd=tmp_path, status=1)
    assert "'Add0'" in words and "equal shapes" in words


def test_the_conformance_kit_passes_it(plugins, tmp_path):
    report = tool("check-plugin", plugins / "libheddle_plugin_cpp.so", "--no-store", "--timeout", "60", plugins=plugins,
                  cwd=tmp_path)
    assert " 0 failed" in report
    for op in OPERATORS:
        assert f"pass  numerics/run:{op}\n" in report, report


def test_it_installs_with_its_manifest(plugins, tmp_path):
    subprocess.run(["cmake", "--install", str(plugins.parents[2]), "--prefix", str(tmp_path / "here")], check=True,
                   capture_output=True, timeout=60)
    there = tmp_path / "here" / "lib" / "heddle" / "plugins"
    assert {p.name for p in there.iterdir()} == {"cpp.json", "libheddle_plugin_cpp.so"}
