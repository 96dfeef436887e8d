"""Devices by TVM's names and Heddle's, what is known of them, and contexts with settings of their own.

timeout: 120
"""
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import heddle
from heddle import Device, errors

# From TVM v0.14's runtime: the mask of each name.
MASKS = {"llvm": 1, "cpu": 1, "c": 1, "cuda": 2, "gpu": 2, "nvptx": 2, "cl": 4, "opencl": 4, "vulkan": 7, "metal": 8,
         "vpi": 9, "rocm": 10, "ext_dev": 12, "hexagon": 16, "webgpu": 15}

# By the rule in docs/dlpack.md.
def own_type(plugin):
    number = 0xcbf29ce484222325
    for byte in plugin.encode():
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return 2**24 + (number ^ number >> 24 ^ number >> 48) % 2**24


SIM, NULL = own_type("sim"), own_type("null")


def test_names_of_types():
    for name, mask in MASKS.items():
        assert Device(name, 3).device_type == mask and Device(name, 3).device_id == 3
        assert heddle.device(name) == Device(mask, 0)
    assert [str(Device(n)) for n in (1, 2, 4, 7, 8, 10, 12)] == [
        "cpu(0)", "cuda(0)", "opencl(0)", "vulkan(0)", "metal(0)", "rocm(0)", "ext_dev(0)"]
    assert Device("cuda:1") == Device(2, 1) == heddle.device("cuda -arch=sm_80", 1)
    assert Device.MASK2STR[4] == "opencl" and Device.STR2MASK["cl"] == 4


def test_equality_and_keys():
    table = {Device("opencl"): 1}
    assert table[Device(4, 0)] == 1 and Device(4, 0) != Device(4, 1) and Device(4, 0) != Device(2, 0) and Device(1, 0) != 1
    assert pickle.loads(pickle.dumps(Device(4, 2))) == Device(4, 2)


def test_words_that_are_no_device():
    with pytest.raises(ValueError, match="Unknown device type"):
        heddle.device("no_such_thing")
    with pytest.raises(errors.NoDeviceError):
        Device("no_such_thing")
    with pytest.raises(ValueError):
        Device("cuda:x")
    with pytest.raises(TypeError):
        Device(None)


def test_what_is_there():
    assert Device("cpu").exist and Device("cpu").name == "cpu"
    assert not Device("metal").exist and Device("metal").device_name is None
    assert Device("sim:1") == Device(SIM, 1) != Device(12, 1) and Device("sim:1").exist and Device(SIM, 1).name == "sim:1"
    assert not Device(12, 99).exist and not Device(12, -1).exist
    assert Device("sim:0").device_name == Device("sim:0").info["product"] != ""
    assert Device("sim:0").warp_size is None
    Device("sim:0").sync()
    Device("cpu").sync()
    with pytest.raises(errors.NoDeviceError):
        Device(12, 99).name


def test_a_device_by_name_keeps_it():
    """null:0 and sim:0 are both of no type of DLPack's: each plugin has a number, which depends on its name only."""
    assert heddle.device("sim", 0) != heddle.device("null", 0)
    for name, number in (("sim:0", SIM), ("null:0", NULL)):
        d = Device(name)
        assert str(d) == name.replace(":", "(") + ")" and Device(number, 0).name == name
        assert d.device_type == number and d.device_id == 0 and d.name == name and pickle.loads(pickle.dumps(d)).name == name
    t = heddle.empty((2,), "float32", Device("sim:0"))
    assert t.__dlpack_device__() == (SIM, 0)
    assert t.device_name == t.device.name == "sim:0" and heddle.empty((2,), "float32", t.device).device_name == "sim:0"


AMBIGUOUS = """
import heddle, numpy as np
from heddle import errors, graph_executor
def said(call):
    try:
        return call()
    except errors.Error as error:
        return type(error).__name__, str(error)
graph = GRAPH
print(said(lambda: heddle.empty((2,), "float32", heddle.device(12, 0)).device_name))
print(said(lambda: graph_executor.create(graph, None, heddle.device(12, 0)).module.kind))
print(heddle.empty((2,), "float32", heddle.device("sim:0")).device_name)
for name in ("sim", "null"):
    number = heddle.device(name, 0).device_type
    print(heddle.device(number, 0).name)
executor = graph_executor.create(graph, None, heddle.device(heddle.device("sim", 0).device_type, 0))
print(executor.module.kind)
"""


