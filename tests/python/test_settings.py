"""Settings that nothing reads are warnings with the nearest name, and preferred devices that are missing are reported with
the reason.
timeout: 120
"""
import json
import subprocess

import pytest
from tool_case import BUILD, SOURCE, environment

TOOL = BUILD / "bin" / "heddle"
DIGITS = SOURCE / "examples" / "digits" / "digits.json"


def run(*words, status=0, **env):
    done = subprocess.run([str(w) for w in (TOOL, *words)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env=environment(**{"HEDDLE_CONFIG": "off", **env}))
    assert done.returncode == status, done.stdout + done.stderr
    return done


def warnings(*words, **env):
    return [line.partition("config: ")[2] for line in run(*words, **env).stderr.splitlines() if "config: " in line]


@pytest.mark.parametrize("name,meant", [
    ("HEDDLE_DEVICE", "HEDDLE_DEVICES"), ("HEDDLE_THREDS", "HEDDLE_THREADS"), ("HEDDLE_LIMIT_FOLD_BYTE", "HEDDLE_LIMIT_FOLD_BYTES"),
    ("HEDDLE_SIMM_DELAY_US", "HEDDLE_SIM_DELAY_US"), ("HEDDLE_CPUS_FUSE", "HEDDLE_CPU_FUSE"), ("HEDDLE_PLACES_MEASURE", "HEDDLE_PLACE_MEASURE"),
    ("HEDDLE_QQQQQQ", None), ("HEDDLE_", None), ("HEDDLE_QQQQQQ_US", None)])
def test_variables(name, meant):
    hint = f"; did you mean '{meant}'?" if meant else ""
    assert warnings("devices", **{name: "1"}) == [f"nothing reads the variable '{name}'{hint}"]


def test_settings_of_a_call_and_of_a_file(tmp_path):
    assert warnings("devices", "--set", "devics=cpu") == ["nothing reads the setting 'devics'; did you mean 'devices'?"]
    assert warnings("devices", "--set", "simm.delay_us=1") == ["nothing reads the setting 'simm.delay_us'; did you mean 'sim.delay_us'?"]
    (tmp_path / "config.json").write_text('{"limit": {"memry": "sim:0=1MiB"}, "threads": 2}')
    assert warnings("devices", HEDDLE_CONFIG=str(tmp_path / "config.json")) == [
        f"{tmp_path}/config.json: nothing reads the key 'limit.memry'; did you mean 'limit.memory'?"]


def test_settings_of_a_plugin():
    """Once it is loaded, from what it asked for; not those of its devices, which it is given otherwise."""
    words = ["run", DIGITS, "--random", "--device", "cpu,sim:0"]
    assert warnings(*words, HEDDLE_SIM_DEALY_US="3") == [
        "plugin sim (HEDDLE_SIM_DEALY_US): nothing reads the setting 'sim.dealy_us'; did you mean 'sim.delay_us'?"]
    assert warnings(*words, "--set", "cpu.xyzzy=1") == ["plugin cpu (call): nothing reads the setting 'cpu.xyzzy'"]
    assert warnings(*words, "--set", "sim.1.delay_us=3", "--set", "sim.layers=check", HEDDLE_SIM_DELAY_US="1") == []


def test_what_is_read_gives_no_warning():
    assert warnings("devices", "--all", POCL_DEVICES="pthread", HEDDLE_LIMIT_MEMORY="sim:0=1GiB", HEDDLE_SPIN_US="1", HEDDLE_BUILD="x", HEDDLE_PYTHON="python3", HEDDLE_KEY="x",
                    HEDDLE_TEST_SCALE="1", HEDDLE_FAULT_FAIL="", HEDDLE_CPU_FUSE="0", HEDDLE_SIM_SEED="3") == []


def test_a_preferred_device_that_is_missing_is_named_with_its_reason():
    wanted = "sim:7?, npu?,cpu"
    reasons = ["sim:7 was preferred and is left out: plugin sim has 3 devices here",
               "npu was preferred and is left out: no plugin has that name"]
    assert json.loads(run("devices", "--json", HEDDLE_DEVICES=wanted).stdout)["left_out"] == reasons
    assert [f"warning: {r}" for r in reasons] == run("devices", HEDDLE_DEVICES=wanted).stdout.splitlines()[-2:]
    plan = ["plan", DIGITS, "--device", f"sim:0,{wanted}"]
    assert json.loads(run(*plan, "--json").stdout)["left_out"] == reasons
    assert all(reason in run(*plan).stdout for reason in reasons)
    absent = run("devices", "--json", HEDDLE_DEVICES="nothing?,cpu", HEDDLE_PLUGINS=str(BUILD / "no_such.so") + ":" + str(
        BUILD / "lib/heddle/plugins/libheddle_plugin_cpu.so"))
    assert json.loads(absent.stdout)["left_out"] == ["nothing was preferred and is left out: no plugin has that name"]
    assert run("devices", HEDDLE_DEVICES="sim:0?,cpu").stdout.count("warning") == 0


def test_devices_fails_where_the_list_cannot_be_had():
    for words in ([], ["--json"]):
        said = run("devices", *words, status=1, HEDDLE_DEVICES="sim:7,cpu").stdout
        assert "no device 'sim:7' (HEDDLE_DEVICES)" in said and "sim:0" in said
        run("devices", *words, status=1, HEDDLE_DEVICES="off")
        run("devices", *words, HEDDLE_DEVICES="sim:2,cpu")


def test_plugins_describe_their_settings():
    """What a plugin reads while it is loaded is in its list; a key that is not, of one device too, is reported."""
    listed = json.loads(run("devices", "--settings", "--json").stdout)["settings"]
    by_key = {one["key"]: one for one in listed}
    assert len(by_key) == len(listed)
    assert by_key["sim.delay_us"] == {"key": "sim.delay_us", "type": "number", "default": "0", "per_device": True, "low": 0,
                                      "high": 1000000, "help": "most microseconds of a random wait before each command"}
    assert by_key["sim.peer"]["values"] == "on,off,lie" and not by_key["sim.peer"]["per_device"]
    assert all(one["help"] and "\n" not in one["help"] for one in listed)
    assert "sim.delay_us" in run("devices", "--settings").stdout
    loaded = run("devices", "--settings", "--set", "log=info").stderr
    assert "plugin sim" in loaded and "which it does not describe" not in loaded
    assert warnings("devices", "--set", "sim.0.hagn=1", "--set", "sim.1.delay_us=1") == [
        "plugin sim (call): nothing reads the setting 'sim.0.hagn'; did you mean 'sim.0.hang'?"]
    [of_all] = warnings("devices", "--set", "sim.0.peer=on")  # a setting of all devices together
    assert of_all.startswith("plugin sim (call): nothing reads the setting 'sim.0.peer'") and "mean 'sim.0.peer'" not in of_all


@pytest.mark.parametrize("typed,offered", [("sim.del", "sim.delay_us="), ("sim.peer=", "sim.peer=lie"), ("sim.views=", "sim.views=0")])
def test_described_settings_are_completed(typed, offered):
    assert offered in run("complete", "devices", "--set", typed).stdout.splitlines()
