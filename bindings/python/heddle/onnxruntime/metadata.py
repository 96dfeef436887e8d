"""What a model's file says about itself: read from the fields of the message, without its graph's content."""

from __future__ import annotations

import mmap
import os
from typing import Any, Iterator


class ModelMetadata:
    """producer_name, graph_name, domain, description, graph_description, version, custom_metadata_map."""

    def __init__(self) -> None:
        self.producer_name = self.graph_name = self.domain = self.description = self.graph_description = ""
        self.version = 0x7FFFFFFFFFFFFFFF
        self.custom_metadata_map: dict[str, str] = {}
        self._graph_inputs: list[str] = []


def _number(data: Any, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("a number that is cut short")


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(field, number, first, last): of bytes where they are, of a number the number."""
    while at < end:
        tag, at = _number(data, at, end)
        kind, number, first = tag & 7, 0, at
        if tag >> 3 == 0:
            raise ValueError("a field without a number")
        if kind == 0:
            number, at = _number(data, at, end)
        elif kind == 2:
            size, first = _number(data, at, end)
            at = first + size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("a kind of field that ONNX does not use")
        if at > end:
            raise ValueError("a field that goes beyond the message")
        yield tag >> 3, number, first, at


def _text(data: Any, first: int, last: int) -> str:
    return bytes(data[first:last]).decode("utf-8", "replace")


def _read_graph(data: Any, first: int, last: int, out: ModelMetadata) -> None:
    for field, _, a, b in _fields(data, first, last):
        if field == 2:
            out.graph_name = _text(data, a, b)
        elif field == 10:
            out.graph_description = _text(data, a, b)
        elif field == 11:
            names = [_text(data, c, d) for one, _, c, d in _fields(data, a, b) if one == 1]
            out._graph_inputs += names  # pylint: disable=protected-access


def _read(data: Any) -> ModelMetadata:
    out = ModelMetadata()
    for field, number, first, last in _fields(data, 0, len(data)):
        if field == 2:
            out.producer_name = _text(data, first, last)
        elif field == 4:
            out.domain = _text(data, first, last)
        elif field == 5:
            out.version = number - (1 << 64) if number >> 63 else number
        elif field == 6:
            out.description = _text(data, first, last)
        elif field == 7:
            _read_graph(data, first, last, out)
        elif field == 14:
            pair = {one: _text(data, a, b) for one, _, a, b in _fields(data, first, last)}
            out.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")
    return out


def read_metadata(model: str | bytes | bytearray | memoryview) -> ModelMetadata | None:
    """Of a file or of bytes; None where they are no protobuf message."""
    try:
        if not isinstance(model, str):
            return _read(memoryview(model).cast("B"))
        with open(model, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(data)
    except (ValueError, OSError):
        return None
