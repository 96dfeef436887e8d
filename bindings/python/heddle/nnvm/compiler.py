"""Parameters as bytes, under the name that they had in TVM v0.3 to v0.5."""
from ..runtime import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
