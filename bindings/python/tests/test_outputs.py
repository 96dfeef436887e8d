"""What a file declares of an output, against what it is: a model that contradicts itself is refused with one sentence, and
nothing is returned or copied then. Shapes that ONNX files declare are hints: what is wrong there is a warning."""
import json
import subprocess
import sys

import heddle
import numpy as np
import onnx
import pytest
from heddle import errors
from mutants.models import B, D, F, I8, I32, I64, f32, graph, model, node
from onnx.reference import ReferenceEvaluator

ONES = np.ones(4, np.float32)


def abs_(inputs="x"):
    return node("Abs", inputs, "a"), node("Cast", "a", "b", to=B)


def compress(declared, dtype=F, n=4):
    return model([*abs_(), node("Compress", "a b", "y", axis=0)], [("x", dtype, [n])], [("y", *declared)])


def tool(*words):
    return subprocess.run([sys.executable, "-m", "heddle._tool", *map(str, words)], capture_output=True, text=True, timeout=120)


def strict(path, **options):
    """The same model as graph JSON, whose shapes are no hints."""
    made = path.with_suffix(".json")
    done = tool("convert", path, "-o", made)
    assert done.returncode == 0, done.stderr
    document = json.loads(made.read_text())
    assert document["heddle"].pop("output_shapes") == "hints"
    made.write_text(json.dumps(document))
    blob = made.with_suffix(".params")
    return heddle.load(made, blob if blob.exists() else None, **options)


# bytes, what is declared, what comes out; an input is of ones.
IN_RUNS = {  # known when a stage is planned
    "narrower": (lambda: compress((I8, None), D, 1000), "int8 of any rank", "float64 [1000]"),
    "wider": (lambda: compress((D, None), I8, 4000), "float64 of any rank", "int8 [4000]"),
    "nonzero": (lambda: model([node("NonZero", "x", "y")], [("x", F, [3])], [("y", F, None)]), "float32 of any rank",
                "int64 [1, 3]"),
    "nonzero_after": (lambda: model([node("Relu", "x", "r"), node("NonZero", "r", "y")], [("x", F, [40])],
                                    [("y", B, None)]), "bool of any rank", "int64 [1, 40]"),
    "unique": (lambda: model([node("Unique", "x", "y")], [("x", I64, [3])], [("y", F, None)]), "float32 of any rank",
               "int64 [1]"),
    "before_neg": (lambda: model([node("Unique", "x", "u"), node("Neg", "u", "y")], [("x", I8, [4000])], [("y", D, None)]),
                   "float64 of any rank", "int8 [1]"),
}
WRONG_SHAPES = {
    "large": (lambda: compress((F, [1000000])), "float32 [1000000]", "float32 [4]"),
    "small": (lambda: compress((F, [3])), "float32 [3]", "float32 [4]"),
    "none": (lambda: compress((F, [0])), "float32 [0]", "float32 [4]"),
    "scalar": (lambda: compress((F, [])), "float32 []", "float32 [4]"),
    "rank": (lambda: compress((F, [2, 2])), "float32 [2, 2]", "float32 [4]"),
    "open_rank": (lambda: compress((F, ["n", "m"])), "float32 [n, m]", "float32 [4]"),
}


