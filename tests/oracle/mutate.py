"""Seeded mutants of plans: what a planner might get wrong, and harmless changes that look like it.
Each kind takes a plan (which it may change) and a random.Random, and returns whether it found a place to change."""

import copy
import random


def accesses(plan, *modes):
    return [(i, a) for i, s in enumerate(plan["steps"]) for a in s["accesses"] if not modes or a["mode"] in modes]


def overlap(a, b):
    return (a["alloc"] == b["alloc"] and a["offset"] < b["offset"] + b["bytes"]
            and b["offset"] < a["offset"] + a["bytes"])


def same_bytes(a, b):
    return all(a[k] == b[k] for k in ("alloc", "offset", "bytes"))


def renumber(plan, order):
    """Puts the steps into another order (a list of old numbers); waits follow."""
    now = {old: new for new, old in enumerate(order)}
    plan["steps"] = [plan["steps"][old] for old in order]
    for new, step in enumerate(plan["steps"]):
        step["id"] = new
        for wait in step["waits"]:
            wait["step"] = now[wait["step"]]


def waits(plan):
    return [(i, k) for i, s in enumerate(plan["steps"]) for k in range(len(s["waits"]))]


# Order.


def drop_wait(plan, rng):
    found = waits(plan)
    if found:
        i, k = rng.choice(found)
        del plan["steps"][i]["waits"][k]
    return bool(found)


def move_wait(plan, rng):
    """It waits for another step: a near one, one of the same stream, or any; now and then one that comes later."""
    found = waits(plan)
    if not found:
        return False
    i, k = rng.choice(found)
    wait, steps = plan["steps"][i]["waits"][k], plan["steps"]
    kind, old = rng.random(), wait["step"]
    same = [j for j in range(i) if steps[j]["stream"] == steps[old]["stream"] and j != old]
    if kind < 0.04:
        wait["step"] = rng.randrange(i, len(steps))
    elif kind < 0.6 and same:
        wait["step"] = min(same, key=lambda j: abs(j - old)) if rng.random() < 0.5 else rng.choice(same)
    else:
        wait["step"] = rng.randrange(max(1, i))
    return wait["step"] != old


def move_waiter(plan, rng):
    """An earlier or a later step of the stream waits instead."""
    found = waits(plan)
    if not found:
        return False
    i, k = rng.choice(found)
    steps = plan["steps"]
    wait = steps[i]["waits"][k]
    others = [j for j in range(wait["step"] + 1, len(steps)) if steps[j]["stream"] == steps[i]["stream"] and j != i]
    if not others:
        return False
    steps[i]["waits"].remove(wait)
    steps[min(others, key=lambda j: abs(j - i)) if rng.random() < 0.6 else rng.choice(others)]["waits"].append(wait)
    return True


def add_wait(plan, rng):
    i = rng.randrange(1, len(plan["steps"]))
    plan["steps"][i]["waits"].append({"step": rng.randrange(i), "by": "event"})
    return True


def drop_redundant_wait(plan, rng):
    """A wait for what the stream or another wait of the step brings along."""
    steps, before = plan["steps"], []
    last = {}
    for i, step in enumerate(steps):
        direct = [w["step"] for w in step["waits"]] + [last[s] for s in [step["stream"]] if s in last]
        before.append(set(direct).union(*(before[d] for d in direct if d < i)))
        last[step["stream"]] = i
    found = []
    for i, k in waits(plan):
        step = steps[i]
        others = [w["step"] for j, w in enumerate(step["waits"]) if j != k]
        others += [j for j in range(i) if steps[j]["stream"] == step["stream"]]
        target = step["waits"][k]["step"]
        if target in others or any(target in before[o] for o in others if o < i):
            found.append((i, k))
    if found:
        i, k = rng.choice(found)
        del steps[i]["waits"][k]
    return bool(found)


def swap_in_stream(plan, rng):
    """Two neighbours of a stream change places, if their waits allow it."""
    steps = plan["steps"]
    last, pairs = {}, []
    for j, step in enumerate(steps):
        if step["stream"] in last:
            pairs.append((last[step["stream"]], j))
        last[step["stream"]] = j
    rng.shuffle(pairs)
    for i, j in pairs:
        if any(w["step"] >= i for w in steps[j]["waits"]) or any(
            w["step"] == i for s in steps[i + 1 : j] for w in s["waits"]
        ):
            continue
        order = list(range(len(steps)))
        order[i], order[j] = j, i
        renumber(plan, order)
        return True
    return False


