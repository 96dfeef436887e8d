"""Random graphs on sims of every temper: memory that is not coherent, unified, without peers, views, capture, layouts.
labels: ctypes
timeout: 900
"""
import capi
import pytest
import random_graphs
from reference import placements, sizes

VARIANTS = [
    dict(sim__coherent=0),
    dict(sim__unified=1),
    dict(sim__unified=1, sim__coherent=0),
    dict(sim__unified=1, sim__import_unified="on", sim__delay_us=20),
    dict(sim__unified=1, sim__import_unified="on", sim__views=0, sim__bare=1),
    dict(sim__unified=1, sim__import_unified="on", sim__import_alignment=4096, sim__event_domains=1, flags=capi.SLOTS),
    dict(sim__unified=1, sim__import_unified="on", sim__max_buffer_bytes=65536),
    dict(sim__unified=1, sim__import_unified="on", layers="check"),
    dict(sim__unified=1, sim__import_unified="lie", routes__test=1, routes__cache_dir="off", log="error"),
    dict(sim__peer="lie", routes__test=1, routes__cache_dir="off", log="error"),
    dict(sim__peer="off"),
    dict(sim__peer="off", sim__coherent=0, sim__delay_us=10),
    dict(sim__views=0, flags=capi.SLOTS),
    dict(sim__bare=1),
    dict(sim__bare=1, sim__views=0),
    dict(sim__layouts=0),
    dict(sim__capture=0, sim__fuse=0),
    dict(flags=capi.NO_CAPTURE | capi.NO_REUSE),
    dict(sim__event_domains=1),
    dict(sim__event_domains=1, sim__import=0),
    dict(sim__needs_open=1),
    dict(sim__max_buffer_bytes=65536),
    dict(layers="check"),
    dict(layers="check,log", sim__coherent=0, log="off"),
    dict(max_streams=1),
    dict(max_streams=3, sim__delay_us=10),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: ",".join(f"{k.replace('sim__', '')}={x}" for k, x in v.items()))
def test_variant(variant):
    settings = dict(variant)
    flags, streams = settings.pop("flags", 0), settings.pop("max_streams", 0)
    for seed in sizes.seeds(900, 912):
        graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(seed)
        ctx = capi.Context(**settings)
        try:
            for k, placement in enumerate(placements.placements(graph, seed)):
                outputs = random_graphs.run_case(ctx, graph, params, inputs, placement, flags, streams, runs=2)
                random_graphs.check(f"seed {seed} placement {k}", graph, outputs, values, bounds, numpy32)
        finally:
            ctx.close()


def test_without_a_host_device():
    """A plan that has no inline device at all."""
    ctx = capi.Context(sim__coherent=0)
    try:
        for seed in sizes.seeds(920, 926):
            graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(seed)
            for placement in placements.placements(graph, seed, ["sim:0", "sim:1"]):
                outputs = random_graphs.run_case(ctx, graph, params, inputs, placement)
                random_graphs.check(f"seed {seed}", graph, outputs, values, bounds, numpy32)
    finally:
        ctx.close()


def test_one_device_gives_the_same_bits():
    """cpu without oneDNN and sim share their kernels, so placement decides nothing about the numbers; nor does a repeated run."""
    ctx = capi.Context(cpu__onednn="off")
    try:
        for seed in sizes.seeds(930, 940):
            graph, params, inputs, *_ = random_graphs.expected(seed)
            names = [n["name"] for n in graph["nodes"] if n["op"] != "null"]
            made = [random_graphs.run_case(ctx, graph, params, inputs, {n: d for n in names}, runs=r)
                    for d, r in (("cpu", 1), ("cpu", 3), ("sim:0", 1), ("sim:1", 2))]
            for other in made[1:]:
                assert all(a.tobytes() == b.tobytes() for a, b in zip(made[0], other)), f"seed {seed}"
    finally:
        ctx.close()
