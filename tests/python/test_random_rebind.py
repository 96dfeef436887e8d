"""Random graphs whose inputs and outputs change between runs: set anew, bound to other memory, written in place.
Nodes are kept, read by run_to, fused; every result must be that of a plain executor on cpu.
labels: ctypes
timeout: 900
"""
import ctypes as c
import json
import random

import numpy as np
import pocl
import pytest

pocl.in_process()

import capi  # noqa: E402
import random_graphs  # noqa: E402, F401, where reference lies
from reference import graphs, io, placements, sizes  # noqa: E402

MODES = [
    dict(),
    dict(sim__fuse=1),
    dict(sim__fuse=1, sim__coherent=0, sim__delay_us=20),
    dict(sim__unified=1, sim__fuse=1),
    dict(sim__unified=1, sim__coherent=0, sim__delay_us=20),
    dict(sim__peer="off", sim__event_domains=1, sim__delay_us=30),
    dict(sim__bare=1, sim__views=0),
    dict(sim__import=0, sim__delay_us=20),
    dict(sim__coherent=0, sim__import=0),
    dict(layers="check", sim__fuse=1, sim__bare=1),
    dict(sim__peer="off", sim__coherent=0, sim__delay_us=20),
    dict(opencl__unified=1),
    dict(opencl__unified=0, layers="check"),
    dict(opencl__unified=0, layers="fault", fault__delay_us=20),
    dict(opencl__unified=1, opencl__peer=0, opencl__max_streams=1),
]
PAGE = 4096


def memory(rnd, shape):
    """Memory of the caller's: at a page, which devices can import, or wherever numpy puts it."""
    if rnd.random() < 0.3:
        return np.empty(shape, np.float32)
    raw = np.empty(int(np.prod(shape)) * 4 + PAGE, np.uint8)
    start = -raw.ctypes.data % PAGE
    return raw[start:start + int(np.prod(shape)) * 4].view(np.float32).reshape(shape)


class Pair:
    """An executor under test and a plain one, which get the same inputs."""

    def __init__(self, rnd, graph, inputs, plain, tested, close):
        self.close = close  # how near the results are to be
        self.rnd, self.graph, self.plain, self.tested = rnd, graph, plain, tested
        self.args = [graph["nodes"][i]["name"] for i in graph["arg_nodes"]]
        self.values = {name: np.array(value) for name, value in inputs.items()}
        self.bound_in, self.bound_out, self.kept = {}, {}, []
        for name, value in self.values.items():
            plain.set_input(name, value)
            tested.set_input(name, value)

    def bind(self, what, number, array):
        self.kept.append(array)
        t = capi.tensor(array) if array is not None else None
        capi.call(f"heddle_executor_bind_{what}", self.tested.p, c.c_uint32(number), t)
        capi.LIB.heddle_tensor_release(t)

    def change_inputs(self):
        for name, value in self.values.items():
            if value.dtype != np.float32 or self.rnd.random() < 0.4:
                continue
            value = (value * np.float32(self.rnd.choice([0.5, -1, 0.9]))).astype(np.float32)
            self.values[name] = value
            self.plain.set_input(name, value)
            how = self.rnd.random()
            if name in self.bound_in and how < 0.5:
                self.bound_in[name][...] = value
            elif how < 0.7:
                self.bound_in[name] = memory(self.rnd, value.shape)
                self.bound_in[name][...] = value
                self.bind("input", self.args.index(name), self.bound_in[name])
            else:
                self.tested.set_input(name, value)
                self.bound_in.pop(name, None)

    def change_outputs(self, shapes):
        for i, like in enumerate(shapes):
            if like.dtype != np.float32 or self.rnd.random() < 0.7:
                continue
            self.bound_out.pop(i, None)
            array = memory(self.rnd, like.shape) if self.rnd.random() < 0.7 else None
            self.bind("output", i, array)
            if array is not None:
                self.bound_out[i] = array

    def run(self, label):
        self.plain.run()
        want = self.plain.outputs()
        self.change_outputs(want)
        if self.rnd.random() < 0.3:
            capi.call("heddle_executor_start", self.tested.p)
            capi.call("heddle_executor_wait", self.tested.p, c.c_uint64(60_000_000_000))
        else:
            self.tested.run()
        for i, value in enumerate(want):
            got = self.bound_out[i] if i in self.bound_out else self.tested.output(i)
            assert np.allclose(got, value, **self.close), f"{label} output {i}, bound: {i in self.bound_out}"

    def run_to(self, label, node):
        made = []
        for ex in (self.plain, self.tested):
            t = c.c_void_p()
            capi.call("heddle_executor_run_to", ex.p, node.encode(), c.c_uint32(0), c.byref(t))
            made.append(capi.numpy_of(t))
            capi.LIB.heddle_tensor_release(t)
        assert np.allclose(made[0], made[1], **self.close), f"{label} up to {node}"


