"""Remote devices: a one-node run against a bare TLS ping-pong of the same bytes, and 128 MiB out and 64 MiB in against a bare TLS
stream, on loopback; the ping-pong also over a relay that delays.
"""
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

import _common as common

DELAYS = {"0_ms": 0.0, "0.2_ms": 0.0002, "5_ms": 0.005}  # of a round trip


class Relay:
    """Carries connections to a port, each byte half a round trip late."""

    def __init__(self, port, delay):
        self.to, self.delay = port, delay / 2
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            for a, b in (near, far), (far, near):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                line = queue.SimpleQueue()
                threading.Thread(target=self.take, args=(a, line), daemon=True).start()
                threading.Thread(target=self.give, args=(b, line), daemon=True).start()

    def take(self, a, line):
        while True:
            try:
                data = a.recv(1 << 16)
            except OSError:
                data = b""
            line.put((time.monotonic() + self.delay, data))
            if not data:
                return

    @staticmethod
    def give(b, line):
        while True:
            due, data = line.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    b.shutdown(socket.SHUT_RDWR)
                    return
                b.sendall(data)
            except OSError:
                return


def start(*words):
    """A server, and the port in the last line that it prints."""
    p = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    for line in p.stdout:
        end = line.strip().rsplit(":", 1)[-1]
        if end.isdigit() and "serves" not in line:
            return p, int(end)
    common.skip("a server could not be started")


def main():
    args = common.arguments(__doc__)
    tool, program = os.path.join(args.build, "bin", "heddle"), os.path.join(args.build, "bench", "bench_remote")
    if not os.path.exists(program):
        common.skip("this build has no HEDDLE_REMOTE")
    report = common.Report()
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        subprocess.run([tool, "keys", "-o", key], check=True)
        server, port = start(tool, "device-server", "--listen", "127.0.0.1:0", "--psk", key, "--devices", "cpu")
        bare, bare_port = start(program, "bare", key)
        try:
            for name, delay in DELAYS.items():
                ports = (port, bare_port) if delay == 0 else (Relay(port, delay).port, Relay(bare_port, delay).port)
                ours = common.Server(args.build, "bench_remote", "client", key, *map(str, ports))
                count = 400 if delay < 0.001 else 40
                trips, runs = [], []
                ours.ask("one", count), ours.ask("pingpong", count)
                node = ours.ask("node", 2000)
                for _ in range(args.rounds):
                    runs.append(ours.ask("one", count))
                    trips.append(ours.ask("pingpong", count) + node)
                report.ratio(f"one_node_run_{name}", runs, trips, 1.2, "ns")
                if delay == 0:
                    ours.ask("bulk", 1), ours.ask("stream", 1), ours.ask("bulk_node", 1)
                    bulk, stream = [], []
                    for _ in range(min(args.rounds, 9)):
                        bulk.append(ours.ask("bulk", 2))
                        stream.append(ours.ask("stream", 2) + ours.ask("bulk_node", 2))
                    report.ratio("out_and_in", bulk, stream, 1 / 0.9, "ns")
                ours.close()
        finally:
            for p in server, bare:
                p.terminate()
                p.wait()
    report.close()


if __name__ == "__main__":
    sys.exit(main())
