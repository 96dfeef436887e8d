"""Whole ONNX models on cuda, on rocm, and on both of them with cpu, the GPUs being doubles: networks of the kinds that people
run, and light models of the onnx package, against what onnx.reference and the package expect.

labels: slow
timeout: 900
"""
import json

import onnx_files as files
import pytest
from gpu_doubles import ENV, REAL, need, there
from test_onnx_models import LIGHT_MODELS, NETWORKS, check_light, made
from tool_case import good

MIXED = {"Conv": "cuda:0", "Gemm": "rocm:0", "MatMul": "cuda:1", "Relu": "cuda:1", "Clip": "rocm:0"}
PLACES = ["cuda", "rocm", "mixed"]


@pytest.fixture(scope="module", autouse=True)
def gpus():
    need("cuda")
    if not REAL:
        need("rocm")


def words_of(where, proto):
    if where != "mixed":
        return ["--device", f"{where}:0,cpu"]
    words = ["--device", "cpu,cuda:0,rocm:0,cuda:1"]
    for n in proto.graph.node:
        if n.op_type in MIXED and n.output[0]:
            words += ["--place", f"{n.name or n.output[0]}={MIXED[n.op_type]}"]
    return words


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", NETWORKS)
def test_network(tmp_path, name, where):
    if REAL and where != "cuda" and not there("rocm"):
        pytest.skip("there is no device of rocm here")
    path, proto, inputs = made(tmp_path, name, 2)
    words = words_of(where, proto)
    used = {d["name"] for d in json.loads(good("plan", path, *words, "--json", **ENV))["devices"] if d["nodes"]}
    assert (f"{where}:0" in used) if where != "mixed" else len(used) >= 2, used
    got = files.run(path, inputs, *words, env=ENV)
    files.same(got, files.expected(proto, inputs), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", LIGHT_MODELS[:3])
def test_light(tmp_path, name):
    check_light(tmp_path, name, "cuda:0,cpu", **ENV)
