"""Crossing: cpu and sim, and cpu and OpenCL, alternating 100 times, against the better of two programs written by hand.

One of them blocks, the other sleeps until a callback records and wakes. cpu and sim: 4 KB; and sim's own round trip is
compared with two threads that pass a condition variable to and fro. cpu and OpenCL: 4 KB and 16 MB, with copies, and
with shared pages, where no byte may be copied. The programs for OpenCL call it themselves.

Then each ordered pair of the devices that are there, of cpu, two of OpenCL, two of Vulkan and two sims: the route that a
value takes, its latency and its bandwidth, as the self-test of routes measures them; medians of the rounds.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import _common as common


DEVICES = ["cpu", "opencl:0", "opencl:1", "vulkan:0", "vulkan:1", "sim:0", "sim:1"]
PAIR_ROUNDS = 5


def better(samples):
    name = min(("blocking", "callback"), key=lambda n: statistics.median(samples[n]))
    print(f"the better program by hand: {name}")
    return samples[name]


def rounds(program, counts, n):
    samples = {name: [] for name in counts}
    for name, count in counts.items():
        program.ask(name, count)
    for _ in range(n):
        for name, count in counts.items():
            samples[name].append(program.ask(name, count))
    return samples


def sim(report, args, plugins):
    program = common.Server(args.build, "bench_crossing", plugins)
    samples = rounds(program, {"heddle": 3, "blocking": 3, "callback": 3, "trip": 300, "pingpong": 300}, args.rounds)
    program.close()
    report.ratio("crossing_cpu_sim", samples["heddle"], better(samples), 1.1, "ns a crossing pair", 0.01)
    report.ratio("sim_round_trip", samples["trip"], samples["pingpong"], 1.2, "ns")


def opencl(report, args, plugins, size, elements, count):
    program = common.Server(args.build, "bench_crossing_opencl", plugins, str(elements))
    copied = program.ask("copied", 1)
    samples = rounds(program, dict.fromkeys(("heddle", "shared", "blocking", "callback"), count), args.rounds)
    program.close()
    print(f"cpu and opencl, {size}:")
    theirs = better(samples)
    report.ratio(f"crossing_cpu_opencl_{size}", samples["heddle"], theirs, 1.1, "us a crossing pair", 1e-5)
    report.ratio(f"crossing_cpu_opencl_{size}_shared", samples["shared"], theirs, 1.0, "us a crossing pair", 1e-5)
    report.number(f"crossing_cpu_opencl_{size}_shared_bytes", copied, 0, "bytes copied")


def two_vulkan_devices(folder):
    """Two of lavapipe's devices: its manifest, and a copy under another name."""
    places = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":")
    for place in ["/etc", *places]:
        for found in sorted(pathlib.Path(place, "vulkan", "icd.d").glob("lvp_icd*.json")):
            copy = pathlib.Path(folder, "second_lvp.json")
            copy.write_bytes(found.read_bytes())
            return {"VK_DRIVER_FILES": f"{found}:{copy}", "VK_ICD_FILENAMES": f"{found}:{copy}"}
    return {}


def pairs(report, args, plugins, folder):
    names = [d for d in DEVICES
             if os.path.exists(os.path.join(plugins, f"libheddle_plugin_{d.split(':')[0]}.so"))]
    env = {**os.environ, "XDG_RUNTIME_DIR": folder, **two_vulkan_devices(folder)}
    found = {}
    for _ in range(min(PAIR_ROUNDS, args.rounds)):
        done = subprocess.run([os.path.join(args.build, "bench", "bench_routes"), *names], env=env, text=True,
                              capture_output=True, timeout=300)
        if done.returncode != 0:
            sys.exit(done.stderr)
        for line in done.stdout.splitlines():
            source, target, *figures = line.split()
            found.setdefault((source, target), []).append(figures)
    print(f"{'from':10} {'to':10} {'route':12} {'latency us':>10} {'GB/s':>7}")
    for (source, target), rounds in found.items():
        latency = statistics.median(float(r[1]) for r in rounds) / 1000
        slope = statistics.median(float(r[2]) for r in rounds)
        speed = f"{1 / slope:7.1f}" if slope > 0 else "      -"
        print(f"{source:10} {target:10} {rounds[0][0]:12} {latency:10.1f} {speed}")
        report.figures[f"route {source} {target}"] = {"route": rounds[0][0], "latency_us": round(latency, 1),
                                                   "ns_per_byte": round(slope, 4)}


def main():
    args = common.arguments(__doc__)
    plugins = os.path.join(args.build, "lib", "heddle", "plugins")
    report = common.Report()
    sim(report, args, plugins)
    if os.path.exists(os.path.join(plugins, "libheddle_plugin_opencl.so")):
        with tempfile.TemporaryDirectory(prefix="heddle-pocl-") as cache:
            os.environ.setdefault("POCL_DEVICES", "pthread pthread")
            os.environ.setdefault("POCL_CACHE_DIR", cache)
            opencl(report, args, plugins, "4k", 1 << 10, 10)
            opencl(report, args, plugins, "16m", 1 << 22, 1)
            pairs(report, args, plugins, cache)
    else:
        print("cpu and opencl: the plugin opencl is not built")
        with tempfile.TemporaryDirectory(prefix="heddle-routes-") as folder:
            pairs(report, args, plugins, folder)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
