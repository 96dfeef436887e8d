"""References and memory over some thousand calls of models with errors among them; all of the hundred thousand:
test_flat_calls_long.py."""
from flat_calls import calls_leave_nothing


def test_calls_leave_nothing_behind(tmp_path):
    calls_leave_nothing(tmp_path, 15_000, 2 << 20)
