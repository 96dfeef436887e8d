"""Runs cases of special values (value_cases.py), many nodes in one model, and compares with onnx.reference."""
import collections
import glob
import os
import re
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import capi
import value_cases as vc
import value_compare

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

IR = 10


def tensor_of(x, name):
    t = numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), name)
    return t


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model_of(cases, types=None):
    nodes, inputs, outputs, weights = [], [], [], []
    for i, case in enumerate(cases):
        prefix = f"n{i}_"
        nodes.append(case.node(prefix))
        for k, x in enumerate(case.inputs):
            if x is None:
                continue
            if k in case.fixed:
                weights.append(tensor_of(x, f"{prefix}i{k}"))
            else:
                inputs.append(helper.make_tensor_value_info(f"{prefix}i{k}", onnx_type(x.dtype), x.shape))
        for k, there in enumerate(case.outputs):
            if there:
                t = types[i][k] if types and types[i] else None
                outputs.append(helper.make_tensor_value_info(f"{prefix}o{k}", onnx_type(t), None) if t is not None
                               else onnx.ValueInfoProto(name=f"{prefix}o{k}"))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", cases[0].opset)], ir_version=IR)


def reference(case):
    """Results by onnx.reference, None in the place of what is not wanted; an exception is the text of a refusal."""
    evaluator = ReferenceEvaluator(model_of([case]))
    feeds = {f"n0_i{k}": x for k, x in enumerate(case.inputs) if x is not None and k not in case.fixed}
    got = iter(evaluator.run(None, feeds))
    return [np.asarray(next(got)) if there else None for there in case.outputs]


def types_of(case):
    """The types of the results, as ONNX infers them; None where it does not."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model_of([case]))
    except Exception:  # its own classes differ from version to version
        return None
    kinds = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.output}
    found = [kinds.get(f"n0_o{k}", 0) if there else None for k, there in enumerate(case.outputs)]
    return [None if t is None else helper.tensor_dtype_to_np_dtype(t) for t in found] if 0 not in found else None


def widened(case):
    """The case in float64."""
    old = {x.dtype for k, x in enumerate(case.inputs) if x is not None and vc.is_real(x.dtype)}
    if not old or old == {np.dtype("float64")}:
        return None
    schema = vc.schema_of(case.op, case.opset)
    new = []
    for k, x in enumerate(case.inputs):
        wide = x is not None and vc.is_real(x.dtype) and vc.takes(schema, vc.formal(schema, k).type_str, "float64")
        new.append(x.astype(np.float64) if wide else x)
    return case.changed(inputs=new)


class Device:
    def __init__(self, name, **settings):
        self.name, self.ctx = name, capi.Context(**settings)
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)

    def run(self, cases, types=None):
        """Results of each case: lists, None in the place of what is not wanted."""
        path = os.path.join(self.folder.name, "model.onnx")
        with open(path, "wb") as f:
            f.write(model_of(cases, types).SerializeToString())
        model = executor = None
        try:
            model = capi.Model.load(self.ctx, path, devices=self.name)
            executor = capi.Executor(model)
            for i, case in enumerate(cases):
                for k, x in enumerate(case.inputs):
                    if x is not None and k not in case.fixed:
                        executor.set_input(f"n{i}_i{k}", x)
            executor.run()
            got = iter(executor.outputs())
            return [[next(got) if there else None for there in case.outputs] for case in cases]
        finally:
            for x in (executor, model):
                if x is not None:
                    x.close()

    def run_all(self, cases, types):
        """As run, but what is refused is a HeddleError in its place: found by halving."""
        if not cases:
            return []
        try:
            return self.run(cases, types)
        except capi.HeddleError as e:
            if len(cases) == 1:
                return [e]
        half = len(cases) // 2
        return self.run_all(cases[:half], types[:half]) + self.run_all(cases[half:], types[half:])


class Judged:
    """A case with what is right: want is None where there is no reference (the case must end, whatever it gives)."""

    def __init__(self, case):
        self.case, self.want, self.exact = case, None, None
        self.types = types_of(case)
        try:
            self.want = reference(case)
        except Exception as e:  # anything that numpy or the reference raises: it has no answer
            self.why = e
            return
        if self.types is None:
            self.types = [None if x is None else x.dtype for x in self.want]
        self.want = [None if x is None else convert(x, t) for x, t in zip(self.want, self.types)]
        wide = widened(case)
        try:
            self.exact = reference(wide) if wide is not None else None
        except Exception:
            pass
        exact = self.exact or [None] * len(self.want)
        self.right = [None if w is None else value_compare.Right(case, k, w, e, lambda new, k=k: self.other(new)[k])
                      for k, (w, e) in enumerate(zip(self.want, exact))]

    def other(self, operands):
        """Results of other floating-point operands, given in float64: in it, where the operator takes it."""
        case = self.case if self.exact is None else widened(self.case)
        return reference(case.changed(inputs=[None if x is None else new if new.dtype == x.dtype else new.astype(x.dtype)
                                              for x, new in zip(case.inputs, operands)]))

    def verdict(self, got, device):
        """("passed" | "refused" | "excused" | "wrong", why)."""
        if isinstance(got, Exception):
            if self.want is None or got.status in (4, 7):  # HEDDLE_EFORMAT, HEDDLE_EUNSUPPORTED
                return "refused", str(got).split(": ", 1)[-1]
            return "wrong", str(got)
        if self.want is None:
            return "passed", None
        for k, (g, right) in enumerate(zip(got, self.right)):
            if right is None:
                continue
            problem, is_sign = right.problem(g)
            if problem is not None:
                why = value_compare.excused(self.case, device)
                if why is None and is_sign:
                    why = value_compare.zero_excused(self.case, right.errors(g.dtype)[1], device)
                return ("excused", why) if why is not None else ("wrong", f"result {k}: {problem}")
        return "passed", None


def convert(x, dtype):
    """The reference's result in the type that ONNX infers, where it has another."""
    return x if x.dtype == dtype or vc.is_real(x.dtype) != vc.is_real(dtype) else x.astype(dtype)


