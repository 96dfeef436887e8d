"""An installed prefix, and the same prefix moved: the tool, a program by pkg-config, plugins of a project of its own.

labels: slow
timeout: 600
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from tool_case import BUILD, SOURCE, environment

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)

HEADERS = sorted(p.name for p in (SOURCE / "include" / "heddle").glob("*.h"))
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
    there = devices(first)
    assert {p["name"] for p in there["plugins"] if p["used"]} == set(OURS)
    moved = tmp_path_factory.mktemp("moved") / "a place"
    shutil.move(first, moved)
    return moved


def devices(prefix, **env):
    return json.loads(call(prefix / "bin" / "heddle", "devices", "--all", "--json", **env))


def one(prefix, pattern):
    found = sorted(prefix.rglob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def flags(prefix, *words):
    folder = one(prefix, "heddle.pc").parent
    text = call("pkg-config", *words, "heddle", PKG_CONFIG_PATH=str(folder))
    return [w.replace("\\ ", " ") for w in re.findall(r"(?:\\ |\S)+", text)]


def test_the_moved_prefix_finds_its_plugins(prefix):
    plugins = {p["name"]: p for p in devices(prefix)["plugins"] if p["used"]}
    assert set(plugins) == set(OURS)
    for plugin in plugins.values():
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
    lost = one(prefix, "libheddle_ops.so.0")
    lost.rename(tmp_path / "elsewhere")
    words = [prefix / "bin" / "heddle", "run", tmp_path / "cos.json", "--random"]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60, env=environment())
    (tmp_path / "elsewhere").rename(lost)
    assert done.returncode == 1 and "Cos" in done.stderr and "libheddle_ops.so.0 is not beside" in done.stderr


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
    assert not list(prefix.rglob("*_internal*")) and not list(prefix.rglob("*.a"))


@pytest.mark.parametrize("header", HEADERS)
def test_headers_stand_alone(prefix, header, tmp_path):
    (tmp_path / "unit.c").write_text(f"#include <heddle/{header}>\ntypedef int nothing;\n")
    call("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", *flags(prefix, "--cflags"),
         tmp_path / "unit.c")


@pytest.mark.parametrize("example", ["first", "overlap"])
def test_pkg_config_builds_the_examples(prefix, example, tmp_path):
    program = tmp_path / example
    libs = flags(prefix, "--libs")
    folder = next(w[2:] for w in libs if w.startswith("-L"))
    call("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", *flags(prefix, "--cflags"),
         SOURCE / "examples" / f"{example}.c", "-o", program, *libs, f"-Wl,-rpath,{folder}", "-lm")
    assert call(program, cwd=SOURCE) != ""


MINE = """
cmake_minimum_required(VERSION 3.20)
project(mine C)
find_package(heddle REQUIRED)
heddle_plugin(mine SOURCES plugin.c)
heddle_plugin(kernels SOURCES kernels.c COMMON)
heddle_plugin(texts SOURCES texts.c KERNELS)
add_executable(first first.c)
target_link_libraries(first PRIVATE heddle::heddle)
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

# One that has the device kernels: it says what their elementwise text is about, and how many operators have a plan.
TEXTS = """
#include <string.h>
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
      k_text_find("prelude") != NULL && k_text_find("params") != NULL && k_plan_list(count, &n, NULL) == HEDDLE_OK)
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
    used = {p["name"] for p in devices(copy)["plugins"] if p["used"]}
    assert used == set(OURS) | {"mine"}


def test_a_program_by_find_package_runs(project):
    assert call(project / "first", cwd=SOURCE) != ""


def test_the_guide_s_project_builds(prefix, tmp_path):
    """docs/plugin-guide.md's CMake lines, with a file for each source that they name."""
    blocks = re.findall(r"^```cmake\n(.*?)^```$", (SOURCE / "docs" / "plugin-guide.md").read_text(), re.M | re.S)
    (tmp_path / "CMakeLists.txt").write_text(blocks[0])
    sources = re.findall(r"\b\w+\.c\b", blocks[0])
    for name in sources:
        (tmp_path / name).write_text("typedef int nothing;\n")
    text = (SOURCE / "plugins" / "null" / "plugin.c").read_text()
    (tmp_path / "plugin.c").write_text(text.replace('"null"', '"mine"'))
    call("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build")
    folder = re.search(r"HEDDLE_PLUGIN_PATH=\$PWD(/\S+)", (SOURCE / "docs" / "plugin-guide.md").read_text())[1]
    listed = devices(prefix, HEDDLE_PLUGIN_PATH=f"{tmp_path}{folder}")
    assert any(p["used"] and p["name"] == "mine" for p in listed["plugins"])
