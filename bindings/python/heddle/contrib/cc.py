"""What deploy scripts take from `tvm.contrib.cc`: object files that TVM wrote become a shared library with the C compiler of
the machine (CC, else cc; CXX, else c++, where there are C++ sources).
"""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Sequence

from ..errors import CompileError, UnsupportedError

__all__ = ["create_shared", "get_cc"]


def get_cc(cxx: bool = False) -> str | None:
    """The path of the compiler, None where there is none."""
    names = (os.environ.get("CXX"), "c++", "g++", "clang++") if cxx else (os.environ.get("CC"), "cc", "gcc", "clang")
    return next((found for found in (shutil.which(name) for name in names if name) if found), None)


def create_shared(output: str | os.PathLike, objects: str | os.PathLike | Sequence[str | os.PathLike],
                  options: Sequence[str] | None = None, cc: str | None = None, cwd: str | None = None) -> None:
    """Links objects, and sources, to the shared library output; blocks. options: words for the compiler; cc: that one;
    cwd: where it runs. UnsupportedError: there is no compiler; CompileError (a RuntimeError): its words."""
    files = [os.fspath(f) for f in ([objects] if isinstance(objects, (str, os.PathLike)) else objects)]
    compiler = cc or get_cc(any(f.endswith((".cc", ".cpp", ".cxx")) for f in files))
    if compiler is None:
        raise UnsupportedError(f"{os.fspath(output)}: objects are linked with a C compiler, and there is none; install one, "
                               "or name it with CC")
    done = subprocess.run([compiler, "-shared", "-fPIC", "-o", os.fspath(output), *files, *(options or ()), "-lm"], cwd=cwd,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError(f"{os.fspath(output)}: {compiler} could not link it:\n{done.stderr or done.stdout}")
