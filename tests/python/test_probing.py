"""Plugins that take a process down are met in one of their own: what becomes of them, what is kept of it and for how
long, and what happens where nothing can be tried or kept.

timeout: 600
"""
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

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
])
def test_a_plugin_that_takes_its_process_down_is_quarantined(tmp_path, name, words):
    plugin, log = only(tmp_path, broken(name))
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


@pytest.mark.parametrize("name, words", [
    ("hang_entry", "did not answer within 3 s in heddle_plugin_entry"),
    ("hang_enumerate", "did not answer within 3 s in device_count"),
])
def test_a_time_out_needs_two_and_counts_for_that_time(tmp_path, name, words):
    for turn, state in enumerate(("suspect", "quarantined")):
        plugin, log = only(tmp_path, broken(name), HEDDLE_PROBE_TIMEOUT_MS="3000")
        assert not plugin["used"] and f"when it was tried it {words}" in plugin["reason"], plugin
        assert ("quarantined" in plugin["reason"]) == (turn == 1) and log.count(TRIED) == 1
        kept = json.loads(record_of(tmp_path).read_text())
        assert (kept["state"], kept["limit_ms"], kept["failures"]) == (state, 3000, turn + 1)
    # Other limits say nothing of it, nor does a shorter time.
    change(tmp_path, limits={k: 0 for k in kept["limits"]})
    for limit in ("3000", "2000"):
        plugin, log = only(tmp_path, broken(name), HEDDLE_PROBE_TIMEOUT_MS=limit)
        assert "quarantined" in plugin["reason"] and "a longer probe.timeout_ms" in plugin["reason"] and TRIED not in log
    plugin, log = only(tmp_path, broken(name), HEDDLE_PROBE_TIMEOUT_MS="3100")
    assert "quarantined" in plugin["reason"] and log.count(TRIED) == 1  # it failed again: one try more, not two
    assert json.loads(record_of(tmp_path).read_text())["limit_ms"] == 3100


