"""Runs a script that was written for TVM with only its import lines changed: python tvm_script.py SCRIPT ARGUMENT..."""
import pathlib
import re
import sys

CHANGES = ((r"(?m)^( *)import tvm( *(#.*)?)$", r"\1import heddle as tvm\2"), (r"(?m)^( *)import tvm as ", r"\1import heddle as "),
           (r"(?m)^( *)import tvm\.", r"\1import heddle."),
           (r"(?m)^( *)from tvm\b", r"\1from heddle"))  # as docs/coming-from-tvm.md has it


def changed(script):
    text = pathlib.Path(script).read_text()
    for old, new in CHANGES:
        text = re.sub(old, new, text)
    return text


def run(script, *words):
    sys.argv = [str(script), *map(str, words)]
    exec(compile(changed(script), str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})


if __name__ == "__main__":
    run(*sys.argv[1:])
