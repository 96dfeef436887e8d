"""ONNX's node cases with strings, sequences, optionals and operators of ai.onnx.ml, through heddle.load: each gives what is
expected or is refused, and no fewer pass than did. tests/python/onnx_nodes.py has the others.

labels: slow
"""
import collections

import heddle
import numpy as np
from heddle import errors
from onnx import TensorProto
from onnx.backend.test.case.node import collect_testcases

FLOOR = 21
DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}


def kind(value):
    return value.type.WhichOneof("value")


def is_ours(model):
    values = [*model.graph.input, *model.graph.output]
    strings = any(kind(v) == "tensor_type" and v.type.tensor_type.elem_type == TensorProto.STRING for v in values)
    other = any(kind(v) != "tensor_type" for v in values)
    used = {node.op_type for node in model.graph.node}
    parts = any("Sequence" in op or "Optional" in op for op in used)
    domains = {node.domain for node in model.graph.node}
    return domains <= DOMAINS and (strings or other or parts or "ai.onnx.ml" in domains)


def same(got, want):
    if isinstance(want, np.ndarray) and want.dtype.kind in "OU":
        return got.shape == want.shape and bool(np.all(got == want))
    want = np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if want.dtype.kind == "f":
        return np.allclose(got, want, rtol=1e-3, atol=1e-5, equal_nan=True)
    return np.array_equal(got, want)


def outcome(case):
    inputs, outputs = case.data_sets[0]
    names = [v.name for v in case.model.graph.input]
    try:
        got = heddle.load(case.model, devices="cpu").run(None, dict(zip(names, inputs)))
    except (errors.UnsupportedError, errors.InvalidError) as error:
        return str(error)
    assert len(got) == len(outputs), case.name
    assert all(same(g, w) for g, w in zip(got, outputs)), f"{case.name}: {got}, expected {outputs}"
    return None


def test_nodes():
    passed, left_out = [], collections.Counter()
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets or not is_ours(case.model):
            continue
        problem = outcome(case)
        if problem is None:
            passed.append(case.name)
        else:
            left_out[f"{'+'.join(sorted({n.op_type for n in case.model.graph.node}))}: {problem[-150:]}"] += 1
    print(f"\n{len(passed)} passed, {sum(left_out.values())} refused")
    for words, count in left_out.most_common():
        print(f"  refused {count:3}  {words}")
    assert len(passed) >= FLOOR
