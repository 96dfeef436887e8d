"""TVM's graph executor, name for name: what `tvm.contrib.graph_executor` of v0.14 has, on Heddle's runtime.

    from heddle.contrib import graph_executor
    gmod = graph_executor.create(graph_json, lib, heddle.cpu(0))      # or GraphModule(lib["default"](heddle.cpu(0)))
    gmod.load_params(params)
    gmod.set_input("data", x)
    gmod.run()
    y = gmod.get_output(0).numpy()

Where TVM's behaviour is a fault, ours is right, and the docstring notes it. One thread at a time calls a GraphModule;
executors that share parameters may run in a thread each. All calls wait for the work that they start, without the GIL.
"""
from __future__ import annotations

import json
import logging
import math
import operator
from typing import Any, Container, Sequence

import numpy as np

from .errors import InvalidError, NotFoundError, UnsupportedError
from .ndarray import Device, NDArray, empty, from_dlpack
from .runtime import BenchmarkResult, Module, get_global_func, num_threads
from .runtime.profiling import Count, Report, report_of_run

__all__ = ["GraphModule", "create", "get_device"]

_log = logging.getLogger("heddle")
_REMOTE = range(128, 1 << 24)  # these types are devices of another machine in TVM; from 2**24 on are those of plugins


def create(graph_json_str: str, libmod: Module | None, device: Device | Sequence[Device]) -> "GraphModule":
    """An executor of a graph.

    graph_json_str: the graph's JSON as text, not a path. libmod: the module with the graph's functions (None where it has
    none). device: one device, or a list: the first is preferred, and a graph for several devices needs all of them.
    Values are copied between any two of them; in TVM one of both has to be the host.

    Raises ValueError for what is no device, heddle.Error where the graph is refused, a function is missing or a device is
    not there: graphs from elsewhere are checked before anything runs.
    """
    devices, remote, numbers = get_device(libmod, device)
    if remote:
        from .rpc import graph
        return graph.create(_text_of(graph_json_str), libmod, devices)
    made = get_global_func("tvm.graph_executor.create")
    return GraphModule(made(_text_of(graph_json_str), libmod, *numbers))


def get_device(libmod: Module | None, device: Device | Sequence[Device]) -> tuple[list[Device], int, list[int]]:
    """(devices as a list, the number of remote ones, which is 0 or all, [type, id, type, id, ...]).

    Raises ValueError where device is not a device or a list of devices, or some are remote and some are not.
    """
    if isinstance(device, Device):
        device = [device]
    if not isinstance(device, (list, tuple)) or not device or not all(isinstance(d, Device) for d in device):
        raise ValueError("dev has to be the type of Device or a list of Device")
    remote = [dev for dev in device if dev.device_type in _REMOTE]
    for dev in remote:
        if len(remote) != len(device) or not hasattr(dev, "session"):
            raise ValueError(f"{dev} is a remote device: all devices are of one session of heddle.rpc, or of this machine")
    return device, len(remote), [number for dev in device for number in (dev.device_type, dev.device_id)]


def _text_of(graph: Any) -> str | bytes:
    if isinstance(graph, (str, bytes, bytearray)):
        return bytes(graph) if isinstance(graph, bytearray) else graph
    raise TypeError(f"graph_json_str: expected the graph's JSON as a str, not {type(graph).__name__}")


