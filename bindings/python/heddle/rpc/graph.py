"""Graph executors of a session, as heddle.graph_executor has them for this process."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ..graph_executor import GraphModule
from ..ndarray import Device, empty
from .remote import RemoteArray, RemoteDevice, RemoteModule


def create(graph: str | bytes, libmod: Any, devices: Sequence[Device]) -> "RemoteGraphModule":
    """An executor on the server of the devices, all of which are of one session."""
    first = devices[0]
    if not isinstance(first, RemoteDevice) or not isinstance(libmod, (RemoteModule, type(None))) or \
            any(not isinstance(d, RemoteDevice) or d.session is not first.session for d in devices):
        raise ValueError("the devices and the module of a remote executor belong to one session")
    numbers = [n for d in devices for n in d.value]  # type: ignore[attr-defined]
    text = graph.decode() if isinstance(graph, bytes) else graph
    return RemoteGraphModule(first.session.get_function("tvm.graph_executor.create")(text, libmod, *numbers))


class RemoteGraphModule(GraphModule):
    """A GraphModule whose executor is on a server; graph_executor.GraphModule(remote_module) makes one too."""

    def __init__(self, module: RemoteModule):
        self.module = module  # type: ignore[assignment]
        for name in ("run", "get_output", "get_input", "get_num_outputs", "load_params", "get_num_inputs", "get_input_index",
                     "set_input_zero_copy", "set_output_zero_copy", "get_input_info", "get_output_info", "share_params"):
            setattr(self, "_" + name, self._maybe(name))
        self._known = None

    def _maybe(self, name: str) -> Any:
        """The function, or one that raises when it is called: older servers have fewer."""
        found = self.module.find(name, True)  # type: ignore[attr-defined]
        if found is not None:
            return found

        def missing(*args: Any) -> Any:
            raise AttributeError(f"the server's executor has no function '{name}'")
        return missing

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Copies values to inputs: one by number or name, and any number by name."""
        pairs = list(params.items())
        if key is not None:
            pairs.insert(0, (key, value))  # type: ignore[arg-type]
        for name, given in pairs:
            place = self._get_input(name)
            if place is None and name == key:
                raise RuntimeError(f"Could not find '{key}' in graph's inputs")
            if place is not None:
                place.copyfrom(given if isinstance(given, RemoteArray) else np.asarray(given).reshape(place.shape))

    def set_input_zero_copy(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """As set_input, but runs read the remote arrays that are given."""
        if key is not None:
            self._set_input_zero_copy(key, value)
        for name, given in params.items():
            self._set_input_zero_copy(name, given)

    def set_output_zero_copy(self, key: int | str, value: Any) -> None:
        self._set_output_zero_copy(key, value)

    def get_input(self, index: int | str, out: Any = None) -> Any:
        got = self._get_input(index)
        return got if out is None else got.copyto(out)

    def get_output(self, index: int | str, out: Any = None) -> Any:
        """An output; with out, which may be an array of this process, it is copied there."""
        got = self._get_output(index)
        return got if out is None else got.copyto(out)

    def debug_get_output(self, node: int | str, out: Any = None) -> Any:
        call = self.module["debug_get_output"]
        if out is None:
            return call(node)
        place = out if isinstance(out, RemoteArray) else None
        if place is None:
            first = self._get_output(0)
            place = empty(out.shape, out.dtype, first.device)
        call(node, place)
        return out if place is out else place.copyto(out)

    def load_params(self, params_bytes: bytes) -> None:
        self._load_params(bytearray(params_bytes))

    def share_params(self, other: "GraphModule", params_bytes: bytes) -> None:
        self._share_params(other.module, bytearray(params_bytes))

    def _fill(self, but: Any = ()) -> None:
        """Inputs that were not set are zeros on the server."""
        shapes, _ = self.get_input_info()
        for name in shapes:
            if name not in but:
                self._get_input(name)

    def _array(self, index: int, value: Any) -> Any:
        if isinstance(value, RemoteArray):
            return value
        place = self._get_input(index)
        made = empty(place.shape, place.dtype, place.device)
        return made.copyfrom(np.asarray(value).reshape(place.shape))
