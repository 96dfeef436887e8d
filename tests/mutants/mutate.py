"""Mutants of ONNX files: mutant(data, seed) changes the bytes, or what they say: declared types and shapes, attributes,
the inputs and outputs of nodes, constants. The same data and seed give the same mutant."""
import random

import onnx
from onnx import TensorProto

TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL, TensorProto.INT8,
         TensorProto.UINT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64, TensorProto.STRING, 0]
NUMBERS = [-(1 << 63), -(1 << 31), -1000, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 100, 255, 65536, (1 << 31) - 1, 1 << 40,
           (1 << 63) - 1]
SIZES = [0, 1, 2, 3, 4, 5, 8, 100, 1000000]


# Bytes.


def flip(data, rng):
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def put(data, rng):
    data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 8, 127, 128, 255, rng.randrange(256)])


def erase(data, rng):
    at = rng.randrange(len(data))
    del data[at:at + rng.randrange(1, 9)]


def repeat(data, rng):
    at, n = rng.randrange(len(data)), rng.randrange(1, 33)
    data[at:at] = data[at:at + n]


def swap(data, rng):
    n = rng.randrange(1, 9)
    a, b = rng.randrange(len(data)), rng.randrange(len(data))
    data[a:a + n], data[b:b + n] = data[b:b + n], data[a:a + n]


def cut(data, rng):
    del data[rng.randrange(len(data)):]


BYTES = [flip, flip, put, put, erase, repeat, swap, cut]


# What the bytes say.


def graphs(model):
    """The graph, and those of its nodes."""
    found = [model.graph]
    for graph in found:
        found += [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    return found


def nodes(model):
    return [n for g in graphs(model) for n in g.node]


def change_type(value, rng):
    value.type.tensor_type.elem_type = rng.choice(TYPES)


def change_shape(value, rng):
    tensor = value.type.tensor_type
    kind, dims = rng.randrange(6), tensor.shape.dim
    if kind == 0:
        tensor.ClearField("shape")
    elif kind == 1:
        dims.add().dim_value = rng.choice(SIZES)
    elif kind == 2 and dims:
        del dims[rng.randrange(len(dims))]
    elif dims and kind < 5:
        dims[rng.randrange(len(dims))].dim_value = rng.choice(SIZES if kind == 3 else NUMBERS)
    elif dims:
        dims[rng.randrange(len(dims))].dim_param = rng.choice(["n", "k", "other"])
    else:
        tensor.shape.SetInParent()


def change_output(model, rng):
    found = [v for g in graphs(model) for v in g.output]
    if found:
        rng.choice([change_type, change_shape])(rng.choice(found), rng)


def change_input(model, rng):
    found = [v for g in graphs(model) for v in g.input]
    if found:
        rng.choice([change_type, change_shape, change_shape])(rng.choice(found), rng)


def declare_inner(model, rng):
    """A value between nodes becomes an output, or gets a declaration."""
    graph = rng.choice(graphs(model))
    names = [o for n in graph.node for o in n.output if o]
    if names:
        value = rng.choice([graph.output, graph.value_info]).add()
        value.name = rng.choice(names)
        change_type(value, rng)
        change_shape(value, rng)


def change_attribute(model, rng):
    found = [a for n in nodes(model) for a in n.attribute]
    if not found:
        return
    a = rng.choice(found)
    if a.ints:
        at, kind = rng.randrange(len(a.ints)), rng.randrange(3)
        if kind == 0:
            del a.ints[at]
        elif kind == 1:
            a.ints.append(rng.choice(NUMBERS))
        else:
            a.ints[at] = rng.choice(NUMBERS)
    elif a.type == onnx.AttributeProto.INT:
        a.i = rng.choice(NUMBERS)
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = rng.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    elif a.type == onnx.AttributeProto.TENSOR:
        change_tensor(a.t, rng)
    elif a.type == onnx.AttributeProto.STRING:
        a.s = rng.choice([b"", b"SAME_UPPER", b"nearest", b"RIGHT", b"\xff"])


def drop_attribute(model, rng):
    found = [n for n in nodes(model) if n.attribute]
    if found:
        one = rng.choice(found)
        del one.attribute[rng.randrange(len(one.attribute))]


def change_inputs(model, rng):
    found = [n for n in nodes(model) if n.input]
    if not found:
        return
    one, kind = rng.choice(found), rng.randrange(4)
    a, b = rng.randrange(len(one.input)), rng.randrange(len(one.input))
    if kind == 0:
        one.input[a] = ""
    elif kind == 1:
        del one.input[a]
    elif kind == 2:
        one.input[a], one.input[b] = one.input[b], one.input[a]
    else:
        other = rng.choice(found)
        one.input[a] = rng.choice(list(other.input))


def change_outputs(model, rng):
    found = [n for n in nodes(model) if n.output]
    if not found:
        return
    one, kind = rng.choice(found), rng.randrange(3)
    if kind == 0:
        one.output[rng.randrange(len(one.output))] = ""
    elif kind == 1:
        del one.output[rng.randrange(len(one.output))]
    else:
        one.output.append(rng.choice(["", "more"]))


def change_operator(model, rng):
    found = nodes(model)
    if found:
        rng.choice(found).op_type = rng.choice([n.op_type for n in found] + ["Identity", "Neg", "Cast", "NonZero", "Size"])


def drop_node(model, rng):
    graph = rng.choice(graphs(model))
    if graph.node:
        del graph.node[rng.randrange(len(graph.node))]


def change_tensor(tensor, rng):
    kind = rng.randrange(4)
    if kind == 0:
        tensor.data_type = rng.choice(TYPES)
    elif kind == 1 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
    elif kind == 2 and tensor.raw_data:
        data = bytearray(tensor.raw_data)
        put(data, rng)
        tensor.raw_data = bytes(data)
    elif tensor.raw_data:
        tensor.raw_data = tensor.raw_data[:rng.randrange(len(tensor.raw_data))]


def change_constant(model, rng):
    found = [t for g in graphs(model) for t in g.initializer]
    if found:
        change_tensor(rng.choice(found), rng)


def change_opset(model, rng):
    if model.opset_import:
        model.opset_import[0].version = rng.choice([1, 7, 9, 11, 13, 17, 18, 19, 21, 22])


MEANINGS = [change_output, change_output, change_output, change_input, declare_inner, change_attribute, change_attribute,
            drop_attribute, change_inputs, change_outputs, change_operator, drop_node, change_constant, change_constant,
            change_opset]


def mutant(data, seed):
    rng = random.Random(seed)
    if rng.random() < 0.35:
        data = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            if data:
                rng.choice(BYTES)(data, rng)
        return bytes(data)
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice(MEANINGS)(model, rng)
    return model.SerializeToString()
