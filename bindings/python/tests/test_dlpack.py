"""DLPack: capsules of both forms, out and in, who frees them and when, and consumers that outlive what they came from.

timeout: 200
"""
import ctypes
import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

os.environ.setdefault("POCL_DEVICES", "pthread pthread")
os.environ["HEDDLE_DEVICES"] = "sim:0,sim:1,cpu"  # which of the devices of DLPack's type 12 is number 0
import heddle
from heddle import errors

SIM = heddle.Device("sim").device_type

API = ctypes.pythonapi
API.PyCapsule_GetPointer.restype = ctypes.c_void_p
API.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
API.PyCapsule_New.restype = ctypes.py_object
API.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
API.PyCapsule_GetName.restype = ctypes.c_char_p
API.PyCapsule_GetName.argtypes = [ctypes.py_object]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Producer:
    """As torch and others give their arrays; counts how often its struct was freed. Memory of six floats."""

    def __init__(self, versioned, major=1, flags=0, device=(1, 0), takes_version=True):
        self.versioned, self.device, self.takes_version, self.freed = versioned, device, takes_version, 0
        self.data = (ctypes.c_float * 7)(9, *range(6))
        self.shape = (ctypes.c_int64 * 2)(2, 3)
        self.struct = Versioned() if versioned else Legacy()
        self.struct.deleter = self.deleter = DELETER(self.free)
        if versioned:
            self.struct.major, self.struct.minor, self.struct.flags = major, 0, flags
        t = self.struct.tensor
        t.data, t.byte_offset = ctypes.addressof(self.data), 4
        t.device_type, t.device_id, t.ndim, t.code, t.bits, t.lanes = *device, 2, 2, 32, 1
        t.shape = self.shape

    def free(self, pointer):
        assert pointer == ctypes.addressof(self.struct)
        self.freed += 1

    def capsule(self):
        return API.PyCapsule_New(ctypes.addressof(self.struct), b"dltensor_versioned" if self.versioned else b"dltensor", None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **named):
        if named and not self.takes_version:
            raise TypeError("no such argument")
        return self.capsule()


NAMES = {False: b"dltensor", True: b"dltensor_versioned"}


@pytest.mark.parametrize("versioned", [False, True])
def test_what_a_capsule_says(versioned):
    x = np.arange(12, dtype="int16").reshape(3, 4)[:, ::2]
    t = heddle.as_tensor(x)
    capsule = t.__dlpack__(max_version=(1, 0)) if versioned else t.__dlpack__()
    pointer = API.PyCapsule_GetPointer(capsule, NAMES[versioned])
    m = (Versioned if versioned else Legacy).from_address(pointer)
    d = m.tensor
    assert d.data + d.byte_offset == x.ctypes.data and (d.device_type, d.device_id) == (1, 0) == t.__dlpack_device__()
    assert (d.ndim, d.code, d.bits, d.lanes) == (2, 0, 16, 1) and d.shape[:2] == [3, 2] and d.strides[:2] == [4, 2]
    if versioned:
        assert m.major == 1 and m.flags == 0


@pytest.mark.parametrize("named", [{}, {"max_version": (0, 8)}, {"max_version": (1, 0)}, {"max_version": (2, 0)}, {"max_version": None}])
def test_capsules_that_nobody_takes_are_freed(named):
    x = np.zeros(8)
    before = sys.getrefcount(x)
    t = heddle.as_tensor(x)
    capsule = t.__dlpack__(**named)
    assert API.PyCapsule_GetName(capsule) == NAMES[named.get("max_version") is not None and named["max_version"][0] >= 1]
    del t
    assert sys.getrefcount(x) == before + 1
    del capsule
    assert sys.getrefcount(x) == before


def test_numpy_takes_a_tensor_and_keeps_it():
    t = heddle.empty((1000,), "float32")
    address = t.address
    x = np.from_dlpack(t)
    assert x.ctypes.data == address
    t.copy_from(np.arange(1000))
    del t
    gc.collect()
    np.testing.assert_array_equal(x, np.arange(1000))


