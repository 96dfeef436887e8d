"""System libraries: objects of every era that register themselves, with blobs and prefixes, and those of today's TVM. Each
case is a process of its own, since what is registered stays for its life; a shared library of such objects stands for
the program (examples/system-lib is one).
labels: ctypes
timeout: 400
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import pocl
from fixtures import tvm_legacy as legacy
from tvm_graph import Call, tvm_graph

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data" / "tvm_v0_14"
LIBRARIES = pathlib.Path(os.environ["HEDDLE_BUILD"]) / "lib"
F32 = "float32"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write objects with")


def run(program, *words, **env):
    """program: statements, which have np, capi, the words as words, a context ctx, and run(library, graph, ...)."""
    text = '''
import ctypes, json, pathlib, sys
import numpy as np
import capi
words = sys.argv[1:]
ctypes.CDLL(words[0])
ctx = capi.Context(config="off")
def run(library, graph, params, inputs, **options):
    model = capi.Model(ctx, graph, params, library=library, **options)
    executor = capi.Executor(model)
    for name, value in inputs.items():
        executor.set_input(name, value)
    executor.run()
    return executor.outputs()
''' + program + "\nprint('fine')\n"
    done = subprocess.run([sys.executable, "-c", text, *map(str, words)], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "PYTHONPATH": str(HERE), **env})
    assert done.returncode == 0 and "fine" in done.stdout, done.stdout + done.stderr


def times(name, factor, n=4):
    return legacy.kernel(name, [("x", F32, (n,)), ("y", F32, (n,))], f"for (int i = 0; i < {n}; i++) y[i] = x[i] * {factor};")


SORTED = legacy.kernel("sorted", [("x", F32, (4,)), ("y", F32, (4,))], """void *f; TVMValue v[5]; int c[5];
if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "tvm.contrib.sort.sort", &f) != 0) return -1;
v[0] = args[0]; v[1] = args[1]; c[0] = c[1] = 7; v[2].v_int64 = 0; v[3].v_int64 = 1; c[2] = c[3] = 0;
return TVMFuncCall(f, v, c, 4, &v[4], &c[4]);""")
OPENCL = legacy.device_module("opencl", "cl", {"twice_kernel": ([(3, 64)], ["blockIdx.x"])},
                              "// Function: twice_kernel\n__kernel void twice_kernel() {}\n")


@pytest.mark.parametrize("era", legacy.ERAS)
def test_functions_and_imports(tmp_path, era):
    """No prefix; the functions are those of two objects, and the blob is one's."""
    flat = legacy.ERAS[era] <= 6
    data = legacy.blob([OPENCL]) if flat else legacy.blob([legacy.LIB, OPENCL], [[1], []])
    library = legacy.system_library(tmp_path / "program.so", [
        legacy.system_object(tmp_path / "a.o", era, [times("four", 4)], data=data),
        legacy.system_object(tmp_path / "b.o", era, [SORTED])], LIBRARIES)
    graph = tvm_graph({"x": (F32, [4])}, [Call("four", ["x"], [(F32, [4])]), Call("sorted", ["four"], [(F32, [4])])],
                      ["sorted"])
    (tmp_path / "g.json").write_text(graph)
    run("""
library = capi.SystemLibrary(ctx)
assert library.functions() == ["four", "sorted"]
imported = capi.imports(library)
assert imported == [("opencl", "cl", ["twice_kernel"])], imported
x = np.array([3, -1, 2, 0], np.float32)
out, = run(library, capi.Graph(pathlib.Path(words[1]).read_text()), None, {"x": x}, devices="cpu")
np.testing.assert_array_equal(out, [-4, 0, 8, 12])
""", library, tmp_path / "g.json")


@pytest.mark.parametrize("era,prefixes", [("v0.8", [""]), ("v0.14", ["a_", "b_"]), ("v0.18", ["a_", "b_", ""])])
def test_models_inside(tmp_path, era, prefixes):
    """Each with its prefix, functions of the same names, and parameters of its own."""
    kind = "GraphRuntimeFactory" if era == "v0.8" else "GraphExecutorFactory"
    add = legacy.kernel("fused_add", [("a", F32, (4,)), ("b", F32, (4,)), ("c", F32, (4,))],
                        "for (int i = 0; i < 4; i++) c[i] = SCALE * a[i] + b[i];")
    objects = []
    for i, prefix in enumerate(prefixes):
        graph = tvm_graph({"x": (F32, [4]), "p0": (F32, [4])}, [Call("fused_add", ["x", "p0"], [(F32, [4])])],
                          ["fused_add"])
        params = {"p0": np.full(4, 10 * i, np.float32)}
        data = legacy.blob([legacy.factory(graph, params, kind=kind), legacy.LIB], [[1], []])
        objects.append(legacy.system_object(tmp_path / f"m{i}.o", era, [f"#define SCALE {i + 2}", add], prefix=prefix,
                                            data=data))
    library = legacy.system_library(tmp_path / "program.so", objects, LIBRARIES)
    run("""
x = np.arange(4, dtype=np.float32)
for round in range(2):
    for i, prefix in enumerate(json.loads(words[1])):
        library = capi.SystemLibrary(ctx, prefix)
        assert "fused_add" in library.functions()
        graph, params = capi.unpack(library)
        out, = run(library, graph, params, {"x": x}, devices="cpu")
        np.testing.assert_array_equal(out, (i + 2) * x + 10 * i)
        try: capi.unpack(library, "other")
        except capi.HeddleError as e: assert "no model 'other'; it holds default" in str(e), e
        else: raise SystemExit("no error")
        library.close()
""", library, json.dumps(prefixes))


