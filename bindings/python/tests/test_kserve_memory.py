"""heddle.kserve: shared memory, versions and the index of the repository by tritonclient, over HTTP and gRPC; binary tensors.

The packages kserve and tritonclient are not part of the tests' environment: scripts/soak runs this file in one of its own.
timeout: 300
"""
import json
import subprocess
import sys
import urllib.error
import urllib.request
import uuid

import numpy as np
import pytest

from kserve_case import Server, ask, body_of, images, repository

pytest.importorskip("kserve", reason="the package kserve is not installed")
pytest.importorskip("tritonclient", reason="the package tritonclient is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    repository(folder, ("1", "2", "10"))
    graph = json.loads((folder / "digits" / "1" / "model.json").read_text())
    softmax = next(node for node in graph["nodes"] if node["op"] == "Softmax")
    softmax["op"] = "LogSoftmax"  # so that the versions differ
    (folder / "digits" / "1" / "model.json").write_text(json.dumps(graph))
    found = Server("--models", folder, "--devices", "cpu,sim:0", "--versions", "0")
    found.names = [ask(found.port, "/v2/models/digits")[1][side][0]["name"] for side in ("inputs", "outputs")]
    yield found
    found.process.kill()
    found.process.wait()


@pytest.fixture(scope="module")
def expected(server):
    """By a request whose tensors are JSON, which test_kserve compares with the library."""
    def call(x):
        answer = ask(server.port, "/v2/models/digits/infer", body_of(x, server.names[0]))[1]
        return np.array(answer["outputs"][0]["data"], np.float32).reshape(-1, 10)
    return call


# A process of its own: tritonclient.grpc and kserve register messages of the same names.
HEAD = """
import sys, os
import numpy as np
kind, port, name, out, x_file = sys.argv[1:6]
if kind == "http":
    import tritonclient.http as triton
else:
    import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm
as_json = {} if kind == "http" else {"as_json": True}
x = np.load(x_file)
client = triton.InferenceServerClient("127.0.0.1:" + port)
def refused(call, *words, **named):
    try:
        call(*words, **named)
    except triton.InferenceServerException as error:
        return str(error)
    raise SystemExit("no error")
"""

MEMORY = HEAD + """
key = sys.argv[6]
client.unregister_system_shared_memory()
client.unregister_cuda_shared_memory()
given, result = 4 * x.size, 4 * 10 * len(x)
region = shm.create_shared_memory_region("both", key, given + result + 64)
shm.set_shared_memory_region(region, [x], offset=32)
client.register_system_shared_memory("both", key, given + result + 48, offset=16)
status = client.get_system_shared_memory_status(**as_json)
rows = status if kind == "http" else list(status["regions"].values())
assert [row["name"] for row in rows] == ["both"] and rows[0]["key"] == key and int(rows[0]["byte_size"]) == given + result + 48, status
assert len(client.get_system_shared_memory_status("both")) == 1 if kind == "http" else True
i = triton.InferInput(name, list(x.shape), "FP32")
o = triton.InferRequestedOutput(out)
# both in the region, which begins at byte 16
i.set_shared_memory("both", given, offset=16)
o.set_shared_memory("both", result, offset=16 + given)
answer = client.infer("digits", [i], outputs=[o])
described = answer.get_output(out)
assert "data" not in described if kind == "http" else list(answer.get_response().raw_output_contents) == [b""], described
np.save(x_file + ".both.npy", shm.get_contents_as_numpy(region, np.float32, [len(x), 10], 32 + given))
# only the input, then only the output
plain = triton.InferRequestedOutput(out)
np.save(x_file + ".in.npy", client.infer("digits", [i], outputs=[plain]).as_numpy(out))
np.save(x_file + ".in2.npy", client.infer("digits", [i]).as_numpy(out))
direct = triton.InferInput(name, list(x.shape), "FP32")
direct.set_data_from_numpy(np.ascontiguousarray(x[::-1]))
client.infer("digits", [direct], outputs=[o])
np.save(x_file + ".out.npy", shm.get_contents_as_numpy(region, np.float32, [len(x), 10], 32 + given))
# what is wrong
wrong = triton.InferInput(name, list(x.shape), "FP32")
for place, word in ((("absent", given, 0), "absent"), (("both", given, result + 49), "outside"), (("both", given - 4, 0), "input"),
                    (("both", given + 4, 0), "input"), (("both", 2**40, 0), "outside")):
    wrong.set_shared_memory(*place)
    assert word in refused(client.infer, "digits", [wrong]), place
small = triton.InferRequestedOutput(out)
small.set_shared_memory("both", result - 4)
assert "bytes" in refused(client.infer, "digits", [i], outputs=[small])
assert "already" in refused(client.register_system_shared_memory, "both", key, 8)
assert "outside" not in refused(client.register_system_shared_memory, "two", key, given + result + 65)
assert "absent" in refused(client.register_system_shared_memory, "two", "/absent-key", 8)
refused(client.register_system_shared_memory, "two", "../etc/passwd", 8)
refused(client.get_system_shared_memory_status, "two")
client.unregister_system_shared_memory("both")
assert "both" in refused(client.infer, "digits", [i])
client.unregister_system_shared_memory("both")
shm.destroy_shared_memory_region(region)
np.save(x_file + ".after.npy", client.infer("digits", [direct]).as_numpy(out))
"""


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_shared_memory(server, expected, tmp_path, kind):
    x = images(5, 4)
    np.save(tmp_path / "x.npy", x)
    key = f"/heddle-{uuid.uuid4()}"
    done = subprocess.run([sys.executable, "-c", MEMORY, kind, str(server.port if kind == "http" else server.grpc), *server.names,
                           str(tmp_path / "x.npy"), key], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for part, y in (("both", expected(x)), ("in", expected(x)), ("in2", expected(x)), ("out", expected(x[::-1])), ("after", expected(x[::-1]))):
        np.testing.assert_allclose(np.load(tmp_path / f"x.npy.{part}.npy"), y, rtol=1e-5, atol=1e-6, err_msg=part)


VERSIONS = HEAD + """
i = triton.InferInput(name, list(x.shape), "FP32")
i.set_data_from_numpy(x)
for version in "", "1", "2", "10":
    answer = client.infer("digits", [i], model_version=version)
    assert (answer.get_response().model_version if kind == "grpc" else answer.get_response()["model_version"]) == (version or "10")
    np.save(x_file + f".{version}.npy", answer.as_numpy(out))
    assert client.is_model_ready("digits", version)
meta = client.get_model_metadata("digits", "2", **as_json)
assert meta["versions"] == ["10", "2", "1"] and meta["platform"] == "heddle", meta
assert "3" in refused(client.infer, "digits", [i], model_version="3")
refused(client.get_model_metadata, "digits", "3")
assert "system_shared_memory" in client.get_server_metadata(**as_json)["extensions"]
index = client.get_model_repository_index(**as_json)
rows = index if kind == "http" else index["models"]
assert {(row["name"], row["version"], row["state"]) for row in rows} == {("digits", v, "READY") for v in ("1", "2", "10")}, index
client.unload_model("digits")
index = client.get_model_repository_index(**as_json)
rows = index if kind == "http" else index["models"]
assert {(row["version"], row["state"]) for row in rows} == {(v, "UNAVAILABLE") for v in ("1", "2", "10")}, index
refused(client.infer, "digits", [i])
refused(client.unload_model, "digits")
refused(client.load_model, "absent")
client.load_model("digits")
assert client.is_model_ready("digits")
np.save(x_file + ".again.npy", client.infer("digits", [i]).as_numpy(out))
"""


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_versions_and_the_repository(server, expected, tmp_path, kind):
    x = images(3, 5)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([sys.executable, "-c", VERSIONS, kind, str(server.port if kind == "http" else server.grpc), *server.names,
                           str(tmp_path / "x.npy")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    y = expected(x)
    for version in "", "2", "10", "again":
        np.testing.assert_allclose(np.load(tmp_path / f"x.npy.{version}.npy"), y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(np.load(tmp_path / "x.npy.1.npy")), y, rtol=1e-4, atol=1e-6)


def infer(server, head, tail, length=None, path="/v2/models/digits/infer"):
    """A request of JSON and bytes: the status and the answer's two parts."""
    text = json.dumps(head).encode() if isinstance(head, dict) else head
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", text + tail, {
        "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text) if length is None else length)})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
            cut = int(answer.headers.get("Inference-Header-Content-Length", len(body)))
            return answer.status, json.loads(body[:cut]), body[cut:]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), b""


def test_binary_tensors(server, expected):
    x, name, out = images(4, 6), *server.names
    one = {"name": name, "shape": list(x.shape), "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    for wish in ({"parameters": {"binary_data_output": True}}, {"outputs": [{"name": out, "parameters": {"binary_data": True}}]}):
        status, answer, tail = infer(server, {"id": "7", "inputs": [one], **wish}, x.tobytes())
        assert status == 200 and answer["id"] == "7" and "data" not in answer["outputs"][0], answer
        assert answer["outputs"][0]["parameters"]["binary_data_size"] == len(tail) == 160
        np.testing.assert_allclose(np.frombuffer(tail, np.float32).reshape(4, 10), expected(x), rtol=1e-5, atol=1e-6)
    status, answer, tail = infer(server, {"inputs": [one], "parameters": {"binary_data_output": True},
                                          "outputs": [{"name": out, "parameters": {"binary_data": False}}]}, x.tobytes())
    assert status == 200 and len(answer["outputs"][0]["data"]) == 40 and tail == b""
    wrong = [({"inputs": [one]}, x.tobytes()[:-1]), ({"inputs": [one]}, b""), ({"inputs": [{**one, "parameters": {"binary_data_size": 4}}]}, x.tobytes()),
             ({"inputs": [{**one, "parameters": {"binary_data_size": -4}}]}, x.tobytes()),
             ({"inputs": [{**one, "datatype": "FP99"}]}, x.tobytes()), ({"inputs": [{**one, "datatype": "BYTES"}]}, b"\xff" * x.nbytes),
             ({"inputs": [{**one, "shape": [4, -1, 8, 8]}]}, x.tobytes()), ({"inputs": [{**one, "shape": "x"}]}, x.tobytes()),
             ({"inputs": {}}, b""), ({"inputs": [3]}, b""), ({}, b""), (b"[1]", b""), (b"{", b""), (b"\xff\xfe", b""),
             ({"inputs": [one], "outputs": [{}]}, x.tobytes()), ({"inputs": [one], "outputs": 3}, x.tobytes())]
    for head, tail in wrong:
        status, answer, _ = infer(server, head, tail)
        assert status == 400 and answer, (head, status, answer)
    for length in ("-1", "x", str(10**9)):
        assert infer(server, {"inputs": [one]}, x.tobytes(), length)[0] == 400
    assert infer(server, {"inputs": [one]}, x.tobytes(), path="/v2/models/digits/versions/99/infer")[0] == 404
    assert infer(server, {"inputs": [one]}, x.tobytes())[0] == 200


def test_shared_memory_can_be_off(tmp_path):
    repository(tmp_path, ("1",))
    one = Server("--models", tmp_path, "--devices", "cpu,sim:0", "--shared_memory", "none")
    try:
        status, text = ask(one.port, "/v2/systemsharedmemory/region/a/register", {"key": "/a", "offset": 0, "byte_size": 8})
        assert status == 400 and "machine" in text
        assert ask(one.port, "/v2/systemsharedmemory/status")[0] == 400
    finally:
        one.end()
