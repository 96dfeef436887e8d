"""Modules of kinds that Heddle does not know (a code generator's JSON graphs, a vendor's format): Python code reads, runs and
writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from .. import _functions
from .packed_func import PackedFunc

# A module: functions by name, or an object whose get_function(name) gives one, or None.
Loaded = Any


def _asked(module: Loaded, used: int | None, save: Callable[[Loaded], bytes | None] | None) -> PackedFunc:
    """The module as heddle_function_register_loader has it."""
    is_mapping = isinstance(module, Mapping)
    names = [str(name) for name in module] if is_mapping else []

    def answer(what: str, argument: Any = None) -> Any:
        if what == "bytes":
            return used
        if what == "name":
            return names[argument] if argument < len(names) else None
        if what == "find":
            found = module.get(argument) if is_mapping else module.get_function(argument)
            return found if found is None or isinstance(found, _functions.Function) else PackedFunc(found)
        written = save(module) if what == "save" and save is not None else None
        return None if written is None else bytes(written)

    return PackedFunc(answer)


def register_module_loader(kind: str, load: Callable[[bytes], Loaded | tuple[Loaded, int]] | None,
                           save: Callable[[Loaded], bytes | None] | None = None) -> None:
    """Reads modules of a kind that Heddle does not know, in all libraries that are opened later; load None ends that.

    load(data) gives a module: a mapping of names to callables, or an object with get_function(name), which gives a callable
    or None; or a pair of that and the number of bytes that belong to the module. Libraries of v0.21 and before do not say
    where a module ends: data is the rest of the library's blob there. Callables get what functions get (PackedFunc), and
    are called by compiled code, as nodes of a graph on cpu, and by name.

    save(module) gives its bytes as load reads them, when a library that holds it is packed (heddle.pack). Without save, and
    where it gives None, the bytes that the module was loaded from are written again. What these raise is what load_module and
    heddle.pack raise. ValueError for a kind that Heddle reads itself.
    """
    if load is None:
        _functions.register_loader(kind, None)
        return

    def made(_: str, data: bytes) -> PackedFunc:
        given = load(bytes(data))
        module, used = given if isinstance(given, tuple) else (given, None)
        return _asked(module, used, save)

    _functions.register_loader(kind, PackedFunc(made))
