"""Models: five ONNX networks in float32 on cpu, against the faster of ONNX Runtime and OpenVINO; start and memory too.

Each network on 1 and 2 threads, all sides interleaved in one run, after their outputs were compared with those of ONNX
Runtime; Heddle from C with optimisations on, the peers from Python. Then fresh processes, from their start to the first
result: cold (the model's file is not in memory, caches are empty) and warm, with the cost of an empty Python process
taken off the peers, and the most memory that they held.

With --precision fast the runs alone, Heddle's fast against OpenVINO in its default precision.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import _common as common
import _models
import _peers

LIMIT, WANTED = 1.0, 1 / 1.15
TOLERANCE = {"strict": 1e-5, "fast": 2e-2}  # of the largest output of ONNX Runtime in float32
PAUSE = 0.01  # seconds before a sample, in which the other sides' threads stop spinning
STARTS = 5
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = common.parser(__doc__)
    parser.add_argument("--models", default=",".join(_models.NETS), help="only these, with commas between")
    parser.add_argument("--folder", help="where the models are written and stay; a temporary folder without it")
    parser.add_argument("--precision", choices=list(TOLERANCE), default="strict")
    args = parser.parse_args()
    args.models = ["mlp"] if args.check else args.models.split(",")
    unknown = [name for name in args.models if name not in _models.NETS]
    if unknown:
        parser.error(f"there is no network {', '.join(unknown)}; there are {', '.join(_models.NETS)}")
    return args


def compare(title, path, threads, program, sides, precision):
    """Ends the benchmark where an output is not ONNX Runtime's."""
    program.ask("output", path, threads, 1)
    outputs = {"heddle": np.fromfile(f"{path}.output", np.float32)}
    outputs.update((name, peer.output().ravel()) for name, peer in sides.items())
    wanted = outputs["onnxruntime"] if "onnxruntime" in sides else _peers.Onnxruntime(path, threads).output().ravel()
    for name, found in outputs.items():
        error = np.abs(found - wanted).max() / np.abs(wanted).max() if found.shape == wanted.shape else np.inf
        top = "the same" if found.argmax() == wanted.argmax() else "ANOTHER"
        in_precision = f" in {sides[name].precision}" if name == "openvino" else ""
        print(f"{title}: {name}{in_precision} differs from onnxruntime by {error:.2g} of the largest output; {top} top-1")
        if not error <= TOLERANCE[precision]:
            raise SystemExit(f"{title}: that is more than {TOLERANCE[precision]}: nothing is measured")


def measure(args, paths, peers, counts, program):
    """Nanoseconds of a run by (network, threads) and side; and the float32 peaks by threads."""
    cases = [(name, threads) for name in args.models for threads in counts]
    sides = {}
    for name, threads in cases:
        sides[name, threads] = {peer: _peers.PEERS[peer](paths[name], threads, args.precision) for peer in peers}
        compare(f"{name} on {threads}", paths[name], threads, program, sides[name, threads], args.precision)
    samples = {case: {who: [] for who in ("heddle", *peers)} for case in cases}
    peaks = {threads: [] for threads in counts}
    for turn in range(args.rounds):
        for threads in counts:
            peaks[threads].append(program.ask("peak", "-", threads, 1))
        for (name, threads), times in samples.items():
            runs = _models.NETS[name][2]
            order = list(times)
            for who in order[turn % len(order):] + order[:turn % len(order)]:
                time.sleep(PAUSE)
                times[who].append(program.ask("run", paths[name], threads, runs) if who == "heddle" else
                                  _peers.timed(sides[name, threads][who], runs))
    return samples, {threads: max(found) for threads, found in peaks.items()}


