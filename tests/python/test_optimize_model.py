"""Optimised models as their users see them: which wish wins, what is shown, values between nodes, parameters that are set
late, placement, wrong wishes. labels: ctypes
timeout: 300
"""
import json
import os

import capi
import numpy as np
import pytest
import tool_case
from optimize_case import Net, Run, check, close, layer_norm
from reference import io


@pytest.fixture(scope="module")
def ctx():
    c = capi.Context()
    yield c
    c.close()


def conv_net(**more):
    n = Net(**more)
    y = n.op("Conv", n.x("x", 1, 3, 6, 6), n.weights("w", 4, 3, 3, 3), name="conv")
    y = n.op("BatchNormalization", y, *[n.weights(k, 4, low=0.5, high=2) for k in ("scale", "bias", "mean", "var")],
             name="bn")
    return n, n.op("Relu", y, name="relu")


# ---- which wish wins


def is_optimised(run):
    return "BatchNormalization" not in run.ops()


def test_the_call_then_the_setting_then_the_graph():
    plain, y = conv_net()
    asks, _ = conv_net(wish="on")
    values = plain.values()
    for net, setting, call, want in ((plain, None, None, False), (asks, None, None, True), (plain, "on", None, True),
                                     (asks, "off", None, False), (plain, "off", "on", True), (asks, None, "off", False),
                                     (plain, None, "conv", True), (plain, "on", "cse,fold", False),
                                     (plain, None, "-conv", False), (plain, None, "on,-gemm", True),
                                     (plain, "1", None, True), (asks, "0", None, False), (asks, "no", None, False),
                                     (conv_net(wish=True)[0], None, None, True),
                                     (conv_net(wish=False)[0], None, None, False)):
        c = capi.Context(**({"optimize": setting} if setting else {}))
        assert is_optimised(Run(c, net, [y], values, call)) == want, (setting, call, net.wish)
        c.close()


def test_a_name_that_is_none(ctx):
    net, y = conv_net()
    with pytest.raises(capi.HeddleError, match="no optimisation 'conf'; there are on, off, dead, identity, cse, quantized, fold"):
        Run(ctx, net, [y], net.values(), "gemm,conf")
    for wish in ("", ",", "-", "On"):
        with pytest.raises(capi.HeddleError, match="no optimisation"):
            Run(ctx, net, [y], net.values(), wish)
    assert is_optimised(Run(ctx, net, [y], net.values(), "gemm, conv"))


def test_what_is_written_is_read():
    net, y = conv_net(wish="on")
    g = capi.Graph(net.text([y]))
    p, size = capi.c.c_void_p(), capi.c.c_size_t()
    capi.call("heddle_graph_text", g.p, capi.c.byref(p), capi.c.byref(size))
    assert json.loads(capi.c.string_at(p, size.value))["heddle"]["optimize"] == "on"
    capi.LIB.heddle_free(p)
    g.close()


# ---- values between nodes, and parameters that are set late


def test_values_between_nodes_are_there_to_run_to(ctx):
    net, y = conv_net()
    values = net.values()
    want = net.reference(["conv", "bn", y], values)
    r = Run(ctx, net, [y], values, after=lambda e: [e.run_to("conv"), e.run_to("bn"), e.outputs()[0]])
    assert is_optimised(r)
    for got, w in zip(r.more, want):
        close(got, w)


def test_kept_values_stay(ctx):
    net, y = conv_net()
    values = net.values()
    r = Run(ctx, net, [y], values, keep=["bn"])
    assert r.ops() == ["Conv", "Relu"]
    close(r.outputs[1], net.reference(["bn"], values)[0])


def test_a_parameter_that_is_set_late(ctx):
    """The weights are in the folded constant; another value for them is another program, of the graph as it is written."""
    net, y = conv_net()
    values = net.values()

    def after(e):
        seen = []
        other = {**net.params, "w": net.params["w"] * 2}
        e.set_input("w", other["w"])
        e.run()
        seen.append((e.outputs()[0], other, e.explain_json()))
        other = {**other, "mean": net.params["mean"] + 1}
        p = capi.Params(io.params_blob(other))
        capi.call("heddle_executor_load_params", e.p, p.p)
        p.close()
        e.run()
        seen.append((e.outputs()[0], other, e.explain_json()))
        return seen

    r = Run(ctx, net, [y], values, after=after)
    assert is_optimised(r)
    for got, params, plan in r.more:
        fresh, _ = conv_net()
        fresh.params = params
        close(got, fresh.reference([y], values)[0])
        assert plan["optimizations"] == []


def test_a_parameter_that_no_optimisation_read(ctx):
    net = Net()
    y = net.op("Add", net.op("MatMul", net.x("x", 3, 4), net.weights("w", 4, 5)), net.weights("b", 5), name="y")
    values = net.values()

    def after(e):
        e.set_input("w", net.params["w"] + 1)
        e.run()
        return e.outputs()[0], e.explain_json()

    got, plan = Run(ctx, net, [y], values, after=after).more
    close(got, values["x"].astype(np.float64) @ (net.params["w"].astype(np.float64) + 1) + net.params["b"])
    assert [c["pass"] for c in plan["optimizations"]] == ["gemm"]


def test_inputs_keep_their_numbers(ctx):
    """Constants that are made are no inputs of the executor's."""
    net, y = conv_net()
    g, p = capi.Graph(net.text([y])), capi.Params(io.params_blob(net.params))
    counts = []
    for wish in ("on", "off"):
        m = capi.Model(ctx, g, p, "cpu", optimize=wish)
        e = capi.Executor(m)
        capi.LIB.heddle_executor_input_count.restype = capi.c.c_uint32
        counts.append([capi.LIB.heddle_executor_input_count(e.p)] +
                      [capi.LIB.heddle_executor_input_index(e.p, k.encode()) for k in net.nulls])
        assert capi.LIB.heddle_executor_output_index(e.p, y.encode()) == 0
        e.close(), m.close()
    assert counts[0] == counts[1] == [6, 0, 1, 2, 3, 4, 5]
    g.close(), p.close()


