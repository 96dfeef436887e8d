"""The plugins of the tree for the kit: each with the environment and the settings that make it find a device."""

import pytest
from check_case import SANITIZED  # first: it finds tests/python
import gpu_doubles
import lavapipe
import pocl
from tool_case import BUILD

FOLDER = BUILD / "lib" / "heddle" / "plugins"


def gpu(name):
    """Words and environment for cuda or rocm on the double of its driver."""
    gpu_doubles.need(name, count=1)
    own = f"HEDDLE_{name.upper()}_"
    settings = {k[len(own):].lower(): v for k, v in gpu_doubles.ENV.items() if k.startswith(own)}
    env = {k: v for k, v in gpu_doubles.ENV.items() if not k.startswith("HEDDLE_")}
    return [word for k, v in settings.items() for word in ("--set", f"{k}={v}")], env


def words_for(name):
    """The file of a plugin, more words for the kit, and the environment; skips where the plugin or its driver is not."""
    file = FOLDER / f"libheddle_plugin_{name}.so"
    if not file.exists():
        pytest.skip(f"the plugin {name} is not built")
    if name in ("cuda", "rocm"):
        words, env = gpu(name)
        return file, words, env
    if name == "opencl":
        pocl.need()
        return file, [], {**pocl.ENV, "POCL_DEVICES": "pthread"}
    if name == "vulkan":
        lavapipe.need()
        return file, [], lavapipe.ENV
    return file, [], {}
