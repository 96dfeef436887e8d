"""The networks of scripts/bench models, as ONNX files of opset 17 with weights made from a seed: sizes and operators as
exporters write them, BatchNormalization already in weights and bias. Each knows the operations of its products."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph in the making. Values are (name, shape); weights are drawn so that activations keep their size."""

    def __init__(self, seed, shape):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.tensors, self.operations = [], [], 0
        self.input = ("input", tuple(shape))

    def constant(self, array):
        array = np.asarray(array)
        self.tensors.append(numpy_helper.from_array(array, f"c{len(self.tensors)}"))
        return self.tensors[-1].name, array.shape

    def weights(self, *shape, deviation=0.01, mean=0.0):
        return self.constant((mean + deviation * self.rng.standard_normal(shape)).astype(np.float32))

    def node(self, op, inputs, shape, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [i[0] for i in inputs], [name], name=f"{name}_node", **attributes))
        return name, tuple(shape)

    def conv(self, x, channels, kernel, stride=1, groups=1, gain=2.0):
        n, before, *size = x[1]
        fan = before // groups * kernel * kernel
        size = [(s + 2 * (kernel // 2) - kernel) // stride + 1 for s in size]
        self.operations += 2 * n * channels * fan * math.prod(size)
        w = self.weights(channels, before // groups, kernel, kernel, deviation=math.sqrt(gain / fan))
        return self.node("Conv", [x, w, self.weights(channels)], [n, channels, *size], kernel_shape=[kernel] * 2,
                         strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def relu(self, x):
        return self.node("Relu", [x], x[1])

    def pool(self, x, kernel, stride, pad):
        n, channels, *size = x[1]
        size = [(s + 2 * pad - kernel) // stride + 1 for s in size]
        return self.node("MaxPool", [x], [n, channels, *size], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                         pads=[pad] * 4)

    def gemm(self, x, width):
        rows, before = x[1]
        self.operations += 2 * rows * before * width
        w = self.weights(width, before, deviation=math.sqrt(2 / before))
        return self.node("Gemm", [x, w, self.weights(width)], [rows, width], transB=1)

    def classes(self, x, count=1000):
        n, channels = x[1][:2]
        x = self.node("GlobalAveragePool", [x], [n, channels, 1, 1])
        return self.gemm(self.node("Flatten", [x], [n, channels], axis=1), count)

    def matmul(self, a, b, shape):
        self.operations += 2 * math.prod(shape) * a[1][-1]
        return self.node("MatMul", [a, b], shape)

    def linear(self, x, width):
        *rows, before = x[1]
        y = self.matmul(x, self.weights(before, width, deviation=before**-0.5), [*rows, width])
        return self.node("Add", [y, self.weights(width)], y[1])

    def norm(self, x):
        width = x[1][-1]
        scale, bias = self.weights(width, deviation=0.02, mean=1.0), self.weights(width, deviation=0.02)
        return self.node("LayerNormalization", [x, scale, bias], x[1], axis=-1, epsilon=1e-12)

    def save(self, path, output):
        values = [helper.make_tensor_value_info(*v) for v in (
            (self.input[0], TensorProto.FLOAT, self.input[1]), (output[0], TensorProto.FLOAT, output[1]))]
        graph = helper.make_graph(self.nodes, "bench", values[:1], values[1:], self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        return self.operations


def mobilenet(path):
    """MobileNet v1, width 1, at 224."""
    net = Net(1, (1, 3, 224, 224))
    low, high = net.constant(np.float32(0)), net.constant(np.float32(6))

    def conv6(x, *size, **more):
        y = net.conv(x, *size, **more)
        return net.node("Clip", [y, low, high], y[1])

    y = conv6(net.input, 32, 3, 2)
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for width, stride in steps:
        y = conv6(y, y[1][1], 3, stride, groups=y[1][1])
        y = conv6(y, width, 1)
    y = net.classes(y)
    return net.save(path, net.node("Softmax", [y], y[1], axis=1))


def resnet50(path, batch=1):
    """ResNet-50 with the stride on the 3x3 convolutions (v1.5), at 224."""
    net = Net(2, (batch, 3, 224, 224))
    y = net.pool(net.relu(net.conv(net.input, 64, 7, 2)), 3, 2, 1)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            aside = net.conv(y, 4 * width, 1, stride, gain=1.0) if block == 0 else y
            y = net.relu(net.conv(y, width, 1))
            y = net.conv(net.relu(net.conv(y, width, 3, stride)), 4 * width, 1, gain=0.2)
            y = net.relu(net.node("Add", [y, aside], y[1]))
    return net.save(path, net.classes(y))


def encoder(path, batch=1, layers=6, width=384, heads=12, length=128):
    """A transformer's encoder: attention and Gelu in the parts that exporters write, four times as wide inside."""
    net = Net(3, (batch, length, width))
    split = net.constant(np.array([batch, length, heads, width // heads], np.int64))
    join = net.constant(np.array([batch, length, width], np.int64))
    root, root2, one, half = (net.constant(np.float32(v)) for v in ((width // heads)**0.5, 2**0.5, 1, 0.5))
    size = width // heads

    def apart(x, order):
        y = net.node("Reshape", [net.linear(x, width), split], [batch, length, heads, size])
        return net.node("Transpose", [y], [y[1][i] for i in order], perm=order)

    y = net.norm(net.input)
    for _ in range(layers):
        q, k, v = apart(y, [0, 2, 1, 3]), apart(y, [0, 2, 3, 1]), apart(y, [0, 2, 1, 3])
        a = net.matmul(q, k, [batch, heads, length, length])
        a = net.node("Softmax", [net.node("Div", [a, root], a[1])], a[1], axis=-1)
        a = net.matmul(a, v, [batch, heads, length, size])
        a = net.node("Transpose", [a], [batch, length, heads, size], perm=[0, 2, 1, 3])
        a = net.node("Reshape", [a, join], [batch, length, width])
        y = net.norm(net.node("Add", [net.linear(a, width), y], y[1]))
        f = net.linear(y, 4 * width)
        g = f
        for op, other in (("Div", root2), ("Erf", None), ("Add", one)):
            g = net.node(op, [g] if other is None else [g, other], f[1])
        g = net.node("Mul", [net.node("Mul", [f, g], f[1]), half], f[1])
        y = net.norm(net.node("Add", [net.linear(g, width), y], y[1]))
    return net.save(path, y)


def open_encoder(path, layers=6, width=384, heads=12):
    """The encoder with a batch and a length that only a run knows, whose Reshapes get their shapes from Shape, Gather,
    Unsqueeze and Concat, as exporters write them. The operations are left out: they depend on the length."""
    net = Net(3, ("batch", "length", width))
    size = width // heads
    axis, first, second = net.constant(np.array([0], np.int64)), net.constant(np.int64(0)), net.constant(np.int64(1))
    parts = {n: net.constant(np.array([n], np.int64)) for n in (heads, size, width)}
    root, root2, one, half = (net.constant(np.float32(v)) for v in (size**0.5, 2**0.5, 1, 0.5))

    def shaped(x, *rest):
        whole = net.node("Shape", [x], [3])
        dims = [net.node("Unsqueeze", [net.node("Gather", [whole, i], [], axis=0), axis], [1]) for i in (first, second)]
        return net.node("Concat", [*dims, *(parts[n] for n in rest)], [2 + len(rest)], axis=0)

    def linear(x, before, after):
        y = net.node("MatMul", [x, net.weights(before, after, deviation=before**-0.5)], [])
        return net.node("Add", [y, net.weights(after)], [])

    def apart(x, order):
        y = linear(x, width, width)
        return net.node("Transpose", [net.node("Reshape", [y, shaped(y, heads, size)], [])], [], perm=order)

    def norm(x):
        scale, bias = net.weights(width, deviation=0.02, mean=1.0), net.weights(width, deviation=0.02)
        return net.node("LayerNormalization", [x, scale, bias], [], axis=-1, epsilon=1e-12)

    y = norm(net.input)
    for _ in range(layers):
        q, k, v = apart(y, [0, 2, 1, 3]), apart(y, [0, 2, 3, 1]), apart(y, [0, 2, 1, 3])
        a = net.node("Softmax", [net.node("Div", [net.node("MatMul", [q, k], []), root], [])], [], axis=-1)
        a = net.node("Transpose", [net.node("MatMul", [a, v], [])], [], perm=[0, 2, 1, 3])
        a = net.node("Reshape", [a, shaped(a, width)], [])
        y = norm(net.node("Add", [linear(a, width, width), y], []))
        f = linear(y, width, 4 * width)
        g = net.node("Add", [net.node("Erf", [net.node("Div", [f, root2], [])], []), one], [])
        g = net.node("Mul", [net.node("Mul", [f, g], []), half], [])
        y = norm(net.node("Add", [linear(g, 4 * width, width), y], []))
    net.save(path, (y[0], net.input[1]))


def branches(path, blocks=8):
    """Blocks of four branches (1x1, 3x3, 5x5 and a pool) that are put side by side, 64 channels at 56."""
    net = Net(7, (1, 64, 56, 56))
    y = net.input
    for _ in range(blocks):
        parts = [net.relu(net.conv(y, 16, 1))]
        parts += [net.relu(net.conv(net.relu(net.conv(y, 16, 1)), 16, k)) for k in (3, 5)]
        parts.append(net.relu(net.conv(net.pool(y, 3, 1, 1), 16, 1)))
        y = net.node("Concat", parts, y[1], axis=1)
    return net.save(path, y)


def mlp(path):
    """Three layers: 784, 512, 512, 10."""
    net = Net(4, (1, 784))
    y = net.relu(net.gemm(net.relu(net.gemm(net.input, 512)), 512))
    return net.save(path, net.gemm(y, 10))


# Of each: the function that writes it and gives its operations, its input's shape, and runs in one sample.
NETS = {"mobilenet": (mobilenet, (1, 3, 224, 224), 5), "resnet50": (resnet50, (1, 3, 224, 224), 1),
        "encoder": (encoder, (1, 128, 384), 2), "branches": (branches, (1, 64, 56, 56), 8), "mlp": (mlp, (1, 784), 400)}


def make(name, path, batch=1):
    """Writes the network, and PATH.input beside it, the bytes of its input; gives the operations of a run. Another batch
    than 1: of resnet50 and encoder."""
    writer, shape, _ = NETS[name]
    operations = writer(path) if batch == 1 else writer(path, batch)
    shape = (batch, *shape[1:])
    np.random.default_rng(42).standard_normal(shape).astype(np.float32).tofile(f"{path}.input")
    return operations
