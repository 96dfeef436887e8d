"""Crosses hosts and plugins of several minors of plugin.h, under AddressSanitizer: the frozen 1.0, the current header,
and a generated next one; and holds the current header to the frozen list of offsets.

labels: abi slow
timeout: 900
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABI = ROOT / "tests" / "abi"
CC = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or "clang"
MINORS = ["frozen", "current", "next"]
WARNINGS = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g"]
ASAN = ["-fsanitize=address", "-fno-omit-frame-pointer"]
# Of core/, what the loader needs; tensors have dependencies of their own.
CORE = [f for f in sorted((ROOT / "core").glob("*.c")) if not f.name.startswith(("tensor", "dlpack", "npy"))]

CORE += [*sorted((ROOT / "core" / "layers").glob("*.c")), ROOT / "plugins" / "common" / "cachefile.c",
         *sorted((ROOT / "plugins" / "common" / "check").glob("contract*.c"))]
VERSION = ['-DHEDDLE_VERSION="test"', "-DHEDDLE_HAS_PROBE=0", "-DHEDDLE_HAS_SODIUM=0"]


def script(name, *words):
    return subprocess.run([sys.executable, str(ABI / name), *map(str, words)], capture_output=True, text=True)


def compile_c(*words):
    done = subprocess.run([CC, *WARNINGS, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(*words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_") and k != "LD_PRELOAD"}
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """An include folder a minor."""
    folder = tmp_path_factory.mktemp("headers")
    where = {}
    for minor in MINORS:
        where[minor] = folder / minor
        (where[minor] / "heddle").mkdir(parents=True)
    shutil.copy(ABI / "v1.0" / "plugin.h", where["frozen"] / "heddle" / "plugin.h")
    shutil.copy(ROOT / "include" / "heddle" / "plugin.h", where["current"] / "heddle" / "plugin.h")
    done = script("gen_next.py", where["current"] / "heddle" / "plugin.h", where["next"] / "heddle" / "plugin.h")
    assert done.returncode == 0, done.stderr
    return where


@pytest.fixture(scope="module")
def plugins(headers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    for minor in MINORS:
        compile_c(*ASAN, "-shared", "-fPIC", "-I", headers[minor], ABI / "probe_plugin.c", "-o", folder / f"{minor}.so")
    return folder


def test_every_member_is_where_it_was(tmp_path):
    header = ROOT / "include" / "heddle" / "plugin.h"
    done = script("gen_offsets.py", header, "--cc", CC, "--check", ABI / "offsets.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert script("gen_offsets.py", header, "--cc", CC).stdout == (ABI / "offsets.txt").read_text()
    frozen = tmp_path / "offsets-1.0.txt"
    frozen.write_text(script("gen_offsets.py", ABI / "v1.0" / "plugin.h", "--cc", CC).stdout)
    done = script("gen_offsets.py", header, "--cc", CC, "--check", frozen)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_appended_member_is_welcome(headers):
    header = headers["next"] / "heddle" / "plugin.h"
    done = script("gen_offsets.py", header, "--cc", CC, "--check", ABI / "offsets.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    compile_c("-fsyntax-only", "-Wpadded", "-x", "c", header)


def test_a_member_in_the_middle_is_refused(tmp_path):
    header = tmp_path / "heddle" / "plugin.h"
    assert script("gen_next.py", ROOT / "include" / "heddle" / "plugin.h", header, "--middle").returncode == 0
    done = script("gen_offsets.py", header, "--cc", CC, "--check", ABI / "offsets.txt")
    assert done.returncode == 1
    for struct in ["heddle_memory_table", "heddle_host", "heddle_pdevice_desc", "heddle_poffer", "heddle_plugin"]:
        assert f"{struct}.next_1_1: is new and not at the end" in done.stdout


@pytest.fixture(scope="module")
def harnesses(headers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("harnesses")
    for minor in MINORS:
        compile_c(*ASAN, "-I", headers[minor], ABI / "harness.c", "-o", folder / minor, "-ldl")
    return folder


@pytest.mark.parametrize("host,plugin", list(itertools.product(MINORS, MINORS)))
def test_harness_and_plugin_cross(harnesses, plugins, host, plugin):
    done = run(harnesses / host, plugins / f"{plugin}.so", plugin)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.fixture(scope="module")
def hosts(headers, tmp_path_factory):
    """The real loader and its layers, built against each minor."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "jansson"], capture_output=True, text=True).stdout
    folder = tmp_path_factory.mktemp("hosts")
    for minor in MINORS:
        words = [*ASAN, "-I", headers[minor], "-I", ROOT / "include", "-I", ROOT, *VERSION]
        if "HEDDLE_EDENIED" not in (headers[minor] / "heddle" / "plugin.h").read_text():
            words.append("-DHEDDLE_EDENIED=20")  # the library's own, which no plugin of that minor gives
        (folder / minor).mkdir()
        compile_c(*words, ABI / "core_host.c", *CORE, "-o", folder / minor / "host", *flags.split(), "-lpthread", "-ldl")
    return {minor: folder / minor / "host" for minor in MINORS}


@pytest.mark.parametrize("host,plugin", list(itertools.product(MINORS, MINORS)))
def test_loader_and_plugin_cross(hosts, plugins, host, plugin):
    done = run(hosts[host], plugins / f"{plugin}.so")
    assert (done.returncode, done.stdout) == (0, "probe:0\nprobe:1\n"), done.stdout + done.stderr


def test_another_major_is_refused(headers, hosts, tmp_path):
    compile_c(*ASAN, "-shared", "-fPIC", "-DPROBE_MAJOR=2", "-I", headers["current"], ABI / "probe_plugin.c",
              "-o", tmp_path / "two.so")
    done = run(hosts["current"], tmp_path / "two.so")
    assert done.returncode == 0 and done.stdout.startswith("refused: it is written for plugin ABI 2.2")


def test_another_sanitizer_is_refused(headers, plugins, tmp_path):
    """A host without a sanitizer, and plugins with one: refused with a message, where dlopen would end the process."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "jansson"], capture_output=True, text=True).stdout
    compile_c("-I", ROOT / "include", "-I", ROOT, *VERSION, ABI / "core_host.c", *CORE, "-o", tmp_path / "plain", *flags.split(),
              "-lpthread", "-ldl")
    done = run(tmp_path / "plain", plugins / "current.so")
    assert done.returncode == 0 and "AddressSanitizer, whose runtime this process lacks" in done.stdout
    compile_c("-fsanitize=thread", "-shared", "-fPIC", "-I", headers["current"], ABI / "probe_plugin.c",
              "-o", tmp_path / "tsan.so")
    done = run(tmp_path / "plain", tmp_path / "tsan.so")
    assert done.returncode == 0 and "ThreadSanitizer, whose runtime this process lacks" in done.stdout
