"""Parts that a build may leave out, a minimal static program, plugins that are linked in, and libraries of two builds.

labels: slow
timeout: 900"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from tool_case import BUILD, SOURCE, TOOL

STATIC = SOURCE / "examples" / "static"
DIGITS = SOURCE / "examples" / "digits"
OBJECTS = BUILD / "CMakeFiles" / "heddle_objects.dir"
JANSSON = os.environ.get("HEDDLE_JANSSON_SOURCE", str(SOURCE / ".venv" / "src" / "jansson"))
MOST_BYTES = 300_000  # the limit of scripts/bench size
SYSTEM_JANSSON = 20_480  # what Debian's libjansson.a adds to it: whole objects, with unwind tables
ROOMS = {"BATCH": "batch/", "BUDGET": "executor/budget/", "CONTROL": "executor/control/", "EXPLAIN": "executor/explain/", "GENERATE": "generate/", "LAYERS": "core/layers/",
         "ONNX": "frontends/onnx/", "OPTIMIZE": "graph/optimize/", "PLACE": "executor/place/", "PROBE": "core/probe/",
         "RARE_OPERATORS": "graph/general/", "ROUTES": "executor/routes/", "SODIUM": "core/sign/", "SURVIVE": "executor/survive/",
         "WEIGHTS": "executor/weights/"}

pytestmark = pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="static libraries have no sanitizers")


def call(*words, status=0, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=800, **options)
    assert done.returncode == status, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_") and k != "LD_PRELOAD"}
    return {**kept, "HEDDLE_PROBE": "off", **more}


def build(folder, *options):
    call("cmake", "-S", STATIC, "-B", folder, "-G", "Ninja", *options)
    call("cmake", "--build", folder, "--target", "digits")
    return folder


def has_onnx():
    return (BUILD / "onnx" / "onnx.pb-c.c").exists()


# ---- parts

def symbols(which):
    """{object: names} of the library's objects."""
    found = {}
    for path in OBJECTS.rglob("*.o"):
        text = call("nm", "-g", f"--{which}-only", path)
        found[str(path.relative_to(OBJECTS))[:-2]] = {line.split()[-1] for line in text.splitlines() if line.strip()}
    return found


def test_public_functions_stay_without_their_part():
    """A public function that a part defines has a second definition outside of it."""
    if not OBJECTS.is_dir():
        pytest.skip("the objects are not built")
    public = set((SOURCE / "tests" / "abi" / "public-symbols.txt").read_text().split())
    texts = {str(p.relative_to(SOURCE)): p.read_text() for room in ("core", "executor", "graph") for p in (SOURCE / room).rglob("*.c")}
    defined, seen = symbols("defined"), 0
    for part, room in ROOMS.items():
        outside = "".join(text for path, text in texts.items() if not path.startswith(room))
        for name in sorted(public & set().union(*(names for path, names in defined.items() if path.startswith(room)))):
            seen += 1
            assert re.search(rf"^[\w *]+\b{name}\([^;{{]*\) {{", outside, re.MULTILINE), (part, name)
    assert seen > 20


def test_only_the_place_of_use_knows_a_part():
    """What calls into a part has a version without it: so that each option alone builds, and any of them together."""
    if not OBJECTS.is_dir():
        pytest.skip("the objects are not built")
    defined, used = symbols("defined"), symbols("undefined")
    for part, room in ROOMS.items():
        inside = [o for o in defined if o.startswith(room)]
        if not inside and part != "SODIUM" and not (part == "ONNX" and not has_onnx()):
            pytest.skip("this build leaves parts out")
        names = set().union(*(defined[o] for o in inside)) if inside else set()
        for other, wanted in used.items():
            if other.startswith(tuple([room, "onnx/"])) or not wanted & names:
                continue
            text = (SOURCE / other).read_text()
            stub = SOURCE / {"EXPLAIN": "executor/explain.c", "PLACE": "executor/place_hop.c", "SODIUM": "core/sign_left_out.c",
                             "WEIGHTS": "executor/weights.c"}.get(part, other)
            if all(re.search(r"\b" + n + r"\(", stub.read_text()) for n in wanted & names):
                continue  # it has another definition there
            text += "".join((SOURCE / h).read_text() for h in re.findall(r'#include "([\w/]+\.h)"', text)
                            if (SOURCE / h).exists())
            assert f"HEDDLE_HAS_{part}" in text, (other, part, wanted & names)


PARTS = sorted({*re.findall(r"^heddle_part\((\w+)", (SOURCE / "cmake" / "parts.cmake").read_text(), re.MULTILINE), *ROOMS})


def sources():
    for room in ("batch", "core", "executor", "generate", "graph", "modules", "plugins/common", "plugins/cpu"):
        yield from (SOURCE / room).rglob("*.c")


