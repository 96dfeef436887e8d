"""When a result of special values is right: dtype and shape as ONNX infers them; integers and bool exact; NaN, the signs of
infinities and zeros as onnx.reference has them; numbers within the bounds of the operator's line in operators/
(value_bound.py) from the reference in the operands' type or, more exactly, in float64. EXCEPTIONS has what onnx.reference
does otherwise than ONNX says, or what ONNX leaves open, and ZERO_EXCEPTIONS where the sign of a zero is open, each with its
reason.
"""
import re

import ml_dtypes
import numpy as np

import value_bound
import value_cases as vc

# operator, dtypes of operand 0, label, devices, why a difference is none
EXCEPTIONS = [(re.compile(f"(?:{op})$"), re.compile(f"(?:{types})$"), re.compile(label), why) for op, types, label, why in [
    ("AveragePool|MaxPool|LpPool|GlobalLpPool", ".*", r":(special|nan|inf|negative|huge)",
     "the reference marks its padding with NaN, and takes a NaN of the operand for padding"),
    ("MaxPool", ".*", r"(1d|3d|same).*:results", "the reference's Indices are wrong but for two dimensions without auto_pad"),
    ("Conv|ConvTranspose|CausalConvWithState|DeformConv|ConvInteger", ".*", r":(special|nan|inf|negative)",
     "the reference multiplies its padding too: 0 by infinity is NaN there"),
    ("Attention|LinearAttention", ".*", r":(special|nan|inf|negative|huge)",
     "what a mask leaves out is not read; the reference multiplies it by 0"),
    ("DFT|STFT", ".*", r":(special|nan|inf|negative|huge)",
     "numpy's fast transform does not multiply each element by each factor, as the definition does"),
    ("OneHot", ".*", r":(special|nan|inf|negative|tiny|huge|limits)",
     "the reference computes (on - off) * hot + off; an element is one of the two"),
    ("Resize", ".*", r":(special|nan|inf|negative|huge)",
     "the reference multiplies elements of weight 0, and makes numbers of NaN where it extrapolates"),
    ("Resize", "u?int64", r":(limits|huge)", "the reference computes in float64, also what it only moves, and its cast overflows"),
    ("RoiAlign|GridSample", ".*", r":(special|nan|inf|negative|huge)", "elements of weight 0 count or not: ONNX does not say"),
    ("RNN|GRU|LSTM", "float.*|bfloat16", r":huge", "sums that float32 does not hold are infinite, and their difference NaN"),
    ("GridSample", "u?int.*", r".*", "ONNX does not say how integers are interpolated"),
    ("LogSoftmax|SoftmaxCrossEntropyLoss|NegativeLogLikelihoodLoss", ".*", r":(special|inf|huge)",
     "the reference takes the logarithm of a softmax that has gone under"),
    ("NegativeLogLikelihoodLoss|SoftmaxCrossEntropyLoss", ".*", r":absent",
     "the reference's mean without weights counts what is ignored"),
    ("LpNormalization", ".*", r".*", "the reference sums numbers, not their magnitudes"),
    ("PRelu", ".*", r":(special|inf|nan|tiny|\()", "the reference multiplies 0 by the slope; ONNX: f(x) = x where x >= 0"),
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
    ("CausalConvWithState", ".*", r":huge", "an overflow on the way depends on the order"),
    ("MaxPool", ".*", r":results xx", "the reference's Indices are not those of the window's maximum"),
    ("GridSample", ".*", r"nearest.*:tiny", "a coordinate half-way between two elements, but for its rounding, takes either"),
]]


# On one device only, by the word that check() has for it.
ON_DEVICE = [("cpu with oneDNN", re.compile("(?:Relu|Clip|MaxPool|GlobalMaxPool)$"), re.compile(":(nan|special)"),
              "oneDNN's maximum may give a number for a NaN (docs/cpu.md)"),
             ("cpu with oneDNN", re.compile("Gelu$"), re.compile(":(inf|special)"),
              "oneDNN's Gelu of an infinity is NaN (docs/cpu.md)"),
             ("opencl:0", re.compile("Gelu$"), re.compile(":(inf|special)"),
              "ONNX's formula is infinity times 0 at -infinity, and a driver's tanh may be one place off 1")]


# Integers that are rounded sums, whose weights are of float32: what is next to a half may go to either side, and a weight's
# error counts by the largest operand.
ROUNDED = {"Resize": 4e-6}

# Where the sign of a zero is left open: operator, rule of its bounds, device, why.
ZERO_EXCEPTIONS = [tuple(re.compile(f"(?:{words})$") for words in row[:3]) + row[3:] for row in [
    ("Max|Min|ReduceMax|ReduceMin|Clip|MaxPool|GlobalMaxPool|MaxUnpool|Relu|TopK|ScatterND|ScatterElements", ".*", ".*",
     "-0 and 0 are equal, and IEEE 754 lets a maximum or minimum of both be either"),
    (".*", "sum|estimate|attention", ".*",
     "a sum of -0 alone is -0, or 0 where it begins with 0; terms that go under have no sign to sum"),
    ("CausalConvWithState|LinearAttention", ".*", ".*", "a sum of terms that go under has no sign"),
    ("Gelu", ".*", "cpu with oneDNN", "oneDNN's Gelu of a number far below 0 is 0 (docs/cpu.md)"),
    ("Elu", ".*", "cpu with oneDNN", "oneDNN computes Elu of -0 by the formula for negative numbers, which is 0 (docs/cpu.md)"),
]]


