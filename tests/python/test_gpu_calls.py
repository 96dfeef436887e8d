"""
The calls of CUDA's and HIP's drivers as Heddle declares them (plugins/common/gpu/driver.h, plugins/cuda/cuda.h), against
the vendors' headers where those are installed: each exists, and takes as many arguments of the same kind and size.
"""

import glob
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALL = re.compile(r'X\((\w+), (GPU_MUST|GPU_MAY), "(\w*)", (?:"(\w*)", )?\\?\s*\(')
# Widths of what is no pointer, in bits; handles that are declared without a star, and functions, are as wide as one.
WIDTHS = {"int": 32, "unsigned": 32, "unsigned int": 32, "uint32_t": 32, "size_t": 64, "gpu_address": 64,
          "uint64_t": 64, "unsigned long long": 64, "unsigned long": 64, "float": "float", "char": 8, "*": 64}


def arguments(text, at):
    """The arguments between the parenthesis at text[at] and its partner."""
    depth, parts, start = 0, [], at + 1
    for i in range(at, len(text)):
        if text[i] == "(":
            depth += 1
        elif text[i] == ")":
            depth -= 1
            if depth == 0:
                parts.append(text[start:i])
                return [p.strip() for p in parts if p.strip() not in ("", "void")]
        elif text[i] == "," and depth == 1:
            parts.append(text[start:i])
            start = i + 1
    raise AssertionError("no end of the arguments")


def calls_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    for match in CALL.finditer(text):
        yield match.group(3), match.group(4), arguments(text, match.end() - 1)


def width(name, types):
    """Bits of a value of the type, or None where that is open: void, a struct."""
    for _ in range(8):
        name = re.sub(r"\b(const|struct)\b", "", name).strip()
        if name.endswith("*"):
            return 64
        if name in WIDTHS:
            return WIDTHS[name]
        if name in types:
            name = types[name]
        elif name.startswith("enum"):
            return 32
        else:
            return None
    return None


def kind(argument, types):
    """("pointer", bits of what it points to) or ("value", bits)."""
    argument = argument.replace("\\\n", " ")
    if "(*" in argument or "(" in argument:
        return "pointer", None
    argument = re.sub(r"\s*=.*$", "", argument).replace("[]", "*")  # C++'s defaults
    match = re.match(r"^(.*?[\s*])(\w+)\s*(\**)$", argument)  # the name, where there is one
    name = (match.group(1) + match.group(3) if match and match.group(2) not in types and match.group(2) not in WIDTHS
            else argument).strip()
    name = re.sub(r"\s*\*", "*", re.sub(r"\bconst\b", "", name)).strip()
    if name.endswith("*"):
        return "pointer", width(name[:-1], types)
    bits = width(name, types)
    return ("pointer", None) if types.get(name) == "*" else ("value", bits)


def same(ours, theirs):
    """An address is an integer of ours and a pointer of theirs, or the other way round."""
    if ours[0] != theirs[0]:
        value = ours if ours[0] == "value" else theirs
        return value[1] == 64
    return ours[1] == theirs[1] or (ours[0] == "pointer" and None in (ours[1], theirs[1]))


class Header:
    """A vendor's header, preprocessed: its prototypes and the kinds of its types."""

    def __init__(self, path, *options):
        done = subprocess.run(["gcc", "-E", "-P", *options, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", done.stdout)
        self.types = {}
        for match in re.finditer(r"typedef\s+([^;{}()]+?)\s*(\**)\s*(\w+)\s*;", self.text):
            base = match.group(1).strip()
            self.types[match.group(3)] = "*" if match.group(2) else base
        for match in re.finditer(r"typedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;", self.text):
            self.types[match.group(1)] = "int"
        for match in re.finditer(r"typedef\s+[\w\s*]*\(\s*\w*\s*\*\s*(\w+)\s*\)\s*\(", self.text):
            self.types[match.group(1)] = "*"

    def prototype(self, symbol):
        match = re.search(r"\b%s\s*\(" % symbol, self.text)
        return arguments(self.text, match.end() - 1) if match else None


def compare(header, wanted):
    wrong = []
    for symbol, ours in wanted:
        theirs = header.prototype(symbol)
        if theirs is None:
            wrong.append(f"{symbol}: not in the header")
            continue
        a, b = [kind(x, {}) for x in ours], [kind(x, header.types) for x in theirs]
        if len(a) != len(b) or not all(map(same, a, b)):
            wrong.append(f"{symbol}: ours {ours} {a}, theirs {theirs} {b}")
    assert not wrong, "\n".join(wrong)


def test_cuda_calls_are_those_of_the_header():
    found = glob.glob(os.path.join(ROOT, ".venv/lib/python*/site-packages/nvidia/cu*/include/cuda.h"))
    found += [p for p in ("/usr/local/cuda/include/cuda.h",) if os.path.exists(p)]
    if not found:
        pytest.skip("cuda.h is not installed")
    # Old versions of calls, which this brings into view, keep their names beside the new ones.
    header = Header(found[0], "-D__CUDA_API_VERSION_INTERNAL")
    wanted = [(cuda, args) for cuda, _, args in calls_of("plugins/common/gpu/driver.h") if cuda]
    wanted += [(cuda, args) for cuda, _, args in calls_of("plugins/cuda/cuda.h")]
    assert len(wanted) > 60
    compare(header, wanted)


def test_hip_calls_are_those_of_the_header():
    path = "/usr/include/hip/hip_runtime_api.h"
    if not os.path.exists(path):
        pytest.skip("HIP's headers are not installed")
    header = Header(path, "-D__HIP_PLATFORM_AMD__")
    wanted = [(hip, args) for _, hip, args in calls_of("plugins/common/gpu/driver.h") if hip]
    assert len(wanted) > 50
    newer = {"hipLaunchHostFunc", "hipGraphUpload", "hipDeviceGetUuid", "hipStreamGetDevice"}  # than the HIP of some distributions
    compare(header, [(s, a) for s, a in wanted if s not in newer or header.prototype(s) is not None])


def test_a_wrong_prototype_is_seen():
    found = glob.glob(os.path.join(ROOT, ".venv/lib/python*/site-packages/nvidia/cu*/include/cuda.h"))
    if not found:
        pytest.skip("cuda.h is not installed")
    header = Header(found[0], "-D__CUDA_API_VERSION_INTERNAL")
    for wrong in (["size_t *out", "int ordinal"], ["int *out"], ["int *out", "size_t ordinal"]):
        with pytest.raises(AssertionError):
            compare(header, [("cuDeviceGet", wrong)])
    with pytest.raises(AssertionError):
        compare(header, [("cuMemAlloc_v2", ["gpu_address *out", "unsigned bytes"])])
