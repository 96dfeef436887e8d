"""OrtValue: an array of the host or of a device; and arrays at an address that is given as a number."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np

from .. import _core
from .types import dtype_of, type_number, type_word

_HOST = ("cpu", "cpu_pinned")
_DLPACK = {"cpu": 1, "cuda": 2, "hip": 10, "rocm": 10}
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


def is_host(device_type: str) -> bool:
    """Whether memory of that kind is the host's."""
    return device_type.lower() in _HOST


def device_name(device_type: str, device_id: int) -> str:
    """Heddle's name of a device that ONNX Runtime calls by a kind and a number."""
    kind = {"hip": "rocm", "gpu": "cuda", "tensorrt": "cuda"}.get(device_type.lower(), device_type.lower())
    return "cpu" if kind in _HOST else f"{kind}:{int(device_id)}"


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class _AtAddress:
    """Memory that somebody else owns, as an object of DLPack."""

    def __init__(self, address: int, device: tuple[int, int], shape: Sequence[int], dtype: str):
        self._device = device
        self._shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        kind = np.dtype(dtype)
        self._managed = _Managed(_Tensor(address, *device, len(shape), _CODES[kind.kind], 8 * kind.itemsize, 1,
                                         self._shape, None, 0), None, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **_: Any) -> Any:
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)


def at_address(address: int, device_type: str, device_id: int, shape: Sequence[int], dtype: str) -> tuple[Any, Any]:
    """A tensor of memory at an address, and what must live as long as it."""
    kind = "cpu" if is_host(device_type) else device_type.lower()
    if kind not in _DLPACK:
        raise RuntimeError(f"memory of '{device_type}' cannot be bound by its address")
    holder = _AtAddress(address, (_DLPACK[kind], int(device_id)), [int(n) for n in shape], dtype)
    return _core.from_dlpack(holder), holder


class OrtValue:
    """A tensor, of the host (numpy's memory, which it shares) or of a device."""

    def __init__(self, value: Any, keep: Any = None):
        self._value, self._keep = value, keep

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """The array itself, or a copy on a device."""
        del vendor_id
        array = np.asarray(numpy_obj)
        if is_host(device_type):
            return OrtValue(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        tensor = OrtValue._empty(array.shape, array.dtype.name, device_type, device_id)
        tensor.copy_from(array)
        return OrtValue(tensor)

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
                                     vendor_id: int = -1) -> OrtValue:
        """Memory of that shape; its content is not defined."""
        del vendor_id
        dtype = dtype_of(element_type)
        if is_host(device_type):
            return OrtValue(np.zeros(tuple(shape), dtype))
        return OrtValue(OrtValue._empty(tuple(shape), dtype, device_type, device_id))

    @staticmethod
    def _empty(shape: Any, dtype: str, device_type: str, device_id: int) -> Any:
        name = device_name(device_type, device_id)
        try:
            return _core.empty(tuple(shape), dtype, name)
        except _core.Error as error:
            raise RuntimeError(f"Can't allocate memory on {name}: {error}") from error

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """Of an object with __dlpack__, or of a capsule, without a copy."""
        tensor = _core.from_dlpack(data)
        if tensor.device_name == "cpu":
            array = tensor.numpy()
            return OrtValue(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array, tensor)
        return OrtValue(tensor)

    def __dlpack__(self, **options: Any) -> Any:
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A capsule."""
        return self._value.__dlpack__()

    @property
    def tensor(self) -> Any:
        """The array or tensor."""
        return self._value

    def _on_host(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        return np.array(self._value if self._on_host() else self._value.numpy())

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._value.shape)

    def data_type(self) -> str:
        """"tensor(float)"."""
        return type_word(self._value.dtype)

    def element_type(self) -> int:
        """ONNX's number of the type."""
        return type_number(self._value.dtype)

    def device_name(self) -> str:
        """"cpu", "cuda"."""
        return "cpu" if self._on_host() else str(self._value.device_name).split(":", maxsplit=1)[0]

    def data_ptr(self) -> int:
        """The address; 0 where the host cannot read it."""
        return int(self._value.ctypes.data if self._on_host() else self._value.address)

    def tensor_size_in_bytes(self) -> int:
        """Its bytes."""
        return int(self._value.nbytes)

    def has_value(self) -> bool:
        """Always."""
        return True

    def is_tensor(self) -> bool:
        """Always."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Never."""
        return False

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Writes an array of the same shape and type into it."""
        array = np.asarray(np_arr)
        if tuple(array.shape) != tuple(self._value.shape) or type_number(array.dtype) != self.element_type():
            raise RuntimeError("update_inplace needs an array of the same shape and type")
        if self._on_host():
            np.copyto(self._value, array)
        else:
            self._value.copy_from(np.ascontiguousarray(array))
