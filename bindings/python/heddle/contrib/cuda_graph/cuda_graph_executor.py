"""TVM's executor of CUDA graphs. In Heddle every executor replays recorded work by itself, on each device whose plugin can
record it, so that this one is the plain executor; what records by hand is refused.
"""
from __future__ import annotations

from typing import Sequence

from ... import graph_executor
from ...graph_executor import GraphModule
from ...runtime import Device, Module

__all__ = ["GraphModuleCudaGraph", "create"]


def create(graph_json_str: str, libmod: Module | None, device: Device | Sequence[Device]) -> "GraphModuleCudaGraph":
    """As graph_executor.create."""
    return GraphModuleCudaGraph(graph_executor.create(graph_json_str, libmod, device).module)


class GraphModuleCudaGraph(GraphModule):
    """A GraphModule; `run` replays what a plugin has recorded."""

    def __init__(self, module: Module):
        self._start_capture = module["start_capture"]
        self._end_capture = module["end_capture"]
        self._run_cuda_graph = module["run_cuda_graph"]
        super().__init__(module)

    def capture_cuda_graph(self) -> None:
        """Raises heddle.Error: there is nothing to record by hand; `run` replays recorded work by itself."""
        self._start_capture()

    def run_cuda_graph(self) -> None:
        """Raises heddle.Error, as capture_cuda_graph."""
        self._run_cuda_graph()
