"""ONNX's node cases on opencl:0, part 0 of 2.

labels: slow serial
timeout: 600

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import pocl  # first: it sets PoCL's environment
import onnx_nodes

FLOOR = 229


def test_nodes():
    pocl.need("opencl:0")
    onnx_nodes.check("opencl:0", FLOOR, 0, 2)