def report_runs(report, samples, peaks, operations):
    middle = statistics.median
    worst = {}
    for (name, threads), times in samples.items():
        best = min((who for who in times if who != "heddle"), key=lambda who: middle(times[who]))
        title = f"{name}_on_{threads}"
        report.ratio(title, times["heddle"], times[best], LIMIT, "ms a run", 1e-6)
        rates = {who: operations[name] / middle(found) * 1e9 for who, found in times.items()}
        shares = {who: rate / peaks[threads] if peaks[threads] else 0 for who, rate in rates.items()}
        print("    " + "; ".join(f"{who} {middle(times[who]) / 1e6:.4g} ms (least {min(times[who]) / 1e6:.4g}), "
                                 f"{rates[who] / 1e9:.3g} GFLOP/s, {100 * shares[who]:.0f} % of peak" for who in times))
        report.figures[title].update(best_peer=best, share_of_peak={w: round(s, 3) for w, s in shares.items()},
                                     ms={who: round(middle(found) / 1e6, 4) for who, found in times.items()})
        worst[name] = max(worst.get(name, 0), report.ratios[title])
    if len(worst) > 1 and any("onnxruntime" in times for times in samples.values()):
        report.number("second_fastest_network", sorted(worst.values())[1], WANTED,
                      "of the best peer's time, the worse of 1 and 2 threads")


def forget(path):
    """Takes a file out of the system's page cache, as far as the system does it."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def process(words, cache):
    """Nanoseconds from a process's start to its end, and the most memory that it held, in bytes."""
    done = subprocess.run([sys.executable, "-S", os.path.join(HERE, "_start.py"), *words], stdout=subprocess.PIPE,
                          text=True, env=dict(os.environ, XDG_CACHE_HOME=cache), check=False)
    if done.returncode != 0:
        raise SystemExit(f"'{' '.join(words)}' failed")
    return map(int, done.stdout.split())


def starts(report, args, paths, peers):
    words = {"heddle": [os.path.join(args.build, "bench", "bench_models")]}
    words.update((peer, [sys.executable, os.path.join(HERE, "_peers.py"), peer]) for peer in peers)
    middle = statistics.median
    for name in args.models:
        found = {who: {"cold": [], "warm": [], "memory": []} for who in words}
        for _ in range(min(STARTS, args.rounds)):
            with tempfile.TemporaryDirectory() as cache:
                empty, memory = process([sys.executable, "-c", ""], cache)
                for who, start in words.items():
                    forget(paths[name])
                    for how in ("cold", "warm"):
                        spent, held = process([*start, paths[name], "1"], cache)
                        found[who][how].append(spent if who == "heddle" else max(spent - empty, 1))
                    found[who]["memory"].append(held if who == "heddle" else max(held - memory, 1))
        for what, choose, unit in (("cold", max, "ms"), ("warm", min, "ms"), ("memory", min, "MB")):
            peer = choose(peers, key=lambda p, w=what: middle(found[p][w]))
            report.ratio(f"{name}_{what}", found["heddle"][what], found[peer][what], LIMIT, unit, 1e-6)
            report.figures[f"{name}_{what}"]["peer"] = peer


def main():
    args = arguments()
    peers = _peers.present()
    if "onnxruntime" not in peers:
        common.skip("the outputs are compared with ONNX Runtime's, which is not here")
    if args.precision == "fast":
        peers = [peer for peer in peers if peer == "openvino"]
        os.environ["HEDDLE_PRECISION"] = "fast"  # for the program, which is started below
        if not peers:
            common.skip("precision fast is compared with OpenVINO's default, which is not here")
    counts = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
    report = common.Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        paths = {name: os.path.join(folder, f"{name}.onnx") for name in args.models}
        operations = {name: _models.make(name, paths[name]) for name in args.models}
        program = common.Server(args.build, "bench_models")
        samples, peaks = measure(args, paths, peers, counts, program)
        program.close()
        print("float32 peak: " + ", ".join(f"{peaks[n] / 1e9:.4g} GFLOP/s on {n}" for n in counts) +
              f"; load of the machine: {os.getloadavg()[0]:.1f}")
        report_runs(report, samples, peaks, operations)
        if args.precision == "strict":
            starts(report, args, paths, peers)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
