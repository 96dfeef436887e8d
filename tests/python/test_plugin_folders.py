"""Which files of a plugin folder are opened: the rights of files and folders, manifests, and what heddle check-plugin kept of
a plugin's devices.

timeout: 300
"""
import json
import os
import shutil

import pytest
from tool_case import BUILD, DIGITS, good, heddle

PLUGINS = BUILD / "lib" / "heddle" / "plugins"
SIM = PLUGINS / "libheddle_plugin_sim.so"
CRASHES = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_crash_entry.so"
SOUND = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_sound.so"
NULL = PLUGINS / "libheddle_plugin_null.so"


def everything(plugins, **env):
    return json.loads(good("devices", "--json", HEDDLE_PLUGINS=str(plugins), **env))


def plugins_of(plugins, **env):
    return everything(plugins, **env)["plugins"]


def only(plugins, **env):
    found = plugins_of(plugins, **env)
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "above" / "plugins"
    path.mkdir(parents=True)
    shutil.copyfile(SIM, path / SIM.name)
    for name in (path / SIM.name, path, path.parent):
        name.chmod(0o755)
    return path


# ---- rights

def test_what_only_its_owner_can_change_is_used(folder):
    assert only(folder)["used"]


@pytest.mark.parametrize("which, mode", [
    ("file", 0o757), ("file", 0o777), ("folder", 0o777), ("folder", 0o757), ("above", 0o777),
])
def test_what_others_can_change_is_refused(folder, which, mode):
    path = {"file": folder / SIM.name, "folder": folder, "above": folder.parent}[which]
    path.chmod(mode)
    for plugins in (folder, folder / SIM.name):
        plugin = only(plugins)
        assert not plugin["used"] and plugin["devices"] == 0
        assert f"{path} (mode {mode:04o}, owner {os.geteuid()}) can be written to by others: 'chmod go-w' it" in \
            plugin["reason"], plugin
    assert only(folder, HEDDLE_PLUGIN_TRUST="any")["used"]
    path.chmod(0o755)
    assert only(folder)["used"]


