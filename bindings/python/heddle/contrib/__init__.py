"""Modules where TVM has them: `from heddle.contrib import graph_executor`."""
