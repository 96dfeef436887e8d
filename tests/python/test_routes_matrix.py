"""Any two devices have a route, whatever their settings allow: a value of one is read by one or two others, over each
ordered pair and triple of devices of cpu, OpenCL, Vulkan and sim with import, peer and shared pages on and off, with the
self-test of routes. The result is that of numpy. How many of the triples of a setting run: reference/sizes.py.

labels: serial ctypes
timeout: 600
"""
import itertools
import json
import random

import lavapipe
import numpy as np
import pocl
import pytest

pocl.in_process()
lavapipe.in_process()

import capi  # noqa: E402
from reference import sizes  # noqa: E402

SETTINGS = [dict(zip(("sim__import", "sim__peer", "sim__unified", "sim__import_unified", "sim__coherent"), values))
            for values in itertools.product((0, 1), ("off", "on"), (0, 1), ("off", "on"), (0, 1))]
SETTINGS = [s for s in SETTINGS if s["sim__unified"] or s["sim__import_unified"] == "off"]
OTHERS = [dict(zip(("opencl__unified", "opencl__peer", "vulkan__unified"), values))
          for values in itertools.product((0, 1), repeat=3)]
X = np.random.default_rng(7).uniform(-1, 1, (5, 777)).astype(np.float32)
WANT = np.exp(np.abs(X)) - np.abs(X)


def graph_of(x):
    """a, which the first device makes, is read by the second and by the third; the first adds what they give."""
    def node(op, name, *inputs):
        return {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs]}

    nodes = [node("null", "x"), node("Abs", "a", 0), node("Neg", "b", 1), node("Exp", "c", 1), node("Add", "y", 2, 3)]
    n = len(nodes)
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[n - 1, 0, 0]], "node_row_ptr": list(range(n + 1)),
                       "attrs": {"dltype": ["list_str", ["float32"] + [None] * (n - 1)],
                                 "shape": ["list_shape", [list(x.shape)] + [None] * (n - 1)]},
                       "heddle": {"version": 1, "opset": 18}})


GRAPH = graph_of(X)


def run(ctx, graph, first, second, third):
    names = list(dict.fromkeys((first, second, third)))
    names += [] if "cpu" in names else ["cpu"]
    rules = ["*=" + first, "b=" + second, "c=" + third]
    model = capi.Model(ctx, graph, None, ",".join(names), rules)
    try:
        ex = capi.Executor(model)
        try:
            ex.set_input("x", X)
            ex.run()
            return ex.output(0)
        finally:
            ex.close()
    finally:
        model.close()


def devices():
    found = ["cpu", "sim:0", "sim:1"]
    found += ["opencl:0", "opencl:1"] if pocl.there() else []
    return found + (["vulkan:0"] if lavapipe.there() else [])


DEVICES = devices()
TRIPLES = [t for t in itertools.product(DEVICES, repeat=3) if len(set(t)) > 1 and any(d != "cpu" for d in t)]


def check(settings, triples):
    graph, wrong = capi.Graph(GRAPH), []
    ctx = capi.Context(routes__test=1, routes__cache_dir="off", **settings)
    try:
        for triple in triples:
            try:
                got = run(ctx, graph, *triple)
                if not np.allclose(got, WANT, rtol=1e-5, atol=1e-5):
                    wrong.append((triple, "other numbers"))
            except capi.HeddleError as e:
                wrong.append((triple, str(e)))
    finally:
        graph.close()
        ctx.close()
    assert not wrong, f"{settings}: {len(wrong)} of {len(triples)}: {wrong[:3]}"


def name_of(settings):
    return ",".join(f"{k.replace('__', '.')}={v}" for k, v in settings.items())


@pytest.mark.parametrize("settings", SETTINGS, ids=name_of)
def test_settings_of_sim(settings):
    rng = random.Random(name_of(settings))
    sims = [t for t in TRIPLES if t[1:] == ("sim:0", "sim:1")]  # what one device makes, for two of one plugin
    check(settings, sims + rng.sample(TRIPLES, min(len(TRIPLES), sizes.count(6))))


@pytest.mark.parametrize("settings", OTHERS, ids=name_of)
def test_settings_of_others(settings):
    rng = random.Random(name_of(settings))
    check({**settings, "sim__import": 0, "sim__peer": "off"},
          rng.sample(TRIPLES, min(len(TRIPLES), sizes.count(8))))
