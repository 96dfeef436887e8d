"""What all benchmarks share: interleaved rounds, ratios of medians with a bootstrap interval, the closing JSON line.

Two things are compared in one run, a ratio each; the lower end of the 95 % bootstrap interval of the ratio of medians
decides, and both are printed.

--check is the short form of each, a few seconds: one round of few runs, which shows that the benchmark works. Its figures
say nothing and are held against no limit. What lacks something that it needs ends with 77 and the line "skipped: REASON".
"""
import argparse
import json
import operator
import os
import random
import statistics
import subprocess
import sys

MOST_RUNS = 2  # of one request to a program, with --check
SKIPPED = 77
_is_check = False


class _Parser(argparse.ArgumentParser):
    def parse_args(self, args=None, namespace=None):
        global _is_check
        found = super().parse_args(args, namespace)
        _is_check = found.check
        if found.check:
            found.rounds = 1
        return found


def parser(description):
    """The options of every benchmark, for one that adds its own."""
    made = _Parser(description=description)
    made.add_argument("--build", required=True, help="a release build")
    made.add_argument("--rounds", type=int, default=21)
    made.add_argument("--check", action="store_true", help="once and short, to see that it works; the figures say nothing")
    return made


def runs(count):
    """How many runs a sample takes of what is measured here."""
    return min(count, MOST_RUNS) if _is_check else count


def skip(reason):
    """Ends the benchmark, which cannot run here."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def arguments(description):
    return parser(description).parse_args()


def _bootstrap(a, b, combine, draws, seed):
    rng = random.Random(seed)
    drawn = sorted(combine(statistics.median(rng.choices(a, k=len(a))), statistics.median(rng.choices(b, k=len(b))))
                   for _ in range(draws))
    return drawn[int(0.025 * draws)], drawn[int(0.975 * draws)]


def interval(a, b, draws=2000, seed=1):
    """The 95 % bootstrap interval of median(a) / median(b)."""
    return _bootstrap(a, b, operator.truediv, draws, seed)


def difference_interval(a, b, draws=2000, seed=1):
    """The 95 % bootstrap interval of median(a) - median(b)."""
    return _bootstrap(a, b, operator.sub, draws, seed)


class Report:
    """Collects figures; a ratio is printed with its interval and its limit, and ends up in the last line. Not judged:
    figures that say nothing are not held against their limits, as those of --check."""

    def __init__(self, judged=True):
        self.ratios, self.passed, self.figures, self.judged = {}, {}, {}, judged and not _is_check

    def verdict(self, name, limit, is_met):
        if not self.judged:
            return "not judged"
        self.passed[name] = is_met
        return f"at most {limit:g}: {'yes' if is_met else 'NO'}"

    def ratio(self, name, ours, theirs, limit, unit="ns", scale=1.0):
        middle = statistics.median(ours) / statistics.median(theirs)
        low, high = interval(ours, theirs)
        self.ratios[name] = round(middle, 4)
        self.figures[name] = {"ours": statistics.median(ours) * scale, "theirs": statistics.median(theirs) * scale,
                              "unit": unit, "low": round(low, 4), "high": round(high, 4), "limit": limit}
        print(f"{name}: {statistics.median(ours) * scale:.4g} against {statistics.median(theirs) * scale:.4g} {unit}, "
              f"ratio {middle:.4f} [{low:.4f}, {high:.4f}], {self.verdict(name, limit, low <= limit)}")

    def difference(self, name, ours, theirs, limit, unit="ns"):
        """How much more ours is than theirs, of medians; the lower end of its interval decides."""
        middle = statistics.median(ours) - statistics.median(theirs)
        low, high = difference_interval(ours, theirs)
        self.ratios[name] = round(middle, 4)
        self.figures[name] = {"ours": statistics.median(ours), "theirs": statistics.median(theirs), "unit": unit,
                              "low": round(low, 4), "high": round(high, 4), "limit": limit}
        print(f"{name}: {statistics.median(ours):.4g} less {statistics.median(theirs):.4g} {unit}: {middle:.4g} "
              f"[{low:.4g}, {high:.4g}], {self.verdict(name, limit, low <= limit)}")

    def number(self, name, value, limit, unit=""):
        self.ratios[name] = round(value, 4)
        self.figures[name] = {"ours": value, "limit": limit, "unit": unit}
        print(f"{name}: {value:.6g} {unit}, {self.verdict(name, limit, value <= limit)}")

    def close(self, **more):
        if _is_check:
            more["check"] = True
        print(json.dumps({"ratios": self.ratios, "passed": self.passed, "figures": self.figures, **more}))


class Server:
    """A benchmark program that measures on request: one line in, one line of numbers out. Variables are
    those of its environment that differ from ours."""

    def __init__(self, build, name, *args, **variables):
        path = os.path.join(build, "bin", name)
        if not os.path.exists(path):
            path = os.path.join(build, "bench", name)
        self.process = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **variables})

    def ask(self, *words):
        """The answer to a request; its last word is how many runs it asks for."""
        if isinstance(words[-1], int):
            words = (*words[:-1], runs(words[-1]))
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            if self.process.wait() == SKIPPED:
                skip(f"{os.path.basename(self.process.args[0])} finds no device of its kind")
            raise SystemExit(f"the benchmark program ended at '{' '.join(map(str, words))}'")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
