#!/usr/bin/env python3
"""Checks the rules of the house that a compiler does not: check_tree.py REPOSITORY

- data flows one way: which folder may include which
- clients (bindings, tools, examples) use the installed public headers only; plugins, those among the examples too, and the
  conformance kit use plugin.h and plugins/common, of which others take one file each for bounds and for caches, and the
  headers of inline functions that name nothing of Heddle
- core/ names no vendor, but for a table of DLPack's type names (from a line with "DLPack type names" to its "};") and for
  core/probe/, which looks where drivers are installed
- the tool prints text through one function, which cleans names
- nothing is decided by the text of an error: only core/error.c compares it, for the wording
- a message that names an option of the tool names one that there is
- no source is longer than 1,000 lines
"""

import pathlib
import re
import sys

LONGEST = 1000
GENERAL = "graph/general/"  # inference by the setups of plugins/common's general kernels
BOUNDS = "plugins/common/check/bound.h"  # of operators: one file of plain arrays, for the kit and for heddle compare
CACHES = "plugins/common/cachefile.h"  # of files of caches: with no call but the system's, for plugins and libraries alike
INLINE = ("plugins/common/float16.h", "plugins/common/fnv.h")  # inline functions of C's own types, for every room
VENDORS = re.compile(r"(?<![a-z])(cuda|opencl|vulkan|rocm|hip)(?![a-z])", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ERROR_TEXT = re.compile(r"\b(str(n|case|ncase)?cmp|str(case)?str|mem(cmp|mem))\(.*(err|error|why|words|failure|fault)(\.|->)text\b"
                        r"|strings\.(Contains|HasPrefix|HasSuffix)\(.*\.(Error\(\)|Message)")
SOURCES = {".c", ".h", ".def", ".go", ".cc", ".cpp", ".hpp", ".cl", ".py", ".cmake"}

# What a folder may include with quotes, by the first part of the path; itself is always allowed.
MAY_INCLUDE = {
    "include": {"heddle"},
    "core": {"heddle"},
    "modules": {"heddle", "core"},
    "graph": {"heddle", "core", "operators"},
    "operators": {"heddle"},
    "executor": {"heddle", "core", "graph", "modules"},
    "frontends": {"heddle", "core", "graph"},
    "bindings": {"heddle"},
    "tools": {"heddle"},
    "conformance": {"heddle", "operators", "plugins"},
    "examples": {"heddle"},
}

# Folders that use the one around them, which does not include them: what it needs of them is behind a table of its own.
INNER = ("core/probe/", "graph/optimize/", "executor/control/")


def sources(root):
    for folder in sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".") and p.name != "build"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in SOURCES:
                yield path.relative_to(root)


def check_include(root, path, target):
    top = path.parts[0]
    local = (root / path.parent / target).exists()
    if top == "examples" and path.parts[1].startswith("plugin-") and target.startswith(("heddle/plugin.h", "plugins/common/", "operators/")):
        return None
    if top == "plugins":
        mine = path.parts[1]
        if target == "heddle/plugin.h" or target.startswith(("operators/", "plugins/common/", f"plugins/{mine}/")):
            return None
        inside = (root / path.parent / target).resolve()
        allowed = (root / "plugins" / mine, root / "plugins" / "common")
        if local and any(inside.is_relative_to(folder.resolve()) for folder in allowed):
            return None
        if (root / target).exists() or (root / "include" / target).exists() or local:
            return "a plugin includes heddle/plugin.h, its own files, plugins/common and operators only"
        return None
    if top == "examples" and path.parts[1].startswith("plugin-"):  # a stranger's plugin, out of the tree
        if local or target == "heddle/plugin.h" or target.startswith("plugins/common/"):
            return None
        return "a plugin includes heddle/plugin.h, its own files, plugins/common and operators only"
    if top not in MAY_INCLUDE:
        return None
    if local and (root / path.parent / target).resolve().is_relative_to((root / top).resolve()):
        return None
    first = target.split("/")[0]
    if target in INLINE:
        return None
    if top == "tools" and target == BOUNDS or top in ("core", "executor") and target == CACHES:
        return None
    if str(path).startswith(GENERAL) and target.startswith("plugins/common/"):
        return None
    for inner in INNER:
        if first == top and target.startswith(inner) and not str(path).startswith(inner):
            return f"{inner} uses {top}/, not the other way round"
    if first == top or first in MAY_INCLUDE[top]:
        return "plugin.h is for plugins" if top in ("tools", "examples") and target == "heddle/plugin.h" else None
    return f"{top}/ may include {', '.join(sorted(MAY_INCLUDE[top]))} only"


def options_of(root):
    """The options that the tool has, and those that every command takes."""
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((root / "tools").glob("*.[ch]")))
    return set(re.findall(r'\{\s*\\?\s*"([a-z][a-z-]*)",\s*\\?\s*OPTION_', text)) | {"help", "version"}


def check_advice(path, line, options):
    """A message that names an option names one that there is."""
    if path.suffix != ".c" or path.parts[0] not in ("core", "executor", "graph", "frontends", "tools"):
        return None
    words = {w for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line) for w in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text)}
    missing = sorted(words - options)
    return f"a message names --{missing[0]}, which no command has" if missing else None


def check_print(path, line):
    """What is printed may hold names from files: tools/text.c prints them clean."""
    if path.parts[0] == "tools" and path.suffix == ".c" and path.name not in ("text.c", "manual.c"):
        if re.search(r"(?<![a-z_])(v?f?printf|puts|putchar|fwrite|perror|json_dumpf?)\((?!f,|\w*file)", line):
            return "the tool prints with print, print_error and put_text (tools/text.h)"
    return None


def check_error_text(path, line):
    """A heddle_error's text in a comparison. graph/general/ removes the name of the node that plugins/common put before a text."""
    top = path.parts[0]
    if top not in MAY_INCLUDE or top in ("conformance", "examples") or str(path) in ("core/error.c", GENERAL + "general.c"):
        return None
    if path.suffix in (".c", ".h", ".hpp", ".go") and not path.name.endswith("_test.go") and ERROR_TEXT.search(line):
        return "compares the text of an error: use its status and members (core/failure.h)"
    if path.suffix == ".py" and re.search(r"\bin (str\((e|err|error|exc|exception)\)|\w+\.message)\b", line) and "test" not in path.name:
        return "looks for words in the text of an exception: use its class and attributes"
    return None


def check_file(root, path, options):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    if len(lines) > LONGEST:
        yield f"{path}: {len(lines)} lines; a source has at most {LONGEST}"
    in_table = False
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found and path.suffix in (".c", ".h", ".cc", ".cpp", ".hpp"):
            problem = check_include(root, path, found[1])
            if problem:
                yield f'{path}:{number}: includes "{found[1]}": {problem}'
        problem = check_print(path, line) or check_error_text(path, line) or check_advice(path, line, options)
        if problem:
            yield f"{path}:{number}: {problem}"
        if path.parts[0] == "core" and not str(path).startswith("core/probe/"):
            in_table = in_table or "DLPack type names" in line
            vendor = VENDORS.search(line)
            if vendor and not in_table:
                yield f"{path}:{number}: names a vendor's API, '{vendor[0]}'"
            if line.strip() == "};":
                in_table = False


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    options = options_of(root)
    problems = [problem for path in sources(root) for problem in check_file(root, path, options)]
    print("\n".join(problems) if problems else "the tree keeps its rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