def test_an_ext_dev_of_two_plugins_is_no_device():
    """Both sim and null have DLPack's type 12: the setting devices decides, and where it does not, nothing runs."""
    graph = ('{"heddle": {"version": 1, "opset": 17}, "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2], '
             '"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "Relu", "name": "y", "inputs": [[0, 0, 0]]}], '
             '"attrs": {"dltype": ["list_str", ["float32", null]], "shape": ["list_shape", [[3], null]]}}')
    def run(**more):
        env = {k: v for k, v in os.environ.items() if k != "HEDDLE_DEVICES"}
        return subprocess.run([sys.executable, "-c", AMBIGUOUS.replace("GRAPH", repr(graph))], capture_output=True, text=True,
                              timeout=100, env={**env, "HEDDLE_CONFIG": "off", **more}).stdout.splitlines()

    for more in ({}, {"HEDDLE_DEVICES": "sim:0,null:0,cpu"}):
        lines = run(**more)
        assert all("device 0 of DLPack's type 12 is ambiguous: it is " in line for line in lines[:2]), lines
        assert "sim:0" in lines[0] and "null:0" in lines[0] and lines[2:5] == ["sim:0", "sim:0", "null:0"]
        assert lines[5] == "GraphExecutor"
    assert run(HEDDLE_DEVICES="cpu,sim:0") [:3] == ["sim:0", "GraphExecutor", "sim:0"]


def test_lists():
    names = [d["name"] for d in heddle.devices()]
    assert "cpu:0" in names and "sim:0" in names
    sim = next(d for d in heddle.devices() if d["name"] == "sim:0")
    assert (sim["type"], sim["index"], sim["plugin"], sim["health"]) == (SIM, 0, "sim", "ok")
    assert set(sim["abilities"]) >= {"fence_wait", "peer", "import_host"}
    plugins = {p["name"]: p for p in heddle.plugins() if p["used"]}
    assert plugins["sim"]["device_count"] >= 2 and plugins["sim"]["abi"][0] == 1 and os.path.exists(plugins["sim"]["path"])


def test_settings_of_a_context():
    context = heddle.Context({"devices": "sim:1,cpu", "sim.devices": "2"})
    assert context.setting("devices") == ("sim:1,cpu", "call")
    assert context.settings()["devices"] == "sim:1,cpu" and context.setting("no_such_setting") is None
    described = {one["key"]: one for one in context.described()}
    delay = described["sim.delay_us"]
    assert delay["type"] == "number" and delay["default"] == "0" and delay["high"] > 0 and delay["per_device"] and delay["help"]
    assert context.select() == ["sim:1", "cpu:0"]
    assert context.select("cpu") == ["cpu:0"]
    assert "sim:2" not in [d["name"] for d in heddle.devices(context)]
    t = heddle.empty((3,), "float32", "sim:1", context)
    del context
    t.copy_from([1, 2, 3])
    np.testing.assert_array_equal(t.numpy(), np.array([1, 2, 3], "float32"))
    with pytest.raises(errors.NoDeviceError) as caught:
        heddle.Context().select("sim:88")
    assert caught.value.device == "sim:88"
    for bad in ({"devices": 1}, {1: "cpu"}):
        with pytest.raises(TypeError):
            heddle.Context(bad)
    with pytest.raises(ValueError):
        heddle.Context({"devices": "cpu\0"})
    with pytest.raises(TypeError):
        heddle.Context(log=3)


def test_the_context_of_the_process_is_one():
    assert heddle.Context().settings() == heddle.Context().settings()
    heddle.Context().health("sim:0")
    heddle.Context().reopen("sim:0")


def test_a_log_of_ones_own():
    lines = []
    context = heddle.Context({"log": "trace"}, log=lambda level, component, text: lines.append((level, component, text)))
    context.devices()
    assert lines and all(isinstance(level, int) and component and text for level, component, text in lines)
    raises = heddle.Context({"log": "trace"}, log=lambda *args: 1 / 0)
    seen = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda u: seen.append(u.exc_type)
    try:
        raises.devices()
        del raises
    finally:
        sys.unraisablehook = hook
    assert seen and set(seen) == {ZeroDivisionError}


def test_names_of_the_package():
    for name in heddle.__all__:
        if name not in ("Model", "load"):
            assert getattr(heddle, name) is not None
    assert heddle.errors.Error is heddle.Error
    assert not hasattr(heddle, "__no_such__") and not hasattr(heddle, "_no_such")
    assert heddle.__version__ == heddle._core.version
    assert os.path.exists(os.path.join(os.path.dirname(heddle.__file__), "py.typed"))


def test_a_small_import():
    """What is heavy comes when it is asked for."""
    code = "import sys, heddle; print([m for m in ('asyncio', 'json', 'ctypes.util', 'heddle.model', 'ml_dtypes') if m in sys.modules])"
    with_numpy = "import sys, numpy; print([m for m in ('asyncio', 'json', 'ctypes.util', 'heddle.model', 'ml_dtypes') if m in sys.modules])"
    ours, numpys = (subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout
                    for c in (code, with_numpy))
    assert ours == numpys
