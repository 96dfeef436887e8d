"""heddle rpc-proxy with servers and clients of the TVM that is installed and our own, in all pairings; TVM's proxy with our server;
a tracker; and wrong bytes.
timeout: 300
"""
import random
import socket
import struct
import time

import pytest

import rpc_theirs
from rpc_case import MAGIC, MISMATCH, Raw, running, server, tracker, u32, wait_for

tvm_rpc = pytest.importorskip("tvm.rpc", reason="this TVM has no RPC")
DUPLICATE = 0xFF272


def proxy(*words):
    return running("rpc-proxy", *words)


def asks(port, key):
    """A client of TVM that asks a server something; retried while the server is on its way to the proxy."""
    remote = tvm_rpc.connect("127.0.0.1", port, key, session_timeout=30)
    remote.upload(bytearray(b"abc" * 100000), "a.bin")
    assert bytes(remote.download("a.bin")) == b"abc" * 100000
    return remote


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_server_behind_a_proxy(whose):
    with proxy() as p:
        behind = (server("--proxy", f"127.0.0.1:{p.port}", "--key", "px") if whose == "ours"
                  else rpc_theirs.running("behind", "px", p.port))
        with behind:
            for _ in range(2):  # the server comes again after a session
                remote = asks(p.port, "px")
                del remote


def test_our_server_behind_their_proxy():
    with rpc_theirs.running("proxy") as p, server("--proxy", f"127.0.0.1:{p.port}", "--key", "px"):
        remote = asks(p.port, "px")
        del remote


def test_a_tracker_gives_out_servers_behind_a_proxy():
    with tracker() as t, proxy("--tracker", f"127.0.0.1:{t.port}") as p, \
            server("--proxy", f"127.0.0.1:{p.port}", "--key", "board"):
        there = tvm_rpc.connect_tracker("127.0.0.1", t.port)
        wait_for(lambda: "board" in there.summary()["queue_info"])
        for _ in range(2):
            remote = there.request("board", session_timeout=30)
            remote.upload(bytearray(b"x"), "x")
            assert remote.listdir(".") == "x,"
            del remote
        wrong = Raw(p.port, b"client:board")  # not the key that the tracker gave
        assert struct.unpack("<I", wrong.receive(4))[0] == MISMATCH


def test_codes():
    with proxy("--wait", 1) as p:
        first, second = Raw(p.port, b"server:a"), Raw(p.port, b"server:a")
        assert struct.unpack("<I", second.receive(4))[0] == DUPLICATE
        assert struct.unpack("<I", first.receive(4))[0] == MISMATCH  # after a second without a client
        one, other = Raw(p.port, b"client:b -timeout=9"), Raw(p.port, b"server:b")
        assert other.accepted() == b"client:b -timeout=9" and one.accepted() == b"server:b"
        one.s.sendall(b"to the server")
        assert other.receive(13) == b"to the server"
        other.s.sendall(b"back" * 100000)
        other.s.close()
        assert one.receive(400000) == b"back" * 100000 and one.receive(1) is None
        assert Raw(p.port, b"client:").receive(1) is None and Raw(p.port, b"other:x").receive(1) is None
        try:
            assert Raw(p.port, b"client:x", magic=1).receive(1) is None
        except ConnectionResetError:  # closed with bytes that it did not read
            pass


def test_random_bytes_and_silence():
    rng = random.Random(1)
    with proxy() as p:
        silent = [socket.create_connection(("127.0.0.1", p.port)) for _ in range(300)]
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", p.port)) as s:
                s.sendall(rng.choice([b"", u32(MAGIC), u32(MAGIC) + u32(9), u32(MAGIC) + u32(1 << 31)]) + rng.randbytes(rng.randrange(40)))
        one, other = Raw(p.port, b"server:k"), Raw(p.port, b"client:k")
        assert one.accepted() == b"client:k" and other.accepted() == b"server:k"
        for s in silent:
            s.close()


def test_a_slow_reader_does_not_fill_memory():
    with proxy() as p:
        one, other = Raw(p.port, b"server:k"), Raw(p.port, b"client:k")
        assert one.accepted() and other.accepted()
        one.s.settimeout(0.2)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 1 << 28:
                sent += one.s.send(bytes(1 << 16))
        assert sent < 64 << 20
        time.sleep(0.1)
        with open(f"/proc/{p.children()[0] if p.children() else p.pid}/status") as f:
            peak = [int(line.split()[1]) for line in f if line.startswith("VmHWM")][0]
        assert peak < 200 * 1024
