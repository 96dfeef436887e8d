"""Signed and encrypted files of models, through the tool and the C API: libraries run from their sealed copies, whatever
becomes of the file; what a trusted library or model would load besides itself has to be signed too.
labels: ctypes
timeout: 300
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import capi
from fixtures import tvm_legacy as legacy
from test_pack import equal, outputs, run_parts
from test_tvm_legacy import MODELS, model_files
from tool_case import environment, failing, good

MODEL = "dtype_float32"
needs_cc = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with the keys a and b, which sign, and c, which encrypts."""
    folder = tmp_path_factory.mktemp("keys")
    for name, *more in (("a",), ("b",), ("c", "--encrypt")):
        done = subprocess.run([os.environ["HEDDLE_BUILD"] + "/bin/heddle", "key", "new", folder / name, *more],
                              capture_output=True, text=True, env=environment())
        if "HEDDLE_SODIUM" in done.stderr:
            pytest.skip("this build has no HEDDLE_SODIUM")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def packed(tmp_path):
    """A library that holds a model, and inputs."""
    graph, params, inputs, _ = model_files(MODEL)
    (tmp_path / "net.json").write_text(graph)
    (tmp_path / "net.params").write_bytes(params)
    library = legacy.library(tmp_path / "lib.so", "v0.14", MODELS[MODEL], link=("-lm",))
    good("pack", tmp_path / "net.json", "--lib", library, "-o", tmp_path / "packed.so")
    return tmp_path / "packed.so", inputs


def trusting(keys, name="a.pub"):
    return capi.Context(config="off", threads=1, trust=str(keys / name))


@needs_cc
@pytest.mark.parametrize("how", [(), ("--encrypt", "c")])
def test_a_library_runs_from_its_sealed_copy(keys, packed, monkeypatch, how):
    path, inputs = packed
    plain = capi.Context(config="off", threads=1)
    want = outputs(plain, path, inputs)
    good("sign", path, "--key", keys / "a", *[keys / w if w == "c" else w for w in how])
    if how:
        monkeypatch.setenv("HEDDLE_KEY_FILE", str(keys / "c"))
    else:
        equal(outputs(plain, path, inputs), want)   # for those who set no trust
        subprocess.run(["readelf", "-d", path], check=True, capture_output=True)
    ctx = trusting(keys)
    equal(outputs(ctx, path, inputs), want)
    library = capi.Library(ctx, path)
    assert "memfd" in pathlib.Path("/proc/self/maps").read_text()
    path.write_bytes(b"\x7fELF" + bytes(5000))      # in place, while it is in use
    graph, params = capi.unpack(library, None)
    equal(run_parts(ctx, graph, params, library, inputs), want)
    params.close()
    graph.close()
    library.close()
    with pytest.raises(Exception, match="not signed"):
        capi.Library(ctx, path)
    ctx.close()
    plain.close()


@needs_cc
def test_what_is_wrong_with_a_library(keys, packed, tmp_path):
    path, _ = packed
    ctx = trusting(keys)
    with pytest.raises(Exception, match="not signed"):
        capi.Library(ctx, path)
    good("sign", path, "--key", keys / "b")
    with pytest.raises(Exception, match="does not list"):
        capi.Library(ctx, path)
    good("sign", path, "--key", keys / "a", "--sequence", "4")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    (tmp_path / "changed.so").write_bytes(data)
    with pytest.raises(Exception, match="changed after it was signed"):
        capi.Library(ctx, tmp_path / "changed.so")
    (tmp_path / "trust").write_text((keys / "a.pub").read_text().rstrip() + " minimum=5\n")
    newer = capi.Context(config="off", threads=1, trust=str(tmp_path / "trust"))
    with pytest.raises(Exception, match="sequence number is 4"):
        capi.Library(newer, path)
    newer.close()
    ctx.close()


@needs_cc
@pytest.mark.parametrize("link, words", [(("-Wl,-rpath,$ORIGIN",), "run path"), (("-Wl,-rpath,/lib/x", "-Wl,--disable-new-dtags"), "run path")])
def test_a_library_brings_no_others(keys, tmp_path, link, words):
    library = legacy.library(tmp_path / "l.so", "v0.14", MODELS[MODEL], link=("-lm", *link))
    good("sign", library, "--key", keys / "a")
    ctx = trusting(keys)
    with pytest.raises(Exception, match=words):
        capi.Library(ctx, library)
    ctx.close()
    plain = capi.Context(config="off", threads=1)
    capi.Library(plain, library).close()
    plain.close()


@needs_cc
def test_libraries_and_graphs_in_parts(keys, tmp_path):
    graph, params, inputs, _ = model_files(MODEL)
    (tmp_path / "net.json").write_text(graph)
    (tmp_path / "net.params").write_bytes(params)
    library = legacy.library(tmp_path / "lib.so", "v0.14", MODELS[MODEL], link=("-lm",))
    words = ["plan", tmp_path / "net.json", "--lib", library, "--device", "cpu", "--trust", keys / "a.pub"]
    for part in ("lib.so", "net.json", "net.params"):
        assert part in failing(1, *words)
        good("sign", tmp_path / part, "--key", keys / "a")
    good(*words)


