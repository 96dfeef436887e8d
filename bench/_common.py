"""What all benchmarks share: interleaved rounds, ratios of medians with a bootstrap interval, the closing JSON line.

Two things are compared in one run, a ratio each; the lower end of the 95 % bootstrap interval of the ratio of medians
decides, and both are printed.
"""
import argparse
import json
import operator
import os
import random
import statistics
import subprocess


def parser(description):
    """The options of every benchmark, for one that adds its own."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--build", required=True, help="a release build")
    made.add_argument("--rounds", type=int, default=21)
    return made


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
    figures that say nothing are not held against their limits."""

    def __init__(self, judged=True):
        self.ratios, self.passed, self.figures, self.judged = {}, {}, {}, judged

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
        print(json.dumps({"ratios": self.ratios, "passed": self.passed, "figures": self.figures, **more}))


class Server:
    """A benchmark program that measures when it is told to: one line in, one line of numbers out. Variables are
    those of its environment that differ from ours."""

    def __init__(self, build, name, *args, **variables):
        path = os.path.join(build, "bin", name)
        if not os.path.exists(path):
            path = os.path.join(build, "bench", name)
        self.process = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **variables})

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the benchmark program ended at '{' '.join(map(str, words))}'")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
