"""TVM's C runtime API, from a host that loaded it RTLD_LOCAL: modules, calls with every kind of value in both generations,
functions of the application that compiled code calls, objects, errors.
labels: ctypes
timeout: 600
"""
import ctypes as c
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import capi
os.environ["HEDDLE_DEVICES"] = "cpu,sim:0,sim:1"  # of the types that two plugins have, those in this list are meant

import tvm_api as api
from fixtures import tvm_legacy as legacy
from tool_case import SOURCE, environment
from tvm_graph import Call, tvm_graph

F32 = "float32"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")

# forward hands all that it gets to a function by name, and back what that returns; apply calls its first argument.
PACKED = """
FUNCTION(forward) {
  static void *f;
  if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.seen", &f) != 0) return -1;
  return TVMFuncCall(f, args_, codes, num_args, out_ret, out_code);
}
FUNCTION(apply) {
  TVMValue *args = args_;
  if (codes[0] != 10) { TVMAPISetLastError("apply: expected a function"); return -1; }
  return TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code);
}
FUNCTION(lost) {
  void *f;
  return TVMBackendGetFuncFromEnv(__tvm_module_ctx, "device_api.hexagon", &f);
}
static int sum_part(int task, Group *g, void *data) {
  static void *f;
  TVMValue v[2]; int c[2] = {0, 0};
  v[0].v_int64 = task;
  if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.part", &f) != 0) return -1;
  return TVMFuncCall(f, v, c, 1, &v[1], &c[1]);
}
FUNCTION(parts) { return TVMBackendParallelLaunch(sum_part, 0, 0); }
"""
ADD = legacy.kernel("add", [(n, F32, (2, 3)) for n in "abc"], "for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];")
FFI = """
void *__tvm_ffi__library_ctx = NULL;
#define FORWARD(name, call) FUNCTION(name) { Any all[20]; void *f; int from = 0; memcpy(all, args, n * sizeof *args); call \\
  result->type = 0; return __TVMFFIFunctionCall(f, all + from, n - from, result); }
FORWARD(PREFIXforward, { if (LOOKUP(CONTEXT, "test.seen", &f) != 0) return -1; })
FORWARD(PREFIXapply, { if (args[0].type != 68) return -1; f = args[0].v.p; from = 1; })
FUNCTION(PREFIXtext) { return args[0].type == 65 ? (result->type = 1, result->v.i = 1, 0) : 0; }
"""


def ffi_source(old):
    text = FFI.replace("LOOKUP", "__TVMBackendGetFuncFromEnv" if old else "__TVMFFIEnvModLookupFromImports")
    text = text.replace("PREFIX", "" if old else "__tvm_ffi_").replace("CONTEXT", "__tvm_ffi_library_ctx" if old else
                                                                        "__tvm_ffi__library_ctx")
    return text.replace("__tvm_ffi__library_ctx = NULL", "__tvm_ffi_library_ctx = NULL") if old else text


def compiled(path, source):
    from test_tvm_ffi_abi import compiled as compile_ffi
    return compile_ffi(path, source)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def packed(folder):
    with api.load(legacy.library(folder / "packed.so", "v0.14", [PACKED, ADD])) as m:
        yield m


@pytest.fixture(scope="module", params=["packed", "v0.21", "v0.22"])
def library(request, folder):
    path = folder / "packed.so"
    if request.param == "packed":
        path = legacy.library(folder / "any.so", "v0.14", [PACKED])
    else:
        path = compiled(folder / f"{request.param}.so", ffi_source(request.param == "v0.21"))
    with api.load(path) as m:
        yield m


SEEN, RESULT = [], [None]


@pytest.fixture
def seen():
    """What test.seen was called with, and what it is to return. It is registered once: compiled code keeps it."""
    if api.find("test.seen") is None:
        api.register("test.seen", lambda *args: (SEEN.append(args), RESULT[0])[1])
    SEEN.clear()
    RESULT[0] = None
    return SEEN, RESULT


# ---- modules

