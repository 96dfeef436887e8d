"""Kernels: families of operators on cpu, each by itself at several shapes, against ONNX Runtime.

CPU time of both on one thread, interleaved in one run, after the results were compared. A float16 network is also held
against the same in float32. --only PATTERN selects cases by a regular expression.
"""
import os
import re
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import _common as common
import _kernels_elements
import _kernels_more
import _kernels_move
import _kernels_odd

LIMIT, NS = 1.3, 3e6  # of a sample
F, H = np.float32, np.float16
RNG = np.random.default_rng(7)


def weights(name, dtype, *shape):
    values = RNG.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
    return numpy_helper.from_array(values.astype(dtype), name)


def constant(name, value, dtype=F):
    return numpy_helper.from_array(np.array(value, dtype), name)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(",") if inputs else [], outputs.split(","), **attrs)


def model(nodes, inputs, outputs, constants=(), opset=17):
    """inputs: arrays by name; outputs: dtypes by name."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "kernels", [value(k, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for k, x in inputs.items()],
        [value(k, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None) for k, t in outputs.items()], list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return made.SerializeToString(), inputs


def normal(*shape, dtype=F):
    return RNG.standard_normal(shape).astype(dtype)


def network(dtype):
    nodes, constants, last, channels = [], [], "x", 3
    for i in range(4):
        nodes += [node("Conv", f"{last},w{i},b{i}", f"c{i}", pads=[1] * 4), node("Relu", f"c{i}", f"r{i}")]
        constants += [weights(f"w{i}", dtype, 64, channels, 3, 3), weights(f"b{i}", dtype, 64)]
        last, channels = f"r{i}", 64
    return model(nodes, {"x": normal(1, 3, 56, 56, dtype=dtype)}, {last: dtype}, constants)


def recurrent(op, gates, steps, batch, inputs, hidden, direction):
    count = 2 if direction == "bidirectional" else 1
    constants = [weights("w", F, count, gates * hidden, inputs), weights("r", F, count, gates * hidden, hidden),
                 weights("b", F, count, 2 * gates * hidden)]
    return model([node(op, "x,w,r,b", "y", hidden_size=hidden, direction=direction)],
                 {"x": normal(steps, batch, inputs)}, {"y": F}, constants)


def stft(length, step):
    constants = [constant("step", step, np.int64), weights("window", F, length), constant("length", length, np.int64)]
    return model([node("STFT", "x,step,window,length", "y")], {"x": normal(1, 16000, 1)}, {"y": F}, constants)


def simple(op, *shape, dtype=F, **attrs):
    return model([node(op, "x", "y", **attrs)], {"x": normal(*shape, dtype=dtype)}, {"y": dtype})


def convolution(op, shape, kernel, **attrs):
    channels = kernel[1] * attrs.get("group", 1) if op == "ConvTranspose" else kernel[0]
    return model([node(op, "x,w,b", "y", **attrs)], {"x": normal(*shape)}, {"y": F},
                 [weights("w", F, *kernel), weights("b", F, channels)])


def quantised(dtype):
    constants = [constant("s", 0.001), constant("z", 100, dtype)]
    nodes = [node("QuantizeLinear", "x,s,z", "q"), node("DequantizeLinear", "q,s,z", "y")]
    return model(nodes, {"x": normal(1, 64, 56, 56)}, {"y": F}, constants, opset=21)


def resize(mode, coordinates):
    attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attrs["nearest_mode"] = "floor"
    return model([node("Resize", "x,,scales", "y", **attrs)], {"x": normal(1, 64, 32, 32)}, {"y": F},
                 [constant("scales", [1, 1, 2, 2])])


def sampled():
    grid = RNG.uniform(-1, 1, (8, 300, 4, 2)).astype(F)
    return model([node("GridSample", "x,g", "y", mode="bilinear")], {"x": normal(8, 32, 40, 40), "g": grid}, {"y": F},
                 opset=16)


def elements(op):
    index = RNG.integers(0, 200, (64, 100, 64))
    if op == "GatherElements":
        return model([node(op, "x,i", "y", axis=1)], {"x": normal(64, 200, 64), "i": index}, {"y": F})
    inputs = {"x": normal(64, 200, 64), "i": index, "u": normal(64, 100, 64)}
    return model([node(op, "x,i,u", "y", axis=1)], inputs, {"y": F})


def power():
    return model([node("Pow", "x,e", "y")], {"x": normal(128, 1024)}, {"y": F}, [constant("e", 2.0)])


def silu(dtype):
    return model([node("Sigmoid", "x", "s"), node("Mul", "x,s", "y")], {"x": normal(1, 96, 56, 56, dtype=dtype)},
                 {"y": dtype})


def cases():
    found = {"convolutions_float32": network(F), "convolutions_float16": network(H)}
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        found[f"{op}_32x1_128"] = recurrent(op, gates, 32, 1, 128, 128, "forward")
        found[f"{op}_50x4_256_both"] = recurrent(op, gates, 50, 4, 64, 256, "bidirectional")
    found |= {"STFT_400": stft(400, 160), "STFT_512": stft(512, 128),
              "DFT_1024": simple("DFT", 8, 1024, 1, axis=1, onesided=1)}
    found["ConvTranspose_3_of_64"] = convolution("ConvTranspose", (1, 64, 64, 64), (64, 3, 4, 4), strides=[2, 2],
                                                 pads=[1] * 4)
    found["ConvTranspose_64_of_128"] = convolution("ConvTranspose", (1, 128, 32, 32), (128, 64, 2, 2), strides=[2, 2])
    found["depthwise_3x3"] = convolution("Conv", (1, 96, 56, 56), (96, 1, 3, 3), pads=[1] * 4, group=96)
    found["depthwise_5x5_by_2"] = convolution("Conv", (1, 72, 56, 56), (72, 1, 5, 5), pads=[2] * 4, strides=[2, 2],
                                              group=72)
    found |= {"quantise_uint16": quantised(np.uint16), "quantise_uint8": quantised(np.uint8), "GridSample": sampled(),
              "Resize_linear": resize("linear", "half_pixel"), "Resize_nearest": resize("nearest", "asymmetric"),
              "Resize_cubic": resize("cubic", "half_pixel"), "GatherElements": elements("GatherElements"),
              "ScatterElements": elements("ScatterElements"), "Pow_by_2": power(), "silu_float32": silu(F),
              "silu_float16": silu(H)}
    for op in ("Tanh", "Sigmoid", "Erf", "Exp"):
        found[op] = simple(op, 128, 1024)
    found |= _kernels_elements.cases(model, node, constant)
    return found | _kernels_move.cases() | _kernels_more.cases() | _kernels_odd.cases()


class Ours:
    def __init__(self, heddle, path, inputs):
        self.call, self.inputs = heddle.load(path), list(inputs.values())

    def run(self):
        found = self.call(*self.inputs)
        return found if isinstance(found, (list, tuple)) else [found]


class Theirs:
    def __init__(self, path, inputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run(self):
        return self.session.run(None, self.inputs)


def compare(name, ours, theirs):
    for mine, other in zip(ours.run(), theirs.run()):
        mine, other = np.asarray(mine).astype(float), other.astype(float)
        far = np.abs(mine - other).max() / max(1.0, np.abs(other).max())
        if far > (0.01 if "float16" in name else 2e-4):
            sys.exit(f"{name}: the results differ by {far:.3g} of the largest")


def timed(peer, runs):
    """Nanoseconds of the process's CPU time for a run: the least of several."""
    least = float("inf")
    for _ in range(runs):
        start = time.process_time_ns()
        peer.run()
        least = min(least, time.process_time_ns() - start)
    return least


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--only", default="", help="cases whose names match this regular expression")
    args = parser.parse_args()
    os.environ["HEDDLE_THREADS"] = "1"
    sys.path.insert(0, os.path.join(args.build, "python"))
    import heddle
    report, samples = common.Report(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (data, inputs) in cases().items():
            if not re.search(args.only, name):
                continue
            path = os.path.join(folder, f"{name}.onnx")
            with open(path, "wb") as file:
                file.write(data)
            ours, theirs = Ours(heddle, path, inputs), Theirs(path, inputs)
            compare(name, ours, theirs)
            runs = common.runs(int(min(50, max(3, NS / timed(ours, 2)))))
            samples[name] = (ours, theirs, runs, [], [])
        for turn in range(args.rounds):
            for ours, theirs, runs, mine, other in samples.values():
                for peer, times in ((ours, mine), (theirs, other))[::1 if turn % 2 == 0 else -1]:
                    times.append(timed(peer, runs))
    for name, (_, _, _, mine, other) in samples.items():
        report.ratio(name, mine, other, LIMIT, "us a run", 1e-3)
    if "convolutions_float16" in samples and "convolutions_float32" in samples:
        report.ratio("float16_to_float32", samples["convolutions_float16"][3], samples["convolutions_float32"][3], 1.1,
                     "us a run", 1e-3)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
