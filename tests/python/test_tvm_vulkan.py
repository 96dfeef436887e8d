"""Libraries with SPIR-V inside, of TVM v0.4 to v0.18, on two lavapipe devices under the validation layer: graphs that TVM
v0.14 wrote for Vulkan, alone, with cpu, and with OpenCL; scalars as push constants and in a uniform buffer; what is
refused.
labels: ctypes
timeout: 400
"""
import threading

import numpy as np
import pytest

import lavapipe
import pocl

lavapipe.in_process()
pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators, spirv  # noqa: E402
from test_tvm_legacy import model_files  # noqa: E402
from test_tvm_models import random_params, stored  # noqa: E402
from tool_case import heddle  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

F32 = "float32"
PRE = operators.PREFIX
H, TAGS = operators.HANDLE, operators.TAGS
BOTH = "cpu,vulkan:0,vulkan:1"


@pytest.fixture(scope="module", autouse=True)
def devices():
    lavapipe.need()
    if spirv.missing() is not None or legacy.compiler() is None:
        pytest.skip(f"there is no {spirv.missing() or 'C compiler'} to write libraries with")


@pytest.fixture(scope="module")
def ctx():
    """Under the validation layer, where that is installed."""
    validate = "vulkan:0" in heddle("devices", "--set", "vulkan.validate=1", **lavapipe.ENV).out
    context = capi.Context(config="off", threads=2, vulkan__cache_dir="off", vulkan__validate=int(validate))
    yield context
    context.close()


@pytest.fixture(autouse=True)
def nothing_said(capfd):
    """What the validation layer says is a failure."""
    yield
    said = capfd.readouterr().err
    assert "VUID" not in said and "SYNC-" not in said and "UNASSIGNED" not in said, said


def run(ctx, text, inputs, library, params=None, devices=BOTH, times=3, **options):
    """Outputs of a run, equal to those of others."""
    held = []
    try:
        held.append(capi.Graph(text))
        given = capi.Params(params) if params else None
        if given:
            held.append(given)
        held.append(capi.Model(ctx, held[0], given, devices=devices, library=library, **options))
        held.append(capi.Executor(held[-1]))
        for name, array in inputs.items():
            held[-1].set_input(name, array)
        held[-1].run()
        first = held[-1].outputs()
        for _ in range(times - 1):
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


