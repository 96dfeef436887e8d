"""An installed prefix, and the same prefix moved: the tool, a program by pkg-config, plugins of a project of its own.

labels: slow installed
timeout: 600
"""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest

from fixtures import tvm_legacy as legacy
from tool_case import BUILD, SOURCE, environment
from tvm_graph import Call, tvm_graph

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)

ALL = sorted(str(p.relative_to(SOURCE / "include")) for p in (SOURCE / "include").rglob("*.h"))
HEADERS = [name for name in ALL if name.startswith(("heddle/", "tvm/runtime/c_"))]  # the others are C++
OURS = sorted(p.stem.removeprefix("libheddle_plugin_") for p in (BUILD / "lib/heddle/plugins").glob("libheddle_plugin_*.so"))


def call(*words, cwd=None, **env):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=cwd, timeout=300,
                          stdin=subprocess.DEVNULL, env=environment(**env))
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the prefix is after it was installed elsewhere and moved."""
    first = tmp_path_factory.mktemp("first") / "prefix"
    call("cmake", "--install", BUILD, "--prefix", first)
    assert used(first) == used(BUILD) != set()  # a plugin for a GPU may find no driver
    moved = tmp_path_factory.mktemp("moved") / "a place"
    shutil.move(first, moved)
    return moved


def devices(prefix, **env):
    return json.loads(call(prefix / "bin" / "heddle", "devices", "--all", "--json", **env))


def used(prefix):
    """The plugins that have a device here; all of ours are there."""
    plugins = devices(prefix)["plugins"]
    assert {os.path.basename(p["path"]) for p in plugins} >= {f"libheddle_plugin_{name}.so" for name in OURS}
    return {p["name"] for p in plugins if p["used"]}


def one(prefix, pattern):
    found = sorted(prefix.rglob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def flags(prefix, *words, package="heddle"):
    folder = one(prefix, f"{package}.pc").parent
    text = call("pkg-config", *words, package, PKG_CONFIG_PATH=str(folder))
    return [w.replace("\\ ", " ") for w in re.findall(r"(?:\\ |\S)+", text)]


def test_the_moved_prefix_finds_its_plugins(prefix):
    assert used(prefix) == used(BUILD)
    for plugin in devices(prefix)["plugins"]:
        assert plugin["path"].startswith(str(prefix)), plugin
    digits = SOURCE / "examples" / "digits"
    out = call(prefix / "bin" / "heddle", "run", digits / "digits.json", "--random", "--device", "cpu,sim:0")
    assert out != ""


def test_rare_operators_are_found_beside_the_rest(prefix, tmp_path):
    """What a graph knows of Cos is in one library, and its kernel in another; both are in the prefix."""
    graph = {"heddle": {"version": 1, "opset": 17}, "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
             "nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "Cos", "name": "y", "inputs": [[0, 0, 0]]}],
             "attrs": {"dltype": ["list_str", ["float32", None]], "shape": ["list_shape", [[3], None]]}}
    (tmp_path / "cos.json").write_text(json.dumps(graph))
    for device in "cpu", "sim:0":
        assert "output 0" in call(prefix / "bin" / "heddle", "run", tmp_path / "cos.json", "--random", "--device", device)
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy")
    cos = onnx.helper.make_graph([onnx.helper.make_node("Cos", ["x"], ["y"])], "cos", [x], [y])
    onnx.save(onnx.helper.make_model(cos, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "cos.onnx")
    for name in ["cos.json"] + ["cos.onnx"] * (BUILD / "onnx" / "onnx.pb-c.c").exists():
        assert "output 0" in call(prefix / "bin" / "heddle", "run", tmp_path / name, "--random")


@pytest.mark.skipif(not (BUILD / "lib/heddle/plugins/libdnnl.so.3").exists(), reason="built without oneDNN")
def test_onednn_lies_beside_its_plugin(prefix):
    """A run of convolutions opens the copy in the prefix, whatever else of that name there is on the machine."""
    plugin = one(prefix, "libheddle_plugin_cpu.so")
    assert "runpath: [$ORIGIN]" in call("readelf", "-d", plugin)
    digits = SOURCE / "examples" / "digits" / "digits.json"
    words = [prefix / "bin" / "heddle", "run", digits, "--random", "--device", "cpu,sim:0", "--place", "*=cpu"]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60,
                          env=environment(LD_DEBUG="files"))
    assert done.returncode == 0 and "output 0" in done.stdout
    opened = set(re.findall(r"calling init: (.+)", done.stderr))
    assert {p for p in opened if "dnnl" in p} == {str(plugin.parent / "libdnnl.so.3")}
    assert not [p for p in opened if ".venv" in p]


def test_a_library_that_tvm_compiled_loads_from_the_moved_prefix(prefix, tmp_path):
    """The loaders are those of the prefix; all libraries of them that were built are there."""
    names = {p.name for p in (BUILD / "lib").glob("libheddle_tvm*.so*")}
    assert "libheddle_tvm.so.0" in names and names <= {p.name for p in prefix.rglob("libheddle_tvm*")}
    if legacy.compiler() is None:
        pytest.skip("there is no C compiler to write a library with")
    twice = legacy.kernel("twice", [("x", "float32", (4,)), ("y", "float32", (4,))],
                          "for (int i = 0; i < 4; i++) y[i] = 2 * x[i];")
    library = legacy.library(tmp_path / "lib.so", "v0.14", [twice])
    (tmp_path / "g.json").write_text(tvm_graph({"x": ("float32", [4])}, [Call("twice", ["x"], [("float32", [4])])],
                                               ["twice"]))
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    words = [prefix / "bin" / "heddle", "run", "g.json", "--lib", library, "--input", "x=x.npy", "--output-dir", "."]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60, cwd=tmp_path,
                          env=environment(LD_DEBUG="files"))
    assert done.returncode == 0, done.stderr[-2000:]
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), np.arange(4) * 2)
    opened = {p for p in re.findall(r"calling init: (.+)", done.stderr) if "libheddle" in p}
    assert {os.path.realpath(p) for p in opened if "libheddle_tvm.so" in p} == {
        os.path.realpath(one(prefix, "libheddle_tvm.so.0"))}
    assert all(p.startswith(str(prefix)) for p in opened), opened


def test_nothing_in_it_names_where_it_was_built(prefix):
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h", ".c"):
            text = path.read_text()
            assert str(BUILD) not in text and str(SOURCE) not in text and "first0" not in text, path


def test_only_the_library_s_names_are_installed(prefix):
    library = one(prefix, "libheddle.so")
    assert library.is_symlink()
    dynamic = call("readelf", "-d", library)
    assert "[libheddle.so.0]" in dynamic
    assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
    assert not list(prefix.rglob("*_internal*"))
    assert [p.name for p in prefix.rglob("*.a")] == ["libheddle.a"]


@pytest.mark.parametrize("header", HEADERS)
def test_headers_stand_alone(prefix, header, tmp_path):
    (tmp_path / "unit.c").write_text(f"#include <{header}>\ntypedef int nothing;\n")
    call("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", *flags(prefix, "--cflags"),
         tmp_path / "unit.c")


def test_headers_in_cpp(prefix, tmp_path):
    """All of them, with exceptions and without."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    found = sorted(str(p.relative_to(prefix / "include")) for p in (prefix / "include").rglob("*.hpp"))
    assert {"heddle/heddle.hpp", "heddle/function.hpp", "heddle/cpp/tensor.hpp"} <= set(found)
    (tmp_path / "unit.cpp").write_text("".join(f"#include <{header}>\n" for header in found))
    for more in ([], ["-fno-exceptions", "-fno-rtti"]):
        call("c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *more, "-fsyntax-only",
             *flags(prefix, "--cflags"), tmp_path / "unit.cpp")


