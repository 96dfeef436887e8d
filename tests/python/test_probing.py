"""Plugins that take a process down are met in one of their own: what becomes of them, what is kept of it and for how
long, and what happens where nothing can be tried or kept.

timeout: 600
"""
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
from tool_case import BUILD, DIGITS, TOOL, environment, heddle

BROKEN = BUILD / "tests" / "broken-plugins"
TRIED = "info: probe: tries /"
PLUGINS = BUILD / "lib" / "heddle" / "plugins"
SIM = PLUGINS / "libheddle_plugin_sim.so"
# A sanitizer makes an exit status of a signal, and counts what a broken plugin leaks.
QUIET = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"),
                               "handle_segv=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:detect_leaks=0"]))


def broken(name):
    return BROKEN / f"libheddle_plugin_{name}.so"


def devices(cache, plugins, *words, tool=TOOL, **env):
    env = {"HEDDLE_PROBE": "on", "HEDDLE_PROBE_CACHE_DIR": str(cache), "ASAN_OPTIONS": QUIET, "HEDDLE_LOG": "info",
           "HEDDLE_PLUGINS": ":".join(map(str, plugins)), **env}
    done = subprocess.run([str(tool), "devices", "--json", *words], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, env=environment(**env))
    assert done.returncode == 0, done
    return json.loads(done.stdout)["plugins"], done.stderr


def only(cache, plugin, *words, **env):
    plugins, log = devices(cache, [plugin], *words, **env)
    assert len(plugins) == 1
    return plugins[0], log


def record_of(cache):
    files = list(cache.glob("probe-*.json"))
    assert len(files) == 1, files
    return files[0]


def change(cache, **members):
    """The record with other members, as the same user would write it."""
    path = record_of(cache)
    record = {**json.loads(path.read_text()), **members}
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("name, words", [
    ("crash_entry", "crashed: signal 11 in heddle_plugin_entry"),
    ("abort_entry", "crashed: signal 6 in heddle_plugin_entry"),
    ("exit_entry", "ended its process with status 0 in heddle_plugin_entry"),
    ("crash_enumerate", "crashed: signal 11 in device_describe"),
    ("crash_exit", "crashed: signal 11 in its end, at exit"),
    ("hang_entry", "did not answer within 6 s in heddle_plugin_entry"),
    ("hang_enumerate", "did not answer within 6 s in device_count"),
])
def test_a_plugin_that_takes_its_process_down_is_quarantined(tmp_path, name, words):
    limit = {"HEDDLE_PROBE_TIMEOUT_MS": "6000"} if name.startswith("hang") else {}
    plugin, log = only(tmp_path, broken(name), **limit)
    assert not plugin["used"] and f"quarantined: when it was tried it {words}" in plugin["reason"], plugin
    assert "--retry" in plugin["reason"]
    assert f"not used: {broken(name)}: quarantined" in log and log.count(TRIED) == 1
    assert f"warning: probe: {broken(name)} is quarantined: when it was tried it {words}" in log
    record = record_of(tmp_path)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    kept = json.loads(record.read_text())
    assert kept["state"] == "quarantined" and kept["reason"] == words and kept["path"] == str(broken(name))
    again, log = only(tmp_path, broken(name))
    assert again["reason"] == plugin["reason"] and TRIED not in log and "warning" not in log


def test_a_model_runs_beside_plugins_that_crash(tmp_path):
    env = {"HEDDLE_PROBE": "on", "HEDDLE_PROBE_CACHE_DIR": str(tmp_path / "kept"), "ASAN_OPTIONS": QUIET}
    plugins = [broken("crash_entry"), PLUGINS / "libheddle_plugin_cpu.so", SIM, broken("crash_enumerate")]
    r = heddle("run", DIGITS, "--random", "--device", "sim:0,cpu", HEDDLE_PLUGINS=":".join(map(str, plugins)), **env)
    assert r.status == 0, r


def test_a_sound_plugin_is_tried_once(tmp_path):
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and plugin["devices"] == 3 and log.count(TRIED) == 1
    kept = json.loads(record_of(tmp_path).read_text())
    assert kept["state"] == "ok" and kept["drivers"] == ["sim 1.0"]
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED not in log


