"""Dispatch: time a node of 1,000 Adds and of Add/Softmax, and a call of a one-node model, against ONNX Runtime.

One thread each, no fusion; ONNX Runtime through IOBinding from Python, as its users drive it; Heddle from C.
"""
import sys
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import _common as common

NODES = 1000


def onnx_model(nodes, shape, softmax):
    made, last = [], "y"
    for i in range(nodes):
        out = f"n{i}"
        made.append(helper.make_node("Softmax", [last], [out]) if softmax and i % 2 else helper.make_node(
            "Add", [last, "x"], [out]))
        last = out
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y", last)]
    graph = helper.make_graph(made, "bench", info[:2], info[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


class Peer:
    def __init__(self, nodes, shape, softmax):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(onnx_model(nodes, shape, softmax), options,
                                                    providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name in ("x", "y"):
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(
                np.full(shape, 1e-3, np.float32)))
        out = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))
        self.binding.bind_ortvalue_output(f"n{nodes - 1}", out)
        self.time(20)

    def time(self, runs):
        run, binding = self.session.run_with_iobinding, self.binding
        start = time.perf_counter_ns()
        for _ in range(runs):
            run(binding)
        return (time.perf_counter_ns() - start) / runs


def main():
    args = common.arguments(__doc__)
    ours = common.Server(args.build, "bench_dispatch")
    peers = {"chain": Peer(NODES, [1], False), "softmax": Peer(NODES, [1, 16], True), "one": Peer(1, [1], False)}
    runs = {"chain": (200, 20), "softmax": (100, 20), "one": (20000, 2000)}
    samples = {name: ([], []) for name in peers}
    for name in peers:
        ours.ask(name, runs[name][0])
    for _ in range(args.rounds):
        for name, peer in peers.items():
            samples[name][0].append(ours.ask(name, runs[name][0]))
            samples[name][1].append(peer.time(runs[name][1]))
    ours.close()
    report = common.Report()
    report.ratio("add_chain_node", *samples["chain"], 1 / 20, "ns a node", 1 / NODES)
    report.ratio("add_softmax_node", *samples["softmax"], 1 / 3, "ns a node", 1 / NODES)
    report.ratio("one_node_call", *samples["one"], 0.2, "ns a call")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
