"""Operators of domain com.microsoft, which the reader replaces by ONNX's own: over a grid of attributes, types and optional
operands, against ONNX Runtime. What it does not run is compared with numpy.
timeout: 900
"""
import numpy as np
import onnx_files as files
import pytest
from onnx import helper

MS = "com.microsoft"
F32, F16 = np.float32, np.float16
RNG = np.random.default_rng(21)


def floats(*shape, dtype=F32, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(dtype)


def numbers(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def half_range(dtype, *shape):
    """int8 of half the range: where a CPU has no VNNI, ONNX Runtime's sums of two products with uint8 stop at 16 bits."""
    return numbers(dtype, *shape) // 2 if dtype == np.int8 else numbers(dtype, *shape)


def node(op, inputs, outputs=("y",), domain=MS, **attrs):
    """Named after its first result: the_y."""
    return helper.make_node(op, list(inputs), list(outputs), name=f"the_{outputs[0]}", domain=domain, **attrs)


def model(nodes, inputs, tensors=None, outputs=None, opset=17):
    proto = files.model(nodes, inputs, outputs or {"y": (F32, None)}, tensors, opset=opset, ir=10)
    proto.opset_import.append(helper.make_opsetid(MS, 1))
    return proto


def typed(outputs, dtype=F32):
    return {name: (dtype, None) for name in outputs}


def activations():
    for dtype in (F32, F16):
        x = {"x": floats(2, 3, 8, dtype=dtype)}
        for op, rest in (("Gelu", {}), ("QuickGelu", {}), ("QuickGelu", {"alpha": 1.0}), ("FastGelu", {})):
            if op == "Gelu" and dtype == F16:
                continue  # ONNX Runtime has none on a CPU
            yield f"{op}-{dtype.__name__}-{len(rest)}", [node(op, "x", **rest)], x, {}, typed("y", dtype)
    x = {"x": floats(2, 3, 8)}
    yield "BiasGelu", [node("BiasGelu", "xb")], x, {"b": floats(8)}, None
    yield "FastGelu-bias", [node("FastGelu", "xb")], x, {"b": floats(8)}, None


def norms():
    gamma = {"g": floats(8), "b": floats(8), "c": floats(8)}
    for skip in ((2, 3, 8), (1, 3, 8), (3, 8)):
        x = {"x": floats(2, 3, 8), "s": floats(*skip)}
        for inputs in (("x", "s", "g"), ("x", "s", "g", "b"), ("x", "s", "g", "b", "c"), ("x", "s", "g", "", "c")):
            for outputs in (("y",), ("y", "", "", "z")):
                for eps in ({}, {"epsilon": 0.1}):
                    yield (f"SkipLN{len(skip)}-{skip[0]}-{'.'.join(inputs)}-{len(outputs)}-{len(eps)}",
                           [node("SkipLayerNormalization", inputs, outputs, **eps)], x, gamma, typed(o for o in outputs if o))
        for inputs in (("x", "s", "g"), ("x", "s", "g", "c")):
            for outputs in (("y",), ("y", "", "", "z")):
                yield (f"SkipRMS{len(skip)}-{skip[0]}-{len(inputs)}-{len(outputs)}",
                       [node("SkipSimplifiedLayerNormalization", inputs, outputs)], x, gamma, typed(o for o in outputs if o))
    for eps in ({}, {"epsilon": 0.1}, {"axis": -1}):
        yield (f"RMS-{len(eps)}-{'axis' in eps}", [node("SimplifiedLayerNormalization", "xg", domain="", **eps)],
               {"x": floats(2, 3, 8)}, gamma, None)
    ids = {"i": RNG.integers(0, 11, (2, 5)).astype(np.int32), "t": RNG.integers(0, 2, (2, 5)).astype(np.int32),
           "m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32), "p": RNG.integers(0, 6, (2, 5)).astype(np.int32)}
    tables = {"w": floats(11, 8), "q": floats(6, 8), "r": floats(2, 8), "g": floats(8), "b": floats(8)}
    for name, inputs in (("all", "itwqrgbmp"), ("no-mask", ["i", "t", "w", "q", "r", "g", "b"]),
                         ("no-segment", ["i", "", "w", "q", "", "g", "b", "m"]),
                         ("positions", ["i", "t", "w", "q", "r", "g", "b", "", "p"])):
        used = {k: v for k, v in ids.items() if k in inputs}
        outputs = {"y": (F32, None), "n": (np.int32, None), "z": (F32, None)}
        yield f"Embed-{name}", [node("EmbedLayerNormalization", inputs, ("y", "n", "z"))], used, tables, outputs


def products():
    for a, b in (((2, 3, 4), (2, 4, 5)), ((3, 4), (4, 5)), ((2, 2, 3, 4), (2, 2, 4, 5))):
        for ta in (0, 1):
            for tb in (0, 1):
                for alpha in (1.0, 0.125):
                    x = {"a": floats(*(a[:-2] + (a[:-3:-1] if ta else a[-2:])))}
                    w = {"b": floats(*(b[:-2] + (b[:-3:-1] if tb else b[-2:])))}
                    yield (f"FusedMatMul-{len(a)}-{ta}{tb}-{alpha}",
                           [node("FusedMatMul", "ab", transA=ta, transB=tb, alpha=alpha)], x, w, None)
    yield ("FusedMatMul-batch", [node("FusedMatMul", "ab", transBatchA=1, transBatchB=1)],
           {"a": floats(3, 2, 4), "b": floats(4, 2, 5)}, {}, None)
    yield ("FusedMatMul-rank-unknown", [helper.make_node("Reshape", ["a", "s"], ["r"]),
                                        node("FusedMatMul", "rb", transB=1, alpha=0.5)],
           {"a": floats(6, 4), "s": np.array([2, 3, 4], np.int64), "b": floats(2, 5, 4)}, {}, None)
    for act in ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.2}, {"activation": "Tanh"},
                {"activation": "Sigmoid"}, {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4}):
        yield (f"FusedGemm-{act['activation']}", [node("FusedGemm", "abc", transB=1, alpha=0.5, beta=2.0, **act)],
               {"a": floats(3, 4)}, {"b": floats(5, 4), "c": floats(5)}, None)
    conv = {"x": floats(2, 4, 6, 6)}, {"w": floats(8, 4, 3, 3), "b": floats(8), "z": floats(2, 8, 6, 6)}
    for act in ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.2]}, {"activation": "Tanh"},
                {"activation": "Clip", "activation_params": [-0.5, 0.5]}, {"activation": "Sigmoid"},
                {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}, {}):
        for inputs in (("x", "w"), ("x", "w", "b"), ("x", "w", "b", "z"), ("x", "w", "", "z")):
            if "z" in inputs and act.get("activation") not in ("Relu", None):
                continue
            yield (f"FusedConv-{act.get('activation')}-{'.'.join(inputs)}",
                   [node("FusedConv", inputs, pads=[1, 1, 1, 1], kernel_shape=[3, 3], **act)], *conv, None)