@pytest.mark.parametrize("optimize", [None, "on"])
@pytest.mark.parametrize("name", [*IN_RUNS, *WRONG_SHAPES])
def test_runs_refuse(tmp_path, name, optimize):
    make, declared, given = {**IN_RUNS, **WRONG_SHAPES}[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(make())
    m = (heddle.load if name in IN_RUNS else strict)(path, devices="cpu:0,sim:0", optimize=optimize, pool=1)
    x = np.ones(m.inputs[0].shape, m.inputs[0].dtype)
    e = m.executor()
    e.set_input(0, x)
    for call in (lambda: m(x), lambda: m.run({"x": x}), e.run, lambda: m(x)):
        with pytest.raises(errors.FormatError) as caught:
            call()
        assert str(caught.value).endswith(f"output 'y' is declared {declared}, and is {given}")
    with pytest.raises(errors.InvalidError, match="no finished run"):
        e.get_output(0)
    assert m.executors == 1


@pytest.mark.parametrize("optimize", [None, "on"])
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_wrong_shapes_warn(tmp_path, capfd, name, optimize):
    make, declared, given = WRONG_SHAPES[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(make())
    m = heddle.load(path, devices="cpu:0,sim:0", optimize=optimize)
    np.testing.assert_array_equal(m(ONES), ONES)
    assert f"output 'y' is declared {declared}, and is {given}" in capfd.readouterr().err


@pytest.mark.parametrize("shape", [("n", 3), (4,), ()])
def test_a_wrong_shape_gives_way_when_loaded(tmp_path, capfd, shape):
    path = tmp_path / "m.onnx"
    path.write_bytes(declares("Neg", F, shape))
    m = heddle.load(path, devices="cpu")
    assert m.outputs[0].shape == (3,) and "output 'y' is declared float32" in capfd.readouterr().err
    np.testing.assert_array_equal(m(np.ones(3, np.float32)), [-1] * 3)
    np.testing.assert_array_equal(strict(path, devices="cpu")(np.ones(3, np.float32)), [-1] * 3)  # what was wrong is not written


def declares(op, dtype, shape=(3,), **attributes):
    return model([node(op, "x", "y", **attributes)], [("x", F, [3])], [("y", dtype, shape)])


@pytest.mark.parametrize("make, declared, given", [
    (lambda: declares("Cast", F, to=I64), r"float32 \[3\]", r"int64 \[3\]"),
    (lambda: declares("Neg", I32), r"int32 \[3\]", r"float32 \[3\]"),
    (lambda: declares("Neg", I32, None), "int32 of any rank", r"float32 \[3\]"),
    (lambda: declares("Sign", D), r"float64 \[3\]", r"float32 \[3\]"),
    # more outputs than any fixed number
    (lambda: model([node("Split", "x", "a b c d e", axis=0, num_outputs=5)], [("x", F, [5])],
                   [(n, I32 if n == "e" else F, [1]) for n in "abcde"]), r"int32 \[1\]", r"float32 \[1\]"),
])
def test_loading_refuses(tmp_path, make, declared, given):
    path = tmp_path / "m.onnx"
    path.write_bytes(make())
    with pytest.raises(errors.FormatError, match=f"is declared {declared}, and is {given}"):
        heddle.load(path, devices="cpu")


@pytest.mark.parametrize("optimize", [None, "on"])
@pytest.mark.parametrize("declared, n", [((I32, ["n"]), 3), ((F, ["n", 1]), 3), ((F, [5]), 3), ((F, []), 1)])
def test_open_shapes(tmp_path, declared, n, optimize):
    """Known when the shapes of the inputs are; a model that was refused takes the next input."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("Neg", "x", "a"), node("Neg", "a", "y")], [("x", F, ["n"])], [("y", *declared)]))
    m = strict(path, devices="cpu", optimize=optimize, pool=1)
    for _ in range(2):
        with pytest.raises(errors.FormatError, match="output 'y' is declared"):
            m(np.ones(n, np.float32))
    if declared[0] == F:
        np.testing.assert_array_equal(heddle.load(path, devices="cpu", optimize=optimize)(np.ones(n, np.float32)), np.ones(n))
    if declared == (F, [5]):
        np.testing.assert_array_equal(m(np.ones(5, np.float32)), np.ones(5))


def test_a_contradiction_of_some_inputs_only(tmp_path):
    """Three of four elements fit what is declared; the executor that was refused is the one that then runs."""
    path = tmp_path / "m.onnx"
    path.write_bytes(compress((F, [3])))
    m = strict(path, devices="cpu:0,sim:0", pool=1)
    for _ in range(3):
        with pytest.raises(errors.FormatError, match=r"declared float32 \[3\], and is float32 \[4\]"):
            m(ONES)
        np.testing.assert_array_equal(m(np.array([5, 0, 6, 7], np.float32)), [5, 6, 7])
    assert m.executors == 1


def test_symbols_are_free(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(compress((F, ["k"])))
    m = heddle.load(path, devices="cpu:0,sim:0")
    for n in range(5):
        assert m(np.arange(4, dtype=np.float32) < n).shape == (max(0, n),)


def branch(declared_inner, declared):
    yes = graph([node("NonZero", "x", "t")], [], [("t", *declared_inner)], name="yes")
    no = graph([node("Shape", "x", "e")], [], [("e", I64, None)], name="no")
    return model([node("If", "c", "y", then_branch=yes, else_branch=no)], [("c", B, []), ("x", F, [3])], [("y", *declared)])


@pytest.mark.parametrize("inner, outer, words", [
    ((I64, [1, "n"]), (F, None), "output 'y' is declared float32 of any rank, and is int64"),
    ((I64, [1, "n"]), (I64, ["n"]), r"output 'y' is declared int64 \[n\], and is int64 \[1, 3\]"),
    ((I64, [1, "n"]), (I64, [1, 2]), r"declared int64 \[1, 2\], and is int64 \[1, 3\]"),
    ((F, None), (I64, None), "output '.*t' is declared float32 of any rank, and is int64"),
    ((I64, ["n"]), (I64, None), r"output '.*t' is declared int64 \[n\], and is int64 \[1, 3\]"),
])
def test_branches(tmp_path, inner, outer, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(branch(inner, outer))
    x = np.ones(3, np.float32)
    m = strict(path, devices="cpu:0,sim:0", pool=1)
    for _ in range(2):
        with pytest.raises(errors.FormatError, match=words):
            m(np.array(True), x)
    if inner[0] == outer[0]:
        np.testing.assert_array_equal(heddle.load(path, devices="cpu:0,sim:0")(np.array(True), x), [[0, 1, 2]])
    if outer == (I64, None):
        np.testing.assert_array_equal(m(np.array(False), x), [3])


def loop(state, all_, inner=(F, [2])):
    body = graph([node("Identity", "c", "d"), node("Add", "s one", "s2"), node("Neg", "s2", "v")],
                 [("i", I64, []), ("c", B, []), ("s", F, [2])], [("d", B, []), ("s2", F, [2]), ("v", *inner)],
                 {"one": f32(2)}, "body")
    return model([node("Loop", "m t s0", "s9 all", body=body)], [("m", I64, []), ("s0", F, [2])],
                 [("s9", *state), ("all", *all_)], {"t": np.array(True)})


@pytest.mark.parametrize("state, all_, inner, words", [
    ((I32, [2]), (F, None), (F, [2]), "output '.*:0'|output 's9'"),
    ((F, [2, 1]), (F, None), (F, [2]), "output '.*:0'|output 's9'"),
    ((F, [2]), (D, None), (F, [2]), "output '.*:1'|output 'all'"),
    ((F, [2]), (F, ["n"]), (F, [2]), "output '.*:1'|output 'all'"),
    ((F, [2]), (F, [4, 2]), (F, [2]), "output '.*:1'|output 'all'"),
    ((F, [2]), (F, None), (D, [2]), "output '.*v' is declared float64"),
])
def test_loops(tmp_path, state, all_, inner, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(loop(state, all_, inner))
    m = strict(path, devices="cpu:0,sim:0", pool=1)
    for _ in range(2):
        with pytest.raises(errors.FormatError, match=words):
            m(np.array(3), np.zeros(2, np.float32))
    if {state[0], all_[0], inner[0]} == {F}:
        got = heddle.load(path, devices="cpu:0,sim:0")(np.array(3), np.zeros(2, np.float32))
        assert [one.shape for one in got] == [(2,), (3, 2)]


@pytest.mark.parametrize("all_", [(F, ["m", 2]), (F, None), (F, ["m", "k"])])
def test_a_loop_without_iterations(tmp_path, all_):
    """Its collected output is as it is declared, where its body does not tell."""
    path = tmp_path / "m.onnx"
    path.write_bytes(loop((F, [2]), all_))
    m = heddle.load(path, devices="cpu:0,sim:0")
    state, collected = m(np.array(0), np.ones(2, np.float32))
    np.testing.assert_array_equal(state, [1, 1])
    assert collected.shape == (0, 2) and collected.dtype == np.float32
    np.testing.assert_array_equal(m(np.array(2), np.zeros(2, np.float32))[1], [[1, -1], [2, -2]])


@pytest.mark.parametrize("dtype, shape, fails", [(F, ["n"], None), (F, None, None), (I32, ["n"], "two types"), (F, ["n", 1], None), (F, [3], None)])
def test_an_output_that_is_an_input(tmp_path, dtype, shape, fails):
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("Neg", "x", "y")], [("x", F, ["n"])], [("x", dtype, shape), ("y", F, None)]))
    if fails:
        with pytest.raises(errors.FormatError, match=fails):
            heddle.load(path, devices="cpu")
        return
    m = heddle.load(path, devices="cpu")
    np.testing.assert_array_equal(m(np.ones(3, np.float32))[0], [1, 1, 1])
    if shape == [3]:
        with pytest.raises(errors.InvalidError, match=r"\[3\]"):
            m(ONES)


@pytest.mark.parametrize("declared, bound, words", [
    ((F, ["k"]), np.zeros(4, np.int32), "declared float32 .k.; the bound tensor is int32"),
    ((F, ["k"]), np.zeros((4, 1), np.float32), r"declared float32 .k.; the bound tensor is float32 \[4, 1\]"),
    ((F, [4]), np.zeros(5, np.float32), r"declared float32 \[4\]; the bound tensor is float32 \[5\]"),
])
def test_binding_against_the_declaration(tmp_path, declared, bound, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(compress(declared))
    e = strict(path, devices="cpu:0,sim:0").executor()
    with pytest.raises(errors.InvalidError, match=words):
        e.bind_output(0, bound)
    e.set_input(0, ONES)
    e.run()
    np.testing.assert_array_equal(np.asarray(e.get_output(0)), ONES)


def test_nothing_is_copied_where_one_binding_does_not_fit(tmp_path):
    """Of two outputs in stages the second is larger than what is bound: the first is not written either."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model([*abs_(), node("Compress", "a b", "c", axis=0), node("Neg", "c", "y")], [("x", F, [4])],
                           [("a", F, [4]), ("y", F, ["k"])]))
    e = heddle.load(path, devices="cpu:0,sim:0").executor()
    first, second = np.full(4, 9, np.float32), np.full(3, 9, np.float32)
    e.bind_output(0, first)
    e.bind_output(1, second)
    e.set_input(0, ONES)
    with pytest.raises(errors.InvalidError, match=r"output 'y' has shape \[4\]; the bound tensor has \[3\]"):
        e.run()
    assert (first == 9).all() and (second == 9).all()
    e.set_input(0, np.array([1, 2, 0, 3], np.float32))
    e.run()
    np.testing.assert_array_equal(first, [1, 2, 0, 3])
    np.testing.assert_array_equal(second, [-1, -2, -3])


