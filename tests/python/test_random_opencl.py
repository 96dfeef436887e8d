"""Random graphs over cpu, two PoCL devices and two sims. labels: slow timeout: 1800

The tests take their seeds from the same few graphs: most of the time is PoCL's, for kernels that it has not seen yet.
"""
import os

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402
from reference import placements, sizes  # noqa: E402

DEVICES = ["cpu", "opencl:0", "opencl:1", "sim:0", "sim:1"]


@pytest.fixture(scope="module", autouse=True)
def opencl():
    """Skips all where there are no two OpenCL devices, with the library's own words."""
    pocl.need()


def sweep(first, last, devices, settings, flags=0, max_streams=0):
    ctx = capi.Context(**settings)
    crossed = edges = 0
    operators = set()
    try:
        for seed in range(first, last):
            graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(seed)
            operators |= {n["op"] for n in graph["nodes"]} - {"null"}
            for k, placement in enumerate(placements.placements(graph, seed, devices)):
                if len(set(placement.values())) > 1:
                    crossed += placements.crossing_fraction(graph, placement)
                    edges += 1
                outputs = random_graphs.run_case(ctx, graph, params, inputs, placement, flags, max_streams,
                                                 runs=1 + seed % 2)
                random_graphs.check(f"seed {seed} placement {k}", graph, outputs, values, bounds, numpy32)
    finally:
        ctx.close()
    return crossed, edges, operators


def test_seeds_with_tested_routes(tmp_path):
    """With the self-test on, and with a cache of it that the second context reads."""
    for _ in range(2):
        sweep(1014, 1014 + sizes.count(10), DEVICES, {"routes__test": 1, "routes__cache_dir": tmp_path, **PAGES})
    assert len(list(tmp_path.iterdir())) > 10


def test_seeds():
    crossed, edges, operators = sweep(1000, 1024, DEVICES, {"sim__delay_us": 0})
    assert operators == random_graphs.OPERATORS
    assert crossed >= 0.3 * edges


PAGES = {"sim__unified": 1, "sim__import_unified": "on"}

VARIANTS = [
    dict(opencl__unified=0),
    dict(**PAGES),
    dict(**PAGES, sim__delay_us=20),
    dict(**PAGES, layers="check"),
    dict(opencl__unified=0, opencl__peer=0),
    dict(opencl__peer=0, flags=capi.SLOTS),
    dict(layers="check"),
    dict(max_streams=1),
    dict(opencl__max_streams=4, max_streams=4, opencl__unified=0),
    dict(opencl__sub_devices=1),
    dict(opencl__capture=1, opencl__unified=0),
    dict(sim__coherent=0, opencl__unified=0),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: ",".join(f"{k.replace('__', '.')}={x}" for k, x in v.items()))
def test_variant(variant):
    settings = dict(variant)
    flags, streams = settings.pop("flags", 0), settings.pop("max_streams", 0)
    sweep(1000, 1000 + sizes.count(5), DEVICES, settings, flags, streams)


def test_opencl_alone():
    """Plans without a host device."""
    sweep(1000, 1000 + sizes.count(10), ["opencl:0"], {})
    sweep(1000, 1000 + sizes.count(10), ["opencl:0", "opencl:1"], {})


def test_cache_of_programs(tmp_path):
    """A folder for built programs is filled by one context and read by the next; damaged entries are built again."""
    cache = tmp_path / "programs"
    stored = {"opencl__cache_dir": cache, "opencl__cache_always": "1"}
    sweep(1010, 1013, ["opencl:0"], {**stored})
    entries = sorted(cache.iterdir())
    assert entries and all(e.suffix == ".clbin" for e in entries)
    for i, e in enumerate(entries):
        data = bytearray(e.read_bytes())
        if i % 4 == 0:
            data[-1] ^= 0xFF
        elif i % 4 == 1:
            del data[len(data) // 2:]
        elif i % 4 == 2:
            data = b""
        e.write_bytes(bytes(data))
    sweep(1010, 1013, ["opencl:0"], {**stored, "log": "off"})
    assert sorted(cache.iterdir()) == entries
    assert all(len(e.read_bytes()) > 40 for e in entries)
    sweep(1010, 1013, ["opencl:0"], {**stored})


def check_digits(where):
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


@pytest.mark.parametrize("where", ["opencl:0", "opencl:1", "cpu and opencl:0", "opencl:0 and opencl:1"])
def test_digits(where):
    check_digits(where)
