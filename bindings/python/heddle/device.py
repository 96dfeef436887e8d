"""Devices: Device, which is a DLPack type and a number as in TVM, and lists of the devices and plugins that there are.

Heddle's own name of a device is its plugin and a number, "sim:1"; Device("sim:1") finds it, and Device.name gives it. As with
TVM, heddle.device is the function of that name; `from heddle.device import ...` reaches this module.
"""

from __future__ import annotations

from typing import Any

from . import _core
from .errors import NoDeviceError, UnsupportedError

__all__ = ["Device", "device", "devices", "plugins"]


def _context(context: _core.Context | None) -> _core.Context:
    return _core.Context() if context is None else context


class Device:
    """A device: `device_type`, a number of DLPack's, and `device_id`, which counts devices of that type from 0.

    Device("cuda", 1), Device(2, 1) and Device("cuda:1") are the same. Making one finds nothing and opens nothing; `exist`
    says whether it is there. A name that is no type of DLPack's, such as "sim:1", is looked up among the devices of the
    process's context: NoDeviceError. Devices are equal where type and number are, and can be keys.

    A plugin whose devices are of no type of DLPack's has a type of its own, a number of 2**24 or more that depends only on
    the plugin's name. ext_dev (12) means such a device where one plugin has them, or where the setting "devices" names one
    plugin; else using it is InvalidError. Where several plugins have devices of another type, a type and a number are the
    first of them in the order of the setting "devices". A Device that was made by name, or that a tensor gave, keeps that name (argument `name`).
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLAOCL = 32
    kDLSDAccel = 33
    kOpenGL = 34
    kDLMicroDev = 35

    MASK2STR = {
        kDLCPU: "cpu", kDLCUDA: "cuda", kDLCUDAHost: "cuda_host", kDLOpenCL: "opencl", kDLVulkan: "vulkan",
        kDLMetal: "metal", kDLVPI: "vpi", kDLROCM: "rocm", kDLROCMHost: "rocm_host", kDLExtDev: "ext_dev",
        kDLCUDAManaged: "cuda_managed", kDLOneAPI: "oneapi", kDLWebGPU: "webgpu", kDLHexagon: "hexagon", kDLAOCL: "aocl",
        kDLSDAccel: "sdaccel", kOpenGL: "opengl", kDLMicroDev: "microdev",
    }
    STR2MASK = {
        "llvm": kDLCPU, "stackvm": kDLCPU, "cpu": kDLCPU, "c": kDLCPU, "test": kDLCPU, "hybrid": kDLCPU,
        "composite": kDLCPU, "cuda": kDLCUDA, "gpu": kDLCUDA, "nvptx": kDLCUDA, "cl": kDLOpenCL, "opencl": kDLOpenCL,
        "sdaccel": kDLOpenCL, "aocl": kDLAOCL, "aocl_sw_emu": kDLAOCL, "vulkan": kDLVulkan, "metal": kDLMetal,
        "vpi": kDLVPI, "rocm": kDLROCM, "ext_dev": kDLExtDev, "hexagon": kDLHexagon, "webgpu": kDLWebGPU,
        "oneapi": kDLOneAPI, "opengl": kOpenGL,
    }

    __slots__ = ("device_type", "device_id", "_name")

    def __init__(self, device_type: int | str, device_id: int = 0, name: str | None = None):
        if isinstance(device_type, str):
            word, colon, number = device_type.partition(":")
            if colon and number.isdecimal() and device_id == 0:
                device_id = int(number)
            elif colon:
                raise ValueError(f"{device_type!r} is no device: give a name such as 'cuda:1', or a type and a number")
            if word in self.STR2MASK:
                device_type = self.STR2MASK[word]
            else:
                found = _core.Context().device(f"{word}:{device_id}")
                device_type, device_id, name = found["type"], found["index"], found["name"]
        elif isinstance(device_type, bool) or not isinstance(device_type, int):
            raise TypeError(f"device_type is a number of DLPack's or a name, not {device_type!r}")
        self.device_type = device_type
        self.device_id = int(device_id)
        self._name = name

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Device) and self.device_type == other.device_type and self.device_id == other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        """TVM's form: opencl(0), and sim(0) for a plugin's device that was found by name."""
        word = self.MASK2STR.get(self.device_type)
        if word is None:  # the number of a plugin has that plugin's name
            word = self._name.partition(":")[0] if self._name else f"device{self.device_type}"
        return f"{word}({self.device_id})"

    def __reduce__(self) -> Any:
        return (Device, (self.device_type, self.device_id, self._name))

    # ---- what is there

    @property
    def info(self) -> dict[str, Any]:
        """What is known of the device, as an item of devices(). NoDeviceError where it is not there. May load plugins."""
        return _core.Context().device(self._name or (self.device_type, self.device_id))

    def _known(self, key: str) -> Any:
        """A fact, or None where the device is not there or does not tell."""
        try:
            return self.info[key] or None
        except NoDeviceError:
            return None

    @property
    def exist(self) -> bool:
        """Whether the device is there. The host, cpu(0), always is. May load the plugin of the device."""
        if self.device_type == self.kDLCPU and self.device_id == 0:
            return True
        return self._known("name") is not None

    @property
    def name(self) -> str:
        """Heddle's name of the device, "opencl:0"; of the host "cpu". NoDeviceError where there is no such device."""
        if self.device_type == self.kDLCPU and self.device_id == 0:
            return "cpu"
        return self._name or self.info["name"]

    def sync(self, stream: Any = None) -> None:
        """Raises DeviceLostError where the device was lost. Calls of Heddle's are done when they return, so there is no
        more to wait for; a run that was started is waited for by its own wait()."""
        if self.device_type != self.kDLCPU or self.device_id != 0:
            _core.Context().health(self.name)

    def create_raw_stream(self) -> None:
        """None, the default stream: calls of Heddle's are done when they return, whatever the stream."""

    def free_raw_stream(self, stream: Any) -> None:
        """Nothing: see create_raw_stream."""

    def set_raw_stream(self, stream: Any) -> None:
        """Nothing for None. UnsupportedError for a stream of another's: Heddle's work is ordered by itself."""
        if stream is not None:
            raise UnsupportedError("set_raw_stream: Heddle orders its work by itself; give what create_raw_stream gave")

    # ---- TVM's attributes: None where a device is not there, or does not tell

    @property
    def device_name(self) -> str | None:
        """The vendor's name of the device."""
        return self._known("product")

    @property
    def multi_processor_count(self) -> int | None:
        """Compute units."""
        return self._known("compute_units")

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of memory."""
        return self._known("memory_bytes")

    @property
    def driver_version(self) -> str | None:
        """The driver, in its own words."""
        return self._known("driver")

    @property
    def max_threads_per_block(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def warp_size(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def compute_version(self) -> str | None:
        """None: plugins do not tell."""

    @property
    def max_clock_rate(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """None: plugins do not tell."""

    @property
    def api_version(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def available_global_memory(self) -> int | None:
        """None: plugins do not tell."""

    @property
    def texture_spatial_limit(self) -> int | None:
        """None: plugins do not tell."""


def device(dev_type: int | str | Device, dev_id: int = 0) -> Device:
    """A Device of a type ("opencl", "cuda -arch=sm_80" as a target has it, 4) and a number, or of a name such as "sim:1".

    ValueError for a name that is neither a type nor among the devices that there are.
    """
    if isinstance(dev_type, Device):
        return dev_type
    if not isinstance(dev_type, str):
        return Device(dev_type, dev_id)
    word = dev_type.split()[0] if dev_type.split() else ""
    try:
        return Device(word, dev_id)
    except NoDeviceError as failure:
        raise ValueError(f"Unknown device type {dev_type}: {failure}") from None


def devices(context: _core.Context | None = None) -> list[dict[str, Any]]:
    """All devices of all plugins, none of them opened for it; by default of the process's context.

    Keys: name ("sim:0"), plugin, type (DLPack's), index, product, driver, reason (why it is not chosen by default), caps,
    memory_bytes, max_buffer_bytes, alignment, compute_units, uuid and pci (text or None), default (bool), abilities (dict),
    health ("ok", or the words of what failed).
    """
    return _context(context).devices()


def plugins(context: _core.Context | None = None) -> list[dict[str, Any]]:
    """All candidate plugins, with those that are not used and why; by default of the process's context.

    Keys: name, path, used (bool), reason, found_by, build, abi (major, minor), device_count, manifest.
    """
    return _context(context).plugins()


_core.set_device_class(Device)