def test_load_by_suffix_and_by_format(folder, packed):
    assert packed["add"] is not None and packed.function("no_such") is None
    for name, format in (("copy.dll", ""), ("copy.dylib", ""), ("copy", "dso"), ("copy.x", "so")):
        (folder / name).write_bytes((folder / "packed.so").read_bytes())
        with api.load(folder / name, format) as m, m["add"]:
            pass
    with pytest.raises(api.TVMError, match="no loader for files of format 'hexagon'.*loadfile_hexagon"):
        api.load("x.hexagon")
    with pytest.raises(api.TVMError, match="no_such.so: it cannot be opened"):
        api.load(folder / "no_such.so")
    with api.find("runtime.ModuleLoadFromFile") as f, f(str(folder / "packed.so"), "") as m:
        assert m.function("add") is not None


def test_a_loader_of_the_application(folder, packed):
    asked = []

    def loader(*args):
        asked.append(args)
        return packed

    api.register("runtime.module.loadfile_mine", loader)
    with api.load("a/model.mine") as m:
        assert m["add"] is not None
    api.register("runtime.module.loadfile_mine", lambda *_: 3, override=True)
    with pytest.raises(api.TVMError, match="model.mine: the loader of format 'mine' returned no module"):
        api.load("a/model.mine")
    api.remove("runtime.module.loadfile_mine")
    assert asked == [("a/model.mine", "mine")]


def test_imports(folder, packed):
    other = api.load(legacy.library(folder / "other.so", "v0.8", [ADD.replace("add", "plus")]))
    assert packed.function("plus", imports=True) is None
    with api.load(folder / "packed.so") as m:
        api.must("TVMModImport", m.p, other.p)
        for a, b in ((other, m), (m, m)):
            with pytest.raises(api.TVMError, match="the module is the one that would import it"):
                api.must("TVMModImport", a.p, b.p)
        other.close()  # the import holds it
        assert m.function("plus") is None
        with m.function("plus", imports=True) as f, api.array(np.ones((2, 3), np.float32)) as x:
            f(x, x, x)
            np.testing.assert_array_equal(x.numpy(), np.full((2, 3), 2, np.float32))


def test_code_calls_what_its_module_imports(folder):
    """Also after the module that imports was freed: compiled code keeps what it was given."""
    source = PACKED.replace("test.seen", "triple_it")
    legacy.library(folder / "imported.so", "v0.14", [
        "FUNCTION(triple_it) { out_ret->v_int64 = 3 * ((TVMValue *)args_)[0].v_int64; *out_code = 0; return 0; }"])
    with api.load(legacy.library(folder / "importing.so", "v0.14", [source])) as m, m["forward"] as forward:
        with pytest.raises(api.TVMError, match="asks for function 'triple_it', which is neither in"):
            forward(14)
        with api.load(folder / "imported.so") as dep:
            api.must("TVMModImport", m.p, dep.p)
        assert forward(14) == 42
        m.close()
        assert forward(5) == 15


# ---- calls

def test_add(packed):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.5, np.float32)
    with api.array(a) as x, api.array(b) as y, api.empty((2, 3)) as z, packed["add"] as add:
        assert add(x, y, z) is None
        np.testing.assert_array_equal(z.numpy(), a + b)
        add(x.t, y.t, z.t)  # as plain DLTensors: the code is 7
        with pytest.raises(api.TVMError, match="function 'add' of .*packed.so: Assert fail: .*num_args should be 3"):
            add(x, y)
        with api.empty((2, 4)) as wrong, pytest.raises(api.TVMError, match=r"Argument c.shape\[1\]"):
            add(x, y, wrong)
    message = api.last_error()
    assert message == api.last_error() and "c.shape[1]" in message


def test_every_kind_of_argument(library, seen, packed):
    got, _ = seen
    marker = api.function(lambda: 77)
    t = np.array([[1.5, 2.5]], np.float32)
    with library["forward"] as f, api.array(t) as x, marker:
        f(7, -2.5, "text", "a text of more than seven bytes", b"\0by\0", b"bytes of more than seven", None,
          api.DType(2, 16, 4), api.Device(4, 1), x, packed, marker, c.c_void_p(0x1234))
        args, = got
        assert args[:9] == (7, -2.5, "text", "a text of more than seven bytes", b"\0by\0", b"bytes of more than seven",
                            None, (2, 16, 4), (4, 1))
        assert isinstance(args[9], api.Array) and isinstance(args[10], api.Module)
        assert args[10].p.value == packed.p.value and args[11].p.value == marker.p.value
        assert args[12].value == 0x1234
        f(*range(18))
        assert got[1] == tuple(range(18))


