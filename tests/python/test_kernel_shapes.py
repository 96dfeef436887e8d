"""Kernels of cpu that choose by the shape: rows shorter and longer than a block, strides, dilations, groups, pads, images of a
batch. Many nodes a model; against numpy, sums of bytes to the last bit, and against ONNX Runtime."""
import numpy as np
import onnx_files as files
from onnx import helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(17)


class Net:
    """Nodes, each with what its result is to be."""

    def __init__(self):
        self.nodes, self.inputs, self.known, self.wanted = [], {}, {}, {}

    def input(self, array):
        return self.named(self.inputs, f"x{len(self.inputs)}", array)

    def constant(self, array):
        return self.named(self.known, f"c{len(self.known)}", np.asarray(array))

    @staticmethod
    def named(group, name, array):
        group[name] = array
        return name

    def add(self, op, names, want, **attrs):
        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [name], name=f"{op}_{name}", **attrs))
        self.wanted[name] = want

    def check(self, folder, rtol=1e-5):
        types = {name: (np.dtype(np.float32) if w is None else w.dtype, None) for name, w in self.wanted.items()}
        proto = files.model(self.nodes, self.inputs, types, self.known, opset=18)
        got, want = files.run(files.save(folder, proto), self.inputs), list(self.wanted.values())
        if any(w is None for w in want):  # as ONNX Runtime has it
            want = [theirs if w is None else w for w, theirs in zip(want, files.expected(proto, self.inputs))]
        assert len(got) == len(want) > 0
        for node, g, w in zip(self.nodes, got, want):
            if w.dtype.kind == "f":
                np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-5, err_msg=str(node))
            else:
                np.testing.assert_array_equal(g, w, err_msg=str(node))


def rows(kind, count, n):
    x = RNG.integers(-9, 9, (count, n)).astype(kind)
    return x + RNG.random((count, n)).astype(kind) if x.dtype.kind == "f" else x


