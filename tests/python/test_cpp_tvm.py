"""A closure of C++ that throws in the middle of a function that today's TVM compiled: tests/cpp/test_function.cpp, with a
library of the wheel's.
timeout: 300
"""
import importlib.util
import os
import subprocess
import sys

import pytest
from tool_case import BUILD, environment

PROGRAM = BUILD / "tests" / "test_cpp_function"
pytestmark = [pytest.mark.skipif(importlib.util.find_spec("tvm") is None,
                                 reason="apache-tvm is not in .venv; scripts/setup installs it"),
              pytest.mark.skipif(not PROGRAM.exists(), reason="there is no C++ compiler")]

COMPILE = """
import sys, tvm
from tvm.script import tirx as T

@T.prim_func
def middle(handle: T.handle):
    T.func_attr({"global_symbol": "middle"})
    x = T.match_buffer(handle, (4,), "float32")
    x[0] = T.float32(1)
    T.evaluate(T.call_packed("test.middle", x[3]))
    x[1] = T.float32(2)

tvm.compile(tvm.IRModule({"middle": middle}), target="llvm").export_library(sys.argv[1])
"""


def test_it(tmp_path):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS")}
    (tmp_path / "compile.py").write_text(COMPILE)  # TVMScript reads the source of the function
    library = tmp_path / "middle.so"
    subprocess.run([sys.executable, str(tmp_path / "compile.py"), str(library)], check=True, env=clean, timeout=240)
    done = subprocess.run([str(PROGRAM), "a_closure_that_throws_within_a_library_of_the_wheel"], capture_output=True,
                          text=True, timeout=120, env=environment(TVM_LIBRARY=str(library)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"through {library}\n" in done.stdout
