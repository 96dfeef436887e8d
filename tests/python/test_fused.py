"""FusedElementwise, Gelu, and chains that cpu makes one step of: against numpy in float64, and against the unfused run
to the bit. labels: ctypes
timeout: 300
"""
import ctypes
import json
import os
import subprocess

import numpy as np
import onnx
import onnx.reference
import pytest

import capi
import fused
import tool_case


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context(cpu__onednn="off")
    yield c
    c.close()


@pytest.fixture(scope="module")
def apart():
    c = capi.Context(cpu__fuse=0, cpu__onednn="off")  # whose own elementwise kernels round otherwise
    yield c
    c.close()


def steps_of(plan):
    return [s for s in plan["steps"] if s["kind"] == "op"]


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
def test_expressions(ctx, device):
    for seed in range(0, 250 if device == "cpu" else 60):
        tree, values = fused.random_case(seed)
        want = tree.numbers([v.astype(np.float64) for v in values])
        b, head = fused.as_node(tree, values)
        (got,), plan = fused.run(ctx, b, [head], {f"x{k}": v for k, v in enumerate(values)}, device)
        fused.close(f"seed {seed}: {tree.text()}", got, want)


def test_chains_have_the_bits_of_single_nodes(ctx, apart):
    fewer = longest = 0
    for seed in range(1000, 1300):
        tree, values = fused.random_case(seed)
        b, head = fused.as_nodes(tree, values)
        inputs = {f"x{k}": v for k, v in enumerate(values)}
        (one,), plan = fused.run(ctx, b, [head], inputs, "cpu", runs=2)
        (many,), all_steps = fused.run(apart, b, [head], inputs, "cpu")
        assert one.tobytes() == many.tobytes(), f"seed {seed}: {tree.text()}"
        fused.close(f"seed {seed}: {tree.text()}", one, tree.numbers([v.astype(np.float64) for v in values]))
        assert len(steps_of(plan)) <= len(steps_of(all_steps))
        fewer += len(steps_of(plan)) < len(steps_of(all_steps))
        longest = max([longest] + [len(r["nodes"]) for r in plan["regions"]])
    assert fewer > 150 and longest >= 12


def silu():
    """y = t * Sigmoid(t), t = x * scale + bias: t is used twice, and scale and bias are of one row."""
    b = fused.Builder()
    x = b.null("x", np.zeros((3, 40), np.float32))
    scale = b.null("scale", np.linspace(-1, 2, 40).astype(np.float32), True)
    bias = b.null("bias", np.linspace(1, -1, 40).astype(np.float32), True)
    product = b.add("Mul", [x, scale])
    total = b.add("Add", [product, bias])
    gate = b.add("Sigmoid", [total])
    return b, (product, total, gate, b.add("Mul", [total, gate]))


def silu_numbers(x):
    total = x.astype(np.float64) * np.linspace(-1, 2, 40).astype(np.float32) + np.linspace(1, -1, 40).astype(np.float32)
    return total, total / (1 + np.exp(-total))


def test_a_value_used_twice_inside(ctx):
    b, (*_, y) = silu()
    x = np.random.default_rng(1).uniform(-3, 3, (3, 40)).astype(np.float32)
    (got,), plan = fused.run(ctx, b, [y], {"x": x}, "cpu")
    fused.close("silu", got, silu_numbers(x)[1])
    assert len(steps_of(plan)) == 1 and sorted(plan["regions"][0]["nodes"]) == [3, 4, 5, 6]


def test_heads_and_kept_values_stay(ctx):
    """What is read from outside is computed, and what lies before it and behind it is one step each."""
    x = np.random.default_rng(2).uniform(-3, 3, (3, 40)).astype(np.float32)
    total, y_numbers = silu_numbers(x)
    b, (_, inner, _, y) = silu()
    outputs, plan = fused.run(ctx, b, [y, inner], {"x": x}, "cpu")
    fused.close("y", outputs[0], y_numbers)
    fused.close("total", outputs[1], total)
    assert len(steps_of(plan)) == 2
    _, plan = fused.run(ctx, b, [y], {"x": x}, "cpu", keep=[f"n{inner}"])
    assert len(steps_of(plan)) == 2

    g, p = capi.Graph(b.text([y])), capi.Params(fused.io.params_blob(b.params))
    m = capi.Model(ctx, g, p, "cpu")
    ex = capi.Executor(m)
    ex.set_input("x", x)
    ex.run()
    t = ctypes.c_void_p()
    capi.call("heddle_executor_run_to", ex.p, f"n{inner}".encode(), ctypes.c_uint32(0), ctypes.byref(t))
    fused.close("read from inside", capi.numpy_of(t), total)
    capi.LIB.heddle_tensor_release(t)
    for made in (ex, m, p, g):
        made.close()


def test_long_chains_are_cut(ctx, apart):
    """Over the limits of one expression there are several, of 24 nodes each at most."""
    b = fused.Builder()
    x = b.null("x", np.zeros((7, 5), np.float32))
    y = b.null("y", np.zeros((1, 5), np.float32))
    last = x
    for i in range(100):
        last = b.add(("Add", "Mul", "Tanh")[i % 3], [last] if i % 3 == 2 else [last, y])
    inputs = {"x": np.full((7, 5), 0.3, np.float32), "y": np.linspace(-1, 1, 5).astype(np.float32).reshape(1, 5)}
    (one,), plan = fused.run(ctx, b, [last], inputs, "cpu")
    (many,), all_steps = fused.run(apart, b, [last], inputs, "cpu")
    assert one.tobytes() == many.tobytes()
    assert len(steps_of(all_steps)) == 100 and len(steps_of(plan)) == 5


