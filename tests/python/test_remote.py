"""heddle device-server and the plugin remote by the tool: plans and runs over every kind of connection, each refusal of a
client, messages that no client sends, and the limits of sessions.

timeout: 300
"""
import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
import time

import pytest

import remote_case as case
from remote_case import Authority, Client, frame, serving, u32, u64
from tool_case import DIGITS, TOOL, environment, heddle

EVERYWHERE = ("--place", "*=remote:0", "--random")
MIXED = ("--device", "remote:0,remote:1,cpu,sim", "--place", "s*=remote:0", "--place", "wide*=remote:1", "--random")
LOCAL = ("--device", "cpu,sim", "--random")
SMALL = os.environ.get("HEDDLE_SANITIZE", "") != ""


def run(servers, *words, **env):
    return heddle("run", DIGITS, *words, HEDDLE_REMOTE_SERVERS=servers, **env)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("remote") / "socket"
    with serving("--listen", "127.0.0.1:0", "--unix", path, "--devices", "cpu,sim", "--session-memory", 512) as s:
        s.unix = f"unix:{path}"
        s.tcp = f"tcp:127.0.0.1:{s.port}"
        yield s


def test_devices_are_listed_with_their_servers(server):
    out = heddle("devices", HEDDLE_REMOTE_SERVERS=f"{server.unix},{server.tcp}").out
    assert "remote:0" in out and "remote:3" in out and f"{server.tcp}/cpu:0" in out


def test_a_mixed_graph_is_the_local_one(server):
    want = pytest.approx(case.digits(heddle("run", DIGITS, *LOCAL)), rel=2e-5)  # regions are cut in another way
    assert case.digits(run(server.unix, *MIXED)) == want
    assert case.digits(run(server.tcp, *MIXED, HEDDLE_LAYERS="check")) == want
    assert case.digits(run(f"exec:{TOOL} device-server --stdio --devices cpu,sim", *MIXED)) == want
    plan = heddle("plan", DIGITS, *MIXED[:-1], HEDDLE_REMOTE_SERVERS=server.unix)
    assert "remote:1" in plan.out and plan.status == 0


@pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")), reason="AddressSanitizer looks at sent bytes behind the call that "
                    "sent them, when the answer may have come and their owner freed them")
def test_the_kit_passes_it(server):
    only = [f"--only={group}/*" for group in ("copy", "events", "fences", "streams", "health", "capture")]
    done = subprocess.run([str(TOOL), "check-plugin", str(case.PLUGIN), "--quick", "--no-store", "--set",
                           f"remote.servers={server.unix}", *only, "--only=query/impossible", "--only=numerics/run:Conv", "--only=numerics/resize"],
                          capture_output=True, text=True, timeout=250, env=environment())
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout[-4000:]


# ---- who is served

def test_certificates(tmp_path):
    authority = Authority(tmp_path)
    other = Authority(tmp_path, "other")
    cert, key = authority.make("server")
    mine = authority.make("client")
    foreign = other.make("foreign")
    old = authority.make("old", expired=True)
    elsewhere = authority.make("elsewhere", names="DNS:elsewhere.example")

    def client(pair, ca, **more):
        return {"HEDDLE_REMOTE_TLS_CERT": str(pair[0]), "HEDDLE_REMOTE_TLS_KEY": str(pair[1]), "HEDDLE_REMOTE_TLS_CA": str(ca), **more}

    with serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--tls-cert", cert, "--tls-key", key, "--tls-ca", authority.ca) as s:
        at = f"tls:127.0.0.1:{s.port}"
        words = ("--device", "remote", *EVERYWHERE)
        assert run(at, *words, **client(mine, authority.ca)).status == 0
        for wrong in (client(foreign, authority.ca), client(old, authority.ca), client(mine, other.ca),
                      client(mine, authority.ca, HEDDLE_REMOTE_TLS_NAME="other.example"), {}):
            refused = run(at, *words, **wrong)
            assert refused.status == 1 and "remote" in refused.err, refused
        (tmp_path / "no.pem").write_text("not PEM\n")
        for wrong, text in ((client((mine[0], tmp_path / "no.key"), authority.ca), "no.key: No such file"),
                            (client((mine[0], foreign[1]), authority.ca), f"{foreign[1]}: it is not the key"),
                            (client((tmp_path / "no.pem", mine[1]), authority.ca), "no.pem: it is no certificate"),
                            (client(mine, tmp_path / "no.pem"), "no.pem: it is no certificate of an authority")):
            refused = run(at, *words, **wrong)
            assert refused.status == 1 and text in refused.err, refused
        assert run(f"tcp:127.0.0.1:{s.port}", *words).status == 1  # TLS is not asked for
        assert run(at, *words, **client(mine, authority.ca)).status == 0
    for pair, text in (elsewhere, "hostname mismatch|IP address mismatch"), (old, "expired"):
        with serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--tls-cert", pair[0], "--tls-key", pair[1], "--tls-ca",
                     authority.ca) as s:
            refused = run(f"tls:127.0.0.1:{s.port}", *words, **client(mine, authority.ca))
            assert refused.status == 1 and any(t in refused.err for t in text.split("|")), refused


