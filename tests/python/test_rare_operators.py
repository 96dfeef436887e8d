"""Operators of plugins/common/more beyond ONNX's own cases: against numpy on random tensors, on
several threads, in a row with others and on several devices; malformed nodes are refused with a message.

labels: ctypes
"""
import json

import capi
import ml_dtypes
import numpy as np
import pytest

EFORMAT, EUNSUPPORTED = 4, 7
NAMES = {"float32": "float32", "float64": "float64", "float16": "float16", "int64": "int64", "int32": "int32",
         "uint8": "uint8", "int8": "int8", "int16": "int16", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
         "bool": "bool", "bfloat16": "bfloat16"}


def graph(nodes, inputs, heads, opset=23):
    """nodes: (op, attrs, inputs by name, outputs); inputs: arrays by name."""
    made, row, entries, types, shapes = [], [0], {}, [], []
    for name, array in inputs.items():
        entries[name] = [len(made), 0, 0]
        made.append({"op": "null", "name": name, "inputs": []})
        types.append(NAMES[array.dtype.name])
        shapes.append(list(array.shape))
        row.append(row[-1] + 1)
    args = list(range(len(made)))
    for op, attrs, ins, outs in nodes:
        for k, out in enumerate(outs):
            entries[out] = [len(made), k, 0]
            types.append(None)
            shapes.append(None)
        node = {"op": op, "name": outs[0], "inputs": [entries[i] if i else [-1, 0, 0] for i in ins], "attrs": attrs}
        made.append(node)
        row.append(row[-1] + len(outs))
    return json.dumps({"heddle": {"version": 1, "opset": opset}, "nodes": made, "arg_nodes": args,
                       "heads": [entries[h] for h in heads], "node_row_ptr": row,
                       "attrs": {"dltype": ["list_str", types], "shape": ["list_shape", shapes]}})


def run(ctx, nodes, inputs, heads, devices="cpu", place=(), opset=23):
    g = capi.Graph(graph(nodes, inputs, heads, opset))
    m = e = None
    try:
        m = capi.Model(ctx, g, devices=devices, place=place)
        e = capi.Executor(m)
        for name, array in inputs.items():
            e.set_input(name, array)
        e.run()
        return e.outputs()
    finally:
        for x in (e, m, g):
            if x is not None:
                x.close()


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off")
    yield context
    context.close()


def test_einsum_is_numpys(ctx):
    rng = np.random.default_rng(1)
    for equation, shapes in (("bij,bjk->bik", ((3, 4, 5), (3, 5, 6))), ("...ij->...ji", ((2, 3, 4),)),
                             ("ij,j", ((4, 5), (5,))), ("bhid,bhjd->bhij", ((2, 2, 3, 4), (2, 2, 5, 4))),
                             ("ii->i", ((4, 4),)), ("a,b,c->abc", ((2,), (3,), (4,)))):
        arrays = {f"x{i}": rng.standard_normal(s) for i, s in enumerate(shapes)}
        got, = run(ctx, [("Einsum", {"equation": equation}, list(arrays), ["y"])], arrays, ["y"])
        np.testing.assert_allclose(got, np.einsum(equation, *arrays.values()), rtol=1e-12, atol=1e-12)


def test_transforms_are_numpys(ctx):
    x = np.random.default_rng(2).standard_normal((3, 37, 2))
    got, = run(ctx, [("DFT", {}, ["x"], ["y"])], {"x": x}, ["y"])
    want = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-9, atol=1e-9)
    matrix = np.random.default_rng(3).standard_normal((5, 7, 7))
    got, = run(ctx, [("Det", {}, ["x"], ["y"])], {"x": matrix}, ["y"])
    np.testing.assert_allclose(got, np.linalg.det(matrix), rtol=1e-9)


