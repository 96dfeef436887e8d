"""What scripts use of `tvm.testing`: comparison of results, and what runs where, for pytest."""
from __future__ import annotations

import sys
from typing import Any, Callable, NoReturn

import numpy as np

__all__ = ["assert_allclose", "device_enabled", "enabled_targets", "main"]

_TARGETS = ("llvm", "cuda", "opencl", "metal", "rocm", "vulkan")
_REQUIRES = {f"requires_{name}": name for name in _TARGETS}


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """AssertionError unless |actual - desired| <= atol + rtol * |desired| everywhere, with shapes equal: a number does not
    stand for an array of it, as it does in numpy. NDArrays, numpy arrays and sequences."""
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    if actual.shape != desired.shape:
        raise AssertionError(f"shapes differ: {actual.shape} and {desired.shape}")
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def device_enabled(target: Any) -> bool:
    """Whether code for a target such as "llvm" or "cuda -arch=sm_80" runs here, as heddle.runtime.enabled."""
    from .runtime import enabled
    return enabled(str(target))


def enabled_targets() -> list[tuple[str, Any]]:
    """(target, device 0 of it) of all that run here, the host's first."""
    from .runtime import device
    return [(name, device(name, 0)) for name in _TARGETS if device_enabled(name)]


def main() -> NoReturn:
    """Runs the tests of the script with pytest, and ends the program."""
    import pytest
    sys.exit(pytest.main([sys.argv[0], *sys.argv[1:]]))


def __getattr__(name: str) -> Callable[..., Any]:
    """requires_llvm, requires_cuda, ...: marks for pytest, that skip a test where such code does not run;
    requires_gpu: where there is no other device than the host; requires_rpc skips: there are no remote sessions;
    uses_gpu skips nothing."""
    if name in _REQUIRES:
        lacking = not device_enabled(_REQUIRES[name])
    elif name == "requires_gpu":
        lacking = len(enabled_targets()) < 2
    elif name in ("requires_rpc", "uses_gpu"):
        lacking = name == "requires_rpc"
    else:
        raise AttributeError(f"module 'heddle.testing' has no attribute '{name}'")
    import pytest

    def decorate(*tests: Callable[..., Any]) -> Any:
        mark = pytest.mark.skipif(lacking, reason=f"{name}: it is not there")
        return mark(tests[0]) if tests else [mark]
    return decorate
