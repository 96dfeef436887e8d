"""The sound plugin, of which the broken ones are made, passes every case or has nothing for it, on both of its devices.
timeout: 900"""

from check_case import BUILD, check

SOUND = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_sound.so"
FUSED = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_sound_fused.so"
FIRST = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_sound_1_0.so"


def test_of_the_first_abi(tmp_path):
    """Built with the frozen header of 1.0: it lacks only what came since, and that is no fault."""
    r = check(tmp_path, FIRST, "--only", "load/*", "--only", "memory/*")
    assert r.status == 0 and r.state("fail") == [], r
    assert "load/sizes" in r.state("pass") and r.cases["memory/adopt"].words == "the plugin has no memory.adopt", r


def test_passes(tmp_path):
    r = check(tmp_path, SOUND)
    assert r.status == 0 and r.state("fail") == [], r
    assert len(r.state("pass")) > 100, r
    for case in r.state("skip"):  # what it lacks, and nothing that went wrong on the way
        assert "not run" not in r.cases[case].words, (case, r.cases[case])
    # The kit found that its waits for fences work, and reports it to libheddle.
    kept = list((tmp_path / "store").glob("abilities-*.json"))
    assert len(kept) == 1 and '"fence_wait": true' in kept[0].read_text().replace('":true', '": true'), kept


def test_regions_pass(tmp_path):
    """The plugin of which those with broken regions are made: what it proposes is run, of each family that it can."""
    r = check(tmp_path, FUSED, *(w for group in ("query", "numerics", "regions") for w in ("--only", group)))
    assert r.status == 0 and r.state("fail") == [], r
    assert {f"regions/compute:{f}" for f in ("chains", "residuals", "branches", "products")} <= set(r.state("pass")), r


def test_no_regions_no_cases(tmp_path):
    """A plugin that runs nodes one by one has no cases of regions, rather than skipped ones."""
    r = check(tmp_path, SOUND, "--only", "query/list", "--only", "numerics")
    assert r.status == 0 and not [c for c in r.cases if c.startswith("regions")], r
