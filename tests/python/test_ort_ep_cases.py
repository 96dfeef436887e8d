"""ONNX's node cases through libheddle_ort_ep in the real ONNX Runtime, with the outputs that ONNX gives.

labels: slow soak
timeout: 900
"""
import numpy as np
import onnx_cases
import test_ort_ep as ep

devices, pytestmark = ep.devices, ep.pytestmark


def test_onnx_cases(devices):
    done, claimed, bad = 0, 0, []
    for name, model, inputs, outputs, rtol, atol in onnx_cases.load():
        try:
            named = {v.name: a for v, a in zip(model.graph.input, inputs)}
            theirs = ep.reference(model, named)  # what ONNX Runtime itself can run, and be given from numpy
        except Exception:  # its classes of errors are many
            continue
        session = ep.session_of(devices, model)
        got = session.run(None, named)
        done += 1
        claimed += bool(ep.claimed(session))
        for a, b, c in zip(got, outputs, theirs):
            if not isinstance(a, np.ndarray) or a.dtype == object:
                continue
            near = dict(rtol=max(rtol, 1e-3), atol=max(atol, 1e-3), equal_nan=True)
            if a.shape != np.shape(b) or not (np.allclose(a, b, **near) or np.allclose(a, c, **near)):
                bad.append(name)
    print(f"{done} cases, {claimed} with nodes of Heddle's")
    assert done >= 1500 and claimed >= 1300 and not bad, (done, claimed, bad)
