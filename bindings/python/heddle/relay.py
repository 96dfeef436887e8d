"""What deploy scripts take from `tvm.relay`: parameters as bytes. Models are compiled with TVM; its compiler is not here."""
from __future__ import annotations

from typing import Any

from .runtime import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"heddle.relay has no '{name}': models are compiled with TVM, and Heddle runs what it wrote; "
                         f"here are {', '.join(__all__)}")
