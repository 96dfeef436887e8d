"""What the tests of the conformance kit share: a run of `heddle check-plugin` with its cases read from the JUnit file, and
the broken plugins with what their sources say of themselves."""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from tool_case import BUILD, SOURCE, TOOL, environment  # noqa: E402

BROKEN = SOURCE / "tests" / "broken-plugins"
SANITIZED = os.environ.get("HEDDLE_SANITIZE", "") != ""
HELPERS = ("sound", "sound_fused", "vanishes", "lacking", "carries_over")  # not for one case of the kit
SECONDS = 900  # far over what any run takes


class Case:
    """One case of a report: state is pass, fail or skip; words why."""

    def __init__(self, state, words=""):
        self.state, self.words = state, words

    def __repr__(self):
        return f"{self.state}: {self.words}" if self.words else self.state


class Check:
    """One run of the kit."""

    def __init__(self, done, junit):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.cases = read_junit(junit) if junit.exists() else {}

    def state(self, state):
        return sorted(name for name, case in self.cases.items() if case.state == state)

    def __repr__(self):
        failed = "\n".join(f"{name}: {self.cases[name].words}" for name in self.state("fail"))
        return f"status {self.status}\n--- failed\n{failed}\n--- out\n{self.out}\n--- err\n{self.err}"


def read_junit(path):
    cases = {}
    for one in ElementTree.parse(path).getroot().iter("testcase"):
        name = one.get("name")
        state, words = "pass", ""
        for tag, meaning in (("failure", "fail"), ("error", "fail"), ("skipped", "skip")):
            found = one.find(tag)
            if found is not None:
                state, words = meaning, " ".join(filter(None, (found.get("message"), found.text)))
        assert name not in cases, f"{name} is twice in {path}"
        cases[name] = Case(state, words)
    return cases


def tool(*words, **env):
    return subprocess.run([str(TOOL), *map(str, words)], capture_output=True, text=True, errors="replace",
                          timeout=SECONDS, stdin=subprocess.DEVNULL, env=environment(**env))


def check(folder, plugin, *words, **env):
    """Runs the kit on a plugin's file, two cases at a time, with a store of its own in folder."""
    junit = folder / f"{pathlib.Path(plugin).stem}.xml"
    junit.unlink(missing_ok=True)
    return Check(tool("check-plugin", plugin, "--jobs", 2, "--store", folder / "store", "--format", "junit", "--output",
                      junit, *words, **env), junit)


class Broken:
    """A broken plugin: caught is the case that must fail, says what its reason must hold, others what
    may fail as well: a case, a pattern of cases with % for anything, a group, or all; words more words for the kit: a
    short limit (for the default of 10 s; longer ones shrink with it) where it would wait for what hangs."""

    def __init__(self, source):
        text = source.read_text(encoding="utf-8")
        comment = text[: text.index("*/")]
        self.name = source.stem
        self.library = BUILD / "tests" / "broken-plugins" / f"libheddle_plugin_{self.name}.so"
        self.caught = self._line(comment, "caught by")
        self.says = self._line(comment, "says")
        self.limit = self._line(comment, "limit")
        self.others = (self._line(comment, "and by") or "").replace(",", " ").split()

    def words(self):
        return ["--timeout", self.limit] if self.limit else []

    @staticmethod
    def _line(comment, key):
        found = re.search(rf"^ \* {key}: (.*?)(?: \*/)?$", comment, re.MULTILINE)
        return found[1].strip() if found else None

    def allowed(self, case):
        if case == self.caught or case.split("/")[0] in self.others or self.others == ["all"]:
            return True
        return any(fnmatch.fnmatchcase(case, pattern.replace("%", "*")) for pattern in self.others)


def broken_plugins():
    sources = [p for p in sorted(BROKEN.glob("*.c")) if not p.stem.startswith("base_") and p.stem not in HELPERS]
    return [Broken(p) for p in sources]
