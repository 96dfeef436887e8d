"""The plugins of the tree for the kit: each with the environment in which it finds a device."""

import pytest
from check_case import BUILD  # first: it finds tests/python
import gpu_doubles
import lavapipe
import pocl

FOLDER = BUILD / "lib" / "heddle" / "plugins"


def plugin(name):
    """A plugin's file and its environment; skips where the plugin or its driver is not there."""
    file = FOLDER / f"libheddle_plugin_{name}.so"
    if not file.exists():
        pytest.skip(f"the plugin {name} is not built")
    if name in ("cuda", "rocm"):
        gpu_doubles.need(name, count=1)
        return file, gpu_doubles.ENV
    if name == "opencl":
        pocl.need()
        return file, {**pocl.ENV, "POCL_DEVICES": "pthread"}
    if name == "vulkan":
        lavapipe.need()
        one = lavapipe.ENV["VK_DRIVER_FILES"].split(":")[0]  # twice the same driver is twice the same UUID
        return file, {"VK_DRIVER_FILES": one, "VK_ICD_FILENAMES": one}
    return file, {}
