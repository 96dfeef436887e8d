"""No name that came from a file reaches a terminal with what a terminal obeys: a model whose every string holds such
characters, its own path too, through every command that prints text, with errors, logs and what is written to files.

timeout: 300
"""
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tool_case import BUILD, TOOL, environment

if not (BUILD / "onnx" / "onnx.pb-c.c").exists():
    pytest.skip("the reader of ONNX models is not built", allow_module_level=True)

# Colours, titles, line ends, DEL, U+009B (CSI), overrides of direction, a line separator; an ordinary letter stays.
EVIL = "\x1b[31m\x1b]0;t\x07\r\n\t\b\x7f\u009b2J\u0085\u202e\u2066\u2069\u2028\u00e9"
BIDI = set(range(0x202A, 0x202F)) | set(range(0x2066, 0x206A)) | {0x2028, 0x2029}


def name(word):
    return word + EVIL + word


def check(data, what):
    """One text as it is printed."""
    text = data.decode("utf-8")  # strict: what is no UTF-8 fails here
    bad = {f"U+{ord(c):04X}" for c in text
           if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) <= 0x9F or ord(c) in BIDI}
    assert not bad, (what, bad, text)
    assert "forged" not in {line.split(" ")[0] for line in text.split("\n")}, (what, text)
    return text


def tool(*words, status=(0,), env=None):
    done = subprocess.run([TOOL, *words], capture_output=True, timeout=100, stdin=subprocess.DEVNULL,
                          env=environment(**(env or {})))
    for data in (done.stdout, done.stderr):
        check(data, words)
    assert done.returncode in status, (words, done)
    return done.stdout.decode()


