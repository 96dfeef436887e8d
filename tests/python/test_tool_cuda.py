"""The tool with cuda and rocm, on the doubles of their drivers: what is there, a model over cpu, both and sim, times, what
is said where something is missing.
timeout: 600"""

import json
import re

import numpy as np
import pytest

from gpu_doubles import ENV, REAL, clean, need, reporting
from test_place import fork
from tool_case import DIGITS, failing, good

MIXED = ("--device", "cpu,cuda:0,cuda:1,rocm:0", "--place", "wide*=cuda:0", "--place", "fine*=cuda:1",
         "--place", "mix*=rocm:0")
WORDS = {"mixed": MIXED, "alone": ("--device", "cuda", "--place", "*=cuda"),
         "rocm": ("--device", "rocm", "--place", "*=rocm"),
         "first": ("--device", "cuda:0,cpu", "--place", "*=cuda:0"),
         "plain": ("--device", "cpu,cuda", "--place", "wide*=cuda", "--place", "mix*=cuda", "--set", "cuda.pools=0",
                   "--set", "cuda.capture=0")}


@pytest.fixture(scope="module", autouse=True)
def devices():
    if REAL:
        pytest.skip("these are for the doubles")
    need("cuda", "rocm")


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.npy"
    np.save(path, np.load(DIGITS.parent / "images.npy")[7:8].astype(np.float32))
    return "--input", f"image={path}"


def test_devices():
    text = good("devices", "--all", **ENV)
    for name in ("cuda:0", "cuda:1", "rocm:0", "rocm:1"):
        assert re.search(rf"^{name} ", text, re.M), text
    assert "CUDA 1" in text and "sm_90" in text and "gfx90a" in text, text
    listed = {d["name"]: d for d in json.loads(good("devices", "--json", **ENV))["devices"]}
    assert {"cpu:0", "cuda:0", "cuda:1", "rocm:0", "rocm:1"} <= set(listed)
    cuda = [listed["cuda:0"], listed["cuda:1"]]
    assert all(d["uuid"] and d["pci"] and d["memory_bytes"] > 0 and d["type"] == 2 for d in cuda), cuda
    assert cuda[0]["uuid"] != cuda[1]["uuid"] and cuda[0]["pci"] != cuda[1]["pci"]
    assert listed["rocm:0"]["type"] == 10


def test_a_gpu_comes_before_cpu():
    """Real accelerators are used without being named."""
    text = good("devices", "--all", **ENV)
    assert re.search(r"^in use: cuda:0, cuda:1,.* cpu:0 ", text, re.M), text


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_run(words, image, tmp_path):
    report = tmp_path / "report.json"
    out = good("run", DIGITS, *words, *image, "--output-dir", tmp_path, "--profile", **reporting(report))
    assert np.abs(np.load(tmp_path / "output_0.npy") - np.load(DIGITS.parent / "expected.npy")[7:8]).max() < 1e-4
    table = out.split("takes us\n")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines() if re.search(r" (cpu|cuda|rocm|sim):\d ", line)]
    assert any(r[2].startswith(("cuda:0", "rocm:0")) for r in rows), out
    assert all(float(r[-1]) >= 0 and float(r[-2]) >= 0 for r in rows), out
    starts = [float(r[-2]) for r in rows]
    assert starts == sorted(starts) and "steps in" in out


@pytest.mark.parametrize("variable, value", [("FAKE_GPU_DELAY", "300"), ("FAKE_GPU_INTEGRATED", "1"),
                                             ("FAKE_GPU_PEERS", "0"), ("FAKE_GPU_POOLS", "0")])
def test_run_on_other_devices(variable, value, image, tmp_path):
    """Whose work begins late, that share the host's memory, that do not reach each other, that have no pools."""
    report = tmp_path / "report.json"
    good("run", DIGITS, *MIXED, *image, "--output-dir", tmp_path, **reporting(report, **{variable: value}))
    assert np.abs(np.load(tmp_path / "output_0.npy") - np.load(DIGITS.parent / "expected.npy")[7:8]).max() < 1e-4
    listed = {d["name"]: d for d in json.loads(good("devices", "--json", **{**ENV, variable: value}))["devices"]}
    assert ("unified" in listed["cuda:0"]["caps"]) == (variable == "FAKE_GPU_INTEGRATED"), listed["cuda:0"]


def test_nothing_is_left(image, tmp_path):
    """The driver's own counts after a run that is replayed as graphs."""
    report = tmp_path / "report.json"
    good("bench", DIGITS, *WORDS["alone"], "--json", "--repeat", "2", "--number", "4", "--timer", "host",
         **reporting(report))
    calls = clean(report)
    assert calls["cuGraphLaunch"] >= 8 and calls["cuLaunchKernel"] > 0, calls


def test_plan():
    text = good("plan", DIGITS, *MIXED, **ENV)
    assert "5 on cuda:0, 3 on cuda:1" in text and "rule wide*=cuda:0" in text
    plan = json.loads(good("plan", DIGITS, *MIXED, "--json", "--set", "cpu.onednn=off", **ENV))
    labels = {s["label"]: s["kind"] for s in plan["steps"]}
    assert labels["wide.pool to host"] == "d2h", labels


def test_bench():
    told = json.loads(good("bench", DIGITS, *MIXED, "--json", "--repeat", "2", "--number", "2", **ENV))
    assert told["repeat"] == 2 and told["mean"] > 0
    assert all(d in str(told["devices"]) for d in ("cpu:0", "cuda:0", "cuda:1", "rocm:0"))


def test_bench_by_the_clock_of_a_device():
    told = json.loads(good("bench", DIGITS, *WORDS["alone"], "--timer", "device", "--json", "--repeat", "3",
                           "--number", "2", **ENV))
    assert told["timer"] == "device" and len(told["results"]) == 3 and 0 < told["min"] <= told["max"] < 60


def test_placed_by_measuring(tmp_path):
    """--place auto measures operators and routes on the device; the result is cpu's."""
    model, got = fork(tmp_path / "fork.json"), {}
    for name, words in {"cpu": ("--device", "cpu"), "auto": ("--device", "cpu,cuda:0", "--place", "auto", "--set",
                                                             f"place.cache_dir={tmp_path / 'costs'}")}.items():
        (tmp_path / name).mkdir()
        good("run", model, "--random", *words, "--output-dir", tmp_path / name, **{**ENV, "HEDDLE_ROUTES_TEST": "again"})
        got[name] = np.load(tmp_path / name / "output_0.npy")
    assert np.allclose(got["auto"], got["cpu"], rtol=1e-4, atol=1e-5)
    assert len(list((tmp_path / "costs").iterdir())) == 2  # what was measured, a file a device


def test_what_is_missing_is_said():
    assert "no device 'cuda:7'" in failing(1, "run", DIGITS, "--device", "cpu,cuda:7", "--random", **ENV)
    text = failing(1, "run", DIGITS, "--device", "cpu,cuda", "--random", **ENV)
    assert "'wide1' is annotated for device 'sim:0'" in text
