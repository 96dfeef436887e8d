"""Programs written for TVM's C++ runtime, examples/tvm-cpp: they compile with g++ and clang++ in the standards that such
programs use, run models whose inputs and outputs TVM v0.14 wrote (tests/data/tvm_v0_14), and report what goes wrong.
labels: ctypes
timeout: 500
"""
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from fixtures import tvm_legacy as legacy
from test_tvm_legacy import MODELS, model_files
from tool_case import BUILD, SOURCE, environment

EXAMPLES = SOURCE / "examples" / "tvm-cpp"
LINK = ["-L", BUILD / "lib", "-lheddle_tvm", "-lheddle", f"-Wl,-rpath,{BUILD / 'lib'}"]
FLAGS = ["-I", SOURCE / "include", "-I", SOURCE / "modules" / "include", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
SANITIZED = bool(os.environ.get("HEDDLE_SANITIZE"))
COMPILERS = [("clang++", "c++14"), ("g++", "c++20"), ("g++", "c++14"), ("clang++", "c++17")]
if float(os.environ.get("HEDDLE_TEST_SCALE", "1")) < 1:
    COMPILERS = COMPILERS[:2]

pytestmark = [
    pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with"),
    pytest.mark.skipif(not (BUILD / "examples" / "tvm_deploy").exists(), reason="there is no C++ compiler")]
plain = pytest.mark.skipif(SANITIZED, reason="the library is built with a sanitizer, whose run time a plain program lacks")


def run(program, *words, fails=False):
    env = environment(HEDDLE_DEVICES="cpu")
    for python_only in ("LD_PRELOAD", "ASAN_OPTIONS"):  # the programs have the sanitizer in them, and are searched for leaks
        env.pop(python_only, None)
    done = subprocess.run([str(w) for w in (program, *words)], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode != 0) == fails, done
    return done


def compiled(compiler, standard, target, *sources, more=()):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    words = [compiler, f"-std={standard}", *FLAGS, *more, *sources, "-o", target, *LINK]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr[-3000:]
    return target


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """name -> a folder with lib.so, deploy.so, graph.json, net.params and the inputs, the name and shape of the first input,
    and TVM's outputs. Inputs but the first are parameters here, as the programs set one."""
    folder, done = tmp_path_factory.mktemp("deployed"), {}

    def get(name):
        if name not in done:
            own = folder / name
            own.mkdir()
            graph, params, inputs, outputs = model_files(name)
            legacy.library(own / "lib.so", "v0.14", MODELS[name])
            records = legacy.params_records(params) if len(params) > 32 else {}
            first = "data" if "data" in inputs else sorted(inputs)[0]
            for other in sorted(set(inputs) - {first}):
                records[other] = legacy.array(inputs[other])
            (own / "graph.json").write_text(graph)
            (own / "net.params").write_bytes(legacy.params_blob(records))
            legacy.library(own / "deploy.so", "v0.14", MODELS[name],
                           data=legacy.blob([legacy.factory(graph, records), legacy.LIB], [[1], []]))
            inputs[first].tofile(own / "input.bin")
            done[name] = own, first, inputs[first].shape, outputs
        return done[name]
    return get


def check_deploy(program, deployed, name):
    folder, first, shape, outputs = deployed(name)
    result = folder / "output.bin"
    result.unlink(missing_ok=True)
    done = run(program, folder / "lib.so", folder / "graph.json", folder / "net.params", first, ",".join(map(str, shape)),
               folder / "input.bin", result)
    found = np.fromfile(result, outputs[0].dtype).reshape(outputs[0].shape)
    np.testing.assert_allclose(found, outputs[0], rtol=1e-5, atol=1e-6)
    assert done.stdout == f"output {list(outputs[0].shape)} float32, greatest at {found.argmax()}\n"


def check_factory(program, deployed, name):
    folder, first, _, outputs = deployed(name)
    result = folder / "output.bin"
    result.unlink(missing_ok=True)
    done = run(program, folder / "deploy.so", first, folder / "input.bin", result)
    np.testing.assert_allclose(np.fromfile(result, outputs[0].dtype).reshape(outputs[0].shape), outputs[0], rtol=1e-5, atol=1e-6)
    assert re.search(rf"\[\d\d:\d\d:\d\d\] \S*factory.cpp:\d+: \S+ on cpu: {len(outputs)} outputs\n", done.stderr), done
    assert done.stdout.startswith(f"output {list(outputs[0].shape)} ")


def check_old(program, deployed, name):
    folder, first, _, outputs = deployed(name)
    result = folder / "output.bin"
    result.unlink(missing_ok=True)
    run(program, folder / "lib.so", folder / "graph.json", folder / "net.params", first, folder / "input.bin", result)
    np.testing.assert_allclose(np.fromfile(result, outputs[0].dtype).reshape(outputs[0].shape), outputs[0], rtol=1e-5, atol=1e-6)


def check_addone(program, folder):
    library = folder / "addone.so"
    if not library.exists():
        legacy.library(library, "v0.8", [legacy.kernel("addone", [("x", "float32", (10,)), ("y", "float32", (10,))],
                                                       "for (int i = 0; i < 10; i++) y[i] = x[i] + 1;")])
    done = run(program, library)
    assert done.stdout == "verified\n" and "addone: verified" in done.stderr and "addonesys: verified" in done.stderr


def test_the_examples_of_the_build(deployed, tmp_path):
    for name in ("dtype_float32", "reshape_nop"):
        check_deploy(BUILD / "examples" / "tvm_deploy", deployed, name)
    for name in ("dtype_float32", "dtype_int8", "reshape_nop", "multi_output", "identity"):
        check_factory(BUILD / "examples" / "tvm_factory", deployed, name)
        check_old(BUILD / "examples" / "tvm_old", deployed, name)
    check_addone(BUILD / "examples" / "tvm_addone", tmp_path)


@plain
@pytest.mark.parametrize("compiler,standard", COMPILERS)
def test_they_compile_without_a_warning(deployed, tmp_path, compiler, standard):
    for name, check in (("deploy", check_deploy), ("factory", check_factory), ("old", check_old)):
        more = ["-O3", "-DNDEBUG"] if (name, standard) == ("deploy", "c++20") else []  # some warnings need the optimiser
        check(compiled(compiler, standard, tmp_path / name, EXAMPLES / f"{name}.cpp", more=more), deployed, "reshape_nop")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """An include folder as it is installed: headers, and files named as TVM's sources."""
    folder = tmp_path_factory.mktemp("include")
    for name in ("tvm", "dmlc"):
        shutil.copytree(SOURCE / "include" / name, folder / name)
    shutil.copytree(BUILD / "tvm-sources" / "src", folder / "tvm" / "src")
    return folder


@plain
@pytest.mark.parametrize("compiler,standard", [("clang++", "c++14"), ("g++", "c++17")][:len(COMPILERS) // 2])
def test_tvm_s_runtime_as_one_file(sources, tmp_path, compiler, standard):
    """With the file that includes TVM's sources, as "src/..." and, for Android, as "../src/..."."""
    legacy.compile_c(tmp_path / "addone_sys.o", (EXAMPLES / "addone_sys.c").read_text(),
                     ["-c", "-I", str(SOURCE / "include"), "-I", str(SOURCE / "modules" / "include")])
    one = [EXAMPLES / "addone.cpp", tmp_path / "addone_sys.o"]
    pack = EXAMPLES / "tvm_runtime_pack.cc"
    check_addone(compiled(compiler, standard, tmp_path / "pack", *one, pack, more=["-I", sources / "tvm"]), tmp_path)
    (tmp_path / "jni").mkdir()
    android = tmp_path / "jni" / "tvm_runtime.cc"
    android.write_text(pack.read_text().replace('"src/runtime/', '"../src/runtime/'))
    compiled(compiler, standard, tmp_path / "android.so", android, more=["-shared", "-fPIC", "-I", sources / "tvm" / "src"])


LIBRARY = """
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>
static int add_(DLTensor *a, DLTensor *b, DLTensor *out) {
  for (int64_t i = 0; i < a->shape[0]; i++)
    static_cast<float *>(out->data)[i] = static_cast<float *>(a->data)[i] + static_cast<float *>(b->data)[i];
  return 0;
}
TVM_DLL_EXPORT_TYPED_FUNC(add, add_);
TVM_DLL_EXPORT_TYPED_FUNC(name_of, [](int n) { return "number " + std::to_string(n); });
TVM_DLL_EXPORT_PACKED_FUNC(fails, [](tvm::runtime::TVMArgs args, tvm::runtime::TVMRetValue *) {
  CHECK_EQ(args.size(), 0) << "none are wanted";
  throw std::runtime_error("it fails");
});
"""
CALLS = """
#include <cstdio>
#include <dmlc/thread_local.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
using namespace tvm::runtime;
static void forms(TVMArgs args, TVMRetValue *rv) {  // each converts in one way, in every standard
  std::string s = args[0];
  String t = args[0], u(args[0]);
  int n = args[1];
  int64_t wide = args[1];
  uint64_t size = args[1];
  bool b = args[1];
  double d = args[1];
  NDArray a = args[2], c(args[2]);
  DLTensor *raw = args[2];
  void *handle = args[2];
  PackedFunc f = args[3], g(args[3]);
  TypedPackedFunc<int(int)> typed = args[3], other(args[3]);
  Module m = args[4], o(args[4]);
  DLDevice dev = args[5];
  DLDataType type = args[6];
  DataType same = args[6];
  ObjectRef any = args[2];
  a = args[2];
  m = args[4];
  f = args[3];
  t = s;
  CHECK(t == u && a.same_as(c) && f.same_as(g) && o.same_as(m) && any.same_as(a) && handle == raw && same == DataType(type));
  *rv = n + static_cast<int>(wide) + static_cast<int>(size) + static_cast<int>(d) + b + typed(1) + other(2) + dev.device_id +
        static_cast<int>(s.size()) + (m == Module() ? 0 : 1000);
}
int main(int, char **argv) {
  *dmlc::ThreadLocalStore<int>::Get() = 1;
  Module lib = Module::LoadFromFile(argv[1], "so");
  NDArray a = NDArray::Empty({3}, DataType::Float(32), DLDevice{kDLCPU, 0}), b = a.CopyTo(DLDevice{kDLCPU, 0});
  float x[3] = {1, 2, 3};
  a.CopyFromBytes(x, sizeof x);
  lib.GetFunction("add")(a, a, b);
  int total = PackedFunc(forms)("ab", 1, a, TypedPackedFunc<int(int)>([](int n) { return 10 * n; }), lib, DLDevice{kDLCPU, 0},
                                DataType::Float(32));
  std::printf("%d\\n", total);
  b.CopyToBytes(x, sizeof x);
  std::printf("%g %g %g\\n", x[0], x[1], x[2]);
  std::printf("%s\\n", std::string(String(lib.GetFunction("name_of")(7))).c_str());
  for (int i = 0; i < 2; i++) try {
    if (i == 0) lib.GetFunction("fails")();
    else lib.GetFunction("fails")(1);
  } catch (const Error &e) {
    std::printf("%s\\n", e.what());
  }
  try {
    lib.GetFunction("add")(a, 1, b);
  } catch (const dmlc::Error &e) {
    std::printf("%s\\n", e.what());
  }
}
"""


@plain
def test_a_library_that_exports_functions(tmp_path):
    """As the ccompiler code generator and a program's own functions in C++ are written."""
    (tmp_path / "lib.cc").write_text(LIBRARY)
    (tmp_path / "main.cc").write_text(CALLS)
    library = compiled("g++", "c++17", tmp_path / "lib.so", tmp_path / "lib.cc", more=["-shared", "-fPIC"])
    if len(COMPILERS) > 2:
        compiled("clang++", "c++20", tmp_path / "clang", tmp_path / "main.cc")
    out = run(compiled("g++", "c++14", tmp_path / "main", tmp_path / "main.cc"), library).stdout.splitlines()
    assert out[:3] == ["1037", "2 4 6", "number 7"] and out[3].endswith("it fails"), out
    assert "args.size() == 0 (1 vs. 0): none are wanted" in out[4], out
    assert "add: argument 1: expected DLTensor* or NDArray but got int" in out[5], out


def test_what_goes_wrong_is_reported(deployed, tmp_path):
    folder, first, shape, _ = deployed("dtype_float32")
    words = [folder / "lib.so", folder / "graph.json", folder / "net.params", first, ",".join(map(str, shape)),
             folder / "input.bin", tmp_path / "out.bin"]
    (tmp_path / "cut.params").write_bytes((folder / "net.params").read_bytes()[:40])
    (tmp_path / "cut.json").write_text((folder / "graph.json").read_text()[:100])
    for at, word, reason in ((0, tmp_path / "none.so", "none.so"), (1, tmp_path / "cut.json", "not JSON"),
                             (2, tmp_path / "cut.params", "load_params: "), (4, "7,9", "the input has another size"),
                             (5, tmp_path / "none.bin", "none.bin: it cannot be read")):
        done = run(BUILD / "examples" / "tvm_deploy", *words[:at], word, *words[at + 1:], fails=True)
        assert done.returncode == 1 and done.stderr.startswith("deploy: ") and reason in done.stderr, done
    done = run(BUILD / "examples" / "tvm_factory", folder / "lib.so", first, folder / "input.bin", tmp_path / "o", fails=True)
    assert done.returncode == 1 and "null PackedFunc" in done.stderr, done