def test_every_kind_of_result(library, seen, packed):
    got, result = seen
    long = "0123456789" * 20000
    with library["forward"] as f:
        for value in (5, 2.25, "short", long, b"\1\0\2", b"\0" * 5000 + b"x"):
            result[0] = value
            assert f() == value
        result[0] = api.DType(2, 32, 1)
        assert f() == "float32"
        for dtype, name in (((1, 1, 1), "bool"), ((0, 8, 4), "int8x4"), ((3, 64, 1), "handle"), ((4, 16, 1), "bfloat16")):
            result[0] = api.DType(*dtype)
            assert f() == name
        result[0] = api.Device(12, 3)
        assert f() == (12, 3)
        result[0] = packed
        with f() as m:
            assert m.p.value == packed.p.value and m["add"] is not None
        with api.function(lambda x: x + 1) as g:
            result[0] = g
            with f() as h:
                assert h.p.value == g.p.value and h(41) == 42
        with api.array(np.arange(4, dtype=np.int64)) as x:
            result[0] = x
            y = f()
        result[0] = None
        np.testing.assert_array_equal(y.numpy(), np.arange(4))  # it holds the memory
        y.close()


def test_functions_as_arguments(library):
    finished = []
    with library["apply"] as apply, api.function(lambda a, b: f"{a}/{b}", finished) as f:
        assert apply(f, 3, "x") == "3/x"
        with api.function(lambda *_: 1 / 0) as bad, pytest.raises(api.TVMError, match="ZeroDivisionError: division"):
            apply(bad)
        assert finished == []
    assert len(finished) == 1


def test_a_module_outlives_its_handle(folder):
    m = api.load(legacy.library(folder / "short.so", "v0.14", [ADD]))
    f = m["add"]
    m.close()
    with api.array(np.ones((2, 3), np.float32)) as x, f:
        f(x, x, x)
        assert x.numpy()[1, 2] == 2


def test_memory_that_is_not_aligned(packed):
    raw = np.zeros(64, np.uint8)
    start = (-raw.ctypes.data) % 64 + 4
    shape = (c.c_int64 * 2)(2, 3)
    t = api.DLTensor(raw.ctypes.data + start, api.Device(1, 0), 2, api.DType(2, 32, 1), shape, None, 0)
    with packed["add"] as add, pytest.raises(api.TVMError, match="argument 0: .*aligned to 64 bytes"):
        add(t, t, t)


def test_bools_as_each_generation_has_them(folder):
    """An array of TVM's bool is (1, 1) to code up to v0.21 and (6, 8) to later code."""
    from test_tvm_ffi_abi import flipped
    values = np.array([True, False, False, True])
    made = {"packed": legacy.library(folder / "not.so", "v0.14", [legacy.kernel(
        "flip", [("a", "uint1", (4,)), ("b", "uint1", (4,))], "for (int i = 0; i < 4; i++) b[i] = !a[i];")])}
    made["v0.21"] = compiled(folder / "flip21.so", "void *__tvm_ffi_library_ctx = NULL;" + flipped("flip", 1, 1))
    made["later"] = compiled(folder / "flip22.so", flipped("__tvm_ffi_flip", 6, 8))
    for path in made.values():
        with api.load(path) as m, m["flip"] as flip, api.array(values) as x, api.empty((4,), bool) as y:
            flip(x, y)
            np.testing.assert_array_equal(y.numpy(), ~values)
            flip(y.t, x.t)
            np.testing.assert_array_equal(x.numpy(), values)


# ---- the registry

def test_names():
    before = api.names()
    assert before == sorted(before)
    assert {"__tvm_set_device", "runtime.SystemLib", "runtime.GetDeviceAttr", "runtime.module.loadfile_so",
            "module.loadfile_so", "runtime.ModuleLoadFromFile", "tvm.contrib.sort.topk"} <= set(before)
    assert api.find("test.none") is None
    api.register("test.none", lambda: 1)
    assert set(api.names()) - set(before) == {"test.none"}
    with pytest.raises(api.TVMError, match="function 'test.none' is registered already"):
        api.register("test.none", lambda: 2)
    with api.find("test.none") as f:
        assert f() == 1
        api.register("test.none", lambda: 2, override=True)
        assert f() == 1  # holders of the old one keep it
    with api.find("test.none") as f:
        assert f() == 2
    api.remove("test.none")
    with pytest.raises(api.TVMError, match="no function 'test.none'"):
        api.remove("test.none")


