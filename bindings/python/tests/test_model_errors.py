"""What is reported when a call or a load fails: the class, the text, and node, device and file as attributes."""
import re

import heddle
import numpy as np
import onnx
import pytest
from heddle import errors
from onnx import helper

import small_models as small

ONE = np.ones(4, np.float32)


@pytest.fixture
def path(tmp_path):
    return small.add(tmp_path)


def failure(kind, call):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) and caught.value.status.startswith("HEDDLE_E")
    return caught.value


@pytest.mark.parametrize("call, kind, words, node", [
    (lambda m: m(ONE), errors.InvalidError, "input 'y' is missing", "y"),
    (lambda m: m(), errors.InvalidError, "input 'x' is missing", "x"),
    (lambda m: m(ONE, x=ONE), errors.InvalidError, "given twice", "x"),
    (lambda m: m(ONE, ONE, ONE), errors.InvalidError, "the model has 2", None),
    (lambda m: m(ONE, q=ONE), errors.NotFoundError, "no input 'q'.*x, y", "q"),
    (lambda m: m(ONE, ONE[:3]), errors.InvalidError, r"'y'.*\[4\].*\[3\]", "y"),
    (lambda m: m(ONE, ONE.astype(complex)), errors.InvalidError, "'y'.*float32", "y"),
    (lambda m: m(ONE, "text"), errors.InvalidError, "'y'", "y"),
    (lambda m: m(ONE, [[1], [2, 3]]), errors.InvalidError, "'y'.*inhomogeneous", "y"),
    (lambda m: m.run({"x": ONE, 3: ONE}), errors.InvalidError, "names of inputs are str", None),
    (lambda m: m.run({"x": ONE, "y": ONE}, timeout=-1), errors.InvalidError, "timeout", None),
    (lambda m: m.executor().run(), errors.InvalidError, "never set", None),
    (lambda m: m.executor().set_input("q", ONE), errors.NotFoundError, "'x' 'y'", None),
    (lambda m: m.executor().set_input(2, ONE), errors.NotFoundError, "no input 2", None),
    (lambda m: m.executor().set_input("x", ONE[:2]), errors.InvalidError, "shape", "x"),
    (lambda m: m.executor().bind_input("x", ONE.astype(np.float64)), errors.InvalidError, "float64", "x"),
    (lambda m: m.executor().get_output(), errors.InvalidError, "no finished run", None),
    (lambda m: m.executor().run_to("none"), errors.NotFoundError, "none", None),
])
def test_calls(path, call, kind, words, node):
    model = heddle.load(path, devices="cpu", pool=1)
    for _ in range(2):  # and again: nothing is left behind
        told = failure(kind, lambda: call(model))
        assert re.search(words, str(told)), str(told)
        assert node is None or told.node == node
        assert told.file in (path, None) and (told.file == path or "timeout" in words)
    np.testing.assert_array_equal(model(ONE, ONE), [2, 2, 2, 2])
    assert model.executors == 1


class Pairs:
    """items() gives lists in place of tuples."""

    def keys(self):
        return ["x", "y"]

    def items(self):
        return [["x", ONE], ["y", ONE]]


@pytest.mark.parametrize("what", [Pairs(), [ONE, ONE], ONE, None])
def test_what_is_no_mapping_is_a_type_error(path, what):
    model = heddle.load(path, devices="cpu")
    with pytest.raises(TypeError, match="mapping|tuple"):
        model.run(what)
    if what is not None:
        with pytest.raises(TypeError, match="mapping|tuple"):
            model.explain("text", what)
        with pytest.raises(TypeError):
            heddle.Context(what)


def test_no_value_of_an_earlier_call_is_used(path):
    model = heddle.load(path, devices="cpu", pool=1)
    model(ONE, ONE)
    assert failure(errors.InvalidError, lambda: model(ONE)).node == "y"


