"""Every operator runs on accelerators in every type that it has on cpu, but for those in REASONS. ONNX's own node cases, with
each type parameter in each of the types that ONNX allows for it, are planned for opencl, cuda and rocm, which have one
planner: the plugin planned (tests/kernels) makes its plans without a device. The plugin vulkan is asked too where there is
such a device. HEDDLE_TYPES=all tries every combination of types and every case; HEDDLE_ONNX_CASE picks operators by name.

labels: kernels ctypes
timeout: 1200
"""
import os
import subprocess
import sys
import tempfile

import pytest
import type_cases
from tool_case import BUILD, SOURCE

import lavapipe

PLANNED = BUILD / "tests" / "kernels" / "libheddle_plugin_planned.so"
# Operators that no accelerator runs, and why; docs/operators.md has the same, as has tests/unit/test_docs_operators.c.
REASONS = dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), "the shape of the result depends on data")


def probe(device, every):
    """Prints what the device refuses of what cpu takes, a line each, and at last how much cpu takes."""
    import heddle
    import heddle.errors
    context = heddle.Context({"planned.onednn": "off", "log": "off"}) if device.startswith("planned") else heddle.Context({"log": "off"})
    taken = 0

    def plan(model, on):
        loaded = heddle.load(model, devices=on, context=context)
        loaded.explain("text")  # which makes a plan where loading did not
        loaded.close()

    for op, cases in sorted(type_cases.node_cases(type_cases.wanted_operators()).items()):
        if op in REASONS:
            continue
        seen = set()
        for node, values, types in cases:
            parameters = type_cases.Parameters(node)
            for chosen, named in type_cases.combinations(node, every):
                words = ", ".join(f"{parameters.labels[k]} {t.__name__}" for k, t in chosen.items())
                words += f", {parameters.naming} {named.__name__}" if named else ""
                if words in seen:
                    continue
                first = [n for n in node.input[:1] if n]
                model, _ = type_cases.model_of(node, parameters, values, types, chosen, named, as_inputs=first)
                try:
                    plan(model, "cpu")
                except (heddle.Error, ValueError):
                    continue  # cpu has it neither, or the case's values are none for this type
                seen.add(words)
                taken += 1
                try:
                    plan(model, device)
                except heddle.errors.UnsupportedError as e:
                    print("refused:", op, "|", words, "|", str(e).replace("\n", " ")[:400], flush=True)
    print("taken:", taken)


def refused(device, **environment):
    """What the device refuses, and how many nodes cpu takes."""
    if not type_cases.BINDING.exists():
        pytest.skip("the Python binding is not built")
    how = "all" if type_cases.EVERY else "short"
    done = subprocess.run([sys.executable, os.path.abspath(__file__), device, how], text=True, capture_output=True, timeout=1100,
                          env={**os.environ, **type_cases.CHILD, **environment})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = done.stdout.splitlines()
    return [line for line in lines if line.startswith("refused:")], int(lines[-1].removeprefix("taken:"))


def test_plans_of_every_type(tmp_path):
    if not PLANNED.exists():
        pytest.skip("the plugin planned is not built")
    found, taken = refused("planned:0", HEDDLE_PLANNED=str(tmp_path), HEDDLE_PLUGIN_PATH=str(PLANNED.parent))
    assert found == []
    assert taken > 1000 or type_cases.wanted_operators()


def test_vulkan_has_every_type():
    if not type_cases.EVERY:
        pytest.skip("HEDDLE_TYPES=all tries vulkan too")
    lavapipe.need()
    found, taken = refused("vulkan:0", **lavapipe.ENV)
    assert found == []
    assert taken > 1000 or type_cases.wanted_operators()


def test_reasons_are_written():
    rows = [line.split("|") for line in (SOURCE / "docs" / "operators.md").read_text().splitlines() if line.startswith("| ")]
    assert {row[1].strip() for row in rows if len(row) > 5 and row[4].strip() == "no"} == set(REASONS)


if __name__ == "__main__":
    probe(sys.argv[1], sys.argv[2] == "all")
