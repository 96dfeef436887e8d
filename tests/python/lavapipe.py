"""Two lavapipe devices for a test: Vulkan's loader is given Mesa's manifest and a copy of it under another name, which it
takes for a second driver. ENV for programs that are started; in_process() for libheddle in Python, before anything of
Vulkan is loaded; need() skips where there are no two such devices."""

import glob
import os
import pathlib
import shutil
import tempfile

import pytest
from tool_case import BUILD, DIGITS, heddle

FOLDER = tempfile.TemporaryDirectory(prefix="heddle-lavapipe-")
PLUGIN = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_vulkan.so"


def manifests():
    """Mesa's manifest for this machine and its copy; nothing where Mesa is not installed."""
    found = sorted(glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"))
    if not found:
        return []
    copy = pathlib.Path(FOLDER.name) / "lvp_again.json"
    shutil.copyfile(found[0], copy)
    return [found[0], str(copy)]


ENV = {"VK_DRIVER_FILES": ":".join(manifests()) or "/none", "VK_ICD_FILENAMES": ":".join(manifests()) or "/none",
       "XDG_RUNTIME_DIR": FOLDER.name}


def in_process():
    os.environ.update(ENV)


def there():
    return PLUGIN.exists() and "vulkan:1" in heddle("devices", **ENV).out


def need():
    if not PLUGIN.exists():
        pytest.skip("the plugin vulkan is not built")
    if not there():
        pytest.skip("there are no two Vulkan devices: " + heddle("plan", DIGITS, "--device", "vulkan:1", **ENV).err)
