"""A server or a tracker of the TVM that is installed, as a process: python rpc_theirs.py server KEY [TRACKER PORT], or
python rpc_theirs.py tracker, proxy or behind KEY PORT (of a proxy). Prints its port. A program of its own, in a group of processes of its own, that ends with its input.
"""
import contextlib
import os
import signal
import subprocess
import sys


class Process:
    def __init__(self, *words):
        clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        self._p = subprocess.Popen([sys.executable, __file__, *map(str, words)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                                   env=clean)
        line = self._p.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError("TVM's " + words[0] + " did not start")
        self.port = int(line)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._p.pid, signal.SIGKILL)
        self._p.wait()
        self._p.stdin.close()
        self._p.stdout.close()


@contextlib.contextmanager
def running(*words):
    p = Process(*words)
    try:
        yield p
    finally:
        p.stop()


def main():
    import tvm.rpc.server
    import tvm.rpc.testing  # noqa: F401  registers rpc.test.*
    import tvm.rpc.tracker
    if sys.argv[1] == "tracker":
        state = tvm.rpc.tracker.PopenTrackerServerState("127.0.0.1", 20000 + os.getpid() % 20000, 60000, silent=True)
    elif sys.argv[1] == "proxy":
        import tvm.rpc.proxy
        state = tvm.rpc.proxy.PopenProxyServerState("127.0.0.1", 20000 + os.getpid() % 20000, 60000)
    elif sys.argv[1] == "behind":
        state = tvm.rpc.server.PopenRPCServerState("127.0.0.1", int(sys.argv[3]), is_proxy=True, key=sys.argv[2], silent=True)
    else:
        address = ("127.0.0.1", int(sys.argv[3])) if len(sys.argv) > 3 else None
        state = tvm.rpc.server.PopenRPCServerState("127.0.0.1", 20000 + os.getpid() % 20000, 60000,
                                                   tracker_addr=address, key=sys.argv[2], silent=True)
    print(getattr(state, "port", 0) or 0, flush=True)
    while os.read(0, 1):  # not sys.stdin, whose lock a forked session would wait for
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
