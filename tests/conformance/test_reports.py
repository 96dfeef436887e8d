"""What `heddle check-plugin` writes for programs and for readers: JSON, JUnit's XML and a page to publish, of one run.
timeout: 300"""

import html.parser
import json

import pytest
from check_case import BUILD, read_junit, tool

FOLDER = BUILD / "tests" / "broken-plugins"
SOUND, BAD_NAME = FOLDER / "libheddle_plugin_sound.so", FOLDER / "libheddle_plugin_bad_name.so"
CASES = [word for case in ("load", "root/texts", "capture", "timing", "external", "modules", "memory/import*", "layouts")
         for word in ("--only", case)]
RESULTS = {"pass": "pass", "fail": "fail", "skip": "skip"}
MEMBERS = {"format": int, "heddle": str, "abi": str, "date": str, "seconds": float, "passed": bool, "counts": dict,
           "plugin": dict, "devices": list, "options": dict, "cases": list, "abilities": list}
CASE = {"name": str, "group": str, "device": int, "result": str, "promise": str, "seconds": float}
OPTIONAL = {"reason": str, "needs": str, "consequence_of": str, "consequences": list, "excuse": str, "notes": list,
            "output": str}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    done = tool("check-plugin", BAD_NAME, "--no-store", "--json", "--junit", folder / "junit.xml", "--report",
                folder / "page.md", *CASES)
    assert done.returncode == 1 and done.stderr == "", done
    return json.loads(done.stdout), folder


def test_json(made):
    r, _ = made
    assert {key: type(value) for key, value in r.items()} == MEMBERS, r
    assert r["format"] == 1 and r["passed"] is False and r["plugin"]["bytes"] == BAD_NAME.stat().st_size
    assert r["plugin"]["name"] == "Bad-Name" and r["plugin"]["abi"] == r["abi"]
    for case in r["cases"]:
        assert {key: type(value) for key, value in case.items()} == {
            key: (CASE | OPTIONAL)[key] for key in [*CASE, *(k for k in case if k in OPTIONAL)]}, case
        assert case["result"] in RESULTS and (case["result"] == "pass") == ("reason" not in case), case
    counts = r["counts"]
    assert sum(counts.values()) == len(r["cases"])
    assert counts["skipped"] == sum(c["result"] == "skip" for c in r["cases"]) > 20
    assert len(r["devices"]) == 2 and "views" in r["devices"][0]["capabilities"]
    assert r["options"]["only"] == CASES[1::2]


def test_skips_say_what_makes_them_run(made):
    r, _ = made
    assert [c for c in r["cases"] if c["result"] == "skip" and "needs" not in c] == []


def test_junit_has_the_same(made):
    r, folder = made
    junit = read_junit(folder / "junit.xml")
    assert {name: case.state for name, case in junit.items()} == {c["name"]: RESULTS[c["result"]] for c in r["cases"]}


def test_markdown(made):
    r, folder = made
    page = (folder / "page.md").read_text(encoding="utf-8")
    for text in ("# Conformance of the Heddle plugin Bad-Name", "Not passed: ", "### load/name", "the plugin has no captures",
                 "the table capture", r["date"], "| host memory 0 | base 1 |", "## Results by group"):
        assert text in page, text
    assert str(FOLDER) not in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").endswith("|") for line in rows) and len(rows) > 20


class Tags(html.parser.HTMLParser):
    """Checks that what is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html(tmp_path):
    page = tmp_path / "page.html"
    done = tool("check-plugin", SOUND, "--no-store", "--only", "load", "--only", "capture/two", "--report", page)
    assert done.returncode == 0 and "passed" in done.stdout, done
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    assert tags.open == [] and "the plugin has no captures" in tags.text and "Passed: " in tags.text


@pytest.mark.parametrize("option", ["--junit", "--report", "--output"])
def test_no_such_folder(option):
    done = tool("check-plugin", SOUND, "--no-store", "--only", "load/name", option, "/nowhere/file")
    assert done.returncode == 1 and "/nowhere/file" in done.stderr, done
