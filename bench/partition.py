"""Proposals: how the time of the pass that hears plugins' regions grows with the nodes, and the edges it follows.

A chain on sim of 2,500 to 10,000 nodes, where the plugin wants each four as one region, and where it wants nothing; the
growths are per node.
"""
import statistics
import sys

import _common as common
from prove import measured


def main():
    args = common.arguments(__doc__)
    plans = measured(args.build, "bench_partition")["plans"]
    report = common.Report()
    small, large = plans[0], plans[-1]
    for what in ("fours", "nothing"):
        a, b = ([t / p["nodes"] for t in p[f"{what}_ns"]] for p in (small, large))
        report.ratio(f"growth_2500_to_10000_{what}", b, a, 1.3, unit="ns a node")
    report.number("visits_a_node", large["visits"] / large["nodes"], 1.0, "edges")
    for plan in plans:
        print(f"{plan['nodes']} nodes: {plan['regions']} regions, {plan['visits']} edges followed, "
              f"{statistics.median(plan['fours_ns']) / 1e6:.2f} ms; no proposals: "
              f"{statistics.median(plan['nothing_ns']) / 1e6:.2f} ms")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
