"""Heddle: runs one model graph across several kinds of processor at once.

    import heddle
    model = heddle.load("model.onnx", devices="vulkan:0,cpu")
    y = model(x)                  # numpy in, numpy out

`load` and Model run graphs; Tensor, empty, as_tensor and from_dlpack are arrays on the host and on devices; Device, devices
and plugins say what there is; Context has settings of its own; heddle.errors has the exceptions. A script that was written
for TVM finds TVM's names here too: heddle.runtime, heddle.graph_executor, heddle.nd.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any

from . import _core
from ._core import Context, Tensor, as_tensor, empty, from_dlpack, load_npy, save_npy
from .device import Device, device, devices, plugins
from .errors import Error

__version__: str = _core.version

# What is imported when it is first asked for: a name, and the module that has it (None: the name is the module).
_LAZY: dict[str, str | None] = {
    "BatchPort": "batching", "Batcher": "batching", "Executor": "model", "GenerationBatch": "generating", "GenerationRequest": "generating",
    "Generator": "generating", "Model": "model", "TensorInfo": "model", "load": "model", "loads": "model",
    "aio": None, "batching": None, "benchmark": None, "execution_provider": None, "generating": None, "errors": None, "graph_executor": None, "debug_executor": None, "model": None,
    "onnxruntime": None, "plan": None, "link": "_pack", "pack": "_pack", "prepared": "_pack", "profile": None, "quantize": "_quantize", "runtime": None, "signing": None,
    "unpack": "_pack",
}

__all__ = ["BatchPort", "Batcher", "Context", "Device", "Error", "GenerationBatch", "GenerationRequest", "Generator", "Model", "Tensor", "as_tensor", "device", "devices", "empty", "errors", "from_dlpack",
           "link", "load", "load_npy", "loads", "pack", "plugins", "prepared", "quantize", "save_npy", "signing", "unpack"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'heddle' has no attribute '{name}'")
    if name in _LAZY:
        where = _LAZY[name]
        found = _importlib.import_module(f"heddle.{where or name}")
        value = found if where is None else getattr(found, name)
    else:
        value = _importlib.import_module("heddle._tvm_names").find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
