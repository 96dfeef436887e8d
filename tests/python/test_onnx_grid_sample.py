"""GridSample as PyTorch's exporters write it, against ONNX Runtime: of mode cubic onnx.reference moves places to the border, and
PyTorch and ONNX Runtime each element that is read."""
import itertools

import numpy as np
import onnx_files as files
import pytest
from onnx import helper

RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 2, 6, 7)).astype(np.float32)
GRID = RNG.uniform(-1.4, 1.4, (2, 5, 4, 2)).astype(np.float32)  # some beyond the image


@pytest.mark.parametrize("mode, padding, corners", itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)))
def test_as_onnxruntime(tmp_path, mode, padding, corners):
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding, align_corners=corners)
    given = {"x": X, "grid": GRID}
    proto = files.model([node], given, ["y"], opset=20)
    files.same(files.run(files.save(tmp_path, proto), given), files.expected(proto, given))
