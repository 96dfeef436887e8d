"""Heddle as an execution provider of ONNX Runtime 1.23 and later, for scripts that stay with ONNX Runtime.

    import onnxruntime
    from heddle import execution_provider
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(execution_provider.register(), {"device": "opencl:0,cpu"})
    session = onnxruntime.InferenceSession("model.onnx", sess_options=options)

docs/coming-from-onnxruntime.md lists the options. Other languages register the library of path() by ONNX Runtime's own call.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

from . import _core

NAME = "HeddleExecutionProvider"


class _Found(ctypes.Structure):
    """What dladdr fills."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def path() -> str:
    """The library, which lies beside libheddle. FileNotFoundError where it was not built."""
    found = _Found()
    process = ctypes.CDLL(None)
    here = ctypes.CDLL(_core.__file__).heddle_version
    if process.dladdr(ctypes.cast(here, ctypes.c_void_p), ctypes.byref(found)) == 0 or not found.file:
        raise FileNotFoundError("libheddle is not found in this process")
    library = pathlib.Path(os.fsdecode(found.file)).resolve().parent / "libheddle_ort_ep.so"
    if not library.is_file():
        raise FileNotFoundError(f"there is no {library}: this build of Heddle has no execution provider (HEDDLE_ORT_EP, HEDDLE_ONNX)")
    return str(library)


def register(name: str = NAME) -> list[Any]:
    """Registers the provider with ONNX Runtime under a name, once for each name, and gives its devices, for
    SessionOptions.add_provider_for_devices. ImportError without onnxruntime, RuntimeError before version 1.23."""
    import onnxruntime  # pylint: disable=import-outside-toplevel
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise RuntimeError(f"onnxruntime {onnxruntime.__version__} has no execution providers in libraries; 1.23 has")

    def devices() -> list[Any]:
        return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    if not devices():
        onnxruntime.register_execution_provider_library(name, path())
    return devices()
