"""Modules where TVM has them: `from heddle.contrib.cuda_graph import cuda_graph_executor`."""