def test_what_a_values_own_code_raises_comes_through(path):
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise LookupError("of the caller's")

    model = heddle.load(path, devices="cpu", pool=1)
    with pytest.raises(LookupError, match="of the caller's"):
        model(ONE, Odd())
    np.testing.assert_array_equal(model(ONE, ONE), [2, 2, 2, 2])


def test_a_value_may_call_the_model_it_is_given_to(path):
    model = heddle.load(path, devices="cpu", pool=1)

    class Nested:
        def __array__(self, dtype=None, copy=None):
            return model(ONE, ONE)

    np.testing.assert_array_equal(model(ONE, Nested()), [3, 3, 3, 3])


def test_files(tmp_path, path):
    missing = str(tmp_path / "none.onnx")
    told = failure(errors.FileError, lambda: heddle.load(missing))
    assert isinstance(told, OSError) and told.file == missing and missing in str(told)
    bad = tmp_path / "bad.onnx"
    with open(path, "rb") as file:
        content = file.read()
    for broken in (b"", content[:-7], b"\xff" * 64):
        bad.write_bytes(broken)
        told = failure(errors.Error, lambda: heddle.load(bad))
        assert told.file == str(bad), told
    graph = tmp_path / "graph.json"
    graph.write_text('{"nodes": 3}')
    assert failure(errors.FormatError, lambda: heddle.load(graph)).file == str(graph)
    failure(errors.FormatError, lambda: heddle.loads("{"))
    with pytest.raises(TypeError):
        heddle.load(3)


def test_an_operator_that_is_not_known(tmp_path):
    node = helper.make_node("NoSuchOperator", ["x"], ["y"], name="odd", domain="my.domain")
    path = small.save(tmp_path, "odd", [node], [("x", (4,))], [("y", (4,))])
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    onnx.save(model, path)
    told = failure(errors.UnsupportedError, lambda: heddle.load(path))
    assert "NoSuchOperator" in str(told) and told.node == "odd" and told.file == path


def test_devices_that_are_not_there(path):
    told = failure(errors.NoDeviceError, lambda: heddle.load(path, devices="cuda:77"))
    assert "cuda" in str(told)
    failure(errors.Error, lambda: heddle.load(path, devices="cpu", place={"sum": "sim:0"}))


def test_a_device_that_is_lost_in_a_run(path):
    context = heddle.Context({"sim.fail": "run:2@0:fault"})
    model = heddle.load(path, devices="sim:0", context=context, pool=1, capture=False)
    model(ONE, ONE)
    told = failure(errors.DeviceLostError, lambda: model(ONE, ONE))
    assert told.device == "sim:0" and told.file == path and told.node == "sum"
    failure(errors.DeviceLostError, lambda: model(ONE, ONE))
    failure(errors.DeviceLostError, lambda: context.health("sim:0"))
    model.close()
    context.reopen("sim:0")
    np.testing.assert_array_equal(heddle.load(path, devices="sim:0", context=context)(ONE, ONE), [2, 2, 2, 2])


def test_a_call_that_fails_leaves_the_executor_usable(path):
    context = heddle.Context({"sim.fail": "run:2@0,run:4@0:async"})
    model = heddle.load(path, devices="sim:0", context=context, pool=1, capture=False)
    outcomes = []
    for _ in range(6):
        try:
            np.testing.assert_array_equal(model(ONE, ONE), [2, 2, 2, 2])
            outcomes.append("right")
        except errors.FailedError as told:
            assert told.device == "sim:0"
            outcomes.append("failed")
    assert outcomes == ["right", "failed", "right", "failed", "right", "right"]


def test_a_time_limit(path):
    context = heddle.Context({"sim.hang": "6"})
    model = heddle.load(path, devices="sim:0", context=context, pool=1)
    with pytest.raises(errors.RunTimeoutError):
        for _ in range(4):
            model.run({"x": ONE, "y": ONE}, timeout=0.2)
