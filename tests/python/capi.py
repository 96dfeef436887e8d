"""The C API through ctypes, just enough for tests: one process runs thousands of graphs that way.

Needs HEDDLE_BUILD (the build folder); errors become HeddleError with the library's own words.
"""
import ctypes as c
import json
import os

import numpy as np

LIB = c.CDLL(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle.so"))


class Error(c.Structure):
    _fields_ = [("status", c.c_int32), ("api_code", c.c_int32), ("text", c.c_char * 1016)]


class DType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Stats(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [(name, c.c_uint64) for name in (
        "runs", "bytes_copied", "copies", "device_bytes", "orphan_bytes", "replays", "retries", "failovers")]


class Setting(c.Structure):
    _fields_ = [("key", c.c_char_p), ("value", c.c_char_p)]


class ModelOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("devices", c.c_char_p), ("place", c.POINTER(c.c_char_p)),
                ("n_place", c.c_size_t), ("keep", c.POINTER(c.c_char_p)), ("n_keep", c.c_size_t),
                ("flags", c.c_uint32), ("max_streams", c.c_uint32), ("max_programs", c.c_uint32),
                ("in_flight", c.c_uint32), ("library", c.c_void_p), ("model_name", c.c_char_p),
                ("upload_timeout_ns", c.c_uint64), ("optimize", c.c_char_p),
                ("dims", c.POINTER(c.c_char_p)), ("n_dims", c.c_size_t), ("memory", c.c_char_p),
                ("on_failure", c.c_char_p)]


class Value(c.Structure):
    class Of(c.Union):
        _fields_ = [("i", c.c_int64), ("f", c.c_double), ("s", c.c_char_p), ("data", c.c_void_p)]

    _fields_ = [("kind", c.c_int32), ("reserved", c.c_uint32), ("of", Of), ("bytes", c.c_uint64)]


class HeddleError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
NO_CAPTURE, IGNORE_ANNOTATIONS, NO_REUSE, SLOTS = 1, 2, 4, 8

for name in ("heddle_tensor_data", "heddle_tensor_shape", "heddle_context_device", "heddle_tensor_retain"):
    getattr(LIB, name).restype = c.c_void_p
LIB.heddle_tensor_dtype.restype = DType
LIB.heddle_module_function.restype = c.c_char_p
LIB.heddle_tensor_bytes.restype = c.c_uint64
LIB.heddle_tensor_ndim.restype = c.c_uint32
LIB.heddle_executor_output_count.restype = c.c_uint32


def call(name, *args):
    error = Error()
    status = getattr(LIB, name)(*args, c.byref(error))
    if status != 0:
        raise HeddleError(status, error.text.decode(errors="replace"))


# DLPack's numbers of types that numpy does not have.
OTHERS = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
          "float8_e8m0fnu": 14, "float4_e2m1fn": 17}
NARROW = {"int4": (0, 4), "uint4": (1, 4), "int2": (0, 2), "uint2": (1, 2), "float4_e2m1fn": (17, 4)}  # a byte each


def dtype_of(array):
    if array.dtype.name in NARROW:
        return DType(*NARROW[array.dtype.name], 1)
    if array.dtype.name in OTHERS:
        return DType(OTHERS[array.dtype.name], array.itemsize * 8, 1)
    return DType(CODES[array.dtype.kind], array.itemsize * 8, 1)


def _out(name, *args):
    p = c.c_void_p()
    call(name, *args, c.byref(p))
    return p


class Context:
    def __init__(self, **settings):
        items = [(k.replace("__", "."), str(v)) for k, v in settings.items()]
        array = (Setting * max(1, len(items)))(*[Setting(k.encode(), v.encode()) for k, v in items])
        self.p = _out("heddle_context_create", array, c.c_size_t(len(items)), None, None)

    def close(self):
        LIB.heddle_context_release(self.p)


