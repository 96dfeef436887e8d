"""Libraries whose code was compiled against TVM's own C++ headers: libheddle_tvm_cxx.so has the names that they import, and
is opened only for them. The headers are of our own (fixtures/tvm_cxx/era.hpp): the names, layouts and inline paths of TVM's.
timeout: 200
"""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy

HERE = pathlib.Path(__file__).parent.parent / "fixtures" / "tvm_cxx"
BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
CXX = shutil.which("g++") or shutil.which("clang++")
BUILT = (BUILD / "lib" / "libheddle_tvm_cxx.so").exists()
pytestmark = [pytest.mark.skipif(CXX is None, reason="there is no C++ compiler to write libraries with"),
              pytest.mark.skipif(not BUILT, reason="libheddle_tvm_cxx is left out"),
              pytest.mark.skipif("HEDDLE_SANITIZE" in os.environ, reason="a library without the sanitizer's run time")]

BYOC = """
#include "era.hpp"
using namespace tvm::runtime;
static Array<NDArray> constants;
EXPORTED(__init_ext_0) {
  constants = arrays_of(args, codes);
  return RETURNS;
}
EXPORTED(ext_0) {
  auto *x = static_cast<DLTensor *>(args[0].v_handle), *y = static_cast<DLTensor *>(args[1].v_handle);
  auto *a = static_cast<float *>(constants[0]->data), *b = static_cast<float *>(constants[1]->data);
  for (int64_t i = 0; i < x->shape[0]; i++)
    static_cast<float *>(y->data)[i] = static_cast<float *>(x->data)[i] * a[i] + b[i];
  return 0;
}
EXPORTED(beyond) { return constants[2]->ndim; }
"""


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=1)
    yield context
    context.close()


def library(path, source, *, data=None, options=("-O0",)):
    path.with_suffix(".cpp").write_text(source)
    words = [CXX, "-std=c++17", "-shared", "-fPIC", *options, "-I", str(HERE), "-o", str(path), str(path.with_suffix(".cpp"))]
    if data is not None:
        legacy.compile_c(path.with_suffix(".o"), legacy.blob_of(path, data), ["-c"], link=())
        words.append(str(path.with_suffix(".o")))
    subprocess.run(words, check=True, timeout=120)
    return path


def program(path, source, era, cxx=CXX):
    path.with_suffix(".cpp").write_text(source)
    folder = BUILD / "lib"
    subprocess.run([cxx, "-std=c++17", "-w", f"-DERA={era}", "-I", str(HERE), "-o", str(path), str(path.with_suffix(".cpp")),
                    f"-L{folder}", f"-Wl,-rpath,{folder}", "-lheddle_tvm_cxx_v08" if era == 8 else "-lheddle_tvm_cxx",
                    "-lheddle_tvm"], check=True, timeout=120)
    return path


def byoc(path, *, returns=0, order=("a", "b"), options=("-O0",), more=""):
    constants = {"b": np.array([10, 20, 30, 40], np.float32), "a": np.array([1, 2, 3, 4], np.float32)}
    records = [legacy.const_loader(constants, {"other": ["b"], "ext_0": list(order)}), legacy.LIB]
    return library(path, f"#define RETURNS {returns}\n" + BYOC + more, data=legacy.blob(records, [[1], []]), options=options)


@pytest.mark.parametrize("options", [["-O0"], ["-O2", "-Wl,-z,now"]], ids=["lazy", "now"])
def test_ccompiler(ctx, tmp_path, options):
    """Constants reach the library's own code as an Array of NDArrays, which it keeps."""
    opened = capi.Library(ctx, byoc(tmp_path / "lib.so", options=options))
    x, y = np.array([1, 1, 2, 2], np.float32), np.zeros(4, np.float32)
    for _ in range(2):
        opened.call("ext_0", x, y)
        np.testing.assert_array_equal(y, x * [1, 2, 3, 4] + [10, 20, 30, 40])
    with pytest.raises(capi.HeddleError, match="function 'beyond' of .*lib.so: .*IndexError"):
        opened.call("beyond")
    opened.close()


def test_constants_that_cannot_be_given(ctx, tmp_path):
    with pytest.raises(capi.HeddleError, match="__init_ext_0 returned 3 for its constants"):
        capi.Library(ctx, byoc(tmp_path / "three.so", returns=3))
    with pytest.raises(capi.HeddleError, match="no constant 'c', which __init_ext_0 takes"):
        capi.Library(ctx, byoc(tmp_path / "lacks.so", order=["a", "c"]))
    with pytest.raises(capi.HeddleError, match="'__init_ext_0' of .*throws.so: .*no luck"):
        capi.Library(ctx, byoc(tmp_path / "throws.so", returns='(fail("no luck"), 0)'))


def test_names_of_no_era(ctx, tmp_path):
    """The error names the symbol and the eras that are known."""
    source = BYOC + "namespace tvm { namespace runtime { int NoSuch(int); } }\nEXPORTED(f) { return NoSuch(n); }"
    with pytest.raises(capi.HeddleError, match=r"lib.so: .*_ZN3tvm7runtime6NoSuchEi.*libheddle_tvm_cxx has names of v0.9 to "
                                               r"v0.18, and not this one"):
        capi.Library(ctx, library(tmp_path / "lib.so", "#define RETURNS 0\n" + source))


REGISTERS = """
#include "program.hpp"
using namespace tvm::runtime;
static Registry &entry = Registry::Register("test.of_library%d", true).set_body(
    PackedFunc::of([](TVMArgs args, TVMRetValue *rv) { rv->set(args.values[0].v_int64 + %d); }));
EXPORTED(asks) {
  TVMRetValue rv;
  Registry::Get("test.of_library%d")->call({args[0]}, {codes[0]}, &rv);
  return rv.integer();
}
"""


