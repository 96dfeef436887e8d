"""What a session has at the other end: devices, arrays, functions and modules."""
from __future__ import annotations

import json
import math
import struct
import weakref
from typing import Any, Callable, Sequence

import numpy as np

from .. import _core
from ..benchmark import BenchmarkResult
from ..device import Device
from ..errors import FormatError, UnsupportedError
from . import _wire
from ._connection import Connection
from ._wire import DeviceValue, DType, Handle, TensorValue

MASK = 128
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}


def dtype_of(name: Any) -> DType:
    """A dtype by its name, or of numpy."""
    name = {"float": "float32", "int": "int32", "uint": "uint32"}.get(name, name) if isinstance(name, str) else str(np.dtype(name))
    name, _, lanes = name.partition("x")
    word = name.rstrip("0123456789")
    if word not in _CODES:
        raise TypeError(f"arrays of dtype {name} are not sent")
    bits = int(name[len(word):] or (8 if word == "bool" else 32))
    return DType(_CODES[word], bits, int(lanes or 1))


def name_of(dtype: DType) -> str:
    words = {code: word for word, code in _CODES.items()}
    if dtype.code not in words:
        raise UnsupportedError(f"the remote array's dtype has the code {dtype.code}, which is not known")
    lanes = f"x{dtype.lanes}" if dtype.lanes != 1 else ""
    if dtype.code == 6 or (dtype.code == 1 and dtype.bits == 1):
        return "bool" + lanes
    return f"{words[dtype.code]}{dtype.bits}{lanes}"


def _numpy_dtype(name: str) -> np.dtype:
    return np.dtype(np.uint16) if name == "bfloat16" else np.dtype(name)


class RemoteDevice(Device):
    """A device of a session: `device_type` is its type and 128 for each session before and of it, as in TVM."""

    __slots__ = ("_session", "_own_type")

    def __init__(self, session: Any, device_type: int, device_id: int):
        super().__init__(device_type + MASK * (session.table_index + 1), device_id)
        self._session = session
        self._own_type = device_type

    @property
    def session(self) -> Any:
        """The session that the device is of."""
        return self._session

    @property
    def value(self) -> DeviceValue:
        """The device as its server has it."""
        return DeviceValue(self._own_type, self.device_id)

    def _attribute(self, kind: int) -> Any:
        return self._session.connection.one(_wire.ATTRIBUTE, self.value, kind)

    @property
    def exist(self) -> bool:
        return bool(self._attribute(0))

    @property
    def info(self) -> dict[str, Any]:
        raise UnsupportedError(f"{self!r}: a remote device reports its attributes one by one, such as device_name")

    @property
    def name(self) -> str:
        return repr(self)

    def sync(self, stream: Any = None) -> None:
        self._session.connection.one(_wire.SYNC, self.value, stream if stream is not None else Handle(0))

    def create_raw_stream(self) -> Any:
        """A stream of the device."""
        return self._session.connection.one(_wire.STREAM, self.value)

    def free_raw_stream(self, stream: Any) -> None:
        self._session.connection.one(_wire.FREE_STREAM, self.value, stream)

    def set_raw_stream(self, stream: Any) -> None:
        self._session.connection.one(_wire.SET_STREAM, self.value, stream if stream is not None else Handle(0))

    max_threads_per_block = property(lambda self: self._attribute(1))
    warp_size = property(lambda self: self._attribute(2))
    max_shared_memory_per_block = property(lambda self: self._attribute(3))
    compute_version = property(lambda self: self._attribute(4))
    device_name = property(lambda self: self._attribute(5))
    max_clock_rate = property(lambda self: self._attribute(6))
    multi_processor_count = property(lambda self: self._attribute(7))
    api_version = property(lambda self: self._attribute(11))
    driver_version = property(lambda self: self._attribute(12))
    l2_cache_size_bytes = property(lambda self: self._attribute(13))
    total_global_memory = property(lambda self: self._attribute(14))
    available_global_memory = property(lambda self: self._attribute(15))

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        text = self._attribute(8)
        return json.loads(text) if isinstance(text, str) else None

    def __repr__(self) -> str:
        return f"remote[{self._session.table_index}]:{self.MASK2STR.get(self._own_type, self._own_type)}({self.device_id})"

    def __reduce__(self) -> Any:
        raise TypeError("a remote device belongs to its session and is not pickled")

    def _empty(self, shape: Sequence[int], dtype: Any, mem_scope: str | None) -> "RemoteArray":
        """For nd.empty and nd.array."""
        sizes = tuple(int(n) for n in shape)
        if any(n < 0 for n in sizes):
            raise ValueError(f"an array of shape {sizes}")
        like = TensorValue(0, self.value, dtype_of(dtype), sizes)
        got = self._session.connection.one(_wire.ALLOC_SCOPE, like, mem_scope or None)
        if not isinstance(got, Handle):
            raise FormatError("the server gave no memory")
        return RemoteArray(self._session, like._replace(data=got.number), None)


