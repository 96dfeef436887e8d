"""heddle.ray: a Ray cluster of three nodes on this machine serves the digits over HTTP and by handles, batches requests, and loses
no accepted request but those of a replica or a node that is killed.

The package ray is not part of the tests' environment: scripts/soak runs this file in one of its own.
timeout: 600
"""
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.serve", reason="the package ray[serve] is not installed")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import heddle.ray  # noqa: E402

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"
PORT = 18573
DEVICES = "cpu,sim:0"


def images(n, seed=0):
    return np.random.default_rng(seed).integers(0, 17, (n, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    graph = (DIGITS / "digits.json").read_text().replace("[1, 1, 8, 8]", '["n", 1, 8, 8]', 1)
    (folder / "digits.json").write_text(graph)
    (folder / "digits.params").write_bytes((DIGITS / "digits.params").read_bytes())
    return folder / "digits.json"


@pytest.fixture(scope="module")
def cluster():
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100 << 20})
    nodes = [found.add_node(num_cpus=2, object_store_memory=100 << 20) for _ in range(2)]
    ray.init(address=found.address, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    yield found, nodes
    serve.shutdown()
    ray.shutdown()
    found.shutdown()


@pytest.fixture(scope="module")
def handle(cluster, model):
    made = heddle.ray.deployment(str(model), devices=DEVICES, batch={"max_delay": 0.01}, num_replicas=3, drain=10,
                                 max_replicas_per_node=1, health_check_period_s=2)
    return serve.run(made.bind(), name="digits", route_prefix="/digits")


@pytest.fixture(scope="module")
def expected(model):
    import heddle
    one = heddle.load(model, devices=DEVICES)
    return lambda x: np.concatenate([np.asarray(one(row[None])) for row in x])


def post(body):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/digits", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def name_of(model):
    return next(n["name"] for n in json.loads(model.read_text())["nodes"] if n["op"] == "null")


def test_resources():
    assert heddle.ray.resources("cuda:0,cpu", 0.5) == {"num_cpus": 1, "num_gpus": 0.5}
    assert heddle.ray.resources("npu:0,npu:1?,cpu") == {"num_cpus": 1, "resources": {"heddle_npu": 2}}
    assert heddle.ray.resources(None) == {"num_cpus": 1}


def test_handles_and_http(handle, model, expected):
    x, name = images(40), name_of(model)
    answers = [handle.predict.remote(**{name: row[None]}) for row in x]
    y = np.concatenate([next(iter(a.result(timeout_s=120).values())) for a in answers])
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    status, answer = post({"inputs": {name: x[:2].tolist()}})
    assert status == 200, answer
    np.testing.assert_allclose(np.array(next(iter(answer["outputs"].values())), np.float32), expected(x[:2]), rtol=1e-5, atol=1e-6)
    assert post({"inputs": {name: [[1, 2]]}})[0] == 400 and post({"inputs": {"nothing": [1]}})[0] == 400 and post([])[0] == 400


def under_load(handle, model, expected, lose):
    """Sends requests while lose() takes something away; what fails, fails with an error, and later ones succeed."""
    x, name = images(300, 3), name_of(model)
    answers, failed, results = [], 0, {}
    for i, row in enumerate(x):
        answers.append(handle.predict.remote(**{name: row[None]}))
        if i == 100:
            lose()
        time.sleep(0.005)
    for i, answer in enumerate(answers):
        try:
            results[i] = next(iter(answer.result(timeout_s=120).values()))
        except (ray.exceptions.RayError, RuntimeError) as error:
            assert str(error)
            failed += 1
    wanted = expected(x)
    for i, y in results.items():
        np.testing.assert_allclose(y, wanted[i:i + 1], rtol=1e-5, atol=1e-6)
    assert failed < 150, failed
    until = time.monotonic() + 120  # Ray starts another replica
    while True:
        try:
            handle.predict.remote(**{name: x[:1]}).result(timeout_s=60)
            break
        except (ray.exceptions.RayError, RuntimeError):
            assert time.monotonic() < until
            time.sleep(1)


def test_a_replica_is_killed(handle, model, expected):
    def kill():
        actors = [a for a in ray.util.list_named_actors(all_namespaces=True) if "SERVE_REPLICA" in a["name"]]
        ray.kill(ray.get_actor(actors[0]["name"], namespace=actors[0]["namespace"]), no_restart=False)

    under_load(handle, model, expected, kill)


def test_a_node_is_killed(cluster, handle, model, expected):
    found, nodes = cluster
    under_load(handle, model, expected, lambda: found.remove_node(nodes.pop(), allow_graceful=False))
