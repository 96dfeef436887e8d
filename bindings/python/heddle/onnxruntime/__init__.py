"""ONNX Runtime's Python package over Heddle: a script runs with one import line changed.

    import heddle.onnxruntime as onnxruntime      # import onnxruntime
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})

Sessions, options, OrtValue, io_binding, NodeArg, metadata, providers and the classes of exceptions are there under ONNX
Runtime's names, and do what they do there; docs/coming-from-onnxruntime.md lists what differs. ONNX Runtime itself is not
needed. __version__ is the version of ONNX Runtime whose package this follows.
"""

from __future__ import annotations

from . import capi
from .binding import IOBinding, SessionIOBinding
from .metadata import ModelMetadata
from .options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDevice,
    OrtMemType,
    RunOptions,
    SessionOptions,
    disable_telemetry_events,
    enable_telemetry_events,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from .providers import get_all_providers, get_available_providers, get_device
from .session import InferenceSession, NodeArg
from .value import OrtValue

__version__ = "1.32.0"


def get_version_string() -> str:
    """The version of ONNX Runtime whose package this follows."""
    return __version__


def get_build_info() -> str:
    """What this is."""
    from .. import __version__ as heddle  # pylint: disable=import-outside-toplevel
    return f"Heddle {heddle}, with the package of ONNX Runtime {__version__}"


__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
    "OrtAllocatorType", "OrtDevice", "OrtMemType", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "capi",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_device", "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]
