"""What the tests of TVM's RPC share: the server and the tracker as processes that always end, and a client that sends bytes.

A server and a tracker listen on a port that the system picks, and print it.
"""
import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from tool_case import BUILD, TOOL, environment

if not (BUILD / "libexec" / "heddle" / "heddle-rpc").exists():
    pytest.skip("this build has no HEDDLE_RPC", allow_module_level=True)

MAGIC, MISMATCH, TRACKER_MAGIC = 0xFF271, 0xFF273, 0x2F271


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


class Process:
    """heddle COMMAND WORD...; port; err(): what it wrote to stderr so far."""

    def __init__(self, command, *words, **env):
        self._p = subprocess.Popen([str(TOOL), command, *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**env))
        self._err = []
        self._reader = threading.Thread(target=lambda: self._err.extend(self._p.stderr), daemon=True)
        self._reader.start()
        line = self._p.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("".join(self._err))
        self.port = int(line.rsplit(":", 1)[1])
        self.pid = self._p.pid

    def err(self):
        return "".join(self._err)

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            return [int(n) for n in f.read().split()]

    def stop(self, how=signal.SIGTERM):
        if self._p.poll() is None:
            self._p.send_signal(how)
        try:
            status = self._p.wait(20)
        except subprocess.TimeoutExpired:
            self._p.kill()
            self._p.wait()
            raise
        self._reader.join(10)
        self._p.stdout.close()
        self._p.stderr.close()
        return status


@contextlib.contextmanager
def running(command, *words, status=0, **env):
    p = Process(command, *words, **env)
    try:
        yield p
    finally:
        got = p.stop()
    assert got == status, p.err()
    assert not re.search("Sanitizer: (heap|stack|global|use|double|attempting)|runtime error", p.err()), p.err()


def server(*words, **env):
    return running("rpc-server", *words, **env)


def tracker(*words, **env):
    return running("rpc-tracker", *words, **env)


def wait_for(condition, seconds=15):
    """What condition gave that is true; fails where nothing did in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


class Raw:
    """A client that sends any bytes."""

    def __init__(self, port, key=b"client:", magic=MAGIC):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=20)
        if key is not None:
            self.s.sendall(u32(magic) + u32(len(key)) + key)

    def receive(self, n):
        got = b""
        while len(got) < n:
            part = self.s.recv(n - len(got))
            if not part:
                return None if not got else got
            got += part
        return got

    def accepted(self):
        """The server's key."""
        code, = struct.unpack("<I", self.receive(4))
        assert code == MAGIC, hex(code)
        n, = struct.unpack("<I", self.receive(4))
        return self.receive(n)

    def packet(self, code, body=b""):
        self.s.sendall(u64(4 + len(body)) + u32(code) + body)

    def reply(self):
        """(code, body), or None: it closed."""
        head = self.receive(8)
        if head is None or len(head) < 8:
            return None
        data = self.receive(struct.unpack("<Q", head)[0])
        return struct.unpack_from("<I", data)[0], data[4:]

    def ask(self, code, body=b""):
        self.packet(code, body)
        return self.reply()

    def init(self):
        self.accepted()
        return self.ask(2, u64(5) + b"0.8.0" + u32(0))

    def is_closed(self):
        try:
            return self.s.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.s.close()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()


def folders(root):
    """The folders of sessions that are there."""
    return [n for n in os.listdir(root) if n.startswith("heddle-rpc-")]
