"""TVM's executor as a module, called as programs for TVM call it: create by name, then methods by name. Graphs,
parameters and results are what TVM v0.14 wrote; where its executor was wrong, the right answer is expected.
labels: ctypes
timeout: 300
"""
import json
import pathlib
import threading

import numpy as np
import pytest

import tvm_handles as tvm
from fixtures import tvm_legacy as legacy
from test_tvm_legacy import MODELS, model_files, same
from tvm_executors import create, library, model, needs_compiler, outputs_of, refused  # noqa: F401
from tvm_graph import Call, tvm_graph

F32 = "float32"
DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "params_variants"

pytestmark = needs_compiler


# ---- create, set_input, run, get_output

@pytest.mark.parametrize("by", ["tvm.graph_executor.create", "tvm.graph_runtime.create",
                                "tvm.graph_executor_debug.create", "tvm.graph_runtime_debug.create"])
@pytest.mark.parametrize("name", MODELS)
def test_models(model, name, by):
    ex, _, outputs = model(name, by)
    for _ in range(2):
        ex["run"]()
        same(outputs_of(ex), outputs)
    shapes = json.loads(model_files(name)[0])["attrs"]["shape"][1]
    if name == "flatten_data_2d":  # the graph's shape, where TVM's is [12]; of the input, too
        assert ex["get_output"](0).shape == tuple(shapes[-1]) == (3, 4) == ex["get_input"](0).shape
    out = tvm.Array.empty(outputs[0].shape if name != "flatten_data_2d" else (3, 4), outputs[0].dtype)
    ex["get_output"](0, out)
    same([out.numpy()], outputs[:1])


def test_json_as_bytes_and_parameters_first(library):
    graph, params, inputs, outputs = model_files("reshape_nop")
    ex = create(graph.encode(), library("reshape_nop"), None, 1, 0)
    (key, value), = inputs.items()
    ex["set_input"](0, value)  # what was set before the parameters came stays set
    ex["load_params"](params)
    ex["run"]()
    same(outputs_of(ex), outputs)


def test_plain_tensors_and_names(model):
    """DLTensors of the caller's own; outputs by number, by node and as TVM names them."""
    ex, inputs, outputs = model("multi_output")
    ex["set_input"]("x", tvm.Plain(inputs["x"]))
    ex["run"]()
    names = [h[0] for h in json.loads(model_files("multi_output")[0])["heads"]]
    nodes = json.loads(model_files("multi_output")[0])["nodes"]
    for i, e in enumerate(outputs):
        node = nodes[names[i]]["name"]
        same([ex["get_output"](f"{node}:{i}").numpy()], [e])
        if names.count(names[i]) == 1:
            same([ex["get_output"](node).numpy()], [e])
        else:
            refused(ex["get_output"], [node], "several", node)
        out = np.zeros(e.shape, e.dtype)
        ex["get_output"](i, tvm.Plain(out))
        same([out], [e])


def test_an_array_of_another_shape_with_as_many_elements(model):
    ex, inputs, outputs = model("multi_output")
    ex["set_input"]("x", inputs["x"] * 0)
    ex["set_input"]("x", inputs["x"].reshape(2, 16))
    ex["run"]()
    same(outputs_of(ex), outputs)
    assert ex["get_input"]("x").shape == inputs["x"].shape
    ex["set_input"]("x", inputs["x"].reshape(-1))  # its memory was handed out
    ex["run"]()
    same(outputs_of(ex), outputs)


def test_errors_of_calls(model, library):
    ex, inputs, _ = model("multi_output")
    x = inputs["x"]
    refused(ex["set_input"], ["nope", x], "nope", "'x'")
    refused(ex["set_input"], [99, x], "argument 0", "99")
    refused(ex["set_input"], [-1, x], "argument 0")
    refused(ex["set_input"], ["x"], "set_input", "2 arguments")
    refused(ex["set_input"], ["x", 3], "argument 1")
    refused(ex["set_input"], ["x", x.astype(np.float64)], "'x'", "float64")
    refused(ex["set_input"], ["x", x[:2]], "'x'", "[2, 8]")
    refused(ex["set_input_zero_copy"], ["nope", x], "nope")
    refused(ex["set_output_zero_copy"], ["nope", x], "nope")
    refused(ex["get_output"], [99], "argument 0")
    refused(ex["get_output"], ["nope"], "nope")
    refused(ex["get_input"], [99], "argument 0")
    refused(ex["run"], [1], "run")
    ex["run"]()
    refused(ex["get_output"], [0, tvm.Array.empty((4, 9), F32)], "[4, 9]")
    refused(ex["get_output"], [0, tvm.Array.empty((4, 8), "float64")], "float64")
    refused(ex["load_params"], [b"\0" * 40], "load_params")
    refused(ex["share_params"], [library("identity"), b""], "executor", "library")
    for name in ("start_capture", "end_capture", "run_cuda_graph"):
        refused(ex[name], [], "replays")
    assert ex.find("foo") is None and ex.find("execute_node") is None


