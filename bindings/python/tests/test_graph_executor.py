"""heddle.graph_executor where a script cannot see it: which calls reach the executor's module, in which order; and models of
TVM's own with several outputs, inputs that are outputs, and reused memory, where TVM's executor is wrong.
timeout: 300
"""
import json
import logging
import threading
import time

import numpy as np
import pytest

from tvm_models import F32, Call, legacy, tvm_graph

import heddle
from heddle import graph_executor
from heddle.contrib.debugger import debug_executor
from test_tvm_legacy import MODELS, model_files

CPU = heddle.cpu(0)
needs_compiler = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
GRAPH = tvm_graph({"a": (F32, [2]), "b": (F32, [3, 4]), "c": ("int32", [1])}, [Call("f", ["a", "b", "c"], [(F32, [2])])],
                  ["f"])


class Recorder:
    """Stands for an executor's module, and writes down what is called."""

    def __init__(self):
        self.calls, self.timed = [], []

    def __getitem__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            return {"get_input_index": lambda n: "abc".find(n), "get_graph_json": lambda: GRAPH,
                    "get_input_info": lambda: {"shape": {"a": (2,), "b": (3, 4)}, "dtype": {"a": F32, "b": F32}}}.get(
                name, lambda *_: None)(*args)
        return call

    def time_evaluator(self, name, dev, **options):
        self.timed.append((name, dev, options))
        return lambda *args: self.calls.append(("timed", *args))

    def of(self, *names):
        return [c for c in self.calls if c[0] in names]


@pytest.fixture
def recorded():
    module = Recorder()
    return graph_executor.GraphModule(module), module


def test_several_inputs_go_the_largest_first_and_unknown_ones_are_passed_over(recorded, caplog):
    g, module = recorded
    values = {"c": np.ones(1, np.int32), "b": np.ones((3, 4), F32), "z": np.ones(99, F32), "a": [1.0, 2.0]}
    with caplog.at_level(logging.INFO, "heddle"):
        g.set_input(**values)
    assert [c[1] for c in module.of("set_input")] == [1, 0, 2]
    assert "'z'" in caplog.text
    module.calls.clear()
    g.set_input_zero_copy(**{**values, "a": np.ones(2, F32)})
    assert [c[1] for c in module.of("set_input_zero_copy")] == [1, 0, 2]
    module.calls.clear()
    g.run(b=values["b"])
    assert [c[0] for c in module.of("set_input", "run")] == ["set_input", "run"]


def test_values_are_converted_once_and_only_where_needed(recorded):
    g, module = recorded
    b = np.ones((3, 4), F32)
    g.set_input("b", b)
    assert module.of("set_input")[0][2] is b
    held = heddle.nd.array(b)
    g.set_input(1, held)
    assert module.of("set_input")[1][2] is held
    g.set_input("c", np.array([3.0]))
    sent = module.of("set_input")[2][2]
    assert sent.dtype == "int32" and sent.numpy().tolist() == [3]
    g.set_input("b", np.ones((4, 3)).T)
    assert module.of("set_input")[3][2].numpy().shape == (3, 4)
    for wrong in (np.ones(12), np.ones((3, 5)), 1.0):
        with pytest.raises(ValueError, match=r"\(3, 4\)"):
            g.set_input("b", wrong)
    with pytest.raises(RuntimeError, match="Could not find 'z' in graph's inputs"):
        g.set_input("z", b)
    with pytest.raises(TypeError):
        g.set_input(1.5, b)
    with pytest.raises(TypeError, match="zero copy"):
        g.set_input_zero_copy("b", [1, 2])


