"""Profiles: how long each step of a run takes, as a table, as data and as a trace that browsers show."""

from __future__ import annotations

import json
import os
import statistics
from typing import Any, Sequence

from ._core import clean_text
from .plan import table

__all__ = ["Profile"]


class Profile:
    """Times of the steps of some runs. str() is two tables: the steps in order of start, and the operators.

    `rows`: a dict for each step: step (its number), name (node, or what is copied), op, device, stream, start_ns (from the
    first step's start on, of the run whose length is the median), duration_ns (the median of all runs).
    `operators`: op, device, count, total_ns, share (0 to 1), those that take longest first.
    `wall_ns`: from the first start to the last end, the median of all runs; `walls_ns`: of each.
    Times are by the devices' clocks where they have one, else by the host's.
    """

    def __init__(self, runs: Sequence[Sequence[dict[str, Any]]]):
        if not runs or not all(runs):
            raise ValueError("a profile without steps")
        self.walls_ns = [_wall(run) for run in runs]
        self.wall_ns = int(statistics.median_low(self.walls_ns))
        shown = runs[self.walls_ns.index(self.wall_ns)]
        took: dict[int, list[int]] = {}
        for run in runs:
            for row in run:
                took.setdefault(row["step"], []).append(row["end_ns"] - row["start_ns"])
        first = min(row["start_ns"] for row in shown)
        self.rows = [
            {"step": row["step"], "name": row["name"], "op": row["op"], "device": row["device"], "stream": row["stream"],
             "start_ns": row["start_ns"] - first, "duration_ns": int(statistics.median(took[row["step"]]))}
            for row in sorted(shown, key=lambda row: row["start_ns"])
        ]
        self.total_ns = sum(row["duration_ns"] for row in self.rows)
        self.operators = self._by_operator()

    def _by_operator(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, str], list[int]] = {}
        for row in self.rows:
            groups.setdefault((row["op"], row["device"]), []).append(row["duration_ns"])
        found = [{"op": op, "device": device, "count": len(times), "total_ns": sum(times),
                  "share": sum(times) / self.total_ns if self.total_ns else 0.0} for (op, device), times in groups.items()]
        return sorted(found, key=lambda one: -one["total_ns"])

    def to_json(self) -> str:
        """All of it as one JSON object: runs, wall_ns, walls_ns, total_ns, rows, operators."""
        return json.dumps({"runs": len(self.walls_ns), "wall_ns": self.wall_ns, "walls_ns": self.walls_ns,
                           "total_ns": self.total_ns, "rows": self.rows, "operators": self.operators})

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a file in Chrome's trace format, for ui.perfetto.dev or chrome://tracing: a process for each device, a row
        for each of its streams. OSError."""
        devices = list(dict.fromkeys(row["device"] for row in self.rows))
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": i, "tid": 0, "name": "process_name", "args": {"name": device}}
            for i, device in enumerate(devices)
        ]
        events += [
            {"ph": "X", "pid": devices.index(row["device"]), "tid": row["stream"], "name": f"{row['op']} {row['name']}",
             "ts": row["start_ns"] / 1e3, "dur": row["duration_ns"] / 1e3, "args": {"step": row["step"]}}
            for row in self.rows
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)

    def __str__(self) -> str:
        lines = [f"{'step':<28}  {'operator':<18}  {'device':<8}  {'stream':>6}  {'start us':>12}  {'takes us':>12}"]
        lines += [f"{clean_text(row['name']):<28}  {clean_text(row['op']):<18}  {row['device']:<8}  {row['stream']:>6}  "
                  f"{row['start_ns'] / 1e3:>12.1f}  {row['duration_ns'] / 1e3:>12.1f}" for row in self.rows]
        lines += ["", f"{'operator':<28}  {'device':<8}  {'count':>6}  {'total us':>12}  {'share':>7}"]
        lines += [f"{clean_text(one['op']):<28}  {one['device']:<8}  {one['count']:>6}  {one['total_ns'] / 1e3:>12.1f}  "
                  f"{one['share'] * 100:>5.1f} %" for one in self.operators]
        lines.append(f"{len(self.rows)} steps in {self.wall_ns / 1e3:.1f} us, the median of {len(self.walls_ns)} runs")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<heddle.Profile: {len(self.rows)} steps in {self.wall_ns / 1e3:.1f} us>"

    def _repr_html_(self) -> str:
        rows = [[row["name"], row["op"], row["device"], row["stream"], f"{row['start_ns'] / 1e3:.1f}",
                 f"{row['duration_ns'] / 1e3:.1f}"] for row in self.rows]
        return table(["step", "operator", "device", "stream", "start us", "takes us"], rows)


def _wall(run: Sequence[dict[str, Any]]) -> int:
    return max(row["end_ns"] for row in run) - min(row["start_ns"] for row in run)
