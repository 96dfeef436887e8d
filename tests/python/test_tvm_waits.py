"""A function that TVM compiled cannot be stopped: a run that is late or cancelled waits until it has returned, and the error
names the node and the function.
timeout: 120
"""
import time

import numpy as np
import pytest

from fixtures import tvm_legacy as legacy
from tool_case import failing
from tvm_graph import Call, tvm_graph

F32 = "float32"
SLEEPS = 1.5  # seconds

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture
def graph(tmp_path):
    """Node "second" calls the function that takes long, "first" and "third" one that does not."""
    body = "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"
    # clock() counts the process's time: what the function does is work, as in a long loop
    spin = f"for (clock_t began = clock(); clock() - began < {SLEEPS} * CLOCKS_PER_SEC;) y[0] = x[0];\n"
    functions = [legacy.kernel("quick", [("x", F32, (4,)), ("y", F32, (4,))], body),
                 "#include <time.h>\n" + legacy.kernel("dawdle", [("x", F32, (4,)), ("y", F32, (4,))], spin + body)]
    library = legacy.library(tmp_path / "lib.so", "v0.14", functions)
    (tmp_path / "g.json").write_text(tvm_graph({"x": (F32, [4])}, [
        Call("quick", ["x"], [(F32, [4])], "first"), Call("dawdle", ["first"], [(F32, [4])], "second"),
        Call("quick", ["second"], [(F32, [4])], "third")], ["third"]))
    np.save(tmp_path / "x.npy", np.zeros(4, F32))
    return tmp_path / "g.json", "--lib", library, "--input", f"x={tmp_path / 'x.npy'}"


@pytest.mark.parametrize("devices", ["cpu", "sim:0,cpu"])
def test_the_error_names_what_was_waited_for(graph, devices):
    began = time.monotonic()
    error = failing(1, "run", *graph, "--device", devices, "--timeout", 0.3)
    assert time.monotonic() - began >= SLEEPS, "the function was not waited for"
    assert "'second'" in error and "function 'dawdle'" in error, error
    assert "a compiled function cannot be stopped" in error, error
    assert "'first'" not in error and "'third'" not in error, error
