"""ONNX Runtime's exceptions, and how errors of Heddle become them. The error of Heddle is the __cause__, with its node,
device and status."""

from __future__ import annotations

import contextlib
from typing import Iterator

from ... import errors


class _Status(Exception):
    number, word = 1, "FAIL"

    @classmethod
    def of(cls, text: str) -> _Status:
        """An exception with ONNX Runtime's words before the text."""
        return cls(f"[ONNXRuntimeError] : {cls.number} : {cls.word} : {text}")


class Fail(_Status):
    """A failure that no other class is for."""


class InvalidArgument(_Status):
    """An input, or an argument, is wrong."""
    number, word = 2, "INVALID_ARGUMENT"


class NoSuchFile(_Status):
    """The model's file does not exist."""
    number, word = 3, "NO_SUCHFILE"


class NoModel(_Status):
    """There is no model."""
    number, word = 4, "NO_MODEL"


class EngineError(_Status):
    """A failure of the runtime itself."""
    number, word = 5, "ENGINE_ERROR"


class RuntimeException(_Status):
    """A run failed."""
    number, word = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(_Status):
    """The file is no protobuf message."""
    number, word = 7, "INVALID_PROTOBUF"


class ModelLoaded(_Status):
    """The model is loaded already."""
    number, word = 8, "MODEL_LOADED"


class NotImplemented(_Status):  # pylint: disable=redefined-builtin
    """Something that is not supported."""
    number, word = 9, "NOT_IMPLEMENTED"


class InvalidGraph(_Status):
    """The model is not valid."""
    number, word = 10, "INVALID_GRAPH"


class EPFail(_Status):
    """A device failed."""
    number, word = 11, "EP_FAIL"


class ModelLoadCanceled(_Status):
    """Loading was cancelled."""
    number, word = 12, "MODEL_LOAD_CANCELED"


class NotFound(_Status):
    """Something was not found."""
    number, word = 14, "NOT_FOUND"


# A model with operators that are not known: ONNX Runtime raises InvalidGraph for those that are nobody's, and NotImplemented
# for those that it has no kernel of. This is both.
_Unknown: type[_Status] = type("InvalidGraph", (InvalidGraph, NotImplemented), {"__doc__": InvalidGraph.__doc__})


@contextlib.contextmanager
def loading(path: str | None, is_protobuf: bool) -> Iterator[None]:
    """Raises what ONNX Runtime would where a model cannot be loaded."""
    before = "" if path is None else f"Load model from {path} failed:"
    try:
        yield
    except errors.FormatError as error:
        raise (InvalidGraph if is_protobuf else InvalidProtobuf).of(before + str(error)) from error
    except errors.UnsupportedError as error:
        raise (Fail if error.node is None else _Unknown).of(before + str(error)) from error
    except errors.InvalidError as error:
        raise InvalidArgument.of(before + str(error)) from error
    except errors.Error as error:
        raise Fail.of(before + str(error)) from error


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Raises what ONNX Runtime would where a run fails."""
    try:
        yield
    except errors.InvalidError as error:
        raise InvalidArgument.of(str(error)) from error
    except errors.UnsupportedError as error:
        raise NotImplemented.of(str(error)) from error
    except errors.DeviceLostError as error:
        raise EPFail.of(str(error)) from error
    except errors.Error as error:
        raise Fail.of(str(error)) from error