@pytest.mark.parametrize("part", PARTS)
def test_a_build_without_it_compiles(part):
    """The files that know the part, compiled without it."""
    files = [f for f in sources() if re.search(rf"HEDDLE_(HAS|NO)_{part}\b", f.read_text())]
    if part == "STREAMS":  # known in headers
        files += [SOURCE / f for f in ("executor/run.c", "executor/executor.c")]
    if part == "RARE_OPERATORS":
        files = [SOURCE / f for f in ("graph/opschema.c", "graph/validate.c", "executor/fold.c")]
    assert files
    flags = call("pkg-config", "--cflags", "jansson").split()
    for file in files:
        call("cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
             f"-DHEDDLE_HAS_{part}=0", f"-DHEDDLE_NO_{part}", '-DHEDDLE_VERSION="0"', '-DHEDDLE_TVM_LAYOUT="0"', "-I", SOURCE, "-I",
             SOURCE / "include", *flags, file)


# ---- a minimal static program: all parts are left out

@pytest.fixture(scope="module")
def minimal(tmp_path_factory):
    jansson = [f"-DHEDDLE_JANSSON_SOURCE={JANSSON}"] if pathlib.Path(JANSSON).is_dir() else []
    return build(tmp_path_factory.mktemp("minimal"), "-DMINIMAL=ON", "-DSHARED_LIBC=ON", *jansson)


def test_a_minimal_program_reads_the_digits(minimal):
    text = call(minimal / "digits", DIGITS, env=environment())
    assert text == "linked in: cpu, used\n355 of 360 digits are right\n"


def test_a_minimal_program_is_small(minimal):
    call("strip", "-o", minimal / "stripped", minimal / "digits")
    assert (minimal / "stripped").stat().st_size <= MOST_BYTES + (0 if pathlib.Path(JANSSON).is_dir() else SYSTEM_JANSSON)


def write_program(minimal, tmp_path, body):
    (tmp_path / "main.c").write_text('''#include <stdio.h>
#include "heddle/heddle.h"
const struct heddle_plugin *heddle_plugin_cpu_entry(const struct heddle_host *host, heddle_error *err);
int main(void) {
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  heddle_model *model = NULL;
  heddle_status s = heddle_plugin_register(heddle_plugin_cpu_entry, &err);
  ''' + body + '''
  (void)s, (void)model;
  printf("%d %s\\n", (int)s, err.text);
  return 0;
}
''')
    lib = minimal / "heddle" / "lib"
    jansson = lib / "libheddle_jansson.a"
    call("cc", "-no-pie", "-I", SOURCE / "include", tmp_path / "main.c", lib / "libheddle_plugin_cpu.a", lib / "libheddle.a",
         jansson if jansson.exists() else "-ljansson", "-lm", "-pthread", "-o", tmp_path / "main")
    return call(tmp_path / "main", env=environment(), cwd=tmp_path)


@pytest.mark.parametrize("settings, options, words", [
    ('{"layers", "check"}', "", "layers, which the setting 'layers' asks for (built with HEDDLE_LAYERS=OFF)"),
    ("", '.optimize = "on"', "optimisations (built with HEDDLE_OPTIMIZE=OFF)"),
    ("", '.place = (const char *const[]){"auto"}, .n_place = 1', "automatic placement (built with HEDDLE_PLACE=OFF)"),
    ("", '.memory = "cpu=1MiB"', "limits on memory (built with HEDDLE_BUDGET=OFF)"),
    ('{"config", "/heddle.json"}', "", "configuration files, which the setting 'config' names (built with HEDDLE_CONFIG=OFF)"),
    ("", '.dims = (const char *const[]){"n=1"}, .n_dims = 1',
     "numbers for dimensions of graphs (built with HEDDLE_DIMENSIONS=OFF)"),
    ("", ".in_flight = 2", "executors with several runs in flight (built with HEDDLE_IN_FLIGHT=OFF)"),
    ("", '.state = "a:b"', "state values (built with HEDDLE_STATE=OFF)"),
    ("", '.on_failure = "retry"', "retry and failover of failed runs (built with HEDDLE_SURVIVE=OFF)"),
])
def test_what_is_left_out_is_reported_where_it_is_used(minimal, tmp_path, settings, options, words):
    settings = settings or '{"log", "off"}'
    known = (SOURCE / "include" / "heddle" / "model.h").read_text()
    member = re.match(r"\.(\w+)", options or ".size")
    if options and not re.search(r"\b" + member.group(1) + r"\b", known):
        pytest.fail(f"heddle_model_options has no {member.group(1)}")
    text = write_program(minimal, tmp_path, f'''
  const heddle_setting settings[] = {{{settings}}};
  heddle_model_options options = {{.struct_size = sizeof options, .devices = "cpu"{", " + options if options else ""}}};
  options.flags = HEDDLE_MODEL_IGNORE_ANNOTATIONS;
  if (s == HEDDLE_OK) s = heddle_context_create(settings, 1, NULL, NULL, &ctx, &err);
  if (s == HEDDLE_OK) s = heddle_model_load(ctx, "{DIGITS}/digits.json", NULL, &options, &model, &err);
  heddle_executor *executor = NULL;
  if (s == HEDDLE_OK) s = heddle_executor_create(model, &executor, &err);''')
    assert "this build of Heddle has no " + words in text