def test_keys(tmp_path):
    for name, file in ("lab", "a"), ("lab", "b"), ("desk", "c"):
        assert heddle("keys", "--name", name, "-o", tmp_path / file).status == 0
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert heddle("keys", "-o", tmp_path / "a").status == 1  # it is there
    words = ("--device", "remote", *EVERYWHERE)
    both = tmp_path / "both"
    both.touch(0o600)
    both.write_text((tmp_path / "a").read_text() + (tmp_path / "c").read_text())
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--psk", both) as s:
        at = f"tls:127.0.0.1:{s.port}"
        for file, status in ("a", 0), ("b", 1), ("c", 0):
            r = run(at, *words, HEDDLE_REMOTE_PSK=str(tmp_path / file))
            assert r.status == status and (status == 0 or f"does not know the key of '{tmp_path / file}'" in r.err), (file, r)
        assert heddle("keys", "--name", "nobody", "-o", tmp_path / "d").status == 0
        assert "does not know the key" in run(at, *words, HEDDLE_REMOTE_PSK=str(tmp_path / "d")).err
        (tmp_path / "c").chmod(0o644)
        assert "only its owner" in run(at, *words, HEDDLE_REMOTE_PSK=str(tmp_path / "c")).err
        assert run(f"tcp:127.0.0.1:{s.port}", *words).status == 1
    (tmp_path / "b").chmod(0o640)
    assert "only its owner" in heddle("device-server", "--listen", "127.0.0.1:0", "--devices", "cpu", "--psk", tmp_path / "b").err


class Recorder(case.Relay):
    """Keeps what clients sent."""

    def __init__(self, port):
        self.sent = []
        super().__init__(port)

    def _carry(self, a, b, back):
        if back:
            return super()._carry(a, b, back)
        mine = bytearray()
        self.sent.append(mine)
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                mine += data
                b.sendall(data)
        self._end(a, b)


@pytest.mark.parametrize("how", ["key", "certificates"])
def test_a_handshake_that_is_replayed(tmp_path, how):
    """All bytes of a client's connection, sent again by somebody else, are no client: the server's part is new each time."""
    if how == "key":
        assert heddle("keys", "-o", tmp_path / "key").status == 0
        words, env = ("--psk", tmp_path / "key"), {"HEDDLE_REMOTE_PSK": str(tmp_path / "key")}
    else:
        ca = Authority(tmp_path)
        (cert, key), (mine, my_key) = ca.make("server"), ca.make("client")
        words = ("--tls-cert", cert, "--tls-key", key, "--tls-ca", ca.ca)
        env = {"HEDDLE_REMOTE_TLS_CERT": str(mine), "HEDDLE_REMOTE_TLS_KEY": str(my_key), "HEDDLE_REMOTE_TLS_CA": str(ca.ca)}
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu", *words) as s:
        recorder = Recorder(s.port)
        try:
            assert run(f"tls:127.0.0.1:{recorder.port}", "--device", "remote", *EVERYWHERE, **env).status == 0
        finally:
            recorder.close()
        longest = max(recorder.sent, key=len)
        assert len(longest) > 500 and "is refused" not in s.err()
        with socket.create_connection(("127.0.0.1", s.port), 5) as again, contextlib.suppress(OSError):
            again.settimeout(20)
            again.sendall(longest)
            while again.recv(1 << 16):
                pass
        case.eventually(lambda: "a client is refused" in s.err() and s.children() == [])


