"""Calls of models by the thousand with errors among them, and what they leave behind: references, objects, memory."""
import ctypes
import gc
import sys

import heddle
import numpy as np
from heddle import errors

import small_models as small
from flat import memory


def one_round(models, values):
    """20 calls: of both outputs' kinds, of all kinds of values, and each way to fail before, in and after a run."""
    add, rows, sim, large = models
    x, wide, big, there = values
    for model in (add, sim):
        model(x, x), model(x, y=x), model.run({"x": x, "y": x}), model(x.astype(np.float64), there)
        for call, kind in ((lambda: model(x), errors.InvalidError), (lambda: model(x, q=x), errors.NotFoundError),
                           (lambda: model(x, x[:2]), errors.InvalidError), (lambda: model(x, x=x), errors.InvalidError),
                           (lambda: model(x, "text"), errors.InvalidError)):
            try:
                call()
            except kind:
                continue
            raise AssertionError("a call that must fail did not")
    rows(wide[:1], wide[:1]), rows(wide, wide)
    large(big, big)
    return 21


def calls_leave_nothing(folder, count, slack):
    """At least count calls, after some to warm up. slack: bytes that the process may have grown by."""
    context = heddle.Context({"sim.fail": "h2d:500,h2d:900:async"})
    models = [heddle.load(small.add(folder), devices="cpu"), heddle.load(small.add(folder, ("n", 3), "rows"), devices="cpu"),
              heddle.load(small.add(folder), devices="sim:0", context=heddle.Context(), pool=1),
              heddle.load(small.add(folder, (50_000,), "large"), devices="cpu")]
    failing = heddle.load(small.add(folder), devices="sim:0", context=context, pool=1)
    values = [np.ones(4, np.float32), np.ones((5, 3), np.float32), np.ones(50_000, np.float32),
              heddle.empty((4,), "float32", "sim:0")]
    watched = [*models, *values, failing, np.dtype("float32"), errors.InvalidError, errors.NotFoundError]
    lost = 0
    for _ in range(100):
        one_round(models, values)
        failing(values[0], values[0])
    gc.collect()
    before, counts, objects = memory(), [sys.getrefcount(w) for w in watched], len(gc.get_objects())
    done = 0
    while done < count:
        done += one_round(models, values) + 1
        try:
            failing(values[0], values[0])
        except errors.FailedError:
            lost += 1
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    now = [sys.getrefcount(w) for w in watched]
    assert now == counts, [(w, b - a) for w, a, b in zip(watched, counts, now) if a != b]
    assert abs(len(gc.get_objects()) - objects) < 50
    assert lost == 2 and models[0].executors == 1 and failing.executors == 1
    grown = memory() - before
    assert grown <= slack, f"{done} calls left {grown} bytes"
    return done, grown