def on_device(node, *, code=None, era="v0.14", uniform=False, target="vulkan1.1"):
    """The host's half of a function and its kernel. The count of elements and a factor of 1 are scalars, in slots of the
    era's width."""
    n = int(np.prod(node.outputs[0][1]))
    name, names = node.function + ("_kernel0" if legacy.ERAS[era] < 13 else "_kernel"), [t[0] for t in node.tensors]
    scalars = [("count", (0, 32)), ("one", (2, 32))]
    text = spirv.source(names, scalars, f"if (i >= count) return; {code or operators.body(node)}\n y0[i] = r * one;",
                        slot=4 if legacy.ERAS[era] < 8 else 8, uniform=uniform)
    half = legacy.launcher(node.function, node.tensors, [(name, [*names, n, 1.0], [(n + 31) // 32, 32])], device_type=7)
    kernel = ([H] * len(names) + [t for _, t in scalars], TAGS, spirv.words(name, text, target), int(uniform))
    return half, {name: kernel}


def build(path, era, text, *, known=None, wrapped=False, **options):
    """A library for a graph: cpu's functions in C, OpenCL's and Vulkan's as kernels."""
    known, sources, cl, spv = known or {}, [], {}, {}
    for node in operators.nodes(text):
        code = known.get(node.function)
        if node.device == 1:
            sources.append(operators.host(node, code))
            continue
        half, kernel = operators.device(node, code) if node.device == 4 else on_device(node, code=code, era=era, **options)
        sources.append(half)
        (cl if node.device == 4 else spv).update(kernel)
    inside = ([operators.opencl_module(era, cl)] if cl else []) + [spirv.module(spv, wrapped=wrapped)]
    return legacy.library(path, era, sources, data=operators.blob(era, inside))


def on_vulkan(text):
    return [n.function for n in operators.nodes(text) if n.device == 7]


HALF = {PRE + "multiply": "float r = x0[i] * 0.5f;"}
VARIANTS = [("v0.4", {}), ("v0.6", {"target": "vulkan1.0"}), ("v0.8", {"target": "vulkan1.0"}), ("v0.14", {}),
            ("v0.14", {"uniform": True}), ("v0.14", {"uniform": True, "target": "vulkan1.0"}), ("v0.18", {})]


@pytest.mark.parametrize("era,options", VARIANTS, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_cpu_and_vulkan(ctx, tmp_path, era, options):
    """TVM's own outputs, as annotated and on the second device of the kind."""
    graph, params, inputs, outputs = model_files("hetero_cpu_vulkan")
    library = capi.Library(ctx, build(tmp_path / "lib.so", era, graph, known=HALF, **options))
    for place in ((), (f"{on_vulkan(graph)[0]}=vulkan:1",)):
        got = run(ctx, graph, inputs, library, params, place=place)
        np.testing.assert_allclose(got[0], outputs[0], rtol=1e-4, atol=1e-5)
    refused(ctx, [on_vulkan(graph)[0], "plugin 'vulkan'", "cpu:0"], graph, inputs, library, params,
            place=[f"{on_vulkan(graph)[0]}=cpu"])
    library.close()


def test_three_kinds_of_device(ctx, tmp_path):
    """What TVM itself cannot run, since it copies from OpenCL to Vulkan; its result is numpy's."""
    pocl.need()
    graph, params, inputs, outputs = model_files("hetero_cpu_opencl_vulkan")
    known = {PRE + "exp": "float r = exp(x0[i]);", PRE + "add": "float r = x0[i] + 1;",
             PRE + "sqrt": "float r = sqrt(x0[i]);"}
    library = capi.Library(ctx, build(tmp_path / "lib.so", "v0.14", graph, known=known))
    got = run(ctx, graph, inputs, library, devices="cpu,opencl:0,vulkan:0")
    np.testing.assert_allclose(got[0], outputs[0], rtol=1e-4, atol=1e-5)
    library.close()


def test_all_on_vulkan(ctx, tmp_path):
    graph = stored("mlp_vulkan_compile_only", "graph.json").decode()
    params, x = random_params(graph, ["data"]), np.random.default_rng(3).normal(size=(1, 784)).astype(np.float32)
    y = x.astype(np.float64)
    for k in (0, 2, 4):
        y = y @ params[f"p{k}"].T.astype(np.float64) + params[f"p{k + 1}"]
        y = np.maximum(y, 0) if k < 4 else y
    e = np.exp(y - y.max())
    library = capi.Library(ctx, build(tmp_path / "lib.so", "v0.14", graph))
    got = run(ctx, graph, {"data": x}, library, legacy.params_blob(params), devices="vulkan:0")
    np.testing.assert_allclose(got[0], e / e.sum(), rtol=1e-4, atol=1e-5)
    library.close()


TENSORS = [("x", F32, (64,)), ("y", F32, (64,))]


def graph_of(function):
    return tvm_graph({"x": (F32, [64])}, [Call(function, ["x"], [(F32, [64])], "node", device=7)], ["node"])


def test_scalars_of_all_types(ctx, tmp_path):
    """Whole and broken numbers of 4 and 8 bytes, more of them than push constants hold."""
    types = [(2, 32), (0, 32), (1, 32), (2, 64), (0, 64)] * 4
    scalars = [(f"s{k}", t) for k, t in enumerate(types)]
    total = " + ".join(f"float({name})" for name, _ in scalars)
    text = spirv.source(["x", "y"], scalars, f"y[i] = x[i] + {total};", local=64, uniform=True)
    given = [0.5 if t[0] == 2 else -3 if t[0] == 0 else 7 for t in types]
    kernel = {"sum_kernel": ([H, H, *types], TAGS, spirv.words("sum_kernel", text), 1)}
    path = legacy.library(tmp_path / "lib.so", "v0.14", [
        legacy.launcher("sum", TENSORS, [("sum_kernel", ["x", "y", *given], [1, 64])], device_type=7)],
        data=operators.blob("v0.14", [spirv.module(kernel)]))
    library = capi.Library(ctx, path)
    x = np.arange(64, dtype=np.float32)
    out, = run(ctx, graph_of("sum"), {"x": x}, library)
    np.testing.assert_allclose(out, x + sum(given))
    library.close()


def test_many_launches_of_one_kernel(ctx, tmp_path):
    """Each has its own operands and scalars, whatever is under way: one function launches 40, a graph 8 of those."""
    text = spirv.source(["x", "y"], [("by", (2, 32))], "y[i] = y[i] * 0.5f + x[i] * by;")
    kernel = {"f_kernel": ([H, H, (2, 32)], TAGS, spirv.words("f_kernel", text), 0),
              "zero_kernel": ([H], TAGS, spirv.words("zero_kernel", spirv.source(["y"], [], "y[i] = 0;")), 0)}
    launches = [("zero_kernel", ["y"], [2, 32])] + [("f_kernel", ["x", "y", float(k)], [2, 32]) for k in range(40)]
    path = legacy.library(tmp_path / "lib.so", "v0.14", [legacy.launcher("f", TENSORS, launches, device_type=7)],
                          data=operators.blob("v0.14", [spirv.module(kernel)]))
    library = capi.Library(ctx, path)
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    graph = tvm_graph({"x": (F32, [64])}, [Call("f", ["x" if k == 0 else f"n{k - 1}"], [(F32, [64])], f"n{k}", device=7)
                                           for k in range(8)], ["n7"])
    want, factor = x.astype(np.float64), 0.0
    for k in range(40):
        factor = factor * 0.5 + k
    out, = run(ctx, graph, {"x": x}, library, times=5)
    np.testing.assert_allclose(out, want * factor**8, rtol=1e-4)
    library.close()


def test_calls_from_several_executors(ctx, tmp_path):
    """One library, two devices, several executors at once."""
    text = spirv.source(["x", "y"], [("by", (2, 32))], "y[i] = x[i] + by;")
    kernel = {"f_kernel": ([H, H, (2, 32)], TAGS, spirv.words("f_kernel", text), 0)}
    path = legacy.library(tmp_path / "lib.so", "v0.14", [
        legacy.launcher("f", TENSORS, [("f_kernel", ["x", "y", 2.0], [2, 32])], device_type=7)],
        data=operators.blob("v0.14", [spirv.module(kernel)]))
    library = capi.Library(ctx, path)
    graph = tvm_graph({"x": (F32, [64])}, [Call("f", ["x" if k == 0 else f"n{k - 1}"], [(F32, [64])], f"n{k}", device=7)
                                           for k in range(5)], ["n4"])
    failures = []

    def work(k):
        try:
            for _ in range(3):
                x = np.full(64, k, np.float32)
                out, = run(ctx, graph, {"x": x}, library, place=[f"*=vulkan:{k % 2}"])
                np.testing.assert_array_equal(out, x + 10)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    library.close()


def large(code):
    """The same with groups of 65,536, which glslc does not write."""
    mode = next(k for k in range(5, len(code)) if code[k] == 6 << 16 | 16)  # OpExecutionMode ... LocalSize x y z
    size = next(k for k in range(5, len(code)) if code[k] == 4 << 16 | 43 and code[k + 3] == 32)  # OpConstant
    assert code[mode + 2:mode + 6] == (17, 32, 1, 1)
    return tuple(65536 if k in (mode + 3, size + 3) else word for k, word in enumerate(code))


def test_errors_of_kernels(ctx, tmp_path):
    """Words that are no SPIR-V, calls that do not fit the code, and what the device has not; none does harm."""
    good = spirv.source(["x", "y"], [("by", (2, 32))], "y[i] = x[i] * by;")
    code = spirv.words("good_kernel", good)
    cut = next(k for k in range(8, len(code)) if code[k] >> 16 == 3)  # an instruction that then goes on too long
    types = [H, H, (2, 32)]
    kernels = {"good_kernel": (types, TAGS, code, 0), "cut_kernel": (types, TAGS, code[:cut + 1], 0),
               "magic_kernel": (types, TAGS, (1, *code[1:]), 0), "empty_kernel": (types, TAGS, (), 0),
               "zero_kernel": (types, TAGS, (*code[:5], 0, *code[5:]), 0),
               "name_kernel": (types, TAGS, code, 0),
               "new_kernel": (types, TAGS, (code[0], 0x00090900, *spirv.words("new_kernel", good)[2:]), 0),
               "big_kernel": (types, TAGS, large(spirv.words("big_kernel", good)), 0),
               "scalar_kernel": ([H, H], TAGS, spirv.words("scalar_kernel", good), 0),
               "size_kernel": ([H, H, (2, 64)], TAGS, spirv.words("size_kernel", good), 0),
               "few_kernel": ([H, (2, 32)], TAGS, spirv.words("few_kernel", good), 0),
               "twice_kernel": (types, TAGS, spirv.words("twice_kernel", good.replace("binding = 1", "binding = 0")), 0),
               "set_kernel": (types, TAGS, spirv.words("set_kernel", good.replace("set = 0, binding = 1", "set = 1, binding = 1")), 0)}
    cases = {"cut": "goes beyond its end", "magic": "does not begin as SPIR-V", "empty": "does not begin as SPIR-V",
             "zero": "goes beyond its end", "name": "without an entry point 'name_kernel'", "new": "9.9",
             "big": "groups are 65536", "scalar": "fewer scalars", "size": "another size", "few": "fewer buffers",
             "twice": "two buffers at binding 0", "set": "set 1", "block": "blocks of 16 x 1 x 1", "missing": "no shader"}
    arguments = {"scalar": ["x", "y"], "few": ["x", 2.0]}
    functions = [legacy.launcher(n, TENSORS, [(f"{n}_kernel", arguments.get(n, ["x", "y", 2.0]), [2, 32])], device_type=7)
                 for n in ["good", *cases] if n not in ("block", "missing")]
    functions.append(legacy.launcher("block", TENSORS, [("good_kernel", ["x", "y", 2.0], [4, 16])], device_type=7))
    functions.append(legacy.launcher("missing", TENSORS, [("missing_kernel", ["x", "y", 2.0], [2, 32])], device_type=7))
    body = spirv.module(kernels)
    listed = dict(kernels, missing_kernel=(types, TAGS, (), 0))  # it is in the list of kernels, and has no shader
    only = legacy.device_module("vulkan", "vulkan", {k: v[:2] for k, v in listed.items()}, {})
    body = only[:-8] + body[len(legacy.device_module("vulkan", "vulkan", {k: v[:2] for k, v in kernels.items()}, {})) - 8:]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", functions,
                                               data=operators.blob("v0.14", [body])))
    x = np.arange(64, dtype=np.float32)
    for function, words in cases.items():
        refused(ctx, ["node 'node' on vulkan:0", words], graph_of(function), {"x": x}, library)
        out, = run(ctx, graph_of("good"), {"x": x}, library, times=1)
        np.testing.assert_array_equal(out, x * 2)
    library.close()