def test_programs_of_tvm_s_c_plus_plus_runtime(prefix, tmp_path):
    """The headers in C++14, and examples/tvm-cpp by its Makefile; with TVM's runtime as one file, too."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    found = {str(p.relative_to(prefix / "include")) for p in (prefix / "include").rglob("*.h")}
    assert set(ALL) <= found and "tvm/runtime/detail/handle.h" in ALL
    (tmp_path / "unit.cpp").write_text("".join(f"#include <{name}>\n" for name in ALL if name not in HEADERS))
    call("c++", "-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
         *flags(prefix, "--cflags", package="heddle_tvm"), tmp_path / "unit.cpp")
    folder = one(prefix, "heddle_tvm.pc").parent
    shutil.copytree(prefix / "share/heddle/examples/tvm-cpp", tmp_path / "tvm-cpp")
    call("make", "-C", tmp_path / "tvm-cpp", f"PKG_CONFIG_PATH={folder}", "STD=c++14", PKG_CONFIG_PATH=str(folder))
    from test_tvm_cpp import check_addone
    for name in ("cpp_deploy_normal", "cpp_deploy_pack"):
        check_addone(tmp_path / "tvm-cpp" / name, tmp_path)


def test_the_manual_and_the_completion(prefix):
    assert ".TH HEDDLE 1" in (prefix / "share/man/man1/heddle.1").read_text()
    assert "complete -o default" in (prefix / "share/bash-completion/completions/heddle").read_text()


@pytest.mark.parametrize("example", ["first", "overlap"])
def test_pkg_config_builds_the_examples(prefix, example, tmp_path):
    program = tmp_path / example
    libs = flags(prefix, "--libs")
    folder = next(w[2:] for w in libs if w.startswith("-L"))
    call("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", *flags(prefix, "--cflags"),
         SOURCE / "examples" / f"{example}.c", "-o", program, *libs, f"-Wl,-rpath,{folder}", "-lm")
    assert call(program, cwd=SOURCE) != ""


def test_a_makefile_links_models_into_a_program(prefix, tmp_path):
    shutil.copytree(SOURCE / "examples" / "system-lib", tmp_path / "example")
    call("make", "-C", tmp_path / "example", f"PKG_CONFIG_PATH={one(prefix, 'heddle.pc').parent}",
         PKG_CONFIG_PATH=str(one(prefix, "heddle.pc").parent))
    assert "scale_ fused_multiply: 1 20 300 4000\n" in call(tmp_path / "example" / "system-lib")
def run_net(program, folder):
    """A program of TVM's C API gives what numpy computed."""
    from test_tvm_c_api import check, net
    net.write(folder)
    check(program, folder)