@pytest.mark.parametrize("name", ["narrower", "wider", "scalar"])
def test_the_tool(tmp_path, name):
    make, declared, given = {**IN_RUNS, **WRONG_SHAPES}[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(make())
    np.save(tmp_path / "x.npy", np.ones({"narrower": 1000, "wider": 4000}.get(name, 4),
                                        {"narrower": "float64", "wider": "int8"}.get(name, "float32")))
    done = tool("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--device", "cpu:0,sim:0")
    assert (done.returncode != 0) == (name in IN_RUNS) and f"output 'y' is declared {declared}, and is {given}" in done.stderr, done.stderr


def test_what_is_right_runs(tmp_path):
    """Against onnx's reference: the models above, declared as they are."""
    for data, inputs in [(compress((F, ["k"])), {"x": ONES}), (branch((I64, [1, "n"]), (I64, None)),
                                                              {"c": np.array(True), "x": ONES[:3]}),
                         (loop((F, [2]), (F, ["n", 2])), {"m": np.array(2), "s0": np.zeros(2, np.float32)})]:
        path = tmp_path / "m.onnx"
        path.write_bytes(data)
        got = heddle.load(path, devices="cpu:0,sim:0").run(inputs)
        for have, want in zip(got.values(), ReferenceEvaluator(onnx.load_from_string(data)).run(None, inputs)):
            np.testing.assert_array_equal(have, want)
            assert have.dtype == want.dtype
