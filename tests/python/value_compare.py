"""When a result of special values is right: dtype and shape as ONNX infers them; integers and bool exact; NaN, the sign of
an infinity and everything else as onnx.reference has it, in the operands' type or, more exactly, in float64. EXCEPTIONS has
what onnx.reference does otherwise than ONNX says, or what ONNX leaves open, each with its reason.
"""
import glob
import os
import re

import ml_dtypes
import numpy as np

import value_cases as vc

# Of numbers, and of the largest operand. Ordinary values are held to the bounds of plugins/common/check/bound.c by the
# conformance kit; here it is the special ones that count.
NEAR = {"float32": 1e-4, "float64": 1e-9, "float16": 2e-2, "bfloat16": 6e-2}
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def sums():
    """The operators whose results are sums or products of several terms, by the rules of the kit's bounds."""
    rule = re.compile(r'(?:OPERATOR\(ONNX, |\{")(\w+).*\b(?:SUM|POSITIVE|LOG_POSITIVE|SOFTMAX|LOG_SOFTMAX|NORM|ATTENTION|ESTIMATE)\b')
    found = {"CumProd", "CausalConvWithState"}
    for path in [f"{ROOT}/plugins/common/check/bound.c", *glob.glob(f"{ROOT}/operators/*.def")]:
        with open(path) as f:
            found |= {m.group(1) for m in map(rule.search, f) if m}
    assert len(found) > 30, "the rules of the kit's bounds are not where they were"
    return found


SUMS = sums()

# operator, dtypes of operand 0, label, devices, why a difference is none
EXCEPTIONS = [(re.compile(f"(?:{op})$"), re.compile(f"(?:{types})$"), re.compile(label), why) for op, types, label, why in [
    ("AveragePool|MaxPool|LpPool|GlobalLpPool", ".*", r":(special|nan|inf|negative|huge)",
     "the reference marks its padding with NaN, and takes a NaN of the operand for padding"),
    ("Conv|ConvTranspose|CausalConvWithState|DeformConv|ConvInteger", ".*", r":(special|nan|inf|negative)",
     "the reference multiplies its padding too: 0 by infinity is NaN there"),
    ("Attention|LinearAttention", ".*", r":(special|nan|inf|negative|huge)",
     "what a mask leaves out is not read; the reference multiplies it by 0"),
    ("DFT|STFT", ".*", r":(special|nan|inf|negative|huge)",
     "numpy's fast transform does not multiply each element by each factor, as the definition does"),
    ("OneHot", ".*", r":(special|nan|inf|negative|huge|limits)",
     "the reference computes (on - off) * hot + off; an element is one of the two"),
    ("Resize", ".*", r":(special|nan|inf|negative|huge)",
     "the reference multiplies elements of weight 0, and makes numbers of NaN where it extrapolates"),
    ("RoiAlign|GridSample", ".*", r":(special|nan|inf|negative|huge)", "elements of weight 0 count or not: ONNX does not say"),
    ("GridSample", "u?int.*", r".*", "ONNX does not say how integers are interpolated"),
    ("LogSoftmax|SoftmaxCrossEntropyLoss|NegativeLogLikelihoodLoss", ".*", r":(special|inf|huge)",
     "the reference takes the logarithm of a softmax that has gone under"),
    ("NegativeLogLikelihoodLoss|SoftmaxCrossEntropyLoss", ".*", r":absent",
     "the reference's mean without weights counts what is ignored"),
    ("LpNormalization", ".*", r".*", "the reference sums numbers, not their magnitudes"),
    ("PRelu", ".*", r":(special|inf|nan|\()", "the reference multiplies 0 by the slope; ONNX: f(x) = x where x >= 0"),
    ("ReduceLogSumExp|ReduceLogSum", ".*", r":(special|inf|huge|negative)", "the reference subtracts the maximum, also an infinite one"),
    ("QuantizeLinear|DynamicQuantizeLinear|DequantizeLinear", ".*", r":(special|nan|inf|negative|tiny|huge|limits|\()",
     "a NaN, or a scale that is 0, NaN or infinite, has no quantised value in ONNX"),
    ("Mod", "float.*|bfloat16", r".*", "ONNX: numbers have fmod 1; without it the result is not defined"),
    ("Pow", "u?int.*", r".*", "what is no integer, or too large for one, is not defined; devices compute such in float32"),
    ("ReduceMean|ReduceL2|ReduceL1|ReduceLogSum|ReduceLogSumExp|ReduceSumSquare|Gemm|Mean", "u?int.*", r".*",
     "the reference goes through float64, or overflows; an overflow is not defined"),
    ("Cast|CastLike", ".*", r":(special|nan|inf|negative|huge|\()", "a number that does not fit an integer is not defined"),
    ("Div", "u?int.*", r".*", "division by 0 and of the least integer by -1 is not defined"),
    ("Unique", ".*", r":results x$", "the reference sorts where Y is the only result, also with sorted 0"),
    ("Attention", ".*", r"softcap", "the reference gives scores after softcap in mode 0; ONNX: the product alone"),
    ("ScatterElements", ".*", r":(nan|special)", "the reference's min and max are Python's, which keep NaN or lose it by order"),
    ("LayerNormalization|InstanceNormalization|GroupNormalization|BatchNormalization|RMSNormalization|"
     "MeanVarianceNormalization|LRN", ".*", r":(huge|special)", "differences of numbers near the end cancel"),
    ("AffineGrid|Erf|Gelu|HardSwish|GroupNormalization|InstanceNormalization|BatchNormalization|LayerNormalization|"
     "RMSNormalization|MeanVarianceNormalization", "float64", r".*", "the reference has float32 constants inside"),
    ("MeanVarianceNormalization", ".*", r":tiny", "the deviation of denormal numbers is below 1e-9, by which it divides"),
    ("Det", ".*", r":(huge|special|inf|nan|negative)", "the order of elimination decides what overflows"),
    ("CumSum|CumProd|Einsum|MatMul", ".*", r":(special|inf)", "an overflow on the way depends on the order"),
]]


