"""What scripts use of `tvm.testing` to compare results."""
from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_allclose"]


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """AssertionError unless |actual - desired| <= atol + rtol * |desired| everywhere, with shapes equal: a number does not
    stand for an array of it, as it does in numpy. NDArrays, numpy arrays and sequences."""
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    if actual.shape != desired.shape:
        raise AssertionError(f"shapes differ: {actual.shape} and {desired.shape}")
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)
