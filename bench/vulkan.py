"""Vulkan: 1,000 small nodes on the first device against one command buffer recorded by hand; two networks against ncnn.

The nodes are Adds of 1,024 floats, one dispatch each, with a barrier between. On lavapipe, which wakes its threads for
each dispatch, they are timed with its threads and once more with none (LP_NUM_THREADS=0), where overheads show.
The networks (digits, MobileNet v1) run on the same device in float32, ncnn also as it is set up by itself; the faster of
ncnn's two counts. All sides are interleaved in one run, after their outputs were compared.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import _common as common
import _models
import _ncnn
import _peers

CHAIN_LIMIT, MODEL_LIMIT = 1.1, 1.0
CHAIN_SAMPLES, CHAIN_RUNS = 7, 2
PAUSE = 0.01  # seconds before a sample, in which the other side's threads go to sleep
TOLERANCE = {"heddle": 1e-4, "ncnn_float32": 1e-4, "ncnn": 3e-2}  # of the largest output of ONNX Runtime
NETS = {"digits": ((1, 1, 8, 8), 50), "mobilenet": ((1, 3, 224, 224), 1)}  # shape of the input, runs in a sample
PARTS = ("chain", *NETS)


def arguments():
    parser = common.parser(__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="only these, with commas between")
    parser.add_argument("--folder", help="where the models are written and stay; a temporary folder without it")
    args = parser.parse_args()
    args.parts = args.parts.split(",")
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return args


def devices(build):
    """Heddle's Vulkan devices by name, each with what the driver calls it."""
    done = subprocess.run([os.path.join(build, "bin", "heddle"), "devices", "--json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return {d["name"]: d["product"] for d in json.loads(done.stdout)["devices"] if d["name"].startswith("vulkan:")}


def chain(report, args, name, threads):
    """Each round is a process of its own, since the addresses that one gets make it faster or slower, and takes the least
    of its samples on both sides: what else runs on the machine's cores can only add to lavapipe's threads."""
    ours, theirs = [], []
    for turn in range(args.rounds):
        server = common.Server(args.build, "bench_vulkan", LP_NUM_THREADS=threads)
        difference = server.ask("compare", 1)
        if not difference <= 1e-5:
            raise SystemExit(f"the results of the chain differ by {difference}: nothing is measured")
        times = {"heddle": [], "hand": []}
        for sample in range(CHAIN_SAMPLES):
            for who in sorted(times, reverse=(turn + sample) % 2 == 0):
                times[who].append(server.ask(who, CHAIN_RUNS))
        server.close()
        ours.append(min(times["heddle"]))
        theirs.append(min(times["hand"]))
    report.ratio(name, ours, theirs, CHAIN_LIMIT, "us a run", 1e-3)


def network(report, args, name, folder):
    shape, runs = NETS[name]
    path = os.path.join(folder, f"{name}.onnx")
    if name == "digits":
        _ncnn.write_digits(path)
    else:
        _models.make(name, path)
    data = np.fromfile(f"{path}.input", np.float32).reshape(shape)
    base = _ncnn.convert(path, shape)
    sides = {who: _ncnn.Ncnn(base, data, off) for who, off in _ncnn.SETTINGS.items()}
    program = common.Server(args.build, "bench_models", "vulkan:0")
    program.ask("output", path, 1, 1)
    outputs = {"heddle": np.fromfile(f"{path}.output", np.float32)}
    outputs.update((who, side.output()) for who, side in sides.items())
    wanted = _peers.Onnxruntime(path, 1).output().ravel()
    for who, found in outputs.items():
        error = np.abs(found - wanted).max() / np.abs(wanted).max() if found.shape == wanted.shape else np.inf
        print(f"{name}: {who} differs from onnxruntime by {error:.2g} of the largest output")
        if not error <= TOLERANCE[who]:
            raise SystemExit(f"{name}: that is more than {TOLERANCE[who]}: nothing is measured")
    samples = {who: [] for who in outputs}
    for turn in range(args.rounds):
        order = list(samples)
        for who in order[turn % len(order):] + order[:turn % len(order)]:
            time.sleep(PAUSE)
            samples[who].append(program.ask("run", path, 1, runs) if who == "heddle" else _peers.timed(sides[who], runs))
    program.close()
    middle = {who: statistics.median(times) for who, times in samples.items()}
    best = min(sides, key=middle.get)
    report.ratio(name, samples["heddle"], samples[best], MODEL_LIMIT, "ms a run", 1e-6)
    print("    " + "; ".join(f"{who} {ns / 1e6:.4g} ms (least {min(samples[who]) / 1e6:.4g})" for who, ns in middle.items()))
    report.figures[name].update(best=best, ms={who: round(ns / 1e6, 4) for who, ns in middle.items()})


def main():
    args = arguments()
    threads = os.environ.setdefault("LP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    found = devices(args.build)
    if "vulkan:0" not in found:
        common.skip("there is no Vulkan device; `heddle devices --all` says why")
    print(f"vulkan:0 is {found['vulkan:0']}; LP_NUM_THREADS={threads}, load of the machine: {os.getloadavg()[0]:.1f}")
    report = common.Report()
    if "chain" in args.parts:
        chain(report, args, "vulkan_add_chain", threads)
        if "llvmpipe" in found["vulkan:0"]:
            chain(report, args, "vulkan_add_chain_no_threads", "0")
    networks = [name for name in NETS if name in args.parts]
    why = _ncnn.missing() if networks else None
    if networks and why is None and _ncnn.device_name() not in found["vulkan:0"]:
        why = f"ncnn runs on {_ncnn.device_name()}, which is not vulkan:0: VK_DRIVER_FILES can name one driver for both"
    if why is not None:
        print(f"{', '.join(networks)} left out: {why}")
        networks = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for name in networks:
            network(report, args, name, folder)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
