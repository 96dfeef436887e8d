"""heddle.rpc: sessions on servers of Heddle and of the TVM that is installed, directly and by trackers of both; executors, time
evaluators, errors, servers that lie, and sessions that are lost.
labels: slow
timeout: 300
"""
import gc
import importlib.util
import pathlib
import socket
import struct
import sys
import threading
import time

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/python"))

import heddle
import rpc_case
import rpc_theirs
from fixtures import tvm_legacy as legacy
from heddle import rpc
from heddle.contrib import graph_executor
from rpc_case import u32, u64, wait_for
from test_tvm_legacy import MODELS, model_files
from tool_case import heddle as heddle_tool

F32 = "float32"
pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


def has_tvm():
    return importlib.util.find_spec("tvm") is not None


@pytest.fixture(scope="module")
def ours():
    with rpc_case.server("--key", "k", "--sessions", 8) as s:
        yield s


@pytest.fixture(scope="module")
def theirs():
    if not has_tvm():
        pytest.skip("the TVM of this environment is not there")
    with rpc_theirs.running("server", "k") as s:
        yield s


@pytest.fixture(params=["ours", "theirs"])
def served(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def remote(served):
    session = rpc.connect("127.0.0.1", served.port, "k", session_timeout=60)
    yield session
    session.close()


@pytest.fixture
def own(ours):
    session = rpc.connect("127.0.0.1", ours.port, "k")
    yield session
    session.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return legacy.library(tmp_path_factory.mktemp("library") / "lib.so", "v0.14", [
        "#include <unistd.h>\n",
        legacy.kernel("add1", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"),
        "FUNCTION(crash) { (void)args_; (void)codes; (void)num_args; *(volatile int *)8 = 1; return 0; }\n",
        "FUNCTION(hang) { (void)args_; (void)codes; (void)num_args; for (;;) sleep(1); return 0; }\n"])


def loaded(session, path):
    session.upload(path)
    return session.load_module(path.name)


# ---- both servers

def test_files(remote, tmp_path):
    remote.upload(b"\0\1" * 5000, "a.bin")
    assert remote.download("a.bin") == b"\0\1" * 5000
    (tmp_path / "b.txt").write_text("hello")
    remote.upload(tmp_path / "b.txt")
    assert remote.download("b.txt") == b"hello"
    remote.remove("a.bin")
    with pytest.raises(rpc.RPCError):
        remote.download("a.bin")
    assert remote.get_function("tvm.rpc.server.workpath")("x").endswith("/x")
    with pytest.raises(ValueError):
        remote.upload(b"x")
    with pytest.raises(AttributeError):
        remote.get_function("no.such.function")


@pytest.mark.parametrize("dtype,shape", [(F32, (2, 3)), ("int8", (1000,)), ("bool", (7,)), ("float64", ()), (F32, (0, 3)),
                                         ("float16", (3,)), ("uint64", (2, 1, 2))])
def test_arrays(remote, dtype, shape):
    value = (np.random.default_rng(1).random(shape) * 100).astype(dtype)
    a = heddle.nd.array(value, remote.cpu())
    assert (a.shape, a.dtype, a.device) == (shape, dtype, remote.cpu())
    np.testing.assert_array_equal(a.numpy(), value)
    b = heddle.nd.empty(shape, dtype, remote.cpu())
    a.copyto(b)
    np.testing.assert_array_equal(np.asarray(b), value)
    local = b.copyto(heddle.cpu())
    assert isinstance(local, heddle.nd.NDArray)
    np.testing.assert_array_equal(local.numpy(), value)
    c = local.copyto(remote.cpu())
    np.testing.assert_array_equal(c.numpy(), value)
    np.testing.assert_array_equal(c.copyto(remote.cpu()).numpy(), value)
    local.copyto(b)
    b.copyto(heddle.nd.empty(shape, dtype))


def test_what_arrays_refuse(remote):
    a = heddle.nd.array(np.zeros(4, F32), remote.cpu())
    a[:] = np.arange(4)
    np.testing.assert_array_equal(a.numpy(), np.arange(4))
    for bad in (np.zeros(5, F32), np.zeros((2, 2), F32)):
        with pytest.raises(ValueError):
            a.copyfrom(bad)
    with pytest.raises(ValueError):
        a[1] = 1
    with pytest.raises(ValueError):
        a.copyto(heddle.nd.empty((5,), F32, remote.cpu()))
    with pytest.raises(TypeError):
        remote.get_function("tvm.rpc.server.workpath")(np.zeros(3, F32))
    with pytest.raises(TypeError):
        remote.get_function("tvm.rpc.server.workpath")(object())
    with pytest.raises((ValueError, TypeError)):
        remote.get_function("tvm.rpc.server.workpath")("a\0b")


def test_devices(remote):
    d = remote.cpu(0)
    assert d.exist and d.device_type % 128 == 1 and d.device_type >= 128 and "remote" in repr(d)
    d.sync()
    assert not remote.device("metal", 5).exist
    assert remote.cl(1).device_id == 1 and remote.context("cuda", 2).device_type % 128 == 2
    with pytest.raises(rpc.RPCError):
        heddle.nd.empty((2,), F32, remote.device("metal", 5))


def test_a_large_array(remote):
    value = np.random.default_rng(2).integers(0, 1 << 30, 3 << 20, dtype=np.int32)
    np.testing.assert_array_equal(heddle.nd.array(value, remote.cpu()).numpy(), value)


def test_many_objects_are_freed(remote):
    """With the next request; the session goes on."""
    for _ in range(3):
        kept = [heddle.nd.empty((4,), F32, remote.cpu()) for _ in range(100)]
        functions = [remote.get_function("tvm.rpc.server.workpath") for _ in range(20)]
        del kept, functions
        gc.collect()
    assert remote.get_function("tvm.rpc.server.workpath")("y").endswith("y")


def test_threads(remote):
    f = remote.get_function("tvm.rpc.server.workpath")
    failed = []

    def work(n):
        try:
            for i in range(40):
                if not f(f"n{n}_{i}").endswith(f"/n{n}_{i}"):
                    failed.append((n, i))
        except Exception as error:  # noqa: BLE001
            failed.append(error)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_tvms_functions(theirs):
    """What TVM's server has for its own tests: values of each kind, functions, objects, errors."""
    with rpc.connect("127.0.0.1", theirs.port, "k") as remote:
        assert remote.get_function("rpc.test.addone")(10) == 11
        assert remote.get_function("rpc.test.strcat")("ab", 11) == "ab:11"
        with pytest.raises(rpc.RPCError, match="boom"):
            remote.get_function("rpc.test.except")("boom")
        add = remote.get_function("rpc.test.add_to_lhs")(10)
        assert add(12) == 22
        assert remote.get_function("rpc.test.runtime_str_concat")("a", "") == "a"
        a = heddle.nd.array(np.ones((3, 4), F32), remote.cpu())
        remote.get_function("rpc.test.remote_tensor_func")(a)
        with pytest.raises(rpc.RPCError):
            remote.get_function("rpc.test.remote_tensor_func")(heddle.nd.empty((2,), F32, remote.cpu()))
        made = remote.get_function("rpc.test.remote_return_nd")
        array = made("get_arr")()
        assert isinstance(array, rpc.RemoteArray) and array.shape == (10,)
        np.testing.assert_array_equal(array.numpy(), np.zeros(10))
        del array
        gc.collect()
        again = made("get_arr")()
        again.copyfrom(np.arange(10))
        assert made("get_arr_elem")(again, 3) == 3


# ---- libraries and executors on our server

def test_modules(own, library):
    m = loaded(own, library)
    x = heddle.nd.array(np.arange(4, dtype=F32), own.cpu())
    y = heddle.nd.array(np.zeros(4, F32), own.cpu())
    m["add1"](x, y)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    assert m.implements_function("add1") and not m.implements_function("nothing")
    with pytest.raises(AttributeError):
        m["nothing"]
    with pytest.raises(rpc.RPCError, match="num_args"):
        m["add1"](x)
    times = m.time_evaluator("add1", own.cpu(), number=2, repeat=3)(x, y)
    assert len(times.results) == 3 and 0 < times.mean < 1
    assert own.listdir(".") == "lib.so,"
    other = rpc.connect("127.0.0.1", int(own.connection.where.split(":")[1]), "k")
    with pytest.raises(ValueError, match="another session"):
        m["add1"](x, heddle.nd.empty((4,), F32, other.cpu()))
    other.close()


@pytest.mark.parametrize("name", ["dtype_float32", "multi_output", "reshape_nop"])
@pytest.mark.parametrize("how", ["create", "module"])
def test_graph_executor(own, tmp_path, name, how):
    graph, params, inputs, outputs = model_files(name)
    m = loaded(own, legacy.library(tmp_path / "model.so", "v0.14", MODELS[name]))
    if how == "create":
        g = graph_executor.create(graph, m, own.cpu())
    else:
        g = graph_executor.GraphModule(own.get_function("tvm.graph_executor.create")(graph, m, 1, 0))
    assert isinstance(g, graph_executor.GraphModule)
    if len(params) > 32:
        g.load_params(params)
    for key, value in inputs.items():
        g.set_input(key, value)
    g.run(**inputs)
    assert g.get_num_outputs() == len(outputs)
    for i, expected in enumerate(outputs):
        np.testing.assert_allclose(g.get_output(i).numpy(), expected, rtol=1e-6)
        out = heddle.nd.empty(expected.shape, str(expected.dtype))
        np.testing.assert_allclose(g.get_output(i, out).numpy(), expected, rtol=1e-6)
    first = list(inputs)[0]
    assert g.get_input(first).shape == inputs[first].shape and g.get_input_index(first) >= 0
    assert first in g.get_input_info()[0]
    assert g.benchmark(own.cpu(), number=1, repeat=2).mean > 0
    with pytest.raises(RuntimeError):
        g.set_input("no such input", np.zeros(1))
    with pytest.raises(ValueError):
        graph_executor.create(graph, m, [own.cpu(), heddle.cpu()])


# ---- trackers

def use(port, key):
    t = rpc.connect_tracker("127.0.0.1", port)
    wait_for(lambda: t.summary()["queue_info"].get(key, {}).get("free") == 1)
    assert f"server:{key}" in t.text_summary()
    for _ in range(2):
        with t.request(key, priority=2, session_timeout=30) as remote:
            np.testing.assert_array_equal(heddle.nd.array(np.arange(3), remote.cpu()).numpy(), np.arange(3))
    assert t.request_and_run(key, lambda r: r.get_function("tvm.rpc.server.workpath")("")).startswith("/")
    t.close()


def test_our_tracker_and_server_as_objects():
    with rpc.Tracker(port=0, port_end=0) as t, rpc.Server(port=0, port_end=0, tracker_addr=(t.host, t.port), key="k"):
        use(t.port, "k")


def test_inside_an_authenticated_connection(tmp_path):
    case = pytest.importorskip("remote_case")  # skips where the build has no device server
    key = tmp_path / "key"
    assert heddle_tool("keys", "-o", key).status == 0
    with case.serving("--listen", "127.0.0.1:0", "--psk", key, "--devices", "cpu", "--tvm-rpc") as s:
        with rpc.Tunnel(f"tls:127.0.0.1:{s.port}", psk=key) as t:
            remote = rpc.connect(t.host, t.port, key="any")
            x = np.arange(6, dtype=F32)
            np.testing.assert_array_equal(heddle.nd.array(x, remote.cpu(0)).numpy(), x)
            remote.close()
        with rpc.Tunnel(f"tcp:127.0.0.1:{s.port}") as t, pytest.raises(rpc.RPCError):
            rpc.connect(t.host, t.port)  # without TLS


@pytest.mark.parametrize("tracker", ["ours", "theirs"])
def test_trackers_and_tvms_server(tracker):
    if not has_tvm():
        pytest.skip("the TVM of this environment is not there")
    with (rpc_case.tracker() if tracker == "ours" else rpc_theirs.running("tracker")) as t:
        with rpc_theirs.running("server", "board", t.port):
            use(t.port, "board")


# ---- what goes wrong

def test_wrong_keys_and_places(served):
    with pytest.raises(rpc.RPCError, match="another key"):
        rpc.connect("127.0.0.1", served.port, "wrong")
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    with pytest.raises(OSError):
        rpc.connect("127.0.0.1", free.getsockname()[1], "k")
    free.close()


def test_time_limits(ours, library):
    with rpc.connect("127.0.0.1", ours.port, "k", session_timeout=1) as remote:
        hang = loaded(remote, library)["hang"]
        with pytest.raises(rpc.RPCSessionTimeoutError, match="expired"):
            hang()
        with pytest.raises(rpc.RPCConnectionError):
            hang()


def test_a_session_that_crashes(own, library):
    crash = loaded(own, library)["crash"]
    with pytest.raises(rpc.RPCConnectionError) as caught:
        crash()
    assert isinstance(caught.value, ConnectionError) and isinstance(caught.value, heddle.Error)
    with pytest.raises(rpc.RPCConnectionError):
        own.cpu().sync()
    with pytest.raises(heddle.error.RPCError):
        own.download("x")


def test_sessions_end_with_their_objects(ours):
    before = len(ours.children())
    remote = rpc.connect("127.0.0.1", ours.port, "k")
    a = heddle.nd.array(np.zeros(3, F32), remote.cpu())
    assert len(ours.children()) == before + 1
    del remote
    gc.collect()
    assert a.numpy().shape == (3,)
    del a
    gc.collect()
    wait_for(lambda: len(ours.children()) == before)


HANDSHAKE = u32(0xFF271) + u32(7) + b"server:"
INIT = u64(12) + u32(4) + u32(1) + u32(0)
LIES = {
    "nothing": b"",
    "other code": u32(17),
    "long key": u32(0xFF271) + u32(1 << 30),
    "no reply": HANDSHAKE,
    "huge packet": HANDSHAKE + u64(1 << 60),
    "cut packet": HANDSHAKE + u64(100) + b"x",
    "short packet": HANDSHAKE + u64(2) + b"xx",
    "wrong code": HANDSHAKE + u64(4) + u32(77),
    "shutdown": HANDSHAKE + u64(4) + u32(1),
    "count": HANDSHAKE + u64(8) + u32(4) + u32(1 << 31),
    "string": HANDSHAKE + INIT + u64(20) + u32(4) + u32(1) + u32(8) + u64(1 << 62),
    "unknown tag": HANDSHAKE + INIT + u64(12) + u32(4) + u32(1) + u32(99),
    "tensor": HANDSHAKE + INIT + u64(4 + 4 + 28 + 4) + u32(4) + u32(1) + u32(7) + u64(1) + u32(1) + u32(0) + u32(1 << 30) + u64(0) + u32(0),
    "no values": HANDSHAKE + INIT + u64(8) + u32(4) + u32(0),
    "left over": HANDSHAKE + INIT + u64(16) + u32(4) + u32(1) + u32(0) + u32(0),
    "bad exception": HANDSHAKE + INIT + u64(12) + u32(5) + u32(1) + u32(0),
}


@pytest.mark.parametrize("what", LIES)
def test_servers_that_lie(what):
    """Each gets an error of ours, and at once."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        s, _ = listener.accept()
        with s:
            s.sendall(LIES[what])
            s.shutdown(socket.SHUT_WR)
            s.settimeout(1)
            try:
                while s.recv(4096):
                    pass
            except OSError:
                pass
    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises((rpc.RPCError, heddle.errors.FormatError, OSError)):
        remote = rpc.connect("127.0.0.1", listener.getsockname()[1])
        remote.get_function("x")
    thread.join(15)
    listener.close()
    assert not thread.is_alive()


def test_a_server_of_v0_14():
    """Tags before payloads, other numbers; recorded from v0.14."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard = []

    def packet(body):
        return u64(len(body)) + body

    def answer():
        s, _ = listener.accept()
        with s:
            def hear():
                n, = struct.unpack("<Q", s.recv(8, socket.MSG_WAITALL))
                heard.append(s.recv(n, socket.MSG_WAITALL))
            s.recv(8 + 7, socket.MSG_WAITALL)
            s.sendall(HANDSHAKE)
            for reply in (u32(4) + u32(1) + u32(4), u32(4) + u32(1) + u32(3) + u64(0x55),
                          u32(4) + u32(2) + u32(0) + u32(0) + u64(0) + u64(10),
                          u32(5) + u32(1) + u32(11) + u64(4) + b"boom"):
                hear()
                s.sendall(packet(reply))
            s.recv(1)
    thread = threading.Thread(target=answer)
    thread.start()
    remote = rpc.connect("127.0.0.1", listener.getsockname()[1])
    echo = remote.get_function("my.echo")
    assert echo(10) == 10
    with pytest.raises(rpc.RPCError, match="boom"):
        echo("x", b"y", 1.5, None)
    remote.close()
    thread.join(15)
    listener.close()
    assert heard[1] == u32(9) + u32(1) + u32(11) + u64(7) + b"my.echo"
    assert heard[2] == u32(3) + u64(0x55) + u32(1) + u32(0) + u64(10)
    assert heard[3] == (u32(3) + u64(0x55) + u32(4) + u32(11) + u32(12) + u32(2) + u32(4) + u64(1) + b"x" + u64(1) + b"y" +
                        struct.pack("<d", 1.5))


def test_calls_with_arrays_alone():
    """The short way of such calls: the bytes of the request, and replies in pieces, late, as errors, of values, and none."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard = []

    def packet(body):
        return u64(len(body)) + body
    nothing = u32(4) + u32(2) + u32(1) + u64(0) + u32(0)
    replies = [
        [packet(u32(4) + u32(0))],  # of the start
        [packet(u32(4) + u32(1) + u32(4) + u64(0x55))],  # the function
        [packet(u32(4) + u32(1) + u32(4) + u64(0x77))],  # the array's memory
        [packet(nothing)],
        [packet(nothing)[:5], packet(nothing)[5:20], packet(nothing)[20:]],
        [u64(0) + packet(nothing)],  # after a packet of no bytes
        [packet(u32(5) + u32(1) + u32(8) + u64(4) + b"boom")],
        [packet(u32(4) + u32(2) + u32(1) + u64(1) + u32(1) + u64(12))],
        [],
    ]

    def answer():
        s, _ = listener.accept()
        with s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.recv(8 + 7, socket.MSG_WAITALL)
            s.sendall(HANDSHAKE)
            for pieces in replies:
                n, = struct.unpack("<Q", s.recv(8, socket.MSG_WAITALL))
                heard.append(s.recv(n, socket.MSG_WAITALL))
                for piece in pieces:
                    s.sendall(piece)
                    time.sleep(0.02)
    thread = threading.Thread(target=answer)
    thread.start()
    remote = rpc.connect("127.0.0.1", listener.getsockname()[1])
    f = remote.get_function("my.f")
    x = heddle.nd.empty((3,), F32, remote.cpu())
    for _ in range(3):
        assert f(x, x) is None
    with pytest.raises(rpc.RPCError, match="boom"):
        f(x)
    assert f(x) == 12
    with pytest.raises(rpc.RPCConnectionError, match="closed"):
        f(x)
    assert not remote.connection.is_open
    with pytest.raises(rpc.RPCConnectionError, match="ended"):
        f(x)
    thread.join(15)
    listener.close()
    array = u32(7) + u64(0x77) + u32(1) + u32(0) + u32(1) + bytes([2, 32]) + b"\1\0" + u64(3) + u64(0)
    assert heard[3] == heard[4] == u32(3) + u64(0x55) + u32(2) + 2 * array
    assert heard[6] == u32(3) + u64(0x55) + u32(1) + array
