"""TVM's RPC inside the connection of a device server: clients of TVM and of Heddle by heddle rpc-tunnel, over TLS, a Unix socket and
standard input; who is refused; limits, cuts, and bytes that no client sends.
timeout: 300
"""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading

import numpy as np
import pytest

import remote_case as case
import rpc_case  # noqa: F401  skips where heddle-rpc is not built
from fixtures import tvm_legacy as legacy
from remote_case import Authority, Client, eventually, frame, relayed, serving, u32, u64
from rpc_case import Raw, running
from tool_case import TOOL, heddle

tvm = pytest.importorskip("tvm", reason="the TVM of this environment is not there")
tvm_rpc = pytest.importorskip("tvm.rpc", reason="this TVM has no RPC")

TUNNEL, DATA = 7, 8
TUNNEL_FRAME = frame(TUNNEL, 0, u64(case.MAGIC) + u32(1, 2))


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "key"
    assert heddle("keys", "-o", path).status == 0
    return path


@pytest.fixture(scope="module")
def server(key):
    with serving("--listen", "127.0.0.1:0", "--psk", key, "--devices", "cpu", "--tvm-rpc", "--session-memory", 256) as s:
        yield s


@contextlib.contextmanager
def tunnel(to, *words, **env):
    with running("rpc-tunnel", "--server", to, *words, **env) as t:
        yield t


def connect(port, **more):
    return tvm_rpc.connect("127.0.0.1", port, "any", session_timeout=60, **more)


def copies(remote):
    x = np.random.default_rng(1).standard_normal(200000).astype("float32")
    on = tvm.runtime.tensor(x, remote.cpu(0))
    np.testing.assert_array_equal(on.numpy(), x)


def test_tvms_client(server, key, tmp_path):
    with tunnel(f"tls:127.0.0.1:{server.port}", "--psk", key) as t:
        remote = connect(t.port)
        copies(remote)
        remote.upload(bytearray(b"abc" * 100000), "a.bin")
        assert bytes(remote.download("a.bin")) == b"abc" * 100000
        if legacy.compiler() is not None:
            kernel = legacy.kernel("add_one", [("x", "float32", (4,)), ("y", "float32", (4,))],
                                   "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;")
            remote.upload(str(legacy.library(tmp_path / "lib.so", "v0.18", [kernel])))
            run = remote.load_module("lib.so")["add_one"]
            x, y = (tvm.runtime.tensor(np.arange(4, dtype="float32"), remote.cpu(0)) for _ in range(2))
            run(x, y)
            np.testing.assert_array_equal(y.numpy(), np.arange(4) + 1)
        other = connect(t.port)  # each connection is a session of its own
        assert other.listdir(".") == ""
        del remote, other
    eventually(lambda: not server.children())


def test_two_ways_without_tcp(key, tmp_path):
    with serving("--unix", tmp_path / "socket", "--devices", "cpu", "--tvm-rpc"), tunnel(f"unix:{tmp_path}/socket") as t:
        copies(connect(t.port))
    with tunnel(f"exec:{TOOL} device-server --stdio --devices cpu --tvm-rpc") as t:
        copies(connect(t.port))


def test_by_the_variables(server, key):
    with running("rpc-tunnel", HEDDLE_REMOTE=f"tls:127.0.0.1:{server.port}", HEDDLE_REMOTE_PSK=key) as t:
        copies(connect(t.port))


def test_certificates(tmp_path):
    ca = Authority(tmp_path)
    cert, secret = ca.make("server")
    mine, my_key = ca.make("client")
    with serving("--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", secret, "--tls-ca", ca.ca, "--devices", "cpu",
                 "--tvm-rpc") as s:
        words = ("--tls-cert", mine, "--tls-key", my_key, "--tls-ca", ca.ca)
        with tunnel(f"tls:127.0.0.1:{s.port}", *words) as t:
            copies(connect(t.port))
        with tunnel(f"tls:127.0.0.1:{s.port}", *words, "--tls-name", "elsewhere") as t:
            assert_refused(t, "certificate")


