"""Names that TVM has at its top and Heddle elsewhere, so that `import heddle as tvm` is all that a script needs. The
package's __getattr__ asks here for what it has not itself; modules are imported when they are first asked for.
"""
from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("_ffi", "contrib", "debug_executor", "error", "graph_executor", "graph_runtime", "module", "nnvm", "relay", "rpc", "runtime",
            "support", "testing")
_OF_RUNTIME = ("DataType", "DataTypeCode", "Device", "Module", "NDArray", "PackedFunc", "cl", "convert", "cpu", "cuda", "device", "ext_dev",
               "get_global_func", "gpu", "hexagon", "list_global_func_names", "metal", "mtl", "nd", "ndarray", "num_threads",
               "opencl", "register_func", "remove_global_func", "rocm", "vpi", "vulkan", "webgpu")
_OTHERS = {"TVMError": ("errors", "Error"), "TVMContext": ("runtime", "Device"), "context": ("runtime", "device"),
           "load_module": ("runtime", "load_module")}
_COMPILER = ("IRModule", "auto_scheduler", "autotvm", "build", "compile", "driver", "ir", "lower", "meta_schedule", "relax",
             "target", "te", "tir", "topi", "transform")

NAMES = {**{name: (name, None) for name in _MODULES}, **{name: ("runtime", name) for name in _OF_RUNTIME}, **_OTHERS}


def find(name: str) -> Any:
    """What TVM has under a name. AttributeError: Heddle has no such thing, with what takes its place where it is of the
    compiler's."""
    if name in NAMES:
        module, attribute = NAMES[name]
        found = importlib.import_module(f"heddle.{module}")
        return found if attribute is None else getattr(found, attribute)
    if name in _COMPILER:
        raise AttributeError(f"heddle has no '{name}': models are compiled with TVM, and Heddle runs what it wrote")
    raise AttributeError(f"module 'heddle' has no attribute '{name}'")
