"""What scripts take from `tvm._ffi.runtime_ctypes`."""
from ..runtime import DataType, Device
from ..runtime import Device as TVMContext

__all__ = ["DataType", "Device", "TVMContext"]
