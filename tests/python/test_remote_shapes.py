"""A client that gives a device server regions whose values are not what their nodes make of each other: the server infers types and
shapes itself, and prepares nothing that would read or write beyond a buffer.
timeout: 300
labels: ctypes
"""
import struct

import numpy as np
import pytest
from onnx import TensorProto, helper, shape_inference

import remote_case as case
from remote_case import Client, serving, u32, u64
from test_remote_ranges import text

EUNSUPPORTED = 7


@pytest.fixture(scope="module", params=["cpu", "sim"])
def server(request):
    with serving("--listen", "127.0.0.1:0", "--devices", request.param) as s:
        yield s


def f32(*shape):
    return "float32", shape, None


def ints(*numbers):
    return "int64", (len(numbers),), np.array(numbers, np.int64).tobytes()


def attribute(name, value):
    a = helper.make_attribute(name, value)
    kind = {1: 2, 2: 1, 3: 3, 6: 5, 7: 4}[a.type]
    data = {1: lambda: struct.pack("<d", a.f), 2: lambda: struct.pack("<q", a.i), 3: lambda: a.s,
            6: lambda: struct.pack(f"<{len(a.floats)}d", *a.floats), 7: lambda: struct.pack(f"<{len(a.ints)}q", *a.ints)}[a.type]()
    count = len(data) if kind == 3 else len(data) // 8
    return text(name) + u32(kind) + u64(count) + data


def value(dtype, shape, data=None):
    code, bits = {"float32": (2, 32), "int64": (0, 64), "bool": (6, 8)}[dtype]
    body = u32(code | bits << 8 | 1 << 16, len(shape)) + u64(*shape, 0)
    return body + (u32(0) if data is None else u32(1) + u64(len(data)) + data)


def region(op, inputs, outputs, flags=0, opset=17, **attrs):
    """One node; the values are its inputs, then its outputs."""
    n, m = len(inputs), len(outputs)
    node = u32(opset, 0) + text("") + text(op) + text("n") + u32(n, *range(n)) + u32(m, *range(n, n + m))
    node += u32(len(attrs)) + b"".join(attribute(k, v) for k, v in attrs.items())
    values = u32(n + m) + b"".join(value(*v) for v in [*inputs, *outputs])
    return u32(flags) + values + u32(n, *range(n)) + u32(m, *range(n, n + m)) + u32(1) + node


# op, inputs, the output that they have, attributes
TRUE = [
    ("Relu", [f32(3, 4)], f32(3, 4), {}),
    ("Add", [f32(3, 4), f32(4)], f32(3, 4), {}),
    ("MatMul", [f32(2, 3), f32(3, 4)], f32(2, 4), {}),
    ("Gemm", [f32(2, 3), f32(3, 4), f32(4)], f32(2, 4), {}),
    ("Conv", [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], f32(1, 4, 6, 6), {}),
    ("MaxPool", [f32(1, 3, 8, 8)], f32(1, 3, 7, 7), {"kernel_shape": [2, 2]}),
    ("GlobalAveragePool", [f32(1, 3, 8, 8)], f32(1, 3, 1, 1), {}),
    ("Softmax", [f32(3, 4)], f32(3, 4), {"axis": 1}),
    ("Transpose", [f32(3, 4)], f32(4, 3), {"perm": [1, 0]}),
    ("Concat", [f32(3, 4), f32(2, 4)], f32(5, 4), {"axis": 0}),
    ("Gather", [f32(5, 4), ("int64", (3,), None)], f32(3, 4), {"axis": 0}),
    ("Expand", [f32(1, 4), ints(3, 4)], f32(3, 4), {}),
    ("Tile", [f32(2, 2), ints(2, 3)], f32(4, 6), {}),
    ("Slice", [f32(8, 4), ints(1), ints(5), ints(0)], f32(4, 4), {}),
    ("Pad", [f32(2, 2), ints(1, 1, 1, 1)], f32(4, 4), {}),
    ("LayerNormalization", [f32(3, 4), f32(4), f32(4)], f32(3, 4), {}),
    ("CumSum", [f32(3, 4), ("int64", (), struct.pack("<q", 0))], f32(3, 4), {}),
    ("Where", [("bool", (3, 4), None), f32(3, 4), f32(4)], f32(3, 4), {}),
    ("ReduceSum", [f32(3, 4), ints(1)], f32(3, 1), {"keepdims": 1}),
    ("BatchNormalization", [f32(1, 3, 4, 4), f32(3), f32(3), f32(3), f32(3)], f32(1, 3, 4, 4), {}),
    ("LSTM", [f32(5, 2, 3), f32(1, 16, 3), f32(1, 16, 4)], f32(5, 1, 2, 4), {"hidden_size": 4}),
]


