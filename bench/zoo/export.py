"""Exports models of the zoo, many in one process, which loads PyTorch once: bench/zoo/run.py starts it.

python export.py FOLDER SECONDS NAME...   prints a line of JSON for each: its name, and what was wrong, or null.
"""
import json
import os
import pathlib
import signal
import sys
import warnings

import recipes


def too_slow(number, frame):
    raise TimeoutError("it takes too long")


def main():
    folder, seconds, names = pathlib.Path(sys.argv[1]), int(float(sys.argv[2])), sys.argv[3:]
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGALRM, too_slow)
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # exporters print
    for name in names:
        path = folder / (name.replace("/", "__") + ".onnx")
        wrong = None
        print(json.dumps({"begun": name}), file=results, flush=True)
        signal.alarm(seconds)
        try:
            recipes.export(name, path)
        except Exception as e:  # of any kind: the exporters' own
            path.unlink(missing_ok=True)
            wrong = f"{type(e).__name__}: {str(e).strip()[:250]}"
        finally:
            signal.alarm(0)
        print(json.dumps({"name": name, "wrong": wrong}), file=results, flush=True)


main()