def tensor(array):
    """A tensor that wraps a numpy array; the array is kept alive by the caller."""
    shape = (c.c_int64 * max(1, array.ndim))(*array.shape)
    strides = (c.c_int64 * max(1, array.ndim))(*[s // array.itemsize for s in array.strides])
    dtype = dtype_of(array)
    return _out("heddle_tensor_wrap", c.c_void_p(array.ctypes.data), dtype, shape, c.c_uint32(array.ndim), strides,
                None, None)


def on_device(ctx, device, array):
    """A copy of a numpy array on a device, and back again: from_device gives an array."""
    dev = _out("heddle_context_find_device", ctx.p, device.encode())
    shape = (c.c_int64 * max(1, array.ndim))(*array.shape)
    t = _out("heddle_tensor_create", dev, DType(CODES[array.dtype.kind], array.itemsize * 8, 1), shape,
             c.c_uint32(array.ndim))
    host = tensor(array)
    try:
        call("heddle_tensor_copy", t, host)
    finally:
        LIB.heddle_tensor_release(host)
    return t


def from_device(t, like):
    array = np.zeros_like(like)
    host = tensor(array)
    try:
        call("heddle_tensor_copy", host, t)
    finally:
        LIB.heddle_tensor_release(host)
    return array


def numpy_of(t):
    dtype = LIB.heddle_tensor_dtype(t)
    kind = {v: k for k, v in CODES.items()}.get(dtype.code)
    narrow = {v: k for k, v in NARROW.items()}.get((dtype.code, dtype.bits))
    if narrow is not None:
        import ml_dtypes
        kind = np.dtype(getattr(ml_dtypes, narrow))
    elif kind is None:
        import ml_dtypes
        kind = np.dtype(getattr(ml_dtypes, {v: k for k, v in OTHERS.items()}[dtype.code]))
    else:
        kind = np.dtype("bool") if kind == "b" else np.dtype(f"{kind}{dtype.bits // 8}")
    ndim = LIB.heddle_tensor_ndim(t)
    shape = (c.c_int64 * ndim).from_address(LIB.heddle_tensor_shape(t)) if ndim else []
    raw = (c.c_char * LIB.heddle_tensor_bytes(t)).from_address(LIB.heddle_tensor_data(t)) if LIB.heddle_tensor_bytes(
        t) else b""
    return np.frombuffer(raw, dtype=kind).reshape(list(shape)).copy()


class Params:
    def __init__(self, blob):
        self.p = _out("heddle_params_parse", blob, c.c_size_t(len(blob)), b"params", None)

    def close(self):
        LIB.heddle_params_release(self.p)


class Graph:
    def __init__(self, text):
        data = text.encode()
        self.p = _out("heddle_graph_parse", data, c.c_size_t(len(data)), b"graph", None)

    def close(self):
        LIB.heddle_graph_release(self.p)


def aligned(array, to=256):
    """A copy at an address that is a multiple of to; compiled code takes that for granted."""
    raw = np.zeros(array.nbytes + to, np.uint8)
    start = -raw.ctypes.data % to
    copy = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Library:
    """A compiled library; arrays that are passed to its functions are written in place."""

    def __init__(self, ctx, path):
        self.p = _out("heddle_module_load", ctx.p, str(path).encode())

    def functions(self):
        names, i = [], 0
        while (name := LIB.heddle_module_function(self.p, c.c_uint32(i))) is not None:
            names.append(name.decode())
            i += 1
        return names

    def call(self, name, *args, align=True):
        if align:
            copies = [aligned(a) if isinstance(a, np.ndarray) else a for a in args]
            result = self.call(name, *copies, align=False)
            for a, copy in zip(args, copies):
                if isinstance(a, np.ndarray):
                    a[...] = copy
            return result
        values, tensors = (Value * max(1, len(args)))(), []
        for v, a in zip(values, args):
            if isinstance(a, np.ndarray):
                tensors.append(tensor(a))
                v.kind, v.of.data = 6, tensors[-1].value
            elif isinstance(a, c.c_void_p):  # a tensor, as on_device gives it
                v.kind, v.of.data = 6, a.value
            elif isinstance(a, float):
                v.kind, v.of.f = 2, a
            elif isinstance(a, int):
                v.kind, v.of.i = 1, a
            elif isinstance(a, str):
                v.kind, v.of.s = 4, a.encode()
        result = Value()
        try:
            call("heddle_module_call", self.p, name.encode(), values, c.c_uint32(len(args)), c.byref(result))
        finally:
            for t in tensors:
                LIB.heddle_tensor_release(t)
        if result.kind == 4:
            return result.of.s.decode()
        return {0: None, 1: result.of.i, 2: result.of.f, 3: bool(result.of.i)}[result.kind]

    def close(self):
        LIB.heddle_module_release(self.p)


class SystemLibrary(Library):
    """What objects in this process have registered."""

    def __init__(self, ctx, prefix=""):
        self.p = _out("heddle_module_system", ctx.p, prefix.encode())


class ImportInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kind", c.c_char_p), ("format", c.c_char_p), ("bytes", c.c_uint64),
                ("n_kernels", c.c_uint32), ("reserved", c.c_uint32)]


def imports(library):
    """The modules that a library carries: (kind, format, names of kernels)."""
    found, info = [], ImportInfo(c.sizeof(ImportInfo))
    LIB.heddle_module_kernel.restype = c.c_char_p
    while LIB.heddle_module_import(library.p, c.c_uint32(len(found)), c.byref(info), None) == 0:
        kernels = [LIB.heddle_module_kernel(library.p, c.c_uint32(len(found)), c.c_uint32(k)).decode()
                   for k in range(info.n_kernels)]
        found.append((info.kind.decode(), info.format.decode(), kernels))
    return found


class Loader:
    """A loader of modules of a kind, of Python functions: load(kind, data) -> (module, used), call(module, function,
    values) -> a number, a string or None; values are numpy views, numbers and strings; devices and dtypes are
    the number of their bytes. A module is an object with
    names() and find(name) -> function or None. What goes wrong is raised as HeddleError(status, text)."""

    LOAD = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_char_p, c.c_void_p, c.c_uint64, c.POINTER(c.c_uint64),
                       c.POINTER(c.c_void_p), c.POINTER(Error))
    RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
    FIND = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p, c.c_char_p)
    CALL = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_void_p, c.POINTER(Value), c.c_uint32, c.POINTER(Value),
                       c.POINTER(Error))
    NAME = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p, c.c_uint32)
    WRITE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t)
    SAVE = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, WRITE, c.c_void_p, c.POINTER(Error))

    class Table(c.Structure):
        pass

    def __init__(self, kind, load, call, save=None):
        """save(module) -> the pieces of its bytes, for packing."""
        self.save_ = save
        self.load_, self.call_, self.live, self.released, self.kept = load, call, {}, 0, []
        self.table = Loader.Table(c.sizeof(Loader.Table), Loader.LOAD(self._load), Loader.RELEASE(self._release),
                                  Loader.FIND(self._find), Loader.CALL(self._call), Loader.NAME(self._name),
                                  Loader.SAVE(self._save) if save else Loader.SAVE())
        globals()["call"]("heddle_module_register_loader", kind.encode(), c.byref(self.table), None)

    def _guard(self, err, work):
        try:
            work()
            return 0
        except HeddleError as e:
            err.contents.status, err.contents.text = e.status, str(e).encode()[:1000]
            return e.status

    def _keep(self, thing):
        self.kept.append(thing)
        return len(self.kept)

    def _load(self, _, kind, data, n, used, out, err):
        def work():
            module, used[0] = self.load_(kind.decode(), c.string_at(data, n))
            out[0] = self._keep(module)
            self.live[out[0]] = module
        return self._guard(err, work)

    def _release(self, _, module):
        del self.live[module]
        self.released += 1

    def _find(self, _, module, name):
        function = self.live[module].find(name.decode())
        return None if function is None else self._keep(function)

    def _call(self, _, module, function, args, n, result, err):
        def view(v):
            if v.kind == 6:
                t = c.c_void_p(v.of.data)
                shape = (c.c_int64 * LIB.heddle_tensor_ndim(t)).from_address(LIB.heddle_tensor_shape(t))
                raw = (c.c_char * LIB.heddle_tensor_bytes(t)).from_address(LIB.heddle_tensor_data(t))
                dtype = LIB.heddle_tensor_dtype(t)
                kind = {v: k for k, v in CODES.items()}[dtype.code]
                kind = np.dtype("bool" if kind == "b" else f"{kind}{dtype.bits // 8}")
                return np.frombuffer(raw, kind).reshape(list(shape))
            return v.of.s if v.kind == 4 else {0: None, 1: v.of.i, 2: v.of.f, 3: bool(v.of.i), 10: v.of.i,
                                                          11: v.of.i}[v.kind]

        def work():
            assert result.contents.kind == 0
            r = self.call_(self.live[module], self.kept[function - 1], [view(args[i]) for i in range(n)])
            if isinstance(r, (bool, np.bool_)):
                result.contents.kind, result.contents.of.i = 3, int(r)
            elif isinstance(r, int):
                result.contents.kind, result.contents.of.i = 1, r
            elif isinstance(r, float):
                result.contents.kind, result.contents.of.f = 2, r
            elif isinstance(r, str):
                self._keep(r.encode())
                result.contents.kind, result.contents.of.s = 4, self.kept[-1]
        return self._guard(err, work)

    def _save(self, _, module, write, to, err):
        def work():
            for piece in self.save_(self.live[module]):
                write(to, piece, len(piece))
        return self._guard(err, work)

    def _name(self, _, module, i):
        names = self.live[module].names()
        if i >= len(names):
            return None
        self._keep(c.create_string_buffer(names[i].encode()))
        return c.addressof(self.kept[-1])


