"""Random networks with open dimensions (random_shapes.py) whose shapes change from run to run, against ONNX Runtime: on cpu with
one thread and more, on sim, on mixtures, and few on OpenCL. A network is a seed: HEDDLE_TEST_SEED=N,N runs these alone.

labels: ctypes
timeout: 600
"""
import ctypes as c
import json
import os
import random
from pathlib import Path

import capi
import numpy as np
import onnxruntime
import pocl
import pytest
from onnx import TensorProto, helper, numpy_helper
from random_shapes import RUNS, UNARY, Net
from reference import sizes
from tool_case import heddle

onnxruntime.set_default_logger_severity(3)
PLACES = [("cpu", (), 1), ("cpu", (), 2), ("sim:0", (), 1), ("sim:0,cpu", ("*1*=cpu", "*2*=cpu"), 2),
          ("sim:0,sim:1", ("*0*=sim:1", "*3*=sim:1"), 1)]
ONLY = [int(n) for n in os.environ.get("HEDDLE_TEST_SEED", "").split(",") if n]


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def plan_of(ex):
    text = c.c_char_p()
    capi.call("heddle_executor_explain", ex.p, c.c_int(1), c.byref(text))
    return json.loads(text.value)


def images(seed, one_size=False):
    """Conv in one to three dimensions with what follows it, of images that change, or only change their number: the model, and
    shapes of its input."""
    rand, rng = random.Random(seed), np.random.default_rng(seed)
    rank = rand.choice([1, 2, 2, 2, 3])
    each, groups = rand.choice([(1, 1), (3, 1), (16, 1), (1, 6), (4, 2), (40, 1)]), rand.choice([1, 1, 2])
    channels, out = each[0] * each[1] * groups, each[1] * groups * rand.choice([1, 2, 5, 24])
    kernel = [rand.choice([1, 2, 3, 5, 7]) for _ in range(rank)]
    strides, dilations = [rand.choice([1, 1, 2, 3]) for _ in range(rank)], [rand.choice([1, 1, 2]) for _ in range(rank)]
    pads = [rand.randint(0, k) for k in kernel * 2]
    attrs = dict(auto_pad=rand.choice(["SAME_UPPER", "SAME_LOWER"])) if rand.random() < 0.2 else dict(pads=pads, dilations=dilations)
    fan = channels // (each[1] * groups)
    small = min(0.2, 2 / np.sqrt(fan * np.prod(kernel)))  # or a Sin of what is large shows how it was rounded
    weights = [rng.standard_normal((out, fan, *kernel)) * small, rng.standard_normal(out)]
    names = ["w", "bias"][:rand.randint(1, 2)]
    nodes, last = [helper.make_node("Conv", ["x", *names], ["y0"], group=each[1] * groups, strides=strides, **attrs)], "y0"
    for k in range(rand.randint(0, 4)):
        op = rand.choice(UNARY + ["Add", "Mul", "Sub", "Div", "Clip", "same"])
        more = [f"o{k}"] if op in ("Add", "Mul", "Sub", "Div") else ["least", "most"] if op == "Clip" else []
        if more == [f"o{k}"]:
            weights.append(np.abs(rng.standard_normal(rand.choice([[out, *[1] * rank], [1, out, *[1] * rank], [1]]))) + 0.5)
            names.append(f"o{k}")
        if op == "same":  # a residual, of the result's shape
            nodes.append(helper.make_node("Sin", ["y0"], [f"r{k}"]))
            op, more = "Add", [f"r{k}"]
        nodes.append(helper.make_node(op, [last, *more], [f"y{k + 1}"]))
        last = f"y{k + 1}"
    tensors = [numpy_helper.from_array(np.asarray(a, np.float32), n)
               for n, a in [*zip(["w", "bias"], weights), *zip(names[len(names) - len(weights) + 2:], weights[2:]), ("least", -0.5), ("most", 6)]]
    size = [rand.randint((k - 1) * 2 + 1, 30) for k in kernel] if one_size else [*"dhw"[:rank]]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", channels, *size])
    graph = helper.make_graph(nodes, "images", [info], [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)], tensors)
    least = [(k - 1) * 2 + 1 for k in kernel]
    shapes = [[rand.choice([1, 1, 2, 3]), channels, *(rand.randint(n, rand.choice([n + 3, 30 if rank > 1 else 200])) if n < 30 else n
               for n in least)] for _ in range(12)]
    if one_size:
        shapes = [[rand.choice([1, 2, 3, 4, 7, 8]), channels, *size] for _ in range(8)]
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), shapes


