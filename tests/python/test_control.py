"""Models with If, Loop and Scan against ONNX Runtime: on cpu, on mixed devices, converted to graph JSON, with values from
outside, nested, and with shapes that change from iteration to iteration.
timeout: 900
"""
import json

import numpy as np
import onnx_files as files
import pocl
import pytest
from onnx import TensorProto, helper, numpy_helper
from tool_case import failing, good

F, I, B = np.float32, np.int64, np.bool_
RNG = np.random.default_rng(11)


def info(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


def graph(name, nodes, inputs=(), outputs=(), tensors=None):
    """inputs, outputs: names of float32, or (name, type) or (name, type, shape)."""
    as_info = [[info(*((v,) if isinstance(v, str) else v)) for v in values] for values in (inputs, outputs)]
    return helper.make_graph(list(nodes), name, *as_info,
                             [numpy_helper.from_array(np.asarray(a), n) for n, a in (tensors or {}).items()])


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"n_{outputs.split()[0]}", **attrs)


def check(folder, proto, *sets, devices=("cpu",), more=(), **env):
    """Runs each set of inputs, as the .onnx file and as what it converts to."""
    path = files.save(folder, proto)
    made = folder / "made.json"
    good("convert", path, "-o", made)
    for inputs in sets:
        inputs = {name: np.asarray(x) for name, x in inputs.items()}
        want = files.expected(proto, inputs)
        for device in devices:
            for source in (path, made):
                out = folder / "out"
                out.mkdir(exist_ok=True)
                for old in out.glob("*.npy"):
                    old.unlink()
                good("run", source, "--device", device, *files.words_for(folder, inputs), "--output-dir", out, *more, **env)
                files.same(files.outputs_of(out), want)


def branches(then_nodes, else_nodes, **tensors):
    """If on "c"; both give "r"."""
    return helper.make_node("If", ["c"], ["y"], name="choice",
                            then_branch=graph("then", then_nodes, outputs=["r"], tensors=tensors.get("then")),
                            else_branch=graph("else", else_nodes, outputs=["r"], tensors=tensors.get("other")))


def if_model():
    """Branches of different shapes, with values and weights from outside and of their own; used before and after."""
    choice = branches([node("MatMul", "h w", "m"), node("Relu", "m", "r")],
                      [node("Mul", "h own", "e"), node("Concat", "e h", "r", axis=1)], other={"own": F(3)})
    return files.model([node("Tanh", "x", "h"), choice, node("Exp", "y", "z"), node("Shape", "y", "s")],
                       {"c": (B, ()), "x": (F, (2, 4))}, {"z": (F, None), "s": (I, None), "h": (F, None)},
                       {"w": RNG.standard_normal((4, 3)).astype(F)})


def both(x):
    return [{"c": np.asarray(c), "x": x} for c in (True, False)]


def test_if(tmp_path):
    check(tmp_path, if_model(), *both(RNG.standard_normal((2, 4)).astype(F)))


def test_if_of_a_constant(tmp_path):
    for truth in (True, False):
        choice = branches([node("Exp", "x", "r")], [node("Neg", "x", "r")])
        proto = files.model([choice], {"x": (F, (3,))}, ["y"], {"c": np.asarray(truth)})
        check(tmp_path, proto, {"x": np.arange(3, dtype=F)})


def loop(inputs, outputs, body, name="loop"):
    return helper.make_node("Loop", inputs.split(","), outputs.split(), name=name, body=body)


