"""TVM's runtime by its names, with Heddle below: arrays, devices, functions by name, and modules of compiled libraries.

A script that was written for tvm.runtime runs with heddle.runtime: see docs/coming-from-tvm.md for what differs. Everything
is of the process's one context (heddle_context_process), whose devices HEDDLE_DEVICES and the configuration file name.
"""

from .. import errors as _errors
from . import container, module, ndarray, packed_func, params, profiling
from .container import ShapeTuple, String
from .datatype import DataType, DataTypeCode
from .loaders import register_module_loader
from .module import BenchmarkResult, Module, enabled, load_module, load_static_library, num_threads, system_lib
from .ndarray import (Device, NDArray, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, mtl, opencl, rocm, vpi, vulkan,
                      webgpu)
from .packed_func import (PackedFunc, convert, get_global_func, list_global_func_names, register_func,
                          remove_global_func)
from .params import load_param_dict, load_param_dict_from_file, save_param_dict, save_param_dict_to_file

nd = ndarray
TVMError = _errors.Error

__all__ = [
    "BenchmarkResult", "DataType", "DataTypeCode", "Device", "Module", "NDArray", "PackedFunc", "ShapeTuple", "String",
    "TVMError", "cl", "container", "convert", "cpu", "cuda", "device", "enabled", "ext_dev", "get_global_func", "gpu",
    "hexagon", "list_global_func_names", "load_module", "load_param_dict", "load_param_dict_from_file",
    "load_static_library", "metal", "module", "mtl", "nd", "ndarray", "num_threads", "opencl", "packed_func", "params",
    "profiling",
    "register_func", "register_module_loader", "remove_global_func", "rocm", "save_param_dict", "save_param_dict_to_file", "system_lib", "vpi",
    "vulkan", "webgpu",
]
