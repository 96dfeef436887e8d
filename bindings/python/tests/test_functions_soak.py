"""References and memory over 100,000 calls with errors mixed in.
labels: soak
timeout: 900
"""
from functions_calls import stays_flat


def test_flat_for_long(tmp_path):
    grown = stays_flat(tmp_path, 9000)  # of twelve calls each
    print(f"grown by {grown} bytes")
    assert grown < 1_500_000
