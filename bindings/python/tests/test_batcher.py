"""heddle.Batcher: asyncio and threads, results against ONNX Runtime with padding, errors, cancellation, the end.

labels: threads
"""
import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import threading
import time

import heddle
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

WIDTH = 4


def model_of(nodes, inputs, outputs, weights=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(value, name) for name, value in weights])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def doubling():
    return model_of([h.make_node("Add", ["x", "x"], ["y"])], [h.make_tensor_value_info("x", T.FLOAT, ["n", WIDTH])],
                    [h.make_tensor_value_info("y", T.FLOAT, ["n", WIDTH])])


@pytest.fixture
def model():
    with heddle.load(doubling(), devices="cpu") as loaded:
        yield loaded


@pytest.fixture
def slow():
    """Runs that take tens of milliseconds."""
    context = heddle.Context({"sim.delay_us": "100000"})
    with heddle.load(doubling(), devices="sim:0", context=context, capture=False) as loaded:
        yield loaded


def item(value, n=1):
    return np.full((n, WIDTH), value, np.float32)


def test_asyncio_shares_runs(model):
    async def clients(batcher):
        return await asyncio.gather(*(ask(batcher, i) for i in range(64)))

    async def ask(batcher, i):
        y = await batcher(item(i), priority=i % 2)
        return y.shape == (1, WIDTH) and (y == 2 * i).all()

    with heddle.Batcher(model, max_items=16, max_delay=1.0, max_queue=64) as batcher:
        assert all(asyncio.run(clients(batcher)))
        stats = batcher.stats
        assert stats["runs"] == 4 and stats["items"] == 64 and stats["succeeded"] == stats["requests"] == 64


def test_threads(model):
    with heddle.Batcher(model, max_items=8, max_delay=0.001, workers=2) as batcher:
        def client(k):
            for i in range(30):
                n = 1 + i % 3
                y = batcher.run(x=item(100 * k + i, n)) if i % 2 else batcher({"x": item(100 * k + i, n)}).result(60)
                assert y.shape == (n, WIDTH) and (y == 2 * (100 * k + i)).all()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for ended in [pool.submit(client, k) for k in range(16)]:
                ended.result()
        assert batcher.stats["succeeded"] == 16 * 30


def test_padding_against_onnxruntime():
    """The mean of embeddings under a mask, and scores of each token: [n, s] in, [n, 3] and [n, s, 5] out."""
    rng = np.random.default_rng(7)
    proto = model_of([
        h.make_node("Gather", ["table", "ids"], ["rows"]),
        h.make_node("MatMul", ["rows", "w"], ["scores"]),
        h.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        h.make_node("Mul", ["rows", "wide"], ["kept"]),
        h.make_node("ReduceSum", ["kept", "one"], ["sums"], keepdims=0),
        h.make_node("ReduceSum", ["mask", "one"], ["counts"], keepdims=1),
        h.make_node("Div", ["sums", "counts"], ["mean"]),
    ], [h.make_tensor_value_info("ids", T.INT64, ["n", "s"]), h.make_tensor_value_info("mask", T.FLOAT, ["n", "s"])],
        [h.make_tensor_value_info("mean", T.FLOAT, ["n", 3]), h.make_tensor_value_info("scores", T.FLOAT, ["n", "s", 5])],
        [("table", rng.standard_normal((50, 3)).astype(np.float32)), ("w", rng.standard_normal((3, 5)).astype(np.float32)),
         ("last", np.array([-1])), ("one", np.array([1]))])
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    padded = {"ids": heddle.BatchPort(pad_axes=(1,), pad_value=49, pad_multiple=4), "mask": heddle.BatchPort(pad_axes=(1,))}
    with heddle.load(proto, devices="cpu") as model, heddle.Batcher(model, max_items=8, max_delay=5, inputs=padded) as batcher:
        requests = []
        for length in rng.integers(1, 30, 32):
            ids = rng.integers(0, 50, (1, length))
            requests.append((ids, np.ones((1, length), np.float32)))
        futures = [batcher(ids=ids, mask=mask) for ids, mask in requests]
        for (ids, mask), future in zip(requests, futures):
            got, wanted = future.result(60), session.run(None, {"ids": ids, "mask": mask})
            for g, w in zip(got, wanted):
                assert g.shape == w.shape
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
        assert batcher.stats["runs"] == 4
        with pytest.raises(heddle.errors.InvalidError, match="'s' is 4, and in another place 5"):
            batcher(np.zeros((1, 5), np.int64), np.ones((1, 4), np.float32))


def test_times(slow):
    batcher = heddle.Batcher(slow, max_items=2, max_delay=60)
    before = time.monotonic_ns()
    first, second = batcher(item(1), timed=True), batcher(item(2))
    assert first.result(60)[0, 0] == 2 and second.result(60)[0, 0] == 4
    t = first.times
    passed = [before, *(t[name] for name in ("accepted_ns", "taken_ns", "run_ns", "ran_ns", "ended_ns")), time.monotonic_ns()]
    assert passed == sorted(passed) and t["items"] == t["rows"] == 2 and t["ran_ns"] - t["run_ns"] >= 90e6, t
    assert {row["device"] for row in t["steps"]} == {"sim:0"} and "Add" in {row["op"] for row in t["steps"]}, t
    assert all(t["run_ns"] <= row["start_ns"] <= row["end_ns"] <= t["ran_ns"] for row in t["steps"]), t
    assert second.times is None
    batcher.close()