def swap_in_list(plan, rng):
    """Two neighbours of the list on different streams, neither waiting for the other: the same plan."""
    steps = plan["steps"]
    found = [i for i in range(len(steps) - 2) if steps[i]["stream"] != steps[i + 1]["stream"]
             and all(w["step"] != i for w in steps[i + 1]["waits"])]
    if found:
        i = rng.choice(found)
        renumber(plan, [*range(i), i + 1, i, *range(i + 2, len(steps))])
    return bool(found)


def move_stream(plan, rng):
    """A step goes to another stream of the same side."""
    i = rng.randrange(len(plan["steps"]))
    streams, step = plan["streams"], plan["steps"][i]
    others = [s["id"] for s in streams if s["host"] == streams[step["stream"]]["host"] and s["id"] != step["stream"]]
    if others:
        step["stream"] = rng.choice(others)
    return bool(others)


# Memory.


def instance(plan, access):
    """All accesses to a value where it lies in one place."""
    return [a for _, a in accesses(plan) if same_bytes(a, access) and a["value"] in (access["value"], -1)]


def movable(plan):
    return [a for _, a in accesses(plan, "write") if not any(overlap(a, i) for i in plan["initial"])]


def put(plan, group, alloc, offset):
    """Moves a group of accesses; the allocation grows where it must."""
    bytes_ = max(a["bytes"] for a in group)
    for a in group:
        a["alloc"], a["offset"] = alloc, offset
    plan["allocations"][alloc]["bytes"] = max(plan["allocations"][alloc]["bytes"], offset + bytes_)


def overlap_ranges(plan, rng):
    """A value is moved onto, or by a part over, another of the allocation."""
    found = movable(plan)
    if not found:
        return False
    one = rng.choice(found)
    others = [a for _, a in accesses(plan) if a["alloc"] == one["alloc"] and not same_bytes(a, one)]
    others += [i for i in plan["initial"] if i["alloc"] == one["alloc"]]
    if not others:
        return False
    other = rng.choice(others)
    size = other["bytes"]
    offset = other["offset"] + rng.choice([0, 0, size - 1, 1 - one["bytes"], rng.randrange(size or 1)])
    put(plan, instance(plan, one), one["alloc"], max(0, offset))
    return True


def move_to_free_space(plan, rng):
    """A value is moved to bytes that are not in use: harmless."""
    found = movable(plan)
    if not found:
        return False
    one = rng.choice(found)
    group, alloc = instance(plan, one), one["alloc"]
    used = [a["offset"] + a["bytes"] for _, a in accesses(plan) if a["alloc"] == alloc]
    used += [i["offset"] + i["bytes"] for i in plan["initial"] if i["alloc"] == alloc]
    put(plan, group, alloc, max(used) + rng.choice([0, 0, 1, 32]))
    return True


def shift_access(plan, rng):
    """One access alone is off: by an offset, a size or an allocation."""
    _, one = rng.choice(accesses(plan))
    kind = rng.random()
    if kind < 0.4:
        one["offset"] = max(0, one["offset"] + rng.choice([-32, -1, 1, 32, 64]))
    elif kind < 0.7:
        one["bytes"] = max(0, one["bytes"] + rng.choice([-one["bytes"], -32, -1, 1, 32]))
    elif kind < 0.8 and one["bytes"] > 32:  # only the tail of a value
        one["offset"], one["bytes"] = one["offset"] + 32, one["bytes"] - 32
    elif kind < 0.95:
        one["alloc"] = rng.randrange(len(plan["allocations"]))
    else:
        one["bytes"] = plan["allocations"][one["alloc"]]["bytes"] + 1
    return True


def drop_coherence(plan, rng):
    """An allocation turns out not to be coherent, or to be so after all."""
    one = rng.choice(plan["allocations"])
    one["coherent"] = not one["coherent"]
    return True


# Copies, releases, writes.


