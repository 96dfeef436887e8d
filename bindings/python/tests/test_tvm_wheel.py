"""A graph of functions that today's TVM compiled, through heddle.graph_executor and heddle.debug_executor, against numpy.
timeout: 300
"""
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from tvm_models import F32, ROOT, Call, tvm_graph

import heddle as tvm
from heddle.contrib import graph_executor
from heddle.contrib.debugger import debug_executor

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tvm") is None,
                                reason="apache-tvm is not in .venv; scripts/setup installs it")

COMPILE = """import sys
sys.path.insert(0, sys.argv[1])
import tvm, tvm_compile as c
made = [c.matmul(), c.both(), c.add1(), c.parallel()]
tvm.compile(tvm.IRModule({str(f.attrs["global_symbol"]): f for f in made}), target="llvm").export_library(sys.argv[2])"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel") / "lib.so"
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS")}
    subprocess.run([sys.executable, "-c", COMPILE, str(ROOT / "tests" / "python"), str(path)], check=True, env=env,
                   timeout=240)
    return tvm.runtime.load_module(str(path))


def test_graph(library, tmp_path):
    """Two branches: a product, and a function of two outputs of which one is bool and another node's input."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(16, 32)).astype(F32), rng.normal(size=(32, 8)).astype(F32)
    v = rng.normal(size=6).astype(F32)
    graph = tvm_graph({"a": (F32, [16, 32]), "b": (F32, [32, 8]), "v": (F32, [6])},
                      [Call("matmul", ["a", "b"], [(F32, [16, 8])]), Call("both", ["v"], [(F32, [6]), ("bool", [6])]),
                       Call("both", ["both"], [(F32, [6]), ("bool", [6])], "again")],
                      ["matmul", "again", "both:1"])
    expected = (a @ b, v * 9, v > 0)
    m = graph_executor.create(graph, library, tvm.cpu(0))
    m.load_params(tvm.runtime.save_param_dict({"b": tvm.nd.array(b)}))
    m.run(a=a, v=v)
    for i, want in enumerate(expected):
        np.testing.assert_allclose(m.get_output(i).numpy(), want, rtol=1e-4, atol=1e-5)
    assert sorted(m.get_input_info()[0]) == ["a", "v"]
    assert m.get_output_info()[1] == {"matmul": F32, "again": F32, "both": "bool"}
    d = debug_executor.create(graph, library, tvm.cpu(0), tmp_path)
    d.run(number=1, min_repeat_ms=0, a=a, b=b, v=v)
    values = d.debug_datum.get_output_tensors()
    assert [k for k in values if "topo-index:4" in k] == ["both____topo-index:4____output-num:0",
                                                          "both____topo-index:4____output-num:1"]
    np.testing.assert_allclose(values["again____topo-index:5____output-num:0"].numpy(), v * 9, rtol=1e-5)
    np.testing.assert_array_equal(values["both____topo-index:4____output-num:1"].numpy(), v > 0)


def test_functions(library):
    x, y = tvm.nd.array(np.ones((64, 256), F32)), tvm.nd.empty((64, 256))
    library["parallel"](x, y)
    np.testing.assert_allclose(y.numpy(), np.full((64, 256), np.e + 1), rtol=1e-5)
    with pytest.raises(tvm.TVMError, match="(?i)shape"):
        library["parallel"](x, tvm.nd.empty((64, 255)))
