"""Several models in one library, and how the modules inside import one another: trees, diamonds, chains, in every era that
has them; at most one host library; C source, constant loaders and external code generators.
labels: ctypes
timeout: 300
"""
import os

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from tvm_graph import Call, tvm_graph

F32 = "float32"
HAS_CXX = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle_tvm_cxx.so.0"))
ERAS = [era for era, number in legacy.ERAS.items() if number >= 7]
X = np.arange(4, dtype=np.float32)

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=1)
    yield context
    context.close()


def times(name, factor):
    return legacy.kernel(name, [("x", F32, (4,)), ("y", F32, (4,))], f"for (int i = 0; i < 4; i++) y[i] = x[i] * {factor};")


def model(era, name, function):
    graph = tvm_graph({"x": (F32, [4]), "p0": (F32, [4])}, [Call(function, ["x"], [(F32, [4])])], [function])
    kind = "GraphRuntimeFactory" if era == "v0.8" else "GraphExecutorFactory"
    return legacy.factory(graph, {"p0": np.zeros(4, np.float32)}, name, kind)


def run(ctx, library, name):
    graph, params = capi.unpack(library, name)
    made = capi.Model(ctx, graph, params, devices="cpu", library=library)
    executor = capi.Executor(made)
    executor.set_input("x", X)
    executor.run()
    out = executor.output(0)
    for p in (executor, made, params, graph):
        p.close()
    return out


OPENCL = legacy.device_module("opencl", "cl", {"k_kernel": ([(3, 64)], ["blockIdx.x"])},
                              "// Function: k_kernel\n__kernel void k_kernel() {}\n")
CONSTANTS = legacy.const_loader({"c0": np.ones(3, np.float32)}, {"ext_0": ["c0"]})
# names of models and "lib", "opencl", "const", each with its children; the first is the root
SHAPES = {
    "two parents": {"a": ["b", "lib"], "b": ["lib"], "lib": []},
    "side by side below the library": {"lib": ["b", "a"], "a": [], "b": []},
    "a chain": {"a": ["b"], "b": ["c"], "c": ["lib"], "lib": ["opencl"], "opencl": []},
    "a diamond": {"a": ["b", "c"], "b": ["const"], "c": ["const"], "const": ["lib"], "lib": ["opencl"], "opencl": []},
    "through constants": {"a": ["const"], "const": ["lib"], "lib": []},
    "the library before its parents": {"a": ["lib", "b"], "lib": ["opencl"], "opencl": [], "b": ["opencl", "lib"]},
    "the same one twice": {"a": ["lib", "lib"], "lib": []},
}
ROOTS = {"side by side below the library": "b"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("shape", SHAPES)
def test_models_and_their_imports(ctx, tmp_path, shape, era):
    tree, factors = SHAPES[shape], {"a": 2, "b": 3, "c": 5}
    order = list(tree)
    records = [{"lib": legacy.LIB, "opencl": OPENCL, "const": CONSTANTS}.get(k) or model(era, f"model_{k}", f"times_{k}")
               for k in order]
    data = legacy.blob(records, [[order.index(child) for child in tree[k]] for k in order])
    models = [k for k in order if k in factors]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", era, [times(f"times_{k}", factors[k]) for k in models],
                                               data=data))
    for k in models:
        np.testing.assert_array_equal(run(ctx, library, f"model_{k}"), X * factors[k])
    np.testing.assert_array_equal(run(ctx, library, None), X * factors[ROOTS.get(shape, "a")])
    assert len(capi.imports(library)) == len(order) - 1
    with pytest.raises(capi.HeddleError, match="no model 'model_z'; it holds .*model_a"):
        capi.unpack(library, "model_z")
    library.close()


@pytest.mark.parametrize("era", legacy.ERAS)
def test_one_host_library(ctx, tmp_path, era):
    for tree in ([[1], []], None):
        path = legacy.library(tmp_path / "lib.so", era, [times("f", 2)], data=legacy.blob([legacy.LIB, legacy.LIB], tree))
        with pytest.raises(capi.HeddleError, match="lib.so: its blob has two host libraries; there can be one"):
            capi.Library(ctx, path)


