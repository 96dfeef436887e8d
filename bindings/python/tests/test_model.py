"""Models from Python: what calls give, by numpy and onnx.reference; what they take; plans, profiles and measurements.

timeout: 300
"""
import asyncio
import collections
import gc
import json
import pickle
import shutil
import types
import weakref

import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper

import small_models as small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def perceptron(folder):
    return heddle.load(small.perceptron(folder), devices="cpu")


def test_a_call_gives_what_the_reference_gives_for_every_batch(folder, perceptron):
    rng = np.random.default_rng(1)
    for rows in (1, 5, 2, 5):
        x = rng.standard_normal((rows, 8)).astype(np.float32)
        p, s = perceptron(x)
        expected = small.reference(perceptron.path, x=x)
        np.testing.assert_allclose(p, expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(s, expected[1], rtol=1e-5, atol=1e-6)


def test_cycles_through_models_executors_and_contexts_are_collected(folder):
    class Owner:
        """Is known to the log of its context, as a method would be."""

        def __init__(self):
            self.context = heddle.Context({"threads": "1"}, lambda *line: self)
            self.model = heddle.load(small.add(folder), devices="cpu", context=self.context)
            self.model.mine = self.model.executor()

    gone = []
    for keep in ("context", "model", "mine"):
        owner = Owner()
        kept = owner.model.mine if keep == "mine" else getattr(owner, keep)
        gone.append(weakref.ref(owner))
        del owner
        gc.collect()
        assert gone[-1]() is not None  # by the log
        del kept
    gc.collect()
    assert [one() for one in gone] == [None] * 3


def test_long_doubles_are_converted(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    x = np.arange(4, dtype=np.longdouble)
    np.testing.assert_array_equal(model(x, x), [0, 2, 4, 6])
    with pytest.raises(TypeError, match="longdouble|float128"):
        heddle.as_tensor(x)


def test_inputs_by_position_by_name_and_as_a_mapping(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    x, y = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    for got in (model(x, y), model(x, y=y), model(y=y, x=x), model.run({"y": y, "x": x})["z"]):
        assert isinstance(got, np.ndarray) and got.dtype == np.float32
        np.testing.assert_array_equal(got, [10, 11, 12, 13])


def test_a_mapping_is_inputs_by_name_in_every_call(folder, tmp_path):
    model = heddle.load(small.add(folder), devices="cpu")
    x, y = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    np.savez(tmp_path / "inputs.npz", x=x, y=y)
    both = {"y": y, "x": x}
    with np.load(tmp_path / "inputs.npz") as stored:
        assert not isinstance(stored, dict)
        forms = [model(both), model(types.MappingProxyType(both)), model(collections.OrderedDict(both)), model(stored),
                 model({"x": x}, y=y), model.submit(both).result(), asyncio.run(model.call_async(both))]
    for got in forms:
        np.testing.assert_array_equal(got, [10, 11, 12, 13])
    assert model.profile(both, runs=1).rows and model.benchmark(both, repeat=1, number=1).results
    assert model.plan_for(both).json
    with pytest.raises(heddle.errors.InvalidError, match="input 'x' is given twice"):
        model(both, x=x)
    with pytest.raises(heddle.errors.NotFoundError, match="there is no input 'q'; the model's inputs: x, y"):
        model({**both, "q": x})
    with pytest.raises(heddle.errors.InvalidError, match="input 'y' is missing"):
        model({"x": x})
    with pytest.raises(heddle.errors.InvalidError, match="names of inputs are str"):
        model({0: x, 1: y})
    for value in (both, {1, 2}, object()):
        with pytest.raises(heddle.errors.InvalidError, match="input 'y': <class '.*'> is no array"):
            model(x, value)


def test_run_takes_the_arguments_of_onnxruntimes_sessions(folder, perceptron):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(perceptron.path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).standard_normal((3, 8)).astype(np.float32)
    first, second = perceptron.output_names
    for outputs in (None, [], [second], [second, first], (first,), [first, first]):
        ours, theirs = perceptron.run(outputs, {"x": x}), session.run(outputs, {"x": x})
        assert isinstance(ours, list) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    p, s = perceptron.run(output_names=None, input_feed={"x": x})
    np.testing.assert_array_equal(perceptron.run(None, {"x": x}, None, timeout=60)[0], p)
    np.testing.assert_array_equal(perceptron.run(input_feed={"x": x})[1], s)
    assert set(perceptron.run({"x": x}, 60.0)) == set(perceptron.run(inputs={"x": x})) == {first, second}
    with pytest.raises(heddle.errors.NotFoundError, match="there is no output 'q'; the model's outputs: "):
        perceptron.run(["q"], {"x": x})
    with pytest.raises(heddle.errors.InvalidError, match="names of outputs are str"):
        perceptron.run([0], {"x": x})
    for wrong in (lambda: perceptron.run(None), lambda: perceptron.run([first]), lambda: perceptron.run("p", {"x": x}),
                  lambda: perceptron.run(None, [x]), lambda: perceptron.run(None, {"x": x}, object())):
        with pytest.raises(TypeError):
            wrong()


def test_results_are_nobody_elses(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    one = np.ones(4, np.float32)
    first = model(one, one)
    second = model(one * 3, one)
    np.testing.assert_array_equal(first, [2, 2, 2, 2])
    first[:] = 99
    np.testing.assert_array_equal(second, [4, 4, 4, 4])
    np.testing.assert_array_equal(model(one, one), [2, 2, 2, 2])
    assert first.flags.writeable and first.flags.owndata


@pytest.mark.parametrize("size", [1, 1000, 300_000])
def test_small_and_large_arrays_in_any_order(folder, size):
    model = heddle.load(small.add(folder, ("n",), f"open{size}"), devices="cpu")
    fixed = heddle.load(small.add(folder, (size,), f"fixed{size}"), devices="cpu")
    rng = np.random.default_rng(size)
    kept = []
    for turn in range(6):
        x, y = (rng.standard_normal(size).astype(np.float32) for _ in range(2))
        kept.append((fixed(x, y), x + y))
        np.testing.assert_array_equal(model(x, y), x + y)
        np.testing.assert_array_equal(model(x[:1], y[:1]), x[:1] + y[:1])
        x[:] = 0  # what was given may change afterwards
    for got, expected in kept:
        np.testing.assert_array_equal(got, expected)
    for turn, (got, _) in enumerate(kept):
        assert not any(np.shares_memory(got, other) for other, _ in kept[turn + 1:])


def test_a_large_result_is_kept_while_others_are_made(folder):
    model = heddle.load(small.add(folder, (300_000,), "large"), devices="cpu")
    results = [(i, model(np.full(300_000, i, np.float32), np.ones(300_000, np.float32))) for i in range(5)]
    for i, got in results:
        assert (got == i + 1).all()


def test_one_array_for_two_large_inputs_and_a_result_as_input(folder):
    model = heddle.load(small.add(folder, (300_000,), "again"), devices="cpu")
    x = np.ones(300_000, np.float32)
    for power in range(1, 6):
        x = model(x, x)
        assert (x == 2 ** power).all()


def test_other_layouts_dtypes_and_kinds_of_values(folder):
    model = heddle.load(small.add(folder, (3, 4), "matrix"), devices="cpu")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    zero = np.zeros((3, 4), np.float32)
    big = np.zeros((6, 8), np.float32)
    big[::2, ::2] = x
    for same in (np.asfortranarray(x), big[::2, ::2], x[::-1].copy()[::-1], x.astype(np.float64), x.astype(np.int64),
                 x.astype(">f4"), x.tolist(), heddle.as_tensor(x), x.astype(np.float16)):
        np.testing.assert_array_equal(model(same, zero), x)
        np.testing.assert_array_equal(model.run({"x": zero, "y": same})["z"], x)
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(model(read_only, zero), x)


def test_every_dtype_of_numpys_comes_back(folder):
    kinds = ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "BOOL"]
    for kind in kinds:
        number = getattr(TensorProto, kind)
        path = small.save(folder, f"same_{kind}", [helper.make_node("Identity", ["x"], ["y"], name="same")],
                          [("x", (2, 3), number)], [("y", (2, 3), number)])
        model = heddle.load(path, devices="cpu")
        x = np.array([[0, 1, 2], [3, 4, 5]]).astype(helper.tensor_dtype_to_np_dtype(number))
        y = model(x)
        assert y.dtype == x.dtype, kind
        np.testing.assert_array_equal(y, x)


def test_empty_and_zero_dimensional_values(folder):
    model = heddle.load(small.add(folder, ("n", 3), "rows"), devices="cpu")
    assert model(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).shape == (0, 3)
    scalar = heddle.load(small.add(folder, (), "scalar"), devices="cpu")
    got = scalar(2.0, np.float32(3))
    assert isinstance(got, np.ndarray) and got.shape == () and got == 5


def test_a_shape_that_the_values_decide(folder):
    node = helper.make_node("NonZero", ["x"], ["at"], name="where")
    path = small.save(folder, "nonzero", [node], [("x", (5,))], [("at", (1, "n"), TensorProto.INT64)])
    model = heddle.load(path, devices="cpu")
    for x in ([0, 1, 0, 2, 3], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 5, 0, 0]):
        np.testing.assert_array_equal(model(np.array(x, np.float32)), [np.nonzero(x)[0]])
    shape = helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
    path = small.save(folder, "reshape", [shape], [("x", (6,)), ("shape", (2,), TensorProto.INT64)], [("y", ("a", "b"))])
    model = heddle.load(path, devices="cpu")
    for to in ((2, 3), (3, 2), (1, 6), (2, 3)):
        assert model(np.arange(6, dtype=np.float32), np.array(to)).shape == to


def test_devices_tensors_on_them_and_dlpack(folder):
    context = heddle.Context({"devices": "sim:0,cpu"})
    model = heddle.load(small.add(folder), context=context, place={"sum": "sim:0"})
    assert model.devices == ("sim:0", "cpu:0")
    there = heddle.empty((4,), "float32", "sim:0", context)
    there.copy_from(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(model(there, np.ones(4, np.float32)), [1, 2, 3, 4])

    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **words):
            return self.array.__dlpack__(**words)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    np.testing.assert_array_equal(model(Foreign(np.full(4, 2, np.float32)), there), [2, 3, 4, 5])


def test_infos_names_and_repr(folder, perceptron):
    assert perceptron.inputs == [heddle.TensorInfo("x", ("batch", 8), "float32")]
    assert [info.name for info in perceptron.outputs] == list(perceptron.output_names) == ["p", "s"]
    fixed = heddle.load(perceptron.path, devices="cpu", dims={"batch": 3})
    assert fixed.inputs == [heddle.TensorInfo("x", (3, 8), "float32")]
    assert fixed.outputs[0].shape == (3, 5)
    assert "perceptron.onnx" in repr(perceptron) and "cpu:0" in repr(perceptron)


def test_a_model_of_text_and_a_path_object(folder, perceptron):
    model = heddle.loads(heddle.load(small.add(folder), devices="cpu").graph_json(), devices=["cpu"])
    np.testing.assert_array_equal(model(np.ones(4, np.float32), np.ones(4, np.float32)), [2, 2, 2, 2])
    from pathlib import Path
    assert heddle.load(Path(perceptron.path), devices="cpu").path == perceptron.path


def test_blobs_of_parameters_are_taken_as_they_are_made(folder):
    """save_param_dict gives a bytearray, as TVM's does."""
    graph = heddle.load(small.add(folder), devices="cpu").graph_json()
    made = heddle.runtime.save_param_dict({"y": np.full(4, 2, np.float32)})
    for blob in (made, bytes(made), memoryview(made)):
        model = heddle.loads(graph, blob, devices="cpu")
        np.testing.assert_array_equal(model(np.ones(4, np.float32)), [3, 3, 3, 3])
        one, other = model.executor(), model.executor()
        one.load_params(blob)
        other.share_params(one, blob)
        np.testing.assert_array_equal(other.get_input("y").numpy(), [2, 2, 2, 2])
    for call in (lambda: heddle.loads(graph, "w"), lambda: one.load_params("w"),
                 lambda: other.share_params(one, "w")):
        with pytest.raises(TypeError, match="bytes"):
            call()


def test_nodes_that_are_kept_are_outputs(folder):
    model = heddle.load(small.chain(folder, 3), devices="cpu", keep="n0", optimize=False)
    last, first = model(np.zeros(4, np.float32))
    np.testing.assert_array_equal(last, [3, 3, 3, 3])
    np.testing.assert_array_equal(first, [1, 1, 1, 1])


def test_closed_models_and_executors(folder):
    one = np.ones(4, np.float32)
    with heddle.load(small.add(folder), devices="cpu") as model:
        executor = model.executor()
        model(one, one)
        assert model.executors == 1
        assert model.trim() == 1 and model.executors == 0
        np.testing.assert_array_equal(model(one, one), [2, 2, 2, 2])
    assert model.closed and "closed" in repr(model)
    for call in (lambda: model(one, one), lambda: model.run({"x": one, "y": one}), lambda: model.plan.text, model.executor,
                 lambda: model.inputs, lambda: model.submit(one, one).result()):
        with pytest.raises(heddle.errors.InvalidError, match="closed"):
            call()
    executor.set_input("x", one)  # it holds what it needs
    executor.set_input("y", one)
    executor.run()
    np.testing.assert_array_equal(executor.get_output().numpy(), [2, 2, 2, 2])
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(model)


def test_an_executor_with_memory_of_the_callers(folder):
    executor = heddle.load(small.add(folder), devices="cpu").executor()
    x, y, z = np.ones(4, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    executor.bind_input("x", x)
    executor.set_input("y", y)
    executor.bind_output("z", z)
    executor.run()
    np.testing.assert_array_equal(z, x)
    x[:] = 7  # bound: the next run sees it
    y[:] = 7  # copied: it does not
    executor.start()
    executor.wait(10)
    assert executor.done()
    np.testing.assert_array_equal(z, [7, 7, 7, 7])
    out = np.zeros(4, np.float32)
    assert executor.get_output(0, out=out) is out
    np.testing.assert_array_equal(out, z)
    np.testing.assert_array_equal(executor.get_input("x").numpy(), x)
    assert executor.stats()["runs"] == 2
    assert [row[0] for row in executor.input_info()] == ["x", "y"]


def test_an_executor_keeps_bound_memory_alive(folder):
    executor = heddle.load(small.add(folder), devices="cpu").executor()
    executor.bind_input("x", np.full(4, 3, np.float32))
    executor.bind_input("y", np.full(4, 4, np.float32))
    [np.full(4, 9, np.float32) for _ in range(100)]
    executor.run()
    np.testing.assert_array_equal(executor.view_output().numpy(), [7, 7, 7, 7])


def test_run_to_a_node(folder):
    executor = heddle.load(small.chain(folder, 5), devices="cpu").executor()
    executor.set_input("x", np.zeros(4, np.float32))
    np.testing.assert_array_equal(executor.run_to("n2").numpy(), [3, 3, 3, 3])


def test_the_plan_as_text_data_and_picture(folder, monkeypatch, tmp_path):
    model = heddle.load(small.chain(folder, 3), devices="cpu", optimize=False)
    plan = model.plan
    assert "n1" in str(plan) and "cpu:0" in str(plan)
    assert [row["device"] for row in plan.placement if row["op"] == "Add"] == ["cpu:0"] * 3
    assert plan.dot.startswith("digraph")
    if shutil.which("dot"):
        assert plan._repr_svg_().startswith("<svg") and plan._repr_html_() is None
        plan.save(tmp_path / "plan.svg")
        assert "<svg" in (tmp_path / "plan.svg").read_text()
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["format"] == 1
    monkeypatch.setenv("PATH", "")
    bare = model.plan
    assert bare._repr_svg_() is None
    assert "<td>n1</td>" in bare._repr_html_() and "<td>cpu:0</td>" in bare._repr_html_()
    with pytest.raises(ValueError, match="dot"):
        bare.save(tmp_path / "none.svg")


def test_the_plan_of_open_shapes(folder, perceptron):
    model = heddle.load(small.add(folder, ("n",), "unknown"), devices="cpu")
    with pytest.raises(heddle.errors.InvalidError, match=r"input 'x' is \[n\]"):
        str(model.plan)
    model(np.ones(7, np.float32), np.ones(7, np.float32))
    assert {"name": "sum", "op": "Add", "device": "cpu:0"}.items() <= model.plan.placement[0].items()
    assert {tuple(value["shape"]) for value in model.plan.json["values"]} == {(7,)}
    plan = perceptron.plan_for(np.zeros((3, 8), np.float32))
    assert {row["name"] for row in plan.placement} >= {"softmax"}


def test_a_profile_has_every_step(folder, tmp_path):
    context = heddle.Context({"cpu.fuse": "0"})
    model = heddle.load(small.chain(folder, 4), devices="cpu", optimize=False, context=context)
    profile = model.profile(np.zeros(4, np.float32), runs=3)
    assert [row["name"] for row in profile.rows] == ["n0", "n1", "n2", "n3"]
    assert all(row["duration_ns"] >= 0 and row["device"] == "cpu:0" for row in profile.rows)
    assert profile.operators[0]["op"] == "Add" and profile.operators[0]["count"] == 4
    assert "n3" in str(profile) and "4 steps" in str(profile) and "<td>n3</td>" in profile._repr_html_()
    assert json.loads(profile.to_json())["runs"] == 3
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["Add n0", "Add n1", "Add n2", "Add n3"]


def test_a_measurement(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    x = np.ones(4, np.float32)
    for options in ({}, {"end_to_end": True}, {"min_repeat_ms": 1, "number": 1}):
        result = model.benchmark(x, y=x, repeat=3, **options)
        assert len(result.results) == 3 and result.min <= result.median <= result.max
        assert result.mean == pytest.approx(np.mean(result.results)) and result.std == pytest.approx(np.std(result.results))
        assert "(ms)" in str(result)
    with pytest.raises(ValueError):
        model.benchmark(x, x, repeat=0)


def test_inputs_that_are_not_measured_are_zeros(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    assert len(model.benchmark(repeat=2).results) == len(model.benchmark(repeat=2, end_to_end=True).results) == 2
    assert "Add" in str(model.profile())
    with pytest.raises(ValueError, match="input 'x' has no shape"):
        heddle.load(small.add(folder, ("n",), "open"), devices="cpu").profile()


def test_options_reach_the_model(folder):
    path = small.chain(folder, 3)
    text = str(heddle.load(path, devices=("sim:1", "cpu"), place=["n1=cpu"], memory={"sim:1": "64MiB"},
                           on_failure="retry:2", precision="strict", capture=False, reuse=False).plan)
    assert "sim:1" in text
    plan = heddle.load(path, devices=("sim:1", "cpu"), place={"n1": "cpu"}, optimize="off", on_failure="retry:2").plan
    devices = {row["name"]: row["device"] for row in plan.placement}
    assert devices["n0"] == "sim:1" and devices["n1"] == "cpu:0" and plan.json["on_failure"].startswith("retry")
    with pytest.raises(ValueError, match="precision"):
        heddle.load(path, precision="quick")
    with pytest.raises(TypeError):
        heddle.loads("{}", no_such_option=1)


def test_a_model_for_runs_in_flight_is_called_too(folder):
    model = heddle.load(small.add(folder), devices="cpu", in_flight=3, pool=1)
    for i in range(10):
        np.testing.assert_array_equal(model(np.full(4, i, np.float32), np.ones(4, np.float32)), [i + 1] * 4)


def test_a_model_with_a_branch(folder):
    inner = [helper.make_graph([helper.make_node(op, ["x", "x"], [f"{op}_out"])], op, [], [helper.make_tensor_value_info(
        f"{op}_out", TensorProto.FLOAT, (4,))]) for op in ("Add", "Sub")]
    node = helper.make_node("If", ["choice"], ["y"], name="if", then_branch=inner[0], else_branch=inner[1])
    path = small.save(folder, "branch", [node], [("choice", (), TensorProto.BOOL), ("x", (4,))], [("y", (4,))])
    model = heddle.load(path, devices="cpu", pool=1)
    x = np.ones(4, np.float32)
    for choice in (True, False, True, True):
        np.testing.assert_array_equal(model(np.array(choice), x), x + x if choice else x - x)


def test_memory_that_cannot_be_bound_or_written(folder):
    executor = heddle.load(small.add(folder), devices="cpu").executor()
    executor.set_input("x", [1, 2, 3, 4])
    executor.set_input("y", [0, 0, 0, 0])
    executor.run()
    read_only = np.zeros(4, np.float32)
    read_only.flags.writeable = False
    odd = np.zeros(4, np.dtype([("a", "f4"), ("b", "i1")]))["a"]
    for value in ([0.0] * 4, np.zeros(4, ">f4"), odd, read_only):
        before = np.array(value)
        for call in (lambda v: executor.get_output(0, out=v), lambda v: executor.bind_output(0, v)):
            with pytest.raises(heddle.errors.InvalidError):
                call(value)
        np.testing.assert_array_equal(before, value)
    for value in ([0.0] * 4, np.zeros(4, ">f4"), odd, np.zeros(8, np.float32)[::2]):
        with pytest.raises(heddle.errors.InvalidError) as told:
            executor.bind_input("x", value)
        assert told.value.node == "x"
    strided = np.zeros(8, np.float32)
    executor.get_output(0, out=strided[::2])
    np.testing.assert_array_equal(strided[::2], [1, 2, 3, 4])


def test_what_dlpack_consumers_hold_outlives_the_model(folder):
    model = heddle.load(small.add(folder), devices="cpu")
    executor = model.executor()
    executor.set_input("x", np.arange(4))
    executor.set_input("y", np.ones(4, np.float32))
    executor.run()
    held = np.from_dlpack(executor.view_output())
    view = executor.view_output().numpy()
    model.close()
    del model, executor
    [np.full(4, 9, np.float32) for _ in range(100)]
    np.testing.assert_array_equal(held, [1, 2, 3, 4])
    np.testing.assert_array_equal(view, [1, 2, 3, 4])


def test_parameters_loaded_and_shared(folder):
    from heddle.runtime import save_param_dict
    model = heddle.load(small.add(folder), devices="cpu")
    blob = bytes(save_param_dict({"y": np.full(4, 5, np.float32), "other": np.ones(2, np.float32)}))
    first, second = model.executor(), model.executor()
    first.load_params(blob)
    second.share_params(first, blob)
    assert [info[3] for info in second.input_info()] == [False, True]
    for executor in (first, second):
        executor.set_input("x", np.ones(4, np.float32))
        executor.run()
        np.testing.assert_array_equal(executor.get_output().numpy(), [6, 6, 6, 6])
    with pytest.raises(heddle.errors.FormatError):
        first.load_params(b"nothing")
    with pytest.raises(TypeError):
        first.share_params(model, blob)
