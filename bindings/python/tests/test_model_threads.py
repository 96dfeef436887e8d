"""Many threads, tasks and futures on one model whose pool is smaller than they are many.

timeout: 300
"""
import asyncio
import gc
import threading
import weakref

import heddle
import numpy as np
import pytest

import small_models as small


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return small.perceptron(tmp_path_factory.mktemp("models"))


def in_threads(count, work):
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_eight_threads_on_two_executors(path):
    model = heddle.load(path, devices="cpu", pool=2)
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((1 + i % 3, 8)).astype(np.float32) for i in range(8)]
    expected = [small.reference(path, x=x)[0] for x in inputs]

    def work(i):
        for turn in range(200):
            if turn % 50 == 7:
                with pytest.raises(heddle.errors.InvalidError):
                    model(np.zeros((2, 3), np.float32))
            np.testing.assert_allclose(model(inputs[i])[0], expected[i], rtol=1e-5, atol=1e-6)

    in_threads(8, work)
    assert model.executors <= 2


def test_threads_on_a_device_that_is_slow(path):
    context = heddle.Context({"sim.delay_us": "300", "sim.seed": "5"})
    model = heddle.load(path, devices="sim:0", context=context, pool=3)
    x = np.ones((2, 8), np.float32)
    expected = small.reference(path, x=x)[0]
    in_threads(6, lambda i: [np.testing.assert_allclose(model(x)[0], expected, rtol=1e-5) for _ in range(10)])
    assert model.executors == 3


def test_trim_and_close_while_others_call(path):
    model = heddle.load(path, devices="cpu", pool=2)
    x = np.ones((1, 8), np.float32)
    expected = model(x)[0]
    ended = threading.Event()
    calls = []

    def work(i):
        while True:
            try:
                np.testing.assert_array_equal(model(x)[0], expected)
                calls.append(i)
            except heddle.errors.InvalidError:
                ended.set()
                return

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while len(calls) < 200:
        model.trim()
    model.close()
    for thread in threads:
        thread.join()
    assert ended.is_set() and model.executors == 0


def test_many_tasks_at_once_while_the_loop_goes_on(path):
    context = heddle.Context({"sim.op_us": "2000"})
    model = heddle.load(path, devices="sim:0", context=context, pool=2)
    xs = [np.full((1, 8), i, np.float32) for i in range(12)]
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0)

    async def main():
        ticking = asyncio.ensure_future(tick())
        results = await asyncio.gather(*(model.call_async(x) for x in xs))
        ticking.cancel()
        return results

    for x, (p, s) in zip(xs, asyncio.run(main())):
        np.testing.assert_allclose(p, small.reference(path, x=x)[0], rtol=1e-5, atol=1e-6)
    assert len(ticks) > len(xs) and model.executors <= 2


def test_a_cancelled_task_leaks_no_executor(path):
    context = heddle.Context({"sim.op_us": "1000"})
    model = heddle.load(path, devices="sim:0", context=context, pool=1)
    x = np.ones((1, 8), np.float32)
    expected = small.reference(path, x=x)[0]

    async def main():
        for _ in range(5):
            tasks = [asyncio.ensure_future(model.call_async(x=x)) for _ in range(4)]
            await asyncio.sleep(0.001)
            for task in tasks:
                task.cancel()
            for one in await asyncio.gather(*tasks, return_exceptions=True):  # some may have ended already
                if not isinstance(one, asyncio.CancelledError):
                    np.testing.assert_allclose(one[0], expected, rtol=1e-5)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(model.call_async(x) for _ in range(50))), 0.01)
        return await model.call_async(x)

    np.testing.assert_allclose(asyncio.run(main())[0], expected, rtol=1e-5)
    assert model.executors == 1


def test_futures_have_results_and_failures(path):
    model = heddle.load(path, devices="cpu", pool=2)
    x = np.ones((1, 8), np.float32)
    futures = [model.submit(x) if i % 5 else model.submit(x[:, :3]) for i in range(50)]
    expected = small.reference(path, x=x)[0]
    for i, future in enumerate(futures):
        if i % 5:
            np.testing.assert_allclose(future.result()[0], expected, rtol=1e-5)
        else:
            assert isinstance(future.exception(), heddle.errors.InvalidError)


def test_a_dropped_model_is_freed_with_its_threads(path):
    others = set(threading.enumerate())
    model = heddle.load(path, devices="cpu", pool=2)
    futures = [model.submit(np.ones((1, 8), np.float32)) for _ in range(8)]
    [future.result() for future in futures]
    gone = weakref.ref(model)
    del model, futures
    for thread in set(threading.enumerate()) - others:
        thread.join(60)
        assert not thread.is_alive()
    gc.collect()
    assert gone() is None


def test_an_executor_is_for_one_thread(path):
    context = heddle.Context({"sim.op_us": "20000"})
    executor = heddle.load(path, devices="sim:0", context=context).executor()
    executor.set_input("x", np.ones((1, 8), np.float32))
    executor.run()
    outcomes = []

    def work(i):
        try:
            executor.run()
            outcomes.append("ran")
        except heddle.errors.BusyError as failure:
            outcomes.append(failure.status)

    in_threads(4, work)
    assert "ran" in outcomes and set(outcomes) <= {"ran", "HEDDLE_EBUSY"}


def test_runs_in_flight(path):
    context = heddle.Context({"sim.op_us": "500"})
    model = heddle.load(path, devices="sim:0", context=context, dims={"batch": 1}, in_flight=3)
    executor = model.executor()
    xs = [np.full((1, 8), i, np.float32) for i in range(9)]
    got = []
    for i, x in enumerate(xs):
        if i >= 3:
            executor.wait()
            got.append(executor.get_output("p").numpy())
        executor.set_input("x", x)
        executor.start()
    for _ in range(3):
        executor.wait(60)
        got.append(executor.get_output("p").numpy())
    for x, p in zip(xs, got):
        np.testing.assert_allclose(p, small.reference(path, x=x)[0], rtol=1e-5, atol=1e-6)
