"""References and memory over 100,000 calls of models with errors among them.

labels: slow soak
timeout: 900
"""
from flat_calls import calls_leave_nothing


def test_calls_leave_nothing_behind(tmp_path):
    print(calls_leave_nothing(tmp_path, 100_000, 1 << 20))
