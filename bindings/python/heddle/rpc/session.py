"""Sessions with servers of TVM's RPC, and their trackers."""
from __future__ import annotations

import json
import os
import pathlib
import struct
import time
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from ..device import Device
from ..errors import FormatError
from ..ndarray import NDArray
from . import _wire
from ._connection import Connection, RPCConnectionError, RPCError, RPCSessionTimeoutError, dial, receive
from ._wire import DeviceValue, Handle, TensorValue
from .remote import MASK, RemoteArray, RemoteDevice, RemoteFunction, RemoteModule, RemoteObject, dtype_of, name_of

_taken: set[int] = set()  # table indices of sessions that live


class RPCSession:
    """A session on a server; connect() makes one. It ends with close(), or with the last object that came from it."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.table_index = next(i for i in range(len(_taken) + 1) if i not in _taken)
        _taken.add(self.table_index)
        self._functions: dict[str, Handle] = {}
        self._packet: int | None = None

    def __del__(self) -> None:
        _taken.discard(getattr(self, "table_index", -1))

    def close(self) -> None:
        """Ends the session; what came from it cannot be used any more."""
        self.connection.close()

    def __enter__(self) -> "RPCSession":
        return self

    def __exit__(self, *why: Any) -> None:
        self.close()

    # ---- functions

    def get_function(self, name: str) -> RemoteFunction:
        """A function of the server's by name. AttributeError: it has none."""
        found = self._find(name)
        if found is None:
            raise AttributeError(f"the server at {self.connection.where} has no function '{name}'")
        return found

    def _find(self, name: str) -> RemoteFunction | None:
        got = self.connection.one(_wire.GLOBAL, name)
        if not isinstance(got, Handle):
            raise FormatError("the server gave no handle for a function")
        return RemoteFunction(self, Handle(got.number, "function")) if got.number else None

    def server_function(self, name: str) -> Callable[..., Any]:
        """tvm.rpc.server.NAME. The handle is kept, and not the object, which would keep the session."""
        if name not in self._functions:
            found = self._find("tvm.rpc.server." + name)
            if found is None:
                raise AttributeError(f"the server at {self.connection.where} has no function 'tvm.rpc.server.{name}'")
            found._end.detach()  # it is freed with the session
            self._functions[name] = found.handle
        handle = self._functions[name]
        return lambda *args: self.call(handle, args)

    def _argument(self, value: Any) -> Any:
        if isinstance(value, (RemoteArray, RemoteObject)):
            if value._session is not self:
                raise ValueError("an argument belongs to another session")
            return value.packed if isinstance(value, RemoteArray) else value.handle
        if isinstance(value, RemoteDevice):
            return value.value
        if isinstance(value, Device):
            return DeviceValue(value.device_type, value.device_id)
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return dtype_of(np.dtype(value))
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (NDArray, np.ndarray)):
            raise TypeError("an array of this process is no argument of a remote function: heddle.nd.array(values, "
                            "session.cpu()) copies it there")
        return value

    def call(self, function: Handle, args: Sequence[Any]) -> Any:
        """Calls a function of the server's."""
        packed = _wire.pack(self.connection.era, *map(self._argument, args))
        return self.result(self.connection.ask(_wire.CALL, struct.pack("<Q", function.number), packed))

    def result(self, got: list[Any]) -> Any:
        """What the values of a call's reply stand for."""
        if len(got) < 2 or not isinstance(got[0], int):
            raise FormatError("the server gave no result")
        value = got[1]
        if value is None:
            return None
        kind = _wire.kind_of_result(self.connection.era, got[0])
        if isinstance(value, TensorValue):
            if len(got) != 3 or not isinstance(got[2], Handle):
                raise FormatError("the server gave a tensor without its handle")
            return RemoteArray(self, value, Handle(got[2].number, "tensor"))
        if isinstance(value, Handle) and kind is not None:
            made = {"function": RemoteFunction, "module": RemoteModule}.get(kind, RemoteObject)
            return made(self, Handle(value.number, kind)) if value.number else None
        if isinstance(value, DeviceValue):
            return RemoteDevice(self, *value)
        return name_of(value) if isinstance(value, _wire.DType) else value

    def chunks(self, bytes_: int, ndim: int) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of the pieces of a copy: the server may limit its packets."""
        if self._packet is None:
            limit = self._find("tvm.rpc.server.GetCRTMaxPacketSize")
            self._packet = int(limit()) if limit is not None else 0
        step = max(self._packet - (44 + 8 * ndim), 1) if self._packet > 0 else max(bytes_, 1)
        return ((at, min(step, bytes_ - at)) for at in range(0, bytes_, step))

    # ---- files and modules

    def upload(self, data: str | os.PathLike | bytes | bytearray, target: str | None = None) -> None:
        """Puts a file (its path), or bytes under the name target, into the session's folder."""
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ValueError("target: bytes need a name")
        else:
            target = target or pathlib.Path(data).name
            data = pathlib.Path(data).read_bytes()
        self.server_function("upload")(target, data)

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the session."""
        return self.server_function("download")(path)

    def remove(self, path: str) -> None:
        """Removes a file of the session."""
        self.server_function("remove")(path)

    def listdir(self, path: str) -> str:
        """The session's files, each with a comma after it. AttributeError: the server has no such function."""
        return self.server_function("listdir")(path)

    def load_module(self, path: str) -> RemoteModule:
        """The module of a library that was uploaded."""
        return self.server_function("load_module")(path)

    def download_linked_module(self, path: str) -> bytearray:
        """The library that the server links of an uploaded .o or .tar."""
        return self.server_function("download_linked_module")(path)

    def system_lib(self) -> RemoteModule:
        """The module of what is linked into the server."""
        found = self._find("ffi.SystemLib") or self.get_function("runtime.SystemLib")
        return found()

    # ---- devices

    def device(self, dev_type: str | int, dev_id: int = 0) -> RemoteDevice:
        """A device of the server's by the name or number of its type."""
        local = Device(dev_type, dev_id)
        return RemoteDevice(self, local.device_type % MASK, local.device_id)

    context = device

    def cpu(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("cuda", dev_id)

    gpu = cuda

    def cl(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("opencl", dev_id)

    opencl = cl

    def vulkan(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("vulkan", dev_id)

    def metal(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("metal", dev_id)

    def rocm(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("rocm", dev_id)

    def ext_dev(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("ext_dev", dev_id)

    def hexagon(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("hexagon", dev_id)

    def webgpu(self, dev_id: int = 0) -> RemoteDevice:
        return self.device("webgpu", dev_id)


def connect(url: str, port: int, key: str = "", session_timeout: float = 0,
            session_constructor_args: Sequence[Any] | None = None, enable_logging: bool = False,
            connect_timeout: float | None = 30) -> RPCSession:
    """A session on a server of TVM (v0.14 to v0.27) or of Heddle (heddle rpc-server).

    session_timeout: seconds after which the server ends it; 0: never. session_constructor_args: the name of a function of
    the server's that opens a session of its own, and its arguments. Waits while the server has another session.
    RPCError: another key; RPCConnectionError, which is a ConnectionError: there is no such server. The protocol has no authentication and no encryption.
    """
    args = list(session_constructor_args) if session_constructor_args else []
    del enable_logging
    return RPCSession(Connection(url, int(port), key, session_timeout, args, connect_timeout))


class TrackerSession:
    """A connection to a tracker, which gives servers out by key."""

    def __init__(self, address: tuple[str, int]):
        self._address = address
        self._sock: Any = None
        self._connect()

    def __del__(self) -> None:
        self.close()

    def _connect(self) -> None:
        self._sock = dial(*self._address, timeout=30)
        self._sock.sendall(struct.pack("<I", _wire.TRACKER_MAGIC))
        if struct.unpack("<I", receive(self._sock, 4))[0] != _wire.TRACKER_MAGIC:
            self.close()
            raise RPCConnectionError(f"{self._address[0]}:{self._address[1]} is no tracker of TVM's RPC")

    def close(self) -> None:
        """Ends the connection, and with it a request that waits."""
        sock, self._sock = getattr(self, "_sock", None), None
        if sock is not None:
            sock.close()

    def _ask(self, message: Any) -> Any:
        if self._sock is None:
            self._connect()
        try:
            data = json.dumps(message).encode()
            self._sock.sendall(struct.pack("<I", len(data)) + data)  # in one piece: the tracker answers sooner
            n, = struct.unpack("<I", receive(self._sock, 4))
            if n > 1 << 24:
                raise RPCConnectionError(f"the tracker sent a message of {n} bytes, which is over the limit")
            answer = json.loads(receive(self._sock, n))
        except (OSError, ValueError) as failed:
            self.close()
            if isinstance(failed, RPCError):
                raise
            raise RPCConnectionError(f"the tracker's answer: {failed}") from failed
        if not isinstance(answer, list) or len(answer) != 2 or answer[0] != 0:
            raise RPCError(f"the tracker refused: {answer!r}")
        return answer[1]

    def summary(self) -> dict[str, Any]:
        """{"queue_info": {key: {"free": n, "pending": n}}, "server_info": [...]}"""
        return self._ask([6])

    def text_summary(self) -> str:
        """summary() as tables."""
        data = self.summary()
        servers = sorted((s["key"].partition(":")[2], ":".join(map(str, s["addr"]))) for s in data["server_info"])
        line = "-" * 30 + "\n"
        text = "Server List\n" + line + "server-address           key\n" + line
        text += "".join(f"{address:21s}    server:{key}\n" for key, address in servers) + line + "\n"
        queues = data["queue_info"]
        width = max([len(k) for k in queues] + [3])
        head = f"{'key':<{width}s}   total  free  pending\n"
        line = "-" * len(head) + "\n"
        text += "Queue Status\n" + line + head + line
        for key in sorted(queues):
            total = sum(server == key for server, _ in servers)
            free, pending = queues[key]["free"], queues[key]["pending"]
            if total or pending:
                text += f"{key:<{width}}   {total:<5d}  {free:<4d}  {pending:<7d}\n"
        return text + line

    def request(self, key: str, priority: float = 1, session_timeout: float = 0, max_retry: int = 5,
                session_constructor_args: Sequence[Any] | None = None) -> RPCSession:
        """A session on the next server of a key that is free. Waits for one; the largest priority comes first."""
        last: Exception | None = None
        for _ in range(max(max_retry, 1)):
            try:
                host, port, match = self._ask([4, key, "", priority])
                return connect(host, int(port), match, session_timeout, session_constructor_args)
            except (OSError, RPCError, TypeError) as failed:
                last = failed
        raise RPCError(f"Cannot request {key} after {max_retry} retry, last_error:{last}") from last

    def request_and_run(self, key: str, func: Callable[[RPCSession], Any], priority: float = 1, session_timeout: float = 0,
                        max_retry: int = 2) -> Any:
        """Calls func with a session, and with another one where that session failed."""
        last: Exception | None = None
        for _ in range(max(max_retry, 1)):
            started = time.monotonic()
            try:
                session = self.request(key, priority, session_timeout)
                started = time.monotonic()
                return func(session)
            except RPCError as failed:
                if isinstance(failed, RPCSessionTimeoutError):
                    raise
                last = failed
        raise RPCError(f"Failed to run on {key} after {max_retry} retry, last_error:{last}; the last took "
                       f"{time.monotonic() - started:.1f} s") from last


def connect_tracker(url: str, port: int) -> TrackerSession:
    """A connection to a tracker of TVM, or of Heddle (heddle rpc-tracker)."""
    return TrackerSession((url, int(port)))
