"""Writes a small net as TVM v0.14 compiled one, for those who have none at hand: net.py FOLDER writes net.so, net.json and
net.params there. Needs a C compiler and numpy; no TVM.

The net takes an image of 1 x 3 x 224 x 224, averages each colour over its four quarters, and gives 1,000 scores.
"""
import json
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from fixtures import tvm_legacy as legacy  # noqa: E402

F32 = "float32"
POOL = """for (int c = 0; c < 3; c++) for (int q = 0; q < 4; q++) {
  float sum = 0;
  for (int i = 0; i < 112; i++) for (int k = 0; k < 112; k++)
    sum += x[(c * 224 + q / 2 * 112 + i) * 224 + q % 2 * 112 + k];
  y[c * 4 + q] = sum / 12544; }"""
DENSE = """for (int o = 0; o < 1000; o++) {
  y[o] = b[o];
  for (int k = 0; k < 12; k++) y[o] += x[k] * w[o * 12 + k]; }"""
KERNELS = [
    legacy.kernel("tvmgen_default_fused_nn_adaptive_avg_pool2d", [("x", F32, (1, 3, 224, 224)), ("y", F32, (1, 12))], POOL),
    legacy.kernel("tvmgen_default_fused_nn_dense_add", [("x", F32, (1, 12)), ("w", F32, (1000, 12)), ("b", F32, (1000,)),
                                                        ("y", F32, (1, 1000))], DENSE)]


def graph():
    def node(name, function, inputs):
        return {"op": "tvm_op", "name": name, "inputs": [[i, 0, 0] for i in inputs],
                "attrs": {"func_name": function, "num_inputs": str(len(inputs)), "num_outputs": "1", "flatten_data": "0"}}

    nodes = [{"op": "null", "name": "data", "inputs": []}, node("pool", "tvmgen_default_fused_nn_adaptive_avg_pool2d", [0]),
             {"op": "null", "name": "p0", "inputs": []}, {"op": "null", "name": "p1", "inputs": []},
             node("dense", "tvmgen_default_fused_nn_dense_add", [1, 2, 3])]
    shapes = [[1, 3, 224, 224], [1, 12], [1000, 12], [1000], [1, 1000]]
    attrs = {"dltype": ["list_str", [F32] * 5], "shape": ["list_shape", shapes],
             "storage_id": ["list_int", [0, 1, 2, 3, 4]], "device_index": ["list_int", [1] * 5]}
    return json.dumps({"nodes": nodes, "arg_nodes": [0, 2, 3], "heads": [[4, 0, 0]], "attrs": attrs,
                       "node_row_ptr": [0, 1, 2, 3, 4, 5]})


def parameters():
    random = np.random.default_rng(7)
    return {"p0": random.standard_normal((1000, 12)).astype(np.float32),
            "p1": random.standard_normal(1000).astype(np.float32) / 10}


def blob(params):
    """A params file: a magic number, names, arrays."""
    return (struct.pack("<QQ", 0xF7E58D4F05049CB7, 0) + legacy.strings(list(params)) + legacy.u64(len(params)) +
            b"".join(legacy.array(a) for a in params.values()))


def scores(image, params):
    """What the net is to give, computed by numpy."""
    pooled = image.reshape(3, 2, 112, 2, 112).astype(np.float64).mean(axis=(2, 4)).reshape(12)
    return params["p0"] @ pooled + params["p1"]


def write(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.json").write_text(graph())
    (folder / "net.params").write_bytes(blob(parameters()))
    return legacy.library(folder / "net.so", "v0.14", KERNELS)


if __name__ == "__main__":
    write(sys.argv[1])
