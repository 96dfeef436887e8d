"""docs/plugin-guide.md and docs/plugin-guide-2.md, done as they say: their files are written, their commands run in their order
against an installation, outside the tree, and what they say is printed is looked for.
labels: slow
timeout: 900
"""

import os
import re
import shutil
import subprocess

import pytest
from installed import exports, prefix
from tool_case import BUILD, SOURCE, environment

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)

DOCS = SOURCE / "docs"
BLOCK = re.compile(r"(?:^<!-- (file|from): (\S+) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
NPU = SOURCE / "examples" / "plugin-npu"


def run(text, folder, home):
    """One block of commands, in one shell, which stops at the first that fails."""
    env = environment(PREFIX=str(home), PATH=f"{home / 'bin'}:{os.environ['PATH']}", CMAKE_BUILD_TYPE="Debug",
                      PKG_CONFIG_PATH=str(next(home.rglob("heddle.pc")).parent), CFLAGS="-Werror",
                      DIGITS=str(folder / "digits.json"), HEDDLE_PLUGIN_PATH=str(folder / "build/lib/heddle/plugins"))
    done = subprocess.run(["sh", "-e", "-c", text], cwd=folder, env=env, capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def done_as_it_says(page, tmp_path):
    """Lines of a text block stand in the output of the commands before it, in that order; blocks "from" a file are quoted
    from the example's. Gives how many blocks ran."""
    home, blocks, printed = prefix(), BLOCK.findall((DOCS / page).read_text()), None
    for name in ("digits.json", "digits.params"):
        shutil.copy(SOURCE / "examples" / "digits" / name, tmp_path)
    ran = 0
    for kind, name, language, text in blocks:
        if kind == "from":
            assert text in (NPU / name).read_text(), f"{name} does not have\n{text}"
        elif language == "text":
            at = 0
            for line in text.splitlines():
                assert line in printed[at:], f"{line!r} is not in\n{printed}"
                at = printed.index(line, at) + len(line)
        elif language == "sh":
            printed = run(text, tmp_path, home)
            ran += 1
        else:
            assert name, f"a block of {language} has no name of a file: {text[:60]}"
            (tmp_path / name).write_text(text)
    built = "".join(p.read_text() for p in (tmp_path / "build").rglob("flags.make")).replace(str(home), "")
    assert built and str(SOURCE) not in built and str(BUILD) not in built
    return ran


def test_the_guide_does_what_it_says(tmp_path):
    assert done_as_it_says("plugin-guide.md", tmp_path) == 5
    library = tmp_path / "build/lib/heddle/plugins/libheddle_plugin_mine.so"
    assert exports(library) == exports(tmp_path / "plain/libheddle_plugin_mine.so") == ["heddle_plugin_entry"]


def test_the_second_chapter_does_what_it_says(tmp_path):
    """An asynchronous device in less than 300 lines, which passes the kit."""
    assert done_as_it_says("plugin-guide-2.md", tmp_path) == 4
    lines = sum(len((tmp_path / name).read_text().splitlines()) for name in ("far.h", "driver.c", "plugin.c"))
    assert lines < 300, lines
