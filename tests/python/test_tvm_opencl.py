"""Libraries with OpenCL source inside, of today's TVM and of TVM v0.4 to v0.18, on two PoCL devices: functions called
by name with tensors there, nodes, graphs of cpu and OpenCL as TVM v0.14 wrote them and its own results, placement, and
what is refused.
labels: ctypes
timeout: 400
"""
import _ctypes
import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy.operators import HANDLE, TAGS, opencl_module  # noqa: E402
from fixtures.tvm_legacy.operators import blob as whole  # noqa: E402
from test_tvm import clean_environment, conv  # noqa: E402
from test_tvm_legacy import model_files  # noqa: E402
from tool_case import failing, good  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

HERE = pathlib.Path(__file__).parent
F32 = "float32"
BOTH = "cpu,opencl:0,opencl:1"


@pytest.fixture(scope="module", autouse=True)
def devices():
    pocl.need()


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


def run(ctx, text, inputs, library, params=None, devices=BOTH, **options):
    """Outputs of a run, equal to those of a second one, and the device of each node."""
    held = []
    try:
        held.append(capi.Graph(text))
        given = capi.Params(params) if params else None
        if given:
            held.append(given)
        held.append(capi.Model(ctx, held[0], given, devices=devices, library=library, **options))
        model = held[-1]
        held.append(capi.Executor(model))
        for name, array in inputs.items():
            held[-1].set_input(name, array)
        held[-1].run()
        first = held[-1].outputs()
        held[-1].run()
        for a, b in zip(first, held[-1].outputs(), strict=True):
            np.testing.assert_array_equal(a, b)
        return first
    finally:
        for p in reversed(held):
            p.close()


def refused(ctx, words, *args, **options):
    with pytest.raises(capi.HeddleError) as caught:
        run(ctx, *args, **options)
    for word in words:
        assert word in str(caught.value), caught.value


# ---- today's TVM

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if importlib.util.find_spec("tvm") is None:
        pytest.skip("apache-tvm is not in .venv; scripts/setup installs it")
    path = tmp_path_factory.mktemp("tvm")
    subprocess.run([sys.executable, str(HERE / "tvm_compile.py"), str(path)], check=True, env=clean_environment(),
                   timeout=240)
    return path


@pytest.fixture(scope="module")
def today(ctx, folder):
    library = capi.Library(ctx, folder / "opencl.so")
    yield library
    library.close()


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# name: (shapes of inputs, shape of the output, reference)
FUNCTIONS = {
    "scale": ([(256,)], (256,), lambda x: x * 2),
    "matmul": ([(16, 32), (32, 8)], (16, 8), lambda a, b: a @ b),
    "conv2d": ([(1, 3, 10, 10), (4, 3, 3, 3)], (1, 4, 8, 8), conv),
    "softmax": ([(64, 100)], (64, 100), softmax),  # four kernels, with scratch memory between them
    "row_sum": ([(20, 30)], (20,), lambda x: x.sum(axis=1)),
    "chain": ([(5, 7)], (5, 7), lambda x: np.tanh(x * 2 + 1) - x),
}


