"""Libraries whose code was compiled against TVM's own C++ headers: libheddle_tvm_cxx.so has the names that they import, and
is opened only for them. The headers are of our own (fixtures/tvm_cxx/era.hpp): the names, layouts and inline paths of TVM's.
timeout: 200
"""
import os
import pathlib
import shutil
import subprocess

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


def library(path, source, *, data=None, options=("-O2",)):
    path.with_suffix(".cpp").write_text(source)
    words = [CXX, "-std=c++17", "-shared", "-fPIC", *options, "-I", str(HERE), "-o", str(path), str(path.with_suffix(".cpp"))]
    if data is not None:
        legacy.compile_c(path.with_suffix(".o"), legacy.blob_of(path, data), ["-c"], link=())
        words.append(str(path.with_suffix(".o")))
    subprocess.run(words, check=True, timeout=120)
    return path


def byoc(path, *, returns=0, order=("a", "b"), options=("-O2",), more=""):
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
