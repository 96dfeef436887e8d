"""The optimisations of whole graphs (fold, identity, cse, reshapes, transposes, dead) against onnx.reference in float64,
with and without, and which nodes are left. labels: ctypes
timeout: 300
"""
import capi
import numpy as np
import pytest
from optimize_case import Net, Run, check, close


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context()
    yield c
    c.close()


# ---- fold


def test_constants_are_computed_once(ctx):
    n = Net()
    w = n.op("Transpose", n.weights("w", 4, 6), perm=[1, 0], name="wt")
    w = n.op("Mul", w, n.w("half", np.float32(0.5)), name="scaled")
    y = n.op("MatMul", n.x("x", 3, 6), w, name="y")
    z = n.op("Relu", n.op("Exp", w, name="inner"), name="z")  # an output that is a constant stays a node
    r, off = check(ctx, n, [y, z], "fold")
    assert r.ops() == ["MatMul", "Relu"] and len(off.ops()) == 5
    (change,) = r.plan["optimizations"]
    assert change["pass"] == "fold" and change["nodes"] == ["wt", "scaled", "inner"]
    assert [v["kind"] for v in r.plan["values"] if v["name"] == "scaled"] == ["constant"]


def test_parts_of_a_split_are_constants_each(ctx):
    n = Net(13)
    a, b = n.op("Split", n.weights("w", 6, 4), n.w("sizes", np.array([2, 4], np.int64)), outputs=2, axis=0, name="parts")
    y = n.op("Add", n.op("MatMul", n.x("x", 3, 2), a), n.op("MatMul", n.x("u", 3, 4), b))
    r, _ = check(ctx, n, [y], "fold")
    assert r.ops() == ["Add", "MatMul", "MatMul"]


def test_shapes_of_fixed_inputs_are_constants(ctx):
    n = Net()
    x = n.x("x", 2, 3, 4)
    rows = n.op("Gather", n.op("Shape", x), n.w("zero", np.array(0, np.int64)), axis=0)
    shape = n.op("Concat", n.op("Unsqueeze", rows, n.w("axis", np.array([0], np.int64))),
                 n.w("rest", np.array([-1], np.int64)), axis=0)
    y = n.op("Relu", n.op("Reshape", x, shape), name="y")
    r, _ = check(ctx, n, [y], "fold")
    assert r.ops() == ["Relu", "Reshape"]


def test_what_cannot_be_computed_is_left():
    """The first operator that is prepared fails, so each is computed alone; the first of these fails too."""
    n = Net()
    a = n.op("Exp", n.weights("w", 3, 4), name="a")
    b = n.op("Neg", a, name="b")
    c = n.op("Tanh", n.weights("u", 3, 4), name="c")
    y = n.op("Add", n.op("Add", n.x("x", 3, 4), b), n.op("Abs", c, name="d"), name="y")
    values = n.values()
    faulty = capi.Context(layers="fault", fault__fail="prepare:1,prepare:1", log="off", cpu__onednn="off")
    r = Run(faulty, n, [y], values, "fold")
    close(r.outputs[0], n.reference([y], values)[0])
    assert [x["nodes"] for x in r.plan["optimizations"]] == [["c"], ["d"]]
    assert r.ops() == ["Add", "Add", "Exp", "Neg"]
    faulty.close()


def test_results_that_grow_are_left(ctx):
    """8 MB out of a few bytes would be kept for the life of the model."""
    n = Net()
    big = n.op("Expand", n.weights("w", 1, 1), n.w("shape", np.array([1024, 2048], np.int64)), name="big")
    y = n.op("ReduceMax", n.op("Mul", big, n.x("x", 1, 2048)), axes=[0, 1])
    r, _ = check(ctx, n, [y], "fold")
    assert r.passes() == [] and "Expand" in r.ops()
    limited = capi.Context(limit__fold_bytes=0)
    n = Net()
    y = n.op("Add", n.x("x", 3), n.op("Exp", n.weights("w", 3)))
    assert "fold" not in check(limited, n, [y])[0].passes()
    limited.close()


# ---- identity, dead