class _Held:
    """A handle of the server's, which is freed when the object ends."""

    def __init__(self, session: Any, handle: Handle):
        self._session, self.handle = session, handle
        self._end = weakref.finalize(self, _free, session.connection, handle)
        self._end.atexit = False


def _free(connection: Connection, handle: Handle) -> None:
    if connection.is_open:
        connection.drop_handle(handle)


def _free_memory(connection: Connection, device: DeviceValue, number: int) -> None:
    if connection.is_open:
        connection.drop_later(_wire.FREE, device, Handle(number))


class RemoteArray:
    """An array in a session's memory. numpy() and copyfrom() carry its values over the connection."""

    def __init__(self, session: Any, tensor: TensorValue, handle: Handle | None):
        self._session, self.tensor, self.handle = session, tensor, handle
        if handle is not None:
            self._end = weakref.finalize(self, _free, session.connection, handle)
        else:
            self._end = weakref.finalize(self, _free_memory, session.connection, tensor.device, tensor.data)
        self._end.atexit = False
        self.packed = _wire.Packed("tensor", tensor.packed())
        self.tagged = _wire.tagged(self.packed)  # for _core.exchange
        self.shape, self.dtype = tensor.shape, name_of(tensor.dtype)

    @property
    def device(self) -> RemoteDevice:
        return RemoteDevice(self._session, self.tensor.device.type, self.tensor.device.number)

    ctx = device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        each = (self.tensor.dtype.bits * self.tensor.dtype.lanes + 7) // 8
        return math.prod(self.shape) * each

    def numpy(self) -> np.ndarray:
        """A copy of the values; bfloat16 as its bits."""
        value = np.empty(self.shape, _numpy_dtype(self.dtype))
        flat = memoryview(value.reshape(-1).view(np.uint8)) if value.nbytes else memoryview(b"")
        for at, n in self._session.chunks(self.nbytes, len(self.shape)):
            self._session.connection.copy_from(self.tensor._replace(offset=self.tensor.offset + at), flat[at:at + n])
        return value

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        value = self.numpy()
        return value if dtype is None else value.astype(dtype)

    def copyfrom(self, source: Any) -> "RemoteArray":
        """Copies values here: of an array on this session, of a local one, or what np.array takes."""
        if isinstance(source, RemoteArray):
            source._copy_to(self)
            return self
        value = source.numpy() if isinstance(source, _core.Tensor) else np.asarray(source)
        if value.shape != self.shape:
            raise ValueError(f"the array has shape {self.shape}, and the values have shape {value.shape}")
        wanted = _numpy_dtype(self.dtype)
        value = np.ascontiguousarray(value, dtype=wanted)
        flat = memoryview(value.reshape(-1).view(np.uint8)) if value.nbytes else memoryview(b"")
        for at, n in self._session.chunks(self.nbytes, len(self.shape)):
            self._session.connection.copy_to(self.tensor._replace(offset=self.tensor.offset + at), flat[at:at + n])
        return self

    def _copy_to(self, target: "RemoteArray") -> None:
        if target._session is not self._session:
            target.copyfrom(self.numpy().reshape(target.shape))
            return
        if self.nbytes != target.nbytes:
            raise ValueError(f"an array of {self.nbytes} bytes does not fit into one of {target.nbytes}")
        self._session.connection.one(_wire.COPY_AMONG, self.tensor, target.tensor, Handle(0))
        self.device.sync()

    def copyto(self, target: Any, mem_scope: str | None = None) -> Any:
        """Copies the values to an array here or there, or to a new one on a device, and gives that."""
        from ..ndarray import array, empty
        if isinstance(target, RemoteArray):
            self._copy_to(target)
            return target
        if isinstance(target, RemoteDevice):
            return self.copyto(empty(self.shape, self.dtype, target, mem_scope))
        if isinstance(target, Device):
            return array(self.numpy(), target)
        if isinstance(target, _core.Tensor):
            return target.copyfrom(self.numpy())  # type: ignore[attr-defined]
        raise ValueError(f"the target is an array or a Device, not a '{type(target).__name__}'")

    def __setitem__(self, in_slice: Any, value: Any) -> None:
        if not isinstance(in_slice, slice) or (in_slice.start, in_slice.stop) != (None, None):
            raise ValueError("an array is set as a whole: x[:] = values")
        self.copyfrom(value)

    def __repr__(self) -> str:
        return f"<heddle.rpc.RemoteArray shape={self.shape}, {self.dtype}, {self.device!r}>"


