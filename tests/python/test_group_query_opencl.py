"""The tests of test_group_query.py on PoCL. What its last ones ask is of cpu alone.
timeout: 600
labels: slow ctypes
"""
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from test_group_query import (test_caches_that_are_no_results, test_forms, test_halves, test_many_keys_and_heads, test_quantised_caches,  # noqa: E402, F401
                              test_sinks_biases_norms_and_positions, test_what_is_behind_is_zero)


@pytest.fixture(scope="module")
def ctx():
    pocl.need()
    c = capi.Context()
    c.place = "opencl:0"
    yield c
    c.close()
