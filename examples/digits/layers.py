"""The operators of the digits network in plain numpy, each with its forward and its backward step.
A graph is a list of nodes as in digits.json, so what is trained is, node for node, what is written out."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def _columns(x, kernel, pads):
    """Every window of x as one row: [N, H', W', C * kh * kw]."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = sliding_window_view(x, kernel, axis=(2, 3))  # N, C, H', W', kh, kw
    n, c, h, w, kh, kw = windows.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * kh * kw)


def _unbroadcast(grad, shape):
    """Sums a gradient over the axes along which its value was broadcast."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    axes = tuple(i for i, d in enumerate(shape) if d == 1 and grad.shape[i] != 1)
    return grad.sum(axis=axes, keepdims=True)


def conv(attrs, x, w, b):
    columns = _columns(x, w.shape[2:], attrs["pads"])
    y = columns @ w.reshape(len(w), -1).T + b
    return y.transpose(0, 3, 1, 2), columns


def conv_back(attrs, grad, columns, y, x, w, b):
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, len(w))
    dw = (rows.T @ columns.reshape(len(rows), -1)).reshape(w.shape)
    kh, kw = w.shape[2:]
    top, left, bottom, right = attrs["pads"]
    back = [kh - 1 - top, kw - 1 - left, kh - 1 - bottom, kw - 1 - right]
    flipped = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    dx = _columns(grad, (kh, kw), back) @ flipped.reshape(len(flipped), -1).T
    return dx.transpose(0, 3, 1, 2), dw, rows.sum(axis=0)


def max_pool(attrs, x):
    """Non-overlapping 2x2 windows: all that this network needs."""
    if attrs["kernel_shape"] != [2, 2] or attrs["strides"] != [2, 2]:
        raise ValueError("MaxPool here is 2x2 with stride 2")
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
    return windows.max(axis=(3, 5)), windows


def max_pool_back(attrs, grad, windows, y, x):
    hit = windows == y[:, :, :, None, :, None]
    share = hit / hit.sum(axis=(3, 5), keepdims=True, dtype=x.dtype)
    return ((grad[:, :, :, None, :, None] * share).reshape(x.shape),)


def softmax(attrs, x):
    e = np.exp(x - x.max(axis=attrs["axis"], keepdims=True))
    return e / e.sum(axis=attrs["axis"], keepdims=True), None


def concat_back(attrs, grad, _, y, *xs):
    cuts = np.cumsum([x.shape[attrs["axis"]] for x in xs])[:-1]
    return tuple(np.split(grad, cuts, axis=attrs["axis"]))


def gap_back(attrs, grad, _, y, x):
    return (np.broadcast_to(grad / (x.shape[2] * x.shape[3]), x.shape),)


FORWARD = {
    "Add": lambda attrs, a, b: (a + b, None),
    "Concat": lambda attrs, *xs: (np.concatenate(xs, axis=attrs["axis"]), None),
    "Conv": conv,
    "Flatten": lambda attrs, x: (x.reshape(len(x), -1), None),
    "Gemm": lambda attrs, x, w, b: (x @ w.T + b, None),  # transB = 1
    "GlobalAveragePool": lambda attrs, x: (x.mean(axis=(2, 3), keepdims=True), None),
    "MaxPool": max_pool,
    "Mul": lambda attrs, a, b: (a * b, None),
    "Relu": lambda attrs, x: (np.maximum(x, 0), None),
    "Reshape": lambda attrs, x, shape: (x.reshape(shape), None),
    "Softmax": softmax,
}

BACKWARD = {
    "Add": lambda attrs, g, _, y, a, b: (_unbroadcast(g, a.shape), _unbroadcast(g, b.shape)),
    "Concat": concat_back,
    "Conv": conv_back,
    "Flatten": lambda attrs, g, _, y, x: (g.reshape(x.shape),),
    "Gemm": lambda attrs, g, _, y, x, w, b: (g @ w, g.T @ x, g.sum(axis=0)),
    "GlobalAveragePool": gap_back,
    "MaxPool": max_pool_back,
    "Mul": lambda attrs, g, _, y, a, b: (_unbroadcast(g * b, a.shape), _unbroadcast(g * a, b.shape)),
    "Relu": lambda attrs, g, _, y, x: (g * (y > 0),),
    "Reshape": lambda attrs, g, _, y, x, shape: (g.reshape(x.shape), None),
}


def forward(nodes, given):
    """Runs the graph: `given` has a value for every null node; returns (values, what backward needs)."""
    values, kept = [], []
    for node in nodes:
        if node["op"] == "null":
            value, keep = given[node["name"]], None
        else:
            args = [values[entry[0]] for entry in node["inputs"]]
            value, keep = FORWARD[node["op"]](node.get("attrs", {}), *args)
        values.append(value)
        kept.append(keep)
    return values, kept


def backward(nodes, values, kept, logits, grad):
    """The gradients by name of all null nodes, from the gradient at the value of node `logits`."""
    grads = [None] * len(nodes)
    grads[logits] = grad
    for i in range(logits, -1, -1):
        node = nodes[i]
        if node["op"] == "null" or grads[i] is None:
            continue
        ids = [entry[0] for entry in node["inputs"]]
        back = BACKWARD[node["op"]](node.get("attrs", {}), grads[i], kept[i], values[i], *[values[j] for j in ids])
        for j, g in zip(ids, back):
            if g is not None:
                grads[j] = g if grads[j] is None else grads[j] + g
    return {n["name"]: g for n, g in zip(nodes, grads) if n["op"] == "null" and g is not None}