def test_refusals(model):
    batcher = heddle.Batcher(model, max_items=2, max_delay=60)
    waiting = batcher(item(1))
    for bad, error in [(np.zeros((1, 5), np.float32), heddle.errors.InvalidError), (item(1, 3), heddle.errors.InvalidError),
                       ({"z": item(1)}, heddle.errors.InvalidError), ({"x": item(1), "z": item(1)}, heddle.errors.NotFoundError)]:
        with pytest.raises(error):
            batcher(bad)
        with pytest.raises(error):
            batcher.run(bad)
    with pytest.raises(TypeError):
        batcher(item(1), item(1))
    with pytest.raises(TypeError):
        batcher(item(1), x=item(1))
    with pytest.raises(ValueError):
        batcher(item(1), deadline=-1)
    assert (batcher.run(item(2)) == 4).all() and (waiting.result(60) == 2).all()  # they share a run
    assert batcher.stats["runs"] == 1
    batcher.close()
    batcher.close()
    with pytest.raises(heddle.errors.CanceledError):
        batcher(item(1))
    for options in {"workers": 100}, {"max_items": 4, "max_queue": 2}, {"inputs": {"x": heddle.BatchPort(axis=7)}}:
        with pytest.raises(heddle.errors.InvalidError):
            heddle.Batcher(model, **options)
    with pytest.raises(heddle.errors.NotFoundError):
        heddle.Batcher(model, outputs={"q": heddle.BatchPort()})


def test_queue_deadline_and_cancel(slow):
    with heddle.Batcher(slow, max_items=1, max_queue=2) as batcher:
        running = batcher(item(1))
        while not batcher.stats["running"]:
            time.sleep(0.001)
        late, cancelled = batcher(item(2), deadline=0.005), batcher(item(3))
        with pytest.raises(heddle.errors.BusyError):
            batcher(item(4))
        with pytest.raises(heddle.errors.BusyError):
            batcher.run(item(4), wait=0)
        assert cancelled.cancel() and cancelled.cancelled()
        with pytest.raises(TimeoutError):
            late.result(60)
        assert (running.result(60) == 2).all() and not running.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            cancelled.result(60)
        assert (batcher.run(item(5)) == 10).all()


def test_cancelled_tasks(slow):
    async def main(batcher):
        first = asyncio.ensure_future(wrapped(batcher, 1))
        second = asyncio.ensure_future(wrapped(batcher, 2))
        await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wrapped(batcher, 3), 0.01)
        return await first

    async def wrapped(batcher, i):
        return await batcher(item(i))

    with heddle.Batcher(slow, max_items=1) as batcher:
        assert (asyncio.run(main(batcher)) == 2).all()
        batcher.drain()
        assert batcher.stats["cancelled"] == 2


def test_it_is_collected(model):
    threads = threading.active_count()
    for _ in range(3):
        batcher = heddle.Batcher(model)
        assert (batcher(item(1)).result(60) == 2).all()
        del batcher
    gc.collect()
    for _ in range(500):
        if threading.active_count() <= threads:
            return
        time.sleep(0.01)
    raise AssertionError("the threads of batchers stay")


def test_fork():
    """A forked child can neither submit nor wait, and ends. Without ONNX Runtime, which hangs at the end of one."""
    program = f"""
import os, sys; sys.path[:0] = {sys.path!r}
import heddle, numpy as np
def item(value): return np.full((1, {WIDTH}), value, np.float32)
batcher = heddle.Batcher(heddle.load(bytes.fromhex("{doubling().SerializeToString().hex()}"), devices="cpu"), max_delay=30)
waiting = batcher(item(1))
child = os.fork()
if child == 0:
    for call in (lambda: batcher.run(item(1)), lambda: batcher(item(1)), batcher.drain, batcher.close, lambda: batcher.stats):
        try:
            call()
            os._exit(1)
        except heddle.errors.ForkError:
            pass
    del waiting, batcher
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (batcher.run(item(2), deadline=30) == 4).all()
assert (waiting.result(60) == 2).all()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_exit_with_requests():
    """The interpreter ends while requests wait and run."""
    program = f"""
import sys; sys.path[:0] = {sys.path!r}
import test_batcher as t, heddle
model = heddle.load(t.doubling(), devices="sim:0", context=heddle.Context({{"sim.delay_us": "50000"}}))
batcher = heddle.Batcher(model, max_items=2, max_delay=30)
futures = [batcher(t.item(i)) for i in range(5)]
print("ends")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and ended.stdout == "ends\n" and "Error" not in ended.stderr, ended.stderr