def test_constants_become_numbers(ctx):
    """Constants of one element are read when the step is prepared: no buffer holds them."""
    b = fused.Builder()
    x = b.null("x", np.zeros((2, 3), np.float32))
    low, high = b.null("low", np.float32(-0.5), True), b.null("high", np.float32(0.75), True)
    half = b.null("half", np.full((1, 1), 0.5, np.float32), True)
    y = b.add("Clip", [b.add("Mul", [x, half]), low, high])
    value = np.array([[-4, -1, 0], [0.1, 1.25, 9]], np.float32)
    (got,), plan = fused.run(ctx, b, [y], {"x": value}, "cpu")
    assert np.array_equal(got, np.clip(value * np.float32(0.5), np.float32(-0.5), np.float32(0.75)))
    assert len(steps_of(plan)) == 1 and not [a for a in plan["allocations"] if a["kind"] == "constant"]


GELU = [None, "none", "tanh"]


@pytest.mark.parametrize("device", ["cpu", "sim:0"])
@pytest.mark.parametrize("opset", [13, 18])
def test_gelu_is_that_of_onnx_opset_20(ctx, device, opset):
    x = np.concatenate([np.linspace(-9, 9, 1001), [0.0, -0.0, 40, -40]]).astype(np.float32)
    for how in GELU:
        attrs = {} if how is None else {"approximate": how}
        node = onnx.helper.make_node("Gelu", ["x"], ["y"], **attrs)
        info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, x.shape) for n in "xy"]
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", info[:1], info[1:]),
                                       opset_imports=[onnx.helper.make_opsetid("", 20)])
        want = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x.astype(np.float64)})[0]
        b = fused.Builder(opset)
        y = b.add("Gelu", [b.null("x", x)], "heddle", **attrs)
        (got,), _ = fused.run(ctx, b, [y], {"x": x}, device)
        assert np.all(np.abs(got - want) <= 1e-6 * np.maximum(1, np.abs(want))), how


def refused(ctx, inputs, device="cpu", **attrs):
    b = fused.Builder()
    ids = [b.null(f"x{k}", v) for k, v in enumerate(inputs)]
    y = b.add("FusedElementwise", ids, "heddle", **attrs)
    with pytest.raises(capi.HeddleError) as e:
        fused.run(ctx, b, [y], {}, device)
    return str(e.value)


def test_refusals_name_node_and_position(ctx):
    x, row, whole = np.zeros((2, 3), np.float32), np.zeros(4, np.float32), np.zeros((2, 3), np.int32)
    for device in ("cpu", "sim:0"):
        text = refused(ctx, [x], device, expression="Relu(Add(x0, y))")
        assert "'n1'" in text and "character 14" in text and "no operator 'y'" in text
    assert "x1 is not used" in refused(ctx, [x, x], expression="Relu(x0)")
    assert "bound of Clip" in refused(ctx, [x, x], expression="Clip(x0, x1)")
    assert "broadcasts" in refused(ctx, [x, row], expression="Add(x0, x1)")
    assert "float32" in refused(ctx, [whole], expression="Relu(x0)")
    assert "expression" in refused(ctx, [x])
    assert "no attribute 'alpha'" in refused(ctx, [x], expression="Relu(x0)", alpha=1.0)
    assert "expected 1 to 8" in refused(ctx, [x] * 9, expression="x0")
    b = fused.Builder()
    with pytest.raises(capi.HeddleError, match="not known"):  # ONNX's own Gelu is of opset 20
        fused.run(ctx, b, [b.add("Gelu", [b.null("x", x)])], {}, "cpu")
    with pytest.raises(capi.HeddleError, match="approximate 'erf'"):
        b = fused.Builder()
        fused.run(ctx, b, [b.add("Gelu", [b.null("x", x)], "heddle", approximate="erf")], {}, "cpu")


@pytest.mark.parametrize("word,steps", [("1", 1), ("on", 1), ("0", 4), ("off", 4), ("no", 4)])
def test_the_setting(word, steps):
    c = capi.Context(cpu__fuse=word)
    b, (*_, y) = silu()
    try:
        _, plan = fused.run(c, b, [y], {"x": np.ones((3, 40), np.float32)}, "cpu")
        assert len(steps_of(plan)) == steps
    finally:
        c.close()


def test_the_setting_is_checked():
    for value in ("2", "ja", ""):
        c = capi.Context(cpu__fuse=value, log="off")
        try:
            b, (*_, y) = silu()
            with pytest.raises(capi.HeddleError, match="setting fuse"):
                fused.run(c, b, [y], {}, "cpu")
        finally:
            c.close()


def test_the_tool_shows_it(tmp_path):
    b, (*_, y) = silu()
    b.params.clear()
    path = tmp_path / "silu.json"
    path.write_text(b.text([y]))
    text = tool_case.good("plan", path, "--device", "cpu")
    assert text.count("; one step with n3+n4+n5+n6") == 4 and "steps     1 of operators" in text
    plan = json.loads(tool_case.good("plan", path, "--device", "cpu", "--json"))
    assert [r["label"] for r in plan["regions"]] == ["n3+n4+n5+n6"]
    plan = json.loads(tool_case.good("plan", path, "--device", "cpu", "--json", HEDDLE_CPU_FUSE="0"))
    assert [r["label"] for r in plan["regions"]] == ["n3", "n4", "n5", "n6"]
    debug = tmp_path / "debug"
    done = subprocess.run([str(tool_case.TOOL), "run", str(path), "--device", "cpu", "--random", "--debug-dir",
                           str(debug)], capture_output=True, text=True, env=tool_case.environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    assert len([n for n in os.listdir(debug) if n.endswith(".npy")]) >= 4
