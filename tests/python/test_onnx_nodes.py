"""ONNX's node cases, those that the installed onnx package makes in memory, on cpu (its own kernels, and all that
oneDNN takes through that) and on sim:0.

labels: slow ctypes
timeout: 900

The number that pass may not fall below the floor, and a case that passed once (onnx_passed.txt) may not fail.
"""
import onnx_nodes
import pytest

FLOOR = {"cpu": 1777, "cpu with oneDNN": 1777, "sim:0": 1777}


@pytest.mark.parametrize("device", sorted(FLOOR))
def test_nodes(device):
    # always: small tensors too
    onnx_nodes.check_all(device.split()[0], FLOOR[device], cpu__onednn="always" if "oneDNN" in device else "off")
