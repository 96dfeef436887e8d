"""One mistake has one verdict: kit, core and check layer say the same of an offer that cannot be read."""

import onnx
import pytest
from check_case import BUILD, SANITIZED, check
from onnx import TensorProto, helper
from tool_case import heddle

PLUGIN = BUILD / "tests" / "broken-plugins" / "libheddle_plugin_offer_unsized.so"
WORDS = "the plugin broke the contract of op.query"
FAULT = "an offer is NULL or its struct_size is not set"

pytestmark = pytest.mark.skipif(SANITIZED, reason="the kit and the core are the same with sanitizers")


def test_kit(tmp_path):
    r = check(tmp_path, PLUGIN, "--only", "query/offers")
    assert r.status == 1 and WORDS in r.cases["query/offers"].words and FAULT in r.cases["query/offers"].words, r


@pytest.mark.parametrize("layers", ["", "check"])
def test_core(layers, tmp_path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [x], [y])
    model = tmp_path / "relu.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), model)
    r = heddle("plan", model, "--device", "offer_unsized:0", HEDDLE_PLUGINS=str(PLUGIN), HEDDLE_LAYERS=layers)
    assert r.status != 0 and WORDS in r.err and FAULT in r.err, r
