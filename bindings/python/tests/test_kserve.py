"""heddle.kserve: a server in a process of its own, asked over REST and gRPC; versions, unloading, wrong requests, its end.

The package kserve is not part of the tests' environment: scripts/soak runs this file in one of its own.
timeout: 300
"""
import asyncio
import concurrent.futures
import signal
import subprocess
import sys

import numpy as np
import pytest

from kserve_case import DIGITS, Server, ask, body_of, images, repository

kserve = pytest.importorskip("kserve", reason="the package kserve is not installed")

@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    repository(folder)
    found = Server("--models", folder, "--devices", "cpu,sim:0", "--max_delay", "0.01")
    yield found
    found.process.kill()
    found.process.wait()


@pytest.fixture(scope="module")
def expected():
    import heddle
    graph = (DIGITS / "digits.json").read_text().replace("[1, 1, 8, 8]", '["n", 1, 8, 8]', 1)
    model = heddle.loads(graph, (DIGITS / "digits.params").read_bytes(), devices="cpu,sim:0")
    return lambda x: np.concatenate([np.asarray(model(row[None])) for row in x])


def names(server):
    status, meta = ask(server.port, "/v2/models/digits")
    assert status == 200 and meta["inputs"][0]["datatype"] == "FP32" and meta["inputs"][0]["shape"] == [-1, 1, 8, 8], meta
    return meta["inputs"][0]["name"], meta["outputs"][0]["name"]


def test_rest(server, expected):
    x, (name, out) = images(3), names(server)
    status, answer = ask(server.port, "/v2/models/digits/infer", body_of(x, name))
    assert status == 200 and answer["model_version"] == "10" and answer["outputs"][0]["name"] == out, answer
    y = np.array(answer["outputs"][0]["data"], np.float32).reshape(answer["outputs"][0]["shape"])
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    status, answer = ask(server.port, "/v1/models/digits:predict", {"instances": x.tolist()})
    assert status == 200
    np.testing.assert_allclose(np.array(answer["predictions"], np.float32), expected(x), rtol=1e-5, atol=1e-6)


def test_kserves_own_clients_with_binary_tensors(server, expected):
    x, (name, _) = images(2, 1), names(server)

    async def both():
        given = kserve.InferInput(name, list(x.shape), "FP32")
        given.set_data_from_numpy(x, binary_data=True)
        request = kserve.InferRequest("digits", [given], request_id="7", parameters={"binary_data_output": True})
        rest = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", timeout=60))
        first = await rest.infer(f"http://127.0.0.1:{server.port}", request, model_name="digits")
        grpc = kserve.InferenceGRPCClient(f"127.0.0.1:{server.grpc}", timeout=60)
        assert await grpc.is_server_ready() and await grpc.is_model_ready("digits")
        second = await grpc.infer(request)
        await rest.close()
        await grpc.close()
        return first, second

    for answer in asyncio.run(both()):
        assert answer.id == "7"
        np.testing.assert_allclose(answer.outputs[0].as_numpy(), expected(x), rtol=1e-5, atol=1e-6)


# A process of its own: tritonclient.grpc and kserve register messages of the same names.
TRITON = """
import sys
import numpy as np
http_port, grpc_port, name, out, x_file = sys.argv[1:]
x = np.load(x_file)
import tritonclient.grpc, tritonclient.http
for module, port, binary in ((tritonclient.http, http_port, {"binary_data": True}), (tritonclient.grpc, grpc_port, {})):
    client = module.InferenceServerClient("127.0.0.1:" + port)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
    given = module.InferInput(name, list(x.shape), "FP32")
    given.set_data_from_numpy(x)
    wanted = [module.InferRequestedOutput(out, **binary)]
    np.save(x_file + "." + module.__name__ + ".npy", client.infer("digits", [given], outputs=wanted, request_id="7").as_numpy(out))
    for model, values in (("digits", x[:, :, :4]), ("absent", x)):
        wrong = module.InferInput(name, list(values.shape), "FP32")
        wrong.set_data_from_numpy(np.ascontiguousarray(values))
        try:
            client.infer(model, [wrong])
        except module.InferenceServerException:
            continue
        raise SystemExit("no error for " + model)
    client.close()
"""


def test_tritons_clients(server, expected, tmp_path):
    pytest.importorskip("tritonclient", reason="the package tritonclient is not installed")
    x, (name, out) = images(3, 3), names(server)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([sys.executable, "-c", TRITON, str(server.port), str(server.grpc), name, out, str(tmp_path / "x.npy")],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for module in "http", "grpc":
        y = np.load(tmp_path / f"x.npy.tritonclient.{module}.npy")
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)


def test_requests_share_runs(server, expected):
    (name, _), x = names(server), images(64, 2)
    before = metric(server, "heddle_batcher_runs")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda row: ask(server.port, "/v2/models/digits/infer", body_of(row[None], name)), x))
    y = np.concatenate([np.array(a["outputs"][0]["data"], np.float32).reshape(1, -1) for _, a in answers])
    np.testing.assert_allclose(y, expected(x).reshape(64, -1), rtol=1e-5, atol=1e-6)
    assert metric(server, "heddle_batcher_runs") - before < 64
    assert metric(server, "heddle_batcher_queued") == 0


def metric(server, name):
    text = ask(server.port, "/metrics")[1]
    return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f'{name}{{model="digits",version="10"}}')))


def test_wrong_requests(server):
    name, _ = names(server)
    x = images(1)
    wrong = [({**body_of(x, name), "inputs": [{**body_of(x, name)["inputs"][0], "shape": [1, 2, 8, 8]}]}, 400),
             (body_of(x, "nothing"), 400), ({"inputs": []}, 400), (body_of(x.reshape(1, 64), name), 400),
             ({**body_of(x, name), "outputs": [{"name": "none"}]}, 400)]
    for body, status in wrong:
        got, text = ask(server.port, "/v2/models/digits/infer", body)
        assert got == status and text, (body, got, text)
    assert ask(server.port, "/v2/models/absent/infer", body_of(x, name))[0] == 404
    assert ask(server.port, "/v2/models/digits/infer", body_of(x, name))[0] == 200


def test_unloading_and_loading(server):
    assert ask(server.port, "/v2/repository/models/digits/unload", {})[0] == 200
    assert ask(server.port, "/v2/models/digits/infer", {"inputs": []})[0] in (404, 503)
    assert ask(server.port, "/v2/repository/models/digits/load", {})[0] == 200
    assert ask(server.port, "/v2/models/digits/ready")[0] == 200
    assert ask(server.port, "/v2/repository/models/absent/load", {})[0] >= 400


def test_the_end_answers_what_was_accepted():
    """SIGTERM while requests wait for others in the batcher."""
    one = Server("--model", f"digits={DIGITS / 'digits.json'}", "--devices", "cpu,sim:0", "--max_items", "1")
    name, _ = (ask(one.port, "/v2/models/digits")[1]["inputs"][0]["name"], None)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask, one.port, "/v2/models/digits/infer", body_of(images(1), name)) for _ in range(8)]
        assert all(a.result()[0] == 200 for a in answers)
    assert one.end() in (0, -signal.SIGTERM)