@pytest.mark.parametrize("era", legacy.ERAS)
def test_c_source(ctx, tmp_path, era):
    """Names of the host are imported, the entry is code, and the modules inside may hold source for other tools."""
    source = (legacy.string("c") + legacy.string("int f(void);") + legacy.string("c") + legacy.strings(["f"]) +
              legacy.strings([]))
    records = [source, OPENCL] if legacy.ERAS[era] <= 6 else [legacy.LIB, source, OPENCL]
    data = legacy.blob(records, None if legacy.ERAS[era] <= 6 else [[1, 2], [], []])
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", era, [times("f", 2)], main="f", plain=True, data=data))
    assert library.functions() == ["f"]
    assert {(kind, fmt) for kind, fmt, _ in capi.imports(library)} == {("c", "c"), ("opencl", "cl")}
    for function in ("f", "__tvm_main__"):
        y = np.zeros(4, np.float32)
        library.call(function, X, y)
        np.testing.assert_array_equal(y, 2 * X)
    library.close()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", ["const_loader", "metadata"])
def test_constants_that_nobody_takes_and_that_code_takes(ctx, tmp_path, era, kind):
    loader = legacy.const_loader({"c0": np.ones(3, np.float32), "c1": np.zeros((2, 2), np.int32)},
                                 {"ext_0": ["c0"], "ext_1": ["c1", "c0"]}, kind)
    data = legacy.blob([model(era, "default", "f"), loader, legacy.LIB], [[1], [2], []])
    library = capi.Library(ctx, legacy.library(tmp_path / "a.so", era, [times("f", 2)], data=data))
    np.testing.assert_array_equal(run(ctx, library, None), 2 * X)
    library.close()
    path = legacy.library(tmp_path / "b.so", era, [times("f", 2), "FUNCTION(__init_ext_1) { return 0; }"], data=data)
    if HAS_CXX:  # it is called
        capi.Library(ctx, path).close()
        return
    with pytest.raises(capi.HeddleError, match="its function __init_ext_1 takes objects of TVM's C\\+\\+ runtime: "):
        capi.Library(ctx, path)


def test_external_code(ctx, tmp_path):
    """What an external code generator exports is a function like any other, unless it needs TVM's C++ library: then that
    is said, whichever of its names the system's loader stumbles over."""
    plain = """
static void inner(float *x, float *y) { for (int i = 0; i < 4; i++) y[i] = x[i] - 1; }
int ext_0_(DLTensor *x, DLTensor *y) { inner(x->data, y->data); return 0; }
FUNCTION(ext_0) { TVMValue *v = args_; return ext_0_(v[0].v_handle, v[1].v_handle); }
"""
    library = capi.Library(ctx, legacy.library(tmp_path / "a.so", "v0.14", [plain]))
    y = np.zeros(4, np.float32)
    library.call("ext_0", X, y)
    np.testing.assert_array_equal(y, X - 1)
    library.close()
    cpp = "void _ZN3tvm7runtime8NDArrayC1Ev(void); void TVMNoSuchCall(void);\n"
    path = legacy.library(tmp_path / "b.so", "v0.14", [plain], more=cpp + "FUNCTION(other) { TVMNoSuchCall(); "
                          "_ZN3tvm7runtime8NDArrayC1Ev(); return 0; }")
    with pytest.raises(capi.HeddleError, match="b.so: .*against TVM's own C\\+\\+ headers"):
        capi.Library(ctx, path)
    path = legacy.library(tmp_path / "c.so", "v0.14", [plain], more="void dnnl_conv2d(void); FUNCTION(other) { "
                          "dnnl_conv2d(); return 0; }")
    with pytest.raises(capi.HeddleError, match="c.so: .*undefined symbol: dnnl_conv2d") as caught:
        capi.Library(ctx, path)
    assert "C++" not in str(caught.value)


@pytest.mark.parametrize("kind", ["@notype", "@object"])
def test_a_blob_at_an_odd_address(ctx, tmp_path, kind):
    """As other tools than compilers write it: maybe without type and size, and behind a byte of something else."""
    data = legacy.blob([model("v0.14", "default", "one"), legacy.LIB], [[1], []])
    path = tmp_path / "lib.so"
    (tmp_path / "blob").write_bytes(data)
    text = (f'.section .rodata.blob,\\"a\\",@progbits\\n.byte 7\\n.global __tvm_dev_mblob\\n'
            f'.type __tvm_dev_mblob, {kind}\\n__tvm_dev_mblob: .incbin \\"{tmp_path / "blob"}\\"\\n.text')
    library = capi.Library(ctx, legacy.library(path, "v0.14", [times("one", 1)], more=f'__asm__("{text}");'))
    np.testing.assert_array_equal(run(ctx, library, "default"), X)
    library.close()