def under(limits, cache, plugins, *words, **env):
    """heddle devices in a shell with these limits (ulimit's letters)."""
    env = environment(**{"HEDDLE_PROBE": "on", "HEDDLE_PROBE_CACHE_DIR": str(cache), "HEDDLE_LOG": "info",
                         "ASAN_OPTIONS": QUIET, "HEDDLE_PLUGINS": ":".join(map(str, plugins)), **env})
    done = subprocess.run(["/bin/sh", "-c", f'{limits}; exec "$0" "$@"', TOOL, "devices", "--json", *words],
                          capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr


needs_limits = pytest.mark.skipif(bool(os.environ.get("HEDDLE_SANITIZE")),
                                  reason="a sanitizer's run time needs all of the address space")
HUNGRY = BUILD / "tests" / "plugins" / "libheddle_plugin_probe_hungry.so"  # crashes below 1 GiB of address space


@needs_limits
def test_a_failure_under_a_limit_on_memory_is_no_verdict(tmp_path):
    found, log = under("ulimit -v 400000", tmp_path, [HUNGRY])
    reason = found["plugins"][0]["reason"]
    assert "crashed: signal 6" in reason and "want of memory" in reason and "quarantined" not in reason, reason
    assert f"warning: probe: {HUNGRY} is not used" in log
    plugin, log = only(tmp_path, HUNGRY)
    assert plugin["used"] and TRIED in log, (plugin, log)
    assert TRIED not in only(tmp_path, HUNGRY)[1]


@needs_limits
def test_a_quarantine_under_limits_ends_with_them(tmp_path):
    for turn in range(2):
        found, log = under("ulimit -v 400000", tmp_path, [HUNGRY])
        assert ("quarantined" in found["plugins"][0]["reason"]) == (turn == 1) and TRIED in log
    for limits in ("ulimit -v 400000", "ulimit -v 390000; ulimit -n 64"):  # not looser
        found, log = under(limits, tmp_path, [HUNGRY])
        assert "looser limits" in found["plugins"][0]["reason"] and TRIED not in log
    found, log = under("ulimit -v 410000", tmp_path, [HUNGRY])  # looser, and not enough
    assert "quarantined" in found["plugins"][0]["reason"] and TRIED in log
    assert json.loads(record_of(tmp_path).read_text())["limits"]["as"] == 410000 * 1024
    plugin, log = only(tmp_path, HUNGRY)
    assert plugin["used"] and TRIED in log


@needs_limits
def test_a_crash_that_no_limit_explains_is_tried_again_under_looser_ones(tmp_path):
    found, log = under("ulimit -n 64", tmp_path, [broken("crash_entry")])
    assert "quarantined" in found["plugins"][0]["reason"]
    assert TRIED not in under("ulimit -n 64", tmp_path, [broken("crash_entry")])[1]
    for tries in (1, 0):
        assert under("ulimit -n 128", tmp_path, [broken("crash_entry")])[1].count(TRIED) == tries
    assert TRIED not in under("ulimit -n 64", tmp_path, [broken("crash_entry")])[1]  # and not to and fro


@pytest.mark.parametrize("number, resource", [("SIGXCPU", "CPU time"), ("SIGXFSZ", "file size"), ("SIGKILL", "memory"),
                                              ("SIGBUS", "memory or space")])
def test_a_signal_for_want_of_a_resource_needs_two(tmp_path, number, resource):
    plugin = BUILD / "tests" / "plugins" / "libheddle_plugin_probe_signal.so"
    env = {"PROBE_SIGNAL": str(int(getattr(signal, number)))}
    for turn in range(2):
        found, log = only(tmp_path, plugin, **env)
        assert (f"perhaps for want of {resource}" in found["reason"]) == (turn == 0), found
        assert ("quarantined" in found["reason"]) == (turn == 1) and TRIED in log
    found, log = only(tmp_path, plugin, **env)
    assert "quarantined" in found["reason"] and TRIED not in log


@pytest.mark.parametrize("what, words", [("files", "file descriptors"), ("memory", "memory")])
@needs_limits
def test_what_is_used_up_at_the_crash_is_measured(tmp_path, what, words):
    plugin = BUILD / "tests" / "plugins" / "libheddle_plugin_probe_takes_all.so"
    limits = "ulimit -n 64" if what == "files" else "ulimit -v 400000"
    found, _ = under(limits, tmp_path, [plugin], PROBE_TAKES=what)
    assert f"signal 6 in heddle_plugin_entry, perhaps for want of {words}:" in found["plugins"][0]["reason"], found


def test_what_is_found_where_less_of_the_system_is_seen_counts_there(tmp_path):
    """PoCL crashes where there is no /sys, as in a chroot."""
    opencl = PLUGINS / "libheddle_plugin_opencl.so"
    if not opencl.exists() or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys"],
                                             capture_output=True).returncode != 0:
        pytest.skip("there is no OpenCL, or /sys cannot be covered")
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path), HEDDLE_LOG="info", ASAN_OPTIONS=QUIET,
                      HEDDLE_PLUGINS=str(opencl))
    for turn in range(3):
        inside = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys; exec "$0" devices --json', TOOL],
                                capture_output=True, text=True, env=env, timeout=300)
        assert inside.returncode == 0 and (TRIED in inside.stderr) == (turn != 1), inside
        if turn == 0:
            continue
        plugin, log = only(tmp_path, opencl)
        assert plugin["used"] and TRIED in log, (plugin, log)
        assert TRIED not in only(tmp_path, opencl)[1]


def test_a_quarantine_expires(tmp_path):
    only(tmp_path, broken("crash_entry"))
    kept = json.loads(record_of(tmp_path).read_text())
    day = 86400
    for age, days, tries in ((6 * day, "7", 0), (7 * day + 60, "7", 1), (2 * day, "1", 1), (2 * day, "3", 0), (0, "0", 1),
                             (-2 * day, "7", 1)):  # the clock was set back
        change(tmp_path, time=int(time.time()) - age)
        plugin, log = only(tmp_path, broken("crash_entry"), HEDDLE_PROBE_EXPIRE_DAYS=days)
        assert "quarantined" in plugin["reason"] and log.count(TRIED) == tries, (age, days, log)
    assert json.loads(record_of(tmp_path).read_text())["time"] >= kept["time"]


