"""heddle/function.h as Python types: functions, modules and values. heddle/runtime/ is what users see."""

from typing import Any, Callable

class Function:
    """A packed function. Arguments and result: None, bool, int, float, str, bytes, Tensor (and what tensor_of takes:
    numpy arrays), Device (anything with device_type and device_id), dtype (numpy dtype), Module, Function, any Python
    callable (made a function for the time it is held), ctypes pointers. The GIL is released meanwhile."""
    def __init__(self, call: Callable[..., Any]): ...   # exceptions become errors; see `call_error`
    def __call__(self, *args: Any) -> Any: ...

class Module:
    """heddle_object: a library, a model inside of one, an executor, ..."""
    kind: str
    def function(self, name: str, imports: bool = False) -> Function: ...   # NotFoundError
    def add_import(self, other: "Module") -> None: ...

def load_module(path: str, format: str = "") -> Module: ...
def register(name: str, function: Function, replace: bool = False) -> None: ...
def find(name: str) -> Function | None: ...
def remove(name: str) -> None: ...
def names() -> list[str]: ...
def set_classes(function: type, module: type) -> None: ...   # subclasses that results have
# A Python function that raises: whoever called it from Python, through compiled code or not, gets the same exception
# object (its traceback too); elsewhere its words are the error's.
