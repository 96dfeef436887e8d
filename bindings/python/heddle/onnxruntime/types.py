"""ONNX's element types: their numbers, ONNX Runtime's words for them, and numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROWS = [  # number, ONNX Runtime's word, the name of the dtype
    (1, "float", "float32"), (2, "uint8", "uint8"), (3, "int8", "int8"), (4, "uint16", "uint16"), (5, "int16", "int16"),
    (6, "int32", "int32"), (7, "int64", "int64"), (9, "bool", "bool"), (10, "float16", "float16"), (11, "double", "float64"),
    (12, "uint32", "uint32"), (13, "uint64", "uint64"), (16, "bfloat16", "bfloat16"),
]
_WORDS = {dtype: word for _, word, dtype in _ROWS}
_WORDS["string"] = _WORDS["object"] = "string"
_NUMBERS = {dtype: number for number, _, dtype in _ROWS}
_DTYPES = {number: dtype for number, _, dtype in _ROWS}


def type_word(dtype: Any) -> str:
    """"tensor(float)" for "float32"."""
    name = "string" if getattr(dtype, "kind", "") in ("U", "S", "T") else str(dtype)
    if name.startswith("seq(map("):  # of heddle.text
        return name.replace("float32", "tensor(float)")
    if name.startswith(("seq(", "optional(")):
        return name.replace("string", "tensor(string)")
    return f"tensor({_WORDS.get(name, name)})"


def type_number(dtype: Any) -> int:
    """ONNX's number of a dtype; 0 for one that ONNX has not."""
    return _NUMBERS.get(str(dtype), 0)


def dtype_of(element_type: Any) -> str:
    """The name of a dtype: of ONNX's number, a numpy dtype, or a type."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        if int(element_type) not in _DTYPES:
            raise ValueError(f"element type {element_type} is not supported")
        return _DTYPES[int(element_type)]
    name = str(element_type)
    return name if name in _NUMBERS else np.dtype(element_type).name
