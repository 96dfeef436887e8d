"""heddle.runtime's arrays, devices, parameters, and what else scripts for TVM use, against numpy.
timeout: 300
"""
import os

import numpy as np
import pytest

os.environ["HEDDLE_DEVICES"] = "cpu,sim:0,sim:1"

import heddle
import heddle.runtime as runtime
from heddle.errors import FormatError, NoDeviceError, UnsupportedError
from heddle.runtime import nd

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
SIM = heddle.Device("sim:0")


# ---- arrays

@pytest.mark.parametrize("device", [nd.cpu(0), SIM], ids=["cpu", "sim"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_array_and_back(dtype, device):
    values = (np.arange(24).reshape(2, 3, 4) % 2 if dtype == "bool" else np.arange(24).reshape(2, 3, 4)).astype(dtype)
    x = nd.array(values, device)
    assert (x.shape, x.dtype, x.device, x.ndim) == ((2, 3, 4), dtype, device, 3)
    assert isinstance(x, nd.NDArray)
    np.testing.assert_array_equal(x.numpy(), values)
    np.testing.assert_array_equal(x.asnumpy(), values)
    assert x.numpy().dtype == values.dtype


@pytest.mark.parametrize("given", [[1, 2, 3], [[1.5], [2.5]], 7, 2.5, True, np.float32(3), range(4)], ids=str)
def test_array_of_what_numpy_takes(given):
    x = nd.array(given)
    np.testing.assert_array_equal(x.numpy(), np.array(given))
    assert x.dtype == str(np.array(given).dtype)


def test_numpy_copies():
    x = nd.array(np.zeros(3))
    before = x.numpy()
    x.copyfrom([1, 2, 3])
    assert before.tolist() == [0, 0, 0] and x.numpy().tolist() == [1, 2, 3]
    before[:] = 9
    assert x.numpy().tolist() == [1, 2, 3]
    shared = np.asarray(x)
    x[:] = np.array([4.0, 5, 6])
    assert shared.tolist() == [4, 5, 6]


@pytest.mark.parametrize("device", [nd.cpu(0), SIM], ids=["cpu", "sim"])
def test_copyfrom(device):
    x = nd.empty((2, 3), "int32", device)
    assert x.numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert x.copyfrom([[1.9, 2, 3], [4, 5, 6]]) is x  # converted as numpy's astype does
    assert x.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    x.copyfrom(np.arange(6, dtype="int8").reshape(3, 2).T)
    np.testing.assert_array_equal(x.numpy(), np.arange(6).reshape(3, 2).T)
    x.copyfrom(nd.array(np.full((2, 3), 8, "int32")))
    assert (x.numpy() == 8).all()
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(3, 2\)"):
        x.copyfrom(np.zeros((3, 2)))
    for wrong in ("text", object(), None, {"a": 1}):
        with pytest.raises(TypeError):
            x.copyfrom(wrong)


def test_copyto():
    x = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    there = x.copyto(SIM)
    assert there.device == SIM and isinstance(there, nd.NDArray)
    other = there.copyto(heddle.Device("sim:1"))
    y = nd.empty((2, 3))
    assert other.copyto(y) is y
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    flat = x.copyto(nd.empty((6,)))  # of one size: TVM takes them
    np.testing.assert_array_equal(flat.numpy(), np.arange(6))
    for target, words in ((nd.empty((5,)), "does not fit"), (np.zeros((2, 3)), "ndarray"), (3, "int")):
        with pytest.raises(ValueError, match=words):
            x.copyto(target)


def test_setitem():
    x = nd.empty((3,))
    x[:] = np.array([1, 2, 3], "int64")
    assert x.numpy().tolist() == [1, 2, 3]
    x[:] = nd.array(np.array([4, 5, 6], "float32"))
    assert x.numpy().tolist() == [4, 5, 6]
    x[:] = x
    for key in (0, slice(1, None), slice(None, 2), ...):
        with pytest.raises(ValueError):
            x[key] = np.zeros(3)
    with pytest.raises(TypeError):
        x[:] = [1, 2, 3]
    with pytest.raises(TypeError):
        x[0]


def test_text():
    x = nd.array(np.array([1, 2], "int32"))
    assert str(x) == "[1 2]" and repr(x) == "<heddle.nd.NDArray shape=(2,), cpu(0)>\narray([1, 2], dtype=int32)"


def test_identity():
    x, y = nd.empty((2,)), nd.empty((2,))
    again = nd.from_dlpack(x)
    assert x == x and x.same_as(again) and x == again and hash(x) == hash(again)
    assert x != y and not x.same_as(3) and bool(x) and {x: 1}[again] == 1


def test_dlpack():
    values = np.arange(5.0)
    x = nd.from_dlpack(values)
    values[2] = 9
    assert x.numpy().tolist() == [0, 1, 9, 3, 4]
    y = nd.from_dlpack(x.to_dlpack())
    del x, values
    assert y.numpy().tolist() == [0, 1, 9, 3, 4] and np.from_dlpack(y).tolist() == y.numpy().tolist()
    with pytest.raises(AttributeError, match="__dlpack__"):
        nd.from_dlpack([1, 2])
    shared = np.zeros(3, "float32")
    z = nd.numpyasarray(shared)
    shared[1] = 5
    assert z.numpy().tolist() == [0, 5, 0]
    with pytest.raises(ValueError):
        nd.numpyasarray(np.zeros((4, 4))[:, ::2])


def test_empty():
    assert nd.empty((2, 0, 3)).shape == (2, 0, 3) and nd.empty(()).shape == () and nd.empty([4], np.int8).dtype == "int8"
    assert nd.empty((2,), device=SIM, mem_scope="global").device == SIM
    with pytest.raises(UnsupportedError, match="global.texture"):
        nd.empty((2,), mem_scope="global.texture")
    with pytest.raises(ValueError):
        nd.empty((-1,))
    with pytest.raises(NoDeviceError):
        nd.empty((2,), device=nd.cuda(99))


# ---- devices

def test_devices():
    numbers = {"cpu": 1, "cuda": 2, "opencl": 4, "cl": 4, "vulkan": 7, "metal": 8, "mtl": 8, "vpi": 9, "rocm": 10,
               "ext_dev": 12, "webgpu": 15, "hexagon": 16}
    for name, number in numbers.items():
        for device in (getattr(runtime, name)(3), getattr(nd, name)(3)):
            assert (device.device_type, device.device_id) == (number, 3)
    with pytest.warns(DeprecationWarning):
        assert runtime.gpu(1) == runtime.cuda(1)
    assert runtime.device("llvm -mcpu=native") == runtime.cpu() and runtime.device("opencl", 2) == runtime.opencl(2)
    assert runtime.device(4, 1) == runtime.opencl(1)
    with pytest.raises(ValueError, match="Unknown device type"):
        runtime.device("nonsense")
    assert runtime.cpu().exist and not runtime.cuda(99).exist and SIM.exist


def test_enabled_and_threads():
    assert runtime.enabled("llvm -mcpu=native") and runtime.enabled("cpu") and not runtime.enabled("nonsense")
    assert runtime.enabled("ext_dev") and not runtime.enabled("hexagon") and not runtime.enabled("")
    assert runtime.num_threads() >= 1


# ---- parameters

def test_param_dict(tmp_path):
    params = {"weight": np.arange(6, dtype="float32").reshape(2, 3), "bias": nd.array([1, 2]), "there": nd.array([2.5], SIM),
              "number": 4}
    blob = runtime.save_param_dict(params)
    assert isinstance(blob, bytearray)
    for given in (blob, bytes(blob), memoryview(blob)):
        loaded = runtime.load_param_dict(given)
        assert list(loaded) == list(params)
        for name, value in params.items():
            np.testing.assert_array_equal(loaded[name].numpy(), value.numpy() if hasattr(value, "numpy") else value)
    path = tmp_path / "p.params"
    runtime.save_param_dict_to_file(params, path)
    assert path.read_bytes() == blob and list(runtime.load_param_dict_from_file(path)) == list(params)
    assert runtime.load_param_dict(runtime.save_param_dict({})) == {}
    with pytest.raises(FormatError):
        runtime.load_param_dict(blob[:-1])
    with pytest.raises(ValueError):
        runtime.load_param_dict(b"nothing")
    with pytest.raises(OSError):
        runtime.load_param_dict_from_file(tmp_path / "none")


# ---- the rest

def test_data_types():
    for name, code, bits, lanes in (("float32", 2, 32, 1), ("int8x4", 0, 8, 4), ("uint16", 1, 16, 1), ("bool", 1, 1, 1),
                                    ("handle", 3, 64, 1), ("bfloat16", 4, 16, 1), ("int", 0, 32, 1)):
        found = runtime.DataType(name)
        assert (found.type_code, found.bits, found.lanes, str(found)) == (code, bits, lanes, "int32" if name == "int" else name)
    assert runtime.DataType(np.float64) == "float64" and runtime.DataType(np.dtype("int8")).itemsize() == 1
    with pytest.raises(ValueError):
        runtime.DataType("complex64x")


def test_benchmark_result():
    result = runtime.BenchmarkResult([0.001, 0.003, 0.002, 0.006])
    assert (result.mean, result.median, result.min, result.max) == pytest.approx((0.003, 0.0025, 0.001, 0.006))
    assert result.std == pytest.approx(np.std([1, 3, 2, 6]) / 1000) and result.results == (0.001, 0.003, 0.002, 0.006)
    words = str(result).split()
    assert words[:3] == ["Execution", "time", "summary:"] and "3.0000" in words and "(ms)" in words
    assert repr(result).startswith("BenchmarkResult(min=0.001, mean=0.003")