def test_other_machines_are_served_with_tls_only():
    refused = heddle("device-server", "--listen", "0.0.0.0:0", "--devices", "cpu")
    assert refused.status == 1 and "--psk" in refused.err, refused
    refused = run("tcp:192.0.2.1:9", "--device", "remote", *EVERYWHERE)
    assert refused.status == 1 and "use tls:" in refused.err, refused


# ---- messages that no client sends

def test_another_version(server):
    hello = Client(server.port, frame(case.HELLO, 0, u64(case.MAGIC) + u32(2, 7))).hello
    assert struct.unpack("<QII", hello[:16]) == (case.MAGIC, 1, 4) and b"version 2.7" in hello
    with socket.create_connection(("127.0.0.1", server.port), 5) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 4)
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(100) == b""


def test_what_is_not_the_clients(server):
    """Numbers that were never given, those of another session, and ranges outside: each is an error or the end."""
    a, b = Client(server.port), Client(server.port)
    for c in a, b:
        assert c.ask(case.OPEN, u32(0))[0] == 0
    status, _, rest = a.ask(case.ALLOC, u32(0) + u64(64, 64))
    assert status == 0
    mine = struct.unpack("<Q", rest)[0]
    stream = struct.unpack("<Q", b.ask(case.STREAM, u32(0, 0, 0))[2])[0]

    def done(body):
        b.s.sendall(body)
        kind, number, got = b.receive()
        assert (kind, number) == (case.DONE, stream)
        return struct.unpack("<QI", got[:12])[1]

    assert done(frame(case.READ, stream, u64(1, mine, 0, 64))) == 1  # EINVAL: b has no such buffer
    b.s.sendall(frame(case.RESUME, stream, u64(0)))
    own = struct.unpack("<Q", b.ask(case.ALLOC, u32(0) + u64(64, 64))[2])[0]
    for at, size in (0, 65), (64, 1), (2**64 - 1, 2), (2**63, 2**63):
        assert done(frame(case.READ, stream, u64(2, own, at, size))) == 1, (at, size)
        b.s.sendall(frame(case.RESUME, stream, u64(0)))
    b.s.sendall(frame(case.READ, stream, u64(3, own, 0, 64)))
    assert b.receive()[2] == u64(3) + u32(0, 0, 0) + bytes(64)  # and what was there before is cleared
    assert b.ask(case.OPEN, u32(7))[0] != 0 and b.ask(case.ALLOC, u32(1) + u64(1, 1))[0] != 0 and b.ask(29, b"")[0] != 0
    for c in a, b:
        c.close()


def test_a_client_that_allocates_without_end(server):
    c = Client(server.port)
    assert c.ask(case.OPEN, u32(0))[0] == 0
    sizes = [c.ask(case.ALLOC, u32(0) + u64(100 << 20, 64))[0] for _ in range(8)]
    assert sizes[:5] == [0] * 5 and 2 in sizes[5:]  # ENOMEM from 512 MiB on
    assert c.ask(case.ALLOC, u32(0) + u64(2**62, 64))[0] in (2, 19)
    other = Client(server.port)
    assert other.ask(case.OPEN, u32(0))[0] == 0 and other.ask(case.ALLOC, u32(0) + u64(1 << 20, 64))[0] == 0
    c.s.sendall(struct.pack("<QII", 2**40, case.BLOB, 0) + bytes(1000))  # a message over the limit ends the session
    with pytest.raises((EOFError, OSError)):
        c.receive()
    other.close()


