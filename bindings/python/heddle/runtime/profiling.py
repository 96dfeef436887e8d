"""Reports of profiled runs, as TVM has them in `tvm.runtime.profiling`: the metrics of each call, of each device, and the
configuration of the run, as a table, CSV or JSON.
"""
from __future__ import annotations

import csv
import io
import json
from typing import Any, Iterable, Mapping, Sequence

__all__ = ["Count", "DeviceWrapper", "Duration", "MetricCollector", "Percent", "Ratio", "Report"]


class _Number:
    """A number with a unit; `_key` is its name in JSON, and the attribute that TVM's object has it under."""

    _key = "value"

    def __init__(self, number: float):
        setattr(self, self._key, number)

    @property
    def _number(self) -> float:
        return getattr(self, self._key)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._number == self._number

    def __hash__(self) -> int:
        return hash((type(self), self._number))

    def __float__(self) -> float:
        return float(self._number)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._number!r})"


class Count(_Number):
    """How many of something. Attribute: `value` (int)."""

    _key = "value"

    def __init__(self, count: int):
        super().__init__(int(count))


class Duration(_Number):
    """A time. Attribute: `microseconds` (float)."""

    _key = "microseconds"

    def __init__(self, duration: float):
        super().__init__(float(duration))


class Percent(_Number):
    """A share. Attribute: `percent` (float, 100 is all)."""

    _key = "percent"

    def __init__(self, percent: float):
        super().__init__(float(percent))


class Ratio(_Number):
    """A quotient of two things. Attribute: `ratio` (float)."""

    _key = "ratio"

    def __init__(self, ratio: float):
        super().__init__(float(ratio))


class MetricCollector:
    """The base of TVM's collectors of hardware counters. Heddle has none: `profile` refuses a list that is not empty."""


class DeviceWrapper:
    """A device as a value of a report. Attribute: `device`."""

    def __init__(self, dev: Any):
        self.device = dev


Metric = Any  # Count, Duration, Percent, Ratio or str

_JSON_NAMES = {"count": Count, "microseconds": Duration, "percent": Percent, "ratio": Ratio, "string": str}
_FIRST = ("Name", "Duration (us)", "Percent", "Device", "Count")


def _to_json(metric: Metric) -> dict[str, Any]:
    for name, kind in _JSON_NAMES.items():
        if isinstance(metric, kind):
            return {name: metric if kind is str else metric._number}
    raise TypeError(f"a metric is a Count, Duration, Percent, Ratio or str, not {type(metric).__name__}")


def _from_json(value: Mapping[str, Any]) -> Metric:
    (name, number), = value.items()
    return _JSON_NAMES[name](number)


def _to_text(metric: Metric) -> str:
    if isinstance(metric, Count):
        return f"{metric.value:,}"
    if isinstance(metric, Duration):
        return f"{metric.microseconds:,.2f}"
    if isinstance(metric, Percent):
        return f"{metric.percent:.2f}"
    if isinstance(metric, Ratio):
        return f"{metric.ratio:.2g}"
    return str(metric)


def _sum(metrics: Sequence[Metric]) -> Metric | None:
    """Of metrics of one name: their sum; of ratios the mean; of texts the text that all have, else None."""
    first = metrics[0]
    if isinstance(first, Ratio):
        return Ratio(sum(m.ratio for m in metrics) / len(metrics))
    if isinstance(first, _Number):
        return type(first)(sum(m._number for m in metrics))
    return first if all(m == first for m in metrics) else None


def _columns(rows: Iterable[Mapping[str, Metric]]) -> list[str]:
    found = {name for row in rows for name in row}
    return [name for name in _FIRST if name in found] + sorted(found.difference(_FIRST))


