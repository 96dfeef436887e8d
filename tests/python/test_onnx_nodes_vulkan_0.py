"""ONNX's node cases on vulkan:0, part 0 of 2.

labels: slow ctypes
timeout: 600

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import lavapipe

lavapipe.in_process()

import onnx_nodes  # noqa: E402

FLOOR = 815


def test_nodes():
    lavapipe.need()
    onnx_nodes.check("vulkan:0", FLOOR, 0, 2)
