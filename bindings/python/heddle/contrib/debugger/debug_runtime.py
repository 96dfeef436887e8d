"""heddle.debug_executor under the name that TVM had for it up to v0.7."""
from ...debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
