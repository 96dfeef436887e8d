"""heddle.debug_executor, where TVM has it."""
from ...debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