def test_benchmark_hands_all_options_on(recorded):
    """The pauses too with end_to_end, where TVM drops them; inputs are set, or converted, before the clock starts."""
    g, module = recorded
    g.benchmark(CPU, "run", 7, 3, 1.5, 20, False, 2, 4, b=np.zeros((3, 4)))
    options = dict(repeat=7, number=3, min_repeat_ms=2, limit_zero_time_iterations=20, cooldown_interval_ms=2,
                   repeats_to_cooldown=4)
    assert module.timed == [("run", CPU, options)]
    assert [c[0] for c in module.of("set_input", "timed")] == ["set_input", "timed"]
    assert [c[1] for c in module.of("get_input")] == ["a", "b"]
    module.calls.clear()
    g.benchmark(CPU, "ignored", 7, 3, 1.5, 20, True, 2, 4, b=np.zeros((3, 4)), a=np.ones(2, F32))
    assert module.timed[1] == ("run_from_inputs", CPU, options)
    (_, *words), = module.of("timed")
    assert words[:3] == [1, 0, "b"] and words[3].dtype == "float32" and words[4] == "a" and not module.of("set_input")
    g.benchmark(CPU)
    assert module.timed[2][2] == dict(repeat=5, number=5, min_repeat_ms=0, limit_zero_time_iterations=100,
                                      cooldown_interval_ms=0, repeats_to_cooldown=1)


# ---- models

@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("models"), {}

    def get(name):
        if name not in made:
            made[name] = heddle.runtime.load_module(legacy.library(folder / f"{name}.so", "v0.14", MODELS[name]))
        return made[name]
    return get


@pytest.fixture
def model(library):
    def make(name, module=graph_executor, *more):
        graph, params, inputs, outputs = model_files(name)
        g = module.create(graph, library(name), CPU, *more)
        if len(params) > 32:
            g.load_params(params)
        g.set_input(**inputs)
        return g, inputs, outputs
    return make


@needs_compiler
@pytest.mark.parametrize("name", MODELS)
def test_models_that_tvm_compiled(model, name):
    g, inputs, outputs = model(name)
    g.run()
    assert g.get_num_outputs() == len(outputs) and set(g.get_input_info()[0]) == set(inputs)
    for i, out in enumerate(outputs):
        got = g.get_output(i).numpy()
        np.testing.assert_allclose(got, out.reshape(got.shape), rtol=1e-5, atol=1e-5)
        assert got.dtype == out.dtype