Loader.Table._fields_ = [("struct_size", c.c_size_t), ("load", Loader.LOAD), ("release", Loader.RELEASE),
                         ("find", Loader.FIND), ("call", Loader.CALL), ("name", Loader.NAME), ("save", Loader.SAVE)]


def unpack(library, name=None):
    """Graph and parameters of a model inside of a library."""
    graph, params = Graph.__new__(Graph), Params.__new__(Params)
    graph.p, params.p = c.c_void_p(), c.c_void_p()
    call("heddle_model_unpack", library.p, name.encode() if name else None, c.byref(graph.p), c.byref(params.p))
    return graph, params


class Model:
    def __init__(self, ctx, graph, params=None, devices=None, place=(), keep=(), flags=0, max_streams=0, library=None,
                 optimize=None, memory=None, in_flight=0, on_failure=None):
        rules = (c.c_char_p * max(1, len(place)))(*[r.encode() for r in place])
        kept = (c.c_char_p * max(1, len(keep)))(*[k.encode() for k in keep])
        options = ModelOptions(c.sizeof(ModelOptions), devices.encode() if devices else None, rules, len(place), kept,
                               len(keep), flags, max_streams, 0, in_flight, library.p if library else None, None, 0,
                               optimize.encode() if optimize is not None else None,
                               memory=memory.encode() if memory is not None else None,
                               on_failure=on_failure.encode() if on_failure is not None else None)
        self.p = _out("heddle_model_create", ctx.p, graph.p, params.p if params else None, c.byref(options))

    @classmethod
    def load(cls, ctx, path, params=None, devices=None, place=(), flags=0):
        """From files: a graph, or a library that holds a model."""
        rules = (c.c_char_p * max(1, len(place)))(*[r.encode() for r in place])
        options = ModelOptions(struct_size=c.sizeof(ModelOptions), devices=devices.encode() if devices else None, place=rules,
                               n_place=len(place), flags=flags)
        model = cls.__new__(cls)
        model.p = _out("heddle_model_load", ctx.p, str(path).encode(), str(params).encode() if params else None,
                       c.byref(options))
        return model

    def explain_json(self):
        p = c.c_void_p()
        call("heddle_model_explain", self.p, c.c_int(1), None, None, c.c_size_t(0), c.byref(p))
        text = c.cast(p, c.c_char_p).value.decode()
        LIB.heddle_free(p)
        return json.loads(text)

    def close(self):
        LIB.heddle_model_release(self.p)


