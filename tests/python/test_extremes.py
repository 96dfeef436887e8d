"""Sizes that a model only states: huge windows, strides, pads, counts and axes, beside dimensions of 0, so that nothing of that
size is ever held. Each model is planned and run, or refused; the sanitizers of their builds look at every product. The
devices besides cpu take a part of the models, another one with HEDDLE_EXTREMES=N; 1 is all.

labels: ctypes
timeout: 300
"""
import os

import lavapipe
import pocl

pocl.in_process()
lavapipe.in_process()

import capi  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

HUGE, TALL = 65536, (1 << 31) - 1
MOST, LEAST = (1 << 63) - 1, -(1 << 63)
I64 = np.int64


def x(*shape, dtype="float32"):
    return np.dtype(dtype), shape


def ints(*numbers):
    return np.array(numbers, I64)


def windows():
    """Convolutions and pools of every family; in the weights' shapes and in the attributes."""
    for none in ((0, 4), (4, 0), (0, 0)):
        for size in (HUGE, TALL):
            kernel, w = [size] * 3, (none[1], none[0], size, size, size)
            for image in ((1, none[0], 1, 1, 1), (1, none[0], size, size, size), (0, none[0], 2, 2, 2), (1, none[0], 0, 0, 0)):
                pads = {"pads": [size - 1] * 6}
                for dtype in ("float32", "float64", "float16"):
                    yield "Conv", pads, [x(*image, dtype=dtype), x(*w, dtype=dtype)]
                    yield "ConvTranspose", {}, [x(*image, dtype=dtype), x(none[0], none[1], *w[2:], dtype=dtype)]
                yield "Conv", {**pads, "strides": [size] * 3, "dilations": [size] * 3}, [x(*image), x(*w)]
                yield "ConvTranspose", {"strides": [size] * 3, "dilations": [size] * 3}, [x(*image), x(none[0], none[1], *w[2:])]
                yield "ConvInteger", pads, [x(*image, dtype="uint8"), x(*w, dtype="uint8")]
                yield "DeformConv", {"kernel_shape": kernel[:2], "pads": [size - 1] * 4}, [
                    x(*image[:4]), x(none[1], none[0], size, size), x(1, 0, 1, 1)]
                for op in ("MaxPool", "AveragePool", "LpPool"):
                    for more in ({}, {"strides": [size] * 3}, {"dilations": [size] * 3}, {"ceil_mode": 1}, {"auto_pad": "SAME_UPPER"}):
                        if "auto_pad" not in more:
                            more = {**pads, **more}
                        yield op, {"kernel_shape": kernel, **more}, [x(*image)]
                        yield op, {"kernel_shape": kernel, **more}, [x(*image[:2], 3, 3, 3)]
    yield "Col2Im", {}, [x(1, 0, 0), ints(TALL, TALL), ints(TALL, TALL)]
    yield "Col2Im", {"strides": [TALL] * 2, "dilations": [TALL] * 2, "pads": [TALL] * 4}, [x(1, 0, 1), ints(TALL, TALL), ints(TALL, TALL)]
    yield "MaxUnpool", {"kernel_shape": [TALL] * 2, "strides": [TALL] * 2}, [x(1, 0, 1, 1), x(1, 0, 1, 1, dtype="int64")]
    yield "LRN", {"size": TALL}, [x(1, 3, 2, 2)]


