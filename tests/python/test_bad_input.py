"""The tool on input that is malformed or hostile: each ends within seconds with status 1 (2 for wrong words) and a
message that names the file and the node, input or device; nothing crashes, hangs or leaves half a result.
timeout: 900
"""
import json
import re
import subprocess

import numpy as np
import pocl
import pytest
from reference import io
from tool_case import TOOL, environment

TRACES = ("Traceback", "Sanitizer", "runtime error:", "Assertion", "core dumped")


def call(*words):
    # Sizes that no memory holds are asked for on purpose; a sanitizer is to answer as malloc does.
    env = environment(ASAN_OPTIONS="allocator_may_return_null=1:detect_stack_use_after_return=1", **pocl.ENV)
    done = subprocess.run([str(TOOL), *map(str, words)], capture_output=True, timeout=20, stdin=subprocess.DEVNULL,
                          env=env)
    err = [line for line in done.stderr.decode(errors="replace").splitlines(True)
           if "Sanitizer failed to allocate" not in line]
    return done.returncode, done.stdout.decode(errors="replace"), "".join(err)


def refused(words, *needles, status=1):
    """Fails with the status and all needles in its message; gives the message."""
    code, out, err = call(*words)
    what = f"{' '.join(map(str, words))}: status {code}\n{err}"
    assert code == status, what
    assert err.strip(), what
    assert not any(t in err or t in out for t in TRACES), what
    for needle in needles:
        assert str(needle) in err, f"'{needle}' is not said: {what}"
    assert len(err) < 4000, what
    return err


def graph():
    """x[2,3] times w[3,4] on cpu, plus b on sim:0, Relu on sim:1, Reshape by a constant, Softmax."""
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {"op": "null", "name": "b", "inputs": []},
        {"op": "MatMul", "name": "times", "inputs": [[0, 0, 0], [1, 0, 0]], "device": "cpu"},
        {"op": "Add", "name": "plus", "inputs": [[3, 0, 0], [2, 0, 0]], "device": "sim:0"},
        {"op": "Relu", "name": "positive", "inputs": [[4, 0, 0]], "device": "sim:1"},
        {"op": "null", "name": "shape", "inputs": []},
        {"op": "Reshape", "name": "flat", "inputs": [[5, 0, 0], [6, 0, 0]]},
        {"op": "Softmax", "name": "soft", "inputs": [[7, 0, 0]], "attrs": {"axis": 0}},
    ]
    shapes = [[2, 3], [3, 4], [4], None, None, None, [1], None, None]
    dtypes = ["float32"] * 3 + [None] * 3 + ["int64"] + [None] * 2
    return {"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0, 1, 2, 6], "heads": [[8, 0, 0]],
            "node_row_ptr": list(range(10)),
            "attrs": {"dltype": ["list_str", dtypes], "shape": ["list_shape", shapes]}}


PARAMS = {"w": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.ones(4, np.float32),
          "shape": np.array([8], np.int64)}
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
DEVICES = ("--device", "cpu,sim:0,sim:1")


@pytest.fixture
def case(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(graph(), separators=(",", ":")))
    (tmp_path / "model.params").write_bytes(io.params_blob(PARAMS))
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def run_words(folder, *more):
    return ["run", folder / "model.json", *DEVICES, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out",
            *more]


def no_result(folder):
    out = folder / "out"
    assert not out.exists() or not list(out.iterdir()), "a failed run left a result"


def test_the_good_one(case):
    code, _, err = call(*run_words(case))
    assert code == 0 and err == "", err
    assert np.load(case / "out" / "output_0.npy").shape == (8,)


def test_graphs_cut_short(case):
    text = (case / "model.json").read_bytes()
    for n in range(0, len(text), 37):
        (case / "model.json").write_bytes(text[:n])
        refused(["info" if n % 2 else "plan", case / "model.json"], "model.json")
    refused(run_words(case), "model.json")
    no_result(case)


def test_params_cut_short(case):
    blob = (case / "model.params").read_bytes()
    for n in [*range(0, len(blob), 37), len(blob) - 1]:
        (case / "model.params").write_bytes(blob[:n])
        refused(run_words(case), "model.params")
    no_result(case)


def test_tensors_cut_short(case):
    data = (case / "x.npy").read_bytes()
    for n in [*range(0, len(data), 7), len(data) - 1]:
        (case / "x.npy").write_bytes(data[:n])
        refused(run_words(case), "x.npy")
    no_result(case)