def test_the_settings_of_the_call_reach_the_try(tmp_path):
    plugin, _ = only(tmp_path, SIM, "--set", "sim.devices=nonsense")
    assert not plugin["used"] and "sim.devices" in plugin["reason"].replace("'devices' of sim", "sim.devices"), plugin
    assert json.loads(record_of(tmp_path).read_text())["drivers"] == []  # it refused there too


def test_a_polite_refusal_is_no_quarantine(tmp_path):
    plugin, log = only(tmp_path, broken("wrong_major"))
    assert "quarantined" not in plugin["reason"] and "ABI" in plugin["reason"]
    assert json.loads(record_of(tmp_path).read_text())["state"] == "ok"


def test_another_file_is_tried_again(tmp_path):
    path = tmp_path / "libheddle_plugin_x.so"
    shutil.copy(broken("crash_entry"), path)
    assert "quarantined" in only(tmp_path / "kept", path)[0]["reason"]
    path.unlink()
    shutil.copy(broken("sound"), path)
    plugin, log = only(tmp_path / "kept", path)
    assert plugin["used"] and TRIED in log, plugin


def test_retry_tries_what_is_quarantined(tmp_path):
    only(tmp_path, SIM)
    change(tmp_path, state="quarantined", reason="crashed: signal 4 in a test")
    plugin, log = only(tmp_path, SIM)
    assert "crashed: signal 4 in a test" in plugin["reason"] and TRIED not in log
    plugin, log = only(tmp_path, SIM, "--retry")
    assert plugin["used"] and TRIED in log
    assert json.loads(record_of(tmp_path).read_text())["state"] == "ok"
    plugin, log = only(tmp_path, SIM, "--retry")  # nothing is left to retry
    assert plugin["used"] and TRIED not in log
    assert "quarantined" in only(tmp_path / "other", broken("crash_entry"))[0]["reason"]
    plugin, log = only(tmp_path / "other", broken("crash_entry"), "--retry")
    assert "quarantined" in plugin["reason"] and TRIED in log


@pytest.mark.parametrize("members", [
    {"system": "0" * 32},  # a driver of the system was installed
    {"files": [["/usr/lib/no-such-driver.so", 1, 1]]},
    {"heddle": "0.0.1"},
    {"size": 1}, {"mtime_ns": 1}, {"path": "/elsewhere"}, {"format": 2}, {"state": 3}, {"files": [3]},
])
def test_a_record_of_something_else_does_not_count(tmp_path, members):
    only(tmp_path, SIM)
    change(tmp_path, **{"state": "quarantined", "reason": "crashed: signal 4", **members})
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log, plugin


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"format":1}', "\0" * 50, "[" * 5000, '{"a":1,"a":2}'])
def test_a_damaged_record_does_not_count(tmp_path, text):
    only(tmp_path, SIM)
    record_of(tmp_path).write_text(text)
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log


def test_a_driver_that_was_not_met_is_tried_by_the_next_process(tmp_path):
    only(tmp_path, SIM)
    change(tmp_path, drivers=["sim 0.9"])
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and "driver 'sim 1.0' is new" in log and TRIED not in log
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log
    assert sorted(json.loads(record_of(tmp_path).read_text())["drivers"]) == ["sim 0.9", "sim 1.0"]
    assert TRIED not in only(tmp_path, SIM)[1]


@pytest.mark.parametrize("name, words", [("crashes", "crashed: signal 11"), ("hangs", "did not answer within 2 s")])
def test_a_driver_that_came_within_the_fatal_call_counts(tmp_path, name, words):
    """Another one of it, and the plugin is tried again."""
    plugin = BUILD / "tests" / "plugins" / f"libheddle_plugin_probe_driver_{name}.so"
    driver = tmp_path / "driver.so"
    shutil.copyfile(SIM, driver)
    env = {"PROBE_LOADS": str(driver), "HEDDLE_PROBE_TIMEOUT_MS": "2000"}
    found, log = only(tmp_path / "kept", plugin, **env)
    assert words in found["reason"] and TRIED in log, (found, log)
    found, log = only(tmp_path / "kept", plugin, **env)
    assert words in found["reason"] and TRIED not in log, (found, log)
    driver.unlink()
    found, log = only(tmp_path / "kept", plugin, **env)
    assert found["used"] and TRIED in log, (found, log)


