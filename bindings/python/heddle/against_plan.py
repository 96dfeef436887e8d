"""Which operators take longer than on another runtime, and what in the plan of a model is behind it."""

from __future__ import annotations

from typing import Any, Sequence

from .plan import Plan, _parts

_HEAVY = ("ConvTranspose", "Conv", "Gemm", "MatMul", "Attention", "LSTM", "GRU", "RNN", "LayerNormalization", "Softmax")
_SAME = {"QuickGelu": "Sigmoid", "BiasGelu": "Gelu", "FastGelu": "Gelu", "SkipLayerNormalization": "LayerNormalization",
         "ReorderInput": "Reorder", "ReorderOutput": "Reorder", "NhwcMaxPool": "MaxPool", "MultiHeadAttention": "Attention",
         "SimplifiedLayerNormalization": "RMSNormalization", "SkipSimplifiedLayerNormalization": "RMSNormalization",
         "TransposeMatMul": "MatMul", "MatMulIntegerToFloat": "MatMulInteger", "DynamicQuantizeMatMul": "MatMulInteger",
         "BiasSoftmax": "Softmax", "QAttention": "Attention", "host_copy": "copies", "h2d": "copies", "d2h": "copies",
         "d2d": "copies", "peer": "copies", "MemcpyToHost": "copies", "MemcpyFromHost": "copies"}


def family_of(op: str) -> str:
    """The operator that a step counts as: of a fused one the heaviest in it, else the first."""
    parts = [_SAME.get(one, one) for one in op.split("+")]
    parts = [one[5:] if one.startswith("Fused") and one != "FusedElementwise" else one for one in parts]
    for heavy in _HEAVY:
        if heavy in parts:
            return heavy
    return parts[0]


def theirs_by_family(nodes: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Microseconds, and the names of their operators."""
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        one = found.setdefault(family_of(node["op"]), {"us": 0.0, "ops": {}})
        one["us"] += node["us"]
        one["ops"][node["op"]] = one["ops"].get(node["op"], 0) + 1
    return found


def losers_of(ours: dict[str, float], theirs: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that take longer by 1 % of the run or more, those that lose most first."""
    least = 0.01 * sum(ours.values())
    rows = []
    for family, took in ours.items():
        other = theirs.get(family)
        longer = took - (other["us"] if other is not None else 0.0)
        if longer > least:
            rows.append({"operator": family, "us": took, "against_us": other["us"] if other is not None else None,
                         "longer_us": longer})
    return sorted(rows, key=lambda row: -row["longer_us"])


def _regions(plan: Plan) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The regions by their labels, each with the plan that it is of."""
    return {region["label"]: (region, part) for part in _parts(plan.json) for region in part.get("regions", [])}


def _reorders(region: dict[str, Any], part: dict[str, Any]) -> list[str]:
    """The changes of layout right before and after a region."""
    ins, outs = set(region["inputs"]), set(region["outputs"])
    return [one["label"] for one in part["regions"]
            if one["kind"] == "reorder" and (ins & set(one["outputs"]) or outs & set(one["inputs"]))]


def _cause(row: dict[str, Any], region: dict[str, Any], part: dict[str, Any], took: dict[str, float]) -> str:
    names = {node["id"]: node for node in part["nodes"]}
    nodes = [names[i]["op"] for i in region["nodes"] if i in names]
    words = [f"'{row['name']}' {row['duration_ns'] / 1e3:.1f} us on {row['device']}"]
    words.append("a step of its own, fused with nothing" if len(nodes) == 1 else f"one step of {'+'.join(nodes)}")
    words.append(f"reads {', '.join(region['reads']) or 'nothing'}, writes {', '.join(region['writes']) or 'nothing'}")
    reorders = _reorders(region, part)
    if reorders:
        words.append(f"{len(reorders)} changes of layout beside it take {sum(took.get(one, 0.0) for one in reorders):.1f} us")
    causes = {names[i]["cause"] for i in region["nodes"] if i in names}
    words.append(f"placed by {', '.join(sorted(causes))}")
    return "; ".join(words)


def causes_of(families: Sequence[str], rows: Sequence[dict[str, Any]], plan: Plan,
              theirs: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each operator what the plan chose for its three longest steps, and what the other runtime has in their place."""
    regions = _regions(plan)
    took: dict[str, float] = {}
    for row in rows:
        took[row["name"]] = took.get(row["name"], 0.0) + row["duration_ns"] / 1e3
    found = {}
    for family in families:
        steps = sorted((row for row in rows if family_of(row["op"]) == family), key=lambda row: -row["duration_ns"])
        words = [_cause(row, *regions[row["name"]], took) if row["name"] in regions
                 else f"'{row['name']}' {row['duration_ns'] / 1e3:.1f} us on {row['device']}" for row in steps[:3]]
        other = theirs.get(family)
        words.append("onnxruntime: " + (", ".join(f"{count} x {op}" for op, count in sorted(other["ops"].items())) if other
                                        else "no such step: it is fused into others, or left out"))
        found[family] = words
    return found
