"""Tokenizer of com.microsoft, which scikit-learn's text vectorisers become, against ONNX Runtime."""
import heddle
import numpy as np
import onnxruntime
import pytest
from heddle import errors
from onnx import TensorProto, helper

TEXTS = ["", "a", "hello world", "foo,bar;;baz ", "  x  y ", "über straße 12", "aaab", "ab12cd", "日本語 text", "a.b.c", "\n\tq", "x-yy-zzz"]
CASES = [{"tokenexp": t} for t in ("[a-zA-Z0-9_]+", "a|ab|aaa", ".", "..", ".+", r"\w\w+", "a*", "^a", r"\b[a-z]", "[^ ]$", "(?i)A+b?", "x*?y", "[^,]+")]
CASES += [{"tokenexp": r"\w+", "mincharnum": 3}, {"separators": [""]}, {"separators": [" "]}, {"separators": [",", ";", " "]},
          {"separators": ["[ ,;]+"], "mincharnum": 2}, {"separators": ["a*"]}, {"separators": [r"\."]}, {"separators": ["b", "ab"]}]


def tokenizer(rank, **attrs):
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **{"mark": 0, "mincharnum": 1, "pad_value": "#", **attrs})
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.STRING, [None] * rank)],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, [None] * (rank + 1))])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString()


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mark", [0, 1])
def test_tokens(case, mark):
    for shape in ((len(TEXTS),), (len(TEXTS) // 2, 2), (1, 1), (1,)):
        x = np.array(TEXTS[:int(np.prod(shape))], object).reshape(shape)
        proto = tokenizer(len(shape), mark=mark, **case)
        want = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        got = heddle.load(proto, devices="cpu").run(None, {"x": x})[0]
        assert got.tolist() == want.tolist(), shape


def test_no_texts():
    assert heddle.load(tokenizer(2, tokenexp="a", mark=1), devices="cpu").run(None, {"x": np.zeros((0, 3), object)})[0].shape == (0, 3, 0)


@pytest.mark.parametrize("attrs, words", [({}, "either"), ({"tokenexp": "a", "separators": ["b"]}, "either"), ({"tokenexp": "[a"}, "pattern"),
                                          ({"separators": ["b", "(a"]}, "pattern"), ({"tokenexp": ".", "mincharnum": 2}, "mincharnum"),
                                          ({"tokenexp": "a", "mincharnum": 0}, "mincharnum")])
def test_refused(attrs, words):
    with pytest.raises(errors.Error, match=words):
        heddle.load(tokenizer(1, **attrs), devices="cpu")
