"""FusedElementwise, Gelu and fused chains on PoCL, against numpy in float64. labels: slow serial
timeout: 900
"""
import os
import tempfile

import numpy as np
import pytest

CACHE = tempfile.TemporaryDirectory(prefix="heddle-pocl-")
os.environ["POCL_DEVICES"] = "pthread pthread"
os.environ["POCL_CACHE_DIR"] = CACHE.name

import capi  # noqa: E402
import fused  # noqa: E402


@pytest.fixture(scope="module")
def ctx():
    plugin = os.path.join(os.environ["HEDDLE_BUILD"], "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")
    if not os.path.exists(plugin):
        pytest.skip("the plugin opencl is not built")
    c = capi.Context()
    b = fused.Builder()
    x = np.zeros(3, np.float32)
    try:
        fused.run(c, b, [b.add("Relu", [b.null("x", x)])], {"x": x}, "opencl:0")
    except capi.HeddleError as e:
        c.close()
        if e.status in (5, 6):
            pytest.skip(f"no OpenCL device: {e}")
        raise
    yield c
    c.close()


def case(seed):
    tree, values = fused.random_case(seed)
    return tree, values, {f"x{k}": v for k, v in enumerate(values)}, tree.numbers([v.astype(np.float64) for v in values])


def test_expressions(ctx):
    for seed in range(2000, 2020):
        tree, values, inputs, want = case(seed)
        b, head = fused.as_node(tree, values)
        (got,), _ = fused.run(ctx, b, [head], inputs, "opencl:0")
        fused.close(f"seed {seed}: {tree.text()}", got, want)


def test_chains(ctx):
    fewer = 0
    for seed in range(2100, 2120):
        tree, values, inputs, want = case(seed)
        b, head = fused.as_nodes(tree, values)
        (got,), plan = fused.run(ctx, b, [head], inputs, "opencl:1", runs=2)
        fused.close(f"seed {seed}: {tree.text()}", got, want)
        fewer += any(len(r["nodes"]) > 1 for r in plan["regions"])
    assert fewer > 10


def test_the_switch_and_mixed_devices(ctx):
    apart = capi.Context(opencl__fuse=0, cpu__fuse=0)
    try:
        for seed in range(2200, 2204):
            tree, values, inputs, want = case(seed)
            b, head = fused.as_nodes(tree, values)
            (got,), plan = fused.run(apart, b, [head], inputs, "opencl:0")
            fused.close(f"seed {seed} apart", got, want)
            assert all(len(r["nodes"]) == 1 for r in plan["regions"])
            for i, n in enumerate(x for x in b.nodes if x["op"] != "null"):
                n["device"] = ("cpu", "opencl:0", "opencl:0")[i // 2 % 3]
            (got,), _ = fused.run(ctx, b, [head], inputs, "cpu,opencl:0")
            fused.close(f"seed {seed} mixed", got, want)
    finally:
        apart.close()


def test_gelu(ctx):
    x = np.linspace(-9, 9, 501).astype(np.float32)
    for how in ("none", "tanh"):
        b = fused.Builder()
        y = b.add("Gelu", [b.null("x", x)], "heddle", approximate=how)
        (got,), _ = fused.run(ctx, b, [y], {"x": x}, "opencl:0")
        fused.close(how, got, fused.gelu(x.astype(np.float64), how))


def test_programs_are_cached(ctx, tmp_path):
    """A second context finds the generated programs in the folder, and adds none."""
    tree, values, inputs, want = case(2003)
    for _ in range(2):
        c = capi.Context(opencl__cache_dir=tmp_path)
        try:
            b, head = fused.as_node(tree, values)
            (got,), _ = fused.run(c, b, [head], inputs, "opencl:0")
            fused.close("cached", got, want)
        finally:
            c.close()
        assert len(list(tmp_path.iterdir())) == 1
