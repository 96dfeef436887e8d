"""Blobs of parameters: names and arrays as TVM's save_param_dict writes them, byte for byte."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .. import _core, _functions
from .ndarray import NDArray, array


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """The blob of arrays by name (NDArray, numpy, or what np.array takes), in the mapping's order."""
    return _functions.params_save([(str(name), value if isinstance(value, _core.Tensor) else array(value))
                                   for name, value in params.items()])


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """save_param_dict into a file, which is replaced."""
    with open(path, "wb") as file:
        file.write(save_param_dict(params))


def load_param_dict(param_bytes: bytes | bytearray | str) -> dict[str, NDArray]:
    """The arrays of a blob by name, in its order, on the host. FormatError, a ValueError, for what is no blob. str is taken
    as latin-1, as old scripts read it."""
    return _functions.params_load(param_bytes.encode("latin-1") if isinstance(param_bytes, str) else param_bytes)


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """load_param_dict of a file. OSError where it cannot be read."""
    with open(path, "rb") as file:
        return load_param_dict(file.read())
