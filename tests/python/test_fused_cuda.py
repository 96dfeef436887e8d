"""FusedElementwise, Gelu and fused chains on the double of CUDA's driver, against numpy in float64: a few of those that
run on PoCL itself. labels: ctypes
timeout: 300
"""
import pytest

import gpu_doubles

gpu_doubles.in_process()

import capi  # noqa: E402
import fused_device  # noqa: E402


@pytest.fixture(scope="module")
def ctx():
    gpu_doubles.need("cuda")
    c = capi.Context()
    yield c
    c.close()


def test_expressions(ctx):
    fused_device.check_expressions(ctx, "cuda", seeds=5)


def test_chains(ctx):
    fused_device.check_chains(ctx, "cuda", seeds=5)


def test_the_switch_and_mixed_devices(ctx):
    fused_device.check_switch_and_mixed_devices(ctx, "cuda", seeds=2)


def test_gelu(ctx):
    fused_device.check_gelu(ctx, "cuda")


def test_programs_are_cached(tmp_path, ctx):
    fused_device.check_programs_are_cached("cuda", tmp_path)
