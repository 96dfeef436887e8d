"""heddle bench and heddle compare with --against onnxruntime: a model on Heddle and on ONNX Runtime, with the same inputs,
one after the other by turns. The tool starts this module; `python -m heddle.against bench MODEL` does the same."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, NoReturn

import numpy as np

from . import _core, errors
from .against_plan import causes_of, family_of, losers_of, theirs_by_family
from .model import Model, load
from .onnxruntime.providers import kind_of

_FLOATS = ("float16", "float32", "float64", "bfloat16")
_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}


class _Failure(Exception):
    """What ends the command, in words."""


def _words(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="heddle", description=__doc__)
    parser.add_argument("command", choices=["bench", "compare"])
    parser.add_argument("model")
    parser.add_argument("--against", default="onnxruntime")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--place", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--optimize")
    parser.add_argument("--precision")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--number", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


# ---- both sides


def _onnxruntime() -> Any:
    try:
        import onnxruntime  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise _Failure(f"onnxruntime is not installed for {sys.executable}, which --against onnxruntime needs "
                       f"(pip install onnxruntime): {error}") from error
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime


def _theirs(ort: Any, words: argparse.Namespace, threads: int, profile: str = "") -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    for pair in words.dim:
        name, _, size = pair.partition("=")
        options.add_free_dimension_override_by_name(name, int(size))
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    kind = words.device.split(",")[0].split(":")[0].rstrip("?")
    wanted = [one for one in ort.get_available_providers() if kind_of(one) == kind]
    if not wanted:
        raise _Failure(f"ONNX Runtime has no provider for '{kind}': {', '.join(ort.get_available_providers())}")
    try:
        return ort.InferenceSession(words.model, options, providers=[*wanted[:1], "CPUExecutionProvider"][:2 if kind != "cpu" else 1])
    except Exception as error:  # pylint: disable=broad-exception-caught
        raise _Failure(f"ONNX Runtime refuses the model: {error}") from error


def _ours(words: argparse.Namespace, threads: int) -> Model:
    settings = dict(pair.partition("=")[::2] for pair in words.set)
    settings.setdefault("threads", str(threads))
    return load(words.model, devices=words.device, dims=words.dim or None, place=words.place or None,
                optimize=_optimize(words.optimize), precision=words.precision, context=_core.Context(settings))


def _optimize(word: str | None) -> Any:
    return None if word is None else word == "on" if word in ("on", "off") else word.split(",")


def _feed(session: Any, words: argparse.Namespace) -> dict[str, np.ndarray]:
    """The values of --input; the rest made up, always the same: dimensions that are open are 1."""
    rng = np.random.default_rng(1)
    dims = dict(pair.partition("=")[::2] for pair in words.dim)
    given = {name: np.load(path) for name, _, path in (pair.partition("=") for pair in words.input)}
    feed = {}
    for one in session.get_inputs():
        if one.name in given:
            feed[one.name] = given.pop(one.name)
            continue
        if not one.type.startswith("tensor("):
            raise _Failure(f"input '{one.name}' is {one.type}, for which no value is made up: give it with --input")
        dtype = np.dtype(_TYPES.get(one.type, one.type[7:-1]))
        shape = [n if isinstance(n, int) else int(dims.get(n or "", 1)) for n in one.shape]
        feed[one.name] = (rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2, shape)).astype(dtype)
    if given:
        raise _Failure(f"the model has no input '{min(given)}'")
    return feed


# ---- bench


def _time(once: Callable[[], Any], number: int) -> tuple[float, float]:
    """Milliseconds of a run: by the clock, and of the process."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(number):
        once()
    return (time.perf_counter() - wall) / number * 1e3, (time.process_time() - cpu) / number * 1e3