def counting():
    """For at most m rounds, while the sum is below the limit: a state, a captured weight, a collected output."""
    body = graph("body", [node("MatMul", "a w", "b"), node("Tanh", "b", "t"), node("Add", "total one", "total_out"),
                          node("Less", "total_out limit", "go"), node("ReduceSum", "t", "row", keepdims=0)],
                 [("i", I, ()), ("go_in", B, ()), "a", "total"], [("go", B), ("t", F, (2, 3)), ("total_out", F, ()), ("row", F, ()), ("t", F, (2, 3))],
                 {"one": F(1)})
    return files.model([loop("m,c,x,zero", "last total rows all", body), node("Neg", "last", "y")],
                       {"m": (I, ()), "c": (B, ()), "x": (F, (2, 3)), "limit": (F, ())},
                       {"y": (F, None), "total": (F, None), "rows": (F, None), "all": (F, None)},
                       {"w": RNG.standard_normal((3, 3)).astype(F), "zero": F(0)})


def rounds(*cases):
    x = RNG.standard_normal((2, 3)).astype(F)
    return [{"m": I(m), "c": B(c), "x": x, "limit": F(limit)} for m, c, limit in cases]


def test_loop(tmp_path):
    check(tmp_path, counting(), *rounds((5, True, 100), (5, True, 3), (1, True, 0), (40, True, 33)))


def test_loop_without_an_iteration(tmp_path):
    """What is collected then has no elements, and keeps its other dimensions."""
    check(tmp_path, counting(), *rounds((0, True, 100), (5, False, 100)))


def test_shapes_that_change(tmp_path):
    """A state grows in each iteration; the iteration's number decides a shape."""
    body = graph("body", [node("Identity", "go_in", "go"), node("Unsqueeze", "i axes", "n"), node("Add", "n one", "n1"),
                          node("Expand", "x n1", "e"), node("Concat", "a e", "b", axis=0)],
                 [("i", I, ()), ("go_in", B, ()), ("a", F)], [("go", B), "b"], {"axes": np.array([0]), "one": np.array([1])})
    proto = files.model([loop("m,,start", "grown", body), node("ReduceSum", "grown", "y", keepdims=0)],
                        {"m": (I, ()), "x": (F, (1,)), "start": (F, ("n",))}, {"grown": (F, ("k",)), "y": (F, None)})
    check(tmp_path, proto, *[{"m": I(m), "x": F([2]), "start": F([7, 8])} for m in (0, 1, 6)])


def nested():
    """A loop in a loop with an If in it: each takes values from all graphs around it."""
    choice = helper.make_node("If", ["odd"], ["step"], name="inner_choice",
                              then_branch=graph("then", [node("Mul", "v k", "r")], outputs=["r"], tensors={"k": F(0.5)}),
                              else_branch=graph("else", [node("Add", "v base", "r")], outputs=["r"]))
    inner = graph("inner", [node("Mod", "j two", "rest"), node("Cast", "rest", "odd", to=TensorProto.BOOL), choice,
                            node("Add", "step x", "v_out"), node("Identity", "jc", "jc_out")],
                  [("j", I, ()), ("jc", B, ()), "v"], [("jc_out", B), "v_out", "v_out"], {"two": I(2)})
    outer = graph("outer", [node("Tanh", "u", "base"), loop("inner_m,ic,u", "u_out history", inner, "inner"),
                            node("Identity", "ic", "ic_out"), node("ReduceMax", "history", "top", keepdims=0)],
                  [("i", I, ()), ("ic", B, ()), "u"], [("ic_out", B), "u_out", "top"])
    return files.model([loop("m,c,x", "y tops", outer, "outer")], {"m": (I, ()), "x": (F, (2, 2))}, ["y", "tops"],
                       {"c": B(True), "inner_m": I(3)})


def test_nested(tmp_path):
    x = RNG.standard_normal((2, 2)).astype(F)
    check(tmp_path, nested(), {"m": I(4), "x": x}, {"m": I(1), "x": x})


