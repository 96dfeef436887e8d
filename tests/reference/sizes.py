"""How much of a sweep runs: HEDDLE_TEST_SCALE, a number above 0 (1 where it is not said), times what is written in the test.
.ci/run makes it smaller for sanitizers, under which every seed takes several times as long."""

import math
import os

SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))
if not SCALE > 0:
    raise SystemExit(f"HEDDLE_TEST_SCALE is '{os.environ['HEDDLE_TEST_SCALE']}', which is not a number above 0")


def count(n):
    """n at this scale, and at least 1."""
    return max(1, math.ceil(n * SCALE))


def seeds(first, last):
    """range(first, last) at this scale; a scale above 1 goes on behind last."""
    return range(first, first + count(last - first))
