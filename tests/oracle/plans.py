"""Plans to judge: seeded random ones, valid by construction, and real ones from the tool.
A random plan moves values between the host and a few devices over arenas that are reused, pinned and unified memory
that may need a release and an acquire, with in-place steps, workspaces, and one to three runs in flight, which share
memory and streams or have sets of their own."""

import json
import os
import pathlib
import random
import subprocess
import tempfile

GRAIN = 32  # offsets and sizes are multiples of it


class Place:
    """A copy of a value: where it lies and which steps a reader on either side must come after."""

    def __init__(self, value, alloc, offset, size, fixed=False):
        self.value, self.alloc, self.offset, self.size, self.fixed = value, alloc, offset, size, fixed
        self.synced = None  # the step after which the other side sees it too


class Maker:
    """A plan that grows at its end; what must come earlier is waited for where nothing else orders it."""

    def __init__(self, rng):
        self.rng = rng
        self.devices, self.streams, self.values, self.allocations = [], [], [], []
        self.initial, self.steps, self.before = [], [], []
        self.last = {}  # stream: its last step
        self.places = []
        self.in_flight = rng.choice([1, 1, 2, 2, 3])
        self.lanes = self.in_flight > 1 and rng.random() < 0.5  # each run has memory and streams of its own

    # The machine.

    def alloc(self, space, device, kind, size, coherent=True):
        self.allocations.append({"id": len(self.allocations), "space": space, "device": device, "kind": kind,
                                 "coherent": coherent, "bytes": size})
        return len(self.allocations) - 1

    def stream(self, device, kind, host):
        self.streams.append({"id": len(self.streams), "device": device, "kind": kind, "host": host})
        return len(self.streams) - 1

    def machine(self):
        rng = self.rng
        self.devices.append({"id": 0, "name": "cpu", "inline": True})
        self.driver = self.stream(0, "compute", True)
        self.hosts = [self.driver] + ([self.stream(0, "compute", True)] if rng.random() < 0.3 else [])
        self.host_arena = self.alloc("cpu arena", 0, "device", 0)
        self.inputs = self.alloc("inputs", 0, "device", 0)
        self.parts = []
        for d in range(1, rng.randint(2, 4)):
            self.devices.append({"id": d, "name": f"sim:{d - 1}", "inline": False})
            compute = [self.stream(d, "compute", False) for _ in range(rng.randint(1, 2))]
            copies = [self.stream(d, "copy", False)] if rng.random() < 0.6 else compute
            coherent = rng.random() < 0.4
            self.parts.append({
                "id": d, "compute": compute, "copy": copies, "peer": rng.random() < 0.5,
                "unified": rng.random() < 0.25,
                "arena": self.alloc(f"sim:{d - 1} arena", d, "device", 0),
                "constants": self.alloc(f"sim:{d - 1} constants", d, "device", 0),
                "slots": self.alloc(f"sim:{d - 1} slots", d, "pinned", 0, coherent),
                "hops": self.alloc(f"sim:{d - 1} hops", d, "pinned", 0, coherent),
            })
            if self.parts[-1]["unified"]:
                self.parts[-1]["arena"] = self.alloc(f"sim:{d - 1} unified", d, "unified", 0, coherent)

    # Values and where they lie.

    def value(self, size=None):
        size = size or GRAIN * self.rng.randint(1, 6)
        self.values.append({"id": len(self.values), "name": f"v{len(self.values)}:0", "bytes": size,
                            "dtype": "float32", "shape": [size // 4], "layout": "0x0"})
        return len(self.values) - 1

    def room(self, alloc, size):
        """An offset where nothing lies that may still be read; mostly the lowest."""
        taken = sorted((p.offset, p.offset + p.size) for p in self.places if p.alloc == alloc)
        at, free = 0, []
        for start, end in taken:
            free += range(at, start - size + 1, GRAIN)
            at = max(at, end)
        free += range(at, at + 3 * GRAIN, GRAIN)
        offset = free[0] if self.rng.random() < 0.6 else self.rng.choice(free)
        self.allocations[alloc]["bytes"] = max(self.allocations[alloc]["bytes"], offset + size)
        return offset

    def new_place(self, value, alloc, size=None):
        size = size or self.values[value]["bytes"]
        place = Place(value, alloc, self.room(alloc, size), size)
        self.places.append(place)
        return place

    def put_initial(self, value, alloc):
        place = self.new_place(value, alloc)
        place.fixed = True
        self.initial.append({"alloc": alloc, "offset": place.offset, "bytes": place.size, "value": value})
        return place

    # Steps.

    def order(self, step, need):
        """Waits of a step for those of need that do not come before it yet; sometimes one more."""
        before = 0
        if step["stream"] in self.last:
            before = self.before[self.last[step["stream"]]] | 1 << self.last[step["stream"]]
        need = sorted(need, reverse=True)
        if self.rng.random() < 0.3:
            self.rng.shuffle(need)
        if self.steps and self.rng.random() < 0.15:
            need.append(self.rng.randrange(len(self.steps)))
        for n in need:
            if not before >> n & 1 or self.rng.random() < 0.08:
                same = self.steps[n]["stream"] == step["stream"]
                if not same and all(w["step"] != n for w in step["waits"]):
                    step["waits"].append({"step": n, "by": self.rng.choice(["event", "fence"])})
                before |= self.before[n] | 1 << n
        return before

    def step(self, kind, stream, accesses, after=()):
        """accesses: (mode, place); a place's value is read or written whole. Returns the step's number."""
        made = [{"alloc": p.alloc, "offset": p.offset, "bytes": p.size, "mode": mode, "value": p.value}
                for mode, p in accesses]
        for access in made:
            if access["mode"] in ("release", "acquire"):
                access["value"] = -1
        step = {"id": len(self.steps), "kind": kind, "label": f"{kind}{len(self.steps)}", "stream": stream,
                "accesses": made, "waits": []}
        need = set(after)
        for old in self.steps:
            if any(conflict(a, b) for a in old["accesses"] for b in made):
                need.add(old["id"])
        self.before.append(self.order(step, need))
        self.steps.append(step)
        self.last[stream] = step["id"]
        for mode, place in accesses:
            if mode == "write" and place.value >= 0:
                self.sync(place, step["id"], stream)
        return step["id"]

    def sync(self, place, writer, stream):
        """After a write to memory that is not coherent, the step that lets the other side see it."""
        alloc = self.allocations[place.alloc]
        place.synced = writer
        if alloc["coherent"] or alloc["space"].endswith("hops"):
            return
        mode = "release" if self.streams[stream]["host"] else "acquire"
        place.synced = self.step(mode, self.rng.choice(self.hosts), [(mode, place)], [writer])

    def seen(self, places):
        return [p.synced for p in places if p.synced is not None]

    def move(self, place, alloc, kind, stream):
        """Copies a value to a new place of another allocation."""
        target = self.new_place(place.value, alloc)
        self.step(kind, stream, [("read", place), ("write", target)], self.seen([place]))
        return target

    def find(self, value, allocs):
        return next((p for p in self.places if p.value == value and p.alloc in allocs), None)

    def on_host(self, value):
        """A place that the host may read: its arena, an input, or a slot of a device."""
        slots = [p["slots"] for p in self.parts]
        unified = [p["arena"] for p in self.parts if p["unified"]]
        place = self.find(value, [self.host_arena, self.inputs] + slots + unified)
        if place is None:
            part = next(p for p in self.parts if self.find(value, [p["arena"], p["constants"]]))
            place = self.move(self.find(value, [part["arena"], part["constants"]]), part["slots"], "d2h",
                              self.rng.choice(part["copy"]))
        return place

    def on_device(self, value, part):
        """A place that the device may read, copied there over a peer, a hop buffer, or the host's slot."""
        rng, place = self.rng, self.find(value, [part["arena"], part["constants"]])
        if place is not None:
            return place
        copy = rng.choice(part["copy"])
        for other in self.parts:
            source = self.find(value, [other["arena"], other["constants"]])
            if source is None:
                continue
            if other["peer"]:
                return self.move(source, part["arena"], "peer", rng.choice([copy, rng.choice(other["copy"])]))
            if rng.random() < 0.6:
                hop = self.find(value, [other["hops"]])
                if hop is None:
                    hop = self.move(source, other["hops"], "d2h", rng.choice(other["copy"]))
                return self.move(hop, part["arena"], "h2d", copy)
        slot = self.find(value, [part["slots"]])
        if slot is None:
            slot = self.move(self.on_host(value), part["slots"], "host_copy", rng.choice(self.hosts))
        return self.move(slot, part["arena"], "h2d", copy)

    def live(self):
        """The values that a step may still read; what lies only in a hop buffer is on its way, not there."""
        hops = [p["hops"] for p in self.parts]
        return sorted({p.value for p in self.places if p.alloc not in hops})

    def forget(self):
        """Some places are not needed any more: their bytes may be written to. Young values keep a place."""
        for place in list(self.places):
            others = [p for p in self.places if p.value == place.value and p is not place]
            late = place.value < len(self.values) - self.rng.randint(1, 4)
            if not place.fixed and (others or late) and self.rng.random() < 0.35:
                self.places.remove(place)

    def operator(self):
        rng = self.rng
        live = self.live()
        chosen = rng.sample(live, min(len(live), rng.randint(1, 3)))
        host = rng.random() < 0.2
        part = None if host else rng.choice(self.parts)
        operands = [self.on_host(v) if host else self.on_device(v, part) for v in chosen]
        stream = rng.choice(self.hosts) if host else rng.choice(part["compute"])
        arena = self.host_arena if host else part["arena"]
        accesses = [("read", p) for p in operands]
        eaten = [p for p in operands if not p.fixed and p.alloc == arena]
        if eaten and rng.random() < 0.3:  # in place
            old = rng.choice(eaten)
            self.places.remove(old)
            result = Place(self.value(old.size), arena, old.offset, old.size)
            self.places.append(result)
        else:
            result = self.new_place(self.value(), arena)
        after = self.seen(operands)
        if self.allocations[arena]["coherent"] and rng.random() < 0.25:
            scratch = self.new_place(-1, arena, GRAIN * rng.randint(1, 4))
            self.places.remove(scratch)
            accesses += [(mode, scratch) for mode in rng.choice([("write",), ("read", "write")])]
        self.step("op", stream, accesses + [("write", result)], after)

    def finish(self):
        live = self.live()
        outputs = [self.on_host(v) for v in self.rng.sample(live, min(len(live), self.rng.randint(1, 3)))]
        self.step("finish", self.driver, [("read", p) for p in outputs], self.seen(outputs))

    def order_runs(self):
        """What run 0 and a later one in flight do to the same bytes is ordered by way of the driver: the finish waits
        for the first, the second for the start."""
        after, before = (set(), set()) if self.lanes else unordered_between_runs(self.steps, self.in_flight)
        for i, earlier in sorted((i, True) for i in after) + sorted((i, False) for i in before):
            step, other = (self.steps[-1], i) if earlier else (self.steps[i], 0)
            if self.steps[other]["stream"] != step["stream"] and all(w["step"] != other for w in step["waits"]):
                step["waits"].append({"step": other, "by": "fence"})

    def plan(self):
        rng = self.rng
        self.machine()
        self.step("host_copy", self.driver, [])
        for _ in range(rng.randint(1, 2)):
            self.put_initial(self.value(), self.inputs)
        for _ in range(rng.randint(0, 2)):
            self.put_initial(self.value(), rng.choice(self.parts)["constants"])
        for _ in range(rng.randint(3, 14)):
            self.operator()
            self.forget()
        self.finish()
        self.order_runs()
        constants = [part["constants"] for part in self.parts]
        for alloc in self.allocations:
            alloc["bytes"] += GRAIN * rng.randint(0, 8)
            alloc["sets"] = self.in_flight if self.lanes and alloc["id"] not in constants else 1
        return {"format": 1, "in_flight": self.in_flight, "stream_sets": self.in_flight if self.lanes else 1,
                "devices": self.devices, "streams": self.streams,
                "values": self.values, "allocations": self.allocations, "initial": self.initial, "steps": self.steps}


def conflict(a, b):
    return (a["alloc"] == b["alloc"] and "write" in (a["mode"], b["mode"])
            and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"])


def unordered_between_runs(steps, in_flight):
    """The steps of run 0 and those of run 1 that conflict and that nothing orders, where both are in flight."""
    if in_flight == 1:
        return set(), set()
    reached = []  # of each step of two runs, all that it comes after
    last = {}
    for n in range(2 * len(steps)):
        step, base = steps[n % len(steps)], n - n % len(steps)
        mine = {base + w["step"] for w in step["waits"]} | ({last[step["stream"]]} if step["stream"] in last else set())
        reached.append(mine.union(*(reached[m] for m in mine)))
        last[step["stream"]] = n
    pairs = [(a, b) for a in range(len(steps)) for b in range(len(steps)) if a not in reached[len(steps) + b]
             and any(conflict(x, y) for x in steps[a]["accesses"] for y in steps[b]["accesses"])]
    return {a for a, _ in pairs}, {b for _, b in pairs}


def random_plan(seed):
    return Maker(random.Random(f"plan {seed}")).plan()


# Real plans.


def tool():
    """(path, words of its help) of the heddle tool of the build under test, or (None, why not)."""
    build = os.environ.get("HEDDLE_BUILD", "")
    path = pathlib.Path(build, "bin", "heddle")
    if not build or not path.exists():
        return None, "the heddle tool is not built"
    tried = subprocess.run([path, "plan", "--help"], capture_output=True, text=True, timeout=60)
    if tried.returncode != 0 or "--json" not in tried.stdout:
        return None, "this heddle tool has no plan --json"
    return path, tried.stdout


def real_plans(path, seeds, devices=("cpu", "sim:0", "sim:1", "sim:2"), more=()):
    """Yields (name, plan) from `heddle plan --json` on the reference's random graphs, each on two mixed placements; more:
    further words of the command."""
    from reference import graphs, io, placements  # needs numpy

    # PoCL has leaks of its own; other tests look for ours (docs/decisions/tests-and-ci.md).
    quiet = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"} if "opencl:0" in devices else {}

    for seed in seeds:
        graph, params, _ = graphs.random_graph(seed)
        with tempfile.TemporaryDirectory() as folder:
            model, weights = pathlib.Path(folder, "graph.json"), pathlib.Path(folder, "graph.params")
            io.write_graph(model, graph)
            io.write_params(weights, params)
            for k, placed in enumerate(placements.placements(graph, seed, devices)[:2]):
                words = [w for node, device in sorted(placed.items()) for w in ("--place", f"{node}={device}")]
                command = [path, "plan", model, "--params", weights, "--device", ",".join(devices), *words, *more]
                done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120,
                                      env={**os.environ, **quiet})
                if done.returncode != 0:
                    raise RuntimeError(f"seed {seed}, placement {k}: heddle plan: {done.stderr.strip()[:400]}")
                yield f"seed {seed}, placement {k}", json.loads(done.stdout)