def test_a_tensor_keeps_what_numpy_gave():
    x = np.arange(5.0)
    before = sys.getrefcount(x)
    t = heddle.from_dlpack(x)
    assert t.address == x.ctypes.data and t.dtype == "float64"
    again = heddle.from_dlpack(heddle.from_dlpack(t))
    x[0] = 7
    assert again.numpy()[0] == 7
    view = again.numpy()
    del t, again
    gc.collect()
    assert sys.getrefcount(x) > before
    del view
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("takes_version", [False, True])
def test_a_foreign_producer(versioned, takes_version):
    p = Producer(versioned, takes_version=takes_version)
    t = heddle.from_dlpack(p)
    assert t.shape == (2, 3) and t.dtype == "float32" and t.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    q = Producer(versioned)
    total = heddle.as_tensor(q).numpy().sum()  # as_tensor takes producers too
    assert total == 15 and q.freed == 1
    view = t.numpy()
    del t
    gc.collect()
    assert p.freed == 0 and view[1, 2] == 5
    del view
    assert p.freed == 1


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_is_renamed_and_taken_once(versioned):
    p = Producer(versioned)
    capsule = p.capsule()
    t = heddle.from_dlpack(capsule)
    assert API.PyCapsule_GetName(capsule) == b"used_" + NAMES[versioned]
    with pytest.raises(errors.InvalidError, match="used_"):
        heddle.from_dlpack(capsule)
    del capsule
    assert p.freed == 0
    del t
    assert p.freed == 1


@pytest.mark.parametrize("versioned", [False, True])
def test_what_is_refused_stays_the_producers(versioned):
    p = Producer(versioned, device=(8, 0))  # metal
    capsule = p.capsule()
    with pytest.raises(errors.Error):
        heddle.from_dlpack(capsule)
    assert p.freed == 0 and API.PyCapsule_GetName(capsule) == NAMES[versioned]
    p = Producer(versioned)
    p.struct.tensor.bits = 4
    with pytest.raises(errors.Error):
        heddle.from_dlpack(p)
    assert p.freed == 0


def test_another_major_is_given_back():
    p = Producer(True, major=2)
    capsule = p.capsule()
    with pytest.raises(errors.AbiError):
        heddle.from_dlpack(capsule)
    assert p.freed == 1 and API.PyCapsule_GetName(capsule) == b"used_dltensor_versioned"


def test_read_only_memory():
    p = Producer(True, flags=1)
    t = heddle.from_dlpack(p)
    assert not t.numpy().flags.writeable
    with pytest.raises(ValueError):
        t.copy_from(np.zeros((2, 3)))
    with pytest.raises(BufferError):
        t.__dlpack__()
    m = t.__dlpack__(max_version=(1, 0))
    assert Versioned.from_address(API.PyCapsule_GetPointer(m, b"dltensor_versioned")).flags & 1
    x = np.arange(3)
    x.flags.writeable = False
    y = np.from_dlpack(heddle.as_tensor(x))
    assert not y.flags.writeable and y.ctypes.data == x.ctypes.data


def test_arguments():
    t = heddle.as_tensor(np.arange(6.0))
    copied = t.__dlpack__(max_version=(1, 0), copy=True)
    m = Versioned.from_address(API.PyCapsule_GetPointer(copied, b"dltensor_versioned"))
    assert m.flags & 2 and m.tensor.data != t.address
    assert ctypes.c_double.from_address(m.tensor.data + 8).value == 1
    assert np.from_dlpack(t, copy=True).ctypes.data != t.address
    assert np.from_dlpack(t, device="cpu", copy=False).ctypes.data == t.address
    for bad in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            t.__dlpack__(**bad)
    for bad in ({"max_version": 1}, {"max_version": (1, 2, 3)}, {"dl_device": "cpu"}, {"max_version": ("a", "b")}, {"x": 1}):
        with pytest.raises(TypeError):
            t.__dlpack__(**bad)
    with pytest.raises(TypeError):
        t.__dlpack__((1, 0))
    for bad in (3, "x", None, [1]):
        with pytest.raises(TypeError):
            heddle.from_dlpack(bad)


