"""Crossing: cpu and sim alternating 100 times on 4 KB, against the better of two programs written by hand.

One of them blocks on the stream, the other sleeps until a callback records and wakes; and sim's own round trip is
compared with two threads that pass a condition variable to and fro.
"""
import os
import statistics
import sys

import _common as common


def main():
    args = common.arguments(__doc__)
    program = common.Server(args.build, "bench_crossing", os.path.join(args.build, "lib", "heddle", "plugins"))
    counts = {"heddle": 3, "blocking": 3, "callback": 3, "trip": 300, "pingpong": 300}
    samples = {name: [] for name in counts}
    for name, count in counts.items():
        program.ask(name, count)
    for _ in range(args.rounds):
        for name, count in counts.items():
            samples[name].append(program.ask(name, count))
    program.close()
    report = common.Report()
    better = min(("blocking", "callback"), key=lambda name: statistics.median(samples[name]))
    print(f"the better program by hand: {better}")
    report.ratio("crossing_cpu_sim", samples["heddle"], samples[better], 1.1, "ns a crossing pair", 0.01)
    report.ratio("sim_round_trip", samples["trip"], samples["pingpong"], 1.2, "ns")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
