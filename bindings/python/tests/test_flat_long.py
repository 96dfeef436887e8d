"""References and memory over 100,000 calls with errors among them: 5,000 rounds of more than 20.

labels: slow soak
timeout: 900
"""
from flat import rounds_leave_nothing


def test_calls_leave_nothing_behind():
    print(rounds_leave_nothing(5000, 2 << 20))