def test_a_producer_that_fails():
    class Bad:
        def __dlpack__(self, **named):
            raise KeyError("mine")

    class Worse:
        def __dlpack__(self, **named):
            return 3

    with pytest.raises(KeyError):
        heddle.from_dlpack(Bad())
    with pytest.raises(TypeError):
        heddle.from_dlpack(Worse())


def test_a_tensor_of_a_device():
    t = heddle.empty((2, 3), "float32", "sim:1")
    t.copy_from(np.arange(6).reshape(2, 3))
    assert t.__dlpack_device__() == (SIM, 1)
    host = t.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    assert Versioned.from_address(API.PyCapsule_GetPointer(host, b"dltensor_versioned")).flags & 2
    np.testing.assert_array_equal(heddle.from_dlpack(host).numpy(), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(np.from_dlpack(t, device="cpu"), np.arange(6).reshape(2, 3))
    with pytest.raises(BufferError):
        t.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(12, 0))
    for version in (None, (1, 0)):
        capsule = t.__dlpack__(max_version=version)
        m = (Versioned if version else Legacy).from_address(API.PyCapsule_GetPointer(capsule, NAMES[version is not None]))
        assert (m.tensor.device_type, m.tensor.device_id) == (SIM, 1) and m.tensor.data


@pytest.mark.parametrize("name", ["sim:1", "opencl:0"])
def test_memory_of_a_device_is_shared(name):
    if not heddle.Device(name).exist:
        pytest.skip(f"there is no {name}")
    t = heddle.empty((4, 8), "float32", name)
    t.copy_from(np.arange(32).reshape(4, 8))
    for version in (None, (1, 0)):
        u = heddle.from_dlpack(t.__dlpack__(max_version=version))
        assert u.device_name == name and u.shape == (4, 8) and u.dtype == "float32"
        np.testing.assert_array_equal(u.numpy(), np.arange(32).reshape(4, 8))
        u.copy_from(np.full((4, 8), 3))
        assert (t.numpy() == 3).all()
        t.copy_from(np.arange(32).reshape(4, 8))
    del t
    gc.collect()
    np.testing.assert_array_equal(u.numpy(), np.arange(32).reshape(4, 8))


@pytest.mark.parametrize("named", [{}, {"device": "sim:0"}, {"device": (12, 0)}, {"device": (SIM, 0)}, {"device": heddle.Device("sim:0")}])
def test_foreign_memory_of_a_device(named):
    """What a stranger made of sim's memory: its handle, with a deleter of its own."""
    t = heddle.empty((2, 3), "float32", "sim:0")
    t.copy_from([[0, 1, 2], [3, 4, 5]])
    ours = t.__dlpack__()
    p = Producer(False, device=(12, 0))
    p.struct.tensor.data = Legacy.from_address(API.PyCapsule_GetPointer(ours, b"dltensor")).tensor.data
    p.struct.tensor.byte_offset = 0
    u = heddle.from_dlpack(p, **named)
    assert u.device_name == "sim:0" and u.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    u.copy_from(np.ones((2, 3)))
    assert t.numpy().sum() == 6 and p.freed == 0
    del u
    assert p.freed == 1


def test_the_device_must_be_the_memorys():
    t = heddle.empty((2, 3), "float32", "sim:0")
    with pytest.raises(errors.InvalidError):
        heddle.from_dlpack(t, device="sim:1")
    with pytest.raises(errors.NoDeviceError):
        heddle.from_dlpack(t, device="sim:44")
    with pytest.raises(errors.NoDeviceError) as caught:
        heddle.from_dlpack(Producer(True, device=(12, 33)))
    assert "33" in str(caught.value)


def test_a_consumer_outlives_tensor_and_context():
    code = """
        import gc, numpy as np, heddle
        context = heddle.Context({"devices": "sim:0"})
        t = heddle.empty((64,), "float32", "sim:0", context)
        t.copy_from(np.arange(64))
        capsule = t.__dlpack__(max_version=(1, 0))
        host = np.from_dlpack(t, device="cpu")
        del t, context
        gc.collect()
        assert host.tolist() == list(range(64))
        del capsule
        gc.collect()
        print("done")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stdout == "done\n" and done.returncode == 0, done.stderr
