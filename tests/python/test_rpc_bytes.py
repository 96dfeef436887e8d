"""heddle rpc-server and heddle rpc-tracker byte by byte: exchanges as clients of TVM v0.14 and v0.27 have them, wrong and random
bytes, huge lengths, connections that say nothing, wrong keys, clients that go away, and what a tracker is for.
timeout: 300
"""
import json
import os
import random
import resource
import signal
import socket
import struct
import time

import pytest

from rpc_case import MAGIC, MISMATCH, TRACKER_MAGIC, Raw, folders, running, server, tracker, u32, u64, wait_for
from tool_case import failing, heddle


@pytest.fixture(scope="module")
def served():
    with server("--sessions", 16) as s:
        yield s


def text_b(data):
    return u32(8) + u64(len(data)) + data


def find(raw, name):
    """The handle of a function, by a client of v0.21 and later."""
    code, body = raw.ask(9, u32(1) + text_b(name))
    assert code == 4 and body[:8] == u32(1) + u32(4)
    return body[8:]


# ---- both eras

def test_the_exchange_of_v0_27(served):
    with Raw(served.port) as c:
        assert c.accepted() == b"server:"
        assert c.ask(2, u64(5) + b"0.8.0" + u32(0)) == (4, u32(0))
        assert find(c, b"tvm.rpc.server.GetCRTMaxPacketSize") == u64(0)
        code, data = c.ask(17, u32(2) + u32(7) + u64(0) + u32(1) + u32(0) + u32(1) + b"\x02\x20\x01\0" + u64(2) + u64(0) + u32(0))
        handle = data[8:]
        assert code == 4 and data[:8] == u32(1) + u32(4) and handle != u64(0)
        tensor = handle + u32(1) + u32(0) + u32(1) + b"\x02\x20\x01\0" + u64(2) + u64(0)
        value = struct.pack("<ff", 1, -2.5)
        assert c.ask(7, tensor + u64(8) + value) == (4, u32(1) + u32(0))
        assert c.ask(15, u32(2) + u32(6) + u32(1) + u32(0) + u32(4) + u64(0)) == (4, u32(1) + u32(0))
        assert c.ask(6, tensor + u64(8)) == (8, value)
        f = find(c, b"tvm.rpc.server.workpath")
        code, data = c.ask(3, f + u32(1) + text_b(b"x"))
        assert code == 4 and data[:16] == u32(2) + u32(1) + u64(11) and data[16:20] == u32(8) and data.endswith(b"/x")
        code, data = c.ask(3, f + u32(1) + text_b(b"a/b"))
        assert code == 5 and data[:8] == u32(1) + u32(8) and b"plain file name" in data
        assert c.ask(10, u32(1) + u32(4) + f) == (4, u32(1) + u32(0))
        assert c.ask(10, u32(1) + u32(4) + f)[0] == 5  # it was freed
        assert c.ask(14, u32(2) + u32(6) + u32(1) + u32(0) + u32(4) + handle) == (4, u32(1) + u32(0))
        assert c.ask(6, tensor + u64(8))[0] == 5
        c.packet(1)
        assert c.is_closed()


