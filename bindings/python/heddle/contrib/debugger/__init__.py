"""Modules where TVM has them, each imported when it is first asked for:
`from heddle.contrib.debugger import debug_executor`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None
