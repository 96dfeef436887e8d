"""Code that imports tvm-ffi's names plainly, as C source and system libraries of v0.21 and later do: libheddle_tvm_ffi.so
gives them, and only where it is needed; a tvm_ffi in the same process, before or after, and a library that it loads
itself are not disturbed. Each case is a process of its own, into which libheddle comes by ctypes, RTLD_LOCAL.
timeout: 300
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from fixtures import tvm_legacy as legacy

HERE = pathlib.Path(__file__).parent
SANITIZED = "HEDDLE_SANITIZE" in os.environ

pytestmark = [pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with"),
              pytest.mark.skipif(SANITIZED, reason="a plain Python process is needed, without a sanitizer's run time")]

SOURCE = """
void *CONTEXT = NULL;
static void *slot, *other;
static int find(void **out) { return __TVMFFIEnvModLookupFromImports(CONTEXT, "tvm.contrib.sort.topk", out); }
FUNCTION(PREFIX(top)) {
  Any a[8] = {args[0], args[1], args[2], {1, 0, {2}}, {1, 0, {0}}, {11, 4}, {2, 0, {1}}, {0}};
  memcpy(a[5].v.text, "both", 5);
  if (__TVMFFIHandleInitOnce(&slot, find) != 0) return -1;
  return __TVMFFIFunctionCall(slot, a, 7, &a[7]);
}
FUNCTION(PREFIX(fails)) { __TVMFFIErrorSetRaisedFromCStr("ValueError", "this one has no luck"); return -1; }
FUNCTION(PREFIX(asks)) {
  if (__TVMFFIEnvModLookupFromImports(CONTEXT, "test.twice", &other) != 0) return -1;
  result->type = 0;
  return __TVMFFIFunctionCall(other, (Any *)args, n, result);
}
"""


def library(path, *, now=False):
    """PREFIX and CONTEXT are those of v0.22 and later."""
    path.with_suffix(".c").write_text(
        "#define PLAIN\n#include \"ffi.h\"\n#define PREFIX(name) __tvm_ffi_##name\n"
        "#define CONTEXT __tvm_ffi__library_ctx\n" + SOURCE)
    subprocess.run([legacy.compiler(), "-shared", "-fPIC", "-w", *(["-fno-plt", "-Wl,-z,now,-z,relro"] if now else []),
                    "-I", str(legacy.HERE), "-o", str(path), str(path.with_suffix(".c"))], check=True, timeout=120)
    return path


COMMON = """
import os, sys, shutil, numpy as np
import capi
path = sys.argv[1]
def is_open(): return "libheddle_tvm_ffi" in open("/proc/self/maps").read()
def use(library):
    x = np.array([[3, 1], [1, 9], [2, 4]], np.float32)
    values, indices = np.zeros((2, 2), np.float32), np.zeros((2, 2), np.int32)
    for _ in range(2):
        library.call("top", x, values, indices)
        np.testing.assert_array_equal(values, np.sort(x, axis=0)[:2])
    try: library.call("fails")
    except capi.HeddleError as e: assert "ValueError: this one has no luck" in str(e), e
    else: raise SystemExit("no error")
    try: library.call("asks", 4)
    except capi.HeddleError as e: assert "test.twice" in str(e), e
    else: raise SystemExit("no error")
def of_tvm_ffi():
    import tvm_ffi
    if tvm_ffi.get_global_func("test.twice", allow_missing=True) is None:
        tvm_ffi.register_global_func("test.twice", lambda n: 2 * n)
    assert tvm_ffi.get_global_func("test.twice")(21) == 42
    assert tvm_ffi.convert(lambda a, b: a + b)(1, 2) == 3
    def wrong(): raise ValueError("a callback of Python")
    try: tvm_ffi.convert(wrong)()
    except ValueError as e: assert "a callback" in str(e)
    else: raise SystemExit("no error")
    own = path.replace("lib.so", f"own_{len(os.listdir(os.path.dirname(path)))}.so")
    shutil.copy(path, own)
    module = tvm_ffi.load_module(own)
    assert module["asks"](4) == 8
    try: module["fails"]()
    except ValueError as e: assert "no luck" in str(e)
    else: raise SystemExit("no error")
"""

PROGRAMS = {
    "alone": "ctx = capi.Context(config='off')\nlibrary = capi.Library(ctx, path)\nassert is_open()\nuse(library)\n",
    "before": "of_tvm_ffi()\nctx = capi.Context(config='off')\nlibrary = capi.Library(ctx, path)\n"
              "assert not is_open()\nuse(library)\nof_tvm_ffi()\nuse(library)\n",
    "after": "ctx = capi.Context(config='off')\nlibrary = capi.Library(ctx, path)\nassert is_open()\nuse(library)\n"
             "of_tvm_ffi()\nuse(library)\nof_tvm_ffi()\nlibrary.close()\nof_tvm_ffi()\n",
}


def run(program, *words):
    done = subprocess.run([sys.executable, "-c", COMMON + program + "print('fine')", *map(str, words)],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0 and "fine" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("now", [False, True], ids=["by calls", "by table, read-only"])
@pytest.mark.parametrize("when", PROGRAMS)
def test_plain_names(tmp_path, when, now):
    if when != "alone" and importlib.util.find_spec("tvm_ffi") is None:
        pytest.skip("apache-tvm-ffi is not in .venv; scripts/setup installs it")
    run(PROGRAMS[when], library(tmp_path / "lib.so", now=now))


def test_opened_only_where_it_is_needed(tmp_path):
    """A library that is called through pointers, and one whose names nothing provides."""
    source = "#include \"ffi.h\"\nFUNCTION(__tvm_ffi_answer) { result->type = 1; result->v.i = 42; return 0; }\n"
    (tmp_path / "plain.c").write_text(source)
    (tmp_path / "odd.c").write_text(source + "void TVMFFINoSuchName(void);\nvoid f(void) { TVMFFINoSuchName(); }\n")
    for name in ("plain", "odd"):
        subprocess.run([legacy.compiler(), "-shared", "-fPIC", "-w", "-I", str(legacy.HERE), "-o",
                        str(tmp_path / f"{name}.so"), str(tmp_path / f"{name}.c")], check=True, timeout=120)
    run("""
ctx = capi.Context(config='off')
library = capi.Library(ctx, path)
assert library.call("answer") == 42 and not is_open()
try: capi.Library(ctx, path.replace("plain", "odd"))
except capi.HeddleError as e: assert "undefined symbol: TVMFFINoSuchName" in str(e), e
else: raise SystemExit("no error")
""", tmp_path / "plain.so")