def remove_step(plan, number):
    """Who waited for it waits for what it waited for."""
    gone = plan["steps"][number]
    for step in plan["steps"]:
        if any(w["step"] == number for w in step["waits"]):
            step["waits"] = [w for w in step["waits"] if w["step"] != number]
            had = {w["step"] for w in step["waits"]}
            step["waits"] += [dict(w) for w in gone["waits"] if w["step"] not in had]
    gone["waits"] = []
    renumber_without(plan, number)


def renumber_without(plan, number):
    del plan["steps"][number]
    for new, step in enumerate(plan["steps"]):
        step["id"] = new
        for wait in step["waits"]:
            wait["step"] -= wait["step"] > number


COPIES = ("h2d", "d2h", "d2d", "peer", "host_copy")


def remove_copy(plan, rng):
    found = [i for i, s in enumerate(plan["steps"]) if s["kind"] in COPIES and s["accesses"]]
    if found:
        remove_step(plan, rng.choice(found))
    return bool(found)


def redirect_copy(plan, rng):
    """Its source or its target is another range."""
    found = [s for s in plan["steps"] if s["kind"] in COPIES and s["accesses"]]
    if not found:
        return False
    one = rng.choice(rng.choice(found)["accesses"])
    others = [a for _, a in accesses(plan, "read", "write") if not same_bytes(a, one)]
    if rng.random() < 0.5:
        others = [a for a in others if a["alloc"] == one["alloc"]] or others
    if not others:
        return False
    other = rng.choice(others)
    one["alloc"], one["offset"] = other["alloc"], other["offset"]
    return True


def double_copy(plan, rng):
    """A copy is made twice in a row: harmless."""
    found = [i for i, s in enumerate(plan["steps"]) if s["kind"] in COPIES and s["accesses"]]
    if not found:
        return False
    i = rng.choice(found)
    again = copy.deepcopy(plan["steps"][i])
    again["waits"] = []
    for step in plan["steps"]:
        for wait in step["waits"]:
            wait["step"] += wait["step"] >= i  # what waited for the first waits for the second
    plan["steps"].insert(i + 1, again)
    for new, step in enumerate(plan["steps"]):
        step["id"] = new
    return True


def drop_sync(plan, rng):
    """A release or an acquire is dropped: the step, or what it says of the memory."""
    found = [i for i, s in enumerate(plan["steps"]) if s["kind"] in ("release", "acquire")]
    if not found:
        return False
    i = rng.choice(found)
    if rng.random() < 0.5:
        remove_step(plan, i)
    else:
        plan["steps"][i]["accesses"] = []
    return True


def misplace_sync(plan, rng):
    """What a release or an acquire covers is done in another step: that of the writer, of a reader, or a near one."""
    found = accesses(plan, "release", "acquire")
    if not found:
        return False
    i, one = rng.choice(found)
    near = [j for j, a in accesses(plan, "read", "write") if overlap(a, one)]
    host = [j for j, s in enumerate(plan["steps"]) if plan["streams"][s["stream"]]["host"] and j != i]
    j = rng.choice(near if near and rng.random() < 0.6 else host or near or [i])
    plan["steps"][j]["accesses"].append(dict(one))
    if rng.random() < 0.8:
        plan["steps"][i]["accesses"].remove(one)
    return j != i


