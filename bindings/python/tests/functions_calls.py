"""Calls with errors mixed in, and what is left after them."""
import gc
import sys

import numpy as np

import calls_libraries as libraries
import heddle.runtime as runtime


def resident():
    """Bytes of the process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


class Wrong(Exception):
    pass


def one_round(apply, swallow, array, text):
    """Twelve calls, of which four fail."""
    def fail(*args):
        raise Wrong(f"with {len(args)} arguments")

    apply(lambda x: x, array)
    apply(lambda x: x, text)
    apply(lambda x: bytes(x), b"bytes")
    apply(lambda f: f, lambda: text)
    apply(lambda: array)
    runtime.get_global_func("test.flat")(array, text)
    runtime.register_func("test.flat", lambda *args: args[0], override=True)
    assert swallow(fail) == 7
    for bad in (lambda: apply(fail, array), lambda: apply(lambda: apply(fail)), lambda: apply(1),
                lambda: apply(lambda: object())):
        try:
            bad()
        except (Wrong, TypeError, runtime.TVMError):
            continue
        raise AssertionError("it did not fail")


def one_round_of_objects(path, array):
    """Modules, names, arrays and parameters, with errors."""
    library = runtime.load_module(path)
    assert library["apply"](lambda: 1) == 1 and library.imported_modules == [] and library.library()["modules"] == []
    there = runtime.nd.array(np.arange(500))
    there[:] = there.numpy() + 1
    there.copyto(runtime.cpu(0)).copyfrom(np.zeros(500))
    blob = runtime.save_param_dict({"a": array, "b": there})
    assert runtime.load_param_dict(blob)["b"].numpy()[0] == 1
    library.time_evaluator("apply", runtime.cpu(0), number=1)(lambda: None)
    for bad in (lambda: library["nothing"], lambda: runtime.load_module("nothing.so"), lambda: there.copyfrom(np.zeros(3)),
                lambda: runtime.load_param_dict(blob[:-1]), lambda: runtime.get_global_func("nothing"),
                lambda: library.time_evaluator("apply", runtime.cpu(0))(3), lambda: runtime.nd.empty((2,), "nothing")):
        try:
            bad()
        except (runtime.TVMError, ValueError, TypeError):
            continue
        raise AssertionError("it did not fail")


def stays_flat(folder, rounds):
    """Bytes by which the process grew over that many rounds, after a warm-up of a fifth of them."""
    path = libraries.packed(folder)
    library = runtime.load_module(path)
    apply, swallow = library["apply"], library["swallow"]
    array, text = runtime.nd.array(np.arange(2000.0)), "text" * 300
    runtime.register_func("test.flat", lambda *args: args[0], override=True)

    def some(n):
        for i in range(n):
            one_round(apply, swallow, array, text)
            if i % 5 == 0:
                one_round_of_objects(path, array)
        gc.collect()

    some(max(rounds // 5, 20))
    counts, objects, before = [sys.getrefcount(o) for o in (array, text, apply, None)], len(gc.get_objects()), resident()
    some(rounds)
    after = [sys.getrefcount(o) for o in (array, text, apply, None)]
    assert [max(a - b, 0) for a, b in zip(after, counts)][:3] == [0, 0, 0]
    assert after[3] - counts[3] < 50 and len(gc.get_objects()) - objects < 50
    return resident() - before
