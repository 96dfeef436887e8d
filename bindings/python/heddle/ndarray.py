"""Arrays with the names and meanings of TVM's: NDArray, array, empty, from_dlpack, and cpu(), opencl(1), ... for devices.
heddle.nd and heddle.runtime.ndarray are this module."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Sequence

import numpy as np

from . import _core
from .device import Device, device

__all__ = ["NDArray", "Device", "array", "empty", "from_dlpack", "numpyasarray", "device", "cpu", "cuda", "gpu", "rocm",
           "opencl", "cl", "metal", "mtl", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu"]


def _numpy_dtype(name: str, given: np.ndarray) -> np.dtype:
    """numpy's dtype of a name; where numpy has none, an unsigned integer of that size, if the values are such bits."""
    with contextlib.suppress(TypeError):
        return np.dtype(name)
    with contextlib.suppress(TypeError, ImportError):
        import ml_dtypes  # noqa: F401  numpy has more names then
        return np.dtype(name)
    if given.dtype in (np.uint8, np.uint16):
        return given.dtype
    raise TypeError(f"numpy has no dtype {name}: install ml_dtypes, or give the bits as unsigned integers")


class NDArray(_core.Tensor):
    """An array of fixed shape and dtype on the host or on a device. Two objects may be one array: see same_as.

    `shape` is a tuple of ints, `dtype` a name such as "float32", `device` a Device. np.asarray(x) and np.from_dlpack(x)
    share host memory; numpy() copies.
    """

    __slots__ = ()

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array of the same shape and dtype, from a device too. Blocks.

        bfloat16 comes as its bits, in uint16, as from TVM v0.14; float8 as dtypes of ml_dtypes where that is installed, else
        as its bits too. np.asarray(x) gives ml_dtypes' bfloat16.
        """
        values = np.array(super().numpy())
        return values.view(np.uint16) if self.dtype == "bfloat16" else values

    def asnumpy(self) -> np.ndarray:
        """numpy() by its old name."""
        return self.numpy()

    def copyfrom(self, source_array: Any) -> "NDArray":
        """Copies the values of an array, or whatever np.array takes, here, and gives this array. Blocks.

        They are converted to this array's dtype; uint16 for an array of bfloat16 is its bits, as in TVM. ValueError where the shape is another one, TypeError for what is no array.
        """
        if isinstance(source_array, _core.Tensor):
            return _copy(source_array, self)
        if not isinstance(source_array, np.ndarray):
            try:
                source_array = np.array(source_array)
            except (TypeError, ValueError):
                source_array = np.array(None)
        if source_array.dtype.kind in "OSUMm":
            raise TypeError(f"an array-like value is needed, and this is a '{source_array.dtype}'")
        if source_array.shape != self.shape:
            raise ValueError(f"the array has shape {self.shape}, and the values have shape {source_array.shape}")
        wanted = _numpy_dtype(self.dtype, source_array)
        if self.dtype == "bfloat16" and source_array.dtype == np.uint16:
            source_array = np.ascontiguousarray(source_array).view(wanted)
        converted = np.ascontiguousarray(source_array, dtype=wanted).reshape(self.shape)
        super().copy_from(converted)
        return self

    def copyto(self, target: Any, mem_scope: str | None = None) -> "NDArray":
        """Copies the values to an array of the same size, or to a new one on a Device, and gives that. Blocks.

        ValueError for any other target, for another number of bytes, and for a mem_scope other than "global".
        """
        if isinstance(target, _core.Tensor):
            return _copy(self, target)
        if isinstance(target, Device):
            return array(self, target, mem_scope)
        if hasattr(target, "_copy_to"):  # of a session of heddle.rpc
            return target.copyfrom(self)
        raise ValueError(f"the target is an array or a Device, not a '{type(target).__name__}'")

    def same_as(self, other: Any) -> bool:
        """Whether other is this array: the same memory, shape and dtype."""
        if self is other:
            return True
        return isinstance(other, NDArray) and self.address == other.address != 0 and self.shape == other.shape and \
            self.dtype == other.dtype

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory, for a consumer that takes capsules."""
        return self.__dlpack__()

    @property
    def ctx(self) -> Device:
        """`device` by its name before TVM v0.8."""
        return self.device

    def __setitem__(self, in_slice: Any, value: Any) -> None:
        """x[:] = value, of an array or a numpy array or number; ValueError for any other slice."""
        if not isinstance(in_slice, slice) or (in_slice.start, in_slice.stop) != (None, None):
            raise ValueError("an array is set as a whole: x[:] = values")
        if not isinstance(value, (_core.Tensor, np.ndarray, np.generic)):
            raise TypeError(f"values are an array or a numpy array, not a '{type(value).__name__}'")
        if value is not self:
            self.copyfrom(value)

    def __eq__(self, other: Any) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return hash((self.address, self.shape, self.dtype)) if self.address else id(self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<heddle.nd.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    def __str__(self) -> str:
        return str(self.numpy())


def _copy(source: _core.Tensor, target: _core.Tensor) -> Any:
    """TVM copies between arrays of one size whatever their shapes."""
    if source.shape == target.shape:
        target.copy_from(source)
        return target
    if source.nbytes != target.nbytes or source.dtype != target.dtype:
        raise ValueError(f"an array of {source.shape}, {source.dtype}, does not fit into one of {target.shape}, "
                         f"{target.dtype}")
    target.copy_from(np.array(_core.Tensor.numpy(source)).reshape(target.shape))
    return target


def empty(shape: Sequence[int], dtype: Any = "float32", device: Device = Device(1, 0),
          mem_scope: str | None = None) -> NDArray:
    """A new array on a device, zeroed; "float", "int" and "uint" have 32 bits, as in TVM. UnsupportedError for a mem_scope other than None and "global", NoDeviceError where
    there is no such device, ValueError for a negative dimension."""
    if mem_scope not in (None, "", "global"):
        from .errors import UnsupportedError
        raise UnsupportedError(f"mem_scope '{mem_scope}': arrays are in global memory; textures are not supported")
    remote = getattr(device, "_empty", None)
    if remote is not None:
        return remote(shape, dtype, mem_scope)
    sizes = tuple(int(s) for s in shape)
    if isinstance(dtype, str):
        dtype = {"float": "float32", "int": "int32", "uint": "uint32"}.get(dtype, dtype)
    where = getattr(device, "_name", None) or (device.device_type, device.device_id)
    return NDArray(_core.empty(sizes, dtype, where))


def array(arr: Any, device: Device = Device(1, 0), mem_scope: str | None = None) -> NDArray:
    """A new array on a device with a copy of the values of arr: a numpy array, an NDArray, or what np.array takes. The
    dtype is that of np.array(arr)."""
    if isinstance(arr, _core.Tensor) and hasattr(device, "_empty"):
        return empty(arr.shape, arr.dtype, device, mem_scope).copyfrom(arr)
    if isinstance(arr, _core.Tensor):
        return _copy(arr, empty(arr.shape, arr.dtype, device, mem_scope))
    values = arr if isinstance(arr, np.ndarray) else np.array(arr)
    return empty(values.shape, values.dtype, device, mem_scope).copyfrom(values)


def numpyasarray(np_data: np.ndarray) -> NDArray:
    """An NDArray over a contiguous numpy array's memory, which it holds."""
    if not np_data.flags["C_CONTIGUOUS"]:
        raise ValueError("the numpy array is not contiguous")
    return NDArray(np_data)


def from_dlpack(dltensor: Any) -> NDArray:
    """The array of an object with __dlpack__, or of a DLPack capsule; memory is shared. AttributeError for any other."""
    if type(dltensor).__name__ != "PyCapsule" and not hasattr(dltensor, "__dlpack__"):
        raise AttributeError(f"a '{type(dltensor).__name__}' has no __dlpack__, and is no capsule")
    return NDArray(_core.from_dlpack(dltensor))


# ---- devices


def cpu(dev_id: int = 0) -> Device:
    """The host: memory that Python reads."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A GPU of the plugin cuda."""
    return Device(2, dev_id)


def gpu(dev_id: int = 0) -> Device:
    """cuda() by its old name."""
    warnings.warn("gpu() is cuda() by its old name", DeprecationWarning, stacklevel=2)
    return Device(2, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """A device of the plugin opencl."""
    return Device(4, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A device of the plugin vulkan."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """A device of type metal; no plugin of Heddle's has one."""
    return Device(8, dev_id)


def vpi(dev_id: int = 0) -> Device:
    """A device of type vpi; no plugin of Heddle's has one."""
    return Device(9, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """A GPU of the plugin rocm."""
    return Device(10, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """A device of a kind without a number in DLPack: the plugin sim's, or one of a stranger's plugin."""
    return Device(12, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A device of type hexagon; no plugin of Heddle's has one."""
    return Device(16, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A device of type webgpu; no plugin of Heddle's has one."""
    return Device(15, dev_id)


cl = opencl
mtl = metal
