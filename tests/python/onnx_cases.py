"""ONNX's own node cases as graphs of ours: what of the installed onnx package fits the operators and opsets of Heddle.

A case is restated: its tensors become inputs, the `value` of a Constant becomes a parameter, and a model of an opset
before 13 is taken at opset 13 where ONNX's own checker accepts it there.
"""
import os
import re
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")

DTYPES = {np.dtype(t): n for t, n in (
    ("float32", "float32"), ("float64", "float64"), ("int8", "int8"), ("int16", "int16"), ("int32", "int32"),
    ("int64", "int64"), ("uint8", "uint8"), ("uint16", "uint16"), ("uint32", "uint32"), ("uint64", "uint64"),
    ("bool", "bool"), ("float16", "float16"), (ml_dtypes.bfloat16, "bfloat16"),
    (ml_dtypes.float8_e4m3fn, "e4m3_float8"), (ml_dtypes.float8_e4m3fnuz, "e4m3fnuz_float8"),
    (ml_dtypes.float8_e5m2, "e5m2_float8"), (ml_dtypes.float8_e5m2fnuz, "e5m2fnuz_float8"),
    (ml_dtypes.float8_e8m0fnu, "e8m0_float8"), (ml_dtypes.int4, "int4"), (ml_dtypes.uint4, "uint4"),
    (ml_dtypes.int2, "int2"), (ml_dtypes.uint2, "uint2"), (ml_dtypes.float4_e2m1fn, "e2m1_float4"))}


