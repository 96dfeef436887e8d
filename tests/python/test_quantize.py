"""heddle quantize: weights of products and embeddings as integers of 4 and 8 bits, in both forms: the models are valid ONNX, ONNX
Runtime and Heddle compute the same with them, and the error that is printed is that of the weights.
timeout: 300
"""
import json

import numpy as np
import onnx
import onnx_files as files
import onnxruntime
import pytest
import tool_case
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32
RNG = np.random.default_rng(31)


def network(dtype=F32, opset=21, shared=False):
    """Ids to rows of a table, two products, one with a bias, and one with a small weight."""
    def weight(*shape):
        return (RNG.standard_normal(shape) * 0.1).astype(dtype)
    tensors = {"table": weight(40, 64), "w": weight(64, 96), "v": weight(48, 96), "c": weight(48), "small": weight(48, 4)}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"], name="embed"),
             helper.make_node("MatMul", ["x", "w"], ["a"], name="up"),
             helper.make_node("Reshape", ["a", "rows"], ["b"]),
             helper.make_node("Gemm", ["b", "v", "c"], ["d"], name="down", transB=1),
             helper.make_node("MatMul", ["d", "small"], ["y"], name="last")]
    if shared:
        nodes.insert(2, helper.make_node("MatMul", ["x", "w"], ["a2"], name="twin"))
        nodes.insert(3, helper.make_node("Add", ["a", "a2"], ["a3"]))
        nodes[4].input[0] = "a3"
    tensors["rows"] = np.array([-1, 96], np.int64)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", 3])],
                              [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["m", 4])],
                              [numpy_helper.from_array(v, k) for k, v in tensors.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), tensors


def quantize(path, out, *words):
    return json.loads(tool_case.good("quantize", path, "-o", out, "--json", *words))


def theirs(path, inputs):
    options = onnxruntime.SessionOptions()  # its optimiser makes products of int8 of the form QDQ
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums that stop at 16 bits where the CPU lacks VNNI
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize("dtype", (F32, np.float16))
@pytest.mark.parametrize("form", ("nbits", "qdq"))
@pytest.mark.parametrize("weights", ("int4", "int8"))
@pytest.mark.parametrize("symmetric", (False, True))
def test_both_forms(tmp_path, dtype, form, weights, symmetric):
    proto, _ = network(dtype)
    path, out = files.save(tmp_path, proto), tmp_path / "small.onnx"
    said = quantize(path, out, "--form", form, "--weights", weights, *(["--symmetric"] if symmetric else []))
    made = onnx.load(out)
    if form == "qdq":
        onnx.checker.check_model(made, full_check=True)
    else:
        onnx.checker.check_model(made)
    ops = [n.op_type for n in made.graph.node]
    if form == "qdq":
        assert ops.count("DequantizeLinear") == 2 and "Gather" in ops and said["quantized"] == 2
    else:
        assert ops == ["GatherBlockQuantized", "MatMulNBits", "Reshape", "MatMulNBits", "MatMul"] and said["quantized"] == 3
    assert {layer["node"]: layer.get("kept") for layer in said["layers"]}["last"] == "it is small"
    assert out.stat().st_size < path.stat().st_size
    inputs = {"ids": RNG.integers(0, 40, (5, 3))}
    whole = files.expected(proto, inputs)[0].astype(np.float64)
    got = files.run(out, inputs)[0].astype(np.float64)
    if not (form == "nbits" and dtype == np.float16):  # ONNX Runtime's own kernels round halves in between
        want = theirs(out, inputs)[0].astype(np.float64)
        np.testing.assert_allclose(got, want, atol=(1e-2 if dtype == np.float16 else 1e-5) * np.abs(want).max())
    assert np.abs(got - whole).max() < (0.6 if weights == "int4" else 0.05) * np.abs(whole).max()


