"""Device servers that clients find by a tracker's key: heddle rpc-tracker and TVM's messages, limits of sessions, what a tracker may
not do, and trackers that say nothing or nonsense.

timeout: 120
"""
import contextlib
import json
import socket
import struct
import threading

import pytest

import rpc_case
import rpc_theirs
from remote_case import Client, digits, eventually, serving
from tool_case import DIGITS, heddle

KEY = "board"


@pytest.fixture(scope="module")
def tracker():
    with rpc_case.tracker() as t:
        yield t


def summary(tracker):
    """(number of servers, free keys of KEY)"""
    with socket.create_connection(("127.0.0.1", tracker.port), 5) as s:
        s.settimeout(10)
        s.sendall(struct.pack("<I", rpc_case.TRACKER_MAGIC))
        assert s.recv(4) == struct.pack("<I", rpc_case.TRACKER_MAGIC)
        s.sendall(struct.pack("<I", 3) + b"[6]")
        length = struct.unpack("<I", s.recv(4, socket.MSG_WAITALL))[0]
        status, about = json.loads(s.recv(length, socket.MSG_WAITALL))
    assert status == 0
    servers = [one for one in about["server_info"] if one["key"] == f"server:{KEY}"]
    return len(servers), about["queue_info"].get(KEY, {"free": 0})["free"]


def registered(tracker, *words):
    return serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--tracker", f"127.0.0.1:{tracker.port}", "--key", KEY, *words)


def run(tracker, key=KEY, **env):
    if "HEDDLE_REMOTE" not in env:
        env["HEDDLE_REMOTE"] = f"tracker:127.0.0.1:{tracker.port}/{key}"
    return heddle("run", DIGITS, "--device", "remote", "--place", "*=remote:0", "--random", **env)


def test_a_server_is_found_by_its_key(tracker):
    want = pytest.approx(digits(heddle("run", DIGITS, "--device", "cpu,sim", "--random")), rel=2e-5)
    with registered(tracker) as server:
        eventually(lambda: summary(tracker) == (1, 1))
        listed = heddle("devices", HEDDLE_REMOTE=f"tracker:127.0.0.1:{tracker.port}/{KEY}")
        assert f"tracker:127.0.0.1:{tracker.port}/{KEY}/cpu:0" in listed.out, listed
        for _ in range(2):  # each takes a key, and the server offers the next
            done = run(tracker)
            assert digits(done) == want
        none = run(tracker, "other", HEDDLE_REMOTE_CONNECT_MS="300")
        assert none.status == 1 and "no free server" in none.err, none
        eventually(lambda: summary(tracker) == (1, 1))  # one key, however many clients came
        assert server.stop() == 0
    eventually(lambda: summary(tracker) == (0, 0))


def test_tvms_tracker():
    pytest.importorskip("tvm.rpc", reason="the TVM of this environment is not there")
    with rpc_theirs.running("tracker") as theirs, registered(theirs) as server:
        eventually(lambda: summary(theirs) == (1, 1))
        for _ in range(2):
            assert run(theirs).status == 0, server.err()
        eventually(lambda: summary(theirs) == (1, 1))


def test_a_full_server_offers_nothing(tracker):
    with registered(tracker, "--sessions", 1) as server:
        eventually(lambda: summary(tracker) == (1, 1))
        first = Client(server.port)  # without the tracker, whose key is withdrawn
        eventually(lambda: summary(tracker) == (1, 0))
        assert run(tracker, HEDDLE_REMOTE_CONNECT_MS="500").status == 1
        done = []
        waits = threading.Thread(target=lambda: done.append(run(tracker, HEDDLE_REMOTE_CONNECT_MS="20000")))
        waits.start()
        first.close()
        waits.join(60)
        assert done and done[0].status == 0, done


