"""What the debug executor saw of a graph's nodes, times and values, as the files and the table that TVM writes."""
from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from ...runtime import NDArray, save_param_dict

GRAPH_DUMP_FILE_NAME = "_tvmdbg_graph_dump.json"
CHROME_TRACE_FILE_NAME = "_tvmdbg_execution_trace.json"


class DebugResult:
    """Nodes of a graph with what was seen of them; writes the graph's dump when it is made.

    graph_json: the graph's JSON; dump_path: a folder that is there. ValueError: it is no graph of TVM's.
    """

    def __init__(self, graph_json: str, dump_path: str):
        self._dump_path = dump_path
        self._output_tensor_list: list[NDArray] = []
        self._time_list: list[list[float]] = []
        graph = json.loads(graph_json)
        self._nodes_list: list[dict[str, Any]] = graph["nodes"]
        self._shapes_list = graph["attrs"]["shape"]
        self._dtype_list = graph["attrs"]["dltype"]
        self._rows: list[int] = graph["node_row_ptr"]
        self._describe_nodes()
        with open(os.path.join(dump_path, GRAPH_DUMP_FILE_NAME), "w", encoding="utf-8") as f:
            json.dump(graph, f, indent=4)

    def _describe_nodes(self) -> None:
        """Each node gets the names of its inputs, its function as op ("param" for inputs), and its first output's shape
        and type."""
        names = [node["name"] for node in self._nodes_list]
        for i, node in enumerate(self._nodes_list):
            is_input, attrs, entry = node["op"] == "null", node.get("attrs") or node.get("attr") or {}, self._rows[i]
            node["inputs"] = [names[k[0]] for k in node.get("inputs") or [] if k[0] >= 0]  # below 0: absent
            if is_input:
                node["op"], attrs = "param", {}
            elif node["op"] == "tvm_op":
                node["op"] = attrs["func_name"]
            else:  # an operator, whose attributes are its own
                attrs = {**attrs, "num_inputs": str(len(node["inputs"])), "num_outputs": str(self._rows[i + 1] - entry)}
            node["attrs"] = {**attrs, "T": f"type: {self._dtype_list[1][entry]}"}
            node["shape"] = self._shapes_list[1][entry]

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        """The nodes in the graph's order, each a dictionary with name, op, inputs, attrs and shape."""
        return self._nodes_list

    def get_graph_node_shapes(self) -> list[Any]:
        """["list_shape", [a shape an output of a node]]"""
        return self._shapes_list

    def get_graph_node_dtypes(self) -> list[Any]:
        """["list_str", [a dtype an output of a node]]"""
        return self._dtype_list

    def get_graph_node_output_num(self, node: dict[str, Any]) -> int:
        """How many outputs a node has."""
        return 1 if node["op"] == "param" else int(node["attrs"]["num_outputs"])

    def update_output_tensors(self, tensors: list[NDArray]) -> None:
        """Takes the values of all nodes' outputs, in order. TVM puts them behind those of earlier runs, and shows these."""
        self._output_tensor_list = list(tensors)

    def get_output_tensors(self) -> dict[str, NDArray]:
        """Values by NAME____topo-index:NODE____output-num:OUTPUT: names of nodes need not be unique."""
        keys = [f"{node['name']}____topo-index:{i}____output-num:{k}" for i, node in enumerate(self._nodes_list)
                for k in range(self.get_graph_node_output_num(node))]
        return dict(zip(keys, self._output_tensor_list))

    def dump_output_tensor(self) -> None:
        """Writes all values as a params blob."""
        with open(os.path.join(self._dump_path, "output_tensors.params"), "wb") as f:
            f.write(save_param_dict(self.get_output_tensors()))

    def dump_chrome_trace(self) -> None:
        """Writes the nodes' mean times, one after another, for Chrome's tracing: two events a node."""
        events, now = [], 0.0
        for node, times in zip(self._nodes_list, self._time_list):
            took = float(np.mean(times)) * 1e6
            events += [{"ts": ts, "tid": 1, "pid": 1, "name": node["name"], "ph": ph}
                       for ts, ph in ((now, "B"), (now + took, "E"))]
            now += took
        with open(os.path.join(self._dump_path, CHROME_TRACE_FILE_NAME), "w", encoding="utf-8") as f:
            json.dump({"displayTimeUnit": "ns", "traceEvents": events}, f)

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """A table with a line an output of a node that is no input; sort_by_time: the slowest first, and their sum."""
        means = [float(np.mean(times)) for times in self._time_list]
        total, entry, rows = sum(means), 0, []
        for node, times, mean in zip(self._nodes_list, self._time_list, means):
            count = self.get_graph_node_output_num(node)
            values = self._output_tensor_list[entry:entry + count]
            entry += count
            if node["op"] == "param":
                continue
            for value in values:
                rows.append([node["name"], node["op"], round(mean * 1e6, 3), round(100 * mean / total, 3) if total else 0.0,
                             str(tuple(value.shape)), node["attrs"]["num_inputs"], node["attrs"]["num_outputs"],
                             str([round(t * 1e6, 3) for t in times])])
        if sort_by_time:
            rows.sort(key=lambda row: -row[2])
            rows.append(["Total_time", "-", round(total * 1e6, 3), "-", "-", "-", "-", "-"])
        head = ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)"]
        rows = [head, ["-" * len(title) for title in head], *rows]
        widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
        return "\n".join("".join(str(cell).ljust(w + 2) for cell, w in zip(row, widths)) for row in rows)

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Prints the table."""
        print(self.get_debug_result(sort_by_time))
