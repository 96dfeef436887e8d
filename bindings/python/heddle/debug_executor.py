"""TVM's debug executor, name for name: what `tvm.contrib.debugger.debug_executor` of v0.14 has, on Heddle's runtime.

A GraphModuleDebug times every node of a graph, gives the value of any, and writes both into a folder:
`_tvmdbg_device_CPU_0/` in dump_root with `_tvmdbg_graph_dump.json`, `_tvmdbg_execution_trace.json` (for Chrome's tracing)
and `output_tensors.params` (a params blob of every value, NAME____topo-index:NODE____output-num:OUTPUT).
"""
from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tempfile
from typing import Any, Sequence

from .contrib.debugger.debug_result import DebugResult
from .graph_executor import GraphModule, _text_of, get_device
from .runtime import BenchmarkResult, Device, Module, NDArray, get_global_func, save_param_dict

__all__ = ["GraphModuleDebug", "create"]

_DUMP_ROOT_PREFIX = "tvmdbg_"
_DUMP_PATH_PREFIX = "_tvmdbg_"


def create(graph_json_str: str, libmod: Module | None, device: Device | Sequence[Device],
           dump_root: str | os.PathLike | None = None) -> "GraphModuleDebug":
    """A debug executor of a graph: arguments and errors as of graph_executor.create.

    dump_root: the folder for what is written; None makes one of its own, which `exit` removes. Where libmod carries
    parameters they are set.
    """
    devices, _, numbers = get_device(libmod, device)
    made = get_global_func("tvm.graph_executor_debug.create")
    gmod = GraphModuleDebug(made(_text_of(graph_json_str), libmod, *numbers), devices, graph_json_str, dump_root)
    if libmod is not None and libmod.implements_function("get_graph_params"):
        gmod.load_params(save_param_dict(libmod["get_graph_params"]()))
    return gmod


class GraphModuleDebug(GraphModule):
    """An executor that looks into its graph. Attribute `debug_datum` (DebugResult) holds what the last run showed.

    module: what `create` or a factory's `debug_create` gives; device: a list of devices, of which the first names the
    folder; graph_json_str: the graph's JSON; dump_root as for create.
    """

    def __init__(self, module: Module, device: Sequence[Device] | Device, graph_json_str: str,
                 dump_root: str | os.PathLike | None = None):
        self._run_individual = module["run_individual"]
        self._run_individual_node = module["run_individual_node"]
        self._debug_get_output = module["debug_get_output"]
        self._execute_node = module["execute_node"]
        self._get_node_output = module["get_node_output"]
        self._profile = module["profile"]
        super().__init__(module)
        first = device if isinstance(device, Device) else device[0]
        self._dump_root = os.fspath(dump_root) if dump_root else tempfile.mkdtemp(prefix=_DUMP_ROOT_PREFIX)
        name = str(first).upper().replace("(", "_").replace(")", "")
        self._dump_path = os.path.join(self._dump_root, f"{_DUMP_PATH_PREFIX}device_{name}")
        os.makedirs(self._dump_path, 0o700, exist_ok=True)
        self.debug_datum = DebugResult(graph_json_str, self._dump_path)

    def run(self, number: int = 10, repeat: int = 1, min_repeat_ms: int = 1, limit_zero_time_iterations: int = 100,
            cooldown_interval_ms: int = 0, repeats_to_cooldown: int = 1, sort_by_time: bool = True,
            **input_dict: Any) -> None:
        """Sets inputs, times every node (as run_individual), takes every value, writes all of it into the folder and
        prints a table by node. The outputs are then as after a plain run."""
        if input_dict:
            self.set_input(**input_dict)
        self.debug_datum._time_list = self.run_individual(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        self._run_per_layer()
        self.debug_datum.dump_output_tensor()
        self.debug_datum.dump_chrome_trace()
        self.debug_datum.display_debug_result(sort_by_time)

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """The table that run prints; sort_by_time: the slowest first."""
        return self.debug_datum.get_debug_result(sort_by_time)

    def run_individual(self, number: int, repeat: int = 1, min_repeat_ms: int = 0,
                       limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0,
                       repeats_to_cooldown: int = 1) -> list[list[float]]:
        """Seconds of every node, in the graph's order: [node][measurement], 0 for inputs. A measurement is the mean of
        `number` runs, or of more until it takes min_repeat_ms; the other options are those of benchmark."""
        said = self._run_individual(number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
                                    repeats_to_cooldown)
        count, = struct.unpack_from("=q", said)
        seconds = struct.unpack_from(f"={count * repeat}d", said, 8)
        return [list(seconds[i * repeat:(i + 1) * repeat]) for i in range(count)]

    def run_individual_node(self, index: int, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0,
                            limit_zero_time_iterations: int = 100, cooldown_interval_ms: int = 0,
                            repeats_to_cooldown: int = 1) -> BenchmarkResult:
        """Seconds of one node (its number), with the options of run_individual; other nodes run, and do not count."""
        said = self._run_individual_node(index, number, repeat, min_repeat_ms, limit_zero_time_iterations,
                                         cooldown_interval_ms, repeats_to_cooldown)
        return BenchmarkResult(list(struct.unpack(f"={repeat}d", said)))

    def debug_get_output(self, node: int | str, out: Any = None) -> NDArray | Any:
        """Runs the graph up to a node (its number or name), and copies its output to out, or gives it. AttributeError: no
        node has that name; RuntimeError: node is neither. After nodes of several outputs TVM gives another's value."""
        if isinstance(node, str):
            name = node.rpartition(":")[0] if node.rpartition(":")[2].isdigit() else node
            if not any(n["name"] in (node, name) for n in self.debug_datum.get_graph_nodes()):
                raise AttributeError(f"Could not find a node named {node} in this graph.")
        elif not isinstance(node, int):
            raise RuntimeError("Require node index or name only.")
        return super().debug_get_output(node, out)

    def exit(self) -> None:
        """Removes the folder of this executor, and dump_root where nothing else is in it."""
        shutil.rmtree(self._dump_path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(self._dump_root)

    # ---- inside

    def _execute_next_node(self, node_index: int, output_index: int = 0) -> NDArray:
        """Runs up to a node and gives a copy of an output of it; what ran before is not run again."""
        self._execute_node(node_index)
        return self._get_node_output(node_index, output_index)

    _execute_next_node_get_output = _execute_next_node

    def _run_per_layer(self) -> None:
        """Takes the values of all nodes, and the outputs of a whole run."""
        values = []
        for i, node in enumerate(self.debug_datum.get_graph_nodes()):
            self._execute_node(i)
            values += [self._get_node_output(i, k) for k in range(self.debug_datum.get_graph_node_output_num(node))]
        self.debug_datum.update_output_tensors(values)
        self._run()
