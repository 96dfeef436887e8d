#!/usr/bin/env python3
"""Writes operators/all.def with the operators alone that graphs use.

only_operators.py OPERATORS OUT KERNELS READER MORE GRAPH...
OPERATORS is the folder of operators/*.def, OUT the file to write; GRAPH is graph JSON, whose nodes name operators in "op".
KERNELS is "all", or "fast" for a build without plugins/common/more: then general kernels and what is inferred by them are
left out. READER is "reader" for a build that reads ONNX models, which needs the lines of READER of all operators, or empty. MORE is an operator that stays though no graph names it: FusedElementwise, which plugins make of the graph's own;
or it is empty. OUT is left alone where it is the same.
"""
import json
import pathlib
import re
import sys

READER = "RESULT|IN_MODELS|UPGRADE|GONE|MADE_OF_TEXTS"  # read by ONNX's reader, RESULT by graph/results.c too
LINE = re.compile(rf"^ *(OPERATOR|SINCE|SCALAR\w*|{READER})\((.*?)\)$", re.M | re.S)
KERNEL, GENERAL, INFER = 3, 5, 10  # columns: operators/operators.h


def main():
    folder, out, kernels, reader, more, *graphs = sys.argv[1:]
    used = {node["op"] for graph in graphs for node in json.loads(pathlib.Path(graph).read_text())["nodes"]} - {"null"}
    fast = kernels == "fast"
    all_def = (pathlib.Path(folder) / "all.def").read_text()
    kept, kernels_of, defined = [], set(), set()

    def chosen(match):
        for kind, text in LINE.findall((pathlib.Path(folder).parent / match[1]).read_text()):
            columns = text.split(", ", INFER + 1)
            if kind in READER.split("|"):
                if not reader and columns[0] not in used | {more}:
                    continue
                kept.append(f"{kind}({text})\n")
                continue
            if kind.startswith("SCALAR"):  # of the operator, or a variant of it
                if columns[0].split("_")[0] in used:
                    kept.append(f"{kind}({text})\n")
                continue
            name = columns[1]
            if name not in used | {more}:
                continue
            if kind == "OPERATOR":
                columns = text.split(", ")
                if fast:
                    columns[GENERAL] = "none"
                if columns[KERNEL] != "none" or not fast:
                    kernels_of.add(name)
            elif fast and columns[INFER] == "general":
                continue
            else:
                defined.add(name)
            kept.append(f"{kind}({', '.join(columns)})\n")
        return ""

    rest = re.sub(r'^#include "(operators/\w+\.def)"\n', chosen, all_def, flags=re.M)
    missing = used - (kernels_of & defined)
    if missing:
        sys.exit(f"{folder}: there is no {', '.join(sorted(missing))}" + (" among the fast kernels" if fast else ""))
    made = rest.replace("#undef OPERATOR\n", "".join(kept) + "#undef OPERATOR\n")
    path = pathlib.Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != made:
        path.write_text(made)


if __name__ == "__main__":
    main()
