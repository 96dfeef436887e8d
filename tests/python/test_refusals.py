"""What the readers take and the executor must refuse, with messages that name file, input and both sides of what
differs: parameters and inputs of another shape or dtype, functions without a library, device types that are not there.
labels: ctypes
"""

import contextlib
import json
import pathlib

import capi
import numpy as np
import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
SIM = capi.LIB.heddle_plugin_device_type(b"sim")
EINVAL, EFORMAT, ENODEV, EUNSUPPORTED = 1, 4, 5, 7

# name: (what the error says of the blob, what it says of the graph)
WRONG = {
    "wrong_shape": ("[64]", "[128]"),
    "wrong_shape_same_bytes": ("[2, 64]", "[128]"),
    "wrong_dtype_f64": ("float64", "float32"),
    "wrong_dtype_same_bytes": ("int32", "float32"),
}


def variant(name):
    return (DATA / "graph_json_variants" / f"{name}.json").read_text()


def blob(name):
    return capi.Params((DATA / "params_variants" / f"{name}.bin").read_bytes())


def by_name(name="base", devices=None):
    """The inputs of a variant, with operators by name in place of TVM's functions: three dense layers."""
    given = json.loads(variant(name))
    inputs = [n for n in given["nodes"] if n["op"] == "null"]
    nodes, last = list(inputs), 0
    for layer in range(3):
        nodes.append({"op": "Gemm", "name": f"dense{layer}", "attrs": {"transB": 1},
                      "inputs": [[last, 0, 0], [1 + 2 * layer, 0, 0], [2 + 2 * layer, 0, 0]]})
        nodes.append({"op": "Relu", "name": f"relu{layer}", "inputs": [[len(nodes) - 1, 0, 0]]})
        last = len(nodes) - 1
    n, unknown = len(nodes), len(nodes) - len(inputs)
    shapes = given["attrs"]["shape"][1][:len(inputs)] + [None] * unknown
    types = given["attrs"]["dltype"][1][:len(inputs)] + [None] * unknown
    attrs = {"dltype": ["list_str", types], "shape": ["list_shape", shapes]}
    if devices is not None:
        attrs["device_index"] = ["list_int", [devices] * n]
    return json.dumps({"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": list(range(len(inputs))),
                       "heads": [[last, 0, 0]], "node_row_ptr": list(range(n + 1)), "attrs": attrs})


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off")
    yield context
    context.close()


@contextlib.contextmanager
def refused(status, *words):
    """A block that has to fail so, with these words."""
    with pytest.raises(capi.HeddleError) as caught:
        yield
    assert caught.value.status == status, caught.value
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("graph", ["tvm", "by name"])
@pytest.mark.parametrize("name", WRONG)
def test_params_that_do_not_fit_a_model(ctx, graph, name):
    g = capi.Graph(variant("base") if graph == "tvm" else by_name())
    with refused(EINVAL, "params", "graph", "'b0'", *WRONG[name]):
        capi.Model(ctx, g, blob(name), devices="cpu")


@pytest.mark.parametrize("name", WRONG)
def test_params_that_do_not_fit_an_executor(ctx, name):
    model = capi.Model(ctx, capi.Graph(by_name()), devices="cpu")
    executor = capi.Executor(model)
    with refused(EINVAL, "params", "'b0'", *WRONG[name]):
        capi.call("heddle_executor_load_params", executor.p, blob(name).p)
    capi.call("heddle_executor_load_params", executor.p, blob("same_b0").p)


def test_params_are_loaded_all_or_none(ctx):
    """The second of two does not fit: the first is not set either."""
    model = capi.Model(ctx, capi.Graph(by_name()), devices="cpu")
    executor = capi.Executor(model)
    arrays = {"b0": np.ones(128, "float32"), "b1": np.ones(63, "float32")}
    tensors = [capi.tensor(a) for a in arrays.values()]
    names = (capi.c.c_char_p * 2)(*[n.encode() for n in arrays])
    params = capi._out("heddle_params_create", names, (capi.c.c_void_p * 2)(*[t.value for t in tensors]),
                       capi.c.c_uint32(2))
    with refused(EINVAL, "'b1'", "[63]", "[64]"):
        capi.call("heddle_executor_load_params", executor.p, params)
    with refused(EINVAL, "'b0' was never set"):
        value = capi.c.c_void_p()
        capi.call("heddle_executor_get_input", executor.p, capi.c.c_uint32(2), capi.c.byref(value))
    for t in tensors:
        capi.LIB.heddle_tensor_release(t)
    capi.LIB.heddle_params_release(params)


