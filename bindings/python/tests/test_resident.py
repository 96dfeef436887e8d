"""Tensors in memory of a device, bound to inputs and outputs: used there, handed to other executors, no byte over the host.
timeout: 300"""
import json
import os
import tempfile

import heddle
import numpy as np
import onnx
import pytest
from heddle import _core
from onnx import TensorProto, helper

os.environ.setdefault("POCL_DEVICES", "pthread pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
SHAPE = [4, 8]
DEVICES = ["sim:0", "sim:0,cpu", "opencl:0", "opencl:0,cpu"]


def net(factor, first="m", last="y", shape=SHAPE):
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    nodes = [helper.make_node("Mul", ["x", "c"], ["m"], name=first), helper.make_node("Relu", ["m"], ["y"], name=last)]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")], [onnx.numpy_helper.from_array(np.float32(factor), "c")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def executors(devices, *models, settings=None, **more):
    context = _core.Context(settings or {})
    try:
        made = [heddle.load(model, devices=devices, context=context, **more).executor() for model in models]
    except heddle.errors.NoDeviceError as error:
        pytest.skip(f"no {devices}: {error}")
    return [lambda shape=SHAPE, where=devices.split(",")[0]: _core.empty(shape, "float32", where, context)] + made


def values(seed=0):
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


@pytest.mark.parametrize("devices", DEVICES)
def test_a_chain_moves_nothing(devices):
    make, *chain = executors(devices, net(2), net(3), net(5))
    tensors = [make() for _ in range(4)]
    for executor, source, result in zip(chain, tensors, tensors[1:]):
        executor.bind_input("x", source)
        executor.bind_output("y", result)
    for seed in range(5):
        x = values(seed)
        tensors[0].copy_from(x)
        for executor in chain:
            executor.run()
        np.testing.assert_allclose(tensors[-1].numpy(), np.maximum(x, 0) * 30, rtol=1e-6)
        np.testing.assert_array_equal(chain[-1].get_output().numpy(), tensors[-1].numpy())
    for executor in chain:
        stats = executor.stats()
        assert stats["runs"] == 5 and stats["copies"] == 0 and stats["bytes_copied"] == 0, stats
    plan = chain[0].explain("json")
    assert '"route"' not in plan or '"h2d"' not in plan


@pytest.mark.parametrize("settings", [
    {"sim.unified": "1"}, {"sim.unified": "1", "sim.coherent": "0"}, {"sim.coherent": "0"}, {"sim.import": "0"}, {"sim.views": "0"},
    {"sim.capture": "0"}, {"sim.peer": "0"}, {"layers": "check"}], ids=str)
def test_every_kind_of_device(settings):
    for place in None, {"m": "cpu"}, {"y": "cpu"}, {"m": "sim:1"}, {"y": "sim:1"}:
        make, executor = executors("sim:0,sim:1,cpu", net(2), settings=settings, place=place)
        source, result = make(), make()
        executor.bind_input("x", source)
        executor.bind_output("y", result)
        for seed in range(3):
            source.copy_from(values(seed))
            executor.run()
            np.testing.assert_array_equal(result.numpy(), np.maximum(values(seed) * 2, 0))


@pytest.mark.parametrize("devices", DEVICES)
def test_bindings_that_change(devices):
    """Between memory of the device and of the host, and between tensors of the device."""
    make, executor = executors(devices, net(2))
    x, other = values(1), values(2)
    there, elsewhere, result = make(), make(), make()
    there.copy_from(x)
    elsewhere.copy_from(other)
    host = np.zeros(SHAPE, np.float32)

    def runs(want):
        executor.run()
        np.testing.assert_array_equal(executor.get_output().numpy(), np.maximum(want * 2, 0))

    executor.set_input("x", other)
    runs(other)
    executor.bind_input("x", there)
    runs(x)
    executor.bind_output("y", result)
    runs(x)
    np.testing.assert_array_equal(result.numpy(), np.maximum(x * 2, 0))
    executor.bind_input("x", elsewhere)
    runs(other)
    executor.bind_output("y", host)
    runs(other)
    np.testing.assert_array_equal(host, np.maximum(other * 2, 0))
    np.testing.assert_array_equal(result.numpy(), np.maximum(other * 2, 0))
    executor.bind_output("y", None)
    executor.set_input("x", x)
    runs(x)
    executor.bind_input("x", there)
    there.copy_from(other)  # the next run reads what is there then
    runs(other)
    np.testing.assert_array_equal(executor.get_input("x").numpy(), other)
    np.testing.assert_array_equal(executor.run_to("m").numpy(), other * 2)


@pytest.mark.parametrize("devices, place", [("sim:0,cpu", {"m": "cpu"}), ("sim:0,cpu", {"y": "cpu"}),
                                            ("sim:0,cpu", {"*": "cpu"}), ("sim:0,sim:1", {"*": "sim:1"}),
                                            ("opencl:0,sim:0", {"*": "sim:0"}), ("opencl:0,sim:0,cpu", {"y": "cpu"})])
def test_the_plan_wants_it_elsewhere(devices, place):
    make, executor = executors(devices, net(2), place=place)
    source, result = make(), make()
    executor.bind_input("x", source)
    executor.bind_output("y", result)
    for seed in range(4):
        source.copy_from(values(seed))
        executor.run()
        np.testing.assert_array_equal(result.numpy(), np.maximum(values(seed) * 2, 0))


def test_a_device_that_the_model_does_not_use():
    context = _core.Context({})
    executor = heddle.load(net(2), devices="sim:0", context=context).executor()
    other, result = (_core.empty(SHAPE, "float32", "sim:1", context) for _ in range(2))
    executor.bind_input("x", other)
    executor.bind_output("y", result)
    other.copy_from(values())
    executor.run()
    np.testing.assert_array_equal(result.numpy(), np.maximum(values() * 2, 0))


def test_one_tensor_is_not_read_and_written():
    make, executor = executors("sim:0", net(2))
    one = make()
    executor.bind_input("x", one)
    with pytest.raises(heddle.errors.InvalidError, match="overlaps"):
        executor.bind_output("y", one)
    executor.bind_input("x", make())
    executor.bind_output("y", one)
    with pytest.raises(heddle.errors.InvalidError, match="overlaps"):
        executor.bind_input("x", one)
    for shape in [4, 9], [32]:
        with pytest.raises(heddle.errors.InvalidError):
            executor.bind_input("x", make(shape))


def test_an_output_that_is_two_and_an_input_that_is_an_output():
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="a_node"), helper.make_node("Identity", ["a"], ["b"], name="b_node"),
             helper.make_node("Identity", ["x"], ["c"], name="c_node")]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("a"), info("b"), info("c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for bound in ("a",), ("b", "c"), ("a", "b"), ("c",), ("a", "b", "c"):
        make, executor = executors("sim:0,cpu", model)
        x = values()
        source = make()
        source.copy_from(x)
        executor.bind_input("x", source)
        results = {name: make() for name in bound}
        for name, tensor in results.items():
            executor.bind_output(name, tensor)
        for _ in range(2):
            executor.run()
            for name in "abc":
                want = x if name == "c" else np.maximum(x, 0)
                np.testing.assert_array_equal(executor.get_output(name).numpy(), want)
        for name, tensor in results.items():
            np.testing.assert_array_equal(tensor.numpy(), x if name == "c" else np.maximum(x, 0))


def test_open_shapes_and_runs_in_flight():
    make, executor = executors("sim:0,cpu", net(2, shape=["n", 8]), in_flight=2, settings={"sim.delay_us": "300"})
    for rows in 3, 5, 3:
        sources, results = [make([rows, 8]) for _ in range(2)], [make([rows, 8]) for _ in range(2)]
        given = [np.random.default_rng(rows + k).standard_normal((rows, 8)).astype(np.float32) for k in range(2)]
        for k in range(2):
            sources[k].copy_from(given[k])
            executor.bind_input("x", sources[k])
            executor.bind_output("y", results[k])
            executor.start()
        for k in range(2):
            executor.wait()
        for k in range(2):
            np.testing.assert_array_equal(results[k].numpy(), np.maximum(given[k] * 2, 0))


def test_a_lost_device():
    make, executor = executors("sim:0", net(2), settings={"sim.fail": "run:3@0:fault"}, capture=False)
    source, result = make(), make()
    executor.bind_input("x", source)
    executor.bind_output("y", result)
    with pytest.raises(heddle.errors.DeviceLostError):
        for _ in range(4):
            executor.run()
    del executor, source, result


def test_a_chain_is_started_without_waiting():
    for devices in "sim:0", "opencl:0":
        make, first, second = executors(devices, net(2), net(3), settings={"sim.delay_us": "300"})
        tensors = [make() for _ in range(3)]
        for executor, source, result in zip((first, second), tensors, tensors[1:]):
            executor.bind_input("x", source)
            executor.bind_output("y", result)
        for seed in range(5):
            x = values(seed)
            tensors[0].copy_from(x)
            first.start()
            second.start()
            np.testing.assert_allclose(tensors[2].numpy(), np.maximum(x, 0) * 6, rtol=1e-6)  # waits for both
            second.wait()
            first.wait()


class Producer:
    """An object with __dlpack__ that notes the stream that it is asked for."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(max_version=max_version)


def queue_of(tensor, number):
    """A cl_command_queue for a device of the context of a tensor's cl_mem, and the library."""
    import ctypes as c
    cl = c.CDLL("libOpenCL.so.1")
    capsule = tensor.__dlpack__()  # a DLManagedTensor begins with the handle
    c.pythonapi.PyCapsule_GetPointer.restype = c.c_void_p
    c.pythonapi.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
    mem = c.c_void_p(c.c_void_p.from_address(c.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")).value)
    context, devices, code = c.c_void_p(), (c.c_void_p * 16)(), c.c_int()
    assert cl.clGetMemObjectInfo(mem, 0x1106, c.c_size_t(8), c.byref(context), None) == 0
    assert cl.clGetContextInfo(context, 0x1081, c.c_size_t(c.sizeof(devices)), devices, None) == 0
    cl.clCreateCommandQueue.restype = c.c_void_p
    queue = cl.clCreateCommandQueue(context, c.c_void_p(devices[number]), c.c_uint64(0), c.byref(code))
    assert code.value == 0
    return cl, mem, queue


def test_streams_of_the_caller():
    import ctypes as c
    make, executor = executors("opencl:0", net(2))
    source, result = make(), make()
    executor.bind_input("x", source)
    executor.bind_output("y", result)
    cl, into, queue = queue_of(source, 0)
    _, out, wrong = queue_of(result, 1)
    executor.use_stream("opencl:0", queue)
    for seed in range(5):
        x, y = values(seed), np.zeros(SHAPE, np.float32)
        handle = lambda a: c.c_void_p(a.ctypes.data)
        assert cl.clEnqueueWriteBuffer(c.c_void_p(queue), into, 0, c.c_size_t(0), c.c_size_t(x.nbytes), handle(x), 0, None, None) == 0
        executor.start()
        assert cl.clEnqueueReadBuffer(c.c_void_p(queue), out, 0, c.c_size_t(0), c.c_size_t(y.nbytes), handle(y), 0, None, None) == 0
        assert cl.clFinish(c.c_void_p(queue)) == 0
        np.testing.assert_allclose(y, np.maximum(x, 0) * 2, rtol=1e-6)
        executor.wait()
    with pytest.raises(heddle.errors.InvalidError, match="opencl:1.*opencl:0"):
        executor.use_stream("opencl:0", wrong)
    executor.use_stream(None)
    producer = Producer(source)
    taken = heddle.from_dlpack(producer, stream=queue)
    assert producer.streams == [queue]
    taken.__dlpack__(stream=queue)
    taken.__dlpack__(stream=-1)
    taken.__dlpack__()
    with pytest.raises(heddle.errors.InvalidError, match="opencl:1.*opencl:0"):
        taken.__dlpack__(stream=wrong)
    with pytest.raises(heddle.errors.InvalidError, match="opencl:1.*opencl:0"):
        heddle.from_dlpack(Producer(source), stream=wrong)
    with pytest.raises(TypeError):
        taken.__dlpack__(stream="first")
    with pytest.raises(BufferError):
        taken.__dlpack__(stream=-2)


def test_a_plan_shows_bounds_and_growths():
    _, executor = executors("sim:0", net(2, shape=["length", 8]))
    seen = []
    for length in 16, 20, 30, 40, 10:
        executor.set_input("x", np.zeros((length, 8), np.float32))
        executor.run()
        plan = json.loads(executor.explain("json"))
        dimension, = plan["dimensions"]
        seen.append((dimension["name"], dimension["value"], dimension["bound"]))
        assert {r["sizes"] for r in plan["regions"]} == {None if length == 16 else "resized"}
    assert seen == [("length", 16, None)] + [("length", n, bound) for n, bound in ((20, 32), (30, 32), (40, 64), (10, 64))]
    assert executor.stats()["growths"] == 2 and plan["growths"] == 2
    assert "planned for 1 to 64" in executor.explain("text")
