"""Random networks with open dimensions. A dimension is the tuple of its numbers in the runs that will be made, so that what
fits together in all runs is known where a node is added. Values stay small: sums are divided, and a Tanh comes in between."""
import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RUNS = 8
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Erf", "Sin", "LeakyRelu", "HardSwish", "Softplus", "Elu", "Identity", "Atan"]


class Value:
    def __init__(self, name, dims):
        self.name, self.dims = name, tuple(d if isinstance(d, tuple) else (d,) * RUNS for d in dims)

    def fixed(self, axis):
        return self.dims[axis][0] if len(set(self.dims[axis])) == 1 else None

    def least(self, axis):
        return min(self.dims[axis])

    def elements(self):
        return max(np.prod([d[r] for d in self.dims], dtype=np.int64) for r in range(RUNS)) if self.dims else 1


def over(function, *dims):
    return tuple(function(*(d[r] for d in dims)) for r in range(RUNS))


def drawn(rand, low, high):
    """Numbers of one name: some come again, few are large."""
    pool = [rand.randint(low, rand.choice([low + 5, (low + high) // 2, high])) for _ in range(max(2, RUNS - 2))]
    numbers = [rand.choice(pool) for _ in range(RUNS)]
    if len(set(numbers)) == 1:
        numbers[-1] = numbers[0] % high + 1
    return tuple(numbers)


class Net:
    """After make(): model (a ModelProto), feeds(run) and the forms that occurred."""

    def __init__(self, seed, images=None, steps=None):
        self.rand, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.values, self.used, self.forms = [], [], {}, [], set(), set()
        images = self.rand.random() < 0.5 if images is None else images
        self.names = {"b": drawn(self.rand, 1, 3), "n": drawn(self.rand, 1, 40), "h": drawn(self.rand, 1, 24),
                      "w": drawn(self.rand, 1, 24), "m": drawn(self.rand, 1, 12)}
        width = self.rand.choice([1, 3, 4, 8, 12, 16])
        if images and self.rand.random() < 0.4:  # only their number changes
            self.names.update(b=drawn(self.rand, 1, 6), h=self.rand.randint(1, 24), w=self.rand.randint(1, 24))
        if images:
            self.input("x", ["b", width, "h", "w"])
            if self.rand.random() < 0.3:
                self.input("z", ["b", self.rand.choice([width, 1]), "h", self.rand.choice(["w", 1])])
        else:
            self.input("x", [self.rand.choice(["b", "b", 2]), "n", width])
            if self.rand.random() < 0.5:
                self.input("z", self.rand.choice([["b", "n", width], ["m", width], ["n", "m"], ["b", 1, width], [1]]))
        wanted = [getattr(self, f) for f in dir(self) if f.startswith("form_")]
        wanted += [self.form_conv, self.form_conv, self.form_pool] * 3 if images else [self.form_matmul, self.form_attention] * 2
        for _ in range(steps or self.rand.randint(2, 9)):
            for _ in range(20):
                form = self.rand.choice(wanted)
                before = len(self.nodes), len(self.weights), set(self.used)
                made = form(self.any())
                if made and all(v.elements() <= 200000 for v in made):
                    self.forms.add(form.__name__[5:])
                    self.values += made
                    break
                del self.nodes[before[0]:], self.weights[before[1]:]
                self.used = before[2]
        self.finish()

    # ---- what forms are made of

    def input(self, name, dims):
        dims = self.inputs[name] = [self.names[d] if isinstance(self.names.get(d), int) else d for d in dims]
        self.values.append(Value(name, [self.names[d] if isinstance(d, str) else d for d in dims]))

    def any(self):
        last = self.values[-3:]
        return self.rand.choice(last if self.rand.random() < 0.8 else self.values)

    def const(self, array):
        name = f"c{len(self.weights)}_{len(self.nodes)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *numbers):
        return self.const(np.array(numbers, np.int64))

    def weight(self, *shape):
        return self.const((self.rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32))

    def node(self, op, *inputs, outputs=1, **attrs):
        inputs = [v.name if isinstance(v, Value) else v for v in inputs]
        self.used |= set(inputs)
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(self.nodes)}", **attrs))
        return names[0] if outputs == 1 else names

    def one(self, dims, op, *inputs, **attrs):
        return [Value(self.node(op, *inputs, **attrs), dims)]

    def size(self, v, axis):
        """A dimension as a list of one number, in one of the ways that exporters write it."""
        kind = self.rand.randint(0, 2)
        shape = self.node("Shape", v)
        if kind == 0:
            return self.node("Gather", shape, self.ints(axis), axis=0)
        if kind == 1:
            return self.node("Slice", shape, self.ints(axis), self.ints(axis + 1), self.ints(0))
        number = self.node("Gather", shape, self.const(np.int64(axis)), axis=0)
        return self.node("Unsqueeze", number, self.ints(0))

    def shape(self, v):
        """All dimensions, as numbers where they are known."""
        return [self.ints(v.fixed(a)) if v.fixed(a) is not None and self.rand.random() < 0.5 else self.size(v, a)
                for a in range(len(v.dims))]

    def axis(self, v):
        axis = self.rand.randrange(len(v.dims))
        return axis, axis - (len(v.dims) if self.rand.random() < 0.3 else 0)

    def like(self, v):
        """Another value that broadcasts with v, or a constant."""
        fits = [u for u in self.values if len(u.dims) <= len(v.dims)
                and all(u.dims[-k] == v.dims[-k] or set(u.dims[-k]) == {1} for k in range(1, len(u.dims) + 1))]
        if fits and self.rand.random() < 0.7:
            return self.rand.choice(fits).name
        shape = [v.fixed(a) or 1 if self.rand.random() < 0.7 else 1 for a in range(len(v.dims))]
        return self.const(self.rng.standard_normal(shape[self.rand.randint(0, len(shape)):]).astype(np.float32))

    def stretch(self, v, axis, length):
        dims = list(v.dims)
        dims[axis] = length
        return dims

    # ---- forms: each gives the values that it adds, or None

    def form_unary(self, v):
        return self.one(v.dims, self.rand.choice(UNARY), v)

    def form_binary(self, v):
        pair = [v, self.like(v)]
        self.rand.shuffle(pair)
        return self.one(v.dims, self.rand.choice(["Add", "Sub", "Mul", "Max", "Min"]), *pair)

    def form_where(self, v):
        return self.one(v.dims, "Where", self.node("Greater", "x", self.const(np.float32(0))) if v.dims == self.values[0].dims
                        else self.const(np.array(True)), v, self.like(v))

    def form_gelu(self, v):
        half = self.node("Mul", v, self.const(np.float32(0.7071)))
        e = self.node("Add", self.node("Erf", half), self.const(np.float32(1)))
        return self.one(v.dims, "Mul", self.node("Mul", v, e), self.const(np.float32(0.5)))

    def form_matmul(self, v):
        if len(v.dims) < 2 or v.fixed(-1) is None:
            return None
        k, n = v.fixed(-1), self.rand.choice([1, 2, 5, 8, 16, 33])
        y = self.node("MatMul", v, self.const((self.rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32)))
        dims = v.dims[:-1] + (n,)
        if self.rand.random() < 0.5:
            y = self.node("Add", y, self.weight(n))
        if self.rand.random() < 0.4:
            y = self.node(self.rand.choice(UNARY), y)
        return [Value(y, dims)]

    def form_gemm(self, v):
        if len(v.dims) != 2 or v.fixed(1) is None:
            return None
        n = self.rand.choice([1, 3, 10])
        return self.one([v.dims[0], n], "Gemm", v, self.weight(n, v.fixed(1)), self.weight(n), transB=1, alpha=0.5)

    def form_product(self, v):
        """A value times itself turned: both dimensions are open."""
        rank = len(v.dims)
        if rank < 2:
            return None
        t = self.node("Transpose", v, perm=[*range(rank - 2), rank - 1, rank - 2])
        scaled = self.node("Tanh", v)
        return self.one(v.dims[:-1] + (v.dims[-2],), "Tanh", self.node("MatMul", scaled, t))

    def form_attention(self, v):
        if len(v.dims) != 3 or v.fixed(2) is None or v.fixed(2) % 2:
            return None
        heads, width = self.rand.choice([1, 2]), v.fixed(2)
        apart = self.node("Concat", self.size(v, 0), self.size(v, 1), self.ints(heads), self.ints(width // heads), axis=0)

        def head(perm):
            y = self.node("MatMul", v, self.weight(width, width))
            return self.node("Transpose", self.node("Reshape", y, apart), perm=perm)
        q, k, u = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
        scores = self.node("Mul", self.node("MatMul", q, k), self.const(np.float32((width // heads) ** -0.5)))
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), u)
        y = self.node("Transpose", y, perm=[0, 2, 1, 3])
        return self.one(v.dims, "Reshape", y, self.node("Concat", *self.shape(v), axis=0))

    def form_softmax(self, v):
        return self.one(v.dims, self.rand.choice(["Softmax", "LogSoftmax"]), v, axis=self.axis(v)[1]) if v.dims else None

    def form_layer_norm(self, v):
        if not v.dims or v.fixed(-1) is None or v.fixed(-1) < 3:
            return None
        return self.one(v.dims, "LayerNormalization", v, self.weight(v.fixed(-1)), self.weight(v.fixed(-1)), epsilon=0.01)

    def form_norm(self, v):
        if len(v.dims) != 4 or v.fixed(1) is None:
            return None
        c = v.fixed(1)
        if self.rand.random() < 0.3:
            return self.one(v.dims, "InstanceNormalization", v, self.weight(c), self.weight(c), epsilon=0.1)
        return self.one(v.dims, "BatchNormalization", v, self.weight(c), self.weight(c), self.weight(c),
                        self.const(np.abs(self.rng.standard_normal(c)).astype(np.float32) + 0.5))

    def form_reduce(self, v):
        if not v.dims:
            return None
        axes = sorted(self.rand.sample(range(len(v.dims)), self.rand.randint(1, len(v.dims))))
        keep = self.rand.randint(0, 1)
        op = self.rand.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2"])
        y = self.node(op, v, self.ints(*axes), keepdims=keep)
        if op in ("ReduceSum", "ReduceL2"):
            y = self.node("Tanh", self.node("Mul", y, self.const(np.float32(0.05))))
        return [Value(y, [(1,) * RUNS if a in axes else d for a, d in enumerate(v.dims) if keep or a not in axes])]

    def form_transpose(self, v):
        if not v.dims:
            return None
        perm = list(range(len(v.dims)))
        self.rand.shuffle(perm)
        return self.one([v.dims[p] for p in perm], "Transpose", v, perm=perm)

    def form_join_dims(self, v):
        """Two dimensions become one."""
        if len(v.dims) < 2:
            return None
        a = self.rand.randrange(len(v.dims) - 1)
        parts = self.shape(v)
        joined = self.ints(-1) if self.rand.random() < 0.6 else self.node("Mul", self.size(v, a), self.size(v, a + 1))
        dims = [*v.dims[:a], over(lambda p, q: p * q, v.dims[a], v.dims[a + 1]), *v.dims[a + 2:]]
        return self.one(dims, "Reshape", v, self.node("Concat", *parts[:a], joined, *parts[a + 2:], axis=0))

    def form_split_dim(self, v):
        found = [a for a in range(len(v.dims)) if v.fixed(a) and v.fixed(a) % 2 == 0]
        if not found or len(v.dims) > 4:
            return None
        a = self.rand.choice(found)
        parts = self.shape(v)
        shape = self.node("Concat", *parts[:a], self.ints(2), self.ints(v.fixed(a) // 2), *parts[a + 1:], axis=0)
        return self.one([*v.dims[:a], 2, v.fixed(a) // 2, *v.dims[a + 1:]], "Reshape", v, shape)

    def form_flatten(self, v):
        a = self.rand.randint(0, len(v.dims))
        return self.one([over(lambda *d: int(np.prod(d)), (1,) * RUNS, *v.dims[:a]),
                         over(lambda *d: int(np.prod(d)), (1,) * RUNS, *v.dims[a:])], "Flatten", v, axis=a)

    def form_unsqueeze(self, v):
        if len(v.dims) > 4:
            return None
        a = self.rand.randint(0, len(v.dims))
        return self.one([*v.dims[:a], 1, *v.dims[a:]], "Unsqueeze", v, self.ints(a))

    def form_squeeze(self, v):
        ones = [a for a in range(len(v.dims)) if v.fixed(a) == 1]
        if not ones:
            return None
        a = self.rand.choice(ones)
        return self.one([*v.dims[:a], *v.dims[a + 1:]], "Squeeze", v, self.ints(a))

    def form_concat(self, v):
        if not v.dims:
            return None
        a, said = self.axis(v)
        fits = [u for u in self.values if len(u.dims) == len(v.dims)
                and all(k == a or u.dims[k] == v.dims[k] for k in range(len(v.dims)))]
        parts = [v] + self.rand.choices(fits, k=self.rand.randint(1, 2))
        self.rand.shuffle(parts)
        return self.one(self.stretch(v, a, over(lambda *d: sum(d), *(p.dims[a] for p in parts))), "Concat", *parts, axis=said)

    def form_slice(self, v):
        if not v.dims:
            return None
        a, said = self.axis(v)
        start, end = self.rand.choice([(0, 1), (0, 3), (1, 2**40), (-3, 2**62), (0, -1), (-2, -1), (2, 5)])
        step = self.rand.choice([1, 1, 2])
        length = over(lambda d: len(range(d)[start:end:step]), v.dims[a])
        if self.rand.random() < 0.2:
            start, end, step = -1, -2**63, -1
            length = v.dims[a]
        if min(length) < 1:
            return None
        return self.one(self.stretch(v, a, length), "Slice", v, self.ints(start), self.ints(end), self.ints(said), self.ints(step))

    def form_slice_by_size(self, v):
        """The first part, or the rest, of a length that is computed from dimensions."""
        if not v.dims:
            return None
        a, said = self.axis(v)
        by = self.rand.choice([2, 3])
        middle = self.node("Div", self.node("Add", self.size(v, a), self.ints(by - 1)), self.ints(by))
        first = over(lambda d: (d + by - 1) // by, v.dims[a])
        if self.rand.random() < 0.5:
            return self.one(self.stretch(v, a, first), "Slice", v, self.ints(0), middle, self.ints(said))
        rest = over(lambda d, f: d - f, v.dims[a], first)
        return self.one(self.stretch(v, a, rest), "Slice", v, middle, self.size(v, a), self.ints(said)) if min(rest) > 0 else None

    def form_split(self, v):
        """In parts, of which not all are read."""
        if not v.dims:
            return None
        a, said = self.axis(v)
        n = self.rand.choice([2, 3])
        each = over(lambda d: -(-d // n), v.dims[a])
        sizes = [over(lambda d, e: max(0, min(e, d - k * e)), v.dims[a], each) for k in range(n)]
        names = self.node("Split", v, outputs=n, axis=said, num_outputs=n)
        good = [k for k in range(n) if min(sizes[k]) > 0]
        if any(d - (n - 1) * e < 0 for d, e in zip(v.dims[a], each)):
            return None
        return [Value(names[k], self.stretch(v, a, sizes[k])) for k in self.rand.sample(good, self.rand.randint(1, len(good)))]

    def form_pad(self, v):
        if not v.dims:
            return None
        mode = self.rand.choice(["constant", "constant", "edge", "reflect"])
        begin = [self.rand.choice([0, 0, 1, 2]) for _ in v.dims]
        end = [self.rand.choice([0, 0, 1]) for _ in v.dims]
        if mode == "reflect" and any(max(p, q) >= v.least(a) for a, (p, q) in enumerate(zip(begin, end))):
            return None
        more = [self.const(np.float32(0.5))] if mode == "constant" else []
        return self.one([over(lambda d, p=p, q=q: d + p + q, d) for d, p, q in zip(v.dims, begin, end)], "Pad", v,
                        self.ints(*begin, *end), *more, mode=mode)

    def form_pad_to_multiple(self, v):
        if not v.dims:
            return None
        a, _ = self.axis(v)
        k = self.rand.choice([2, 4, 7])
        up = self.node("Mul", self.node("Div", self.node("Add", self.size(v, a), self.ints(k - 1)), self.ints(k)), self.ints(k))
        more = self.node("Sub", up, self.size(v, a))
        zeros = [self.ints(0)] * len(v.dims)
        pads = self.node("Concat", *zeros, *zeros[:a], more, *zeros[a + 1:], axis=0)
        return self.one(self.stretch(v, a, over(lambda d: -(-d // k) * k, v.dims[a])), "Pad", v, pads)

    def form_gather(self, v):
        if not v.dims:
            return None
        a, said = self.axis(v)
        index = self.rng.integers(-v.least(a), v.least(a), self.rand.choice([(), (1,), (3,), (2, 2)]))
        if len(v.dims) + index.ndim > 6:
            return None
        return self.one([*v.dims[:a], *index.shape, *v.dims[a + 1:]], "Gather", v, self.const(np.asarray(index, np.int64)), axis=said)

    def form_reversed_rows(self, v):
        """Gather by Range over a dimension."""
        if not v.dims:
            return None
        a, said = self.axis(v)
        n = self.node("Squeeze", self.size(v, a), self.ints(0))
        last = self.node("Sub", n, self.const(np.int64(1)))
        places = self.node("Range", last, self.const(np.int64(-1)), self.const(np.int64(-1)))
        return self.one(v.dims, "Gather", v, places, axis=said)

    def form_positions(self, v):
        """A Range over a dimension, added."""
        if not v.dims:
            return None
        n = self.node("Squeeze", self.size(v, len(v.dims) - 1), self.ints(0))
        places = self.node("Cast", self.node("Range", self.const(np.int64(0)), n, self.const(np.int64(1))), to=F)
        return self.one(v.dims, "Add", v, self.node("Sin", places))

    def form_expand(self, v):
        ones = [a for a in range(len(v.dims)) if v.fixed(a) == 1]
        others = [u for u in self.values if u.dims]
        if not ones:
            return None
        a, u = self.rand.choice(ones), self.rand.choice(others)
        k = self.rand.randrange(len(u.dims))
        parts = [self.ints(1) if i != a else self.size(u, k) for i in range(len(v.dims))]
        return self.one(self.stretch(v, a, u.dims[k]), "Expand", v, self.node("Concat", *parts, axis=0))

    def form_of_size(self, v):
        """ConstantOfShape by a value's dimensions, and a sum with it."""
        shape = self.node("Shape", v)
        made = self.node("ConstantOfShape", shape, value=helper.make_tensor("value", F, [1], [0.25]))
        return self.one(v.dims, "Add", made, v)

    def form_tile(self, v):
        if not v.dims:
            return None
        times = [self.rand.choice([1, 1, 2]) for _ in v.dims]
        return self.one([over(lambda d, t=t: d * t, d) for d, t in zip(v.dims, times)], "Tile", v, self.ints(*times))

    def window(self, v, rank):
        """Kernel, strides, dilations, pads that fit all runs, and the dimensions that come out; None where none fit."""
        kernel = [self.rand.choice([1, 1, 2, 3, 3, 5]) for _ in range(rank)]
        strides = [self.rand.choice([1, 1, 2, 3]) for _ in range(rank)]
        dilations = [self.rand.choice([1, 1, 1, 2]) for _ in range(rank)]
        begin = [self.rand.randint(0, k // 2) for k in kernel]
        end = [self.rand.randint(0, k // 2) for k in kernel]
        dims = []
        for i in range(rank):
            span = (kernel[i] - 1) * dilations[i] + 1
            d = over(lambda s: (s + begin[i] + end[i] - span) // strides[i] + 1 if s + begin[i] + end[i] >= span else 0, v.dims[2 + i])
            if min(d) < 1:
                return None
            dims.append(d)
        return dims, dict(kernel_shape=kernel, strides=strides, dilations=dilations, pads=begin + end)

    def form_conv(self, v):
        rank = len(v.dims) - 2
        if rank not in (1, 2) or v.fixed(1) is None:
            return None
        c = v.fixed(1)
        groups = self.rand.choice([1, 1, 1, c, 2 if c % 2 == 0 else 1])
        out = groups * self.rand.choice([1, 1, 2, 8, 16] if groups == 1 else [1, 2])
        fits = self.window(v, rank)
        if fits is None or out > 40:
            return None
        dims, attrs = fits
        if self.rand.random() < 0.15:
            del attrs["pads"]
            attrs.update(auto_pad=self.rand.choice(["SAME_UPPER", "SAME_LOWER"]), dilations=[1] * rank)
            dims = [over(lambda s, k=k: -(-s // k), d) for d, k in zip(v.dims[2:], attrs["strides"])]
        w = self.weight(out, c // groups, *attrs["kernel_shape"])
        y = self.node("Conv", v, w, *([self.weight(out)] if self.rand.random() < 0.6 else []), group=groups, **attrs)
        for _ in range(self.rand.choice([0, 0, 1, 2])):
            op = self.rand.choice(UNARY + ["Add"])
            y = self.node(op, y, *([self.weight(out, *[1] * rank)] if op == "Add" else []))
        return [Value(y, [v.dims[0], out, *dims])]

    def form_conv_transpose(self, v):
        if len(v.dims) != 4 or v.fixed(1) is None:
            return None
        kernel, stride, out = self.rand.choice([1, 2, 3]), self.rand.choice([1, 2]), self.rand.choice([1, 4, 8])
        pad = self.rand.randint(0, kernel // 2)
        dims = [over(lambda s: (s - 1) * stride + kernel - 2 * pad, d) for d in v.dims[2:]]
        if min(map(min, dims)) < 1:
            return None
        w = self.const((self.rng.standard_normal((v.fixed(1), out, kernel, kernel)) / v.fixed(1)).astype(np.float32))
        return self.one([v.dims[0], out, *dims], "ConvTranspose", v, w, strides=[stride] * 2, pads=[pad] * 4)

    def form_pool(self, v):
        rank = len(v.dims) - 2
        if rank not in (1, 2):
            return None
        fits = self.window(v, rank)
        if fits is None:
            return None
        dims, attrs = fits
        op = self.rand.choice(["MaxPool", "MaxPool", "AveragePool"])
        if op == "AveragePool":
            del attrs["dilations"]
            attrs["count_include_pad"] = self.rand.randint(0, 1)
            pads = attrs["pads"]
            dims = [over(lambda s, i=i: (s + pads[i] + pads[rank + i] - attrs["kernel_shape"][i]) // attrs["strides"][i] + 1,
                         v.dims[2 + i]) for i in range(rank)]
            if min(map(min, dims)) < 1:
                return None
        steps = attrs.get("dilations", [1] * rank)  # no window lies in padding alone
        if any(p >= k for p, k in zip(attrs["pads"], attrs["kernel_shape"] * 2)) or any(
                d > 1 and v.least(2 + i) <= d for i, d in enumerate(steps)):
            return None
        return self.one([*v.dims[:2], *dims], op, v, **attrs)

    def form_global_pool(self, v):
        if len(v.dims) != 4:
            return None
        return self.one([*v.dims[:2], 1, 1], self.rand.choice(["GlobalAveragePool", "GlobalMaxPool"]), v)

    def form_resize(self, v):
        if len(v.dims) != 4:
            return None
        mode = self.rand.choice(["nearest", "linear"])
        attrs = dict(mode=mode, coordinate_transformation_mode=self.rand.choice(["asymmetric", "half_pixel"]))
        if mode == "nearest":
            attrs.update(nearest_mode="floor", coordinate_transformation_mode="asymmetric")
        dims = [over(lambda d: d * 2, d) for d in v.dims[2:]]
        if self.rand.random() < 0.5:
            return self.one([*v.dims[:2], *dims], "Resize", v, "", self.const(np.array([1, 1, 2, 2], np.float32)), **attrs)
        double = [self.node("Mul", self.size(v, a), self.ints(2)) for a in (2, 3)]
        sizes = self.node("Concat", self.size(v, 0), self.size(v, 1), *double, axis=0)
        return self.one([*v.dims[:2], *dims], "Resize", v, "", "", sizes, **attrs)

    def form_depth(self, v):
        if len(v.dims) != 4 or not v.fixed(1) or v.fixed(1) % 4:
            return None
        return self.one([v.dims[0], v.fixed(1) // 4, *(over(lambda d: d * 2, d) for d in v.dims[2:])], "DepthToSpace", v,
                        blocksize=2, mode=self.rand.choice(["DCR", "CRD"]))

    def form_cumsum(self, v):
        if not v.dims:
            return None
        y = self.node("CumSum", v, self.const(np.int64(self.axis(v)[1])), exclusive=self.rand.randint(0, 1),
                      reverse=self.rand.randint(0, 1))
        return self.one(v.dims, "Tanh", self.node("Mul", y, self.const(np.float32(0.05))))

    def form_best(self, v):
        """TopK and ArgMax of an input, whose numbers are no results of sums."""
        v = self.values[0]
        a, said = self.axis(v)
        if self.rand.random() < 0.5 or v.least(a) < 2:
            index = self.node("ArgMax", v, axis=said, keepdims=1)
            return self.one(self.stretch(v, a, (1,) * RUNS), "Cast", index, to=F)
        k = self.rand.randint(1, v.least(a))
        return [Value(self.node("TopK", v, self.ints(k), outputs=2, axis=said)[0], self.stretch(v, a, k))]

    def form_trilu(self, v):
        return self.one(v.dims, "Trilu", v, upper=self.rand.randint(0, 1)) if len(v.dims) >= 2 else None

    def form_mask(self, v):
        """A causal mask over two dimensions, of comparisons."""
        if len(v.dims) < 2:
            return None
        rows, columns = (self.node("Range", self.const(np.int64(0)), self.node("Squeeze", self.size(v, len(v.dims) - k), self.ints(0)),
                                   self.const(np.int64(1))) for k in (2, 1))
        seen = self.node("LessOrEqual", self.node("Unsqueeze", columns, self.ints(0)), self.node("Unsqueeze", rows, self.ints(1)))
        return self.one(v.dims, "Where", seen, v, self.const(np.float32(-1)))

    def form_einsum(self, v):
        if len(v.dims) != 3:
            return None
        y = self.node("Einsum", v, self.node("Tanh", v), equation="bij,bkj->bik")
        return self.one([v.dims[0], v.dims[1], v.dims[1]], "Tanh", y)

    def form_recurrent(self, v):
        if len(v.dims) != 3 or v.fixed(2) is None:
            return None
        op, n = self.rand.choice([("LSTM", 4), ("GRU", 3)])
        hidden = self.rand.choice([1, 4, 8])
        y = self.node(op, v, self.weight(1, n * hidden, v.fixed(2)), self.weight(1, n * hidden, hidden), hidden_size=hidden)
        return self.one([v.dims[0], v.dims[1], hidden], "Squeeze", y, self.ints(1))

    def form_loop(self, v):
        """As many turns as a dimension says."""
        if not v.dims:
            return None
        turns = self.node("Squeeze", self.node("Mod", self.size(v, 0), self.ints(3)), self.ints(0))
        body = helper.make_graph(
            [helper.make_node("Sin", ["v"], ["s"]), helper.make_node("Identity", ["go"], ["on"])], "body",
            [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("go", B, []), helper.make_tensor_value_info("v", F, None)],
            [helper.make_tensor_value_info("on", B, []), helper.make_tensor_value_info("s", F, None)])
        return self.one(v.dims, "Loop", turns, self.const(np.array(True)), v, body=body)

    def form_branch(self, v):
        """By whether a dimension is large."""
        if not v.dims:
            return None
        large = self.node("Squeeze", self.node("Greater", self.size(v, 0), self.ints(2)), self.ints(0))
        sides = [helper.make_graph([helper.make_node(op, [v.name], [f"{op}_{len(self.nodes)}"])], op, [],
                                   [helper.make_tensor_value_info(f"{op}_{len(self.nodes)}", F, None)]) for op in ("Sin", "Neg")]
        self.used.add(v.name)
        return self.one(v.dims, "If", large, then_branch=sides[0], else_branch=sides[1])

    # ---- the model

    def finish(self):
        outputs = [v for v in self.values if v.name not in self.used and v.name not in self.inputs]
        outputs += [v for v in self.values if v.name in self.used and v.name not in self.inputs and self.rand.random() < 0.1]
        if not outputs:
            outputs = self.form_unary(self.values[0])
        infos = [helper.make_tensor_value_info(n, F, dims) for n, dims in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "shapes", infos, [helper.make_tensor_value_info(v.name, F, None) for v in outputs], self.weights)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def feeds(self, run):
        shapes = {n: [self.names[d][run] if isinstance(d, str) else d for d in dims] for n, dims in self.inputs.items()}
        return {n: self.rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
