"""Regions of POSIX shared memory that clients of heddle.kserve register: the extension "system shared memory" of the Open
Inference Protocol. Nothing is mapped: a client that makes its object smaller meanwhile gets an error, where a mapping would end
the server. What a region has is read once, so that a client that changes it meanwhile changes no check."""

from __future__ import annotations

import contextvars
import os
import stat
import threading
from typing import Any, Mapping, NamedTuple

import numpy as np

__all__ = ["ALLOWED", "Region", "Regions", "SharedMemoryError", "wanted"]

_FOLDER = "/dev/shm"
_MOST = 1024  # regions

ALLOWED = contextvars.ContextVar("heddle_shared_memory", default=True)  # may the client of this request use regions?


class SharedMemoryError(ValueError):
    """What a client asks of a region is wrong."""


class Region(NamedTuple):
    """What status tells of a region."""

    name: str
    key: str
    offset: int
    byte_size: int


def wanted(parameters: Mapping[str, Any] | None) -> tuple[str, int, int] | None:
    """Region, size and offset that the parameters of a tensor name; None where they name no region."""
    if not parameters or "shared_memory_region" not in parameters:
        return None
    name, size = parameters["shared_memory_region"], parameters.get("shared_memory_byte_size")
    offset = parameters.get("shared_memory_offset", 0)
    if not isinstance(name, str):
        raise SharedMemoryError(f"shared_memory_region is a name, not {name!r}")
    return name, _number("shared_memory_byte_size", size), _number("shared_memory_offset", offset)


class Regions:
    """The regions of a server, by name. Any thread may call. SharedMemoryError: what a client asks for is wrong."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Region, int]] = {}  # and a descriptor

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        region = Region(name, key, _number("offset", offset), _number("byte_size", byte_size))
        _check_allowed()
        if not isinstance(name, str) or not name:
            raise SharedMemoryError("a region has a name")
        if region.byte_size == 0:
            raise SharedMemoryError(f"region '{name}' has no bytes")
        file = _opened(name, key)
        try:
            size = os.fstat(file).st_size
            if region.offset + region.byte_size > size:
                raise SharedMemoryError(f"region '{name}' ends at byte {region.offset + region.byte_size} of {key}, which has {size}")
            with self._lock:
                if name in self._open:
                    raise SharedMemoryError(f"region '{name}' is registered already")
                if len(self._open) >= _MOST:
                    raise SharedMemoryError(f"there are {_MOST} regions: unregister some")
                self._open[name] = region, file
        except BaseException:
            os.close(file)
            raise

    def unregister(self, name: str | None = None) -> None:
        """Forgets a region, or all of them. One that is not there is no error."""
        _check_allowed()
        with self._lock:
            names = list(self._open) if name is None else [name] if name in self._open else []
            files = [self._open.pop(one)[1] for one in names]
        for file in files:
            os.close(file)

    def status(self, name: str | None = None) -> list[Region]:
        _check_allowed()
        with self._lock:
            if name is not None and name not in self._open:
                raise SharedMemoryError(f"there is no region '{name}'")
            return [region for region, _ in self._open.values() if name is None or region.name == name]

    def read(self, what: str, name: str, size: int, offset: int) -> bytearray:
        """size bytes of a region, as they are now. what: whose they are, for errors."""
        place, file = self._place(what, name, size, offset)
        try:
            data = bytearray(size)
            at = 0
            while at < size and (n := os.preadv(file, [memoryview(data)[at:]], place + at)) > 0:
                at += n
        finally:
            os.close(file)
        if at < size:
            raise SharedMemoryError(f"{what}: the memory of region '{name}' is smaller than it was registered")
        return data

    def write(self, what: str, name: str, size: int, offset: int, data: Any) -> int:
        """The bytes of an array, or of a buffer of them, into a place of size bytes: how many they are."""
        bytes_of = memoryview(np.ascontiguousarray(data)).cast("B") if isinstance(data, np.ndarray) else memoryview(data)
        if bytes_of.nbytes > size:
            raise SharedMemoryError(f"{what} has {bytes_of.nbytes} bytes; its place in region '{name}' has {size}")
        place, file = self._place(what, name, size, offset)
        try:
            if os.fstat(file).st_size < place + size:  # a write would make it larger
                raise SharedMemoryError(f"{what}: the memory of region '{name}' is smaller than it was registered")
            at = 0
            while at < bytes_of.nbytes:
                at += os.pwrite(file, bytes_of[at:], place + at)
        finally:
            os.close(file)
        return bytes_of.nbytes

    def _place(self, what: str, name: str, size: int, offset: int) -> tuple[int, int]:
        """The offset in the region's object, and a descriptor of the caller's: the region may be unregistered meanwhile."""
        _check_allowed()
        with self._lock:
            if name not in self._open:
                raise SharedMemoryError(f"{what}: there is no region '{name}'")
            region, file = self._open[name]
            if offset + size > region.byte_size:
                raise SharedMemoryError(f"{what}: bytes {offset} to {offset + size} are outside of region '{name}', which has "
                                        f"{region.byte_size}")
            return region.offset + offset, os.dup(file)


def _check_allowed() -> None:
    if not ALLOWED.get():
        raise SharedMemoryError("shared memory is for clients on the server's machine (--shared_memory)")


def _number(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise SharedMemoryError(f"{what} is a number of bytes, not {value!r}")
    return value


def _opened(name: str, key: Any) -> int:
    plain = key[1:] if isinstance(key, str) and key.startswith("/") else key
    if not isinstance(plain, str) or plain in ("", ".", "..") or "/" in plain or "\0" in plain:
        raise SharedMemoryError(f"region '{name}': the key {key!r} is no name of shared memory")
    try:
        file = os.open(os.path.join(_FOLDER, plain), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise SharedMemoryError(f"region '{name}': {key}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise SharedMemoryError(f"region '{name}': {key} is no shared memory")
    return file
