"""Cases of special values, made from what is listed: docs/operators.md for operators, types and opsets (its table is held
against the plugins' own lists by a test), ONNX's schemas for operands, and ONNX's node cases for attributes and shapes.

A new operator is met here without an edit. A case is a node with its operands; kinds of cases:
  values   operands of every type that the operator takes, with NaN, infinities, zeros, denormals, limits
  empty    a dimension of 0;  scalar: operands of no dimensions;  broadcast: operands of several shapes
  absent   operands and results that are optional are left out, each with a "" in its place or from the end
"""
import itertools
import re
import warnings
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

import onnx_cases
import onnx_nodes

warnings.filterwarnings("ignore")
np.seterr(all="ignore")

BF16 = np.dtype(ml_dtypes.bfloat16)
REAL = ["float32", "float64", "float16", "bfloat16"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMMON = ["float32", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
LISTS = {"floats": REAL, "integers": WHOLE, "numbers": REAL + WHOLE, "all": REAL + WHOLE + ["bool"],
         "bytes": REAL + WHOLE + ["bool"], "common": COMMON, "no halves": REAL[:2] + WHOLE + ["bool"]}
ROW = re.compile(r"\| (\w+) \| ([^|]+) \| (\d+) to (\d+) \| ([^|]+) \|")


def number_of(text):
    """A number that does not change from run to run."""
    return zlib.crc32(text.encode())


def dtype_of(name):
    return BF16 if name == "bfloat16" else np.dtype(name)


def name_of(dtype):
    return "bfloat16" if dtype == BF16 else np.dtype(dtype).name


def is_real(dtype):
    return np.dtype(dtype).kind == "f" or dtype == BF16


def words(text):
    out = []
    for word in text.split(", "):
        out += LISTS.get(word, [word])
    return out


class Listed:
    """A row of the table: what cpu and sim take, and what the accelerators take."""

    def __init__(self, match):
        self.op, types, first, last, here = (x.strip() for x in match.groups())
        self.first, self.last, self.types = int(first), int(last), words(types)
        self.accelerated = [] if here == "no" else self.types if here == "yes" else words(here)


def table(path):
    with open(path) as f:
        rows = [Listed(m) for m in map(ROW.match, f) if m]
    return {r.op: r for r in rows if r.op not in onnx_nodes.RANDOM}


def is_narrow(dtype):
    """Of float8 and less, of which test_onnx_nodes.py and test_onnx_fusions.py have the cases."""
    return re.match(r"float[84]_|u?int[42]$", dtype.name) is not None


# ---------------------------------------------------------------- values

def specials(dtype):
    if dtype == np.bool_:
        return np.array([False, True])
    if not is_real(dtype):
        i = np.iinfo(dtype)
        few = [0, 1, 2, 3, 7, i.max, i.max - 1, i.max // 2, i.min, i.min + 1, i.min // 2]
        return np.array(few + ([-1, -2, -7] if i.min < 0 else []), dtype)
    i = ml_dtypes.finfo(dtype)
    return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, float(i.smallest_subnormal), -float(i.smallest_subnormal),
                     float(i.smallest_normal), float(i.max), -float(i.max), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7,
                     100, -100, 1e-3]).astype(dtype)


KINDS_REAL = ["special", "nan", "inf", "tiny", "huge", "negative infinities"]
KINDS_WHOLE = ["special", "limits"]


def filled(shape, dtype, kind, rng):
    s = specials(dtype)
    n = int(np.prod(shape, dtype=np.int64))
    if kind in ("special", "cross"):
        flat = rng.permutation(np.tile(s, n // len(s) + 1))[:n] if n else s[:0]
        return flat.astype(dtype).reshape(shape)
    if not is_real(dtype):
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(bool)
        i = np.iinfo(dtype)
        return rng.choice(np.array([i.min, i.max], dtype), shape)
    flat = rng.standard_normal(n)
    i = ml_dtypes.finfo(dtype)
    if kind == "nan" and n:
        flat[rng.integers(n)] = np.nan
    elif kind == "inf" and n:
        flat[rng.integers(n)], flat[rng.integers(n)] = np.inf, -np.inf
    elif kind == "tiny":
        flat = rng.choice([0.0, -0.0, float(i.smallest_subnormal), -3 * float(i.smallest_subnormal),
                           float(i.smallest_normal) / 2], n)
    elif kind == "huge":
        flat = rng.choice([float(i.max), -float(i.max), float(i.max) / 2], n)
    elif kind == "negative infinities":
        flat = np.full(n, -np.inf)
    return flat.astype(dtype).reshape(shape)


# ---------------------------------------------------------------- templates

class Case:
    """A node, and its operands by position (None: a "" in its place)."""

    def __init__(self, op, opset, attrs, inputs, outputs, fixed, label):
        self.op, self.opset, self.attrs, self.inputs, self.outputs = op, opset, attrs, inputs, outputs
        self.fixed, self.label = fixed, label  # fixed: positions that are constants of the model

    def __str__(self):
        operands = ",".join("-" if x is None else f"{name_of(x.dtype)}{list(x.shape)}" for x in self.inputs)
        attrs = " ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in self.attrs)
        return f"{self.op}-{self.opset} {self.label} ({operands}) {attrs} -> {len(self.outputs)}"

    def node(self, prefix=""):
        n = onnx.NodeProto(op_type=self.op, name=prefix + self.op)
        n.input.extend("" if x is None else f"{prefix}i{k}" for k, x in enumerate(self.inputs))
        n.output.extend(f"{prefix}o{k}" if there else "" for k, there in enumerate(self.outputs))
        n.attribute.extend(self.attrs)
        return n

    def changed(self, **changes):
        made = Case(self.op, self.opset, self.attrs, list(self.inputs), list(self.outputs), self.fixed, self.label)
        for k, v in changes.items():
            setattr(made, k, v)
        return made


TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
KNOWN_TYPES = [helper.np_dtype_to_tensor_dtype(t) for t in onnx_cases.DTYPES if not is_narrow(t)]


def plain_template(op):
    """Of an operator that ONNX has no case of: its operands as float32 of one shape, no attributes."""
    schema = schema_of(op, onnx.defs.onnx_opset_version())
    operands = [np.ones((2, 3, 4, 5), np.float32)] * schema.min_input
    return [Case(op, schema.since_version, [], operands, [True] * schema.min_output, (), "plain")]


def templates():
    """ONNX's node cases of one node, by operator."""
    out = {}
    for name, model, inputs, *_ in onnx_cases.load():
        if len(model.graph.node) != 1 or model.functions:
            continue
        node = model.graph.node[0]
        if node.domain not in ("", "ai.onnx") or any(a.type == a.GRAPH for a in node.attribute):
            continue
        inputs = [numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x for x in inputs]
        given = dict(zip((v.name for v in model.graph.input), inputs))
        given.update({t.name: numpy_helper.to_array(t) for t in model.graph.initializer})
        if any(a.name in TYPE_ATTRIBUTES and a.i not in KNOWN_TYPES for a in node.attribute):
            continue
        try:
            operands = [np.asarray(given[x]) if x else None for x in node.input]
        except (KeyError, ValueError):
            continue
        if any(x is not None and (x.dtype not in onnx_cases.DTYPES or is_narrow(x.dtype)) for x in operands):
            continue
        if onnx_nodes.is_random(model, inputs):
            continue  # no reference has the same numbers
        opset = max(13, max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")))
        out.setdefault(node.op_type, []).append(
            Case(node.op_type, opset, list(node.attribute), operands, [bool(x) for x in node.output], (), name[5:]))
    return out


def schema_of(op, opset):
    return onnx.defs.get_schema(op, opset, "")


def formal(schema, k):
    return schema.inputs[min(k, len(schema.inputs) - 1)]


def constraint(schema, text):
    for c in schema.type_constraints:
        if c.type_param_str == text:
            return {t[7:-1] for t in c.allowed_type_strs if t.startswith("tensor(")}
    return {text[7:-1]} if text.startswith("tensor(") else set()


ONNX_NAMES = {"float32": "float", "float64": "double"}


def takes(schema, text, dtype):
    return ONNX_NAMES.get(dtype, dtype) in constraint(schema, text)


def data_positions(case, schema):
    """Operands that are numbers to compute with: of a type that may be floating-point, and not of a shape or an index."""
    text = formal(schema, 0).type_str
    out = []
    for k, x in enumerate(case.inputs):
        if x is None:
            continue
        t = formal(schema, k).type_str
        if t == text or constraint(schema, t) & {"float", "double", "float16", "bfloat16"}:
            out.append(k)
    return out


# Operands whose bytes decide a shape or an index, of types that may be floating-point all the same.
STRUCTURE = {"Range": (0, 1, 2), "OneHot": (0, 1), "Resize": (1, 2, 3), "Upsample": (1,), "RoiAlign": (1,), "TfIdfVectorizer": (0,),
             "NonMaxSuppression": (0, 1, 2, 3, 4), "MelWeightMatrix": (0, 1, 2, 3, 4), "STFT": (1, 3), "Dropout": (1, 2),
             "BlackmanWindow": (0,), "HannWindow": (0,), "HammingWindow": (0,), "ConstantOfShape": (0,),
             "Shape": (), "MaxUnpool": (1, 2), "AffineGrid": (1,), "EyeLike": ()}


def convert(x, dtype):
    if is_real(x.dtype) and not is_real(dtype):
        x = np.nan_to_num(np.asarray(x, np.float64), posinf=100, neginf=-100)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def retyped(case, schema, dtype):
    """The case with operands of the first one's type variable, and what else shares that, as dtype; None: it takes none."""
    text = formal(schema, 0).type_str
    if not takes(schema, text, dtype):
        return None
    old = case.inputs[0].dtype if case.inputs and case.inputs[0] is not None else None
    new = []
    for k, x in enumerate(case.inputs):
        t = formal(schema, k).type_str
        if x is None:
            new.append(None)
        elif t == text:
            new.append(convert(x, dtype_of(dtype)))
        elif is_real(x.dtype) and is_real(dtype_of(dtype)) and x.dtype == old and takes(schema, t, dtype):
            new.append(convert(x, dtype_of(dtype)))
        else:
            new.append(x)
    return case.changed(inputs=new)


def with_values(case, schema, kind, rng):
    out = list(case.inputs)
    for k in data_positions(case, schema):
        if k not in STRUCTURE.get(case.op, ()):
            out[k] = filled(out[k].shape, out[k].dtype, kind, rng)
    return case.changed(inputs=out, label=f"{case.label}:{kind}")


def with_empty(case, schema, size):
    """All dimensions of that size as 0, in operands with data."""
    out, some = list(case.inputs), False
    for k in data_positions(case, schema):
        x = out[k]
        if k in STRUCTURE.get(case.op, ()) or size not in x.shape:
            continue
        out[k], some = np.zeros([0 if d == size else d for d in x.shape], x.dtype), True
    return case.changed(inputs=out, label=f"{case.label}:{size}->0") if some else None


SHAPES = {1: [((),), ((0,),), ((2, 0, 3),), ((1,),)],
          2: [((), ()), ((0,), ()), ((2, 0, 3), (1, 3)), ((3, 1, 4), (2, 1)), ((), (5,)), ((0,), (1,)), ((22, 1), (22,))],
          3: [((), (), ()), ((2, 3), (3,), ()), ((0, 3), (3,), (1, 1))]}


def with_shapes(case, schema, shapes, rng):
    kind = "cross" if len(shapes) == 2 and shapes[0] == (22, 1) else "special"
    new = []
    for x, shape in zip(case.inputs, shapes):
        if kind == "cross" and len(specials(x.dtype)) > 2:
            s = specials(x.dtype)
            s = np.resize(s, 22)
            new.append(s.reshape(shape))
        else:
            new.append(filled(shape, x.dtype, kind, rng))
    return case.changed(inputs=new, label=f"{case.label}:{'x'.join(map(str, shapes))}")


def without_operands(case, schema):
    """Each optional operand absent, alone and with all behind it; and results that are not wanted."""
    optional = [k for k in range(len(case.inputs)) if case.inputs[k] is not None and k < len(schema.inputs) and
                formal(schema, k).option == schema.FormalParameterOption.Optional]
    seen = set()
    for some in itertools.chain([()], ([k] for k in optional), ([j for j in optional if j >= k] for k in optional)):
        new = [None if k in some else x for k, x in enumerate(case.inputs)]
        short = list(new)
        while short and short[-1] is None:
            short.pop()
        for operands in (new, short, new + [None] if len(new) < len(schema.inputs) and
                         schema.inputs[len(new)].option == schema.FormalParameterOption.Optional else new):
            key = tuple(x is not None for x in operands)
            if key in seen or all(x is not None for x in case.inputs) and key == (True,) * len(case.inputs):
                continue
            seen.add(key)
            yield case.changed(inputs=operands, label=f"{case.label}:absent {''.join('x' if k else '-' for k in key)}")


def without_results(case, schema):
    """Patterns of results that are there; the first of those that must be."""
    formals = schema.outputs
    many = len(formals) > 0 and formals[-1].option == schema.FormalParameterOption.Variadic
    most = max(len(case.outputs), 2) if many else len(formals)
    if most < 2 or most > 4:
        return
    least = len(case.outputs) if many else 1
    for n in range(least, (len(case.outputs) if many else most) + 1):
        for pattern in itertools.product((True, False), repeat=n):
            free = many or all(there or formals[k].option == schema.FormalParameterOption.Optional
                               for k, there in enumerate(pattern))
            if free and any(pattern) and list(pattern) != list(case.outputs):
                yield case.changed(outputs=list(pattern), label=f"{case.label}:results {''.join('x' if p else '-' for p in pattern)}")


def cases(listed, found, part=lambda key: True):
    """Every case of one operator. part(key): whether a case is wanted, by a number that does not change."""
    for i, template in enumerate(found):
        opsets = {min(listed.last, onnx.defs.onnx_opset_version())}
        if i == 0 or template.opset < 18:
            opsets.add(max(listed.first, min(template.opset, listed.last)))
        for opset in sorted(opsets):
            try:
                schema = schema_of(listed.op, opset)
            except onnx.defs.SchemaError:
                continue
            yield from of_template(listed, template.changed(opset=opset), schema, i, part)


def of_template(listed, base, schema, i, part):
    def wanted(*words):
        nonlocal rng
        seed = zlib.crc32(" ".join(map(str, (listed.op, base.opset, base.label, *words))).encode())
        rng = np.random.default_rng(seed)
        return part(seed)

    rng = None
    structural = set(range(len(base.inputs))) - set(data_positions(base, schema)) if base.inputs else set()
    structural |= set(STRUCTURE.get(listed.op, ()))
    fixed = tuple(k for k in sorted(structural) if k < len(base.inputs) and base.inputs[k] is not None)
    base = base.changed(fixed=fixed)
    if not base.inputs or base.inputs[0] is None:
        if wanted("alone"):
            yield base
        return
    for dtype in listed.types:
        if not takes(schema, formal(schema, 0).type_str, dtype):
            continue
        for kind in KINDS_REAL if is_real(dtype_of(dtype)) else KINDS_WHOLE:
            if wanted(dtype, kind):
                yield with_values(retyped(base, schema, dtype), schema, kind, rng)
        for size in sorted(set(base.inputs[0].shape)):
            if wanted(dtype, "empty", size):
                made = with_empty(with_values(retyped(base, schema, dtype), schema, "special", rng), schema, size)
                if made is not None:
                    yield made
        if i < 2 and not structural and all(x is not None for x in base.inputs):
            for shapes in SHAPES.get(len(base.inputs), []):
                if wanted(dtype, shapes):
                    yield with_shapes(retyped(base, schema, dtype), schema, shapes, rng)
    for case in itertools.chain(without_operands(base, schema), without_results(base, schema)):
        if wanted(case.label):
            yield case
