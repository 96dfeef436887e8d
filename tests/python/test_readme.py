"""The README's example: it is a part of examples/first.c, which compiles as a user would compile it, and runs."""

import os
import re
import runpy
import shutil
import subprocess
import textwrap

import pytest
from tool_case import BUILD, SOURCE, environment

README = (SOURCE / "README.md").read_text()
FIRST = SOURCE / "examples" / "first.c"


def test_it_is_the_example():
    blocks = re.findall(r"^```c\n(.*?)^```$", README, re.M | re.S)
    assert len(blocks) == 1 and len(blocks[0].splitlines()) <= 16
    assert textwrap.indent(blocks[0], "  ") in FIRST.read_text()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_it_compiles_and_runs(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if os.environ.get("HEDDLE_SANITIZE"):
        pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks")
    words = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "first", FIRST,
             f"-I{SOURCE}/include", f"-L{BUILD}/lib", "-lheddle", f"-Wl,-rpath,{BUILD}/lib"]
    made = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(tmp_path / "first")], capture_output=True, text=True, cwd=SOURCE, timeout=60,
                          env=environment())
    assert done.returncode == 0 and "%" in done.stdout and done.stderr == "", done


def test_files_that_it_names_are_there():
    for path in set(re.findall(r"`((?:scripts|docs|examples|include)/[\w./-]*)`", README)):
        assert (SOURCE / path).exists(), path
    for word in ("scripts/demo", "scripts/test"):
        assert word in README and os.access(SOURCE / word, os.X_OK)


def test_the_commands_are_run_by_ci():
    """A block of shell holds commands that .ci/readme runs, or that have a stage of their own in .ci/run."""
    ci = (SOURCE / ".ci" / "run").read_text()
    runner = runpy.run_path(str(SOURCE / ".ci" / "readme"))
    ran = list(runner["commands"]("/prefix"))
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S):
        for line in block.splitlines():
            command = line.split("#")[0].strip().replace("DIR", "/prefix")
            assert command in ran or command in runner["ELSEWHERE"], command
    assert ".ci/readme" in ci and all(f"{command} " in ci for command in runner["ELSEWHERE"])
