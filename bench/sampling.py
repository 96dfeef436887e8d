"""Sampling: the choice of a token among 152,000 logits, against one read of them.

The read is a loop that sums the logits in as many parts as make it fastest; against_plain_loop has the same choices against a
sum in a plain loop, which waits for each addition. All are the fastest of many repetitions, in time of the processor. The
ratios are of flat logits, where all tokens count; the figures have the other logits too.
"""
import os
import subprocess
import sys

import _common as common

LIMITS = {"greedy": 2, "top_k=40": 5, "top_k=1000": 5, "top_p=0.9": 5}


def main():
    args = common.arguments(__doc__)
    program = os.path.join(args.build, "bench", "bench_sampling")
    lines = subprocess.run([program, "152000", str(common.runs(20 * args.rounds))], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    report = common.Report()
    reads, plain, times = {}, {}, {}
    for line in lines:
        kind, name, *figures = line.split()
        read, loop, choice = map(float, figures)
        label = f"{kind} {name}"
        reads[label], plain[label], times[label] = round(choice / read, 2), round(choice / loop, 2), choice
        print(f"{label:<36} {choice:9.1f} us, {choice / read:6.2f} reads, {choice / loop:6.2f} plain loops")
    for name, limit in LIMITS.items():
        report.number(name, reads[f"flat {name}"], limit)
    report.figures.update(reads=reads, against_plain_loop=plain, microseconds=times)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
