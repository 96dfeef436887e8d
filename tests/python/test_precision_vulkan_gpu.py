"""The same on a device that says it is a GPU: lavapipe behind the shim of the unit tests (tests/unit/vulkan_shim.h),
for the shaders that GPUs get.
labels: slow ctypes
timeout: 300
"""
import ctypes
import glob

import lavapipe
import pytest
import test_precision_vulkan

SHIM = lavapipe.BUILD / "tests" / "libvulkan_shim.so"
LOADERS = glob.glob("/usr/lib*/*/libvulkan.so.1") + glob.glob("/usr/lib*/libvulkan.so.1")
if not SHIM.exists() or not LOADERS:
    pytest.skip("the shim is not built, or there is no Vulkan loader", allow_module_level=True)


class Settings(ctypes.Structure):
    _fields_ = [("loader", ctypes.c_char_p)] + [(name, ctypes.c_int32) for name in (
        "families", "discrete", "no_clock", "few_buffers", "other_type", "old_loader", "portable", "asked_portable",
        "late_waits", "lose", "hang", "submissions", "copy_pools", "flushes")]


# It has the loader's name, so that the plugin gets it.
settings = Settings.in_dll(ctypes.CDLL(str(SHIM), mode=ctypes.RTLD_LOCAL), "vulkan_shim_settings")
settings.loader = LOADERS[0].encode()
settings.discrete = 1

ctx = test_precision_vulkan.ctx
nothing_said = test_precision_vulkan.nothing_said
test_weights_are_those_of_float16 = test_precision_vulkan.test_weights_are_those_of_float16
test_weights_are_rounded_to_nearest_even = test_precision_vulkan.test_weights_are_rounded_to_nearest_even


def test_the_device_is_a_gpu():
    assert settings.flushes > 0, "its memory was taken for coherent"
