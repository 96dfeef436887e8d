"""What the tests of heddle.kserve share: a server in a process of its own, questions to it, the model of the example "digits"."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, path, body=None, method=None):
    """Status and JSON of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Server:
    def __init__(self, *words, stdout=None, **env):
        self.port, self.grpc = free_port(), free_port()
        self.process = subprocess.Popen([sys.executable, "-m", "heddle.kserve", "--http_port", str(self.port), "--grpc_port",
                                         str(self.grpc), *map(str, words)], stdin=subprocess.DEVNULL, env={**os.environ, **env},
                                        stdout=stdout)
        until = time.monotonic() + 120
        while True:
            assert self.process.poll() is None and time.monotonic() < until
            try:
                if ask(self.port, "/v2/health/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def repository(folder, versions=("2", "10")):
    """A folder with versions of "digits" whose batch dimension is open."""
    graph = (DIGITS / "digits.json").read_text().replace("[1, 1, 8, 8]", '["n", 1, 8, 8]', 1)
    for version in versions:
        (folder / "digits" / version).mkdir(parents=True)
        (folder / "digits" / version / "model.json").write_text(graph)
        (folder / "digits" / version / "model.params").write_bytes((DIGITS / "digits.params").read_bytes())
    return graph


def images(n, seed=0):
    return np.random.default_rng(seed).integers(0, 17, (n, 1, 8, 8)).astype(np.float32)


def body_of(x, name):
    return {"inputs": [{"name": name, "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}]}