def test_swapped_states(tmp_path):
    """States that change places, in a body of one program and in one of several stages."""
    for staged in (False, True):
        choice = branches([node("Identity", "p", "r")], [node("Identity", "q", "r")])
        nodes = [node("Identity", "c", "go")] + ([choice] if staged else [node("Add", "p q", "y")])
        body = graph("body", nodes, [("i", I, ()), ("c", B, ()), "p", "q"], [("go", B), "q", "p", "y"])
        proto = files.model([loop("m,,a,b", "pp qq ys", body)], {"m": (I, ()), "a": (F, (2,)), "b": (F, (2,))},
                            ["pp", "qq", "ys"])
        check(tmp_path, proto, *[{"m": I(m), "a": F([1, 2]), "b": F([3, 4])} for m in (1, 2, 3)])


def scan(**attrs):
    body = graph("body", [node("Add", "s p", "s_out"), node("Mul", "p q", "pq"), node("Add", "pq bias", "row"),
                          node("Identity", "s_out", "copy")],
                 ["s", "p", "q"], ["s_out", "row", "copy"])
    made = helper.make_node("Scan", ["s0", "a", "b"], ["s_end", "rows", "copies"], name="scan", body=body,
                            num_scan_inputs=2, **attrs)
    return files.model([node("Neg", "x", "a"), made], {"s0": (F, (2, 3)), "x": (F, None), "b": (F, None), "bias": (F, (3,))},
                       ["s_end", "rows", "copies"], opset=17)


@pytest.mark.parametrize("attrs", [{}, {"scan_input_axes": [1, -1], "scan_input_directions": [0, 1]},
                                   {"scan_output_axes": [1, -1], "scan_output_directions": [1, 0]}])
def test_scan(tmp_path, attrs):
    axes = [a % 3 for a in attrs.get("scan_input_axes", [0, 0])]
    x, b = (np.moveaxis(RNG.standard_normal((4, 2, 3)).astype(F), 0, axis) for axis in axes)
    proto = scan(**attrs)
    for v, array in zip([v for v in proto.graph.input if v.name in "xb"], (x, b)):
        v.CopyFrom(info(v.name, F, array.shape))
    check(tmp_path, proto, {"s0": np.zeros((2, 3), F), "x": x, "b": np.ascontiguousarray(b), "bias": F([1, 2, 3])})


def test_mixed_devices(tmp_path):
    x = RNG.standard_normal((2, 3)).astype(F)
    sets = [{"m": I(4), "c": B(True), "x": x, "limit": F(100)}]
    check(tmp_path, counting(), *sets, devices=("sim", "sim,cpu", "cpu,sim"), more=("--place", "n_t=sim:0"))
    check(tmp_path, if_model(), *both(RNG.standard_normal((2, 4)).astype(F)), devices=("sim", "cpu,sim"),
          more=("--place", "n_m=sim:0"))


def test_opencl(tmp_path):
    pocl.need()
    x = RNG.standard_normal((2, 3)).astype(F)
    check(tmp_path, counting(), {"m": I(4), "c": B(True), "x": x, "limit": F(100)}, devices=("cpu,opencl:0",),
          more=("--place", "n_b=opencl:0"), **pocl.ENV)


def test_converted_graphs_are_within_their_nodes(tmp_path):
    good("convert", files.save(tmp_path, nested()), "-o", tmp_path / "a.json")
    outer = next(n for n in json.loads((tmp_path / "a.json").read_text())["nodes"] if n["op"] == "Loop")
    assert {"nodes", "heads"} <= outer["attrs"]["body"].keys() and outer["attrs"]["captured"] == len(outer["inputs"]) - 3


def test_plan_and_info(tmp_path):
    path = files.save(tmp_path, nested())
    text = good("plan", path, "--device", "cpu")
    assert "body of node 'outer' (Loop)" in text
    assert "body of node 'outer' (Loop)" in [s["stage"].split(": ")[-1] for s in
                                             json.loads(good("plan", path, "--device", "cpu", "--json"))["stages"]]
    assert "Loop" in good("info", path)


