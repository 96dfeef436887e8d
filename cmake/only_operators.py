#!/usr/bin/env python3
"""Copies a C source, and leaves in one of its tables the operators that graphs use.

only_operators.py SOURCE TABLE OUT GRAPH...
FusedElementwise stays: plugins make it of the graph's own operators.
SOURCE has an array TABLE whose entries are {...} lists with the operator's name as their first string; GRAPH is graph JSON,
whose nodes name operators in "op". Includes by a file's name are searched in the folder of SOURCE. OUT is left alone where
it is the same already.
"""
import json
import pathlib
import re
import sys


def entries(text):
    """The top-level {...} lists of a table's body."""
    depth, start, in_string, i = 0, 0, False, 0
    while i < len(text):
        c = text[i]
        if in_string:
            i += c == "\\"
            in_string = c != '"'
        elif text.startswith("/*", i):
            i = text.index("*/", i) + 1
        elif c == '"':
            in_string = True
        elif c == "{":
            if depth == 0:
                start = i
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                yield text[start:i + 1]
        i += 1


def main():
    source, table, out, *graphs = sys.argv[1:]
    used = {node["op"] for graph in graphs for node in json.loads(pathlib.Path(graph).read_text())["nodes"]} - {"null"}
    text = pathlib.Path(source).read_text()
    found = re.search(r"\b" + table + r"\[\] = \{\n(.*?)\n\};", text, re.S)
    if not found:
        sys.exit(f"{source}: there is no table {table}")
    stay = used | {"FusedElementwise"}
    kept = [e for e in entries(found.group(1)) if re.search(r'"([^"]*)"', e).group(1) in stay]
    missing = used - {re.search(r'"([^"]*)"', e).group(1) for e in kept}
    if missing:
        sys.exit(f"{source}: {table} has no {', '.join(sorted(missing))}: built in are only operators of that table")
    made = text[:found.start(1)] + "".join(f"    {e},\n" for e in kept).rstrip("\n") + text[found.end(1):]
    made = f'#line 1 "{source}"\n' + made
    path = pathlib.Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != made:
        path.write_text(made)


if __name__ == "__main__":
    main()