def test_random_and_mutated_bytes(server):
    rng = random.Random(int(os.environ.get("HEDDLE_SEED", "5")))
    good = [frame(case.OPEN, 2, u32(0)), frame(case.ALLOC, 3, u32(0) + u64(256, 64)), frame(case.STREAM, 4, u32(0, 0, 0)),
            frame(case.WRITE, 1, u64(1, 1 << 32 | 1, 0, 16) + bytes(16)), frame(case.READ, 1, u64(2, 1 << 32 | 1, 0, 16)),
            frame(case.QUERY, 5, u32(0) + bytes(40)), frame(case.GRAPH, 6, u32(0, 1) + bytes(48)), frame(case.FREE, 0, u64(1 << 32 | 1))]
    for n in range(30):
        data = bytearray(b"".join(good))
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if n % 5 == 0:
            data = bytearray(rng.randbytes(300))
        c = Client(server.port)
        with c.s as s:
            s.settimeout(1)
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(1 << 16):
                    pass
            except OSError:
                pass
    assert "signal" not in server.err(), server.err()
    assert case.digits(run(server.tcp, "--device", "remote", *EVERYWHERE))


def test_silent_connections_do_no_harm(server):
    silent = []
    try:
        for _ in range(1000):
            s = socket.socket()
            s.settimeout(5)
            s.connect(("127.0.0.1", server.port))
            silent.append(s)
        started = time.monotonic()
        assert case.digits(run(server.tcp, "--device", "remote", *EVERYWHERE))
        assert time.monotonic() - started < 20
        case.eventually(lambda: server.children() == [])
    finally:
        for s in silent:
            s.close()


def test_limits_of_sessions():
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu", "--sessions", 1, "--idle-timeout", 2, "--session-timeout", 60) as s:
        first = Client(s.port)
        assert b"sessions are in use" in Client(s.port).hello
        started = time.monotonic()
        with pytest.raises((EOFError, OSError)):  # it says nothing for two seconds
            while True:
                first.receive()
        assert 1 < time.monotonic() - started < 8
        case.eventually(lambda: s.children() == [])
        assert Client(s.port).ask(case.OPEN, u32(0))[0] == 0


# ---- the server's side of the fuzzing: what a client does with wrong bytes

def liar(answer):
    """A server that sends these bytes once a client has said something."""
    program = ("import socket,sys,time\nl=socket.create_server(('127.0.0.1',0))\nprint(l.getsockname()[1],flush=True)\n"
               "while True:\n c,_=l.accept()\n c.settimeout(2)\n"
               " try:\n  c.recv(64); c.sendall(bytes.fromhex(sys.argv[1])); c.recv(64); time.sleep(.2)\n"
               " except OSError: pass\n c.close()\n")
    return subprocess.Popen([sys.executable, "-c", program, answer.hex()], stdout=subprocess.PIPE, text=True)


def test_wrong_bytes_for_the_client(server):
    hello = Client(server.port).hello
    rng = random.Random(11)
    answers = [b"", rng.randbytes(200), frame(case.HELLO, 0, hello[:-3]), frame(case.HELLO, 0, u64(case.MAGIC) + u32(9, 1)),
               struct.pack("<QII", 2**60, case.HELLO, 0), frame(case.HELLO, 0, hello) + rng.randbytes(100),
               frame(case.HELLO, 0, hello) + frame(case.DONE, 7, bytes(20)), frame(case.HELLO, 0, hello) + frame(case.RESULT, 9, bytes(12))]
    for _ in range(3):
        wrong = bytearray(frame(case.HELLO, 0, hello))
        wrong[rng.randrange(len(wrong))] ^= 1 << rng.randrange(8)
        answers.append(bytes(wrong))
    for answer in answers:
        p = liar(answer)
        try:
            at = f"tcp:127.0.0.1:{p.stdout.readline().strip()}"
            got = run(at, "--device", "remote", *EVERYWHERE, HEDDLE_REMOTE_CONNECT_MS="1000", HEDDLE_REMOTE_SILENCE_MS="1000")
            assert got.status == 1, (answer, got)
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
