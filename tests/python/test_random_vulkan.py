"""Random graphs over cpu, two PoCL devices, two lavapipe ones and two sims. labels: slow timeout: 1800

Half of the graphs are those of test_random_opencl.py, whose kernels PoCL has in its cache.
"""
import lavapipe
import pocl
import pytest

pocl.in_process()
lavapipe.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402
from reference import sizes  # noqa: E402
from test_random_opencl import check_digits, sweep  # noqa: E402

DEVICES = ["cpu", "opencl:0", "opencl:1", "vulkan:0", "vulkan:1", "sim:0", "sim:1"]


@pytest.fixture(scope="module", autouse=True)
def accelerators():
    """Skips all where devices are missing, with the library's own words."""
    lavapipe.need()
    pocl.need()


def test_seeds():
    crossed, edges, operators = sweep(1012, 1036, DEVICES, {"sim__delay_us": 0})
    assert operators == random_graphs.OPERATORS
    assert crossed >= 0.3 * edges


VARIANTS = [
    dict(vulkan__unified=0),
    dict(vulkan__unified=0, opencl__unified=0),
    dict(vulkan__timeline=0),
    dict(vulkan__timeline=0, vulkan__unified=0, max_streams=4),
    dict(flags=capi.SLOTS),
    dict(flags=capi.NO_CAPTURE),
    dict(layers="check"),
    dict(max_streams=1),
    dict(vulkan__max_streams=4, max_streams=4, vulkan__unified=0),
    dict(vulkan__fuse=0),
    dict(sim__coherent=0, vulkan__unified=0),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: ",".join(f"{k.replace('__', '.')}={x}" for k, x in v.items()))
def test_variant(variant):
    settings = dict(variant)
    flags, streams = settings.pop("flags", 0), settings.pop("max_streams", 0)
    sweep(1012, 1012 + sizes.count(4), DEVICES, settings, flags, streams)


def test_vulkan_alone():
    """Plans without a host device."""
    sweep(1012, 1012 + sizes.count(10), ["vulkan:0"], {})
    sweep(1012, 1012 + sizes.count(10), ["vulkan:0", "vulkan:1"], {})


@pytest.mark.parametrize("where", ["vulkan:0", "vulkan:1", "cpu and vulkan:0", "opencl:0 and vulkan:0",
                                   "vulkan:0 and vulkan:1"])
def test_digits(where):
    check_digits(where)
