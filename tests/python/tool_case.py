"""What the tests of the tool share: where it is, a clean environment, and one call with its status and output."""

import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOOL = BUILD / "bin" / "heddle"
DIGITS = SOURCE / "examples" / "digits" / "digits.json"


def environment(**more):
    """The caller's, without any setting of Heddle's; routes and plugins are tried where a test asks for it. No leak check
    with drivers that have leaks of their own (docs/decisions/tests-and-ci.md)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env = {**env, "HEDDLE_CONFIG": "off", "HEDDLE_ROUTES_TEST": "0", "HEDDLE_PROBE": "off", **more}
    if "ASAN_OPTIONS" in env and not {"POCL_DEVICES", "VK_DRIVER_FILES"}.isdisjoint(env):
        env["ASAN_OPTIONS"] += ":detect_leaks=0"
    return env


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


def heddle(*words, cwd=None, **env):
    done = subprocess.run([str(TOOL), *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120,
                          stdin=subprocess.DEVNULL, env=environment(**env))
    return Result(done)


def good(*words, **env):
    """A call that has to work, and to be silent on stderr."""
    r = heddle(*words, **env)
    assert r.status == 0 and r.err == "", r
    return r.out


def failing(status, *words, **env):
    """A call that has to fail so; gives the message."""
    r = heddle(*words, **env)
    assert r.status == status and r.err != "", r
    return r.err
