"""scripts/zoo: exports the recipes' models, runs each through Heddle and ONNX Runtime, and writes docs/zoo.md.

Each model's result is kept in FOLDER/results.json as it comes, so that a run that was stopped goes on where it was. Rows of
docs/zoo.md of which the folder has no result stay.
"""
import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import recipes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/zoo", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", action="append", help="names with this in them, or a pattern with *")
    parser.add_argument("--list", action="store_true", help="prints the names")
    parser.add_argument("--again", action="store_true", help="runs models that have a result, too")
    parser.add_argument("--failed", action="store_true", help="runs those again whose result was not that they agree")
    parser.add_argument("--no-times", action="store_true", help="loads and compares, measures nothing")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each is timed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], choices=(1, 2))
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "build" / "release" / "python", help="where heddle is built")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one step of one model")
    parser.add_argument("--note", default="", help="what the table says of the machine while it was measured")
    parser.add_argument("--table", action="store_true", help="only writes docs/zoo.md from the results")
    return parser.parse_args()


def wanted(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, p) if "*" in p else p in name for p in patterns)


def child(args, timeout, **more):
    """The last line that says RESULT, or the last words of what went wrong."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false", **more}
    try:
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=timeout, env=env, check=False)
    except subprocess.TimeoutExpired:
        return None, f"more than {timeout:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if lines and done.returncode == 0:
        return json.loads(lines[-1][7:]), None
    words = [line for line in done.stderr.splitlines() if line.strip()]
    return None, f"signal {-done.returncode}" if done.returncode < 0 else (words[-1] if words else f"exit {done.returncode}")


def differs(folder, one="heddle", other="onnxruntime"):
    """How far apart the outputs are, relative to their greatest number, or in words."""
    worst = 0.0
    for theirs in sorted(folder.glob(f"{other}[0-9]*.npy")):
        ours = folder / theirs.name.replace(other, one)
        if not ours.exists():
            return f"{theirs.stem}: no output"
        g, w = np.load(ours, allow_pickle=True), np.load(theirs, allow_pickle=True)
        if g.shape != w.shape or (g.dtype != w.dtype and w.dtype.kind not in "OU"):
            return f"{theirs.stem}: {g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}"
        if w.dtype.kind in "OUb":
            if not np.array_equal(g, w):
                return f"{theirs.stem}: other values"
            continue
        if not w.size:
            continue
        g, w = g.astype(np.float64), w.astype(np.float64)
        if not np.array_equal(np.isfinite(g), np.isfinite(w)):
            return f"{theirs.stem}: other NaN or infinities"
        fine = np.isfinite(w)
        if fine.any():
            worst = max(worst, float(np.abs(g - w)[fine].max() / max(np.abs(w)[fine].max(), 1e-6)))
    return worst


def bound_of(name):
    """float32 to rounding; float16 and int8 chains to some of their steps."""
    return 0.02 if "float16" in name else 0.06 if any(word in name for word in ("qdq", "qoperator", "dynamic")) else 2e-3


def verdict(name, path, scratch, options):
    """Some networks make a rounding large: where ONNX Runtime differs from itself without its optimiser, agreement is to that."""
    worst = differs(scratch)
    if isinstance(worst, str) or worst <= bound_of(name):
        return ("differs", worst) if isinstance(worst, str) else ("agrees", f"{worst:.1e}")
    got, _ = child([sys.executable, HERE / "measure.py", "plain", path, scratch, 1, 0], options.timeout)
    near, own = (differs(scratch, other="plain"), differs(scratch, "onnxruntime", "plain")) if got is not None else (worst, 0.0)
    if isinstance(near, float) and isinstance(own, float) and own > bound_of(name) and near <= bound_of(name):
        return "agrees", f"{near:.1e} from ONNX Runtime without its optimiser, which is {own:.1e} from it"
    return "differs", f"{worst:.1e}"


def measure(name, path, options):
    row, measure_py = {}, HERE / "measure.py"
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        seconds = 0 if options.no_times else options.seconds
        for threads in (1,) if options.no_times else options.threads:
            for which in ("onnxruntime", "heddle"):
                more = {"PYTHONPATH": str(options.package), "HEDDLE_THREADS": str(threads)} if which == "heddle" else {}
                got, wrong = child([sys.executable, measure_py, which, path, scratch, threads, seconds], options.timeout, **more)
                if got is None:
                    row["state"], row["words"] = ("refused" if which == "heddle" else "peer"), wrong.replace(str(path), path.name)[-300:]
                    return row
                row[f"{which}{threads}"] = got
            if threads == options.threads[0]:
                row["state"], row["words"] = verdict(name, path, scratch, options)
    return row


def path_of(name, options):
    return options.folder / "models" / (name.replace("/", "__") + ".onnx")


def export(names, options):
    """Exports what is not there, many in one process; gives what was wrong, by name. One that ends the process is left out."""
    failed, folder = {}, options.folder / "models"
    folder.mkdir(parents=True, exist_ok=True)
    of_keras = [name for name in names if name.startswith("keras/")]
    for python, part in ((sys.executable, [n for n in names if n not in of_keras]), (os.environ.get("HEDDLE_ZOO_KERAS", sys.executable), of_keras)):
        left = [name for name in part if not path_of(name, options).exists()]
        while left:
            env = {**os.environ, "PYTHONPATH": str(HERE), "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
            done = subprocess.run([python, HERE / "export.py", folder, str(options.timeout), *left], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=env, check=False)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
            ended = {row["name"]: row["wrong"] for row in rows if "name" in row}
            failed.update({name: wrong for name, wrong in ended.items() if wrong})
            begun = [row["begun"] for row in rows if "begun" in row and row["begun"] not in ended]
            if len(ended) < len(left):
                words = (done.stderr.strip().splitlines() or ["no word"])[-1]
                failed[begun[0] if begun else left[0]] = f"exit {done.returncode}: {words}"
            left = [name for name in left if name not in ended and name not in failed]
    return failed


def ratio(row, threads, what):
    ours, theirs = row.get(f"heddle{threads}"), row.get(f"onnxruntime{threads}")
    return ours[what] / theirs[what] if ours and theirs and ours.get(what) and theirs.get(what) else None


COLUMNS = (("CPU, 1 thread", 1, "cpu"), ("wall, 1", 1, "wall"), ("CPU, 2", 2, "cpu"), ("wall, 2", 2, "wall"), ("first run", 1, "first_cpu"), ("memory", 1, "memory"))


def kept(path, results):
    """Rows of the table for models that have no result here: state, words and ratios as they stand there."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        name = cells[0].strip("| ")
        if name in recipes.RECIPES and name not in results and len(cells) == len(COLUMNS) + 2:
            state, _, words = cells[1].partition(": ")
            rows[name] = {"state": state, "words": words, "cells": [float(x) if x.strip("| ") else None for x in cells[2:]]}
    return rows


