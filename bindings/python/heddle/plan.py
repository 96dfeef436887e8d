"""Plans: where each node of a model runs and why, as text, as data and as a picture."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from typing import Any, Callable

__all__ = ["Plan"]


class Plan:
    """Where each node runs and why, which copies there are, and how much memory is taken.

    str() is the text that `heddle plan` prints; `json` is the same as data (docs/cli.md has its keys), `dot` is for Graphviz.
    In a notebook it is a picture: drawn by Graphviz's program dot where that is installed, else a table.
    """

    def __init__(self, explain: Callable[[str], str]):
        self._explain = explain
        self._told: dict[str, str] = {}

    def _tell(self, form: str) -> str:
        if form not in self._told:
            self._told[form] = self._explain(form)
        return self._told[form]

    @property
    def text(self) -> str:
        """For people: nodes with device and cause, copies with route and bytes, streams, memory."""
        return self._tell("text")

    @property
    def json(self) -> dict[str, Any]:
        """All of the plan: devices, nodes, steps, streams, memory, every access with its bytes."""
        return json.loads(self._tell("json"))

    @property
    def dot(self) -> str:
        """For Graphviz: nodes coloured by device, copies as edges."""
        return self._tell("dot")

    @property
    def svg(self) -> str | None:
        """The picture, or None where Graphviz's program dot is not installed. Starts it, and waits for it."""
        if "svg" not in self._told:
            program = shutil.which("dot")
            if program is None:
                return None
            done = subprocess.run([program, "-Tsvg"], input=self.dot.encode(), capture_output=True, check=False)
            if done.returncode != 0:
                return None
            drawn = done.stdout.decode("utf-8", "replace")
            self._told["svg"] = drawn[max(drawn.find("<svg"), 0):]
        return self._told["svg"]

    @property
    def placement(self) -> list[dict[str, Any]]:
        """A dict for each node: name, op, device (its name) and cause. Of a model in stages, of all that are planned."""
        rows = []
        for plan in _parts(self.json):
            names = {device["id"]: device["name"] for device in plan["devices"]}
            rows += [{"name": node["name"], "op": node["op"], "device": names.get(node["device"], "host"),
                      "cause": node["cause"]} for node in plan["nodes"]]
        return rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: .svg, .dot, .json, or the text. ValueError for .svg without Graphviz. OSError."""
        name = os.fspath(path)
        form = os.path.splitext(name)[1][1:]
        content = self.svg if form == "svg" else self._tell(form if form in ("dot", "json") else "text")
        if content is None:
            raise ValueError("a picture is drawn by Graphviz's program dot, which is not installed; save a .dot file instead")
        with open(name, "w", encoding="utf-8") as file:
            file.write(content)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        rows = self.placement
        return f"<heddle.Plan: {len(rows)} nodes on {', '.join(sorted({row['device'] for row in rows}))}>"

    def _repr_svg_(self) -> str | None:
        return self.svg

    def _repr_html_(self) -> str | None:
        if self.svg is not None:
            return None  # the picture is shown
        cells = [[row[key] for key in ("name", "op", "device", "cause")] for row in self.placement]
        return table(["node", "operator", "device", "cause"], cells)


def _parts(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The plans in one: itself, or those of a model in stages that are there already."""
    if "stages" not in plan:
        return [plan]
    return [part for stage in plan["stages"] if stage["plan"] is not None for part in _parts(stage["plan"])]


def table(head: list[str], rows: list[list[Any]]) -> str:
    """An HTML table; all of it is text, whatever a file's names are."""
    def line(tag: str, cells: list[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return f"<table><thead>{line('th', head)}</thead><tbody>{''.join(line('td', row) for row in rows)}</tbody></table>"
