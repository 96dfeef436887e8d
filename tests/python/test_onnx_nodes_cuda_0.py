"""ONNX's node cases on cuda:0, the double of CUDA's driver, part 0 of 2.

labels: slow ctypes
timeout: 600

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import gpu_doubles

gpu_doubles.in_process()

import onnx_nodes  # noqa: E402

FLOOR = 200


def test_nodes():
    gpu_doubles.need("cuda", count=1)
    onnx_nodes.check("cuda:0", FLOOR, 0, 2)
