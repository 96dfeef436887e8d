"""Libraries whose functions call functions: as TVM v0.14 compiled them, as tvm-ffi's generation, and by today's TVM."""
import os
import pathlib
import subprocess
import sys

from fixtures import tvm_legacy as legacy

HERE = pathlib.Path(__file__).parent

# apply(f, ...) calls f; swallow does, and says 7 when it fails; reword says something else; parts calls "test.part" with
# the number of each task of a parallel loop.
PACKED = """
FUNCTION(apply) {
  TVMValue *args = args_;
  if (codes[0] != 10) { TVMAPISetLastError("apply: expected a function"); return -1; }
  return TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code);
}
FUNCTION(swallow) {
  TVMValue *args = args_, *ret = out_ret;
  if (TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code) == 0) return 0;
  ret->v_int64 = 7;
  *(int *)out_code = 0;
  return 0;
}
FUNCTION(reword) {
  TVMValue *args = args_;
  if (TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code) == 0) return 0;
  TVMAPISetLastError("reword: it did not work");
  return -1;
}
static int part(int task, Group *g, void *data) {
  static void *f;
  TVMValue v[2]; int c[2] = {0, 0};
  v[0].v_int64 = task;
  if (f == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.part", &f) != 0) return -1;
  return TVMFuncCall(f, v, c, 1, &v[1], &c[1]);
}
FUNCTION(parts) { return TVMBackendParallelLaunch(part, 0, 0); }
"""
FFI = """
void *__tvm_ffi__library_ctx = NULL;
FUNCTION(__tvm_ffi_apply) {
  Any all[20];
  if (args[0].type != 68) return -1;
  memcpy(all, args, n * sizeof *args);
  result->type = 0;
  return __TVMFFIFunctionCall(args[0].v.p, all + 1, n - 1, result);
}
"""


def plain_environment():
    """Without a sanitizer's run time, which is for the process with libheddle only."""
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS")}


def packed(folder):
    return legacy.library(folder / "packed.so", "v0.14", [PACKED])


def ffi(folder):
    path = folder / "ffi.so"
    path.with_suffix(".c").write_text('#include "ffi.h"\n' + FFI)
    subprocess.run([legacy.compiler(), "-shared", "-fPIC", "-w", "-I", str(legacy.HERE), "-o", str(path),
                    str(path.with_suffix(".c"))], check=True, env=plain_environment(), timeout=120)
    return path


def compiled(folder):
    """calls.so and params.bin of calls_compile.py."""
    subprocess.run([sys.executable, str(HERE / "calls_compile.py"), str(folder)], check=True, env=plain_environment(),
                   timeout=240)
    return folder
