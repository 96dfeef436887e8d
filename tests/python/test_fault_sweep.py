"""bin/fault_sweep on the calls that profiles and waits make: every n-th fails, on two sims and on two PoCL devices; and on
those of measurements, after which the device still has work.
tests/executor/test_faults.c does this for the calls of a plain run; scripts/soak for all kinds and tempers.
timeout: 600"""

import json
import shutil
import subprocess

import pytest
from pocl import ENV, need
from test_place import fork
from tool_case import BUILD, DIGITS, environment

PLACE_AUTO = 64  # HEDDLE_MODEL_PLACE_AUTO
KINDS = ("timing.create", "timing.mark", "timing.read", "timing.calibrate", "stream.submit", "stream.sync")


@pytest.mark.parametrize("plugin", ["sim", "opencl"])
def test_every_nth_call(plugin, tmp_path):
    if plugin == "opencl":
        need()
    graph = json.loads(DIGITS.read_text())
    for node in graph["nodes"]:
        if node.get("device") == "sim:0":
            node["device"] = f"{plugin}:{int(node['name'] == 'wide.pool')}"
    model = tmp_path / "digits.json"
    model.write_text(json.dumps(graph))
    shutil.copy(DIGITS.with_suffix(".params"), tmp_path)
    failed = {}
    for kind in KINDS:
        done = subprocess.run([str(BUILD / "bin" / "fault_sweep"), kind, str(model), f"cpu,{plugin}:0,{plugin}:1", "0",
                               f"{plugin}.unified=0"], capture_output=True, text=True, timeout=300,
                              env=environment(HEDDLE_PLUGIN_PATH=str(BUILD / "lib" / "heddle" / "plugins"), **ENV))
        assert done.returncode == 0, (kind, done.stdout, done.stderr)
        failed[kind] = int(done.stdout.split()[-2])
    assert failed["timing.mark"] >= 10 and all(n > 0 for kind, n in failed.items() if kind.startswith("timing")), failed


def test_measurements(tmp_path):
    model = fork(tmp_path / "fork.json")
    for kind in ("memory.alloc", "op.bind"):
        done = subprocess.run([str(BUILD / "bin" / "fault_sweep"), kind, str(model), "cpu,sim:0", str(PLACE_AUTO),
                               "place.cache_dir=off", "place.seconds=1", "sim.delay_us=300"],
                              capture_output=True, text=True, timeout=100,
                              env=environment(HEDDLE_PLUGIN_PATH=str(BUILD / "lib" / "heddle" / "plugins")))
        assert done.returncode == 0, (kind, done.stdout, done.stderr)
        assert int(done.stdout.split()[-2]) > 5, done.stdout
