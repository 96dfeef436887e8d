"""cpu: rows of convolutions and the digits network through Heddle, against the same written by hand on oneDNN.

Both sides on one thread, in the layouts that oneDNN chooses, with the reorders at the ends; the two rows whose members
are long enough for several threads also on two.
"""
import os
import sys

import _common as common

RUNS = {"conv3x3_64_at_56": 3, "conv1x1_64_256_at_56": 5, "conv3x3_512_at_7": 3, "depthwise_512_at_14": 100,
        "digits": 400}
ON_TWO = ("conv3x3_64_at_56", "conv3x3_512_at_7")
LIMIT = 1.05


def main():
    args = common.arguments(__doc__)
    digits = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "digits")
    program = common.Server(args.build, "bench_cpu", digits)
    cases = [(name, name, 1) for name in RUNS]
    if (os.cpu_count() or 1) > 1:
        cases += [(f"{name}_on_2", name, 2) for name in ON_TWO]
    samples = {title: ([], []) for title, _, _ in cases}
    for _, name, threads in cases:
        for who in ("heddle", "hand"):
            program.ask(who, name, threads, 2)
    for turn in range(args.rounds):
        for title, name, threads in cases:
            for who in (0, 1) if turn % 2 == 0 else (1, 0):
                samples[title][who].append(program.ask(("heddle", "hand")[who], name, threads, RUNS[name]))
    program.close()
    report = common.Report()
    for title, _, _ in cases:
        report.ratio(title, *samples[title], LIMIT, "us a run", 1e-3)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
