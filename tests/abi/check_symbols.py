#!/usr/bin/env python3
"""Compares what a library exports with what it may export.

check_symbols.py [--nm NM] library LIBHEDDLE LIST [--update]
    the exports of libheddle are exactly the names in LIST; --update writes LIST instead
check_symbols.py [--nm NM] tvm LIBHEDDLE_TVM LIST [--update]
    the same for libheddle_tvm, which exports names of TVM's too; those of tvm-ffi but one are in a library of their own
check_symbols.py [--nm NM] tvm_cxx LIBHEDDLE_TVM_CXX LIST [--update]
    the same for libheddle_tvm_cxx, which exports names of TVM's C++ runtime
check_symbols.py [--nm NM] rpc LIBHEDDLE_RPC LIST [--update]
    the same for libheddle_rpc
check_symbols.py [--nm NM] plugin PLUGIN
    a plugin exports heddle_plugin_entry only, and leaves no heddle_ symbol for others to define
"""

import argparse
import pathlib
import re
import subprocess
import sys

HEAD = "# The exports of {}, one a line. Written by tests/abi/check_symbols.py {} ... --update\n"
LIBRARIES = {
    "library": ("libheddle.so", re.compile("heddle_(?!_)"), "begin otherwise than heddle_, or with heddle__"),
    "tvm": ("libheddle_tvm.so",
            re.compile("heddle_(function|object|module|tvm)_(?!_)|TVM(?!FFI)|TVMFFIErrorSetRaisedFromCStrParts$|"
                       "__gnu_(h2f|f2h)_ieee$"),
            "are neither of heddle/function.h nor of TVM's C API"),
    "tvm_cxx": ("libheddle_tvm_cxx.so", re.compile("heddle_tvm_cxx_entry$|_ZN[K]?3tvm7runtime|_ZT[IVS]N3tvm7runtime"),
                "are not of TVM's C++ runtime"),
    "mpi": ("libheddle_mpi.so", re.compile("heddle_context_create_mpi$"), "are not of heddle/mpi.h"),
    "rpc": ("libheddle_rpc.so", re.compile("heddle_rpc_(?!_)"), "are not of heddle/rpc.h"),
}


def symbols(nm, path, which):
    """The dynamic symbols of a library, without their versions and without the version nodes themselves."""
    text = subprocess.run([nm, "-D", f"--{which}-only", path], check=True, capture_output=True, text=True).stdout
    names = set()
    for line in text.splitlines():
        *_, kind, name = line.split()
        if kind != "A":
            names.add(name.split("@")[0])
    return names


def check_library(nm, kind, path, listing, update):
    exported = symbols(nm, path, "defined")
    library, ours, words = LIBRARIES[kind]
    problems = [f"{name}: names that {words}, stay inside" for name in sorted(exported) if not ours.match(name)]
    if update and not problems:
        listing.write_text(HEAD.format(library, kind) + "".join(f"{name}\n" for name in sorted(exported)))
        print(f"wrote {listing}: {len(exported)} symbols")
        return problems
    if not listing.exists():
        return problems + [f"{listing} is not there: write it with {sys.argv[0]} {kind} {path} {listing} --update"]
    wanted = {line for line in listing.read_text().splitlines() if line and not line.startswith("#")}
    problems += [f"{name}: exported, but not in {listing.name}" for name in sorted(exported - wanted)]
    problems += [f"{name}: in {listing.name}, but not exported any more" for name in sorted(wanted - exported)]
    return problems


def check_plugin(nm, path):
    exported = symbols(nm, path, "defined")
    problems = [f"{name}: exported by a plugin" for name in sorted(exported - {"heddle_plugin_entry"})]
    if "heddle_plugin_entry" not in exported:
        problems.append("heddle_plugin_entry is not exported")
    problems += [f"{name}: undefined; a plugin uses nothing of libheddle"
                 for name in sorted(symbols(nm, path, "undefined")) if name.startswith("heddle_")]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nm", default="nm")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in LIBRARIES:
        library = kinds.add_parser(kind)
        library.add_argument("path")
        library.add_argument("listing", type=pathlib.Path)
        library.add_argument("--update", action="store_true")
    plugin = kinds.add_parser("plugin")
    plugin.add_argument("path")
    words = parser.parse_args()

    if words.kind in LIBRARIES:
        problems = check_library(words.nm, words.kind, words.path, words.listing, words.update)
    else:
        problems = check_plugin(words.nm, words.path)
    for problem in problems:
        print(f"{words.path}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
