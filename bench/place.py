"""Placement: how long --place auto takes to plan 200 nodes on three devices, and how its predictions compare with runs.

The first on a random graph with made-up times, so that nothing is measured: the time of `heddle plan --place auto` less
that of `heddle plan`, interleaved, in limits of a second. Then a network of scripts/bench models on cpu and opencl:0 (PoCL
where no other driver is first): what automatic placement predicts for its choice and for each device alone, against the
median of runs placed so; a ratio each, measured by predicted.
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

NODES, LIMIT_SECONDS, LIMIT_RATIO = 200, 1.0, 2.0
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = common.parser(__doc__)
    parser.add_argument("--models", default="mlp", help="networks of scripts/bench models, with commas between; or none")
    parser.add_argument("--folder", help="where the models and what was measured are written and stay")
    parser.add_argument("--devices", default="cpu,opencl:0")
    return parser.parse_args()


def tool(args, *words):
    done = subprocess.run([os.path.join(args.build, "bin", "heddle"), *map(str, words)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def checksum(data):
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return total


def made_up(cache, rng):
    """Other times for all that is known there."""
    for name in os.listdir(cache):
        path = os.path.join(cache, name)
        with open(path, encoding="ascii") as file:
            head, *lines, _ = file.read().splitlines()
        lines = [f"{x.split(' ')[0]} {int(np.exp(rng.uniform(16, 19)))} 0 {x.split(' ', 3)[3]}" for x in lines]
        body = "\n".join([head, *lines]) + "\n"
        with open(path, "w", encoding="ascii") as file:
            file.write(body + f"end {checksum(body.encode()):016x}\n")


def random_graph(path, rng):
    """Nodes of sixteen kinds with one or two operands among the last twenty values."""
    rows, outputs = [{"op": "null", "name": "x", "inputs": []}], set()
    for i in range(NODES):
        late = list(range(max(0, len(rows) - 20), len(rows)))
        two = i > 1 and rng.random() < 0.4
        picked = rng.choice(late, 2 if two else 1, replace=False)
        rows.append({"op": "Gemm" if two else "LeakyRelu", "name": f"n{i}", "inputs": [[int(k), 0, 0] for k in picked],
                     "attrs": {"alpha": round(0.01 * (i % 8 + 1), 2)}})
        outputs = (outputs | {len(rows) - 1}) - {int(k) for k in picked}
    empty = [None] * NODES
    with open(path, "w", encoding="ascii") as file:
        json.dump({"heddle": {"version": 1, "opset": 17}, "nodes": rows, "arg_nodes": [0],
                   "heads": [[k, 0, 0] for k in sorted(outputs)], "node_row_ptr": list(range(NODES + 2)),
                   "attrs": {"dltype": ["list_str", ["float32", *empty]],
                             "shape": ["list_shape", [[16, 16], *empty]]}}, file)


def planning(args, folder, report):
    rng = np.random.default_rng(1)
    path, cache = os.path.join(folder, "random.json"), os.path.join(folder, "made-up")
    random_graph(path, rng)
    words = ("plan", path, "--json", "--device", "sim:0,sim:1,cpu", "--set", f"place.cache_dir={cache}", "--set",
             "place.overlap=1", "--set", "cpu.onednn=off", "--set", "cpu.fuse=0")
    auto = ("--place", "auto", "--set", "place.sure=0")
    tool(args, *words, *auto, "--set", "place.seconds=60")
    made_up(cache, rng)
    took = {"auto": [], "plain": []}
    for _ in range(args.rounds):
        for name, more in (("auto", (*auto, "--set", "place.measure=0")), ("plain", ())):
            begin = time.perf_counter()
            out = tool(args, *words, *more)
            took[name].append(time.perf_counter() - begin)
            if name == "auto":
                told = json.loads(out)["placement"]
    seconds = statistics.median(a - b for a, b in zip(took["auto"], took["plain"]))
    print(f"{NODES} nodes on 3 devices: predicted {told['predicted_ns'] / 1e6:.3f} ms, best single device "
          f"{min(told['single_ns']) / 1e6:.3f} ms")
    report.number("planning_200x3", seconds, LIMIT_SECONDS, "s")


def predictions(args, folder, name, report):
    path = os.path.join(folder, f"{name}.onnx")
    if not os.path.exists(path):
        _models.make(name, path)
    cache = os.path.join(folder, "times")
    place = ("--place", "auto", "--device", args.devices, "--set", f"place.cache_dir={cache}")
    for _ in range(8):
        told = json.loads(tool(args, "plan", path, "--json", *place, "--set", "place.seconds=30"))
        if told["placement"]["estimated"] == 0:
            break
    devices = args.devices.split(",")
    cases = {"chosen": (place, told["placement"]["predicted_ns"])}
    for i, device in enumerate(devices):
        order = ",".join([device] + [d for d in devices if d != device])
        cases[device] = (("--device", order), told["placement"]["single_ns"][i])
    results = {case: [] for case in cases}
    for _ in range(max(3, args.rounds // 7)):
        for case, (words, _) in cases.items():
            out = json.loads(tool(args, "bench", path, "--json", "--repeat", 3, "--number", 5, *words))
            results[case].append(out["median"] * 1e9)
    counts = {d["name"]: d["nodes"] for d in told["devices"]}
    print(f"{name}: nodes by device: {counts}")
    for case, (_, predicted) in cases.items():
        report.ratio(f"{name}_{case}", results[case], [predicted], LIMIT_RATIO, unit="ms", scale=1e-6)
    best = min(statistics.median(results[d]) for d in devices)
    report.number(f"{name}_against_best_single", statistics.median(results["chosen"]) / best, 1.1)


def main():
    args = arguments()
    report = common.Report()
    with tempfile.TemporaryDirectory() as made:
        folder = args.folder or made
        os.makedirs(folder, exist_ok=True)
        planning(args, folder, report)
        for name in args.models.split(","):
            if name != "none":
                predictions(args, folder, name, report)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
