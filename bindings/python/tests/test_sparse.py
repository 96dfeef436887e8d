"""Sparse tensors of ONNX models: both forms of indices, every type, in graphs and in Constant, and what is malformed."""
import heddle
import numpy as np
import pytest
from heddle import errors
from onnx import TensorProto, helper, numpy_helper


def add(values, indices, dims, constant=False, branch=False):
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices, "at"), dims)
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=sparse))
    own = helper.make_graph(nodes, "g", [] if branch else [info("x", kind, dims)], [info("y", kind, dims)],
                            sparse_initializer=[] if constant else [sparse])
    if branch:
        other = helper.make_graph([helper.make_node("Identity", ["x"], ["n"])], "e", [], [info("n", kind, dims)])
        node = helper.make_node("If", ["c"], ["z"], then_branch=own, else_branch=other)
        own = helper.make_graph([node], "g", [info("x", kind, dims), info("c", TensorProto.BOOL, [])], [info("z", kind, dims)])
    return helper.make_model(own, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dense(values, indices, dims):
    full = np.zeros(dims, values.dtype)
    if indices.ndim == 1:
        full.reshape(-1)[indices] = values
    else:
        full[tuple(indices.T)] = values
    return full


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "float16"])
@pytest.mark.parametrize("indices", [np.array([1, 5, 6]), np.array([[0, 1], [1, 2], [2, 0]]), np.zeros(0, np.int64),
                                     np.zeros((0, 2), np.int64)])
@pytest.mark.parametrize("constant", [False, True])
def test_elements_are_where_the_indices_say(dtype, indices, constant):
    values = np.arange(1, len(indices) + 1).astype(dtype)
    x = np.full((3, 3), 2, dtype)
    got = heddle.load(add(values, indices, [3, 3], constant), devices="cpu")(x)
    np.testing.assert_array_equal(got, x + dense(values, indices, [3, 3]))


def test_in_a_branch():
    values, indices = np.ones(2, np.float32), np.array([0, 3])
    model, x = heddle.load(add(values, indices, [2, 2], branch=True), devices="cpu"), np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(model(x, np.array(True)), x + dense(values, indices, [2, 2]))
    np.testing.assert_array_equal(model(x, np.array(False)), x)


@pytest.mark.parametrize("indices, dims, words", [
    (np.array([0, 9]), [3, 3], "out of range"), (np.array([-1, 2]), [3, 3], "out of range"), (np.array([[0, 3], [1, 1]]), [3, 3], "out of range"),
    (np.array([1]), [3, 3], "indices are no"), (np.array([[1], [2]]), [3, 3], "indices are no"), (np.array([0, 1], np.int32), [3, 3], "indices are no"),
    (np.array([0, 1]), [-3, 3], "negative"), (np.array([0, 1]), [2**40, 2**40], "any memory")])
def test_what_is_malformed_is_refused(indices, dims, words):
    proto = add(np.ones(2, np.float32), np.array([0, 1]), [3, 3])
    sparse = proto.graph.sparse_initializer[0]
    sparse.indices.CopyFrom(numpy_helper.from_array(indices, "at"))
    del sparse.dims[:]
    sparse.dims.extend(dims)
    with pytest.raises(errors.FormatError, match=f"sparse tensor 'w': .*{words}"):
        heddle.load(proto, devices="cpu")
    sparse.ClearField("values")
    with pytest.raises(errors.FormatError, match="no values"):
        heddle.load(proto, devices="cpu")
