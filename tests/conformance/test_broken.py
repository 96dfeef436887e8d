"""Each broken plugin is caught by its own case of the kit, which says why; the sound one, which they are made from, is not.
timeout: 900"""

import zlib

import pytest
from check_case import BROKEN, BUILD, SANITIZED, broken_plugins, check
from reference import sizes

pytestmark = pytest.mark.skipif(SANITIZED, reason="what the broken plugins do, sanitizers stop in their own way")
PLUGINS = broken_plugins()
TRIED = [p for p in PLUGINS if sizes.SCALE >= 1 or zlib.crc32(p.name.encode()) % 2 == 0]  # half where sweeps are smaller
SOUND = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_sound.so"
FUSED = SOUND.with_name("libheddle_plugin_sound_fused.so")


def test_there_are_thirty():
    assert len(PLUGINS) >= 30
    for plugin in PLUGINS:
        assert plugin.library.exists() and plugin.caught and plugin.says, plugin.name


@pytest.mark.parametrize("plugin", TRIED, ids=lambda p: p.name)
def test_caught(plugin, tmp_path):
    r = check(tmp_path, plugin.library, "--only", plugin.caught, *plugin.words())
    assert r.status == 1, r
    case = r.cases[plugin.caught]
    assert case.state == "fail" and plugin.says in case.words, r


def test_sound_by_the_same_cases(tmp_path):
    """What catches them does not catch the plugin that they all are but for one thing."""
    cases = sorted({p.caught for p in PLUGINS if not p.caught.startswith(("regions/", "settings/"))})  # it lists no settings
    r = check(tmp_path, SOUND, *(word for case in cases for word in ("--only", case)))
    assert r.status == 0 and r.state("fail") == [], r
    assert r.state("skip") == [], r


def test_sound_regions_by_the_same_cases(tmp_path):
    cases = sorted({p.caught for p in PLUGINS if p.caught.startswith("regions/")})
    r = check(tmp_path, FUSED, *(word for case in cases for word in ("--only", case)))
    assert r.status == 0 and r.state("pass") == cases, r