def test_a_group_that_is_not_the_owners_can_be_others(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to any group")
    os.chown(folder, 0, 12345)
    folder.chmod(0o775)
    assert "chmod go-w" in only(folder)["reason"]
    folder.chmod(0o755)
    assert only(folder)["used"]
    os.chown(folder, 0, 0)
    folder.chmod(0o775)
    assert only(folder)["used"]


def test_in_a_sticky_folder_others_cannot_touch_our_files(folder):
    folder.chmod(0o1777)
    assert only(folder)["used"]


def test_what_belongs_to_another_user_is_refused(folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    for path in (folder / SIM.name, folder, folder.parent):
        os.chown(path, 12345, 0)
        plugin = only(folder)
        assert not plugin["used"] and f"{path} (mode 0755, owner 12345) belongs to another user" in plugin["reason"]
        os.chown(path, 0, 0)
    assert only(folder)["used"]


def test_a_link_is_judged_by_where_it_leads(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / SIM.name).symlink_to(folder / SIM.name)
    assert only(other)["used"]
    folder.chmod(0o777)
    assert str(folder) in only(other)["reason"]


# ---- manifests

def manifest(path, **members):
    members = {"format": 1, "name": "sim", "abi": "1.0", "library": SIM.name, **members}
    path.write_text(json.dumps({k: v for k, v in members.items() if v is not None}))
    return path


@pytest.fixture
def described(tmp_path):
    path = tmp_path / "plugins"
    path.mkdir()
    path.chmod(0o755)
    shutil.copyfile(SIM, path / "device.so")
    manifest(path / "sim.json", library="device.so")
    return path


def test_a_manifest_leads_to_its_library(described):
    plugin = only(described)
    assert plugin["used"] and plugin["name"] == "sim" and plugin["devices"] == 3
    assert plugin["manifest"] == str(described / "sim.json") and plugin["path"] == str(described / "device.so")
    assert only(described / "sim.json")["used"]  # named itself
    text = good("devices", "--all", HEDDLE_PLUGINS=str(described))
    assert f"manifest: {described / 'sim.json'}" in text


def test_settings_of_its_name_reach_it_and_it_is_tried(described, tmp_path):
    plugin = only(described, HEDDLE_SIM_DEVICES="1", HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path / "kept"))
    assert plugin["used"] and plugin["devices"] == 1
    assert json.loads(next((tmp_path / "kept").iterdir()).read_text())["drivers"] == ["sim 1.0"]


def test_a_library_with_a_manifest_is_listed_once(described):
    (described / "device.so").rename(described / SIM.name)
    manifest(described / "sim.json")
    plugin = only(described)
    assert plugin["used"] and plugin["manifest"] != ""


def test_a_library_below_is_found_and_one_of_another_name_refused(described):
    (described / "deep" / "er").mkdir(parents=True)
    (described / "device.so").rename(described / "deep" / "er" / "d.so")
    manifest(described / "sim.json", library="deep/er/d.so")
    assert only(described)["used"]
    manifest(described / "sim.json", library="deep/er/d.so", name="npu")
    assert "it is plugin 'sim', and its manifest" in only(described)["reason"]


@pytest.mark.parametrize("members, words", [
    ({"abi": "2.0"}, "written for ABI 2.0, this host has 1."),
    ({"abi": "0.9"}, "written for ABI 0.9"),
    ({"abi": "1"}, "no version such as"), ({"abi": 1.0}, "'abi' is missing or no string"), ({"abi": "1.0 "}, "no version"),
    ({"format": 2}, "'format' must be 1"), ({"format": None}, "'format' must be 1"),
    ({"name": None}, "'name' is missing"), ({"name": "Sim"}, "'name' is 'Sim'"), ({"name": ""}, "'name'"),
    ({"name": "s" * 64}, "longer than 63"), ({"name": "si\0m"}, "manifest: line 1"),
    ({"library": None}, "'library' is missing"), ({"library": ""}, "must be a path below"),
    ({"library": "/usr/lib/x.so"}, "must be a path below"), ({"library": "../x.so"}, "must be a path below"),
    ({"library": "a/../../x.so"}, "must be a path below"), ({"library": "./x.so"}, "must be a path below"),
    ({"library": "a//x.so"}, "must be a path below"), ({"library": "a/"}, "must be a path below"),
    ({"library": ".."}, "must be a path below"), ({"library": "x" * 600}, "longer than 511"),
    ({"library": "none.so"}, "there is no library 'none.so'"),
    ({"priority": "high"}, "'priority' is no whole number"), ({"priority": 1.5}, "'priority'"),
    ({"priority": 10**9}, "'priority'"),
])
def test_a_wrong_manifest_is_refused_without_opening_the_library(tmp_path, members, words):
    tmp_path.chmod(0o755)
    shutil.copyfile(CRASHES, tmp_path / SIM.name)  # opening it would end the tool
    manifest(tmp_path / "x.json", **members)
    found = plugins_of(tmp_path / "x.json")
    assert len(found) == 1 and not found[0]["used"] and words in found[0]["reason"], found
    assert found[0]["manifest"] == str(tmp_path / "x.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", "[" * 30000, '{"format":1,"format":1}', " " * 70000, "\xff"])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    tmp_path.chmod(0o755)
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    plugin = only(tmp_path)
    assert not plugin["used"] and "manifest: " in plugin["reason"]


def test_a_pipe_is_no_manifest(tmp_path):
    tmp_path.chmod(0o755)
    os.mkfifo(tmp_path / "x.json")
    assert "it is no file" in only(tmp_path)["reason"]


