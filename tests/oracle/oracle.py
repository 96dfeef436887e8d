"""An independent judge of plans (`heddle plan --json`): is every access ordered, does every read see its value?
It unrolls the runs, builds happens-before between all pairs of steps as sets of bits, and looks at all pairs of
accesses to each smallest piece of memory. It is slow and plain; executor/prove.c must agree with it."""

READ, WRITE, RELEASE, ACQUIRE = "read", "write", "release", "acquire"


def sets_of(thing, key="sets"):
    """How many there are of an allocation, or of the streams: run r uses number r modulo that."""
    return max(1, thing.get(key, 1))


class Unrolled:
    """The steps of in_flight + 1 runs, and of each the set (bits of an int) of those that happen before it."""

    def __init__(self, plan):
        self.steps = plan["steps"]
        self.n = len(self.steps)
        self.runs = plan["in_flight"] + 1
        self.host = [s["host"] for s in plan["streams"]]
        self.before = []
        whole_run = (1 << self.n) - 1
        last_on = {}
        for run in range(self.runs):
            stream_set = run % sets_of(plan, "stream_sets")
            for i, step in enumerate(self.steps):
                stream = (step["stream"], stream_set)
                direct = [run * self.n + w["step"] for w in step["waits"]]
                if stream in last_on:
                    direct.append(last_on[stream])
                set_before = 0
                if run >= plan["in_flight"]:
                    set_before |= whole_run << (run - plan["in_flight"]) * self.n
                for d in direct:
                    set_before |= self.before[d] | 1 << d
                last_on[stream] = run * self.n + i
                self.before.append(set_before)

    def ordered(self, a, b):
        return bool(self.before[b] >> a & 1)

    def on_host(self, node):
        return self.host[self.steps[node % self.n]["stream"]]

    def name(self, node):
        return f"step {node % self.n} of run {node // self.n}"


def shape_faults(plan):
    """What makes a plan no plan: ranges outside of their allocation, waits for what is later, wrong numbers."""
    if plan["in_flight"] < 1:
        yield "no run is in flight"
    sizes = [a["bytes"] for a in plan["allocations"]]

    def outside(access):
        known = 0 <= access["alloc"] < len(sizes)
        return not known or not 0 <= access["offset"] <= access["offset"] + access["bytes"] <= sizes[access["alloc"]]

    for i, initial in enumerate(plan["initial"]):
        if outside(initial) or not 0 <= initial["value"] < len(plan["values"]):
            yield f"initial content {i} is out of range"
        if not -1 <= initial.get("becomes", -1) < len(plan["values"]):
            yield f"initial content {i} becomes no value"
        if "becomes" in initial and plan["in_flight"] > 1:
            yield f"initial content {i} becomes another value while several runs are in flight"
    for i, step in enumerate(plan["steps"]):
        if not 0 <= step["stream"] < len(plan["streams"]):
            yield f"step {i} is on no stream"
            continue
        if any(not 0 <= w["step"] < i for w in step["waits"]):
            yield f"step {i} waits for a later step"
        for access in step["accesses"]:
            if outside(access) or not -1 <= access["value"] < len(plan["values"]):
                yield f"step {i} is out of range"
            if access["mode"] in (RELEASE, ACQUIRE) and not plan["streams"][step["stream"]]["host"]:
                yield f"step {i} does on a device what only the host can"


def pieces(plan, alloc):
    """The ranges of an allocation between neighbouring ends of accesses."""
    ends = set()
    for ranges in [plan["initial"]] + [s["accesses"] for s in plan["steps"]]:
        for r in ranges:
            if r["alloc"] == alloc and r["bytes"] > 0:
                ends |= {r["offset"], r["offset"] + r["bytes"]}
    ends = sorted(ends)
    return list(zip(ends, ends[1:]))


def covers(access, piece):
    return access["offset"] <= piece[0] and piece[1] <= access["offset"] + access["bytes"]


def last_of(runs, nodes):
    """Those of the nodes that happen before no other of them."""
    return [a for a in nodes if not any(runs.ordered(a, b) for b in nodes)]


def race_faults(runs, touching, where):
    """touching: (node, access) that cover the piece, where at least one of two in conflict writes."""
    for x, (a, first) in enumerate(touching):
        for b, second in touching[x + 1 :]:
            writes = (first["mode"] == WRITE) + (second["mode"] == WRITE)
            if writes == 0:
                continue
            if a == b:
                if writes == 2:
                    yield f"{runs.name(a)} writes {where} twice"
                    continue
                write, read = (first, second) if first["mode"] == WRITE else (second, first)
                if write["value"] == -1 and read["mode"] == READ and read["value"] != -1:
                    yield f"{runs.name(a)} has its workspace where it reads, {where}"
            elif not runs.ordered(a, b) and not runs.ordered(b, a):
                yield f"{runs.name(a)} and {runs.name(b)} race for {where}"


