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


@pytest.mark.parametrize("mode, padding", itertools.product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection")))
def test_what_is_no_number(tmp_path, mode, padding):
    """More places than a block has; only results that an element counts for take what is no number from it."""
    x = RNG.normal(size=(1, 3, 9, 11)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 1, 4, 5] = np.nan, np.inf
    grid = RNG.uniform(-1.3, 1.3, (1, 15, 13, 2)).astype(np.float32)
    grid[0, 0, :2] = (-1 + 1 / 11, -1 + 1 / 9), (0, 0)  # where those lie
    given = {"x": x, "grid": grid}
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], mode=mode, padding_mode=padding)
    proto = files.model([node], given, ["y"], opset=20)
    got, want = files.run(files.save(tmp_path, proto), given)[0], files.expected(proto, given)[0]
    np.testing.assert_allclose(got[0, 2], want[0, 2], rtol=1e-4, atol=1e-5)
    far = np.isfinite(got) != np.isfinite(want)
    assert not far.any() and not np.isfinite(got[0, 0]).all() and not np.isfinite(got[0, 1]).all()
    there = np.isfinite(want)
    np.testing.assert_allclose(got[there], want[there], rtol=1e-4, atol=1e-5)
