"""A program that opens libheddle for itself alone, and links nothing that compiled code might want: libraries whose
linker named no library of mathematics, as a C compiler's driver leaves it, and those that import functions of the
host by name, load and run all the same.
timeout: 120
"""
import math
import os
import subprocess

import pytest

from fixtures import tvm_legacy as legacy
from tool_case import BUILD, SOURCE, environment

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")

HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "heddle/heddle.h"
#define GET(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(heddle, #name)
int main(int argc, char **argv) {
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  heddle_module *m = NULL;
  heddle_value v = {.kind = HEDDLE_VALUE_FLOAT, .of.f = 1.0}, result = {0};
  void *heddle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (heddle == NULL) return printf("%s\n", dlerror()), 1;
  GET(heddle_context_create);
  GET(heddle_module_load);
  GET(heddle_module_call);
  GET(heddle_module_release);
  GET(heddle_context_release);
  if (p_heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err) != HEDDLE_OK ||
      p_heddle_module_load(ctx, argv[2], &m, &err) != HEDDLE_OK ||
      p_heddle_module_call(m, "grow", &v, 1, &result, &err) != HEDDLE_OK)
    return printf("%s\n", err.text), 1;
  printf("%.6f\n", result.of.f);
  v.kind = HEDDLE_VALUE_STRING;
  v.of.s = "one";
  if (p_heddle_module_call(m, "grow", &v, 1, &result, &err) == HEDDLE_OK) return printf("no failure\n"), 1;
  printf("%s\n", err.text);
  p_heddle_module_release(m);
  p_heddle_context_release(ctx);
  return argc != 3;
}
"""

GROW = """FUNCTION(grow) {
  TVMValue *a = args_;
  CHECK(num_args == 1 && codes[0] == 2, "grow: expected a float");
  out_ret->v_float64 = (double)expf((float)a[0].v_float64) * tanh(a[0].v_float64);
  *out_code = 2;
  return 0;
}"""


@pytest.mark.parametrize("plain", [False, True], ids=["pointers", "plain names"])
def test_a_host_of_its_own(tmp_path, plain):
    library = legacy.library(tmp_path / "lib.so", "v0.14", [GROW], plain=plain, link=())
    needed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, timeout=30).stdout
    assert "libm.so" not in needed
    (tmp_path / "host.c").write_text(HOST)
    sanitizers = os.environ.get("HEDDLE_SANITIZE", "")
    flags = ["-fsanitize=" + sanitizers] if sanitizers else []
    subprocess.run([legacy.compiler(), "-w", "-O1", *flags, "-I", str(SOURCE / "include"), "-o", str(tmp_path / "host"),
                    str(tmp_path / "host.c"), "-ldl"], check=True, timeout=120)
    done = subprocess.run([str(tmp_path / "host"), str(BUILD / "lib" / "libheddle.so"), str(library)], text=True,
                          capture_output=True, timeout=60, env=environment())
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert float(lines[0]) == pytest.approx(math.e * math.tanh(1), rel=1e-6)
    assert "grow: expected a float" in lines[1]


CLOSES = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <tvm/runtime/c_runtime_api.h>
static sem_t used, closed;
static void *library;
static int count;
static void *use(void *arg) {
  const char **names;
  __typeof__(&TVMFuncListGlobalNames) list = (__typeof__(&TVMFuncListGlobalNames))dlsym(library, "TVMFuncListGlobalNames");
  if (list == NULL || list(&count, &names) != 0) count = -1;
  sem_post(&used);
  sem_wait(&closed);
  return arg;
}
int main(int argc, char **argv) {
  pthread_t thread;
  sem_init(&used, 0, 0);
  sem_init(&closed, 0, 0);
  if ((library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL) return printf("%s\n", dlerror()), 1;
  pthread_create(&thread, NULL, use, NULL);
  sem_wait(&used);
  dlclose(library);
  sem_post(&closed);
  pthread_join(thread, NULL); /* what it keeps of the library's is given back now */
  printf("%d names\n", count);
  return argc != 2 || count < 10;
}
"""


def test_a_host_that_closes_the_library_before_its_threads_end(tmp_path):
    (tmp_path / "host.c").write_text(CLOSES)
    sanitizers = os.environ.get("HEDDLE_SANITIZE", "")
    flags = ["-fsanitize=" + sanitizers] if sanitizers else []
    subprocess.run([legacy.compiler(), "-w", *flags, "-I", str(SOURCE / "include"), "-I", str(SOURCE / "modules/include"),
                    "-o", str(tmp_path / "host"), str(tmp_path / "host.c"), "-ldl", "-lpthread"], check=True, timeout=120)
    done = subprocess.run([str(tmp_path / "host"), str(BUILD / "lib" / "libheddle_tvm.so")], text=True,
                          capture_output=True, timeout=60, env=environment())
    assert done.returncode == 0 and "names" in done.stdout, (done.returncode, done.stdout, done.stderr)