def attentions():
    b, s, n, h = 2, 5, 3, 4
    d = n * h
    mask2 = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    masks = {"none": None, "2d": mask2, "ends": np.array([3, 5], np.int32), "ends-starts": np.array([3, 5, 1, 0], np.int32),
             "3d": np.broadcast_to(np.tril(np.ones((s, s), np.int32)), (b, s, s)).copy()}
    for name, mask in masks.items():
        for uni in (0, 1):
            for extra in ("", "bias", "scale"):
                inputs = ["x", "w", "c", "m" if mask is not None else "", "", "e" if extra == "bias" else ""]
                x = {"x": floats(b, s, 7)} | ({"m": mask} if mask is not None else {})
                if extra == "bias":
                    x["e"] = floats(b, n, s, s)
                attrs = {"scale": 0.3} if extra == "scale" else {}
                yield (f"Attention-{name}-{uni}-{extra}", [node("Attention", inputs, num_heads=n, unidirectional=uni, **attrs)],
                       x, {"w": floats(7, 3 * d), "c": floats(3 * d)}, None)
    yield ("Attention-sizes", [node("Attention", "xwc", num_heads=n, qkv_hidden_sizes=[d, d, 2 * d])],
           {"x": floats(b, s, 7)}, {"w": floats(7, 4 * d), "c": floats(4 * d)}, None)
    for uni in (0, 1):
        yield (f"Attention-past-{uni}", [node("Attention", ["x", "w", "c", "", "p"], ("y", "q"), num_heads=n, unidirectional=uni)],
               {"x": floats(b, s, 7), "p": floats(2, b, n, 4, h)}, {"w": floats(7, 3 * d), "c": floats(3 * d)}, typed("yq"))
    qkv = {"q": floats(b, s, d), "k": floats(b, 6, d), "v": floats(b, 6, d)}
    padding = {"2d": np.array([[1, 1, 1, 1, 0, 0], [1] * 6], np.int32), "ends": np.array([4, 6], np.int32), "none": None}
    for name, mask in padding.items():
        for bias in (False, True):
            for extra in ({}, {"scale": 0.2}, {"mask_filter_value": -5.0}):
                inputs = ["q", "k", "v", "c" if bias else "", "m" if mask is not None else ""]
                yield (f"MHA-{name}-{bias}-{'.'.join(extra)}", [node("MultiHeadAttention", inputs, num_heads=n, **extra)],
                       qkv | ({"m": mask} if mask is not None else {}), {"c": floats(3 * d)}, None)
    same = {"q": floats(b, s, d), "k": floats(b, s, d), "v": floats(b, s, d)}
    yield "MHA-causal", [node("MultiHeadAttention", "qkv", num_heads=n, unidirectional=1)], same, {}, None
    yield ("MHA-bias", [node("MultiHeadAttention", ["q", "k", "v", "", "", "e"], num_heads=n)], qkv | {"e": floats(1, n, s, 6)},
           {}, None)
    yield ("MHA-wide-values", [node("MultiHeadAttention", "qkvc", num_heads=n)], qkv | {"v": floats(b, 6, 2 * d)},
           {"c": floats(4 * d)}, None)
    past = {"k0": floats(b, n, 3, h), "v0": floats(b, n, 3, h)}
    yield ("MHA-past", [node("MultiHeadAttention", ["q", "k", "v", "", "", "", "k0", "v0"], ("y", "k1", "v1"), num_heads=n)],
           same | past, {}, typed(("y", "k1", "v1")))
    yield ("MHA-cross", [node("MultiHeadAttention", "qkv", num_heads=n)],
           {"q": floats(b, s, d), "k": floats(b, n, 6, h), "v": floats(b, n, 6, h)}, {}, None)


