"""TVM's executor of CUDA graphs. In Heddle every executor replays recorded work by itself, on each device whose plugin can
record it, so that this one is the plain executor: to capture is to run once, and to replay is to run.
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

    def capture_cuda_graph(self) -> None:
        """Runs once, after which work is recorded where a plugin can record it: the inputs have to be set."""
        self._run()

    def run_cuda_graph(self) -> None:
        """Runs. In TVM it replays what capture_cuda_graph recorded, and is an error before that."""
        self._run()
