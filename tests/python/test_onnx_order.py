"""Models whose nodes are not in the order of their values: they give what the sorted file gives, sorted files stay as they
are, and a cycle is an error that names its nodes.
timeout: 300
"""
import json

import numpy as np
import onnx_files as files
import pytest
from onnx import TensorProto, helper
from tool_case import failing, good

F = np.float32
X = np.linspace(-1, 1, 6, dtype=F).reshape(2, 3)
RNG = np.random.default_rng(5)


def shuffled(nodes):
    """In another order, with the last one first."""
    nodes = [nodes[i] for i in RNG.permutation(len(nodes))]
    return [nodes[-1], *nodes[:-1]]


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"n_{outputs.split()[0]}", **attrs)


def graph(name, nodes, *outputs, tensors=()):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(o, 1, None) for o in outputs], list(tensors))


def model(nodes, tensors=None, **more):
    return files.model(nodes, {"x": X}, ["y"], {"w": np.ones(3, F), **(tensors or {})}, **more)


def order(path):
    """Names of the operators' nodes of what a model converts to."""
    made = path.with_suffix(".json")
    good("convert", path, "-o", made)
    return [n["name"] for n in json.loads(made.read_text())["nodes"] if n["op"] != "null"]


def net(n=60):
    """Each node takes two values of any of those before it."""
    made = [node("Add", "x w", "v0")]
    for i in range(1, n):
        a, b = RNG.integers(0, i, 2)
        made.append(node(("Add", "Sub", "Max")[i % 3], f"v{a} v{b}", f"v{i}"))
    return made + [node("Tanh", f"v{n - 1}", "y")]


@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_same(tmp_path, seed):
    nodes = net()
    want = files.run(files.save(tmp_path, model(nodes), "sorted"), {"x": X})
    for i, other in enumerate((shuffled(nodes), nodes[::-1])):
        path = files.save(tmp_path, model(other), f"other{i}")
        names = order(path)
        place = {name: at for at, name in enumerate(names)}
        makers = {o: n.name for n in other for o in n.output}
        assert all(place[makers[v]] < place[n.name] for n in other if n.name in place for v in n.input if v in makers)
        files.same(files.run(path, {"x": X}), want)


def test_sorted_files_stay_as_they_are(tmp_path):
    nodes = net()
    names = order(files.save(tmp_path, model(nodes)))
    assert names == [*(n.name for n in nodes), "y"]


def test_nodes_at_the_end_move_to_their_first_user(tmp_path):
    """As converters to float16 add casts: all others keep their places."""
    made = [node("Add", "c0 c1", "a"), node("Relu", "x", "b"), node("Add", "a b", "d"), node("Add", "d c2", "y"),
            node("Neg", "x", "c2"), node("Abs", "x", "c1"), node("Exp", "x", "c0")]
    assert order(files.save(tmp_path, model(made)))[:6] == ["n_c1", "n_c0", "n_a", "n_b", "n_d", "n_c2"]


def test_deep_and_many(tmp_path):
    """A chain from its end to its start; no recursion, and no time that grows faster than the nodes."""
    n = 100000
    made = [helper.make_node("Neg", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)]
    path = files.save(tmp_path, model(made[::-1]))
    assert f"{n}" in good("info", path)


def choice(then, other):
    return helper.make_node("If", ["c"], ["z"], name="choice", then_branch=then, else_branch=other)