class GraphModule:
    """An executor: a thin layer above the functions of its module, which may be called too.

    module: what `create` or a factory's function gives: `GraphModule(lib["default"](heddle.cpu(0)))`. It is the attribute
    `module`. AttributeError: the module has not an executor's functions.
    """

    def __new__(cls, module: Any, *more: Any, **named: Any) -> "GraphModule":
        if cls is GraphModule and hasattr(module, "handle"):
            from .rpc.graph import RemoteGraphModule
            return super().__new__(RemoteGraphModule)
        return super().__new__(cls)

    def __init__(self, module: Module):
        self.module = module
        self._set_input = module["set_input"]
        self._set_input_zero_copy = module["set_input_zero_copy"]
        self._set_output_zero_copy = module["set_output_zero_copy"]
        self._run = module["run"]
        self._get_output = module["get_output"]
        self._get_input = module["get_input"]
        self._get_num_outputs = module["get_num_outputs"]
        self._get_input_index = module["get_input_index"]
        self._get_input_info = module["get_input_info"]
        self._get_output_info = module["get_output_info"]
        self._get_num_inputs = module["get_num_inputs"]
        self._load_params = module["load_params"]
        self._share_params = module["share_params"]
        self._known: list[tuple[tuple[int, ...], str]] | None = None

    # ---- inputs

    def set_input(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """Copies values to inputs: one by number or name, and any number by name, the largest first.

        value: an NDArray of the input's dtype and number of elements, or anything that numpy makes an array of: that has
        the input's shape, and is converted to its dtype. A name that is none raises NotFoundError (a RuntimeError) as key, and is
        passed over among params. ValueError: a shape is another; heddle.Error: an NDArray's dtype is another (TVM compares bytes
        only).
        """
        if key is not None:
            index = self._index(key)
            self._set_input(index, self._array(index, value))
        for name, index in self._known_by_size(params):
            self._set_input(index, self._array(index, params[name]))

    def set_input_zero_copy(self, key: int | str | None = None, value: Any = None, **params: Any) -> None:
        """As set_input, but runs read the caller's memory: what is written there, the next run sees.

        value: an NDArray, a numpy array, an object with DLPack's __dlpack__ or a capsule of that, of the input's dtype and shape. It is kept
        until the input is set otherwise. TypeError: it has no memory to share. Memory that is less aligned than compiled
        code needs, or that is on a device, is copied from there by each run, where TVM fails.
        """
        if key is not None:
            self._set_input_zero_copy(self._index(key), _shared(value))
        for name, index in self._known_by_size(params):
            self._set_input_zero_copy(index, _shared(params[name]))

    def set_output_zero_copy(self, key: int | str, value: Any) -> None:
        """Runs write an output (number, node's name, or NAME:INDEX) to the caller's memory; as set_input_zero_copy."""
        self._set_output_zero_copy(key, _shared(value))

    def get_num_inputs(self) -> int:
        """How many inputs the graph has, parameters included."""
        return self._get_num_inputs()

    def get_input(self, index: int | str, out: Any = None) -> NDArray | Any:
        """An input by number or name: an array that is the input's memory, None where no input has that name. With out,
        it is copied there, and out is given back."""
        if out is None:
            return self._get_input(index)
        self._get_input(self._index(index), out)
        return out

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 where none has that name."""
        return self._get_input_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """(name -> shape, name -> dtype) of the inputs that are no parameters: of all, before parameters are loaded."""
        return _info(self._get_input_info())

    # ---- runs and outputs

    def run(self, **input_dict: Any) -> None:
        """Sets inputs, where some are given, and runs the graph. heddle.Error: node, device and file are attributes."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_num_outputs(self) -> int:
        """How many outputs the graph has."""
        return self._get_num_outputs()

    def get_output(self, index: int | str, out: Any = None) -> NDArray | Any:
        """An output by number, node's name or NAME:INDEX: an array that is the output's memory, so that the next run
        changes it. With out (equal dtype and shape), it is copied there, and out is given back."""
        if out is None:
            return self._get_output(index)
        self._get_output(index, out)
        return out

    def get_output_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """(name -> shape, name -> dtype) of the outputs. TVM takes those of other nodes where one has several outputs."""
        return _info(self._get_output_info())

    def debug_get_output(self, node: int | str, out: Any = None) -> NDArray | Any:
        """Runs the graph up to a node (its number, name or NAME:OUTPUT), and gives its first or that output; with out, it
        is copied there, and out is given back. In TVM only the debug executor has it, and takes the number of a node for
        that of an output."""
        call = self.module["debug_get_output"]
        if out is None:
            return call(node)
        call(node, out)
        return out

    # ---- parameters

    def load_params(self, params_bytes: bytes) -> None:
        """Sets parameters from a blob (`save_param_dict`); names that the graph has not are passed over."""
        self._load_params(bytes(params_bytes))

    def share_params(self, other: "GraphModule", params_bytes: bytes) -> None:
        """Takes the memory of another executor's parameters; of the blob only the names count. Each may then run in a
        thread of its own. TVM refuses that where an array of the other's inputs is held; here it works."""
        self._share_params(other.module, bytes(params_bytes))

    # ---- measurements

    def benchmark(self, device: Device, func_name: str = "run", repeat: int = 5, number: int = 5,
                  min_repeat_ms: float | None = None, limit_zero_time_iterations: int = 100, end_to_end: bool = False,
                  cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1, **kwargs: Any) -> BenchmarkResult:
        """Times a function of the executor: once untimed, then `repeat` measurements of `number` calls each.

        min_repeat_ms: calls are added until a measurement takes that long, and stay added. limit_zero_time_iterations: at
        most so many measurements may read 0. cooldown_interval_ms: a pause between groups of repeats_to_cooldown
        measurements. kwargs: inputs, set before the clock starts; inputs that are not set are zeros from then on, since
        only the time counts (a plain run refuses them). end_to_end: instead of func_name, each call copies these inputs in,
        runs, and copies all outputs to device.

        Gives seconds: .mean, .median, .std, .min, .max, .results (one a measurement); str() is a table in milliseconds.
        TVM drops the pauses with end_to_end, and pauses after the first measurement whatever the groups.
        """
        timing = dict(repeat=repeat, number=number, min_repeat_ms=math.ceil(min_repeat_ms or 0),
                      limit_zero_time_iterations=limit_zero_time_iterations,
                      cooldown_interval_ms=math.ceil(cooldown_interval_ms), repeats_to_cooldown=repeats_to_cooldown)
        if not end_to_end:
            self.set_input(**kwargs)
            self._fill()
            return self.module.time_evaluator(func_name, device, **timing)()
        pairs: list[Any] = []
        for name in kwargs:
            pairs += [name, self._array(self._index(name), kwargs[name])]
        self._fill(kwargs)
        timed = self.module.time_evaluator("run_from_inputs", device, **timing)
        return timed(device.device_type, device.device_id, *pairs)

    def profile(self, collectors: Sequence[Any] | None = None, **input_dict: Any) -> Report:
        """Sets inputs, runs once to warm up and once with a clock on each step, and gives a Report: time by operator and
        by device. collectors: None or empty; TVM's collectors of hardware counters are not there."""
        if collectors:
            raise UnsupportedError("collectors: Heddle has none of TVM's collectors of hardware counters; give None")
        if input_dict:
            self.set_input(**input_dict)
        return report_of_run(self.module["profile"](), self.module["get_graph_json"](),
                             {"Number of threads": Count(num_threads()), "Executor": "Graph"})

    def __getitem__(self, key: str) -> Any:
        """A function of the executor's module, such as gmod["run"]."""
        return self.module[key]

    # ---- inside

    def _fill(self, but: Container[str] = ()) -> None:
        """Gives memory, which is zeroed, to inputs that have no value; others are left as they are."""
        shapes, dtypes = self.get_input_info()
        for name in shapes:
            if name in but:
                continue
            try:
                self._get_input(name, empty(shapes[name], dtypes[name]))
            except InvalidError:  # it was never set
                self._get_input(name)

    def _index(self, key: int | str) -> int:
        """The number of an input that is asked for by number or name."""
        if not isinstance(key, str):
            return operator.index(key)
        index = self._get_input_index(key)
        if index < 0:
            raise NotFoundError(f"Could not find '{key}' in graph's inputs")
        return index

    def _known_by_size(self, values: dict[str, Any]) -> list[tuple[str, int]]:
        """(name, number) of those that are inputs, the largest first."""
        found = [(name, self._get_input_index(name)) for name in values]
        for name, index in found:
            if index < 0:
                _log.info("no input has the name '%s': its value is passed over", name)

        def size(item: tuple[str, int]) -> int:
            value = values[item[0]]
            return math.prod(value.shape if hasattr(value, "shape") else np.shape(value))
        return sorted((item for item in found if item[1] >= 0), key=size, reverse=True)

    def _array(self, index: int, value: Any) -> Any:
        """A value that an input takes: NDArrays and numpy arrays that fit as they are, all else converted."""
        if isinstance(value, NDArray) and value.dtype != "uint16":
            return value
        if self._known is None:
            self._known = _inputs_of(self.module["get_graph_json"]())
        if not 0 <= index < len(self._known):
            return value  # the module's function says what is wrong with the number
        shape, dtype = self._known[index]
        if shape is None:  # as the value has it
            shape = tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
        if isinstance(value, NDArray):
            if dtype != "bfloat16":
                return value
            value = value.numpy().reshape(shape)  # its bits
        if isinstance(value, np.ndarray) and value.shape == shape and str(value.dtype) == dtype:
            return value
        fits = empty(shape, dtype)
        fits.copyfrom(value)
        return fits


def _inputs_of(graph_json: str) -> list[tuple[tuple[int, ...] | None, str]]:
    """(shape, dtype) of each input of a graph; None for a shape that is not wholly known."""
    graph = json.loads(graph_json)
    rows, attrs = graph["node_row_ptr"], graph["attrs"]

    def known(shape: list[Any] | None) -> tuple[int, ...] | None:
        return tuple(shape) if shape is not None and all(isinstance(size, int) and size >= 0 for size in shape) else None
    return [(known(attrs["shape"][1][rows[i]]), attrs["dltype"][1][rows[i]])
            for i, node in enumerate(graph["nodes"]) if node["op"] == "null"]


def _info(said: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    both = json.loads(said) if isinstance(said, str) else said
    return {name: tuple(shape or ()) for name, shape in both["shape"].items()}, dict(both["dtype"])


def _shared(value: Any) -> Any:
    if type(value).__name__ == "PyCapsule":
        return from_dlpack(value)
    if isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "__dlpack__"):
        return value
    raise TypeError(f"zero copy takes an NDArray, a numpy array or what has __dlpack__, not a '{type(value).__name__}'")
