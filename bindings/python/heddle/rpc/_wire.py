"""The bytes of TVM's RPC as a client has them: values in sequences, in the forms of TVM v0.14 to v0.20 (era A) and of v0.21 and
later (era B), and a reader that bounds every length."""
from __future__ import annotations

import enum
import struct
from typing import Any, NamedTuple

from ..errors import FormatError

SHUTDOWN, INIT, CALL, RETURN, EXCEPTION, COPY_FROM, COPY_TO, COPY_ACK, GLOBAL, FREE_HANDLE = range(1, 11)
SET_DEVICE, ATTRIBUTE, ALLOC, FREE, SYNC, COPY_AMONG, ALLOC_SCOPE, STREAM, FREE_STREAM, SET_STREAM = range(11, 21)

MAGIC, DUPLICATE, MISMATCH, TRACKER_MAGIC = 0xFF271, 0xFF272, 0xFF273, 0x2F271
LONGEST_KEY, LONGEST_REPLY, MOST_DIMENSIONS = 1 << 12, 1 << 31, 64


class Era(enum.Enum):
    A = "A"
    B = "B"


class Handle(NamedTuple):
    """A function, a module, an object or a stream of the server's. kind: "function", "module", "object", "handle"."""
    number: int
    kind: str = "handle"


class DeviceValue(NamedTuple):
    type: int
    number: int


class DType(NamedTuple):
    code: int
    bits: int
    lanes: int


class TensorValue(NamedTuple):
    """A tensor of the server's: data is its own, and is not an address here."""
    data: int
    device: DeviceValue
    dtype: DType
    shape: tuple[int, ...]
    offset: int = 0

    def packed(self) -> bytes:
        """As it stands in packets."""
        return struct.pack(f"<QiiiBBH{len(self.shape)}qQ", self.data, *self.device, len(self.shape), *self.dtype, *self.shape,
                           self.offset)


class Packed(NamedTuple):
    """A value that was written before: its name in _TAGS, and its bytes."""
    name: str
    data: bytes


_TAGS = {
    Era.A: {"null": 4, "int": 0, "float": 2, "bool": 0, "handle": 3, "dtype": 5, "device": 6, "tensor": 7, "str": 11, "bytes": 12,
            "module": 9, "function": 10, "object": 8},
    Era.B: {"null": 0, "int": 1, "float": 3, "bool": 2, "handle": 4, "dtype": 5, "device": 6, "tensor": 7, "str": 8, "bytes": 9,
            "module": 73, "function": 68, "object": 115},
}


_NAMES = {era: {n: name for name, n in tags.items() if name != "bool" or era is Era.B} for era, tags in _TAGS.items()}
_NAMES[Era.A].update({1: "int", 15: "bool"})


def _one(era: Era, value: Any) -> tuple[int, bytes]:
    tags = _TAGS[era]
    if type(value) is Packed:
        return tags[value.name], value.data
    if value is None:
        return tags["null"], b""
    if isinstance(value, bool):
        return tags["bool"], struct.pack("<q", value)
    if isinstance(value, int):
        return tags["int"], struct.pack("<q", value)
    if isinstance(value, float):
        return tags["float"], struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        if b"\0" in data:
            raise ValueError("a string with a zero inside cannot be sent; give it as bytes")
        return tags["str"], struct.pack("<Q", len(data)) + data
    if isinstance(value, (bytes, bytearray, memoryview)):
        return tags["bytes"], struct.pack("<Q", len(value)) + bytes(value)
    if isinstance(value, Handle):
        inner = struct.pack("<I", tags["object"]) if value.kind == "object" else b""
        return tags[value.kind], inner + struct.pack("<Q", value.number)
    if isinstance(value, DeviceValue):
        return tags["device"], struct.pack("<ii", *value)
    if isinstance(value, DType):
        return tags["dtype"], struct.pack("<BBHi", *value, 0)
    if isinstance(value, TensorValue):
        return tags["tensor"], value.packed()
    raise TypeError(f"a '{type(value).__name__}' cannot be sent to a remote function")


