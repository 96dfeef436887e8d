"""Python: a call of a one-node model, against the same from C and against ONNX Runtime's run_with_iobinding.

One Add on 1 element, on 1,000 and on 1 MB; one thread each. Heddle's call takes numpy arrays and gives a fresh one; ONNX
Runtime's has inputs and output bound before. Only the trivial model has limits; a large tensor's time is the memory's.
"""
import os
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import _common as common

SIZES = {"one": (1, 20000), "thousand": (1000, 20000), "megabyte": (1 << 18, 300)}


def save(path, size):
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"], name="sum")], "bench", info[:2], info[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())


def time_calls(call, args, runs):
    start = time.perf_counter_ns()
    for _ in range(runs):
        call(*args)
    return (time.perf_counter_ns() - start) / runs


class Peer:
    def __init__(self, path, size):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name in ("x", "y"):
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(size, np.float32)))
        self.binding.bind_ortvalue_output("z", onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(size, np.float32)))

    def time(self, runs):
        return time_calls(self.session.run_with_iobinding, (self.binding,), runs)


def main():
    args = common.arguments(__doc__)
    sys.path.insert(0, os.path.join(os.path.abspath(args.build), "python"))
    import heddle

    report = common.Report()
    with tempfile.TemporaryDirectory() as folder:
        server = common.Server(args.build, "bench_python", folder)
        context = heddle.Context({"threads": "1"})
        models, peers, values = {}, {}, {}
        samples = {name: ([], [], []) for name in SIZES}
        for name, (size, most) in SIZES.items():
            runs, path = common.runs(most), os.path.join(folder, f"{name}.onnx")
            save(path, size)
            models[name] = heddle.load(path, devices="cpu", context=context)
            peers[name] = Peer(path, size)
            values[name] = (np.ones(size, np.float32), np.ones(size, np.float32))
            for warm_up in (lambda: server.ask(name, max(1, runs // 10)), lambda: peers[name].time(max(1, runs // 10)),
                            lambda: time_calls(models[name], values[name], max(1, runs // 10))):
                warm_up()
        for _ in range(args.rounds):
            for name, (size, most) in SIZES.items():
                runs, (ours, c, theirs) = common.runs(most), samples[name]
                ours.append(time_calls(models[name], values[name], runs))
                c.append(server.ask(name, runs))
                theirs.append(peers[name].time(runs))
        server.close()
    for name in SIZES:
        ours, c, theirs = samples[name]
        report.judged = name == "one"
        report.difference(f"{name}_above_c", ours, c, 1500)
        report.ratio(f"{name}_to_iobinding", ours, theirs, 1, "ns a call")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
