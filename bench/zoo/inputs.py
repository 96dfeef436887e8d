"""Inputs for the zoo's models, and weights by seed for those that are kept without theirs."""
import json
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

SMALL = 64  # elements of tensors that are kept as they are: shapes, axes, scales


def feed_of(model):
    """Inputs by what the file declares: open dimensions are `batch` of the metadata or 2, numbers within its ranges."""
    meta = next((json.loads(p.value) for p in model.metadata_props if p.key == "zoo"), {})
    rng = np.random.default_rng(0)
    given = {t.name for t in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name in given:
            continue
        kind = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else meta.get("batch", 2) for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        bounds = meta.get(value.name)
        if dtype == object:
            feed[value.name] = rng.choice(np.array(["red", "green", "blue", "a quick fox", "the lazy dog"], object), shape)
        elif isinstance(bounds, str):
            feed[value.name] = np.sort(rng.integers(0, int(bounds.split()[1]), shape)).astype(dtype)
            feed[value.name].reshape(-1)[:1] = 0
        elif dtype.kind in "iu":
            low, high = bounds or (0, 10)
            feed[value.name] = rng.integers(low, high, shape).astype(dtype)
        elif dtype.kind == "b":
            feed[value.name] = rng.integers(0, 2, shape).astype(bool)
        elif bounds:
            feed[value.name] = rng.uniform(*bounds, shape).astype(dtype)
        else:
            feed[value.name] = rng.normal(size=shape).astype(dtype)
    return feed


def stripped(model):
    """The model without its larger weights: each is described by its mean, deviation and bounds."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.size <= SMALL or array.dtype.kind not in "fiu":
            continue
        numbers = array.astype(np.float64)
        keys = [numbers.mean(), numbers.std(), numbers.min(), numbers.max()]
        if array.dtype.kind != "f" and array.ndim < 2 or not np.isfinite(keys).all():
            continue  # positions: other numbers could lie outside
        shape, kind, name = list(tensor.dims), tensor.data_type, tensor.name
        tensor.Clear()
        tensor.dims.extend(shape)
        tensor.data_type, tensor.name = kind, name
        tensor.doc_string = "zoo " + json.dumps([float(f"{key:.6g}") for key in keys])
    return model


def filled(model):
    """A stripped model with weights that follow from the names of the tensors."""
    for tensor in model.graph.initializer:
        if not tensor.doc_string.startswith("zoo "):
            continue
        mean, deviation, least, most = json.loads(tensor.doc_string[4:])
        rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        numbers = np.clip(rng.normal(mean, deviation, list(tensor.dims)), least, most)
        if dtype.kind != "f":
            numbers = np.clip(np.rint(numbers), np.iinfo(dtype).min, np.iinfo(dtype).max)
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numbers.astype(dtype), name))
    return model
