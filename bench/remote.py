"""Remote devices: a one-node run against a bare TLS ping-pong of the same bytes, and 128 MiB out and 64 MiB in against a bare TLS
stream, on loopback; the ping-pong also over a relay that delays, with a graph that changes sides 100 times (its time, and its
messages) and with 8 runs in flight; both streams at 1 Gbit/s between two network namespaces; a remote call of TVM's RPC against TVM's own
client and server.
"""
import importlib.util
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

import _common as common
import _link

DELAYS = {"0_ms": 0.0, "0.2_ms": 0.0002, "5_ms": 0.005}  # of a round trip


class Relay:
    """Carries connections to a port, each byte half a round trip late. taken: how many pieces came from the near ends."""

    def __init__(self, port, delay):
        self.to, self.delay, self.taken = port, delay / 2, 0
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
                threading.Thread(target=self.take, args=(a, line, a is near), daemon=True).start()
                threading.Thread(target=self.give, args=(b, line), daemon=True).start()

    def take(self, a, line, is_near):
        while True:
            try:
                data = a.recv(1 << 16)
            except OSError:
                data = b""
            line.put((time.monotonic() + self.delay, data))
            self.taken += is_near
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


STEPS, FLIGHT = 100, 8
RATE = 1e9  # bits a second
BULK = 3 * (64 << 20)  # bytes of tensors of a run of bulk, out and in
HERE = os.path.dirname(os.path.abspath(__file__))


def samples(rounds, *ask):
    """Of each, in turns."""
    got = [[] for _ in ask]
    for _ in range(rounds):
        for one, into in zip(ask, got):
            into.append(one())
    return got


