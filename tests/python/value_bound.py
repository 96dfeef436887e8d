"""The bounds of plugins/common/check/bound.h for a case of value_cases.py: the rule of the operator's line in operators/,
by the same code as the conformance kit and `heddle compare`.
"""
import ctypes as c
import os

import ml_dtypes
import numpy as np
from onnx import AttributeProto

LIB = c.CDLL(os.path.join(os.environ["HEDDLE_BUILD"], "tests", "libheddle_check_bound.so"))
TYPES = {np.dtype("float32"): 0, np.dtype("float64"): 1, np.dtype("float16"): 2, np.dtype(ml_dtypes.bfloat16): 3}
WHOLE = 4
Doubles, Ints = c.POINTER(c.c_double), c.POINTER(c.c_int64)


class Tensor(c.Structure):
    _fields_ = [("x", Doubles), ("shape", Ints), ("ndim", c.c_int32), ("type", c.c_int32)]


class Attr(c.Structure):
    _fields_ = [("name", c.c_char_p), ("ints", Ints), ("count", c.c_uint64), ("number", c.c_double)]


Evaluate = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(Doubles), Doubles)


class Node(c.Structure):
    _fields_ = [("op", c.c_char_p), ("attrs", c.POINTER(Attr)), ("operands", c.POINTER(Tensor)), ("n_attrs", c.c_uint32),
                ("n_in", c.c_uint32), ("output", c.c_uint32), ("fast", c.c_bool), ("out", Tensor), ("evaluate", Evaluate),
                ("ctx", c.c_void_p)]


LIB.check_bound_of.restype = LIB.check_bound_holds.restype = c.c_bool
LIB.check_bound_holds.argtypes = [c.c_int32, c.c_double, c.c_double, c.c_double]


def type_of(dtype):
    return TYPES.get(np.dtype(dtype), WHOLE)


class Held:
    """Structs, and the arrays that they point to."""

    def __init__(self):
        self.kept = []

    def tensor(self, x, dtype):
        wide = np.ascontiguousarray(x, np.float64).reshape(np.shape(x))
        shape = np.array(wide.shape + (0,), np.int64)
        some = wide if wide.size else np.zeros(1)
        self.kept += [some, shape]
        return Tensor(some.ctypes.data_as(Doubles), shape.ctypes.data_as(Ints), wide.ndim, type_of(dtype))

    def attr(self, a):
        if a.type == AttributeProto.INTS:
            ints = np.array(list(a.ints) + [0], np.int64)
            self.kept.append(ints)
            return Attr(a.name.encode(), ints.ctypes.data_as(Ints), len(a.ints), 0)
        return Attr(a.name.encode(), None, 0, a.f if a.type == AttributeProto.FLOAT else a.i)


def bound_of(case, k, want, dtype, evaluate):
    """(errors that result k may have, rule): None where no bound is known. want: the reference, of a result of dtype;
    evaluate(operands): result k of other floating-point operands, in float64, or None."""
    held, out = Held(), np.zeros(max(want.size, 1))
    operands = (Tensor * max(len(case.inputs), 1))()
    for i, x in enumerate(case.inputs):
        operands[i] = held.tensor(x, x.dtype) if x is not None else Tensor()
    wanted = [a for a in case.attrs if a.type in (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT)]
    attrs = (Attr * max(len(wanted), 1))(*map(held.attr, wanted))

    def called(_, x, y):
        try:
            new = [None if old is None else old if type_of(old.dtype) == WHOLE or old.size == 0 else
                   np.ctypeslib.as_array(x[i], (old.size,)).reshape(old.shape) for i, old in enumerate(case.inputs)]
            got = evaluate(new)
            if got is None or got.size != want.size:
                return False
            np.ctypeslib.as_array(y, (want.size,))[:] = got.astype(np.float64).ravel()
            return True
        except Exception:  # no exception may go through the C code; the reference has no answer
            return False

    rule = c.c_char_p()
    node = Node(case.op.encode(), attrs, operands, len(wanted), len(case.inputs), k, False, held.tensor(want, dtype),
                Evaluate(called), None)
    known = LIB.check_bound_of(c.byref(node), out.ctypes.data_as(Doubles), c.byref(rule))
    if not known:
        return None, "none"
    return out[:want.size].reshape(want.shape), rule.value.decode()


def holds(dtype, want, got, err):
    return bool(LIB.check_bound_holds(type_of(dtype), float(want), float(got), float(err)))
