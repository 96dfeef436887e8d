"""The exceptions: one class for each of the library's statuses, all of them an Error.

Each has the attributes `status` ("HEDDLE_EINVAL"), `code` (its number), `api_code` (the number that the driver gave, or 0),
`message` (the words, which str() gives too), and what the words are about, or None: `node`, `device` ("sim:0"), `rank` (in a
context of ranks) and `file` (the path that the call was given). They can be pickled. Where Python has a class for the thing, ours is that too, so that
`except ValueError`, `except OSError`, `except KeyError`, `except MemoryError` and `except TimeoutError` work.
"""

from ._core import (
    AbiError,
    BusyError,
    CanceledError,
    CompileError,
    DeviceLostError,
    Error,
    FailedError,
    FileError,
    ForkError,
    FormatError,
    InternalError,
    InvalidError,
    LimitError,
    DeniedError,
    NeedsOpenError,
    NoDeviceError,
    NotFoundError,
    PlanError,
    UnsupportedError,
)
from ._core import MemoryError_ as OutOfMemoryError
from ._core import TimeoutError_ as RunTimeoutError

__all__ = [
    "AbiError", "BusyError", "CanceledError", "CompileError", "DeviceLostError", "Error", "FailedError", "FileError",
    "ForkError", "FormatError", "InternalError", "InvalidError", "DeniedError", "LimitError", "NeedsOpenError", "NoDeviceError",
    "NotFoundError", "OutOfMemoryError", "PlanError", "RunTimeoutError", "UnsupportedError",
]
