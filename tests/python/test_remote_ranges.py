"""Shapes that change on devices of a server: launches are resized there, not prepared for each set of shapes, with the results of
ONNX Runtime; and requests to resize that no client sends.

labels: ctypes
timeout: 120
"""
import collections
import contextlib
import struct

import capi
import numpy as np
import onnxruntime
import pytest

import remote_case as case
from remote_case import Client, Relay, frame, serving, u32, u64
from test_ranges import MODELS, WIDTH

RESIZE = 30
EINVAL, EUNSUPPORTED = 1, 7
SIZES = [(2, 40), (1, 3), (2, 17), (1, 40), (2, 1), (1, 9), (2, 40)]  # the first is the bound


@pytest.fixture(scope="module")
def server():
    with serving("--listen", "127.0.0.1:0", "--devices", "cpu,sim") as s:
        yield s


class Counter(Relay):
    """A relay that counts the frames of the client by kind, and those of RESIZE that have an answer."""

    def __init__(self, port):
        self.kinds, self.asked = collections.Counter(), 0
        super().__init__(port)

    def _carry(self, a, b, back):
        if back:
            return super()._carry(a, b, back)
        with contextlib.suppress(OSError):
            held, skip = b"", 0
            while data := a.recv(1 << 16):
                b.sendall(data)
                held += data
                while len(held) > skip and len(held) - skip >= 16:
                    size, kind, number = struct.unpack("<QII", held[skip:skip + 16])
                    self.kinds[kind] += 1
                    self.asked += kind == RESIZE and number != 0
                    skip += 16 + size
                    cut = min(skip, len(held))
                    held, skip = held[cut:], skip - cut
                cut = min(skip, len(held))
                held, skip = held[cut:], skip - cut
        self._end(a, b)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("devices,place", [("remote:0", ()), ("remote:1,cpu", ("*Add=cpu", "*Reshape=cpu", "*Loop=cpu"))])
def test_launches_are_resized(tmp_path, server, name, devices, place):
    model = MODELS[name]().SerializeToString()
    (tmp_path / "model.onnx").write_bytes(model)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    relay = Counter(server.port)
    try:
        ctx = capi.Context(threads=1, optimize="on", layers="check", **{"remote.servers": f"tcp:127.0.0.1:{relay.port}"})
        ours = capi.Model.load(ctx, tmp_path / "model.onnx", devices=devices, place=place)
        ex = capi.Executor(ours)
        rng = np.random.default_rng(5)
        for turn, (b, n) in enumerate(SIZES + SIZES[1:]):
            x = rng.standard_normal((b, n, WIDTH)).astype(np.float32)
            ex.set_input("x", x)
            ex.run()
            want = session.run(None, {"x": x})[0]
            np.testing.assert_allclose(ex.output(0), want, rtol=1e-4, atol=1e-4, err_msg=f"{b} {n}")
            if turn == 1:  # shapes that differ are the first reason for bounds
                prepared = relay.kinds[case.PREPARE]
            if turn == len(SIZES) - 1:
                asked, resized = relay.asked, relay.kinds[RESIZE]
        assert relay.kinds[RESIZE] > 0, relay.kinds
        if (name, devices) == ("encoder", "remote:0"):  # all of its operators can be resized there
            assert relay.kinds[case.PREPARE] == prepared > 0, (prepared, relay.kinds)
            assert relay.asked == asked > 0 and relay.kinds[RESIZE] > resized, (asked, resized, relay.asked, relay.kinds)
        for thing in (ex, ours, ctx):
            thing.close()
    finally:
        relay.close()


# ---- messages

def text(word):
    return u32(len(word)) + word.encode()


def values(*sizes, kind=2):
    return u32(len(sizes)) + b"".join(u32(kind | 32 << 8 | 1 << 16, 1) + u64(n, 0) + u32(0) for n in sizes)


def relu(n):
    """[n] -> [n], whose shapes are bounds"""
    node = u32(17, 14) + text("") + text("Relu") + text("r") + u32(1, 0) + u32(1, 1) + u32(0)
    return u32(2) + values(n, n) + u32(1, 0) + u32(1, 1) + u32(1) + node


def number(answer):
    assert answer[0] == 0, answer
    return struct.unpack("<Q", answer[2])[0]