def test_a_quarantine_of_an_older_version_is_tried_again(tmp_path):
    """It says neither when it was made nor under which limits; what went well counts."""
    only(tmp_path, SIM)
    record = json.loads(record_of(tmp_path).read_text())
    for key in ("limits", "time", "limit_ms", "failures"):
        del record[key]
    record_of(tmp_path).write_text(json.dumps(record))
    assert TRIED not in only(tmp_path, SIM)[1]
    record_of(tmp_path).write_text(json.dumps({**record, "state": "quarantined", "reason": "crashed: signal 6"}))
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log


@pytest.mark.parametrize("members", [{"limits": 3}, {"limits": {"as": "x"}}, {"limits": None}, {"time": "now"},
                                     {"time": -(2**63)}, {"time": 2**63 - 1}, {"limit_ms": -1, "time": 0}])
def test_a_quarantine_with_odd_members_is_tried_again(tmp_path, members):
    only(tmp_path, SIM)
    change(tmp_path, state="quarantined", reason="crashed: signal 4", **members)
    plugin, log = only(tmp_path, SIM)
    assert plugin["used"] and TRIED in log


def test_what_a_list_leaves_out_is_said(tmp_path):
    """By a warning, in heddle devices and in heddle plan: where the plugin was tried, and where that is remembered."""
    crash = broken("crash_entry")
    env = {"HEDDLE_PROBE": "on", "HEDDLE_PROBE_CACHE_DIR": str(tmp_path / "kept"), "ASAN_OPTIONS": QUIET,
           "HEDDLE_PLUGINS": f"{PLUGINS}/libheddle_plugin_cpu.so:{SIM}:{crash}"}
    for _ in range(2):
        words = f"crash_entry:0 was preferred and is left out: {crash}: quarantined: when it was tried it crashed"
        r = heddle("devices", "--set", "devices=sim:7?,crash_entry:0?,sim:0", **env)
        assert f"heddle warning: select: {words}" in r.err and r.err.count("left out") == 1, r
        assert f"\nwarning: {words}" in r.out and "in use: sim:0 " in r.out, r
        r = heddle("devices", "--json", "--set", "devices=crash_entry?,sim:0", **env)
        assert [line.split(" (")[0][:11] for line in json.loads(r.out)["left_out"]] == ["crash_entry"], r
        r = heddle("plan", DIGITS, "--device", "crash_entry:0?,sim:0,cpu", **env)
        assert f"\nwarning   {words}" in r.out and f"heddle warning: select: {words}" in r.err, r
        r = heddle("plan", DIGITS, "--json", "--device", "crash_entry:0?,sim:0,cpu", **env)
        assert len(json.loads(r.out)["left_out"]) == 1 and json.loads(r.out)["left_out"][0].startswith(words), r
        r = heddle("run", DIGITS, "--random", "--device", "crash_entry:0?,sim:0,cpu", **env)
        assert r.status == 0 and f"heddle warning: select: {words}" in r.err, r
        words = f"the default devices leave out those of {crash}: quarantined"
        r = heddle("devices", **env)
        assert r.status == 0 and r.err.count(f"heddle warning: select: {words}") == 1 and f"\nwarning: {words}" in r.out, r
    # Lists that it does not change; what is plainly not there is in the plan, and no warning of the log.
    r = heddle("plan", DIGITS, "--device", "sim:0,cpu", **env)
    assert "left out" not in r.err + r.out and "warning" not in r.err + r.out, r
    r = heddle("plan", DIGITS, "--device", "sim:9?,sim:0,cpu", **env)
    assert "sim:9 was preferred and is left out: plugin sim has" in r.out and "crash" not in r.out and r.err == "", r
    r = heddle("run", DIGITS, "--random", "--device", "crash_entry:0,sim:0,cpu", **env)
    assert r.status != 0 and "quarantined: when it was tried" in r.err and "left out" not in r.err, r


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


@pytest.mark.parametrize("name, words, tries", [("crashes", "crashed: signal 11", 1),
                                                ("hangs", "did not answer within 2 s", 2)])
