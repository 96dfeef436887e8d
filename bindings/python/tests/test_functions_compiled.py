"""Functions of Python's that libraries of today's TVM call by name, in the middle of their own.
timeout: 300
"""
import gc
import importlib.util
import weakref

import numpy as np
import pytest

import calls_libraries as libraries
import heddle.runtime as runtime
from heddle.errors import Error

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="TVM is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return libraries.compiled(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="module")
def library(folder):
    return runtime.load_module(str(folder / "calls.so"))


class Thrown(Exception):
    pass


def test_a_closure_in_the_middle(library):
    def middle(x, inner):
        if x.numpy()[0] < 0:
            raise thrown
        inner.copyfrom(x.numpy() + 1)

    runtime.register_func("test.middle", middle, override=True)
    thrown = Thrown("of the middle")
    x, y = runtime.nd.array(np.arange(4, dtype="float32")), runtime.nd.empty((4,))
    for _ in range(3):
        library["middle"](x, y)
        np.testing.assert_array_equal(y.numpy(), 2 * (np.arange(4) + 1))
        negative = runtime.nd.array(np.full(4, -1, "float32"))
        with pytest.raises(Thrown) as caught:
            library["middle"](negative, y)
        assert caught.value is thrown and caught.traceback[-1].name == "middle"


def test_compiled_code_keeps_the_function_that_it_was_given(library):
    """Also when the name is another's, or unused."""
    class Kept:
        def __call__(self, x, inner):
            inner.copyfrom(np.full(4, 7))
    function = Kept()
    gone = weakref.ref(function)
    runtime.register_func("test.kept", function)
    x, y = runtime.nd.empty((4,)), runtime.nd.empty((4,))
    library["kept"](x, y)
    del function
    runtime.register_func("test.kept", lambda x, inner: inner.copyfrom(np.full(4, 8)), override=True)
    gc.collect()
    library["kept"](x, y)
    np.testing.assert_array_equal(y.numpy(), np.full(4, 14))
    runtime.remove_global_func("test.kept")
    library["kept"](x, y)
    assert gone() is not None


def test_a_function_that_nobody_registered(library):
    x = runtime.nd.empty((4,))
    with pytest.raises(Error, match="test.missing"):
        library["missing"](x, x)


def test_the_compiled_code_itself(library):
    values = np.random.default_rng(1).normal(size=(5, 7)).astype("float32")
    y = runtime.nd.empty((5, 7))
    library["chain"](runtime.nd.array(values), y)
    np.testing.assert_allclose(y.numpy(), np.tanh(values * 2 + 1) - values, rtol=1e-5, atol=1e-6)
    with pytest.raises(Error, match="'chain' of .*calls.so"):
        library["chain"](y)


@pytest.mark.parametrize("start", range(0, 64, 4))
def test_numpy_arrays_of_any_alignment_and_strides(library, start):
    raw = np.zeros(35 * 4 + 128, np.uint8)
    at = -raw.ctypes.data % 64 + start
    values = np.random.default_rng(start).normal(size=(5, 7)).astype("float32")
    x, y = raw[at:at + 140].view("float32").reshape(5, 7), np.zeros((5, 14), "float32")
    x[:] = values
    x.flags.writeable = False
    expected = np.tanh(values * 2 + 1) - values
    library["chain"](x, y[:, ::2])
    np.testing.assert_allclose(y[:, ::2], expected, rtol=1e-5, atol=1e-6)
    assert (y[:, 1::2] == 0).all() and (x == values).all()
    output = np.zeros((7, 5), "float32").T
    library["chain"](x, output)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_params_of_tvm(folder):
    """The blob that TVM wrote is read, and ours is the same bytes."""
    blob = (folder / "params.bin").read_bytes()
    expected = {"w": np.arange(12, dtype="float32").reshape(3, 4), "b": np.array([1, -2], "int64"),
                "one": np.array(2.5, "float64")}
    params = runtime.load_param_dict(blob)
    assert list(params) == sorted(expected) or list(params) == list(expected)
    for name, value in expected.items():
        assert params[name].dtype == str(value.dtype)
        np.testing.assert_array_equal(params[name].numpy(), value)
    assert runtime.save_param_dict(params) == blob
    assert runtime.save_param_dict({name: expected[name] for name in params}) == blob
