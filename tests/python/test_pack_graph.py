"""Graphs of operators as one file: its bytes, by a reader of its own; runs equal to those of the parts, to the bit; that
parameters are mapped; and what is refused.
labels: ctypes
timeout: 200
"""
import ctypes
import json
import os
import pathlib
import random
import struct

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import capi
from packed_file import graph_package, params_records
from tool_case import DIGITS, failing, good, heddle

SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))


@pytest.fixture
def net(tmp_path):
    """net.onnx: a large weight, small ones of several dtypes, an empty one; x.npy."""
    rng = np.random.default_rng(3)
    w = {"w": rng.normal(size=(64, 64)).astype(np.float32), "b": rng.normal(size=64).astype(np.float32),
         "i": np.array([1], np.int64), "k": np.array(True)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
             helper.make_node("Unsqueeze", ["u", "i"], ["v"]), helper.make_node("Where", ["k", "v", "v"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [2, 64])],
                              [helper.make_tensor_value_info("y", 1, [2, 1, 64])], [numpy_helper.from_array(v, k) for k, v in w.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", rng.normal(size=(2, 64)).astype(np.float32))
    return w


def output(tmp_path, model, *words):
    good("run", model, "--device", "cpu,sim:0", *words, "--output-dir", tmp_path / "o")
    return (tmp_path / "o" / "output_0.npy").read_bytes()


def test_onnx(net, tmp_path):
    packed = tmp_path / "net.any"
    good("pack", tmp_path / "net.onnx", "-o", packed)
    text, found = graph_package(packed.read_bytes())
    codes = {"f": 2, "i": 0, "b": 1}  # bool is (1, 1), as in params files
    assert {k: (codes[v.dtype.kind], 1 if v.dtype.kind == "b" else 8 * v.itemsize, v.shape, v.tobytes()) for k, v in net.items()} == found
    words = ["--input", f"x={tmp_path / 'x.npy'}"]
    expected = output(tmp_path, tmp_path / "net.onnx", *words)
    assert output(tmp_path, packed, *words) == expected
    good("unpack", packed, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "default.json").read_text() == text
    assert list(params_records((tmp_path / "out" / "default.params").read_bytes())) == list(found)
    assert output(tmp_path, tmp_path / "out" / "default.json", *words) == expected
    assert '"net.any"' not in text and "w  float32 [64, 64]" in good("info", packed) and "in " + str(packed) in good("info", packed)
    good("convert", tmp_path / "net.onnx", "-o", tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == text
    good("pack", tmp_path / "net.onnx", "--remove-params", "-o", tmp_path / "bare")
    assert graph_package((tmp_path / "bare").read_bytes()) == (text, {})
    good("compare", packed, "--a", "cpu", "--b", "sim:0", *words)


def test_a_package_may_have_any_name(net, tmp_path):
    """One whose name ends in .onnx is read as a package, encrypted too."""
    words = ["--input", f"x={tmp_path / 'x.npy'}"]
    expected = output(tmp_path, tmp_path / "net.onnx", *words)
    model = tmp_path / "there.onnx"
    good("pack", tmp_path / "net.onnx", "-o", model)
    assert output(tmp_path, model, *words) == expected and "w  float32 [64, 64]" in good("info", model)
    good("pack", model, "-o", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == model.read_bytes()
    if "HEDDLE_SODIUM" in heddle("key", "new", "--encrypt", tmp_path / "k").err:
        return
    good("pack", tmp_path / "net.onnx", "--encrypt", tmp_path / "k", "-o", model)
    assert output(tmp_path, model, "--key", tmp_path / "k", *words) == expected


def test_graph_json(tmp_path):
    """The text stays as it is, byte for byte; parameters that are beside it go in."""
    packed = tmp_path / "digits"
    good("pack", DIGITS, "-o", packed)
    text, found = graph_package(packed.read_bytes())
    assert text == DIGITS.read_text()
    records = params_records(DIGITS.with_suffix(".params").read_bytes())
    assert {k: v[3] for k, v in found.items()} == {k: r[len(r) - len(found[k][3]):] for k, r in records.items()}
    images = np.load(DIGITS.parent / "images.npy")[:1]
    np.save(tmp_path / "image.npy", images.reshape(1, 1, 8, 8).astype(np.float32))
    words = ["--input", f"image={tmp_path / 'image.npy'}"]
    assert output(tmp_path, packed, *words) == output(tmp_path, DIGITS, *words)


def test_parameters_are_mapped(net, tmp_path):
    """The bytes of a parameter lie in the mapped file, at the place that the file gives."""
    packed = tmp_path / "net.heddle"
    good("pack", tmp_path / "net.onnx", "-o", packed)
    params, tensor = ctypes.c_void_p(), ctypes.c_void_p()
    capi.call("heddle_params_load", str(packed).encode(), None, ctypes.byref(params))
    capi.call("heddle_params_tensor", params, 0, ctypes.byref(tensor))
    at = capi.LIB.heddle_tensor_data(tensor)
    lines = [line.split() for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith("net.heddle")]
    start, end = (int(n, 16) for n in lines[0][0].split("-"))
    assert len(lines) == 1 and lines[0][1] == "r--p" and start <= at < end and at % 4096 == 0
    assert packed.read_bytes()[at - start:at - start + 16] == net["w"].tobytes()[:16]
    capi.LIB.heddle_tensor_release(tensor)
    capi.LIB.heddle_params_release(params)
    assert "net.heddle" not in pathlib.Path("/proc/self/maps").read_text()


def loads(path):
    """Statuses of reading the graph and the parameters."""
    found = []
    for kind in ("graph", "params"):
        out = ctypes.c_void_p()
        try:
            capi.call(f"heddle_{kind}_load", str(path).encode(), None, ctypes.byref(out))
            found.append(0)
        except capi.HeddleError as error:
            assert str(path) in str(error)
            found.append(error.status)
        getattr(capi.LIB, f"heddle_{kind}_release")(out)
    return found


def test_what_is_refused(net, tmp_path):
    packed, bad = tmp_path / "net.heddle", tmp_path / "bad"
    good("pack", tmp_path / "net.onnx", "-o", packed)
    seed = packed.read_bytes()
    for n in (8, 9, 63, 64, 100, len(seed) // 2, len(seed) - 1):
        bad.write_bytes(seed[:n])
        assert loads(bad) == [4, 4], n
    bad.write_bytes(seed + b"\0")
    assert loads(bad) == [4, 4]
    bad.write_bytes(seed[:8] + struct.pack("<I", 3) + seed[12:])
    assert loads(bad) == [7, 7]
    for at in range(24, 64, 8):
        for value in (2**63, 2**64 - 1, len(seed) + 1, 2**40):
            bad.write_bytes(seed[:at] + struct.pack("<Q", value) + seed[at + 8:])
            assert 4 in loads(bad), (at, value)
    rng = random.Random(7)
    rows, = struct.unpack_from("<Q", seed, 40)
    size, = struct.unpack_from("<Q", seed, 48)
    for _ in range(int(1500 * SCALE)):
        data = bytearray(seed)
        for _ in range(rng.randint(1, 3)):
            data[rng.choice([rng.randrange(8, 64), rng.randrange(rows, rows + size)])] = rng.choice([0, 1, 0x7f, 0xff, rng.randrange(256)])
        bad.write_bytes(data)
        assert set(loads(bad)) <= {0, 4, 7, 19, 2}
    assert "has no name" in failing(1, "pack", tmp_path / "net.onnx", "--name", "a", "-o", bad)
    assert "one graph" in failing(1, "pack", tmp_path / "net.onnx", DIGITS, "-o", bad)
    (tmp_path / "broken.json").write_text("{")
    assert "broken.json" in failing(1, "pack", tmp_path / "broken.json", "-o", bad)


def test_a_packed_graph_is_packed_again(tmp_path):
    """As the graph that it holds: the same file, without parameters, prepared, signed, with a library; a library is not linked."""
    first, again = tmp_path / "first.heddle", tmp_path / "again.heddle"
    good("pack", DIGITS, "-o", first)
    good("pack", first, "-o", again)
    assert again.read_bytes() == first.read_bytes()
    good("pack", again, "-o", again)
    assert again.read_bytes() == first.read_bytes()
    good("pack", first, "--remove-params", "-o", again)
    assert json.loads(good("info", again, "--json"))["params"]["tensors"] == []
    good("pack", again, "--params", DIGITS.with_suffix(".params"), "-o", again)
    assert again.read_bytes() == first.read_bytes()
    good("pack", first, "--for", "sim,cpu", "-o", again)
    assert "prepared" in good("info", again)
    good("link", first, "--for", "sim,cpu", "--name", "net", "-o", tmp_path)
    assert "prepared" in good("info", tmp_path / "net.o")
    (tmp_path / "lib.so").write_bytes(b"\x7fELF no library")
    assert "lib.so: it is a library, and a graph of operators is linked" in failing(1, "link", tmp_path / "lib.so", "-o", tmp_path)
    assert "again.heddle: a sequence number goes with a key" in failing(1, "pack", first, "--sequence", 7, "-o", again)


def test_what_is_no_model_is_named_so(tmp_path):
    """Not by the first byte that a reader of another format cannot read."""
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes(100))
    (tmp_path / "broken.heddle").write_bytes(b"\x09HDLPK\r\n" + bytes(100))
    for name in ("x.npy", "broken.heddle"):
        assert f"{name}: it is no model: neither graph JSON nor a package" in failing(1, "info", tmp_path / name)
        assert f"{name}: it is neither a package nor a library" in failing(1, "unpack", tmp_path / name, "-o", tmp_path / "out")
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf{}")
    assert "not JSON as it should be" in failing(1, "info", tmp_path / "marked.json")
