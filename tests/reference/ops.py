"""The operators of the random graphs in plain numpy, in whatever float type their arguments have.
They are used in float32 as a fair competitor, and in float64 to build graphs and error bounds."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def windows(x, kernel, attrs, fill):
    """Every window of the last two axes of a 4-D x: [N, C, H', W', kh, kw]."""
    top, left, bottom, right = attrs.get("pads", [0, 0, 0, 0])
    (sh, sw), (dh, dw) = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = ((kernel[0] - 1) * dh + 1, (kernel[1] - 1) * dw + 1)
    return sliding_window_view(x, reach, axis=(2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]


def conv(attrs, x, w, b=None):
    group = attrs.get("group", 1)
    seen = windows(x, w.shape[2:], attrs, 0)
    n, _, h, wide = seen.shape[:4]
    cin, cout = w.shape[1], w.shape[0] // group
    parts = []
    for g in range(group):
        columns = seen[:, g * cin : (g + 1) * cin].transpose(0, 2, 3, 1, 4, 5).reshape(n * h * wide, -1)
        parts.append(columns @ w[g * cout : (g + 1) * cout].reshape(cout, -1).T)
    y = np.concatenate(parts, axis=1).reshape(n, h, wide, -1).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(y if b is None else y + b[:, None, None])


def gemm(attrs, a, b, c=None):
    kind = a.dtype.type
    a = a.T if attrs.get("transA", 0) else a
    b = b.T if attrs.get("transB", 0) else b
    y = kind(attrs.get("alpha", 1.0)) * (a @ b)
    return y if c is None else y + kind(attrs.get("beta", 1.0)) * c


def max_pool(attrs, x, fill=-np.inf):
    return windows(x, attrs["kernel_shape"], attrs, fill).max(axis=(4, 5))


def softmax(attrs, x):
    e = np.exp(x - x.max(axis=attrs.get("axis", -1), keepdims=True))
    return e / e.sum(axis=attrs.get("axis", -1), keepdims=True)


def reshape(attrs, x, shape):
    return x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(shape)])


def flatten(attrs, x):
    axis = attrs.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)


TABLE = {
    "Add": lambda attrs, a, b: a + b,
    "Concat": lambda attrs, *xs: np.concatenate(xs, axis=attrs["axis"]),
    "Conv": conv,
    "Flatten": flatten,
    "Gemm": gemm,
    "GlobalAveragePool": lambda attrs, x: x.mean(axis=(2, 3), keepdims=True),
    "MatMul": lambda attrs, a, b: a @ b,
    "MaxPool": max_pool,
    "Mul": lambda attrs, a, b: a * b,
    "Relu": lambda attrs, x: np.maximum(x, 0),
    "Reshape": reshape,
    "Softmax": softmax,
}


def apply(op, attrs, args):
    """The output of one operator; None stands for an absent argument."""
    return np.asarray(TABLE[op](attrs, *args))
