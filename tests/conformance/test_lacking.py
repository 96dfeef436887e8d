"""A plugin that lacks a function or a table, by NULL or by a shorter struct_size: a verdict with one cause, and no case of
the kit dies of it.
timeout: 600"""

import json

import pytest
from check_case import BUILD, SANITIZED, tool

pytestmark = pytest.mark.skipif(SANITIZED, reason="what the broken plugins do, sanitizers stop in their own way")
FOLDER = BUILD / "tests" / "broken-plugins"
LACKING, SOUND = FOLDER / "libheddle_plugin_lacking.so", FOLDER / "libheddle_plugin_sound.so"
GROUPS = [word for group in ("load", "root", "events", "fences/*", "memory/view*", "memory/pinned", "health/lost", "leaks/events")
          for word in ("--only", group)]


@pytest.mark.parametrize("how, what, cause", [
    ("lacks", "fence", "root/caps"), ("cut", "fence.0", "load/sizes"), ("lacks", "event", "root/caps"),
    ("lacks", "memory.2", "root/caps"), ("lacks", "memory.4", "root/caps"), ("cut", "copy.3", "load/sizes"),
    ("lacks", "stream", "load/functions"), ("lacks", "op", "load/functions"),
    ("lacks", "device.5", None), ("lacks", "op.7", None)])
def test_lacks(how, what, cause):
    done = tool("check-plugin", LACKING, "--no-store", "--jobs", 2, "--timeout", 4, "--json", *GROUPS,
                "--set", f"lacking.of={SOUND}", "--set", f"lacking.{how}={what}")
    cases = json.loads(done.stdout)["cases"]
    assert [c for c in cases if "process died" in c.get("reason", "") or "process ended" in c.get("reason", "")] == []
    causes = [c["name"] for c in cases if c["result"] == "fail" and "consequence_of" not in c]
    assert causes == ([cause] if cause else []), [c for c in cases if c["result"] == "fail"]


@pytest.mark.parametrize("of, failed", [("sound", []), ("signal_hides_failure", ["fences/failed-signal"])])
def test_failed_work_without_waits(of, failed):
    """A device without fence.wait whose plugin has the hook fail_on_fill."""
    done = tool("check-plugin", LACKING, "--no-store", "--jobs", 2, "--timeout", 4, "--json", "--only", "fences/failed-*",
                "--only", "events/failure", "--set", f"lacking.of={FOLDER / f'libheddle_plugin_{of}.so'}",
                "--set", "lacking.lacks=fence.1")
    cases = {c["name"]: c["result"] for c in json.loads(done.stdout)["cases"] if "consequence_of" not in c}
    assert len(cases) >= 4 and [name for name in cases if cases[name] != "pass"] == failed, done.stdout