@pytest.mark.parametrize("c", [True, False])
def test_values_that_graphs_of_nodes_take(tmp_path, c):
    """A graph of a node, and one within it, take values that are made later; names of their own are none of the model's."""
    deep = graph("deep", [node("Neg", "p", "q"), node("Add", "late own", "p")], "q")
    flat = graph("flat", [node("Mul", "late later", "q")], "q")
    inner = [node("Abs", "k", "own"), helper.make_node("If", ["c"], ["k2"], name="within", then_branch=deep, else_branch=flat),
             node("Sub", "k2 own", "r"), node("Exp", "later", "k")]
    then = graph("then", inner, "r")
    other = graph("other", [node("Tanh", "s", "r"), node("Relu", "late", "s")], "r")
    made = [node("Add", "z own", "y"), choice(then, other), node("Cos", "x", "own"), node("Sin", "later", "late"),
            node("Exp", "x", "later")]
    flags = {"c": np.array(c)}
    s = lambda g, *at: graph(g.name, [g.node[i] for i in at], *(o.name for o in g.output))
    in_order = graph("then", [inner[3], helper.make_node("Abs", ["k"], ["own2"]),
                              helper.make_node("If", ["c"], ["k2"], then_branch=graph("deep", [
                                  helper.make_node("Add", ["late", "own2"], ["p"]), deep.node[0]], "q"), else_branch=flat),
                              helper.make_node("Sub", ["k2", "own2"], ["r"])], "r")
    right = [made[4], made[3], made[2], choice(in_order, s(other, 1, 0)), made[0]]
    want = files.expected(model(right, flags), {"x": X})
    files.same(files.run(files.save(tmp_path, model(made, flags)), {"x": X}), want)


def test_functions(tmp_path):
    def made(nodes):
        f = helper.make_function("mine", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 17)])
        proto = model([helper.make_node("F", ["x"], ["y"], domain="mine", name="call")])
        proto.functions.append(f)
        proto.opset_import.append(helper.make_opsetid("mine", 1))
        return proto
    body = [node("Relu", "a", "p"), node("Exp", "p", "q"), node("Add", "p q", "b")]
    want = files.expected(made(body), {"x": X})
    files.same(files.run(files.save(tmp_path, made(body[::-1])), {"x": X}), want)
    body[0].input[0] = "q"
    text = failing(1, "info", files.save(tmp_path, made(body)))
    assert "function 'F': nodes 'n_p' (Relu), 'n_q' (Exp) form a cycle" in text, text


CYCLES = {
    "one": ([node("Add", "x y", "y")], "node 'n_y' (Add) is a cycle"),
    "two": ([node("Add", "x q", "p"), node("Neg", "p", "q"), node("Relu", "q", "y")], "nodes 'n_p' (Add), 'n_q' (Neg) form a cycle"),
    "behind others": ([node("Relu", "q", "y"), node("Abs", "p", "q"), node("Add", "r w", "p"), node("Neg", "p", "r")],
                      "nodes 'n_p' (Add), 'n_r' (Neg) form a cycle"),
    "unused": ([node("Relu", "x", "y"), node("Neg", "r", "s"), node("Neg", "s", "r")], "nodes 'n_s' (Neg), 'n_r' (Neg) form"),
    "through a graph": ([choice(graph("then", [node("Neg", "y", "r")], "r"), graph("other", [node("Neg", "x", "r")], "r")),
                         node("Abs", "z", "y")], "nodes 'choice' (If), 'n_y' (Abs) form a cycle"),
    "within a graph": ([choice(graph("then", [node("Neg", "r", "q"), node("Abs", "q", "r")], "r"),
                               graph("other", [node("Neg", "x", "r")], "r")), node("Abs", "z", "y")],
                       "a graph of node 'choice': nodes 'n_q' (Neg), 'n_r' (Abs) form a cycle"),
    "many": ([node("Neg", f"v{(i - 1) % 20}", f"v{i}") for i in range(20)] + [node("Abs", "v0", "y")],
             "'n_v7' (Neg) and more form a cycle"),
}


@pytest.mark.parametrize("name", CYCLES)
def test_cycles(tmp_path, name):
    nodes, words = CYCLES[name]
    text = failing(1, "info", files.save(tmp_path, model(nodes, {"c": np.array(True)})))
    assert words in text, text


def test_float16_as_a_converter_writes_it(tmp_path):
    """Casts of inputs and outputs stand at the end of the file."""
    made = [node("Mul", "h half", "g"), node("Relu", "g", "r"), helper.make_node("Cast", ["r"], ["y"], name="out", to=TensorProto.FLOAT),
            helper.make_node("Cast", ["x"], ["h"], name="in", to=TensorProto.FLOAT16)]
    proto = model(made, {"half": np.full(3, 0.5, np.float16)})
    files.same(files.run(files.save(tmp_path, proto), {"x": X}), files.expected(proto, {"x": X}), rtol=1e-2)
