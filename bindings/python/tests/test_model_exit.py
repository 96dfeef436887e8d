"""The end of the interpreter in mid-run, Ctrl-C, fork: programs of their own that have to end, with the right status.

timeout: 300
"""
import os
import signal
import subprocess
import sys

import pytest

import small_models as small

# A model on a slow accelerator, and one on cpu whose runs take a while.
BEGIN = """
import asyncio, os, signal, sys, threading, time
import numpy as np
import heddle
X = np.ones(4, np.float32)
slow = heddle.load(sys.argv[1], devices="sim:0", pool=2, optimize=False,
                   context=heddle.Context({"sim.op_us": "6000"}))
quick = heddle.load(sys.argv[1], devices="cpu", pool=2, context=heddle.Context({"cpu.fuse": "0"}))
slow.executor(), quick(X)
begun = threading.Event()
def forever(model):
    while True:
        begun.set()
        model(X)
def daemons():
    for model in (slow, slow, slow, quick, quick):
        threading.Thread(target=forever, args=(model,), daemon=True).start()
    begun.wait()
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return small.chain(tmp_path_factory.mktemp("models"), 40)


def ended(path, program, **options):
    """(status, stdout, stderr) of a program; it is killed, and the test fails, where it does not end."""
    done = subprocess.run([sys.executable, "-c", BEGIN + program, path], capture_output=True, text=True, timeout=120,
                          check=False, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("program, status, words", [
    ("daemons()", 0, ""),
    ("daemons(); sys.exit(7)", 7, ""),
    ("daemons(); raise LookupError('own')", 1, "LookupError: own"),
    ("daemons(); os._exit(9)", 9, ""),
    ("futures = [slow.submit(X) for _ in range(5)]; sys.exit(3)", 3, ""),
    ("future = quick.submit(X); print(future.result()[0]); sys.exit(4)", 4, ""),
    ("e = slow.executor(); e.set_input('x', X); e.start(); sys.exit(5)", 5, ""),
    ("e = slow.executor(); e.set_input('x', X); e.start(); keep = [e]; keep.append(keep); del e; sys.exit(6)", 6, ""),
    ("async def main():\n    task = asyncio.ensure_future(slow.call_async(X))\n    await asyncio.sleep(0.02)\n"
     "    sys.exit(8)\nasyncio.run(main())", 8, ""),
    ("t = threading.Thread(target=lambda: print(slow(X)[0])); t.start(); sys.exit(2)", 2, ""),
    ("import atexit\natexit.register(lambda: print('late', quick(X)[0]))\ndaemons()", 0, ""),
])
def test_the_end_in_mid_run(path, program, status, words):
    code, out, err = ended(path, program)
    assert code == status, (code, out, err)
    assert words in err if words else err == "", err
    if "t.start()" in program:
        assert out == "41.0\n"  # a thread that is no daemon is waited for
    if "late" in program:
        assert out == "late 41.0\n"


def test_ctrl_c_ends_a_call_that_never_would(path):
    code, out, err = ended(path, """
hung = heddle.load(sys.argv[1], devices="sim:0", pool=1, optimize=False, context=heddle.Context({"sim.hang": "30"}))
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        hung(X)
except KeyboardInterrupt:
    print("interrupted", quick(X)[0], flush=True)
os._exit(0)  # the end of Python waits for what hangs
""")
    assert (code, out) == (0, "interrupted 41.0\n"), (code, out, err)


def test_ctrl_c_ends_the_wait_for_an_executor(path):
    code, out, err = ended(path, """
one = heddle.load(sys.argv[1], devices="sim:0", pool=1, optimize=False, context=heddle.Context({"sim.op_us": "3000"}))
stop = []
def busy():
    while not stop:
        begun.set()
        one(X)
threads = [threading.Thread(target=busy) for _ in range(2)]
[t.start() for t in threads]
begun.wait()
try:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        one(X)
except KeyboardInterrupt:
    print("interrupted")
stop.append(1)
[t.join() for t in threads]
print(one(X)[0])
""")
    assert (code, out) == (0, "interrupted\n41.0\n"), (code, out, err)


def test_ctrl_c_kills_a_program_that_does_not_look(path):
    code, _, err = ended(path, """
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
while True:
    slow(X)
""")
    assert code == -signal.SIGINT and "KeyboardInterrupt" in err, (code, err)


def test_a_forked_child_is_told(path):
    code, out, err = ended(path, """
child = os.fork()
if child == 0:
    try:
        quick(X)
    except heddle.errors.ForkError as failure:
        os._exit(11)
    os._exit(12)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), quick(X)[0])
""")
    assert (code, out) == (0, "11 41.0\n"), (code, out, err)


def test_a_child_forked_in_mid_run_is_told_and_ends(path):
    """All executors are with threads that the child has not: it neither waits for them, nor for their runs."""
    code, out, err = ended(path, """
one = heddle.load(sys.argv[1], devices="sim:0", pool=1, optimize=False, context=heddle.Context({"sim.op_us": "3000"}))
threading.Thread(target=forever, args=(one,), daemon=True).start()
while one.executors == 0:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    try:
        one(X)
    except heddle.errors.ForkError:
        sys.exit(11)
    sys.exit(12)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert (code, out) == (0, "11\n"), (code, out, err)


def test_other_signals_reach_their_handlers_in_a_run(path):
    """Around a call two can be seen, before it and after; the third is seen in it."""
    code, out, err = ended(path, """
long = heddle.load(sys.argv[1], devices="sim:0", pool=1, optimize=False, context=heddle.Context({"sim.op_us": "15000"}))
n = 0
def count(*_):
    global n
    n += 1
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
seen = 0
while seen < 3:
    before = n
    y = long(X)
    seen = n - before
signal.setitimer(signal.ITIMER_REAL, 0)
print(y[0])
""")
    assert (code, out) == (0, "41.0\n"), (code, out, err)
