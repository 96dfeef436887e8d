"""Shapes: encoders whose sequence length changes in every run; what a new length costs, against ONNX Runtime's.

Two encoders with an open batch and length, 6 layers with lengths in 1..512 and 2 layers with lengths in 1..128, in random
order, the same for all sides, each length visited three times: new, again at once, and once more after all others. Heddle from C with optimisations on, one
thread; ONNX Runtime in the same run, from Python, interleaved. A first run on each side is left out. Then the cost of a
new length, which is the difference of the first two visits, and the most memory against a process that has only seen the
longest. --devices names others than cpu: their repeated runs are compared, not ONNX Runtime's.
"""
import os
import random
import statistics
import sys
import tempfile
import time

import numpy as np

import _common as common
import _models

NETS = {"encoder6": (6, 384, 12, 512), "encoder2": (2, 128, 2, 128)}  # layers, width, heads, the longest
ERROR = 1e-4  # of the largest output


class Peer:
    """ONNX Runtime on one thread, as its users run lengths that they do not know before."""

    def __init__(self, path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, data):
        start = time.perf_counter_ns()
        self.output = self.session.run(None, {"input": data})[0]
        return time.perf_counter_ns() - start


def serve(args, path, width):
    words = (path, width, args.devices, 1) + ((args.programs,) if args.programs else ())
    return common.Server(args.build, "bench_shapes", *map(str, words))


def compare(path, length, program, peer, data):
    """Ends the benchmark where an output is not ONNX Runtime's."""
    program.ask("output", length, 1)
    peer.run(data)
    ours = np.fromfile(f"{path}.output", np.float32).reshape(peer.output.shape)
    error = np.abs(ours - peer.output).max() / np.abs(peer.output).max()
    if not error <= ERROR:
        raise SystemExit(f"length {length} differs from onnxruntime by {error:.2g} of the largest output")


def measure(report, args, name, path):
    layers, width, heads, longest = NETS[name]
    _models.open_encoder(path, layers, width, heads)
    data = np.random.default_rng(42).standard_normal((1, longest, width)).astype(np.float32)
    data.tofile(f"{path}.input")
    lengths = random.Random(7).sample(range(1, longest + 1), min(longest, 3 if args.check else args.lengths))
    program, alone = serve(args, path, width), serve(args, path, width)
    peer = Peer(path)
    compare(path, longest // 2 + 1, program, peer, data[:, :longest // 2 + 1])
    found = {who: [] for who in ("new", "again", "seen", "peer_new", "peer_again")}
    for turn, length in enumerate(lengths):
        part = np.ascontiguousarray(data[:, :length])

        def ours(length=length):
            found["new"].append(program.ask("run", length, 1))
            found["again"].append(program.ask("run", length, 1))

        def theirs(part=part):
            found["peer_new"].append(peer.run(part))
            found["peer_again"].append(peer.run(part))

        for side in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            side()
    for length in random.Random(8).sample(lengths, len(lengths)):
        peer.run(np.ascontiguousarray(data[:, :length]))  # what the caches hold is what they hold at a new length
        found["seen"].append(program.ask("run", length, 1))
    for _ in range(2):
        alone.ask("run", longest, 1)
    held, least = program.ask("bytes", 0, 1), alone.ask("bytes", 0, 1)
    compare(path, longest, program, peer, data)
    program.close()
    alone.close()
    middle = statistics.median
    extra = [a - b for a, b in zip(found["new"], found["again"])]
    print(f"{name} on {args.devices}: {len(lengths)} lengths in 1..{longest}: a new one {middle(found['new']) / 1e6:.4g} "
          f"ms, again {middle(found['again']) / 1e6:.4g} ms, so it costs {middle(extra) / 1e6:.4g} ms; onnxruntime "
          f"{middle(found['peer_new']) / 1e6:.4g} and {middle(found['peer_again']) / 1e6:.4g} ms")
    report.ratio(f"{name}_new_to_again", found["new"], found["again"], 1.05, "ms", 1e-6)
    report.ratio(f"{name}_new_to_seen", found["new"], found["seen"], 1.05, "ms", 1e-6)
    if args.devices == "cpu":
        report.ratio(f"{name}_new_to_onnxruntime", found["new"], found["peer_new"], 0.9, "ms", 1e-6)
        report.ratio(f"{name}_again_to_onnxruntime", found["again"], found["peer_again"], 0.9, "ms", 1e-6)
    report.number(f"{name}_memory", held / least, 1.1, f"of {least / 1e6:.4g} MB for the longest alone")
    report.figures[f"{name}_new_costs"] = {"ours": round(middle(extra) / 1e6, 4), "unit": "ms"}


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--devices", default="cpu", help="what Heddle runs on")
    parser.add_argument("--lengths", type=int, default=200, help="how many lengths")
    parser.add_argument("--programs", type=int, default=0, help="programs that the model keeps")
    parser.add_argument("--nets", default=",".join(NETS), help="only these, with commas between")
    args = parser.parse_args()
    nets = ["encoder2"] if args.check else args.nets.split(",")
    unknown = [name for name in nets if name not in NETS]
    if unknown:
        parser.error(f"there is no network {', '.join(unknown)}; there are {', '.join(NETS)}")
    try:
        import onnxruntime  # pylint: disable=unused-import
    except ImportError as error:
        common.skip(f"the outputs are compared with ONNX Runtime's: {error}")
    report = common.Report()
    with tempfile.TemporaryDirectory() as folder:
        for name in nets:
            measure(report, args, name, os.path.join(folder, f"{name}.onnx"))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    report.close(devices=args.devices)


if __name__ == "__main__":
    sys.exit(main())
