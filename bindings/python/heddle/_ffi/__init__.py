"""What scripts take from `tvm._ffi`: the registry of functions; base, registry and runtime_ctypes are imported when they
are first asked for, so that `tvm._ffi.registry` needs no import of its own."""
from __future__ import annotations

import importlib
from typing import Any

from ..runtime import get_global_func, list_global_func_names, register_func, remove_global_func

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]


def __getattr__(name: str) -> Any:
    if name in ("base", "registry", "runtime_ctypes"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
