"""What the tests of heddle device-server share: the server as a process that always ends, certificates, a relay whose link can
be cut, stalled, slowed, reset or corrupted, and a client that sends bytes."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from tool_case import BUILD, TOOL, environment

if not (BUILD / "libexec" / "heddle-device-server").exists():
    pytest.skip("this build has no HEDDLE_REMOTE", allow_module_level=True)

PLUGIN = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_remote.so"
MAGIC = struct.unpack("<Q", b"HDLERM01")[0]
HELLO, ALIVE, RESULT, DONE, BLOB, FREE = range(1, 7)
OPEN, CLOSE, MEMORY_NOW, ALLOC, STREAM, QUERY, PARTITION, LIST, PREPARE, BIND, GRAPH = range(16, 27)
WRITE, READ, COPY, FILL, RUN, RECORD, WAIT, REPLAY, MARK, RESUME = range(48, 58)


def digits(result):
    """The values of a run of DIGITS that went well."""
    assert result.status == 0, result
    numbers = [float(word) for word in result.out.split("float32 [1, 10]", 1)[1].split()]
    assert len(numbers) == 10
    return numbers


class Server:
    """heddle device-server WORD...; port: of TCP, where it listens there; err(): what it wrote to stderr so far. before: words of a
    command that runs it and becomes it."""

    def __init__(self, *words, before=(), **env):
        self._p = subprocess.Popen([*before, str(TOOL), "device-server", *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**env))
        self._err = []
        self._reader = threading.Thread(target=lambda: self._err.extend(self._p.stderr), daemon=True)
        self._reader.start()
        self.port = None
        for line in self._p.stdout:
            if ": listening on " in line:
                at = line.strip().rsplit(":", 1)[1]
                self.port = int(at) if at.isdigit() else None
                break
        else:
            self.stop()
            raise RuntimeError(self.err())
        self.pid = self._p.pid

    def err(self):
        return "".join(self._err)

    def children(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            return [int(n) for n in f.read().split()]

    def signal_sessions(self, how):
        for child in self.children():
            os.kill(child, how)

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
def serving(*words, **env):
    server = Server(*words, **env)
    try:
        yield server
    finally:
        server.stop()
    assert not re.search("Sanitizer: (heap|stack|global|use|double|attempting)|runtime error", server.err()), server.err()


def eventually(check, seconds=10):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


# ---- certificates

class Authority:
    """An authority of its own, by the program openssl, and certificates of it."""

    def __init__(self, folder, name="ca"):
        if shutil.which("openssl") is None:
            pytest.skip("there is no program openssl to make certificates with")
        self.folder, self.name = folder, name
        self._run("req", "-x509", *self._key(name), "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")
        self.ca = folder / f"{name}.pem"

    @staticmethod
    def _key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def _run(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True, timeout=60)

    def make(self, name, names="DNS:localhost,IP:127.0.0.1", expired=False):
        """(certificate, key)"""
        self._run("req", *self._key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        if expired:
            (self.folder / "index.txt").write_text("")
            (self.folder / "serial").write_text("77\n")
            (self.folder / "ca.cnf").write_text("[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\n"
                                                "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
            self._run("ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem", "-cert",
                      f"{self.name}.pem", "-keyfile", f"{self.name}.key", "-startdate", "20200101000000Z", "-enddate",
                      "20200102000000Z", "-extfile", f"{name}.ext")
        else:
            self._run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key",
                      "-CAcreateserial", "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"


# ---- a link

class Relay:
    """Carries connections to a port of this machine. mode: "run", "stall" (nothing goes on), "corrupt" (a bit of each piece
    from the server is turned), or "cut" (what was carried ends); delay in seconds; rate in bytes a second."""

    def __init__(self, port):
        self.to, self.mode, self.delay, self.rate = port, "run", 0.0, 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs, self._over = [], False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._over:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to), 5)
            except OSError:
                continue
            for s in near, far:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append((near, far))
            for a, b, back in (near, far, False), (far, near, True):
                threading.Thread(target=self._carry, args=(a, b, back), daemon=True).start()

    def _carry(self, a, b, back):
        with contextlib.suppress(OSError):
            while True:
                data = a.recv(1 << 16)
                while self.mode == "stall" and not self._over:
                    time.sleep(0.01)
                if not data or self.mode == "cut":
                    break
                if self.delay:
                    time.sleep(self.delay)
                if self.rate:
                    time.sleep(len(data) / self.rate)
                if self.mode == "corrupt" and back:
                    data = data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 0x10]) + data[len(data) // 2 + 1:]
                b.sendall(data)
        self._end(a, b)

    @staticmethod
    def _end(*sockets):
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.mode = "cut"
        for pair in self._pairs:
            self._end(*pair)

    def reset(self):
        for pair in self._pairs:
            for s in pair:
                with contextlib.suppress(OSError):
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()

    def close(self):
        self._over = True
        self.mode = "cut"
        self._listener.close()
        for pair in self._pairs:
            self._end(*pair)


@contextlib.contextmanager
def relayed(port):
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()


# ---- a client of bytes

def frame(kind, number, body=b""):
    return struct.pack("<QII", len(body), kind, number) + body


def u32(*n):
    return struct.pack(f"<{len(n)}I", *n)


def u64(*n):
    return struct.pack(f"<{len(n)}Q", *n)


HELLO_FRAME = frame(HELLO, 0, u64(MAGIC) + u32(1, 0))


class Client:
    """Frames over a plain connection, after the first messages."""

    def __init__(self, port, hello=HELLO_FRAME):
        self.s = socket.create_connection(("127.0.0.1", port), 5)
        self.s.settimeout(20)
        self.next = 1
        self.s.sendall(hello)
        self.hello = self.receive()[2]

    def exactly(self, n):
        data = b""
        while len(data) < n:
            more = self.s.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        """(kind, id, body), the first that is not ALIVE"""
        while True:
            size, kind, number = struct.unpack("<QII", self.exactly(16))
            body = self.exactly(size)
            if kind != ALIVE:
                return kind, number, body

    def ask(self, kind, body):
        """(status, text, rest) of a request"""
        self.next += 1
        self.s.sendall(frame(kind, self.next, body))
        got, number, body = self.receive()
        assert (got, number) == (RESULT, self.next)
        status, _, length = struct.unpack("<III", body[:12])
        return status, body[12:12 + length].decode(), body[12 + length:]

    def close(self):
        self.s.close()