def test_a_driver_that_came_within_the_fatal_call_counts(tmp_path, name, words, tries):
    """Another one of it, and the plugin is tried again."""
    plugin = BUILD / "tests" / "plugins" / f"libheddle_plugin_probe_driver_{name}.so"
    driver = tmp_path / "driver.so"
    shutil.copyfile(SIM, driver)
    env = {"PROBE_LOADS": str(driver), "HEDDLE_PROBE_TIMEOUT_MS": "2000"}
    for _ in range(tries):
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


@pytest.mark.parametrize("name, words", [("probe_driver_empty", "its driver is empty"),
                                         ("probe_driver_bytes", "its driver is not UTF-8")])
def test_a_driver_without_a_text_is_refused(tmp_path, name, words):
    """In each process alike, whether the file was tried before or not."""
    path = BUILD / "tests" / "plugins" / f"libheddle_plugin_{name}.so"
    for turn in range(3):
        plugin, log = only(tmp_path, path)
        assert not plugin["used"] and words in plugin["reason"], (turn, plugin, log)


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


def test_a_limit_on_files_is_in_no_ones_way(tmp_path):
    """What is handed over is no file; and there is no signal SIGXFSZ."""
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR=str(tmp_path), ASAN_OPTIONS=QUIET,
                      HEDDLE_PLUGINS=str(SIM))
    done = subprocess.run(["/bin/sh", "-c", 'ulimit -f 0; exec "$0" devices --json', TOOL], capture_output=True,
                          text=True, env=env, timeout=300)
    assert done.returncode == 0 and json.loads(done.stdout)["plugins"][0]["used"], done
    assert "could not be tried" not in done.stderr, done


def test_long_settings_reach_the_try(tmp_path):
    """More than a pipe or a socket takes at once."""
    long = [word for i in range(60) for word in ("--set", f"sim.unknown{i}=" + "x" * 8000)]
    plugin, log = only(tmp_path, SIM, *long, "--set", "sim.devices=2")
    assert plugin["used"] and plugin["devices"] == 2 and log.count(TRIED) == 1
    assert json.loads(record_of(tmp_path).read_text())["state"] == "ok"


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
    """SIGCHLD ignored: the system takes the status away before it can be asked for."""
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
def test_what_cannot_be_tried_is_not_loaded(prefix, helper, words):
    path = prefix / "libexec" / "heddle" / "heddle-probe"
    path.unlink()
    if helper is not None:
        path.write_text(helper)
        path.chmod(0o755)
    plugin, log = from_prefix(prefix, SIM)
    assert not plugin["used"] and "it could not be tried: " + words in plugin["reason"], plugin
    assert f"warning: probe: {SIM} is not loaded, since it could not be tried: " in log and words in log, log
    assert not (prefix / "kept").exists()
    plugin, log = from_prefix(prefix, SIM, HEDDLE_PROBE="off")
    assert plugin["used"] and "could not be tried" not in log, (plugin, log)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@needs_limits
def test_a_process_that_may_start_no_other_loads_nothing(tmp_path):
    """RLIMIT_NPROC, which does not bind root."""
    tmp_path.chmod(0o755)
    env = environment(HEDDLE_PROBE="on", HEDDLE_PROBE_CACHE_DIR="off", HEDDLE_PLUGINS=str(SIM))
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", TOOL, "devices", "--json"],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)), capture_output=True,
                          text=True, env=env, timeout=300)
    if done.returncode != 0:
        pytest.skip("another user cannot start the tool: " + done.stderr)
    plugin = json.loads(done.stdout)["plugins"][0]
    assert not plugin["used"] and "it could not be tried: heddle-probe could not be started (errno 11)" in plugin["reason"]
    assert "is not loaded, since it could not be tried" in done.stderr


def test_a_helper_that_does_not_start_in_time_says_nothing_of_the_plugin(prefix):
    path = prefix / "libexec" / "heddle" / "heddle-probe"
    path.unlink()
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    plugin, _ = from_prefix(prefix, SIM, HEDDLE_PROBE_TIMEOUT_MS="500")
    assert not plugin["used"] and "the next process tries it again" in plugin["reason"], plugin
    assert not list((prefix / "kept").glob("*")) if (prefix / "kept").exists() else True