def quantised_attentions():
    b, s, n, d = 2, 5, 3, 12
    mask = {"none": None, "2d": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32), "ends": np.array([3, 5], np.int32)}
    for name, m in mask.items():
        for uni in (0, 1):
            for dtype in (np.uint8, np.int8):
                for columns in (False, True):
                    t = {"w": half_range(dtype, 8, 3 * d), "c": floats(3 * d), "xs": F32(0.02), "xz": np.uint8(120),
                         "ws": np.abs(floats(3 * d)) * F32(0.01) if columns else F32(0.01),
                         "wz": numbers(dtype, 3 * d) if columns else dtype(5)}
                    names = ["x", "w", "c", "xs", "ws", "m" if m is not None else "", "xz", "wz"]
                    yield (f"QAttention-{name}-{uni}-{dtype.__name__}-{int(columns)}",
                           [node("QAttention", names, num_heads=n, unidirectional=uni)],
                           {"x": numbers(np.uint8, b, s, 8)} | ({"m": m} if m is not None else {}), t, None)
    ids = {"i": RNG.integers(0, 11, (2, 5)).astype(np.int32), "t": RNG.integers(0, 2, (2, 5)).astype(np.int32),
           "m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)}
    tables = {"w": numbers(np.uint8, 11, 8), "q": numbers(np.uint8, 6, 8), "r": numbers(np.uint8, 2, 8),
              "g": numbers(np.uint8, 8), "b": numbers(np.uint8, 8)}
    scales = {k + "s": F32(0.01 + 0.003 * i) for i, k in enumerate("wqrgb")} | {k + "z": np.uint8(100 + i) for i, k in enumerate("wqrgb")}
    names = ["i", "t", "w", "q", "r", "g", "b", "m"] + [k + "s" for k in "wqrgb"] + [k + "z" for k in "wqrgb"]
    yield ("QEmbed", [node("QEmbedLayerNormalization", names, ("y", "n"))], ids, tables | scales,
           {"y": (F32, None), "n": (np.int32, None)})
    for dirs, direction in ((1, "forward"), (2, "bidirectional"), (1, "reverse")):
        for dtype in (np.uint8, np.int8):
            for columns in (False, True):
                shape = (dirs, 16) if columns else (dirs,)
                zero = np.zeros(shape, dtype) if columns or dtype == np.int8 else np.full(shape, 128, dtype)
                t = {"w": half_range(dtype, dirs, 3, 16), "r": half_range(dtype, dirs, 4, 16), "b": floats(dirs, 32, scale=0.2), "wz": zero,
                     "rz": zero, "ws": np.full(shape, 0.004, F32), "rs": np.full(shape, 0.003, F32)}
                yield (f"DynamicQuantizeLSTM-{direction}-{dtype.__name__}-{int(columns)}",
                       [node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ("y", "h", "c"),
                             hidden_size=4, direction=direction)], {"x": floats(6, 2, 3)}, t, typed("yhc"))


