"""Models with strings, labels and maps: heddle.load and heddle.onnxruntime beside ONNX Runtime."""
import heddle
import heddle.onnxruntime as ours
import numpy as np
import onnx
import pytest
from heddle import errors
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

theirs = pytest.importorskip("onnxruntime")
theirs.set_default_logger_severity(4)
STRING, FLOAT, INT = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64
TEXTS = np.array([["a", "other"], ["zz", "ü"], ["", "b"]], object)


def model(nodes, inputs, outputs, weights=(), opset=19, ml=3):
    values = [[v if isinstance(v, onnx.ValueInfoProto) else helper.make_tensor_value_info(*v) for v in many]
              for many in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *values, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)],
                             ir_version=8)


def maps(name, key):
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, None))
    return helper.make_value_info(name, helper.make_sequence_type_proto(kind))


def ml(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attrs)


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, list):
        assert [list(row) for row in got] == [list(row) for row in want]
        for g, w in zip(got, want):
            np.testing.assert_allclose(list(g.values()), list(w.values()), rtol=1e-5, atol=1e-6)
        return
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


def check(proto, feed, reference=False):
    if reference:
        want = ReferenceEvaluator(proto).run(None, feed)
        want = [w.astype(object) if w.dtype.kind == "U" else w for w in want]
    else:
        want = theirs.InferenceSession(proto.SerializeToString()).run(None, feed)
    session = ours.InferenceSession(proto.SerializeToString())
    for got in (session.run(None, feed), session.run(None, feed, ours.RunOptions()), heddle.load(proto).run(None, feed),
                list(heddle.load(proto).run(feed).values())):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    return want


@pytest.mark.parametrize("labels", [{"classlabels_strings": ["cat", "dog", "cat2"]}, {"classlabels_ints": [7, 3, 5]}])
@pytest.mark.parametrize("zips", [False, True])
def test_classifiers(labels, zips):
    rng = np.random.default_rng(1)
    key, names = next(iter(labels.items()))
    nodes = [ml("LinearClassifier", ["x"], ["label", "p"], coefficients=[float(v) for v in rng.normal(size=12)],
                intercepts=[0.1, 0.2, 0.3], post_transform="SOFTMAX", **labels)]
    kind = STRING if key.endswith("strings") else INT
    outputs = [("label", kind, [None]), ("p", FLOAT, [None, 3])]
    if zips:
        nodes.append(ml("ZipMap", ["p"], ["maps"], **{key.replace("_ints", "_int64s"): names}))
        outputs[1] = maps("maps", kind)
    proto = model(nodes, [("x", FLOAT, [None, 4])], outputs)
    check(proto, {"x": rng.normal(size=(9, 4)).astype(np.float32)})
    loaded = heddle.load(proto)
    words = [info.dtype for info in loaded.outputs]
    assert words[0] == ("string" if kind == STRING else "int64")
    assert words[1] == (f"seq(map({words[0]},float32))" if zips else "float32")
    theirs_outputs = theirs.InferenceSession(proto.SerializeToString()).get_outputs()
    mine = ours.InferenceSession(proto.SerializeToString()).get_outputs()
    assert [o.type for o in mine] == [o.type for o in theirs_outputs]


def test_encoders():
    nodes = [
        ml("LabelEncoder", ["s"], ["numbers"], keys_strings=["a", "b"], values_int64s=[4, 5], default_int64=9),
        ml("LabelEncoder", ["s"], ["texts"], keys_strings=["a", "zz"], values_strings=["AA", "other"]),
        ml("LabelEncoder", ["texts"], ["floats"], keys_strings=["AA", "_Unused"], values_floats=[0.5, 1.5]),
        ml("OneHotEncoder", ["s"], ["hot"], cats_strings=["a", "b", "ü"]),
    ]
    outputs = [("numbers", INT, [None, 2]), ("texts", STRING, [None, 2]), ("floats", FLOAT, [None, 2]),
               ("hot", FLOAT, [None, 2, 3])]
    check(model(nodes, [("s", STRING, [None, 2])], outputs), {"s": TEXTS})
    both = [ml("CategoryMapper", ["s"], ["n"], cats_strings=["a", "b"], cats_int64s=[3, 1], default_int64=-5),
            ml("CategoryMapper", ["n"], ["t"], cats_strings=["a", "b"], cats_int64s=[3, 1], default_string="?")]
    check(model(both, [("s", STRING, [None, 2])], [("n", INT, [None, 2]), ("t", STRING, [None, 2])]), {"s": TEXTS})


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_counts(mode):
    node = helper.make_node("TfIdfVectorizer", ["s"], ["y"], mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=1,
                            ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], weights=[0.5, 1.0, 2.0, 3.0],
                            pool_strings=["a", "b", "a", "b", "zz", "other"])
    feed = {"s": np.array([["a", "b", "c", "b"], ["zz", "a", "other", "b"]], object)}
    check(model([node], [("s", STRING, [None, 4])], [("y", FLOAT, [None, 4])]), feed)


