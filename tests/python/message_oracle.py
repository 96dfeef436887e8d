"""Checks the messages of a plan over ranks from its JSON, by playing them: ranks run in turns chosen at random, sends are not
buffered, and every value that a stage reads, a rank sends or a result needs has to be there."""
import random


class Wrong(Exception):
    pass


def check(ranks, tries=20):
    for seed in range(tries):
        play(ranks, ranks["in_flight"] + 1, random.Random(seed))


def play(ranks, runs, rng):
    acts, given, depth = ranks["acts"], ranks["given"], ranks["in_flight"]
    at = {(k, r): 0 for k in range(runs) for r in range(len(acts))}
    has = {key: set(range(given)) for key in at}
    pending, done = {}, {}  # ends of messages that have begun: (run, from, to, tag) -> {"send": value, "receive": value}
    ran = set()
    while True:
        ready = [key for key in at if at[key] < len(acts[key[1]])]
        rng.shuffle(ready)
        for key in ready:
            if step(key, acts, at, has, pending, done, ran, ranks, depth):
                break
        else:
            break
    if any(at[k, r] < len(acts[r]) for k, r in at):
        raise Wrong("ranks wait for each other")
    if any(len(ends) != 2 or len(done.get(key, ())) != 2 for key, ends in pending.items()):
        raise Wrong("a message has one end")
    for k in range(runs):
        if not set(ranks["results"]) <= has[k, 0]:
            raise Wrong("a result is not at rank 0")
        if {s for run, s in ran if run == k} != set(range(len(ranks["stages"]))):
            raise Wrong("a stage does not run")


def step(key, acts, at, has, pending, done, ran, ranks, depth):
    run, rank = key
    if run >= depth and at[run - depth, rank] < len(acts[rank]):
        return False
    act = acts[rank][at[key]]
    what = act["act"]
    if what == "stage":
        stage = ranks["stages"][act["stage"]]
        if stage["rank"] != rank or (run, act["stage"]) in ran or not {v for v in stage["in"] if v >= 0} <= has[key]:
            raise Wrong("a stage runs where or when it cannot")
        ran.add((run, act["stage"]))
        has[key] |= {v for v in stage["out"] if v >= 0}
    else:
        sends = what in ("send", "sent")
        message = (run, rank, act["peer"], act["tag"]) if sends else (run, act["peer"], rank, act["tag"])
        side = "send" if sends else "receive"
        ends = pending.setdefault(message, {})
        if what in ("send", "receive"):
            if side in ends:
                raise Wrong("a tag is used twice")
            if sends and act["value"] not in has[key]:
                raise Wrong("a value is sent before it is there")
            ends[side] = (act["value"], act["bytes"])
        else:
            if side not in ends:
                raise Wrong("a wait for what was not started")
            if len(ends) < 2:
                return False
            if ends["send"] != ends["receive"] or ends[side][0] != act["value"] or side in done.setdefault(message, set()):
                raise Wrong("the ends of a message differ")
            done[message].add(side)
            if not sends:
                has[key].add(act["value"])
    at[key] += 1
    return True
