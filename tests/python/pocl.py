"""Two PoCL devices with a folder of their own for what PoCL builds: import it before capi. Nothing may fork once one of
them is open.
"""
import os
import tempfile

import pytest

CACHE = tempfile.TemporaryDirectory(prefix="heddle-pocl-")
os.environ["POCL_DEVICES"] = "pthread pthread"
os.environ["POCL_CACHE_DIR"] = CACHE.name

import capi  # noqa: E402


def need(devices):
    """Skips where a device is not there, with the library's own words."""
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        pytest.skip("the plugin opencl is not built")
    try:
        capi.Context(devices=devices).close()
    except capi.HeddleError as e:
        if e.status in (5, 6):  # no such device, no such name
            pytest.skip(f"there is no {devices}: {e}")
        raise