def caches(rows, half):
    angles = np.arange(rows)[:, None] / 100.0 ** (np.arange(half) / half)
    return {"cos": np.cos(angles).astype(F32), "sin": np.sin(angles).astype(F32)}


def decoders():
    tables = caches(32, 8)
    for inter in (0, 1):
        for name, x in (("3d", floats(2, 5, 32)), ("4d", floats(2, 2, 5, 16))):
            for kind, p in (("rows", RNG.integers(0, 32, (2, 5))), ("offset", np.array([7]))):
                yield (f"Rotary-{name}-{kind}-{inter}", [node("RotaryEmbedding", ["x", "p", "cos", "sin"], interleaved=inter)],
                       {"x": x, "p": p.astype(np.int64)}, tables, None)
    yield ("Rotary-part", [node("RotaryEmbedding", ["x", "p", "cos", "sin"], rotary_embedding_dim=16, num_heads=2)],
           {"x": floats(2, 5, 48), "p": RNG.integers(0, 32, (2, 5)).astype(np.int64)}, tables, None)

    def gqa(name, b, s, total, lengths, past, n=4, kv=2, h=16, packed=False, rotary=0, inputs=(), **attrs):
        x = {"q": floats(b, s, (n + 2 * kv) * h if packed else n * h), "seq": np.array(lengths, np.int32) - 1,
             "total": np.array(total, np.int32)}
        names = ["q", "", "", "", "", "seq", "total"]
        if not packed:
            x |= {"k": floats(b, s, kv * h), "v": floats(b, s, kv * h)}
            names[1:3] = "k", "v"
        if past is not None:
            x |= {"k0": floats(b, kv, past, h), "v0": floats(b, kv, past, h)}
            names[3:5] = "k0", "v0"
        if rotary:
            names += ["cos", "sin"]
        attrs |= {"do_rotary": rotary} if rotary else {}
        return (f"GQA-{name}", [node("GroupQueryAttention", names, ("y", "k1", "v1"), num_heads=n, kv_num_heads=kv, **attrs)],
                x, tables if rotary else {}, typed(("y", "k1", "v1")))
    for packed in (False, True):
        for rotary in (0, 1):
            for extra in ({}, {"scale": 0.2}, {"softcap": 2.0}, {"local_window_size": 3}):
                key = f"{int(packed)}{rotary}-{'.'.join(extra)}"
                yield gqa("prompt-" + key, 1, 6, 6, [6], None, packed=packed, rotary=rotary, **extra)
                yield gqa("empty-" + key, 2, 6, 6, [6, 6], 0, packed=packed, rotary=rotary, **extra)
                yield gqa("step-" + key, 2, 1, 8, [8, 8], 7, packed=packed, rotary=rotary, **extra)
                yield gqa("chunk-" + key, 1, 3, 8, [8], 5, packed=packed, rotary=rotary, **extra)
    yield gqa("interleaved", 1, 6, 6, [6], None, rotary=1, rotary_interleaved=1)


