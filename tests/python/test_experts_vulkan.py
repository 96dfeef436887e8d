"""The tests of test_experts.py on lavapipe; what is malformed fails before there is a device.
timeout: 600
labels: slow ctypes
"""
import pytest

import lavapipe

lavapipe.in_process()

import capi  # noqa: E402
from test_experts import test_activations, test_choices, test_halves, test_many_rows, test_no_rows, test_packed_weights  # noqa: E402, F401


@pytest.fixture(scope="module")
def ctx():
    lavapipe.need()
    c = capi.Context()
    c.place = "vulkan:0"
    yield c
    c.close()
