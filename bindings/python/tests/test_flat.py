"""References and memory stay as they are over more than 100,000 calls with errors among them: 5,000 rounds of 38 calls, of
which 16 fail. Fewer under a sanitizer, where only references are counted.

timeout: 600
"""
import os

from flat import rounds_leave_nothing


def test_calls_leave_nothing_behind():
    rounds_leave_nothing(300 if os.environ.get("HEDDLE_SANITIZE") else 5000, 2 << 20)