def over_delays(report, args, key, port, bare_port):
    for name, delay in DELAYS.items():
        relay = None if delay == 0 else Relay(port, delay)
        ports = (port, bare_port) if delay == 0 else (relay.port, Relay(bare_port, delay).port)
        ours = common.Server(args.build, "bench_remote", "client", key, *(f"127.0.0.1:{p}" for p in ports))
        count = 400 if delay < 0.001 else 40
        ours.ask("one", count), ours.ask("pingpong", count)
        node = ours.ask("node", 2000)
        report.ratio(f"one_node_run_{name}", *samples(args.rounds, lambda: ours.ask("one", count),
                                                       lambda: ours.ask("pingpong", count) + node), 1.2, "ns")
        if delay == 0:
            ours.ask("bulk", 1), ours.ask("stream", 1), ours.ask("bulk_node", 1)
            report.ratio("out_and_in", *samples(min(args.rounds, 9), lambda: ours.ask("bulk", 2),
                                                lambda: ours.ask("stream", 2) + ours.ask("bulk_node", 2)), 1 / 0.9, "ns")
        if delay >= 0.001:  # every second node waits for the link
            few, steps = max(args.rounds // 3, 1), ours.ask("steps_node", 100)
            report.ratio("changes_of_sides", *samples(few, lambda: ours.ask("steps", 1),
                                                      lambda: STEPS / 2 * ours.ask("pingpong", 10) + steps), 1.1, "ns")
            ours.ask("steps", 1)  # each message comes alone: the next one waits for its answer
            before = relay.taken
            ours.ask("steps", 4)
            report.ratio("messages_of_sides", [(relay.taken - before) / common.runs(4)], [STEPS / 2], 1.1, "messages")
            report.ratio("in_flight_8", *samples(few, lambda: ours.ask("flight", 80),
                                                 lambda: (ours.ask("pingpong", 10) + node) / FLIGHT), 1 / 0.9, "ns")
        ours.close()


def at_a_rate(report, args, key, tool, program):
    """Bytes of tensors alone against what the link carries: heads of packets count against us."""
    try:
        with _link.link() as link:
            for side in link.near, link.far:
                link.shape(side, "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms")
            server, port = start(*link.far, tool, "device-server", "--listen", f"{_link.FAR}:0", "--psk", key, "--devices", "cpu")
            bare, bare_port = start(*link.far, program, "bare", key)
            ours = subprocess.Popen([*link.near, program, "client", key, f"{_link.FAR}:{port}", f"{_link.FAR}:{bare_port}"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                def ask(what):
                    ours.stdin.write(f"{what} 1\n")
                    ours.stdin.flush()
                    return float(ours.stdout.readline())
                node = (ask("bulk_node"), ask("bulk_node"))[1]
                ask("bulk")
                times, bare_times = samples(1 if args.check else 5, lambda: ask("bulk") - node, lambda: ask("stream"))
                ideal = BULK * 8 / RATE * 1e9 * (1514 + 24) / 1448  # Ethernet, IP and TCP of full packets
                report.ratio("at_1_gbit", times, [ideal] * len(times), 1 / 0.95, "ns")
                report.ratio("at_1_gbit_against_bare", times, bare_times, 1 / 0.95, "ns")
            finally:
                for p in ours, server, bare:
                    p.terminate()
                    p.wait()
    except _link.Unavailable as why:
        print(f"at_1_gbit: skipped: {why}")


CALLS = """
import sys, time
import numpy as np
whose, port, library = sys.argv[1:]
if whose == "ours":
    import heddle as made
    from heddle import rpc
    new = lambda d: made.nd.array(np.zeros(16, "float32"), d)
else:
    import tvm
    from tvm import rpc
    new = lambda d: tvm.runtime.tensor(np.zeros(16, "float32"), d)
remote = rpc.connect("127.0.0.1", int(port), "k")
remote.upload(library)
call, x, y = remote.load_module("lib.so")["add_one"], new(remote.cpu(0)), new(remote.cpu(0))
for line in sys.stdin:
    count = int(line)
    start = time.perf_counter()
    for _ in range(count):
        call(x, y)
    print((time.perf_counter() - start) / count * 1e9, flush=True)
"""


def calls(report, args, tool, folder):
    """add_one by the client and the server of each."""
    theirs_program = os.path.join(HERE, "..", "tests", "python", "rpc_theirs.py")
    if importlib.util.find_spec("tvm") is None:
        print("add_one: skipped: there is no TVM")
        return
    library = os.path.join(folder, "lib.so")
    made = subprocess.run([sys.executable, "-P", "-c", COMPILED, library], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"add_one: skipped: TVM compiled nothing: {made.stderr.strip().splitlines()[-1]}")
        return
    ours, port = start(tool, "rpc-server", "--key", "k")
    theirs = subprocess.Popen([sys.executable, theirs_program, "server", "k"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    python = {**os.environ, "PYTHONPATH": os.path.join(args.build, "python")}
    clients = [subprocess.Popen([sys.executable, "-P", "-c", CALLS, whose, str(at), library], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=python)
               for whose, at in (("ours", port), ("theirs", int(theirs.stdout.readline())))]

    def ask(client, count):
        client.stdin.write(f"{common.runs(count)}\n")
        client.stdin.flush()
        line = client.stdout.readline()
        if not line:
            raise SystemExit("a client of TVM's RPC ended")
        return float(line)
    try:
        for client in clients:
            ask(client, 500)
        report.ratio("add_one", *samples(args.rounds, *(lambda c=c: ask(c, 500) for c in clients)), 1.0, "ns")
    finally:
        for p in (*clients, ours, theirs):
            p.stdin and p.stdin.close()
            p.terminate()
            p.wait()


COMPILED = """
import sys
import tvm
from tvm import te
x = te.placeholder((16,), name="x")
f = te.create_prim_func([x, te.compute((16,), lambda i: x[i] + 1, name="y")]).with_attr("global_symbol", "add_one")
tvm.compile(tvm.IRModule({"add_one": f}), target="c").export_library(sys.argv[1])
"""


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
            over_delays(report, args, key, port, bare_port)
        finally:
            for p in server, bare:
                p.terminate()
                p.wait()
        at_a_rate(report, args, key, tool, program)
        calls(report, args, tool, folder)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
