"""Whole ONNX models on vulkan alone, on opencl alone, and on both of them with cpu: the light models of the onnx package,
and networks of the kinds that people run, against what the package and onnx.reference expect.

labels: slow
timeout: 900
"""
import json

import lavapipe
import onnx_files as files
import pocl
import pytest
from test_onnx_models import LIGHT_MODELS, NETWORKS, check_light, made
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
    check_light(tmp_path, name, "vulkan:0,cpu", **ENV)
