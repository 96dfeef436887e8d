"""TVM's C runtime API: arrays, DLPack, memory of devices, and streams.
labels: ctypes
timeout: 300
"""
import ctypes as c
import os

import numpy as np
import pytest

os.environ["HEDDLE_DEVICES"] = "cpu,sim:0,sim:1"  # of the types that two plugins have, those in this list are meant

import tvm_api as api


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool", "float64"])
def test_arrays(dtype):
    values = (np.arange(24).reshape(2, 3, 4) % 5).astype(dtype)
    with api.array(values) as x, api.empty((2, 3, 4), dtype) as y, api.empty((24,), dtype) as flat:
        assert x.t.device.type == 1 and x.t.ndim == 3 and [x.t.shape[i] for i in range(3)] == [2, 3, 4]
        assert (x.t.dtype.code, x.t.dtype.bits) == ((1, 1) if dtype == "bool" else
                                                    ("iuf".index(values.dtype.kind), values.itemsize * 8))
        assert not x.t.strides and x.t.data % 64 == 0
        for target in (y, flat):
            api.must("TVMArrayCopyFromTo", x.p, target.p, None)
        np.testing.assert_array_equal(y.numpy(), values)
        np.testing.assert_array_equal(flat.numpy(), values.reshape(-1))
        with pytest.raises(api.TVMError, match=f"the array has {values.nbytes} bytes, and 3 are given"):
            api.must("TVMArrayCopyToBytes", x.p, None, c.c_size_t(3))
        with api.empty((5,), dtype) as small, pytest.raises(api.TVMError, match="they must be equal"):
            api.must("TVMArrayCopyFromTo", x.p, small.p, None)


def test_arrays_without_elements_and_without_dimensions():
    with api.empty((0, 3)) as x, api.array(np.float32(2.5)) as y:
        assert x.numpy().shape == (0, 3) and y.numpy() == 2.5
    with pytest.raises(api.TVMError, match="dimension 1 is -2"):
        api.empty((2, -2))
    with pytest.raises(api.TVMError, match="no device 7 of DLPack's type 1?2: there are .*cpu:0"):
        api.empty((2,), device=(2, 7))
    with pytest.raises(api.TVMError, match="2\\^63"):
        api.empty((1 << 40, 1 << 40))
    with pytest.raises(api.TVMError, match="no array"):
        api.must("TVMArrayFree", c.create_string_buffer(100))


def test_arrays_on_a_device():
    """The device sim has a type of its own; its handles are not addresses."""
    values = np.arange(10, dtype=np.float32)
    with api.array(values, (12, 1)) as x, api.empty((10,), device=(12, 0)) as y, api.empty((10,)) as z:
        assert (x.t.device.type, x.t.device.id) == (api.SIM, 1)
        api.must("TVMArrayCopyFromTo", x.p, y.p, None)
        api.must("TVMDeviceCopyDataFromTo", y.p, z.p, None)
        np.testing.assert_array_equal(z.numpy(), values)
        plain = api.DLTensor.from_buffer_copy(y.t)  # a copy of the struct names the same memory
        api.must("TVMDeviceCopyDataFromTo", c.byref(plain), z.p, None)
        plain.byte_offset = 4
        with pytest.raises(api.TVMError, match="begin where its buffer does"):
            api.must("TVMDeviceCopyDataFromTo", c.byref(plain), z.p, None)


