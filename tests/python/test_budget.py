"""Memory that a plan says it takes against what devices then give, and plans within limits. timeout: 600"""
import functools
import json
import re
import shlex
import subprocess

import lavapipe
import numpy as np
import pocl
import pytest
from oracle import oracle
from reference import graphs, io, placements, sizes
from tool_case import BUILD, environment, failing, good

LIVE = BUILD / "bin" / "live_bytes"



def taken(plan):
    """Of each device, all bytes that the plan says are taken of it."""
    names = {d["id"]: d["name"] for d in plan["devices"]}
    return {names[t["id"]]: t["device_bytes"] + t["unified_bytes"] + t["pinned_bytes"]
            for t in plan["taken"]["devices"]}


def planned(model, devices, *words, **env):
    return json.loads(good("plan", model, "--device", ",".join(devices), "--json", *words, **env))


def live(model, devices, *words, flags=0, **env):
    done = subprocess.run([LIVE, model, ",".join(devices), str(flags), *words], capture_output=True, text=True,
                          timeout=120, env=environment(**env))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(folder, graph, params=None):
    model = folder / "graph.json"
    io.write_graph(model, graph)
    if params:
        io.write_params(folder / "graph.params", params)
    return model


# The plan's bytes are those that are allocated.

SETTINGS = [{}, {"sim.unified": "1"}, {"sim.coherent": "0", "sim.views": "0", "sim.bare": "1"},
            {"sim.import": "0", "sim.peer": "off"},
            {"sim.launch_bytes": "4096"}]


def same_bytes(tmp_path, seeds, devices, settings, place=placements.placements, **env):
    crossed = 0
    for seed in seeds:
        graph, params, _ = graphs.random_graph(seed)
        model = write(tmp_path, graph, params)
        for placed in place(graph, seed, devices)[:3]:
            rules = [f"{node}={device}" for node, device in placed.items()]
            words = [w for rule in rules for w in ("--place", rule)]
            words += [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
            plan = planned(model, devices, *words, **env)
            given = live(model, devices, *rules, *[f"--{k}={v}" for k, v in settings.items()], **env)
            assert taken(plan) == given, f"seed {seed}"
            crossed += sum(b > 0 for b in given.values()) > 1
    assert crossed > 0 or len(devices) == 1


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items()) or "plain")
def test_exact_on_sim_and_cpu(tmp_path, settings):
    same_bytes(tmp_path, sizes.seeds(700, 704), ["cpu", "sim:0", "sim:1"], settings)


def test_exact_on_cpu_alone(tmp_path):
    same_bytes(tmp_path, sizes.seeds(710, 716), ["cpu"], {})


@pytest.mark.parametrize("unified", ["0", "1"])
def test_exact_on_opencl(tmp_path, unified):
    pocl.need()
    same_bytes(tmp_path, range(720, 723), ["cpu", "opencl:0", "sim:0", "opencl:1"], {"opencl.unified": unified},
               **pocl.ENV)


def test_exact_on_vulkan(tmp_path):
    """Nodes by which values move and meet are there; the others' operands cross."""
    lavapipe.need()

    def place(graph, seed, devices):
        ops = {n["name"]: n["op"] for n in graph["nodes"]}
        return [{node: device if ops[node] in ("Add", "Mul", "Relu", "Concat", "Reshape", "Flatten") else "sim:0"
                 for node, device in placed.items()} for placed in placements.placements(graph, seed, devices)]

    same_bytes(tmp_path, range(730, 733), ["cpu", "vulkan:0", "sim:0", "vulkan:1"], {}, place, **lavapipe.ENV)


# Orders.

SIDE = 256
WIDE = SIDE * SIDE * 4


