"""One mistake is one failure: what follows from it is folded under it, and costs little time.
timeout: 600"""

import json

import pytest
from check_case import BUILD, SANITIZED, tool

pytestmark = pytest.mark.skipif(SANITIZED, reason="what the broken plugins do, sanitizers stop in their own way")
FOLDER = BUILD / "tests" / "broken-plugins"


def report(name, *words):
    done = tool("check-plugin", FOLDER / f"libheddle_plugin_{name}.so", "--no-store", "--jobs", 2, "--json", *words)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name, cause, groups, limit", [
    ("signal_never", "fences/signal-empty", ["fences", "threads/signals", "leaks/signals"], 2),
    ("no_signal", "root/caps", ["root", "load", "fences", "leaks/signals"], 2),
    ("null_free", "memory/free-null", ["memory", "device/nulls", "threads/alloc"], 10),
    ("swapped_fill", "copy/fill", ["copy", "streams"], 10),
    ("wrong_last", "numerics/run:MatMul", ["numerics"], 10),
    ("leak_thread", "process/threads", ["process/thr*", "leaks/devices"], 10),
])
def test_one_cause(name, cause, groups, limit):
    r = report(name, *(word for group in groups for word in ("--only", group)), "--timeout", limit)
    causes = [c["name"] for c in r["cases"] if c["result"] == "fail" and "consequence_of" not in c]
    assert causes == [cause] and r["counts"]["failed"] == 1 and r["counts"]["consequences"] >= 1, r
    died = [c for c in r["cases"] if "signal 11" in c.get("reason", "")]
    assert name == "null_free" or died == [], died


def test_waits_once():
    """A fence that is never signalled: nineteen cases wait for one, and one of them for long."""
    r = report("signal_never", "--only", "fences", "--timeout", 4)
    long = [c["name"] for c in r["cases"] if c["result"] == "fail" and c["seconds"] > 3]
    assert r["counts"]["consequences"] >= 15 and long == ["fences/signal-empty"], (long, r["cases"])


def test_two_mistakes_stay_two():
    """Failures that have nothing to do with each other: neither is folded under the other."""
    r = report("bad_name", "--only", "load/name", "--only", "root/texts")
    assert r["counts"]["failed"] == 1 and r["counts"]["consequences"] == 0, r


def test_a_failure_behind_another_case():
    """Cases of operators share a process; what fails there and not alone says so, behind which case."""
    r = report("carries_over", "--only", "numerics/run", "--only", "numerics/constants", "--jobs", 1)
    failed = [c for c in r["cases"] if c["result"] == "fail"]
    assert [c["name"] for c in failed] == ["numerics/run:Add"], r
    assert failed[0]["reason"].startswith("behind numerics/run:Relu in one process, and not alone: Add"), failed
