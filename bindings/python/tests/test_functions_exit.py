"""Functions of Python's that are called while the interpreter ends, or by threads that it does not know.
timeout: 300
"""
import subprocess
import sys

import pytest

import calls_libraries as libraries

pytestmark = pytest.mark.skipif(libraries.legacy.compiler() is None, reason="there is no C compiler")

# A thread of the C library's that calls a function again and again, also after Python has ended, until it fails.
CALLER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
typedef int (*call_fn)(void *f, void *args, int *codes, int n, void *ret, int *ret_code);
static call_fn call;
static void *function;
static pthread_t thread;
static int good, failed;
static void *work(void *p) {
  for (int i = 0; i < 100000 && !failed; i++) {
    long long ret[2] = {0}; int code = 0;
    if (call(function, NULL, NULL, 0, ret, &code) != 0) failed = 1; else good++;
  }
  return p;
}
static void at_exit(void) {
  pthread_join(thread, NULL);
  printf("%s after %s\\n", failed ? "failed" : "went on", good ? "good ones" : "none");
  fflush(stdout);
}
void start(call_fn c, void *f) {
  call = c; function = f;
  atexit(at_exit);
  pthread_create(&thread, NULL, work, NULL);
}
"""
HEAD = """
import ctypes, os, sys, threading, time
import heddle.runtime as runtime
"""


def run(text, *args):
    done = subprocess.run([sys.executable, "-c", HEAD + text, *map(str, args)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_foreign_thread_calls_while_python_ends(tmp_path):
    library = libraries.legacy.compile_c(tmp_path / "caller.so", CALLER, ["-shared"], ("-lpthread",))
    code, out, err = run("""
caller = ctypes.CDLL(sys.argv[1])
tvm = ctypes.CDLL("libheddle_tvm.so.0", mode=os.RTLD_NOLOAD)
seen = threading.Event()
f = runtime.PackedFunc(lambda: seen.set())
runtime.register_func("test.f", f)
caller.start(ctypes.cast(tvm.TVMFuncCall, ctypes.c_void_p), ctypes.c_void_p(f.address))
assert seen.wait(60)
""", library)
    assert (code, out) == (0, "failed after good ones\n"), err


@pytest.mark.parametrize("how", ["pass", "sys.exit(3)", "raise ValueError('end')"])
def test_threads_of_python_are_in_calls(how):
    """Daemons that end with the process in the middle of a call."""
    code, out, err = run(f"""
started = threading.Barrier(5)
def work():
    started.wait()
    apply = runtime.PackedFunc(lambda f, n: f(n))
    while True:
        apply(lambda n: time.sleep(0.001) or n, 3)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
started.wait()
print("end", flush=True)
{how}
""")
    assert out == "end\n", err
    assert code == {"pass": 0, "sys.exit(3)": 3}.get(how, 1), err
    assert "Fatal" not in err, err


def test_calls_at_the_end(tmp_path):
    """After Python's own end of things a function of Python's is a reported error, and one of C's still works."""
    code, out, err = run("""
class Last:
    def __init__(self):
        self.f, self.names = runtime.PackedFunc(lambda: 1), runtime.get_global_func("runtime.SaveParams")
    def __del__(self):
        try:
            print(self.f())
        except runtime.TVMError as error:
            print(type(error).__name__, error)
        print(len(self.names()))
import atexit, gc
atexit.register(lambda: print("atexit", runtime.PackedFunc(lambda x: x + 1)(1)))
last = Last()
""")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "atexit 2"
    assert lines[1].startswith("CanceledError a Python function is called while Python ends") and int(lines[2]) > 0
    assert "Fatal" not in err and "Traceback" not in err, err


def test_names_that_stay_registered():
    """Nothing is left to do at exit for callables that compiled code may still hold."""
    code, out, err = run("""
kept = [runtime.register_func(f"test.{i}", lambda i=i: i) for i in range(100)]
print(runtime.get_global_func("test.7")())
""")
    assert (code, out, err) == (0, "7\n", "")