def registers(path, era, *, options=()):
    return library(path, f"#define ERA {era}\n" + REGISTERS % (era, era, era), options=("-O0", *options))


ALONE = """
import sys
import capi
ctx = capi.Context(config="off", threads=1)
first = capi.Library(ctx, sys.argv[1])
print(first.call("asks", 30))
try:
    print(capi.Library(ctx, sys.argv[2]).call("asks", 30))
except capi.HeddleError as e:
    print(e)
"""


@pytest.mark.parametrize("options", [[], ["-s"]], ids=["names", "stripped"])
def test_libraries_of_two_layouts_of_functions(tmp_path, options):
    """Up to v0.8 functions are std::function, by the names of v0.9: the library decides by what else it holds. A process has one
    of the two, and refuses the other."""
    old, new = registers(tmp_path / "old.so", 8, options=options), registers(tmp_path / "new.so", 13)
    for first, second, expected in ((old, new, "38"), (new, old, "43")):
        done = subprocess.run([sys.executable, "-c", ALONE, first, second], capture_output=True, text=True, timeout=60,
                              cwd=pathlib.Path(__file__).parent)
        number, words = done.stdout.split("\n", 1)
        assert number == expected and "one process cannot have both" in words, done
        assert ("of v0.9 to v0.18 have them" in words) == (first == old), words


@pytest.mark.parametrize("era, cxx", [(8, "g++"), (8, "clang++"), (9, "g++"), (13, "g++"), (17, "g++")])
def test_programs(tmp_path, era, cxx):
    """A program that is linked with libheddle_tvm_cxx, or that of v0.8, in place of libtvm_runtime: modules and classes derived
    from them, functions by name, arrays, errors."""
    if shutil.which(cxx) is None:
        pytest.skip(f"there is no {cxx}")
    add = legacy.kernel("add", [("x", "float32", (4,)), ("y", "float32", (4,))],
                        "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;")
    compiled = legacy.library(tmp_path / "add.so", "v0.14", [add])
    program(tmp_path / "program", (HERE / "deploy.cpp").read_text(), era, cxx)
    done = subprocess.run([tmp_path / "program", compiled], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "ok\n", done.stderr
    if era == 8:  # a library of another layout
        done = subprocess.run([tmp_path / "program", registers(tmp_path / "new.so", 9)], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "one process cannot have both" in done.stderr


IMPORTS = """
#include "program.hpp"
#include <iostream>
int main(int, char **argv) {
  auto lib = tvm::runtime::Module::LoadFromFile(argv[1], "");
  for (auto &import : tvm::runtime::node(lib)->imports_) std::cout << tvm::runtime::node(import)->type_key() << std::endl;
}
"""


@pytest.mark.parametrize("era", [8, 13])
def test_imports_of_a_loaded_module(tmp_path, era):
    code = legacy.device_module("opencl", "cl", {"k": ([(3, 64)], ["blockIdx.x"])}, "__kernel void k() {}")
    compiled = legacy.library(tmp_path / "lib.so", "v0.14", [], data=legacy.blob([legacy.LIB, code], [[1], []]))
    done = subprocess.run([program(tmp_path / "program", IMPORTS, era), compiled], capture_output=True, text=True, timeout=60)
    assert done.stdout == "opencl\n", done.stderr


def test_a_library_that_registers_functions(ctx, tmp_path):
    """Its constructors register functions of C++, which are then called by name as any other."""
    source = """
#define ERA 13
#include "program.hpp"
using namespace tvm::runtime;
static Registry &entry = Registry::Register("test.of_library", true).set_body(
    PackedFunc::of([](TVMArgs args, TVMRetValue *rv) { rv->set(args.values[0].v_int64 + 1); }));
EXPORTED(asks) {
  TVMRetValue rv;
  Registry::Get("test.of_library")->call({args[0]}, {codes[0]}, &rv);
  return rv.integer();
}
"""
    path = library(tmp_path / "lib.so", source)
    for _ in range(2):  # its function stays, and is not registered again
        opened = capi.Library(ctx, path)
        assert opened.call("asks", 41) == 42
        opened.close()


def test_files_that_need_libtvm_runtime(ctx, tmp_path):
    """A library and a program that were linked with TVM's own runtime."""
    library(tmp_path / "libtvm_runtime.so", '#include "era.hpp"\nstd::string tvm::runtime::Object::TypeIndex2Key(uint32_t) '
            '{ return "another"; }', options=["-Wl,-soname,libtvm_runtime.so"])
    linked = ["-Wl,--no-as-needed", f"-L{tmp_path}", "-ltvm_runtime"]
    opened = capi.Library(ctx, byoc(tmp_path / "needs.so", options=["-O0", *linked]))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    opened.call("ext_0", x, y)
    np.testing.assert_array_equal(y, [11, 22, 33, 44])
    opened.close()
    source = tmp_path / "main.cpp"
    source.write_text('#include "era.hpp"\nint main() { return tvm::runtime::Object::TypeIndex2Key(3) != "runtime.String"; }')
    subprocess.run([CXX, "-std=c++17", "-I", str(HERE), "-o", str(tmp_path / "main"), str(source),
                    *linked], check=True, timeout=120)
    for folder in "tvm", "tvm-0.8":
        environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib" / "heddle" / folder)}
        assert subprocess.run([tmp_path / "main"], env=environment, timeout=60).returncode == 0