def test_operators_that_do_nothing(ctx):
    n = Net()
    x = n.op("Identity", n.x("x", 2, 3), name="same")
    x = n.op("Dropout", x, name="drop")
    x = n.op("Cast", x, to=1, name="cast")
    x = n.op("Transpose", x, perm=[0, 1], name="stay")
    x = n.op("Reshape", x, n.w("shape", np.array([2, -1], np.int64)), name="view")
    x = n.op("Expand", x, n.w("to", np.array([2, 3], np.int64)), name="expand")
    y = n.op("Relu", n.op("Concat", x, axis=1, name="concat"), name="y")
    z = n.op("Identity", x, name="z")
    values = n.values()
    want = np.maximum(values["x"], 0)
    for wish, ops in (("identity", ["Identity", "Relu"]), ("off", None)):
        r = Run(ctx, n, [y, z], values, wish)
        assert np.array_equal(r.outputs[0], want) and np.array_equal(r.outputs[1], values["x"])
        assert ops is None or r.ops() == ops
    r = Run(ctx, n, [y, z], values, "identity", keep=["drop"])  # a value that is kept has its node
    assert "drop" in r.names() and np.array_equal(r.outputs[2], values["x"])


def test_dropout_whose_mask_is_read_stays(ctx):
    n = Net()
    out, mask = n.op("Dropout", n.x("x", 2, 3), outputs=2, name="drop")
    y = n.op("Relu", out, name="y")
    r = Run(ctx, n, [y, mask], n.values(), "identity")
    assert r.ops() == ["Dropout", "Relu"] and r.outputs[1].all()


def test_dead_nodes_are_named(ctx):
    n = Net()
    x = n.x("x", 2, 3)
    n.op("Exp", n.op("Neg", x, name="unused1"), name="unused2")
    y = n.op("Relu", x, name="y")
    r, _ = check(ctx, n, [y], "dead")
    assert r.plan["optimizations"][0]["nodes"] == ["unused1", "unused2"] and r.ops() == ["Relu"]


# ---- cse


def test_equal_nodes_are_one(ctx):
    n = Net()
    x = n.x("x", 2, 3)
    one, uno = n.w("one", np.float32(1)), n.w("uno", np.float32(1))
    a = n.op("Exp", n.op("Add", x, one, name="a1"), name="a")
    b = n.op("Exp", n.op("Add", x, uno, name="b1"), name="b")
    other = n.op("Exp", n.op("Sub", x, one, name="c1"), name="c")
    y = n.op("Add", n.op("Mul", a, b), other, name="y")
    r, off = check(ctx, n, [y], "cse")
    assert len(r.names()) == 6 and len(off.names()) == 8 and "b" not in r.names()
    assert r.passes() == ["cse", "cse"]
    r = check(ctx, n, [y, b], "cse")[0]  # an output keeps its node
    assert "b" in r.names() and "b1" not in r.names()


def test_attributes_tell_nodes_apart(ctx):
    n = Net()
    x = n.x("x", 2, 3)
    y = n.op("Add", n.op("LeakyRelu", x, alpha=0.1), n.op("LeakyRelu", x, alpha=0.2))
    y = n.op("Add", y, n.op("LeakyRelu", x))
    assert check(ctx, n, [y], "cse")[0].passes() == []


def test_equal_nodes_on_two_devices_stay_two(ctx):
    n = Net()
    x = n.x("x", 2, 3)
    y = n.op("Add", n.op("Exp", x, name="a"), n.op("Exp", x, name="b"), name="y")
    r, _ = check(ctx, n, [y], devices="cpu,sim:0", place=["b=sim:0"])
    assert r.names() == ["a", "b", "y"]
    n.device("b", "sim:0")
    r, _ = check(ctx, n, [y], devices="cpu,sim:0")
    assert r.names() == ["a", "b", "y"]


# ---- reshapes


def test_a_row_of_reshapes_is_one(ctx):
    n = Net()
    x = n.x("x", 2, 3, 4)
    v = n.op("Flatten", x, axis=2, name="flat")
    v = n.op("Unsqueeze", v, n.w("axis", np.array([0], np.int64)), name="un")
    v = n.op("Reshape", v, n.w("shape", np.array([0, -1, 2], np.int64)), name="re")
    y = n.op("Relu", n.op("Squeeze", v, n.w("axis2", np.array([0], np.int64)), name="last"), name="y")
    r, _ = check(ctx, n, [y], "reshapes")
    assert r.ops() == ["Relu", "Reshape"] and r.names() == ["last", "y"]


