"""heddle.runtime's modules: libraries, models inside of them, executors, device code, time evaluators.
timeout: 300
"""
import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

os.environ["HEDDLE_DEVICES"] = "cpu"

import calls_libraries as libraries
import heddle.runtime as runtime
from heddle.errors import Error, NotFoundError, UnsupportedError

legacy = libraries.legacy
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/python"))
from tvm_graph import Call, tvm_graph  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler")

F32 = "float32"
ADD = legacy.kernel("add", [(n, F32, (4,)) for n in "abc"], "for (int i = 0; i < 4; i++) c[i] = a[i] + b[i];")
ANSWER = "FUNCTION(answer) { ((TVMValue *)out_ret)->v_int64 = 42; *(int *)out_code = 0; return 0; }"


def graph():
    return tvm_graph({"x": (F32, [4]), "w": (F32, [4])}, [Call("add", ["x", "w"], [(F32, [4])])], ["add"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("modules")


@pytest.fixture(scope="module")
def library(folder):
    return runtime.load_module(folder_library(folder))


def folder_library(folder):
    path = folder / "lib.so"
    return path if path.exists() else legacy.library(path, "v0.14", [ADD, ANSWER], main="answer")


def arrays():
    values = [np.arange(4, dtype=F32), np.array([10, 20, 30, 40], F32)]
    return [runtime.nd.array(v) for v in values] + [runtime.nd.empty((4,))], values[0] + values[1]


def test_a_library(library, folder):
    assert (library.type_key, library.format, library.imported_modules) == ("library", "so", [])
    assert repr(library).startswith("Module(library, ")
    args, expected = arrays()
    for f in (library["add"], library.get_function("add"), library.get_function("add", query_imports=True)):
        f(*args)
        np.testing.assert_array_equal(args[2].numpy(), expected)
    assert library.implements_function("add") and not library.implements_function("sub")
    assert library.library()["functions"] == ["add", "answer"]
    assert runtime.load_module(str(folder_library(folder)), "so")["answer"]() == 42


def test_the_entry(library):
    assert library() == 42 and library.entry_func() == 42 and library.entry_name == "__tvm_main__"


def test_names_that_are_none(library):
    for error in (AttributeError, NotFoundError, Error):
        with pytest.raises(error, match="Module has no function 'sub'"):
            library["sub"]
    with pytest.raises(ValueError):
        library[3]
    assert not hasattr(library, "sub")


def test_what_is_for_the_compiler(library):
    for call in (lambda: library.save("x.o"), lambda: library.export_library("x.tar"), library.get_source,
                 lambda: runtime.load_static_library("x.a", ["f"])):
        with pytest.raises(UnsupportedError):
            call()


def test_files_that_are_none(folder):
    for error in (ValueError, OSError, Error):
        with pytest.raises(error, match="none.so") as caught:
            runtime.load_module(folder / "none.so")
    assert caught.value.file == str(folder / "none.so") and caught.value.status == "HEDDLE_EIO"
    (folder / "text.so").write_text("no library")
    with pytest.raises(Error, match="text.so") as caught:
        runtime.load_module(folder / "text.so")
    assert caught.value.file == str(folder / "text.so")
    for suffix, words in (("tar", "no tar archive"), ("o", "could not link it")):
        (folder / f"x.{suffix}").write_text("objects")
        with pytest.raises(Error, match=words):
            runtime.load_module(folder / f"x.{suffix}")


def test_a_loader_of_the_application(folder, library):
    """A format of one's own: its module is what the registered function gives, its exception what that raised."""
    (folder / "model.mine").write_text("text")
    runtime.register_func("runtime.module.loadfile_mine", lambda path, fmt: library, override=True)
    assert runtime.load_module(folder / "model.mine") == library

    def fails(path, fmt):
        raise LookupError(f"{pathlib.Path(path).name} as {fmt}")

    runtime.register_func("runtime.module.loadfile_mine", fails, override=True)
    with pytest.raises(LookupError, match="model.mine as mine"):
        runtime.load_module(folder / "model.mine")
    runtime.remove_global_func("runtime.module.loadfile_mine")


def test_a_model_inside(folder):
    weights = np.array([1, 2, 3, 4], F32)
    data = legacy.blob([legacy.factory(graph(), {"w": weights}), legacy.LIB], [[1], []])
    factory = runtime.load_module(legacy.library(folder / "deploy.so", "v0.14", [ADD], data=data))
    assert factory.type_key == "GraphExecutorFactory"
    assert [m.type_key for m in factory.imported_modules] == ["library"]
    with pytest.raises(AttributeError):
        factory["add"]
    args, expected = arrays()
    factory.get_function("add", query_imports=True)(*args)
    np.testing.assert_array_equal(args[2].numpy(), expected)
    for executor in (factory["default"](runtime.cpu(0)), factory["debug_create"]("default", runtime.cpu(0))):
        assert executor.type_key == "GraphExecutor"
        executor["set_input"]("x", np.full(4, 10, F32))
        executor["run"]()
        first = executor["get_output"](0)
        np.testing.assert_array_equal(first.numpy(), weights + 10)
        copied = first.numpy()
        executor["set_input"]("x", np.full(4, 20, F32))
        executor["run"]()
        np.testing.assert_array_equal(copied, weights + 10)  # what numpy() gave is the caller's
        np.testing.assert_array_equal(first.numpy(), weights + 20)
        with pytest.raises(Error, match="'y'"):
            executor["set_input"]("y", np.zeros(4, F32))
    del factory
    np.testing.assert_array_equal(first.numpy(), weights + 20)


def test_device_code_inside(folder):
    source = "__kernel void scale_kernel(__global float *x) { x[get_global_id(0)] *= 2; }"
    kernels = {"scale_kernel": ([(3, 64)], ["blockIdx.x", "threadIdx.x"])}
    data = legacy.blob([legacy.LIB, legacy.device_module("opencl", "cl", kernels, source)], [[1], []])
    library = runtime.load_module(legacy.library(folder / "device.so", "v0.14", [ADD], data=data))
    code, = library.imported_modules
    assert (code.type_key, code.format, code.kernels, code.imported_modules) == ("opencl", "cl", ("scale_kernel",), [])
    assert code.get_source() == source and repr(code).startswith("Module(opencl, ")
    assert not code.implements_function("scale_kernel")
    with pytest.raises(AttributeError, match="launched by"):
        code["scale_kernel"]
    shader = legacy.device_module("vulkan", "vulkan", kernels, {"scale_kernel": [0x07230203, 0x10000]})
    data = legacy.blob([legacy.LIB, shader], [[1], []])
    code, = runtime.load_module(legacy.library(folder / "shader.so", "v0.14", [ADD], data=data)).imported_modules
    assert code.get_source().splitlines()[-1] == "// kernel scale_kernel"


@pytest.mark.parametrize("flat", [True, False])
def test_device_code_is_an_import_of_its_library(folder, flat):
    """heddle_object_imported: of a file and, in a process of its own, of the system library; with a tree and without."""
    code = legacy.device_module("opencl", "cl", {"k": ([(3, 64)], ["blockIdx.x"])}, "__kernel void k() {}")
    data = legacy.blob([code]) if flat else legacy.blob([legacy.LIB, code], [[1], []])
    kept, = runtime.load_module(legacy.library(folder / f"code{flat}.so", "v0.14", [ADD], data=data)).imports()
    assert (kept.kind, kept.imports(), kept.library()) == ("opencl", [], None)
    with pytest.raises(NotFoundError):
        kept.function("k", True)
    program = legacy.system_library(folder / f"program{flat}.so", [legacy.system_object(folder / f"o{flat}.o", "v0.14", [ADD],
                                                                                       data=data)],
                                    pathlib.Path(os.environ["HEDDLE_BUILD"]) / "lib")
    done = subprocess.run([sys.executable, "-c", "import ctypes, sys, heddle.runtime as r; ctypes.CDLL(sys.argv[1]); "
                           "print([m.kind for m in r.system_lib().imports()], r.system_lib().imported_modules[0].kernels)",
                           str(program)], capture_output=True, text=True, timeout=100)
    assert done.stdout == "['opencl'] ('k',)\n", done.stdout + done.stderr


def test_imports(folder, library):
    importer = runtime.load_module(legacy.library(folder / "importer.so", "v0.14", [ANSWER]))
    importer.import_module(library)
    assert importer.imported_modules == [library]
    with pytest.raises(AttributeError):
        importer["add"]
    assert importer.get_function("add", True) is not None
    with pytest.raises(ValueError, match="import"):
        library.import_module(importer)
    with pytest.raises(TypeError):
        importer.import_module("text")


def test_time_evaluator(library):
    args, expected = arrays()
    timer = library.time_evaluator("add", runtime.cpu(0), number=3, repeat=5)
    result = timer(*args)
    np.testing.assert_array_equal(args[2].numpy(), expected)
    assert len(result.results) == 5 and all(0 <= t < 60 for t in result.results)
    calls = []
    runtime.register_func("test.counted", lambda x: calls.append(x), override=True)
    count = runtime.get_global_func("runtime.RPCTimeEvaluator")(None, "test.counted", 1, 0, 4, 3)
    assert len(count(5)) == 3 * 8 and calls == [5] * (1 + 4 * 3)  # one untimed
    with pytest.raises(Error, match="'sub'"):
        library.time_evaluator("sub", runtime.cpu(0))
    with pytest.raises(Error, match="repeat|argument"):
        library.time_evaluator("add", runtime.cpu(0), repeat=0)


def test_time_evaluator_with_a_function_before(library):
    order = []
    runtime.register_func("test.before", lambda x: order.append("before"), override=True)
    runtime.register_func("test.timed", lambda x: order.append("timed"), override=True)
    make = runtime.get_global_func("runtime.RPCTimeEvaluator")
    make(None, "test.timed", 1, 0, 2, 2, 0, 100, 0, 1, 0, "test.before")(1)
    assert order == ["timed"] + ["before", "timed", "timed"] * 2
    args, _ = arrays()
    runtime.register_func("test.before", lambda *given: order.append(len(given)), override=True)
    library.time_evaluator("add", runtime.cpu(0), number=1, repeat=2, f_preproc="test.before")(*args)
    assert order[-2:] == [3, 3]
    with pytest.raises(Error, match="test.nobody"):
        library.time_evaluator("add", runtime.cpu(0), f_preproc="test.nobody")

    class Stop(Exception):
        pass

    def stop(*given):
        raise Stop

    runtime.register_func("test.before", stop, override=True)
    with pytest.raises(Stop):
        library.time_evaluator("add", runtime.cpu(0), f_preproc="test.before")(*args)


def test_min_repeat(library):
    """More calls where they were too short."""
    calls = []
    runtime.register_func("test.counted", lambda: calls.append(1), override=True)
    make = runtime.get_global_func("runtime.RPCTimeEvaluator")
    make(None, "test.counted", 1, 0, 1, 1, 5, 100, 0, 1)()
    assert len(calls) > 2


def test_system_lib(folder):
    made = legacy.system_object(folder / "system.o", "v0.14", [ADD], prefix="p_")
    path = legacy.system_library(folder / "system.so", [made], pathlib.Path(os.environ["HEDDLE_BUILD"]) / "lib")
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    args, expected = arrays()
    runtime.system_lib("p_")["add"](*args)
    np.testing.assert_array_equal(args[2].numpy(), expected)
