"""TVM's executor as a module on OpenCL and on cpu with OpenCL, on two PoCL devices: what TVM v0.14 wrote and computed,
arrays on a device as inputs and outputs, and devices that the graph wants and the call lacks.
labels: ctypes
timeout: 300
"""
import json

import numpy as np
import pytest

import pocl

pocl.in_process()

import tvm_handles as tvm  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from test_tvm_legacy import model_files  # noqa: E402
from test_tvm_opencl import MODELS, PRE, opencl_module, whole  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

F32 = "float32"
CPU, CL0, CL1 = tvm.CPU, tvm.api.Device(4, 0), tvm.api.Device(4, 1)

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module", autouse=True)
def devices():
    pocl.need()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder, open_ones = tmp_path_factory.mktemp("libraries"), {}

    def get(name):
        if name not in open_ones:
            host, kernels, others = MODELS[name]
            open_ones[name] = tvm.load(legacy.library(folder / f"{name}.so", "v0.14", [host, *others],
                                                      data=whole("v0.14", [opencl_module("v0.14", kernels)])))
        return open_ones[name]
    return get


def pairs(*devices):
    return [n for d in devices for n in (d.type, d.id)]


@pytest.mark.parametrize("order", [(CPU, CL0), (CL0, CPU), (CL1, CPU), (CPU, CL1, CL0)], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_mixed_models(library, name, order):
    graph, params, inputs, outputs = model_files(name)
    ex = tvm.function("tvm.graph_executor.create")(graph, library(name), *pairs(*order))
    if name != "issue15019_device_copy":
        ex["load_params"](params)
    for key, value in inputs.items():
        ex["set_input"](key, value)
    for _ in range(2):
        ex["run"]()
        np.testing.assert_allclose(ex["get_output"](0).numpy(), outputs[0], rtol=1e-4, atol=1e-5)


@pytest.fixture
def shared_input(library):
    def make(*devices, by="tvm.graph_executor.create"):
        graph, _, inputs, outputs = model_files("hetero_shared_input")
        return (tvm.function(by)(graph, library("hetero_shared_input"), *pairs(*devices)), inputs["x"], outputs[0])
    return make


def test_all_devices_must_be_listed(shared_input):
    with pytest.raises(tvm.TVMError, match="type 4.*opencl"):
        shared_input(CPU)
    with pytest.raises(tvm.TVMError, match="type 1"):
        shared_input(CL0)


def test_one_device_alone(library):
    """A graph for OpenCL needs no cpu in its list."""
    text = tvm_graph({"x": (F32, [4, 16])}, [Call(PRE + "add", ["x"], [(F32, [4, 16])], "n", device=4)], ["n"])
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    for device in (CL0, CL1):
        ex = tvm.function("tvm.graph_executor.create")(text, library("hetero_shared_input"), *pairs(device))
        ex["set_input"]("x", x)
        ex["run"]()
        np.testing.assert_allclose(ex["get_output"](0).numpy(), x + 1)


def test_factory(tmp_path):
    graph, _, inputs, outputs = model_files("hetero_shared_input")
    host, kernels, others = MODELS["hetero_shared_input"]
    data = legacy.blob([legacy.factory(graph, {}), legacy.LIB, opencl_module("v0.14", kernels)], [[1], [2], []])
    root = tvm.load(legacy.library(tmp_path / "deploy.so", "v0.14", [host, *others], data=data))
    ex = root["default"](CPU, CL1)
    ex["set_input"]("x", inputs["x"])
    ex["run"]()
    np.testing.assert_allclose(ex["get_output"](0).numpy(), outputs[0], rtol=1e-4, atol=1e-5)


def test_arrays_on_devices(shared_input):
    """Copied in and out, lent with no copy of the caller's, and results copied to a device. A handle is no address, so
    that nothing is said about its alignment."""
    ex, x, expected = shared_input(CPU, CL0)
    given, zero = tvm.Array.of(x, CL0), np.zeros_like(expected)
    ex["set_input"]("x", given)
    ex["run"]()
    got = tvm.Array.of(zero, CL1)
    ex["get_output"](0, got)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)
    got.write(zero)
    ex["get_input"]("x", got)
    np.testing.assert_array_equal(got.numpy(), x)

    out = tvm.Array.of(zero, CL0)
    ex["set_input_zero_copy"]("x", given)
    ex["set_output_zero_copy"](0, out)
    for k in (1, 0.5):
        given.write(x * k)
        ex["run"]()
        np.testing.assert_allclose(out.numpy(), np.exp(x * k) * (x * k + 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ex["get_input"]("x").numpy(), x * 0.5)
    np.testing.assert_array_equal(ex["get_output"](0).numpy(), out.numpy())
    np.testing.assert_allclose(ex["debug_get_output"](0).numpy(), x * 0.5)
    ex["set_input"]("x", x)  # its own memory again
    given.write(zero)
    ex["run"]()
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    results = ex["run_from_inputs"](4, 1, "x", x)
    assert results["get"](0).device == (4, 1)
    np.testing.assert_allclose(results["get"](0).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_debug(shared_input):
    ex, x, expected = shared_input(CPU, CL0, by="tvm.graph_executor_debug.create")
    ex["set_input"]("x", x)
    graph = json.loads(model_files("hetero_shared_input")[0])
    plus = next(i for i, n in enumerate(graph["nodes"]) if n["name"] == PRE + "add")
    np.testing.assert_allclose(ex["debug_get_output"](plus).numpy(), x + 1, rtol=1e-6)
    calls = json.loads(ex["profile"]())["calls"]
    assert {c["device"] for c in calls if c["name"] == PRE + "add"} == {"opencl:0"}
    assert len(ex["run_individual"](1, 2)) == 8 + 16 * len(graph["nodes"])
    given = tvm.Array.of(x * 3, CL1)
    for values in (x, x * 2, None):
        if values is not None:
            ex["set_input"]("x", values)
        else:
            ex["set_input_zero_copy"]("x", given)
        for i in range(len(graph["nodes"])):
            ex["execute_node"](i)
            got = ex["get_node_output"](i, 0).numpy()
        now = values if values is not None else x * 3
        np.testing.assert_allclose(got, np.exp(now) * (now + 1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ex["get_node_output"](plus).numpy(), now + 1, rtol=1e-6)