def test_tls_is_used_where_the_client_has_a_key(tracker, tmp_path):
    for name in "a", "b":
        assert heddle("keys", "-o", tmp_path / name).status == 0
    with registered(tracker, "--psk", tmp_path / "a"):
        eventually(lambda: summary(tracker) == (1, 1))
        for words, status in ({"HEDDLE_REMOTE_PSK": str(tmp_path / "a")}, 0), ({"HEDDLE_REMOTE_PSK": str(tmp_path / "b")}, 1), ({}, 1):
            assert run(tracker, **words).status == status, words


def test_a_server_comes_back_to_its_tracker():
    with rpc_case.tracker() as first:
        port = first.port
        server = registered(first)
        s = server.__enter__()
        eventually(lambda: summary(first) == (1, 1))
    try:
        with rpc_case.tracker("--port", port) as again:
            eventually(lambda: summary(again) == (1, 1), 20)
            assert run(again).status == 0
            assert s.err().count("does not answer") <= 1, s.err()
    finally:
        server.__exit__(None, None, None)


class Fake:
    """A tracker that answers every request with given bytes, after the number."""

    def __init__(self, magic, answer):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._kept = []
        threading.Thread(target=self._serve, args=(magic, answer), daemon=True).start()

    def _serve(self, magic, answer):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self._listener.accept()
                self._kept.append(s)
                with contextlib.suppress(OSError):
                    s.sendall(magic + answer)

    def close(self):
        self._listener.close()
        for s in self._kept:
            s.close()


GOOD = struct.pack("<I", rpc_case.TRACKER_MAGIC)


def message(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<I", len(text)) + text


@pytest.mark.parametrize("magic, answer, text", [
    (b"", b"", "did not answer"),
    (b"HTTP", b"/1.0 400", "no tracker"),
    (GOOD, b"", "no free server"),
    (GOOD, struct.pack("<I", 0xFFFFFFFF), "no tracker"),
    (GOOD, message(b"\0" * 40), "no tracker"),
    (GOOD, message(b"[" * 40000), "no tracker"),
    (GOOD, message([-1, "no"]), "no tracker"),
    (GOOD, message([0, ["127.0.0.1", 70000, "k"]]), "no tracker"),
    (GOOD, message([0, ["127.0.0.1", -1, "k"]]), "no tracker"),
    (GOOD, message([0, ["h" * 300, 9, "k"]]), "no tracker"),
    (GOOD, message([0, {"host": "127.0.0.1"}]), "no tracker"),
    (GOOD, message([0, ["192.0.2.1", 9, "k"]]), "not authenticated without TLS"),  # another machine, which nothing authenticates
    (GOOD, message([0, ["unix:/tmp/x", 9, "k"]]), "remote"),
])
def test_what_a_tracker_may_answer(magic, answer, text):
    fake = Fake(magic, answer)
    try:
        got = run(fake, HEDDLE_REMOTE_CONNECT_MS="400")
        assert got.status == 1 and text in got.err, got
    finally:
        fake.close()


def test_a_tracker_that_says_nothing_delays_no_client():
    fake = Fake(b"", b"")
    try:
        with registered(fake) as server:
            at = {"HEDDLE_REMOTE": f"tcp:127.0.0.1:{server.port}", "HEDDLE_REMOTE_CONNECT_MS": "2000"}
            assert run(fake, **at).status == 0
            eventually(lambda: "does not answer" in server.err(), 15)
            assert run(fake, **at).status == 0
    finally:
        fake.close()


def test_wrong_words():
    for words in (["--listen", "127.0.0.1:0", "--tracker", "x"], ["--listen", "127.0.0.1:0", "--tracker", "x:9"],
                  ["--unix", "/tmp/s", "--tracker", "x:9", "--key", "k"], ["--listen", "127.0.0.1:0", "--key", "k"],
                  ["--listen", "127.0.0.1:0", "--tracker", "x:9", "--key", "a b"], ["--stdio", "--tracker", "x:9", "--key", "k"]):
        refused = heddle("device-server", *words)
        assert refused.status == 2 and "device-server" in refused.err, refused
    for address in "tracker:x:9", "tracker:x:9/", "tracker:x/k", "tracker:/k":
        refused = run(None, HEDDLE_REMOTE=address)
        assert refused.status == 1 and "needs" in refused.err, refused
