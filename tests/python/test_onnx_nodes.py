"""ONNX's node cases, those that the installed onnx package makes in memory, on cpu and on sim:0.

labels: slow ctypes
timeout: 900

The number that pass may not fall below the floor.
"""
import onnx_nodes
import pytest

FLOOR = {"cpu": 646, "sim:0": 646}


@pytest.mark.parametrize("device", sorted(FLOOR))
def test_nodes(device):
    onnx_nodes.check(device, FLOOR[device])