def check_graph(ctx, seed, plugin="sim"):
    """On opencl sums are made in another order than on cpu."""
    close = dict(rtol=1e-5, atol=1e-6) if plugin == "sim" else dict(rtol=1e-4, atol=1e-4)
    devices = ["cpu", f"{plugin}:0", f"{plugin}:1"] + (["sim:2"] if plugin == "sim" else [])
    rnd = random.Random(seed)
    graph, params, inputs = graphs.random_graph(seed)
    names = [n["name"] for n in graph["nodes"] if n["op"] != "null"]
    keep = rnd.sample(names, min(len(names), rnd.choice([0, 0, 1, 3])))
    g = capi.Graph(json.dumps(graph))
    p = capi.Params(io.params_blob(params)) if params else None
    reference = capi.Model(ctx, g, p, "cpu", keep=keep)
    plain = capi.Executor(reference)
    made = [plain, reference]
    for k, placement in enumerate(placements.placements(graph, seed, devices)):
        rules = [f"{name}={device}" for name, device in placement.items()]
        model = capi.Model(ctx, g, p, ",".join(dict.fromkeys(placement.values())), rules, keep=keep,
                           flags=rnd.choice([0, 0, capi.NO_CAPTURE, capi.SLOTS]), max_streams=rnd.choice([0, 0, 1, 3]))
        tested = capi.Executor(model)
        made[:0] = [tested, model]
        pair = Pair(rnd, graph, inputs, plain, tested, close)
        for run in range(5):
            label = f"seed {seed} placement {k} run {run}:"
            pair.change_inputs()
            pair.run(label)
            if rnd.random() < 0.3:
                pair.run_to(label, rnd.choice(names))
    for x in made + [g] + ([p] if p else []):
        x.close()


@pytest.mark.parametrize("mode", range(len(MODES)), ids=[",".join(f"{k.replace('sim__', '')}={x}" for k, x in m.items())
                                                        or "plain" for m in MODES])
def test_inputs_and_outputs_change(mode):
    plugin = "opencl" if any(key.startswith("opencl") for key in MODES[mode]) else "sim"
    if plugin == "opencl":
        pocl.need()
    for seed in range(5000 + mode, 5000 + max(sizes.count(60), mode + 1), len(MODES)):
        ctx = capi.Context(**MODES[mode])
        check_graph(ctx, seed, plugin)
        ctx.close()


def test_one_weight_in_two_layouts():
    """Conv has its weight packed in blocks; another operator on the same device reads the plain one."""
    nodes = [dict(op="null", name="x", inputs=[]), dict(op="null", name="w", inputs=[]),
             dict(op="Conv", name="c", inputs=[[0, 0, 0], [1, 0, 0]], attrs=dict(kernel_shape=[3, 3])),
             dict(op="Relu", name="r", inputs=[[1, 0, 0]]),
             dict(op="Conv", name="d", inputs=[[0, 0, 0], [3, 0, 0]], attrs=dict(kernel_shape=[3, 3]))]
    x_shape, w_shape = [1, 8, 6, 6], [16, 8, 3, 3]
    graph = dict(heddle=dict(version=1, opset=17), nodes=nodes, arg_nodes=[0, 1], heads=[[2, 0, 0], [3, 0, 0], [4, 0, 0]],
                 node_row_ptr=list(range(6)),
                 attrs=dict(dltype=["list_str", ["float32", "float32", None, None, None]],
                            shape=["list_shape", [x_shape, w_shape, None, None, None]]))
    numbers = np.random.default_rng(7)
    x = numbers.standard_normal(x_shape).astype(np.float32)
    w = numbers.standard_normal(w_shape).astype(np.float32)
    g, p = capi.Graph(json.dumps(graph)), capi.Params(io.params_blob({"w": w}))
    ctx = capi.Context()
    results = []
    for devices in ("cpu", "sim:0", "sim:1,sim:0"):
        model = capi.Model(ctx, g, p, devices)
        for _ in range(2):  # the second finds the model's constants
            ex = capi.Executor(model)
            ex.set_input("x", x)
            ex.run()
            results.append(ex.outputs())
            ex.close()
        model.close()
    for x in (p, g, ctx):
        x.close()
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert np.allclose(a, b, rtol=1e-5, atol=1e-5)
    assert np.array_equal(results[0][1], np.maximum(w, 0))
