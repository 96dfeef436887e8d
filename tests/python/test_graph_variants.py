"""Variants of one graph and of one params blob, well-formed and not: what the readers take, refuse, and write back.

tests/data/*/expect.json says `read` or `refuse` for each. Some can only be refused later, when the graph meets a
library, a device or an input: those the reader takes, and RUN_TIME names them with the reason. labels: ctypes
"""

import ctypes
import json
import os
import pathlib

import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
GRAPHS = DATA / "graph_json_variants"
PARAMS = DATA / "params_variants"

RUN_TIME = {
    "func_missing": "the library is asked for the function",
    "device_index_cuda_run_on_cpu": "the devices are asked for one of that type",
    "shape_input_other": "the input that is set has another shape",
    "wrong_shape_same_bytes": "the graph's input has another shape",
    "wrong_shape": "the graph's input has another shape",
    "wrong_dtype_same_bytes": "the graph's input has another dtype",
    "wrong_dtype_f64": "the graph's input has another dtype",
}

EFORMAT, EUNSUPPORTED, ELIMIT = 4, 7, 19


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("api_code", ctypes.c_int32), ("text", ctypes.c_char * 1016)]


@pytest.fixture(scope="module")
def heddle():
    build = os.environ.get("HEDDLE_BUILD")
    if not build:
        pytest.skip("HEDDLE_BUILD does not say where the library is")
    library = ctypes.CDLL(str(pathlib.Path(build) / "lib" / "libheddle.so"))
    library.heddle_graph_release.argtypes = [ctypes.c_void_p]
    library.heddle_params_release.argtypes = [ctypes.c_void_p]
    library.heddle_free.argtypes = [ctypes.c_void_p]
    library.heddle_free.restype = None
    return library


class Reader:
    """One kind of file: its load, its bytes back, its release."""

    def __init__(self, library, noun, writer):
        self.library, self.noun, self.writer = library, noun, writer

    def call(self, name, *arguments):
        return getattr(self.library, f"heddle_{self.noun}_{name}")(*arguments)

    def load(self, path):
        """(status, text of the error, what it was written back as or None)"""
        error, handle = Error(), ctypes.c_void_p()
        status = self.call("load", str(path).encode(), None, ctypes.byref(handle), ctypes.byref(error))
        if status != 0:
            assert not handle.value, "an object came with a failure"
            assert error.status == status
            return status, error.text.decode(), None
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert self.call(self.writer, handle, ctypes.byref(out), ctypes.byref(size), ctypes.byref(error)) == 0
        written = ctypes.string_at(out.value, size.value)
        self.library.heddle_free(out)
        self.call("release", handle)
        return status, "", written


@pytest.fixture(scope="module")
def graphs(heddle):
    return Reader(heddle, "graph", "text")


@pytest.fixture(scope="module")
def params(heddle):
    return Reader(heddle, "params", "bytes")


def cases(folder):
    return sorted(json.loads((folder / "expect.json").read_text()).items())


def check(reader, path, name, expected):
    status, text, written = reader.load(path)
    if expected == "read" or name in RUN_TIME:
        assert status == 0, text
        return written
    assert status in (EFORMAT, EUNSUPPORTED, ELIMIT), text
    assert path.name in text, "the error names the file"
    assert len(text) < 1016 and "\n" not in text
    return None


@pytest.mark.parametrize("name, expected", cases(GRAPHS))
def test_graph(graphs, name, expected, tmp_path):
    written = check(graphs, GRAPHS / f"{name}.json", name, expected)
    if written is None:
        return
    again = tmp_path / "again.json"
    again.write_bytes(written)
    status, text, second = graphs.load(again)
    assert status == 0, text
    assert second == written


def normal(graph):
    """The graph without what does not change its meaning: how it spells things."""
    for node in graph["nodes"]:
        if "attr" in node:
            node["attrs"] = node.pop("attr")
        if node["op"] == "tvm_op":
            node["attrs"] = {key: str(value) for key, value in node["attrs"].items()}
    for entries in [graph["heads"]] + [node["inputs"] for node in graph["nodes"]]:
        entries[:] = [(list(entry) + [0])[:3] for entry in entries]
    spelling = {"float": "float32", "float32x1": "float32", "bool": "uint1"}
    graph["attrs"]["dltype"][1] = [spelling.get(word, word) for word in graph["attrs"]["dltype"][1]]
    return graph


@pytest.mark.parametrize("name", [name for name, expected in cases(GRAPHS) if expected == "read"])
def test_graph_keeps_its_meaning(graphs, name):
    path = GRAPHS / f"{name}.json"
    _, _, written = graphs.load(path)
    assert normal(json.loads(written)) == normal(json.loads(path.read_text()))


@pytest.mark.parametrize("name, expected", cases(PARAMS))
def test_params(params, name, expected):
    path = PARAMS / f"{name}.bin"
    written = check(params, path, name, expected)
    if written is None:
        return
    given = bytearray(path.read_bytes())
    if name == "trailing_bytes":
        del given[len(written):]
    if name in ("reserved_nonzero", "device_cpu_id1"):  # what readers ignore is written as 0
        assert len(given) == len(written)
        return
    assert written == given, "byte for byte"
