"""What the tests of heddle run --profile-json share: a profile with the plan that belongs to it, and the checks of one
against the other, which are written from docs/cli.md alone."""

import collections
import json
import statistics

import pytest
from tool_case import good

COPIES = ("h2d", "d2h", "d2d", "peer", "host_copy")


def taken(tmp_path, model, *words, runs=5, **env):
    """The profile and the plan of the same model on the same devices."""
    path = tmp_path / "profile.json"
    assert f"wrote {path}" in good("run", model, *words, "--random", "--profile-json", path, "--profile-runs", runs,
                                   **env)
    return json.loads(path.read_text()), json.loads(good("plan", model, *words, "--json", **env))


def before(plan, step):
    """What a step comes after by the plan, and by what: the one before it on its stream, and its waits."""
    found = {w["step"]: w["by"] for w in plan["steps"][step]["waits"]}
    same = [s["id"] for s in plan["steps"][:step] if s["stream"] == plan["steps"][step]["stream"]]
    if same:
        found[same[-1]] = "stream"
    return found


def reads(plan, step, other):
    """Whether a step reads what another wrote: the same value in the same place."""
    where = lambda s, mode: {(a["value"], a["alloc"], a["offset"]) for a in plan["steps"][s]["accesses"] if a["mode"] == mode}
    return bool(where(step, "read") & where(other, "write"))


def check_sums(p, plan):
    steps = p["steps"]
    assert {s["step"] for s in steps} == {s["id"] for s in plan["steps"] if s["kind"] != "finish"}
    assert p["runs"] == len(p["walls_ns"]) == len(p["plains_ns"])
    assert p["wall_ns"] == statistics.median_low(p["walls_ns"]) and p["plain_ns"] == statistics.median_low(p["plains_ns"])
    assert [s["start_ns"] for s in steps] == sorted(s["start_ns"] for s in steps) and steps[0]["start_ns"] == 0
    assert max(s["end_ns"] for s in steps) == p["wall_ns"] and all(s["end_ns"] >= s["start_ns"] for s in steps)
    totals, counts = collections.Counter(), collections.Counter()
    for s in steps:
        said = plan["steps"][s["step"]]
        moved = sum(a["bytes"] for a in said["accesses"] if a["mode"] == "write") if said["kind"] in COPIES else 0
        assert (s["stream"], s["bytes"]) == (said["stream"], moved) and (moved > 0) == (s["op"] in COPIES)
        device = plan["streams"][s["stream"]]["device"]
        assert s["device"] == (plan["devices"][device]["name"] if device >= 0 else "host")
        totals[s["op"], s["device"]] += s["median_ns"]
        counts[s["op"], s["device"]] += 1
    assert p["total_ns"] == sum(totals.values())
    assert {(o["op"], o["device"]): (o["total_ns"], o["count"]) for o in p["operators"]} == {
        k: (totals[k], counts[k]) for k in totals}
    assert [o["total_ns"] for o in p["operators"]] == sorted(totals.values(), reverse=True)
    for o in p["operators"]:
        assert o["share"] == pytest.approx(o["total_ns"] / p["total_ns"]) and 0 <= o["share"] <= 1
        assert o["mean_ns"] == pytest.approx(o["total_ns"] / o["count"])


def check_path(p, plan):
    """Every part follows one that it has to come after, of which none ended later; together they are the whole run."""
    at, sums, times = 0, collections.Counter(), {s["step"]: s for s in p["steps"]}
    for i, part in enumerate(p["path"]):
        at += part["gap_ns"] + part["busy_ns"]
        assert part["start_ns"] == at and min(part["gap_ns"], part["busy_ns"], part["takes_ns"]) >= 0
        at += part["takes_ns"]
        assert times[part["step"]]["start_ns"] >= part["start_ns"] and at <= times[part["step"]]["end_ns"]
        earlier = before(plan, part["step"])
        if i == 0:
            assert part["by"] == part["gap"] == "begin" and not earlier and not part["reads"]
        else:
            last = p["path"][i - 1]["step"]
            assert times[last]["end_ns"] == max(times[s]["end_ns"] for s in earlier)
            assert part["by"] == earlier[last] and part["gap"] == ("launch" if part["by"] == "stream" else "wait")
            assert part["reads"] == reads(plan, part["step"], last)
        sums["busy_ns"] += part["busy_ns"]
        sums["steps_ns"] += part["takes_ns"]
        sums[part["gap"] + "_ns"] += part["gap_ns"]
    assert at == p["wall_ns"] == sum(p["sums"].values()) and times[p["path"][-1]["step"]]["end_ns"] == at
    assert {**p["sums"], **sums} == p["sums"] and set(p["sums"]) == {"steps_ns", "launch_ns", "wait_ns", "begin_ns",
                                                                  "busy_ns"}