def test_who_ends_heddle_probe_quarantines_nothing(tmp_path):
    """A service that is stopped takes its processes along, whatever the plugin is like; here the plugin does so."""
    plugin = BUILD / "tests" / "plugins" / "libheddle_plugin_probe_driver_ended.so"
    found, _ = only(tmp_path, plugin, PROBE_LOADS=str(SIM))
    assert "it could not be tried: heddle-probe was ended by signal 15 in heddle_plugin_entry" in found["reason"], found
    assert not list(tmp_path.iterdir())
    found, log = only(tmp_path, plugin)
    assert found["used"] and TRIED in log, (found, log)


@pytest.mark.parametrize("name", ["probe_driver_empty", "probe_driver_bytes"])
def test_a_driver_text_that_cannot_be_kept_is_not_compared(tmp_path, name):
    """One that is empty, and one that is no UTF-8: they are not new to each process."""
    path = BUILD / "tests" / "plugins" / f"libheddle_plugin_{name}.so"
    for turn in range(3):
        plugin, log = only(tmp_path, path)
        assert plugin["used"] and (TRIED in log) == (turn == 0) and "is new" not in log, (turn, log)


def test_a_colon_in_a_path_hides_no_plugin(tmp_path):
    """heddle-probe has to try this file, and not what stands before the colon."""
    folder = tmp_path / "plug:ins"
    folder.mkdir()
    shutil.copyfile(broken("crash_entry"), folder / "libheddle_plugin_crash.so")
    plugin, _ = only(tmp_path / "cache", folder / "libheddle_plugin_crash.so")
    assert "crashed: signal 11" in plugin["reason"], plugin
    shutil.copyfile(broken("crash_entry"), tmp_path / "libheddle_plugin_a:b.so")
    plugin, _ = only(tmp_path / "cache", tmp_path)
    assert "crashed: signal 11" in plugin["reason"], plugin


def test_records_that_others_can_write_do_not_count(tmp_path):
    only(tmp_path, SIM)
    record_of(tmp_path).chmod(0o666)
    assert TRIED in only(tmp_path, SIM)[1]
    assert TRIED not in only(tmp_path, SIM)[1]
    tmp_path.chmod(0o777)
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log and "is not kept" in log


def test_without_a_folder_each_process_tries(tmp_path):
    for _ in range(2):
        plugin, log = only(tmp_path, broken("crash_entry"), HEDDLE_PROBE_CACHE_DIR="/proc/heddle-nothing")
        assert "quarantined" in plugin["reason"] and log.count(TRIED) == 1 and "is not kept" in log


def test_a_limit_on_files_ends_no_program(tmp_path):
    """Nothing can be handed over: that is said, and is not the signal SIGXFSZ."""
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path), ASAN_OPTIONS=QUIET,
                      HEDDLE_PLUGINS=str(SIM))
    done = subprocess.run(["/bin/sh", "-c", 'ulimit -f 0; exec "$0" devices --json', TOOL], capture_output=True,
                          text=True, env=env, timeout=300)
    assert done.returncode == 0 and json.loads(done.stdout)["plugins"][0]["used"], done
    assert "without having been tried: the settings could not be handed over (errno 27)" in done.stderr, done


def test_one_process_tries_once(tmp_path):
    """Two contexts, and no folder that could be written to."""
    program = f"""
import sys
sys.path.insert(0, {str(BUILD.parents[0])!r})
import ctypes
lib = ctypes.CDLL({str(BUILD / "lib" / "libheddle.so.0")!r})
lib.heddle_context_plugin_count.restype = ctypes.c_size_t
for _ in range(2):
    ctx = ctypes.c_void_p()
    assert lib.heddle_context_create(None, ctypes.c_size_t(0), None, None, ctypes.byref(ctx), None) == 0
    lib.heddle_context_device_count(ctx)
    lib.heddle_context_release(ctx)
"""
    if os.environ.get("HEDDLE_SANITIZE"):
        pytest.skip("a sanitizer's run time is not in Python")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
                          env=environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR="/proc/heddle-nothing",
                                          HEDDLE_LOG="info", HEDDLE_PLUGINS=str(broken("crash_entry"))))
    assert done.returncode == 0, done
    assert done.stderr.count(TRIED) == 1 and done.stderr.count("not used: ") == 2, done.stderr


