"""FusedElementwise, Gelu and fused chains on a plugin's devices, against numpy in float64: the tests of
test_fused_opencl.py, test_fused_vulkan.py and test_fused_cuda.py."""

import capi
import fused
import numpy as np


def case(seed):
    tree, values = fused.random_case(seed)
    return tree, values, {f"x{k}": v for k, v in enumerate(values)}, tree.numbers([v.astype(np.float64) for v in values])


def check_expressions(ctx, plugin, seeds=20):
    for seed in range(2000, 2000 + seeds):
        tree, values, inputs, want = case(seed)
        b, head = fused.as_node(tree, values)
        (got,), _ = fused.run(ctx, b, [head], inputs, f"{plugin}:0")
        fused.close(f"seed {seed}: {tree.text()}", got, want)


def check_chains(ctx, plugin, seeds=20):
    fewer = 0
    for seed in range(2100, 2100 + seeds):
        tree, values, inputs, want = case(seed)
        b, head = fused.as_nodes(tree, values)
        (got,), plan = fused.run(ctx, b, [head], inputs, f"{plugin}:1", runs=2)
        fused.close(f"seed {seed}: {tree.text()}", got, want)
        fewer += any(len(r["nodes"]) > 1 for r in plan["regions"])
    assert fewer > seeds // 2


def check_switch_and_mixed_devices(ctx, plugin, seeds=4):
    apart = capi.Context(**{f"{plugin}__fuse": 0, "cpu__fuse": 0})
    device = f"{plugin}:0"
    try:
        for seed in range(2200, 2200 + seeds):
            tree, values, inputs, want = case(seed)
            b, head = fused.as_nodes(tree, values)
            (got,), plan = fused.run(apart, b, [head], inputs, device)
            fused.close(f"seed {seed} apart", got, want)
            assert all(len(r["nodes"]) == 1 for r in plan["regions"])
            for i, n in enumerate(x for x in b.nodes if x["op"] != "null"):
                n["device"] = ("cpu", device, device)[i // 2 % 3]
            (got,), _ = fused.run(ctx, b, [head], inputs, f"cpu,{device}")
            fused.close(f"seed {seed} mixed", got, want)
    finally:
        apart.close()


def check_gelu(ctx, plugin):
    x = np.linspace(-9, 9, 501).astype(np.float32)
    for how in ("none", "tanh"):
        b = fused.Builder()
        y = b.add("Gelu", [b.null("x", x)], "heddle", approximate=how)
        (got,), _ = fused.run(ctx, b, [y], {"x": x}, f"{plugin}:0")
        fused.close(how, got, fused.gelu(x.astype(np.float64), how))


def check_programs_are_cached(plugin, folder):
    """A second context finds the generated programs in the folder, and adds none."""
    tree, values, inputs, want = case(2003)
    for _ in range(2):
        c = capi.Context(**{f"{plugin}__cache_dir": folder}, **({"opencl__cache_always": "1"} if plugin == "opencl" else {}))
        try:
            b, head = fused.as_node(tree, values)
            (got,), _ = fused.run(c, b, [head], inputs, f"{plugin}:0")
            fused.close("cached", got, want)
        finally:
            c.close()
        assert len(list(folder.iterdir())) == 1
