"""The examples in Python do what they say: digits, and the HTTP service with real requests, among them many at once and
malformed ones.

labels: ctypes
timeout: 300
"""

import concurrent.futures
import http.client
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests" / "python"))
from tool_case import environment  # noqa: E402 pylint: disable=wrong-import-position

EXAMPLES = SOURCE / "examples" / "python"
IMAGES = np.load(SOURCE / "examples/digits/images.npy")
EXPECTED = np.load(SOURCE / "examples/digits/expected.npy")


def digits(*words, status=0):
    done = subprocess.run([sys.executable, str(EXAMPLES / "digits.py"), *words], capture_output=True, text=True, timeout=200,
                          stdin=subprocess.DEVNULL, env=environment())
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


def test_each_is_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < 100, path


def test_digits_says_plan_and_accuracy():
    out = digits()
    assert "accuracy: 355 of 360 held-back digits right, 98.61 %" in out
    assert re.search(r"sim:0", out) and re.search(r"^time: [0-9.]+ us an image$", out, re.M)


def test_digits_says_what_is_wrong():
    said = digits("--devices", "cpu,nowhere:0", status=1)
    assert said.startswith("digits: ") and "nowhere" in said and "Traceback" not in said


class Service:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, str(EXAMPLES / "serve.py"), "--port", "0"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        line = self.process.stdout.readline()
        found = re.match(r"http://127.0.0.1:(\d+)/digits$", line)
        assert found, line + self.process.stderr.read()
        self.port = int(found[1])

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


@pytest.fixture(scope="module")
def service():
    one = Service()
    yield one
    status, _, err = one.end()
    assert status == 0 and "Traceback" not in err, err


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def check(answer, first, last):
    status, value = answer
    assert status == 200, value
    assert value["digits"] == EXPECTED[first:last].argmax(axis=1).tolist()
    np.testing.assert_allclose(value["probabilities"], EXPECTED[first:last], atol=1e-4)


def test_health(service):
    status, value = service.ask("GET", "/health")
    assert status == 200 and value["devices"] == ["cpu:0", "sim:0"]


@pytest.mark.parametrize("shape", [(-1, 8, 8), (-1, 1, 8, 8)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", ">f8"])
def test_npy(service, shape, dtype):
    check(service.ask("POST", "/digits", npy(IMAGES[:5].reshape(shape).astype(dtype))), 0, 5)


def test_json(service):
    body = json.dumps({"images": IMAGES[7:9, 0].tolist()})
    check(service.ask("POST", "/digits", body, Content_Type="application/json; charset=utf-8"), 7, 9)


def test_no_images_are_no_digits(service):
    assert service.ask("POST", "/digits", npy(IMAGES[:0])) == (200, {"digits": [], "probabilities": []})


def test_many_clients_at_once(service):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda i: service.ask("POST", "/digits", npy(IMAGES[i : i + 3])), range(120)))
    for i, answer in enumerate(answers):
        check(answer, i, i + 3)
    stats = service.ask("GET", "/health")[1]
    assert stats["items"] > 3.3 * stats["runs"]  # images of several requests shared a run
    check(service.ask("POST", "/digits", npy(IMAGES[:100])), 0, 100)


HUGE = b"\x93NUMPY\x01\x00v\x00" + (b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 8, 8), }".ljust(117)) + b"\n"


@pytest.mark.parametrize("kind, body", [
    ("application/json", b"{"), ("application/json", b"[]"), ("application/json", b'{"images": 3}'),
    ("application/json", b'{"images": [[[1, 2]]]}'), ("application/json", b'{"images": "x"}'),
    ("application/json", b'{"images": [[1], [1, 2]]}'), ("application/json", b"[" * 100000),
    ("application/json", b'{"images": [[[1e999]]]}'), ("application/json", b"\xff\xfe"),
    ("application/octet-stream", b""), ("application/octet-stream", b"hello"), ("application/octet-stream", HUGE),
    ("application/octet-stream", npy(IMAGES[:3])[:-5]), ("application/octet-stream", npy(np.zeros(4))),
    ("application/octet-stream", npy(np.full((1, 8, 8), np.nan))), ("application/octet-stream", npy(np.array(["x"] * 64))),
    ("application/octet-stream", b"PK\x03\x04" + bytes(100))])
def test_a_malformed_body_is_refused_with_a_reason(service, kind, body):
    status, value = service.ask("POST", "/digits", body, Content_Type=kind)
    assert status == 400 and list(value) == ["error"] and len(value["error"]) > 20, value
    check(service.ask("POST", "/digits", npy(IMAGES[:1])), 0, 1)


def test_objects_are_not_unpickled(service):
    assert service.ask("POST", "/digits", npy(np.array([{}], dtype=object)))[0] == 400


def test_other_paths_and_lengths(service):
    assert service.ask("GET", "/")[0] == 404
    assert service.ask("POST", "/other", b"x")[0] == 404
    assert service.ask("POST", "/digits", Content_Length="-1")[0] == 413
    assert service.ask("POST", "/digits", Content_Length="9" * 5000)[0] == 413
    assert service.ask("POST", "/digits", Content_Length=str((1 << 20) + 1))[0] == 413


def test_an_answer_comes_though_the_body_is_not_read(service):
    """A server that closes while there is something to read takes its answer from the client."""
    assert {service.ask("POST", "/other", bytes(900_000))[0] for _ in range(20)} == {404}


def test_a_request_that_was_begun_is_answered_before_it_ends():
    service = Service()
    body = npy(IMAGES[:4])
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as begun:
        begun.sendall(f"POST /digits HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:100])
        while service.ask("GET", "/health")[0] != 200:  # connections are taken in order, so the one above was taken too
            pass
        service.process.send_signal(signal.SIGTERM)
        begun.sendall(body[100:])
        answer = b""
        while part := begun.recv(65536):
            answer += part
    head, _, text = answer.partition(b"\r\n\r\n")
    check((int(head.split()[1]), json.loads(text)), 0, 4)
    _, err = service.process.communicate(timeout=120)
    assert service.process.returncode == 0 and "Traceback" not in err


def test_too_many_at_once_are_told_to_come_again():
    service = Service()
    waiting = []
    try:
        for _ in range(80):
            one = socket.create_connection(("127.0.0.1", service.port), timeout=120)
            one.sendall(b"POST /digits HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
            waiting.append(one)
        while service.ask("POST", "/digits", npy(IMAGES[:1]))[0] != 503:  # till all of those are read
            pass
        assert service.ask("GET", "/health")[0] == 200
    finally:
        for one in waiting:
            one.close()
    status, _, err = service.end(signal.SIGINT)
    assert status == 0 and "Traceback" not in err
