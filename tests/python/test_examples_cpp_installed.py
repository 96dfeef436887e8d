"""examples/c and examples/cpp built against an installation: all by CMake with gcc, digits by pkg-config with clang.
labels: slow
timeout: 600
"""
import os
import shutil

import pytest
from installed import call, prefix, project
from test_examples_cpp import check_deploy, check_digits, deployed  # noqa: F401
from tool_case import SOURCE

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)
if shutil.which("c++") is None:
    pytest.skip("there is no C++ compiler", allow_module_level=True)


def test_cmake(deployed, tmp_path):  # noqa: F811
    project(SOURCE / "examples" / "c", tmp_path / "c", C_FLAGS="-Wall -Werror")
    check_digits(tmp_path / "c" / "build" / "examples" / "digits_c")
    project(SOURCE / "examples" / "cpp", tmp_path / "cpp", CXX_FLAGS="-Wall -Werror")
    check_digits(tmp_path / "cpp" / "build" / "examples" / "digits_cpp")
    check_deploy(tmp_path / "cpp" / "build" / "examples" / "deploy_cpp", deployed)


def test_pkg_config(tmp_path):
    pc = next(prefix().rglob("heddle.pc"))
    flags = call("pkg-config", "--cflags", "--libs", "heddle", PKG_CONFIG_PATH=str(pc.parent)).split()
    library = next(w[2:] for w in flags if w.startswith("-L"))
    for language, compilers, standard in (("c", ("clang", "gcc"), "c11"), ("cpp", ("clang++", "g++"), "c++17")):
        compiler = next(c for c in compilers if shutil.which(c))
        source = SOURCE / "examples" / language / f"digits.{language}"
        call(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", tmp_path / language,
             *flags, f"-Wl,-rpath,{library}")
        check_digits(tmp_path / language)