def model(op="Relu", domain=""):
    """Every string that the format has."""
    node = helper.make_node(op, [name("x")], [name("a")], name=name("n"), doc_string=name("d"), domain=domain)
    nodes = [node, helper.make_node("Softmax", [name("a")], [name("b")], name=name("m\nforged line")),
             helper.make_node("Add", [name("b"), name("w")], [name("y")])]
    tensor = onnx.numpy_helper.from_array(np.ones((1, 8), np.float32), name("w"))
    tensor.doc_string = name("d")
    graph = helper.make_graph(nodes, name("g"), [helper.make_tensor_value_info(name("x"), TensorProto.FLOAT, [name("N"), 8])],
                              [helper.make_tensor_value_info(name("y"), TensorProto.FLOAT, [name("N"), 8])], [tensor],
                              doc_string=name("d"))
    proto = helper.make_model(graph, producer_name=name("p"), producer_version=name("v"), domain=name("o"),
                              doc_string=name("d"), ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    if domain:
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    helper.set_model_props(proto, {name("k"): name("v")})
    return proto


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    made = {}
    for word, proto in {"good": model(), "domain": model(domain=name("dom")), "op": model(op=name("Op")),
                        "garbage": None}.items():
        made[word] = folder / (name(word) + ".onnx")
        made[word].write_bytes(proto.SerializeToString() if proto is not None else b"\x1b[31mgarbage")
    plain = folder / "plain.onnx"
    plain.write_bytes(made["good"].read_bytes())
    return {**made, "plain": plain, "folder": folder}


DIM = ["--dim", f"{name('N')}=2"]
CPU = ["--device", "cpu"]


def test_info(paths):
    out = tool("info", paths["good"])
    assert "x?[31m" in out and "é" in out
    tool("info", paths["good"], "--json")
    for word in ("domain", "op", "garbage"):
        tool("info", paths[word], status=(0, 1))


def test_plan(paths, tmp_path):
    tool("plan", paths["good"], *CPU, *DIM)
    tool("plan", paths["good"], *CPU, *DIM, "--all")
    tool("plan", paths["good"], "--device", "sim:0,cpu", *DIM, "--all", "--place", f"{name('m')}*=cpu")
    plan = json.loads(tool("plan", paths["good"], *CPU, *DIM, "--json"))
    assert any(node["name"].startswith("n\x1b[31m") for node in plan["nodes"])  # whole, as JSON has it
    picture = tmp_path / "p.svg"
    tool("plan", paths["good"], *CPU, *DIM, "--svg", picture, env={"PATH": "/nonexistent"})
    check((tmp_path / "p.dot").read_bytes(), "dot")
    tool("plan", paths["good"], *CPU, "--svg", tmp_path / "no" / name("p"), *DIM, status=(1,),
         env={"PATH": "/nonexistent"})


def test_run(paths, tmp_path):
    trace = tmp_path / "t.json"
    tool("run", paths["good"], *CPU, *DIM, "--random")
    tool("run", paths["good"], *CPU, *DIM, "--random", "--profile")
    tool("run", paths["good"], *CPU, *DIM, "--random", "--trace", trace)
    check(trace.read_bytes(), "trace")
    json.loads(trace.read_text())
    tool("run", paths["good"], "--device", "sim:0,cpu", *DIM, "--random", "--set", "log=trace")
    tool("run", paths["good"], *CPU, *DIM, "--random", "--output-dir", tmp_path / name("out"))
    tool("run", paths["good"], *CPU, *DIM, "--random", "--debug-dir", tmp_path / "debug")
    tool("run", paths["good"], *CPU, *DIM, status=(1, 2))
    tool("run", paths["good"], *CPU, "--dim", f"{name('M')}=2", "--random", status=(0, 1, 2))
    tool("run", paths["good"], *CPU, "--input", f"{name('q')}={name('file')}", status=(1, 2))
    tool("run", paths["good"], "--device", name("device"), "--random", status=(1, 2))
    tool("run", paths["good"], *CPU, "--place", f"{name('q')}={name('cpu')}", "--random", status=(1, 2))
    tool("run", paths["good"], *CPU, "--set", f"{name('key')}={name('value')}", status=(1, 2))
    for word in ("domain", "op", "garbage"):
        tool("run", paths[word], *CPU, "--random", status=(0, 1))
    tool("run", name("missing.onnx"), *CPU, status=(1,))
    tool(name("command"), status=(2,))
    tool("run", f"--{name('option')}", status=(2,))


def test_bench_and_compare(paths, tmp_path):
    tool("bench", paths["good"], *CPU, *DIM, "--repeat", "1", "--number", "1")
    tool("bench", paths["good"], *CPU, *DIM, "--repeat", "1", "--number", "1", "--json")
    tool("compare", paths["good"], *DIM, "--a", "cpu", "--b", "sim:0,cpu", status=(0, 1))
    tool("compare", paths["good"], *DIM, "--a", "cpu", "--b", "sim:0,cpu", "--set", "sim.wrong=Relu", "--output-dir",
         tmp_path / name("cmp"), status=(0, 1))
    tool("compare", paths["op"], "--a", "cpu", "--b", "sim:0,cpu", status=(1,))


def test_convert(paths, tmp_path):
    made = tmp_path / (name("made") + ".json")
    tool("convert", paths["good"], "-o", made)
    tool("info", made)
    tool("run", made, *CPU, *DIM, "--random")
    for word in ("domain", "op", "garbage"):
        tool("convert", paths[word], "-o", tmp_path / (name(word) + ".json"), status=(0, 1))


def test_plugins_and_devices(paths):
    library = paths["folder"] / (name("plugin") + ".so")
    library.write_bytes(b"\x7fELF no plugin")
    tool("check-plugin", library, status=(1,))
    tool("check-plugin", str(library) + "missing", status=(1, 2))
    tool("devices", "--all", env={"HEDDLE_PLUGINS": str(library)}, status=(0, 1))
    tool("devices", "--all", env={"HEDDLE_PLUGIN_PATH": str(paths["folder"]), "HEDDLE_LOG": "debug"}, status=(0, 1))
    tool("devices", "--all", "--json", env={"HEDDLE_PLUGINS": str(library)}, status=(0, 1))
    config = paths["folder"] / (name("config") + ".json")
    config.write_text(json.dumps({name("k"): name("v"), "sim": {"delay_us": name("v")}}))
    tool("devices", "--all", env={"HEDDLE_CONFIG": str(config)}, status=(0, 1))


def test_completion(paths):
    tool("complete", "run", str(paths["folder"]) + "/", status=(0, 1))
    tool("complete", "run", paths["plain"], "--input", "", status=(0, 1))


def test_bytes_that_are_no_utf_8(paths, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe\x9bm.onnx"
    with open(path, "wb") as f:
        f.write(paths["good"].read_bytes())
    tool("info", path)
    tool("run", path, *CPU, *DIM, "--random")
    tool("run", path + b"x", *CPU, status=(1,))