def counts():
    """What makes a result of a stated size, or reads one."""
    for size in (HUGE, TALL, 1 << 62, MOST, LEAST, -1):
        yield "Tile", {}, [x(0, 2), ints(size, size)]
        yield "Tile", {}, [x(2, 2), ints(size, 0)]
        yield "Expand", {}, [x(0, 1), ints(0, size)]
        yield "Expand", {}, [x(1, 1), ints(size, size)]
        yield "ConstantOfShape", {}, [ints(size, 0, size)]
        yield "ConstantOfShape", {}, [ints(size, size)]
        yield "OneHot", {}, [x(0, dtype="int64"), np.array(size, I64), np.array([0, 1], np.float32)]
        yield "OneHot", {}, [x(3, dtype="int64"), np.array(size, I64), np.array([0, 1], np.float32)]
        yield "Range", {}, [np.array(0, I64), np.array(size, I64), np.array(1, I64)]
        yield "Range", {}, [np.array(size, I64), np.array(-size if size != LEAST else MOST, I64), np.array(-3, I64)]
        yield "Range", {}, [np.array(0, np.float32), np.array(size, np.float32), np.array(1e-30, np.float32)]
        yield "Resize", {}, [x(1, 1, 2, 2), None, None, ints(1, 1, size, size)]
        yield "Resize", {"mode": "cubic"}, [x(1, 0, 2, 2), None, None, ints(1, 0, size, size)]
        yield "Resize", {"mode": "linear"}, [x(1, 0, 2, 2), None, np.array([1, 1, size, size], np.float32)]
        yield "Reshape", {}, [x(0, 2), ints(0, size)]
        yield "Reshape", {"allowzero": 1}, [x(0, 2), ints(size, 0, size)]
        yield "Pad", {}, [x(0, 2), ints(0, size, 0, size)]
        yield "Pad", {"mode": "reflect"}, [x(2, 2), ints(size, 0, 0, size)]
        yield "Pad", {"mode": "wrap"}, [x(2, 2), ints(size, 0, 0, size)]
        yield "Slice", {}, [x(4, 0), ints(size, size), ints(-size if size != LEAST else MOST, LEAST), ints(0, 1), ints(size, -1)]
        yield "TopK", {}, [x(2, 3), ints(size)]
        yield "Split", {"axis": 0}, [x(4, 0), ints(size, size)]
        yield "CumSum", {}, [x(4, 0), np.array(size, I64)]
        yield "Gather", {}, [x(4, 0), ints(size)]
        yield "GatherND", {}, [x(4, 4), ints(size, size)]
        yield "GatherElements", {}, [x(4), ints(size)]
        yield "ScatterND", {}, [x(4), ints(size).reshape(1, 1), x(1)]
        yield "ScatterElements", {}, [x(4), ints(size), x(1)]
        yield "Trilu", {}, [x(3, 3), np.array(size, I64)]
        yield "EyeLike", {"k": size}, [x(3, 3)]
        yield "DepthToSpace", {"blocksize": size}, [x(1, 0, 1, 1)]
        yield "SpaceToDepth", {"blocksize": size}, [x(1, 1, 0, 0)]
        yield "CenterCropPad", {}, [x(2, 0), ints(size, size)]
        yield "ReverseSequence", {}, [x(2, 2), ints(size, size)]
        yield "DFT", {}, [x(1, 4, 1), np.array(size, I64), np.array(1, I64)]
        yield "STFT", {}, [x(1, 16, 1), np.array(size, I64), None, np.array(size, I64)]
        yield "AffineGrid", {}, [x(1, 2, 3), ints(1, 1, size, size)]
        yield "HannWindow", {}, [np.array(size, I64)]
        yield "MelWeightMatrix", {}, [np.array(size, I64), np.array(size, I64), np.array(8000, I64), np.array(0, np.float32), np.array(4000, np.float32)]
        yield "Unsqueeze", {}, [x(0, 2), ints(size)]
        yield "Squeeze", {}, [x(0, 1), ints(size)]
        yield "Flatten", {"axis": size}, [x(2, 0)]
        yield "Softmax", {"axis": size}, [x(2, 0)]
        yield "ReduceSum", {}, [x(2, 0), ints(size)]
        yield "Concat", {"axis": size}, [x(2, 0), x(2, 0)]
        yield "Transpose", {"perm": [size, 0]}, [x(2, 0)]
        yield "RoiAlign", {"output_height": size, "output_width": size}, [x(1, 1, 2, 2), x(0, 4), x(0, dtype="int64")]
        yield "RoiAlign", {"output_height": size, "output_width": 1, "sampling_ratio": size}, [x(1, 0, 2, 2), x(1, 4), ints(0)]
        yield "BlackmanWindow", {}, [np.array(size, I64)]
        yield "TfIdfVectorizer", {"min_gram_length": 1, "max_gram_length": size, "max_skip_count": size, "mode": "TF", "ngram_counts": [0],
                                  "ngram_indexes": [size], "pool_int64s": [1]}, [x(4, dtype="int64")]
        yield "GroupNormalization", {"num_groups": size}, [x(1, 0, 2), x(0), x(0)]
        yield "LayerNormalization", {"axis": size}, [x(2, 0), x(0)]
        yield "LSTM", {"hidden_size": size}, [x(0, 1, 0), x(1, 0, 0), x(1, 0, 0)]
        yield "NonMaxSuppression", {}, [x(0, 0, 4), x(0, 0, 0), ints(size)]
        yield "Shape", {"start": size, "end": -size if size != LEAST else MOST}, [x(2, 0)]
        yield "BitShift", {"direction": "LEFT"}, [np.array([1], np.uint64), np.array([size & MOST], np.uint64)]


