"""The tvm-ffi calling convention on libraries written here as C: v0.21 with plain names, later ones with their prefix;
values in and out, counted objects given back, functions by name, errors with their kind.
labels: ctypes
"""
import json

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from tool_case import good
from tvm_graph import Call, tvm_graph

F32 = "float32"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off")
    yield context
    context.close()


def compiled(path, source):
    import os
    import subprocess
    path.with_suffix(".c").write_text('#include "ffi.h"\n' + source)
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    subprocess.run([legacy.compiler(), "-shared", "-fPIC", "-w", "-I", str(legacy.HERE), "-o", str(path),
                    str(path.with_suffix(".c"))], check=True, env=environment, timeout=120)
    return path


def flipped(name, code, bits):
    """y = not x, of four bools."""
    return f"""FUNCTION({name}) {{
  CHECK(n == 2, "TypeError", "{name}: num_args should be 2");
  const DLTensor *x = args[0].v.p, *y = args[1].v.p;
  CHECK(args[0].type == 7 && args[1].type == 7, "TypeError", "expected tensors");
  CHECK(x->code == {code} && x->bits == {bits}, "TypeError", "x.dtype is expected to be bool");
  CHECK(result->type == 0, "InternalError", "the result was not reset");
  for (int i = 0; i < 4; i++) ((char *)y->data)[i] = !((char *)x->data)[i];
  return 0;
}}
"""


@pytest.mark.parametrize("prefix,code,bits,more,abi", [
    ("", 1, 1, "void *__tvm_ffi_library_ctx = NULL;", "tvm-ffi v0.21"), ("__tvm_ffi_", 6, 8, "", "tvm-ffi"),
    ("__tvm_ffi_", 1, 1, "", "tvm-ffi")], ids=["v0.21", "v0.23", "v0.22"])
def test_nodes(ctx, tmp_path, prefix, code, bits, more, abi):
    path = compiled(tmp_path / "lib.so", more + flipped(prefix + "flip", code, bits))
    library = capi.Library(ctx, path)
    assert library.functions() == ["flip"]
    text = tvm_graph({"x": ("bool", [4])}, [Call("flip", ["x"], [("bool", [4])], "a"),
                                            Call("flip", ["a"], [("bool", [4])], "b")], ["a", "b"])
    g = capi.Graph(text)
    m = capi.Model(ctx, g, devices="cpu", library=library)
    e = capi.Executor(m)
    x = np.array([True, False, True, True])
    for value in (x, ~x):
        e.set_input("x", value)
        e.run()
        np.testing.assert_array_equal(e.output(0), ~value)
        np.testing.assert_array_equal(e.output(1), value)
    for p in (e, m, g):
        p.close()
    with pytest.raises(capi.HeddleError, match="TypeError: .*num_args should be 2"):
        library.call("flip", x)
    library.close()
    graph = tmp_path / "g.json"
    graph.write_text(text)
    assert json.loads(good("info", graph, "--lib", path, "--json"))["library"]["abi"] == abi


COUNTED = """
static int calls, done;
FUNCTION(__tvm_ffi_flip) {
  calls++;
  const DLTensor *x = args[0].v.p, *y = args[1].v.p;
  CHECK(x->ndim == 1 && x->shape[0] == 4, "RuntimeError", "Assert fail: x.shape[0] is expected to be 4");
  CHECK(x->code == 1 && x->bits == 1, "RuntimeError", "Assert fail: x.dtype is expected to be bool");
  CHECK(y->code == 1 && y->bits == 1, "RuntimeError", "Assert fail: y.dtype is expected to be bool");
  for (int i = 0; i < 4; i++) ((char *)y->data)[i] = !((char *)x->data)[i];
  done++;
  return 0;
}
FUNCTION(__tvm_ffi_count) { result->type = 1; result->v.i = calls * 1000 + done; return 0; }
"""


def test_bool_of_v22(ctx, tmp_path):
    """Learnt once: by the call that is refused, from any caller; other failures are not tried again, and a dtype that
    is wrong either way is reported for the first call."""
    x, y, wide = np.array([True, False, True, True]), np.zeros(4, bool), np.zeros(4, np.float32)
    library = capi.Library(ctx, compiled(tmp_path / "lib.so", COUNTED))
    with pytest.raises(capi.HeddleError, match="x.shape"):
        library.call("flip", x[:3].copy(), y)
    assert library.call("count") == 1000
    with pytest.raises(capi.HeddleError, match="x.dtype"):  # the second call got further, to y
        library.call("flip", x, wide)
    assert library.call("count") == 3000
    text = tvm_graph({"x": ("bool", [4])}, [Call("flip", ["x" if i == 0 else f"n{i - 1}"], [("bool", [4])], f"n{i}")
                                            for i in range(5)], ["n4"])
    held = [capi.Graph(text)]
    held.append(capi.Model(ctx, held[0], devices="cpu", library=library))
    held += [capi.Executor(held[1]), capi.Executor(held[1])]
    for executor in held[2:]:
        executor.set_input("x", x)
        executor.run()
        np.testing.assert_array_equal(executor.output(0), ~x)
    before = library.call("count")
    for executor in held[2:]:
        executor.run()
    assert library.call("count") - before == 10010, "two runs of five calls, all of them done"
    library.call("flip", x, y)
    assert library.call("count") - before == 11011
    np.testing.assert_array_equal(y, ~x)
    for p in reversed(held):
        p.close()
    library.close()


