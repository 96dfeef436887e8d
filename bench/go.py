"""Go: what a call of a one-node model costs from Go above the same call from C, in one process.

Three ways: memory that is bound to the executor, written and read in place (heddle.Call); slices that are copied (RunInto
of a model, which also takes an executor from its pool); and outputs as new arrays that are closed (Run), against new
tensors. For each the same in C.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import _common as common

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "bindings" / "go"))
import run_tests  # noqa: E402

CALLS = 20000
LIMIT = 500  # ns above C


def main():
    args = common.arguments(__doc__)
    if shutil.which("go") is None:
        common.skip("there is no go; Debian's package is golang-go")
    build = pathlib.Path(args.build).resolve()
    program = build / "bench" / "bench_go"
    subprocess.run(["go", "build", "-o", str(program), "./internal/bench"], cwd=SOURCE / "bindings" / "go", check=True,
                   env=run_tests.go_environment(build))
    server = common.Server(str(build), "bench_go", HEDDLE_CONFIG="off", HEDDLE_DEVICES="cpu")
    ways = ("c", "call", "c_copy", "into", "c_new", "run", "invoke")
    samples = {way: [] for way in ways}
    for way in ways:
        server.ask(way, CALLS)
    for _ in range(args.rounds):
        for way in ways:
            samples[way].append(server.ask(way, CALLS))
    server.close()
    report = common.Report()
    for name, ours, theirs in (("call_above_c", "call", "c"), ("run_into_above_c", "into", "c_copy"),
                               ("run_above_c", "run", "c_new")):
        above = [a - b for a, b in zip(samples[ours], samples[theirs])]
        print(f"{ours}: {statistics.median(samples[ours]):.0f} ns, {theirs}: {statistics.median(samples[theirs]):.0f} ns")
        report.number(name, statistics.median(above), LIMIT, "ns")
    print(f"Invoke of a function of C: {statistics.median(samples['invoke']):.0f} ns")
    report.close(cores=os.cpu_count())


if __name__ == "__main__":
    sys.exit(main())
