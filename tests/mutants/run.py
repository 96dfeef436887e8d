"""Runs mutants of small models through the Python package in processes of their own, two at a time, and says what became
of them: run.py FOLDER COUNT SECONDS, with the package and tests/ on PYTHONPATH. COUNT is of each model.

With a sanitizer preloaded the processes use malloc for everything, and an allocation of more than 512 MiB fails; without
one glibc's checked allocator is used. A mutant that keeps a process for 30 s is left out and named. Exit status: 1 where a
mutant ended a process or gave what its model does not declare (its file is kept in FOLDER), 2 where time ran out."""
import glob
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

from mutants import models, mutate

SHARDS = 2
STUCK_SECONDS = 30
CALLS = pathlib.Path(__file__).with_name("calls.py")


def environment():
    env = {**os.environ, "HEDDLE_CONFIG": "off"}
    if "asan" in env.get("LD_PRELOAD", ""):
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "detect_leaks=0") + ":max_allocation_size_mb=512"
        env["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
        env["PYTHONMALLOC"] = "malloc"
        return env
    found = glob.glob("/lib*/*/libc_malloc_debug.so.0") + glob.glob("/lib*/libc_malloc_debug.so.0")
    if found:
        env.update(LD_PRELOAD=" ".join(filter(None, [env.get("LD_PRELOAD"), found[0]])), MALLOC_CHECK_="3")
    return {**env, "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165"}


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


class Shard:
    def __init__(self, folder, number, count, end):
        self.folder, self.number, self.count, self.end = folder, number, count, end
        self.done, self.findings, self.stuck = 0, [], []
        self.first, self.process = 0, None
        self.start()

    def start(self):
        """From mutant number first on."""
        self.log = open(self.folder / f"{self.number}.log", "w+")
        self.at = None
        self.moved = time.monotonic()
        seconds = max(0, int(self.end - time.monotonic()))
        (self.folder / f"{self.number}.at").write_text("")
        words = [sys.executable, CALLS, self.folder, self.number, SHARDS, self.count, seconds, self.first]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=environment(), preexec_fn=limit)

    def position(self):
        words = (self.folder / f"{self.number}.at").read_text().split()
        return (int(words[0]), words[1]) if len(words) > 1 else (self.first - 1, "the start")

    def look(self):
        """Whether it goes on."""
        code, (k, name) = self.process.poll(), self.position()
        if k != self.at:
            self.at, self.moved = k, time.monotonic()
        if code is None and time.monotonic() - self.moved < STUCK_SECONDS:
            return True
        if code is None:
            self.process.kill()
            self.process.wait()
            self.stuck.append(name)
        elif code == 0:
            self.done += json.loads(self.process.stdout.read().splitlines()[-1])["done"]
            return False
        else:
            self.log.seek(0)
            self.findings.append((name, code, self.log.read()[-6000:]))
            self.keep(name)
        self.done += max(0, (k - self.first) // SHARDS + 1)
        self.first = k + 1
        if name == "the start" or len(self.findings) > 5 or time.monotonic() > self.end:
            return False
        self.start()
        return True

    def keep(self, name):
        model = name.split(":")[0]
        if model in models.MODELS:
            path = self.folder / f"{name.replace(':', '_')}.onnx"
            path.write_bytes(mutate.mutant(models.MODELS[model](), name))


def sweep(folder, count, seconds):
    """(done, asked, findings, stuck); each finding: name of the mutant, exit status, end of what was said."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    shards = [Shard(folder, i, count, end) for i in range(SHARDS)]
    going = list(shards)
    while going:
        going = [one for one in going if one.look()]
        time.sleep(0.05)
    return (sum(s.done for s in shards), count * len(models.MODELS), [f for s in shards for f in s.findings],
            [n for s in shards for n in s.stuck])


def main():
    done, asked, findings, stuck = sweep(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    for name, code, text in findings:
        print(f"mutant {name}: exit status {code}; again with calls.py FOLDER --again {name}\n{text}")
    late = f", {len(stuck)} left out after {STUCK_SECONDS} s each: {' '.join(stuck[:20])}" if stuck else ""
    print(f"{done} of {asked} mutants{late}; findings: {len(findings)}")
    sys.exit(1 if findings else 2 if done < asked else 0)


if __name__ == "__main__":
    main()
