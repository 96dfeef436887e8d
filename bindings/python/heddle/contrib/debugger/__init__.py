"""Modules where TVM has them: `from heddle.contrib.debugger import debug_executor`."""