def test_off_is_off(tmp_path):
    plugin, log = only(tmp_path, SIM, HEDDLE_PROBE="off")
    assert plugin["used"] and TRIED not in log and not list(tmp_path.iterdir())
    r = heddle("devices", HEDDLE_PROBE="perhaps", HEDDLE_PLUGINS=str(SIM))
    assert r.status != 0 and "'probe'" in r.err or "'probe'" in r.out + r.err


def test_processes_that_try_at_once_agree(tmp_path):
    plugins = [SIM, broken("crash_entry")]
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path), ASAN_OPTIONS=QUIET,
                      HEDDLE_PLUGINS=":".join(map(str, plugins)))
    running = [subprocess.Popen([TOOL, "devices", "--json"], stdout=subprocess.PIPE, env=env) for _ in range(6)]
    answers = [json.loads(p.communicate(timeout=300)[0])["plugins"] for p in running]
    assert all(a == answers[0] for a in answers)
    assert answers[0][0]["used"] and "quarantined" in answers[0][1]["reason"]
    states = sorted(json.loads(p.read_text())["state"] for p in tmp_path.iterdir())
    assert states == ["ok", "quarantined"]  # and nothing that was left half-written


def test_a_program_that_collects_all_children_gets_an_answer(tmp_path):
    """SIGCHLD ignored: the system takes the status away before anybody can ask."""
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path), ASAN_OPTIONS=QUIET,
                      HEDDLE_PLUGINS=f"{SIM}:{broken('crash_entry')}")
    done = subprocess.run(["/bin/sh", "-c", 'trap "" CHLD; exec "$0" devices --json', TOOL], capture_output=True,
                          text=True, env=env, timeout=300)
    plugins = json.loads(done.stdout)["plugins"]
    assert plugins[0]["used"] and "in heddle_plugin_entry" in plugins[1]["reason"], plugins


# ---- a prefix of our own, whose heddle-probe is not what it should be

@pytest.fixture
def prefix(tmp_path):
    for folder in ("bin", "lib", "libexec/heddle"):
        (tmp_path / "prefix" / folder).mkdir(parents=True)
    for name in os.listdir(BUILD / "lib"):
        if name.startswith("libheddle.so"):
            shutil.copy(BUILD / "lib" / name, tmp_path / "prefix" / "lib" / name, follow_symlinks=False)
    shutil.copy(TOOL, tmp_path / "prefix" / "bin" / "heddle")
    shutil.copy(BUILD / "libexec" / "heddle" / "heddle-probe", tmp_path / "prefix" / "libexec" / "heddle")
    return tmp_path / "prefix"


def from_prefix(prefix, plugin, **env):
    # The tool of a build tree may know its libraries by an absolute path.
    return only(prefix / "kept", plugin, tool=prefix / "bin" / "heddle", LD_LIBRARY_PATH=str(prefix / "lib"), **env)


def test_a_moved_prefix_finds_its_own_helper(prefix):
    plugin, log = from_prefix(prefix, broken("crash_entry"))
    assert "crashed: signal 11" in plugin["reason"], (plugin, log)


@pytest.mark.parametrize("helper, words", [
    (None, "there is no heddle-probe"),
    ("#!/bin/sh\nexit 7\n", "heddle-probe ended its process with status 7"),
    ("#!/bin/sh\nkill -9 $$\n", "heddle-probe crashed: signal 9"),
    ("#!/bin/sh\necho failed it has no wish to\n", "heddle-probe failed: it has no wish to"),
    ("no program", "heddle-probe could not be started"),
])
def test_where_nothing_can_be_tried_it_is_loaded_and_said(prefix, helper, words):
    path = prefix / "libexec" / "heddle" / "heddle-probe"
    path.unlink()
    if helper is not None:
        path.write_text(helper)
        path.chmod(0o755)
    plugin, log = from_prefix(prefix, SIM)
    assert plugin["used"], plugin
    assert f"warning: probe: {SIM} is loaded without having been tried: " in log and words in log, log


def test_a_helper_that_does_not_start_in_time_says_nothing_of_the_plugin(prefix):
    path = prefix / "libexec" / "heddle" / "heddle-probe"
    path.unlink()
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    plugin, _ = from_prefix(prefix, SIM, HEDDLE_PROBE_TIMEOUT_MS="500")
    assert not plugin["used"] and "the next process tries it again" in plugin["reason"], plugin
    assert not list((prefix / "kept").glob("*")) if (prefix / "kept").exists() else True
