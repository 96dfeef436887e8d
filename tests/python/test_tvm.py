"""Libraries of today's TVM, compiled here: their functions called by name and as nodes of a graph, on one thread and on
two, compared with numpy; and what is refused, with a message.
labels: ctypes
timeout: 300
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import capi
from tvm_graph import Call, tvm_graph

HERE = pathlib.Path(__file__).parent
F32 = "float32"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tvm") is None,
                                reason="apache-tvm is not in .venv; scripts/setup installs it")


def clean_environment():
    """Without a sanitizer's run time, which is for the process with libheddle only."""
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tvm")
    subprocess.run([sys.executable, str(HERE / "tvm_compile.py"), str(path)], check=True, env=clean_environment(),
                   timeout=240)
    return path


@pytest.fixture(scope="module", params=[1, 2], ids=["1 thread", "2 threads"])
def ctx(request):
    context = capi.Context(config="off", threads=request.param)
    yield context
    context.close()


@pytest.fixture(scope="module")
def library(ctx, folder):
    opened = capi.Library(ctx, folder / "cpu.so")
    yield opened
    opened.close()


def values(*shapes):
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def conv(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("ncijpq,kcpq->nkij", windows, w)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# name: (shapes of inputs, shape of the output, reference)
FUNCTIONS = {
    "matmul": ([(16, 32), (32, 8)], (16, 8), lambda a, b: a @ b),
    "conv2d": ([(1, 3, 10, 10), (4, 3, 3, 3)], (1, 4, 8, 8), conv),
    "softmax": ([(64, 100)], (64, 100), softmax),
    "row_sum": ([(20, 30)], (20,), lambda x: x.sum(axis=1)),
    "chain": ([(5, 7)], (5, 7), lambda x: np.tanh(x * 2 + 1) - x),
    "parallel": ([(64, 256)], (64, 256), lambda x: np.exp(x) + 1),
    "add1": ([(1,), (1,)], (1,), lambda a, b: a + b),
}


def run(ctx, text, inputs, library=None, params=None, **options):
    graph = capi.Graph(text)
    model = executor = None
    try:
        model = capi.Model(ctx, graph, params, devices=options.pop("devices", "cpu"), library=library, **options)
        executor = capi.Executor(model)
        for name, array in inputs.items():
            executor.set_input(name, array)
        executor.run()
        first = executor.outputs()
        executor.run()  # what is kept between runs does no harm
        for a, b in zip(first, executor.outputs()):
            np.testing.assert_array_equal(a, b)
        return first
    finally:
        for p in (executor, model, graph):
            if p is not None:
                p.close()


def refused(ctx, text, inputs, *words, **options):
    with pytest.raises(capi.HeddleError) as caught:
        run(ctx, text, inputs, **options)
    for word in words:
        assert word in str(caught.value), caught.value
    return caught.value.status


def test_functions_are_listed(library):
    assert library.functions() == sorted([*FUNCTIONS, "both", "flat"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_call(library, name):
    shapes, shape, reference = FUNCTIONS[name]
    inputs, out = values(*shapes), np.zeros(shape, np.float32)
    assert library.call(name, *inputs, out) is None
    np.testing.assert_allclose(out, reference(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_node(ctx, library, name):
    shapes, shape, reference = FUNCTIONS[name]
    arrays = values(*shapes)
    inputs = {f"x{i}": a for i, a in enumerate(arrays)}
    text = tvm_graph({k: (F32, a.shape) for k, a in inputs.items()}, [Call(name, list(inputs), [(F32, shape)])], [name])
    out, = run(ctx, text, inputs, library)
    np.testing.assert_allclose(out, reference(*arrays), rtol=1e-4, atol=1e-5)


def test_several_nodes(ctx, library):
    """A value with two readers, a reshape between two functions, a copy at the end, an input as an output."""
    x, = values((5, 7))
    calls = [Call("chain", ["x"], [(F32, [5, 7])], "one"), Call("chain", ["one"], [(F32, [5, 7])], "two"),
             Call("__nop", ["one"], [(F32, [7, 5])], "reshape_nop"), Call("__copy", ["two"], [(F32, [5, 7])], "__copy")]
    text = tvm_graph({"x": (F32, [5, 7])}, calls, ["__copy", "reshape_nop", "x", "two"])
    one = np.tanh(x * 2 + 1) - x
    two = np.tanh(one * 2 + 1) - one
    got = run(ctx, text, {"x": x}, library)
    for out, expected in zip(got, (two, one.reshape(7, 5), x, two), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_flatten_data(ctx, library):
    x, = values((3, 4))
    text = tvm_graph({"x": (F32, [3, 4])}, [Call("flat", ["x"], [(F32, [3, 4])], flatten=1)], ["flat"])
    out, = run(ctx, text, {"x": x}, library)
    np.testing.assert_array_equal(out, x + 1)
    text = tvm_graph({"x": (F32, [3, 4])}, [Call("flat", ["x"], [(F32, [3, 4])])], ["flat"])
    refused(ctx, text, {"x": x}, "node 'flat' on cpu:0", "function 'flat'", "ndim", library=library)


def test_two_outputs_and_bool(ctx, library):
    x, = values((6,))
    text = tvm_graph({"x": (F32, [6])}, [Call("both", ["x"], [(F32, [6]), ("bool", [6])])], ["both", "both:1"])
    tripled, positive = run(ctx, text, {"x": x}, library)
    np.testing.assert_array_equal(tripled, x * 3)
    np.testing.assert_array_equal(positive, x > 0)
    assert positive.dtype == bool


def test_output_that_nobody_reads(ctx, library):
    """The function writes it all the same."""
    x, = values((6,))
    text = tvm_graph({"x": (F32, [6])}, [Call("both", ["x"], [(F32, [6]), ("bool", [6])])], ["both"])
    out, = run(ctx, text, {"x": x}, library)
    np.testing.assert_array_equal(out, x * 3)


def test_one_value_twice(ctx, library):
    x = np.array([3], np.float32)
    text = tvm_graph({"x": (F32, [1])}, [Call("add1", ["x", "x"], [(F32, [1])])], ["add1"])
    np.testing.assert_array_equal(run(ctx, text, {"x": x}, library)[0], [6])


def test_beside_operators_by_name(ctx, library):
    """Heddle's own graphs may call functions too."""
    import json
    text = json.dumps({
        "heddle": {"version": 1, "opset": 17},
        "nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "Relu", "name": "relu", "inputs": [[0, 0, 0]]},
                  {"op": "tvm_op", "name": "sum", "inputs": [[1, 0, 0]],
                   "attrs": {"func_name": "row_sum", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}},
                  {"op": "Neg", "name": "neg", "inputs": [[2, 0, 0]]}],
        "arg_nodes": [0], "heads": [[3, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4],
        "attrs": {"dltype": ["list_str", [F32, None, F32, None]],
                  "shape": ["list_shape", [[20, 30], None, [20], None]]}})
    x, = values((20, 30))
    out, = run(ctx, text, {"x": x}, library)
    np.testing.assert_allclose(out, -np.maximum(x, 0).sum(axis=1), rtol=1e-5)
    on_both, = run(ctx, text, {"x": x}, library, devices="sim:0,cpu")  # the function's neighbours are elsewhere
    np.testing.assert_allclose(on_both, out, rtol=1e-5)


# ---- what is refused

def test_wrong_shape_is_told_in_the_functions_words(ctx, library):
    a, b = values((16, 31), (31, 8))
    text = tvm_graph({"a": (F32, a.shape), "b": (F32, b.shape)}, [Call("matmul", ["a", "b"], [(F32, [16, 8])])],
                     ["matmul"])
    refused(ctx, text, {"a": a, "b": b}, "node 'matmul' on cpu:0", "function 'matmul'", "shape[1]", library=library)
    with pytest.raises(capi.HeddleError, match="shape"):
        library.call("matmul", a, b, np.zeros((16, 8), np.float32))
    with pytest.raises(capi.HeddleError, match="TypeError"):
        library.call("matmul", a)


def test_data_that_is_not_aligned(ctx, library):
    """A call refuses it; the input of a graph is copied to where it is aligned."""
    raw = capi.aligned(np.zeros(36, np.float32))
    x = raw[1:]
    x[:] = np.arange(35)
    with pytest.raises(capi.HeddleError, match="aligned to 64 bytes"):
        library.call("chain", x.reshape(5, 7), np.zeros((5, 7), np.float32), align=False)
    graph = capi.Graph(tvm_graph({"x": (F32, [5, 7])}, [Call("chain", ["x"], [(F32, [5, 7])])], ["chain"]))
    model = capi.Model(ctx, graph, devices="cpu", library=library)
    executor = capi.Executor(model)
    t = capi.tensor(x.reshape(5, 7))
    capi.call("heddle_executor_bind_input", executor.p, 0, t)
    executor.run()
    np.testing.assert_allclose(executor.output(0), np.tanh(x * 2 + 1).reshape(5, 7) - x.reshape(5, 7), rtol=1e-5)
    capi.LIB.heddle_tensor_release(t)
    for p in (executor, model, graph):
        p.close()


def test_missing_function_and_missing_library(ctx, library):
    text = tvm_graph({"x": (F32, [4])}, [Call("no_such", ["x"], [(F32, [4])])], ["no_such"])
    refused(ctx, text, {}, "no_such", "add1, both", library=library)
    refused(ctx, text, {}, "no_such", "none is given")
    with pytest.raises(capi.HeddleError, match="no_such"):
        library.call("no_such")


def test_functions_for_other_devices(ctx, folder, library):
    x, = values((5, 7))
    text = tvm_graph({"x": (F32, [5, 7])}, [Call("chain", ["x"], [(F32, [5, 7])], device=4)], ["chain"])
    refused(ctx, text, {"x": x}, "chain", "type 4", library=library)
    refused(ctx, text, {"x": x}, "type 4", "cpu:0 is of type 1", library=library, place=["chain=cpu"])
    opencl = capi.Library(ctx, folder / "opencl.so")
    assert opencl.functions() == ["chain", "conv2d", "matmul", "row_sum", "scale", "softmax"]
    text = tvm_graph({"x": (F32, [256])}, [Call("scale", ["x"], [(F32, [256])])], ["scale"], device_index=False)
    refused(ctx, text, {}, "scale", "type 4", "cpu:0 is of type 1", library=opencl)
    with pytest.raises(capi.HeddleError, match="device_type"):
        opencl.call("scale", np.zeros(256, np.float32), np.zeros(256, np.float32))
    opencl.close()


def test_files_that_are_no_libraries(ctx, folder, tmp_path):
    whole = (folder / "cpu.so").read_bytes()
    for name, data in {"empty.so": b"", "text.so": b"no library at all\n" * 100, "half.so": whole[:len(whole) // 2],
                       "head.so": whole[:100]}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(capi.HeddleError, match=name):
            capi.Library(ctx, tmp_path / name)
    with pytest.raises(capi.HeddleError, match="no_such.so"):
        capi.Library(ctx, tmp_path / "no_such.so")


def test_same_file_twice_is_one_library(ctx, folder, library):
    again = capi.Library(ctx, folder / "cpu.so")
    x, y = values((5, 7))[0], np.zeros((5, 7), np.float32)
    again.call("chain", x, y)
    again.close()
    library.call("chain", x, y)
    np.testing.assert_allclose(y, np.tanh(x * 2 + 1) - x, rtol=1e-5, atol=1e-6)


def test_closed_and_opened_again(ctx, folder, tmp_path):
    shutil.copy(folder / "cpu.so", tmp_path / "other.so")
    for _ in range(3):
        other = capi.Library(ctx, tmp_path / "other.so")
        x, y = values((64, 100))[0], np.zeros((64, 100), np.float32)
        other.call("softmax", x, y)
        np.testing.assert_allclose(y, softmax(x), rtol=1e-4, atol=1e-6)
        other.close()


# ---- beside a tvm_ffi in the same process

BESIDE = """
import sys, numpy as np
if sys.argv[2] == "before": import tvm_ffi
import capi
ctx = capi.Context(config="off")
library = capi.Library(ctx, sys.argv[1])
def fails():
    try: library.call("chain", np.zeros((5, 6), np.float32), np.zeros((5, 7), np.float32))
    except capi.HeddleError as e: assert "shape" in str(e), e
    else: raise SystemExit("no error")
x, y = np.ones((5, 7), np.float32), np.zeros((5, 7), np.float32)
library.call("chain", x, y)
fails()
import tvm_ffi
module = tvm_ffi.load_module(sys.argv[1].replace("cpu.so", "copy.so"))
z = np.zeros((5, 7), np.float32)
module["chain"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(z))
np.testing.assert_allclose(y, z)
try: module["chain"](tvm_ffi.from_dlpack(x))
except TypeError as e: assert "chain" in str(e), e
else: raise SystemExit("no error of tvm_ffi")
fails()
library.call("chain", x, y)
print("fine")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_beside_tvm_ffi(folder, when):
    if "HEDDLE_SANITIZE" in os.environ:
        pytest.skip("tvm_ffi is not built with a sanitizer")
    shutil.copy(folder / "cpu.so", folder / "copy.so")
    done = subprocess.run([sys.executable, "-c", BESIDE, str(folder / "cpu.so"), when], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0 and "fine" in done.stdout, done.stderr
