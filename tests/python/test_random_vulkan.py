"""Random graphs over cpu, two PoCL devices, two lavapipe ones and two sims. labels: slow timeout: 1800
"""
import os

import lavapipe
import numpy as np
import pocl
import pytest

pocl.in_process()
lavapipe.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402
from test_random_opencl import sweep  # noqa: E402

DEVICES = ["cpu", "opencl:0", "opencl:1", "vulkan:0", "vulkan:1", "sim:0", "sim:1"]


@pytest.fixture(scope="module", autouse=True)
def accelerators():
    """Skips all where devices are missing, with the library's own words."""
    lavapipe.need()
    pocl.need()


def test_seeds():
    crossed, edges, operators = sweep(2000, 2032, DEVICES, {"sim__delay_us": 0})
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
    sweep(2100, 2104, DEVICES, settings, flags, streams)


def test_vulkan_alone():
    """Plans without a host device."""
    sweep(2200, 2210, ["vulkan:0"], {})
    sweep(2200, 2210, ["vulkan:0", "vulkan:1"], {})


@pytest.mark.parametrize("where", ["vulkan:0", "vulkan:1", "cpu and vulkan:0", "opencl:0 and vulkan:0",
                                   "vulkan:0 and vulkan:1"])
def test_digits(where):
    """The demo's network against what onnx.reference gave, every 12th image."""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "digits")
    with open(os.path.join(source, "digits.json")) as f:
        text = f.read()
    with open(os.path.join(source, "digits.params"), "rb") as f:
        blob = f.read()
    images = np.load(os.path.join(source, "images.npy"))
    expected = np.load(os.path.join(source, "expected.npy"))
    devices = where.split(" and ")
    rules = ["*=" + devices[0]] + (["wide*=" + devices[-1], "mix*=" + devices[-1]] if len(devices) > 1 else [])
    ctx = capi.Context()
    graph, params = capi.Graph(text), capi.Params(blob)
    model = capi.Model(ctx, graph, params, ",".join(devices), rules, flags=capi.IGNORE_ANNOTATIONS)
    ex = capi.Executor(model)
    try:
        for i in range(0, len(images), 12):
            ex.set_input("image", images[i:i + 1].astype(np.float32))
            ex.run()
            assert np.max(np.abs(ex.output(0) - expected[i])) < 1e-5, f"image {i}"
    finally:
        for x in (ex, model, params, graph, ctx):
            x.close()
