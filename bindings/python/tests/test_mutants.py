"""Untrusted models, through the package: whatever a file declares, no byte outside a result is read or
written, and what comes out is what was declared. Under AddressSanitizer 1,000 mutants of each model of tests/mutants where
CI asks for two fifths; elsewhere a tenth, with glibc's checked allocator. Not done in time is not passed: skipped, with how
far it came.
timeout: 900
"""
import os

import pytest
from mutants import run
from reference.sizes import SCALE

EACH = 2500 if "asan" in os.environ.get("LD_PRELOAD", "") else 250
SECONDS = 300


def test_mutants(tmp_path, capsys):
    done, asked, findings, stuck = run.sweep(tmp_path, max(1, round(EACH * SCALE)), SECONDS)
    words = f"{done} of {asked} mutants" + (f"; left out, since they took too long: {' '.join(stuck)}" if stuck else "")
    with capsys.disabled():
        print(f"\n{words}")
    assert not findings, "\n".join(f"mutant {name}, exit status {code} (tests/mutants/calls.py FOLDER --again {name}):\n"
                                   f"{text}" for name, code, text in findings)
    if done < asked:
        pytest.exit(f"{words} in {SECONDS} s: the rest was not run", returncode=77)


def test_the_models_themselves(tmp_path):
    """A mutant says little where its model does not run."""
    import collections

    from mutants import calls, models
    for name, make in models.MODELS.items():
        if name == "absent":  # whether a last output may be left out is a question of its own
            continue
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(make())
        counts = collections.Counter()
        calls.run(str(path), 0, counts)
        assert (counts["ran"] > 0) != name.endswith("_dtype"), (name, counts)