@pytest.mark.parametrize("op, of_numpy", [("Cos", np.cos), ("Asinh", np.arcsinh), ("Floor", np.floor), ("Sign", np.sign)])
def test_large_ones_are_split_and_right(ctx, op, of_numpy):
    x = np.random.default_rng(4).standard_normal(300_001).astype(np.float32)
    got, = run(ctx, [(op, {}, ["x"], ["y"])], {"x": x}, ["y"])
    np.testing.assert_allclose(got, of_numpy(x.astype(np.float64)).astype(np.float32), rtol=1e-6)


def test_attention_of_many_heads_is_split_and_right(ctx):
    rng = np.random.default_rng(8)
    q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ((2, 8, 40, 32), (2, 4, 50, 32), (2, 4, 50, 24)))
    pk, pv = rng.standard_normal((2, 4, 10, 32)).astype(np.float32), rng.standard_normal((2, 4, 10, 24)).astype(np.float32)
    y, keys, values = run(ctx, [("Attention", {"is_causal": 1}, ["q", "k", "v", "", "pk", "pv"], ["y", "keys", "values"])],
                          {"q": q, "k": k, "v": v, "pk": pk, "pv": pv}, ["y", "keys", "values"])
    np.testing.assert_array_equal(keys, np.concatenate((pk, k), 2))
    np.testing.assert_array_equal(values, np.concatenate((pv, v), 2))
    wide = np.repeat(keys.astype(np.float64), 2, 1)
    scores = q.astype(np.float64) @ wide.transpose(0, 1, 3, 2) / np.sqrt(32)
    scores[:, :, np.arange(60)[None, :] > np.arange(40)[:, None] + 10] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ np.repeat(values.astype(np.float64), 2, 1)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_a_global_pool_is_a_norm(ctx):
    x = np.random.default_rng(9).standard_normal((2, 3, 4, 5)).astype(np.float32)
    for p in 1, 2, 3:
        got, = run(ctx, [("GlobalLpPool", {"p": p}, ["x"], ["y"])], {"x": x}, ["y"])
        want = (np.abs(x.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype, unit", [(np.float16, 2.0**-11), (ml_dtypes.bfloat16, 2.0**-8)])
def test_halves_are_rounded_once(ctx, dtype, unit):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((17, 33), (33, 9)))
    got, = run(ctx, [("MatMul", {}, ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=unit * 1.01, atol=1e-5)
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    back, = run(ctx, [("Cast", {"to": 1}, ["x"], ["w"]), ("Cast", {"to": 10 if dtype == np.float16 else 16}, ["w"], ["y"])],
                {"x": every}, ["y"])
    same = (back.view(np.uint16) == every.view(np.uint16)) | (np.isnan(back.astype(np.float32)) & np.isnan(every.astype(np.float32)))
    assert same.all()


def test_all_float32_cast_to_halves_as_numpy_does(ctx):
    x = np.random.default_rng(6).integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for number, dtype in ((10, np.float16), (16, ml_dtypes.bfloat16)):
            got, = run(ctx, [("Cast", {"to": number}, ["x"], ["y"])], {"x": x}, ["y"])
            np.testing.assert_array_equal(got.astype(np.float64), x.astype(dtype).astype(np.float64))


def test_they_run_between_others_on_several_devices(ctx):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 6)).astype(np.float32)
    index = np.array([[0, 3, 5, 1]] * 4, np.int64)
    nodes = [("Relu", {}, ["x"], ["r"]), ("GatherElements", {"axis": 1}, ["r", "i"], ["g"]), ("Cos", {}, ["g"], ["c"]),
             ("Add", {}, ["c", "g"], ["y"])]
    want = np.take_along_axis(np.maximum(x, 0), index, 1)
    for place in ((), ("g=sim:0",), ("c=sim:0", "y=cpu")):
        got, = run(ctx, nodes, {"x": x, "i": index}, ["y"], devices="cpu,sim:0", place=place)
        np.testing.assert_allclose(got, np.cos(want.astype(np.float64)) + want, rtol=1e-6)


def test_a_shape_may_be_computed_by_them(ctx):
    """ReduceL1 of a shape is not among what libheddle folds itself."""
    x = np.zeros((2, 3), np.float32)
    nodes = [("Shape", {}, ["x"], ["s"]), ("ReduceL1", {}, ["s"], ["n"]), ("ConstantOfShape", {"value_float": 2.0}, ["n"], ["y"])]
    got, = run(ctx, nodes, {"x": x}, ["y"])
    assert got.shape == (5,) and (got == 2).all()


def test_shapes_of_data_follow_the_values(ctx):
    g = capi.Graph(graph([("NonZero", {}, ["x"], ["y"])], {"x": np.zeros((3, 4), np.int64)}, ["y"]))
    m = capi.Model(ctx, g, devices="cpu")
    e = capi.Executor(m)
    for seed in range(5):
        x = np.random.default_rng(seed).integers(0, 2, (3, 4))
        e.set_input("x", x)
        e.run()
        np.testing.assert_array_equal(e.output(0), np.array(np.nonzero(x)))
    for made in (e, m, g):
        made.close()


@pytest.mark.parametrize("wrong", [9, -9, 2**62, -2**63])
def test_indices_out_of_range_are_errors(ctx, wrong):
    x = np.arange(1, 7, dtype=np.float32)
    index = np.array([0, 5, -1, -6, wrong, 1], np.int64)
    for op, more in (("GatherElements", {}), ("ScatterElements", {"u": -x})):
        values = {"x": x, "i": index, **more}
        with pytest.raises(capi.HeddleError, match=f"element 4 of input 1 is {wrong}, which is out of range: -6 to 5"):
            run(ctx, [(op, {}, list(values), ["y"])], values, ["y"])


F = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("op, attrs, arrays, words", [
    ("Einsum", {"equation": "ij,jk->ik"}, (F, F), "'j' of its equation is 3 and 2"),
    ("Einsum", {"equation": "ij"}, (F, F), "one term for each operand"),
    ("Det", {}, (F,), "not square"),
    ("ScatterND", {"reduction": "divide"}, (F, np.zeros((1, 1), np.int64), np.zeros((1, 3), np.float32)), "expected one of"),
    ("ScatterND", {}, (F, np.zeros((1, 1), np.int64), np.zeros((1, 2), np.float32)), "has shape [1, 2], expected [1, 3]"),
    ("CumSum", {}, (F, np.array(5, np.int64)), "axis 5 of 2 dimensions"),
    ("BitwiseAnd", {}, (F, F), "does not take this type"),
    ("GroupNormalization", {"num_groups": 2}, (F, F[0], F[0]), "num_groups does not divide"),
    ("LSTM", {"hidden_size": 4}, (np.zeros((2, 1, 3), np.float32), np.zeros((1, 12, 3), np.float32),
                                  np.zeros((1, 12, 3), np.float32)), "hidden_size"),
    ("Attention", {}, (np.zeros((1, 2, 3, 4), np.float32),) * 2 + (np.zeros((1, 2, 5, 4), np.float32),), "do not fit"),
])
def test_malformed_nodes_are_refused_in_words(ctx, op, attrs, arrays, words):
    inputs = {f"x{i}": a for i, a in enumerate(arrays)}
    with pytest.raises(capi.HeddleError) as e:
        run(ctx, [(op, attrs, list(inputs), ["bad"])], inputs, ["bad"])
    assert e.value.status in (EFORMAT, EUNSUPPORTED)
    assert words in str(e.value) and "'bad'" in str(e.value) and op in str(e.value)


def test_what_is_unknown_is_listed(ctx):
    with pytest.raises(capi.HeddleError) as e:
        run(ctx, [("ImageDecoder", {}, ["x"], ["b"])], {"x": F}, ["b"])
    assert e.value.status == EUNSUPPORTED and "ImageDecoder" in str(e.value)
    with pytest.raises(capi.HeddleError) as e:  # an operator of a later opset
        run(ctx, [("Attention", {}, ["x"] * 3, ["b"])], {"x": F}, ["b"], opset=22)
    assert e.value.status == EUNSUPPORTED and "opset 22" in str(e.value)
