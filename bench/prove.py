"""Proof: how the time of prove grows with the steps of a plan, and its share of what all other passes take.

growth_2500_to_10000 and share_of_other_passes are of plans that the passes make of seeded graphs on cpu and three sims,
4 streams each; growth_by_hand is of plans with arenas that are reused, 16 device streams and exactly 2,000 waits.
"""
import json
import os
import statistics
import subprocess
import sys

import _common as common


def measured(build, name):
    plugins = os.path.join(os.path.abspath(build), "lib", "heddle", "plugins")
    environment = dict(os.environ, HEDDLE_PLUGIN_PATH=plugins)
    program = os.path.join(build, "bench", name)
    return json.loads(subprocess.run([program], check=True, capture_output=True, text=True, env=environment).stdout)


def growth(report, name, small, large, times):
    """Per step, so that plans of nearly 2,500 and nearly 10,000 steps compare."""
    a, b = ([t / p["steps"] for t in times(p)] for p in (small, large))
    report.ratio(name, b, a, 1.3, unit="ns a step")


def main():
    args = common.arguments(__doc__)
    made = measured(args.build, "bench_prove_plan")["plans"]
    by_hand = measured(args.build, "bench_prove")["plans"]
    report = common.Report()
    growth(report, "growth_2500_to_10000", made[0], made[-1], lambda p: p["ns"]["prove"])
    large = made[-1]["ns"]
    others = [all_ - prove for all_, prove in zip(large["all"], large["prove"])]
    report.ratio("share_of_other_passes", large["prove"], others, 0.2, unit="ms", scale=1e-6)
    growth(report, "growth_by_hand", by_hand[0], by_hand[-1], lambda p: [t * 1e6 for t in p["rounds_ms"]])
    for plan in made:
        passes = {k: round(statistics.median(v) / 1e6, 2) for k, v in plan["ns"].items()}
        facts = {k: v for k, v in plan.items() if k != "ns"}
        report.figures[f"plan_of_{plan['steps']}"] = {"plan": facts, "passes_ms": passes}
        print(f"{facts}: {passes} ms")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
