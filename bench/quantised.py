"""Quantised: networks in int8 on cpu, against ONNX Runtime, whose own tool quantised them.

ResNet-50 and the encoder of scripts/bench models, static (QuantizeLinear and DequantizeLinear around every operator,
scales of weights by channel) and the encoder dynamic (MatMulInteger), each on 1 and 2 threads, interleaved in one run,
after the outputs were compared. Also, for a feeling, ONNX Runtime's quantised time against its own in float32.
"""
import logging
import os
import statistics
import sys
import tempfile
import time

import numpy as np

import _common as common
import _models
import _peers

LIMIT, PAUSE = 1.0, 0.01
RUNS = {"resnet50_static": 2, "encoder_static": 2, "encoder_dynamic": 2}


class Samples:
    """What scales of activations are taken from."""

    def __init__(self, shape):
        rng = np.random.default_rng(5)
        self.left = [{"input": rng.standard_normal(shape).astype(np.float32)} for _ in range(2)]

    def get_next(self):
        return self.left.pop() if self.left else None

    def set_range(self, start_index, end_index):
        pass


def make(name, path, folder):
    """Writes the quantised network, and PATH.input beside it."""
    from onnxruntime import quantization as q
    network, how = name.split("_")
    plain = os.path.join(folder, f"{network}.onnx")
    if not os.path.exists(plain):
        _models.make(network, plain)
    with open(f"{plain}.input", "rb") as source, open(f"{path}.input", "wb") as copy:
        copy.write(source.read())
    if os.path.exists(path):
        return
    logging.disable(logging.WARNING)
    q.CalibrationDataReader.register(Samples)
    if how == "dynamic":
        q.quantize_dynamic(plain, path, weight_type=q.QuantType.QInt8)
    else:
        q.quantize_static(plain, path, Samples(_models.NETS[network][1]), quant_format=q.QuantFormat.QDQ,
                          per_channel=True, activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)


def compare(title, path, threads, program, peer, plain):
    """Ends the benchmark where Heddle is further from ONNX Runtime than that is from its own result in float32."""
    program.ask("output", path, threads, 1)
    found, wanted = np.fromfile(f"{path}.output", np.float32), peer.output().ravel()
    largest, limit = np.abs(wanted).max(), np.abs(plain.output().ravel() - wanted).max()
    apart = np.abs(found - wanted).max() if found.shape == wanted.shape else np.inf
    print(f"{title}: {np.count_nonzero(found != wanted)} of {wanted.size} numbers differ from onnxruntime, by "
          f"{apart / largest:.2g} of the largest output; its float32 result by {limit / largest:.2g}")
    if not apart <= limit:
        raise SystemExit(f"{title}: that is too far: nothing is measured")


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--models", default=",".join(RUNS), help="only these, with commas between")
    parser.add_argument("--folder", help="where the models are written and stay; a temporary folder without it")
    args = parser.parse_args()
    names = ["encoder_dynamic"] if args.check else args.models.split(",")
    if set(names) - set(RUNS):
        parser.error(f"there are {', '.join(RUNS)}")
    counts = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
    report = common.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        program, samples, peers, plain = common.Server(args.build, "bench_models"), {}, {}, {}
        for name in names:
            path = os.path.join(folder, f"{name}.onnx")
            make(name, path, folder)
            for threads in counts:
                peers[name, threads] = _peers.Onnxruntime(path, threads)
                plain[name, threads] = _peers.Onnxruntime(os.path.join(folder, f"{name.split('_')[0]}.onnx"), threads)
                samples[name, threads] = {"heddle": [], "onnxruntime": [], "float32": []}
                compare(f"{name} on {threads}", path, threads, program, peers[name, threads], plain[name, threads])
        for turn in range(args.rounds):
            for (name, threads), times in samples.items():
                path = os.path.join(folder, f"{name}.onnx")
                order = list(times)
                for who in order[turn % 3:] + order[:turn % 3]:
                    time.sleep(PAUSE)
                    peer = (peers if who == "onnxruntime" else plain)[name, threads]
                    times[who].append(program.ask("run", path, threads, RUNS[name]) if who == "heddle" else
                                      _peers.timed(peer, RUNS[name]))
        program.close()
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        for (name, threads), times in samples.items():
            report.ratio(f"{name}_on_{threads}", times["heddle"], times["onnxruntime"], LIMIT, "ms a run", 1e-6)
            print("    " + "; ".join(f"{who} {statistics.median(t) / 1e6:.4g} ms" for who, t in times.items()))
    report.close()


if __name__ == "__main__":
    sys.exit(main())
