"""Tensors and numpy: memory shared both ways for each dtype, conversions by numpy's rules, copies between devices, files.

timeout: 200
"""
import array
import gc
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest

import heddle
from heddle import errors

NUMPYS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "complex64", "complex128"]
MLS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e8m0fnu", "int4",
       "uint4"]


def values(dtype, shape=(3, 4)):
    """Anything but a constant."""
    return (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)


@pytest.mark.parametrize("name", NUMPYS)
def test_each_dtype_of_numpy_is_shared_both_ways(name):
    x = values(name)
    t = heddle.as_tensor(x)
    assert (t.dtype, t.shape, t.strides, t.ndim, t.nbytes) == (name, (3, 4), (4, 1), 2, x.nbytes)
    assert t.address == x.ctypes.data and t.is_contiguous and len(t) == 3
    assert t.device_key == (1, 0) and t.device_name == "cpu" and t.device == heddle.Device("cpu")
    for y in (t.numpy(), np.asarray(t), np.asarray(memoryview(t))):
        assert y.dtype == x.dtype and y.ctypes.data == x.ctypes.data
        np.testing.assert_array_equal(y, x)
    t.numpy()[1, 2] = 1
    assert x[1, 2] == 1
    new = heddle.empty((3, 4), name)
    assert not new.numpy().any() and new.address % 256 == 0
    new.copy_from(x)
    np.testing.assert_array_equal(new.numpy(), x)
    assert heddle.empty((1,), x.dtype).dtype == heddle.empty((1,), x.dtype.type).dtype == name


@pytest.mark.parametrize("name", MLS)
def test_each_dtype_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = getattr(ml_dtypes, name)
    x = values("float32").astype(kind)
    t = heddle.as_tensor(x)
    assert t.dtype == name and t.address == x.ctypes.data
    assert t.numpy().dtype == x.dtype
    np.testing.assert_array_equal(t.numpy().view("uint8"), x.view("uint8"))
    assert bytes(memoryview(t)) == x.tobytes()
    assert heddle.empty((2,), kind).dtype == heddle.empty((2,), np.dtype(kind)).dtype == name
    np.testing.assert_array_equal(heddle.as_tensor(x, "float32").numpy(), x.astype("float32"))


