"""What scripts ask of `tvm.support`: how the runtime was built, and a module whose functions are Python's."""
from __future__ import annotations

import ctypes
import itertools
from typing import Any, Callable

from . import _core, _functions
from .runtime.module import Module, system_lib
from .runtime.packed_func import PackedFunc

__all__ = ["FrontendTestModule", "libinfo"]

# A function of a packed library: arguments, their codes, how many, the result, its code, and what is NULL here.
_PACKED = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, *[ctypes.c_void_p] * 3)
_numbers = itertools.count()
_kept: list[Any] = []  # what compiled code calls lives as long as the process


class FrontendTestModule(Module):
    """A module whose functions are Python's, as the library of a graph: `m = FrontendTestModule(); m["add"] = add`.

    A node of a graph that names a function calls it with its inputs and then its outputs, NDArrays of which it writes the
    latter (`out.copyfrom(...)`). Functions can be called by name, too. It is a system library of a prefix that no other
    library has: what is added stays, with the callable, until the process ends.
    """

    _prefix: str

    def __new__(cls, entry_name: str | None = None) -> "FrontendTestModule":
        prefix = f"_heddle_python_{next(_numbers)}_"
        made = system_lib(prefix)
        made.__class__ = cls
        made._prefix = prefix
        if entry_name is not None:
            made.entry_name = entry_name
        return made

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Adds a function, or puts it in the place of one."""
        library = ctypes.CDLL(_functions.__file__)  # and with it libheddle_tvm
        symbol, handle = (self._prefix + name).encode(), ctypes.c_void_p()
        _functions.register(symbol.decode(), func if isinstance(func, _functions.Function) else PackedFunc(func), True)
        library.TVMFuncGetGlobal(symbol, ctypes.byref(handle))
        _functions.remove(symbol.decode())

        def call(*words: Any) -> int:
            return library.TVMFuncCall(handle, *map(ctypes.c_void_p, words[:2]), words[2], *map(ctypes.c_void_p, words[3:5]))

        code = _PACKED(call)
        _kept.append(code)
        library.TVMBackendRegisterSystemLibSymbol(symbol, code)

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self.add_function(name, func)


def libinfo() -> dict[str, str]:
    """TVM's options of its build, as far as they are of the runtime, by their names: "ON" for what Heddle's runtime has,
    "OFF" for what it has not. Which devices there are says Device.exist; plugins for them are no options of a build."""
    there = {"USE_GRAPH_EXECUTOR": "ON", "USE_GRAPH_EXECUTOR_CUDA_GRAPH": "ON", "USE_PROFILER": "ON", "USE_SORT": "ON",
             "USE_CUDA": "ON", "USE_OPENCL": "ON", "USE_ROCM": "ON", "USE_VULKAN": "ON", "USE_LLVM": "OFF",
             "USE_METAL": "OFF", "USE_MICRO": "OFF", "USE_PAPI": "OFF", "USE_RPC": "OFF", "USE_THRUST": "OFF"}
    return {"TVM_VERSION": f"heddle {_core.version}", **there}
