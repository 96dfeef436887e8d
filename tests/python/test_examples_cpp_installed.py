"""examples/cpp built against an installation by CMake, and examples/c by pkg-config; test_examples_cpp_crossed.py has the
other way round.
labels: slow installed
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


def by_cmake(language, tmp_path):
    """Gives the folder of the programs."""
    name = "CXX_FLAGS" if language == "cpp" else "C_FLAGS"
    project(SOURCE / "examples" / language, tmp_path / language, **{name: "-Wall -Werror"})
    check_digits(tmp_path / language / "build" / "examples" / f"digits_{language}")
    return tmp_path / language / "build" / "examples"


def by_pkg_config(language, tmp_path):
    pc = next(prefix().rglob("heddle.pc"))
    flags = call("pkg-config", "--cflags", "--libs", "heddle", PKG_CONFIG_PATH=str(pc.parent)).split()
    library = next(w[2:] for w in flags if w.startswith("-L"))
    compilers, standard = {"c": (("clang", "gcc"), "c11"), "cpp": (("clang++", "g++"), "c++17")}[language]
    compiler = next(c for c in compilers if shutil.which(c))
    source = SOURCE / "examples" / language / f"digits.{language}"
    call(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", tmp_path / language, *flags,
         f"-Wl,-rpath,{library}")
    check_digits(tmp_path / language)


def test_cmake_in_cpp(deployed, tmp_path):  # noqa: F811
    check_deploy(by_cmake("cpp", tmp_path) / "deploy_cpp", deployed)


def test_pkg_config_in_c(tmp_path):
    by_pkg_config("c", tmp_path)


def test_cmake_in_examples_of_tvm(tmp_path):
    """The other examples in C build against the installation too."""
    for name in ("system-lib", "tvm-c-api"):
        project(SOURCE / "examples" / name, tmp_path / name, C_FLAGS="-Wall -Werror")
    out = call(tmp_path / "system-lib" / "build" / "examples" / "system-lib")
    assert out == "scale_ fused_multiply: 1 20 300 4000\nshift_ fused_add: 1.5 2.25 3.125 4\n"
