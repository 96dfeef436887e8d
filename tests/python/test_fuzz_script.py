"""scripts/fuzz: what it says of words that it does not know, and that every target has seeds to begin with."""

import subprocess

import pytest
from tool_case import SOURCE

TARGETS = sorted(p.name[:p.name.index("_fuzz.c")] for p in (SOURCE / "tests" / "fuzz").glob("*_fuzz.c*"))


def fuzz(*words):
    return subprocess.run([SOURCE / "scripts" / "fuzz", *words], capture_output=True, text=True, timeout=60)


def test_a_target_that_there_is_not():
    done = fuzz("graph_jsom")
    assert done.returncode == 2 and "there is no target 'graph_jsom'" in done.stderr
    assert all(f" {name}" in done.stderr for name in TARGETS)


@pytest.mark.parametrize("words", [["--second", "5"], ["--seconds"], ["--seconds", "soon"], ["--seconds", "0"]])
def test_wrong_words(words):
    done = fuzz(*words)
    assert done.returncode == 2 and "scripts/fuzz [NAME...]" in done.stderr


def test_seeds():
    """The ordinary tests run each target over its seeds, so a target without any is not run there at all."""
    readers = {"graph_json", "params", "npy", "onnx", "config", "elf", "tvm_blob", "weights_file", "route_record",
               "place_record", "file_cache", "spirv", "expression", "manifest", "abilities", "probe_record", "model"}
    assert readers <= set(TARGETS)
    for name in TARGETS:
        assert any((SOURCE / "tests" / "fuzz" / "data" / name).iterdir()), name
