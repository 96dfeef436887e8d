"""Two PoCL devices for a test, with a cache of kernels that CTest names (else one of their own): ENV for programs that are started; in_process() for libheddle
in Python, before anything of OpenCL is loaded; need() skips where there are no two such devices."""

import os
import tempfile

import pytest
from tool_case import BUILD, DIGITS, heddle

OWN = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
ENV = {"POCL_DEVICES": "pthread pthread", "POCL_CACHE_DIR": OWN.name if OWN else os.environ["POCL_CACHE_DIR"]}
PLUGIN = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_opencl.so"


def in_process():
    os.environ.update(ENV)


def there():
    return PLUGIN.exists() and "opencl:1" in heddle("devices", **ENV).out


def need():
    if not PLUGIN.exists():
        pytest.skip("the plugin opencl is not built")
    if not there():
        pytest.skip("there are no two OpenCL devices: " + heddle("plan", DIGITS, "--device", "opencl:1", **ENV).err)