def _profile_theirs(ort: Any, words: argparse.Namespace, threads: int, feed: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    """Median microseconds of each node of ONNX Runtime's, by its own profile."""
    with tempfile.TemporaryDirectory() as folder:
        session = _theirs(ort, words, threads, os.path.join(folder, "p"))
        for _ in range(runs + 1):
            session.run(None, feed)
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
    took: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            took.setdefault((event["name"][:-12], event["args"].get("op_name", "")), []).append(event["dur"])
    return [{"name": name, "op": op, "us": statistics.median(times[1:] or times) * max(1, len(times) // (runs + 1))}
            for (name, op), times in took.items()]


def _bench(words: argparse.Namespace, ort: Any) -> int:
    threads = words.threads or os.cpu_count() or 1
    session, model = _theirs(ort, words, threads), _ours(words, threads)
    feed = _feed(session, words)
    sides: list[tuple[str, Callable[[], Any]]] = [("heddle", lambda: model.run(None, feed)),
                                                  ("onnxruntime", lambda: session.run(None, feed))]
    took: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in sides}
    for _, once in sides * 2:
        once()
    for turn in range(words.repeat):
        for name, once in sides if turn % 2 == 0 else sides[::-1]:
            took[name].append(_time(once, words.number))
    wall = {name: statistics.median(one[0] for one in list_) for name, list_ in took.items()}
    cpu = {name: statistics.median(one[1] for one in list_) for name, list_ in took.items()}
    profile = model.profile(feed, runs=5)
    ours: dict[str, float] = {}
    for row in profile.rows:
        ours[family_of(row["op"])] = ours.get(family_of(row["op"]), 0.0) + row["duration_ns"] / 1e3
    theirs = theirs_by_family(_profile_theirs(ort, words, threads, feed, 5))
    losers = losers_of(ours, theirs)
    causes = causes_of([one["operator"] for one in losers], profile.rows, model.plan_for(feed), theirs)
    report = {
        "model": words.model, "against": "onnxruntime", "against_version": ort.__version__, "devices": list(model.devices),
        "threads": threads, "repeat": words.repeat, "number": words.number, "wall_ms": wall, "cpu_ms": cpu,
        "ratio": wall["heddle"] / wall["onnxruntime"], "cpu_ratio": cpu["heddle"] / max(cpu["onnxruntime"], 1e-9),
        "inputs": {name: [str(one.dtype), list(one.shape)] for name, one in feed.items()},
        "losers": [{**one, "causes": causes[one["operator"]]} for one in losers],
    }
    print(json.dumps(report) if words.json else _bench_text(report))
    return 0


def _bench_text(report: dict[str, Any]) -> str:
    lines = [f"{report['model']}: {report['repeat']} x {report['number']} runs by turns, {report['threads']} threads; medians",
             f"{'':<14}{'wall ms':>12}{'CPU ms':>12}"]
    for name in "heddle", "onnxruntime":
        lines.append(f"{name:<14}{report['wall_ms'][name]:>12.4f}{report['cpu_ms'][name]:>12.4f}")
    lines.append(f"{'ratio':<14}{report['ratio']:>12.3f}{report['cpu_ratio']:>12.3f}")
    if not report["losers"]:
        return "\n".join([*lines, "", "no operator takes longer than on onnxruntime"])
    lines += ["", f"{'operators that lose':<24}{'heddle us':>12}{'other us':>12}{'longer by':>12}"]
    for one in report["losers"]:
        other = f"{one['against_us']:>12.1f}" if one["against_us"] is not None else f"{'none':>12}"
        lines.append(f"{_core.clean_text(one['operator']):<24}{one['us']:>12.1f}{other}{one['longer_us']:>12.1f}")
        lines += [f"    {_core.clean_text(cause)}" for cause in one["causes"]]
    return "\n".join(lines)


# ---- compare


def _difference(ours: Any, theirs: Any) -> dict[str, Any]:
    """How far two results are apart: bit for bit for integers, by the type's precision for floats."""
    row: dict[str, Any] = {"dtype": str(theirs.dtype), "shape": list(theirs.shape), "error": 0.0, "bound": 0.0, "beyond": 0, "why": ""}
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        row.update(why=f"{ours.dtype} {list(ours.shape)} on heddle", beyond=int(theirs.size) or 1)
        return row
    if str(ours.dtype) not in _FLOATS:
        row["beyond"] = int(np.count_nonzero(ours != theirs))
        row["error"] = float(np.max(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)), initial=0.0))
    else:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        finite = b[np.isfinite(b)]
        step = {"float64": 1e-9, "float32": 1e-3}.get(str(ours.dtype), 2e-2)
        row["bound"] = step * float(np.max(np.abs(finite), initial=0.0))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0.0, np.abs(a - b))
        error = np.where(np.isnan(error), np.inf, error)
        row["error"] = float(np.max(error, initial=0.0))
        row["beyond"] = int(np.count_nonzero(error > row["bound"]))
    row["why"] = f"{row['beyond']} of {theirs.size} elements" if row["beyond"] else ""
    return row


def _compare(words: argparse.Namespace, ort: Any) -> int:
    threads = words.threads or os.cpu_count() or 1
    session, model = _theirs(ort, words, threads), _ours(words, threads)
    feed = _feed(session, words)
    theirs = session.run(None, feed)
    ours = model.run([one.name for one in session.get_outputs()], feed)
    rows = [{"output": info.name, **_difference(np.asarray(a), np.asarray(b))}
            for info, a, b in zip(session.get_outputs(), ours, theirs)]
    differ = any(row["beyond"] for row in rows)
    if words.json:
        print(json.dumps({"model": words.model, "against": "onnxruntime", "against_version": ort.__version__,
                          "devices": list(model.devices), "differs": differ, "outputs": rows}))
        return int(differ)
    print(f"{'output':<28}{'dtype':<10}{'shape':<20}{'largest error':>15}{'allowed':>12}")
    for row in rows:
        shape = "[" + ", ".join(map(str, row["shape"])) + "]"
        print(f"{_core.clean_text(row['output']):<28}{row['dtype']:<10}{shape:<20}{row['error']:>15.3g}{row['bound']:>12.3g}"
              f"{'  differs: ' + row['why'] if row['beyond'] else ''}")
    print(f"heddle and onnxruntime {ort.__version__} {'differ' if differ else 'agree'} on {len(rows)} outputs")
    return int(differ)


# ---- the commands


def run(arguments: list[str]) -> int:
    """The status of a command: 0, 1 where it failed or the outputs differ, 2 for wrong words."""
    words = _words(arguments)
    try:
        if words.against != "onnxruntime":
            raise _Failure(f"--against {words.against}: only onnxruntime is known")
        if not words.model.endswith(".onnx"):
            raise _Failure(f"{words.model}: --against onnxruntime takes an .onnx file")
        if not os.path.exists(words.model):
            raise _Failure(f"{words.model}: No such file or directory")
        ort = _onnxruntime()
        return _bench(words, ort) if words.command == "bench" else _compare(words, ort)
    except (_Failure, errors.Error, OSError, ValueError) as error:
        sys.stdout.flush()
        print(f"heddle {words.command}: {error}", file=sys.stderr)
        return 1


def main() -> NoReturn:
    """Of the tool."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
