"""Files that a TVM user has, for the scripts in tvm_scripts/ and the tests: libraries as TVM v0.14 compiled them (kernels
written here as C), graphs, parameters, inputs, and what numpy says the outputs are. No TVM is needed.
"""
import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]
os.environ.setdefault("HEDDLE_BUILD", str(ROOT / "build" / "dev"))

from fixtures import tvm_legacy as legacy  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

F32 = "float32"
SIZES = (784, 16, 12, 10)
PRE = "tvmgen_default_fused_nn_"

DENSE = """for (int o = 0; o < {out}; o++) {{
  float sum = b[o];
  for (int k = 0; k < {inner}; k++) sum += x[k] * w[o * {inner} + k];
  y[o] = {last};
}}
{tail}"""
SOFTMAX = """float top = y[0], total = 0;
for (int o = 1; o < 10; o++) top = y[o] > top ? y[o] : top;
for (int o = 0; o < 10; o++) total += y[o] = expf(y[o] - top);
for (int o = 0; o < 10; o++) y[o] /= total;"""

ADDONE = legacy.kernel("addone", [("A", F32, (8,)), ("B", F32, (8,))], "for (int i = 0; i < 8; i++) B[i] = A[i] + 1;")
ANSWER = "FUNCTION(extra_answer) { out_ret->v_int64 = 43; *out_code = 0; return 0; }"
APPLY = """FUNCTION(apply_twice) {
  void *f;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "heddle.tests.step", &f) != 0) return -1;
  TVMValue v[2]; int c[2] = {0, 4};
  v[0] = ((TVMValue *)args_)[0];
  for (int i = 0; i < 2; i++) {
    if (TVMFuncCall(f, v, c, 1, &v[1], &c[1]) != 0) return -1;
    v[0] = v[1];
  }
  *out_ret = v[0]; *out_code = 0;
  return 0;
}"""


def weights():
    rng = np.random.default_rng(11)
    found = {}
    for i, (inner, out) in enumerate(zip(SIZES, SIZES[1:])):
        found[f"w{i}"] = rng.normal(size=(out, inner)).astype(F32) * np.float32(inner ** -0.5)
        found[f"b{i}"] = rng.normal(size=out).astype(F32)
    return found


def expected(x, params):
    for i in range(3):
        x = x @ params[f"w{i}"].T + params[f"b{i}"]
        x = np.maximum(x, 0) if i < 2 else np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    return x


def mlp_kernels():
    kernels = []
    for i, (inner, out) in enumerate(zip(SIZES, SIZES[1:])):
        name = PRE + ("softmax" if i == 2 else f"dense_add_relu{i}")
        body = DENSE.format(inner=inner, out=out, last="sum" if i == 2 else "sum > 0 ? sum : 0",
                            tail=SOFTMAX if i == 2 else "")
        kernels.append(legacy.kernel(name, [("x", F32, (1, inner)), ("w", F32, (out, inner)), ("b", F32, (out,)),
                                            ("y", F32, (1, out))], body))
    return kernels


def mlp_graph():
    """Seven inputs: data, w0, b0, ..., of which six are parameters, and one output."""
    inputs = {"data": (F32, [1, SIZES[0]]), **{k: (F32, list(v.shape)) for k, v in weights().items()}}
    calls, last = [], "data"
    for i, out in enumerate(SIZES[1:]):
        name = PRE + ("softmax" if i == 2 else f"dense_add_relu{i}")
        calls.append(Call(name, [last, f"w{i}", f"b{i}"], [(F32, [1, out])]))
        last = name
    return tvm_graph(inputs, calls, [last])


def write_files(folder):
    """deploy.so, deploy.json, deploy.params: in three parts; model.so: in one; two.so: two models and a function beside;
    library.so: functions only, with an entry; data.npy and expected.npy."""
    folder = pathlib.Path(folder)
    params, graph = weights(), mlp_graph()
    x = np.random.default_rng(3).normal(size=(1, SIZES[0])).astype(F32)
    np.save(folder / "data.npy", x)
    np.save(folder / "expected.npy", expected(x, params))
    (folder / "deploy.json").write_text(graph)
    (folder / "deploy.params").write_bytes(legacy.params_blob(params))
    legacy.library(folder / "deploy.so", "v0.14", mlp_kernels())
    legacy.library(folder / "model.so", "v0.14", mlp_kernels(),
                   data=legacy.blob([legacy.factory(graph, params), legacy.LIB], [[1], []]))
    graphs = [tvm_graph({"x": (F32, [4])}, [Call(f, ["x"], [(F32, [4])])], [f]) for f in ("twice", "thrice")]
    kernels = [legacy.kernel(f, [("x", F32, (4,)), ("y", F32, (4,))], f"for (int i = 0; i < 4; i++) y[i] = x[i] * {n};")
               for f, n in (("twice", 2), ("thrice", 3))]
    legacy.library(folder / "two.so", "v0.14", [*kernels, ANSWER], data=legacy.blob(
        [legacy.factory(graphs[0], {}, "model_a"), legacy.factory(graphs[1], {}, "model_b"), legacy.LIB],
        [[1, 2], [2], []]))
    code = legacy.device_module("opencl", "cl", {"scale_kernel": ([(3, 64)], ["blockIdx.x"])},
                                "// Function: scale_kernel\n__kernel void scale_kernel(__global float *x) {}\n")
    legacy.library(folder / "kernels.so", "v0.14", [ADDONE], data=legacy.blob([legacy.LIB, code], [[1], []]))
    legacy.compile_c(folder / "lib0.o", f'#define ERA 14\n#include "era.h"\n{ADDONE}', ["-c"])
    legacy.library(folder / "library.so", "v0.14", [ADDONE, ANSWER, APPLY], main="addone")
    return folder


def write_heterogeneous(folder, name="hetero_cpu_opencl"):
    """hetero.so, .json, .params, hetero_input_*.npy, hetero_output.npy: what TVM v0.14 wrote for OpenCL and cpu."""
    from fixtures.tvm_legacy.operators import blob, opencl_module
    from test_tvm_legacy import model_files
    from test_tvm_opencl import MODELS
    folder = pathlib.Path(folder)
    host, kernels, others = MODELS[name]
    legacy.library(folder / "hetero.so", "v0.14", [host, *others], data=blob("v0.14", [opencl_module("v0.14", kernels)]))
    graph, params, inputs, outputs = model_files(name)
    (folder / "hetero.json").write_text(graph)
    (folder / "hetero.params").write_bytes(params)
    for key, value in inputs.items():
        np.save(folder / f"hetero_input_{key}.npy", value)
    np.save(folder / "hetero_output.npy", outputs[0])
    return folder
