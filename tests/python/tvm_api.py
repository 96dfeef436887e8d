"""TVM's C API of libheddle_tvm.so through ctypes, as bindings use it: handles in, Python values out. The library is loaded
RTLD_LOCAL, as ctypes does. Needs HEDDLE_BUILD.

call(f, 1, 2.0, "s", b"b", array, Module, Function, None, DType(...), Device(...)) gives what the function returns.
"""
import ctypes as c
import os

import numpy as np

LIB = c.CDLL(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle_tvm.so.0"))
SIM = LIB.heddle_plugin_device_type(b"sim")  # the device type of sim's devices, through the library that this one loads
INT, FLOAT, HANDLE, NULL, DTYPE, DEVICE, TENSOR, MODULE, FUNCTION, STR, BYTES, NDARRAY = 0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13


class DType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("id", c.c_int32)]


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", Device), ("ndim", c.c_int32), ("dtype", DType),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class Value(c.Union):
    _fields_ = [("i", c.c_int64), ("f", c.c_double), ("p", c.c_void_p), ("s", c.c_char_p), ("dtype", DType),
                ("device", Device)]


class ByteArray(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t)]


CALLBACK = c.CFUNCTYPE(c.c_int, c.POINTER(Value), c.POINTER(c.c_int), c.c_int, c.c_void_p, c.c_void_p)
FINISH = c.CFUNCTYPE(None, c.c_void_p)
for _name in ("TVMGetLastError", "TVMGetLastBacktrace"):
    getattr(LIB, _name).restype = c.c_char_p
LIB.TVMGetLastPythonError.restype = c.c_void_p


class TVMError(Exception):
    pass


def last_error():
    return LIB.TVMGetLastError().decode(errors="replace")


def must(name, *args):
    if getattr(LIB, name)(*args) != 0:
        raise TVMError(last_error())


class Handle:
    """free: the function of the API that gives it back."""
    free = None

    def __init__(self, p):
        self.p = p if isinstance(p, c.c_void_p) else c.c_void_p(p)

    def close(self):
        if self.p:
            must(self.free, self.p)
        self.p = c.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Module(Handle):
    free = "TVMModFree"

    def function(self, name, imports=False):
        """None where there is none."""
        p = c.c_void_p()
        must("TVMModGetFunction", self.p, name.encode(), c.c_int(imports), c.byref(p))
        return Function(p) if p else None

    def __getitem__(self, name):
        f = self.function(name)
        assert f is not None, name
        return f


class Function(Handle):
    free = "TVMFuncFree"

    def __call__(self, *args):
        return call(self.p, *args)


class Array(Handle):
    free = "TVMArrayFree"

    @property
    def t(self):
        return DLTensor.from_address(self.p.value)

    def numpy(self):
        t = self.t
        kind = "bool" if (t.dtype.code, t.dtype.bits) == (1, 1) else f"{'iuf'[t.dtype.code]}{t.dtype.bits // 8}"
        out = np.zeros([t.shape[i] for i in range(t.ndim)], kind)
        must("TVMArrayCopyToBytes", self.p, c.c_void_p(out.ctypes.data), c.c_size_t(out.nbytes))
        return out

    def write(self, array):
        array = np.ascontiguousarray(array)
        must("TVMArrayCopyFromBytes", self.p, c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes))


def empty(shape, dtype=np.float32, device=(1, 0)):
    dtype, p = np.dtype(dtype), c.c_void_p()
    code, bits = (1, 1) if dtype.kind == "b" else ("iuf".index(dtype.kind), dtype.itemsize * 8)
    must("TVMArrayAlloc", (c.c_int64 * max(1, len(shape)))(*shape), len(shape), code, bits, 1, *device, c.byref(p))
    return Array(p)


def array(values, device=(1, 0)):
    values = np.asarray(values)
    out = empty(values.shape, values.dtype, device)
    out.write(values)
    return out


