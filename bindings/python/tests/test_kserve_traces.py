"""heddle.kserve: the spans of OpenTelemetry of requests over REST and gRPC: parents, order, devices, errors; none without --traces.

The packages kserve and opentelemetry-sdk are not part of the tests' environment: scripts/soak runs this file in one of its own.
timeout: 300
"""
import asyncio
import concurrent.futures
import json
import time
import urllib.request

import pytest

from kserve_case import Server, ask, body_of, images, repository

kserve = pytest.importorskip("kserve", reason="the package kserve is not installed")
pytest.importorskip("opentelemetry.sdk", reason="the package opentelemetry-sdk is not installed")

TRACE = "0af7651916cd43dd8448eb211c80319c"


def spans_of(folder, words, use):
    """The spans that a server writes while use(server, input name) asks it."""
    repository(folder, ("7",))
    with open(folder / "out", "w") as out:
        one = Server("--models", folder, "--devices", "cpu,sim:0", *words, stdout=out, OTEL_BSP_SCHEDULE_DELAY="200")
        try:
            use(one, ask(one.port, "/v2/models/digits")[1]["inputs"][0]["name"])
            time.sleep(1)
        finally:
            one.end()
    return [json.loads(line) for line in (folder / "out").read_text().splitlines() if line.startswith("{")]


def parent(number):
    return f"00-{TRACE}-{number:016x}-01"


def asked(server, body, header):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/v2/models/digits/infer", json.dumps(body).encode(),
                                     {"Content-Type": "application/json", **header})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_spans(tmp_path):
    def use(server, name):
        x = images(2)
        asked(server, body_of(x, name), {"traceparent": parent(1)})
        given = kserve.InferInput(name, list(x.shape), "FP32")
        given.set_data_from_numpy(x, binary_data=True)

        async def by_grpc():
            client = kserve.InferenceGRPCClient(f"127.0.0.1:{server.grpc}", timeout=60)
            await client.infer(kserve.InferRequest("digits", [given]), headers=[("traceparent", parent(2))])
            await client.close()
        asyncio.run(by_grpc())
        asked(server, body_of(x, name), {})  # its own trace
        assert ask(server.port, "/v2/models/digits/infer", body_of(x, "absent"))[0] == 400
        with pytest.raises(urllib.error.HTTPError):
            asked(server, body_of(x[:, :, :4], name), {"traceparent": parent(3)})
        asked(server, body_of(x, name), {"traceparent": parent(4)[:-2] + "00"})  # who asks does not record it

    spans = spans_of(tmp_path, ["--traces", "console"], use)
    roots = [span for span in spans if span["name"] == "heddle.kserve digits"]
    assert len(roots) == 5 and all(span["kind"] == "SpanKind.SERVER" for span in roots), [span["name"] for span in spans]
    by_parent = {span["parent_id"]: span for span in roots if span["context"]["trace_id"] == "0x" + TRACE}
    assert set(by_parent) == {f"0x{n:016x}" for n in (1, 2, 3)}
    assert len({span["context"]["trace_id"] for span in roots}) == 3  # the three, and two of their own
    for number in 1, 2:
        root = by_parent[f"0x{number:016x}"]
        inside = [span for span in spans if span["parent_id"] == root["context"]["span_id"]]
        assert [span["name"] for span in inside] == ["heddle.queue", "heddle.batch", "heddle.run", "heddle.outputs"] or \
            sorted(span["name"] for span in inside) == ["heddle.batch", "heddle.outputs", "heddle.queue", "heddle.run"], inside
        ordered = sorted(inside, key=lambda span: ["heddle.queue", "heddle.batch", "heddle.run", "heddle.outputs"].index(span["name"]))
        moments = [root["start_time"], *(span[key] for span in ordered for key in ("start_time", "end_time")), root["end_time"]]
        assert moments == sorted(moments), moments
        run = ordered[2]
        steps = [span for span in spans if span["parent_id"] == run["context"]["span_id"]]
        devices = {span["attributes"]["heddle.device"] for span in steps}
        assert devices == {"cpu:0", "sim:0"} == set(run["attributes"]["heddle.devices"])
        assert {"Conv", "Softmax", "h2d", "d2h"} <= {span["attributes"]["heddle.op"] for span in steps}
        assert all(run["start_time"] <= span["start_time"] <= span["end_time"] <= run["end_time"] for span in steps)
        assert root["attributes"]["heddle.model"] == "digits" and root["attributes"]["heddle.version"] == "7"
        assert root["attributes"]["heddle.items"] == 2
    failed = by_parent[f"0x{3:016x}"]
    assert failed["status"]["status_code"] == "ERROR" and "image" in failed["status"]["description"], failed["status"]


def test_requests_of_one_run(tmp_path):
    """Each of the requests that share a run has the run's spans in its own trace."""
    def use(server, name):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda x: asked(server, body_of(x[None], name), {}), images(8)))
    spans = spans_of(tmp_path, ["--traces", "console", "--max_delay", "0.2"], use)
    roots = [span for span in spans if span["name"] == "heddle.kserve digits"]
    assert len(roots) == 8 and max(span["attributes"]["heddle.items"] for span in roots) > 1
    for root in roots:
        names = {span["name"] for span in spans if span["parent_id"] == root["context"]["span_id"]}
        assert names == {"heddle.queue", "heddle.batch", "heddle.run", "heddle.outputs"}


def test_no_spans(tmp_path):
    assert spans_of(tmp_path, [], lambda server, name: asked(server, body_of(images(1), name), {"traceparent": parent(1)})) == []
