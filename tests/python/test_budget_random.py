"""Random graphs over several devices with limits that their plans as listed are over: what fits keeps its limits, passes
the oracle and computes the same, what does not is refused with the right numbers and with rules that work.
labels: ctypes slow timeout: 900"""
import json
import re
import shlex

import capi
import pytest
import random_graphs
from oracle import oracle
from reference import io, placements
from tool_case import good, heddle

REFUSAL = re.compile(r"(\S+) needs (\d+) bytes, (\d+) more than its limit of (\d+) \(from (\S+)\)")
DEVICES = ["sim:0", "sim:1", "cpu:0"]


def counted(plan):
    return {d["name"]: t["device_bytes"] + t["unified_bytes"]
            for d, t in zip(plan["devices"], plan["taken"]["devices"])}


@pytest.mark.parametrize("part, fullest", [(0.6, True), (0.93, False)], ids=["one tight", "all a little"])
def test_limits(tmp_path, part, fullest):
    fitted = refused = suggested = 0
    for seed in range(900, 914):
        graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(seed)
        placement = placements.placements(graph, seed, DEVICES)[seed % 4]
        devices = list(dict.fromkeys(placement.values()))
        io.write_graph(tmp_path / "g.json", graph)
        io.write_params(tmp_path / "g.params", params)
        words = ["plan", tmp_path / "g.json", "--params", tmp_path / "g.params", "--device", ",".join(devices), "--json"]
        placed = [w for node, device in placement.items() for w in ("--place", f"{node}={device}")]
        free = counted(json.loads(good(*words, *placed)))
        limits = {d: max(1, int(part * b)) for d, b in free.items()
                  if b > 0 and (not fullest or b == max(free.values()))}
        memory = ",".join(f"{d}={b}" for d, b in limits.items())
        done = heddle(*words, *placed, "--memory", memory)
        if done.status != 0:
            refused += 1
            found = REFUSAL.findall(done.err)
            assert done.status == 1 and found, done.err
            for device, needs, more, limit, origin in found:
                assert int(needs) - int(more) == int(limit) == limits[device] and origin == "call", done.err
            if "it fits with " in done.err:
                suggested += 1
                rules = shlex.split(done.err.split("it fits with ")[1])
                plan = json.loads(good(*words, *placed, *rules, "--memory", memory))
                placement = {**placement, **dict(r.split("=") for r in rules[1::2])}
            else:
                continue
        else:
            plan = json.loads(done.out)
            fitted += plan["taken"]["fitted"] is not None
        assert all(b <= limits.get(d, b) for d, b in counted(plan).items())
        assert oracle.first_fault(plan) is None
        ctx = capi.Context(limit__memory=memory, sim__delay_us=20)
        outputs = random_graphs.run_case(ctx, graph, params, inputs, placement, runs=2)
        ctx.close()
        random_graphs.check(f"seed {seed}", graph, outputs, values, bounds, numpy32)
    print(f"\n{part}: {fitted} fitted, {refused} refused, {suggested} of them with rules that work")
    assert fitted > 0 and suggested > 3


def test_a_call_of_the_api(tmp_path):
    """The option of a model is stronger than the setting, and refuses with a message."""
    graph, params, inputs, values, bounds, numpy32 = random_graphs.expected(903)
    g, p = capi.Graph(json.dumps(graph)), capi.Params(io.params_blob(params))
    ctx = capi.Context(limit__memory="sim:0=1")
    m = capi.Model(ctx, g, p, "sim:0", memory="off")
    ex = capi.Executor(m)
    for name, value in inputs.items():
        ex.set_input(name, value)
    ex.run()
    random_graphs.check("seed 903", graph, ex.outputs(), values, bounds, numpy32)
    ex.close()
    m.close()
    m = capi.Model(ctx, g, p, "sim:0")
    with pytest.raises(capi.HeddleError, match=r"sim:0 needs \d+ bytes, \d+ more than its limit of 1 "):
        capi.Executor(m)
    m.close()
    with pytest.raises(capi.HeddleError, match="expected DEVICE=BYTES"):
        capi.Model(ctx, g, p, "sim:0", memory="sim:0")
    p.close()
    g.close()
    ctx.close()
