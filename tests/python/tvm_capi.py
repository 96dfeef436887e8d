"""TVM's C runtime API of libheddle_tvm.so through ctypes, as a program written for TVM calls it: modules, functions by
name, arrays. Needs HEDDLE_BUILD; what fails is a TVMError with TVMGetLastError's words.
"""
import ctypes as c
import os

import numpy as np

LIB = c.CDLL(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle_tvm.so"))
LIB.TVMGetLastError.restype = c.c_char_p

INT, FLOAT, HANDLE, NULL, DEVICE, TENSOR, MODULE, FUNCTION, STRING, BYTES, NDARRAY = 0, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13


class TVMError(Exception):
    pass


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class ByteArray(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t)]


class Value(c.Union):
    _fields_ = [("i", c.c_int64), ("f", c.c_double), ("p", c.c_void_p), ("device", c.c_int32 * 2)]


def check(rc):
    if rc != 0:
        raise TVMError(LIB.TVMGetLastError().decode(errors="replace"))


class Device:
    def __init__(self, kind, number=0):
        self.kind, self.number = kind, number


CPU = Device(1)


def dtype_of(t):
    if (t.code, t.bits) in ((1, 1), (6, 8)):
        return np.dtype(bool)
    return np.dtype("iuf"[t.code] + str(t.bits // 8))


class Array:
    """An NDArray: made for a numpy array, or what a function gave."""

    def __init__(self, p):
        self.p = p
        self.t = c.cast(p, c.POINTER(DLTensor)).contents

    @classmethod
    def of(cls, array, device=CPU):
        array = np.ascontiguousarray(array)
        out = cls.empty(array.shape, array.dtype, device)
        out.write(array)
        return out

    @classmethod
    def empty(cls, shape, dtype, device=CPU):
        dtype, p = np.dtype(dtype), c.c_void_p()
        code, bits = (1, 1) if dtype == bool else ({"i": 0, "u": 1, "f": 2}[dtype.kind], dtype.itemsize * 8)
        check(LIB.TVMArrayAlloc((c.c_int64 * len(shape))(*shape), len(shape), code, bits, 1, device.kind, device.number,
                                c.byref(p)))
        return cls(p)

    @property
    def shape(self):
        return tuple(self.t.shape[i] for i in range(self.t.ndim))

    def numpy(self):
        out = np.zeros(self.shape, dtype_of(self.t))
        check(LIB.TVMArrayCopyToBytes(self.p, out.ctypes.data_as(c.c_void_p), c.c_size_t(out.nbytes)))
        return out

    def write(self, array):
        array = np.ascontiguousarray(array)
        check(LIB.TVMArrayCopyFromBytes(self.p, array.ctypes.data_as(c.c_void_p), c.c_size_t(array.nbytes)))

    def __del__(self):
        LIB.TVMArrayFree(self.p)


class Plain:
    """A DLTensor of the caller's own, over a numpy array's memory."""

    def __init__(self, array):
        self.array = array
        self.shape = (c.c_int64 * array.ndim)(*array.shape)
        code, bits = (1, 1) if array.dtype == bool else ("iuf".index(array.dtype.kind), array.dtype.itemsize * 8)
        self.t = DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, self.shape, None, 0)


def aligned(shape, dtype, to=256):
    raw = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + to, np.uint8)
    start = -raw.ctypes.data % to
    return raw[start:start + raw.size - to].view(dtype).reshape(shape)


def pack(value, out, kept):
    if value is None:
        return NULL
    if isinstance(value, (bool, int, np.integer)):
        out.i = int(value)
        return INT
    if isinstance(value, float):
        out.f = value
        return FLOAT
    if isinstance(value, Device):
        out.device[0], out.device[1] = value.kind, value.number
        return DEVICE
    if isinstance(value, str):
        kept.append(c.create_string_buffer(value.encode()))
        out.p = c.addressof(kept[-1])
        return STRING
    if isinstance(value, bytes):
        kept.append(c.create_string_buffer(value, len(value)))
        kept.append(ByteArray(c.addressof(kept[-1]), len(value)))
        out.p = c.addressof(kept[-1])
        return BYTES
    if isinstance(value, np.ndarray):
        value = Array.of(value)
    kept.append(value)
    if isinstance(value, Plain):
        out.p = c.addressof(value.t)
        return TENSOR
    out.p = value.p.value
    return {Array: NDARRAY, Module: MODULE, Function: FUNCTION}[type(value)]


def unpack(value, code):
    if code == NULL:
        return None
    if code == INT:
        return value.i
    if code == FLOAT:
        return value.f
    if code == STRING:
        return c.string_at(value.p).decode()
    if code == BYTES:
        b = c.cast(value.p, c.POINTER(ByteArray)).contents
        return c.string_at(b.data, b.size)
    return {NDARRAY: Array, MODULE: Module, FUNCTION: Function}[code](c.c_void_p(value.p))


class Function:
    def __init__(self, p):
        self.p = p

    def __call__(self, *args):
        values, codes, kept = (Value * (len(args) + 1))(), (c.c_int * (len(args) + 1))(), []
        for i, arg in enumerate(args):
            codes[i] = pack(arg, values[i], kept)
        ret, code = Value(), c.c_int()
        check(LIB.TVMFuncCall(self.p, values, codes, len(args), c.byref(ret), c.byref(code)))
        return unpack(ret, code.value)

    def __del__(self):
        LIB.TVMFuncFree(self.p)


class Module:
    def __init__(self, p):
        self.p = p

    def find(self, name, imports=False):
        p = c.c_void_p()
        check(LIB.TVMModGetFunction(self.p, name.encode(), int(imports), c.byref(p)))
        return Function(p) if p.value else None

    def __getitem__(self, name):
        f = self.find(name)
        assert f is not None, name
        return f

    def __del__(self):
        LIB.TVMModFree(self.p)


def load(path):
    p = c.c_void_p()
    check(LIB.TVMModLoadFromFile(str(path).encode(), b"", c.byref(p)))
    return Module(p)


def function(name):
    p = c.c_void_p()
    check(LIB.TVMFuncGetGlobal(name.encode(), c.byref(p)))
    return Function(p) if p.value else None
