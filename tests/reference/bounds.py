"""Running error bounds: how far a float32 execution of one operator can be from the exact value of its output.
Any order of summation, fused multiply-add and flushing of subnormals are allowed; less precise arithmetic is not.

With u = 2^-24 and gamma(n) = n u / (1 - n u), a sum of n products calculated in any order is off by at most
gamma(n) times the sum of the products' absolute values (Higham, Accuracy and Stability, ch. 3). An argument x with
error e is, in the float32 run, some value of magnitude at most |x| + e. TINY covers underflow to zero.

Softmax: with |dx| <= d along the axis, every exp(x_j) moves by a factor within exp(-d) .. exp(d), so s_i moves by a
factor within exp(-2d) .. exp(2d). Rounding: x_j - max is off by u times the spread D, which exp turns into a relative
u D; exp itself is given 4 ulp (8 u); numerator and denominator each have this, the sum of n terms adds gamma(n), and
the division is given 2.5 ulp (5 u), as OpenCL allows; in sum 2 (D + 8) + n + 5 roundings, all relative.
"""

import numpy as np

from . import ops

U = 2.0**-24
TINY = 2.0**-126
EXP_ULP, DIV_ULP = 4, 2.5


def gamma(n):
    return n * U / (1 - n * U)


def _products(multiply, a, b, ea, eb):
    """(what the arguments' errors can do, the sum of absolute products) for a bilinear operator."""
    a, b = np.abs(a), np.abs(b)
    carried = multiply(ea, b + eb)
    if eb.any():
        carried = carried + multiply(a, eb)
    return carried, multiply(a + ea, b + eb)


def _linear(multiply, length, args, errs, extra=0.0, extra_error=0.0, scale=1.0):
    """A row of `length` products, scaled, with one more term of magnitude `extra` added."""
    carried, total = _products(multiply, args[0], args[1], errs[0], errs[1])
    n = length + 4
    return scale * carried + extra_error + gamma(n) * (scale * total + extra) + n * TINY


def _conv(attrs, args, errs, out):
    def multiply(a, b):
        return ops.conv(attrs, a, b)

    bias, bias_error = 0.0, 0.0
    if len(args) > 2 and args[2] is not None:
        bias_error = errs[2][:, None, None]
        bias = np.abs(args[2])[:, None, None] + bias_error
    return _linear(multiply, args[1][0].size, args, errs, bias, bias_error)


def _gemm(attrs, args, errs, out):
    plain = {k: v for k, v in attrs.items() if k in ("transA", "transB")}
    length = args[0].shape[0 if attrs.get("transA", 0) else 1]
    c, c_error = 0.0, 0.0
    if len(args) > 2 and args[2] is not None:
        beta = abs(attrs.get("beta", 1.0))
        c_error = beta * errs[2]
        c = beta * np.abs(args[2]) + c_error
    return _linear(lambda a, b: ops.gemm(plain, a, b), length, args, errs, c, c_error, abs(attrs.get("alpha", 1.0)))


def _matmul(attrs, args, errs, out):
    return _linear(np.matmul, args[0].shape[-1], args, errs)


def _add(attrs, args, errs, out):
    carried = errs[0] + errs[1]
    return carried + U * (np.abs(out) + carried) + TINY


def _mul(attrs, args, errs, out):
    carried, total = _products(np.multiply, args[0], args[1], errs[0], errs[1])
    return carried + U * total + TINY


def _relu(attrs, args, errs, out):
    return np.minimum(errs[0], np.maximum(args[0] + errs[0], 0))  # far below zero nothing of the error is left


def _average(attrs, args, errs, out):
    n = args[0].shape[2] * args[0].shape[3] + 2
    carried = errs[0].mean(axis=(2, 3), keepdims=True)
    return carried + gamma(n) * (np.abs(args[0]).mean(axis=(2, 3), keepdims=True) + carried) + n * TINY


def _softmax(attrs, args, errs, out):
    axis, x = attrs.get("axis", -1), args[0]
    n, d = x.shape[axis], errs[0].max(axis=axis, keepdims=True)
    spread = x.max(axis=axis, keepdims=True) - x.min(axis=axis, keepdims=True) + 2 * d
    roundings = 2 * (spread + 2 * EXP_ULP) + n + 2 * DIV_ULP
    moved = np.expm1(2 * d)
    return out * (moved + (1 + moved) * gamma(roundings)) + (n + 1) * TINY


def _same(op):
    """Operators that only move values move their errors in the same way."""
    return lambda attrs, args, errs, out: ops.apply(op, attrs, [errs[0], *args[1:]])


TABLE = {
    "Add": _add,
    "Concat": lambda attrs, args, errs, out: ops.apply("Concat", attrs, errs),
    "Conv": _conv,
    "Flatten": _same("Flatten"),
    "Gemm": _gemm,
    "GlobalAveragePool": _average,
    "MatMul": _matmul,
    "MaxPool": lambda attrs, args, errs, out: ops.max_pool(attrs, errs[0], 0),
    "Mul": _mul,
    "Relu": _relu,
    "Reshape": _same("Reshape"),
    "Softmax": _softmax,
}


def bound(op, attrs, args, errs, out):
    """The bound of an operator's output, of its shape: args and out in float64, errs the arguments' bounds."""
    e = np.asarray(TABLE[op](attrs, args, errs, out), dtype=np.float64)
    return np.broadcast_to(e, out.shape).copy() * (1 + 1e-9)  # the float64 arithmetic of the bound itself