def made_by_run_before(runs, node, writer, content, initial):
    """Whether a read of a state value sees what the run before made of it."""
    return (initial is not None and writer // runs.n + 1 == node // runs.n
            and (content["value"], content["offset"]) == (initial.get("becomes"), initial["offset"]))


def state_faults(runs, touching, initial, where):
    """Of a piece with a state value: what is written there first in a run keeps it, and last is what it becomes."""
    for run in range(runs.runs):
        writes = {n: a for n, a in touching if a["mode"] == WRITE and n // runs.n == run}
        for n, a in writes.items():
            if not any(runs.ordered(m, n) for m in writes):
                if (a.get("keeps"), a["offset"]) != (initial["value"], initial["offset"]):
                    yield f"{runs.name(n)} does not keep the state value in {where}"
        last = last_of(runs, list(writes))
        if not last:
            yield f"run {run} does not make the state value in {where}"
        for n in last:
            if (writes[n]["value"], writes[n]["offset"]) != (initial["becomes"], initial["offset"]):
                yield f"{runs.name(n)} leaves another value than the state's in {where}"


def sight_faults(plan, runs, touching, initial, coherent, where):
    """Of each access that reads or writes the piece: what came before it must be seen, and be the right value."""
    writes = [(n, a) for n, a in touching if a["mode"] == WRITE]
    syncs = {True: [n for n, a in touching if a["mode"] == RELEASE],
             False: [n for n, a in touching if a["mode"] == ACQUIRE]}  # by whether the host wrote
    for node, access in touching:
        if access["mode"] in (RELEASE, ACQUIRE):
            continue
        earlier = {n: a for n, a in writes if runs.ordered(n, node)}
        last = last_of(runs, list(earlier))
        for w in last:
            if not coherent and runs.on_host(w) != runs.on_host(node):
                if not any(runs.ordered(w, s) and runs.ordered(s, node) for s in syncs[runs.on_host(w)]):
                    yield f"{runs.name(node)} cannot see what {runs.name(w)} wrote to {where}"
        if access["mode"] != READ or access["value"] == -1:
            continue
        if len(last) > 1:
            yield f"{runs.name(node)} reads {where}, which several wrote"
        elif len(last) == 1:
            content = earlier[last[0]]
            right = last[0] // runs.n == node // runs.n and content["value"] == access["value"]
            right = right and content["offset"] == access["offset"]
            if initial is not None and (initial["value"], initial["offset"]) == (access["value"], access["offset"]):
                right = right or made_by_run_before(runs, node, last[0], content, initial)
            if not right:
                yield f"{runs.name(node)} reads value {access['value']} from {where}, but {runs.name(last[0])} wrote"
        elif initial is None or (initial["value"], initial["offset"]) != (access["value"], access["offset"]):
            yield f"{runs.name(node)} reads value {access['value']} from {where}, where it never was"


def faults(plan):
    """All that is wrong with a plan, as sentences, one at a time; none means that it is good."""
    bad_shape = False
    for fault in shape_faults(plan):
        bad_shape = True
        yield fault
    if bad_shape:
        return
    runs = Unrolled(plan)
    for alloc, properties in enumerate(plan["allocations"]):
        n_sets = sets_of(properties)
        initial_here = [i for i in plan["initial"] if i["alloc"] == alloc]
        for chosen in range(min(n_sets, runs.runs)):
            mine = [(run * runs.n + i, a) for run in range(chosen, runs.runs, n_sets)
                    for i, s in enumerate(plan["steps"]) for a in s["accesses"] if a["alloc"] == alloc]
            for piece in pieces(plan, alloc):
                touching = [(n, a) for n, a in mine if covers(a, piece)]
                initial = [i for i in initial_here if covers(i, piece)]
                where = f"bytes {piece[0]} to {piece[1]} of allocation {alloc}"
                yield from race_faults(runs, touching, where)
                yield from sight_faults(plan, runs, touching, initial[-1] if initial else None,
                                        properties["coherent"], where)
                for state in initial:
                    if "becomes" in state:
                        yield from state_faults(runs, touching, state, where)


def first_fault(plan):
    """The first of faults(plan), or None: the label of a plan."""
    return next(faults(plan), None)
