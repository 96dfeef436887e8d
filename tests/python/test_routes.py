"""Routes as a user of the tool meets them: what `plan` says of each crossing, figures that come from the self-test, warnings,
and values that several devices have in one page, counted.

labels: serial ctypes
timeout: 300
"""
import json
import os

import numpy as np
import pocl
import pytest
from tool_case import BUILD, DIGITS, environment, good, heddle

pocl.in_process()

import capi  # noqa: E402

PARAMS = DIGITS.with_suffix(".params")
SIMS = ("--device", "cpu,sim:0,sim:1", "--place", "wide*=sim:0", "--place", "res*=sim:1", "--place", "fine*=cpu")
PAGES = ("--set", "sim.unified=1", "--set", "sim.import_unified=on")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    np.save(folder / "x.npy", np.load(DIGITS.parent / "images.npy")[:1].astype(np.float32))
    return folder / "x.npy", np.load(DIGITS.parent / "expected.npy")[0]


def run(image, cache, *words, **env):
    """Runs digits and compares with what onnx.reference gave; the lines of the log that are about routes."""
    out = cache.parent / "out"
    r = heddle("run", DIGITS, "--params", PARAMS, "--input", f"image={image[0]}", "--output-dir", out, "--set",
               "log=info", "--set", "routes.test=1", "--set", f"routes.cache_dir={cache}", *words, **env)
    assert r.status == 0, r
    assert np.max(np.abs(np.load(out / "output_0.npy") - image[1])) < 1e-5
    return [line for line in r.err.splitlines() if "routes:" in line]


def plan(*words, cache=None, test=1, **env):
    where = ("--set", f"routes.cache_dir={cache or 'off'}", "--set", f"routes.test={test}")
    return json.loads(good("plan", DIGITS, *words, "--json", *where, **env))


def test_a_plan_alone_tests_nothing(tmp_path):
    cache = tmp_path / "routes"
    made = plan(*SIMS, cache=cache)
    assert not cache.exists()
    for c in made["crossings"]:
        copies = {"shared": 0, "direct": 1, "peer": 1, "staged": 2, "staged twice": 3}[c["route"]]
        latency = {"shared": 10e3, "direct": 20e3, "peer": 20e3, "staged": 40e3, "staged twice": 50e3}[c["route"]]
        assert c["measured"] is False and c["page"] == -1
        assert c["estimated_ns"] == round(latency + 0.1 * copies * c["bytes"])
    assert {c["route"] for c in made["crossings"]} == {"direct", "peer"}
    assert "20.4 us, assumed" in good("plan", DIGITS, *SIMS)


def test_figures_come_from_the_test(image, tmp_path):
    cache = tmp_path / "routes"
    said = run(image, cache, *SIMS)
    assert len(said) == 4 and all("tested in" in line for line in said)
    assert run(image, cache, *SIMS) == []
    first, second = plan(*SIMS, cache=cache), plan(*SIMS, cache=cache)
    assert first == second and all(c["measured"] for c in first["crossings"])
    assert all(0 < c["estimated_ns"] < 1e9 for c in first["crossings"])
    off = plan(*SIMS, cache=cache, test=0)
    assert not any(c["measured"] for c in off["crossings"])
    for p in (first, off):  # the figures are all that differs
        for c in p["crossings"]:
            del c["estimated_ns"], c["measured"]
    assert first == off


def test_a_peer_that_lies(image, tmp_path):
    cache = tmp_path / "routes"
    said = run(image, cache, *SIMS, "--set", "sim.peer=lie")
    warnings = [line for line in said if "warning" in line]
    assert len(warnings) == 1
    for word in ("sim:1 to sim:0", "peer", "byte 0", "0x"):
        assert word in warnings[0], warnings
    assert not any("warning" in line for line in run(image, cache, *SIMS, "--set", "sim.peer=lie"))
    routes = {(c["from"], c["to"]): c["route"] for c in plan(*SIMS, "--set", "sim.peer=lie", cache=cache)["crossings"]}
    assert routes[2, 1] != "peer"
    assert "peer" in {c["route"] for c in plan(*SIMS, cache=cache)["crossings"]}  # the honest one is another


