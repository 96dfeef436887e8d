"""Runs mutants of models through the Python package, in this process: calls.py FOLDER SHARD SHARDS COUNT SECONDS [FIRST].
Of every SHARDS mutants it runs one, COUNT of each model in all, and ends after SECONDS. FOLDER/SHARD.at says which it has
in hand, so that a waiting process knows what ended it; the last line is JSON: what was done. A result that is not what
its model declares is an error here, and so is anything raised that is no heddle.Error.

calls.py FOLDER --again NAME:NUMBER runs one again, and keeps its file."""
import collections
import json
import pathlib
import sys
import time

import heddle
import numpy as np

from mutants import models, mutate

MOST = 1 << 16  # elements of an input
DEVICES = ["cpu:0,sim:0", "sim:0,cpu:0", None]
WHOLE = [[3, 4, 1, 2], [1, 0, 2, 1], [0, 1, 1, 1]]


class Wrong(Exception):
    """What came out is not what the model declares."""


def value(dtype, shape, turn):
    n = int(np.prod(shape, dtype=np.int64))
    kind = np.dtype(dtype).kind
    if kind == "f":
        return np.linspace(-2, 2, n).astype(dtype).reshape(shape) if turn != 1 else np.ones(shape, dtype)
    if kind == "b":
        return (np.arange(n) % 2 == turn % 2).reshape(shape)
    return np.resize(np.array(WHOLE[turn]), n).astype(dtype).reshape(shape)


def inputs(model, turn):
    made = {}
    for one in model.inputs:
        shape = [d if isinstance(d, int) else 3 - turn % 2 for d in one.shape or ()]
        if np.prod(shape, dtype=float) > MOST:
            return None
        if one.dtype == "string":
            made[one.name] = value("int64", shape, turn).astype(str).astype(object)
            continue
        dtype = one.dtype if one.dtype in ("bool",) or one.dtype[-1].isdigit() else "float32"
        made[one.name] = value(dtype if dtype != "bfloat16" else "float32", shape, turn)
    return made


def check(info, array):
    """What came out is of the type that was declared. An ONNX file may declare a wrong shape, which is a warning."""
    declared = {"string": ("object", "int64"), "bfloat16": (str(array.dtype),)}.get(info.dtype, (info.dtype,))
    if str(array.dtype) not in declared:
        raise Wrong(f"output {info.name} is declared {info.dtype} and came as {array.dtype}")
    array.copy()  # every byte is read


def through_executor(model, given):
    """The same by set_input and run, into arrays as they are declared, and views."""
    e = model.executor()
    for name, array in given.items():
        e.set_input(name, model.texts.encode(name, array, {}) if model.has_strings else array)
    outputs = model.outputs
    for i, info in enumerate(outputs):
        if info.dtype == "string":
            continue
        shape = [d if isinstance(d, int) else 3 for d in info.shape or ()]
        if np.prod(shape, dtype=float) <= MOST and info.dtype != "bfloat16" and i % 2 == 0:
            try:
                e.bind_output(i, np.zeros(shape, info.dtype))
            except heddle.Error:
                pass
    try:
        e.run(timeout=1)
    except heddle.Error:
        for i in range(len(outputs)):
            e.bind_output(i, None)
        e.run(timeout=1)
    for i, info in enumerate(outputs):
        check(info, np.asarray(e.view_output(i)))
        check(info, np.asarray(e.get_output(i)))
        out = np.zeros(np.asarray(e.view_output(i)).shape, {"bfloat16": "uint16", "string": "int64"}.get(info.dtype, info.dtype))
        e.get_output(i, out=out)


def run(path, number, counts):
    try:
        model = heddle.load(path, devices=DEVICES[number % 2], optimize=[None, "on", "off"][number % 3], pool=1)
        infos = model.outputs
    except heddle.Error as error:
        counts[f"load: {type(error).__name__}"] += 1
        return
    for turn in range(3):
        given = inputs(model, turn)
        if given is None:
            counts["too large"] += 1
            return
        try:
            got = model.run(given, timeout=1) if turn == 1 else model(**given)
            got = list(got.values()) if isinstance(got, dict) else list(got) if isinstance(got, tuple) else [got]
            for info, array in zip(infos, got):
                check(info, np.asarray(array))
            counts["ran"] += 1
        except heddle.Error as error:
            counts[f"run: {type(error).__name__}"] += 1
    try:
        through_executor(model, given)
    except heddle.Error as error:
        counts[f"executor: {type(error).__name__}"] += 1
    model.close()


def main():
    folder = pathlib.Path(sys.argv[1])
    files = {name: make() for name, make in models.MODELS.items()}
    if sys.argv[2] == "--again":
        name, number = sys.argv[3].split(":")
        path = folder / f"{name}_{number}.onnx"
        path.write_bytes(mutate.mutant(files[name], sys.argv[3]))
        counts = collections.Counter()
        run(str(path), int(number), counts)
        print(path, dict(counts))
        return
    shard, shards, count, seconds = map(int, sys.argv[2:6])
    first = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    end, counts, done = time.monotonic() + seconds, collections.Counter(), 0
    path = folder / f"{shard}.onnx"
    names = list(files)
    with open(folder / f"{shard}.at", "w") as at:
        for k in range(first, count * len(names)):  # all models in turn, so that an early end is fair to each
            if k % shards != shard:
                continue
            if time.monotonic() > end:
                break
            name, number = names[k % len(names)], k // len(names)
            at.seek(0)
            at.write(f"{k} {name}:{number} \n")
            at.flush()
            path.write_bytes(mutate.mutant(files[name], f"{name}:{number}"))
            run(str(path), number, counts)
            done += 1
    print(json.dumps({"done": done, "counts": counts}))


if __name__ == "__main__":
    main()
