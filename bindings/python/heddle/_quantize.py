"""Weights of an ONNX model as integers of 4 or 8 bits in blocks, in a new model."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Sequence

from . import _functions

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Layer:
    """What became of a weight of a product or an embedding."""
    node: str
    op: str
    tensor: str
    kept: str | None      # why it stays as it is; None: it is quantised
    rows: int             # which are cut into blocks
    columns: int
    error: float          # root of the mean square of the difference, over that of the weight
    worst: float          # the largest difference
    bytes_before: int
    bytes_after: int


def quantize(model: Path, output: Path, *, weights: str = "int4", block: int = 32, symmetric: bool = False, form: str = "nbits",
             keep: str | Sequence[str] = (), accuracy_level: int = 0) -> list[Layer]:
    """Writes the ONNX model of a file to another file with quantised weights, and gives a Layer for each that was looked at.

    weights: "int4" or "int8"; block: how many share a scale, 16 to 256; symmetric: without zero points. form: "nbits",
    MatMulNBits and GatherBlockQuantized of com.microsoft, or "qdq", DequantizeLinear of opset 21. keep: patterns as a shell has
    them of nodes and weights that stay. accuracy_level: of MatMulNBits; 4 allows products of int8. ValueError, FormatError,
    UnsupportedError (qdq of a model of an earlier opset).
    """
    bits, forms = {"int4": 4, "int8": 8}, {"nbits": 0, "qdq": 2}
    if weights not in bits:
        raise ValueError(f"weights is 'int4' or 'int8', not {weights!r}")
    if form not in forms:
        raise ValueError(f"form is 'nbits' or 'qdq', not {form!r}")
    rows = _functions.quantize(os.fspath(model), os.fspath(output), bits[weights], block, forms[form] | bool(symmetric), accuracy_level,
                               [keep] if isinstance(keep, str) else list(keep))
    return [Layer(node, op, tensor, kept, *shape, *errors, *sizes) for node, op, tensor, kept, shape, errors, sizes in rows]
