"""scripts/demo, its main part: what it prints and writes, and that it fails when something is not as it should be."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from tool_case import BUILD, SOURCE, environment

PROGRAM = BUILD / "examples" / "digits"
FOLDER = SOURCE / "examples" / "digits"


def call(*words, **env):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, cwd="/",
                          stdin=subprocess.DEVNULL, env=environment(**env))


def test_demo():
    out = BUILD / "demo"
    shutil.rmtree(out, ignore_errors=True)
    # Settings of the caller's must not get in its way.
    done = call(SOURCE / "scripts" / "demo", "--build", BUILD, HEDDLE_DEVICES="sim:2", HEDDLE_SIM_DELAY_US="1000")
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    for words in ("devices found:", "cpu:0", "sim:0", "nodes     23 on cpu:0, 5 on sim:0", "copies    2 a run",
                  "cpu + sim, as annotated", "cpu alone", "sim alone", "cpu + sim x 2", "all is well"):
        assert words in text, text
    right, n = map(int, re.search(r"accuracy: (\d+) of (\d+) held-back digits right", text).groups())
    assert n == 360 and right / n >= 0.97
    assert float(re.search(r"time: ([\d.]+) us an image", text)[1]) > 0
    assert text.count("  same\n") == 4 and "DIFFERENT" not in text
    trace = json.loads((out / "trace.json").read_text())
    assert len(trace["traceEvents"] if isinstance(trace, dict) else trace) > 30
    pictures = [p for p in (out / "plan.svg", out / "plan.dot") if p.exists()]
    assert pictures and "wide1" in pictures[0].read_text() and str(pictures[0].name) in text


def test_words_that_are_wrong():
    assert call(SOURCE / "scripts" / "demo", "--fast").returncode == 2
    assert call(SOURCE / "scripts" / "demo", "--build").returncode == 2
    assert call(PROGRAM).returncode == 2


@pytest.fixture
def folder(tmp_path):
    """A copy of examples/digits that may be changed."""
    for name in ("digits.json", "digits.params", "images.npy", "labels.npy", "expected.npy"):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path


def test_wrong_answers_fail_it(folder):
    np.save(folder / "labels.npy", (np.load(folder / "labels.npy") + 1) % 10)
    done = call(PROGRAM, folder, folder)
    assert done.returncode == 1 and "accuracy" in done.stdout


def test_other_outputs_fail_it(folder):
    expected = np.load(folder / "expected.npy")
    expected[200, 3] += 1e-4
    np.save(folder / "expected.npy", expected)
    done = call(PROGRAM, folder, folder)
    assert done.returncode == 1 and "DIFFERENT" in done.stdout


def test_missing_things_fail_it(folder):
    np.save(folder / "labels.npy", np.zeros(3, np.int64))
    done = call(PROGRAM, folder, folder)
    assert done.returncode == 1 and "do not belong together" in done.stderr
    os.remove(folder / "labels.npy")
    done = call(PROGRAM, folder, folder)
    assert done.returncode == 1 and "labels.npy" in done.stderr
    done = call(PROGRAM, FOLDER, folder, HEDDLE_PLUGINS="off")
    assert done.returncode == 1 and "cpu" in done.stderr