def dimensions():
    """Products of dimensions beside one that is 0."""
    wide = (0, TALL, TALL, TALL)
    for op in ("Relu", "Softmax", "ReduceMax", "ArgMax", "CumSum", "Flatten", "Shape", "Size", "GlobalAveragePool", "GlobalMaxPool",
               "LpNormalization", "Hardmax", "NonZero", "Unique", "Transpose", "InstanceNormalization", "Dropout", "Det", "Trilu"):
        for shape in (wide, wide[::-1], (TALL, 0, TALL, TALL)):
            more = {"CumSum": [np.array(1, I64)], "InstanceNormalization": [x(shape[1]), x(shape[1])]}.get(op, [])
            yield op, {}, [x(*shape), *more]
            yield op, {"axis": 1} if op in ("Softmax", "ArgMax", "Unique", "LpNormalization", "Hardmax", "Flatten") else {}, [x(*shape, dtype="float64"), *more]
    yield "MatMul", {}, [x(0, TALL, TALL), x(0, TALL, TALL)]
    yield "MatMul", {}, [x(TALL, 0), x(0, 0)]
    yield "MatMul", {}, [x(TALL, TALL, 0, 2), x(1, 1, 2, 0)]
    yield "Gemm", {}, [x(0, TALL), x(TALL, 0)]
    yield "Einsum", {"equation": "abc,cde->abde"}, [x(0, TALL, TALL), x(TALL, TALL, 0)]
    yield "Add", {}, [x(0, TALL, 1, TALL), x(1, TALL, 1)]
    yield "Expand", {}, [x(1, 1, 1), ints(TALL, TALL, 0)]
    yield "Attention", {}, [x(0, 2, TALL, TALL), x(0, 2, TALL, TALL), x(0, 2, TALL, TALL)]


MODELS = [*windows(), *counts(), *dimensions()]


FLOAT, INT32, INT64 = "float32", "int32", "int64"
RESULTS = {**dict.fromkeys(["ArgMax", "Shape", "Size", "NonZero", "NonMaxSuppression"], [INT64]), "ConvInteger": [INT32],
           **dict.fromkeys(["OneHot", "ConstantOfShape", "HannWindow", "BlackmanWindow", "MelWeightMatrix", "TfIdfVectorizer"], [FLOAT]),
           "TopK": [None, INT64], "Split": [None, None], "Unique": [None, INT64, INT64, INT64]}


def model_of(op, attrs, operands):
    inputs, weights, names = [], [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, np.ndarray):
            weights.append(numpy_helper.from_array(operand, f"x{i}"))
        elif operand is not None:
            inputs.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(operand[0]), operand[1]))
    own = operands[0].dtype if isinstance(operands[0], np.ndarray) else operands[0][0]
    outputs = [helper.make_tensor_value_info(f"y{i}", helper.np_dtype_to_tensor_dtype(np.dtype(dtype or own)), None)
               for i, dtype in enumerate(RESULTS.get(op, [None]))]
    node = helper.make_node(op, names, [o.name for o in outputs], **attrs)
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def tried(ctx, path, operands, device):
    model = executor = None
    try:
        model = capi.Model.load(ctx, path, devices=device)
        executor = capi.Executor(model)
        for i, operand in enumerate(operands):
            if operand is not None and not isinstance(operand, np.ndarray):
                executor.set_input(f"x{i}", np.zeros(operand[1], operand[0]))
        executor.run(2_000_000_000)
        return True
    except (capi.HeddleError, ValueError, MemoryError):  # numpy makes no array of such a shape
        return False
    finally:
        for made in (executor, model):
            if made is not None:
                made.close()


def there():
    """The devices here, and of how many models each takes one."""
    part = int(os.environ.get("HEDDLE_EXTREMES", "16"))
    return {"cpu": 1, "sim:0": part, **({"opencl:0": part} if pocl.there() else {}),
            **({"vulkan:0": part} if lavapipe.there() else {})}


@pytest.mark.parametrize("part", range(4))
def test_they_run_or_are_refused(tmp_path, part):
    devices = there()
    ran = dict.fromkeys(devices, 0)
    ctx = capi.Context(config="off", limit__plan_seconds="2", limit__memory=",".join(f"{d}=64MiB" for d in ["cpu:0", *list(devices)[1:]]))
    for number, (op, attrs, operands) in enumerate(MODELS):
        if number % 4 != part:
            continue
        try:
            data = model_of(op, attrs, operands).SerializeToString()
        except (ValueError, OverflowError):
            continue
        path = tmp_path / "m.onnx"
        path.write_bytes(data)
        if os.environ.get("HEDDLE_VERBOSE"):
            print(op, attrs, [o if not isinstance(o, np.ndarray) else o.tolist() for o in operands], flush=True)
        for k, (device, one_of) in enumerate(devices.items()):
            if (number // 4 + k) % one_of == 0:
                ran[device] += tried(ctx, str(path), operands, device)
    ctx.close()
    print(ran)
    assert ran["cpu"] > 30
