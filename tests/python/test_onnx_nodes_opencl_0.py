"""ONNX's node cases on opencl:0, part 0 of 2.

labels: slow
timeout: 900

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import pocl

pocl.in_process()

import onnx_nodes  # noqa: E402

FLOOR = 815


def test_nodes():
    pocl.need()
    onnx_nodes.check("opencl:0", FLOOR, 0, 2)
