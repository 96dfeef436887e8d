"""ONNX's node cases on rocm:0, the double of HIP, an eighth of them: the plugin is cuda's code over another driver.

labels: slow ctypes
timeout: 600

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import gpu_doubles

gpu_doubles.in_process()

import onnx_nodes  # noqa: E402
import pytest  # noqa: E402
from reference import sizes  # noqa: E402

FLOOR = 46


def test_nodes():
    if sizes.SCALE < 1:
        pytest.skip("at this scale those on cuda are enough: most of the time goes into compiling kernels")
    gpu_doubles.need("rocm", count=1)
    onnx_nodes.check("rocm:0", FLOOR, 3, 8)