def test_a_missing_function_is_named(packed):
    with packed["lost"] as f, pytest.raises(api.TVMError, match="'device_api.hexagon'.*C.. library"):
        f()


def graph_of(function, name):
    return tvm_graph({"x": (F32, [4])}, [Call(function, ["x"], [(F32, [4])], name=name)], [name])


def test_a_failing_callback_within_a_graph(folder):
    """Its message reaches the caller that runs the graph, with the node; a missing function is named so too."""
    kernel = """FUNCTION(scale) {
  static void *f; TVMValue *a = args_, v[3]; int c[3] = {7, 7, 0};
  if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.scale", &f) != 0) return -1;
  v[0] = a[0]; v[1] = a[1];
  return TVMFuncCall(f, v, c, 2, &v[2], &c[2]);
}"""
    path = legacy.library(folder / "scale.so", "v0.14", [kernel])
    ctx = capi.Context(config="off")
    held = [ctx, capi.Library(ctx, path), capi.Graph(graph_of("scale", "the_node"))]
    held.append(capi.Model(ctx, held[2], devices="cpu", library=held[1]))
    held.append(capi.Executor(held[3]))
    executor = held[4]
    x = np.array([1, 2, 3, -4], np.float32)
    executor.set_input("x", x)
    with pytest.raises(capi.HeddleError, match="node 'the_node' on cpu:0.*it asks for function 'test.scale'"):
        executor.run()

    def scale(a, b):
        values = a.numpy()
        if values.min() < 0:
            raise ValueError("negative: " + "it is long, " * 20)
        b.write(values * 3)

    api.register("test.scale", scale)
    with pytest.raises(capi.HeddleError, match="node 'the_node' on cpu:0.*ValueError: negative: it is long"):
        executor.run()
    executor.set_input("x", np.abs(x))
    executor.run()
    np.testing.assert_array_equal(executor.output(0), np.abs(x) * 3)
    for p in reversed(held):
        p.close()
    api.remove("test.scale")


def test_callbacks_from_parallel_loops(packed):
    tasks, unlucky = [], []

    def part(i):
        if i in unlucky:
            raise RuntimeError("an unlucky task")
        tasks.append(i)

    api.register("test.part", part)
    with packed["parts"] as f:
        f()
        assert sorted(tasks) == list(range(len(tasks)))
        api.remove("test.part")
        f()  # compiled code keeps what it was given
        unlucky.append(0)
        with pytest.raises(api.TVMError, match="task 0 of a parallel loop: RuntimeError: an unlucky task"):
            f()


# ---- objects, errors, devices


def test_objects(packed):
    index, key, yes = c.c_uint(), c.c_char_p(), c.c_int()
    with api.array(np.zeros(2, np.float32)) as x, api.function(lambda: 1) as f:
        for handle, name in ((packed, b"runtime.Module"), (x, b"runtime.NDArray"), (f, b"runtime.PackedFunc")):
            api.must("TVMObjectGetTypeIndex", handle.p, c.byref(index))
            known = c.c_uint()
            api.must("TVMObjectTypeKey2Index", name, c.byref(known))
            assert known.value == index.value
            api.must("TVMObjectTypeIndex2Key", index, c.byref(key))
            assert key.value == name
            c.CDLL(None).free(key)
            api.must("TVMObjectDerivedFrom", index, 0, c.byref(yes))
            assert yes.value == 1
            api.must("TVMObjectDerivedFrom", index, c.c_uint(index.value + 1), c.byref(yes))
            assert yes.value == 0
            api.must("TVMObjectRetain", handle.p)
            api.must("TVMObjectFree", handle.p)
        with pytest.raises(api.TVMError, match="no objects of type 'runtime.String'"):
            api.must("TVMObjectTypeKey2Index", b"runtime.String", c.byref(index))
    with pytest.raises(api.TVMError, match="no module, function or array"):
        api.must("TVMObjectFree", c.create_string_buffer(100))


