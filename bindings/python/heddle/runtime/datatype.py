"""DataType: the name of an element's type with its parts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


class DataTypeCode:
    """DLPack's codes of types, by TVM's names; bool is an unsigned integer of one bit there."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4


class DataType(str):
    """A dtype such as "float32", "int8x4", "bool" or "handle": a str with `type_code`, `bits` and `lanes`.

    Takes a name ("float", "int" and "uint" have 32 bits), a numpy dtype or type, or "" (which is handle). ValueError for a name that is none.
    """

    type_code: int
    bits: int
    lanes: int
    _CODES = {"int": DataTypeCode.INT, "uint": DataTypeCode.UINT, "float": DataTypeCode.FLOAT,
              "handle": DataTypeCode.HANDLE, "bfloat": DataTypeCode.BFLOAT}
    CODE2STR = {code: name for name, code in _CODES.items()}

    def __new__(cls, type_str: Any) -> "DataType":
        name = type_str if isinstance(type_str, str) else np.dtype(type_str).name
        name = {"": "handle", "bool_": "bool", "float": "float32", "int": "int32", "uint": "uint32"}.get(name, name)
        found = re.fullmatch(r"(bfloat|float|uint|int|handle|bool)(\d*)(?:x(\d+))?", name)
        if found is None or (found[1] == "bool" and found[2]):
            raise ValueError(f"'{name}' is no dtype")
        made = super().__new__(cls, name)
        made.lanes = int(found[3] or 1)
        if found[1] == "bool":
            made.type_code, made.bits = DataTypeCode.UINT, 1
        else:
            made.type_code = cls._CODES[found[1]]
            made.bits = int(found[2] or (64 if found[1] == "handle" else 32))
        return made

    def itemsize(self) -> int:
        """Bytes of an element, all lanes."""
        return (self.bits * self.lanes + 7) // 8
