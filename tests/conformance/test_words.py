"""The words of `heddle check-plugin`, its lists and its reports: what a maker of a plugin meets before a case runs.
timeout: 600"""

import pathlib
import re
import shutil

import pytest
from check_case import BUILD, check, tool

FOLDER = BUILD / "tests" / "broken-plugins"
SOUND, BAD_NAME = FOLDER / "libheddle_plugin_sound.so", FOLDER / "libheddle_plugin_bad_name.so"
CASES = ("--only", "load/name", "--only", "root/texts")


def failing(status, *words):
    r = tool("check-plugin", *words)
    assert r.returncode == status and r.stderr != "", r
    return r.stderr


def test_help():
    r = tool("check-plugin", "--help")
    assert r.returncode == 0 and r.stderr == "" and r.stdout.startswith("heddle check-plugin"), r
    for option in ("only", "jobs", "quick", "list", "unsupported", "expected", "format", "output", "store", "set",
                   "device", "timeout"):
        assert f"--{option}" in r.stdout, option
    assert "check-plugin" in tool("help").stdout


@pytest.mark.parametrize("words, hint", [
    ([], "which plugin"),
    ([SOUND, "--onyl", "load"], "--only"),
    ([SOUND, SOUND], "one"),
    ([SOUND, "--jobs", "0"], "--jobs"),
    ([SOUND, "--jobs", "many"], "--jobs"),
    ([SOUND, "--timeout", "-1"], "--timeout"),
    ([SOUND, "--format", "xml"], "xml"),
    ([SOUND, "--device", "first"], "first"),
    ([SOUND, "--set", "delay"], "delay"),
    ([SOUND, "--only"], "--only"),
    ([SOUND, "--only", "no/such"], "no case"),
    ([SOUND, "--unsupported", "/nowhere/list"], "/nowhere/list"),
    ([SOUND, "--expected", "/nowhere/list"], "/nowhere/list"),
    (["/nowhere/libheddle_plugin_mine.so"], "/nowhere/libheddle_plugin_mine.so"),
])
def test_wrong_words(words, hint):
    assert hint in failing(2, *words)


def test_list():
    r = tool("check-plugin", "--list")
    assert r.returncode == 0 and r.stderr == "", r
    names = re.findall(r"^(\w+/[\w-]+) +\S", r.stdout, re.MULTILINE)
    assert len(names) == len(set(names)) > 150
    assert {"load/entry", "memory/limit", "fences/signal-once", "health/lost", "leaks/views"} <= set(names)


def test_only_takes_patterns_and_groups(tmp_path):
    r = check(tmp_path, SOUND, "--only", "root", "--only", "load/n*")
    groups = {name.split("/")[0] for name in r.cases}
    assert r.status == 0 and groups == {"root", "load"} and "load/name" in r.cases and "load/file" not in r.cases, r


def test_no_plugin(tmp_path):
    """A file that is no shared library, and one that is no plugin."""
    text = tmp_path / "libheddle_plugin_text.so"
    text.write_text("not a library\n")
    r = check(tmp_path, text, "--only", "load")
    assert r.status == 1 and r.cases["load/file"].state == "fail", r
    libm = next(p for p in (BUILD / "lib").glob("libheddle*.so*") if p.is_file())
    other = shutil.copy(libm, tmp_path / "libheddle_plugin_other.so")
    r = check(tmp_path, other, "--only", "load/entry")
    assert r.status == 1 and "heddle_plugin_entry" in r.cases["load/entry"].words, r


def test_truncated(tmp_path):
    """A plugin's file of which the end is missing."""
    cut = tmp_path / "libheddle_plugin_cut.so"
    cut.write_bytes(SOUND.read_bytes()[:3000])
    r = check(tmp_path, cut, "--only", "load/file", "--only", "load/entry")
    assert r.status == 1 and r.state("pass") == [], r


def test_gone(tmp_path):
    """A file that is not there any more: a link to nothing."""
    link = tmp_path / "libheddle_plugin_sound.so"
    link.symlink_to(tmp_path / "gone.so")
    assert str(link) in failing(2, link)


