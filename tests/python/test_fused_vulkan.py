"""FusedElementwise, Gelu and fused chains on lavapipe, against numpy in float64. labels: slow ctypes
timeout: 600
"""
import os

import pytest

import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
import fused  # noqa: E402
import fused_device  # noqa: E402


@pytest.fixture(scope="module")
def ctx():
    lavapipe.need()
    c = capi.Context()
    yield c
    c.close()


def test_expressions(ctx):
    fused_device.check_expressions(ctx, "vulkan")


def test_chains(ctx):
    fused_device.check_chains(ctx, "vulkan")


def test_the_switch_and_mixed_devices(ctx):
    fused_device.check_switch_and_mixed_devices(ctx, "vulkan")


def test_gelu(ctx):
    fused_device.check_gelu(ctx, "vulkan")


def test_pipelines_are_kept(ctx, tmp_path):
    """One file a device, which a second context reads; one that is damaged is said to be, and made again."""
    tree, values, inputs, want = fused_device.case(2003)
    folder = tmp_path / "kept" / "here"

    def run():
        c = capi.Context(vulkan__cache_dir=folder)
        try:
            b, head = fused.as_node(tree, values)
            (got,), _ = fused.run(c, b, [head], inputs, "vulkan:0")
            fused.close("cached", got, want)
        finally:
            c.close()
        (entry,) = folder.iterdir()
        return entry

    entry = run()
    assert entry.name.startswith("vulkan-") and entry.suffix == ".pipelines"
    assert os.stat(folder).st_mode & 0o077 == 0
    good = entry.read_bytes()
    assert run().read_bytes()[:8] == good[:8]
    entry.write_bytes(good[: len(good) // 2])
    assert len(run().read_bytes()) == len(good)
    os.chmod(folder, 0o777)
    entry.unlink()
    c = capi.Context(vulkan__cache_dir=folder)
    try:
        b, head = fused.as_node(tree, values)
        (got,), _ = fused.run(c, b, [head], inputs, "vulkan:0")
        fused.close("not cached", got, want)
    finally:
        c.close()
    assert list(folder.iterdir()) == []