def test_errors_of_create(library, tmp_path):
    graph = model_files("multi_output")[0]
    make = tvm.function("tvm.graph_executor.create")
    refused(make, [graph, library("identity"), 1, 0], "tvmgen_default_fused")  # a function that it lacks
    refused(make, [graph, None, 1, 0], "library")
    refused(make, [graph, library("multi_output")], "device")
    refused(make, [graph, library("multi_output"), 2, 0], "type 2", "cpu:0")
    refused(make, [graph, library("multi_output"), 1], "argument 3")
    refused(make, [graph[:100], library("multi_output"), 1, 0], "graph")
    refused(make, [3, library("multi_output"), 1, 0], "argument 0")
    refused(make, [graph, graph, 1, 0], "argument 1", "module")
    attrs = json.loads(graph)
    attrs["attrs"]["device_index"][1] = [4] * len(attrs["attrs"]["device_index"][1])
    refused(make, [json.dumps(attrs), library("multi_output"), 1, 0], "type 4", "opencl")


def test_an_input_that_was_never_set(library):
    ex = create(model_files("multi_output")[0], library("multi_output"))
    refused(ex["run"], [], "'x'", "never set")


def test_a_function_that_fails(tmp_path):
    lib = tvm.load(legacy.library(tmp_path / "lib.so", "v0.14", [legacy.kernel(
        "f", [("x", F32, (4,)), ("y", F32, (4,))], 'CHECK(x[0] > 0, "no luck");\ny[0] = x[0];')]))
    ex = create(tvm_graph({"x": (F32, [4])}, [Call("f", ["x"], [(F32, [4])], "node")], ["node"]), lib)
    ex["set_input"]("x", np.zeros(4, np.float32))
    refused(ex["run"], [], "node 'node' on cpu:0", "no luck")
    refused(ex["get_output"], [0], "no finished run")
    ex["set_input"]("x", np.ones(4, np.float32))
    ex["run"]()
    assert ex["get_output"](0).numpy()[0] == 1


# ---- arrays that are memory of inputs and outputs

def test_outputs_are_live(model):
    ex, inputs, outputs = model("reshape_nop")
    early = ex["get_output"](0)  # before any run
    ex["run"]()
    same([early.numpy()], outputs)
    late = ex["get_output"](0)
    (key, value), = inputs.items()
    ex["set_input"](key, value * 0)
    ex["run"]()
    assert not early.numpy().any() and not late.numpy().any()
    del ex
    assert not late.numpy().any()  # an array outlives its executor


def test_a_view_of_an_output_is_live(model):
    ex, inputs, outputs = model("reshape_nop")
    ex["run"]()
    view = ex["get_output"](0)
    same([view.numpy()], outputs)
    (key, value), = inputs.items()
    ex["set_input"](key, value * 0)
    ex["run"]()
    assert not view.numpy().any()
    del ex
    assert not view.numpy().any()


def test_inputs_are_live(model, library):
    """As TVM's own front end sets inputs: it writes to what get_input gave. Parameters too, and before any value."""
    graph, params, inputs, outputs = model_files("reshape_nop")
    (key, value), = inputs.items()
    ex = create(graph, library("reshape_nop"))
    held = {i: ex["get_input"](i) for i in range(3)}
    held[ex["get_input_index"](key)].write(value)
    ex["load_params"](params)  # lands in the memory that was handed out
    ex["run"]()
    same(outputs_of(ex), outputs)
    p0 = ex["get_input"]("p0")
    before = p0.numpy()
    assert before.any()
    np.testing.assert_array_equal(held[ex["get_input_index"]("p0")].numpy(), before)
    p0.write(before * 2)
    ex["run"]()
    first = outputs_of(ex)[0]
    assert np.abs(first - outputs[0]).max() > 1e-3
    p0.write(before)
    ex["set_input"](key, value)
    np.testing.assert_array_equal(held[ex["get_input_index"](key)].numpy(), value)
    ex["run"]()
    same(outputs_of(ex), outputs)
    assert ex["get_input"]("nope") is None
    out = tvm.Array.empty(value.shape, F32)
    ex["get_input"](key, out)
    np.testing.assert_array_equal(out.numpy(), value)