class Sketch:
    def __init__(self):
        self.nodes, self.shapes = [], {}

    def null(self, name, *shape):
        self.shapes[name] = shape
        return self.node("null", name)

    def node(self, op, name, *inputs):
        self.nodes.append({"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs]})
        return len(self.nodes) - 1

    def graph(self, *heads):
        nulls = [i for i, n in enumerate(self.nodes) if n["op"] == "null"]
        count = len(self.nodes)
        shapes = [list(self.shapes[n["name"]]) if n["op"] == "null" else None for n in self.nodes]
        types = ["float32" if n["op"] == "null" else None for n in self.nodes]
        return {"heddle": {"version": 1, "opset": 17}, "nodes": self.nodes, "arg_nodes": nulls,
                "heads": [[h, 0, 0] for h in heads], "node_row_ptr": list(range(count + 1)),
                "attrs": {"dltype": ["list_str", types], "shape": ["list_shape", shapes]}}


def fan(branches):
    """All wide values first, then those that make them narrow: each branch alone would need one wide value at a time."""
    s = Sketch()
    x, row, column = s.null("x", SIDE, 1), s.null("row", 1, SIDE), s.null("column", SIDE, 1)
    scales = [s.null(f"scale{k}", 1, 1) for k in range(branches)]
    wide = [s.node("MatMul", f"wide{k}", s.node("Mul", f"long{k}", x, scales[k]), row) for k in range(branches)]
    narrow = [s.node("MatMul", f"narrow{k}", w, column) for k, w in enumerate(wide)]
    total = narrow[0]
    for k in range(1, branches):
        total = s.node("Add", f"sum{k}", total, narrow[k])
    return s.graph(total)


def inputs_of(graph, seed=5):
    rng = np.random.default_rng(seed)
    return {n["name"]: rng.standard_normal(graph["attrs"]["shape"][1][i]).astype(np.float32)
            for i, n in enumerate(graph["nodes"]) if n["op"] == "null"}


def expected(graph):
    """In float64, by numpy."""
    inputs, values = inputs_of(graph), []
    for n in graph["nodes"]:
        args = [values[i] for i, _, _ in n["inputs"]]
        values.append(inputs[n["name"]].astype(np.float64) if n["op"] == "null" else
                      {"MatMul": np.matmul, "Mul": np.multiply, "Add": np.add}[n["op"]](*args))
    return [values[h] for h, _, _ in graph["heads"]]


def run(tmp_path, model, graph, *words):
    given = []
    for name, value in inputs_of(graph).items():
        np.save(tmp_path / f"{name}.npy", value)
        given += ["--input", f"{name}={tmp_path / f'{name}.npy'}"]
    good("run", model, *given, "--output-dir", tmp_path / "out", *words)
    return [np.load(tmp_path / "out" / f"output_{i}.npy") for i in range(len(graph["heads"]))]


def check_outputs(graph, outputs):
    for got, want in zip(outputs, expected(graph)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("devices", [["sim:0"], ["cpu:0"], ["sim:0", "cpu:0"]], ids=lambda d: "+".join(d))
def test_another_order_fits(tmp_path, devices):
    graph = fan(6)
    model = write(tmp_path, graph)
    first = devices[0]
    words = ["--set", "cpu.fuse=0"]
    free = taken_counted(planned(model, devices, *words), first)
    limit = free - 4 * WIDE
    assert limit < free / 2 and limit < 3 * WIDE  # one or two wide values and what is small
    plan = planned(model, devices, *words, "--memory", f"{first}={limit}")
    assert "reordered for memory" in plan["taken"]["fitted"]
    assert taken_counted(plan, first) <= limit < free
    assert oracle.first_fault(plan) is None
    assert taken(plan) == live(model, devices, "--cpu.fuse=0", f"--limit.memory={first}={limit}")
    unlimited = run(tmp_path, model, graph, "--device", ",".join(devices), *words)
    limited = run(tmp_path, model, graph, "--device", ",".join(devices), *words, "--memory", f"{first}={limit}")
    check_outputs(graph, unlimited)
    check_outputs(graph, limited)
    assert [a.tobytes() for a in unlimited] == [a.tobytes() for a in limited]


def taken_counted(plan, device):
    """The bytes that count against a device's limit."""
    id = next(d["id"] for d in plan["devices"] if d["name"] == device)
    t = plan["taken"]["devices"][id]
    return t["device_bytes"] + t["unified_bytes"]


def random_widths(seed):
    """Nodes (name, operands, width in floats of SIDE rows) by MatMul with a constant matrix and Concat, neither of which
    can write over an operand; every value but one is used."""
    rng = np.random.default_rng([seed, 77])
    nodes = [(f"n{k}", [], int(rng.choice([8, 64, 256]))) for k in range(3)]
    open_ = [0, 1, 2]
    while len(open_) > 1 or len(nodes) < 8:
        k = len(nodes)
        if len(open_) > 1 and rng.random() < (0.4 if k < 8 else 1):
            i, j = sorted(int(v) for v in rng.choice(open_, 2, replace=False))
            nodes.append((f"n{k}", [i, j], nodes[i][2] + nodes[j][2]))
            open_ = [o for o in open_ if o not in (i, j)] + [k]
        else:
            i = int(rng.choice(open_))
            nodes.append((f"n{k}", [i], int(rng.choice([8, 16, 64]))))
            if rng.random() < 0.8:
                open_.remove(i)
            open_.append(k)
    return nodes


def least_bytes(nodes):
    """(bytes of the listed order, of the best order), by trying all: a value lives from its node to its last user."""
    users = [[u for u, (_, ins, _) in enumerate(nodes) if i in ins] for i in range(len(nodes))]
    size = [width * SIDE * 4 for _, _, width in nodes]

    @functools.cache
    def best(done):
        if len(done) == len(nodes):
            return 0
        live = sum(size[i] for i in done if not all(u in done for u in users[i]))
        return min(max(live + size[n], best(done | {n})) for n, (_, ins, _) in enumerate(nodes)
                   if n not in done and all(i in done for i in ins))

    listed = max(sum(size[i] for i in range(n) if any(u >= n for u in users[i])) + size[n] for n in range(len(nodes)))
    return listed, best(frozenset())


def test_the_best_order_is_found(tmp_path):
    """A limit that only the best of all orders keeps is kept, or the arena's gaps alone are in the way: on one device,
    whose input, weights and what is brought there take the same bytes in every order."""
    improved = 0
    for seed in range(25):
        nodes = random_widths(seed)
        listed, best = least_bytes(nodes)
        s = Sketch()
        x, ids, params = s.null("x", SIDE, 1), [], {}
        for name, ins, width in nodes:
            if len(ins) == 2:
                ids.append(s.node("Concat", name, *[ids[i] for i in ins]))
                s.nodes[-1]["attrs"] = {"axis": 1}
                continue
            rows = nodes[ins[0]][2] if ins else 1
            w = s.null(f"w{name}", rows, width)
            params[f"w{name}"] = np.zeros((rows, width), np.float32)
            ids.append(s.node("MatMul", name, ids[ins[0]] if ins else x, w))
        model = write(tmp_path, s.graph(ids[-1]), params)
        words = ["--set", "sim.layouts=0"]
        free = planned(model, ["sim:0"], *words)
        constants = sum(a["bytes"] for a in free["allocations"] if a["use"] == "constant")
        if best + SIDE * 4 + constants >= taken_counted(free, "sim:0"):
            continue
        limit = best + SIDE * 4 + constants  # and the input
        plan = planned(model, ["sim:0"], *words, "--memory", f"sim:0={limit}")
        assert taken_counted(plan, "sim:0") <= limit, seed
        assert oracle.first_fault(plan) is None
        improved += 1
    assert improved >= 5


# What does not fit.

REFUSAL = re.compile(r"(\S+) needs (\d+) bytes, (\d+) more than its limit of (\d+) \(from (\S+)\)")


def rules_in(words):
    """The words of the command line that a refusal suggests."""
    return shlex.split(words.split("it fits with ")[1]) if "it fits with " in words else None


def test_a_refusal_counts_names_and_suggests(tmp_path):
    """Two large values of one node's neighbours do not fit; on the other device there is room."""
    graph = fan(3)
    model = write(tmp_path, graph)
    devices = ["sim:0", "cpu:0"]
    limit = WIDE - 4096
    words = failing(1, "plan", model, "--device", ",".join(devices), "--memory", f"sim:0={limit}")
    device, needs, more, said, origin = REFUSAL.search(words).groups()
    assert (device, int(said), origin) == ("sim:0", limit, "call") and int(needs) - limit == int(more)
    assert str(model) in words and "reordered for memory" in words
    assert re.search(rf"'wide\d' {WIDE}\b", words)  # the largest, with its bytes
    rules = rules_in(words)
    assert rules and all(r == "--place" or re.fullmatch(r"\w+=cpu:0", r) for r in rules)
    plan = planned(model, devices, "--memory", f"sim:0={limit}", *rules)
    assert taken_counted(plan, "sim:0") <= limit
    assert any(n["device"] == 0 for n in plan["nodes"])  # not all was moved
    check_outputs(graph, run(tmp_path, model, graph, "--device", ",".join(devices), "--memory", f"sim:0={limit}", *rules))
    assert REFUSAL.search(failing(1, "run", model, "--random", "--device", "sim:0", "--memory", f"sim:0={limit}"))
    assert REFUSAL.search(failing(1, "bench", model, "--device", "sim:0", "--memory", f"sim:0={limit}"))


def test_the_refused_bytes_are_those_of_the_smallest_plan(tmp_path):
    """With a limit of what the refusal says is needed, it fits; with a byte less, it does not."""
    model = write(tmp_path, fan(4))
    needs = int(REFUSAL.search(failing(1, "plan", model, "--device", "sim:0", "--memory", "sim:0=1")).group(2))
    plan = planned(model, ["sim:0"], "--memory", f"sim:0={needs}")
    assert taken_counted(plan, "sim:0") == needs
    failing(1, "plan", model, "--device", "sim:0", "--memory", f"sim:0={needs - 1}")


def test_constants_count(tmp_path):
    """A parameter alone is larger than the limit, whatever the order: it is named, and its node goes elsewhere."""
    s = Sketch()
    x, w, b = s.null("x", 4, SIDE), s.null("big", SIDE, SIDE), s.null("bias", SIDE)
    graph = s.graph(s.node("Add", "small", s.node("MatMul", "heavy", x, w), b))
    model = write(tmp_path, graph, {"big": np.ones((SIDE, SIDE), np.float32), "bias": np.ones(SIDE, np.float32)})
    words = failing(1, "plan", model, "--device", "sim:0,sim:1", "--memory", "sim:0=100KiB", "--set", "sim.layouts=0")
    assert f"'big' (constant) {SIDE * SIDE * 4}" in words
    assert rules_in(words) == ["--place", "heavy=sim:1"]
    planned(model, ["sim:0", "sim:1"], "--memory", "sim:0=100KiB", *rules_in(words))


def test_what_lies_elsewhere_is_not_at_the_peak(tmp_path):
    """A parameter that cpu uses where it lies takes nothing of the limit, so it is neither named nor a reason to move."""
    s = Sketch()
    x, w = s.null("x", 64, SIDE), s.null("big", SIDE)
    graph = s.graph(s.node("Relu", "second", s.node("Add", "first", x, w)))
    model = write(tmp_path, graph, {"big": np.ones(SIDE, np.float32)})
    words = failing(1, "plan", model, "--device", "cpu", "--memory", "cpu=1KiB", "--set", "cpu.fuse=0")
    assert "'first'" in words and "(constant)" not in words


def test_all_nodes_are_moved_where_few_do_not_fit(tmp_path):
    """More nodes than are moved one by one, and fewer whose names have no room in the error's words."""
    for n, name in ((40, "n"), (10, "a_name_as_long_as_that_of_a_node_in_a_model_which_was_exported_")):
        s = Sketch()
        at = s.null("x", 4, SIDE)
        for i in range(n):
            at = s.node("Add" if i % 2 else "Mul", f"{name}{i}", at, s.null(f"w{i}", SIDE))
        values = {f"w{i}": np.ones(SIDE, np.float32) for i in range(n)}
        model = write(tmp_path, s.graph(at), values)
        words = failing(1, "plan", model, "--device", "sim:0,sim:1", "--memory", "sim:0=64")
        assert rules_in(words) == ["--place", "*=sim:1"], words
        planned(model, ["sim:0", "sim:1"], "--memory", "sim:0=64", *rules_in(words))


def test_a_name_that_is_a_pattern(tmp_path):
    s = Sketch()
    x, w = s.null("x", 4, SIDE), s.null("big", SIDE, SIDE)
    graph = s.graph(s.node("MatMul", "a[0]*/?b", x, w))
    model = write(tmp_path, graph, {"big": np.ones((SIDE, SIDE), np.float32)})
    rules = rules_in(failing(1, "plan", model, "--device", "sim:0,cpu", "--memory", "sim:0=1KiB"))
    planned(model, ["sim:0", "cpu"], "--memory", "sim:0=1KiB", *rules)


# Where limits come from.


def limit_of(plan, device="sim:0"):
    id = next(d["id"] for d in plan["devices"] if d["name"] == device)
    return plan["taken"]["devices"][id]["limit"], plan["taken"]["devices"][id]["limit_from"]


def test_origins_and_units(tmp_path):
    model = write(tmp_path, fan(2))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"limit": {"memory": {"sim:0": "3GiB", "sim:1": "1MiB"}}}))
    two = ["sim:0", "cpu"]
    assert limit_of(planned(model, two)) == (None, None)
    assert limit_of(planned(model, two, HEDDLE_CONFIG=str(config)))[0] == 3 << 30
    assert limit_of(planned(model, two, HEDDLE_LIMIT_MEMORY="sim:0=5MB,sim:2=1GB"))[0] == 5_000_000
    assert limit_of(planned(model, two, "--set", "limit.memory=sim:0=7kib,sim:0=8000KiB"))[0] == 8000 << 10
    call = planned(model, two, "--memory", "sim:0 = 2GiB, cpu=9TB", HEDDLE_LIMIT_MEMORY="sim:0=5MB")
    assert limit_of(call) == (2 << 30, "call") and limit_of(call, "cpu:0")[0] == 9 * 10**12
    assert limit_of(planned(model, two, "--memory", "off", HEDDLE_LIMIT_MEMORY="sim:0=5MB")) == (None, None)
    assert limit_of(planned(model, two, "--memory", "sim:0=0,cpu=off")) == (None, None)
    assert limit_of(planned(model, two, "--memory", "sim:0=12345678"))[0] == 12345678