VALUES = """
static int dropped;
typedef struct { uint64_t counts; int32_t type; uint32_t pad; void (*deleter)(void *, int); const char *data; size_t size; } Str;
static void drop(void *self, int flags) { dropped = flags; free(self); }
FUNCTION(__tvm_ffi_add) {
  CHECK(n == 2 && args[0].type == 1 && args[1].type == 3, "TypeError", "expected (int, float)");
  result->type = 3; result->v.f = (double)args[0].v.i + args[1].v.f; return 0;
}
FUNCTION(__tvm_ffi_greet) {
  CHECK(n == 1 && args[0].type == 8, "TypeError", "expected a string");
  static char text[64];
  strcpy(text, "good morning, "); strcat(text, args[0].v.s);
  Str *s = malloc(sizeof *s);
  *s = (Str){0x100000001, 65, 0, drop, text, strlen(text)};
  result->type = 65; result->v.p = s; return 0;
}
FUNCTION(__tvm_ffi_short) { result->type = 11; result->small = 3; memcpy(result->v.text, "yes", 4); return 0; }
FUNCTION(__tvm_ffi_dropped) { result->type = 1; result->v.i = dropped; return 0; }
FUNCTION(__tvm_ffi_odd) {
  Str *s = malloc(sizeof *s);
  dropped = 0;
  *s = (Str){0x100000001, 71, 0, drop, NULL, 0};
  result->type = 71; result->v.p = s; return 0;
}
__attribute__((weak)) FUNCTION(__tvm_ffi_main) { return __tvm_ffi_add(self, args, n, result); }
FUNCTION(__tvm_ffi__metadata_add) { return 0; }
"""


def test_values(ctx, tmp_path):
    library = capi.Library(ctx, compiled(tmp_path / "lib.so", VALUES))
    assert library.functions() == ["add", "dropped", "greet", "odd", "short"]
    assert library.call("add", 40, 2.5) == 42.5 == library.call("__tvm_main__", 40, 2.5)
    assert library.call("greet", "Heddle") == "good morning, Heddle"
    assert library.call("dropped") == 3  # the string was given back: destroyed and freed
    assert library.call("short") == "yes"
    with pytest.raises(capi.HeddleError, match="type 71"):
        library.call("odd")
    assert library.call("dropped") == 3
    with pytest.raises(capi.HeddleError, match="TypeError: expected .int, float."):
        library.call("add", 1, 2)
    library.close()


TOPK = """
void *__tvm_ffi__library_ctx = NULL;
static void *slot;
static int find(void **out) { return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "tvm.contrib.sort.NAME", out); }
FUNCTION(__tvm_ffi_top) {
  Any a[8] = {args[0], args[1], args[2], {1, 0, {2}}, {1, 0, {0}}, {11, 4}, {2, 0, {1}}, {0}};
  memcpy(a[5].v.text, "both", 5);
  if (__TVMFFIHandleInitOnce(&slot, find) != 0) return -1;
  return __TVMFFIFunctionCall(slot, a, 7, &a[7]);
}
"""


def test_functions_by_name(ctx, tmp_path):
    library = capi.Library(ctx, compiled(tmp_path / "lib.so", TOPK.replace("NAME", "topk")))
    x = np.array([[3, 1], [1, 9], [2, 4]], np.float32)
    values, indices = np.zeros((2, 2), np.float32), np.zeros((2, 2), np.int32)
    for _ in range(2):  # the second time with the handle that the library kept
        library.call("top", x, values, indices)
        np.testing.assert_array_equal(values, np.sort(x, axis=0)[:2])
        np.testing.assert_array_equal(indices, np.argsort(x, axis=0, kind="stable")[:2])
    with pytest.raises(capi.HeddleError, match="topk.*shapes"):
        library.call("top", x, values, np.zeros((3, 2), np.int32))
    library.close()
    library = capi.Library(ctx, compiled(tmp_path / "other.so", TOPK.replace("NAME", "no_such")))
    with pytest.raises(capi.HeddleError, match="tvm.contrib.sort.no_such"):
        library.call("top", x, values, indices)
    library.close()


FOREIGN = """
static int answer(void *self, const Any *args, int32_t n, Any *result) { result->type = 1; result->v.i = 42; return 0; }
static void keep(void *self, int flags) {}
/* A function as an object of another maker's, which only that maker can call. */
static struct { uint64_t counts; int32_t type; uint32_t pad; void (*deleter)(void *, int); void *call, *cpp; } theirs = {
  1ull << 32 | 1, 68, 0, keep, (void *)answer};
FUNCTION(__tvm_ffi_foreign) { return __TVMFFIFunctionCall(&theirs, (Any *)args, n, result); }
FUNCTION(__tvm_ffi_nothing) { return __TVMFFIFunctionCall(NULL, (Any *)args, n, result); }
"""


@pytest.mark.parametrize("plain", [False, True], ids=["pointers", "plain names"])
def test_calls_of_what_is_no_function(ctx, tmp_path, plain):
    path = compiled(tmp_path / "lib.so", FOREIGN)
    if plain:
        path = compiled(tmp_path / "plain.so", FOREIGN.replace("__TVMFFIFunctionCall", "TVMFFIFunctionCall").replace(
            "FUNCTION(__tvm_ffi_foreign)", "int TVMFFIFunctionCall(void *, Any *, int32_t, Any *);\n"
            "FUNCTION(__tvm_ffi_foreign)"))
    library = capi.Library(ctx, path)
    for name in ("foreign", "nothing"):
        with pytest.raises(capi.HeddleError, match=f"'{name}' of .*it calls what is no function"):
            library.call(name)
    library.close()