def put(*path):
    """A mutation that sets what the path leads to; the last item is the value."""
    *keys, value = path

    def mutate(g):
        for key in keys[:-1]:
            g = g[key]
        g[keys[-1]] = value

    return mutate


def drop(*path):
    def mutate(g):
        for key in path[:-1]:
            g = g[key]
        del g[path[-1]]

    return mutate


HUGE = 2**60
GRAPHS = {
    # the order of nodes
    "a cycle of one": (put("nodes", 4, "inputs", 0, [4, 0, 0]), ["nodes[4]"]),
    "a cycle of two": (put("nodes", 4, "inputs", 0, [5, 0, 0]), ["nodes[4]"]),
    "a node that is not there": (put("nodes", 4, "inputs", 0, [99, 0, 0]), ["99"]),
    "a node below zero": (put("nodes", 4, "inputs", 0, [-2, 0, 0]), ["-2"]),
    "a node far away": (put("nodes", 4, "inputs", 0, [HUGE, 0, 0]), [HUGE]),
    "an output that is not there": (put("nodes", 4, "inputs", 0, [3, 1, 0]), ["1"]),
    "an output far away": (put("nodes", 4, "inputs", 0, [3, HUGE, 0]), [HUGE]),
    "an entry with a word": (put("nodes", 4, "inputs", 0, ["3", 0, 0]), []),
    "an entry that is no list": (put("nodes", 4, "inputs", 0, 3), []),
    "an empty entry": (put("nodes", 4, "inputs", 0, []), []),
    "a head that is not there": (put("heads", 0, [9, 0, 0]), ["heads"]),
    "no heads": (put("heads", []), ["heads"]),
    "an argument that is not there": (put("arg_nodes", 0, 42), ["arg_nodes"]),
    "an argument that is none": (put("arg_nodes", 0, 3), ["arg_nodes"]),
    "an argument twice": (put("arg_nodes", 1, 0), ["arg_nodes"]),
    "rows out of order": (put("node_row_ptr", 3, 1), ["node_row_ptr"]),
    "rows of 2^60": (put("node_row_ptr", 9, HUGE), ["node_row_ptr"]),
    "too few rows": (put("node_row_ptr", [0, 1]), ["node_row_ptr"]),
    "rows below zero": (put("node_row_ptr", 1, -1), ["node_row_ptr"]),
    # shapes and types
    "a shape of 2^60": (put("attrs", "shape", 1, 0, [HUGE, HUGE]), ["x"]),
    "a shape that overflows": (put("attrs", "shape", 1, 0, [2**32, 2**32, 2**32]), ["x"]),
    "a shape below zero": (put("attrs", "shape", 1, 0, [-5, 3]), ["shape"]),
    "a shape of 100 dimensions": (put("attrs", "shape", 1, 0, [1] * 100), ["shape"]),
    "a shape that is a word": (put("attrs", "shape", 1, 0, "wide"), ["shape"]),
    "a shape with a fraction": (put("attrs", "shape", 1, 0, [2.5, 3]), ["shape"]),
    "too few shapes": (put("attrs", "shape", 1, [[2, 3]]), ["shape"]),
    "shapes that do not fit": (put("attrs", "shape", 1, 0, [2, 5]), ["times"]),
    "a type that is none": (put("attrs", "dltype", 1, 0, "flaot32"), ["flaot32"]),
    "a type of 33 bits": (put("attrs", "dltype", 1, 0, "float33"), ["float33"]),
    "a type without lanes": (put("attrs", "dltype", 1, 0, "float32x0"), ["float32x0"]),
    "a type of many lanes": (put("attrs", "dltype", 1, 0, "float32x99999999999"), ["float32x"]),
    "a type without a name": (put("attrs", "dltype", 1, 0, ""), ["dltype"]),
    "a type that is a number": (put("attrs", "dltype", 1, 0, 32), ["dltype"]),
    "types that do not fit": (put("attrs", "dltype", 1, 0, "float64"), ["times"]),
    "too few types": (put("attrs", "dltype", 1, ["float32"]), ["dltype"]),
    "columns of another kind": (put("attrs", "shape", ["list_int", [1, 2, 3]]), ["shape"]),
    # nodes
    "two inputs of one name": (put("nodes", 1, "name", "x"), ["'x'"]),
    "a node without a name": (drop("nodes", 4, "name"), ["nodes[4]"]),
    "a node without an operator": (drop("nodes", 4, "op"), ["nodes[4]"]),
    "a node without inputs": (drop("nodes", 4, "inputs"), ["nodes[4]"]),
    "a node that is a number": (put("nodes", 4, 4), ["nodes[4]"]),
    "a name that is a list": (put("nodes", 4, "name", ["plus"]), ["nodes[4]"]),
    "an input with inputs": (put("nodes", 1, "inputs", [[0, 0, 0]]), ["'w'"]),
    "too many inputs": (put("nodes", 5, "inputs", [[4, 0, 0]] * 3), ["positive"]),
    "too few inputs": (put("nodes", 4, "inputs", [[3, 0, 0]]), ["plus"]),
    "an absent input that is needed": (put("nodes", 4, "inputs", 1, [-1, 0, 0]), ["plus"]),
    "a device that is not there": (put("nodes", 4, "device", "npu:3"), ["plus", "npu:3"]),
    "a device that is no name": (put("nodes", 4, "device", "::"), ["plus"]),
    "a device that is a number": (put("nodes", 4, "device", 0), ["nodes[4]"]),
    "a stream below zero": (put("nodes", 4, "stream", -1), ["nodes[4]"]),
    "a stream of 2^60": (put("nodes", 4, "stream", HUGE), ["nodes[4]"]),
    "an axis that is not there": (put("nodes", 8, "attrs", "axis", 7), ["soft", "axis"]),
    "an axis of 2^60": (put("nodes", 8, "attrs", "axis", HUGE), ["soft", "axis"]),
    "an axis that is a word": (put("nodes", 8, "attrs", "axis", "last"), ["soft", "axis"]),
    "an attribute that is unknown": (put("nodes", 8, "attrs", "axes", 0), ["soft", "axes"]),
    "attributes that are a list": (put("nodes", 8, "attrs", [1]), ["nodes[8].attrs"]),
    "a domain that is unknown": (put("nodes", 8, "domain", "org.nowhere"), ["soft", "org.nowhere"]),
    # the whole
    "a version from the future": (put("heddle", "version", 99), ["99"]),
    "an opset from the future": (put("heddle", "opset", 9999), ["9999"]),
    "an opset of 2^60": (put("heddle", "opset", HUGE), ["opset"]),
    "no nodes": (drop("nodes"), ["nodes"]),
    "nodes that are an object": (put("nodes", {}), ["nodes"]),
    "no attributes": (drop("attrs"), ["attrs"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(case, name):
    mutate, needles = GRAPHS[name]
    g = graph()
    mutate(g)
    (case / "model.json").write_text(json.dumps(g))
    err = refused(run_words(case), *needles)
    assert "model.json" in err or "plus" in err or "input" in err or "parameter" in err, err
    no_result(case)


TEXTS = {
    "nothing": b"",
    "spaces": b"  \n",
    "a number": b"17",
    "a list": b"[1, 2]",
    "nul bytes": b"\0\0\0\0",
    "no text": bytes(range(128, 256)),
    "deep lists": b"[" * 200_000,
    "deep lists that end": b'{"nodes":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep objects": b'{"nodes":' + b'{"a":' * 100_000,
    "a long number": b'{"nodes":' + b"9" * 100_000 + b"}",
    "a number with an exponent": b'{"nodes": 1e999999999}',
    "a key twice": b'{"nodes": [], "nodes": []}',
    "a bad escape": b'{"nodes": "\\ud800"}',
    "a word that does not end": b'{"nodes": "' + b"a" * 100_000,
    "an open brace": b"{",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(case, name):
    (case / "model.json").write_bytes(TEXTS[name])
    refused(run_words(case), "model.json")


def test_a_key_twice_in_a_node(case):
    text = (case / "model.json").read_text().replace('"name":"plus"', '"name":"plus","name":"minus"')
    (case / "model.json").write_text(text)
    refused(run_words(case), "model.json", "name")


def test_all_unknown_operators_at_once(case):
    g = graph()
    for node, op in ((3, "Frobnicate"), (4, "Warp"), (8, "Sofmax")):
        g["nodes"][node]["op"] = op
    (case / "model.json").write_text(json.dumps(g))
    refused(["plan", case / "model.json"], "model.json", "Frobnicate", "'times'", "Warp", "'plus'", "Sofmax", "'soft'")


def test_all_operators_that_no_device_runs(case):
    """float16 is a good type for a graph, and none of the kernels here takes it."""
    g = graph()
    g["attrs"]["dltype"][1][:3] = ["float16"] * 3
    (case / "model.json").write_text(json.dumps(g))
    (case / "model.params").write_bytes(io.params_blob({k: PARAMS[k].astype("f2") for k in "wb"} |
                                                       {"shape": PARAMS["shape"]}))
    code, out, err = call("plan", case / "model.json", *DEVICES)
    if code == 0:
        pytest.skip("the kernels here take float16")
    assert code == 1 and "times" in err and "plus" in err, err


@pytest.mark.parametrize("rows", [[-1, -1], [2**40, 2**40], [7], [-2, 4], [0, 0, 5]])
def test_reshapes(case, rows):
    g = graph()
    g["attrs"]["shape"][1][6] = [len(rows)]
    (case / "model.json").write_text(json.dumps(g))
    (case / "model.params").write_bytes(io.params_blob({**PARAMS, "shape": np.array(rows, np.int64)}))
    refused(run_words(case), "flat")


def conv(attrs, x=(1, 1, 5, 5), w=(1, 1, 3, 3)):
    nodes = [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
             {"op": "Conv", "name": "window", "inputs": [[0, 0, 0], [1, 0, 0]], "attrs": attrs}]
    return {"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
            "node_row_ptr": [0, 1, 2, 3],
            "attrs": {"dltype": ["list_str", ["float32", "float32", None]],
                      "shape": ["list_shape", [list(x), list(w), None]]}}


@pytest.mark.parametrize("attrs", [
    {"strides": [0, 1]}, {"strides": [-1, 1]}, {"strides": [1]}, {"dilations": [HUGE, 1]}, {"dilations": [0, 0]},
    {"pads": [-9, 0, 0, 0]}, {"pads": [2**62] * 4}, {"pads": [1]}, {"group": 0}, {"group": -1}, {"group": 7},
    {"kernel_shape": [HUGE, HUGE]}, {"kernel_shape": [3]}, {"kernel_shape": "3x3"}, {"auto_pad": "SOMETIMES"},
    {"strides": [1.5, 1]}], ids=str)
def test_windows(tmp_path, attrs):
    (tmp_path / "model.json").write_text(json.dumps(conv(attrs)))
    refused(["plan", tmp_path / "model.json", "--device", "cpu"], "window")


def test_more_than_there_is_memory(tmp_path):
    """A plan may be made for it; a run says that there is none."""
    side = 2**22
    g = conv({}, x=(1, 1, side, side), w=(1, 1, 1, 1))
    (tmp_path / "model.json").write_text(json.dumps(g))
    accelerators = ["sim:0"] + ["opencl:0"] * pocl.there()
    for device in ["cpu", *accelerators, *(f"cpu,{a}" for a in accelerators)]:
        refused(["run", tmp_path / "model.json", "--device", device, "--random"], "memory")


BLOBS = {
    "nothing": b"",
    "another file": b"PK\x03\x04" + b"\0" * 100,
    "2^60 tensors": b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7" + b"\0" * 8 + (2**60).to_bytes(8, "little"),
    "all ones": b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7" + b"\xff" * 200,
    "a name of 2^60 bytes": b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7" + b"\0" * 8 + (1).to_bytes(8, "little") +
                            (2**60).to_bytes(8, "little") + b"w",
}


@pytest.mark.parametrize("name", BLOBS)
def test_blobs(case, name):
    (case / "model.params").write_bytes(BLOBS[name])
    refused(run_words(case), "model.params")


@pytest.mark.parametrize("change, needles", [
    ({"w": np.ones((3, 5), np.float32)}, ["'w'", "[3, 5]"]),
    ({"w": np.ones((3, 4), np.float64)}, ["'w'", "float64"]),
    ({"w": np.ones((3, 4), np.int32)}, ["'w'", "int32"]),
    ({"w": np.float32(1)}, ["'w'"])], ids=str)
def test_params_that_do_not_fit(case, change, needles):
    (case / "model.params").write_bytes(io.params_blob({**PARAMS, **change}))
    refused(run_words(case), "model", *needles)


def test_params_of_something_else(case):
    (case / "model.params").write_bytes(io.params_blob({"left": X, "right": X}))
    refused(run_words(case), "model.params", "'left'", "'right'")


@pytest.mark.parametrize("value, needles", [
    (X.astype(np.float64), ["'x'", "float64"]), (X.astype(np.int8), ["'x'", "int8"]), (X.T.copy(), ["'x'", "[3, 2]"]),
    (X.reshape(6), ["'x'", "[6]"]), (np.float32(3), ["'x'"]), (np.zeros((0, 3), np.float32), ["'x'"]),
    (np.array(["a", "b"]), ["x.npy"]), (X.astype(">f4"), ["x.npy"]), (X.astype(np.complex64), ["x"])],
    ids=lambda v: str(getattr(v, "dtype", "")))
def test_inputs_that_do_not_fit(case, value, needles):
    np.save(case / "x.npy", value)
    refused(run_words(case), *needles)
    no_result(case)


@pytest.mark.parametrize("header", [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 4), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '<f4', 'shape': (2, 3), }", "{'descr': '<f4', 'fortran_order': maybe, 'shape': (2, 3), }",
    "__import__('os').abort()", "{", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3" + ", 1" * 200 + "), }"])
def test_tensor_files_that_lie(case, header):
    text = header.ljust(117) + "\n"
    head = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode()
    (case / "x.npy").write_bytes(head + X.tobytes())
    refused(run_words(case), "x.npy")


def test_names_that_are_not_there(case):
    np.save(case / "y.npy", X)
    refused(run_words(case, "--input", f"y={case / 'y.npy'}"), "'y'", "x")
    refused(run_words(case, "--input", f"z={case / 'nowhere.npy'}"), "nowhere.npy")
    refused(["run", case / "nowhere.json"], "nowhere.json")
    refused(["run", case], str(case.name))
    refused(run_words(case, "--params", case / "nowhere.params"), "nowhere.params")
    no_result(case)


@pytest.mark.parametrize("words, needles", [
    (("--device", "npu"), ["npu", "cpu"]), (("--device", "sim:99"), ["sim:99"]), (("--device", "cpu,cuda:0"), ["cuda:0"]),
    (("--device", "cpu,,sim:0"), []), (("--device", ":0"), [":0"]), (("--device", "sim:-1"), ["sim:-1"]),
    (("--device", "sim:" + "9" * 40), ["sim:9"]), (("--device", "?"), []), (("--device", "cpu" * 3000), ["cpu"]),
    (("--place", "plus=npu:1"), ["plus=npu:1", "npu:1"]), (("--place", "plus=sim:2"), ["plus=sim:2", "sim:2"]),
    (("--place", "*=:"), ["*=:"])], ids=lambda v: " ".join(v)[:40])
def test_devices_that_are_not_there(case, words, needles):
    more = words if words[0] == "--device" else (*DEVICES, *words)
    refused(["plan", case / "model.json", *more], *needles)


@pytest.mark.parametrize("words", [("--place", "plus"), ("--place", "=cpu"), ("--place", "plus="), ("--input", "x"),
                                   ("--timeout", "soon"), ("--threads", "-1"), ("--colour",), ("--device",)], ids=" ".join)
def test_words_that_are_wrong(case, words):
    refused(["run", case / "model.json", *words], words[0], status=2)


def test_a_device_that_fails(case):
    """Names node and device, and the outputs are not written."""
    words = run_words(case, "--set", "sim.fail=run:1@0:fault")
    code, _, err = call(*words)
    if code == 2:
        pytest.skip("the tool has no --set")
    assert code == 1 and "sim:0" in err and "plus" in err, err
    no_result(case)


def test_a_region_that_was_offered_and_cannot_be_prepared(case):
    """The plugin is named, with the node that it had offered to run, and its own words."""
    words = run_words(case, "--set", "sim.fail=prepare:1@0")
    code, _, err = call(*words)
    assert code == 1, err
    blamed = re.search(r"plugin 'sim' offered to run node '(\S+)' \(\w+\) on sim:0 and cannot prepare it; (.*)", err)
    assert blamed and f"--place '{blamed[1]}=DEVICE'" in blamed[2] and "'prepare'" in blamed[2], err
    no_result(case)
