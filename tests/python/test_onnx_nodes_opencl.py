"""ONNX's node cases on opencl:0. labels: slow serial timeout: 900

The number that pass may not fall below the floor. A case of an operator that the plugin does not list is left out.
"""
import os
import tempfile

import pytest

CACHE = tempfile.TemporaryDirectory(prefix="heddle-pocl-")
os.environ["POCL_DEVICES"] = "pthread pthread"
os.environ["POCL_CACHE_DIR"] = CACHE.name

import capi  # noqa: E402
import onnx_nodes  # noqa: E402

FLOOR = 1


def test_nodes():
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        pytest.skip("the plugin opencl is not built")
    try:
        capi.Context(devices="opencl:0").close()
    except capi.HeddleError as e:
        if e.status in (5, 6):  # no such device, no such name
            pytest.skip(f"no OpenCL device: {e}")
        raise
    onnx_nodes.check("opencl:0", FLOOR)