# On one device only, by the word that check() has for it.
ON_DEVICE = [("cpu with oneDNN", re.compile("(?:MaxPool|GlobalMaxPool)$"), re.compile(":(negative|special)"),
              "oneDNN begins a maximum at the least finite number: a window of -inf only gives that (docs/cpu.md)")]


def excused(case, device):
    why = next((why for word, op, label, why in ON_DEVICE
                if word == device and op.match(case.op) and label.search(case.label)), None)
    if why is not None:
        return why
    dtype = vc.name_of(case.inputs[0].dtype) if case.inputs and case.inputs[0] is not None else ""
    return next((why for op, types, label, why in EXCEPTIONS
                 if op.match(case.op) and types.match(dtype) and label.search(case.label)), None)


def largest(case):
    """The largest finite magnitude among the operands that are numbers."""
    most = 0.0
    for x in case.inputs:
        if x is not None and vc.is_real(x.dtype) and x.size:
            wide = np.abs(x.astype(np.float64))
            most = max(most, float(np.max(wide, where=np.isfinite(wide), initial=0)))
    return most


def is_right(case, got, want, exact):
    """None, or what is wrong with one result. exact: the reference of operands in float64, or None."""
    if got.shape != want.shape:
        return f"the shape is {got.shape} and should be {want.shape}"
    exact = exact if exact is not None and exact.shape == want.shape else None
    if not vc.is_real(want.dtype):
        wrong = got != want
        if exact is not None:
            wrong &= got != exact
    else:
        wrong = ~(near(case, got, want) | (near(case, got, exact) if exact is not None else False))
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    more = "" if exact is None else f", in float64 {exact[at]}"
    return f"{int(np.sum(wrong))} of {got.size} elements differ; {list(at)} is {got[at]} and should be {want[at]}{more}"


def near(case, got, want):
    name = vc.name_of(got.dtype)
    info = ml_dtypes.finfo(got.dtype)
    g, w = got.astype(np.float64), want.astype(got.dtype).astype(np.float64)
    scale = largest(case)
    # What is flushed to 0 below the least normal number, also on the way, is allowed everywhere (bound.h).
    room = NEAR[name] * (np.abs(w) + min(scale, 1e30)) + 64 * float(info.smallest_normal)
    right = (np.isnan(g) & np.isnan(w)) | (g == w) | (np.isfinite(g) & np.isfinite(w) & (np.abs(g - w) <= room))
    if case.op in SUMS and scale > float(info.max) ** 0.5:
        right |= ~np.isfinite(g) | ~np.isfinite(w) # a sum of such terms, or their products, may pass the end on the way
    return right
