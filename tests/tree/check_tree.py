#!/usr/bin/env python3
"""Checks the rules of the house that a compiler does not: check_tree.py REPOSITORY

- data flows one way: which folder may include which
- clients (bindings, tools, examples) use the installed public headers only; plugins, those among the examples too, and the
  conformance kit use plugin.h and plugins/common, of which others take one file each for bounds, offers and caches, and the
  headers of inline functions that name nothing of Heddle
- core/ names no vendor, but for a table of DLPack's type names (from a line with "DLPack type names" to its "};") and for
  core/probe/, which looks where drivers are installed
- the tool prints text through one function, which cleans names
- nothing is decided by the text of an error: only core/error.c compares it, for the wording
- a message that names an option of the tool, a setting or a variable HEDDLE_X names one that there is
- what an operator is stands in operators/ alone: no other source compares an opset with a number, has rows of operators and
  opsets, or lists the elementwise operators
- no source is longer than 1,000 lines
"""

import pathlib
import re
import sys

LONGEST = 1000
GENERAL = "graph/general/"  # inference by the setups of plugins/common's general kernels
BOUNDS = "plugins/common/check/bound.h"  # of operators: one file of plain arrays, for the kit and for heddle compare
CONTRACT = tuple(f"plugins/common/check/{name}.h" for name in ("offer", "contract"))  # what core and kit check alike of a plugin
CACHES = "plugins/common/cachefile.h"  # of files of caches: with no call but the system's, for plugins and libraries alike
INLINE = tuple(f"plugins/common/{name}.h" for name in ("blocks", "bytes", "float16", "fnv", "philox"))  # inline functions of C's own types, for every room
VENDORS = re.compile(r"(?<![a-z])(cuda|opencl|vulkan|rocm|hip)(?![a-z])", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ERROR_TEXT = re.compile(r"\b(str(n|case|ncase)?cmp|str(case)?str|mem(cmp|mem))\(.*(err|error|why|words|failure|fault)(\.|->)text\b"
                        r"|strings\.(Contains|HasPrefix|HasSuffix)\(.*\.(Error\(\)|Message)")
OPSET = re.compile(r"opset\s*(?:[<>]=?|[=!]=)\s*(?:[2-9]|[1-9]\d)\b")
OPSET_OF = {  # what no line of operators/ can say
    "frontends/onnx/upgrade_rest.c": "the mask of Dropout was of another type, with the same attributes",
    "frontends/onnx/inner.c": "Scan of opset 8 is another operator",
    "frontends/onnx/expand_quantised.c": "an attribute of that name",
}
MANY_ELEMENTWISE = 16
LISTS_ELEMENTWISE = {
    "executor/fold_number.c": "shapes are computed in builds without the general kernels, too",
}
SOURCES = {".c", ".h", ".def", ".go", ".cc", ".cpp", ".hpp", ".cl", ".py", ".cmake"}

# What a folder may include with quotes, by the first part of the path; itself is always allowed.
MAY_INCLUDE = {
    "include": {"heddle"},
    "core": {"heddle"},
    "modules": {"heddle", "core"},
    "graph": {"heddle", "core", "operators"},
    "operators": {"heddle"},
    "executor": {"heddle", "core", "graph", "modules"},
    "batch": {"heddle", "core"},
    "generate": {"heddle", "core", "graph"},
    "frontends": {"heddle", "core", "graph", "operators"},
    "rpc": {"heddle"},
    "remote": {"heddle", "core", "graph", "modules", "rpc"},  # and what it shares with the plugin remote
    "mpi": {"heddle"},
    "ort_ep": {"heddle", "core", "plugins"},
    "bindings": {"heddle"},
    "tools": {"heddle"},
    "conformance": {"heddle", "operators", "plugins"},
    "examples": {"heddle"},
}

# Folders that use the one around them, which does not include them: what it needs of them is behind a table of its own.
INNER = ("core/probe/", "graph/optimize/", "executor/control/")
STAGED = "executor/ranks/"  # a model over ranks is one in stages: it uses executor/control/


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
    if path.parts[:2] == ("examples", "tvm-cpp") and target.startswith("src/runtime/"):
        return None  # as programs include TVM's sources; cmake/tvm_sources.cmake installs files of these names
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
    if top == "tools" and target == BOUNDS or top in ("core", "executor") and target in (CACHES, *CONTRACT):
        return None
    if top == "remote" and target.startswith(("plugins/common/remote/", "plugins/common/perror.h", "plugins/remote/remote.h")):
        return None
    if str(path).startswith(GENERAL) and target.startswith("plugins/common/"):
        return None
    for inner in INNER:
        if first == top and target.startswith(inner) and not str(path).startswith((inner, STAGED)):
            return f"{inner} uses {top}/, not the other way round"
    if first == top or first in MAY_INCLUDE[top]:
        return "plugin.h is for plugins" if top in ("tools", "examples") and target == "heddle/plugin.h" else None
    return f"{top}/ may include {', '.join(sorted(MAY_INCLUDE[top]))} only"


def options_of(root):
    """The options that the tool has, and those that every command takes."""
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((root / "tools").glob("*.[ch]")))
    return set(re.findall(r'\{\s*\\?\s*"([a-z][a-z-]*)",\s*\\?\s*OPTION_', text)) | {"help", "version"}


STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
KEY = r"(?:%s\.)?[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*"
SETTING = re.compile(rf"settings? '({KEY})'|\(setting ({KEY})\)|\bsetting ({KEY}) is\b|\bsetting ([a-z]+\.[a-z0-9_.]*[a-z0-9_])|"
                     r"(?<![\w./-])((?:%s|[a-z]+)\.[a-z][a-z0-9_]*)=[\w%]")