def values(*shapes):
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("device", ["opencl:0", "opencl:1"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_call(ctx, today, name, device):
    shapes, shape, reference = FUNCTIONS[name]
    inputs, zeros = values(*shapes), np.zeros(shape, np.float32)
    tensors = [capi.on_device(ctx, device, a) for a in [*inputs, zeros]]
    for _ in range(2):
        assert today.call(name, *tensors) is None
    np.testing.assert_allclose(capi.from_device(tensors[-1], zeros), reference(*inputs), rtol=1e-4, atol=1e-5)
    for t in tensors:
        capi.LIB.heddle_tensor_release(t)


@pytest.mark.parametrize("flags", [0, capi.NO_REUSE], ids=["", "no reuse"])
@pytest.mark.parametrize("place", [(), ("*=opencl:1",)], ids=["annotated", "placed"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_node(ctx, today, name, place, flags):
    shapes, shape, reference = FUNCTIONS[name]
    arrays = values(*shapes)
    inputs = {f"x{i}": a for i, a in enumerate(arrays)}
    text = tvm_graph({k: (F32, a.shape) for k, a in inputs.items()},
                     [Call(name, list(inputs), [(F32, shape)], device=4)], [name])
    out, = run(ctx, text, inputs, today, place=place, flags=flags)
    np.testing.assert_allclose(out, reference(*arrays), rtol=1e-4, atol=1e-5)


def chain_of(n):
    calls = [Call("chain", [f"c{i - 1}" if i else "x"], [(F32, [5, 7])], f"c{i}", device=4) for i in range(n)]
    return tvm_graph({"x": (F32, [5, 7])}, calls, [f"c{n - 1}", "c2"], device_index=False)


def test_rows_of_nodes_on_two_devices(ctx, today):
    """Without device_index a node's device is the one that its library has kernels for; rules choose among such."""
    x, = values((5, 7))
    expected = [x]
    for _ in range(12):
        expected.append(np.tanh(expected[-1] * 2 + 1) - expected[-1])
    for place in ((), ("c*[02468]=opencl:1",), ("c[6-9]=opencl:1",)):
        for devices in (BOTH, "opencl:0,opencl:1"):
            got = run(ctx, chain_of(12), {"x": x}, today, place=place, devices=devices)
            for out, e in zip(got, (expected[12], expected[3]), strict=True):
                np.testing.assert_allclose(out, e, rtol=1e-4, atol=1e-5)


def test_beside_operators(ctx, today):
    """A function's neighbours are operators by name: on cpu, on its own device, on the simulated one."""
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
    for devices in ("cpu,opencl:0", "opencl:0", "sim:0,opencl:1", "sim:0,opencl:0,cpu"):
        out, = run(ctx, text, {"x": x}, today, devices=devices)
        np.testing.assert_allclose(out, -np.maximum(x, 0).sum(axis=1), rtol=1e-5, atol=1e-5)


def test_what_is_refused(ctx, today, folder):
    x, = values((5, 7))
    text = tvm_graph({"x": (F32, [5, 7])}, [Call("chain", ["x"], [(F32, [5, 7])], device=4)], ["chain"])
    refused(ctx, ["'chain'", "kind 'opencl'", "plugin 'opencl'", "cpu:0"], text, {"x": x}, today, place=["chain=cpu"])
    refused(ctx, ["'chain'", "type 4", "opencl"], text, {"x": x}, today, devices="cpu")
    wrong = tvm_graph({"x": (F32, [5, 6])}, [Call("chain", ["x"], [(F32, [5, 7])], device=4)], ["chain"])
    refused(ctx, ["node 'chain' on opencl:0", "function 'chain'", "shape[1]"], wrong, {"x": x[:, :6]}, today)
    cpu = capi.Library(ctx, folder / "cpu.so")  # the same function for cpu
    refused(ctx, ["'chain'", "opencl:0"], text, {"x": x}, cpu)
    cpu.close()
    here, there = capi.on_device(ctx, "opencl:0", x), capi.on_device(ctx, "opencl:1", x)
    with pytest.raises(capi.HeddleError, match="is on opencl:1.*is on opencl:0"):
        today.call("chain", here, there)
    with pytest.raises(capi.HeddleError, match="device_type|Tensor|device"):
        today.call("chain", x, x)
    for t in (here, there):
        capi.LIB.heddle_tensor_release(t)


def test_kinds_without_plugin(ctx, folder, tmp_path):
    cuda = capi.Library(ctx, folder / "cuda.so")
    assert cuda.functions() == ["scale"]
    x, = values((256,))
    text = tvm_graph({"x": (F32, [256])}, [Call("scale", ["x"], [(F32, [256])])], ["scale"], device_index=False)
    refused(ctx, ["'scale'", "kind 'cuda'", "plugin 'cuda'"], text, {"x": x}, cuda)
    t = capi.on_device(ctx, "opencl:0", x)
    with pytest.raises(capi.HeddleError, match="kind 'cuda'.*plugin 'cuda'"):
        cuda.call("scale", t, t)
    capi.LIB.heddle_tensor_release(t)
    cuda.close()
    (tmp_path / "g.json").write_text(text)
    said = json.loads(good("info", tmp_path / "g.json", "--lib", folder / "cuda.so", "--json"))
    assert [(m["kind"], m["kernels"]) for m in said["library"]["imports"]] == [("cuda", ["scale_kernel"])]


# ---- libraries of v0.4 to v0.18

H = HANDLE
BUFFERS = "__global const float *a, __global const float *b, __global float *y"
PRE = "tvmgen_default_fused_"


def binary(name, shape, expression):
    n = int(np.prod(shape))
    kernel = f"{PRE}{name}__kernel0"  # as v0.3 and v0.4 named it
    return (legacy.launcher(PRE + name, [("a", F32, shape), ("b", F32, shape), ("y", F32, shape)],
                            [(kernel, ["a", "b", "y"], [n // 4, 4])]),
            {kernel: ([H, H, H], TAGS, BUFFERS, f"y[i] = {expression};")})


def on_cpu(name, inputs, shape, body):
    return legacy.kernel(PRE + name, [*inputs, ("y", F32, shape)], body)


def dense_relu():
    """Two kernels with scratch memory between them: products, then what is added; one takes scalars."""
    name = PRE + "nn_dense_add_nn_relu"
    host = legacy.launcher(name, [("x", F32, (1, 64)), ("w", F32, (32, 64)), ("b", F32, (32,)), ("y", F32, (1, 32))],
                           [(name + "_kernel0", ["sums", "w", "x", 64], [4, 8]),
                            (name + "_kernel1", ["b", "sums", "y", 1.0, 0.0], [1, 2, 0, 32, 7, 1])],
                           scratch={"unused": 100, "sums": 128})
    return host, {
        name + "_kernel0": ([H, H, H, (0, 32)], TAGS,
                            "__global float *s, __global const float *w, __global const float *x, int n",
                            "float sum = 0; for (int k = 0; k < n; k++) sum += x[k] * w[i * n + k]; s[i] = sum;"),
        # tags that are repeated: the last one that is not 0 counts
        name + "_kernel1": ([H, H, H, (2, 32), (2, 64)],
                            ["threadIdx.x", "blockIdx.x", "blockIdx.x", "threadIdx.x", "blockIdx.x", "blockIdx.x"],
                            "__global const float *b, __global const float *s, __global float *y, float one, "
                            "double least",
                            "if (get_num_groups(0) == 1) y[i] = fmax(s[i] * one + b[i], (float)least);")}


def models():
    add = binary("add", (4, 16), "a[i] + b[i]")
    yield ("hetero_cpu_opencl", *dense_relu(), [
        on_cpu("multiply", [("x", F32, (1, 64))], (1, 64), "for (int i = 0; i < 64; i++) y[i] = x[i] * 0.5f;"),
        on_cpu("nn_dense", [("x", F32, (1, 32)), ("w", F32, (10, 32))], (1, 10),
               "for (int i = 0; i < 10; i++) { y[i] = 0; for (int k = 0; k < 32; k++) y[i] += x[k] * w[i * 32 + k]; }"),
        on_cpu("nn_softmax", [("x", F32, (1, 10))], (1, 10), "float sum = 0; for (int i = 0; i < 10; i++) sum += "
               "y[i] = expf(x[i]); for (int i = 0; i < 10; i++) y[i] /= sum;")])
    plus = PRE + "add_kernel"
    yield ("hetero_shared_input",
           legacy.launcher(PRE + "add", [("x", F32, (4, 16)), ("y", F32, (4, 16))], [(plus, ["y", "x"], [8, 8])]),
           {plus: ([H, H], TAGS, "__global float *y, __global const float *x", "y[i] = x[i] + 1.0f;")},
           [on_cpu("exp_multiply", [("a", F32, (4, 16)), ("b", F32, (4, 16))], (4, 16),
                   "for (int i = 0; i < 64; i++) y[i] = expf(a[i]) * b[i];")])
    yield ("issue15019_device_copy", *binary("add", (4, 4), "a[i] + b[i]"), [
        on_cpu("add_subtract", [(k, F32, (4, 4)) for k in "abc"], (4, 4),
               "for (int i = 0; i < 16; i++) y[i] = a[i] + b[i] - c[i];")])
    yield ("hetero_shared_param_named", *add, [
        on_cpu("multiply", [("a", F32, (4, 16)), ("b", F32, (4, 16))], (4, 16),
               "for (int i = 0; i < 64; i++) y[i] = a[i] * b[i];")])


MODELS = {m[0]: m[1:] for m in models()}
needs_compiler = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@needs_compiler
@pytest.mark.parametrize("era", legacy.ERAS)
@pytest.mark.parametrize("name", MODELS)
def test_mixed_models(ctx, tmp_path, name, era):
    """What TVM v0.14 wrote for cpu and OpenCL, its results; as annotated, and on the second device of the kind."""
    graph, params, inputs, outputs = model_files(name)
    host, kernels, others = MODELS[name]
    path = legacy.library(tmp_path / "lib.so", era, [host, *others], data=whole(era, [opencl_module(era, kernels)]))
    library = capi.Library(ctx, path)
    on_opencl = host[host.index(PRE):host.index(")")]
    for place in ((), (f"{on_opencl}=opencl:1",)):
        got = run(ctx, graph, inputs, library, params if name != "issue15019_device_copy" else None, place=place)
        np.testing.assert_allclose(got[0], outputs[0], rtol=1e-4, atol=1e-5)
    refused(ctx, [on_opencl, "plugin 'opencl'", "cpu:0"], graph, inputs, library, place=[f"{on_opencl}=cpu"])
    library.close()


@needs_compiler
def test_a_library_that_others_have_open_too(ctx, tmp_path):
    """Its code keeps handles of kernels in its own memory, which closing does not unmap then; once it is no
    longer in use, it begins anew."""
    graph, params, inputs, outputs = model_files("hetero_shared_input")
    host, kernels, others = MODELS["hetero_shared_input"]
    path = legacy.library(tmp_path / "lib.so", "v0.14", [host, *others],
                          data=whole("v0.14", [opencl_module("v0.14", kernels)]))

    def again(times):
        for _ in range(times):
            library = capi.Library(ctx, path)
            got = run(ctx, graph, inputs, library, params)
            np.testing.assert_allclose(got[0], outputs[0], rtol=1e-4, atol=1e-5)
            library.close()
            used = [ctypes.create_string_buffer(b"\xab" * n) for n in range(8, 2000, 8)]  # what was freed is used for more
            assert len(used) == 249

    other = ctypes.CDLL(str(path))
    again(3)
    _ctypes.dlclose(other._handle)
    again(2)
    assert str(path) not in pathlib.Path("/proc/self/maps").read_text()


@needs_compiler
def test_a_model_in_one_file(tmp_path):
    """The tool runs it; its plan says where each node goes."""
    graph, params, inputs, outputs = model_files("hetero_shared_input")
    host, kernels, others = MODELS["hetero_shared_input"]
    data = legacy.blob([legacy.factory(graph, {}), legacy.LIB, opencl_module("v0.14", kernels)], [[1], [2], []])
    path = legacy.library(tmp_path / "deploy.so", "v0.14", [host, *others], data=data)
    np.save(tmp_path / "x.npy", inputs["x"])
    words = (path, "--device", "cpu,opencl", "--input", f"x={tmp_path / 'x.npy'}")
    good("run", *words, "--output-dir", tmp_path, **pocl.ENV)
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), outputs[0], rtol=1e-4, atol=1e-5)
    said = json.loads(good("info", path, "--json"))["library"]["imports"]
    assert {m["kind"]: m["kernels"] for m in said} == {"GraphExecutorFactory": [], "opencl": [PRE + "add_kernel"]}
    assert "type 4" in failing(1, "run", path, "--device", "cpu", *words[3:])


@needs_compiler
def test_errors_of_kernels(ctx, tmp_path):
    """Source that does not compile, calls that do not fit the list, a device that is not the node's."""
    x = np.arange(8, dtype=np.float32)
    tensors = [("x", F32, (8,)), ("y", F32, (8,))]
    args = "__global const float *x, __global float *y"
    kernels = {"good_kernel0": ([H, H], TAGS, args, "y[i] = x[i] * 3;"),
               "bad_kernel0": ([H, H], TAGS, args, "y[i] = no_such_name;"),
               "tag_kernel0": ([H, H], ["blockIdx.w"], args, ""),
               "half_kernel0": ([H, (2, 16)], TAGS, args, ""),
               "shared_kernel0": ([H, H], [*TAGS, "tir.use_dyn_shared_memory"], args + ", __local float *s",
                                  "s[get_local_id(0)] = x[i]; barrier(CLK_LOCAL_MEM_FENCE); "
                                  "y[i] = s[get_local_size(0) - 1 - get_local_id(0)];")}
    extents = [2, 4]
    functions = [legacy.launcher("good", tensors, [("good_kernel0", ["x", "y"], extents)]),
                 legacy.launcher("bad", tensors, [("bad_kernel0", ["x", "y"], extents)]),
                 legacy.launcher("tag", tensors, [("tag_kernel0", ["x", "y"], [1])]),
                 legacy.launcher("half", tensors, [("half_kernel0", ["x", "y"], extents)]),
                 legacy.launcher("few", tensors, [("good_kernel0", ["x", "y"], [2])]),
                 legacy.launcher("kinds", tensors, [("good_kernel0", ["x", 7], extents)]),
                 legacy.launcher("negative", tensors, [("good_kernel0", ["x", "y"], [-1, 4])]),
                 legacy.launcher("huge", tensors, [("good_kernel0", ["x", "y"], [1, 1 << 30])]),
                 legacy.launcher("shared", tensors, [("shared_kernel0", ["x", "y"], [2, 4, 16])]),
                 legacy.launcher("missing", tensors, [("no_such_kernel0", ["x", "y"], extents)]),
                 legacy.launcher("good_on_2", tensors, [("good_kernel0", ["x", "y"], extents)], device_type=2)]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", functions,
                                               data=whole("v0.14", [opencl_module("v0.14", kernels)])))

    def graph(function):
        return tvm_graph({"x": (F32, [8])}, [Call(function, ["x"], [(F32, [8])], "node", device=4)], ["node"])

    out, = run(ctx, graph("good"), {"x": x}, library)
    np.testing.assert_array_equal(out, x * 3)
    out, = run(ctx, graph("shared"), {"x": x}, library)
    np.testing.assert_array_equal(out, [3, 2, 1, 0, 7, 6, 5, 4])
    for function, words in {"bad": ["bad_kernel0", "no_such_name"], "tag": ["tag_kernel0", "launch parameter"],
                            "half": ["half_kernel0", "type"], "few": ["good_kernel0", "number of arguments"],
                            "kinds": ["good_kernel0", "another kind"], "negative": ["good_kernel0", "out of range"],
                            "huge": ["good_kernel0"], "missing": ["no_such_kernel0"],
                            "good_on_2": ["device_type"]}.items():
        refused(ctx, ["node 'node' on opencl:0", function, *words], graph(function), {"x": x}, library)
    out, = run(ctx, graph("good"), {"x": x}, library)  # none of them does harm
    np.testing.assert_array_equal(out, x * 3)
    library.close()


@needs_compiler
def test_calls_from_several_executors(ctx, tmp_path):
    """One library, handles that its code keeps, two devices, several executors at once."""
    import threading
    name = PRE + "add"
    host, kernels, _ = MODELS["hetero_shared_input"]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", [host],
                                               data=whole("v0.14", [opencl_module("v0.14", kernels)])))
    text = tvm_graph({"x": (F32, [4, 16])}, [Call(name, ["x" if i == 0 else f"n{i - 1}"], [(F32, [4, 16])], f"n{i}",
                                                  device=4) for i in range(5)], ["n4"])
    failures = []

    def work(k):
        try:
            x = np.full((4, 16), k, np.float32)
            for _ in range(3):
                out, = run(ctx, text, {"x": x}, library, place=[f"*=opencl:{k % 2}"])
                np.testing.assert_array_equal(out, x + 5)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    library.close()
