"""Bad input through the C API in one process: thousands of seeded mutations of a graph, its parameters and its inputs.
Each is read or refused with words; what is read is planned, and run where it is small; nothing crashes.
timeout: 900 labels: ctypes
"""
import ctypes
import json
import random
import time

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
import test_bad_input as base  # noqa: E402
from reference import io  # noqa: E402

EINVAL, EFORMAT, ENOTFOUND = 1, 4, 18
ROUNDS = 1500


def code(name):
    """The number of a status, by its name."""
    capi.LIB.heddle_status_name.restype = ctypes.c_char_p
    return next(k for k in range(64) if capi.LIB.heddle_status_name(k) == name.encode())


@pytest.fixture(scope="module", params=["sim", "opencl"])
def ctx(request):
    """A context, and the plugin whose two devices the graphs are for; PoCL gets fewer mutants, since it compiles."""
    if request.param == "opencl":
        pocl.need()
    c = capi.Context(log="off", sim__memory_bytes=1 << 24, limit__graph_bytes=1 << 20)
    c.plugin = request.param
    c.rounds = ROUNDS if request.param == "sim" else ROUNDS // 8
    yield c
    c.close()


def on(ctx, text):
    return text.replace("sim:", f"{ctx.plugin}:")


def base_graph(ctx):
    return json.loads(on(ctx, json.dumps(base.graph())))


def well_refused(error):
    text = str(error)
    assert len(text) > 12, text
    assert error.status != code("HEDDLE_EINTERNAL") and error.status != code("HEDDLE_EPLAN"), text


def closing(*things):
    for t in things:
        if t is not None:
            t.close()


def small(graph_json):
    """Whether a run is worth its time: no shape in it has more than a few numbers."""
    shapes = graph_json.get("attrs", {}).get("shape", [0, []])[1]
    return all(isinstance(s, list) and len(s) < 9 and all(isinstance(d, int) and 0 <= d < 9 for d in s)
               for s in shapes if s is not None)


def attempt(ctx, text, blob):
    """Reads, plans and runs; gives how far it came."""
    g = p = m = ex = None
    try:
        g = capi.Graph(text)
        p = capi.Params(blob)
        m = capi.Model(ctx, g, p, on(ctx, "cpu,sim:0,sim:1"))
        m.explain_json()
        if not small(json.loads(text)):
            return "planned"
        ex = capi.Executor(m)
        ex.set_input("x", base.X)
        ex.run(5_000_000_000)
        ex.outputs()
        return "run"
    except capi.HeddleError as error:
        well_refused(error)
        return "refused"
    finally:
        closing(ex, m, p, g)


def counts(results):
    return {k: results.count(k) for k in ("refused", "planned", "run")}


