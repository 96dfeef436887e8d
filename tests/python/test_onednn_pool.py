"""Maxima of oneDNN's pools over windows that hold no finite number: minus infinity, and not the least finite number at which
oneDNN begins; in every layout that pools have, and cut into parts.

labels: ctypes
"""
import capi
import numpy as np
import pytest
from test_rare_operators import run

LEAST = np.finfo(np.float32).min
POOLS = [("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
         ("MaxPool", {"kernel_shape": [2, 2], "strides": [1, 1], "dilations": [2, 2]}),
         ("MaxPool", {"kernel_shape": [1, 3], "strides": [1, 2], "ceil_mode": 1}),
         ("GlobalMaxPool", {})]


def image(shape, seed):
    """Whole regions of minus infinity, some with a finite number in them, and windows of the least finite number."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    for at in np.ndindex(shape[:2]):
        kind = rng.integers(5)
        if kind < 3:
            x[at][tuple(slice(int(rng.integers(d)), None) for d in shape[2:])] = [-np.inf, LEAST, -np.inf][kind]
        elif kind == 3:
            x[at] = -np.inf
        if kind == 2:
            x[at].reshape(-1)[rng.integers(x[at].size)] = LEAST
    return x


@pytest.fixture(scope="module")
def contexts():
    made = [capi.Context(config="off", cpu__onednn="always"), capi.Context(config="off", cpu__onednn="off"),
            capi.Context(config="off", cpu__onednn="always", precision="fast")]
    yield made
    for context in made:
        context.close()


@pytest.mark.parametrize("op,attrs", POOLS)
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 20, 12, 11), (3, 33, 9, 9), (1, 64, 80, 80)])
def test_alone(contexts, op, attrs, shape):
    x = image(shape, sum(shape))
    always, off, _ = (run(c, [(op, attrs, ["x"], ["y"])], {"x": x}, ["y"])[0] for c in contexts)
    assert np.isneginf(off).any()
    np.testing.assert_array_equal(always, off)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(contexts, rank):
    x = image((2, 20) + (9,) * rank, rank)
    attrs = {"kernel_shape": [2] * rank, "strides": [2] * rank}
    always, off, _ = (run(c, [("MaxPool", attrs, ["x"], ["y"])], {"x": x}, ["y"])[0] for c in contexts)
    assert np.isneginf(off).any()
    np.testing.assert_array_equal(always, off)


@pytest.mark.parametrize("channels", [16, 20, 48])
def test_behind_a_convolution(contexts, channels):
    """In the layout of blocks that the convolution leaves; with less precision, in bfloat16 where the CPU has it."""
    x = image((1, channels, 40, 40), channels)
    w = np.ones((channels, 1, 1, 1), np.float32)
    nodes = [("Conv", {"group": channels, "kernel_shape": [1, 1]}, ["x", "w"], ["t"]),
             ("MaxPool", POOLS[0][1], ["t"], ["y"])]
    always, off, fast = (run(c, nodes, {"x": x, "w": w}, ["y"])[0] for c in contexts)
    assert np.isneginf(off).any()
    np.testing.assert_array_equal(always, off)
    np.testing.assert_array_equal(np.isneginf(fast) | (fast <= -3.3e38), np.isneginf(off) | (off == LEAST))
    np.testing.assert_array_equal(np.isneginf(fast)[off == -np.inf], True)


def test_a_nan_among_infinities(contexts):
    x = np.full((1, 16, 6, 6), -np.inf, np.float32)
    x[0, 3, 0, 1] = np.nan
    y = run(contexts[0], [("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, ["x"], ["y"])], {"x": x}, ["y"])[0]
    assert np.isnan(y[0, 3, 0, 0]) and np.isneginf(y).sum() == y.size - 1