def test_files_that_need_a_part_say_which(minimal, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\0")
    (tmp_path / "lib.so").write_bytes(b"\0")
    (tmp_path / "packed.heddle").write_bytes(b"\x89HDLPK\r\n" + bytes(120))
    text = write_program(minimal, tmp_path, '''
  heddle_module *module = NULL;
  if (s == HEDDLE_OK) s = heddle_context_create(NULL, 0, NULL, NULL, &ctx, &err);
  if (s == HEDDLE_OK) s = heddle_model_load(ctx, "m.onnx", NULL, NULL, &model, &err);
  puts(err.text);
  s = heddle_model_load(ctx, "packed.heddle", NULL, NULL, &model, &err);
  puts(err.text);
  s = heddle_trace_begin(ctx, &err);
  puts(err.text);
  s = heddle_module_load(ctx, "lib.so", &module, &err);''')
    text += write_program(minimal, tmp_path, """
  heddle_batcher *b;
  if (s == HEDDLE_OK) s = heddle_batcher_create(NULL, NULL, &b, &err);""")
    text += write_program(minimal, tmp_path, "if (s == HEDDLE_OK) s = heddle_executor_use_stream(NULL, NULL, 0, &err);")
    text += write_program(minimal, tmp_path, "if (s == HEDDLE_OK) s = heddle_tensor_after_stream(NULL, 0, &err);")
    assert text.count("no streams of callers (built with HEDDLE_STREAMS=OFF)") == 2
    assert "no batchers (built with HEDDLE_BATCH=OFF)" in text
    assert "no reader of ONNX models (built with HEDDLE_ONNX=OFF)" in text
    assert "no reader of packages (built with HEDDLE_PACKAGES=OFF)" in text
    assert "no profiles and traces (built with HEDDLE_PROFILE=OFF)" in text
    assert "no loaders of compiled libraries (built with HEDDLE_TVM=OFF)" in text


# ---- linked in, as the tool lists it

def test_the_tool_lists_it_as_linked_in(tmp_path):
    """A library that the tool is started with registers a plugin, as a program that it is linked into would."""
    (tmp_path / "lib.c").write_text('''#include <dlfcn.h>
#include <string.h>
#include "heddle/heddle.h"
__attribute__((constructor)) static void add(void) {
  heddle_plugin_entry_fn entry;
  void *symbol = dlsym(dlopen("PLUGIN", RTLD_NOW | RTLD_LOCAL), "heddle_plugin_entry");
  memcpy(&entry, &symbol, sizeof entry);
  heddle_plugin_register(entry, 0);
}
'''.replace("PLUGIN", str(BUILD / "lib/heddle/plugins/libheddle_plugin_null.so")))
    call("cc", "-shared", "-fPIC", "-I", SOURCE / "include", tmp_path / "lib.c", "-L", BUILD / "lib", "-lheddle", "-ldl",
         "-o", tmp_path / "lib.so")
    env = environment(HEDDLE_PLUGINS="off", LD_PRELOAD=str(tmp_path / "lib.so"), LD_LIBRARY_PATH=str(BUILD / "lib"))
    plugins = json.loads(call(TOOL, "devices", "--json", env=env))["plugins"]
    assert [(p["name"], p["path"], p["found_by"], p["used"]) for p in plugins] == [("null", "linked in", "linked in", True)]
    assert "linked in\n    found: linked in\n    used: null" in call(TOOL, "devices", "--all", env=env)


# ---- two builds

def test_libheddle_tvm_of_another_build_is_refused(tmp_path):
    """The two have a hash of what crosses between them; one byte of it is changed in a copy."""
    for folder in "bin", "lib":
        (tmp_path / folder).mkdir()
    shutil.copy(TOOL, tmp_path / "bin" / "heddle")
    for name in "libheddle.so.0", "libheddle_tvm.so.0":
        shutil.copy(BUILD / "lib" / name, tmp_path / "lib" / name)
    if not (BUILD / "lib" / "libheddle_tvm.so.0").exists():
        pytest.skip("libheddle_tvm is not built")
    library = tmp_path / "lib" / "libheddle_tvm.so.0"
    other = tmp_path / "other.so"
    call("cc", "-shared", "-x", "c", "/dev/null", "-o", other)
    words = [tmp_path / "bin" / "heddle", "info", other]
    env = environment(LD_LIBRARY_PATH=str(tmp_path / "lib"), HEDDLE_PLUGINS="off")
    layout = re.search(rb"\0([0-9a-f]{16})\0", library.read_bytes()).group(1)
    assert layout in (tmp_path / "lib" / "libheddle.so.0").read_bytes()
    before = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=env)
    assert "of another build" not in before.stderr
    library.write_bytes(library.read_bytes().replace(layout, b"0123456789abcdef"))
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "it is of another build than libheddle" in done.stderr, done
    assert "0123456789abcdef" in done.stderr and layout.decode() in done.stderr
