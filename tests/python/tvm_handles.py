"""Modules, functions and arrays of TVM's C API that give themselves back when Python drops them: module["run"](), with
numpy arrays as arguments where an array is expected.
"""
import weakref

import numpy as np

import tvm_api as api
from tvm_api import TVMError  # noqa: F401

CPU = api.Device(1, 0)


class Held:
    def __init__(self, handle):
        self.handle = handle
        weakref.finalize(self, api.must, handle.free, handle.p).atexit = False


class Array(Held):
    @classmethod
    def of(cls, values, device=CPU):
        return cls(api.array(values, (device.type, device.id)))

    @classmethod
    def empty(cls, shape, dtype, device=CPU):
        return cls(api.empty(shape, dtype, (device.type, device.id)))

    @property
    def shape(self):
        return tuple(self.handle.t.shape[i] for i in range(self.handle.t.ndim))

    @property
    def device(self):
        return self.handle.t.device.type, self.handle.t.device.id

    def numpy(self):
        return self.handle.numpy()

    def write(self, values):
        self.handle.write(values)


class Function(Held):
    def __call__(self, *args):
        kept = [Array.of(a) if isinstance(a, np.ndarray) else a for a in args]
        result = self.handle(*[a.handle if isinstance(a, (Held, Plain)) else a for a in kept])
        kinds = {api.Array: Array, api.Function: Function, api.Module: Module}
        return kinds[type(result)](result) if type(result) in kinds else result


class Module(Held):
    def find(self, name, imports=False):
        """None where there is none."""
        f = self.handle.function(name, imports)
        return Function(f) if f is not None else None

    def __getitem__(self, name):
        f = self.find(name)
        assert f is not None, name
        return f


class Plain:
    """A DLTensor of the caller's own, over a numpy array's memory."""

    def __init__(self, array):
        self.array, self.shape = array, (api.c.c_int64 * array.ndim)(*array.shape)
        dtype = api.DType("iuf".index(array.dtype.kind), array.dtype.itemsize * 8, 1)
        self.handle = api.DLTensor(array.ctypes.data, api.Device(1, 0), array.ndim, dtype, self.shape, None, 0)


def aligned(shape, dtype, to=256):
    raw = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + to, np.uint8)
    start = -raw.ctypes.data % to
    return raw[start:start + raw.size - to].view(dtype).reshape(shape)


def load(path):
    return Module(api.load(path))


def function(name):
    f = api.find(name)
    return Function(f) if f is not None else None
