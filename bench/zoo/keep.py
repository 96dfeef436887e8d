"""Keeps small models of the zoo in tests/zoo, without their weights: bench/zoo/keep.py FOLDER... after scripts/zoo.

Of each family in turn the smallest that agree, until there are MOST, of at most ALL bytes together.
"""
import gzip
import json
import pathlib
import sys

import onnx
from inputs import stripped

MOST, ALL, EACH, WEIGHTS = 40, 2 << 20, 100 << 10, 30 << 20
TARGET = pathlib.Path(__file__).resolve().parents[2] / "tests" / "zoo"


def candidates(folders):
    """{family: [(bytes, name, data)]}, the smallest first."""
    found = {}
    for folder in folders:
        results = json.loads((folder / "results.json").read_text())
        for name, row in results.items():
            path = folder / "models" / (name.replace("/", "__") + ".onnx")
            if row["state"] != "agrees" or not path.exists() or path.stat().st_size > WEIGHTS:
                continue
            data = gzip.compress(stripped(onnx.load(path)).SerializeToString(), 9, mtime=0)
            if len(data) <= EACH:
                found.setdefault(name.split("/")[0], []).append((len(data), name, data))
    return {family: sorted(models, key=lambda one: one[:2]) for family, models in found.items()}


def spread(models, n):
    """n of a list from end to end: small and larger ones."""
    return [models[i * (len(models) - 1) // max(n - 1, 1)] for i in range(n)] if len(models) > n else models


def main():
    families = candidates([pathlib.Path(folder) for folder in sys.argv[1:]])
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.onnx.gz"):
        old.unlink()
    total, left, n = 0, MOST, 0
    for i, (family, models) in enumerate(sorted(families.items(), key=lambda item: len(item[1]))):
        for size, name, data in spread(models, left // (len(families) - i)):
            if total + size > ALL:
                continue
            (TARGET / (name.replace("/", "__") + ".onnx.gz")).write_bytes(data)
            total, left, n = total + size, left - 1, n + 1
    print(f"{n} models, {total} bytes")


main()
