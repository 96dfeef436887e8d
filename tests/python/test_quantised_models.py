"""The form with QuantizeLinear and DequantizeLinear, which exporters write, made operators of bytes: each pattern and small
networks that ONNX Runtime quantised, against ONNX Runtime, with the optimisation and without. Outputs are those of
ONNX Runtime where it computes in bytes too, and else a quantum apart at most.

labels: slow
timeout: 600
"""
import json

import numpy as np
import onnx
import onnx_files as files
import onnxruntime
import pytest
import tool_case
from onnx import helper

QUANTUM = {"x": 0.02, "w": 0.01, "y": 0.05}


class Pattern:
    """An operator between DequantizeLinear and QuantizeLinear."""

    def __init__(self, seed, x_type=np.uint8, y_type=np.uint8, x_zero=3, y_zero=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.tensors, self.y_type = [], {}, y_type
        self.tensors.update(xs=np.float32(QUANTUM["x"]), xz=x_type(x_zero), ys=np.float32(QUANTUM["y"]),
                            yz=y_type(y_zero))
        self.x_type = x_type

    def node(self, op, *inputs, name=None, **attrs):
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{name}_node", **attrs))
        return name

    def input(self, *shape):
        limits = np.iinfo(self.x_type)
        self.feed = {"x": self.rng.integers(limits.min, limits.max, shape, self.x_type, endpoint=True)}
        return self.node("DequantizeLinear", "x", "xs", "xz")

    def weights(self, *shape, axis=None, dtype=np.int8):
        limits = np.iinfo(dtype)
        self.tensors["w"] = self.rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        if axis is None:
            scale, zero = np.float32(QUANTUM["w"]), dtype(0)
        else:
            scale = self.rng.uniform(0.001, QUANTUM["w"], shape[axis]).astype(np.float32)
            zero = np.zeros(shape[axis], dtype)
        self.tensors.update(ws=scale, wz=zero)
        return self.node("DequantizeLinear", "w", "ws", "wz", **({} if axis is None else {"axis": axis}))

    def bias(self, n, real=False):
        if real:
            self.tensors["b"] = self.rng.uniform(-1, 1, n).astype(np.float32)
            return "b"
        step = (np.float32(QUANTUM["x"]) * self.tensors["ws"]).astype(np.float32)
        self.tensors.update(b=self.rng.integers(-3000, 3000, n).astype(np.int32), bs=step,
                            bz=np.zeros(np.shape(step), np.int32))
        return self.node("DequantizeLinear", "b", "bs", "bz", **({"axis": 0} if np.ndim(step) else {}))

    def model(self, y):
        y = self.node("QuantizeLinear", y, "ys", "yz", name="y")
        return files.model(self.nodes, self.feed, {y: (self.y_type, None)}, self.tensors, opset=17)


def conv(act=None, **more):
    p = Pattern(1, **{k: v for k, v in more.items() if k in ("x_type", "y_type", "x_zero", "y_zero")})
    x = p.input(2, 8, 13, 11)
    w = p.weights(24, 8, 3, 3, axis=0 if more.get("channels", True) else None)
    bias = [p.bias(24, more["real"])] if "real" in more else []
    y = p.node("Conv", x, w, *bias, pads=[1, 1, 0, 1], strides=[2, 1])
    if act == "Clip":
        p.tensors.update(low=np.float32(0), high=np.float32(more["high"]))
        y = p.node("Clip", y, "low", "high")
    elif act:
        y = p.node(act, y)
    return p.model(y), p.feed


def product(op, rows=5, **attrs):
    p = Pattern(2, x_type=np.int8, y_type=np.int8, x_zero=-4, y_zero=5)
    x = p.input(*([2] if op == "MatMul" else []), rows, 40)
    across = attrs.get("transB", 0)
    w = p.weights(*((56, 40) if across else (40, 56)), axis=None if attrs.pop("whole", False) else 1 - across)
    return p.model(p.node(op, x, w, *([p.bias(56)] if op == "Gemm" else []), **attrs)), p.feed


def moved(op, *more, **attrs):
    p = Pattern(3, x_zero=7, y_zero=7)
    p.tensors["ys"] = p.tensors["xs"]
    p.tensors.update({f"more{i}": np.asarray(m) for i, m in enumerate(more)})
    x = p.input(2, 6, 8, 10)
    return p.model(p.node(op, x, *[f"more{i}" for i in range(len(more))], **attrs)), p.feed


PATTERNS = {  # name: model and input, the operator that is made, and by how many quanta ONNX Runtime may differ
    "conv": (conv(), "QLinearConv", 0),
    "conv of int8": (conv(x_type=np.int8, y_type=np.int8, x_zero=-9, y_zero=4), "QLinearConv", 0),
    "conv, one scale": (conv(channels=False, real=False), "QLinearConv", 0),
    "conv with bias": (conv(real=False), "QLinearConv", 0),
    "conv with a bias of floats": (conv(real=True), "QLinearConv", 1),
    "conv and relu": (conv("Relu", real=False), "QLinearConv", 0),
    "conv and relu inside the range": (conv("Relu", real=False, y_zero=30), "Conv", 1),
    "conv and clip": (conv("Clip", real=False, high=12.75), "QLinearConv", 0),
    "conv and clip inside the range": (conv("Clip", real=False, high=6), "Conv", 1),
    "conv and sigmoid": (conv("Sigmoid", real=False), "Conv", 1),
    "matmul": (product("MatMul"), "QLinearMatMul", 0),
    "matmul, one scale": (product("MatMul", whole=True), "QLinearMatMul", 0),
    "gemm": (product("Gemm"), "QLinearConv", 1),  # ONNX Runtime adds the bias as it likes
    "gemm transposed": (product("Gemm", transB=1), "QLinearConv", 1),
    "gemm, one row": (product("Gemm", rows=1, transB=1), "QLinearConv", 1),
    "gemm with alpha": (product("Gemm", alpha=0.5), "Gemm", 1),
    "max pool": (moved("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), "MaxPool", 0),
    "transpose": (moved("Transpose", perm=[0, 3, 1, 2]), "Transpose", 0),
    "reshape": (moved("Reshape", np.array([4, -1], np.int64)), "Reshape", 0),
}


def runtime(proto, feed, all_optimisations=True):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums that stop at 16 bits where the CPU lacks VNNI
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if all_optimisations else level.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(
        None, feed)


def plan(path, wish):
    return json.loads(tool_case.good("plan", path, "--device", "cpu", "--optimize", wish, "--json"))


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern(name, tmp_path):
    (proto, feed), op, quanta = PATTERNS[name]
    path = files.save(tmp_path, proto)
    after, before = files.run(path, feed, "--optimize", "on")[0], files.run(path, feed, "--optimize", "off")[0]
    want, plain = runtime(proto, feed)[0], runtime(proto, feed, False)[0]
    assert after.dtype == want.dtype and after.shape == want.shape
    apart = np.abs(after.astype(int) - want)
    assert apart.max() <= quanta, f"{np.count_nonzero(apart)} of {apart.size} differ, by {apart.max()} at most"
    for other in (before, plain):  # through floats: whatever rounds to a half may go either way
        apart = np.abs(after.astype(int) - other)
        assert apart.max() <= 1 and np.count_nonzero(apart) <= max(2, after.size / 100)
    assert len(np.unique(after)) > 10
    nodes = [n["op"] for n in plan(path, "on")["nodes"]]
    changed = [c for c in plan(path, "on")["optimizations"] if c["pass"] == "quantized"]
    made = op not in ("Conv", "Gemm")
    assert op in nodes and bool(changed) == made and ("DequantizeLinear" in nodes) != made
    assert not [c for c in plan(path, "on,-quantized")["optimizations"] if c["pass"] == "quantized"]


# ---- networks


def bottlenecks(seed):
    """Two bottlenecks with residuals, a pool and a classifier, all float32."""
    rng, nodes, tensors = np.random.default_rng(seed), [], {}

    def node(op, *inputs, **attrs):
        nodes.append(helper.make_node(op, list(inputs), [f"v{len(nodes)}"], name=f"n{len(nodes)}", **attrs))
        return nodes[-1].output[0]

    def weights(*shape):
        tensors[f"w{len(tensors)}"] = (rng.standard_normal(shape) * (2 / np.prod(shape[1:]))**0.5).astype(np.float32)
        return f"w{len(tensors) - 1}"

    def conv(x, before, after, kernel, stride=1, relu=True, group=1):
        y = node("Conv", x, weights(after, before // group, kernel, kernel), weights(after), strides=[stride] * 2,
                 pads=[kernel // 2] * 4, group=group)
        return node("Relu", y) if relu else y

    y = node("MaxPool", conv("input", 3, 16, 7, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    aside = conv(y, 16, 64, 1, relu=False)
    y = conv(conv(conv(y, 16, 16, 1), 16, 16, 3), 16, 64, 1, relu=False)
    y = node("Relu", node("Add", y, aside))
    inner = conv(conv(conv(y, 64, 32, 1), 32, 32, 3, group=32), 32, 64, 1, relu=False)
    y = node("Relu", node("Add", y, inner))
    y = node("Flatten", node("GlobalAveragePool", y))
    y = node("Gemm", y, weights(50, 64), weights(50), transB=1)
    x = np.zeros((1, 3, 64, 64), np.float32)
    return files.model(nodes, {"input": x}, [y], tensors), x.shape


class Samples:
    def __init__(self, shape):
        rng = np.random.default_rng(5)
        self.left = [{"input": rng.standard_normal(shape).astype(np.float32)} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None

    def set_range(self, start_index, end_index):
        pass


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("kinds", [("QUInt8", "QInt8"), ("QInt8", "QInt8"), ("QUInt8", "QUInt8")])
def test_network(channels, kinds, tmp_path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    CalibrationDataReader.register(Samples)
    proto, shape = bottlenecks(1)
    quantize_static(files.save(tmp_path, proto, "float"), tmp_path / "q.onnx", Samples(shape), per_channel=channels,
                    quant_format=QuantFormat.QDQ, activation_type=getattr(QuantType, kinds[0]),
                    weight_type=getattr(QuantType, kinds[1]))
    quantised = onnx.load(tmp_path / "q.onnx")
    feed = {"input": np.random.default_rng(6).standard_normal(shape).astype(np.float32)}
    want = runtime(quantised, feed)[0]
    step = np.diff(np.unique(np.concatenate([want.ravel(), runtime(quantised, feed, False)[0].ravel()]))).max()
    for wish in ("on", "off"):
        got = files.run(tmp_path / "q.onnx", feed, "--optimize", wish)[0]
        assert np.abs(got - want).max() <= 2.01 * step, wish
    nodes = [n["op"] for n in plan(tmp_path / "q.onnx", "on")["nodes"]]
    assert nodes.count("QLinearConv") == 9 and "Conv" not in nodes and "Gemm" not in nodes
