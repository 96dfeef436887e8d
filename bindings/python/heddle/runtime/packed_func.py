"""Functions that compiled code can call, and functions by name."""

from __future__ import annotations

from typing import Any, Callable

from .. import _core, _functions
from ..errors import NotFoundError


class PackedFunc(_functions.Function):
    """A function: of a compiled library, of an executor, of this process, or PackedFunc(callable).

    Arguments are None, bool, int (of 64 bits), float, str, bytes, arrays (NDArray, numpy, anything with __dlpack__ or a
    buffer), Device, numpy dtypes, Module, PackedFunc, any callable, and pointers of ctypes; results are the same, arrays as
    NDArray, bytes as bytearray, dtypes as their names. TypeError for any other argument; a failure is heddle.errors.Error.

    Arrays are shared, and what a function writes is in them after the call. Compiled functions take compact arrays that
    begin at a multiple of 64 bytes, as NDArrays do; a numpy array that does not is copied for the call, and back after it
    where it may be written to.

    A callable that raises: a caller in Python gets the same exception, through compiled code too. An array
    that compiled code passes to a callable may be a view of memory that ends with the call: copy (numpy()) what is to stay.
    Calls release the GIL and wait for what they launch. A function and a callable that refers to it keep one another alive.
    """

    def __repr__(self) -> str:
        return f"PackedFunc(0x{self.address:x})"


class MissingGlobalError(NotFoundError, ValueError):
    """TVM raises ValueError here."""


def convert(value: Any) -> Any:
    """A value as functions take it: a callable as a PackedFunc, a list or tuple with each item converted, others as they
    are. TypeError for what a function does not take."""
    if isinstance(value, (_functions.Function, _functions.Module, _core.Tensor)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [convert(item) for item in value]
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    if isinstance(value, (bool, int, float, str, bytes, bytearray)) or hasattr(value, "dtype") or \
            hasattr(value, "device_type") or hasattr(value, "__dlpack__"):
        return value
    if callable(value):
        return PackedFunc(value)
    raise TypeError(f"a '{type(value).__name__}' is not converted")


def register_func(func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None,
                  override: bool = False) -> Any:
    """Gives a function a name in this process, by which compiled code and get_global_func find it; gives the PackedFunc.

    register_func("name", f), or as a decorator: @register_func, @register_func("name"), @register_func("name",
    override=True). The name stays when the Python object is dropped. ValueError where the name is taken and override is
    false; code that was given the former function keeps that.
    """
    if callable(func_name) and not isinstance(func_name, str):
        f, func_name = func_name, func_name.__name__
    if not isinstance(func_name, str):
        raise ValueError("expected a name")

    def register(function: Callable[..., Any]) -> PackedFunc:
        made = function if isinstance(function, _functions.Function) else PackedFunc(function)
        _functions.register(func_name, made, override)
        return made

    return register(f) if f is not None else register


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function that is registered under a name. Where there is none: None if allow_missing, else ValueError (which is
    heddle.errors.NotFoundError too)."""
    found = _functions.find(name)
    if found is None and not allow_missing:
        raise MissingGlobalError(f"Cannot find global function {name}")
    return found


def list_global_func_names() -> list[str]:
    """All names, in alphabetical order."""
    return _functions.names()


def remove_global_func(name: str) -> None:
    """Takes a name away; code that was given the function keeps it. NotFoundError where there is none."""
    _functions.remove(name)
