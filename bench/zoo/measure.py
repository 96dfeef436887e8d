"""Runs one model through Heddle or ONNX Runtime in this process, and prints a line of JSON: scripts/zoo starts it.

python measure.py heddle|onnxruntime|plain MODEL FOLDER THREADS SECONDS   plain: ONNX Runtime without its optimiser
"""
import json
import os
import pathlib
import resource
import sys
import time

import numpy as np
from inputs import feed_of


def opened(which, path, threads):
    if which == "heddle":
        import heddle
        model = heddle.load(path, devices="cpu")
        return lambda feed: model.run(None, feed)
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    if which == "plain":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def timed(run, feed, seconds):
    """CPU and wall time of a run: the least of rounds."""
    walls, cpus = [], []
    end = time.perf_counter() + seconds
    while len(walls) < 3 or time.perf_counter() < end:
        wall, cpu = time.perf_counter(), time.process_time()
        n = 0
        while n == 0 or time.perf_counter() - wall < seconds / 10:
            run(feed)
            n += 1
        walls.append((time.perf_counter() - wall) / n)
        cpus.append((time.process_time() - cpu) / n)
    return min(cpus), min(walls)


def main():
    which, path, folder, threads, seconds = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    import onnx
    feed = feed_of(onnx.load(path, load_external_data=False))
    if which == "heddle":
        import heddle  # noqa: F401  what is loaded before the model does not count
    else:
        import onnxruntime  # noqa: F401
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    before, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    run = opened(which, path, threads)
    outputs = run(feed)
    result = {"first_cpu": time.process_time() - cpu}
    for i, value in enumerate(outputs):
        if not isinstance(value, (list, dict)) and value is not None:
            np.save(folder / f"{which}{i}.npy", np.asarray(value), allow_pickle=True)
    result["outputs"] = len(outputs)
    if seconds > 0:
        result["cpu"], result["wall"] = timed(run, feed, seconds)
        result["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    else:
        del result["first_cpu"]
    print("RESULT " + json.dumps(result))


main()
