#!/usr/bin/env python3
"""Lists where every member of every struct of plugin.h lies, and compares the list with a frozen one.

gen_offsets.py HEADER [--cc CC]                    prints the list: "struct.member offset bytes", "struct bytes"
gen_offsets.py HEADER [--cc CC] --check FROZEN     every member of FROZEN is where it was; structs only grow at the end
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def structs(text):
    """(name, [member]) of every struct that is defined, in order."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for found in re.finditer(r"typedef struct (\w+) \{(.*?)\n\} (\w+);", text, flags=re.S):
        members = []
        for declaration in found.group(2).split(";"):
            pointer = re.search(r"\(\*(\w+)\)\s*\(", declaration)
            plain = re.search(r"(\w+)(?:\[[^]]*\])?\s*$", declaration)
            if pointer:
                members.append(pointer.group(1))
            elif plain:
                members.append(plain.group(1))
        yield found.group(3), members


def measure(header, cc):
    """The list, from a small program compiled against the header."""
    lines = []
    for name, members in structs(header.read_text()):
        lines += [f'  printf("{name}.{m} %zu %zu\\n", offsetof({name}, {m}), sizeof((({name} *)0)->{m}));'
                  for m in members]
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
    program = f'#include <stdio.h>\n#include "{header.resolve()}"\nint main(void) {{\n' + "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "offsets.c")
        source.write_text(program)
        subprocess.run([cc, "-std=c11", "-o", f"{folder}/offsets", str(source)], check=True)
        return subprocess.run([f"{folder}/offsets"], check=True, capture_output=True, text=True).stdout


def compare(now, frozen):
    """What is not where it was."""
    have = dict(line.split(" ", 1) for line in now.splitlines())
    last = {}
    problems = []
    for line in frozen.splitlines():
        key, value = line.split(" ", 1)
        if "." not in key:
            if key not in have or int(have[key]) < int(value):
                problems.append(f"{key}: had {value} bytes, has {have.get(key, 'gone')}")
            last[key] = int(value)
        elif have.get(key) != value:
            problems.append(f"{key}: was at {value} (offset, bytes), is at {have.get(key, 'nowhere')}")
    old = {line.split(" ", 1)[0] for line in frozen.splitlines()}
    for key, value in have.items():
        name = key.split(".")[0]
        if "." in key and key not in old and name in last and int(value.split()[0]) < last[name]:
            problems.append(f"{key}: is new and not at the end")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("header", type=pathlib.Path)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--check", type=pathlib.Path)
    words = parser.parse_args()
    now = measure(words.header, words.cc)
    if words.check is None:
        print(now, end="")
        return 0
    problems = compare(now, words.check.read_text())
    for problem in problems:
        print(f"{words.header}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
