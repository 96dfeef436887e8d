"""Small ONNX models, of one kind of result each: known shapes, open ones, shapes that only a run gives, graphs within
nodes, declarations that are wrong. MODELS: name to a function that gives bytes."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, D, H, B = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL
I8, U8, I32, I64 = TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), [one if one != "-" else "" for one in outputs.split()], **attributes)


def constants(values):
    return [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]


def graph(nodes, inputs, outputs, values=None, name="g"):
    """inputs and outputs: (name, type, shape)."""
    return helper.make_graph(nodes, name, [info(*one) for one in inputs], [info(*one) for one in outputs],
                             constants(values or {}))


def model(*args, opset=18, **named):
    return helper.make_model(graph(*args, **named), opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=8).SerializeToString()


def i64(*values):
    return np.array(values, np.int64)


def f32(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def nonzero():
    return model([node("Relu", "x", "r"), node("NonZero", "r", "y"), node("Cast", "y", "z", to=F)], [("x", F, [3, 4])],
                 [("y", I64, [2, "n"]), ("z", F, [2, "n"])])


def unique():
    return model([node("Unique", "x", "y - at counts", sorted=1)], [("x", I64, ["n"])],
                 [("y", I64, ["k"]), ("at", I64, ["n"]), ("counts", I64, None)])


def compress(declared=(F, ["k"])):
    return model([node("Abs", "x", "a"), node("Cast", "x", "b", to=B), node("Compress", "a b", "c", axis=0),
                  node("Neg", "c", "y")], [("x", F, [6])], [("y", *declared)])


def wrong_dtype():
    return model([node("Abs", "x", "a"), node("NonZero", "a", "y")], [("x", F, [16])], [("y", B, None)])


def wider_dtype():
    return compress((D, None))


def wrong_rank():
    return compress((F, [2, 3]))


def wrong_dimension():
    return compress((F, [4]))


def branches():
    yes = graph([node("Add", "x one", "t")], [], [("t", F, ["n", 2])], {"one": f32(1)}, "yes")
    no = graph([node("Concat", "x x", "e", axis=0)], [], [("e", F, ["m", 2])], name="no")
    return model([node("If", "c", "y", then_branch=yes, else_branch=no), node("Mul", "y y", "z")],
                 [("c", B, []), ("x", F, ["n", 2])], [("y", F, ["k", 2]), ("z", F, None)])


def loop():
    body = graph([node("Identity", "c", "d"), node("Add", "s x", "s2"), node("Mul", "s2 s2", "v")],
                 [("i", I64, []), ("c", B, []), ("s", F, [3])], [("d", B, []), ("s2", F, [3]), ("v", F, [3])], name="body")
    return model([node("Loop", "m c0 s0", "s9 all", body=body)], [("m", I64, []), ("x", F, [3]), ("s0", F, [3])],
                 [("s9", F, [3]), ("all", F, ["k", 3])], {"c0": np.array(True)})


def growing_loop():
    """A state that grows, and an If inside."""
    yes = graph([node("Concat", "s x", "t", axis=0)], [], [("t", F, None)], name="yes")
    no = graph([node("Identity", "s", "e")], [], [("e", F, None)], name="no")
    body = graph([node("Less", "i two", "small"), node("If", "small", "s2", then_branch=yes, else_branch=no),
                  node("Identity", "c", "d"), node("ReduceSum", "s2", "v", keepdims=0)],
                 [("i", I64, []), ("c", B, []), ("s", F, None)], [("d", B, []), ("s2", F, None), ("v", F, [])], name="body")
    return model([node("Loop", "m - x".replace("-", "c0"), "y sums", body=body)], [("m", I64, []), ("x", F, ["n"])],
                 [("y", F, ["k"]), ("sums", F, ["m"])], {"two": np.int64(2), "c0": np.array(True)})


def scan():
    body = graph([node("Add", "s e", "s2"), node("Neg", "s2", "v")], [("s", F, [2]), ("e", F, [2])],
                 [("s2", F, [2]), ("v", F, [2])], name="body")
    return model([node("Scan", "s0 x", "s9 y", num_scan_inputs=1, scan_output_axes=[1], body=body)],
                 [("s0", F, [2]), ("x", F, ["n", 2])], [("s9", F, [2]), ("y", F, [2, "n"])])


def perceptron():
    return model([node("Gemm", "x w b", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "s"),
                  node("Softmax", "s", "y", axis=-1)], [("x", F, ["n", 4])], [("y", F, ["n", 3]), ("s", F, ["n", 3])],
                 {"w": f32(4, 5), "b": f32(5), "v": f32(5, 3)})


def window():
    return model([node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c s b m v", "n"),
                  node("MaxPool", "n", "p -", kernel_shape=[2, 2], strides=[2, 2]),
                  node("GlobalAveragePool", "p", "a"), node("Flatten", "a", "y")], [("x", F, [1, 2, 6, 6])],
                 [("p", F, [1, 3, 3, 3]), ("y", F, [1, 3])],
                 {"w": f32(3, 2, 3, 3), "b": f32(3), "s": f32(3), "m": f32(3), "v": np.ones(3, np.float32)})


def quantised():
    scale = {"sx": np.float32(0.1), "zx": np.uint8(128), "sw": np.float32(0.05), "zw": np.int8(0), "sy": np.float32(0.2)}
    return model([node("QuantizeLinear", "x sx zx", "q"), node("QLinearConv", "q sx zx w sw zw sy zx", "c"),
                  node("DequantizeLinear", "c sy zx", "y"), node("DynamicQuantizeLinear", "y", "z zs zz")],
                 [("x", F, [1, 1, 4, 4])], [("y", F, [1, 2, 3, 3]), ("z", U8, [1, 2, 3, 3]), ("zs", F, []), ("q", U8, None)],
                 {**scale, "w": np.arange(-4, 4, dtype=np.int8).reshape(2, 1, 2, 2)})


def integers():
    return model([node("MatMulInteger", "a b", "c"), node("Cast", "c", "d", to=I8), node("Add", "d d", "e"),
                  node("BitShift", "u u", "v", direction="LEFT")], [("a", U8, [2, 3]), ("b", I8, [3, 2]), ("u", U8, ["n"])],
                 [("c", I32, [2, 2]), ("e", I8, [2, 2]), ("v", U8, ["n"])])


def resize():
    return model([node("Resize", "x - scales".replace("-", "roi"), "y", mode="linear")], [("x", F, [1, 1, 3, 3]), ("scales", F, [4])],
                 [("y", F, [1, 1, "h", "w"])], {"roi": np.zeros(0, np.float32)})


def split():
    return model([node("Split", "x sizes", "a - c", axis=0), node("Split", "x", "d e", axis=1, num_outputs=2)],
                 [("x", F, [6, 6])], [("a", F, [1, 6]), ("c", F, [3, 6]), ("d", F, [6, 3]), ("e", F, None)],
                 {"sizes": i64(1, 2, 3)})


def absent():
    """The last output of an operator, and one between, that are not used."""
    return model([node("Split", "x", "d e -", axis=1, num_outputs=3), node("TopK", "x k", "- i")], [("x", F, [6, 6])],
                 [("d", F, [6, 2]), ("e", F, None), ("i", I64, None)], {"k": i64(2)})


def reshape():
    return model([node("Reshape", "x to", "y"), node("Shape", "y", "s"), node("Transpose", "y", "t")],
                 [("x", F, [12]), ("to", I64, [2])], [("y", F, ["a", "b"]), ("s", I64, [2]), ("t", F, ["b", "a"])])


def top_k():
    return model([node("TopK", "x k", "v i", axis=-1), node("ArgMax", "x", "m", axis=1, keepdims=0)],
                 [("x", F, [3, 5]), ("k", I64, [1])], [("v", F, [3, "k"]), ("i", I64, [3, "k"]), ("m", I64, [3])])


def slices():
    return model([node("Slice", "x from to axes steps", "y"), node("Pad", "y pads", "z"), node("Tile", "z times", "t"),
                  node("Expand", "y wide", "w")],
                 [("x", F, [5, 4]), ("from", I64, [1]), ("to", I64, [1]), ("times", I64, [2]), ("wide", I64, [3])],
                 [("y", F, ["n", 4]), ("z", F, None), ("t", F, ["p", "q"]), ("w", F, None)],
                 {"axes": i64(0), "steps": i64(2), "pads": i64(1, 0, 0, 1)})


def gather():
    return model([node("Gather", "x i", "a", axis=0), node("GatherElements", "x e", "b", axis=1),
                  node("ScatterND", "x at v", "c"), node("GatherND", "x at", "d"), node("OneHot", "i depth pair", "o")],
                 [("x", F, [3, 4]), ("i", I64, ["n"]), ("e", I64, [3, 2]), ("at", I64, [2, 1]), ("v", F, [2, 4])],
                 [("a", F, ["n", 4]), ("b", F, [3, 2]), ("c", F, [3, 4]), ("d", F, [2, 4]), ("o", F, ["n", 3])],
                 {"depth": np.int64(3), "pair": f32(2)})


def made_up():
    return model([node("ConstantOfShape", "s", "y", value=helper.make_tensor("v", I32, [1], [7])),
                  node("Range", "a b c", "r"), node("EyeLike", "e", "q", dtype=D)],
                 [("s", I64, [2]), ("a", I64, []), ("b", I64, []), ("c", I64, []), ("e", F, [2, 3])],
                 [("y", I32, ["p", "q"]), ("r", I64, ["n"]), ("q", D, [2, 3])])


def boxes():
    return model([node("NonMaxSuppression", "boxes scores most overlap", "y"), node("Shape", "y", "s")],
                 [("boxes", F, [1, 4, 4]), ("scores", F, [1, 1, 4])], [("y", I64, ["n", 3]), ("s", I64, [2])],
                 {"most": i64(3), "overlap": np.array([0.5], np.float32)})


def ends():
    """Outputs that are inputs, constants, and one value twice; half and bool."""
    return model([node("Identity", "x", "y"), node("Cast", "x", "h", to=H), node("IsNaN", "h", "n"), node("Not", "n", "m")],
                 [("x", F, ["n", 2])], [("x", F, ["n", 2]), ("k", I64, [2]), ("y", F, ["n", 2]), ("h", H, ["n", 2]),
                                        ("m", B, ["n", 2])], {"k": i64(4, 5)})


def normal():
    return model([node("LayerNormalization", "x s b", "y", axis=-1), node("Erf", "y", "e"), node("Where", "c y e", "w"),
                  node("ReduceMean", "w axes", "r", keepdims=0), node("CumSum", "w zero", "u")],
                 [("x", F, ["n", 4]), ("c", B, ["n", 1])], [("w", F, ["n", 4]), ("r", F, ["n"]), ("u", F, None)],
                 {"s": f32(4), "b": f32(4), "axes": i64(1), "zero": np.int64(0)})


MODELS = {one.__name__: one for one in (
    nonzero, unique, compress, wrong_dtype, wider_dtype, wrong_rank, wrong_dimension, branches, loop, growing_loop, scan,
    perceptron, window, quantised, integers, resize, split, absent, reshape, top_k, slices, gather, made_up, boxes, ends, normal)}


def write(folder):
    """All of them as files; tests/fuzz/data/model are these."""
    for name, make in MODELS.items():
        (folder / f"{name}.onnx").write_bytes(make())
