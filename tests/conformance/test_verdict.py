"""One mistake has one verdict in the same words: of the kit, of the loader, and where the core cannot see it by itself, of
the check layer.
timeout: 300"""

import json

import onnx
import pytest
from check_case import BUILD, SANITIZED, tool
from onnx import TensorProto, helper
from tool_case import heddle

FOLDER = BUILD / "tests" / "broken-plugins"
SOUND = FOLDER / "libheddle_plugin_sound.so"

pytestmark = pytest.mark.skipif(SANITIZED, reason="the kit and the core are the same with sanitizers")

# Plugin, settings, and the case that finds the mistake: what a plugin lacks, and what it says of itself.
LOADED = [
    ("bad_name", {}, "load/name"), ("short_root", {}, "load/sizes"), ("short_device_table", {}, "load/sizes"),
    ("wrong_major", {}, "load/entry"), ("bad_product", {}, "root/texts"),
    ("claims_cuda", {}, "root/type"), ("no_alloc", {}, "load/functions"),
    ("no_signal", {}, "root/caps"),
    *[("lacking", {"lacking.of": SOUND, f"lacking.{how}": what}, case) for how, what, case in (
        ("lacks", "stream", "load/functions"), ("lacks", "op", "load/functions"), ("lacks", "copy.5", "load/functions"),
        ("lacks", "event", "root/caps"), ("lacks", "memory.4", "root/caps"), ("cut", "copy.3", "load/sizes"),
        ("cut", "fence.0", "load/sizes"))],
]


def verdict(name, settings, case):
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = tool("check-plugin", FOLDER / f"libheddle_plugin_{name}.so", "--no-store", "--json", "--only", case, *words)
    found = {c["name"]: c for c in json.loads(done.stdout)["cases"]}
    assert found[case]["result"] == "fail", done.stdout
    return found[case]["reason"], words


@pytest.mark.parametrize("name, settings, case", LOADED, ids=lambda value: None if isinstance(value, dict) else str(value))
def test_loader(name, settings, case):
    reason, words = verdict(name, settings, case)
    r = heddle("devices", *words, HEDDLE_DEVICES=f"{name}:0", HEDDLE_PLUGINS=str(FOLDER / f"libheddle_plugin_{name}.so"))
    assert r.status != 0 and reason in r.out + r.err, (reason, r)


@pytest.fixture
def model(tmp_path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), tmp_path / "relu.onnx")
    return tmp_path / "relu.onnx"


@pytest.mark.parametrize("layers", ["", "check"])
def test_offer(layers, model):
    reason, _ = verdict("offer_unsized", {}, "query/offers")
    r = heddle("plan", model, "--device", "offer_unsized:0", HEDDLE_PLUGINS=str(FOLDER / "libheddle_plugin_offer_unsized.so"),
               HEDDLE_LAYERS=layers)
    for words in ("the plugin broke the contract of op.query", "an offer is NULL or its struct_size is not set"):
        assert words in reason and r.status != 0 and words in r.err, (reason, r)
