"""Memory: arenas against the heaviest set of values that cannot share bytes, and against a greedy plan by storage ids.

200 seeded plans of 10 to 200 nodes on 2 to 4 devices with 1 to 3 streams each. worst is over single arenas, median over
plans (all arenas of a plan together); never_above_greedy holds for every single arena.
"""
import json
import os
import statistics
import subprocess
import sys

import _common as common


def main():
    args = common.arguments(__doc__)
    program = os.path.join(args.build, "bench", "bench_memory")
    found = json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    plans, large = found["plans"], found["large"]
    report = common.Report()
    report.number("worst", max(p["worst_arena"] for p in plans), 1.15)
    report.number("median", statistics.median(p["bytes"] / p["lower"] for p in plans), 1.03)
    report.ratios["never_above_greedy"] = report.passed["never_above_greedy"] = not any(
        p["above_greedy"] for p in plans)
    report.figures["never_above_greedy"] = {
        "median_of_greedy": round(statistics.median(p["bytes"] / p["greedy"] for p in plans), 4)}
    times = [p["storage_ns"] / 1e6 for p in plans]
    report.figures["storage_ms"] = {
        "median": round(statistics.median(times), 3), "worst": round(max(times), 3),
        "large": round(statistics.median(large["storage_ns"]) / 1e6, 1),
        "large_plan": {k: large[k] for k in ("steps", "waits", "instances")}}
    print(f"against greedy by storage ids: {report.figures['never_above_greedy']['median_of_greedy']:.3f} (median); "
          f"time {report.figures['storage_ms']}")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