def ratios(row):
    return row["cells"] if "cells" in row else [ratio(row, t, w) for _, t, w in COLUMNS]


def table(results, path, note):
    results = {**kept(path, results), **results}
    ran = [r for r in results.values() if r["state"] in ("agrees", "differs", "refused")]
    states = {s: sum(r["state"] == s for r in results.values()) for s in ("agrees", "differs", "refused", "peer", "export")}
    lines = ["# Models of others", "", "Written by `scripts/zoo`, which exports models with random weights and runs them through Heddle and ONNX Runtime. Ratios are Heddle's",
             "time, or memory over an empty process, to ONNX Runtime's; below 1 is better. The recipes are in `bench/zoo/recipes.py`.", "",
             f"{datetime.date.today()}: {len(recipes.RECIPES)} recipes, of which {len(results)} have a result here: {states['agrees']} agree, {states['differs']} differ, "
             f"{states['refused']} are refused by Heddle, {states['peer']} by ONNX Runtime, and {states['export']} did not export. "
             f"{len(recipes.RECIPES) - len(results)} have none. {note}".rstrip(), ""]
    for k, (title, _, _) in enumerate(COLUMNS):
        found = [x for x in (ratios(r)[k] for r in ran) if x]
        if found:
            lines.append(f"- {title}: geometric mean {np.exp(np.mean(np.log(found))):.2f}, median {statistics.median(found):.2f}, worst {max(found):.2f}, of {len(found)}")
    lines += ["", "| model | result | " + " | ".join(c[0] for c in COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name in sorted(results):  # those that did not run too: kept() counts by these rows
        row = results[name]
        cells = [f"{x:.2f}" if x else "" for x in ratios(row)]
        words = row["words"].replace("|", "/")[:120] if row["state"] != "agrees" else ""
        lines.append(f"| {name} | {row['state']}{': ' + words if words else ''} | " + " | ".join(cells) + " |")
    path.write_text("\n".join(lines) + "\n")


def main():
    options = arguments()
    names = [name for name in sorted(recipes.RECIPES) if wanted(name, options.only)]
    if options.list:
        print("\n".join(names))
        return 0
    store = options.folder / "results.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    results = json.loads(store.read_text()) if store.exists() else {}
    results = {name: row for name, row in results.items() if name in recipes.RECIPES}
    names = [name for name in names if name not in results or options.again or (options.failed and results[name]["state"] != "agrees")]
    names = [] if options.table else names
    failed = export(names, options)
    for i, name in enumerate(names):
        wrong = failed.get(name)
        row = {"state": "export", "words": wrong[-300:]} if wrong else measure(name, path_of(name, options), options)
        results[name] = row
        fresh = store.with_suffix(".new")
        fresh.write_text(json.dumps(results, indent=1, sort_keys=True))
        fresh.replace(store)
        one = ratio(row, 1, "cpu")
        print(f"{i + 1:4}/{len(names)} {name:44} {row['state']:8} {f'{one:5.2f}' if one else ''} {row['words'][-150:]}", flush=True)
    table(results, ROOT / "docs" / "zoo.md", options.note)
    return 0 if all(r["state"] in ("agrees", "peer", "export") for r in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