def test_the_exchange_of_v0_14(served):
    """Tags first, then the payloads; other numbers of types."""
    with Raw(served.port) as c:
        c.accepted()
        assert c.ask(2, u64(5) + b"0.8.0" + u32(0)) == (4, u32(0))
        name = b"tvm.rpc.server.upload"
        code, data = c.ask(9, u32(1) + u32(11) + u64(len(name)) + name)
        assert code == 4 and data[:8] == u32(1) + u32(3)
        upload = data[8:]
        body = upload + u32(2) + u32(11) + u32(12) + u64(5) + b"x.bin" + u64(5) + b"he\0lo"
        assert c.ask(3, body) == (4, u32(2) + u32(0) + u32(4) + u64(4))
        name = b"tvm.rpc.server.download"
        download = c.ask(9, u32(1) + u32(11) + u64(len(name)) + name)[1][8:]
        assert c.ask(3, download + u32(1) + u32(11) + u64(5) + b"x.bin") == (
            4, u32(2) + u32(0) + u32(12) + u64(12) + u64(5) + b"he\0lo")
        assert c.ask(12, u32(2) + u32(6) + u32(0) + u32(1) + u32(0) + u64(0)) == (4, u32(1) + u32(0) + u64(1))
        assert c.ask(12, u32(2) + u32(6) + u32(0) + u32(1) + u32(0) + u64(99)) == (4, u32(1) + u32(4))
        code, data = c.ask(17, u32(2) + u32(7) + u32(4) + u64(0) + u32(1) + u32(0) + u32(1) + b"\x02\x20\x01\0" + u64(2) + u64(0))
        assert code == 4 and data[:8] == u32(1) + u32(3)
        assert c.ask(10, u32(2) + u32(3) + u32(0) + upload + u64(10)) == (4, u32(1) + u32(4))
        code, data = c.ask(3, download + u32(1) + u32(11) + u64(1) + b"y")
        assert code == 5 and data[:8] == u32(1) + u32(11)


def test_nested_strings_and_pipelining(served):
    with Raw(served.port) as c:
        name = b"tvm.rpc.server.listdir"
        init = u64(4 + 17) + u32(2) + u64(5) + b"0.8.0" + u32(0)
        ask = u32(1) + u32(11) + u32(65) + u64(len(name)) + name
        c.s.sendall(init + u64(0) + u64(4 + len(ask)) + u32(9) + ask)
        assert c.accepted() == b"server:" and c.reply() == (4, u32(0))
        code, data = c.reply()
        assert code == 4 and data[:8] == u32(1) + u32(4) and data[8:] != u64(0)
        assert c.ask(3, data[8:] + u32(1) + u32(65) + u32(65) + u64(1) + b".")[0] == 4


@pytest.mark.parametrize("code,body", [(3, u64(1) + u32(0)), (9, u32(1) + text_b(b"x")), (10, u32(1) + u32(4) + u64(1))])
def test_nothing_before_init(served, code, body):
    with Raw(served.port) as c:
        c.accepted()
        code, data = c.ask(code, body)
        assert code == 5 and b"kInitServer" in data
        assert c.ask(2, u64(5) + b"0.8.0" + u32(0))[0] == 4
        assert c.ask(2, u64(5) + b"0.8.0" + u32(0))[0] == 5


def test_constructors_are_refused(served):
    with Raw(served.port) as c:
        c.accepted()
        name = b"rpc.PopenSession"
        for value in (u32(65) + u32(65), u32(8)):
            code, data = c.ask(2, u64(5) + b"0.8.0" + u32(1) + value + u64(len(name)) + name)
            assert code == 5 and b"rpc.PopenSession" in data


# ---- the handshake

def test_wrong_keys():
    with server("--key", "right") as s:
        for key in (b"client:wrong", b"client:", b"client:right2", b"client:righ"):
            with Raw(s.port, key) as c:
                assert c.receive(4) == u32(MISMATCH) and c.is_closed()
        for key, magic in ((b"client:right", 1), (b"server:right", MAGIC), (b"right", MAGIC), (b"", MAGIC), (b"x" * 2000, MAGIC),
                           (b"client:ri\0ght", MAGIC)):
            with Raw(s.port, key, magic) as c:
                assert c.is_closed()
        with Raw(s.port, b"client:right  -other=1 -timeout=20") as c:
            assert c.accepted() == b"server:right"
        with Raw(s.port, None) as c:
            c.s.sendall(u32(MAGIC) + u32(0xFFFFFFFF))
            assert c.is_closed()


def test_a_handshake_in_pieces(served):
    with Raw(served.port, None) as c:
        for byte in u32(MAGIC) + u32(7) + b"client:":
            c.s.sendall(bytes([byte]))
            time.sleep(0.002)
        assert c.init()[0] == 4


