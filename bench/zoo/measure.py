"""Runs one model through Heddle or ONNX Runtime in this process, and prints a line of JSON: scripts/zoo starts it.

python measure.py heddle|onnxruntime MODEL FOLDER THREADS SECONDS
"""
import json
import os
import pathlib
import resource
import sys
import time

import numpy as np


def feed_of(path):
    """Inputs by what the file declares: open dimensions are `batch` of the metadata or 2, numbers within its ranges."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    meta = next((json.loads(p.value) for p in model.metadata_props if p.key == "zoo"), {})
    rng = np.random.default_rng(0)
    given = {t.name for t in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name in given:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else meta.get("batch", 2) for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        bounds = meta.get(value.name)
        if dtype == object:
            feed[value.name] = rng.choice(np.array(["red", "green", "blue", "a quick fox", "the lazy dog"], object), shape)
        elif isinstance(bounds, str):
            feed[value.name] = np.sort(rng.integers(0, int(bounds.split()[1]), shape)).astype(dtype)
            feed[value.name].reshape(-1)[:1] = 0
        elif dtype.kind in "iu":
            low, high = bounds or (0, 10)
            feed[value.name] = rng.integers(low, high, shape).astype(dtype)
        elif dtype.kind == "b":
            feed[value.name] = rng.integers(0, 2, shape).astype(bool)
        elif bounds:
            feed[value.name] = rng.uniform(*bounds, shape).astype(dtype)
        else:
            feed[value.name] = rng.normal(size=shape).astype(dtype)
    return feed


def opened(which, path, threads):
    if which == "heddle":
        import heddle
        model = heddle.load(path, devices="cpu")
        return lambda feed: model.run(None, feed)
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
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
    feed = feed_of(path)
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
    print("RESULT " + json.dumps(result))


main()
