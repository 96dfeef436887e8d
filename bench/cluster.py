"""Cluster: messages between two ranks of MPI against a hand-written program, and a pipeline of four ranks against its slowest stage.

Messages of 4 KB, 1 MiB and 64 MiB there and back: ours go through the requests and the waits of a run, theirs are persistent
requests and MPI_Wait, in one process and one run. The pipeline has one node a rank, on a sim that takes its time asleep, since
there are fewer cores here than ranks: a run of the stream with 8 in flight over the slowest stage alone (at most 1 / 0.95), and
a run alone over the sum of its stages and 1.2 messages for each link. Planning is one rank's of 1,024 with 8 devices each and 100,000
nodes, where the others are simulated: processor time over 10 s, and peak memory over 2 GiB.
"""
import os
import shutil
import subprocess
import sys

import _common as common

STAGE_US = 20000


RANKS, DEVICES, NODES = 1024, 8, 100000


def planning(report, args):
    program, nodes = os.path.join(args.build, "bench", "bench_ranks"), 1000 if args.check else NODES
    env = {**os.environ, "HEDDLE_PLUGIN_PATH": os.path.join(os.path.abspath(args.build), "lib", "heddle", "plugins")}
    for how in "annotated", "auto":
        rows = [subprocess.run([program, str(RANKS), str(DEVICES), str(nodes), how], check=True, capture_output=True, text=True,
                               timeout=1200, env=env).stdout.split() for _ in range(1 if args.check else 3)]
        report.ratio(f"planning_{how}", [float(r[0]) for r in rows], [10.0] * len(rows), 1.0, "s")
        report.ratio(f"planning_{how}_memory", [float(r[1]) for r in rows], [float(2 << 20)] * len(rows), 1.0, "MiB", 1 / 1024)


def main():
    args = common.arguments(__doc__)
    program = os.path.join(args.build, "bench", "bench_cluster")
    mpirun = shutil.which("mpirun")
    if mpirun is None or not os.path.exists(program):
        common.skip("libheddle_mpi is not built, or there is no mpirun")
    report = common.Report()

    def ask(ranks, *words):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        line = [mpirun, *root, "--oversubscribe", "-n", str(ranks), program, *map(str, words)]
        env = {**os.environ, "HEDDLE_PROBE": "off", "HEDDLE_ROUTES_TEST": "0", "HEDDLE_CONFIG": "off"}
        done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=1200, stdin=subprocess.DEVNULL, env=env)
        rows = [tuple(map(float, text.split())) for text in done.stdout.splitlines()]
        return list(zip(*rows))

    for name, size, number in (("4kb", 4096, 2000), ("1mib", 1 << 20, 100), ("64mib", 1 << 26, 3)):
        ours, theirs = ask(2, "messages", size, args.rounds, common.runs(number))
        report.ratio(f"message_{name}", ours, theirs, 1.1, "us", 1e-3)
    many, stage, latency, ping = ask(4, "pipeline", STAGE_US, args.rounds, 8 if args.check else 40)
    report.ratio("pipeline_4", many, stage, 1 / 0.95, "ms a run", 1e-6)
    links = 4  # three between the stages, one with the result
    bound = [4 * s + links * 1.2 * p / 2 for s, p in zip(stage, ping)]
    planning(report, args)
    report.ratio("latency_4", latency, bound, 1.0, "ms a run", 1e-6)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
