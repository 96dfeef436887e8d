"""References and memory stay as they were over some thousand calls with errors mixed in.
timeout: 300
"""
import os

import pytest

import calls_libraries as libraries
from functions_calls import stays_flat


@pytest.mark.skipif(libraries.legacy.compiler() is None, reason="there is no C compiler")
def test_flat(tmp_path):
    grown = stays_flat(tmp_path, 300)
    if not os.environ.get("HEDDLE_SANITIZE"):  # whose quarantine holds what was freed
        assert grown < 1_500_000
