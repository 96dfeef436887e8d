"""Exceptions: their classes, what they are of Python's, the attributes that say what they are about, pickling.

timeout: 120
"""
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import heddle
from heddle import _core, errors

PYTHON = {"InvalidError": ValueError, "OutOfMemoryError": MemoryError, "FileError": OSError, "FormatError": ValueError,
          "NotFoundError": KeyError, "UnsupportedError": NotImplementedError, "RunTimeoutError": TimeoutError}
STATUS = {"InvalidError": ("HEDDLE_EINVAL", 1), "OutOfMemoryError": ("HEDDLE_ENOMEM", 2), "FileError": ("HEDDLE_EIO", 3),
          "FormatError": ("HEDDLE_EFORMAT", 4), "NoDeviceError": ("HEDDLE_ENODEV", 5), "NotFoundError": ("HEDDLE_ENOTFOUND", 6),
          "UnsupportedError": ("HEDDLE_EUNSUPPORTED", 7), "BusyError": ("HEDDLE_EBUSY", 8),
          "RunTimeoutError": ("HEDDLE_ETIMEOUT", 9), "CanceledError": ("HEDDLE_ECANCELED", 10),
          "DeviceLostError": ("HEDDLE_EDEVICE", 11), "FailedError": ("HEDDLE_EFAILED", 12),
          "CompileError": ("HEDDLE_ECOMPILE", 13), "AbiError": ("HEDDLE_EABI", 14), "ForkError": ("HEDDLE_EFORK", 15),
          "PlanError": ("HEDDLE_EPLAN", 16), "InternalError": ("HEDDLE_EINTERNAL", 17),
          "NeedsOpenError": ("HEDDLE_ENEEDSOPEN", 18), "LimitError": ("HEDDLE_ELIMIT", 19),
          "DeniedError": ("HEDDLE_EDENIED", 20)}


def test_there_is_a_class_for_each_status():
    assert {*STATUS, "Error"} == set(errors.__all__)
    for name, (status, code) in STATUS.items():
        cls = getattr(errors, name)
        assert issubclass(cls, errors.Error) and issubclass(cls, RuntimeError)
        assert issubclass(cls, PYTHON.get(name, Exception))
        assert (cls.status, cls.code) == (status, code)
        assert (cls.__module__, cls.__name__) == ("heddle.errors", name)
        assert cls.__doc__


@pytest.mark.parametrize("name", [*STATUS, "Error"])
def test_pickling_keeps_all(name):
    before = getattr(errors, name)("it's a word")
    before.node, before.device, before.api_code = "conv", "sim:1", -5
    after = pickle.loads(pickle.dumps(before))
    assert type(after) is type(before) and str(after) == str(before) == "it's a word"
    assert (after.node, after.device, after.api_code, after.file) == ("conv", "sim:1", -5, None)


def test_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "none.npy"
    with pytest.raises(OSError) as caught:
        heddle.load_npy(path)
    e = caught.value
    assert type(e) is errors.FileError and e.file == str(path) and e.status == "HEDDLE_EIO" and e.code == 3
    assert str(e) == e.message and "No such file" in str(e) and e.node is None and e.device is None
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(errors.FormatError) as caught:
        heddle.load_npy(str(tmp_path / "bad.npy"))
    assert caught.value.file.endswith("bad.npy")


def test_a_device_that_is_not_there():
    with pytest.raises(errors.NoDeviceError) as caught:
        heddle.empty((2,), device="sim:77")
    assert caught.value.device == "sim:77" and "sim:0" in str(caught.value)


def test_words_of_a_not_found_error_are_not_quoted():
    assert str(errors.NotFoundError("no input 'x'")) == "no input 'x'"


@pytest.mark.parametrize("words", ["node 'a b' on sim:1 could not be prepared: out of memory", "sim:0: out of memory", ""])
def test_words_alone_name_nothing(words):
    e = _core.error_of(12, words)
    assert type(e) is errors.FailedError
    assert (e.node, e.device) == (None, None)


def test_node_and_device_are_members_of_the_failure(tmp_path):
    # Names that a reader of the words would take for others.
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("NoSuch", ["x"], ["y"], name="node 'sim:7'")], "g", [x], [y])
    path = str(tmp_path / "sim:0.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    with pytest.raises(errors.UnsupportedError) as caught:
        heddle.load(path, devices="cpu")
    assert (caught.value.node, caught.value.device) == ("node 'sim:7'", None)


def test_words_that_are_not_utf8_are_readable(tmp_path):
    path = bytes(tmp_path) + b"/\xff.npy"
    with pytest.raises(errors.FileError) as caught:
        heddle.load_npy(path)
    assert "/?.npy" in str(caught.value) and caught.value.file.encode(errors="surrogateescape") == path


def test_wrong_arguments_are_python_errors():
    with pytest.raises(TypeError):
        heddle.empty("abc")
    with pytest.raises(TypeError):
        heddle.empty((2,), "float31x")
    with pytest.raises(TypeError):
        heddle.empty((2,), device=1.5)
    with pytest.raises(ValueError):
        heddle.empty((-1,))
    with pytest.raises(errors.InvalidError):
        heddle.empty((1,) * 33)
    with pytest.raises(errors.LimitError):
        heddle.empty((2**40, 2**40))
    with pytest.raises(TypeError):
        heddle.as_tensor(np.array(["a"]))
