#!/usr/bin/env python3
"""Makes the next minor of plugin.h: one member appended to every struct that has a struct_size, a new capability and a
new feature bit, minor + 1. With --middle the member goes to the middle of each struct, which must never be done.

gen_next.py HEADER OUT [--middle]
"""

import argparse
import pathlib
import re
import sys


def grow(found, middle):
    """A struct with its new member: a function in a table, a number in anything else."""
    head, body, name = found.group(1), found.group(2), found.group(3)
    if "struct_size" not in body:
        return found.group(0)
    is_table = name.endswith("_table") or name in ("heddle_plugin", "heddle_host")
    member = "  heddle_status (*next_1_1)(uint64_t *out);" if is_table else "  uint64_t next_1_1;"
    if not middle:
        return f"{head}{body}\n{member}\n}} {name};"
    end = body.index(";", body.index("struct_size")) + 1
    return f"{head}{body[:end]}\n{member}{body[end:]}\n}} {name};"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("header", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--middle", action="store_true")
    words = parser.parse_args()
    text = words.header.read_text()
    minor = int(re.search(r"#define HEDDLE_ABI_MINOR (\d+)", text).group(1))
    text = text.replace(f"#define HEDDLE_ABI_MINOR {minor}",
                        f"#define HEDDLE_ABI_MINOR {minor + 1}\n#define HEDDLE_NEXT 1\n"
                        "#define HEDDLE_CAP_NEXT (UINT64_C(1) << 40)\n#define HEDDLE_FEATURE_NEXT (UINT64_C(1) << 40)")
    text = re.sub(r"(typedef struct \w+ \{)(.*?)\n\} (\w+);", lambda f: grow(f, words.middle), text, flags=re.S)
    words.out.parent.mkdir(parents=True, exist_ok=True)
    words.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