@pytest.mark.parametrize("symmetric", (False, True))
def test_the_error_is_that_of_the_weights(tmp_path, symmetric):
    proto, tensors = network()
    path, out = files.save(tmp_path, proto), tmp_path / "small.onnx"
    said = quantize(path, out, "--block", "16", *(["--symmetric"] if symmetric else []))
    made = {t.name: numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
    layer = next(x for x in said["layers"] if x["node"] == "up")
    q = np.stack([made["w_Q4"] & 15, made["w_Q4"] >> 4], -1).reshape(96, 4, 16).astype(np.float64)
    zero = np.full((96, 4), 8.0)
    if not symmetric:
        z = made["w_zero_points"]
        zero = np.stack([z & 15, z >> 4], -1).reshape(96, -1)[:, :4].astype(np.float64)
    w = ((q - zero[..., None]) * made["w_scales"][..., None]).reshape(96, 64).T
    diff = w - tensors["w"]
    assert layer["error"] == pytest.approx(np.sqrt((diff ** 2).sum() / (tensors["w"].astype(np.float64) ** 2).sum()), rel=1e-6)
    assert layer["worst"] == pytest.approx(np.abs(diff).max(), rel=1e-5)
    assert 0.02 < layer["error"] < 0.12
    assert layer["bytes_after"] == sum(made[k].nbytes for k in made if k.startswith("w_"))


def test_what_is_kept_and_what_is_shared(tmp_path):
    proto, _ = network(shared=True)
    path, out = files.save(tmp_path, proto), tmp_path / "small.onnx"
    said = quantize(path, out, "--keep", "down", "--keep", "tab*")
    kept = {x["node"]: x["kept"] for x in said["layers"] if "kept" in x}
    assert kept["down"] == kept["embed"] == "it is to be kept"
    names = [t.name for t in onnx.load(out).graph.initializer]
    assert sorted(n for n in names if n.startswith("w")) == ["w_Q4", "w_scales", "w_zero_points"] and {"v", "table"} <= set(names)
    inputs = {"ids": RNG.integers(0, 40, (2, 3))}
    np.testing.assert_allclose(files.run(out, inputs)[0], theirs(out, inputs)[0], atol=1e-4)


def test_weights_in_another_file(tmp_path):
    proto, _ = network()
    path, out = tmp_path / "model.onnx", tmp_path / "new" / "small.onnx"
    out.parent.mkdir()
    inputs = {"ids": RNG.integers(0, 40, (2, 3))}
    files.save(tmp_path, proto)
    quantize(path, out)
    want = files.run(out, inputs)[0]
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=16)
    quantize(path, out)
    assert (out.parent / "small.onnx.data").stat().st_size > 1000
    np.testing.assert_array_equal(files.run(out, inputs)[0], want)
    np.testing.assert_allclose(theirs(out, inputs)[0], want, atol=1e-4)


def test_what_is_refused(tmp_path):
    proto, _ = network(opset=20)
    path, out = files.save(tmp_path, proto), tmp_path / "small.onnx"
    for words, status, text in ((("--form", "qdq"), 1, "opset 20"), (("--block", "48"), 1, "power of two"), (("--weights", "int3"), 2, "int4 or int8"),
                                (("--form", "x"), 2, "nbits or qdq"), (("--block", "0"), 2, "from 1 on"), (("--keep", "nothing*"), 1, "'nothing*'")):
        assert text in tool_case.failing(status, "quantize", path, "-o", out, *words)
        assert not out.exists()
    path.write_bytes(path.read_bytes()[:-40])
    tool_case.failing(1, "quantize", path, "-o", out)
    assert not out.exists()


def test_numbers_that_are_not_finite(tmp_path):
    proto, tensors = network()
    bad = tensors["w"].copy()
    bad[3, 4] = np.inf
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(bad, "w"))
    said = quantize(files.save(tmp_path, proto), tmp_path / "small.onnx")
    assert next(x for x in said["layers"] if x["node"] == "up")["kept"] == "it has numbers that are not finite"