def test_pkg_config_builds_a_program_of_tvm_s_api(prefix, tmp_path):
    program = tmp_path / "tvm-c-api"
    libs = flags(prefix, "--libs", package="heddle_tvm")
    assert libs[-2:] == ["-lheddle_tvm", "-lheddle"], libs
    folder = next(w[2:] for w in libs if w.startswith("-L"))
    for compiler, words in (("cc", ["-std=c11"]), ("c++", ["-std=c++17", "-x", "c++"])):
        if shutil.which(compiler) is None:
            continue
        call(compiler, *words, "-Wall", "-Wextra", "-Werror", *flags(prefix, "--cflags", package="heddle_tvm"),
             SOURCE / "examples/tvm-c-api/main.c", "-x", "none", "-o", program, *libs, f"-Wl,-rpath,{folder}")
        run_net(program, tmp_path / compiler)


def test_what_the_headers_name_is_installed(prefix):
    """docs/, examples/ and conformance/kit.h lie in share/heddle; the headers name no other file."""
    home = prefix / "share" / "heddle"
    headers = [p for p in (prefix / "include" / "heddle").rglob("*.h*")]
    named = {(p.name, name) for p in headers
             for name in re.findall(r"\b(?:docs|examples|conformance|tests|plugins)/[\w./-]*\w", p.read_text())}
    assert {"docs/plugin-guide.md", "docs/abi.md"} <= {name for header, name in named if header == "plugin.h"}
    assert not [one for one in named if not (home / one[1]).exists()]
    assert {p.name for p in (home / "docs").rglob("*.md")} == {p.name for p in (SOURCE / "docs").rglob("*.md")}
    for name in ("plugin-npu", "plugin-cpp", "digits", "go", "python", "first.c"):
        assert (home / "examples" / name).exists(), name
    call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags(prefix, "--cflags"), f"-I{home}",
         "-x", "c", home / "conformance" / "kit.h")


def test_plugin_npu_builds_from_the_installed_files(prefix, tmp_path):
    call("cmake", "-S", prefix / "share/heddle/examples/plugin-npu", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path, "--parallel", "2")
    folder = next(tmp_path.rglob("libheddle_plugin_npu.so")).parent
    assert "npu:0" in call(prefix / "bin" / "heddle", "devices", HEDDLE_PLUGIN_PATH=str(folder))


MINE = """
cmake_minimum_required(VERSION 3.20)
project(mine C)
find_package(heddle REQUIRED)
heddle_plugin(mine SOURCES plugin.c)
heddle_plugin(kernels SOURCES kernels.c COMMON)
heddle_plugin(texts SOURCES texts.c GPU)
add_executable(first first.c)
target_link_libraries(first PRIVATE heddle::heddle)
add_executable(tvm main.c)
target_link_libraries(tvm PRIVATE heddle::heddle_tvm)
"""

# A plugin that has the shared kernels compiled in: it says how many operators they know, and that is all it does.
KERNELS = """
#include <stdio.h>
#include "plugins/common/perror.h"
#include "plugins/common/ref/ref.h"
static heddle_status count(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                           const char *dtypes, heddle_error *err) {
  (void)domain, (void)op, (void)first, (void)last, (void)dtypes, (void)err;
  ++*(int *)sink;
  return HEDDLE_OK;
}
const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  int n = 0;
  (void)host;
  if (ref_list(count, &n, NULL) == HEDDLE_OK)
    p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the shared kernels are here: %d operators", n);
  return NULL;
}
"""