def test_links_do_not_lead_out_of_the_folder(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for path in (inside, outside):
        path.mkdir()
        path.chmod(0o755)
    shutil.copyfile(CRASHES, outside / "x.so")
    (inside / "link.so").symlink_to(outside / "x.so")
    (inside / "folder").symlink_to(outside)
    for library in ("link.so", "folder/x.so"):
        manifest(inside / "x.json", library=library)
        assert f"leads out of its folder, to {outside}/x.so" in only(inside)["reason"]


def test_a_manifest_that_others_can_write_is_refused(described):
    (described / "sim.json").chmod(0o666)
    plugin = only(described)
    assert f"{described}/sim.json (mode 0666" in plugin["reason"] and not plugin["used"]


def test_priority_is_the_order(tmp_path):
    tmp_path.chmod(0o755)
    for name, source in (("sound", SOUND), ("sim", SIM), ("null", NULL)):
        shutil.copyfile(source, tmp_path / f"{name}.so")
    for name, priority in (("sound", None), ("null", -1), ("sim", 5)):
        manifest(tmp_path / f"{name}.json", name=name, library=f"{name}.so", priority=priority)
    found = everything(tmp_path)
    assert [p["name"] for p in found["plugins"]] == ["sim", "sound", "null"]
    devices = [d["plugin"] for d in found["devices"]]
    assert devices[:3] == ["sim"] * 3 and devices[3] == "sound" and devices[-1] == "null"


# ---- abilities

def fnv(text):
    number = 0xcbf29ce484222325
    for byte in os.fsencode(text):
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return number


def keep(cache, plugin=SIM, devices=({},), **members):
    """The file that heddle check-plugin writes."""
    cache.mkdir(exist_ok=True)
    real, info = os.path.realpath(plugin), os.stat(plugin)
    untried = {"driver": "sim 1.0", "fence_wait": None, "peer": None, "import_host": None}
    file = cache / f"abilities-{fnv(real):016x}.json"
    file.write_text(json.dumps({"format": 1, "path": real, "size": info.st_size, "mtime_ns": info.st_mtime_ns,
                                "devices": [{"index": i, **untried, **d} for i, d in enumerate(devices)], **members}))
    file.chmod(0o600)
    return file


def abilities(cache, **env):
    return [d["abilities"] for d in everything(SIM, HEDDLE_PROBE_CACHE_DIR=str(cache), **env)["devices"]]


NONE = {"fence_wait": "not tried", "peer": "not tried", "import_host": "not tried", "from": None}


@pytest.mark.parametrize("probe", ["on", "off"])
def test_abilities_are_read_and_shown(tmp_path, probe):
    file = keep(tmp_path / "kept", devices=[{"fence_wait": True, "peer": False}, {"import_host": False}])
    first, second, third = abilities(tmp_path / "kept", HEDDLE_PROBE=probe)
    assert first == {"fence_wait": "works", "peer": "does not work", "import_host": "not tried", "from": str(file)}
    assert second["import_host"] == "does not work" and second["peer"] == "not tried"
    assert third == {**NONE, "from": str(file)}
    r = heddle("devices", "--all", HEDDLE_PLUGINS=str(SIM), HEDDLE_PROBE_CACHE_DIR=str(tmp_path / "kept"), HEDDLE_LOG="info")
    assert f"fence_wait works, peer does not work, import_host not tried, from {file}" in r.out
    assert "sim:1: import_host is not used: heddle check-plugin found that it does not work with this driver" in r.err


@pytest.mark.parametrize("members", [{"size": 1}, {"mtime_ns": 1}, {"path": "/x"}, {"format": 2},
                                     {"devices": [{"index": 0, "driver": "sim 0.9", "peer": False}]}, {"devices": 3}])
def test_abilities_of_another_file_or_driver_do_not_count(tmp_path, members):
    keep(tmp_path / "kept", devices=[{"peer": False}], **members) if "devices" not in members else \
        keep(tmp_path / "kept").write_text(json.dumps({**json.loads(keep(tmp_path / "kept").read_text()), **members}))
    assert abilities(tmp_path / "kept") == [NONE] * 3


def test_abilities_that_others_can_write_do_not_count(tmp_path):
    keep(tmp_path / "kept", devices=[{"peer": False}]).chmod(0o666)
    assert abilities(tmp_path / "kept") == [NONE] * 3
    keep(tmp_path / "kept", devices=[{"peer": False}])
    assert abilities(tmp_path / "kept")[0]["peer"] == "does not work"
    (tmp_path / "kept").chmod(0o777)
    assert abilities(tmp_path / "kept") == [NONE] * 3


def crossings(cache):
    """Of the digits net on two devices of sim's: the routes of image, scale and digit, and the outputs' bytes."""
    words = [DIGITS, "--device", "sim:0,sim:1", "--place", "*=sim:0", "--place", "scale=sim:1"]
    env = {"HEDDLE_PLUGINS": str(SIM), "HEDDLE_PROBE_CACHE_DIR": str(cache)}
    routes = [c["route"] for c in json.loads(good("plan", *words, "--json", **env))["crossings"]]
    cache.mkdir(exist_ok=True)
    good("run", *words, "--random", "--output-dir", cache / "out", **env)
    return routes, [p.read_bytes() for p in sorted((cache / "out").iterdir())]


def test_what_does_not_work_is_not_used(tmp_path):
    routes, outputs = crossings(tmp_path / "none")
    assert routes == ["direct", "peer", "direct"]
    for i in range(2):  # either end
        keep(tmp_path / f"peer{i}", devices=[{"peer": k != i} for k in range(2)])
        assert crossings(tmp_path / f"peer{i}") == (["direct", "staged", "direct"], outputs)
    keep(tmp_path / "works", devices=[{"peer": True, "import_host": True, "fence_wait": True}] * 2)
    assert crossings(tmp_path / "works") == (routes, outputs)
    keep(tmp_path / "import", devices=[{"import_host": False}] * 2)
    assert crossings(tmp_path / "import")[1] == outputs
