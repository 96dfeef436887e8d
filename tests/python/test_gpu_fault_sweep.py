"""Calls of CUDA's driver that fail, one in each run of the tool on two devices of the double: each is a reported error
or is got over, with the right outputs then; nothing crashes, hangs, stays alive in the driver, or is used wrongly.
timeout: 600"""

import json
import random

import numpy as np
import pytest

from gpu_doubles import REAL, clean, need, reporting
from tool_case import DIGITS, heddle

# Whose failure leaves something behind that cannot be freed.
ENDS = ("Free", "Destroy", "Release", "Unload", "Unregister", "PopCurrent", "EndCapture")
# OUT_OF_MEMORY, INVALID_VALUE, LAUNCH_FAILED (which loses the device), UNKNOWN.
CODES = (2, 1, 719, 999)
SAMPLES = 44


@pytest.fixture(scope="module", autouse=True)
def doubles():
    if REAL:
        pytest.skip("this is for the doubles")
    need("cuda")


def run(folder, capture, report, **env):
    image = folder / "image.npy"
    np.save(image, np.load(DIGITS.parent / "images.npy")[7:8].astype(np.float32))
    return heddle("run", DIGITS, "--device", "cpu,cuda:0,cuda:1", "--place", "*=cuda:0", "--place", "wide*=cuda:1",
                  "--place", "mix*=cpu", "--input", f"image={image}", "--output-dir", folder, "--set",
                  f"cuda.capture={capture}", "--timeout", "20", **reporting(report, **env))


def is_right(folder):
    return np.abs(np.load(folder / "output_0.npy") - np.load(DIGITS.parent / "expected.npy")[7:8]).max() < 1e-4


@pytest.mark.parametrize("capture", [1, 0])
def test_sampled_calls(capture, tmp_path):
    report = tmp_path / "report.json"
    r = run(tmp_path, capture, report)
    assert r.status == 0 and r.err == "" and is_right(tmp_path), r
    calls = clean(report)
    rng = random.Random(capture)
    every = [(name, n) for name, count in sorted(calls.items()) for n in sorted({1, (count + 1) // 2, count})]
    chosen = rng.sample(every, min(SAMPLES // 2, len(every)))
    failed = 0
    for i, (name, n) in enumerate(chosen):
        rule = f"{name}:{n}:{CODES[i % len(CODES)]}"
        report.unlink(missing_ok=True)
        (tmp_path / "output_0.npy").unlink(missing_ok=True)
        r = run(tmp_path, capture, report, FAKE_GPU_FAIL=rule)
        ends = any(word in name for word in ENDS)
        assert r.status in ((0, 1, 90) if ends else (0, 1)), (rule, r)
        if r.status == 1:
            failed += 1
            assert "cuda" in r.err, (rule, r)
        elif r.status == 0:
            assert is_right(tmp_path), (rule, r)
        if not ends:
            seen = json.loads(report.read_text())
            assert seen["misuse"] == 0 and not any(seen["live"].values()), (rule, seen, r)
    assert failed >= len(chosen) // 3, f"only {failed} of {len(chosen)} failures showed"