@pytest.fixture
def onnx_model(tmp_path):
    """A model whose weights lie in two files beside it."""
    def tensor(name, value, file):
        t = numpy_helper.from_array(np.full(300, value, np.float32), name)
        (tmp_path / file).write_bytes(t.raw_data)
        t.ClearField("raw_data")
        t.data_location = onnx.TensorProto.EXTERNAL
        t.external_data.add(key="location", value=file)
        return t
    nodes = [helper.make_node("Add", ["x", "a"], ["m"]), helper.make_node("Mul", ["m", "b"], ["y"])]
    value = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [300]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], [tensor("a", 2, "a.bin"), tensor("b", 3, "b.bin")])
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    return path


def test_a_trust_file_that_is_none(keys, onnx_model, tmp_path):
    """It is named before the model's missing signature."""
    words = ["run", onnx_model, "--random", "--device", "cpu", "--trust"]
    assert "missing: No such file or directory" in failing(1, *words, tmp_path / "missing")
    assert "the trust file" in failing(1, *words, keys / "c") and "line 2: expected" in failing(1, *words, keys / "c")


def test_a_large_package_is_packed_again(keys, onnx_model, tmp_path):
    """A package has its parameters in it: the limit of a graph's text is not that of the file."""
    packed = tmp_path / "net.heddle"
    good("pack", onnx_model, "-o", packed)
    os.truncate(packed, (1 << 30) + 1)
    said = failing(1, "pack", packed, "-o", tmp_path / "again", HEDDLE_TRUST=str(keys / "a.pub"))
    assert "net.heddle: it is not signed" in said


def test_a_key_of_another_kind_is_named(keys, onnx_model, tmp_path):
    """Not advised to be made secret, as a key that others may read is."""
    said = failing(1, "sign", onnx_model, "--key", keys / "a.pub", "-o", tmp_path / "signed")
    assert "a.pub: it holds a public key, which only verifies, no secret signing key" in said and "chmod" not in said
    assert "it holds an encryption key, no secret" in failing(1, "pack", onnx_model, "-o", tmp_path / "n", "--sign", keys / "c")
    said = failing(1, "pack", onnx_model, "-o", tmp_path / "n", "--encrypt", keys / "a.pub")
    assert "it holds a public key, which only verifies, no encryption key" in said
    for name, kind in (("a", "--sign"), ("c", "--encrypt")):
        (tmp_path / name).write_bytes((keys / name).read_bytes())
        (tmp_path / name).chmod(0o640)
        assert "chmod 600" in failing(1, "pack", onnx_model, "-o", tmp_path / "n", kind, tmp_path / name)
    assert not (tmp_path / "n").exists() and not (tmp_path / "signed").exists()


def test_what_reads_models_takes_their_key(keys, onnx_model, tmp_path):
    """pack and link read encrypted and signed models as run does; sign has pack's name for the key."""
    for part in ("net.onnx", "a.bin", "b.bin"):
        good("sign", tmp_path / part, "--sign", keys / "a", "--encrypt", keys / "c")
    for command, out in (("pack", tmp_path / "net.heddle"), ("link", tmp_path)):
        assert "encrypted with the key" in failing(1, command, onnx_model, "-o", out)
        assert "b.pub" in failing(1, command, onnx_model, "-o", out, "--key", keys / "c", "--trust", keys / "b.pub")
        good(command, onnx_model, "-o", out, "--key", keys / "c", "--trust", keys / "a.pub")
    good("run", tmp_path / "net.heddle", "--random", "--device", "cpu")


def test_every_file_of_an_onnx_model(keys, onnx_model, tmp_path):
    words = ["run", onnx_model, "--random", "--device", "cpu", "--trust", keys / "a.pub"]
    for part in ("net.onnx", "a.bin", "b.bin"):
        assert f"{part}: it is not signed" in failing(1, *words)
        before = (tmp_path / part).read_bytes()
        good("sign", tmp_path / part, "--key", keys / "a")
        assert (tmp_path / part).read_bytes() == before   # other programs read it too
    good(*words)
    (tmp_path / "b.bin").write_bytes(bytes(1200))
    assert "b.bin: its signature is wrong" in failing(1, *words)
    good("sign", tmp_path / "b.bin", "--key", keys / "a", "--encrypt", keys / "c")
    assert "encrypted with the key" in failing(1, *words)
    good(*words, "--key", keys / "c")
    good("pack", onnx_model, "-o", tmp_path / "net.heddle", "--sign", keys / "a", "--encrypt", keys / "c", "--sequence", "9",
         HEDDLE_KEY_FILE=str(keys / "c"))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("net.heddle.")]
    shown = json.loads(good("info", tmp_path / "net.heddle", "--json", "--key", keys / "c"))
    assert shown["signature"]["sequence"] == 9 and shown["signature"]["encryption_key_id"]
    assert b"Add" not in (tmp_path / "net.heddle").read_bytes()
    good("unpack", tmp_path / "net.heddle", "-o", tmp_path / "out", "--key", keys / "c")
    assert "Add" in (tmp_path / "out" / "default.json").read_text()
    assert "sequence number 9" in good("verify", tmp_path / "net.heddle", "--trust", keys / "a.pub")
    assert "does not list" in failing(1, "verify", tmp_path / "net.heddle", "--trust", keys / "b.pub")
