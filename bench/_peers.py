"""ONNX Runtime and OpenVINO on the CPU, driven from Python as their users do, inputs and outputs in place.

As a program, PEER FILE THREADS: loads that model, runs it once and ends."""
import importlib
import sys
import time

import numpy as np


class Onnxruntime:
    name = "onnxruntime"

    def __init__(self, path, threads, _precision="strict", providers=("CPUExecutionProvider",)):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(path, options, providers=list(providers))
        self.binding = self.session.io_binding()
        into, out = self.session.get_inputs()[0], self.session.get_outputs()[0]
        data = np.fromfile(f"{path}.input", np.float32).reshape(into.shape)
        self.binding.bind_ortvalue_input(into.name, onnxruntime.OrtValue.ortvalue_from_numpy(data))
        self.result = onnxruntime.OrtValue.ortvalue_from_shape_and_type(out.shape, np.float32, "cpu", 0)
        self.binding.bind_ortvalue_output(out.name, self.result)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def output(self):
        self.run()
        return np.array(self.result.numpy())


class Openvino:
    name = "openvino"

    def __init__(self, path, threads, precision="strict"):
        import openvino
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
        if precision == "strict":  # its default is bfloat16 on CPUs that have it
            settings["INFERENCE_PRECISION_HINT"] = "f32"
        compiled = openvino.Core().compile_model(path, "CPU", settings)
        self.precision = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        data = np.fromfile(f"{path}.input", np.float32).reshape(list(compiled.input(0).shape))
        self.request = compiled.create_infer_request()
        self.request.set_input_tensor(openvino.Tensor(data, shared_memory=False))

    def run(self):
        self.request.infer()

    def output(self):
        self.run()
        return np.array(self.request.get_output_tensor(0).data)


PEERS = {peer.name: peer for peer in (Onnxruntime, Openvino)}


def present():
    """The peers that are here; says why of those that are not."""
    here = []
    for name in PEERS:
        try:
            importlib.import_module(name)
            here.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error} (scripts/bench installs it where the package registry has it)")
    return here


def timed(peer, runs):
    """Nanoseconds of a run, the mean over `runs`; a run that is not timed goes before."""
    run = peer.run
    run()
    start = time.perf_counter_ns()
    for _ in range(runs):
        run()
    return (time.perf_counter_ns() - start) / runs


if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3])).run()
