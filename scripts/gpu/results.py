"""Puts results of scripts/gpu-test --offline into docs/gpu-results.md: results.py FILE... [--page PAGE]

FILE is a results.jsonl; of several of one machine the later one replaces the steps of the earlier one. The report
becomes the first one under the heading "Reports"; one of the same date, commit and device is replaced.
"""
import argparse
import json
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "gpu-results.md")
HEADING = "## Reports\n"


def read(paths):
    steps = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip():
                    one = json.loads(line)
                    steps.pop(one["step"], None)
                    steps[one["step"]] = one
    return steps


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ")


def report(steps):
    about = steps.get("machine", {})
    devices = steps.get("devices", {}).get("text", "")
    first = re.search(r"^cuda:0 +(.*?) {2,}", devices, re.M)
    name = "the doubles of the drivers" if about.get("double") else about.get("nvidia_smi") or (first[1] if first else "no GPU was found")
    lines = [f"### {about.get('date', 'undated')}, {about.get('commit', '?')}: {cell(name)}", ""]
    driver = re.search(r"^cuda:0 .*\n\s+plugin cuda, driver (.*?), \d+ compute units", devices, re.M)
    if driver:
        lines += [f"Driver and libraries: {driver[1]}.", ""]
    lines += [f"Python {about.get('python')}, {about.get('compiler', 'no gcc')}, {about.get('cores')} cores.", ""]
    lines += ["| part | step | result | passed | failed | skipped | time |", "|---|---|---|---|---|---|---|"]
    notes = []
    for step in steps.values():
        if step["step"] == "machine":
            continue
        counts = step.get("counts") or {}
        row = [step.get("part", ""), step["step"], step["status"]] + [counts.get(k, "") for k in ("passed", "failed", "skipped")]
        lines.append("| " + " | ".join(map(cell, row + [f"{step['seconds']} s"])) + " |")
        if counts.get("names"):
            notes.append(f"- {step['step']}: {', '.join(counts['names'])}")
        elif step["status"] not in ("passed", "skipped"):
            last = [line for line in step.get("tail", "").strip().splitlines() if line.strip()]
            notes.append(f"- {step['step']}: {last[-1].strip() if last else step['status']}")
    if notes:
        lines += ["", "What failed or was not run:", "", *notes]
    figures = [(s["step"], s["figures"]) for s in steps.values() if s.get("figures")]
    if figures:
        lines += ["", "Figures, as the programs print them:", ""]
        lines += [f"    {step}: {json.dumps(found, sort_keys=True)}" for step, found in figures]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--page", default=PAGE)
    args = parser.parse_args()
    text = report(read(args.files))
    with open(args.page, encoding="utf-8") as f:
        page = f.read()
    if HEADING not in page:
        sys.exit(f"{args.page} has no line '{HEADING.strip()}'")
    head, rest = page.split(HEADING, 1)
    old = re.split(r"(?m)^(?=### )", rest)
    title = text.split("\n", 1)[0]
    kept = [part for part in old[1:] if part.split("\n", 1)[0] != title]
    intro = old[0].replace(" There is none yet.", "").strip("\n")
    with open(args.page, "w", encoding="utf-8") as f:
        f.write(head + HEADING + (f"\n{intro}\n" if intro else "") + "\n" + text + ("\n" if kept else "") + "".join(kept))
    print(f"{args.page} has the report: {title[4:]}")


if __name__ == "__main__":
    main()
