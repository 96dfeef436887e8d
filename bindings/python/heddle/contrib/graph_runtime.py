"""heddle.graph_executor under the name that TVM had for it up to v0.7."""
from ..graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
