#!/usr/bin/env python3
"""What the tests of a run did, from the files that `ctest --output-junit FILE` writes, with whole outputs.

  report.py FILE             what was skipped and why, then "N passed, N failed"
  report.py --slowest FILE   where the time went, by file and by label, then the same
  report.py --skips NAME=FILE...   what was skipped in several runs, by reason

A skipped test is one that CTest counts as skipped (exit status 77); a test that ran may have skipped cases of its own,
which are counted apart. Reasons are lines of the output: "skipped: REASON", or "skipped N: REASON" from tests/skips.py.
"""
import collections
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

REASON = re.compile(r"^skipped(?: (\d+))?: (.+)$", re.M)
ROWS = 25


class Run:
    def __init__(self, path):
        suite = xml.etree.ElementTree.parse(path).getroot()
        self.tests, self.failed, self.skipped, self.inside = 0, 0, 0, 0
        self.reasons = collections.Counter()  # by (reason, whether the whole test was skipped)
        self.seconds = collections.Counter()  # by test
        for test in suite.iter("testcase"):
            self.add(test)

    def add(self, test):
        skipped = test.find("skipped") is not None or test.get("status") == "disabled"
        self.tests += 1
        self.failed += test.find("failure") is not None or test.get("status") == "fail"
        self.skipped += skipped
        found = REASON.findall(test.findtext("system-out") or "")
        for count, reason in found:
            self.inside += 0 if skipped else int(count or 1)
            self.reasons[shorten(reason), skipped] += 1 if skipped else int(count or 1)
        if skipped and not found:
            self.reasons["no reason is given", True] += 1
        seconds = float(test.get("time") or 0)
        self.seconds[test.get("name")] += seconds


def labels_of(folder):
    """The labels of each test of a build; older CMakes leave them out of the report."""
    done = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, text=True, check=False)
    tests = json.loads(done.stdout)["tests"] if done.returncode == 0 else []
    return {test["name"]: value for test in tests for one in test.get("properties", [])
            if one["name"] == "LABELS" for value in [one["value"]]}


def shorten(reason):
    """Paths and addresses differ from run to run, and long words say no more."""
    reason = re.sub(r"(/[\w.+-]+){2,}", "PATH", reason.strip())
    return reason if len(reason) <= 110 else reason[:107] + "..."


def print_skips(runs):
    reasons = collections.Counter()
    for run in runs:
        reasons.update(run.reasons)
    for (reason, is_whole), count in sorted(reasons.items(), key=lambda item: (-item[0][1], -item[1], item[0])):
        print(f"  {count:4} {'tests' if is_whole else 'cases'}  {reason}")


def print_slowest(run, folder):
    by_file, by_label, labels = collections.Counter(), collections.Counter(), labels_of(folder)
    for test, seconds in run.seconds.items():
        by_file["/".join(test.split("/")[:2])] += seconds
        for label in labels.get(test, []):
            by_label[label] += seconds
    for what, found in ("file", by_file), ("label", by_label):
        print(f"seconds by {what}, of {sum(run.seconds.values()):.0f} (of several tests at a time):")
        for name, seconds in found.most_common(ROWS):
            print(f"  {seconds:7.1f}  {name}")


def main(words):
    if words[:1] == ["--skips"] and len(words) > 1:
        runs = [(name, Run(path)) for name, _, path in (word.partition("=") for word in words[1:]) if os.path.exists(path)]
        for name, run in runs:
            print(f"skipped in {name}: {run.skipped} of {run.tests} tests, and {run.inside} cases of tests that ran")
        print_skips([run for _, run in runs])
        return 0
    is_slowest = words[:1] == ["--slowest"]
    if len(words) != 1 + is_slowest or words[-1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    run = Run(words[-1])
    if is_slowest:
        print_slowest(run, os.path.dirname(words[-1]) or ".")
    if run.reasons:
        print(f"skipped: {run.skipped} tests, and {run.inside} cases of tests that ran")
        print_skips([run])
    print(f"{run.tests - run.failed - run.skipped} passed, {run.failed} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
