"""The README's example: it is examples/first.c, it compiles as a user would compile it, and it runs."""

import os
import re
import shutil
import subprocess

import pytest
from tool_case import BUILD, SOURCE, environment


def snippet():
    blocks = re.findall(r"^```c\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 1
    return blocks[0]


def test_it_is_the_example():
    source = (SOURCE / "examples" / "first.c").read_text()
    without_comment = re.sub(r"\A/\*.*?\*/\s*", "", source, flags=re.S)
    assert without_comment == snippet()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_it_compiles_and_runs(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "snippet.c").write_text(snippet())
    words = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "snippet", tmp_path / "snippet.c",
             f"-I{SOURCE}/include", f"-L{BUILD}/lib", "-lheddle", "-lm", f"-Wl,-rpath,{BUILD}/lib"]
    if "HEDDLE_SANITIZE" in os.environ:
        pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks")
    made = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(tmp_path / "snippet")], capture_output=True, text=True, cwd=SOURCE, timeout=60,
                          env=environment())
    assert done.returncode == 0 and done.stdout != "" and done.stderr == "", done


def test_commands_and_files_that_it_names_are_there():
    text = (SOURCE / "README.md").read_text()
    for path in set(re.findall(r"`?((?:scripts|docs|examples)/[\w./-]+\w)`?", text)):
        assert (SOURCE / path).exists(), path
