"""Open dimensions and growing state values on the devices of a server, and between ends of which one is of an older minor.
timeout: 120"""
import pathlib
import struct
import sys

import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/python"))

import remote_case as case
from test_remote_faults import context
from test_remote_shapes import f32, region
from test_state_in_place import INFO, SIZE, journal, plan_of, rows, step
from remote_case import u32


class Older(case.Relay):
    """Tells either end that the other one is of minor 3. The first 32 bytes of both are those of HELLO up to its version."""

    def _carry(self, a, b, back):
        head = b""
        while len(head) < 32:
            more = a.recv(32 - len(head))
            if not more:
                return self._end(a, b)
            head += more
        b.sendall(head[:28] + struct.pack("<I", 3))
        return super()._carry(a, b, back)


@pytest.fixture(scope="module")
def server():
    with case.serving("--listen", "127.0.0.1:0", "--devices", "cpu,sim") as s:
        yield s


@pytest.fixture(params=["new", "older"])
def address(request, server):
    if request.param == "new":
        yield f"tcp:127.0.0.1:{server.port}", True
        return
    relay = Older(server.port)
    yield f"tcp:127.0.0.1:{relay.port}", False
    relay.close()


def images():
    rng = np.random.default_rng(3)
    w = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], rng.standard_normal(108).astype(np.float32).tobytes(), raw=True)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    graph = helper.make_graph(nodes, "images", [INFO("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
                              [INFO("y", TensorProto.FLOAT, ["n", 4, 8, 8])], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("device", ["remote:0", "remote:1"])
def test_numbers_of_images(address, device):
    ctx = context(address[0])
    model = heddle.load(images(), devices=device, context=ctx)
    local = heddle.load(images(), devices="cpu")
    data = np.random.default_rng(4).standard_normal((16, 3, 8, 8)).astype(np.float32)
    for n in (16, 1, 7, 16, 3, 9, 2):
        np.testing.assert_allclose(model(data[:n]), local(data[:n]), rtol=1e-4, atol=1e-4)


def test_a_state_grows_where_it_is(address, tmp_path, monkeypatch):
    monkeypatch.setenv("HEDDLE_REMOTE_SERVERS", address[0])
    one = plan_of(tmp_path, journal(), "--state", "past:present", "--dim", "past=4", "--device", "remote:1")["past"]
    assert one["in_place"] == address[1], one
    ctx = context(address[0])
    executor = heddle.load(journal(), devices="remote:1", state="past:present", context=ctx).executor()
    past = np.zeros((0, SIZE), np.float32)
    for x in rows(20):
        past = np.concatenate([past, 2 * x])
        np.testing.assert_allclose(step(executor, x), past.sum(axis=0) + 1, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(executor.read_state("past").numpy(), past)


def test_only_open_dimensions_change(server):
    """A server resizes a launch along the dimensions that the client named, and refuses bits of dimensions that are not there."""
    c = case.Client(server.port)
    assert c.ask(case.OPEN, u32(0))[0] == 0
    body = region("Relu", [f32(3, 4)], [f32(3, 4)], 2)
    assert c.ask(case.QUERY, u32(0) + body)[0] == 0
    assert c.ask(case.QUERY, u32(0) + body + u32(2, 1, 1))[0] == 0
    for tail in u32(2, 4, 1), u32(2, 1), u32(1, 1), u32(3, 1, 1, 1), u32(2, 1, 1, 0):
        status, why, _ = c.ask(case.QUERY, u32(0) + body + tail)
        assert status != 0 and "malformed" in why, (tail, why)
    plain = region("Relu", [f32(3, 4)], [f32(3, 4)], 0)
    assert c.ask(case.QUERY, u32(0) + plain + u32(2, 1, 1))[0] != 0  # not of a region without the flag
    values = u32(2) + b"".join(u32(2 | 32 << 8 | 1 << 16, 2) + struct.pack("<3Q", n, m, 0) + u32(0) for n, m in [(2, 4)] * 2)
    closed = u32(2) + b"".join(u32(2 | 32 << 8 | 1 << 16, 2) + struct.pack("<3Q", n, m, 0) + u32(0) for n, m in [(3, 2)] * 2)
    buffer, = struct.unpack("<Q", c.ask(case.ALLOC, u32(0) + struct.pack("<2Q", 128, 64))[2])
    stream, = struct.unpack("<Q", c.ask(case.STREAM, u32(0, 0, 0))[2])
    _, _, offers = c.ask(case.QUERY, u32(0) + body + u32(2, 1, 1))
    last = struct.unpack_from("<I", offers)[0] - 1
    status, why, op = c.ask(case.PREPARE, u32(0, last) + body + u32(2, 1, 1))
    assert status == 0, why
    slices = struct.pack("<9Q", 0, 0, 0, buffer, 0, 48, buffer, 64, 48)
    status, why, launch = c.ask(case.BIND, op + u32(stream, 1, 1) + slices)
    assert status == 0, why
    status, why, _ = c.ask(30, launch + slices + values)
    assert status == 0, why
    status, why, _ = c.ask(30, launch + slices + closed)
    assert status == 7 and "shapes are not those" in why, (status, why)
    c.close()
