"""Batch: 64 clients that send single items to a batcher, against runs of a fixed batch of 64; latencies under a light load.

A perceptron and a two-layer encoder with an open batch, from C, one thread of the device's; the clients have the other
cores. An item's time through the batcher is at most 1 / 0.9 of that in a fixed batch, which is bound and copies nothing. With
pauses between requests, so that the load is about a third, 99 of 100 requests take at most the batcher's delay, which is 1.5
runs, and one run of 64. What an item takes that is run alone is shown beside it.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import _common as common
import _models

CLIENTS = 64


def perceptron(path, widths=(256, 1024, 1024, 64)):
    rng, nodes, weights, last = np.random.default_rng(5), [], [], "input"
    for i, (n, m) in enumerate(zip(widths, widths[1:])):
        weights += [numpy_helper.from_array((rng.standard_normal((n, m)) / n**0.5).astype(np.float32), f"w{i}"),
                    numpy_helper.from_array(np.zeros(m, np.float32), f"b{i}")]
        nodes += [helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"h{i}"]), helper.make_node("Relu", [f"h{i}"], [f"r{i}"])]
        last = f"r{i}"
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])
            for name, width in (("input", widths[0]), (last, widths[-1]))]
    graph = helper.make_graph(nodes, "perceptron", info[:1], info[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def encoder(path):
    _models.open_encoder(path, 2, 128, 2)


NETS = {"perceptron": (perceptron, (256,), 6, 20), "encoder2": (encoder, (16, 128), 2, 10)}  # dimensions of an item; rounds


def measure(report, args, name, path):
    make, dims, runs, requests = NETS[name]
    make(path)
    server = common.Server(args.build, "bench_batch", path, args.devices, str(args.threads), str(CLIENTS), *map(str, dims))
    found = {what: [] for what in ("batcher", "fixed", "single", "p99", "limit")}
    for _ in range(args.rounds):
        for what, samples in found.items():
            samples.append(server.ask(what, {"single": 4 * runs, "p99": requests, "limit": 1}.get(what, runs)))
    server.close()
    report.ratio(f"{name}_item", found["batcher"], found["fixed"], 1 / 0.9, "us an item", 1e-3)
    report.ratio(f"{name}_p99", found["p99"], found["limit"], 1, "ms", 1e-6)
    report.ratio(f"{name}_item_alone", found["batcher"], found["single"], 1, "us an item", 1e-3)


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--devices", default="cpu", help="what Heddle runs on")
    parser.add_argument("--threads", type=int, default=1, help="of the thread pool")
    args = parser.parse_args()
    report = common.Report()
    with tempfile.TemporaryDirectory() as folder:
        for name in ["perceptron"] if args.check else NETS:
            measure(report, args, name, os.path.join(folder, f"{name}.onnx"))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    report.close(devices=args.devices)


if __name__ == "__main__":
    sys.exit(main())
