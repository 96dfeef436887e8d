"""Nodes and constants of an ONNX graph, built by calls."""

import numpy as np
from onnx import helper, numpy_helper


class NodeGraph:
    """Builds nodes by calls: g.Add(a, [1, 2]) gives the name of the result; lists become constants."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def name(self, value):
        if isinstance(value, str):
            return value
        value = np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        self.constants.append(numpy_helper.from_array(value, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def __getattr__(self, op):
        def call(*inputs, n=1, **attrs):
            outs = [f"{op.lower()}_{len(self.nodes)}_{k}" for k in range(n)]
            self.nodes.append(helper.make_node(op, [self.name(i) for i in inputs], outs, name=outs[0], **attrs))
            return outs[0] if n == 1 else outs
        return call
