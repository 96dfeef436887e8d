"""Runs a script that was written for TVM with only its import lines changed: python tvm_script.py SCRIPT ARGUMENT..."""
import pathlib
import re
import sys

CHANGES = ((r"(?m)^import tvm$", "import heddle as tvm"), (r"(?m)^import tvm\.", "import heddle."),
           (r"(?m)^from tvm\b", "from heddle"))


def run(script, *words):
    text = pathlib.Path(script).read_text()
    for old, new in CHANGES:
        text = re.sub(old, new, text)
    sys.argv = [str(script), *map(str, words)]
    exec(compile(text, str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})


if __name__ == "__main__":
    run(*sys.argv[1:])