def test_moves():
    """Operators that only move texts, or compare them; some of texts that no file has."""
    list_of = helper.make_tensor("list", STRING, [2], [b"b", b"new"])
    nodes = [
        helper.make_node("Identity", ["s"], ["same"]),
        helper.make_node("Transpose", ["s"], ["turned"]),
        helper.make_node("Gather", ["s", "at"], ["picked"]),
        helper.make_node("Concat", ["s", "r"], ["joined"], axis=0),
        helper.make_node("Equal", ["s", "r"], ["equal"]),
        helper.make_node("Where", ["equal", "s", "list"], ["chosen"]),
        helper.make_node("Shape", ["s"], ["shape"]),
    ]
    inputs = [("s", STRING, [None, 2]), ("r", STRING, [None, 2])]
    outputs = [("same", STRING, [None, 2]), ("turned", STRING, [2, None]), ("picked", STRING, [1, 2]),
               ("joined", STRING, [None, 2]), ("equal", TensorProto.BOOL, [None, 2]), ("chosen", STRING, [None, 2]),
               ("shape", INT, [2])]
    weights = [list_of, helper.make_tensor("at", INT, [1], [2])]
    feed = {"s": TEXTS, "r": np.array([["x", "other"], ["zz", "b"], ["a", "b"]], object)}
    check(model(nodes, inputs, outputs, weights), feed, reference=True)


def test_inputs_of_other_types():
    proto = model([helper.make_node("Identity", ["s"], ["t"])], [("s", STRING, [None])], [("t", STRING, [None])])
    loaded = heddle.load(proto)
    want = np.array(["a", "ü"], object)
    for given in (want, np.array(["a", "ü"]), ["a", "ü"], np.array(["a", "ü".encode()], object)):
        same(loaded(given), want)
        same(loaded(s=given), want)
    for wrong in (np.ones(2, np.float32), [1, 2], np.array(["a", 1], object)):
        with pytest.raises(errors.InvalidError, match="'s' is of strings"):
            loaded(wrong)


def test_a_graph_keeps_its_texts():
    proto = model([ml("LabelEncoder", ["n"], ["t"], keys_int64s=[1, 2], values_strings=["one", "two"])],
                  [("n", INT, [None])], [("t", STRING, [None])])
    loaded = heddle.load(proto)
    again = heddle.loads(loaded.graph_json())
    assert set(again.strings) == {"one", "two", "_Unused"}


def test_refusals():
    cases = [
        ([helper.make_node("Unique", ["s"], ["t"])], "it takes strings"),
        ([helper.make_node("Add", ["s", "s"], ["t"])], "it takes strings"),
    ]
    for nodes, words in cases:
        with pytest.raises(errors.UnsupportedError, match=words):
            heddle.load(model(nodes, [("s", STRING, [None])], [("t", STRING, [None])]))
    zips = [ml("ZipMap", ["x"], ["m"], classlabels_int64s=[1, 2]), helper.make_node("Identity", ["m"], ["n"])]
    with pytest.raises(errors.UnsupportedError, match="sequence of maps"):
        heddle.load(model(zips, [("x", FLOAT, [None, 2])], [maps("n", INT)]))
    wide = heddle.load(model(zips[:1], [("x", FLOAT, [None, None])], [maps("m", INT)]))
    with pytest.raises(errors.Error):
        wide(np.ones((2, 4), np.float32))
