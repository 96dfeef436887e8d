"""Operands of another type than the first: every type that ONNX allows for them runs on opencl as on cpu. ONNX's own
node cases, with the operands of each other type parameter cast to each of its types. HEDDLE_ONNX_CASE picks operators by name, with commas between.

labels: slow soak
timeout: 3600
"""
import sys

import numpy as np
import pytest
import type_cases

import pocl


def variants(node, values, types):
    """(operands, type, model, inputs) for each type of each type parameter that is not the first operand's."""
    parameters = type_cases.Parameters(node)
    for chosen, named in type_cases.combinations(node):
        for parameter, to in chosen.items():
            names = parameters.inputs[parameter]
            if node.input[0] not in names and to in type_cases.PLAIN.values():
                yield sorted(names), np.dtype(to).name, *type_cases.model_of(node, parameters, values, types, chosen, named)


def test_operands_of_other_types():
    pocl.need()
    pocl.in_process()
    sys.path.insert(0, str(type_cases.BINDING))
    heddle = pytest.importorskip("heddle")
    pytest.importorskip("heddle.errors")
    refused, wrong, runs, seen = set(), [], 0, set()
    for op, cases in sorted(type_cases.node_cases(type_cases.wanted_operators()).items()):
        for node, values, types in cases:
            for operands, kind, model, inputs in variants(node, values, types):
                key = op, tuple(operands), kind, len(values), str(next(iter(values.values())).dtype)
                if key in seen:
                    continue
                try:
                    expected = heddle.load(model, devices="cpu").run(None, inputs)
                except (heddle.Error, ValueError):
                    continue  # the values of the case are none for this type, or cpu has it neither
                seen.add(key)
                runs += 1
                try:
                    found = heddle.load(model, devices="opencl:0").run(None, inputs)
                except heddle.errors.UnsupportedError:
                    refused |= {(op, operand, kind) for operand in operands}
                    continue
                for a, b in zip(map(np.asarray, expected), map(np.asarray, found)):
                    close = a.dtype == b.dtype and a.shape == b.shape and (
                        np.allclose(a.astype(float), b.astype(float), rtol=2e-2, atol=1e-2, equal_nan=True) if a.dtype.kind in "fV" else np.mean(a != b) <= 0.01)
                    if not close:
                        wrong.append(key)
    assert wrong == [] and runs > 0
    assert refused == set()
