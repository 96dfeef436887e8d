"""FusedElementwise, Gelu and fused chains on PoCL, against numpy in float64. labels: slow
timeout: 900
"""
import os

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
import fused  # noqa: E402
import fused_device  # noqa: E402


@pytest.fixture(scope="module")
def ctx():
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        pytest.skip("the plugin opencl is not built")
    c = capi.Context()
    b = fused.Builder()
    x = np.zeros(3, np.float32)
    try:
        fused.run(c, b, [b.add("Relu", [b.null("x", x)])], {"x": x}, "opencl:0")
    except capi.HeddleError as e:
        c.close()
        if e.status in (5, 6):
            pytest.skip(f"no OpenCL device: {e}")
        raise
    yield c
    c.close()


def test_expressions(ctx):
    fused_device.check_expressions(ctx, "opencl")


def test_chains(ctx):
    fused_device.check_chains(ctx, "opencl")


def test_the_switch_and_mixed_devices(ctx):
    fused_device.check_switch_and_mixed_devices(ctx, "opencl")


def test_gelu(ctx):
    fused_device.check_gelu(ctx, "opencl")


def test_programs_are_cached(tmp_path, ctx):
    fused_device.check_programs_are_cached("opencl", tmp_path)
