"""What scripts take from `tvm._ffi.base`."""
from __future__ import annotations

import numpy as np

from ..errors import Error as TVMError

__all__ = ["TVMError", "numeric_types", "py_str", "string_types"]

string_types = (str,)
numeric_types = (float, int, np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64)


def py_str(x: bytes) -> str:
    """Bytes as a str."""
    return x.decode("utf-8")
