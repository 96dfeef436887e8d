"""Where ONNX Runtime keeps its exceptions: heddle.onnxruntime.capi.onnxruntime_pybind11_state."""

from . import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