@pytest.mark.parametrize("part", range(6))
def test_images_change(tmp_path, part):
    """With oneDNN and vectors nothing is planned or prepared for a size of an image, nor for a number of images: after the
    second one all steps are resized."""
    wide = "oneDNN" in heddle("devices", "--json").out and "avx2" in Path("/proc/cpuinfo").read_text()
    one_size, part = part >= 3, part % 3
    for seed in ONLY or range(part, sizes.count(45), 3):
        model, shapes = images(seed, one_size)
        theirs, path, rng = session_of(model), tmp_path / "images.onnx", np.random.default_rng(seed)
        path.write_bytes(model.SerializeToString())
        ctx = capi.Context(threads=1 + part, optimize="off" if seed % 4 == 0 else "on")
        ours = capi.Model.load(ctx, path, devices="cpu")
        ex = capi.Executor(ours)
        for shape in shapes:
            x = rng.standard_normal(shape).astype(np.float32)
            ex.set_input("x", x)
            ex.run()
            want, got = theirs.run(None, {"x": x})[0], ex.output(0)
            assert got.shape == want.shape, (seed, shape)
            assert np.allclose(got, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max())), (seed, shape, np.abs(got - want).max())
        if wide:
            assert {r["sizes"] for r in plan_of(ex)["regions"]} <= {"resized", None}, seed  # None: of a view
        for thing in (ex, ours, ctx):
            thing.close()


def check(folder, seed, devices, place, threads):
    """All runs of a network, and the first ones again."""
    net = Net(seed)
    theirs = session_of(net.model)
    path = folder / f"{seed}.onnx"
    path.write_bytes(net.model.SerializeToString())
    ctx = capi.Context(threads=threads, optimize="off" if seed % 5 == 4 else "on", layers="check" if seed % 3 == 0 else "")
    made = [ctx]
    try:
        made.insert(0, capi.Model.load(ctx, path, devices=devices, place=place))
        made.insert(0, capi.Executor(made[0]))
        for turn in [*range(RUNS), 0, 1]:
            feeds = net.feeds(turn)
            for name, value in feeds.items():
                made[0].set_input(name, value)
            made[0].run()
            for k, want in enumerate(theirs.run(None, feeds)):
                label = f"seed {seed} on {devices}, {sorted(net.forms)}, turn {turn}, output {k}: "
                got = made[0].output(k)
                assert got.shape == want.shape, label + f"shape {got.shape}, expected {want.shape}"
                near = 2e-4 * max(1, np.abs(want[np.isfinite(want)]).max(initial=0))
                assert np.allclose(got, want, rtol=0, atol=near, equal_nan=True), label + f"{np.nanmax(np.abs(got - want))} apart"
    finally:
        for thing in made:
            thing.close()
        path.unlink()


@pytest.mark.parametrize("part", range(len(PLACES)))
def test_shapes_change(tmp_path, part):
    for seed in ONLY or range(part, sizes.count(30), len(PLACES)):
        check(tmp_path, seed, *PLACES[part])


def test_shapes_change_on_opencl(tmp_path):
    pocl.need()
    pocl.in_process()
    for seed in ONLY or sizes.seeds(1000, 1004):
        check(tmp_path, seed, *(("opencl:0", (), 1) if seed % 2 else ("opencl:0,cpu", ("*1*=cpu",), 1)))
