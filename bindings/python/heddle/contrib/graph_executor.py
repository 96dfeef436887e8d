"""heddle.graph_executor, where TVM has it."""
from ..graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