def accelerated():
    """The operators that the accelerators have kernels for, by the table that users read."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "operators.md")) as f:
        rows = [[cell.strip() for cell in line.split("|")[1:5]] for line in f if line.startswith("| ")]
    return {row[0] for row in rows if re.fullmatch(r"\d+ to \d+", row[2]) and row[3] != "no"}


OPERATORS = accelerated()


class LeftOut(Exception):
    """Why a case is not run."""


def load():
    """Every case of the package, by name: (name, model, inputs, outputs)."""
    from onnx.backend.test.case.node import collect_testcases
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        inputs, outputs = ([array_of(x) for x in values] for values in case.data_sets[0])
        yield case.name, case.model, inputs, outputs, case.rtol, case.atol


def array_of(x):
    """float8 comes as a TensorProto."""
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def restated(model):
    """The model and its opset, 13 or later."""
    domains = {o.domain: o.version for o in model.opset_import}
    if set(domains) - {"", "ai.onnx"}:
        raise LeftOut("another domain")
    if model.functions:
        raise LeftOut("functions of its own")
    opset = domains.get("", domains.get("ai.onnx", 0))
    if opset >= 13:
        return model, opset
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = 8
    del copy.opset_import[:]
    opset = 13
    copy.opset_import.append(onnx.helper.make_opsetid("", opset))
    try:
        onnx.checker.check_model(copy, full_check=False)
        onnx.shape_inference.infer_shapes(copy, check_type=True, strict_mode=True)
    except Exception as e:  # the checker's own classes differ from version to version
        raise LeftOut(f"not a model of opset {opset}: {str(e).splitlines()[0][:90]}") from None
    return copy, opset


def plain(model, arrays):
    """Whether a case has tensors of number types and bool only; LeftOut where not."""
    for v in list(model.graph.input) + list(model.graph.output) + list(model.graph.value_info):
        if v.type.WhichOneof("value") != "tensor_type":
            raise LeftOut("values that are not tensors")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
        if dtype not in DTYPES:
            raise LeftOut(f"a tensor of {'string' if dtype == np.dtype(object) else dtype}")
    for array in arrays:
        if not hasattr(array, "dtype") and not np.isscalar(array):
            raise LeftOut("values that are not tensors")


def attribute(a):
    kind = onnx.AttributeProto
    if a.type == kind.INT:
        return a.i
    if a.type == kind.FLOAT:
        return number(a.f)
    if a.type == kind.STRING:
        return a.s.decode()
    if a.type == kind.INTS:
        return list(a.ints)
    if a.type == kind.FLOATS:
        return [number(x) for x in a.floats]
    if a.type == kind.STRINGS:
        return [x.decode() for x in a.strings]
    if a.type in (kind.GRAPH, kind.GRAPHS):
        raise LeftOut("a graph inside of a node")
    raise LeftOut(f"attribute {a.name} of a kind that graphs do not have")


def has_graphs(model):
    """Whether all that stands between a case and its being run is that nodes run graphs."""
    kinds = [a.type for n in model.graph.node for a in n.attribute]
    return onnx.AttributeProto.GRAPH in kinds and onnx.AttributeProto.GRAPHS not in kinds


def number(x):
    x = float(x)
    return x if np.isfinite(x) else "nan" if np.isnan(x) else "inf" if x > 0 else "-inf"


def attributes(node):
    out = {a.name: a for a in node.attribute}
    if node.op_type == "ConstantOfShape" and "value" in out:
        value = numpy_helper.to_array(out.pop("value").t).reshape(-1)[0]
        key = "value_float" if value.dtype.kind == "f" else "value_int"
        made = {key: number(value) if key == "value_float" else int(value),
                "dtype": onnx.helper.np_dtype_to_tensor_dtype(value.dtype)}
        return made
    return {k: attribute(v) for k, v in out.items()}


def graph(model, opset, shapes):
    """The graph as JSON, and the parameters; shapes: arrays by input name."""
    nodes, args, entries, dtypes, dims, params = [], [], {}, [], [], {}
    row = [0]

    def add(node, names, types):
        for k, (name, (dtype, shape)) in enumerate(zip(names, types)):
            if name:
                entries[name] = [len(nodes), k, 0]
            dtypes.append(dtype)
            dims.append(shape)
        nodes.append(node)
        row.append(row[-1] + len(names))

    def add_null(name, array):
        if array.dtype not in DTYPES:
            raise LeftOut(f"a tensor of {array.dtype}")
        args.append(len(nodes))
        add({"op": "null", "name": name, "inputs": []}, [name], [(DTYPES[array.dtype], list(array.shape))])

    for name, array in shapes.items():
        add_null(name, array)
    for t in model.graph.initializer:
        params[t.name] = numpy_helper.to_array(t)
        add_null(t.name, params[t.name])
    for i, n in enumerate(model.graph.node):
        if n.op_type == "Constant" and n.attribute[0].name in ("value", "sparse_value", "value_string"):
            if n.attribute[0].name != "value":
                raise LeftOut("a constant that is not a tensor")
            params[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
            add_null(n.output[0], params[n.output[0]])
            continue
        inputs = [entries[x] if x else [-1, 0, 0] for x in n.input]
        add({"op": n.op_type, "name": f"node{i}", "attrs": attributes(n), "inputs": inputs}, list(n.output),
            [(None, None)] * len(n.output))
    return {"heddle": {"version": 1, "opset": opset}, "nodes": nodes, "arg_nodes": args,
            "heads": [entries[o.name] for o in model.graph.output],
            "attrs": {"dltype": ["list_str", dtypes], "shape": ["list_shape", dims]}, "node_row_ptr": row}, params


def with_axes_attribute(model, inputs):
    """A reduction of opset 18 as one of opset 13, whose axes are an attribute; None where it has no such form."""
    node = model.graph.node[0] if len(model.graph.node) == 1 else None
    if node is None or node.op_type not in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"):
        return None
    if any(a.name == "noop_with_empty_axes" for a in node.attribute):
        return None
    if len(node.input) > 1 and (len(inputs) < 2 or inputs[1].size == 0):
        return None
    if model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.BOOL:
        return None
    keep = [onnx.helper.make_attribute(a.name, onnx.helper.get_attribute_value(a)) for a in node.attribute]
    if len(node.input) > 1:
        keep.append(onnx.helper.make_attribute("axes", [int(x) for x in inputs[1]]))
    made = onnx.helper.make_node(node.op_type, [node.input[0]], list(node.output))
    made.attribute.extend(keep)
    g = onnx.helper.make_graph([made], "g", [model.graph.input[0]], list(model.graph.output))
    return onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 13)]), inputs[:1]
