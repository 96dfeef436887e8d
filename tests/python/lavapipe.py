"""Two Vulkan devices for a test: lavapipe, whose manifest is there twice. ENV for programs that are started; in_process()
for libheddle in Python, before anything of Vulkan is loaded; need() skips where there are no two such devices."""

import glob
import os
import shutil
import tempfile

import pytest
from tool_case import BUILD, DIGITS, heddle

FOLDER = tempfile.TemporaryDirectory(prefix="heddle-vulkan-")
PLUGIN = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_vulkan.so"


def environment():
    """What makes the loader find lavapipe twice; nothing where its manifest is not where loaders look."""
    roots = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":") + ["/etc"]
    found = [p for r in roots for p in glob.glob(os.path.join(r, "vulkan", "icd.d", "lvp_icd*.json"))]
    if not found:
        return {}
    second = shutil.copy(found[0], os.path.join(FOLDER.name, "second.json"))
    return {"VK_DRIVER_FILES": f"{found[0]}:{second}", "VK_ICD_FILENAMES": f"{found[0]}:{second}"}


ENV = environment()


def in_process():
    os.environ.update(ENV)


def there():
    return PLUGIN.exists() and "vulkan:1" in heddle("devices", **ENV).out


def need():
    if not PLUGIN.exists():
        pytest.skip("the plugin vulkan is not built")
    if not there():
        pytest.skip("there are no two Vulkan devices: " + heddle("plan", DIGITS, "--device", "vulkan:1", **ENV).err)