def quanta(*pairs):
    """Scales and zero points, as tensors."""
    return {f"{name}{k}": v for name, scale, zero in pairs for k, v in (("s", F32(scale)), ("z", zero))}


def quantised():
    for dtype in (np.uint8, np.int8):
        zero = (dtype(3), dtype(-2) if dtype == np.int8 else dtype(120), dtype(7))
        three = quanta(("a", 0.03, zero[0]), ("b", 0.02, zero[1]), ("y", 0.05, zero[2]))
        out = typed("y", dtype)
        name = dtype.__name__
        for op in ("Add", "Mul"):
            for shape in ((2, 3, 4), (4,), ()):
                yield (f"QLinear{op}-{name}-{len(shape)}",
                       [node("QLinear" + op, ["a", "as", "az", "b", "bs", "bz", "ys", "yz"])],
                       {"a": numbers(dtype, 2, 3, 4), "b": numbers(dtype, *shape)}, three, out)
        one = {"a": numbers(dtype, 2, 3, 6, 6)}
        for op, attrs in (("LeakyRelu", {"alpha": 0.2}), ("Sigmoid", {}), ("GlobalAveragePool", {}),
                          ("GlobalAveragePool", {"channels_last": 1}), ("Softmax", {"axis": -1, "opset": 13}),
                          ("Softmax", {"axis": 1, "opset": 11}), ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                          ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
                          ("AveragePool", {"kernel_shape": [2, 2], "channels_last": 1}),
                          ("ReduceMean", {"axes": [2, 3], "keepdims": 1})):
            if op == "Softmax":
                y = quanta(("a", 0.03, zero[0]), ("y", 1 / 256, dtype(0) if dtype == np.uint8 else dtype(-128)))
            elif op == "Sigmoid":
                y = quanta(("a", 0.03, zero[0]), ("y", 1 / 256, zero[2]))
            else:
                y = three
            if op == "ReduceMean":
                continue  # ONNX Runtime has none on a CPU
            key = ".".join(f"{k}{v}" for k, v in attrs.items()).replace(" ", "")
            yield (f"QLinear{op}-{name}-{key}", [node("QLinear" + op, ["a", "as", "az", "ys", "yz"], **attrs)], one, y, out)
        yield (f"QLinearConcat-{name}", [node("QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], axis=1)],
               {"a": numbers(dtype, 2, 3, 4), "b": numbers(dtype, 2, 2, 4)}, three, out)
        yield (f"QLinearWhere-{name}", [node("QLinearWhere", ["c", "a", "as", "az", "b", "bs", "bz", "ys", "yz"])],
               {"c": RNG.random((2, 3, 4)) < 0.5, "a": numbers(dtype, 2, 3, 4), "b": numbers(dtype, 2, 3, 4)}, three, out)
        yield (f"QLinearConv-{name}", [node("QLinearConv", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], channels_last=1,
                                            kernel_shape=[3, 3])],
               {"a": numbers(dtype, 1, 6, 6, 4)}, three | {"b": numbers(dtype, 8, 4, 3, 3), "ys": F32(4.0)}, out)
        b = {"b": numbers(dtype, 6, 5), "c": RNG.integers(-2000, 2000, 5).astype(np.int32), "ys": F32(4.0)}
        for trans in (0, 1):
            for columns in (False, True):
                w = three | b | ({"b": b["b"].T.copy()} if trans else {})
                if columns:
                    w |= {"bs": np.abs(floats(5)) + F32(0.01), "bz": np.zeros(5, dtype)}
                for inputs in (["a", "as", "az", "b", "bs", "bz", "c", "ys", "yz"], ["a", "as", "az", "b", "bs", "bz", "c"],
                               ["a", "as", "az", "b", "bs", "bz"]):
                    yield (f"QGemm-{name}-{trans}{int(columns)}{len(inputs)}",
                           [node("QGemm", inputs, transB=trans, alpha=0.5)], {"a": numbers(dtype, 3, 6)}, w,
                           typed("y", dtype if len(inputs) == 9 else F32))
        for columns in (False, True):
            w = {"b": half_range(dtype, 6, 5), "bs": np.abs(floats(5)) if columns else F32(0.02),
                 "bz": numbers(dtype, 5) if columns else zero[1], "bias": floats(5)}
            for inputs in (["a", "b", "bs"], ["a", "b", "bs", "bz"], ["a", "b", "bs", "bz", "bias"], ["a", "b", "bs", "", "bias"]):
                yield (f"DynamicQuantizeMatMul-{name}-{int(columns)}-{'.'.join(inputs)}",
                       [node("DynamicQuantizeMatMul", inputs)], {"a": floats(2, 3, 6)}, w, "numpy")
            w["as"], w["az"] = F32(0.03), dtype(5)
            for inputs in (["a", "b", "as", "bs"], ["a", "b", "as", "bs", "az", "bz", "bias"], ["a", "b", "as", "bs", "", "", "bias"]):
                yield (f"MatMulIntegerToFloat-{name}-{int(columns)}-{len(inputs)}",
                       [node("MatMulIntegerToFloat", inputs)], {"a": numbers(dtype, 2, 3, 6)}, w, None)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        z = quanta(("x", 0.03, dtype(9)))
        yield (f"Quantize-{dtype.__name__}", [node("QuantizeLinear", ["x", "xs", "xz"])], {"x": floats(3, 4)}, z, typed("y", dtype))
        yield (f"Dequantize-{dtype.__name__}", [node("DequantizeLinear", ["x", "xs", "xz"])], {"x": numbers(dtype, 3, 4)}, z, None)


def packed(q, bits):
    """Numbers of few bits along the last dimension, the first in the lowest bits of a byte."""
    each = 8 // bits
    q = np.concatenate([q, np.zeros(q.shape[:-1] + (-q.shape[-1] % each,), q.dtype)], -1).astype(np.uint8)
    parts = q.reshape(*q.shape[:-1], -1, each)
    return sum((parts[..., i] << (bits * i)).astype(np.uint8) for i in range(each)).astype(np.uint8)


def weights():
    for bits in (4, 8, 2):
        for k, block in ((32, 16), (40, 16), (64, 32)):
            kb = -(-k // block)
            n = 6
            q = RNG.integers(0, 2 ** bits, (n, kb * block))
            z = RNG.integers(0, 2 ** bits, (n, kb))
            w = {"b": packed(q, bits).reshape(n, kb, -1), "s": floats(n, kb, scale=0.1), "z": packed(z, bits), "c": floats(n),
                 "f": floats(n, kb, scale=2.0)}
            for inputs in (["a", "b", "s"], ["a", "b", "s", "z"], ["a", "b", "s", "z", "", "c"], ["a", "b", "s", "f"]):
                for flat in (False, True):
                    if (flat and len(inputs) < 4) or (bits == 2 and "f" in inputs) or (bits == 8 and "f" in inputs):
                        continue
                    t = w | ({"s": w["s"].reshape(-1), "z": w["z"].reshape(-1)} if flat else {})
                    yield (f"MatMulNBits-{bits}-{k}-{block}-{'.'.join(inputs)}-{int(flat)}",
                           [node("MatMulNBits", inputs, K=k, N=n, bits=bits, block_size=block)], {"a": floats(2, 3, k)}, t, None)
    q, z = RNG.integers(0, 16, (7, 64)), RNG.integers(0, 16, (7, 4))
    t = {"d": packed(q, 4), "s": np.abs(floats(7, 4)), "z": packed(z, 4)}
    for inputs in (["d", "i", "s"], ["d", "i", "s", "z"]):
        for shape in ((3,), (2, 3), ()):
            yield (f"GatherBlockQuantized-{len(inputs)}-{len(shape)}",
                   [node("GatherBlockQuantized", inputs, block_size=16, quantize_axis=1)],
                   {"i": RNG.integers(0, 7, shape).astype(np.int64)}, t, None)
    for bits in (8,):
        t8 = {"d": numbers(np.uint8, 7, 64), "s": np.abs(floats(7, 4)), "z": numbers(np.uint8, 7, 4)}
        for inputs in (["d", "i", "s"], ["d", "i", "s", "z"]):
            yield (f"GatherBlockQuantized-8-{len(inputs)}",
                   [node("GatherBlockQuantized", inputs, block_size=16, quantize_axis=1, bits=8)],
                   {"i": np.array([[0, 6], [3, 3]], np.int64)}, t8, None)


def experts():
    """What ONNX Runtime's cpu kernels take; test_experts.py has the rest."""
    e, d, n = 4, 32, 64
    x = {"x": floats(2, 3, d), "r": floats(6, e, scale=2.0)}
    for kind, fused in (("relu", 1), ("gelu", 1), ("silu", 1), ("identity", 1), ("swiglu", 2)):
        attrs = {"activation_type": kind, "swiglu_fusion": fused - 1, "activation_alpha": 1.702, "activation_beta": 1.0, "k": 2}
        attrs |= {"swiglu_limit": 0.7} if fused == 2 else {}
        w = {"w1": floats(e, n * fused, d, scale=0.2), "w2": floats(e, d, n, scale=0.2), "b1": floats(e, n * fused), "b2": floats(e, d)}
        for normalise in (0, 1):
            yield (f"MoE-{kind}-{normalise}", [node("MoE", ["x", "r", "w1", "b1", "w2", "b2"], normalize_routing_weights=normalise, **attrs)],
                   x, w, None)
        for bits, block in ((4, 0), (4, 16), (8, 0), (4, 32)):
            q = {"w1": numbers(np.uint8, e, n * fused, d * bits // 8), "w2": numbers(np.uint8, e, d, n * bits // 8), "b1": w["b1"], "b2": w["b2"]}
            for k, (rows, depth) in enumerate(((n * fused, d), (d, n))):
                q[f"s{k + 1}"] = np.abs(floats(e, rows, *((depth // block,) if block else ()), scale=2.0 ** -bits))
            yield (f"QMoE-{kind}-{bits}-{block}", [node("QMoE", ["x", "r", "w1", "s1", "b1", "w2", "s2", "b2"], normalize_routing_weights=1,
                    expert_weight_bits=bits, **attrs, **({"block_size": block} if block else {}))], x, q, None)


CASES = {c[0]: c[1:] for family in (activations, norms, products, attentions, quantised_attentions, decoders, quantised, weights, experts) for c in family()}


def judge(got, want, key):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape, (g.dtype, g.shape, w.dtype, w.shape)
        if w.dtype.kind == "f":
            half = w.dtype == F16
            if key.startswith("DynamicQuantizeLSTM"):  # ONNX Runtime quantises x and the hidden state
                np.testing.assert_allclose(g, w, atol=0.03)
                continue
            loose = key.startswith("MatMulNBits") or "MoE-" in key or key.startswith("FastGelu") or key.startswith("Gelu")
            np.testing.assert_allclose(g, w, rtol=4e-3 if half else 1e-3 if loose else 1e-4, atol=4e-3 if half else 1e-3 if loose else 2e-5)
        else:
            assert np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0) <= (1 if w.dtype.itemsize == 1 else 0)


@pytest.mark.parametrize("key", sorted(CASES))
def test_against_onnx_runtime(key, tmp_path):
    nodes, inputs, tensors, outputs = CASES[key]
    proto = model(nodes, inputs, tensors, outputs if isinstance(outputs, dict) else None)
    got = files.run(files.save(tmp_path, proto), inputs)
    judge(got, files.expected(proto, inputs), key)