def test_a_wrong_folder_is_said_once(image, tmp_path):
    """However many pairs of devices there are."""
    for folder in ("relative", "/dev/null/folder"):
        r = heddle("run", DIGITS, "--params", PARAMS, "--input", f"image={image[0]}", *SIMS, "--set", "routes.test=1",
                   "--set", f"routes.cache_dir={folder}")
        assert r.status == 0 and r.err.count("is not kept") == 1, r


def copied(devices, rules, settings, image):
    """Bytes that the second run copied, by the counters; and the plan."""
    ctx = capi.Context(routes__test=1, routes__cache_dir="off", **settings)
    graph, params = capi.Graph(DIGITS.read_text()), capi.Params(PARAMS.read_bytes())
    model = capi.Model(ctx, graph, params, devices, rules, flags=capi.IGNORE_ANNOTATIONS)
    ex = capi.Executor(model)
    try:
        for _ in range(2):
            ex.set_input("image", np.load(image[0]))
            ex.run()
            assert np.max(np.abs(ex.output(0) - image[1])) < 1e-5
        return ex.stats().bytes_copied, model.explain_json()
    finally:
        for x in (ex, model, params, graph, ctx):
            x.close()


def check_no_copies(devices, rules, settings, image):
    n, made = copied(devices, rules, settings, image)
    assert n == 0 and made["counts"]["copies"] == 0 and made["counts"]["copied_bytes"] == 0, made["crossings"]
    assert made["crossings"] and {c["route"] for c in made["crossings"]} == {"shared"}
    assert all(c["page"] in (c["from"], c["to"]) or c["page"] >= 0 for c in made["crossings"])


def test_sims_share_pages(image):
    check_no_copies("cpu,sim:0,sim:1", ["*=cpu", "wide*=sim:0", "res*=sim:1"], dict(sim__unified=1, sim__import_unified="on"),
                    image)


def test_opencl_shares_pages(image):
    pocl.need()
    check_no_copies("cpu,opencl:0", ["*=cpu", "wide*=opencl:0", "fine*=opencl:0"], {}, image)
    # opencl does not import: the page is its own, no matter which device computes the value
    check_no_copies("cpu,opencl:0,sim:0", ["*=cpu", "wide*=opencl:0", "res*=sim:0"],
                    dict(sim__unified=1, sim__import_unified="on", sim__import_alignment=4096), image)


def test_vulkan_shares_pages(image, tmp_path):
    """cpu, PoCL and two lavapipe devices: the page is OpenCL's where it takes part, since Vulkan imports and OpenCL does not.
    In programs of their own, so that no other test of this file has both drivers in its process."""
    lavapipe = pytest.importorskip("lavapipe")
    pocl.need()
    env = {**pocl.ENV, **lavapipe.ENV}
    lavapipe.need()
    places = {"wide*": "opencl:0", "res.add": "vulkan:0", "res.relu": "vulkan:1", "wide1.relu": "vulkan:0",
              "wide2.relu": "vulkan:1", "gain": "vulkan:0"}
    words = ["--device", "cpu,opencl:0,vulkan:0,vulkan:1", "--place", "*=cpu"]
    for pattern, device in places.items():
        words += ["--place", f"{pattern}={device}"]
    cache = tmp_path / "routes"
    said = run(image, cache, *words, **env)
    assert said and all("shared" in line and "tested in" in line for line in said), said
    made = plan(*words, cache=cache, **env)
    assert made["counts"]["copies"] == 0 and {c["route"] for c in made["crossings"]} == {"shared"}
    names = [d["name"] for d in made["devices"]]
    pairs = {(names[c["from"]], names[c["to"]]): names[c["page"]] for c in made["crossings"] if c["to"] >= 0}
    assert pairs["opencl:0", "vulkan:0"] == pairs["vulkan:1", "opencl:0"] == "opencl:0"
    assert pairs["vulkan:0", "vulkan:1"].startswith("vulkan")
    assert all(c["measured"] for c in made["crossings"])