def change_sync(plan, rng):
    """A release becomes an acquire or the reverse, or covers too little or more than it must."""
    found = accesses(plan, "release", "acquire")
    if not found:
        return False
    _, one = rng.choice(found)
    kind = rng.random()
    if kind < 0.3:
        one["mode"] = "acquire" if one["mode"] == "release" else "release"
    elif kind < 0.6:
        one["bytes"] = max(0, one["bytes"] - rng.choice([1, one["bytes"] // 2]))
    else:
        one["offset"], one["bytes"] = 0, plan["allocations"][one["alloc"]]["bytes"]
    return True


def overwrite(plan, rng):
    """A step writes where a value lies that is yet to be read."""
    reads = [(i, a) for i, a in accesses(plan, "read") if a["value"] >= 0]
    if not reads:
        return False
    reader, target = rng.choice(reads)
    writers = [i for i, a in accesses(plan, "write") if same_bytes(a, target) and i < reader]
    first = max(writers) if writers else 0
    step = plan["steps"][rng.randint(first, reader) if rng.random() < 0.7 else rng.randrange(len(plan["steps"]))]
    value = rng.choice([-1, target["value"], rng.randrange(len(plan["values"]))])
    step["accesses"].append(dict(target, mode="write", value=value))
    return True


def wrong_value(plan, rng):
    _, one = rng.choice(accesses(plan, "read", "write"))
    one["value"] = rng.randrange(-1, len(plan["values"]))
    return True


def more_runs(plan, rng):
    """One run more, or one less, is in flight."""
    plan["in_flight"] = max(1, plan["in_flight"] + rng.choice([-1, 1]))
    return True


def one_buffer(plan, rng):
    """Some memory is there once less, or once for all runs, though others have their own."""
    found = [a for a in plan["allocations"] if a.get("sets", 1) > 1]
    if not found:
        return False
    one = rng.choice(found)
    one["sets"] = rng.choice([1, one["sets"] - 1])
    return True


def more_buffers(plan, rng):
    """Some memory is there once more."""
    one = rng.choice(plan["allocations"])
    one["sets"] = one.get("sets", 1) + 1
    return True


def other_streams(plan, rng):
    """Runs share streams, or have their own."""
    old = plan.get("stream_sets", 1)
    plan["stream_sets"] = rng.choice([1, 2, 3])
    return plan["stream_sets"] != old


# State values that are updated in place.


def states(plan):
    return [i for i in plan["initial"] if "becomes" in i]


def drop_keep(plan, rng):
    """An update does not say that it keeps the value, or says it of another."""
    found = [a for _, a in accesses(plan, "write") if "keeps" in a]
    if not found:
        return False
    one = rng.choice(found)
    if rng.random() < 0.7:
        del one["keeps"]
    else:
        one["keeps"] = rng.randrange(len(plan["values"]))
    return True


def read_state(plan, rng):
    """Some step reads the value as the run found it, perhaps after the update."""
    if states(plan):
        one = {k: v for k, v in rng.choice(states(plan)).items() if k != "becomes"}
        rng.choice(plan["steps"])["accesses"].append(dict(one, mode="read"))
    return bool(states(plan))


def borrow_state(plan, rng):
    """A step has its workspace where a state value lies."""
    if states(plan):
        one = {k: v for k, v in rng.choice(states(plan)).items() if k != "becomes"}
        rng.choice(plan["steps"])["accesses"].append(dict(one, mode="write", value=-1))
    return bool(states(plan))


def forget_state(plan, rng):
    """An input is no longer what the run before made, or becomes another value."""
    if not states(plan):
        return False
    one = rng.choice(states(plan))
    if rng.random() < 0.5:
        del one["becomes"]
    else:
        one["becomes"] = rng.randrange(len(plan["values"]))
    return True


# How often each kind is taken: harmless ones too, so that a checker that always refuses would be found out.
KINDS = {
    drop_wait: 16, move_wait: 14, move_waiter: 8, add_wait: 3, drop_redundant_wait: 5, swap_in_stream: 9,
    swap_in_list: 3, move_stream: 5, overlap_ranges: 14, move_to_free_space: 5, shift_access: 5, drop_coherence: 4,
    remove_copy: 6, redirect_copy: 6, double_copy: 4, drop_sync: 7, misplace_sync: 4, change_sync: 6, overwrite: 6,
    wrong_value: 3, more_runs: 5, one_buffer: 10, more_buffers: 3, other_streams: 5,
}

OF_STATES = {**KINDS, drop_keep: 30, read_state: 30, borrow_state: 15, forget_state: 15}


def mutant(plan, seed, kinds=KINDS):
    """(name of what was done, the changed copy of the plan); one change in most, two or three in some."""
    rng = random.Random(f"mutant {seed}")
    plan, done = copy.deepcopy(plan), []
    wanted = rng.choice([1, 1, 1, 1, 2, 3])
    while len(done) < wanted:
        kind = rng.choices(list(kinds), kinds.values())[0]
        if kind(plan, rng):
            done.append(kind.__name__)
    return " + ".join(done), plan