@pytest.mark.parametrize("device", [0, 1])
def test_what_a_launch_may_become(server, device):
    c = Client(server.port)
    assert c.ask(case.OPEN, u32(device))[0] == 0
    status, _, offers = c.ask(case.QUERY, u32(device) + relu(1000))
    flags = [f for f in struct.unpack("<II", offers[:8])[1:] if f & 2]
    assert status == 0 and flags, "no offer to resize"
    op = number(c.ask(case.PREPARE, u32(device, 0) + relu(1000)))
    closed = number(c.ask(case.PREPARE, u32(device, 0) + u32(0) + relu(1000)[4:]))
    small, large = (number(c.ask(case.ALLOC, u32(device) + u64(n, 64))) for n in (400, 4000))
    stream = struct.unpack("<Q", c.ask(case.STREAM, u32(device, 0, 0))[2])[0]
    nothing, few, many = u64(0, 0, 0), u64(small, 0, 400), u64(large, 0, 4000)

    def bind(what, x, y):
        return c.ask(case.BIND, u64(what) + u32(stream, 1, 1) + nothing + x + y)

    def run(launch, position):
        c.s.sendall(frame(case.RUN, stream, u64(position, launch)))
        kind, number_, got = c.receive()
        assert (kind, number_) == (case.DONE, stream)
        status = struct.unpack("<QI", got[:12])[1]
        if status:
            c.s.sendall(frame(case.RESUME, stream, u64(0)))
        return status

    def resize(launch, shapes, x, y):
        return c.ask(RESIZE, u64(launch) + nothing + x + y + shapes)[0]

    assert bind(closed, few, few)[0] == EINVAL  # too small, and never to be resized
    fixed = number(bind(closed, many, many))
    assert resize(fixed, values(100, 100), few, few) == EUNSUPPORTED
    launch = number(bind(op, few, many))
    assert run(launch, 1) == EINVAL  # before it is resized
    for shapes, x, y in ((values(1001, 1001), many, many), (values(2**62, 2**62), many, many),  # larger
                         (values(100, 1000), few, many), (values(1000, 100), many, few),  # that do not agree
                         (values(100), few, few), (values(100, 100, 100), few, few), (values(100, 100, kind=0), few, few),
                         (values(101, 101), few, few), (values(100, 100), nothing, few),  # more than the buffers have
                         (values(100, 100), u64(small, 4, 400), few), (values(100, 100), u64(launch, 0, 400), few)):
        assert resize(launch, shapes, x, y) in (EINVAL, EUNSUPPORTED), (shapes, x, y)
        assert run(launch, 2) == EINVAL
    assert resize(launch, values(100, 100) + b"x", few, few) != 0
    assert resize(op, values(100, 100), few, few) == EINVAL and c.ask(RESIZE, u64(launch) + nothing)[0] != 0
    assert resize(launch, values(100, 100), few, few) == 0 and run(launch, 3) == 0
    # it keeps what it uses, and lets go what it used
    for handle in small, large:
        c.s.sendall(frame(case.FREE, 0, u64(handle)))
    assert run(launch, 4) == 0
    assert resize(launch, values(100, 100), few, few) == EINVAL
    fresh = number(c.ask(case.ALLOC, u32(device) + u64(4000, 64)))
    whole = u64(fresh, 0, 4000)
    c.s.sendall(frame(case.WRITE, stream, u64(0, fresh, 0, 4000) + struct.pack("<1000f", *range(-500, 500))))
    assert resize(launch, values(1000, 1000), whole, whole) == 0 and run(launch, 5) == 0
    c.s.sendall(frame(case.READ, stream, u64(6, fresh, 0, 4000)))
    got = struct.unpack("<1000f", c.receive()[2][20:])
    assert got == tuple(max(0.0, float(n)) for n in range(-500, 500))

    def post(what, shapes, x, y):  # has no answer
        c.s.sendall(frame(RESIZE, 0, u64(what) + nothing + x + y + shapes))

    post(launch, values(100, 100), whole, whole)
    assert run(launch, 7) == 0
    for shapes, x, y in ((values(1001, 1001), whole, whole), (values(100), whole, whole), (values(100, 100), nothing, whole)):
        post(launch, shapes, x, y)
        assert run(launch, 8) == EINVAL  # never with the shapes that it had
    post(launch, values(100, 100), whole, whole)
    assert run(launch, 9) == 0
    post(op, values(100, 100), whole, whole)  # it is no launch, and the session ends
    with pytest.raises((OSError, EOFError, AssertionError, struct.error)):
        run(launch, 10)
    c.close()


def product(rows, results, flags=2):
    """[rows, 64] x [64, 64] -> [results, 64]; the values, and the region"""
    def value(*shape):
        return u32(2 | 32 << 8 | 1 << 16, len(shape)) + u64(*shape, 0) + u32(0)

    three = u32(3) + value(rows, 64) + value(64, 64) + value(results, 64)
    node = u32(17, 13) + text("") + text("MatMul") + text("m") + u32(2, 0, 1) + u32(1, 2) + u32(0)
    return three, u32(flags) + three + u32(2, 0, 1) + u32(1, 2) + u32(1) + node


@pytest.mark.parametrize("device", [0, 1])
def test_a_product_is_as_long_as_its_operand(server, device):
    c = Client(server.port)
    assert c.ask(case.OPEN, u32(device))[0] == 0
    op = number(c.ask(case.PREPARE, u32(device, 0) + product(1000, 1000)[1]))
    x, w, y = (number(c.ask(case.ALLOC, u32(device) + u64(n * 256, 64))) for n in (1000, 64, 1000))
    stream = struct.unpack("<Q", c.ask(case.STREAM, u32(device, 0, 0))[2])[0]
    room = u64(number(c.ask(case.ALLOC, u32(device) + u64(1 << 20, 64))), 0, 1 << 20)

    def operands(rows, results):
        return room + u64(x, 0, rows * 256) + u64(w, 0, 64 * 256) + u64(y, 0, results * 256)

    launch = number(c.ask(case.BIND, u64(op) + u32(stream, 2, 1) + operands(1000, 1000)))
    for rows, results, want in (1000, 10, False), (10, 1000, False), (1, 0, False), (10, 10, True), (1000, 1000, True):
        status = c.ask(RESIZE, u64(launch) + operands(rows, results) + product(rows, results)[0])[0]
        assert (status == 0) == want and status in (0, EUNSUPPORTED), (rows, results, status)
        c.s.sendall(frame(case.RUN, stream, u64(rows, launch)))
        assert c.receive()[2][8:12] == u32(0), (rows, results)
    c.close()
