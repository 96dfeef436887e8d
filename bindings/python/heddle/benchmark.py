"""What a measurement gives: times of repeated runs, and what is usually asked of them."""

from __future__ import annotations

import statistics
from typing import Sequence


class BenchmarkResult:
    """Times of a measurement in seconds: `results` has one for each repeat, in order, each the mean of its calls.

    `mean`, `median`, `std` (of the population), `min` and `max` are floats in seconds. str() is a table in milliseconds.
    ValueError where there is no result.
    """

    def __init__(self, results: Sequence[float]):
        self.results = tuple(float(r) for r in results)
        if not self.results:
            raise ValueError("a measurement without results")
        self.mean = statistics.fmean(self.results)
        self.median = statistics.median(self.results)
        self.std = statistics.pstdev(self.results)
        self.min = min(self.results)
        self.max = max(self.results)

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name)}" for name in ("min", "mean", "median", "max", "std", "results"))
        return f"BenchmarkResult({', '.join(parts)})"

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{f'{name} (ms)':^12}" for name in names)
        row = " ".join(f"{getattr(self, name) * 1e3:^12.4f}" for name in names)
        return f"Execution time summary:\n{head} \n{row} "