class RemoteObject(_Held):
    """An object of the server's of which nothing is known here; functions of the server's take it."""

    def __repr__(self) -> str:
        return f"<remote {self.handle.kind} of {self._session.connection.where}>"


class RemoteFunction(RemoteObject):
    """A function of the server's. Arguments are None, bool, int, float, str, bytes, dtypes of numpy, and devices, arrays,
    functions and modules of the same session."""

    def __init__(self, session: Any, handle: Handle):
        super().__init__(session, handle)
        self._head = struct.pack("<IQ", _wire.CALL, handle.number)

    def __call__(self, *args: Any) -> Any:
        session = self._session
        got = session.connection.call_with_arrays(self._head, args, session)
        return session.call(self.handle, args) if got is None else session.result(got)


class RemoteModule(RemoteObject):
    """A module of the server's: module["name"] is a function."""

    entry_name = "__tvm_main__"

    def get_function(self, name: str, query_imports: bool = False) -> RemoteFunction:
        """AttributeError where there is none."""
        found = self.find(name, query_imports)
        if found is None:
            raise AttributeError(f"Module has no function '{name}'")
        return found

    def find(self, name: str, query_imports: bool = False) -> RemoteFunction | None:
        """The function of a name, or None."""
        return self._session.server_function("ModuleGetFunction")(self, name, bool(query_imports))

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        return self.find(name, query_imports) is not None

    def __getitem__(self, name: str) -> RemoteFunction:
        if not isinstance(name, str):
            raise ValueError("Can only take string as function name")
        return self.get_function(name, True)

    def __call__(self, *args: Any) -> Any:
        return self[self.entry_name](*args)

    def import_module(self, module: "RemoteModule") -> None:
        """Adds an import."""
        self._session.server_function("ImportModule")(self, module)

    def time_evaluator(self, func_name: str, dev: Device, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0,
                       limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1,
                       cache_flush_bytes: int = 0, f_preproc: str = "") -> Callable[..., BenchmarkResult]:
        """A function that times the named one on the server, and gives a BenchmarkResult; as heddle.runtime.Module's."""
        own = dev.value if isinstance(dev, RemoteDevice) else DeviceValue(dev.device_type % MASK, dev.device_id)
        make = self._session.get_function("runtime.RPCTimeEvaluator")
        timed = make(self, func_name, own.type, own.number, int(number), int(repeat), int(min_repeat_ms),
                     int(limit_zero_time_iterations), int(cooldown_interval_ms), int(repeats_to_cooldown),
                     int(cache_flush_bytes), f_preproc)

        def evaluator(*args: Any) -> BenchmarkResult:
            blob = timed(*args)
            return BenchmarkResult(struct.unpack(f"<{len(blob) // 8}d", blob))

        return evaluator
