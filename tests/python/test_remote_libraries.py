"""Functions of compiled libraries on devices of a server that allows that: graphs of TVM and of mixed nodes against numpy, a
crash in such code, what is refused, and that without --allow-libraries no byte of code is sent.
labels: ctypes
timeout: 300
"""
import numpy as np
import pytest

import remote_case as case
from remote_case import Client, serving, u32, u64

import capi
from fixtures import tvm_legacy as legacy
from test_remote_ranges import Counter, text
from tool_case import heddle
from tvm_graph import Call, tvm_graph

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")

F32 = "float32"
SHAPE = (64, 80)  # large enough to be sent as blobs, were they constants
X = np.random.default_rng(6).standard_normal(SHAPE).astype(np.float32)


def function(name, expression, before=""):
    n = int(np.prod(SHAPE))
    return legacy.kernel(name, [("a", F32, SHAPE), ("b", F32, SHAPE), ("c", F32, SHAPE)],
                         f"{before} for (int i = 0; i < {n}; i++) c[i] = {expression};")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "lib.so"
    return legacy.library(path, "v0.14", [function("add", "a[i] + b[i]"), function("multiply", "a[i] * b[i]"),
                                          function("crash", "0", "*(volatile int *)8 = 1;"),
                                          function("refuse", "0", "return -1;")])


def graph(*names):
    given = {"a": (F32, SHAPE), "b": (F32, SHAPE)}
    calls = [Call(name, ["a" if i == 0 else names[i - 1], "b"], [(F32, SHAPE)]) for i, name in enumerate(names)]
    return tvm_graph(given, calls, [names[-1]], device_index=False)


@pytest.fixture(scope="module")
def server():
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu,sim", "--allow-libraries") as s:
        yield s


def run(port, library, names, devices="remote:0", layers="check", **options):
    """The output of a second run, and the number of the device of each node."""
    held = [capi.Context(config="off", layers=layers, **{"remote.servers": f"tcp:127.0.0.1:{port}"})]
    try:
        held.append(capi.Library(held[0], library))
        held.append(capi.Graph(graph(*names)))
        held.append(capi.Model(held[0], held[2], None, devices=devices, library=held[1], **options))
        held.append(capi.Executor(held[3]))
        for _ in range(2):
            held[4].set_input("a", X)
            held[4].set_input("b", 2 * X)
            held[4].run()
        return held[4].output(0), {n["name"]: n["device"] for n in held[3].explain_json()["nodes"]}
    finally:
        for thing in reversed(held):
            thing.close()


def test_a_graph_of_functions(server, library):
    relay = Counter(server.port)
    try:
        got, _ = run(relay.port, library, ["add", "multiply"])
        np.testing.assert_array_equal(got, (X + 2 * X) * (2 * X))
        assert relay.kinds[case.BLOB] == 1 and relay.kinds[case.PREPARE] == 2, relay.kinds  # the file is sent once
        assert relay.kinds[case.REPLAY] == 2, relay.kinds  # and a run is one message
    finally:
        relay.close()


def test_a_mixed_graph(server, library):
    got, where = run(server.port, library, ["add", "multiply"], devices="cpu,remote:0", place=("add=remote:0",))
    np.testing.assert_array_equal(got, (X + 2 * X) * (2 * X))
    assert (where["add"], where["multiply"]) == (1, 0), where


def test_functions_that_fail(server, library):
    with pytest.raises(capi.HeddleError, match="refuse"):
        run(server.port, library, ["refuse"])
    with pytest.raises(capi.HeddleError, match="remote:0.* is lost"):
        run(server.port, library, ["crash"])
    assert run(server.port, library, ["add"])[0].shape == SHAPE  # the server goes on


def test_what_has_no_code_for_a_device(server, library):
    """sim is no cpu"""
    with pytest.raises(capi.HeddleError, match="was compiled for devices of DLPack's type 1"):
        run(server.port, library, ["add"], devices="remote:1")
    with pytest.raises(capi.HeddleError, match="absent"):
        run(server.port, library, ["absent"])


def test_by_the_tool(server, library, tmp_path):
    (tmp_path / "graph.json").write_text(graph("add", "multiply"))
    done = heddle("run", tmp_path / "graph.json", "--lib", library, "--device", "remote:0", "--random",
                  HEDDLE_REMOTE_SERVERS=f"exec:{case.TOOL} device-server --stdio --devices cpu --allow-libraries")
    assert done.status == 0, done


def test_libraries_are_refused(library):
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu") as s:
        relay = Counter(s.port)
        try:
            with pytest.raises(capi.HeddleError, match="--allow-libraries"):
                run(relay.port, library, ["add"])
            assert relay.kinds[case.BLOB] == 0, relay.kinds
        finally:
            relay.close()
        c = Client(s.port)  # a client that asks all the same
        assert "--allow-libraries" in c.ask(case.QUERY, u32(0) + call(2))[1]
        c.close()


# ---- messages

def tensor(n, data=None):
    return u32(2 | 32 << 8 | 1 << 16, 1) + u64(n, 0) + (u32(0) if data is None else u32(1) + u64(len(data)) + data)


def call(library, inputs=(0,), outputs=(1,), layout=0, nodes=1):
    """a region that calls a function of value 2, which has the bytes of no library"""
    values = u32(3) + tensor(4) + u32(2 | 32 << 8 | 1 << 16, 1) + u64(4, layout) + u32(0) + tensor(1, b"none")
    node = u32(1, 0) + text("heddle.library") + text("add") + text("n") + u32(1, 0) + u32(1, 1)
    node += u32(1) + text("library") + u32(1) + u64(1) + u64(library)
    return (u32(0) + values + u32(len(inputs), *inputs) + u32(len(outputs), *outputs) + u32(nodes) + node * nodes)


@pytest.mark.parametrize("region,text", [
    (call(2), "library-0.so"),  # what was sent is no library
    (call(0), "malformed"), (call(7), "malformed"), (call(2 ** 64 - 1), "malformed"),  # no value with bytes
    (call(2, outputs=()), "malformed"), (call(2, layout=5), "malformed")])
def test_malformed_calls(server, region, text):
    c = Client(server.port)
    for kind, body in (case.QUERY, u32(0)), (case.OPEN, u32(0)), (case.PREPARE, u32(0, 0)):
        status, why, _ = c.ask(kind, body + (region if kind != case.OPEN else b""))
        assert (status == 0) == (kind == case.OPEN) and (kind == case.OPEN or text in why), (kind, status, why)
    c.close()
