"""multiprocessing with fork, after devices were used: the child's calls say HEDDLE_EFORK, the parent goes on working.
timeout: 120 labels: ctypes
"""
import json
import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor

import capi
import numpy as np
import pytest
import test_bad_input as base
from reference import io

EFORK = 15
FORK = multiprocessing.get_context("fork")


class Work:
    def __init__(self, **settings):
        self.ctx = capi.Context(log="off", **settings)
        self.graph, self.params = capi.Graph(json.dumps(base.graph())), capi.Params(io.params_blob(base.PARAMS))
        self.open()

    def open(self):
        self.model = capi.Model(self.ctx, self.graph, self.params, "cpu,sim:0,sim:1")
        self.executor = capi.Executor(self.model)

    def run(self):
        self.executor.set_input("x", base.X)
        self.executor.run()
        return self.executor.outputs()[0]

    def close(self):
        for x in (self.executor, self.model, self.params, self.graph, self.ctx):
            x.close()


def status_of(what, *args):
    try:
        what(*args)
        return 0
    except capi.HeddleError as error:
        return error.status if "fork" in str(error) else -error.status


def in_child(body, *args):
    """What body returns in a forked child, which has to end by itself."""
    queue = FORK.SimpleQueue()
    child = FORK.Process(target=lambda: queue.put(body(*args)))
    child.start()
    child.join(20)
    if child.is_alive():
        child.kill()
        pytest.fail("the child hangs")
    assert child.exitcode == 0
    return queue.get()


def every_call(work):
    """The status of each call that an application could try."""
    ex = work.executor
    return {
        "run": status_of(ex.run),
        "set_input": status_of(ex.set_input, "x", base.X),
        "output": status_of(ex.output, 0),
        "start": status_of(capi.call, "heddle_executor_start", ex.p),
        "wait": status_of(capi.call, "heddle_executor_wait", ex.p, capi.c.c_uint64(10**9)),
        "cancel": status_of(capi.call, "heddle_executor_cancel", ex.p),
        "executor": status_of(capi.Executor, work.model),
        "model": status_of(capi.Model, work.ctx, work.graph, work.params, "cpu"),
        "explain": status_of(work.model.explain_json),
        "own context": status_of(capi.Context),
    }


def child_calls_then_closes(work):
    found = every_call(work)
    work.close()  # nothing of the parent's is touched, and nothing waits for threads that are not here
    return found


def test_after_a_run():
    work = Work()
    before = work.run()
    for _ in range(3):
        assert set(in_child(every_call, work).values()) == {EFORK}
        assert work.run().tobytes() == before.tobytes()
    assert set(in_child(child_calls_then_closes, work).values()) == {EFORK}
    assert work.run().tobytes() == before.tobytes()
    work.close()


def test_in_the_middle_of_a_run():
    work = Work(sim__delay_us=20000)
    before = work.run()
    capi.call("heddle_executor_start", work.executor.p)
    assert set(in_child(every_call, work).values()) == {EFORK}
    capi.call("heddle_executor_wait", work.executor.p, capi.c.c_uint64(20 * 10**9))
    assert work.executor.outputs()[0].tobytes() == before.tobytes()
    work.close()


def test_while_other_threads_run():
    """Locks of the library may be held by a thread that the child does not have."""
    work = Work()
    work.run()
    over = threading.Event()
    mine = [Work(sim__delay_us=50) for _ in range(2)]

    def spin(w):
        while not over.is_set():
            w.run()

    threads = [threading.Thread(target=spin, args=(w,)) for w in mine]
    for t in threads:
        t.start()
    for _ in range(10):
        assert set(in_child(every_call, work).values()) == {EFORK}
    over.set()
    for t in threads:
        t.join()
    for w in (work, *mine):
        w.run()
        w.close()


def whole(_):
    work = Work()
    result = work.run()
    work.close()
    return result.tolist()


def pool_first():
    with FORK.Pool(2) as pool:
        found = pool.map(whole, range(4))
    return found, whole(0)


def test_a_pool_made_before_any_device_is_opened():
    """Children that were forked before that, from a process of its own here, may make contexts of their own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        found, mine = fresh.submit(pool_first).result(60)
    assert all(np.array_equal(f, mine) for f in found)
