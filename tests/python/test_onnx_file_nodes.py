"""ONNX's own node cases as .onnx files of the opset that they were made for, 7 to the newest: what graphs have operators
for is run on cpu and compared with ONNX's expected outputs; what is refused has to be refused with a message.
labels: ctypes
timeout: 600
"""
import collections
import os

import capi
import numpy as np
import onnx
import onnx_cases
import onnx_files
import onnx_nodes
import onnx_results

# So many cases pass; fewer is a step back.
FLOOR = 1598

# A case that is not run is refused with one of these; anything else is a failure.
REFUSALS = {
    "an operator that graphs do not have": "not known in opset",
    "a graph inside of a node": "it runs a graph of its own",
    "a Scan with a batch": "Scan of opset 8",
    "an opset before 7": "this library reads 7 to",
    "no tensor": "is no tensor",
    "training": "training is not supported",
}


def refusal(text):
    for reason, words in REFUSALS.items():
        if words in text:
            return reason
    return None


def run(ctx, path, names, inputs):
    model = executor = None
    try:
        model = capi.Model.load(ctx, path, devices="cpu")
        executor = capi.Executor(model)
        for name, x in zip(names, inputs):
            executor.set_input(name, np.asarray(x))
        executor.run()
        return executor.outputs()
    finally:
        for x in (executor, model):
            if x is not None:
                x.close()


def has_objects(model):
    """Texts, sequences and optionals, which bindings/python/tests/test_text_nodes.py hands over."""
    types = [v.type for v in [*model.graph.input, *model.graph.output]]
    return any(t.WhichOneof("value") != "tensor_type" or t.tensor_type.elem_type == onnx.TensorProto.STRING for t in types)


def test_node_cases(tmp_path):
    os.environ["HEDDLE_CONFIG"] = "off"
    ctx = capi.Context()
    passed, opsets, refused, wrong, known = 0, collections.Counter(), collections.Counter(), [], collections.Counter()
    for name, proto, inputs, outputs, rtol, atol in onnx_cases.load():
        if has_objects(proto) or any(not isinstance(x, np.ndarray) and not np.isscalar(x) for x in list(inputs) + list(outputs)):
            continue
        if os.environ.get("HEDDLE_ONNX_CASE", "") not in name:
            continue
        onnx.save(proto, tmp_path / "case.onnx")
        wrong += onnx_results.by_case(name, proto, known)
        try:
            got = run(ctx, tmp_path / "case.onnx", [v.name for v in proto.graph.input], inputs)
        except capi.HeddleError as e:
            reason = refusal(str(e))
            refused[reason] += 1
            if reason is None or "case.onnx" not in str(e):
                wrong.append(f"{name}: {e}")
            continue
        except KeyError:
            refused["a type that this test cannot hand over"] += 1
            continue
        difference = onnx_nodes.compare(got, outputs, rtol, atol, onnx_nodes.is_random(proto, inputs))
        if difference:
            wrong.append(f"{name}: {difference}")
        else:
            passed += 1
            opsets[{o.domain: o.version for o in proto.opset_import}.get("")] += 1
    ctx.close()
    print(f"{passed} passed, by opset {dict(sorted(opsets.items(), key=str))}; refused {dict(refused)}")
    assert not wrong, "\n".join(wrong)
    if not os.environ.get("HEDDLE_ONNX_CASE"):
        assert passed >= FLOOR and len(opsets) >= 15
        assert known["types"] > 1200 and known["ranks"] > 900, known


def test_shapes_come_and_go(tmp_path):
    """One executor, inputs of changing shapes for two dimensions with names; each result is that of its own shapes."""
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["m"]), onnx.helper.make_node("Softmax", ["m"], ["s"], axis=1),
             onnx.helper.make_node("Shape", ["x"], ["shape"]), onnx.helper.make_node("Expand", ["b", "shape"], ["e"]),
             onnx.helper.make_node("ReduceSum", ["e"], ["r"], axes=[1, 2]), onnx.helper.make_node("Add", ["s", "r"], ["y"])]
    rng = np.random.default_rng(3)
    w = rng.standard_normal((4, 5)).astype(np.float32)
    proto = onnx_files.model(nodes, {"x": (np.float32, ("batch", "length", 4))}, ["y"],
                             {"w": w, "b": np.ones(1, np.float32)}, opset=9, ir=4)
    path = onnx_files.save(tmp_path, proto)
    os.environ["HEDDLE_CONFIG"] = "off"
    ctx = capi.Context()
    model = capi.Model.load(ctx, path, devices="cpu")
    executor = capi.Executor(model)
    for batch, length in ((1, 2), (3, 1), (1, 2), (2, 7), (3, 1), (1, 2)):
        x = rng.standard_normal((batch, length, 4)).astype(np.float32)
        executor.set_input("x", x)
        executor.run()
        flat = (x @ w).reshape(batch, -1)
        e = np.exp(flat - flat.max(axis=1, keepdims=True))
        want = (e / e.sum(axis=1, keepdims=True)).reshape(batch, length, 5) + length * 4
        np.testing.assert_allclose(executor.outputs()[0], want, rtol=1e-5)
    for x in (executor, model, ctx):
        x.close()
