"""Dimensions that the caller gets wrong, or for which there is no memory: the error names them, and the executor stays usable.
timeout: 200"""
import os
import tempfile

import heddle
import numpy as np
import onnx
import pytest
from heddle import _core
from mutants.models import F, model, node
from onnx import TensorProto, helper

os.environ.setdefault("POCL_DEVICES", "pthread pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
DEVICES = ["cpu", "sim:0", "opencl:0"]


def products():
    """The largest of x times itself: n by n numbers for n rows, and a product that some lengths are too small for."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["length", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["a"]),
             helper.make_node("Relu", ["a"], ["s"]), helper.make_node("ReduceMax", ["s"], ["y"], axes=[1])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def executor_of(devices, settings=None, **more):
    try:
        return heddle.load(products(), devices=devices, context=_core.Context(settings or {}), **more).executor()
    except heddle.errors.NoDeviceError as error:
        pytest.skip(f"no {devices}: {error}")


def runs(executor, n):
    x = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
    executor.set_input("x", x)
    executor.run()
    want = np.maximum(x @ x.T, 0).max(axis=1, keepdims=True, initial=0)
    np.testing.assert_allclose(executor.get_output().numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("devices", DEVICES)
def test_lengths_that_a_plugin_takes_in_another_way(devices):
    """What a plugin computes in one step for the bound of a range it may refuse for a short length."""
    for lengths in ([16, 17], [33, 17, 33, 17], [20, 34, 1, 300, 17], [64, 0, 64, 17]):
        executor = executor_of(devices)
        for n in lengths:
            runs(executor, n)


@pytest.mark.parametrize("devices", DEVICES)
def test_numbers_that_are_no_dimensions(devices):
    for wrong in -1, -2**40, 2**32, 2**62, 1.5, "many", "", None:
        with pytest.raises(heddle.errors.InvalidError, match="length.*whole number from 0 to"):
            executor_of(devices, dims={"length": wrong})
    for wrong in "<=0", "<=-3", "<=x", f"<={2**40}":
        with pytest.raises(heddle.errors.InvalidError, match="length.*whole number from 1 to"):
            executor_of(devices, dims={"length": wrong})
    with pytest.raises(heddle.errors.NotFoundError, match="names of dimensions: length"):
        executor_of(devices, dims={"width": 3})
    executor = executor_of(devices, dims={"length": "<=32"})
    runs(executor, 20)
    for shape in (33, 8), (5, 7), (5,), (5, 8, 1):
        with pytest.raises(heddle.errors.InvalidError, match="'x'.*" + ("33.* 32 at most" if shape[0] == 33 else "length")):
            executor.set_input("x", np.zeros(shape, np.float32))
            executor.run()
    for n in 0, 32, 7:
        runs(executor, n)


@pytest.mark.parametrize("devices, settings, error", [
    ("cpu", {}, heddle.errors.OutOfMemoryError), ("opencl:0", {}, heddle.errors.LimitError),
    ("sim:0", {"sim.memory_bytes": "2000000"}, heddle.errors.OutOfMemoryError),
    ("sim:0", {"sim.max_buffer_bytes": "2000000"}, heddle.errors.LimitError)], ids=str)
def test_what_there_is_no_memory_for(devices, settings, error):
    executor = executor_of(devices, settings)
    for n in 16, 30:
        runs(executor, n)
    for n in (2**23,) if devices == "cpu" else (2**19, 1000):  # n * n numbers of four bytes, on cpu more than there are addresses
        if n == 1000 and devices != "sim:0":
            continue
        x = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (n, 8), (0, 4)) if n > 1000 else np.zeros((n, 8), np.float32)
        for _ in range(2):
            with pytest.raises(error, match=rf"'x' dimension 0 \(length\) = {n}: .*[0-9]{{7,}} bytes"):
                executor.set_input("x", x)
                executor.run()
        for length in 40, 17, 30:
            runs(executor, length)


def test_growths_are_shown():
    import json
    executor = executor_of("sim:0")
    for n in 4, 5:
        runs(executor, n)
    first = json.loads(executor.explain("json"))
    runs(executor, 100)
    second = json.loads(executor.explain("json"))
    one = {"input": "x", "dimension": 0, "name": "length", "maximum": None}
    assert first["dimensions"] == [{**one, "value": 5, "bound": 8}] and second["dimensions"] == [{**one, "value": 100, "bound": 128}]
    assert (first["growths"], second["growths"]) == (1, 2)
    text = executor.explain("text")
    assert "planned for 1 to 128" in text and "growths   2" in text


def test_memory_is_missing_for_a_value():
    """Of an input that cannot even be copied; smaller ones are run before and after it."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", "columns"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "large", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executor = heddle.load(model, devices="cpu").executor()
    large = np.broadcast_to(np.float32(1), (1000000, 1000000))
    words = r"'x' dimension 0 \(rows\) = 1000000, 'x' dimension 1 \(columns\) = 1000000: 4000000000000 bytes"
    for n in (2, 3):
        executor.set_input("x", np.ones((n, 4), np.float32))
        executor.run()
        assert np.asarray(executor.get_output(0)).sum() == 4 * n
        with pytest.raises(heddle.errors.OutOfMemoryError, match=words):
            executor.set_input("x", large)


# Results that nobody reads, of which the size for one shape is no bound for another: the third part of 2, 3, 4, 7.
UNREAD = {
    "last": ([node("Split", "x", "d e -", axis=1, num_outputs=3)], "d", lambda parts: parts[0]),
    "first": ([node("Split", "x", "- - f", axis=1, num_outputs=3)], "f", lambda parts: parts[2]),
    "after": ([node("Relu", "x", "r"), node("Split", "r", "- d -", axis=1, num_outputs=3), node("Neg", "d", "y")], "y",
              lambda parts: -np.maximum(parts[1], 0)),
}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("name", UNREAD)
def test_results_that_nobody_reads(tmp_path, name, devices):
    nodes, output, want = UNREAD[name]
    path = tmp_path / "unread.onnx"
    path.write_bytes(model(nodes, [("x", F, [6, "n"])], [(output, F, [6, "m"])]))
    with heddle.load(path, devices=devices, optimize="off") as loaded:
        for n in 3, 2, 3, 4, 7, 4, 5, 2, 8, 7, 3:
            x = np.linspace(-2, 2, 6 * n, dtype=np.float32).reshape(6, n)
            each = -(-n // 3)
            parts = [x[:, i * each:(i + 1) * each] for i in range(3)]
            np.testing.assert_array_equal(loaded(x=x), want(parts))
