"""ONNX's node cases that graphs of JSON do not state (strings, sequences, optionals, other domains), through heddle.load:
each gives what is expected or is refused, and no fewer pass than did. Together with those of tests/python/onnx_passed.txt
1,856 of 1,884 pass.

labels: slow
"""
import collections
import pathlib

import heddle
import numpy as np
from heddle import errors
from onnx.backend.test.case.node import collect_testcases

FLOOR = 79
RECORDED = pathlib.Path(__file__).parents[3] / "tests" / "python" / "onnx_passed.txt"


def same(got, want):
    if want is None or isinstance(want, list):
        if want is None or not isinstance(got, list):
            return got is None and want is None
        return len(got) == len(want) and all(same(g, w) for g, w in zip(got, want))
    want = np.asarray(want)
    if want.dtype.kind in "OUS":
        return got.shape == want.shape and bool(np.all(got == want))
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
    passed, left_out, recorded = [], collections.Counter(), set(RECORDED.read_text().split())
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets or case.name in recorded:
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