# ---- today's TVM

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if importlib.util.find_spec("tvm") is None:
        pytest.skip("apache-tvm is not in .venv; scripts/setup installs it")
    path = tmp_path_factory.mktemp("tvm")
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS")}
    subprocess.run([sys.executable, str(HERE / "tvm_compile.py"), str(path)], check=True, env=environment, timeout=240)
    for name in ("source", "p", "q"):
        with tarfile.open(path / f"{name}.tar") as packed:
            packed.extractall(path / name, filter="data")
    return path


def test_objects_of_today(folder):
    """Functions with the prefix in their names, and a kernel for OpenCL in an object without it, in one program."""
    objects = sorted([*(folder / "p").glob("*.o"), *(folder / "q").glob("*.o")])
    assert len(objects) == 3
    library = legacy.system_library(folder / "program.so", objects, LIBRARIES, ffi=True)
    run("""
p, q = capi.SystemLibrary(ctx, "p_"), capi.SystemLibrary(ctx, "q_")
assert p.functions() == ["chain", "parallel"] and "scale" in q.functions(), (p.functions(), q.functions())
x, y = np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7), np.zeros((5, 7), np.float32)
p.call("chain", x, y)
np.testing.assert_allclose(y, np.tanh(x * 2 + 1) - x, rtol=1e-5, atol=1e-6)
x, y = np.linspace(-1, 1, 64 * 256, dtype=np.float32).reshape(64, 256), np.zeros((64, 256), np.float32)
p.call("parallel", x, y)
np.testing.assert_allclose(y, np.exp(x) + 1, rtol=1e-5)
try: p.call("chain", x, y)
except capi.HeddleError as e: assert "system library 'p_'" in str(e) and "shape" in str(e), e
else: raise SystemExit("no error")
(kind, form, kernels), = capi.imports(q)
assert (kind, form, kernels) == ("opencl", "cl", ["scale_kernel"])
assert capi.imports(p) == []
""", library)


def test_objects_of_today_on_opencl(folder, tmp_path):
    pocl.need()
    library = legacy.system_library(tmp_path / "program.so", sorted((folder / "q").glob("*.o")), LIBRARIES, ffi=True)
    graph = tvm_graph({"x": (F32, [256])}, [Call("scale", ["x"], [(F32, [256])], device=4)], ["scale"])
    (tmp_path / "g.json").write_text(graph)
    run("""
library = capi.SystemLibrary(ctx, "q_")
x = np.arange(256, dtype=np.float32)
graph = capi.Graph(pathlib.Path(words[1]).read_text())
out, = run(library, graph, None, {"x": x}, devices="opencl:0,cpu")
np.testing.assert_array_equal(out, 2 * x)
""", library, tmp_path / "g.json", **pocl.ENV)


def test_source_of_today(folder, tmp_path):
    """C source as TVM writes it, compiled with the headers of the wheels."""
    places = [pathlib.Path(importlib.util.find_spec(name).origin).parent for name in ("tvm", "tvm_ffi")]
    include = [f"-I{p / 'include'}" for p in places]
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    subprocess.run([legacy.compiler(), "-shared", "-fPIC", "-w", *include, "-o", str(tmp_path / "lib.so"),
                    *map(str, (folder / "source").glob("*.c")), "-lm"], check=True, env=environment, timeout=120)
    run("""
library = capi.Library(ctx, words[0])
assert library.functions() == ["chain", "parallel", "softmax"], library.functions()
x, y = np.linspace(-1, 1, 6400, dtype=np.float32).reshape(64, 100), np.zeros((64, 100), np.float32)
library.call("softmax", x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4)
try: library.call("softmax", x)
except capi.HeddleError as e: assert "Expected 2 arguments" in str(e), e
else: raise SystemExit("no error")
""".replace("capi.Library(ctx, words[0])", "capi.Library(ctx, words[1])"), LIBRARIES / "libheddle_tvm.so",
        tmp_path / "lib.so")


def test_the_example():
    """Two models in one program, an object and an archive that is linked as a whole."""
    program = LIBRARIES.parent / "examples" / "system-lib"
    if not program.exists():
        pytest.skip("the examples are not built")
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == (
        "scale_ fused_multiply: 1 20 300 4000\nshift_ fused_add: 1.5 2.25 3.125 4\n"), done
