"""What scripts take from `tvm._ffi.base`."""
from ..errors import Error as TVMError

__all__ = ["TVMError"]
