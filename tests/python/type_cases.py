"""ONNX's own node cases of one node in other types: each type parameter in each of the types that ONNX allows for it. What
accelerators take of them is compared with what cpu takes (test_accelerator_types.py, test_operand_types_opencl.py)."""
import collections
import itertools
import os
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import defs, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from tool_case import BUILD

# For programs that import the binding, which CTest gives to its own tests only.
BINDING = BUILD / "python"
CHILD = {"PYTHONPATH": os.pathsep.join([str(BINDING), os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])}
EVERY = os.environ.get("HEDDLE_TYPES") == "all"

PLAIN = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "bool": np.bool_,
         **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)}}
NARROW = {name: getattr(ml_dtypes, word) for name, word in (
    ("float8e4m3fn", "float8_e4m3fn"), ("float8e4m3fnuz", "float8_e4m3fnuz"), ("float8e5m2", "float8_e5m2"),
    ("float8e5m2fnuz", "float8_e5m2fnuz"), ("float8e8m0", "float8_e8m0fnu"), ("float4e2m1", "float4_e2m1fn"),
    ("int4", "int4"), ("uint4", "uint4"), ("int2", "int2"), ("uint2", "uint2"))}
TYPES = PLAIN | NARROW
# Attributes that name a type of a result.
NAMING = ("to", "dtype", "output_dtype")


def node_cases(wanted=()):
    """{operator: [(node, {name: value}, {output: type})]} of cases with one node and tensors only."""
    found = collections.defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or case.model.functions or (wanted and graph.node[0].op_type not in wanted):
            continue
        node, inputs = graph.node[0], [numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x for x in case.data_sets[0][0]]
        if node.domain != "" or any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute) or not all(isinstance(x, np.ndarray) for x in inputs):
            continue
        types = {v.name: v.type.tensor_type.elem_type for v in graph.output}
        found[node.op_type].append((node, dict(zip([v.name for v in graph.input], inputs)), types))
    return found


def type_of(text):
    return TYPES.get(text.removeprefix("tensor(").removesuffix(")"))


def cast(value, to):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if value.dtype.kind in "SUO" or to is None:
            return value
        if to is np.bool_:
            return value != 0
        if np.dtype(to).name in ("int4", "uint4", "int2", "uint2"):
            return (value.astype(np.float32).astype(np.int8) & 1).astype(to)
        return value.astype(to) if value.dtype.kind != "V" else value.astype(np.float32).astype(to)


def number(to):
    return helper.np_dtype_to_tensor_dtype(np.dtype(to))


class Parameters:
    """The type parameters of a node: which operands and results have each, and its types."""

    def __init__(self, node):
        schema = defs.get_schema(node.op_type)
        self.formal_in = [schema.inputs[min(k, len(schema.inputs) - 1)] for k in range(len(node.input))]
        self.formal_out = [schema.outputs[min(k, len(schema.outputs) - 1)] for k in range(len(node.output))]
        self.inputs = collections.defaultdict(list)
        self.types = {}
        for f, name in zip(self.formal_in, node.input):
            if name:
                self.inputs[f.type_str].append(name)
                self.types.setdefault(f.type_str, [t for t in map(type_of, f.types) if t is not None])
        self.labels = {f.type_str: f.name for f, name in reversed(list(zip(self.formal_in, node.input))) if name}
        named = [a.name for a in node.attribute if a.name in NAMING]
        self.naming = named[0] if named else None
        # What an attribute names is the type of the results that no operand has.
        free = [f for f, name in zip(self.formal_out, node.output) if name and f.type_str not in self.inputs]
        self.named_types = [t for t in map(type_of, free[0].types) if t is not None] if self.naming and free else []


def model_of(node, parameters, values, types, chosen, named=None, as_inputs=()):
    """The model of a node, whose type parameters are chosen ones, and the attribute that names a type names another; with the
    operands of the chosen ones as constants, but for as_inputs. Its inputs too."""
    change = {name: to for parameter, to in chosen.items() for name in parameters.inputs[parameter]}
    given = {k: cast(v, change.get(k)) for k, v in values.items()}
    inputs = {k: v for k, v in given.items() if k not in change or k in as_inputs}
    results = {}
    for f, name in zip(parameters.formal_out, node.output):
        if name:
            results[name] = number(chosen[f.type_str]) if f.type_str in chosen else types.get(name, 1)
            if named is not None and f.type_str not in parameters.inputs:
                results[name] = number(named)
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for a in made.attribute:
        if named is not None and a.name == parameters.naming:
            a.i = number(named)
    outputs = [onnx.ValueInfoProto(name=k, type=onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=t))) for k, t in results.items()]
    graph = helper.make_graph([made], "g", [helper.make_tensor_value_info(k, number(v.dtype), v.shape) for k, v in inputs.items()],
                              outputs, [numpy_helper.from_array(v, k) for k, v in given.items() if k not in inputs])
    opsets = [helper.make_opsetid("", defs.onnx_opset_version())]
    return helper.make_model(graph, opset_imports=opsets, ir_version=max(10, helper.find_min_ir_version_for(opsets))), inputs


def combinations(node, every=False):
    """({parameter: type}, type that an attribute names or None) for a node: one parameter at a time in each of its types, or
    every combination."""
    parameters = Parameters(node)
    if every:
        names = list(parameters.types)
        for types in itertools.product(*(parameters.types[name] for name in names), parameters.named_types or [None]):
            yield dict(zip(names, types)), types[-1]
        return
    for name, types in parameters.types.items():
        for to in types:
            yield {name: to}, None
    for to in parameters.named_types:
        yield {}, to


def wanted_operators():
    """HEDDLE_ONNX_CASE picks operators by name, with commas between."""
    return [name for name in os.environ.get("HEDDLE_ONNX_CASE", "").split(",") if name]