# One that has the device kernels and what the plugins of GPUs share (GPU is KERNELS and that): it says how many operators
# have a plan, and that the tables for a driver are there.
TEXTS = """
#include <string.h>
#include "plugins/common/gpu/gpu.h"
#include "plugins/common/kernels/plan.h"
#include "plugins/common/perror.h"
static heddle_status count(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                           const char *dtypes, heddle_error *err) {
  (void)domain, (void)op, (void)first, (void)last, (void)dtypes, (void)err;
  ++*(int *)sink;
  return HEDDLE_OK;
}
const heddle_plugin *heddle_plugin_entry(const heddle_host *host, heddle_error *err) {
  const k_text *text = k_text_find("elementwise");
  int n = 0;
  (void)host;
  if (text != NULL && strlen(text->text) == text->bytes && strstr(text->text, "KERNEL") != NULL &&
      k_text_find("prelude") != NULL && k_text_find("params") != NULL && k_plan_list(count, &n, NULL) == HEDDLE_OK &&
      gpu_device_table.open != NULL && gpu_op_table.run != NULL)
    p_fail(err, HEDDLE_EUNSUPPORTED, 0, "the device kernels are here: %d operators", n);
  return NULL;
}
"""


@pytest.fixture(scope="module")
def project(prefix, tmp_path_factory):
    """A project of a user's own, built against the moved prefix; gives its build folder."""
    source = tmp_path_factory.mktemp("project")
    text = (SOURCE / "plugins" / "null" / "plugin.c").read_text()
    (source / "plugin.c").write_text(text.replace('"null"', '"mine"'))
    (source / "kernels.c").write_text(KERNELS)
    (source / "texts.c").write_text(TEXTS)
    (source / "CMakeLists.txt").write_text(MINE)
    shutil.copy(SOURCE / "examples" / "first.c", source)
    shutil.copy(SOURCE / "examples" / "tvm-c-api" / "main.c", source)
    call("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
         "-DCMAKE_C_FLAGS=-Wall -Werror")
    call("cmake", "--build", source / "build")
    return source / "build"


def test_a_plugin_of_one_s_own_is_used(prefix, project):
    folder = project / "lib" / "heddle" / "plugins"
    listed = devices(prefix, HEDDLE_PLUGIN_PATH=str(folder))
    plugins = {p["path"]: p for p in listed["plugins"]}
    mine = plugins[str(folder / "libheddle_plugin_mine.so")]
    assert mine["used"] and mine["name"] == "mine"
    assert "mine:0" in [d["name"] for d in listed["devices"]]
    refused = plugins[str(folder / "libheddle_plugin_kernels.so")]
    assert not refused["used"]
    count = re.search(r"the shared kernels are here: (\d+) operators", refused["reason"])
    assert count and int(count[1]) >= 12
    refused = plugins[str(folder / "libheddle_plugin_texts.so")]
    count = re.search(r"the device kernels are here: (\d+) operators", refused["reason"])
    assert count and int(count[1]) >= 12, refused


def test_a_plugin_exports_one_symbol(project):
    for path in (project / "lib" / "heddle" / "plugins").glob("*.so"):
        names = [line.split()[-1] for line in call("nm", "-D", "--defined-only", path).splitlines()]
        assert names == ["heddle_plugin_entry"], path


def test_a_plugin_installs_beside_the_others(prefix, project, tmp_path):
    copy = tmp_path / "prefix"
    shutil.copytree(prefix, copy, symlinks=True)
    call("cmake", "--install", project, "--prefix", copy)
    names = {p["name"] for p in devices(copy)["plugins"] if p["used"]}
    assert names == used(BUILD) | {"mine"}


def test_a_program_by_find_package_runs(project):
    assert call(project / "first", cwd=SOURCE) != ""


def test_a_program_of_tvm_s_api_by_find_package_runs(project, tmp_path):
    run_net(project / "tvm", tmp_path)


def test_onnx_models_are_read_from_the_moved_prefix(prefix, tmp_path):
    if not (BUILD / "onnx" / "onnx.pb-c.c").exists():
        pytest.skip("the reader of ONNX models is not built")
    model = SOURCE / "tests" / "fuzz" / "data" / "onnx" / "softmax9.onnx"
    assert "Softmax 1" in call(prefix / "bin" / "heddle", "info", model, cwd=tmp_path)


def test_one_library_holds_all_but_what_has_an_abi_of_its_own(prefix):
    names = {p.name.split(".so")[0] for p in one(prefix, "libheddle.so").parent.glob("libheddle*.so*")}
    assert names <= {"libheddle", "libheddle_mpi", "libheddle_ort_ep", "libheddle_rpc", "libheddle_tvm",
                     "libheddle_tvm_cxx", "libheddle_tvm_cxx_v08", "libheddle_tvm_ffi"}, names
