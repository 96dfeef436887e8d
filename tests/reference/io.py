"""Reads and writes graph JSON, parameter blobs and npy files, independently of Heddle's own readers and writers.
The blob is TVM's parameter list as described from its sources: little-endian, no padding, device always cpu 0."""

import json
import pathlib
import struct

import numpy as np

LIST_MAGIC, ARRAY_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
OTHERS = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
          "float8_e8m0fnu": 14}  # DLPack's numbers of types that numpy does not have
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


def write_graph(path, graph):
    """JSON with one node a line; infinities and NaN are refused (the dialect writes them as strings)."""
    parts = []
    for key, value in graph.items():
        text = json.dumps(value, allow_nan=False)
        if key == "nodes":
            text = "[\n" + ",\n".join("  " + json.dumps(n, allow_nan=False) for n in value) + "]"
        parts.append(f" {json.dumps(key)}: {text}")
    pathlib.Path(path).write_bytes(("{\n" + ",\n".join(parts) + "\n}\n").encode())


def read_graph(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def params_blob(params):
    """The bytes of a parameter list, in the order of the dict."""
    names = [name.encode() for name in params]
    out = [struct.pack("<QQQ", LIST_MAGIC, 0, len(names))]
    out += [struct.pack("<Q", len(n)) + n for n in names]
    out.append(struct.pack("<Q", len(names)))
    for value in params.values():
        value = np.asarray(value)
        little = value.dtype if value.dtype.name in OTHERS else value.dtype.newbyteorder("<")
        data = value.astype(little).tobytes("C")
        bits = 8 * value.dtype.itemsize
        out.append(struct.pack("<QQii", ARRAY_MAGIC, 0, 1, 0))
        code = OTHERS.get(value.dtype.name, CODES.get(value.dtype.kind))
        out.append(struct.pack("<iBBH", value.ndim, code, bits, 1))
        out.append(struct.pack(f"<{value.ndim + 1}q", *value.shape, len(data)) + data)
    return b"".join(out)


def write_params(path, params):
    pathlib.Path(path).write_bytes(params_blob(params))


def parse_params(data):
    """The dict of a parameter list's bytes; ValueError where they are not exactly one."""
    at = 0

    def take(form):
        nonlocal at
        try:
            got = struct.unpack_from("<" + form, data, at)
        except struct.error:
            raise ValueError(f"parameter list: cut short at byte {at} of {len(data)}") from None
        at += struct.calcsize("<" + form)
        return got

    magic, _, count = take("QQQ")
    if magic != LIST_MAGIC:
        raise ValueError(f"not a parameter list: magic {magic:#x}")
    names = []
    for _ in range(count):
        (length,) = take("Q")
        if length > len(data) - at:
            raise ValueError(f"parameter list: a name of {length} bytes at byte {at} of {len(data)}")
        names.append(bytes(data[at : at + length]).decode())
        at += length
    if take("Q")[0] != count:
        raise ValueError("parameter list: two counts that differ")
    kinds, params = {code: kind for kind, code in CODES.items()}, {}
    for name in names:
        magic, _, device, _, ndim = take("QQiii")
        code, bits, lanes = take("BBH")
        if magic != ARRAY_MAGIC or device != 1 or lanes != 1 or code not in kinds or bits % 8 or not 0 <= ndim <= 64:
            raise ValueError(f"parameter list: bad record of {name}")
        *shape, size = take(f"{ndim + 1}q")
        dtype = np.dtype(f"<{kinds[code]}{bits // 8}")
        wanted = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if min(shape, default=0) < 0 or size != wanted or size > len(data) - at:
            raise ValueError(f"parameter list: {name} has shape {shape} and {size} bytes")
        params[name] = np.frombuffer(data, dtype, size // dtype.itemsize, at).reshape(shape)
        at += size
    if at != len(data):
        raise ValueError(f"parameter list: {len(data) - at} bytes left over")
    return params


def read_params(path):
    return parse_params(pathlib.Path(path).read_bytes())


def write_npy(path, value):
    with open(path, "wb") as f:
        np.lib.format.write_array(f, np.ascontiguousarray(value).reshape(np.shape(value)), (1, 0), allow_pickle=False)


def read_npy(path):
    return np.load(path, allow_pickle=False)


def write_case(folder, graph, params, inputs):
    """Writes graph.json, graph.params and NAME.npy for each input; returns the path of the graph."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_graph(folder / "graph.json", graph)
    write_params(folder / "graph.params", params)
    for name, value in inputs.items():
        write_npy(folder / f"{name}.npy", value)
    return folder / "graph.json"