def check(devices, judged, together=32):
    """Runs cases on devices, and prints what was seen. devices: (word, Device, wanted(case)). Wrong ones, as text."""
    wrong, excused, table = [], collections.Counter(), {}
    for word, device, wanted in devices:
        seen = table.setdefault(word, collections.Counter())
        by_opset = collections.defaultdict(list)
        for j in judged:
            if wanted(j.case):
                by_opset[j.case.opset].append(j)
        for some in by_opset.values():
            for at in range(0, len(some), together):
                part = some[at:at + together]
                for j, got in zip(part, device.run_all([j.case for j in part], [j.types for j in part])):
                    verdict, why = j.verdict(got, word)
                    seen[verdict] += 1
                    if verdict == "wrong":
                        wrong.append(f"{word}: {j.case}: {why}")
                    elif verdict == "excused":
                        excused[why] += 1
                    elif verdict == "refused" and ":absent" not in j.case.label and is_plain(j, word):
                        wrong.append(f"{word}: {j.case}: refused: {why}")
    for word, seen in table.items():
        print(f"{word}: " + ", ".join(f"{n} {verdict}" for verdict, n in seen.items()))
    for why, n in excused.most_common():
        print(f"  {n:5} excused: {why}")
    for line in wrong:
        print(f"  wrong: {line}")
    return wrong


# What is refused by decision, whatever the values.
REFUSED = {"Dropout": "training", "BatchNormalization": "training", "DFT": "an attribute of earlier opsets",
           "Pad": "wrap on accelerators", "Split": "num_outputs, since opset 18", "Resize": "roi must be float32"}


def only_float():
    """The operators that shaders do not compute in float64: their scalar expressions have words that GLSL lacks there."""
    with open(os.path.join(ROOT, "plugins", "vulkan", "shaders", "scalar_float.glsl")) as f:
        words = "|".join(re.findall(r"#define (S_\w+)", f.read()))
    found = set()
    for path in glob.glob(os.path.join(ROOT, "operators", "*.def")):
        with open(path) as f:
            found |= set(re.findall(rf"^ *SCALAR\((\w+?)(?:_\w+)?, REAL, .*(?:{words})\(", f.read(), re.MULTILINE))
    assert {"Exp", "Gelu", "Pow"} <= found and "Sqrt" not in found
    return found


ONLY_FLOAT = only_float()


def is_plain(j, device):
    """Values alone may not make a case refused: a type that is listed and a shape that ONNX's own case has are taken."""
    if device.startswith("vulkan") and j.case.op in ONLY_FLOAT and j.case.inputs[0].dtype == np.float64:
        return False
    return j.want is not None and j.case.op not in REFUSED and j.case.label.rsplit(":", 1)[-1] in vc.KINDS_REAL + vc.KINDS_WHOLE