def test_zero_copy(model):
    ex, inputs, outputs = model("reshape_nop")
    (key, value), = inputs.items()
    x, y = tvm.aligned(value.shape, F32), tvm.aligned(outputs[0].shape, F32)
    node = json.loads(ex["get_graph_json"]())["nodes"][-1]["name"]
    keep = tvm.Plain(x), tvm.Plain(y)
    ex["set_input_zero_copy"](key, keep[0])
    for name in (0, f"{node}:0", node):
        y[:] = 7
        ex["set_output_zero_copy"](name, keep[1])
        x[:] = value  # after it was bound
        ex["run"]()
        same([y], outputs)
        x[:] = 0
        ex["run"]()
        assert not y.any()
    same([ex["get_output"](0).numpy()], [y])
    np.testing.assert_array_equal(ex["get_input"](key).numpy(), x)  # the caller's memory, not an old one
    ex["set_input"](key, value)  # memory of its own again
    x[:] = 5
    ex["run"]()
    same([y], outputs)
    assert (x == 5).all()
    wrong = tvm.Plain(tvm.aligned((3, 8), F32))
    refused(ex["set_input_zero_copy"], [key, wrong], "[3, 8]")
    refused(ex["set_input_zero_copy"], [key, tvm.Plain(tvm.aligned(value.shape, "float64"))], "float64")
    refused(ex["set_output_zero_copy"], [0, wrong], "[3, 8]")


def test_zero_copy_of_what_is_input_and_output(model):
    """Through no function at all, and through __nop."""
    ex, inputs, _ = model("identity")
    (key, value), = inputs.items()
    x = tvm.aligned(value.shape, value.dtype)
    x[:] = value
    ex["set_input_zero_copy"](key, tvm.Plain(x))
    for add in (0, 1):
        x[:] = value + add
        ex["run"]()
        np.testing.assert_array_equal(ex["get_output"](0).numpy().reshape(x.shape), x)
    nop = tvm_graph({"x": (F32, [2, 3])}, [Call("__nop", ["x"], [(F32, [6])], "reshape_nop")], ["reshape_nop", "x"])
    ex = create(nop, None)
    x, y = tvm.aligned((2, 3), F32), tvm.aligned((6,), F32)
    ex["set_input_zero_copy"]("x", tvm.Plain(x))
    ex["set_output_zero_copy"](0, tvm.Plain(y))
    for n in range(3):
        x[:] = n + 1
        ex["run"]()
        np.testing.assert_array_equal(y, np.full(6, n + 1))
        np.testing.assert_array_equal(ex["get_output"](1).numpy(), x)


# ---- facts

def test_counts_and_info(model, library):
    graph, params, inputs, outputs = model_files("multi_output")
    ex, _, _ = model("multi_output")
    assert ex["get_num_inputs"]() == len(json.loads(graph)["arg_nodes"]) and ex["get_num_outputs"]() == len(outputs)
    assert ex["get_input_index"]("x") == 0 and ex["get_input_index"]("nope") == -1
    assert json.loads(ex["get_input_info"]()) == {"shape": {"x": [4, 8]}, "dtype": {"x": "float32"}}
    info = json.loads(ex["get_output_info"]())  # by output, where TVM looks nodes' numbers up in a list of outputs
    assert sorted(map(tuple, info["shape"].values())) == sorted(o.shape for o in outputs)
    assert sorted(info["dtype"].values()) == sorted(str(o.dtype) for o in outputs)
    ex["run"]()
    for name, shape in info["shape"].items():
        got = ex["get_output"](name).numpy()
        assert got.shape == tuple(shape) and str(got.dtype) == info["dtype"][name]
    graph, params, _, _ = model_files("reshape_nop")
    ex = create(graph, library("reshape_nop"))
    assert set(json.loads(ex["get_input_info"]())["shape"]) == {"x", "p0", "p1"}
    ex["load_params"](params)
    assert json.loads(ex["get_input_info"]()) == {"shape": {"x": [2, 8]}, "dtype": {"x": "float32"}}
    assert ex["get_num_inputs"]() == 3
    ex, _, _ = model("dtype_bool")
    assert set(json.loads(ex["get_input_info"]())["dtype"].values()) == {"bool"}


def test_names_in_json(tmp_path):
    graph = tvm_graph({'a"\\b\n': (F32, [2])}, [Call("__nop", ['a"\\b\n'], [(F32, [2])], "n")], ["n", "n"])
    ex = create(graph, None)
    assert json.loads(ex["get_input_info"]())["shape"] == {'a"\\b\n': [2]}
    assert json.loads(ex["get_output_info"]())["shape"] == {"n:0": [2], "n:1": [2]}


