"""ONNX's node cases on opencl:0, part 1 of 2.

labels: slow
timeout: 900

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import pocl

pocl.in_process()

import onnx_nodes  # noqa: E402
import pytest  # noqa: E402
from reference import sizes  # noqa: E402

FLOOR = 538


def test_nodes():
    if sizes.SCALE < 1:
        pytest.skip("at this scale the other part is enough: most of the time goes into compiling kernels")
    pocl.need()
    onnx_nodes.check("opencl:0", FLOOR, 1, 2)
