"""Modules inside of libraries that the application's own loader reads and runs: called by compiled code of both
generations, as nodes, and by name; constants that are handed to them; and what is refused.
labels: ctypes
timeout: 200
"""
import struct

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from test_tvm_ffi_abi import compiled
from tvm_graph import Call, tvm_graph

F32 = "float32"
KIND = "acme_json"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


class Acme:
    """The body: the function's name, and a factor. scale(x, y): y = factor * x + constant, if it got one."""

    def __init__(self, data):
        n, = struct.unpack_from("<Q", data)
        if n > 100:
            raise capi.HeddleError(-5, "a name that is too long")
        self.symbol = data[8:8 + n].decode()
        self.factor, = struct.unpack_from("<d", data, 8 + n)
        self.used = 16 + n
        self.constant = 0

    def names(self):
        return [self.symbol, "fails", "tell"]

    def find(self, name):
        return name if name in (*self.names(), f"__init_{self.symbol}") else None


def load(kind, data):
    assert kind == KIND
    module = Acme(data)
    return module, module.used


def call(module, function, values):
    if function == "fails":
        raise capi.HeddleError(-6, "no luck with Acme")
    if function == "tell":
        return len(values) * 100.5 if isinstance(values[0], float) else len(values) if values[0] != b"words" else "words"
    if function.startswith("__init_"):
        module.constant = values[0] + sum(v.sum() for v in values[1:])
        return None
    x, y = values
    y[...] = module.factor * x + module.constant
    return None


@pytest.fixture(scope="module")
def loader():
    return capi.Loader(KIND, load, call)


def body(symbol, factor):
    return legacy.string(symbol) + struct.pack("<d", factor)


def acme(symbol="ext_0", factor=3.0):
    return legacy.string(KIND) + body(symbol, factor)


OPENCL = legacy.device_module("opencl", "cl", {"k_kernel": ([(3, 64)], ["blockIdx.x"])},
                              "// Function: k_kernel\n__kernel void k_kernel() {}\n")


def calls(name, other, n=2):
    return legacy.kernel(name, [("x", F32, (4,)), ("y", F32, (4,))], f"""static void *f; TVMValue v[3]; int c[3];
if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "{other}", &f) != 0) return -1;
v[0] = args[0]; v[1] = args[1]; c[0] = c[1] = 7;
if (TVMFuncCall(f, v, c, {n}, &v[2], &c[2]) != 0) return -1;
if (c[2] != 4) return -1;""")


FFI = """
void *__tvm_ffi__library_ctx = NULL;
static void *slot;
static int find(void **out) { return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "ext_0", out); }
FUNCTION(__tvm_ffi_through) {
  Any r = {0};
  if (__TVMFFIHandleInitOnce(&slot, find) != 0) return -1;
  return __TVMFFIFunctionCall(slot, (Any *)args, n, &r);
}
FUNCTION(__tvm_ffi_through_fails) {
  void *f;
  Any r = {0};
  if (__TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "fails", &f) != 0) return -1;
  return __TVMFFIFunctionCall(f, (Any *)args, n, &r);
}
"""
TREE = [[1, 2], [], []]


def make(path, era):
    """ext_0 of the module inside is called by the function through, of the library."""
    if era == "tvm-ffi":
        data = legacy.ffi_blob([("_lib", None), (KIND, body("ext_0", 3.0))], [[1], []])
        return compiled(path, FFI + "const unsigned char __tvm_ffi__library_bin[] = {" + ",".join(map(str, data)) + "};")
    records = [acme(), OPENCL] if legacy.ERAS[era] <= 6 else [legacy.LIB, acme(), OPENCL]
    data = legacy.blob(records, None if legacy.ERAS[era] <= 6 else TREE)
    return legacy.library(path, era, [calls("through", "ext_0"), calls("through_fails", "fails")], data=data)


@pytest.mark.parametrize("era", [*legacy.ERAS, "tvm-ffi"])
def test_called_by_code_as_nodes_and_by_name(ctx, loader, tmp_path, era):
    before = loader.released
    library = capi.Library(ctx, make(tmp_path / "lib.so", era))
    found = dict((kind, kernels) for kind, _, kernels in capi.imports(library))
    assert found[KIND] == ["ext_0", "fails", "tell"] and (era == "tvm-ffi" or found["opencl"] == ["k_kernel"])
    assert library.functions() == ["through", "through_fails"]
    x = np.arange(4, dtype=np.float32)
    for function in ("through", "ext_0"):
        y = np.zeros(4, np.float32)
        library.call(function, x, y)
        np.testing.assert_array_equal(y, 3 * x)
    text = tvm_graph({"x": (F32, [4])}, [Call("ext_0", ["x"], [(F32, [4])], "a"), Call("through", ["a"], [(F32, [4])], "b"),
                                         Call("ext_0", ["b"], [(F32, [4])], "c")], ["c"])
    graph = capi.Graph(text)
    model = capi.Model(ctx, graph, devices="cpu", library=library)
    executor = capi.Executor(model)
    for k in range(3):
        executor.set_input("x", x + k)
        executor.run()
        np.testing.assert_array_equal(executor.output(0), 27 * (x + k))
    for p in (executor, model, graph):
        p.close()
    assert library.call("tell", 1, 2) == 2 and library.call("tell", 1.5, 2) == 201.0 and library.call(
        "tell", "words") == "words"
    for function in ("fails", "through_fails"):
        with pytest.raises(capi.HeddleError, match=f"function '{function}' of .*lib.so: .*no luck with Acme") as caught:
            library.call(function, x, x)
        assert caught.value.status == -6
    with pytest.raises(capi.HeddleError, match="has no function 'ext_1'"):
        library.call("ext_1")
    assert loader.released == before
    library.close()
    assert loader.released == before + 1