def test_reshapes_of_open_shapes_stay(ctx):
    """Whether the first of them fits is only known in the run; then it has to be there to be reported."""
    n = Net()
    v = n.op("Reshape", n.x("x", "batch", 6), n.w("first", np.array([-1, 4], np.int64)), name="first")
    y = n.op("Reshape", v, n.w("second", np.array([-1, 3], np.int64)), name="y")
    assert check(ctx, n, [y], "reshapes", fixed={"batch": 4})[0].passes() == []
    with pytest.raises(capi.HeddleError, match="'first'"):
        Run(ctx, n, [y], n.values(batch=3), "reshapes")


# ---- transposes


def test_transposes_are_joined_and_cancelled(ctx):
    n = Net()
    x = n.x("x", 2, 3, 4)
    y = n.op("Relu", n.op("Transpose", n.op("Transpose", x, perm=[2, 0, 1]), perm=[0, 2, 1]), name="y")
    z = n.op("Exp", n.op("Transpose", n.op("Transpose", x, perm=[1, 0, 2]), perm=[1, 0, 2]), name="z")
    r, _ = check(ctx, n, [y, z], "transposes,identity")
    assert r.ops() == ["Exp", "Relu", "Transpose"]


@pytest.mark.parametrize("batch", [2, "batch"])
def test_through_elementwise_operators(ctx, batch):
    """What exporters make of a model in channels-last: each operator between two Transposes."""
    n = Net()
    x = n.x("x", batch, 3, 5, 4)
    t = n.op("Transpose", x, perm=[0, 2, 3, 1])
    u = n.op("Transpose", n.x("u", batch, 3, 5, 4), perm=[0, 2, 3, 1])
    v = n.op("Add", t, n.weights("bias", 3))
    v = n.op("Clip", v, n.w("low", np.float32(0)), n.w("high", np.float32(1)))
    v = n.op("Mul", v, u)
    y = n.op("Transpose", n.op("Add", v, n.weights("map", 5, 4, 3)), perm=[0, 3, 1, 2], name="y")
    r, _ = check(ctx, n, [y], "transposes")
    assert r.ops() == ["Add", "Add", "Clip", "Mul"] and r.names()[-1] == "y"
    assert r.passes() == ["transposes"]


def test_transposes_that_stay(ctx):
    n = Net()
    x = n.x("x", 2, 3, 4)
    t = n.op("Transpose", x, perm=[2, 0, 1])
    y = n.op("Transpose", n.op("Relu", t), perm=[2, 0, 1], name="y")  # not its inverse
    assert check(ctx, n, [y], "transposes")[0].passes() == []
    n = Net()
    t = n.op("Transpose", n.x("x", 2, 3, 4), perm=[2, 0, 1])
    y = n.op("Transpose", n.op("Add", t, n.x("u", 4, 2, 3)), perm=[1, 2, 0], name="y")  # an input that is no constant
    assert check(ctx, n, [y], "transposes")[0].passes() == []
    n = Net()
    v = n.op("Add", n.weights("row", 3), n.weights("column", 2, 1))  # of fewer dimensions, and not folded here
    y = n.op("Transpose", n.op("Add", n.op("Transpose", n.x("x", 3, 2, 2), perm=[1, 2, 0]), v), perm=[2, 0, 1], name="y")
    assert check(ctx, n, [y], "transposes")[0].passes() == []
    n = Net()
    v = n.op("Relu", n.op("Transpose", n.x("x", 2, 3, 4), perm=[2, 0, 1]), name="v")
    y = n.op("Transpose", v, perm=[1, 2, 0], name="y")
    assert check(ctx, n, [y, v], "transposes")[0].passes() == []  # read by the caller in this order


# ---- together


def test_one_feeds_the_other(ctx):
    """The weights' Transpose is folded, then MatMul and Add become a Gemm; a GELU behind the Cast that does nothing."""
    n = Net()
    x = n.op("Identity", n.x("x", 3, 6))
    y = n.op("Add", n.op("MatMul", x, n.op("Transpose", n.weights("w", 4, 6))), n.weights("b", 4))
    y = n.op("Cast", y, to=1)
    half, one = n.w("half", np.float32(0.5)), n.op("Exp", n.w("zero", np.float32(0)))
    e = n.op("Add", n.op("Erf", n.op("Div", y, n.op("Sqrt", n.w("two", np.float32(2))))), one)
    y = n.op("Mul", n.op("Mul", y, e), half, name="y")
    r, off = check(ctx, n, [y])
    assert r.ops() == ["Gelu", "Gemm"] and len(off.ops()) > 9
    assert check(ctx, n, [y], devices="sim:0")[0].ops() == ["Gelu", "Gemm"]
