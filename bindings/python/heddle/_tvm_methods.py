"""Functions of an executor or a model inside of a library whose results TVM gives as containers of its C++ library: here
the C function's text, blob or list module becomes the dict or list that a script expects.
"""
from __future__ import annotations

import json
from typing import Any, Callable

from .runtime.params import load_param_dict

_KINDS = ("GraphExecutor", "GraphExecutorFactory")


def _info(said: str) -> dict[str, dict[str, Any]]:
    both = json.loads(said)
    return {"shape": {name: tuple(shape or ()) for name, shape in both["shape"].items()}, "dtype": both["dtype"]}


def _items(found: Any) -> list[Any]:
    return [found["get"](i) for i in range(found["size"]())]


_RESULTS: dict[str, Callable[[Any], Any]] = {
    "get_input_info": _info, "get_output_info": _info, "get_graph_params": load_param_dict, "run_from_inputs": _items}


def adapt(kind: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a module of that kind: the function itself, or one that gives its result in Python's containers."""
    convert = _RESULTS.get(name) if kind in _KINDS else None
    if convert is None:
        return function

    def call(*args: Any) -> Any:
        return convert(function(*args))
    call.__name__ = name
    return call