def test_connections_that_say_nothing():
    """They keep nobody else waiting, and more of them than there is room for push out the oldest."""
    with server() as s:
        silent = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(300)]
        half = [Raw(s.port, None) for _ in range(20)]
        for h in half:
            h.s.sendall(u32(MAGIC))
        with Raw(s.port) as c:
            assert c.init()[0] == 4
        for x in [*silent, *half]:
            x.close()


def test_others_wait_for_the_session():
    with server("--sessions", 1) as s:
        with Raw(s.port) as first, Raw(s.port) as second:
            assert first.init()[0] == 4
            second.s.settimeout(0.3)
            with pytest.raises(TimeoutError):
                second.s.recv(1)
            second.s.settimeout(20)
            first.close()
            assert second.init()[0] == 4


# ---- hostile sessions

HOSTILE = {
    "length without bytes": u64(1 << 62),
    "length over the limit": u64(2 << 30),
    "negative length": u64((1 << 64) - 1),
    "too short for a code": u64(2) + b"ab",
    "unknown code": u64(4) + u32(99),
    "a reply": u64(12) + u32(4) + u32(1) + u32(0),
    "count": u64(4 + 4) + u32(9) + u32(0xFFFFFFFF),
    "count and little": u64(4 + 12) + u32(9) + u32(3) + u64(0),
    "string length": u64(4 + 16) + u32(9) + u32(1) + u32(8) + u64(1 << 63),
    "left over": u64(4 + 33) + u32(9) + u32(1) + u32(8) + u64(1) + b"x" + b"\0" * 16,
    "zero in a string": u64(4 + 18) + u32(9) + u32(1) + u32(8) + u64(2) + b"\0x",
    "dimensions": u64(4 + 40) + u32(6) + u64(1) + u32(1) + u32(0) + u32(0x7FFFFFFF) + u32(0x12002) + u64(1) + u64(0),
    "negative dimension": u64(4 + 48) + u32(6) + u64(1) + u32(1) + u32(0) + u32(1) + u32(0x12002) + u64((1 << 64) - 1) + u64(0) + u64(4),
    "overflowing shape": u64(4 + 56) + u32(6) + u64(1) + u32(1) + u32(0) + u32(2) + u32(0x12002) + u64(1 << 40) + u64(1 << 40) + u64(0) + u64(4),
    "unknown tag": u64(4 + 8) + u32(9) + u32(1) + u32(77),
    "wrong kinds": u64(4 + 28) + u32(15) + u32(2) + 2 * (u32(1) + u64(0)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_malformed_packets(served, what):
    """The server's last packet is kShutdown, and the others go on."""
    with Raw(served.port) as c, Raw(served.port) as other:
        assert c.init()[0] == 4 and other.init()[0] == 4
        c.s.sendall(HOSTILE[what])  # a length over the limit is refused before any byte of it
        assert c.reply() in ((1, b""), None)
        assert other.ask(12, u32(2) + u32(6) + u32(1) + u32(0) + u32(1) + u64(0))[0] == 4


def test_wrong_handles(served):
    with Raw(served.port) as c:
        c.init()
        own = find(c, b"tvm.rpc.server.listdir")
        for handle in (u64(0), u64(1), u64(0x4141414141414141), struct.pack("<Q", struct.unpack("<Q", own)[0] ^ 1 << 33)):
            assert c.ask(3, handle + u32(0))[0] == 5
            assert c.ask(10, u32(1) + u32(4) + handle)[0] == 5
            assert c.ask(14, u32(2) + u32(6) + u32(1) + u32(0) + u32(4) + handle)[0] == 5
            tensor = handle + u32(1) + u32(0) + u32(1) + b"\x02\x20\x01\0" + u64(2) + u64(0)
            assert c.ask(6, tensor + u64(8))[0] == 5 and c.ask(7, tensor + u64(1) + b"x")[0] == 5
            assert c.ask(16, u32(3) + u32(7) + tensor + u32(7) + tensor + u32(4) + u64(0))[0] == 5
            if handle != u64(0):
                f = find(c, b"runtime.GetDeviceAttr")
                assert c.ask(3, f + u32(1) + u32(4) + handle)[0] == 5
                assert c.ask(15, u32(2) + u32(6) + u32(1) + u32(0) + u32(4) + handle)[0] == 5
        assert c.ask(3, own + u32(1) + text_b(b"."))[0] == 4


def test_bounds_of_memory(served):
    with Raw(served.port) as c:
        c.init()
        alloc = u32(4) + u32(6) + u32(1) + u32(0) + u32(1) + u64(16) + u32(1) + u64(64) + u32(5) + b"\0\x08\x01\0" + u32(0)
        handle = c.ask(13, alloc)[1][8:]

        def tensor(n, offset, device=1):
            return handle + u32(device) + u32(0) + u32(1) + b"\x01\x08\x01\0" + u64(n) + u64(offset)
        assert c.ask(7, tensor(16, 0) + u64(16) + b"0123456789abcdef")[0] == 4
        assert c.ask(6, tensor(6, 10) + u64(6)) == (8, b"abcdef")
        for n, offset, size, device in ((16, 1, 16, 1), (17, 0, 17, 1), (1, 1 << 63, 1, 1), (1, 16, 1, 1), (16, 0, 1 << 40, 1),
                                        (16, 0, 16, 2)):
            assert c.ask(6, tensor(n, offset, device) + u64(size))[0] == 5
        for size in ((1 << 63) - 1, (1 << 64) - 1, 1 << 50):
            body = u32(4) + u32(6) + u32(1) + u32(0) + u32(1) + u64(size) + u32(1) + u64(64) + u32(5) + b"\0\x08\x01\0" + u32(0)
            assert c.ask(13, body)[0] == 5
        assert c.ask(6, tensor(6, 10) + u64(6)) == (8, b"abcdef")


def test_too_many_handles_and_values(served):
    with Raw(served.port) as c:
        c.init()
        f = find(c, b"tvm.rpc.server.listdir")
        assert c.ask(3, f + u32(4096) + u32(0) * 4096)[0] == 5  # the function takes one
        c.packet(3, f + u32(4097) + u32(0) * 4097)
        assert c.reply() in ((1, b""), None)


def test_random_bytes(served):
    rng = random.Random(7)
    for n in range(60):
        with Raw(served.port, None if n % 3 == 0 else b"client:") as c:
            if n % 3 != 0:
                c.accepted()
            if n % 3 == 1:
                c.packet(2, u64(5) + b"0.8.0" + u32(0))
            try:
                for _ in range(rng.randrange(1, 20)):
                    data = bytes(rng.choice((0, 1, 4, 8, 255, rng.randrange(256))) for _ in range(rng.randrange(60)))
                    c.s.sendall(data if n % 2 else u64(4 + len(data)) + u32(rng.randrange(2, 22)) + data)
            except (BrokenPipeError, ConnectionResetError):
                pass
    with Raw(served.port) as c:
        assert c.init()[0] == 4
    assert "signal" not in served.err(), served.err()


def test_clients_that_go_away(tmp_path):
    with server("--sessions", 8, TMPDIR=str(tmp_path)) as s:
        for data in (b"", u64(1000) + u32(7), u64(4 + 8) + u32(9) + u32(1) + u32(8)):
            c = Raw(s.port)
            c.init()
            c.s.sendall(data)
            c.close()
        reset = Raw(s.port)
        reset.init()
        reset.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        wait_for(lambda: not s.children() and not folders(tmp_path))


def test_a_killed_session(tmp_path):
    with server("--sessions", 2, TMPDIR=str(tmp_path)) as s, Raw(s.port) as c:
        c.init()
        pid, = s.children()
        other = Raw(s.port)
        other.init()
        os.kill(pid, signal.SIGKILL)
        assert c.is_closed()
        assert other.ask(12, u32(2) + u32(6) + u32(1) + u32(0) + u32(1) + u64(0))[0] == 4
        wait_for(lambda: len(folders(tmp_path)) == 1 and "signal 9" in s.err())
        other.close()


# ---- the tool

def test_addresses_that_are_not_loopback():
    for command in ("rpc-server", "rpc-tracker"):
        for host in ("0.0.0.0", "::"):
            err = failing(1, command, "--host", host)
            assert "no authentication" in err and "--insecure-tvm-rpc" in err or "not known" in err
        with running(command, "--host", "0.0.0.0", "--insecure-tvm-rpc") as p:
            assert p.port > 0
    with server("--host", "localhost") as s:
        assert s.port > 0


def test_words():
    for words in (["--port", "70000"], ["--port-range", "9"], ["--port-range", "9-8"], ["--port-range", "0-9"], ["--tracker", "x"],
                  ["--tracker", "x:0"], ["--tracker", "x:9"], ["--key", "a b"], ["--sessions", "1000"]):
        assert heddle("rpc-server", *words).status == 2, words
    with server("--port-range", "20000-60000") as a, server("--port-range", f"{a.port}-60000") as b:
        assert b.port > a.port
        assert "cannot listen" in failing(1, "rpc-server", "--port", a.port)


# ---- the tracker

class Client:
    def __init__(self, port, magic=TRACKER_MAGIC):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.s.sendall(u32(magic))
        if magic == TRACKER_MAGIC:
            assert self.s.recv(4, socket.MSG_WAITALL) == u32(magic)

    def send(self, message):
        text = json.dumps(message).encode()
        self.s.sendall(u32(len(text)) + text)

    def receive(self):
        n, = struct.unpack("<I", self.s.recv(4, socket.MSG_WAITALL))
        return json.loads(self.s.recv(n, socket.MSG_WAITALL))

    def ask(self, message):
        self.send(message)
        return self.receive()

    def put(self, key, number):
        assert self.ask([3, key, [5000 + number, f"{key}:{number}"], None]) == 0

    def close(self):
        self.s.close()


@pytest.fixture
def clients():
    opened = []
    with tracker() as t:
        def connect():
            opened.append(Client(t.port))
            return opened[-1]
        connect.port = t.port
        yield connect
        for c in opened:
            c.close()


def test_the_tracker(clients):
    s, c = clients(), clients()
    assert c.ask([1]) == 0 and c.ask([2, "x"]) == -1
    assert s.ask([5, {"key": "server:board", "addr": [None, 19090], "more": 1}]) == 0
    assert c.ask([6]) == [0, {"queue_info": {"board": {"free": 0, "pending": 0}},
                              "server_info": [{"key": "server:board", "addr": ["127.0.0.1", 19090], "more": 1}]}]
    s.put("board", 1)
    assert s.ask([7]) == ["board:1"]
    assert s.ask([3, "board", [7, "board:2"], "board.example"]) == 0
    assert c.ask([4, "board", "", 1]) == [0, ["127.0.0.1", 5001, "board:1"]]
    assert s.ask([7]) == ["board:2"]
    assert c.ask([4, "board", "", 1]) == [0, ["board.example", 7, "board:2"]]
    assert c.ask([6])[1]["queue_info"] == {"board": {"free": 0, "pending": 0}}


def test_priorities_and_cancelled_requests(clients):
    s, low, high, gone, other = (clients() for _ in range(5))
    low.send([4, "k", "", 1])
    wait_for(lambda: s.ask([6])[1]["queue_info"].get("k", {}).get("pending") == 1)
    for c, priority in ((gone, 9), (high, 5), (other, 1)):
        c.send([4, "k", "", priority])
    wait_for(lambda: s.ask([6])[1]["queue_info"]["k"]["pending"] == 4)
    gone.close()
    wait_for(lambda: s.ask([6])[1]["queue_info"]["k"]["pending"] == 3)
    s.put("else", 9)
    for n, c in enumerate((high, low, other)):
        s.put("k", n)
        assert c.receive() == [0, ["127.0.0.1", 5000 + n, f"k:{n}"]]


def test_lost_servers(clients):
    s, c = clients(), clients()
    s.ask([5, {"key": "server:k", "addr": [None, 1]}])
    s.put("k", 1)
    assert c.ask([6])[1]["queue_info"]["k"]["free"] == 1
    s.close()
    wait_for(lambda: c.ask([6]) == [0, {"queue_info": {}, "server_info": []}])


@pytest.mark.parametrize("data", [b"", u32(0), u32(0xFFFFFFFF), u32(1 << 20), u32(2) + b"{}", u32(3) + b"[9]", u32(3) + b"[[[",
                                  u32(4) + b"\xff\xff\xff\xff", u32(3) + b"[3]", u32(3) + b"[4]", u32(3) + b"[5]",
                                  u32(12) + b"[3,\"k\",[],0]", u32(13) + b"[4,\"k\",\"\",[]]", u32(9) + b"[4,\"\\u0000"])
def test_what_the_tracker_refuses(clients, data):
    c, other = clients(), clients()
    c.s.sendall(data)
    if not data:
        c.s.shutdown(socket.SHUT_WR)
    if data == u32(9) + b"[4,\"\\u0000":
        c.s.sendall(b"\"]")
    assert c.s.recv(1) == b""
    assert other.ask([1]) == 0
    wrong = Client(clients.port, MAGIC)
    assert wrong.s.recv(1) == b""
    wrong.close()


def test_the_tracker_and_random_bytes(clients):
    rng = random.Random(3)
    silent = [socket.create_connection(("127.0.0.1", clients.port)) for _ in range(100)]
    for _ in range(100):
        c = clients()
        text = bytes(rng.choice(b'[]{},:"0123456789kx\\u-.') for _ in range(rng.randrange(1, 40)))
        c.s.sendall(u32(len(text)) + text)
        c.close()
    assert clients().ask([1]) == 0
    for s in silent:
        s.close()


def test_more_connections_than_the_tracker_has_room_for():
    """The oldest that said nothing gives way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip(f"this process may have {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    try:
        with tracker() as t:
            known = Client(t.port)
            silent = [socket.create_connection(("127.0.0.1", t.port)) for _ in range(1100)]
            late = Client(t.port)
            assert known.ask([1]) == 0 and late.ask([1]) == 0
            for s in (*silent, known, late):
                s.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_key_that_is_taken_but_not_used():
    """The server offers another one after some polls, and comes back when the tracker was away."""
    with tracker() as t, server("--tracker", f"127.0.0.1:{t.port}", "--key", "k") as s:
        c = Client(t.port)
        wait_for(lambda: c.ask([6])[1]["queue_info"].get("k", {}).get("free") == 1)
        _, (host, port, first) = c.ask([4, "k", "", 1])
        assert (host, port) == ("127.0.0.1", s.port) and first.startswith("k:")
        _, (_, _, second) = c.ask([4, "k", "", 1])
        assert second != first and second.startswith("k:")
        with Raw(s.port, b"client:" + first.encode()) as raw:
            assert raw.receive(4) == u32(MISMATCH)
        with Raw(s.port, b"client:" + second.encode()) as raw:
            assert raw.init()[0] == 4
        c.close()


def test_the_tracker_comes_back():
    with tracker() as t:
        port = t.port
    with server("--tracker", f"127.0.0.1:{port}", "--key", "k") as s:
        wait_for(lambda: "does not answer" in s.err())
        with tracker("--port", port):
            c = Client(port)
            wait_for(lambda: c.ask([6])[1]["queue_info"].get("k", {}).get("free") == 1)
            c.close()