def test_dlpack():
    class Managed(c.Structure):
        _fields_ = [("t", api.DLTensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]

    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    m = c.POINTER(Managed)()
    with api.array(values) as x:
        api.must("TVMArrayToDLPack", x.p, c.byref(m))
    read = np.frombuffer((c.c_char * 24).from_address(m.contents.t.data), np.int32).reshape(2, 3)
    np.testing.assert_array_equal(read, values)  # after the array is gone
    p = c.c_void_p()
    api.must("TVMArrayFromDLPack", m, c.byref(p))
    with api.Array(p) as y:
        assert y.t.data == m.contents.t.data
        np.testing.assert_array_equal(y.numpy(), values)
    api.must("TVMArrayToDLPack", api.array(values).p, c.byref(m))
    api.LIB.TVMDLManagedTensorCallDeleter(m)
    dropped = []
    deleter = c.CFUNCTYPE(None, c.c_void_p)(dropped.append)
    shape = (c.c_int64 * 2)(2, 3)
    own = Managed(api.DLTensor(values.ctypes.data, api.Device(1, 0), 2, api.DType(0, 32, 1), shape, None, 0), None,
                  c.cast(deleter, c.c_void_p))
    api.must("TVMArrayFromDLPack", c.byref(own), c.byref(p))
    api.Array(p).close()
    assert dropped == [c.addressof(own)]
    own.t.device = api.Device(2, 7)
    with pytest.raises(api.TVMError, match="TVMArrayFromDLPack: .*there is no device 7 of DLPack's type 2"):
        api.must("TVMArrayFromDLPack", c.byref(own), c.byref(p))


def test_dlpack_of_a_device():
    """A device's memory goes out and comes in; others' memory too, which goes back when the array is freed."""
    class Managed(c.Structure):
        _fields_ = [("t", api.DLTensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]

    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    m, p, q = c.POINTER(Managed)(), c.c_void_p(), c.c_void_p()
    with api.array(values, (12, 1)) as x:
        api.must("TVMArrayToDLPack", x.p, c.byref(m))
        assert (m.contents.t.device.type, m.contents.t.device.id) == (api.SIM, 1)
        dropped = []
        deleter = c.CFUNCTYPE(None, c.c_void_p)(dropped.append)
        own = Managed(m.contents.t, None, c.cast(deleter, c.c_void_p))
        api.must("TVMArrayFromDLPack", m, c.byref(p))
        with api.Array(p) as same, api.empty((2, 3), "int32") as back:
            assert same.t.data == x.t.data
            api.must("TVMArrayFromDLPack", c.byref(own), c.byref(q))
            with api.Array(q) as other:
                np.testing.assert_array_equal(other.numpy(), values)
                api.must("TVMArrayCopyFromTo", api.array(values * 3).p, other.p, None)
                assert not dropped
            assert dropped == [c.addressof(own)]
            api.must("TVMArrayCopyFromTo", x.p, back.p, None)
            np.testing.assert_array_equal(back.numpy(), values * 3)
            np.testing.assert_array_equal(same.numpy(), values * 3)


@pytest.mark.parametrize("device", [(1, 0), (12, 0), (api.SIM, 0)])
def test_device_memory(device):
    p, q = c.c_void_p(), c.c_void_p()
    dev, byte = api.Device(*device), api.DType(1, 8, 1)
    api.must("TVMDeviceAllocDataSpace", dev, c.c_size_t(64), c.c_size_t(4096), byte, c.byref(p))
    shape = (c.c_int64 * 2)(4, 4)
    api.must("TVMDeviceAllocDataSpaceWithScope", dev, 2, shape, api.DType(2, 32, 1), None, c.byref(q))
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    tensors = [api.DLTensor(x.value, dev, 2, api.DType(2, 32, 1), shape, None, 0) for x in (p, q)]
    with api.array(values) as x, api.empty((4, 4)) as y:
        for a, b in ((x.t, tensors[0]), tensors, (tensors[1], y.t)):
            api.must("TVMDeviceCopyDataFromTo", c.byref(a), c.byref(b), None)
        np.testing.assert_array_equal(y.numpy(), values)
    assert device != (1, 0) or p.value % 4096 == 0
    for x in (p, q):
        api.must("TVMDeviceFreeDataSpace", dev, x)
    with pytest.raises(api.TVMError, match="no memory that was handed out"):
        api.must("TVMDeviceFreeDataSpace", dev, p)
    with pytest.raises(api.TVMError, match="scope 'global.texture' is not here"):
        api.must("TVMDeviceAllocDataSpaceWithScope", dev, 2, shape, byte, b"global.texture", c.byref(q))


# ---- streams

@pytest.mark.parametrize("device", [(1, 0), (12, 0), (api.SIM, 0)])
def test_streams(device):
    s, t = c.c_void_p(), c.c_void_p()
    api.must("TVMStreamCreate", *device, c.byref(s))
    api.must("TVMStreamCreate", *device, c.byref(t))
    for name, args in (("TVMSetStream", (s,)), ("TVMSetStream", (None,)), ("TVMSynchronize", (t,)),
                       ("TVMSynchronize", (None,)), ("TVMStreamStreamSynchronize", (s, t)), ("TVMStreamFree", (s,)),
                       ("TVMStreamFree", (t,))):
        api.must(name, *device, *args)
    api.must("TVMStreamCreate", *device, c.byref(s))
    with pytest.raises(api.TVMError, match="no stream of device .12, 1."):
        api.must("TVMSetStream", 12, 1, s)
    with api.find("runtime.TVMSetStream") as f:
        f(*device, s)
        with pytest.raises(api.TVMError, match="no stream of device"):
            f(12, 1, s)
    api.must("TVMStreamFree", *device, s)
    with pytest.raises(api.TVMError, match="there is no device 0 of DLPack's type 2"):
        api.must("TVMSynchronize", 2, 0, None)
