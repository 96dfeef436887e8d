"""The one conversion of float16 (plugins/common/float16.h) against numpy's, by the two functions of it that libheddle_tvm
exports: all 65,536 halves both ways, and the floats around each tie.

timeout: 120
labels: ctypes
"""
import ctypes as c
import os

import numpy as np

LIB = c.CDLL(os.path.join(os.environ["HEDDLE_BUILD"], "lib", "libheddle_tvm.so"))
WIDEN, NARROW = LIB.__gnu_h2f_ieee, LIB.__gnu_f2h_ieee
WIDEN.argtypes, WIDEN.restype = [c.c_uint16], c.c_float
NARROW.argtypes, NARROW.restype = [c.c_float], c.c_uint16
HALVES = np.arange(1 << 16, dtype=np.uint16)


def narrowed(floats):
    return np.array([NARROW(x) for x in floats], np.uint16)


def check(floats):
    with np.errstate(over="ignore", invalid="ignore"):
        expected = floats.astype(np.float16).view(np.uint16)
    got = narrowed(floats)
    is_nan = np.isnan(floats)
    np.testing.assert_array_equal(got[~is_nan], expected[~is_nan])
    assert np.isnan(got[is_nan].view(np.float16)).all()
    np.testing.assert_array_equal(got[is_nan] >> 15, expected[is_nan] >> 15)


def test_each_half_both_ways():
    expected = HALVES.view(np.float16).astype(np.float32)
    got = np.array([WIDEN(int(h)) for h in HALVES], np.float32)
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(got[~is_nan].view(np.uint32), expected[~is_nan].view(np.uint32))
    assert np.isnan(got[is_nan]).all()
    check(expected)


def test_floats_around_each_tie():
    finite = HALVES[(HALVES & 0x7FFF) < 0x7C00].view(np.float16).astype(np.float64)
    finite.sort()
    ties = ((finite[:-1] + finite[1:]) / 2).astype(np.float32)
    for floats in (ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))):
        check(floats)


def test_floats_of_all_sizes():
    rng = np.random.default_rng(1)
    check(rng.integers(0, 1 << 32, 200000, dtype=np.uint32).view(np.float32))
    largest = np.array([65504, 65519.996, 65520, 65536, 3.4e38, np.inf, 0, 1e-45, 2**-25, 2**-24, 2**-14], np.float32)
    check(np.concatenate([largest, -largest]))
