"""A device server and its client in two network namespaces that a veth pair joins: a link that is slow, cut, half-open, reset, and,
where the kernel has netem, one that delays, loses, reorders, duplicates and corrupts packets. Each is skipped, with what is missing,
where this machine does not let it be made.
timeout: 300"""
import contextlib
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/python"), str(ROOT / "bench")]

import _link
import remote_case as case
from test_remote_faults import LIMIT_S
from tool_case import heddle as tool

CLIENT = """
import sys, time
sys.path[:0] = sys.argv[3:]
import heddle
from test_remote_faults import chain, context, executor, near, run
address, key = sys.argv[1:3]
want = run(heddle.load(chain(), devices="cpu").executor())
made = {}
for line in sys.stdin:
    policy, start = line.strip(), time.monotonic()
    try:
        if policy not in made:
            made[policy] = heddle.load(chain(), devices="remote:0,cpu", place="*=remote:0", on_failure=policy,
                                       context=context(address, **{"remote.psk": key})).executor()
        near(run(made[policy]), want)
        print("right", time.monotonic() - start, flush=True)
    except heddle.Error as why:
        print(type(why).__name__, time.monotonic() - start, flush=True)
"""


class Client:
    """Runs in the near namespace; each run has a policy, whose executor is kept."""

    def __init__(self, link, port, key):
        words = [sys.executable, "-c", CLIENT, f"tls:{_link.FAR}:{port}", str(key), str(pathlib.Path(__file__).parent),
                 *filter(None, sys.path)]
        self._p = subprocess.Popen([*link.near, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, policy="error"):
        """What came of a run: "right", or the name of an error; it took no longer than it may."""
        self._p.stdin.write(policy + "\n")
        self._p.stdin.flush()
        said, seconds = self._p.stdout.readline().split()
        assert float(seconds) < LIMIT_S, (said, seconds)
        return said

    def close(self):
        self._p.stdin.close()
        self._p.wait(20)
        self._p.stdout.close()


@pytest.fixture
def link():
    try:
        with _link.link() as made:
            yield made
    except _link.Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture
def ends(link, tmp_path):
    key = tmp_path / "key"
    assert tool("keys", "-o", key).status == 0
    with case.serving("--listen", f"{_link.FAR}:0", "--psk", key, "--devices", "cpu", "--idle-timeout", 2,
                      before=link.far) as server:
        with contextlib.closing(Client(link, server.port, key)) as client:
            yield link, server, client


def shape(link, *words):
    for side in link.near, link.far:
        try:
            link.shape(side, *words)
        except _link.Unavailable as why:
            pytest.skip(f"this kernel cannot: {why}")


def test_a_slow_link(ends):
    link, _, client = ends
    assert client.run() == "right"
    shape(link, "tbf", "rate", "2mbit", "burst", "16kb", "latency", "2s")
    assert client.run() == "right"


def test_a_link_that_is_cut(ends):
    """No packet passes and nobody is told: each end finds out by the silence of the other."""
    link, server, client = ends
    assert client.run("failover") == "right" and client.run("retry") == "right" and client.run() == "right"
    link.ip(link.near, "link", "set", "v", "down")
    assert client.run("failover") == "right"
    assert client.run() != "right"
    case.eventually(lambda: not server.children(), LIMIT_S)  # the server's ends of the connections were half open
    link.ip(link.near, "link", "set", "v", "up")
    assert client.run("retry") == "right"


def test_a_server_that_loses_its_address(ends):
    link, server, client = ends
    assert client.run("failover") == "right"
    link.ip(link.far, "address", "flush", "dev", "v")
    assert client.run("failover") == "right"
    case.eventually(lambda: not server.children(), LIMIT_S)


def test_a_reset(ends):
    link, server, client = ends
    assert client.run("failover") == "right" and client.run("retry") == "right"
    done = subprocess.run([*link.far, "ss", "-K", "dst", _link.NEAR], capture_output=True, text=True)
    if done.returncode != 0 or str(server.port) not in done.stdout:
        pytest.skip(f"this kernel resets no connection from outside: {done.stderr.strip()}")
    assert client.run("failover") == "right" and client.run("retry") == "right"


@pytest.mark.parametrize("words", [("delay", "20ms"), ("delay", "5ms", "reorder", "25%", "50%"), ("duplicate", "30%"),
                                   ("loss", "5%"), ("corrupt", "2%")], ids=lambda words: words[-1 if "reorder" in words else 0])
def test_packets(ends, words):
    link, _, client = ends
    assert client.run() == "right"
    shape(link, "netem", *words)
    for _ in range(3):
        assert client.run("retry") == "right"