def test_params_none_of_which_is_an_input(ctx, capfd):
    """Skipped as single ones are, but with a warning; what is then missing is reported by the run."""
    model = capi.Model(ctx, capi.Graph(by_name()), blob("unknown_name_ignored"), devices="cpu")
    told = capfd.readouterr().err
    assert "params" in told and "'nope'" in told and "graph" in told
    with refused(EINVAL, "graph", "was never set"):
        capi.Executor(model).run()


@pytest.mark.parametrize("given, words", [
    (np.zeros((1, 784), "float32"), ("[2, 392]", "[1, 784]")),  # as many bytes
    (np.zeros((2, 391), "float32"), ("[2, 392]", "[2, 391]")),
    (np.zeros((2, 392), "int32"), ("float32", "int32")),
])
def test_an_input_of_another_shape(ctx, given, words):
    graph = json.loads(by_name("shape_input_other"))
    for index, shape in ((1, [128, 392]), (2, [128])):
        graph["attrs"]["shape"][1][index] = shape
    executor = capi.Executor(capi.Model(ctx, capi.Graph(json.dumps(graph)), devices="cpu"))
    with refused(EINVAL, "'data'", *words):
        executor.set_input("data", given)
    executor.set_input("data", np.zeros((2, 392), "float32"))


def test_shapes_that_do_not_fit_one_another():
    """The file's own shape of the input does not fit its weights."""
    with refused(EFORMAT, "graph", "'dense0'", "[128, 784]", "392"):
        capi.Graph(by_name("shape_input_other"))


@pytest.mark.parametrize("name", ["base", "func_missing", "shape_input_other", "device_index_cuda_run_on_cpu"])
def test_functions_without_a_library(ctx, name):
    model = capi.Model(ctx, capi.Graph(variant(name)), devices="cpu")
    with refused(EUNSUPPORTED, "graph", "tvmgen_default_fused", "compiled library"):
        model.explain_json()
    with refused(EUNSUPPORTED, "compiled library"):
        capi.Executor(model)


def test_a_device_type_that_is_not_there(ctx):
    graph = capi.Graph(by_name(devices=2))
    for devices in ("cpu", "cpu,sim:0"):
        with refused(ENODEV, "graph", "'dense0'", "type 2", devices.replace("cpu", "cpu:0")):
            capi.Executor(capi.Model(ctx, graph, devices=devices))
    capi.Executor(capi.Model(ctx, graph, devices="cpu", flags=capi.IGNORE_ANNOTATIONS))
    capi.Executor(capi.Model(ctx, graph, devices="cpu,sim:0", place=["*=sim:0"]))


def test_an_ambiguous_device_type(ctx):
    """Types of devices that DLPack does not know are one type in a graph: with two plugins of it nothing runs."""
    graph = capi.Graph(by_name(devices=12))
    for devices in ("cpu,sim:0,null", "null,cpu,sim:1"):
        with refused(EINVAL, "'dense0'", "type 12", "ambiguous", "null:0", "sim:"):
            capi.Model(ctx, graph, devices=devices).explain_json()
    capi.Model(ctx, graph, devices="cpu,sim:0,null", flags=capi.IGNORE_ANNOTATIONS).explain_json()


@pytest.mark.parametrize("kind, devices, expected", [(1, "sim:0,cpu", "cpu:0"), (12, "cpu,sim:1,sim:0", "sim:1"), (SIM, "cpu,null,sim:1", "sim:1"),
                                                     (0, "sim:0,cpu", "sim:0")])
def test_a_device_type_places(ctx, kind, devices, expected):
    plan = capi.Model(ctx, capi.Graph(by_name(devices=kind)), devices=devices).explain_json()
    names = [d["name"] for d in plan["devices"]]
    placed = {names[n["device"]] for n in plan["nodes"] if n["op"] != "null" and n["device"] >= 0}
    assert placed == {expected}, plan["nodes"]
