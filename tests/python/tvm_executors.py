"""What the tests of TVM's executor share: libraries of the models of tests/data/tvm_v0_14, executors of them, and calls
that are refused.
"""
import pytest

import tvm_handles as tvm
from fixtures import tvm_legacy as legacy
from test_tvm_legacy import MODELS, model_files

needs_compiler = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """name -> the module of a model's library."""
    folder, open_ones = tmp_path_factory.mktemp("libraries"), {}

    def get(name):
        if name not in open_ones:
            open_ones[name] = tvm.load(legacy.library(folder / f"{name}.so", "v0.14", MODELS[name]))
        return open_ones[name]
    return get


def create(graph, module, *devices, by="tvm.graph_executor.create"):
    return tvm.function(by)(graph, module, *(devices or (1, 0)))


@pytest.fixture
def model(library):
    """name -> an executor with its parameters and inputs set, and TVM's outputs."""
    def make(name, by="tvm.graph_executor.create"):
        graph, params, inputs, outputs = model_files(name)
        ex = create(graph, library(name), by=by)
        if len(params) > 32:
            ex["load_params"](params)
        for key, value in inputs.items():
            ex["set_input"](key, value)
        return ex, inputs, outputs
    return make


def refused(f, args, *words):
    with pytest.raises(tvm.TVMError) as caught:
        f(*args)
    for word in words:
        assert word in str(caught.value), caught.value


def outputs_of(ex):
    return [ex["get_output"](i).numpy() for i in range(ex["get_num_outputs"]())]
