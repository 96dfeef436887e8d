"""Special values through rows of two and three nodes, which devices make one step of and the optimiser rewrites: with that,
and with it off on the plain C kernels, the same NaN, infinities and numbers come out.

labels: ctypes
"""
import lavapipe

lavapipe.in_process()

import numpy as np  # noqa: E402
import value_cases as vc  # noqa: E402
from test_rare_operators import run  # noqa: E402

import capi  # noqa: E402

ACTIVATIONS = [("Relu", {}), ("LeakyRelu", {}), ("Elu", {}), ("Sigmoid", {}), ("Tanh", {}), ("HardSigmoid", {}),
               ("HardSwish", {}), ("Neg", {}), ("Abs", {}), ("Sqrt", {}), ("Exp", {}), ("Log", {}), ("Erf", {})]
PAIRS = ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow"]


def chains():
    """Nodes and operands: every pair of specials through a binary operator, a convolution, a product, then activations."""
    s = np.resize(vc.specials(np.dtype("float32")), 24)
    x, y = np.broadcast_arrays(s[:, None], s[None, :])
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for op in PAIRS:
        for act, attrs in ACTIVATIONS:
            yield [(op, {}, ["x", "y"], ["t"]), (act, attrs, ["t"], ["z"])], {"x": x, "y": y}
    for low, high in ((-1, 1), (1, -1), (np.nan, 1), (-1, np.nan), (-np.inf, np.inf)):
        yield ([("Add", {}, ["x", "y"], ["t"]), ("Clip", {}, ["t", "low", "high"], ["z"])],
               {"x": x, "y": y, "low": np.float32(low).reshape(()), "high": np.float32(high).reshape(())})
    image = np.resize(s, (1, 4, 6, 6)).astype(np.float32)
    image[np.isfinite(image) & (np.abs(image) > 1e10)] = 3
    weights = np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1)
    for act, attrs in ACTIVATIONS:
        yield [("Conv", {}, ["x", "w"], ["t"]), (act, attrs, ["t"], ["z"])], {"x": image, "w": weights}


def one(ctx, nodes, inputs, device):
    return run(ctx, nodes, inputs, ["z"], devices=device)[0]


def test_chains():
    plain, fused = capi.Context(cpu__onednn="off", cpu__fuse="0", optimize="off"), capi.Context(cpu__onednn="always")
    devices = [(fused, "cpu"), (capi.Context(), "sim:0")]
    if lavapipe.there():
        devices.append((capi.Context(), "vulkan:0"))
    wrong = []
    for nodes, inputs in chains():
        want = one(plain, nodes, inputs, "cpu")
        for ctx, device in devices:
            got = one(ctx, nodes, inputs, device)
            near = np.isclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
            # What is flushed to 0 below the least normal number has another reciprocal and another logarithm.
            tiny = (np.abs(inputs["x"]) < 2.4e-38) & (inputs["x"] != 0)
            if "y" in inputs:
                tiny = tiny | ((np.abs(inputs["y"]) < 2.4e-38) & (inputs["y"] != 0))
            near |= tiny & (device == "vulkan:0")
            if not near.all():
                at = tuple(np.argwhere(~near)[0])
                here = {k: v[at] if v.shape == got.shape else v.reshape(-1)[:4] for k, v in inputs.items()}
                wrong.append(f"{device}: {[n[0] for n in nodes]} of {here} is {got[at]} and alone {want[at]}")
    assert not wrong, "\n".join(wrong[:40])
