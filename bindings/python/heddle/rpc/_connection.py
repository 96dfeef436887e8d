"""One connection to a server of TVM's RPC: the handshake, and requests of which each gets one reply."""
from __future__ import annotations

import collections
import contextlib
import math
import socket
import struct
import threading
from typing import Any, Sequence

from .. import _core, error
from . import _wire
from ._wire import Era, Handle, Reader


_U64, _HEAD = struct.Struct("<Q"), struct.Struct("<QI")


class RPCError(error.RPCError):
    """The server reported an error; the session goes on."""


class RPCSessionTimeoutError(error.RPCSessionTimeoutError, RPCError):
    """The session took longer than it may; it is over."""


class RPCConnectionError(RPCError, ConnectionError):
    """The connection ended, or what came is not TVM's RPC; the session is over."""


_PIECE = 1 << 20
_LOST = "the server closed the connection: its session has ended"


def receive(sock: socket.socket, n: int) -> bytearray:
    """n bytes. The buffer grows as they come, so that a length alone takes no memory."""
    data = bytearray()
    while len(data) < n:
        part = sock.recv(min(n - len(data), 1 << 20))
        if not part:
            raise RPCConnectionError(_LOST)
        data += part
    return data


def dial(host: str, port: int, timeout: float | None) -> socket.socket:
    """A connection that sends small packets at once, and notices in a while that its peer is gone."""
    try:
        sock = socket.create_connection((host, port), timeout=timeout)
    except OSError as failed:
        raise RPCConnectionError(f"cannot connect to {host}:{port}: {failed}") from failed
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


