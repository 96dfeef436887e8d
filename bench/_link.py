"""Two network namespaces that a veth pair joins. For bench/remote.py and the tests of faults of links; needs root, ip and tc."""
import contextlib
import shutil
import subprocess

NEAR, FAR = "10.213.7.1", "10.213.7.2"


class Unavailable(Exception):
    """What this machine lacks for it."""


class Link:
    """near and far: words before a command that runs it in that namespace. Both ends have the interface v, and the addresses NEAR
    and FAR."""

    def __init__(self):
        for name in "unshare", "nsenter", "ip", "tc":
            if shutil.which(name) is None:
                raise Unavailable(f"there is no program {name}")
        self._held = []
        try:
            self.near, self.far = self._enter(), self._enter()
            far = self._held[1].pid
            self.ip(self.near, "link", "add", "v", "type", "veth", "peer", "name", "w")
            self.ip(self.near, "link", "set", "w", "netns", str(far), "name", "v")
            for side, address in (self.near, NEAR), (self.far, FAR):
                self.ip(side, "address", "add", f"{address}/24", "dev", "v")
                self.ip(side, "link", "set", "v", "up")
                self.ip(side, "link", "set", "lo", "up")
        except BaseException:
            self.close()
            raise

    def _enter(self):
        p = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        self._held.append(p)
        if not p.stdout.read(1):
            raise Unavailable("this user may make no network namespaces")
        return ["nsenter", "-t", str(p.pid), "-n"]

    @staticmethod
    def _run(words):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(words[4:])}: {done.stderr.strip()}")

    def ip(self, side, *words):
        self._run([*side, "ip", *words])

    def shape(self, side, *words):
        """What leaves that side goes through a queue of tc: ("tbf", "rate", "1gbit", ...), ("netem", "delay", "1ms"); none: as it is."""
        if words:
            self._run([*side, "tc", "qdisc", "replace", "dev", "v", "root", *words])
        else:
            subprocess.run([*side, "tc", "qdisc", "del", "dev", "v", "root"], capture_output=True)

    def close(self):
        for p in self._held:
            p.stdin.close()
            p.wait()
            p.stdout.close()


@contextlib.contextmanager
def link():
    made = Link()
    try:
        yield made
    finally:
        made.close()
