"""What scripts ask of `tvm.support`: how the runtime was built."""
from __future__ import annotations

from . import _core

__all__ = ["libinfo"]


def libinfo() -> dict[str, str]:
    """TVM's options of its build, as far as they are of the runtime, by their names: "ON" for what Heddle's runtime has,
    "OFF" for what it has not. Which devices there are says Device.exist; plugins for them are no options of a build."""
    there = {"USE_GRAPH_EXECUTOR": "ON", "USE_GRAPH_EXECUTOR_CUDA_GRAPH": "ON", "USE_PROFILER": "ON", "USE_SORT": "ON",
             "USE_CUDA": "ON", "USE_OPENCL": "ON", "USE_ROCM": "ON", "USE_VULKAN": "ON", "USE_LLVM": "OFF",
             "USE_METAL": "OFF", "USE_MICRO": "OFF", "USE_PAPI": "OFF", "USE_RPC": "OFF", "USE_THRUST": "OFF"}
    return {"TVM_VERSION": f"heddle {_core.version}", **there}