class Executor:
    def __init__(self, model):
        self.p = _out("heddle_executor_create", model.p)

    def set_input(self, name, array):
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        t = tensor(array)
        try:
            call("heddle_executor_set_input_by_name", self.p, name.encode(), t)
        finally:
            LIB.heddle_tensor_release(t)

    def run(self, timeout_ns=60_000_000_000):
        call("heddle_executor_run", self.p, c.c_uint64(timeout_ns))

    def start(self):
        call("heddle_executor_start", self.p)

    def wait(self, timeout_ns=60_000_000_000):
        call("heddle_executor_wait", self.p, c.c_uint64(timeout_ns))

    def output(self, i):
        t = _out("heddle_executor_view_output", self.p, c.c_uint32(i))
        try:
            return numpy_of(t)
        finally:
            LIB.heddle_tensor_release(t)

    def stats(self):
        s = Stats(c.sizeof(Stats))
        call("heddle_executor_get_stats", self.p, c.byref(s))
        return s

    def outputs(self):
        return [self.output(i) for i in range(LIB.heddle_executor_output_count(self.p))]

    def explain_json(self):
        p = c.c_void_p()
        call("heddle_executor_explain", self.p, c.c_int(1), c.byref(p))
        text = c.cast(p, c.c_char_p).value.decode()
        LIB.heddle_free(p)
        return json.loads(text)

    def run_to(self, node, output=0):
        t = _out("heddle_executor_run_to", self.p, node.encode(), c.c_uint32(output))
        try:
            return numpy_of(t)
        finally:
            LIB.heddle_tensor_release(t)

    def close(self):
        LIB.heddle_executor_release(self.p)
