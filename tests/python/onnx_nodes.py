"""Runs ONNX's node cases on a device, with all of their tensors as inputs, so that shape operands that are inputs are met
too. What is left out is printed with the reason; HEDDLE_ONNX_CASE picks cases by a part of their name.

onnx_passed.txt has the names of the cases that passed on cpu once; HEDDLE_ONNX_RECORD=1 adds those that pass now.
"""
import collections
import json
import os
import tempfile
import zlib

import capi
import numpy as np
import onnx
import onnx_cases
from reference import io

EUNSUPPORTED = 7
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx_passed.txt")


# Two units in the last place of the narrow types: ONNX's reference rounds after each step of an operator, we at the end.
UNIT = {"float16": 2.0**-9, "bfloat16": 2.0**-6}


RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def is_random(model, inputs):
    """Whether numbers of a case are random, so that only types and shapes are compared: ONNX's come from another generator."""
    named = {v.name: x for v, x in zip(model.graph.input, inputs)}
    for n in model.graph.node:
        if n.op_type == "Dropout" and len(n.input) > 2 and np.any(named.get(n.input[2], False)):
            return not n.input[1] or named[n.input[1]] != 0
        if n.op_type in RANDOM:
            return True
    return False


def compare(got, want, rtol, atol, is_random=False):
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {i} is {g.dtype}{list(g.shape)}, expected {w.dtype}{list(w.shape)}"
        if is_random:
            continue
        if w.dtype.name.startswith(("float8", "float4")):  # of the same numbers; NaN has several codes
            if not np.array_equal(g.astype(np.float64), w.astype(np.float64), equal_nan=True):
                return f"output {i} differs"
        elif w.dtype.kind == "f" or w.dtype.name == "bfloat16":
            unit = UNIT.get(w.dtype.name, 0)
            g, w = (x.astype(np.float64) for x in (g, w))
            if not np.allclose(g, w, rtol=max(rtol, 1e-3, unit), atol=max(atol, 1e-5, unit / 16), equal_nan=True):
                return f"output {i} differs by up to {np.nanmax(np.abs(g - w))}"
        elif not np.array_equal(g, w):
            return f"output {i} differs"
    return None


def outcome(ctx, device, model, inputs, outputs, rtol, atol):
    """None where a case passes, (reason, False) where it is left out, (what is wrong, True) where it fails."""
    try:
        onnx_cases.plain(model, list(inputs) + list(outputs))
        if onnx_cases.has_graphs(model):
            problem = compare(run_file(ctx, device, model, inputs), outputs, rtol, atol)
            return (problem, True) if problem is not None else None
        model, opset = onnx_cases.restated(model)
        problem = compare(run(ctx, device, model, opset, inputs), outputs, rtol, atol, is_random(model, inputs))
        return (problem, True) if problem is not None else None
    except onnx_cases.LeftOut as e:
        return str(e), False
    except capi.HeddleError as e:
        if e.status == EUNSUPPORTED:
            return "refused: " + str(e).split(": ", 1)[1], False
        return str(e), True


def run_file(ctx, device, model, inputs):
    """As an .onnx file: cases whose nodes run graphs, which graph() of onnx_cases does not write."""
    m = e = None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.onnx")
        onnx.save(model, path)
        try:
            m = capi.Model.load(ctx, path, devices=device)
            e = capi.Executor(m)
            for v, x in zip(model.graph.input, inputs):
                e.set_input(v.name, np.asarray(x))
            e.run()
            return e.outputs()
        finally:
            for x in (e, m):
                if x is not None:
                    x.close()


def run(ctx, device, model, opset, inputs):
    named = {v.name: np.asarray(x) for v, x in zip(model.graph.input, inputs)}
    graph, params = onnx_cases.graph(model, opset, named)
    g = capi.Graph(json.dumps(graph))
    p = capi.Params(io.params_blob(params)) if params else None
    m = e = None
    try:
        m = capi.Model(ctx, g, p, devices=device)
        e = capi.Executor(m)
        for name, array in named.items():
            e.set_input(name, array)
        e.run()
        return e.outputs()
    finally:
        for x in (e, m, p, g):
            if x is not None:
                x.close()


def cases(part=0, parts=1):
    """The cases, or a part of them; those that begin with one operator are in one part."""
    for name, model, inputs, outputs, rtol, atol in onnx_cases.load():
        used = {n.op_type for n in model.graph.node}
        if not used or used - onnx_cases.OPERATORS:
            continue
        if "_expanded" in name and max(o.version for o in model.opset_import) > 18:
            continue  # the functions of later opsets in parts: cpu runs them, and device code takes long to compile
        try:
            onnx_cases.plain(model, list(inputs) + list(outputs))
        except onnx_cases.LeftOut:
            continue
        if zlib.crc32(model.graph.node[0].op_type.encode()) % parts != part:
            continue
        yield name, model, inputs, outputs, rtol, atol
        older = onnx_cases.with_axes_attribute(model, inputs)
        if older is not None:
            yield name + "@13", older[0], older[1], outputs, rtol, atol


def check(device, floor, part=0, parts=1, **settings):
    """Every case whose operators libheddle has itself passes or is refused, and at least floor of them pass."""
    only = os.environ.get("HEDDLE_ONNX_CASE")
    ctx = capi.Context(**settings)
    passed, failed, left_out = 0, [], collections.Counter()
    for name, *case in cases(part, parts):
        if only and only not in name:
            continue
        problem = outcome(ctx, device, *case)
        if problem is None:
            passed += 1
        elif problem[1]:
            failed.append(f"{name}: {problem[0]}")
        else:
            left_out[problem[0][-110:]] += 1
    ctx.close()
    print(f"\n{device}: {passed} passed, {len(failed)} failed, {sum(left_out.values())} left out")
    for text, count in left_out.most_common():
        print(f"  left out {count:4}  {text}")
    for text in failed:
        print(f"  failed  {text}")
    assert not failed
    assert only or passed >= floor, f"{passed} cases pass on {device}, and {floor} did"


def check_all(device, floor, every=1, **settings):
    """Every case of the package, or every n-th: those that passed once pass, at least floor pass, none gives something
    else than is expected; the others are refused or left out, each with its reason."""
    only = os.environ.get("HEDDLE_ONNX_CASE")
    with open(RECORD) as f:
        recorded = set(f.read().split())
    ctx = capi.Context(**settings)
    passed, wrong, left_out, lost = set(), [], [], []
    for i, (name, *case) in enumerate(onnx_cases.load()):
        if (only and only not in name) or i % every != 0:
            continue
        problem = outcome(ctx, device, *case)
        if problem is None:
            passed.add(name)
        elif problem[1]:
            wrong.append(f"{name}: {problem[0]}")
        else:
            left_out.append(f"{name}: {problem[0]}")
        if problem is not None and name in recorded:
            lost.append(f"{name}: {problem[0]}")
    ctx.close()
    print(f"\n{device}: {len(passed)} passed, {len(wrong)} failed, {len(left_out)} left out")
    for word, lines in ("left out", left_out), ("failed", wrong):
        for line in lines:
            print(f"  {word}  {line}")
    if os.environ.get("HEDDLE_ONNX_RECORD") == "1":
        with open(RECORD, "w") as f:
            f.write("\n".join(sorted(recorded | passed)) + "\n")
    assert not lost, f"cases that passed once: {lost}"
    assert not wrong
    assert only or len(passed) >= floor, f"{len(passed)} cases pass on {device}, and {floor} did"
