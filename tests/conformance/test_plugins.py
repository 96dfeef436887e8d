"""The plugins of the tree pass the kit: null and sim all of it, the others a sample (test_plugins_whole.py has the rest).
timeout: 1800"""

import pytest
from check_case import check
from check_plugins import plugin


@pytest.mark.parametrize("name", ["null", "sim"])
def test_whole(name, tmp_path):
    file, env = plugin(name)
    r = check(tmp_path, file, **env)
    assert r.status == 0 and r.state("fail") == [], r
    assert len(r.state("pass")) >= 20, r


@pytest.mark.parametrize("name", ["cpu", "opencl", "vulkan", "cuda", "rocm"])
def test_sample(name, tmp_path):
    """What every plugin must have, and one case each of work, of operators and of the process's end."""
    file, env = plugin(name)
    groups = ("load", "root", "process/exit", "process/state", "health/idle-done", "fences/signal-once",
              "numerics/run:Add")
    r = check(tmp_path, file, *(word for group in groups for word in ("--only", group)), **env)
    assert r.status == 0 and r.state("fail") == [], r
    assert len(r.state("pass")) >= 20 and r.cases["numerics/run:Add"].state == "pass", r


@pytest.mark.parametrize("name", ["cpu", "sim", "vulkan"])
def test_resize(name, tmp_path):
    """Plugins of the tree resize launches; what their kernels cannot is refused. The others are in test_plugins_whole.py."""
    file, env = plugin(name)
    r = check(tmp_path, file, "--only", "numerics/resize", **env)
    assert r.status == 0 and r.state("pass") == ["numerics/resize"], r


@pytest.mark.parametrize("name", ["sim", "opencl", "cuda", "rocm"])
def test_streams_of_others(name, tmp_path):
    """The kit owns streams that these plugins adopt, by their hook."""
    file, env = plugin(name)
    r = check(tmp_path, file, "--only", "streams/adopt*", **env)
    assert r.status == 0 and len(r.state("pass")) >= 4 and r.state("fail") == [], r
    assert all(case == "streams/adopt-other" for case in r.state("skip")), r  # that one needs two devices


@pytest.mark.parametrize("rule", ["d2h:3:fault", "alloc:6:fault", "d2d:2:async:fault", "sync:2:fault"])
def test_sim_lost(rule, tmp_path):
    """A device that is lost at work stays so, in the first words, as a setting of sim's makes it."""
    file, env = plugin("sim")
    r = check(tmp_path, file, "--only", "health/lost*", "--set", f"sim.fail={rule}", **env)
    assert r.status == 0 and len(r.state("pass")) == 7 and r.state("skip") == [], r


@pytest.mark.parametrize("name,cases", [("cpu", "regions"), ("sim", "regions"), ("opencl", "regions/compute:branches"),
                                        ("vulkan", "regions/compute:branches")])
def test_regions(name, cases, tmp_path):
    """What a plugin fuses gives what its nodes give one by one; sim fuses where a setting asks for it."""
    file, env = plugin(name)
    r = check(tmp_path, file, "--only", cases, *(("--set", "sim.fuse=1") if name == "sim" else ()), **env)
    assert r.status == 0 and r.state("fail") == r.state("skip") == [], r
    assert len(r.state("pass")) == (8 if cases == "regions" else 1), r