def tagged(value: Packed) -> bytes:
    """As it stands in a sequence of era B."""
    return struct.pack("<I", _TAGS[Era.B][value.name]) + value.data


def pack(era: Era, *values: Any) -> bytes:
    """A sequence."""
    if not values:
        return b"\0\0\0\0"
    parts = [_one(era, value) for value in values]
    if era is Era.A:
        return struct.pack(f"<I{len(parts)}I", len(parts), *(tag for tag, _ in parts)) + b"".join(data for _, data in parts)
    return struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", tag) + data for tag, data in parts)


_NOTHING = struct.pack("<IqI", 1, 0, 0)
PLAIN = struct.pack("<QII", 24, RETURN, 2) + _NOTHING  # the whole reply to most calls of era B


class Reader:
    """Takes what a reply holds; FormatError where there is less."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def take(self, n: int) -> bytes:
        if n > len(self._data) - self._at:
            raise FormatError("the server's reply ends early")
        self._at += n
        return self._data[self._at - n:self._at]

    def words(self, form: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def is_done(self) -> bool:
        return self._at == len(self._data)

    def _text(self) -> bytes:
        n, = self.words("Q")
        return self.take(n)

    def _tensor(self) -> TensorValue:
        data, kind, number, ndim, code, bits, lanes = self.words("QiiiBBH")
        if not 0 <= ndim <= MOST_DIMENSIONS:
            raise FormatError(f"a tensor of {ndim} dimensions")
        shape = self.words(f"{ndim}q")
        if any(n < 0 for n in shape):
            raise FormatError(f"a tensor of shape {shape}")
        return TensorValue(data, DeviceValue(kind, number), DType(code, bits, lanes), shape, *self.words("Q"))

    def _value(self, era: Era, tag: int) -> Any:
        name = _NAMES[era].get(tag)
        if era is Era.B and tag in (11, 12, 65, 66):  # nested: a second tag, then the text
            if self.words("I") != ((65,) if tag in (11, 65) else (66,)):
                raise FormatError("a string in a form that is not known")
            name = "str" if tag in (11, 65) else "bytes"
        if name == "null":
            return None
        if name in ("int", "bool"):
            n, = self.words("q")
            return bool(n) if name == "bool" else n
        if name == "float":
            return self.words("d")[0]
        if name == "str":
            return self._text().decode(errors="replace")
        if name == "bytes":
            return bytearray(self._text())
        if name == "dtype":
            return DType(*self.words("BBHi")[:3])
        if name == "device":
            return DeviceValue(*self.words("ii"))
        if name == "tensor":
            return self._tensor()
        if name == "object":
            self.words("I")
            return Handle(self.words("Q")[0], "object")
        if name in ("handle", "module", "function"):
            return Handle(self.words("Q")[0], name)
        raise FormatError(f"the server sent a value of type {tag}, which is not known")

    def values(self, era: Era) -> list[Any]:
        """A sequence, which ends the reply."""
        if era is Era.B and self._data[:4] == b"\2\0\0\0" and self._data[4:] == _NOTHING:
            return [0, None]  # of most calls
        count, = self.words("I")
        if count > len(self._data) // 4:
            raise FormatError(f"the server's reply is too short for {count} values")
        if era is Era.A:
            got = [self._value(era, tag) for tag in self.words(f"{count}I")]
        else:
            got = [self._value(era, self.words("I")[0]) for _ in range(count)]
        if not self.is_done():
            raise FormatError("the server's reply has bytes left over")
        return got


def kind_of_result(era: Era, tag: int) -> str | None:
    """The kind of object that a result's handle stands for, by the number before it; None: the value itself is the result."""
    if era is Era.A:
        return {8: "object", 9: "module", 10: "function", 13: "tensor", 7: "tensor"}.get(tag)
    if tag in (7, 70, 72):
        return "tensor"
    return {68: "function", 73: "module"}.get(tag, "object" if tag > 66 else None)
