"""Resize of integers, float16 and float64 against onnx.reference: nearest moves elements, the other modes round to the nearest
whole number and stop at the ends of the type.
timeout: 300"""
import os
import tempfile

import heddle
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

os.environ.setdefault("POCL_DEVICES", "pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
DEVICES = ["cpu", "sim:0", "opencl:0", "vulkan:0"]
FORMS = [((2, 2), "half_pixel"), ((1.7, 1.3), "asymmetric"), ((0.6, 0.3), "half_pixel"), ((1, 40), "align_corners"),
         ((1.5, 2), "tf_crop_and_resize")]
REGION = np.array([0, 0, 0.1, -0.2, 1, 1, 0.9, 1.1], np.float32)
BOUNDS = {"f2": 4e-3, "f4": 1e-5, "f8": 5e-6}  # weights are float32


def numbers(dtype, shape):
    rng = np.random.default_rng(3)
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    # both ends of narrow types: a cubic goes beyond them
    return rng.integers(max(info.min, -2**40), min(info.max, 2**40), shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("devices", DEVICES)
def test_types(devices, dtype):
    x = numbers(dtype, (1, 2, 7, 9))
    for mode in "nearest", "linear", "cubic":
        for scales, coordinates in FORMS:
            node = helper.make_node("Resize", ["x", "r", "s"], ["y"], mode=mode, coordinate_transformation_mode=coordinates,
                                    extrapolation_value=3.0)
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, x.shape)],
                                      [helper.make_tensor_value_info("y", kind, None)],
                                      [numpy_helper.from_array(np.array([1, 1, *scales], np.float32), "s"),
                                       numpy_helper.from_array(REGION, "r")])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
            want, = ReferenceEvaluator(model).run(None, {"x": x})
            try:
                loaded = heddle.load(model, devices=devices)
            except heddle.errors.NoDeviceError as error:
                pytest.skip(f"no {devices}: {error}")
            with loaded:
                got = np.asarray(loaded(x=x))
            assert got.dtype == want.dtype and got.shape == want.shape
            if mode == "nearest":
                np.testing.assert_array_equal(got, want)
                continue
            far = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
            # a sum that is next to a half may be rounded to either side; of 64 bits float32 weights count
            bound = BOUNDS[dtype] if dtype in BOUNDS else 1 + 2e-6 * np.abs(want.astype(np.float64)).max()
            assert far <= bound, (mode, scales, coordinates)


def test_bool_is_refused():
    x = helper.make_tensor_value_info("x", onnx.TensorProto.BOOL, [1, 1, 2, 2])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, None)
    graph = helper.make_graph([helper.make_node("Resize", ["x", "", "s"], ["y"])], "g", [x], [y],
                              [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(heddle.errors.UnsupportedError, match="Resize"):
        heddle.load(model, devices="cpu")(x=np.ones((1, 1, 2, 2), bool))
