"""Random sequences of calls on state values, against numpy: runs of different lengths, reset, read, write, truncate, files, forks,
tensors that are kept, calls that are refused. Executors of one model share what a fork gave them.
timeout: 300"""
import os
import random
import tempfile

import heddle
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from reference import sizes

os.environ.setdefault("POCL_DEVICES", "pthread pthread")
POCL = None if "POCL_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="heddle-pocl-")
if POCL:
    os.environ["POCL_CACHE_DIR"] = POCL.name
WIDTH, F = 6, TensorProto.FLOAT
# Where the rows that come are put behind those that there are: shapes around the axis, of which the first is updated in place.
FORMS = {"flat": ([], 0), "heads": ([1, 3], 2), "batch": ([2], 1)}
STATES = ["rows", "sum", "before"]


def decoder(form):
    """rows: all x so far; sum: of them, halved in each run; before: the x of the last run but one row. y reads all three."""
    lead, axis = FORMS[form]
    node, n = helper.make_node, [*lead, "n", WIDTH]
    axes = numpy_helper.from_array(np.array([axis], np.int64), "axes")
    half = numpy_helper.from_array(np.float32(0.5), "half")
    ends = [numpy_helper.from_array(np.array([k], np.int64), name) for k, name in ((1, "one"), (2**40, "end"))]
    nodes = [node("Concat", ["rows", "x"], ["rows_next"], axis=axis), node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
             node("Mul", ["sum", "half"], ["old"]), node("Add", ["old", "s"], ["sum_next"]),
             node("Slice", ["x", "one", "end", "axes"], ["before_next"]),
             node("ReduceSum", ["before", "axes"], ["b"], keepdims=0),
             node("ReduceMean", ["rows_next"], ["m"], axes=[axis], keepdims=0), node("Add", ["m", "sum"], ["z"]), node("Add", ["z", "b"], ["y"])]
    info = helper.make_tensor_value_info
    inputs = [info("x", F, n), info("rows", F, [*lead, "p", WIDTH]), info("sum", F, [*lead, WIDTH]), info("before", F, [*lead, "q", WIDTH])]
    outputs = [info("y", F, None), info("rows_next", F, [*lead, "t", WIDTH]), info("sum_next", F, [*lead, WIDTH]),
               info("before_next", F, [*lead, "r", WIDTH])]
    graph = helper.make_graph(nodes, "state", inputs, outputs, [axes, half, *ends])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Pair:
    """An executor and what it should hold."""

    def __init__(self, model, form):
        self.lead, self.axis = FORMS[form]
        self.ex = model.executor()
        self.state, self.has_run = {name: self.begin(name) for name in STATES}, False

    def begin(self, name):
        return np.zeros([*self.lead, WIDTH] if name == "sum" else [*self.lead, 0, WIDTH], np.float32)

    def x(self, rng, n):
        return rng.standard_normal([*self.lead, n, WIDTH]).astype(np.float32)

    def run(self, x):
        self.ex.set_input("x", x)
        self.ex.run()
        self.has_run = True
        s, a = self.state, self.axis
        rows = np.concatenate([s["rows"], x], a)
        y = rows.mean(a) + s["sum"] + s["before"].sum(a)
        self.state = {"rows": rows, "sum": s["sum"] / 2 + x.sum(a), "before": np.take(x, range(1, x.shape[a]), a)}
        np.testing.assert_allclose(self.ex.get_output("y").numpy(), y, rtol=1e-4, atol=1e-4)

    def check(self, name):
        found = self.ex.read_state(name if len(name) % 2 else f"{name}_next").numpy()
        assert found.shape == self.state[name].shape, (name, found.shape, self.state[name].shape)
        np.testing.assert_allclose(found, self.state[name], rtol=1e-4, atol=1e-4)


def play(pairs, rand, rng, folder, steps):
    """Random calls; what was done goes into the text of an assertion."""
    files, kept, done = {}, [], []
    for _ in range(steps):
        k = rand.randrange(len(pairs))
        one, name = pairs[k], rand.choice(STATES)
        what = rand.choice(["run"] * 8 + ["reset", "reset all", "read", "write", "truncate", "save", "load", "fork", "keep", "refuse", "check"])
        done.append(f"{k}:{what} {name}")
        try:
            if what == "run":
                one.run(one.x(rng, rand.choice([1, 1, 1, 2, 5, 20])))
            elif what == "reset":
                one.ex.reset_state(name)
                one.state[name] = one.begin(name)
            elif what == "reset all":
                one.ex.reset_state()
                one.state = {n: one.begin(n) for n in STATES}
            elif what == "read":
                one.check(name)
            elif what == "write":
                value = one.x(rng, rand.randint(0, 40))
                one.state[name] = value if name != "sum" else one.x(rng, 1).sum(one.axis)
                one.ex.write_state(name, one.state[name])
            elif what == "truncate":
                name = rand.choice(["rows", "before"])
                n = rand.randint(0, one.state[name].shape[one.axis])
                one.ex.truncate_state(n, name)
                one.state[name] = np.take(one.state[name], range(n), one.axis)
            elif what == "save":
                files[k] = dict(one.state)
                one.ex.save_state(os.path.join(folder, f"{k}.state"))
            elif what == "load" and files:
                n = rand.choice(sorted(files))
                one.ex.load_state(os.path.join(folder, f"{n}.state"))
                one.state = dict(files[n])
            elif what == "fork":
                other = rand.choice([p for p in pairs if p is not one])
                one.ex.fork_state(other.ex)
                other.state = dict(one.state)
            elif what == "keep" and one.has_run:
                kept.append((one.ex.view_output(f"{name}_next") if one.state[name].size else None, one.state[name]))
                kept = kept[-4:]
            elif what == "refuse":
                wrong = rand.choice([lambda: one.ex.truncate_state(one.state["rows"].shape[one.axis] + 1, "rows"),
                                     lambda: one.ex.write_state("sum", np.zeros([*one.lead, WIDTH + 1], np.float32)),
                                     lambda: one.ex.truncate_state(0, "sum"), lambda: one.ex.read_state("x"),
                                     lambda: one.ex.load_state(os.path.join(folder, "none"))])
                with pytest.raises(heddle.Error):
                    wrong()
            elif what == "check":
                for n in STATES:
                    one.check(n)
            for view, value in kept:
                if view is not None:
                    np.testing.assert_allclose(view.numpy(), value, rtol=1e-4, atol=1e-4)
        except AssertionError as error:
            raise AssertionError(f"after {done[-12:]}: {error}") from None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("devices, place", [("cpu", None), ("sim:0", None), ("sim:0,cpu", "*sum*=cpu"), ("sim:0,sim:1", "rows*=sim:1"),
                                            ("opencl:0", None)])
def test_random_calls(tmp_path, devices, place, form):
    for seed in range(sizes.count(1)):
        try:
            model = heddle.load(decoder(form), devices=devices, place=place, state=",".join(f"{n}:{n}_next" for n in STATES))
        except heddle.errors.NoDeviceError as error:
            pytest.skip(f"no {devices}: {error}")
        rand, rng = random.Random(seed), np.random.default_rng(seed)
        pairs = [Pair(model, form) for _ in range(3)]
        play(pairs, rand, rng, tmp_path, 60)
        for one in pairs:
            for name in STATES:
                one.check(name)
        del pairs
        model.close()
