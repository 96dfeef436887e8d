"""Placement by environment and configuration file, devices by groups ("gpu", "all", "sim:*"), and annotations left aside.
timeout: 300"""

import json

import pytest
from tool_case import DIGITS, failing, good, heddle

PLAIN = ("--device", "cpu,sim:0,sim:1", "--ignore-annotations")


def places(*words, **env):
    """The device of each node, by name."""
    plan = json.loads(good("plan", DIGITS, *words, "--json", **env))
    names = [d["name"] for d in plan["devices"]]
    return {n["name"]: names[n["device"]] for n in plan["nodes"] if n["op"] != "null" and n["device"] >= 0}


def in_use(devices, **env):
    plan = json.loads(good("plan", DIGITS, "--device", devices, "--ignore-annotations", "--json", **env))
    return [d["name"] for d in plan["devices"]]


def file_of(tmp_path, **settings):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(settings))
    return {"HEDDLE_CONFIG": str(path)}


def test_annotations_are_left_aside(tmp_path):
    annotated = places("--device", "cpu,sim:0,sim:1")
    assert set(annotated.values()) != {"cpu:0"} == set(places(*PLAIN).values())
    words = ("--device", "cpu,sim:0,sim:1")
    for env in ({"HEDDLE_ANNOTATIONS": "0"}, {"HEDDLE_ANNOTATIONS": "off"}, file_of(tmp_path, annotations=False),
                file_of(tmp_path, annotations="off")):
        assert set(places(*words, **env).values()) == {"cpu:0"}, env
    assert places(*words, HEDDLE_ANNOTATIONS="1") == annotated
    said = failing(1, "plan", DIGITS, *words, HEDDLE_ANNOTATIONS="perhaps")
    assert "annotations is on or off, not 'perhaps' (from HEDDLE_ANNOTATIONS)" in said
    said = failing(1, "plan", DIGITS, "--device", "cpu")
    assert "ignore the annotations" in said


def test_rules_of_the_environment(tmp_path):
    for env in ({"HEDDLE_PLACE": "wide*=sim:1, fine*=sim:0"}, file_of(tmp_path, place="wide*=sim:1,fine*=sim:0"),
                file_of(tmp_path, place=["wide*=sim:1", "fine*=sim:0"])):
        found = places(*PLAIN, **env)
        assert {v for k, v in found.items() if k.startswith("wide")} == {"sim:1"}, found
        assert {v for k, v in found.items() if k.startswith("fine")} == {"sim:0"}
        assert {v for k, v in found.items() if not k.startswith(("wide", "fine"))} == {"cpu:0"}
    both = {"HEDDLE_PLACE": "*=sim:1"}
    assert set(places(*PLAIN, **both).values()) == {"sim:1"}
    assert set(places(*PLAIN, "--place", "*=sim:0", **both).values()) == {"sim:0"}  # of the call
    found = places(*PLAIN, "--place", "wide*=sim:0", **both)
    assert set(found.values()) == {"sim:0", "sim:1"}
    assert set(places(*PLAIN, "--place", "off", **both).values()) == {"cpu:0"}
    found = places(*PLAIN, "--place", "off", "--place", "wide*=sim:0", **both)
    assert {v for k, v in found.items() if not k.startswith("wide")} == {"cpu:0"}
    assert set(places(*PLAIN, **{**file_of(tmp_path, place="*=sim:1"), "HEDDLE_PLACE": "*=sim:0"}).values()) == {"sim:0"}
    for off in ("off", "0", "none", ""):
        assert set(places(*PLAIN, **{**file_of(tmp_path, place="*=sim:1"), "HEDDLE_PLACE": off}).values()) == (
            {"cpu:0"} if off else {"sim:1"}), off


@pytest.mark.parametrize("rule, words", [("fast", ("'fast'", "expected PATTERN=DEVICE")), ("a=", ("'a='", "expected")),
                                         ("*=cpu,=cpu", ("'=cpu'", "expected")), ("*=cpu,,", ("''", "expected")),
                                         ("*=npu:7", ("'*=npu:7'", "no device 'npu:7'")),
                                         ("*=sim:2", ("'*=sim:2'", "sim:2 is not among the devices in use")),
                                         ("*=gpu", ("'*=gpu'", "gpu is not among the devices in use")),
                                         ("*=sim:x*?", ("'*=sim:x*?'", "names no devices"))])
def test_unknown_rules_name_their_source(rule, words, tmp_path):
    said = failing(1, "plan", DIGITS, *PLAIN, HEDDLE_PLACE=rule)
    assert all(word in said for word in (*words, "(place from HEDDLE_PLACE)")), said
    file = file_of(tmp_path, place=rule)
    said = failing(1, "plan", DIGITS, *PLAIN, **file)
    assert all(word in said for word in (*words, f"(place from {file['HEDDLE_CONFIG']})")), said
    said = failing(1, "plan", DIGITS, *PLAIN, "--set", f"place={rule}")
    assert all(word in said for word in (*words, "(place from call)")), said


def test_groups_of_devices():
    sims = [d["name"] for d in json.loads(good("devices", "--json"))["devices"] if d["plugin"] == "sim"]
    every = [d["name"] for d in json.loads(good("devices", "--json"))["devices"]]
    assert len(sims) > 1
    assert in_use("sim:*") == sims and in_use("cpu,sim:*") == ["cpu:0", *sims] and in_use("sim:1,sim:*")[0] == "sim:1"
    assert in_use("c*:*,sim:0")[-1] == "sim:0" and in_use("npu:*?,cpu") == ["cpu:0"]
    for name in ("all", "*"):
        found = in_use(name)
        assert sorted(found) == sorted(every), found
        defaults = [d["name"] for d in json.loads(good("devices", "--json"))["devices"] if d["default"]]
        assert set(found[:len(defaults)]) == set(defaults)
    assert in_use(None or "cpu", HEDDLE_DEVICES="all") == ["cpu:0"]
    said = failing(1, "plan", DIGITS, "--device", "npu:*")
    assert "no device 'npu:*'" in said and "there are cpu:0" in said
    for wrong in ("sim:*x y", "Sim:*", "gpu:x"):
        assert "names no devices" in failing(1, "plan", DIGITS, "--device", wrong), wrong
    found = places("--device", "cpu,sim:*", "--ignore-annotations", "--place", "wide*=sim:*")
    assert {v for k, v in found.items() if k.startswith("wide")} == {"sim:0"}
    found = places("--device", "cpu,sim:1", "--ignore-annotations", "--place", "wide*=sim:*")
    assert {v for k, v in found.items() if k.startswith("wide")} == {"sim:1"}


def test_a_gpu_that_is_not_there():
    """On machines without a GPU: a device of a GPU's type that computes on the host's cores is none."""
    listed = json.loads(good("devices", "--json"))["devices"]
    if any(d["default"] and d["plugin"] in ("cuda", "rocm", "vulkan", "opencl") for d in listed):
        assert in_use("gpu")[0] in [d["name"] for d in listed if d["default"]]
        return
    assert "no device 'gpu'" in failing(1, "plan", DIGITS, "--device", "gpu,cpu", "--ignore-annotations")
    r = heddle("plan", DIGITS, "--device", "gpu?,cpu", "--ignore-annotations")
    assert r.status == 0 and "gpu was preferred and is left out: there is no such GPU" in r.out + r.err
