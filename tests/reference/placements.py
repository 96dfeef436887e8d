"""Seeded placements of a graph's operators over several devices, made to cross between devices often.
Four kinds: each node at random, runs of neighbours together, away from the producer, and one favourite device."""

import copy

import numpy as np


def _operators(graph):
    return [i for i, n in enumerate(graph["nodes"]) if n["op"] != "null"]


def _producers(graph, i):
    return [j for j, _, _ in graph["nodes"][i]["inputs"] if j >= 0 and graph["nodes"][j]["op"] != "null"]


def _random(graph, devices, rng):
    return {i: devices[rng.integers(len(devices))] for i in _operators(graph)}


def _runs(graph, devices, rng):
    """Runs of one to eight nodes, mostly short, each on another device than the one before it."""
    placed, left, at = {}, 0, int(rng.integers(len(devices)))
    for i in _operators(graph):
        if left == 0:
            left = min(8, int(rng.geometric(0.5)))
            at = (at + int(rng.integers(1, max(2, len(devices))))) % len(devices)
        placed[i], left = devices[at], left - 1
    return placed


def _away(graph, devices, rng):
    """Seven nodes of ten on another device than one of their producers."""
    placed = {}
    for i in _operators(graph):
        near, choice = _producers(graph, i), list(devices)
        if near and len(devices) > 1 and rng.random() < 0.7:
            choice.remove(placed[near[rng.integers(len(near))]])
        placed[i] = choice[rng.integers(len(choice))]
    return placed


def _favourite(graph, devices, rng):
    """Half of the nodes on one device, the rest spread over all."""
    first = devices[rng.integers(len(devices))]
    return {i: first if rng.random() < 0.4 else devices[rng.integers(len(devices))] for i in _operators(graph)}


def placements(graph, seed, devices=("cpu", "sim:0", "sim:1", "sim:2")):
    """Four placements, each a dict from operator node name to device; the same arguments give the same four."""
    rng = np.random.default_rng([seed, 0x706C6163])
    made = [kind(graph, list(devices), rng) for kind in (_random, _runs, _away, _favourite)]
    return [{graph["nodes"][i]["name"]: str(d) for i, d in placed.items()} for placed in made]


def crossing_fraction(graph, placement):
    """The part of the edges between operators whose two ends are on different devices (0 without edges)."""
    name = [n["name"] for n in graph["nodes"]]
    edges = [(j, i) for i in _operators(graph) for j in _producers(graph, i)]
    return sum(placement[name[a]] != placement[name[b]] for a, b in edges) / max(1, len(edges))


def with_placement(graph, placement):
    """A copy of the graph with the placement written into its `device` annotations."""
    graph = copy.deepcopy(graph)
    for node in graph["nodes"]:
        node.pop("device", None)
        if node["name"] in placement:
            node["device"] = placement[node["name"]]
    return graph
