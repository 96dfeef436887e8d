"""Runs seeded random graphs over placements and compares every output with onnx.reference in float64.

A result must lie within the running error bound that the reference carries, element by element, and over the graph its
error must be at most four times that of numpy in float32, with a floor of a few units in the last place. Where it is
more, numpy's error may be small by chance (in seed 503 an average of 24 values, which products with itself then magnify):
it is taken again with roundings of other directions, and the largest of these errors counts.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import capi  # noqa: E402
from reference import evaluate, graphs, io, placements  # noqa: E402

UNIT = 2.0**-24
ROUNDINGS = 4


def expected(seed):
    graph, params, inputs = graphs.random_graph(seed)
    values, bounds = evaluate.evaluate(graph, params, inputs)
    numpy32 = evaluate.float32_error(graph, params, inputs)
    return graph, params, inputs, values, bounds, numpy32


def relative(got, want):
    if want.size == 0:
        return 0.0
    return float(np.max(np.abs(got.astype(np.float64) - want))) / max(1.0, float(np.max(np.abs(want))))


def heads(graph):
    return [graph["nodes"][n]["name"] for n, _, _ in graph["heads"]]


def error(graph, found, values):
    """The largest error of a graph's outputs."""
    return max((relative(found[name], values[name]) for name in heads(graph)), default=0.0)


def check(label, graph, outputs, values, bounds, numpy32):
    worst = 0.0
    for name, got in zip(heads(graph), outputs):
        want = values[name]
        assert list(got.shape) == list(want.shape), f"{label}: {name}: shape {got.shape}, expected {want.shape}"
        assert got.dtype == np.float32 or got.dtype.kind == "i", f"{label}: {name}: dtype {got.dtype}"
        over = np.abs(got.astype(np.float64) - want) - bounds[name]
        assert not np.any(over > 0) and not np.any(np.isnan(got)), (
            f"{label}: {name}: {int(np.sum(over > 0))} of {over.size} elements outside the bound, by {np.max(over)}")
        worst = max(worst, relative(got, want))
    allowed = error(graph, numpy32, values)
    for other in range(ROUNDINGS if worst > 4 * max(allowed, 4 * UNIT) else 0):
        allowed = max(allowed, error(graph, numpy32.moved(other), values))
    assert worst <= 4 * max(allowed, 4 * UNIT), f"{label}: error {worst}, numpy in float32 has {allowed}"


def run_case(ctx, graph, params, inputs, placement, flags=0, max_streams=0, runs=1, optimize=None):
    devices = []
    for d in placement.values():
        if d not in devices:
            devices.append(d)
    g = capi.Graph(json.dumps(graph))
    p = capi.Params(io.params_blob(params)) if params else None
    made = []
    try:
        rules = [f"{name}={device}" for name, device in placement.items()]
        m = capi.Model(ctx, g, p, ",".join(devices), rules, flags=flags, max_streams=max_streams, optimize=optimize)
        made.append(m)
        ex = capi.Executor(m)
        made.insert(0, ex)
        for name, value in inputs.items():
            ex.set_input(name, value)
        for _ in range(runs):
            ex.run()
        return ex.outputs()
    finally:
        for x in made:
            x.close()
        if p:
            p.close()
        g.close()


def sweep(first, last, settings, report=None):
    """Every seed on four placements; returns edges that cross, edges in all, and the operators that occurred."""
    ctx = capi.Context(**settings)
    crossed = edges = 0
    operators = set()
    try:
        for seed in range(first, last):
            graph, params, inputs, values, bounds, numpy32 = expected(seed)
            operators |= {n["op"] for n in graph["nodes"]} - {"null"}
            made = placements.placements(graph, seed)
            by_name = {n["name"]: n for n in graph["nodes"]}
            for k, placement in enumerate(made):
                if len(set(placement.values())) > 1:
                    here = sum(1 for n in by_name.values() if n["op"] != "null" for j, _, _ in n["inputs"]
                               if j >= 0 and graph["nodes"][j]["op"] != "null")
                    edges += here
                    crossed += placements.crossing_fraction(graph, placement) * here
                outputs = run_case(ctx, graph, params, inputs, placement, runs=1 + seed % 2)
                check(f"seed {seed} placement {k}", graph, outputs, values, bounds, numpy32)
            if report:
                report(seed)
    finally:
        ctx.close()
    return crossed, edges, operators


OPERATORS = {"Add", "Mul", "Relu", "MatMul", "Gemm", "Conv", "MaxPool", "GlobalAveragePool", "Softmax", "Reshape",
             "Flatten", "Concat"}


def check_sweep(first, last, **settings):
    crossed, edges, operators = sweep(first, last, settings)
    assert operators == OPERATORS, f"operators that never occurred: {OPERATORS - operators}"
    assert crossed >= 0.3 * edges, f"only {crossed} of {edges} edges cross devices"