def test_bfloat16_without_ml_dtypes():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np, heddle
        t = heddle.empty((3,), "bfloat16")
        t.copy_from(np.array([0x3f80, 0x4000, 0], "uint16"))
        assert t.dtype == "bfloat16" and t.numpy().dtype == np.uint16, (t, t.numpy())
        assert t.numpy().tolist() == [0x3f80, 0x4000, 0]
        assert heddle.as_tensor(np.zeros(2, "uint16"), "bfloat16").dtype == "bfloat16"
        assert heddle.empty((3,), "float8_e5m2").numpy().dtype == np.uint8
        assert heddle.empty((3,), "int4").numpy().dtype == np.int8
    """)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_of_dtypes():
    for given, name in (("uint1", "bool"), ("handle", "handle"), ("float32x4", "float32x4"), ("e4m3_float8", "float8_e4m3fn"),
                        (float, "float64"), (np.float32, "float32"), (bool, "bool"), (np.dtype(">f4"), "float32")):
        assert heddle.empty((2,), given).dtype == name
    assert heddle.empty((2, 3), "int8x4").numpy().shape == (2, 3, 4)
    for bad in ("float", "float32x", "float32x0", "int", "x4", "float999", np.dtype("S3"), np.dtype("M8[s]"), 3, object):
        with pytest.raises(TypeError):
            heddle.empty((2,), bad)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 1, 3), (1,) * 32])
def test_shapes(shape):
    x = np.ones(shape, "float32")
    t = heddle.as_tensor(x)
    assert t.shape == x.shape and t.nbytes == x.nbytes
    assert t.numpy().shape == x.shape
    np.testing.assert_array_equal(t.numpy(), x)
    if shape == ():
        with pytest.raises(TypeError):
            len(t)


@pytest.mark.parametrize("view", [
    lambda x: x[::-1, ::2], lambda x: x.T, lambda x: x[:, 1:3], lambda x: np.broadcast_to(x[0], (3, 8)), lambda x: x[1:1],
    lambda x: x[:, :1], lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 3)])
def test_strided_arrays_are_shared(view):
    x = view(values("float32", (6, 8)))
    t = heddle.as_tensor(x)
    assert t.address == x.ctypes.data or x.size == 0
    np.testing.assert_array_equal(t.numpy(), x)
    assert t.is_contiguous == x.flags.c_contiguous
    new = heddle.empty(x.shape, "float32")
    new.copy_from(t)
    np.testing.assert_array_equal(new.numpy(), x)


def test_arrays_that_must_be_copied():
    swapped = np.arange(4, dtype=">f4")
    record = np.zeros(3, [("a", "i1"), ("b", "f4")])
    record["b"] = [1, 2, 3]
    for x in (swapped, record["b"]):
        t = heddle.as_tensor(x)
        assert t.dtype == "float32" and t.address != x.ctypes.data
        np.testing.assert_array_equal(t.numpy(), x.astype("float32"))


def test_what_may_only_be_read():
    x = np.arange(6.0)
    x.flags.writeable = False
    t = heddle.as_tensor(x)
    assert t.address == x.ctypes.data and not t.numpy().flags.writeable and memoryview(t).readonly
    with pytest.raises(ValueError):
        t.copy_from(np.zeros(6))
    with pytest.raises(BufferError):
        t.__dlpack__()
    heddle.empty((6,), "float64").copy_from(t)
    with pytest.raises(ValueError):
        np.frombuffer(t)[0] = 1
    assert x[0] == 0


def test_other_things_that_hold_numbers():
    for value in ([[1, 2], [3, 4]], ((1, 2), (3, 4)), [(1.0, 2), np.array([3, 4])]):
        assert heddle.as_tensor(value, "float32").numpy().tolist() == [[1, 2], [3, 4]]
    assert heddle.as_tensor(3).numpy() == 3 and heddle.as_tensor(2.5, "float32").dtype == "float32"
    assert heddle.as_tensor(True).dtype == "bool" and heddle.as_tensor(np.float16(1)).dtype == "float16"
    buffer = bytearray(b"abcd")
    t = heddle.as_tensor(buffer)
    t.numpy()[0] = ord("x")
    assert buffer == b"xbcd" and t.dtype == "uint8"
    assert heddle.as_tensor(array.array("d", [1, 2])).numpy().tolist() == [1, 2]
    assert heddle.as_tensor(memoryview(b"ab")).shape == (2,)
    assert heddle.as_tensor(heddle.as_tensor([1.0])).dtype == "float64"
    for bad in ("abc", b"abc", None, object(), {}, [[1, 2], [3]], ["a"], np.array(["a"]), np.array([object()])):
        with pytest.raises((TypeError, ValueError)):
            heddle.as_tensor(bad)


def test_conversions_go_by_numpys_rules():
    for have in NUMPYS:
        for want in NUMPYS:
            x = values(have)
            if np.can_cast(have, want, "same_kind"):
                for given in (x, heddle.as_tensor(x)):
                    t = heddle.as_tensor(given, want)
                    assert t.dtype == want
                    np.testing.assert_array_equal(t.numpy(), x.astype(want))
            else:
                for given in (x, heddle.as_tensor(x)):
                    with pytest.raises(TypeError):
                        heddle.as_tensor(given, want)
    t = heddle.empty((2,), "int32")
    t.copy_from(np.array([1.75, -2.5]))  # as assignment to an array does
    assert t.numpy().tolist() == [1, -2]


def test_copies_between_host_and_devices():
    x = values("float32", (5, 7))
    a, b, host = heddle.empty((5, 7), "float32", "sim:0"), heddle.empty((5, 7), "float32", (12, 1)), heddle.empty((5, 7))
    assert a.device_name == "sim:0" and a.device_key == (heddle.Device("sim").device_type, 0) and b.device == heddle.Device("sim:1") and a.address == 0
    assert not a.numpy().any()
    a.copy_from(x)
    a.copy_to(b)
    b.copy_to(host)
    np.testing.assert_array_equal(host.numpy(), x)
    np.testing.assert_array_equal(b.numpy(), x)
    np.testing.assert_array_equal(np.asarray(a), x)
    np.testing.assert_array_equal(np.asarray(a, "float64"), x)
    a.copy_from(x[::-1].T.T.astype("float64"))
    np.testing.assert_array_equal(heddle.as_tensor(a, "float64").numpy(), x[::-1])
    assert a.numpy().ctypes.data != a.numpy().ctypes.data or a.numpy().base is None
    with pytest.raises(BufferError):
        memoryview(a)
    with pytest.raises(ValueError):
        np.asarray(a, copy=False)
    with pytest.raises(ValueError, match=r"\(5, 8\).*\(5, 7\)"):
        a.copy_from(np.zeros((5, 8)))
    with pytest.raises(TypeError):
        a.copy_to(x)


def test_numpys_copy_argument():
    t = heddle.as_tensor(values("float32"))
    assert np.array(t, copy=True).ctypes.data != t.address
    assert np.asarray(t, copy=False).ctypes.data == t.address
    assert np.asarray(t, "float64").dtype == np.float64
    with pytest.raises(ValueError):
        np.asarray(t, "float64", copy=False)


def test_an_array_keeps_the_memory_and_so_does_a_tensor():
    y = heddle.empty((1000,), "float32").numpy()
    gc.collect()
    y[:] = 3
    assert y.sum() == 3000

    class Mine(np.ndarray):
        pass

    x = np.zeros(4).view(Mine)
    gone = weakref.ref(x)
    t = heddle.as_tensor(x)
    view = t.numpy()
    del x, t
    assert gone() is not None
    del view
    assert gone() is None


def test_references_come_back_at_once():
    x = np.zeros(4)
    before = sys.getrefcount(x)
    t = heddle.as_tensor(x)
    buffer = memoryview(t)
    assert sys.getrefcount(x) == before + 1
    del t
    assert sys.getrefcount(x) == before + 1
    del buffer
    assert sys.getrefcount(x) == before


def test_subclasses():
    class Mine(heddle.Tensor):
        def twice(self):
            return self.numpy() * 2

    m = Mine([1.0, 2.0], "float32")
    assert m.twice().tolist() == [2, 4] and "Mine" in repr(m) and m.shape == (2,)
    heddle._core.set_tensor_class(Mine)
    try:
        assert type(heddle.empty((2,))) is type(heddle.as_tensor([1])) is type(heddle.from_dlpack(np.zeros(1))) is Mine
    finally:
        heddle._core.set_tensor_class(heddle.Tensor)
    with pytest.raises(TypeError):
        heddle._core.set_tensor_class(int)


@pytest.mark.parametrize("name", NUMPYS)
def test_npy_files(tmp_path, name):
    x = values(name)
    path = tmp_path / "x.npy"
    heddle.save_npy(heddle.as_tensor(x), path)
    np.testing.assert_array_equal(np.load(path), x)
    np.save(path, np.asfortranarray(x))
    t = heddle.load_npy(str(path))
    assert t.dtype == name
    np.testing.assert_array_equal(t.numpy(), x)
    with pytest.raises(errors.FileError):
        heddle.save_npy(x, tmp_path / "none" / "x.npy")