def test_short_rows(tmp_path):
    net = Net()
    axis, axes = net.constant(np.int64(1)), net.constant(np.int64([1]))
    for n in (1, 2, 5, 8, 31, 32, 33):
        for count, kind in ((1, "float32"), (65, "float32"), (300, "float32"), (65, "float64"), (300, "int8"), (300, "int64")):
            x = rows(kind, count, n)
            if kind != "int8":
                ends = np.cumsum(x[:, ::-1], 1, dtype=kind)[:, ::-1]
                net.add("CumSum", [net.input(x), axis], ends, reverse=1)
            special = x.copy()
            if special.dtype.kind == "f":
                special[0, n // 2], special[-1, 0] = np.nan, np.inf
            name = net.input(special)
            net.add("ArgMax", [name], special.argmax(1)[:, None], axis=1)
            net.add("ReduceMin", [name, axes], special.min(1, keepdims=True))
            if special.dtype.kind != "f":
                continue
            with np.errstate(all="ignore"):
                less = special - special.max(1, keepdims=True)
                size = np.sqrt((special.astype(float)**2).sum(1, keepdims=True))
                net.add("LogSoftmax", [name], less - np.log(np.exp(less).sum(1, keepdims=True)), axis=1)
                net.add("LpNormalization", [name], (special / size).astype(kind), axis=1)
            net.add("Hardmax", [name], (np.arange(n) == special.argmax(1)[:, None]).astype(kind), axis=1)
            net.add("LpNormalization", [net.constant(np.zeros((count, n), kind))], np.zeros((count, n), kind), axis=1)
    net.check(tmp_path)


def windows(count):
    """Kernel, strides, dilations, pads and an image that they fit, of one to three dimensions."""
    while count > 0:
        dims = int(RNG.integers(1, 4))
        k, s, d = ([int(v) for v in RNG.integers(1, most, dims)] for most in (5, 4, 3))
        pads, image = [int(v) for v in RNG.integers(0, 4, 2 * dims)], [int(v) for v in RNG.integers(4, (300, 30, 9)[dims - 1], dims)]
        if all(image[i] + pads[i] + pads[i + dims] > (k[i] - 1) * d[i] for i in range(dims)):
            count -= 1
            yield image, {"kernel_shape": k, "strides": s, "dilations": d, "pads": pads}


def test_depthwise_and_transposed(tmp_path):
    net = Net()
    for image, attrs in windows(40):
        dims, channels, many = len(image), int(RNG.integers(1, 4)), int(RNG.integers(1, 3))
        weights = RNG.standard_normal((channels * many, 1, *attrs["kernel_shape"])).astype(np.float32)
        x = net.input(RNG.standard_normal((2, channels, *image)).astype(np.float32))
        net.add("Conv", [x, net.constant(weights)], None, group=channels, **attrs)
        back = {"strides": attrs["strides"], "dilations": attrs["dilations"], "pads": [min(p, 1) for p in attrs["pads"]]}
        sizes = zip(image, attrs["kernel_shape"], attrs["strides"], attrs["dilations"])
        if all((n - 1) * s + (k - 1) * d > 2 for n, k, s, d in sizes) and dims < 3:
            weights = RNG.standard_normal((channels, 3, *attrs["kernel_shape"])).astype(np.float32)
            net.add("ConvTranspose", [x, net.constant(weights)], None, **back)
    net.check(tmp_path, 1e-4)


def any_bytes(kind, *shape):
    ends = np.iinfo(kind)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(kind)


def sums_of(x, w, groups, attrs):
    """Of the differences from the zero points, as int64."""
    k, s, d, pads = (attrs[name] for name in ("kernel_shape", "strides", "dilations", "pads"))
    dims = len(k)
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + dims]) for i in range(dims)])
    out = [(x.shape[2 + i] - (k[i] - 1) * d[i] - 1) // s[i] + 1 for i in range(dims)]
    sums = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    per, outs = w.shape[1], w.shape[0] // groups
    for tap in np.ndindex(*k):
        begin = [t * d[i] for i, t in enumerate(tap)]
        part = x[(slice(None),) * 2 + tuple(slice(b, b + (out[i] - 1) * s[i] + 1, s[i]) for i, b in enumerate(begin))]
        for g in range(groups):
            mine = slice(g * outs, (g + 1) * outs)
            sums[:, mine] += np.einsum("nc...,oc->no...", part[:, g * per:(g + 1) * per], w[(mine, slice(None), *tap)])
    return sums


def test_convolutions_of_bytes(tmp_path):
    net = Net()
    for image, attrs in windows(40):
        groups, per, outs = (int(RNG.choice(of)) for of in ([1, 2, 3], [1, 2, 5], [1, 3, 33]))
        kind, of_weights = (np.dtype(t) for t in RNG.choice(["int8", "uint8"], 2))
        x, w = any_bytes(kind, 2, groups * per, *image), any_bytes(of_weights, groups * outs, per, *attrs["kernel_shape"])
        x_zero, w_zero, y_zero = any_bytes(kind, 1)[0], any_bytes(of_weights, groups * outs), any_bytes(kind, 1)[0]
        points = w.astype(np.int64) - w_zero.reshape(-1, *[1] * (w.ndim - 1))
        sums = sums_of(x.astype(np.int64) - int(x_zero), points, groups, attrs)
        names = net.input(x), net.constant(x_zero), net.constant(w), net.constant(w_zero)
        net.add("ConvInteger", [names[0], names[2], names[1], names[3]], sums.astype(np.int32), group=groups, **attrs)
        scale, bias = (RNG.random(groups * outs) + 0.1).astype(np.float32), RNG.integers(-999, 999, groups * outs).astype(np.int32)
        whole, last = np.float32(0.03), np.float32(0.03 * np.abs(sums).max() / 100 + 0.01)
        channel = (1, -1, *[1] * len(image))
        y = np.rint((sums + bias.reshape(channel)).astype(np.float32) * (whole * scale / last).reshape(channel))
        ends = np.iinfo(kind)
        net.add("QLinearConv", [names[0], net.constant(whole), names[1], names[2], net.constant(scale), names[3],
                                net.constant(last), net.constant(y_zero), net.constant(bias)],
                np.clip(y.astype(float) + int(y_zero), ends.min, ends.max).astype(kind), group=groups, **attrs)
    net.check(tmp_path)


def test_resize_dequantize_and_casts(tmp_path):
    net = Net()
    for shape, to in (((1, 5, 7, 3), (1, 9, 20, 3)), ((2, 6, 5, 32), (2, 3, 11, 32)), ((1, 4, 6, 37), (1, 4, 13, 37))):
        for mode in ("linear", "cubic"):
            x, sizes = RNG.standard_normal(shape).astype(np.float32), np.int64(to)
            names = [net.input(x), "", "", net.constant(sizes)]
            node = helper.make_node("Resize", names, ["y"], mode=mode)
            alone = files.model([node], {names[0]: x}, ["y"], {names[3]: sizes}, opset=18)
            net.add("Resize", names, ReferenceEvaluator(alone).run(None, {names[0]: x})[0].astype(np.float32), mode=mode)
    for kind in (np.int8, np.uint8):
        for columns in (3, 64, 600):
            x, scale, zero = any_bytes(kind, 7, columns), RNG.random(columns).astype(np.float32), any_bytes(kind, columns)
            want = (x.astype(np.float32) - zero.astype(np.float32)) * scale
            net.add("DequantizeLinear", [net.input(x), net.constant(scale), net.constant(zero)], want, axis=1)
    x = (RNG.standard_normal(3000) * 30).astype(np.float32)
    x[::7] = 0
    for to in (np.bool_, np.int8, np.int32, np.int64):
        want = x.astype(to)
        net.add("Cast", [net.input(x)], want, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        net.add("Cast", [net.input(want)], want.astype(np.float32), to=1)
    net.check(tmp_path)