@needs_compiler
def test_several_outputs_of_a_node(model, tmp_path):
    """By number, node and NAME:INDEX; with the shapes and values that are theirs, where TVM takes another node's."""
    g, _, outputs = model("multi_output", debug_executor, tmp_path)
    graph = json.loads(model_files("multi_output")[0])
    g.run(number=1, min_repeat_ms=0)
    shapes, dtypes = g.get_output_info()
    assert list(shapes.values()) == [o.shape for o in outputs]
    assert list(dtypes.values()) == [str(o.dtype) for o in outputs]
    values = g.debug_datum.get_output_tensors()
    for (node, k, *_), out in zip(graph["heads"], outputs, strict=True):
        name = graph["nodes"][node]["name"]
        np.testing.assert_allclose(g.debug_get_output(f"{name}:{k}").numpy(), out, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(values[f"{name}____topo-index:{node}____output-num:{k}"].numpy(), out, rtol=1e-5,
                                   atol=1e-5)
        if k == 0:
            held = heddle.nd.empty(out.shape, str(out.dtype))
            assert g.debug_get_output(node, held) is held
            np.testing.assert_allclose(held.numpy(), out, rtol=1e-5, atol=1e-5)
    g.exit()


@needs_compiler
def test_an_input_that_is_an_output(model):
    """With memory of the caller's for both, or for one."""
    g, inputs, outputs = model("identity")
    (name, value), = inputs.items()
    source, out = heddle.nd.array(value * 2), heddle.nd.empty(value.shape)
    g.set_input_zero_copy(name, source)
    g.set_output_zero_copy(0, out)
    g.run()
    np.testing.assert_array_equal(out.numpy(), value * 2)
    source.copyfrom(value)
    g.run()
    np.testing.assert_array_equal(out.numpy(), outputs[0])
    np.testing.assert_array_equal(source.numpy(), value)


@needs_compiler
def test_zero_copy_keeps_memory_and_takes_any_that_there_is(model):
    g, inputs, outputs = model("reshape_nop")
    (name, value), = inputs.items()
    room = np.zeros(value.size + 16, F32)
    at = next(i for i in range(16) if (room.ctypes.data + 4 * i) % 64 == 4)  # as numpy's slices lie
    odd = room[at:at + value.size].reshape(value.shape)
    odd[...] = value
    g.set_input_zero_copy(name, odd)
    del odd, room
    for _ in range(2):
        g.run()
        for i, out in enumerate(outputs):
            np.testing.assert_allclose(g.get_output(i).numpy(), out, rtol=1e-5, atol=1e-5)


@needs_compiler
def test_outputs_outlive_their_executor(model):
    g, _, outputs = model("reshape_nop")
    g.run()
    held = g.get_output(0)
    del g
    np.testing.assert_allclose(held.numpy(), outputs[0], rtol=1e-5, atol=1e-5)


@needs_compiler
def test_executors_of_one_library_in_threads(model):
    failures = []

    def work():
        try:
            g, _, outputs = model("dtype_float32")
            for _ in range(50):
                g.run()
                np.testing.assert_allclose(g.get_output(0).numpy(), outputs[0], rtol=1e-5)
        except Exception as e:  # reported below
            failures.append(e)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


@needs_compiler
def test_pauses_are_made_with_end_to_end(model):
    """Between groups only: a group of 2 of 4 measurements has one pause, so the calls take at least that."""
    g, inputs, _ = model("reshape_nop")
    start = time.monotonic()
    result = g.benchmark(CPU, repeat=4, number=1, end_to_end=True, cooldown_interval_ms=200, repeats_to_cooldown=2, **inputs)
    assert time.monotonic() - start >= 0.2 and len(result.results) == 4


@needs_compiler
def test_inputs_that_were_never_set(library):
    """A run refuses them; a benchmark, where only the time counts, does not, and keeps what was set."""
    graph, _, inputs, _ = model_files("dtype_float32")
    for end_to_end in (False, True):
        g = graph_executor.create(graph, library("dtype_float32"), CPU)
        with pytest.raises(heddle.Error, match="never set"):
            g.run()
        first, *others = inputs
        g.set_input(first, inputs[first])
        assert len(g.benchmark(CPU, repeat=2, number=1, end_to_end=end_to_end).results) == 2
        np.testing.assert_array_equal(g.get_input(first).numpy(), inputs[first])
        for name in others:
            assert not g.get_input(name).numpy().any()


@needs_compiler
def test_a_node_that_fails_is_an_attribute_of_the_error(tmp_path):
    bad = legacy.kernel("bad", [("x", F32, (4,)), ("y", F32, (4,))], 'CHECK(x[0] < 0, "no luck");\ny[0] = x[0] * 2;')
    library = heddle.runtime.load_module(legacy.library(tmp_path / "bad.so", "v0.14", [bad]))
    graph = tvm_graph({"x": (F32, [4])}, [Call("bad", ["x"], [(F32, [4])], "unlucky")], ["unlucky"])
    g = graph_executor.create(graph, library, CPU)
    with pytest.raises(heddle.Error, match="no luck") as caught:
        g.run(x=np.ones(4))
    assert caught.value.node == "unlucky" and caught.value.device == "cpu:0"
    g.run(x=-np.ones(4))  # and goes on
    assert g.get_output("unlucky").numpy()[0] == -2


@needs_compiler
def test_bfloat16_is_its_bits(tmp_path):
    """In uint16, in and out, as TVM v0.14 has it, whatever is installed; floats are rounded."""
    flip = legacy.kernel("flip", [("x", "bfloat16", (4,)), ("y", "bfloat16", (4,))],
                         "for (int i = 0; i < 4; i++) y[i] = x[i] ^ 0x8000;")
    library = heddle.runtime.load_module(legacy.library(tmp_path / "flip.so", "v0.14", [flip]))
    graph = tvm_graph({"x": ("bfloat16", [4])}, [Call("flip", ["x"], [("bfloat16", [4])])], ["flip"])
    g = graph_executor.create(graph, library, CPU)
    bits = np.array([0x3f80, 0xc000, 0, 0x4049], np.uint16)  # 1, -2, 0, 3.140625
    held = heddle.nd.empty((4,), "bfloat16").copyfrom(bits)
    for form in (bits, heddle.nd.array(bits), held, np.array([1, -2, 0, 3.1406]), [1, -2, 0, 3.1406]):
        g.set_input("x", np.zeros(4))
        g.set_input("x", form)
        g.run()
        got = g.get_output(0)
        assert got.dtype == "bfloat16" and got.numpy().dtype == np.uint16
        np.testing.assert_array_equal(got.numpy(), bits ^ 0x8000)
    back = heddle.runtime.load_param_dict(heddle.runtime.save_param_dict({"x": held}))["x"]
    assert back.dtype == "bfloat16"
    np.testing.assert_array_equal(back.numpy(), bits)
    np.testing.assert_array_equal(heddle.nd.array(held).numpy(), bits)


@needs_compiler
def operators(rows):
    """A graph of operators as `heddle convert` writes it: shapes of inner nodes are null, that of x may be open, and Clip
    does without an input."""
    graph = {"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "top", "inputs": []},
                       {"op": "Transpose", "name": "turned", "inputs": [[0, 0, 0]], "attrs": {"perm": [1, 0]}},
                       {"op": "Clip", "name": "clip", "inputs": [[2, 0, 0], [-1, 0, 0], [1, 0, 0]], "attrs": {}},
                       {"op": "Split", "name": "split", "inputs": [[3, 0, 0]], "attrs": {"axis": 0, "num_outputs": 2}}],
             "arg_nodes": [0, 1], "heads": [[4, 0, 0], [4, 1, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 6],
             "attrs": {"dltype": ["list_str", [F32, F32, None, None, None, None]],
                       "shape": ["list_shape", [[rows, 4], [], None, None, None, None]]},
             "heddle": {"version": 1, "opset": 18}}
    return json.dumps(graph)


@pytest.mark.parametrize("rows", [3, "rows"])
def test_graphs_whose_shapes_are_not_written(rows, tmp_path):
    x = np.linspace(-1, 3, 12, dtype=F32).reshape(3, 4)
    for create in (graph_executor.create, lambda g, l, d: debug_executor.create(g, l, d, tmp_path)):
        g = create(operators(rows), None, CPU)
        g.set_input(x=x.tolist(), top=np.float32(2))
        for array in (x, heddle.nd.array(x)):
            g.set_input("x", array)
        g.run()
        np.testing.assert_array_equal(g.get_output(1).numpy(), np.minimum(x, 2).T[2:])
        calls = {call["Name"]: call["Argument Shapes"] for call in g.profile().calls}
        assert calls["Transpose"] == f"float32[{rows}, 4], ?[?]" and calls["Clip"] == "?[?], float32[], ?[?]", calls
        assert calls["Split"] == "?[?], ?[?], ?[?]"
    nodes = {node["name"]: node for node in g.debug_datum.get_graph_nodes()}
    assert (nodes["x"]["op"], nodes["clip"]["op"], nodes["clip"]["inputs"]) == ("param", "Clip", ["turned", "top"])
    split = [line.split() for line in g.get_debug_result().splitlines() if line.startswith("split ")]
    assert len(split) == 2 and all(line[1] == "Split" and line[4:6] == ["(2,", "3)"] for line in split)


def test_errors_say_what_and_where(model, library, tmp_path):
    g, inputs, _ = model("reshape_nop")
    with pytest.raises(heddle.Error, match="get_output"):
        g.get_output(99)
    fresh = graph_executor.create(model_files("reshape_nop")[0], library("reshape_nop"), CPU)
    with pytest.raises(heddle.Error, match="never set"):
        fresh.run()
    with pytest.raises(heddle.Error):
        fresh.load_params(b"no blob")
    with pytest.raises(TypeError):
        graph_executor.create(7, library("reshape_nop"), CPU)
    for wrong in ("cpu", [], [CPU, "cpu"], None):
        with pytest.raises(ValueError, match="Device"):
            graph_executor.get_device(None, wrong)
    with pytest.raises(NotImplementedError, match="collectors"):
        g.profile(collectors=[object()])
    with pytest.raises(AttributeError, match="nope"):
        debug_executor.create(model_files("reshape_nop")[0], library("reshape_nop"), CPU, tmp_path).debug_get_output("nope")
