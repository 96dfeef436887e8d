"""What deploy scripts of TVM v0.3 to v0.5 take from `nnvm.compiler`: parameters as bytes."""
from __future__ import annotations

import types

from .runtime import load_param_dict, save_param_dict

compiler = types.SimpleNamespace(load_param_dict=load_param_dict, save_param_dict=save_param_dict)

__all__ = ["compiler", "load_param_dict", "save_param_dict"]