class Connection:
    """Any thread; requests are sent one after another. Handles that Python dropped are freed with the next request."""

    def __init__(self, host: str, port: int, key: str, session_timeout: float, constructor: Sequence[Any] | None,
                 connect_timeout: float | None, *, ready: socket.socket | None = None):
        self._lock = threading.Lock()
        self._garbage: collections.deque[bytes] = collections.deque()
        self._socket: socket.socket | None = None
        self._ahead = b""
        self.era = Era.B
        self.where = f"{host}:{port}" if ready is None else host
        try:
            self._socket = ready if ready is not None else dial(host, port, connect_timeout)
            if ready is None:  # a program that was started for this session alone has no handshake
                self._shake(key, session_timeout)
            self._start(constructor)
        except BaseException as failed:
            self.close()
            if isinstance(failed, OSError) and not isinstance(failed, RPCConnectionError):
                raise RPCConnectionError(f"the session with {self.where} did not begin: {failed}") from failed
            raise

    def _shake(self, key: str, session_timeout: float) -> None:
        words = f"client:{key}"
        if session_timeout:
            words += f" -timeout={math.ceil(session_timeout)}"  # some servers read whole numbers only
        data = words.encode()
        self._sock.sendall(struct.pack("<II", _wire.MAGIC, len(data)) + data)
        code, = struct.unpack("<I", receive(self._sock, 4))
        if code == _wire.MISMATCH:
            raise RPCError(f"the server at {self.where} has another key than '{key}'")
        if code == _wire.DUPLICATE:
            raise RPCError(f"the key '{key}' is in use at {self.where}")
        if code != _wire.MAGIC:
            raise RPCConnectionError(f"{self.where} is no server of TVM's RPC")
        n, = struct.unpack("<I", receive(self._sock, 4))
        if n > _wire.LONGEST_KEY:
            raise RPCConnectionError(f"{self.where} is no server of TVM's RPC: its key has {n} bytes")
        self.server_key = receive(self._sock, n).decode(errors="replace")

    def _start(self, constructor: Sequence[Any] | None) -> None:
        """Opens the session. The type of the reply's first value shows the server's era; a server whose reply is empty accepts both."""
        version = b"0.8.0"
        body = struct.pack("<Q", len(version)) + version + _wire.pack(Era.B, *(constructor or ()))
        self._send(_wire.INIT, [body])
        code, data = self._receive()
        if code == _wire.RETURN and len(data) >= 8 and data[4] == 4:
            self.era = Era.A
        elif code == _wire.EXCEPTION and len(data) >= 8 and data[4] == 11:
            self.era = Era.A
        self._values(code, data)

    # ---- packets

    @property
    def _sock(self) -> socket.socket:
        if self._socket is None:
            raise RPCConnectionError(f"the session with {self.where} has ended")
        return self._socket

    def _send(self, code: int, parts: Sequence[Any]) -> None:
        n = 4 + sum(len(part) for part in parts)
        head = _HEAD.pack(n, code)
        if n < 1 << 16:
            self._sock.sendall(b"".join([head, *parts]))
            return
        self._sock.sendall(head)
        for part in parts:
            self._sock.sendall(part)

    def _some(self, most: int = 1 << 12) -> bytes:
        part = self._sock.recv(most)
        if not part:
            raise RPCConnectionError(_LOST)
        return part

    def _receive(self, into: memoryview | None = None) -> tuple[int, bytes | bytearray]:
        """A packet's code and body; into: where the body of a kCopyAck of that size goes. What came behind it is kept."""
        data, self._ahead = self._ahead or self._some(), b""
        while True:
            while len(data) < _HEAD.size:
                data += self._some()
            n, code = _HEAD.unpack_from(data)
            if n:
                break
            data = data[8:]  # a packet of no bytes keeps the connection alive
        if not 4 <= n <= _wire.LONGEST_REPLY:
            raise RPCConnectionError(f"{self.where} sent a packet of {n} bytes, which is over the limit")
        if len(data) == 8 + n and into is None:  # of most requests
            return code, data[_HEAD.size:]
        body, self._ahead = bytearray(data[_HEAD.size:8 + n]), data[8 + n:]
        if into is not None and code == _wire.COPY_ACK and n == 4 + len(into):
            into[:len(body)] = body
            rest = into[len(body):]
            while rest:
                got = self._sock.recv_into(rest)
                if got == 0:
                    raise RPCConnectionError(_LOST)
                rest = rest[got:]
            return code, b""
        while len(body) < n - 4:  # in pieces, so that a length alone takes no memory
            body += self._some(min(n - 4 - len(body), _PIECE))
        return code, body

    def _values(self, code: int, data: bytes) -> list[Any]:
        if code == _wire.SHUTDOWN:
            raise RPCConnectionError(f"the server at {self.where} ended the session")
        values = Reader(data).values(self.era)
        if code == _wire.RETURN:
            return values
        if code != _wire.EXCEPTION or len(values) != 1 or not isinstance(values[0], str):
            raise RPCConnectionError(f"{self.where} sent a packet of code {code}, which is no reply")
        text = values[0]
        if text.startswith("RPCSessionTimeoutError: "):
            raise RPCSessionTimeoutError(text.partition(": ")[2])
        raise RPCError("Error caught from RPC call:\n" + text)

    def _failed(self, why: BaseException) -> None:
        """What fails in the midst of an exchange leaves nothing that could be read on: the session is over. An error that the
        server reported is a whole reply."""
        if isinstance(why, RPCError) and not isinstance(why, (RPCConnectionError, RPCSessionTimeoutError)):
            return
        self._end()
        if isinstance(why, OSError) and not isinstance(why, RPCError):
            raise RPCConnectionError(f"the connection to {self.where} failed: {why}") from why

    def _free_garbage(self) -> None:
        """Sends all that is to be freed in one go, then reads the replies."""
        bodies = []
        while self._garbage:
            bodies.append(self._garbage.popleft())
        for start in range(0, len(bodies), 64):
            some = bodies[start:start + 64]
            self._sock.sendall(b"".join(struct.pack("<Q", len(b)) + b for b in some))
            for _ in some:
                code, _ = self._receive()
                if code not in (_wire.RETURN, _wire.EXCEPTION):
                    raise RPCConnectionError(f"the server at {self.where} ended the session")

    # ---- requests

    def ask(self, code: int, *parts: Any) -> list[Any]:
        """A request, and the values of its reply."""
        with self._lock:
            try:
                if self._garbage:
                    self._free_garbage()
                self._send(code, parts)
                return self._values(*self._receive())
            except BaseException as why:
                self._failed(why)
                raise

    def call_with_arrays(self, head: bytes, args: tuple[Any, ...], session: Any) -> list[Any] | None:
        """The values of a call's reply, by the short way of arrays of the session. None, and nothing is sent, where it is not open.
        head: the code and the function."""
        if self.era is not Era.B or self._garbage or not args:
            return None
        with self._lock:
            if self._socket is None or self._ahead:
                return None
            try:
                data = _core.exchange(self._socket.fileno(), head, args, session)
                if data is None:
                    return None
                if data == _wire.PLAIN:
                    return [0, None]
                self._ahead = data
                return self._values(*self._receive())
            except BaseException as why:
                self._failed(why)
                raise

    def one(self, code: int, *values: Any) -> Any:
        """A request of values, and the one of its reply."""
        got = self.ask(code, _wire.pack(self.era, *values))
        if len(got) != 1:
            raise RPCConnectionError(f"{self.where} gave {len(got)} values, not one")
        return got[0]

    def copy_from(self, tensor: _wire.TensorValue, into: memoryview) -> None:
        with self._lock:
            try:
                self._free_garbage()
                self._send(_wire.COPY_FROM, [tensor.packed() + _U64.pack(len(into))])
                code, data = self._receive(into)
                if code == _wire.COPY_ACK and len(data) == 0:
                    return
                self._values(code, data)
                raise RPCConnectionError(f"{self.where} sent {len(data)} bytes of {len(into)}")
            except BaseException as why:
                self._failed(why)
                raise

    def copy_to(self, tensor: _wire.TensorValue, data: memoryview) -> None:
        self.ask(_wire.COPY_TO, tensor.packed() + struct.pack("<Q", len(data)), data)

    def drop_later(self, code: int, *values: Any) -> None:
        """Frees with the next request: Python drops objects at any time, also in the midst of a request."""
        self._garbage.append(struct.pack("<I", code) + _wire.pack(self.era, *values))

    def drop_handle(self, handle: Handle) -> None:
        if self.era is Era.A:
            self.drop_later(_wire.FREE_HANDLE, Handle(handle.number),
                            {"function": 10, "module": 9, "tensor": 13}.get(handle.kind, 8))
        else:
            self.drop_later(_wire.FREE_HANDLE, Handle(handle.number))

    # ---- the end

    def _end(self) -> None:
        sock, self._socket, self._ahead = self._socket, None, b""
        if sock is not None:
            sock.close()

    def close(self) -> None:
        """Ends the session; the server frees all that it holds."""
        if self._socket is not None:
            with contextlib.suppress(OSError, RPCError):
                self._send(_wire.SHUTDOWN, [])
            self._end()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def __del__(self) -> None:
        if getattr(self, "_socket", None) is not None:
            self.close()