def test_graph_and_parameters_come_out_again(model):
    ex, inputs, outputs = model("reshape_nop")
    graph, params, _, _ = model_files("reshape_nop")
    mine, theirs = json.loads(ex["get_graph_json"]()), json.loads(graph)
    assert [n["name"] for n in mine["nodes"]] == [n["name"] for n in theirs["nodes"]]
    blob = ex["get_graph_params"]()
    load, save = tvm.function("runtime.LoadParams"), tvm.function("runtime.SaveParams")
    assert len(blob) == len(params) and load(blob) == blob and save(blob) == blob
    p = {k: ex["get_input"](k).numpy() for k in ("p0", "p1")}
    first = blob.index(b"p0") < blob.index(b"p1")
    names = ["p0", "p1"] if first else ["p1", "p0"]
    assert save(*[x for k in names for x in (k, p[k])]) == blob
    refused(load, [b"nothing"], "LoadParams")
    refused(save, ["p0"], "SaveParams")
    refused(save, ["p0", 3], "argument 1")
    assert len(save()) == 32


# ---- parameters

def test_load_params_later(model, library):
    """After runs they are set like inputs; names that the graph lacks are passed over."""
    graph, params, inputs, outputs = model_files("reshape_nop")
    ex, _, _ = model("reshape_nop")
    save = tvm.function("runtime.SaveParams")
    for name in "tvm.relay._save_param_dict", "nnvm.compiler._save_param_dict":
        assert tvm.function(name)("p1", np.ones(2, np.float32)) == save("p1", np.ones(2, np.float32))
    p0, p1 = (ex["get_input"](k).numpy() for k in ("p0", "p1"))
    ex["run"]()
    ex["load_params"](save("p1", p1 * 0, "unknown", p0))
    ex["run"]()
    assert not outputs_of(ex)[0].any()
    ex["load_params"](params)
    ex["run"]()
    same(outputs_of(ex), outputs)
    ex["load_params"](save("unknown", p0))
    refused(ex["load_params"], [save("p0", p0[:, :1])], "p0")


def test_parameters_of_no_input(library):
    """A blob whose names the graph all lacks, first: inputs are as before, and the run says which is missing."""
    graph, params, inputs, outputs = model_files("reshape_nop")
    blob = (DATA / "unknown_name_ignored.bin").read_bytes()
    ex = create(graph, library("reshape_nop"))
    ex["load_params"](blob)
    ex["set_input"]("x", inputs["x"])
    refused(ex["run"], [], "'p0'", "never set")
    ex["load_params"](params)
    ex["load_params"](blob)
    ex["run"]()
    same(outputs_of(ex), outputs)


def test_share_params_of_an_executor_that_is_gone(model, library):
    graph, params, inputs, outputs = model_files("reshape_nop")
    ex, _, _ = model("reshape_nop")
    ex["share_params"](ex, params)  # its own
    ex["run"]()
    same(outputs_of(ex), outputs)
    other = create(graph, library("reshape_nop"))
    other["share_params"](ex, params)
    other["set_input"]("x", ex["get_input"]("x"))
    ex["set_input"]("x", ex["get_input"]("x"))
    del ex
    other["run"]()
    same(outputs_of(other), outputs)
    refused(other["share_params"], [create(graph, library("reshape_nop")), params], "no value")


def test_share_params_in_two_threads(model, library):
    graph, params, inputs, outputs = model_files("reshape_nop")
    (key, value), = inputs.items()
    owner, _, _ = model("reshape_nop")
    held = owner["get_input"]("p0")  # TVM refuses to share what is held
    others, failures = [create(graph, library("reshape_nop")) for _ in range(2)], []
    for ex in others:
        ex["share_params"](owner, params)
        assert set(json.loads(ex["get_input_info"]())["shape"]) == {key}

    def work(ex, factor):
        try:
            for _ in range(20):
                ex["set_input"](key, value * factor)
                ex["run"]()
                np.testing.assert_allclose(ex["get_output"](0).numpy(), outputs[0] * factor, rtol=1e-4, atol=1e-5)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(ex, k + 1)) for k, ex in enumerate([owner, *others])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    held.write(held.numpy() * 0)  # one memory for all three
    for ex in (owner, *others):
        ex["set_input"](key, value)
        ex["run"]()
    zeroed = [outputs_of(ex)[0] for ex in (owner, *others)]
    for got in zeroed:
        np.testing.assert_array_equal(got, zeroed[0])
        assert np.abs(got - outputs[0]).max() > 1e-3