def assert_refused(t, text):
    with socket.create_connection(("127.0.0.1", t.port), 5) as s:
        s.settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(1) == b""
    eventually(lambda: text in t.err())


def test_who_is_refused(server, key, tmp_path):
    wrong = tmp_path / "wrong"
    assert heddle("keys", "-o", wrong).status == 0
    with tunnel(f"tls:127.0.0.1:{server.port}", "--psk", wrong) as t:
        assert_refused(t, "TLS")
    with tunnel("tcp:192.0.2.1:9300") as t:
        assert_refused(t, "not authenticated without TLS")
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu") as s, tunnel(f"tcp:127.0.0.1:{s.port}") as t:
        assert_refused(t, "--tvm-rpc")  # it was not started with it
    done = subprocess.run([str(TOOL), "rpc-tunnel"], capture_output=True, text=True,
                          env={k: v for k, v in os.environ.items() if k != "HEDDLE_REMOTE"})
    assert done.returncode == 2 and "--server" in done.stderr


def ends(raw):
    """Whether the other end of a connection is gone."""
    raw.s.settimeout(20)
    with contextlib.suppress(ConnectionResetError):
        return raw.s.recv(1) == b""
    return True


def test_a_session_that_is_killed_and_a_link_that_is_cut(key):
    """By a client of bytes: TVM's holds the interpreter that the relay needs."""
    with serving("--listen", "127.0.0.1:0", "--psk", key, "--devices", "cpu", "--tvm-rpc") as s, relayed(s.port) as relay, \
            tunnel(f"tls:127.0.0.1:{relay.port}", "--psk", key) as t:
        for fault in (lambda: s.signal_sessions(signal.SIGKILL), relay.cut, relay.reset):
            raw = Raw(t.port, b"client:board")
            assert raw.accepted() == b"server:board"
            fault()
            assert ends(raw)
            raw.s.close()
            relay.mode = "run"
            eventually(lambda: not s.children())


def programs():
    """The processes that serve a session of TVM's RPC inside a connection."""
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (p / "cmdline").read_bytes().startswith(b"heddle-rpc\0session\0"):
                found.append(int(p.name))
    return found


def test_a_client_that_goes_away_leaves_no_process(server, key):
    before = set(programs())
    with tunnel(f"tls:127.0.0.1:{server.port}", "--psk", key, status=-signal.SIGKILL) as t:
        remote = connect(t.port)
        copies(remote)
        assert set(programs()) - before, "the test looks for the right processes"
        t.stop(signal.SIGKILL)
    eventually(lambda: not set(programs()) - before)
    eventually(lambda: not server.children())


def test_bytes_that_no_tunnel_sends():
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--tvm-rpc") as s:
        for bad in (frame(DATA, 0, b"abc"), frame(DATA, 0, b"\0" * 2000), frame(DATA, 0)[:8] + b"\0" * 8, frame(99, 0),
                    b"\xff" * 16, frame(case.OPEN, 1, u32(0)), os.urandom(5000)):
            c = Client(s.port, TUNNEL_FRAME)
            assert c.hello[16:20] == u32(0)
            with contextlib.suppress(OSError):
                c.s.sendall(bad)
                c.s.shutdown(socket.SHUT_WR)
                while c.s.recv(1 << 16):
                    pass
            c.close()
        eventually(lambda: not s.children())
        with contextlib.closing(Client(s.port)) as c:  # and the server still serves
            assert c.ask(case.OPEN, u32(0))[0] == 0


def test_many_at_once(server, key):
    """As many as the server has sessions for; then it says so."""
    with tunnel(f"tls:127.0.0.1:{server.port}", "--psk", key) as t:
        held = [connect(t.port) for _ in range(8)]
        threads = [threading.Thread(target=copies, args=(remote,)) for remote in held]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        assert_refused(t, "sessions are in use")
        del held, threads
