"""What `heddle check-plugin` keeps of abilities, and manifests in a plugin's place.
timeout: 600"""

import json
import os
import shutil

import pytest
from check_case import BUILD, check, tool

SIM = BUILD / "lib" / "heddle" / "plugins" / "libheddle_plugin_sim.so"
CASES = ("--only", "copy/peer*", "--only", "memory/import*", "--only", "fences/wait*")


def fnv1a(text):
    """RFC 9923's FNV-1a of 64 bits."""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


@pytest.fixture
def plugin(tmp_path):
    """A copy of sim of our own, which may be touched."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    return shutil.copy(SIM, folder / SIM.name)


def kept(tmp_path, plugin):
    real = os.path.realpath(plugin)
    path = tmp_path / "store" / f"abilities-{fnv1a(real):016x}.json"
    assert [path] == list((tmp_path / "store").iterdir())
    return json.loads(path.read_text()), path


def test_kept(tmp_path, plugin):
    """sim can wait for fences, copy between its devices, and import; its settings can take each away."""
    r = check(tmp_path, plugin, *CASES)
    assert r.status == 0, r
    entry, path = kept(tmp_path, plugin)
    info = os.stat(plugin)
    assert path.stat().st_mode & 0o777 == 0o600
    assert entry == {"format": 1, "path": os.path.realpath(plugin), "size": info.st_size, "mtime_ns": info.st_mtime_ns,
                     "devices": [{"index": 0, "driver": "sim 1.0", "fence_wait": True, "peer": True,
                                  "import_host": True}]}


def test_what_does_not_work_is_kept(tmp_path, plugin):
    """A path between devices that brings wrong bytes fails its case, and libheddle then does without it."""
    r = check(tmp_path, plugin, *CASES, "--set", "sim.peer=lie")
    assert r.status == 1 and "copy/peer" in r.state("fail"), r
    device = kept(tmp_path, plugin)[0]["devices"][0]
    assert device["peer"] is False and device["import_host"] is True and device["fence_wait"] is True, device


@pytest.mark.parametrize("name, ability", [("fence_wait_deaf", "fence_wait"), ("fence_wait_nothing", "fence_wait")])
def test_what_fails_on_trial_is_kept(tmp_path, name, ability):
    """So is one over which a case fails in any other way, be it a crash or a hang."""
    file = shutil.copy(BUILD / "tests" / "broken-plugins" / f"libheddle_plugin_{name}.so", tmp_path)
    r = check(tmp_path, file, "--only", "fences", "--timeout", 2)
    assert r.status == 1, r
    assert kept(tmp_path, file)[0]["devices"][0][ability] is False


def test_what_was_found_before_stays(tmp_path, plugin):
    assert check(tmp_path, plugin, *CASES).status == 0
    assert check(tmp_path, plugin, "--only", "memory/import*").status == 0
    assert kept(tmp_path, plugin)[0]["devices"][0]["fence_wait"] is True
    info = os.stat(plugin)
    os.utime(plugin, ns=(info.st_atime_ns, info.st_mtime_ns + 1_000_000_000))
    assert check(tmp_path, plugin, "--only", "memory/import*").status == 0
    entry, _ = kept(tmp_path, plugin)
    assert entry["mtime_ns"] == info.st_mtime_ns + 1_000_000_000
    assert entry["devices"] == [{"index": 0, "driver": "sim 1.0", "fence_wait": None, "peer": None, "import_host": True}]


def test_a_damaged_file_is_replaced(tmp_path, plugin):
    assert check(tmp_path, plugin, "--only", "memory/import*").status == 0
    _, path = kept(tmp_path, plugin)
    path.write_text('{"format": 1, "path": 7, "devices": [3]')
    assert check(tmp_path, plugin, "--only", "memory/import*").status == 0
    assert kept(tmp_path, plugin)[0]["devices"][0]["import_host"] is True


def test_nothing_kept(tmp_path, plugin):
    done = tool("check-plugin", plugin, "--no-store", "--only", "memory/import*", HEDDLE_PROBE_CACHE_DIR=tmp_path / "kept")
    assert done.returncode == 0, done
    assert not (tmp_path / "kept").exists()


def test_the_variable_names_the_folder(tmp_path, plugin):
    done = tool("check-plugin", plugin, "--only", "memory/import*", HEDDLE_PROBE_CACHE_DIR=tmp_path / "deep" / "store")
    assert done.returncode == 0, done
    assert len(list((tmp_path / "deep" / "store").iterdir())) == 1


# ---- manifests


def manifest(folder, **members):
    path = folder / "mine.json"
    path.write_text(json.dumps({"name": "sim", "abi": "1.0", "library": SIM.name, "priority": 3, **members}))
    return path


def test_manifest(tmp_path, plugin):
    r = check(tmp_path, manifest(plugin.parent), "--only", "load")
    assert r.status == 0 and len(r.state("pass")) > 5, r


@pytest.mark.parametrize("members, hint", [
    ({"abi": "2.0"}, "abi"), ({"abi": 1}, "abi"), ({"name": ""}, "name"), ({"library": ""}, "library"),
    ({"library": "../" + SIM.name}, "below"), ({"library": str(SIM)}, "below"), ({"priority": "high"}, "priority"),
    ({"library": "not_there.so"}, "not_there.so")])
def test_wrong_manifest(tmp_path, plugin, members, hint):
    done = tool("check-plugin", manifest(plugin.parent, **members))
    assert done.returncode == 2 and hint in done.stderr, done


def test_manifest_that_is_no_json(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{")
    done = tool("check-plugin", path)
    assert done.returncode == 2 and "broken.json" in done.stderr, done
