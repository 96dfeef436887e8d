"""The code of docs/c.md and docs/cpp.md: the first block of a page is the head of a program, the others are what it does;
it compiles without a warning, runs from the repository's root, and prints what the page makes the reader expect.
labels: slow
timeout: 300
"""
import os
import re
import shutil
import subprocess

import pytest
from tool_case import BUILD, SOURCE, environment

if os.environ.get("HEDDLE_SANITIZE"):
    pytest.skip("the library is built with a sanitizer, whose run time a plain program lacks", allow_module_level=True)

PAGES = {
    "c": ("c.md", ["gcc", "-std=c11", "-x", "c"],
          ["this is a 1", "HEDDLE_EIO: nowhere.npy: ", "sim:1", "cpu:0"]),
    "cpp": ("cpp.md", ["g++", "-std=c++17", "-x", "c++"],
            ["this is a 1", "10 classes", "HEDDLE_EIO: nowhere.npy", "nothing would be left"]),
}


@pytest.mark.parametrize("language", PAGES)
def test_the_page_is_a_program(language, tmp_path):
    page, words, expected = PAGES[language]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    head, *rest = re.findall(rf"^```{language}\n(.*?)^```$", (SOURCE / "docs" / page).read_text(), re.M | re.S)
    assert len(rest) >= 6
    source = tmp_path / "page"
    source.write_text(f"{head}\nint main(void) {{\n{''.join(rest)}\nreturn 0;\n}}\n" if language == "c" else
                      f"{head}\nint main() {{\n{''.join(rest)}\nreturn plan.empty() || drawn.empty() ? 1 : 0;\n}}\n")
    made = subprocess.run([*words, "-Wall", "-Wextra", "-Werror", str(source), "-x", "none", "-o", str(tmp_path / "program"),
                           f"-I{SOURCE}/include", f"-L{BUILD}/lib", "-lheddle", "-lheddle_tvm", f"-Wl,-rpath,{BUILD}/lib",
                           "-pthread"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(tmp_path / "program")], capture_output=True, text=True, cwd=SOURCE, timeout=60,
                          env=environment())
    assert done.returncode == 0, done
    for line in expected:
        assert re.search(rf"^{re.escape(line)}", done.stdout, re.M), (line, done.stdout)
    assert " on " in done.stderr  # the profile