# ---- placement


def test_rules_hold_and_part_what_would_be_joined(ctx):
    net, y = conv_net()
    r, _ = check(ctx, net, [y], devices="cpu,sim:0", place=["*=sim:0"])
    assert r.ops() == ["Conv", "Relu"] and {n["cause"] for n in r.plan["nodes"]} == {"rule *=sim:0"}
    r, _ = check(ctx, net, [y], devices="cpu,sim:0", place=["conv=sim:0"])
    assert r.ops() == ["BatchNormalization", "Conv", "Relu"]
    net.device("bn", "sim:0")
    r, _ = check(ctx, net, [y], devices="cpu,sim:0")
    assert r.ops() == ["BatchNormalization", "Conv", "Relu"]
    net.device("conv", "sim:0")
    r, _ = check(ctx, net, [y], devices="cpu,sim:0")
    assert r.ops() == ["Conv", "Relu"]
    assert [d["nodes"] for d in r.plan["devices"]] == [1, 1]


def test_what_cannot_be_planned_optimised_is_planned_as_it_is_written(tmp_path):
    """A last axis that is open is taken for that of the scale; where it turns out to be 1, the scale widens the result."""
    net = Net()
    y = layer_norm(net, net.x("x", "rows", "columns"), [24], "pow")
    (tmp_path / "net.json").write_text(net.text([y]))
    (tmp_path / "net.params").write_bytes(io.params_blob(net.params))
    for columns in (24, 1):
        value = net.values(columns=columns)["x"]
        np.save(tmp_path / "x.npy", value)
        r = tool_case.heddle("run", tmp_path / "net.json", "--device", "cpu", "--optimize", "on", "--input",
                             f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
        assert r.status == 0 and ("not optimised: " in r.err) == (columns == 1), r
        got = np.load(tmp_path / "output_0.npy")
        assert got.shape == (3, 24)
        close(got, net.reference([y], {"x": value})[0])


# ---- the tool


def test_plan_lists_what_was_done(tmp_path):
    net, y = conv_net()
    (tmp_path / "net.json").write_text(net.text([y]))
    (tmp_path / "net.params").write_bytes(io.params_blob(net.params))
    path = tmp_path / "net.json"
    shown = tool_case.good("plan", path, "--device", "cpu", "--optimize", "on")
    assert "optimizations (1)\n  conv: conv, bn: one Conv, as 'bn': BatchNormalization is in weights and bias\n" in shown
    assert "optimizations" not in tool_case.good("plan", path, "--device", "cpu")
    for wish in ("off", "fold"):
        assert "optimizations" not in tool_case.good("plan", path, "--device", "cpu", "--optimize", wish)
    plan = json.loads(tool_case.good("plan", path, "--json", "--device", "cpu", HEDDLE_OPTIMIZE="conv"))
    assert plan["optimizations"] == [{"pass": "conv", "nodes": ["conv", "bn"],
                                      "change": "one Conv, as 'bn': BatchNormalization is in weights and bias"}]
    r = tool_case.heddle("plan", path, "--device", "cpu", "--optimize", "on", "--set", "log=info")
    assert r.status == 0 and "conv: conv, bn: one Conv" in r.err
    assert "there is no optimisation 'x'" in tool_case.failing(1, "run", path, "--random", "--optimize", "x")
    words = ("run", path, "--random", "--device", "cpu", "--output-dir")
    values = []
    for wish in ("on", "off"):
        tool_case.good(*words, tmp_path / wish, "--optimize", wish)
        values.append(np.load(tmp_path / wish / "output_0.npy"))
    assert np.allclose(*values, rtol=1e-4, atol=1e-5)
    assert json.loads(tool_case.good("bench", path, "--optimize", "on", "--repeat", "1", "--number", "1", "--json"))


def test_without_the_device_that_folds(tmp_path):
    net = Net()
    y = net.op("Add", net.x("x", 3), net.op("Exp", net.weights("w", 3)), name="y")
    (tmp_path / "net.json").write_text(net.text([y]))
    (tmp_path / "net.params").write_bytes(io.params_blob(net.params))
    plugin = tool_case.BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_sim.so"
    words = ("plan", tmp_path / "net.json", "--device", "sim:0", "--optimize", "on")
    shown = tool_case.heddle(*words, "--set", "log=info", HEDDLE_PLUGINS=str(plugin))
    assert shown.status == 0 and "Exp" in shown.out and "fold: not computed" in shown.err, shown
    assert "fold: exp0: computed once" in tool_case.good(*words)


def test_debug_folder_has_the_nodes_of_the_file(tmp_path):
    net, y = conv_net()
    (tmp_path / "net.json").write_text(net.text([y]))
    (tmp_path / "net.params").write_bytes(io.params_blob(net.params))
    tool_case.good("run", tmp_path / "net.json", "--random", "--device", "cpu", "--optimize", "on", "--debug-dir",
                   tmp_path / "debug")
    assert {"conv_0.npy", "bn_0.npy", "relu_0.npy"} <= set(os.listdir(tmp_path / "debug"))


def test_same_plan_each_time(tmp_path):
    net, y = conv_net()
    (tmp_path / "net.json").write_text(net.text([y]))
    (tmp_path / "net.params").write_bytes(io.params_blob(net.params))
    plans = {tool_case.good("plan", tmp_path / "net.json", "--json", "--device", "cpu", "--optimize", "on")
             for _ in range(3)}
    assert len(plans) == 1
