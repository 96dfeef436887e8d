"""ONNX's node cases on cuda:0: on the double of CUDA's driver a quarter of them, or an eighth where sweeps are
smaller, since the kernels are those of opencl and most of the time goes into compiling them; on a GPU all.

labels: slow ctypes
timeout: 600

The number that pass may not fall below the floor. A case of an operator or type that the plugin does not list is refused,
and left out.
"""
import gpu_doubles

gpu_doubles.in_process()

import onnx_nodes  # noqa: E402
from reference import sizes  # noqa: E402

FLOOR, SMALL, ALL = 213, 50, 500


def test_nodes():
    gpu_doubles.need("cuda", count=1)
    if gpu_doubles.REAL:
        onnx_nodes.check("cuda:0", ALL)
    else:
        onnx_nodes.check("cuda:0", *((FLOOR, 1, 4) if sizes.SCALE >= 1 else (SMALL, 1, 8)))