def load(path, format=""):
    p = c.c_void_p()
    must("TVMModLoadFromFile", str(path).encode(), format.encode(), c.byref(p))
    return Module(p)


def put(v, a, keep):
    """Writes an argument, and gives its code."""
    if a is None:
        return NULL
    if isinstance(a, (bool, int, np.integer)):
        v.i = int(a)
        return INT
    if isinstance(a, float):
        v.f = a
        return FLOAT
    if isinstance(a, str):
        keep.append(a.encode())
        v.s = keep[-1]
        return STR
    if isinstance(a, (bytes, bytearray)):
        keep.append(c.create_string_buffer(bytes(a), len(a)))
        keep.append(ByteArray(c.addressof(keep[-1]), len(a)))
        v.p = c.addressof(keep[-1])
        return BYTES
    if isinstance(a, DType):
        v.dtype = a
        return DTYPE
    if isinstance(a, Device):
        v.device = a
        return DEVICE
    if isinstance(a, DLTensor):
        keep.append(a)
        v.p = c.addressof(a)
        return TENSOR
    if isinstance(a, c.c_void_p):
        v.p = a.value
        return HANDLE
    v.p = a.p.value
    return {Module: MODULE, Function: FUNCTION, Array: NDARRAY}[type(a)]


def take(v, code):
    """A value that was given, or a result: its reference goes over."""
    if code == NULL:
        return None
    if code == STR:
        return v.s.decode()
    if code == BYTES:
        b = ByteArray.from_address(v.p)
        return c.string_at(b.data, b.size)
    if code == DTYPE:
        return v.dtype.code, v.dtype.bits, v.dtype.lanes
    if code == DEVICE:
        return v.device.type, v.device.id
    return {INT: lambda: v.i, FLOAT: lambda: v.f, HANDLE: lambda: c.c_void_p(v.p), MODULE: lambda: Module(v.p),
            FUNCTION: lambda: Function(v.p), NDARRAY: lambda: Array(v.p), TENSOR: lambda: Array(v.p)}[code]()


def call(f, *args):
    values, codes, keep = (Value * max(1, len(args)))(), (c.c_int * max(1, len(args)))(), []
    for i, a in enumerate(args):
        codes[i] = put(values[i], a, keep)
    result, code = Value(), c.c_int(99)
    must("TVMFuncCall", f, values, codes, len(args), c.byref(result), c.byref(code))
    return take(result, code.value)


alive = {}  # callbacks of functions that may still be called, by number


def function(work, finished=None):
    """A Python function as a handle: work(*args) gets values, and handles that are borrowed."""
    number = len(alive) + 1

    def run(values, codes, n, ret, _):
        try:
            result = work(*[take(values[i], codes[i]) for i in range(n)])
        except Exception as e:
            LIB.TVMAPISetLastError(f"{type(e).__name__}: {e}".encode())
            return -1
        if result is not None:
            v, keep = Value(), []
            code = c.c_int(put(v, result, keep))
            if LIB.TVMCFuncSetReturn(c.c_void_p(ret), c.byref(v), c.byref(code), 1) != 0:
                return -1
        return 0

    def finish(_):
        if finished is not None:
            finished.append(number)

    alive[number] = CALLBACK(run), FINISH(finish)
    p = c.c_void_p()
    must("TVMFuncCreateFromCFunc", alive[number][0], c.c_void_p(number), alive[number][1], c.byref(p))
    return Function(p)


def register(name, work, override=False):
    with (work if isinstance(work, Function) else function(work)) as f:
        must("TVMFuncRegisterGlobal", name.encode(), f.p, int(override))


def remove(name):
    must("TVMFuncRemoveGlobal", name.encode())


def find(name):
    p = c.c_void_p()
    must("TVMFuncGetGlobal", name.encode(), c.byref(p))
    return Function(p) if p else None


def names():
    n, out = c.c_int(), c.POINTER(c.c_char_p)()
    must("TVMFuncListGlobalNames", c.byref(n), c.byref(out))
    return [out[i].decode() for i in range(n.value)]
