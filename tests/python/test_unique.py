"""Unique of many slices, against numpy: sorted and not, along an axis, NaN and both zeros, with and without its results.

labels: ctypes
"""
import capi
import numpy as np
import pytest
from test_rare_operators import run


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off")
    yield context
    context.close()


def in_order_of_first(x, axis):
    """numpy's results, by the first place of each value."""
    y, index, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    order = np.argsort(index)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return np.take(y, order, axis=axis or 0), index[order], place[inverse.reshape(-1)], counts[order]


def unique(ctx, x, **attrs):
    return run(ctx, [("Unique", attrs, ["x"], ["y", "index", "inverse", "counts"])], {"x": x},
               ["y", "index", "inverse", "counts"])


@pytest.mark.parametrize("n", [1, 2, 5_000, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_elements(ctx, n, dtype):
    x = np.random.default_rng(n).integers(-n // 3 - 1, n // 3 + 1, n).astype(dtype)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, one in zip(unique(ctx, x), want):
        np.testing.assert_array_equal(got, one.reshape(-1))
    for got, one in zip(unique(ctx, x, sorted=0), in_order_of_first(x, None)):
        np.testing.assert_array_equal(got, one)


@pytest.mark.parametrize("axis", [0, 1])
def test_slices(ctx, axis):
    x = np.random.default_rng(axis).integers(0, 9, (6_000, 4) if axis == 0 else (4, 6_000)).astype(np.int32)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for got, one in zip(unique(ctx, x, axis=axis), (want[0], want[1], want[2].reshape(-1), want[3])):
        np.testing.assert_array_equal(got, one)
    for got, one in zip(unique(ctx, x, axis=axis, sorted=0), in_order_of_first(x, axis)):
        np.testing.assert_array_equal(got, one)


def test_nan_and_zeros(ctx):
    x = np.tile(np.array([np.nan, 0.0, -0.0, 3, -np.inf, np.nan], np.float32), 1_000)
    y, index, inverse, counts = unique(ctx, x)
    np.testing.assert_array_equal(y, np.array([-np.inf, 0, 3, np.nan], np.float32))
    np.testing.assert_array_equal(index, [4, 1, 3, 0])
    np.testing.assert_array_equal(inverse[:6], [3, 1, 1, 2, 0, 3])
    np.testing.assert_array_equal(counts, [1_000, 2_000, 1_000, 2_000])


def test_nothing(ctx):
    for got in unique(ctx, np.zeros((0,), np.float32)):
        assert got.shape == (0,)
    got = unique(ctx, np.zeros((10_000, 0), np.float32), axis=0)
    assert [x.shape for x in got] == [(1, 0), (1,), (10_000,), (1,)]


def test_what_would_plan_for_long_is_refused(ctx):
    with pytest.raises(capi.HeddleError, match="too large to be sorted in a plan"):
        unique(ctx, np.zeros((1 << 26, 0), np.float32), axis=0)