def test_a_trace_and_a_profile_have_the_steps(tmp_path):
    path = files.save(tmp_path, nested())
    words = files.words_for(tmp_path, {"m": np.asarray(I(2)), "x": np.ones((2, 2), F)})
    good("run", path, "--device", "cpu", *words, "--trace", tmp_path / "trace.json")
    names = [e.get("name", "") for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]
    assert sum("n_v_out" in name for name in names) == 6, sorted(set(names))
    told = good("run", path, "--device", "cpu", *words, "--profile", "--profile-json", tmp_path / "profile.json")
    steps = json.loads((tmp_path / "profile.json").read_text())["steps"]
    assert sum(step["name"] == "n_v_out" for step in steps) == 6 and told.count("n_v_out") >= 6


# ---- shapes that only a run gives

def test_data_that_decides_how_much_comes_out(tmp_path):
    nodes = [node("MatMul", "x w", "m"), node("Greater", "m zero", "g"), node("NonZero", "g", "where"),
             node("Transpose", "where", "places", perm=[1, 0]), node("GatherND", "m places", "picked"),
             node("Exp", "picked", "e"), node("ReduceSum", "e", "y", keepdims=0), node("Shape", "picked", "n")]
    proto = files.model(nodes, {"x": (F, (40, 3))}, {"y": (F, None), "picked": (F, None), "n": (I, None)},
                        {"w": RNG.standard_normal((3, 200)).astype(F), "zero": F(0.5)})
    check(tmp_path, proto, {"x": RNG.standard_normal((40, 3)).astype(F)}, {"x": -np.ones((40, 3), F)},
          devices=("cpu", "cpu,sim"))


def test_a_shape_that_is_computed(tmp_path):
    """From the place of a maximum: the length of a Range, the shape of an Expand, the ends of a Slice."""
    nodes = [node("Softmax", "x", "s"), node("ArgMax", "s", "best", axis=0, keepdims=1), node("Add", "best one", "k"),
             node("Squeeze", "k axes", "limit"), node("Range", "zero limit unit", "r"), node("Expand", "half k", "e"),
             node("Slice", "s first k", "part"), node("ReduceSum", "part", "y", keepdims=0), node("Cast", "r", "f", to=1),
             node("Mul", "f e", "z")]
    proto = files.model(nodes, {"x": (F, (9,))}, {"y": (F, None), "z": (F, None)},
                        {"one": np.array([1]), "axes": np.array([0]), "zero": I(0), "unit": I(1), "half": np.array([0.5], F),
                         "first": np.array([0])})
    check(tmp_path, proto, *[{"x": np.roll(np.arange(9, dtype=F), i)} for i in (0, 3, 5, 3)], devices=("cpu", "sim"))


def test_a_shape_that_is_computed_in_a_body(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("ArgMax", "a", "best", axis=0, keepdims=1),
                          node("Add", "best one", "k"), node("Slice", "a first k", "b")],
                 [("i", I, ()), ("c", B, ()), "a"], [("go", B), "b"], {"one": np.array([1]), "first": np.array([0])})
    proto = files.model([loop("m,,x", "y", body)], {"m": (I, ()), "x": (F, (6,))}, ["y"])
    check(tmp_path, proto, {"m": I(2), "x": F([1, 4, 2, 5, 0, 3])}, {"m": I(3), "x": F([5, 4, 3, 2, 1, 0])})


# ---- what is wrong

def test_an_endless_loop_ends_in_time(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Tanh", "a", "b")], [("i", I, ()), ("c", B, ()), "a"],
                 [("go", B), "b"])
    path = files.save(tmp_path, files.model([loop("m,,x", "y", body)], {"x": (F, (2,))}, ["y"], {"m": I(2**62)}))
    words = files.words_for(tmp_path, {"x": np.ones(2, F)})
    assert "did not end within 0.5 seconds" in failing(1, "run", path, "--device", "cpu", "--timeout", "0.5", *words)


