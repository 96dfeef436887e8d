"""Precision fast on cpu against a model of bfloat16 in numpy: operands rounded to bfloat16, multiplied and added in float32.

A result may be rounded to bfloat16 too, which takes at most 2^-9 of it, and sums in float32 come out in another order.
labels: ctypes
timeout: 300
"""
import os
import pathlib

import capi
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import tool_case
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_onednn import Net

FAST, STRICT = 16, 32
CPU = pathlib.Path("/proc/cpuinfo").read_text()
ONEDNN = os.path.exists(os.path.join(os.environ["HEDDLE_BUILD"], "lib/heddle/plugins/libdnnl.so.3"))
HAS = ONEDNN and "avx512_bf16" in CPU and "ONEDNN_MAX_CPU_ISA" not in os.environ
os.environ["HEDDLE_CPU_WINOGRAD"] = "off"  # it may take less than bfloat16; networks below have both
needs_bf16 = pytest.mark.skipif(not HAS, reason="the CPU, or the build, has no bfloat16")


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(threads=2)
    yield c
    c.close()


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def run(ctx, path, inputs, flags=0):
    """Outputs, and the plan, of a model in a file."""
    made = [capi.Model.load(ctx, path, devices="cpu", flags=flags)]
    try:
        made.append(capi.Executor(made[0]))
        for name, value in inputs.items():
            made[1].set_input(name, value)
        made[1].run()
        return [np.array(o) for o in made[1].outputs()], made[0].explain_json()
    finally:
        for thing in reversed(made):
            thing.close()


def layouts(plan):
    return {name for r in plan["regions"] for name in r["reads"] + r["writes"]}