VARIABLE = re.compile(r"\bHEDDLE_[A-Z][A-Z0-9_]*")
ADVISES = ("core", "executor", "graph", "frontends", "modules", "tools", "plugins")


class Names:
    """What messages may name. A setting is there where its key, of a plugin's without the plugin's name, is a whole string of
    the code that reads it; a variable where it is a setting's, an option of the build, or declared in a public header."""

    def __init__(self, root):
        self.options = options_of(root)
        self.strings, self.declared = {}, set()
        for path in sources(root):
            if path.suffix in (".c", ".h", ".def") and path.parts[0] in ADVISES:
                text = (root / path).read_text(encoding="utf-8")
                rows = re.findall(r"^\s*(?:NUMBER|SWITCH|WORD|TEXT)\((\w+),", text, re.MULTILINE)  # of tables, by their member's name
                self.strings.setdefault(self.place(path), set()).update(STRING.findall(text), rows)
        for path in (root / "include" / "heddle").rglob("*.h*"):
            self.declared |= set(VARIABLE.findall(path.read_text(encoding="utf-8")))
        for path in [root / "CMakeLists.txt", *root.glob("cmake/**/*.cmake"), *root.glob("plugins/*/*.cmake")]:
            text = path.read_text(encoding="utf-8")
            self.declared |= set(re.findall(r"(?:option|set)\s*\(\s*(HEDDLE_\w+)", text))
            self.declared |= {f"HEDDLE_{part}" for part in re.findall(r"^heddle_part\((\w+)", text, re.MULTILINE)}

    @staticmethod
    def place(path):
        return "/".join(path.parts[:2]) if path.parts[0] == "plugins" else "host"

    def has_setting(self, key, path):
        here = self.strings.get("host", set()) | self.strings.get("plugins/common", set()) | self.strings.get(self.place(path), set())
        first, _, rest = key.partition(".")
        own = self.strings.get(f"plugins/{first}", here if first == "%s" else set()) | self.strings.get("plugins/common", set())
        return key in here or (rest != "" and (rest in own or f"%s.{rest}" in here))

    def has_variable(self, name, path):
        words = name[len("HEDDLE_"):].lower()
        dotted = {words.replace("_", ".", 1), words}
        return name in self.declared or name == "HEDDLE_KEY" or any(self.has_setting(key, path) for key in dotted)

    def missing(self, path, text):
        """What a text names that is not there. core/settings.c has the names of Heddle's tests, too."""
        if path.parts[0] in ("core", "executor", "graph", "frontends", "tools"):
            for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text):
                if option not in self.options:
                    return f"a message names --{option}, which no command has"
        for found in SETTING.finditer(text):
            key = next(group for group in found.groups() if group is not None)
            if not self.has_setting(key, path):
                return f"a message names the setting {key}, which nothing reads"
        for name in VARIABLE.findall(text):
            if str(path) != "core/settings.c" and not self.has_variable(name, path):
                return f"a message names {name}, which is no setting, no option of the build and no name of the API"
        return None


def check_advice(path, line, names):
    """A message names what there is."""
    if path.suffix != ".c" or path.parts[0] not in ADVISES or "shaders" in path.parts or re.match(r"\s*(#|/?\*)", line):
        return None
    return next((p for p in (names.missing(path, text) for text in STRING.findall(line)) if p is not None), None)


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


class Operators:
    """The names that operators/ defines."""

    def __init__(self, root):
        text = "".join(path.read_text(encoding="utf-8") for path in (root / "operators").glob("*.def"))
        self.all = set(re.findall(r"^OPERATOR\(\w+, (\w+),", text, re.MULTILINE)) | set(re.findall(r"\bGONE\((\w+),", text))
        self.elementwise = set(re.findall(r"^ *SCALAR\((\w+?)(?:_\w+)?,", text, re.MULTILINE))


def check_operators(path, lines, operators):
    """A second table of what an operator is. Cases of the kit and the examples' plugins choose opsets."""
    if path.suffix not in (".c", ".h") or path.parts[0] not in (*ADVISES, "operators", "conformance", "ort_ep", "generate"):
        return
    found = set()
    for number, line in enumerate(lines, 1):
        names = set(STRING.findall(line)) & operators.all
        found |= names & operators.elementwise
        if OPSET.search(line) and str(path) not in OPSET_OF:
            yield f"{path}:{number}: compares an opset with a number: ask operators/ what the definition has"
        if path.parts[0] in ("frontends", "graph", "executor") and re.search(r'\{"(\w+)",\s*\d+,\s*\d+\b', line) and names:
            yield f"{path}:{number}: a row of an operator and its opsets: it belongs in operators/"
    if len(found) >= MANY_ELEMENTWISE and path.parts[0] != "conformance" and str(path) not in LISTS_ELEMENTWISE:
        yield f"{path}: lists {len(found)} elementwise operators: take them from the SCALAR lines of operators/"


def check_file(root, path, names, operators):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    yield from check_operators(path, lines, operators)
    if len(lines) > LONGEST:
        yield f"{path}: {len(lines)} lines; a source has at most {LONGEST}"
    in_table = False
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found and path.suffix in (".c", ".h", ".cc", ".cpp", ".hpp"):
            problem = check_include(root, path, found[1])
            if problem:
                yield f'{path}:{number}: includes "{found[1]}": {problem}'
        problem = check_print(path, line) or check_error_text(path, line) or check_advice(path, line, names)
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
    names = Names(root)
    operators = Operators(root)
    problems = [problem for path in sources(root) for problem in check_file(root, path, names, operators)]
    print("\n".join(problems) if problems else "the tree keeps its rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