def test_vanishes(tmp_path):
    """A file that goes away while it is checked, which the plugin itself does here."""
    file = shutil.copy(FOLDER / "libheddle_plugin_vanishes.so", tmp_path)
    r = check(tmp_path, file, "--only", "device/open", "--only", "memory/limit", "--only", "memory/zero")
    assert r.status == 1 and not pathlib.Path(file).exists(), r
    failed = [r.cases[name].words for name in r.state("fail") + r.state("skip")]
    assert failed and all("cannot be loaded" in words for words in failed), r


def test_text(tmp_path):
    r = tool("check-plugin", BAD_NAME, "--no-store", *CASES)
    assert r.returncode == 1 and r.stderr == "", r
    assert re.search(r'^FAIL  load/name: .*"Bad-Name"', r.stdout, re.MULTILINE), r.stdout
    assert re.search(r"^    promised: .*lower-case", r.stdout, re.MULTILINE), r.stdout
    assert re.search(r"^pass  root/texts", r.stdout, re.MULTILINE) and "1 passed, 1 failed, 0 skipped" in r.stdout


def test_tap(tmp_path):
    r = tool("check-plugin", BAD_NAME, "--no-store", "--format", "tap", *CASES)
    lines = r.stdout.splitlines()
    assert r.returncode == 1 and lines[0] == "TAP version 14" and lines[-1] == "1..2", r
    results = [line for line in lines if re.match(r"(not )?ok ", line)]
    assert [re.match(r"(?:not )?ok (\d+)", line)[1] for line in results] == ["1", "2"]
    assert results[0].startswith("not ok 1 - load/name") and results[1].startswith("ok 2 - root/texts"), results
    skipped = tool("check-plugin", SOUND, "--no-store", "--format", "tap", "--only", "capture/two").stdout
    assert re.search(r"^ok 1 - capture/two # SKIP \S", skipped, re.MULTILINE), skipped


BAD_TEXT = FOLDER / "libheddle_plugin_bad_text.so"


def test_junit_of_unspeakable_words(tmp_path):
    """What a plugin says is no reason for XML that cannot be read."""
    r = check(tmp_path, BAD_TEXT, "--only", "errors/words")
    assert r.status == 1 and r.cases["errors/words"].state == "fail", r
    report = (tmp_path / "libheddle_plugin_bad_text.xml").read_text(encoding="utf-8")
    assert "?[31mred ?? ??? ?? gr\u00fcn" in report, report


@pytest.mark.parametrize("form", ["tap", "text"])
def test_unspeakable_words(tmp_path, form):
    """Nor for a report that is no UTF-8, or that a terminal obeys."""
    path = tmp_path / "report"
    r = tool("check-plugin", BAD_TEXT, "--no-store", "--only", "errors/words", "--format", form, "--output", path)
    report = path.read_text(encoding="utf-8")
    assert r.returncode == 1 and "gr\u00fcn" in report, r
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", report), report


def written(tmp_path, text):
    path = tmp_path / "list"
    path.write_text(text)
    return path


def test_unsupported(tmp_path):
    names = written(tmp_path, "# what this device never has\nload/name  the name is the house's\n")
    r = check(tmp_path, BAD_NAME, *CASES, "--unsupported", names)
    assert r.status == 0 and r.cases["load/name"].state == "skip", r
    assert "the name is the house's" in r.cases["load/name"].words


def test_expected(tmp_path):
    names = written(tmp_path, "load/name  to be renamed\n")
    r = tool("check-plugin", BAD_NAME, "--no-store", *CASES, "--expected", names)
    assert r.returncode == 0 and "1 failed as expected" in r.stdout and "to be renamed" in r.stdout, r
    # One that passes is an error, so that the list cannot rot.
    r = tool("check-plugin", SOUND, "--no-store", *CASES, "--expected", names)
    assert r.returncode == 1 and "load/name" in r.stdout and "expected to fail" in r.stdout, r


def test_lists_where_no_device_is_found(tmp_path):
    """A list that names cases of a device's words is no error where the plugin does not get as far as a device."""
    names = written(tmp_path, "numerics/run:Conv  rounds otherwise\n")
    for option in ("--expected", "--unsupported"):
        r = check(tmp_path, FOLDER / "libheddle_plugin_silent_entry.so", option, names)
        assert r.status == 1 and r.cases["load/entry"].state == "fail", r


def test_lists_that_match_nothing(tmp_path):
    names = written(tmp_path, "load/nmae  a slip of the pen\n")
    for option in ("--expected", "--unsupported"):
        assert "load/nmae" in failing(2, SOUND, *CASES, option, names)
