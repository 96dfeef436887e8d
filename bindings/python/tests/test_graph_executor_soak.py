"""Graph executors: references and memory stay as they were over 100,000 calls with errors mixed in.
labels: soak
timeout: 900
"""
import pytest

from graph_calls import stays_flat
from tvm_models import legacy


@pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
def test_flat(tmp_path):
    grown = stays_flat(tmp_path, 3400)
    print(f"grown by {grown} bytes")
    assert grown < 1_500_000