def test_errors_name_the_outer_and_the_inner_node(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Concat", "a a", "twice", axis=0), node("Add", "twice w", "b")],
                 [("i", I, ()), ("c", B, ()), "a"], [("go", B), "b"])
    proto = files.model([loop("m,,x", "y", body)], {"x": (F, (2,))}, ["y"], {"m": I(5), "w": np.ones(4, F)})
    path = files.save(tmp_path, proto)
    text = failing(1, "run", path, "--device", "cpu", *files.words_for(tmp_path, {"x": np.ones(2, F)}))
    assert "node 'loop' (Loop), iteration 1: " in text and "'n_b'" in text and text.count("model.onnx") == 1, text


def test_collected_shapes_must_agree(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Concat", "a a", "b", axis=0)], [("i", I, ()), ("c", B, ()), "a"],
                 [("go", B), "b", "b"])
    path = files.save(tmp_path, files.model([loop("m,,x", "y ys", body)], {"x": (F, (2,))}, ["y", "ys"], {"m": I(5)}))
    text = failing(1, "run", path, "--device", "cpu", *files.words_for(tmp_path, {"x": np.ones(2, F)}))
    assert "iteration 1" in text and "is float32 [8] in this iteration and was float32 [4]" in text


def small(body):
    return files.model([loop("m,,x", "y", body)], {"x": (F, (2,))}, ["y"], {"m": I(2)})


def test_a_name_that_nothing_makes(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Add", "a nowhere", "b")], [("i", I, ()), ("c", B, ()), "a"],
                 [("go", B), "b"])
    assert "nothing before it makes its input 'nowhere'" in failing(1, "info", files.save(tmp_path, small(body)))


def test_a_cycle_in_a_body(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Add", "a q", "p"), node("Add", "p a", "q")],
                 [("i", I, ()), ("c", B, ()), "a"], [("go", B), "q"])
    assert "nodes 'n_p' (Add), 'n_q' (Add) form a cycle" in failing(1, "info", files.save(tmp_path, small(body)))


def test_two_values_of_a_name(tmp_path):
    body = graph("body", [node("Identity", "c", "go"), node("Tanh", "a", "b"), node("Exp", "a", "b")],
                 [("i", I, ()), ("c", B, ()), "a"], [("go", B), "b"])
    assert "two values of the name 'b'" in failing(1, "info", files.save(tmp_path, small(body)))


def test_bodies_of_a_wrong_form(tmp_path):
    few = graph("body", [node("Identity", "c", "go")], [("i", I, ()), ("c", B, ())], [("go", B)])
    assert "its graph 'body' has 2 inputs, and the node gives it 3" in failing(1, "info", files.save(tmp_path, small(few)))
    no_body = helper.make_node("Loop", ["m", "", "x"], ["y"], name="loop")
    proto = files.model([no_body], {"x": (F, (2,))}, ["y"], {"m": I(2)})
    assert "it has no graph 'body'" in failing(1, "info", files.save(tmp_path, proto))


def test_graphs_in_graphs_without_end(tmp_path):
    inside = [node("Tanh", "x", "r")]
    for _ in range(24):
        inside = [helper.make_node("If", ["c"], ["r"], then_branch=graph("t", inside, outputs=["r"]),
                                   else_branch=graph("e", [node("Exp", "x", "r")], outputs=["r"]))]
    proto = files.model(inside, {"c": (B, ()), "x": (F, (2,))}, {"r": (F, None)})
    text = failing(1, "info", files.save(tmp_path, proto))
    assert "nested deeper than" in text


def test_a_stage_that_does_not_fit_is_said(tmp_path):
    """A stage over a limit is an error of the plan's, and not a stage that waits for a run."""
    path = files.save(tmp_path, if_model())
    text = failing(1, "plan", path, "--device", "cpu", "--memory", "cpu=16")
    assert "stage 1: " in text and "more than its limit of 16" in text
    assert "planned when a run reaches it" in good("plan", path, "--device", "cpu", "--memory", "cpu=1MiB")