def places(value, path=()):
    """Every place in a JSON value, as a path."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, path + (key,))


ODD = [None, True, 0, -1, 1, 2, 3, 7, 2**31, 2**32, 2**60, 2**63 - 1, -2**63, 0.5, 1e300, "", "x", "cpu", "sim:1", "Add",
       "float32", "int64", "null", "\u0000", "\ud7ff" * 50, [], [0], [[]], [0, 0, 0], [-1, 0, 0], [8, 0, 0], {}, {"a": 1}]


def mutated(ctx, rng):
    g = base_graph(ctx)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice([p for p in places(g) if p])
        at = g
        for key in path[:-1]:
            at = at[key]
        turn = rng.randrange(10)
        if turn == 0:
            del at[path[-1]]
        elif turn == 1 and isinstance(at, list):
            at.insert(path[-1], rng.choice(at))
        elif turn == 2 and isinstance(at, list):
            at[path[-1]] = rng.choice(at)
        elif turn == 3 and isinstance(at[path[-1]], int):
            at[path[-1]] += rng.choice((-1, 1))
        else:
            at[path[-1]] = rng.choice(ODD)
    return json.dumps(g)


def test_mutated_graphs(ctx):
    rng, blob = random.Random(1), io.params_blob(base.PARAMS)
    results = counts([attempt(ctx, mutated(ctx, rng), blob) for _ in range(ctx.rounds)])
    assert results["refused"] > ctx.rounds / 2 and results["run"] > ctx.rounds / 50, results


def test_bytes_of_graphs(ctx):
    rng, blob, good = random.Random(2), io.params_blob(base.PARAMS), json.dumps(base_graph(ctx))
    for _ in range(ctx.rounds):
        text = list(good)
        for _ in range(rng.choice((1, 1, 2, 5))):
            k = rng.randrange(len(text))
            text[k] = rng.choice(("", chr(rng.randrange(1, 127)), rng.choice('{}[],:"-0123456789'), text[k] * 3))
        attempt(ctx, "".join(text), blob)


def test_bytes_of_params(ctx):
    rng, text, good = random.Random(3), json.dumps(base_graph(ctx)), io.params_blob(base.PARAMS)
    results = []
    for _ in range(ctx.rounds):
        blob = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            k = rng.randrange(len(blob))
            blob[k] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        results.append(attempt(ctx, text, bytes(blob)))
    results = counts(results)
    assert results["refused"] > ctx.rounds / 10, results


@pytest.fixture
def parts(ctx):
    g, p = capi.Graph(json.dumps(base_graph(ctx))), capi.Params(io.params_blob(base.PARAMS))
    m = capi.Model(ctx, g, p, on(ctx, "cpu,sim:0,sim:1"))
    ex = capi.Executor(m)
    yield g, p, m, ex
    closing(ex, m, p, g)


def fails(status, needles, what, *args):
    with pytest.raises(capi.HeddleError) as caught:
        what(*args)
    assert caught.value.status == code(status), caught.value
    for needle in needles:
        assert needle in str(caught.value), caught.value


def test_inputs(parts):
    ex = parts[3]
    fails("HEDDLE_EINVAL", ["'x'"], ex.run)
    fails("HEDDLE_ENOTFOUND", ["'y'", "x"], ex.set_input, "y", base.X)
    fails("HEDDLE_ENOTFOUND", [], ex.set_input, "times", base.X)
    fails("HEDDLE_EINVAL", ["'x'", "float64"], ex.set_input, "x", base.X.astype(np.float64))
    fails("HEDDLE_EINVAL", ["'x'", "[3, 2]"], ex.set_input, "x", base.X.T)
    fails("HEDDLE_EINVAL", ["'x'"], ex.run)  # none of these was taken
    ex.set_input("x", base.X)
    ex.run()
    first = ex.outputs()[0]
    fails("HEDDLE_EINVAL", ["'x'"], ex.set_input, "x", base.X.astype(np.int32))
    ex.run()
    assert first.tobytes() == ex.outputs()[0].tobytes()


def test_numbers_that_are_not_there(parts):
    ex = parts[3]
    tensor = capi.tensor(base.X)
    for i in (4, 99, 2**32 - 1):
        fails("HEDDLE_ENOTFOUND", [], capi.call, "heddle_executor_set_input", ex.p, ctypes.c_uint32(i), tensor)
    ex.set_input("x", base.X)
    ex.run()
    for i in (1, 99, 2**32 - 1):
        fails("HEDDLE_ENOTFOUND", [], ex.output, i)
    capi.LIB.heddle_tensor_release(tensor)


def test_ambiguous_names(ctx):
    g = base_graph(ctx)
    g["nodes"][4]["name"] = g["nodes"][5]["name"] = "twin"
    graph, params = capi.Graph(json.dumps(g)), capi.Params(io.params_blob(base.PARAMS))
    make = lambda keep: capi.Model(ctx, graph, params, on(ctx, "cpu,sim:0,sim:1"), keep=[keep])  # noqa: E731
    fails("HEDDLE_EINVAL", ["twin", "4", "5"], make, "twin")
    fails("HEDDLE_ENOTFOUND", ["nobody"], make, "nobody")
    fails("HEDDLE_ENOTFOUND", ["7"], make, "times:7")
    fails("HEDDLE_ENOTFOUND", ["#99"], make, "#99")
    model = make("#5")
    ex = capi.Executor(model)
    ex.set_input("x", base.X)
    ex.run()
    assert ex.output(1).shape == (2, 4)
    closing(ex, model, params, graph)


def test_devices_and_rules(ctx, parts):
    g, p = parts[:2]
    make = lambda devices, *rules: capi.Model(ctx, g, p, devices, rules)  # noqa: E731
    fails("HEDDLE_ENODEV", ["npu", on(ctx, "sim:0")], make, "cpu,npu")
    fails("HEDDLE_ENODEV", [on(ctx, "sim:7")], make, on(ctx, "sim:7"))
    fails("HEDDLE_ENODEV", ["plus=npu", "npu"], make, "cpu", "plus=npu")
    fails("HEDDLE_EINVAL", [on(ctx, "plus=sim:1"), on(ctx, "sim:1")], make, "cpu", on(ctx, "plus=sim:1"))
    fails("HEDDLE_EINVAL", ["plus"], make, "cpu", "plus")
    fails("HEDDLE_EINVAL", [], make, on(ctx, "cpu,,sim:0"))


def test_a_long_chain_is_quick():
    """20,000 nodes in a row, and one that thousands read: nothing recursive, nothing quadratic."""
    n = 20_000
    for fan in (False, True):
        nodes = [{"op": "null", "name": "x", "inputs": []}]
        nodes += [{"op": "Add", "name": f"n{i}", "inputs": [[i, 0, 0], [0, 0, 0]] if not fan or i < 2 else
                   [[1, 0, 0], [i, 0, 0]]} for i in range(n)]
        text = json.dumps({"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0],
                           "heads": [[n, 0, 0]], "node_row_ptr": list(range(n + 2)),
                           "attrs": {"dltype": ["list_str", ["float32"] + [None] * n],
                                     "shape": ["list_shape", [[2, 3]] + [None] * n]}})
        c = capi.Context(log="off")
        start = time.monotonic()
        g = capi.Graph(text)
        m = capi.Model(c, g, None, "sim:0")
        ex = capi.Executor(m)
        ex.set_input("x", np.zeros((2, 3), np.float32))
        ex.run()
        took = time.monotonic() - start
        closing(ex, m, g, c)
        assert took < 30, took