class Report:
    """What a profiled run gathered.

    Attributes: `calls`, a list of dictionaries (metric -> Duration, Count, Percent, Ratio or str) in the order of their
    start; `device_metrics`, device -> such a dictionary; `configuration`, name -> Count or str.
    """

    def __init__(self, calls: Sequence[Mapping[str, Metric]], device_metrics: Mapping[str, Mapping[str, Metric]],
                 configuration: Mapping[str, Metric] | None = None):
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {str(dev): dict(metrics) for dev, metrics in device_metrics.items()}
        self.configuration = dict(configuration or {})

    def csv(self) -> str:
        """The calls as CSV with a header; without sums and devices."""
        columns, text = _columns(self.calls), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for call in self.calls:
            writer.writerow([m._number if isinstance(m, _Number) else m for m in (call.get(c, "") for c in columns)])
        return text.getvalue()

    def json(self) -> str:
        """All as JSON: {"calls": [...], "device_metrics": {...}, "configuration": {...}}, with a metric as an object of
        its unit: {"microseconds": 1.5}, {"count": 1}, {"percent": 10.0}, {"ratio": 0.5}, {"string": "f"}."""
        def group(metrics: Mapping[str, Metric]) -> dict[str, Any]:
            return {name: _to_json(metric) for name, metric in metrics.items()}
        return json.dumps({"calls": [group(call) for call in self.calls],
                           "device_metrics": {dev: group(m) for dev, m in self.device_metrics.items()},
                           "configuration": group(self.configuration)})

    @classmethod
    def from_json(cls, s: str) -> "Report":
        """The report that `json` wrote."""
        said = json.loads(s)
        def group(metrics: Mapping[str, Any]) -> dict[str, Metric]:
            return {name: _from_json(value) for name, value in metrics.items()}
        return cls([group(call) for call in said["calls"]],
                   {dev: group(m) for dev, m in said.get("device_metrics", {}).items()},
                   group(said.get("configuration", {})))

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table to read. aggregate: calls of one operator (by Hash, else Name; with Argument Shapes and Device) are one
        line; sort: the longest first; col_sums: lines with the sum of each column and with the metrics of each device."""
        rows = self.calls
        if aggregate:
            groups: dict[tuple, list[dict[str, Metric]]] = {}
            for call in rows:
                key = (call.get("Hash") or call.get("Name"), call.get("Argument Shapes"), call.get("Device"))
                groups.setdefault(key, []).append(call)
            rows = [_joined(group) for group in groups.values()]
        if sort:
            rows = sorted(rows, key=lambda row: -float(row.get("Duration (us)", 0.0)))
        rows = [dict(row) for row in rows]
        if col_sums and rows:
            numbers = {name: _sum([row[name] for row in rows if name in row]) for name in _columns(rows)
                       if all(isinstance(row.get(name, Count(0)), _Number) for row in rows)}
            rows.append({"Name": "----------"})
            rows.append({"Name": "Sum", **{k: v for k, v in numbers.items() if not isinstance(v, Ratio)}})
            rows += [{"Name": "Total", "Device": dev, **metrics} for dev, metrics in self.device_metrics.items()]
        columns = _columns(rows)
        cells = [columns] + [[_to_text(row[c]) if c in row else "" for c in columns] for row in rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        left = [not any(isinstance(row.get(c), _Number) for row in rows) for c in columns]
        lines = ["  ".join(cell.ljust(w) if l else cell.rjust(w) for cell, w, l in zip(line, widths, left)).rstrip()
                 for line in cells]
        if self.configuration:
            lines += ["", "Configuration", "-------------"]
            lines += [f"{name}: {_to_text(value)}" for name, value in self.configuration.items()]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.table()


def _joined(calls: Sequence[Mapping[str, Metric]]) -> dict[str, Metric]:
    names = dict.fromkeys(name for call in calls for name in call)
    sums = {name: _sum([call[name] for call in calls if name in call]) for name in names}
    return {name: metric for name, metric in sums.items() if metric is not None}


# ---- of the executor

def _shapes(graph: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Node -> the types of its inputs and outputs as a text, and its hash. What the graph leaves open is "?"; inputs that
    a node does without are left out."""
    dtypes, shapes, rows = graph["attrs"]["dltype"][1], graph["attrs"]["shape"][1], graph["node_row_ptr"]

    def entry(k: int) -> str:
        shape = ["?"] if shapes[k] is None else ["?" if size is None else str(size) for size in shapes[k]]
        return f"{dtypes[k] or '?'}[{', '.join(shape)}]"
    found = {}
    for i, node in enumerate(graph["nodes"]):
        entries = [rows[n[0]] + n[1] for n in node.get("inputs") or [] if n[0] >= 0] + list(range(rows[i], rows[i + 1]))
        found[node["name"]] = ", ".join(map(entry, entries)), (node.get("attrs") or {}).get("hash", "")
    return found


def report_of_run(said: str, graph_json: str, configuration: Mapping[str, Metric]) -> Report:
    """The report of what an executor's function `profile` answered: a call a step, named by its function (copies:
    "__copy"), with the types of its arguments from the graph, and the time of each device."""
    run = json.loads(said)
    known, total, calls, devices = _shapes(json.loads(graph_json)), max(run["duration_us"], 1e-9), [], {}
    for step in run["calls"]:
        shapes, of = known.get(step["name"], ("", ""))
        name, device = step["op"] or step["name"], step["device"].replace(":", "")
        call = {"Duration (us)": Duration(step["duration_us"]), "Name": name, "Device": device, "Count": Count(1),
                "Percent": Percent(100 * step["duration_us"] / total), "Argument Shapes": shapes, "Hash": of}
        calls.append(call)
        begin, end = step["start_us"], step["start_us"] + step["duration_us"]
        first, last = devices.get(device, (begin, end))
        devices[device] = min(first, begin), max(last, end)
    metrics = {device: {"Duration (us)": Duration(end - begin), "Percent": Percent(100 * (end - begin) / total),
                        "Count": Count(1)} for device, (begin, end) in devices.items()}
    return Report(calls, metrics, configuration)
