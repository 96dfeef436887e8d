"""Threads on tensors, memory that a thread without the GIL lets go of, and an interpreter that ends with all of it alive.

timeout: 200
"""
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import heddle


def test_threads_copy_at_once():
    source = heddle.empty((64, 1024), "float32", "sim:0")
    source.copy_from(np.arange(64 * 1024).reshape(64, 1024))
    wrong = []

    def work(seed):
        mine, x = heddle.empty((64, 1024), "float32", f"sim:{seed % 2}"), np.full((64, 1024), seed, "float32")
        for _ in range(20):
            mine.copy_from(x)
            if not (mine.numpy() == seed).all() or source.numpy()[1, 1] != 1025:
                wrong.append(seed)
            heddle.from_dlpack(heddle.as_tensor(x)).copy_to(mine)
            try:
                heddle.empty((-1,))
            except heddle.errors.InvalidError as e:
                if "-1" not in str(e):
                    wrong.append(str(e))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_one_object_in_many_threads():
    x = np.zeros(1000)
    before = sys.getrefcount(x)

    def work():
        for _ in range(300):
            t = heddle.as_tensor(x)
            np.from_dlpack(t)
            t.numpy()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for _ in range(3):
        threading.Event().is_set()  # the main thread runs what was left to it
    assert sys.getrefcount(x) == before


@pytest.mark.parametrize("work", [
    "t.copy_from(x)", "t.numpy()", "heddle.empty((64, 64), 'float32', 'sim:0', context)", "heddle.save_npy(x, path)",
    "heddle.load_npy(path)", "heddle.Context({'devices': 'cpu'}).devices()"])
def test_the_gil_is_free_meanwhile(work, tmp_path):
    """Threads are switched only where one lets the GIL go: the main thread then gets it in the middle of the call, if not
    the first time, then in one of many."""
    code = f"""
        import sys, threading, numpy as np, heddle
        sys.setswitchinterval(1000)
        context, x, path = heddle.Context({{"sim.delay_us": "2000"}}), np.ones((256, 256), "float32"), {str(tmp_path / "x.npy")!r}
        t = heddle.empty((256, 256), "float32", "sim:0", context)
        heddle.save_npy(x, path)
        seen = []
        def call():
            seen.append("begin")
            {work}
            seen.append("end")
        for _ in range(1000):
            seen.clear()
            worker = threading.Thread(target=call)
            worker.start()
            if seen == ["begin"]: seen.append("main")
            worker.join()
            if seen == ["begin", "main", "end"]: break
        print(seen)
    """
    assert run(code) == ("['begin', 'main', 'end']\n", "", 0)


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    return done.stdout, done.stderr, done.returncode


ENDS = {
    "live tensors": """
        import numpy as np, heddle
        x = np.zeros(10); keep = [heddle.as_tensor(x), heddle.empty((3,), "float32", "sim:0"), heddle.from_dlpack(x)]
        view, capsule, buffer = keep[0].numpy(), keep[0].__dlpack__(), memoryview(keep[0])
        print("end")
        """,
    "a cycle and a method of it": """
        import numpy as np, heddle
        class Mine(heddle.Tensor): pass
        m = Mine(np.zeros(3)); m.me = m; m.call = m.numpy
        print("end")
        """,
    "contexts with logs": """
        import heddle
        contexts = [heddle.Context({"log": "trace"}, log=lambda *a: None) for _ in range(3)]
        t = heddle.empty((3,), "float32", "sim:1", contexts[1])
        contexts[0].devices()
        print("end")
        """,
    "threads that copy": """
        import threading, numpy as np, heddle
        def work():
            t = heddle.empty((256, 256), "float32", "sim:0")
            while True:
                t.copy_from(np.ones((256, 256))); heddle.as_tensor(np.zeros(9)).numpy()
        for _ in range(3): threading.Thread(target=work, daemon=True).start()
        heddle.empty((3,), "float32", "sim:0").numpy()
        print("end")
        """,
    "an exception that is not caught": """
        import numpy as np, heddle
        t = heddle.as_tensor(np.zeros(3)); print("end"); raise SystemExit(0)
        """,
    "work in atexit": """
        import atexit, numpy as np
        def last():
            t = heddle.empty((3,), "float32", "sim:0"); t.copy_from(np.ones(3)); del t; heddle.as_tensor(np.zeros(3)); print("end")
        atexit.register(last)
        import heddle
        """,
    "a second interpreter of the module": """
        import heddle, sys, importlib
        core = sys.modules.pop("heddle._core")
        try: importlib.import_module("heddle._core")
        except ImportError as e: print("end" if "once" in str(e) or "one of it" in str(e) else e)
        else: print("end" if sys.modules["heddle._core"] is core else "twice")
        """,
}


@pytest.mark.parametrize("what", ENDS)
def test_the_end_of_the_interpreter(what):
    assert run(ENDS[what]) == ("end\n", "", 0)