def test_devices_dtypes_and_null_of_compiled_code(ctx, tmp_path):
    seen = []
    values = capi.Loader("values", lambda kind, data: (Acme(data), 16 + data[0]), lambda m, f, v: seen.append(v) or 5)
    code = """FUNCTION(sends) {
  static void *f; TVMValue v[5]; int c[5] = {0, 6, 5, 11, 0};
  if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "f", &f) != 0) return -1;
  v[0].v_int64 = 7; v[1].v_int64 = 4 | 1LL << 32; v[2].v_int64 = 2 | 32 << 8 | 1 << 16; v[3].v_handle = 0;
  if (TVMFuncCall(f, v, c, 4, &v[4], &c[4]) != 0) return -1;
  return c[4] == 0 && v[4].v_int64 == 5 ? 0 : -1;
}"""
    records = [legacy.LIB, legacy.string("values") + body("f", 2.0)]
    library = capi.Library(ctx, legacy.library(tmp_path / "a.so", "v0.14", [code], data=legacy.blob(records, [[1], []])))
    library.call("sends")
    assert [list(v) for v in seen] == [[7, 4 | 1 << 32, 2 | 32 << 8 | 1 << 16, None]]
    library.close()
    assert values.released == 1


def test_several_modules_in_the_order_of_imports(ctx, loader, tmp_path):
    """The host's own come first, though they are behind others in the file."""
    data = legacy.blob([acme("root", 5.0), legacy.LIB, acme("ext_0", 7.0), acme("ext_0", 2.0)], [[1, 2], [3], [], []])
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", [calls("through", "ext_0")], data=data))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    for function, factor in (("through", 2), ("ext_0", 2), ("root", 5)):
        library.call(function, x, y)
        np.testing.assert_array_equal(y, np.full(4, factor))
    library.close()


@pytest.mark.parametrize("kind", ["const_loader", "metadata"])
def test_constants_are_handed_over(ctx, loader, tmp_path, kind):
    """With names in any order, unaligned in the file; a symbol that is not initialised is passed over."""
    constants = {"c1": np.array([1, 2, 3, 4], np.float32), "c0": np.array([10, 20, 30, 40], np.float32)}
    records = [legacy.const_loader(constants, {"other": ["c1"], "ext_0": ["c0", "c1"]}, kind), legacy.LIB, acme()]
    library = capi.Library(ctx, legacy.library(tmp_path / "lib.so", "v0.14", [calls("through", "ext_0")],
                                               data=legacy.blob(records, [[1, 2], [], []])))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    library.call("through", x, y)
    np.testing.assert_array_equal(y, 3 + constants["c0"] + 10)
    library.close()
    records[0] = legacy.const_loader({"c1": constants["c1"]}, {"ext_0": ["c0"]}, kind)
    path = legacy.library(tmp_path / "odd.so", "v0.14", [], data=legacy.blob(records, [[1, 2], [], []]))
    with pytest.raises(capi.HeddleError, match="no constant 'c0', which __init_ext_0 takes"):
        capi.Library(ctx, path)


def test_what_is_refused(ctx, loader, tmp_path):
    def opened(name, record, words):
        path = legacy.library(tmp_path / f"{name}.so", "v0.14", [], data=legacy.blob([legacy.LIB, record], [[1], []]))
        with pytest.raises(capi.HeddleError, match=words):
            capi.Library(ctx, path)

    live = len(loader.live)
    opened("long", legacy.string(KIND) + legacy.string("x" * 200) + bytes(8), f"kind '{KIND}': .*too long")
    opened("unknown", legacy.string("vta") + b"1234", "kind 'vta'.*heddle_module_register_loader")
    opened("vm", legacy.string("relax.VMExecutable") + b"1234", "virtual machine")
    opened("rest", acme() + legacy.u64(99), "byte ")  # what is behind a module is no part of it
    greedy = capi.Loader("greedy", lambda kind, data: (Acme(body("x", 1.0)), len(data) + 1), call)
    opened("greedy", legacy.string("greedy") + bytes(40), "'greedy' says that it used")
    assert len(loader.live) == live and not greedy.live and greedy.released == 1
    with pytest.raises(capi.HeddleError, match="'opencl' are read by Heddle itself"):
        capi.Loader("opencl", load, call)
    with pytest.raises(capi.HeddleError, match="lacks one of"):
        capi.call("heddle_module_register_loader", b"empty", capi.c.byref(capi.Loader.Table(48)), None)
    capi.call("heddle_module_register_loader", b"greedy", None, None)
    opened("gone", legacy.string("greedy") + bytes(40), "kind 'greedy', which nothing here reads")


def test_the_latest_loader_counts(ctx, loader, tmp_path):
    first = capi.Loader("twice", lambda kind, data: (Acme(data), 16 + data[0]), call)
    records = [legacy.LIB, legacy.string("twice") + body("f", 2.0)]
    path = legacy.library(tmp_path / "a.so", "v0.14", [], data=legacy.blob(records, [[1], []]))
    library = capi.Library(ctx, path)
    second = capi.Loader("twice", lambda kind, data: (Acme(data), 16 + data[0]), lambda *_: 42)
    path = legacy.library(tmp_path / "b.so", "v0.14", [], data=legacy.blob(records, [[1], []]))
    other = capi.Library(ctx, path)
    assert library.call("f", np.zeros(1, np.float32), np.zeros(1, np.float32)) is None
    assert other.call("f") == 42
    library.close()
    other.close()
    assert first.released == second.released == 1
