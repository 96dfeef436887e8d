"""References and memory stay as they are over thousands of calls with errors among them.

timeout: 300
"""
from flat import rounds_leave_nothing


def test_calls_leave_nothing_behind():
    rounds_leave_nothing(500, 2 << 20)
