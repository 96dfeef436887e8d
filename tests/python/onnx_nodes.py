"""Runs ONNX's node cases on a device, with all of their tensors as inputs, so that shape operands that are inputs are met
too. What is left out is printed with the reason; HEDDLE_ONNX_CASE picks cases by a part of their name.
"""
import collections
import json
import os
import zlib

import capi
import numpy as np
import onnx_cases
from reference import io

EUNSUPPORTED = 7


def compare(got, want, rtol, atol):
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.asarray(w)
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"output {i} is {g.dtype}{list(g.shape)}, expected {w.dtype}{list(w.shape)}"
        if w.dtype.kind == "f":
            if not np.allclose(g, w, rtol=max(rtol, 1e-3), atol=max(atol, 1e-5), equal_nan=True):
                return f"output {i} differs by up to {np.nanmax(np.abs(g - w))}"
        elif not np.array_equal(g, w):
            return f"output {i} differs"
    return None


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
        if any(not isinstance(x, np.ndarray) and not np.isscalar(x) for x in list(inputs) + list(outputs)):
            continue
        if zlib.crc32(model.graph.node[0].op_type.encode()) % parts != part:
            continue
        yield name, model, inputs, outputs, rtol, atol
        older = onnx_cases.with_axes_attribute(model, inputs)
        if older is not None:
            yield name + "@13", older[0], older[1], outputs, rtol, atol


def check(device, floor, part=0, parts=1, **settings):
    """Every case whose operators Heddle has passes or is refused, and at least floor of them pass."""
    only = os.environ.get("HEDDLE_ONNX_CASE")
    ctx = capi.Context(**settings)
    passed, failed, left_out = 0, [], collections.Counter()
    for name, model, inputs, outputs, rtol, atol in cases(part, parts):
        if only and only not in name:
            continue
        try:
            if name == "test_wrap_pad":
                raise onnx_cases.LeftOut("the mode wrap is of opset 19")
            model, opset = onnx_cases.restated(model)
            problem = compare(run(ctx, device, model, opset, inputs), outputs, rtol, atol)
        except onnx_cases.LeftOut as e:
            left_out[str(e)] += 1
            continue
        except capi.HeddleError as e:
            if e.status == EUNSUPPORTED:
                left_out["refused: " + str(e).split(": ", 1)[1][-110:]] += 1
                continue
            problem = str(e)
        if problem is None:
            passed += 1
        else:
            failed.append(f"{name}: {problem}")
    ctx.close()
    print(f"\n{device}: {passed} passed, {len(failed)} failed, {sum(left_out.values())} left out")
    for text, count in left_out.most_common():
        print(f"  left out {count:4}  {text}")
    for text in failed:
        print(f"  failed  {text}")
    assert not failed
    assert only or passed >= floor, f"{passed} cases pass on {device}, and {floor} did"
