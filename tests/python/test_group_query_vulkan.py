"""The tests of test_group_query.py on lavapipe, but for caches whose rows are so many that its driver would end the loops over
them (docs/vulkan.md). What the last ones ask is of cpu alone.
timeout: 600
labels: slow ctypes
"""
import pytest

import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
from test_group_query import (test_caches_that_are_no_results, test_forms, test_halves, test_quantised_caches,  # noqa: E402, F401
                              test_sinks_biases_norms_and_positions, test_what_is_behind_is_zero)


@pytest.fixture(scope="module")
def ctx():
    lavapipe.need()
    c = capi.Context()
    c.place = "vulkan:0"
    yield c
    c.close()
