"""Rows of compiled functions keep values between nodes in the memory of their output: as much memory as TVM planned
(an input, and two places that take turns), right results, and so with memory of the caller's in the output's place.
labels: ctypes
timeout: 200
"""
import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from tvm_graph import Call, tvm_graph

N, F32 = 1024, "float32"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=1)
    yield context
    context.close()


@pytest.fixture(scope="module")
def library(ctx, tmp_path_factory):
    step = legacy.kernel("step", [("a", F32, (N,)), ("x", F32, (N,)), ("y", F32, (N,))],
                         f"for (int i = 0; i < {N}; i++) y[i] = a[{N - 1} - i] * 0.5f + x[i];")
    opened = capi.Library(ctx, legacy.library(tmp_path_factory.mktemp("lib") / "lib.so", "v0.14", [step]))
    yield opened
    opened.close()


def expected(x, n):
    y = x
    for _ in range(n):
        y = y[::-1] * np.float32(0.5) + x
    return y


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_three_places_are_enough(ctx, library, n):
    calls = [Call("step", ["x" if i == 0 else f"n{i - 1}", "x"], [(F32, [N])], f"n{i}") for i in range(n)]
    graph = capi.Graph(tvm_graph({"x": (F32, [N])}, calls, [f"n{n - 1}"]))
    model = capi.Model(ctx, graph, devices="cpu", library=library)
    executor = capi.Executor(model)
    assert sum(a["bytes"] for a in model.explain_json()["allocations"]) == min(n + 1, 3) * N * 4
    rng = np.random.default_rng(n)
    bound = []
    for turn in range(4):
        x = rng.normal(size=N).astype(F32)
        executor.set_input("x", x)
        if turn > 0:  # memory of the caller's, each time another; the last is too little aligned to be used in place
            room = capi.aligned(np.zeros(N + 64, F32))
            out = room[1 if turn == 3 else 0:][:N]
            t = capi.tensor(out)
            capi.call("heddle_executor_bind_output", executor.p, capi.c.c_uint32(0), t)
            capi.LIB.heddle_tensor_release(t)
            bound.append((out, expected(x, n)))
        executor.run()
        np.testing.assert_array_equal(executor.output(0), expected(x, n))
        for out, value in bound:  # what was bound before is not written any more
            np.testing.assert_array_equal(out, value)
    capi.call("heddle_executor_bind_output", executor.p, capi.c.c_uint32(0), None)
    for p in (executor, model, graph):
        p.close()