@pytest.mark.parametrize("text, says", [
    ("sim:0", "expected DEVICE=BYTES"), ("=4", "expected DEVICE=BYTES"), ("sim:0=", "expected DEVICE=BYTES"),
    ("sim:0=x", "sim:0=x"), ("sim:0=4QiB", "expected DEVICE=BYTES"), ("sim:0=4KiBs", "expected"),
    ("sim:0=-4", "expected"), ("sim:0=1.5GiB", "expected"), ("sim:0=99999999999999999999", "expected"),
    ("sim:0=9000000TiB", "expected"), ("sim:0=4bb", "expected"), ("sim:9=4", "no device 'sim:9'"),
    ("sim:1=4", "sim:1 is not among the devices in use"), ("sim:0=4MB,,cpu", "cpu")])
def test_a_wrong_limit_is_refused(tmp_path, text, says):
    model = write(tmp_path, fan(2))
    assert says in failing(1, "plan", model, "--device", "sim:0,cpu", "--memory", text)


def test_the_text_tells_it(tmp_path):
    model = write(tmp_path, fan(6))
    limit = 3 * WIDE
    text = good("plan", model, "--device", "sim:0,cpu", "--memory", f"sim:0={limit}")
    assert "to fit    reordered for memory" in text
    rows = text.split("memory taken (1)\n")[1].splitlines()
    assert rows[0].split() == ["taken", "of", "device", "unified", "pinned", "limit"]
    plan = planned(model, ["sim:0", "cpu"], "--memory", f"sim:0={limit}")
    t = plan["taken"]["devices"][0]
    assert rows[1].split() == ["sim:0", str(t["device_bytes"]), str(t["unified_bytes"]), str(t["pinned_bytes"]), str(limit),
                               "(call)"]
    again = good("plan", model, "--device", "sim:0,cpu", "--memory", f"sim:0={limit}", "--json")
    assert json.loads(again) == plan  # the search depends on nothing but the graph