def is_true(op, inputs, output, attrs):
    """Whether these inputs give that output, by onnx's own inference."""
    types = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
    info = [helper.make_tensor_value_info(f"i{k}", types[t], s) for k, (t, s, _) in enumerate(inputs)]
    constants = [helper.make_tensor(f"i{k}", types[t], s, data, raw=True) for k, (t, s, data) in enumerate(inputs) if data]
    node = helper.make_node(op, [f"i{k}" for k in range(len(inputs))], ["y"], **attrs)
    graph = helper.make_graph([node], "g", info, [helper.make_empty_tensor_value_info("y")], initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    try:
        got = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError:
        return False
    of = got.graph.output[0].type.tensor_type
    return (of.elem_type, tuple(d.dim_value for d in of.shape.dim)) == (types[output[0]], output[1])


def lies(inputs, output):
    """Regions with one shape or type changed: larger, smaller, another rank, and of the operands the same."""
    kind, shape, _ = output
    for d in range(len(shape)):
        for n in (0, shape[d] + 1, 64 * shape[d], 1 << 40):
            if n != shape[d]:
                yield inputs, (kind, (*shape[:d], n, *shape[d + 1:]), None)
    yield inputs, (kind, (*shape, 1000), None)
    yield inputs, (kind, shape[1:], None)
    yield inputs, ("int64", shape, None)
    for i, (kind, shape, data) in enumerate(inputs):
        for d in range(len(shape)):
            if data is None and shape[d] > 1:
                yield [*inputs[:i], (kind, (*shape[:d], shape[d] * 100 + 1, *shape[d + 1:]), None), *inputs[i + 1:]], output


@pytest.mark.parametrize("op,inputs,output,attrs", TRUE, ids=[t[0] for t in TRUE])
@pytest.mark.parametrize("flags", [0, 2], ids=["", "open"])
def test_shapes_that_do_not_fit(server, op, inputs, output, attrs, flags):
    c = Client(server.port)
    assert c.ask(case.OPEN, u32(0))[0] == 0
    assert is_true(op, inputs, output, attrs)
    untrue = [lie for lie in lies(inputs, output) if not is_true(op, *lie, attrs)]
    assert len(untrue) > 3
    status, why, offers = c.ask(case.QUERY, u32(0) + region(op, inputs, [output], flags, **attrs))
    assert status == 0 or ("sim" in why and "type or shape" not in why), why  # sim has fewer operators
    last = struct.unpack_from("<I", offers)[0] - 1 if status == 0 else 0  # row-major
    if status == 0:
        status, why, _ = c.ask(case.PREPARE, u32(0, last) + region(op, inputs, [output], flags, **attrs))
        assert status == 0, why
    taken = []
    for kind, head in (case.QUERY, u32(0)), (case.PREPARE, u32(0, last)):
        for other_inputs, other in untrue:
            if c.ask(kind, head + region(op, other_inputs, [other], flags, **attrs))[0] == 0:
                taken.append((other_inputs, other))
    assert not taken, taken[:3]
    c.close()


def test_what_no_device_runs(server):
    c = Client(server.port)
    for op in "NoSuchOperator", "If", "Loop", "SequenceConstruct":
        status, why, _ = c.ask(case.QUERY, u32(0) + region(op, [f32(3)], [f32(3)]))
        assert status == EUNSUPPORTED, (op, status, why)
    for bad in {"axis": "text"}, {"none": 1}:
        status, why, _ = c.ask(case.QUERY, u32(0) + region("Softmax", [f32(3)], [f32(3)], **bad))
        assert status == EUNSUPPORTED and "attribute" in why, why
    c.close()