class Case:
    """A node with what follows it: x goes in, the rest are constants."""

    def __init__(self, shape, nodes, out, seed=1, **constants):
        rng = np.random.default_rng(seed)
        self.x = rng.standard_normal(shape).astype(np.float32)
        self.constants = {k: (rng.standard_normal(v) / np.sqrt(np.prod(v[1:]) or 1)).astype(np.float32)
                          for k, v in constants.items()}
        self.nodes, self.out = nodes, out

    def model(self, constants):
        nodes = [helper.make_node(op, ins.split(), [to], name=to, **attrs) for op, ins, to, attrs in self.nodes]
        values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.x.shape)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.out)]
        graph = helper.make_graph(nodes, "case", values, outputs,
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv(*shape, stride=1, groups=1, pad=1):
    return dict(kernel_shape=list(shape), strides=[stride] * 2, pads=[pad] * 4, group=groups)


# The bias of a product stays float32.
CASES = {
    "conv": Case((1, 32, 28, 28), [("Conv", "x w b", "y", conv(3, 3))], (1, 48, 28, 28), w=(48, 32, 3, 3), b=(48,)),
    "conv_of_a_picture": Case((2, 3, 33, 33), [("Conv", "x w", "y", conv(7, 7, stride=2, pad=3))], (2, 64, 17, 17),
                              w=(64, 3, 7, 7)),
    "conv_1x1": Case((1, 64, 14, 14), [("Conv", "x w b", "c", conv(1, 1, pad=0)), ("Relu", "c", "y", {})],
                     (1, 128, 14, 14), w=(128, 64, 1, 1), b=(128,)),
    "depthwise": Case((1, 64, 28, 28), [("Conv", "x w b", "y", conv(7, 7, groups=64, pad=3))], (1, 64, 28, 28),
                      w=(64, 1, 7, 7), b=(64,)),
    "groups": Case((1, 32, 28, 28), [("Conv", "x w", "y", conv(3, 3, groups=4))], (1, 64, 28, 28), w=(64, 8, 3, 3)),
    "transposed": Case((1, 32, 14, 14), [("ConvTranspose", "x w b", "y", dict(kernel_shape=[2, 2], strides=[2, 2]))],
                       (1, 16, 28, 28), w=(32, 16, 2, 2), b=(16,)),
    "residual": Case((1, 64, 14, 14), [("Conv", "x w b", "c", conv(3, 3)), ("Add", "c x", "y", {})],
                     (1, 64, 14, 14), w=(64, 64, 3, 3), b=(64,)),
    "matmul": Case((1, 128, 96), [("MatMul", "x w", "m", {}), ("Add", "m b", "y", {})], (1, 128, 80), w=(96, 80),
                   b=(80,)),
    "gemm": Case((1, 300), [("Gemm", "x w b", "y", dict(transB=1))], (1, 257), w=(257, 300), b=(257,)),
    "gemm_of_rows": Case((130, 300), [("Gemm", "x w b", "g", dict(transB=1)), ("Relu", "g", "y", {})], (130, 70),
                         w=(70, 300), b=(70,)),
    "stack": Case((6, 64, 96), [("MatMul", "x w", "y", {})], (6, 64, 70), w=(6, 96, 70)),
}


def reference(case, inexact):
    """What numpy makes of operands of which those named are rounded; sums of products in double precision."""
    of = {k: rounded(v) if k in inexact else v for k, v in case.constants.items()}
    x = rounded(case.x) if "x" in inexact else case.x
    return ReferenceEvaluator(case.model(of)).run(None, {"x": x})[0]


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_bfloat16(ctx, tmp_path, name):
    case = CASES[name]
    path = str(tmp_path / "case.onnx")
    onnx.save(case.model(case.constants), path)
    (fast,), plan = run(ctx, path, {"x": case.x}, flags=FAST)
    (strict,), other = run(ctx, path, {"x": case.x}, flags=STRICT)
    exact = reference(case, ())
    assert fast.shape == strict.shape == exact.shape and fast.dtype == np.float32
    assert not any("bf16" in name for name in layouts(other))
    np.testing.assert_allclose(strict, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
    if not HAS:
        assert fast.tobytes() == strict.tobytes()
        return
    assert any(name.endswith(":bf16") for name in layouts(plan))
    want = reference(case, ("x", "w"))
    bound = 2.0**-8 * np.abs(want) + 1e-5 * np.abs(want).max()
    assert np.all(np.abs(fast - want) <= bound), np.max(np.abs(fast - want) - bound)
    assert np.abs(want - exact).max() > 1e-4 * np.abs(exact).max(), "the rounding is too small to be seen"
    assert np.abs(fast - want).mean() < 0.7 * np.abs(fast - exact).mean(), "that is no bfloat16"


@needs_bf16
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("onednn", ["auto", "always"])
def test_networks_stay_near_float32(tmp_path, threads, onednn):
    ctx = capi.Context(threads=threads, cpu__onednn=onednn, cpu__winograd="auto")
    try:
        for seed in range(8):
            net = Net(seed)
            model, x = net.model(), net.input()
            path = str(tmp_path / f"{seed}.onnx")
            onnx.save(model, path)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            wanted = session.run(None, {"x": x})
            got, plan = run(ctx, path, {"x": x}, flags=FAST)
            again, _ = run(ctx, path, {"x": x}, flags=FAST)
            assert any(name.endswith(":bf16") for name in layouts(plan))
            for g, a, w in zip(got, again, wanted):
                assert g.shape == w.shape and g.tobytes() == a.tobytes()
                worst = np.abs(g - w).max() / np.abs(w).max()
                assert worst < 0.05, f"seed {seed}: differs by {worst} of the largest"
    finally:
        ctx.close()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [48, 130])
def test_attention_stays_near_float32(tmp_path, rows, threads):
    """As exporters write it; a plugin may take it as one region. A row of NaN stays one."""
    heads, size = 4, 24
    width = heads * size
    shapes = {"split": [1, rows, heads, size], "join": [1, rows, width]}
    nodes = []
    for name in "qkv":
        perm = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes += [("MatMul", f"x w{name}", f"m{name}", {}), ("Add", f"m{name} b{name}", f"a{name}", {}),
                  ("Reshape", f"a{name} split", f"r{name}", {}), ("Transpose", f"r{name}", name, {"perm": perm})]
    nodes += [("MatMul", "q k", "qk", {}), ("Div", "qk root", "scaled", {}), ("Softmax", "scaled", "p", {"axis": -1}),
              ("MatMul", "p v", "pv", {}), ("Transpose", "pv", "t", {"perm": [0, 2, 1, 3]}),
              ("Reshape", "t join", "joined", {}), ("MatMul", "joined wo", "o", {}), ("Add", "o x", "y", {})]
    case = Case((1, rows, width), nodes, (1, rows, width), **{f"w{n}": (width, width) for n in "qkvo"},
                **{f"b{n}": (width,) for n in "qkv"})
    case.constants.update({k: np.array(v, np.int64) for k, v in shapes.items()}, root=np.float32(size**0.5))
    path = str(tmp_path / "attention.onnx")
    onnx.save(case.model(case.constants), path)
    ctx = capi.Context(threads=threads)
    try:
        (exact,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": case.x})
        (fast,), _ = run(ctx, path, {"x": case.x}, flags=FAST)
        error = np.abs(fast - exact).max() / np.abs(exact).max()
        assert error < 0.02, f"differs by {error} of the largest"
        assert not HAS or error > 1e-4, "that is no bfloat16"
        case.x[0, 5, 7] = np.nan
        (fast,), _ = run(ctx, path, {"x": case.x}, flags=FAST)
        assert np.isnan(fast).all(), "a NaN in a key reaches all rows"
    finally:
        ctx.close()


def test_who_says_how_precise(ctx, tmp_path):
    """The call's flags win over the setting; without either it is strict."""
    case = CASES["conv"]
    path = str(tmp_path / "case.onnx")
    onnx.save(case.model(case.constants), path)
    bits = {flags: run(ctx, path, {"x": case.x}, flags=flags)[0][0].tobytes() for flags in (0, FAST, STRICT)}
    assert bits[0] == bits[STRICT] and (bits[FAST] != bits[0]) == HAS
    for word in ("fast", "strict"):
        other = capi.Context(threads=2, precision=word)
        try:
            for flags, want in ((0, FAST if word == "fast" else STRICT), (FAST, FAST), (STRICT, STRICT)):
                assert run(other, path, {"x": case.x}, flags=flags)[0][0].tobytes() == bits[want], (word, flags)
        finally:
            other.close()
    with pytest.raises(capi.HeddleError, match="HEDDLE_MODEL_FAST and HEDDLE_MODEL_STRICT"):
        run(ctx, path, {"x": case.x}, flags=FAST | STRICT)
    other = capi.Context(precision="loose")
    try:
        with pytest.raises(capi.HeddleError, match="strict or fast, not 'loose'"):
            run(other, path, {"x": case.x})
    finally:
        other.close()


@pytest.fixture
def files(tmp_path):
    """A model, its input, and where outputs go."""
    case = CASES["conv_1x1"]
    onnx.save(case.model(case.constants), tmp_path / "case.onnx")
    np.save(tmp_path / "x.npy", case.x)
    return tmp_path


def by_tool(files, *words, **env):
    r = tool_case.heddle("run", files / "case.onnx", "--device", "cpu", "--input", f"x={files / 'x.npy'}",
                         "--output-dir", files / "out", *words, **env)
    assert r.status == 0, r
    return np.load(files / "out" / "output_0.npy").tobytes(), r.err


def test_the_tool(files):
    strict, _ = by_tool(files)
    fast, told = by_tool(files, "--precision", "fast")
    assert by_tool(files, "--precision", "strict", HEDDLE_PRECISION="fast")[0] == strict
    assert by_tool(files, HEDDLE_PRECISION="fast")[0] == fast
    (files / "config.json").write_text('{"precision": "fast"}')
    assert by_tool(files, HEDDLE_CONFIG=str(files / "config.json"))[0] == fast
    assert (fast != strict) == HAS and ("stays float32" in told) != HAS
    message = tool_case.failing(2, "run", files / "case.onnx", "--precision", "loose")
    assert "--precision is strict or fast, not 'loose'" in message


@needs_bf16
def test_the_plan_shows_it(files):
    fast = tool_case.good("plan", files / "case.onnx", "--device", "cpu", "--precision", "fast")
    assert "precision fast" in fast
    row = next(line for line in fast.splitlines() if line.split()[:2] == ["c", "Conv"])
    assert row.endswith(":bf16")
    assert "plain to" in fast and "bf16" not in tool_case.good("plan", files / "case.onnx", "--device", "cpu")


@pytest.mark.skipif(not ONEDNN, reason="built without oneDNN")
@pytest.mark.parametrize("isa", ["AVX512_CORE_VNNI", "AVX2"])
def test_a_cpu_without_it(files, isa):
    """Everything runs, in float32, and a line of the log reports it, once."""
    strict, silent = by_tool(files, ONEDNN_MAX_CPU_ISA=isa)
    fast, told = by_tool(files, "--precision", "fast", ONEDNN_MAX_CPU_ISA=isa)
    assert fast == strict and silent == ""
    assert told.count("everything stays float32") == 1
    plan = tool_case.heddle("plan", files / "case.onnx", "--device", "cpu", "--precision", "fast", ONEDNN_MAX_CPU_ISA=isa)
    assert plan.status == 0 and "bf16" not in plan.out


def test_without_onednn(files):
    strict, _ = by_tool(files, "--set", "cpu.onednn=off")
    fast, told = by_tool(files, "--set", "cpu.onednn=off", "--precision", "fast")
    assert fast == strict and told.count("everything stays float32") == 1
