"""State values: decoders whose cache stays on its device, against the same loop by hand; reset, files, forks, bad input.
timeout: 600"""
import os
import struct
import tempfile

import heddle
import numpy as np
import onnx
import pytest
from decoders import HEADS, WIDTH, WORDS, INFO, Loop, feeds, fixed, growing
from heddle import _core
from onnx import TensorProto, helper

os.environ.setdefault("POCL_DEVICES", "pthread pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
TOKENS = 50
FIXED = "cache_*:written_*"


def load(model, devices="cpu", context=None, **more):
    try:
        return heddle.load(model, devices=devices, context=context, **more)
    except heddle.errors.NoDeviceError as error:
        pytest.skip(f"no {devices}: {error}")


def give(executor, feed):
    for name, value in feed.items():
        executor.set_input(name, value)
    executor.run()
    return executor.get_output("logits").numpy()


def decode(model, executor, tokens=TOKENS, **more):
    """Runs a decoder beside the loop by hand; the bytes that each run moved."""
    loop, moved, before = Loop(model, more.get("batch", 1)), [], 0
    for feed in feeds(model, tokens, **more):
        want = loop.step(feed)
        np.testing.assert_allclose(give(executor, feed), want["logits"], rtol=1e-4, atol=1e-5)
        moved.append(executor.stats()["bytes_copied"] - before)
        before += moved[-1]
    for info in executor.state_info():
        value = executor.read_state(info["input"]).numpy()
        np.testing.assert_allclose(value, loop.state[info["input"]], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(value, executor.get_output(info["output"]).numpy())
        assert info["shape"] == value.shape and info["bytes"] == value.nbytes and not info["is_reset"]
    return moved


@pytest.mark.parametrize("devices, place", [
    ("cpu", None), ("sim:0", None), ("sim:0,cpu", None), ("sim:0,cpu", "present.0.*=cpu"), ("sim:0,cpu", "p?=cpu"),
    ("sim:0,sim:1", "*1*=sim:1"), ("opencl:0", None), ("opencl:0,opencl:1", "*1*=opencl:1"), ("opencl:0,cpu", "*0=cpu"),
    ("sim:0,opencl:0,cpu", "*1*=opencl:0")])
def test_a_cache_that_grows(devices, place):
    model = growing()
    executor = load(model, devices, state="auto", place=place).executor()
    assert [one["axis"] for one in executor.state_info()] == [2] * 4
    moved = decode(model, executor, first=3)
    assert 1 <= executor.stats()["growths"] <= 6  # each power of two is planned, the lengths between are its sizes
    if devices == "sim:0":  # the token and the logits, nothing else
        assert set(moved[1:]) == {8 + 4 * WORDS}, moved
        assert {one["device"] for one in executor.state_info()} == {"sim:0"}
    if devices == "opencl:0":  # in memory that both share
        assert set(moved[1:]) <= {0, 8 + 4 * WORDS}, moved
        assert {one["device"] for one in executor.state_info()} == {"opencl:0"}


@pytest.mark.parametrize("devices, place", [
    ("cpu", None), ("sim:0", None), ("sim:0,cpu", "written_k*=cpu"), ("sim:0,sim:1", "*_k*=sim:1"), ("opencl:0", None),
    ("opencl:0,cpu", "*v*=cpu")])
def test_a_cache_of_fixed_size(devices, place):
    model = fixed()
    executor = load(model, devices, state=FIXED, place=place).executor()
    moved = decode(model, executor)
    if devices == "sim:0":
        assert set(moved[1:]) == {8 + 8 + 4 * 64 + 4 * WORDS}, moved
        assert executor.stats()["replays"] > TOKENS  # what was recorded is replayed, on both sides


def test_tensor_scatter():
    try:
        model = fixed("TensorScatter")
        Loop(model).step(next(feeds(model, 1)))
        heddle.load(model, devices="cpu").executor()
    except (onnx.checker.ValidationError, NotImplementedError, RuntimeError, heddle.errors.UnsupportedError) as error:
        pytest.skip(f"no TensorScatter: {error}")
    decode(model, load(model, "sim:0,cpu", state=FIXED).executor(), 20)


def test_batch_comes_from_the_input_that_names_it():
    model = growing(1)
    decode(model, load(model, "sim:0", state="past_key_values.*:present.*").executor(), 8, batch=3, first=2)


def test_state_unplanned_on_other_settings():
    model = growing(1)
    for more in {"reuse": False}, {"slots": True}, {"capture": False}, {"optimize": False}, {"max_programs": 1}:
        decode(model, load(model, "sim:0,cpu", state="auto", **more).executor(), 6)
        decode(fixed(), load(fixed(), "sim:0,cpu", state=FIXED, **more).executor(), 6)


@pytest.mark.parametrize("settings", [
    "sim.unified=1", "sim.unified=1 sim.coherent=0", "sim.coherent=0", "sim.import=0", "sim.import=0 sim.unified=1",
    "sim.import_alignment=65536", "sim.views=0", "sim.capture=0", "sim.delay_us=200", "sim.alignment=4096", "sim.peer=0",
    "layers=check"])
def test_every_kind_of_device(settings):
    context = lambda: _core.Context(dict(word.split("=") for word in settings.split()))
    for devices, place in ("sim:0", None), ("sim:0,cpu", "*v*=cpu"), ("sim:0,sim:1,cpu", "*v*=sim:1"):
        decode(growing(1), load(growing(1), devices, context(), state="auto", place=place).executor(), 5)
        decode(fixed(room=8), load(fixed(room=8), devices, context(), state=FIXED, place=place).executor(), 5)


def test_reset_and_truncate():
    model = growing()
    for devices in "cpu", "sim:0":
        executor = load(model, devices, state="auto").executor()
        given = list(feeds(model, 8))
        want = [give(executor, feed) for feed in given]
        executor.truncate_state(3)
        assert executor.read_state(0).shape == (1, HEADS, 3, WIDTH)
        for feed, logits in zip(given[3:], want[3:]):
            np.testing.assert_allclose(give(executor, feed), logits, rtol=1e-5, atol=1e-6)
        executor.truncate_state(0, "present.0.key")
        assert executor.read_state("past_key_values.0.key").shape == (1, HEADS, 0, WIDTH)
        assert executor.read_state(1).shape == (1, HEADS, 8, WIDTH)
        for length in -1, 9:
            with pytest.raises(heddle.errors.InvalidError, match="cannot be cut"):
                executor.truncate_state(length)
        assert executor.read_state(1).shape == (1, HEADS, 8, WIDTH)
        executor.reset_state()
        assert all(one["is_reset"] and one["bytes"] == 0 for one in executor.state_info())
        for feed, logits in zip(given, want):
            np.testing.assert_allclose(give(executor, feed), logits, rtol=1e-5, atol=1e-6)
    executor = load(fixed(), state=FIXED).executor()
    with pytest.raises(heddle.errors.InvalidError, match="open dimension"):
        executor.truncate_state(2)


def test_write_and_read():
    model = growing()
    executor, other = (load(model, "sim:0,cpu", state="auto").executor() for _ in range(2))
    given = list(feeds(model, 6))
    for feed in given[:3]:
        give(executor, feed)
    for one in executor.state_info():
        other.write_state(one["input"], executor.read_state(one["output"]))
    for feed in given[3:]:
        np.testing.assert_array_equal(give(executor, feed), give(other, feed))
    other.set_input("past_key_values.0.key", np.zeros((1, HEADS, 6, WIDTH), np.float32))  # as write_state
    assert not other.read_state(0).numpy().any()
    for value in np.zeros((1, HEADS, 6, WIDTH + 1), np.float32), np.zeros((HEADS, 6, WIDTH), np.float32):
        with pytest.raises(heddle.errors.InvalidError):
            other.write_state(0, value)
    with pytest.raises(heddle.errors.NotFoundError):
        other.read_state("logits")
    for key in -1, 4, 2**32 - 1:
        with pytest.raises(heddle.errors.NotFoundError):
            other.read_state(key)
    with pytest.raises(heddle.errors.InvalidError, match="state value"):
        other.bind_input("past_key_values.0.key", np.zeros((1, HEADS, 6, WIDTH), np.float32))
    with pytest.raises(heddle.errors.InvalidError, match="state value"):
        other.bind_output("present.0.key", np.zeros((1, HEADS, 7, WIDTH), np.float32))


def test_inputs_are_described():
    executor = load(growing(1), "sim:0", state="auto").executor()
    assert [name for name, _, _, is_given in executor.input_info() if not is_given] == ["ids"]
    assert executor.get_input("past_key_values.0.key").shape == (0, HEADS, 0, WIDTH)  # no batch is known yet
    give(executor, {"ids": np.array([[1, 2]])})
    shapes = {name: shape for name, shape, *_ in executor.input_info()}
    assert shapes["past_key_values.0.key"] == (1, HEADS, 2, WIDTH) == executor.get_input("past_key_values.0.key").shape
    assert dict((name, shape) for name, shape, _ in executor.output_info())["present.0.key"] == (1, HEADS, 2, WIDTH)


def test_views_stay_as_they_were():
    executor = load(fixed(), state=FIXED).executor()
    given = list(feeds(fixed(), 8))
    give(executor, given[0])
    view = executor.view_output("written_k")
    kept = view.numpy().copy()
    for feed in given[1:]:
        give(executor, feed)
    np.testing.assert_array_equal(view.numpy(), kept)


@pytest.mark.parametrize("devices", ["cpu", "sim:0", "opencl:0"])
@pytest.mark.parametrize("model, state", [(growing(), "auto"), (fixed(), FIXED)], ids=["growing", "fixed"])
def test_fork(model, state, devices):
    loaded = load(model, devices, state=state)
    first, second = loaded.executor(), loaded.executor()
    given = list(feeds(model, 10))
    for feed in given[:4]:
        give(first, feed)
    first.fork_state(second)
    third = loaded.executor()
    first.fork_state(third)
    want = [give(first, feed) for feed in given[4:]]
    other = [give(third, {**feed, "ids": feed["ids"] * 0}) for feed in given[4:]]
    for feed, logits in zip(given[4:], want):
        np.testing.assert_array_equal(give(second, feed), logits)
    assert not np.array_equal(want[-1], other[-1])
    assert np.array_equal(first.read_state(0).numpy(), second.read_state(0).numpy())
    with pytest.raises(heddle.errors.InvalidError, match="one model"):
        first.fork_state(load(model, devices, state=state).executor())


def test_a_lost_device():
    context = _core.Context({"sim.fail": "run:40@0:fault"})
    loaded = load(growing(), "sim:0", context, state="auto")
    executor, other = loaded.executor(), loaded.executor()
    with pytest.raises(heddle.errors.DeviceLostError):
        for feed in feeds(growing(), 40):
            give(executor, feed)
    for call in (lambda: executor.fork_state(other), lambda: executor.read_state(0), lambda: executor.save_state("never")):
        with pytest.raises(heddle.errors.DeviceLostError):
            call()
    assert not os.path.exists("never")


@pytest.mark.parametrize("devices", ["cpu", "sim:0", "opencl:0"])
def test_files(tmp_path, devices):
    model = growing()
    executor = load(model, devices, state="auto").executor()
    given, path = list(feeds(model, 6)), tmp_path / "state"
    executor.save_state(path)  # at its beginning
    for feed in given[:3]:
        give(executor, feed)
    other = load(model, "cpu", state="auto").executor()
    other.load_state(path)
    assert all(one["is_reset"] for one in other.state_info())
    executor.save_state(path)
    other.load_state(path)
    for feed in given[3:]:
        np.testing.assert_allclose(give(executor, feed), give(other, feed), rtol=1e-5, atol=1e-6)
    executor.load_state(path)
    assert executor.read_state(0).shape == (1, HEADS, 3, WIDTH)
    kept = executor.read_state(0).numpy().copy()
    data = path.read_bytes()

    def refused(bytes_, error=heddle.errors.FormatError):
        bad = tmp_path / "bad"
        bad.write_bytes(bytes_)
        with pytest.raises(error, match="bad"):
            executor.load_state(bad)
        np.testing.assert_array_equal(executor.read_state(0).numpy(), kept)

    for n in [*range(0, len(data), 37), len(data) - 1]:
        refused(data[:n])
    refused(data + b"x")
    for at in range(0, len(data), 41):
        refused(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:])
    other = load(growing(1), state="auto").executor()
    other.save_state(tmp_path / "one")
    refused((tmp_path / "one").read_bytes(), heddle.errors.InvalidError)
    fixed_one = load(fixed(), state=FIXED).executor()
    fixed_one.save_state(tmp_path / "fixed")
    refused((tmp_path / "fixed").read_bytes(), heddle.errors.InvalidError)
    with pytest.raises(heddle.errors.FileError):
        executor.load_state(tmp_path / "none")
    with pytest.raises(heddle.errors.FileError):
        executor.save_state(tmp_path / "no" / "folder")
    with pytest.raises(heddle.errors.InvalidError, match="no state values"):
        load(model).executor().save_state(path)


def checksummed(data):
    """The file with the checksum and the size that its bytes want: what is wrong is found behind them."""
    data = bytearray(data)
    struct.pack_into("<Q", data, 16, len(data))
    sum_ = 0xcbf29ce484222325
    for byte in data[:-8]:
        sum_ = (sum_ ^ byte) * 0x100000001b3 % 2**64
    struct.pack_into("<Q", data, len(data) - 8, sum_)
    return bytes(data)


def test_files_made_by_hand(tmp_path):
    executor = load(growing(1), state="auto").executor()
    give(executor, next(feeds(growing(1), 1)))
    path = tmp_path / "state"
    executor.save_state(path)
    data = path.read_bytes()
    item = 24  # name_bytes, ndim, code, bits, lanes, is_reset, bytes
    edits = [(12, "<I", 2**32 - 1), (12, "<I", 1), (8, "<I", 2), (item, "<I", 2**31), (item, "<I", 65535), (item + 4, "<I", 33),
             (item + 4, "<I", 2**32 - 1), (item + 8, "<B", 1), (item + 9, "<B", 0), (item + 10, "<H", 9), (item + 16, "<Q", 2**63),
             (item + 16, "<Q", 0), (item + 24 + 21, "<q", -1), (item + 24 + 21, "<q", 2**62), (item + 24 + 21 + 16, "<q", 0),
             (item + 24, "<B", ord("q"))]
    for at, form, value in edits:
        bad = bytearray(data)
        struct.pack_into(form, bad, at, value)
        path.write_bytes(checksummed(bad))
        with pytest.raises((heddle.errors.FormatError, heddle.errors.InvalidError)):
            executor.load_state(path)
    path.write_bytes(checksummed(data))
    executor.load_state(path)


def test_rules():
    model = growing()
    states = lambda rules, **more: [(one["input"], one["output"]) for one in load(model, state=rules, **more).executor().state_info()]
    every = [(f"past_key_values.{n}.{t}", f"present.{n}.{t}") for n in range(2) for t in ("key", "value")]
    assert states("auto") == states("past_key_values.*:present.*") == states("past*:present*") == every
    assert states({"past_key_values.*.*": "present.*.*"}) == every
    assert states("past_key_values.1.key=present.1.key") == every[2:3]
    assert states("past_key_values.*.key:present.*.key,past_key_values.0.value:present.0.value") == [every[0], every[2], every[1]]
    assert states("off") == states(None) == []
    for rules, words in {
            "nothing*:present*": "no input is called", "past_key_values.*:absent.*": "there is no output",
            "past_key_values.0.key:present.0.key,past_key_values.0.key:present.0.value": "two outputs are tied to input",
            "past_key_values.0.key:present.0.key,past_key_values.0.value:present.0.key": "tied to two inputs",
            "ids:logits": "not alike", "past_key_values.0.key:logits": "not alike", "table:logits": "constant",
            "past_key_values.*:present": "same number", "past": "a rule is", ":": "a rule is", "a:b:c": "a rule is",
            "past*:present*,": "a rule is", "past*:present.0.*": "no output", "*:*": "no output"}.items():
        with pytest.raises(heddle.errors.InvalidError, match=words):
            load(model, state=rules)
    with pytest.raises(heddle.errors.InvalidError, match="one run in flight"):
        load(model, state="auto", in_flight=2)
    with pytest.raises(ValueError, match="pool"):
        load(model, state="auto", pool=2)


def test_rules_in_the_graph(tmp_path):
    import json
    model = growing(1)
    text = json.loads(load(model).graph_json())
    text["heddle"]["state"] = "past_key_values.*:present.*"
    loaded = heddle.loads(json.dumps(text), devices="cpu")
    assert len(loaded.executor().state_info()) == 2
    assert json.loads(loaded.graph_json())["heddle"]["state"] == "past_key_values.*:present.*"
    assert heddle.loads(json.dumps(text), devices="cpu", state="off").executor().state_info() == []
    text["heddle"]["state"] = 7
    with pytest.raises(heddle.errors.FormatError, match="state"):
        heddle.loads(json.dumps(text), devices="cpu")


def test_a_value_that_fits_only_at_first():
    """The output's shape is another one than the input may have: known when it is planned."""
    nodes = [helper.make_node("Concat", ["past", "x"], ["present"], name="grow", axis=0)]
    graph = helper.make_graph(nodes, "g", [INFO("x", TensorProto.FLOAT, [2]), INFO("past", TensorProto.FLOAT, [4])],
                              [INFO("present", TensorProto.FLOAT, ["n"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for devices in "cpu", "sim:0":
        with pytest.raises(heddle.errors.InvalidError, match="tied to an input that it does not fit"):
            executor = load(model, devices, state="past:present").executor()
            executor.set_input("x", np.ones(2, np.float32))
            executor.run()


def test_state_that_passes_through_and_is_read_twice():
    """An output that is the input itself, one that is a view of it, and a value that is two outputs."""
    nodes = [helper.make_node("Add", ["s", "x"], ["sum"], name="add"), helper.make_node("Identity", ["sum"], ["next"], name="i"),
             helper.make_node("Identity", ["k"], ["k2"], name="j"), helper.make_node("Identity", ["sum"], ["seen"], name="z")]
    f = lambda name: INFO(name, TensorProto.FLOAT, [3])
    graph = helper.make_graph(nodes, "g", [f("x"), f("s"), f("k")], [f("next"), f("k2"), f("seen")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for devices in "cpu", "sim:0", "sim:0,cpu", "opencl:0":
        executor = load(model, devices, state="s:next,k:k2").executor()
        executor.write_state("k", np.arange(3, dtype=np.float32))
        executor.set_input("x", np.ones(3, np.float32))
        for n in range(1, 6):
            executor.run()
            for name, want in ("next", [n] * 3), ("k2", [0, 1, 2]), ("seen", [n] * 3):
                np.testing.assert_array_equal(executor.get_output(name).numpy(), np.float32(want))
        assert executor.run_to("sum" if devices == "none" else "add").numpy().tolist() == [6, 6, 6]
        assert executor.read_state("s").numpy().tolist() == [5, 5, 5]  # a run to a node moves no state


def test_state_in_stages():
    """A model with a loop: the values go through the host."""
    body = helper.make_graph([helper.make_node("Add", ["v", "x"], ["w"], name="sum"), helper.make_node("Identity", ["c"], ["d"])],
                             "body", [INFO("i", TensorProto.INT64, []), INFO("c", TensorProto.BOOL, []), INFO("v", TensorProto.FLOAT, [2])],
                             [INFO("d", TensorProto.BOOL, []), INFO("w", TensorProto.FLOAT, [2])])
    graph = helper.make_graph([helper.make_node("Loop", ["n", "", "s"], ["t"], body=body, name="loop")], "g",
                              [INFO("n", TensorProto.INT64, []), INFO("x", TensorProto.FLOAT, [2]), INFO("s", TensorProto.FLOAT, [2])],
                              [INFO("t", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executor = load(model, state="s:t").executor()
    executor.set_input("x", np.float32([1, 2]))
    total = 0
    for n in 3, 0, 5:
        executor.set_input("n", np.array(n))
        executor.run()
        total += n
        assert executor.get_output("t").numpy().tolist() == executor.read_state("s").numpy().tolist() == [total, 2 * total]


def test_state_that_decides_shapes():
    nodes = [helper.make_node("Add", ["n", "one"], ["m"], name="count"), helper.make_node("Expand", ["x", "m"], ["y"], name="grow")]
    graph = helper.make_graph(nodes, "g", [INFO("x", TensorProto.FLOAT, [1]), INFO("n", TensorProto.INT64, [1])],
                              [INFO("y", TensorProto.FLOAT, ["k"]), INFO("m", TensorProto.INT64, [1])],
                              [onnx.numpy_helper.from_array(np.array([1]), "one")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for devices in "cpu", "sim:0,cpu":
        executor = load(model, devices, state="n:m").executor()
        executor.set_input("x", np.float32([7]))
        for n in range(1, 5):
            executor.run()
            assert executor.get_output("y").numpy().tolist() == [7] * n
    with pytest.raises(heddle.errors.UnsupportedError, match="decides shapes"):
        load(model, "sim:0", state="n:m").executor().run()


def test_calls_of_the_model():
    model = growing(1)
    loaded, loop = load(model, "sim:0,cpu", state="auto"), Loop(model)
    assert loaded.input_names == ("ids",)
    for feed in feeds(model, 5):
        np.testing.assert_allclose(loaded(feed["ids"])[0], loop.step(feed)["logits"], rtol=1e-4, atol=1e-5)


def test_start_and_wait():
    model = fixed()
    executor, loop = load(model, "sim:0", state=FIXED).executor(), Loop(model)
    for feed in feeds(model, 20):
        for name, value in feed.items():
            executor.set_input(name, value)
        executor.start()
        executor.wait()
        np.testing.assert_allclose(executor.get_output(0).numpy(), loop.step(feed)["logits"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("devices, kind, stride", [
    *(("sim:0,cpu", kind, 1) for kind in ("op.run", "memory.alloc", "op.bind", "op.prepare", "op.resize", "copy.h2d", "copy.d2h")),
    ("sim:0,cpu", "any", 7), ("cpu:0", "any", 11), ("cpu:0", "op.resize", 3), ("opencl:0,cpu", "any", 97)])
@pytest.mark.parametrize("model, state", [(growing(1), "auto"), (fixed(room=8), FIXED)], ids=["growing", "fixed"])
def test_every_nth_call_fails(model, state, devices, kind, stride):
    """Whatever fails, in a growth too, the state is what it was before that run, and the run can be given again."""
    given, loop = list(feeds(model, 4)), Loop(model)
    want = [loop.step(feed)["logits"] for feed in given]
    n, failed, quiet = 1, 0, 0
    load(model, devices, state=state)
    while quiet < 4:  # some failures have no effect: what cannot be recorded is run step by step
        context = _core.Context({"layers": "fault", "fault.fail": f"{kind}:{n}@{devices.split(',')[0]}", "log": "off"})
        done, errors = 0, 0
        try:
            executor = heddle.load(model, devices=devices, state=state, context=context,
                                   capture=kind != "op.run").executor()
        except heddle.errors.Error:
            n, failed = n + stride, failed + 1
            continue
        while done < len(given):
            before, runs = None, executor.stats()["runs"]
            try:
                before = [executor.read_state(i).numpy().copy() for i in range(2)]
                np.testing.assert_allclose(give(executor, given[done]), want[done], rtol=1e-4, atol=1e-5)
                done += 1
            except heddle.errors.DeviceLostError:
                errors = -1
                break
            except heddle.errors.Error:
                errors += 1
                assert errors == 1, "a single fault fails one call"
                after = [executor.read_state(i).numpy() for i in range(2)]
                if executor.stats()["runs"] > runs:  # the run had ended, and a read of what it made failed
                    done += 1
                    np.testing.assert_allclose(executor.get_output("logits").numpy(), want[done - 1], rtol=1e-4, atol=1e-5)
                elif before is not None:
                    for x, y in zip(before, after):
                        assert x.size == y.size and np.array_equal(x.ravel(), y.ravel())
        quiet = 0 if errors else quiet + 1
        n, failed = n + stride, failed + (errors != 0)
    assert failed > 0 or kind in ("copy.h2d", "copy.d2h", "op.resize"), failed


def test_a_run_that_fails_is_repeated():
    """A failure that leaves the device: retry and failover repeat the run from the state before it."""
    model = growing(1)
    for policy in "retry", "failover":
        for n in 3, 40, 61:
            context = _core.Context({"layers": "fault", "fault.fail": f"op.run:{n}@sim:0", "log": "off"})
            executor = load(model, "sim:0,cpu", context, state="auto", on_failure=policy, capture=False).executor()
            decode(model, executor, 5)
            assert executor.stats()["retries"] == 1


def test_failover_needs_the_state():
    """A state on a lost device is lost, which an error reports; after a reset the run goes on elsewhere."""
    context = _core.Context({"sim.fail": "run:40@0:fault", "log": "off"})
    executor = load(growing(1), "sim:0,cpu", context, state="auto", on_failure="failover").executor()
    with pytest.raises(heddle.errors.DeviceLostError, match="is bound to memory of sim:0"):
        decode(growing(1), executor, 40)
    executor.reset_state()
    give(executor, {"ids": np.array([[1]])})
    assert {one["device"] for one in executor.state_info()} == {"cpu"}
