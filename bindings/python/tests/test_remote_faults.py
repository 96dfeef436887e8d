"""Runs on devices of a server that is killed, frozen or started again in mid-run, and over a link that is cut, stalled, slow, reset
or corrupted: nothing waits longer than its time limit, and the policies retry and failover save the run.
timeout: 300"""
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/python"))

import heddle
import remote_case as case
from heddle import _core
from tool_case import TOOL

SILENCE_MS = 700
LIMIT_S = 12  # for what a fault may take: silence, a new plan, and a machine with other work


def chain(nodes=6, size=(64, 64)):
    """x @ w, then additions, so that work and transfers are both in the run."""
    names = ["x"] + [f"v{i}" for i in range(nodes)]
    w = np.random.default_rng(3).standard_normal((size[1], size[1])).astype(np.float32) / 8
    made = [helper.make_node("MatMul" if i % 2 == 0 else "Relu", [names[i], "w"] if i % 2 == 0 else [names[i]],
                             [names[i + 1]], name=f"n{i}") for i in range(nodes)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(made, "chain", [info("x", TensorProto.FLOAT, size)], [info(names[-1], TensorProto.FLOAT, size)],
                              initializer=[numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


X = np.random.default_rng(4).standard_normal((64, 64)).astype(np.float32)


def context(address, **more):
    return _core.Context({"remote.servers": address, "remote.silence_ms": str(SILENCE_MS), "remote.connect_ms": "2000",
                          "remote.request_ms": "5000", "log": "off", **more})


def executor(address, devices="remote:0,cpu", place="*=remote:0", **more):
    return heddle.load(chain(), devices=devices, place=place, context=context(address), **more).executor()


def run(x, limit=None):
    x.set_input("x", X)
    x.run()
    return x.get_output(0).numpy()


@pytest.fixture(scope="module")
def want():
    return run(heddle.load(chain(), devices="cpu").executor())


@pytest.fixture
def server():
    with case.serving("--listen", "127.0.0.1:0", "--devices", "cpu,sim") as s:
        yield s


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_round_trips_and_mixed_graphs(server, want):
    at = f"tcp:127.0.0.1:{server.port}"
    for devices, place in (("remote:0,cpu", "*=remote:0"), ("remote:1,cpu", "*=remote:1"),
                           ("remote:0,remote:1,cpu,sim:0",
                            ["n0=remote:0", "n1=remote:1", "n2=sim:0", "n3=remote:1", "n4=remote:0"])):
        for capture in True, False:
            x = executor(at, devices, place, capture=capture)
            for _ in range(5):
                near(run(x), want)
            assert (x.stats()["replays"] > 0) == capture
    x = executor(at, in_flight=4)
    for _ in range(3):
        near(run(x), want)


def kill(s, relay):
    s.signal_sessions(signal.SIGKILL)


def freeze(s, relay):
    s.signal_sessions(signal.SIGSTOP)


FAULTS = {"killed": kill, "frozen": freeze, "cut": lambda s, r: r.cut(), "stalled": lambda s, r: setattr(r, "mode", "stall"),
          "reset": lambda s, r: r.reset()}


@pytest.mark.parametrize("fault", FAULTS)
def test_failover(server, want, fault):
    """While runs go on, the link or the server fails: all runs give what they would have given."""
    with case.relayed(server.port) as relay:
        x = executor(f"tcp:127.0.0.1:{relay.port}", on_failure="failover")
        near(run(x), want)
        timer = threading.Timer(0.1, FAULTS[fault], (server, relay))
        timer.start()
        started = time.monotonic()
        while x.stats()["failovers"] == 0:
            before = time.monotonic()
            near(run(x), want)
            assert time.monotonic() - before < LIMIT_S and time.monotonic() - started < LIMIT_S
        timer.join()
        near(run(x), want)
        server.signal_sessions(signal.SIGCONT)


@pytest.mark.parametrize("fault", ["killed", "reset"])
def test_retry(server, want, fault):
    """The server takes the client again: the same plan, in a new session."""
    with case.relayed(server.port) as relay:
        x = executor(f"tcp:127.0.0.1:{relay.port}", on_failure="retry:3")
        near(run(x), want)
        for _ in range(2):
            FAULTS[fault](server, relay)
            near(run(x), want)
        assert x.stats()["retries"] >= 1


def test_a_server_that_is_started_again(want):
    first = case.Server("--listen", "127.0.0.1:0", "--devices", "cpu")
    port = first.port
    try:
        x = executor(f"tcp:127.0.0.1:{port}", on_failure="retry:3")
        near(run(x), want)
    finally:
        first.stop(signal.SIGKILL)
    with case.serving("--listen", f"127.0.0.1:{port}", "--devices", "cpu"):
        near(run(x), want)


def test_an_error_without_a_policy(server):
    with case.relayed(server.port) as relay:
        x = executor(f"tcp:127.0.0.1:{relay.port}")
        run(x)
        relay.cut()
        started = time.monotonic()
        with pytest.raises(heddle.errors.DeviceLostError, match="remote:0"):
            run(x)
        assert time.monotonic() - started < LIMIT_S


def test_a_slow_link(server, want):
    with case.relayed(server.port) as relay:
        relay.delay = 0.005
        x = executor(f"tcp:127.0.0.1:{relay.port}")
        near(run(x), want)
        relay.rate = 2e6
        near(run(x), want)


def test_tls_sees_a_turned_bit(want, tmp_path):
    key = tmp_path / "key"
    subprocess.run([str(TOOL), "keys", "-o", str(key)], check=True, timeout=20)
    with case.serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--psk", key) as server, case.relayed(server.port) as relay:
        c = context(f"tls:127.0.0.1:{relay.port}", **{"remote.psk": str(key)})
        x = heddle.load(chain(), devices="remote:0,cpu", place="*=remote:0", context=c, on_failure="failover").executor()
        near(run(x), want)
        relay.mode = "corrupt"
        for _ in range(3):
            near(run(x), want)
        assert x.stats()["failovers"] == 1


def test_a_client_that_is_killed_leaves_nothing(server, tmp_path):
    model = tmp_path / "chain.onnx"
    model.write_bytes(chain())
    code = ("import heddle,sys,time\nfrom heddle import _core\n"
            "d=heddle.load(sys.argv[1],devices='remote:0',place='*=remote:0',context=_core.Context({'remote.servers':sys.argv[2]})).executor()\n"
            "import numpy\nd.set_input('x',numpy.zeros((64,64),'float32'))\nd.run()\nprint('runs',flush=True)\ntime.sleep(60)\n")
    p = subprocess.Popen([sys.executable, "-c", code, str(model), f"tcp:127.0.0.1:{server.port}"], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline().strip() == "runs"
        assert len(server.children()) == 1
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
    case.eventually(lambda: server.children() == [])
