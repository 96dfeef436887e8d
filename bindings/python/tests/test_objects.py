"""Texts, sequences and optionals that only a run has, against ONNX Runtime and onnx.reference."""
import re
import threading

import heddle
import heddle.onnxruntime as sessions
import numpy as np
import onnx
import onnxruntime
import pytest
from heddle import errors
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT, INT, TEXT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def tensor(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def sequence(name, kind=FLOAT):
    return helper.make_tensor_sequence_value_info(name, kind, None)


def optional(name, kind=FLOAT):
    return helper.make_value_info(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(kind, None)))


def model(nodes, inputs, outputs, **weights):
    tensors = [numpy_helper.from_array(np.array(v, np.int64 if not isinstance(v, str) else object), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def check(proto, feed, devices="cpu", peer=True):
    if peer:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        want = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feed)
    else:
        want = ReferenceEvaluator(proto).run(None, feed)
    loaded = heddle.load(proto, devices=devices)
    for _ in range(2):
        compare(loaded.run(None, feed), want)
    return loaded


def compare(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, list):
            assert isinstance(g, list)
            compare(g, w)
        elif w is None:
            assert g is None
        else:
            w = np.asarray(w)
            assert np.asarray(g).shape == w.shape and np.all(np.asarray(g) == w), (g, w)
            assert w.dtype.kind in "OU" or g.dtype == w.dtype


PARTS = [np.arange(n * 3, dtype=np.float32).reshape(n, 3) for n in (2, 1, 4)]


@pytest.mark.parametrize("devices", ["cpu", "sim:0,cpu"])
def test_sequences_in_and_out(devices):
    nodes = [node("SequenceAt", "s i", "a"), node("Neg", "a", "b"), node("SequenceInsert", "s b i", "t"),
             node("SequenceErase", "t j", "u"), node("SequenceLength", "u", "n"), node("ConcatFromSequence", "u", "c", axis=0)]
    proto = model(nodes, [sequence("s"), tensor("i", INT, []), tensor("j", INT, [])],
                  [sequence("u"), tensor("n", INT, []), tensor("c", FLOAT, None), tensor("b", FLOAT, None)])
    for i, j in ((0, 0), (2, -1), (-1, 1), (-3, 3)):
        check(proto, {"s": PARTS, "i": np.array(i), "j": np.array(j)}, devices)
    loaded = heddle.load(proto, devices=devices)
    with pytest.raises(errors.InvalidError, match="position 3 of a sequence of 3"):
        loaded.run(None, {"s": PARTS, "i": np.array(3), "j": np.array(0)})
    with pytest.raises(errors.InvalidError, match="it takes a list"):
        loaded.run(None, {"s": PARTS[0], "i": np.array(3), "j": np.array(0)})


def test_sessions_take_lists():
    proto = model([node("SequenceInsert", "s x", "t"), node("StringConcat", "w w", "v")],
                  [sequence("s"), tensor("x", FLOAT, [2]), tensor("w", TEXT, ["n"])], [sequence("t"), tensor("v", TEXT, ["n"])])
    session = sessions.InferenceSession(proto.SerializeToString())
    assert [value.type for value in session.get_inputs()] == ["seq(tensor)", "tensor(float)", "tensor(string)"]
    x = np.float32([1, 2])
    compare(session.run(None, {"s": PARTS, "x": x, "w": np.array(["a"])}), [[*PARTS, x], np.array(["aa"], object)])


def test_parts_whose_sizes_a_run_gives():
    nodes = [node("SplitToSequence", "x n", "s", axis=1), node("SequenceAt", "s i", "a")]
    proto = model(nodes, [tensor("x", FLOAT, [None, None]), tensor("n", INT, ["k"]), tensor("i", INT, [])],
                  [sequence("s"), tensor("a", FLOAT, None)])
    x = np.arange(30, dtype=np.float32).reshape(3, 10)
    for sizes in ([3, 3, 4], [10], [0, 9, 1]):
        check(proto, {"x": x, "n": np.array(sizes), "i": np.array(-1)})
    with pytest.raises(errors.InvalidError, match="come to 9 of 10"):
        heddle.load(proto, devices="cpu").run(None, {"x": x, "n": np.array([4, 5]), "i": np.array(0)})
    one = model(nodes, [tensor("x", FLOAT, [None, None]), tensor("n", INT, []), tensor("i", INT, [])],
                [sequence("s"), tensor("a", FLOAT, None)])
    for size in (1, 3, 10, 11):
        check(one, {"x": x, "n": np.array(size), "i": np.array(0)})


def test_a_loop_that_grows_a_sequence():
    """A state that is a sequence, one that is captured, and texts in the graph of a node."""
    body = helper.make_graph(
        [node("SequenceAt", "given i", "part"), node("Mul", "part part", "square"), node("SequenceInsert", "s square", "t"),
         node("Identity", "going", "goes_on"), node("StringConcat", "word tail", "longer")],
        "body", [tensor("i", INT, []), tensor("going", BOOL, []), sequence("s"), tensor("word", TEXT, ["n"])],
        [tensor("goes_on", BOOL, []), sequence("t"), tensor("longer", TEXT, ["n"])],
        [helper.make_tensor("tail", TEXT, [], ["-é"])])
    nodes = [node("SequenceEmpty", "", "none"), node("SequenceLength", "given", "n"),
             helper.make_node("Loop", ["n", "", "none", "words"], ["all", "out"], body=body)]
    proto = model(nodes, [sequence("given"), tensor("words", TEXT, ["n"])], [sequence("all"), tensor("out", TEXT, ["n"])])
    loaded = check(proto, {"given": PARTS, "words": np.array(["a", "", "ü"], object)})
    compare(loaded.run(None, {"given": PARTS[:1], "words": np.array(["x"])}), [[PARTS[0] ** 2], np.array(["x-é"], object)])


def test_sequence_map():
    body = helper.make_graph([node("Add", "a x", "y"), node("Shape", "a", "z")], "body", [tensor("a"), tensor("x")],
                             [tensor("y"), tensor("z", INT)])
    nodes = [helper.make_node("SequenceMap", ["s", "x"], ["t", "u"], body=body)]
    proto = model(nodes, [sequence("s"), tensor("x", FLOAT, [3])], [sequence("t"), sequence("u", INT)])
    check(proto, {"s": PARTS, "x": np.float32([1, 2, 3])}, peer=False)
    inner = model([node("SplitToSequence", "w", "s", axis=0)] + nodes, [tensor("w", FLOAT, [4, 3]), tensor("x", FLOAT, [3])],
                  [sequence("t"), sequence("u", INT)])
    check(inner, {"w": np.ones((4, 3), np.float32), "x": np.float32([1, 2, 3])}, peer=False)


def test_optionals():
    then = helper.make_graph([node("OptionalGetElement", "o", "v")], "then", [], [tensor("v")])
    other = helper.make_graph([node("Neg", "x", "w")], "else", [], [tensor("w")])
    nodes = [node("OptionalHasElement", "o", "h"), helper.make_node("If", ["h"], ["y"], then_branch=then, else_branch=other)]
    proto = model(nodes, [optional("o"), tensor("x", FLOAT, [2])], [tensor("h", BOOL, []), tensor("y", FLOAT, None)])
    loaded = heddle.load(proto, devices="cpu")
    assert [info.dtype for info in loaded.inputs] == ["optional(tensor)", "float32"]
    x = np.float32([1, 2])
    compare(loaded.run(None, {"o": x * 3, "x": x}), [np.array(True), x * 3])
    compare(loaded.run(None, {"o": None, "x": x}), [np.array(False), -x])
    with pytest.raises(errors.InvalidError, match="no optional"):
        loaded.run(None, {"o": None, "x": None})


WORDS = np.array([["", "a b  c", " Zürich\tÄ "], ["x,y,,z", "İstanbul STRASSE", "a,b"]], object)


def test_texts():
    nodes = [node("StringConcat", "x tail", "a"), node("StringSplit", "x", "b n"), node("StringSplit", "x", "c m", delimiter=","),
             node("StringSplit", "x", "d k", maxsplit=1), node("StringSplit", "x", "e l", delimiter=",", maxsplit=1)]
    outputs = [tensor("a", TEXT, None)]
    for name, count in ("bn", "cm", "dk", "el"):
        outputs += [tensor(name, TEXT, None), tensor(count, INT, None)]
    proto = model(nodes, [tensor("x", TEXT, ["r", "c"]), tensor("tail", TEXT, ["t"])], outputs)
    check(proto, {"x": WORDS, "tail": np.array(["!"], object)}, peer=False)
    check(proto, {"x": WORDS[:, 1:], "tail": np.array(["!", "ß"], object)}, peer=False)
    many = heddle.load(proto, devices="cpu")
    for i in range(50):  # texts of runs before go
        assert many.run(["a"], {"x": np.array([[str(i)]]), "tail": np.array(["x" * 1000])})[0][0, 0] == str(i) + "x" * 1000


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalizer(action, sensitive):
    proto = model([node("StringNormalizer", "x", "y", case_change_action=action, is_case_sensitive=sensitive, stopwords=["monday"])],
                  [tensor("x", TEXT, None)], [tensor("y", TEXT, None)])
    proto.graph.input[0].CopyFrom(tensor("x", TEXT, ["n"]))
    loaded = heddle.load(proto, devices="cpu")
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    kept = ["Monday", "Grün", "B"] if sensitive else ["Grün", "B"]
    assert loaded.run(None, {"x": np.array(["Monday", "monday", "Grün", "B"])})[0].tolist() == [change(word) for word in kept]
    assert loaded.run(None, {"x": np.array(["monday"])})[0].tolist() == [""]


PATTERNS = [r"www.[\w.-]+\.\bcom\b", r"(a|b)*c+?", r"[^\s,]{2,3}", r"\d{3}-\d{2}x?", r"(?i)straße|ABC", r"", r"a|", r"[[:alpha:]]+\W",
            r".*\x41\x{e9}", r"^(?:ab)+$", r"(?P<n>x)(y)?", r"[\]\-a]+", r"\Qa.b\E", r"(?s).+", r".+", r"(a*)*b", r"a{0}b{2,}"]
TEXTS = ["www.a-b.com", "aabac", "ac", "ab", "a,b", "123-45", "123-45x", "abc", "STRAßE", "", "a", "b!", "zAé", "abab", "x", "xy", "]-a",
         "a.b", "a\nb", "é", "bb", "b" * 40 + "!", "a" * 40]


def test_patterns():
    for pattern in PATTERNS:
        proto = model([node("RegexFullMatch", "x", "y", pattern=pattern)], [tensor("x", TEXT, ["n"])], [tensor("y", BOOL, ["n"])])
        check(proto, {"x": np.array(TEXTS, object)})
    slow = model([node("RegexFullMatch", "x", "y", pattern="(a*)*b" * 20)], [tensor("x", TEXT, ["n"])], [tensor("y", BOOL, ["n"])])
    check(slow, {"x": np.array(["a" * 5000], object)})
    for pattern, words in ((r"(a", "'\\)' is missing"), (r"a)", "without"), (r"*a", "nothing before"), (r"(a)\1", "back-reference"),
                           (r"[z-a]", "range"), (r"a{1001}", "1000"), (r"[a", "']' is missing"), (r"(?=a)", "group"), ("\\", "at the end"),
                           ("((a{1000}){1000})", "too long")):
        proto = model([node("RegexFullMatch", "x", "y", pattern=pattern)], [tensor("x", TEXT, ["n"])], [tensor("y", BOOL, ["n"])])
        with pytest.raises(errors.UnsupportedError, match=words):
            heddle.load(proto, devices="cpu")


NUMBERS = {TensorProto.FLOAT: np.float32([0.1, -2.5e-8, 1e20, np.inf, -np.inf, np.nan, 3]), TensorProto.DOUBLE: np.float64([0.1, 1 / 3, 1e300]),
           TensorProto.INT64: np.int64([0, -2**63, 2**63 - 1]), TensorProto.UINT8: np.uint8([0, 255]), TensorProto.INT16: np.int16([-32768]),
           TensorProto.FLOAT16: np.float16([0.1, 65504]), TensorProto.UINT64: np.uint64([2**64 - 1])}


def test_casts():
    for kind, numbers in NUMBERS.items():
        there = model([node("Cast", "x", "y", to=TEXT)], [tensor("x", kind, ["n"])], [tensor("y", TEXT, ["n"])])
        check(there, {"x": numbers})
        texts = heddle.load(there, devices="cpu").run(None, {"x": numbers})[0]
        back = heddle.load(model([node("Cast", "x", "y", to=kind)], [tensor("x", TEXT, ["n"])], [tensor("y", kind, ["n"])]), devices="cpu")
        np.testing.assert_allclose(back.run(None, {"x": texts})[0].astype(np.float64), numbers.astype(np.float64), rtol=1e-3 if kind == TensorProto.FLOAT16 else 1e-7)
    to_int = heddle.load(model([node("Cast", "x", "y", to=INT)], [tensor("x", TEXT, ["n"])], [tensor("y", INT, ["n"])]), devices="cpu")
    assert to_int.run(None, {"x": np.array(["1e3", " 7", "-2.9"])})[0].tolist() == [1000, 7, -2]
    for text in ("", "abc", "1x", "9223372036854775808", "1e19"):
        with pytest.raises(errors.InvalidError, match="is no number of its type"):
            to_int.run(None, {"x": np.array([text])})


def test_threads():
    proto = model([node("StringConcat", "x x", "y")], [tensor("x", TEXT, ["n"])], [tensor("y", TEXT, ["n"])])
    loaded, wrong = heddle.load(proto, devices="cpu"), []

    def work(k):
        for i in range(30):
            word = f"{k}.{i}"
            if loaded.run(None, {"x": np.array([word])})[0].tolist() != [word * 2]:
                wrong.append(word)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_executor_of_ones_own():
    proto = model([node("StringConcat", "x x", "y")], [tensor("x", TEXT, ["n"])], [tensor("y", TEXT, ["n"])])
    executor = heddle.load(proto, devices="cpu").executor()
    executor.set_input("x", np.array(executor.text_codes(["a", "b", "a"])))
    executor.run()
    codes = executor.get_output(0).numpy().tolist()
    assert executor.texts(codes) == ["aa", "bb", "aa"]
    executor.set_input("x", np.array([12345]))
    with pytest.raises(errors.InvalidError, match="12345 is the number of no text"):
        executor.run()
    with pytest.raises(errors.InvalidError, match=re.escape("-1")):
        executor.texts([-1])
    plain = heddle.load(model([node("Neg", "x", "y")], [tensor("x", FLOAT, [1])], [tensor("y", FLOAT, [1])])).executor()
    with pytest.raises(errors.UnsupportedError, match="no texts or sequences"):
        plain.text_codes(["a"])
