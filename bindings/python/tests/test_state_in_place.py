"""State values that are updated in their memory: one piece of memory a value, whatever fails, is forked or is handed out.
timeout: 300"""
import json
import os
import pathlib
import subprocess
import tempfile

import heddle
import numpy as np
import onnx
import pytest
from decoders import INFO, Net
from heddle import _core
from onnx import TensorProto, helper

os.environ.setdefault("POCL_DEVICES", "pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
DEVICES = ["cpu", "sim:0", "opencl:0", "vulkan:0"]
SIZE = 8


def load(model, devices, **more):
    try:
        return heddle.load(model, devices=devices, **more)
    except heddle.errors.NoDeviceError as error:
        pytest.skip(f"no {devices}: {error}")


def plan_of(tmp_path, model, *words):
    """What `heddle plan --json` says of the state values, by their inputs."""
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    tool = pathlib.Path(os.environ["HEDDLE_BUILD"], "bin", "heddle")
    done = subprocess.run([tool, "plan", path, "--json", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {one["input"]: one for one in json.loads(done.stdout)["states"]}


def journal(axis=0, reader="present"):
    """present = past with a row that depends on x; y is the sum over present, over past before that, or over past after it."""
    net = Net(5)
    shape = ["past", SIZE] if axis == 0 else [2, "past", SIZE] if axis == 1 else [1, 1, "past", SIZE]
    row = [1 if d == "past" else d for d in shape]
    total = ["total" if d == "past" else d for d in shape]
    y = [d for d in shape if d != "past"]
    axes = net.constant("axes", np.array([shape.index("past")], np.int64))
    summed = lambda: net.node("ReduceSum", ["present" if reader == "present" else "past", axes], "sum", keepdims=0)
    if reader == "past":
        summed()
    net.node("Concat", ["past", net.node("Add", ["x", "x"], "doubled")], "present", axis=shape.index("past"))
    if reader != "past":
        summed()
    net.node("Add", ["sum", net.constant("one", np.float32(1))], "y")
    return net.model([INFO("x", TensorProto.FLOAT, row), INFO("past", TensorProto.FLOAT, shape)],
                     [INFO("y", TensorProto.FLOAT, y), INFO("present", TensorProto.FLOAT, total)])


def rows(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 1, SIZE)).astype(np.float32)


def step(executor, x, shape=(1, SIZE)):
    executor.set_input("x", x.reshape(shape))
    executor.run()
    return executor.get_output("y").numpy()


def test_the_plan_says_which_and_why_not(tmp_path):
    words = ("--state", "past:present", "--dim", "past=4")
    for device in "cpu", "sim:0":
        for model in journal(), journal(2), journal(reader="past"):
            one = plan_of(tmp_path, model, *words, "--device", device)["past"]
            assert one["in_place"] and one["why"] is None and one["step"] >= 0, one
        one = plan_of(tmp_path, journal(1), *words, "--device", device)["past"]  # ReduceSum takes dense rows
        assert not one["in_place"] and "room between its rows" in one["why"], one
        one = plan_of(tmp_path, journal(reader="after"), *words, "--device", device)["past"]
        assert not one["in_place"] and "read after" in one["why"], one
    one = plan_of(tmp_path, journal(), *words, "--device", "cpu,sim:0", "--place", "sum_node=sim:0")["past"]
    assert one["in_place"], one  # what is read elsewhere is a copy of present
    net = Net(1)
    net.node("Add", ["s", "x"], "t")
    model = net.model([INFO(name, TensorProto.FLOAT, [SIZE]) for name in "sx"], [INFO("t", TensorProto.FLOAT, [SIZE])])
    one = plan_of(tmp_path, model, "--state", "s:t")["s"]
    assert not one["in_place"] and "overwrites" in one["why"], one


@pytest.mark.parametrize("reader", ["present", "past", "after"])
@pytest.mark.parametrize("devices", DEVICES)
def test_it_grows_where_it_is(devices, reader):
    executor = load(journal(reader=reader), devices, state="past:present").executor()
    past, given = np.zeros((0, SIZE), np.float32), rows(40)
    for x in given:
        present = np.concatenate([past, 2 * x])
        want = (present if reader == "present" else past).sum(axis=0) + 1
        np.testing.assert_allclose(step(executor, x), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(executor.read_state("past").numpy(), present)
        past = present


@pytest.mark.parametrize("devices", DEVICES)
def test_what_is_handed_out_stays(devices):
    """Views, forks and cuts: no one sees what another appends."""
    model = load(journal(), devices, state="past:present")
    one, two = model.executor(), model.executor()
    given = 2 * rows(12)[:, 0]
    for x in given[:5]:
        step(one, x / 2)
    view = one.view_output("present") if hasattr(one, "view_output") else one.get_output("present")
    one.fork_state(two)
    for k in range(5, 9):
        step(one, given[k] / 2)
        step(two, -given[k] / 2)
    np.testing.assert_array_equal(view.numpy(), given[:5])
    np.testing.assert_array_equal(one.read_state(0).numpy(), given[:9])
    np.testing.assert_array_equal(two.read_state(0).numpy(), np.concatenate([given[:5], -given[5:9]]))
    one.truncate_state(3)
    step(one, given[11] / 2)
    np.testing.assert_array_equal(one.read_state(0).numpy(), np.concatenate([given[:3], given[11:]]))
    one.write_state(0, given[4:6])
    step(one, given[0] / 2)
    np.testing.assert_array_equal(one.read_state(0).numpy(), given[[4, 5, 0]])
    one.reset_state()
    step(one, given[7] / 2)
    np.testing.assert_array_equal(one.read_state(0).numpy(), given[7:8])
    np.testing.assert_array_equal(two.read_state(0).numpy(), np.concatenate([given[:5], -given[5:9]]))


# ---- a cache with a length


ROOM, HEADS, SHARED, WIDTH = 32, 4, 2, 8


def shared_cache(fixed_total):
    """GroupQueryAttention as ONNX Runtime's builder of decoders writes it: past and present of one size."""
    net = Net(2)
    cache = [1, SHARED, ROOM, WIDTH]
    inputs = [INFO("x", TensorProto.FLOAT, [1, 1, HEADS * WIDTH]), INFO("ends", TensorProto.INT32, [1])]
    total = net.constant("total", np.int32(ROOM)) if fixed_total else "total"
    if not fixed_total:
        inputs.append(INFO("total", TensorProto.INT32, []))
    inputs += [INFO(f"past_{t}", TensorProto.FLOAT, cache) for t in "kv"]
    outputs = [INFO("y", TensorProto.FLOAT, [1, 1, HEADS * WIDTH])]
    outputs += [INFO(f"present_{t}", TensorProto.FLOAT, cache) for t in "kv"]
    q, k, v = (net.node("MatMul", ["x", net.weights("w" + t, HEADS * WIDTH, n * WIDTH)], t)
               for t, n in zip("qkv", (HEADS, SHARED, SHARED)))
    net.nodes.append(helper.make_node("GroupQueryAttention", [q, k, v, "past_k", "past_v", "ends", total],
                                      ["y", "present_k", "present_v"], name="attention", domain="com.microsoft",
                                      num_heads=HEADS, kv_num_heads=SHARED))
    graph = helper.make_graph(net.nodes, "cache", inputs, outputs, net.constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17),
                                                                  helper.make_opsetid("com.microsoft", 1)])


class Attention:
    """The same by numpy."""
    def __init__(self, model):
        self.w = {one.name: onnx.numpy_helper.to_array(one).astype(np.float64) for one in model.graph.initializer}
        self.k, self.v = [], []

    def step(self, x):
        q, k, v = ((x @ self.w["w" + t]).reshape(-1, WIDTH) for t in "qkv")
        self.k.append(k), self.v.append(v)
        keys, values = np.array(self.k), np.array(self.v)  # rows, heads, width
        out = []
        for h in range(HEADS):
            scores = keys[:, h // (HEADS // SHARED)] @ q[h] / np.sqrt(WIDTH)
            weights = np.exp(scores - scores.max())
            out.append(weights / weights.sum() @ values[:, h // (HEADS // SHARED)])
        return np.concatenate(out)


@pytest.mark.parametrize("fixed_total", [True, False])
@pytest.mark.parametrize("devices", DEVICES)
def test_a_cache_with_a_length(devices, fixed_total, tmp_path):
    model = shared_cache(fixed_total)
    words = () if fixed_total else ("--input", f"total={tmp_path / 'total.npy'}")
    np.save(tmp_path / "total.npy", np.array(5, np.int32))
    executor = load(model, devices, state="past_*:present_*").executor()
    said = plan_of(tmp_path, model, "--state", "past_*:present_*", "--device", devices + ",cpu" * (devices != "cpu"), *words)
    assert all(one["in_place"] for one in said.values()), said
    hand = Attention(model)
    for t, x in enumerate(np.random.default_rng(4).standard_normal((20, HEADS * WIDTH)).astype(np.float32)):
        executor.set_input("x", x[None, None])
        executor.set_input("ends", np.array([t], np.int32))
        if not fixed_total:
            executor.set_input("total", np.array(t + 1, np.int32))
        executor.run()
        np.testing.assert_allclose(executor.get_output("y").numpy().ravel(), hand.step(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(executor.read_state(0).numpy()[0, :, :20].transpose(1, 0, 2), hand.k, rtol=1e-4, atol=1e-5)


# ---- a cache of fixed size, written by TensorScatter


def ring(mode, reader="present"):
    """present = past with the rows of x from row `at` of each batch on; y is the sum of a reader."""
    net = Net(3)
    cache = [2, SHARED, ROOM, WIDTH]
    summed = lambda name: net.node("ReduceSum", [name, net.constant("rows", np.array([2], np.int64))], "y", keepdims=0)
    if reader == "past":
        summed("past")
    net.node("TensorScatter", ["past", net.node("Add", ["x", "x"], "doubled"), "at"], "present", mode=mode)
    if reader == "present":
        summed("present")
    inputs = [INFO("x", TensorProto.FLOAT, [2, SHARED, "new", WIDTH]), INFO("at", TensorProto.INT64, [2]),
              INFO("past", TensorProto.FLOAT, cache)]
    graph = helper.make_graph(net.nodes, "ring", inputs, [INFO("y", TensorProto.FLOAT, [2, SHARED, WIDTH]),
                                                          INFO("present", TensorProto.FLOAT, cache)], net.constants)
    return helper.make_model(graph, ir_version=12, opset_imports=[helper.make_opsetid("", 24)])


@pytest.mark.parametrize("reader", ["present", "past"])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("devices", DEVICES)
def test_a_cache_of_fixed_size(devices, mode, reader, tmp_path):
    model = ring(mode, reader)
    executor = load(model, devices, state="past:present").executor()
    said = plan_of(tmp_path, model, "--state", "past:present", "--device", devices + ",cpu" * (devices != "cpu"), "--dim", "new=1")["past"]
    assert said["in_place"] == (mode == "linear"), said  # in a ring a row is overwritten that a failed run must keep
    rng, want, at = np.random.default_rng(6), np.zeros((2, SHARED, ROOM, WIDTH), np.float32), np.array([0, 3])
    for n in 1, 4, 1, 2, 1, 1:
        x, before = rng.standard_normal((2, SHARED, n, WIDTH)).astype(np.float32), want.copy()
        for b in range(2):
            want[b][:, at[b]:at[b] + n] = 2 * x[b]
        executor.set_input("x", x)
        executor.set_input("at", at.astype(np.int64))
        executor.run()
        got = executor.get_output("y").numpy()
        np.testing.assert_allclose(got, (before if reader == "past" else want).sum(axis=2), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(executor.read_state("past").numpy(), want)
        at += n


@pytest.mark.parametrize("devices", DEVICES)
def test_forks_of_a_cache_of_fixed_size(devices):
    """Each of the two writes the same row, and does not see the other's."""
    model = load(ring("linear"), devices, state="past:present")
    one, two = model.executor(), model.executor()

    def put(executor, at, value):
        executor.set_input("x", np.full((2, SHARED, 1, WIDTH), value, np.float32))
        executor.set_input("at", np.full(2, at, np.int64))
        executor.run()
        return executor.read_state("present").numpy()[:, :, :3, 0][1, 1].tolist()

    assert put(one, 0, 1) == [2, 0, 0]
    one.fork_state(two)
    assert put(two, 1, 5) == [2, 10, 0]
    assert one.read_state("past").numpy()[1, 1, :3, 0].tolist() == [2, 0, 0]
    assert put(one, 1, 7) == [2, 14, 0]
    view = one.view_output("present") if hasattr(one, "view_output") else one.get_output("present")
    assert put(one, 2, 8) == [2, 14, 16]
    assert view.numpy()[1, 1, :3, 0].tolist() == [2, 14, 0]
    assert put(two, 2, 9) == [2, 10, 18]


@pytest.mark.parametrize("kind", ["op.run", "op.bind", "memory.alloc"])
def test_a_failed_write_keeps_the_rows_before_it(kind):
    """Each call of a kind fails once; the run is repeated, and the cache is as if nothing had happened."""
    failures = 0
    for n in range(1, 24):
        context = _core.Context({"layers": "fault", "fault.fail": f"{kind}:{n}@sim:0", "log": "off"})
        try:
            executor = heddle.load(ring("linear"), devices="sim:0", state="past:present", context=context, capture=False).executor()
        except heddle.Error:
            failures += 1
            continue
        want = np.zeros((2, SHARED, ROOM, WIDTH), np.float32)
        for t in range(6):
            x = np.full((2, SHARED, 1, WIDTH), t + 1, np.float32)
            for attempt in range(2):
                try:
                    executor.set_input("x", x)
                    executor.set_input("at", np.full(2, t, np.int64))
                    executor.run()
                    break
                except heddle.Error:
                    failures += 1
                    assert attempt == 0, "one call fails"
                    try:
                        held = executor.read_state("past").numpy()
                    except heddle.Error:
                        pytest.fail("the state is lost")
                    np.testing.assert_array_equal(held[:, :, :t], want[:, :, :t])
            want[:, :, t] = 2 * (t + 1)
            np.testing.assert_array_equal(executor.read_state("past").numpy(), want)
    assert failures > 0
