"""Crossing: cpu and sim, and cpu and OpenCL, alternating 100 times, against the better of two programs written by hand.

One of them blocks, the other sleeps until a callback records and wakes. cpu and sim: 4 KB; and sim's own round trip is
compared with two threads that pass a condition variable to and fro. cpu and OpenCL: 4 KB and 16 MB, with copies, and
with shared pages, where no byte may be copied. The programs for OpenCL call it themselves.
"""
import os
import statistics
import sys
import tempfile

import _common as common


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
    else:
        print("cpu and opencl: the plugin opencl is not built")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
