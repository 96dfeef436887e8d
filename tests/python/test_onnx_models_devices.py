"""Whole ONNX models on vulkan alone, on opencl alone, and on both of them with cpu: the light models of the onnx package,
and networks of the kinds that people run, against what the package and onnx.reference expect.

labels: slow
timeout: 900
"""
import json

import lavapipe
import numpy as np
import onnx
import onnx_files as files
import pocl
import pytest
from onnx import TensorProto, numpy_helper
from test_onnx_models import LIGHT, LIGHT_MODELS, NETWORKS, made
from tool_case import good

ENV = {**pocl.ENV, **lavapipe.ENV}

# Operators by kind, so that every network crosses between devices several times.
MIXED = {"Conv": "vulkan:0", "Gemm": "opencl:0", "MatMul": "vulkan:1", "Relu": "vulkan:1", "Clip": "opencl:0"}
PLACES = ["vulkan", "opencl", "mixed"]


@pytest.fixture(scope="module", autouse=True)
def accelerators():
    pocl.need()
    lavapipe.need()


def words_of(where, proto):
    if where != "mixed":
        return ["--device", f"{where}:0,cpu"]
    words = ["--device", "cpu,vulkan:0,opencl:0,vulkan:1"]
    for n in proto.graph.node:
        if n.op_type in MIXED and n.output[0]:
            words += ["--place", f"{n.name or n.output[0]}={MIXED[n.op_type]}"]
    return words


def check_placed(path, words, where):
    """The model really is where it was to be: all that can be on one device, or on two at least."""
    plan = json.loads(good("plan", path, *words, "--json", **ENV))
    used = {d["name"] for d in plan["devices"] if d["nodes"]}
    assert (f"{where}:0" in used) if where != "mixed" else len(used) >= 2, used


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", NETWORKS)
def test_network(tmp_path, name, where):
    path, proto, inputs = made(tmp_path, name, 2)
    words = words_of(where, proto)
    check_placed(path, words, where)
    got = files.run(path, inputs, *words, env=ENV)
    files.same(got, files.expected(proto, inputs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_light(tmp_path, name):
    path = LIGHT / f"{name}.onnx"
    proto = onnx.load(path)
    given = {t.name for t in proto.graph.initializer}
    inputs = {}
    for v in proto.graph.input:
        if v.name not in given:
            shape = [d.dim_value for d in v.type.tensor_type.shape.dim]
            inputs[v.name] = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    good("run", path, "--device", "vulkan:0,cpu", *files.words_for(tmp_path, inputs), "--output-dir", tmp_path, **ENV)
    want = TensorProto.FromString((LIGHT / f"{name}_output_0.pb").read_bytes())
    files.same(files.outputs_of(tmp_path), [numpy_helper.to_array(want)], rtol=1e-3, atol=1e-7)
