"""Models inside of libraries as modules, called as TVM's factories are.
labels: ctypes
timeout: 300
"""
import json
import struct

import numpy as np
import pytest

import tvm_handles as tvm
from fixtures import tvm_legacy as legacy
from test_tvm_legacy import MODELS, model_files, same
from tvm_executors import needs_compiler, outputs_of, refused
from tvm_graph import Call, tvm_graph

F32 = "float32"

pytestmark = needs_compiler


def weights(name):
    """The parameters in a blob of TVM's, by name."""
    blob, at, found = model_files(name)[1], 16, {}
    count, = struct.unpack_from("<Q", blob, at)
    names, at = [], at + 8
    for _ in range(count):
        n, = struct.unpack_from("<Q", blob, at)
        names.append(blob[at + 8:at + 8 + n].decode())
        at += 8 + n
    at += 8
    for key in names:
        ndim, = struct.unpack_from("<i", blob, at + 24)
        shape = struct.unpack_from(f"<{ndim}q", blob, at + 32)
        n, = struct.unpack_from("<q", blob, at + 32 + 8 * ndim)
        at += 40 + 8 * ndim
        found[key] = np.frombuffer(blob[at:at + n], np.float32).reshape(shape)
        at += n
    return found


@pytest.fixture(scope="module")
def deploy(tmp_path_factory):
    graph, values = model_files("reshape_nop")[0], weights("reshape_nop")
    data = legacy.blob([legacy.factory(graph, values), legacy.LIB], [[1], []])
    return tvm.load(legacy.library(tmp_path_factory.mktemp("deploy") / "deploy.so", "v0.14", MODELS["reshape_nop"],
                                   data=data))


def test_factory(deploy):
    graph, _, inputs, outputs = model_files("reshape_nop")
    (key, value), = inputs.items()
    for make in (lambda: deploy["default"](tvm.CPU), lambda: deploy["default"](1, 0),
                 lambda: deploy["debug_create"]("default", tvm.CPU), lambda: deploy["default"](tvm.CPU, tvm.CPU)):
        ex = make()
        ex["set_input"](key, value)
        ex["run"]()
        same(outputs_of(ex), outputs)
        assert set(json.loads(ex["get_input_info"]())["shape"]) == {key}
    assert deploy["debug_create"]("default", tvm.CPU).find("execute_node") is not None
    assert deploy["get_graph_json"]() == graph
    blob = deploy["get_graph_params"]()
    plain = tvm.function("tvm.graph_executor.create")(graph, deploy, 1, 0)  # the library is found below the root
    plain["load_params"](blob)
    plain["set_input"](key, value)
    plain["run"]()
    same(outputs_of(plain), outputs)


def test_factory_without_parameters(deploy):
    (key, value), = model_files("reshape_nop")[2].items()
    bare = deploy["remove_params"]()
    assert len(bare["get_graph_params"]()) == 32 and bare["get_graph_json"]() == deploy["get_graph_json"]()
    ex = bare["default"](tvm.CPU)
    assert len(json.loads(ex["get_input_info"]())["shape"]) == 3
    ex["set_input"](key, value)
    refused(ex["run"], [], "never set")
    ex["load_params"](deploy["get_graph_params"]())
    ex["run"]()
    same(outputs_of(ex), model_files("reshape_nop")[3])
    assert bare.find("tvmgen_default_fused_nn_contrib_dense_pack", imports=True) is not None


def test_errors_of_a_factory(deploy):
    refused(deploy["default"], [], "default", "device")
    refused(deploy["default"], ["cpu"], "argument 0")
    refused(deploy["default"], [tvm.api.Device(4, 77)], "77")
    refused(deploy["default"], [tvm.api.Device(129, 0)], "129")
    refused(deploy["debug_create"], ["other", tvm.CPU], "other", "default")
    refused(deploy["cuda_graph_create"], [], "device")
    assert deploy.find("nope") is None and deploy.find("tvmgen_default_fused_nn_contrib_dense_pack") is None
    assert deploy.find("tvmgen_default_fused_nn_contrib_dense_pack", imports=True) is not None


def test_executors_of_one_factory_share_nothing_they_write(deploy):
    (key, value), = model_files("reshape_nop")[2].items()
    one, two = deploy["default"](tvm.CPU), deploy["default"](tvm.CPU)
    one["set_input"](key, value)
    two["set_input"](key, value)
    one["load_params"](tvm.function("runtime.SaveParams")("p1", weights("reshape_nop")["p1"] * 0))
    one["run"]()
    two["run"]()
    assert not outputs_of(one)[0].any()
    same(outputs_of(two), model_files("reshape_nop")[3])
    third = deploy["remove_params"]()["default"](tvm.CPU)
    third["share_params"](two, deploy["get_graph_params"]())
    third["set_input"](key, value)
    third["run"]()
    same(outputs_of(third), model_files("reshape_nop")[3])


def test_two_models_in_one_library(tmp_path):
    graphs = [tvm_graph({"x": (F32, [4])}, [Call(f, ["x"], [(F32, [4])])], [f]) for f in ("twice", "thrice")]
    kernels = [legacy.kernel(f, [("x", F32, (4,)), ("y", F32, (4,))], f"for (int i = 0; i < 4; i++) y[i] = x[i] * {n};")
               for f, n in (("twice", 2), ("thrice", 3))]
    data = legacy.blob([legacy.factory(graphs[0], {}, "model_a"), legacy.factory(graphs[1], {}, "model_b"), legacy.LIB],
                       [[1, 2], [2], []])
    root = tvm.load(legacy.library(tmp_path / "two.so", "v0.14", kernels, data=data))
    assert root.find("default") is None and root.find("model_b") is None
    for name, factor in (("model_a", 2), ("model_b", 3)):
        ex = root.find(name, imports=True)(tvm.CPU)
        ex["set_input"]("x", np.arange(4, dtype=np.float32))
        ex["run"]()
        np.testing.assert_array_equal(outputs_of(ex)[0], np.arange(4) * factor)


def test_a_factory_of_a_broken_graph(tmp_path):
    data = legacy.blob([legacy.factory("{\"nodes\": [", {}), legacy.LIB], [[1], []])
    root = tvm.load(legacy.library(tmp_path / "l.so", "v0.14", MODELS["flatten_data_2d"], data=data))
    for _ in range(2):
        refused(root["default"], [tvm.CPU], "default", "l.so")
    refused(root["get_graph_params"], [], "l.so")
