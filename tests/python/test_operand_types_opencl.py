"""Operands of another type than the first: every type that ONNX allows for them runs on opencl as on cpu, but for those that
docs/operators.md lists. ONNX's own node cases, with the operands of each other type parameter cast to each of its types.
HEDDLE_ONNX_CASE picks operators by name, with commas between.

labels: slow soak
timeout: 3600
"""
import collections
import os
import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import defs, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from tool_case import SOURCE

import pocl

TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "bool": np.bool_,
         **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)}}
# (operator, operand, type) that an accelerator refuses beside the first operand's type: docs/operators.md has the same.
REFUSED = {("Attention", "V", "float64"), ("Attention", "attn_mask", "float64"), ("LinearAttention", "past_state", "float64"),
           ("QuantizeLinear", "y_scale", "float16"), ("QuantizeLinear", "y_scale", "bfloat16"),
           ("QuantizeLinear", "y_scale", "float64"), ("Resize", "roi", "float16"), ("Resize", "roi", "float64"),
           *(("Attention", "attn_mask", f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))}


def node_cases():
    """{operator: [(node, {name: value}, {output: type})]} of cases with one node and tensors only."""
    wanted = [name for name in os.environ.get("HEDDLE_ONNX_CASE", "").split(",") if name]
    found = collections.defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or case.model.functions or (wanted and graph.node[0].op_type not in wanted):
            continue
        node, inputs = graph.node[0], case.data_sets[0][0]
        if node.domain != "" or any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute) or not all(isinstance(x, np.ndarray) for x in inputs):
            continue
        types = {v.name: v.type.tensor_type.elem_type for v in graph.output}
        found[node.op_type].append((node, dict(zip([v.name for v in graph.input], inputs)), types))
    return found


def variants(op, node, values, types):
    """(operands, type, model, inputs) for each type of each type parameter that is not the first operand's."""
    schema = defs.get_schema(op)
    formal = [schema.inputs[min(k, len(schema.inputs) - 1)] for k in range(len(node.input))]
    here = [(f, name) for f, name in zip(formal, node.input) if name]
    for parameter in dict.fromkeys(f.type_str for f, _ in here):
        names = {name: f.name for f, name in here if f.type_str == parameter}
        if here[0][1] in names:
            continue
        for text in next(f.types for f, _ in here if f.type_str == parameter):
            to = TYPES.get(text.removeprefix("tensor(").removesuffix(")"))
            if to is None:
                continue
            with np.errstate(all="ignore"):
                cast = {name: (values[name] != 0 if to is np.bool_ else values[name].astype(to)) for name in names}
            inputs = {k: v for k, v in values.items() if k not in names}
            made = list(schema.outputs) + [schema.outputs[-1]] * len(node.output)
            result = {name: helper.np_dtype_to_tensor_dtype(np.dtype(to)) if f.type_str == parameter else types.get(name, 1)
                      for f, name in zip(made, node.output) if name}
            outputs = [onnx.ValueInfoProto(name=k, type=onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=t))) for k, t in result.items()]
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()],
                                      outputs, [numpy_helper.from_array(v, k) for k, v in cast.items()])
            yield sorted(names.values()), np.dtype(to).name, helper.make_model(graph, opset_imports=[helper.make_opsetid("", defs.onnx_opset_version())], ir_version=10), inputs


def test_operands_of_other_types():
    pocl.need()
    pocl.in_process()
    heddle = pytest.importorskip("heddle")
    pytest.importorskip("heddle.errors")
    refused, wrong, runs, seen = set(), [], 0, set()
    for op, cases in sorted(node_cases().items()):
        for node, values, types in cases:
            for operands, kind, model, inputs in variants(op, node, values, types):
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
    assert {row for row in refused if row not in REFUSED and not (row[0] == "Attention" and row[1] == "past_value")} == set(), refused
    text = (SOURCE / "docs" / "operators.md").read_text()
    assert all(f"{op} (" in text for op, *_ in REFUSED)