def test_handles_of_another_kind(packed):
    junk = c.create_string_buffer(100)
    p = c.c_void_p()
    with packed["add"] as f:
        for name, args in (("TVMModGetFunction", (f.p, b"x", 0, c.byref(p))), ("TVMModFree", (junk,)),
                           ("TVMFuncFree", (packed.p,)), ("TVMFuncCall", (None, None, None, 0, None, None)),
                           ("TVMFuncRegisterGlobal", (b"x", packed.p, 0))):
            with pytest.raises(api.TVMError, match=f"{name}: the handle is (NULL|no module|no function)"):
                api.must(name, *args)
    for name in ("TVMModFree", "TVMFuncFree", "TVMArrayFree", "TVMObjectFree", "TVMByteArrayFree"):
        api.must(name, None)


def test_an_error_is_the_thread_s(packed):
    def other():
        words.append(api.last_error())

    words = []
    api.LIB.TVMAPISetLastError(b"mine")
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert words == [""] and api.last_error() == "mine"
    with api.find("runtime.GetDeviceAttr") as f:
        assert f(1, 0, 0) == 1  # what succeeds leaves the last words alone
    with packed["add"] as add, api.array(np.ones((2, 3), np.float32)) as x:
        add(x, x, x)
    assert api.last_error() == "mine"
    api.LIB.TVMAPISetLastPythonError(c.c_void_p(0x77))
    assert api.LIB.TVMGetLastPythonError() == 0x77 and "exception of Python's" in api.last_error()
    api.LIB.TVMDropLastPythonError()
    assert api.LIB.TVMGetLastPythonError() is None and api.LIB.TVMGetLastBacktrace() is None


def test_what_is_known_of_devices():
    with api.find("runtime.GetDeviceAttr") as f:
        assert f(1, 0, 0) == 1 and f(12, 0, 0) == 1 and f(2, 99, 0) == 0
        assert isinstance(f(1, 0, 5), str) and f(1, 0, 7) >= 1 and f(1, 0, 2) is None
        with pytest.raises(api.TVMError, match="there is no device 99"):
            f(2, 99, 5)


@pytest.mark.parametrize("name", ["runtime.SystemLib", "module._GetSystemLib", "ffi.SystemLib"])
def test_the_system_library_by_name(name):
    @c.CFUNCTYPE(c.c_int, c.POINTER(api.Value), c.POINTER(c.c_int), c.c_int, c.POINTER(api.Value), c.POINTER(c.c_int),
                 c.c_void_p)
    def one_more(values, codes, n, ret, code, _):
        ret[0].i, code[0] = values[0].i + 1, api.INT
        return 0

    api.alive[name] = one_more  # what is registered stays
    for symbol in ("one_more", "mine_another"):
        api.LIB.TVMBackendRegisterSystemLibSymbol(symbol.encode(), c.cast(one_more, c.c_void_p))
    with api.find(name) as f, f() as plain, f("mine_") as mine:
        assert plain["one_more"](41) == 42 and mine["another"](1) == 2 and mine["one_more"](1) == 2
        assert plain.function("another") is None
        with pytest.raises(api.TVMError, match="takes a prefix"):
            f(3)


# ---- beside a tvm_ffi in the same process

BESIDE = """
import sys
if sys.argv[2] == "before": import tvm_ffi
import numpy as np, tvm_api as api
m = api.load(sys.argv[1])
add = m["add"]
x = api.array(np.ones((2, 3), np.float32))
add(x, x, x)
assert x.numpy().tolist() == [[2, 2, 2], [2, 2, 2]]
import tvm_ffi
f = tvm_ffi.convert(lambda a: a + 1)
assert f(2) == 3
try: add(x)
except api.TVMError as e: assert "num_args should be 3" in str(e), e
else: raise SystemExit("no error")
try: tvm_ffi.convert(lambda: int("x"))()
except ValueError as e: assert "'x'" in str(e)
else: raise SystemExit("no error of tvm_ffi")
api.register("test.both", lambda a: a * 2)
assert api.find("test.both")(21) == 42
assert tvm_ffi.get_global_func("test.both", allow_missing=True) is None
print("fine")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_beside_tvm_ffi(packed, folder, when):
    pytest.importorskip("tvm_ffi")
    if os.environ.get("HEDDLE_SANITIZE"):
        pytest.skip("tvm_ffi is not built with a sanitizer")
    done = subprocess.run([sys.executable, "-c", BESIDE, str(folder / "packed.so"), when], capture_output=True, text=True,
                          timeout=120, env=environment(HEDDLE_BUILD=os.environ["HEDDLE_BUILD"], PYTHONPATH=f"{SOURCE}/tests:{SOURCE}/tests/python"))
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr
