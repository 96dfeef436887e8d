"""Small files in forms that writers choose differently, against ONNX Runtime: what it reads is read, and gives the same.
timeout: 300
"""
import json

import numpy as np
import onnx
import onnx_files as files
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from tool_case import failing, good
from tool_case import heddle as tool

F = np.float32
X = np.linspace(-1, 1, 6, dtype=F).reshape(2, 3)
W = numpy_helper.from_array(np.arange(3, dtype=F), "w")
ONES = numpy_helper.from_array(np.ones(3, F), "w")
ADD = helper.make_node("Add", ["x", "w"], ["y"])
NEG, RELU = helper.make_node("Neg", ["t"], ["y"]), helper.make_node("Relu", ["x"], ["t"])
LONG = "v" * 50000


def info(name, shape=(2, 3)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def bare(name):
    return ValueInfoProto(name=name)


def model(nodes, inputs=None, outputs=None, tensors=(), imports=(("", 17),), functions=(), ir=8, infos=()):
    graph = helper.make_graph(nodes, "g", [info("x")] if inputs is None else inputs, outputs or [info("y")], list(tensors),
                              value_info=list(infos))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*i) for i in imports], functions=list(functions),
                             ir_version=ir)


def twice(opset=17):
    return helper.make_function("mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                [helper.make_opsetid("", opset)])


def choice(tensors):
    then = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["r"])], "then", [], [info("r")], tensors)
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["r"])], "other", [], [bare("r")])
    return helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)


CALL = helper.make_node("Twice", ["x"], ["y"], domain="mine")
FORMS = {
    "an initialiser is an input": model([ADD], [info("x"), info("w", (3,))], tensors=[W]),
    "an initialiser is an unused input": model([NEG, RELU], [info("x"), info("w", (3,))], tensors=[W]),
    "an initialiser comes again": model([ADD], tensors=[W, W]),
    "an initialiser comes with other numbers": model([ADD], tensors=[W, ONES]),
    "an unused initialiser comes again": model([NEG, RELU], tensors=[W, ONES]),
    "an output of no type": model([ADD], outputs=[bare("y")], tensors=[W]),
    "all outputs of no type": model([RELU, NEG], [info("x")], [bare("y"), bare("t"), bare("x"), bare("w")], [W]),
    "an output of no shape": model([ADD], outputs=[info("y", None)], tensors=[W]),
    "outputs that nothing computes": model([], outputs=[info("x"), info("w", (3,)), info("x")], tensors=[W]),
    "an output twice": model([ADD], outputs=[info("y"), info("y")], tensors=[W]),
    "no inputs": model([helper.make_node("Neg", ["w"], ["y"])], [], [info("y", (3,))], [W]),
    "an empty optional output": model([helper.make_node("Dropout", ["x"], ["y", ""])]),
    "empty inputs": model([helper.make_node("Clip", ["x", "", "w"], ["t"]), NEG], tensors=[numpy_helper.from_array(F(0.5), "w")]),
    "names with spaces": model([helper.make_node("Relu", ["in put/0:1"], ["t = a"], name="a node"),
                                helper.make_node("Neg", ["t = a"], ["out put"])], [info("in put/0:1")], [info("out put")]),
    "long names": model([helper.make_node("Relu", ["x"], [LONG], name="n" + LONG), helper.make_node("Neg", [LONG], ["y"])]),
    "values described that are not there": model([ADD], tensors=[W], infos=[info("nothing"), info("y"), info("x")]),
    "a function's opset only": model([CALL], imports=[("mine", 1)], functions=[twice()]),
    "a function of an earlier opset": model([CALL], imports=[("mine", 1), ("", 18)], functions=[twice(13)]),
    "a function of a later opset": model([CALL], imports=[("mine", 1), ("", 13)], functions=[twice(19)]),
}
FORMS |= {f"format {ir}": model([ADD], [info("x"), info("w", (3,))], tensors=[W], imports=[("", 8)], ir=ir) for ir in (1, 2, 3, 4, 7, 9, 11, 12)}


def cut(kind, numbers):
    """Numbers that do not fit the tensor's type."""
    proto = onnx.TensorProto(name="w", data_type=kind, dims=[3])
    (proto.uint64_data if kind == TensorProto.UINT32 else proto.int32_data).extend(numbers)
    return model([helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("Add", ["x", "f"], ["y"])], tensors=[proto])


SOFTMAX = helper.make_node("Softmax", ["x"], ["y"], axis=0)  # another one from opset 13 on
WARNED = {  # files that are wrong: what is said of them
    "a dimension of an output": (model([RELU, NEG], outputs=[info("y", (2, 4))]), "'y' is declared float32 [2, 4], and is float32 [2, 3]"),
    "an output's rank": (model([RELU, NEG], outputs=[info("y", ())]), "'y' is declared float32 [], and is float32 [2, 3]"),
    "an open output's rank": (model([RELU, NEG], [info("x", ("a", "b"))], [info("y", ("a",))]), "'y' is declared float32 [a], and is float32 [2, 3]"),
    "an output that is an input": (model([RELU], outputs=[info("t"), info("x", (3, 2))]), "'x' is declared with two shapes"),
    "two opsets": (model([SOFTMAX], imports=[("", 11), ("", 17)]), "opset 11 and of opset 17, and read as the latter"),
    "two opsets, the earlier last": (model([SOFTMAX], imports=[("", 17), ("ai.onnx", 11)]), "opset 17 and of opset 11"),
    "uint8": (cut(TensorProto.UINT8, [300, -1, 255]), "tensor 'w': 2 numbers of int32_data do not fit"),
    "int8": (cut(TensorProto.INT8, [200, -1, -129]), "tensor 'w': 2 numbers"),
    "uint16": (cut(TensorProto.UINT16, [65536, -1, 1]), "tensor 'w': 2 numbers"),
    "int16": (cut(TensorProto.INT16, [65535, -32769, 1]), "tensor 'w': 2 numbers"),
    "uint32": (cut(TensorProto.UINT32, [2 ** 32, 2 ** 33 + 5, 1]), "tensor 'w': 2 numbers of uint64_data"),
    "bool": (cut(TensorProto.BOOL, [2, 0, 1]), "tensor 'w': 1 numbers of int32_data do not fit its type, and are taken as true"),
}
NO_RANK = {
    "elementwise": ([RELU, NEG], ()), "product": ([helper.make_node("MatMul", ["x", "w"], ["y"])], [numpy_helper.from_array(np.eye(3, 5, dtype=F), "w")]),
    "sum": ([helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0), NEG], ()), "softmax": ([SOFTMAX], ()),
    "shape": ([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Expand", ["w", "s"], ["y"])], [numpy_helper.from_array(F(2), "w")]),
}


@pytest.mark.parametrize("name", WARNED)
def test_wrong_files_that_are_read(tmp_path, name):
    proto, words = WARNED[name]
    path = files.save(tmp_path, proto)
    seen = tool("run", path, "--device", "cpu", *files.words_for(tmp_path, {"x": X}), "--output-dir", tmp_path)
    assert seen.status == 0 and seen.err.count("warning") == 1 and words in seen.err, seen
    files.same(files.outputs_of(tmp_path), files.expected(proto, {"x": X}))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", NO_RANK)
def test_inputs_without_a_rank(tmp_path, name, opset):
    nodes, tensors = NO_RANK[name]
    proto = model(nodes, [info("x", None)], [info("y", None)], tensors, imports=[("", opset)])
    for given in ({"x": X}, {"x": np.linspace(-2, 2, 12, dtype=F).reshape(2, 2, 3)}):
        files.same(files.run(files.save(tmp_path, proto), given), files.expected(proto, given))


@pytest.mark.parametrize("name", FORMS)
def test_forms(tmp_path, name):
    proto = FORMS[name]
    given = {v.name: X for v in proto.graph.input if v.name != "w"}
    files.same(files.run(files.save(tmp_path, proto), given), files.expected(proto, given))


def test_functions_of_other_opsets_keep_their_meaning(tmp_path):
    """An attribute that became an input, and one that went: ONNX Runtime reads them by the model's opset, ONNX by their own."""
    body = [helper.make_node("ReduceMean", ["a"], ["m"], axes=[1], keepdims=1), helper.make_node("Sub", ["a", "m"], ["d"]),
            helper.make_node("Split", ["d"], ["p", "q"], axis=0), helper.make_node("Concat", ["q", "p"], ["b"], axis=0)]
    old = helper.make_function("mine", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 13)])
    want = [np.roll(X - X.mean(1, keepdims=True), 1, 0)]
    for imports in ([("mine", 1)], [("mine", 1), ("", 18)], [("mine", 1), ("", 21)]):
        files.same(files.run(files.save(tmp_path, model([CALL], imports=imports, functions=[old])), {"x": X}), want)
    # The model's own nodes keep theirs beside a function of a later opset.
    new = twice(18)
    new.node[0].CopyFrom(helper.make_node("ReduceMax", ["a", "k"], ["b"]))
    new.node.insert(0, helper.make_node("Constant", [], ["k"], value_ints=[0]))
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="mine"), helper.make_node("ReduceMin", ["t"], ["y"], axes=[1])]
    proto = model(nodes, imports=[("mine", 1), ("", 13)], functions=[new], outputs=[info("y", None)])
    files.same(files.run(files.save(tmp_path, proto), {"x": X}), [X.max(0, keepdims=True).min(1, keepdims=True)])


def test_an_initialiser_of_a_branch_comes_again(tmp_path):
    """The last one counts there too."""
    ks = [numpy_helper.from_array(np.full(3, n, F), "k") for n in (3, 2)]
    proto = model([choice(ks)], tensors=[numpy_helper.from_array(np.array(True), "c")])
    files.same(files.run(files.save(tmp_path, proto), {"x": X}), [X * 2])


def test_one_name_for_two_tensors_is_refused(tmp_path):
    """Of another type or shape: nothing says which one is meant."""
    for other in (np.ones((1, 3), F), np.ones(3, np.float64), F(1)):
        proto = model([ADD], tensors=[W, numpy_helper.from_array(np.asarray(other), "w")])
        assert "'w' has the name of another value" in failing(1, "info", files.save(tmp_path, proto))


def test_texts_of_no_declared_type(tmp_path):
    """An output that is a text is one without a declaration."""
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"ab", b"c"])
    proto = model([helper.make_node("Identity", ["words"], ["y"])], [], [bare("y")], [words])
    typed = model([helper.make_node("Identity", ["words"], ["y"])], [],
                  [helper.make_tensor_value_info("y", TensorProto.STRING, None)], [words])
    assert list(files.expected(proto, {})[0]) == ["ab", "c"]
    seen = []
    for p in (proto, typed):
        good("convert", files.save(tmp_path, p), "-o", tmp_path / "made.json")
        seen.append(json.loads((tmp_path / "made.json").read_text())["heddle"])
    assert "ab" in str(seen[0]) and seen[0] == seen[1], seen


@pytest.mark.parametrize("more, size", [({"length": 12}, 12), ({}, 12), ({"length": 0}, 20), ({"offset": 64, "length": 12}, 80),
                                        ({"offset": 65}, 80), ({"offset": 64, "length": 12, "checksum": "0"}, 80)])
def test_where_weights_lie(tmp_path, more, size):
    """An offset, a length and neither; a length of 0 is none."""
    at = more.get("offset", 0)
    numbers = np.arange(3, dtype=F).tobytes()
    (tmp_path / "w.bin").write_bytes((bytes(at) + numbers).ljust(size, b"\0"))
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    files.same(files.run(files.save(tmp_path, model([ADD], tensors=[tensor])), {"x": X}), [X + np.arange(3, dtype=F)])


BODY = helper.make_graph([helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Add", ["s", "s"], ["s2"]),
                          helper.make_node("ArgMax", ["s"], ["most"])], "body",
                         [bare("i"), bare("go"), bare("s")], [bare("more"), bare("s2"), bare("most")])
SCANNED = helper.make_graph([helper.make_node("Add", ["s", "e"], ["s2"]), helper.make_node("Cast", ["e"], ["whole"], to=TensorProto.INT8)],
                            "body", [bare("s"), bare("e")], [bare("s2"), bare("whole")])
OPEN_NODES = [helper.make_node("Relu", ["x"], ["relu"]), helper.make_node("Greater", ["x", "relu"], ["more"]),
              helper.make_node("TopK", ["x", "one"], ["values", "places"]), helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
              helper.make_node("Where", ["more", "places", "places"], ["where"]), helper.make_node("Shape", ["half"], ["shape"]),
              helper.make_node("If", ["flag"], ["chosen"],
                               then_branch=helper.make_graph([helper.make_node("Neg", ["half"], ["r"])], "t", [], [bare("r")]),
                               else_branch=helper.make_graph([helper.make_node("Abs", ["half"], ["r"])], "e", [], [bare("r")])),
              helper.make_node("Loop", ["", "flag", "x"], ["state", "mosts"], body=BODY),
              helper.make_node("Scan", ["row", "x"], ["sum", "wholes"], body=SCANNED, num_scan_inputs=1),
              helper.make_node("LayerNormalization", ["x", "w"], ["normal", "mean", "deviation"])]
OPEN_OUTPUTS = ["relu", "more", "values", "places", "half", "where", "shape", "chosen", "state", "mosts", "sum", "wholes", "normal",
                "mean", "deviation"]


@pytest.mark.parametrize("rows", [2, "rows"])
def test_outputs_of_no_declared_type_have_the_inferred_one(tmp_path, rows):
    """By ONNX's own inference; shapes too, where all is known."""
    proto = model(OPEN_NODES, [info("x", (rows, 3)), info("row", (3,)), helper.make_tensor_value_info("flag", TensorProto.BOOL, [])],
                  [bare(name) for name in OPEN_OUTPUTS], [ONES, numpy_helper.from_array(np.array([1]), "one")])
    seen = json.loads(good("info", files.save(tmp_path, proto), "--json"))["outputs"]
    known = {v.name: v.type.tensor_type for v in onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.output}
    for one in seen:
        want = known[one["name"]]
        assert one["dtype"] == helper.tensor_dtype_to_np_dtype(want.elem_type).name, one
        if rows == 2 and one["name"] in ("relu", "more", "half", "shape", "normal", "mean", "deviation"):  # no value decides
            assert one["shape"] == [d.dim_value for d in want.shape.dim], one
    assert len(seen) == len(OPEN_OUTPUTS)