def excused(case, device):
    why = next((why for word, op, label, why in ON_DEVICE
                if word == device and op.match(case.op) and label.search(case.label)), None)
    if why is not None:
        return why
    dtype = vc.name_of(case.inputs[0].dtype) if case.inputs and case.inputs[0] is not None else ""
    return next((why for op, types, label, why in EXCEPTIONS
                 if op.match(case.op) and types.match(dtype) and label.search(case.label)), None)


def zero_excused(case, rule, device):
    return next((why for op, rules, devices, why in ZERO_EXCEPTIONS
                 if op.match(case.op) and rules.match(rule) and devices.match(device)), None)


def largest(case):
    """The largest finite magnitude among the operands that are numbers."""
    most = 0.0
    for x in case.inputs:
        if x is not None and vc.is_real(x.dtype) and x.size:
            wide = np.abs(x.astype(np.float64))
            most = max(most, float(np.max(wide, where=np.isfinite(wide), initial=0)))
    return most


def largest_whole(case):
    return max(float(np.max(np.abs(x.astype(np.float64)), initial=0)) for x in case.inputs[:1])


class Right:
    """What result k of a case may be. want: by onnx.reference; exact: the same of operands in float64, or None; evaluate:
    see value_bound.py."""

    def __init__(self, case, k, want, exact, evaluate):
        self.case, self.k, self.want, self.evaluate, self.bound = case, k, want, evaluate, None
        self.exact = exact if exact is not None and exact.shape == want.shape else None

    def errors(self, dtype):
        """(of each element, rule), and asked once: for what differs."""
        if self.bound is None:
            with np.errstate(all="ignore"):
                exact = self.want if self.exact is None else self.exact
                err, rule = value_bound.bound_of(self.case, self.k, exact.astype(np.float64), dtype, self.evaluate)
                if err is None or rule == "estimate" and self.is_single(exact):
                    err, rule = np.full(self.want.shape, np.nan), "none"
                # Without a rule, or a number of one: as heddle compare (tools/compare_judge.c).
                units = float(ml_dtypes.finfo(dtype).eps) / 2 * (4 if np.dtype(dtype).itemsize == 2 else 1024)
                finite = np.abs(exact.astype(np.float64))
                most = float(np.max(finite, where=np.isfinite(finite), initial=0))
                self.bound = np.where(np.isnan(err), units * most + float(ml_dtypes.finfo(dtype).smallest_normal), err), rule
        return self.bound

    def is_single(self, exact):
        """The reference computes float64 in float32: moving operands by less shows nothing of an operator's condition."""
        same = exact.astype(np.float32).astype(np.float64)
        return self.want.dtype == np.float32 and self.exact is not None and np.array_equal(same, exact, equal_nan=True)

    def problem(self, got):
        """None, or what is wrong with a result of a device; and whether that is the sign of zero alone."""
        want = self.want
        if got.shape != want.shape:
            return f"the shape is {got.shape} and should be {want.shape}", False
        if not vc.is_real(want.dtype):
            wrong = (got != want) & (got != (want if self.exact is None else self.exact))
            if self.case.op in ROUNDED:
                far = np.abs(got.astype(np.float64) - want.astype(np.float64))
                wrong &= far > 1 + ROUNDED[self.case.op] * largest_whole(self.case)
            return self.words(got, wrong), False
        wide, w = got.astype(np.float64), want.astype(got.dtype).astype(np.float64)
        with np.errstate(all="ignore"):
            exact = w if self.exact is None else self.exact.astype(got.dtype).astype(np.float64)
        same = (np.isnan(wide) & np.isnan(w)) | (wide == w) | (np.isnan(wide) & np.isnan(exact)) | (wide == exact)
        wrong = np.array(~same)
        for at in map(tuple, np.argwhere(~same)):
            wrong[at] = not self.near(at, wide[at], got.dtype)
        if np.any(wrong):
            return self.words(got, wrong), False
        zero = (wide == 0) & (w == 0) & (np.signbit(exact) == np.signbit(w))
        return self.words(got, zero & (np.signbit(wide) != np.signbit(w))), True

    def near(self, at, got, dtype):
        err, rule = self.errors(dtype)
        most = largest(self.case)
        # A sum of such terms, or their products, may pass the end of the type on the way.
        if rule in STEPS and most > float(ml_dtypes.finfo(dtype).max) ** 0.5:
            if not np.isfinite(got) or not np.isfinite(self.want[at]):
                return True
        sides = 1 if self.exact is not None and np.dtype(dtype) != np.float64 else 2
        return (value_bound.holds(dtype, self.want[at], got, 2 * err[at]) or
                self.exact is not None and value_bound.holds(dtype, self.exact[at], got, sides * err[at]))

    def words(self, got, wrong):
        if not np.any(wrong):
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        more = "" if self.exact is None else f", in float64 {self.exact[at]}"
        if vc.is_real(self.want.dtype):
            err, rule = self.errors(got.dtype)
            more += f", of rule {rule} within {err[at]:.3g}"
        return f"{int(np.sum(wrong))} of {got.size} elements differ; {list(at)} is {got[at]} and should be {self.want[at]}{more}"


# Rules of what is computed in steps, whose values may be larger than any result.
STEPS = ("sum", "positive", "softmax", "norm", "attention", "estimate")
