"""`tvm.module` as it was up to v0.6: modules from files under their older names."""
from __future__ import annotations

from .runtime import Module, load_module, system_lib
from .runtime import load_module as load

__all__ = ["Module", "load", "load_module", "system_lib"]
