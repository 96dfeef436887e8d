"""heddle.pack, heddle.unpack, and export_library of modules that were loaded.
timeout: 300
"""
import os
import pathlib
import sys

import numpy as np
import pytest

os.environ["HEDDLE_DEVICES"] = "cpu"

import tvm_models
import heddle
from heddle import runtime
from heddle.contrib import graph_executor
from heddle.errors import Error, UnsupportedError

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/python"))
import packed_file  # noqa: E402

pytestmark = pytest.mark.skipif(tvm_models.legacy.compiler() is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tvm_models.write_files(tmp_path_factory.mktemp("models"))
    try:
        heddle.pack(made / "probe.so", library=made / "library.so")
    except UnsupportedError as error:
        pytest.skip(str(error))
    return made


def result(module, folder, name="default", **inputs):
    m = graph_executor.GraphModule(module[name](heddle.cpu()))
    m.set_input(**(inputs or {"data": np.load(folder / "data.npy")}))
    m.run()
    return m.get_output(0).numpy()


def blob(path):
    return packed_file.modules(packed_file.Elf(path).blob())


def test_pack_and_unpack(folder):
    text, params = (folder / "deploy.json").read_text(), (folder / "deploy.params").read_bytes()
    first = folder / "packed.so"
    heddle.pack(first, folder / "deploy.json", library=folder / "deploy.so", params=folder / "deploy.params")
    (kind, found), _ = blob(first)[0]
    assert kind == "GraphExecutorFactory" and found == (text, packed_file.params_records(params), "default")
    expected = result(runtime.load_module(folder / "model.so"), folder)
    assert result(runtime.load_module(first), folder).tobytes() == expected.tobytes()
    for graph, given in ((text, params), (text.encode(), runtime.load_param_dict(params))):
        heddle.pack(folder / "other.so", graph, library=[folder / "deploy.so"], params=given)
        assert (folder / "other.so").read_bytes() == first.read_bytes()
    heddle.unpack(first, folder / "out")
    assert (folder / "out" / "default.json").read_text() == text and (folder / "out" / "default.params").read_bytes() == params
    heddle.pack(folder / "more.so", library=first, models={"bare": text, "full": (text, params)})
    again = runtime.load_module(folder / "more.so")
    assert {m.type_key for m in again.imported_modules} == {"library", "GraphExecutorFactory"}
    heddle.pack(folder / "with.so", library=folder / "library.so", imports={"opencl": bytes(24)})
    assert [k for k, _ in blob(folder / "with.so")[0]] == ["_lib", "opencl"]
    with pytest.raises(Error, match="two models"):
        heddle.pack(folder / "no.so", text, library=first)
    with pytest.raises(OSError):
        heddle.pack(folder / "no.so", folder / "none.json", library=first)
    assert not (folder / "no.so").exists()


def test_export_of_modules(folder):
    lib = runtime.load_module(folder / "model.so")
    text = (folder / "deploy.json").read_text()
    lib.export_library(str(folder / "e.so"), fcompile=lambda *_: 1 / 0)
    assert blob(folder / "e.so") == blob(folder / "model.so")
    assert result(runtime.load_module(folder / "e.so"), folder).tobytes() == result(lib, folder).tobytes()
    lib["remove_params"]().export_library(str(folder / "bare.so"))
    assert blob(folder / "bare.so")[0][0][1] == (text, {}, "default")
    lib.get_lib().export_library(str(folder / "lib.so"))
    assert [k for k, _ in blob(folder / "lib.so")[0]] == ["_lib"]
    assert lib.get_graph_json() == text and len(lib.get_params()) == 6
    lib.save_graph_json(folder / "saved.json")
    assert (folder / "saved.json").read_text() == text
    two = runtime.load_module(folder / "two.so")
    two.export_library(str(folder / "two_again.so"))
    found, below = blob(folder / "two_again.so")
    assert [f[1][2] for f in found if f[0] != "_lib"] == ["model_a", "model_b"] and below == [[2, 1], [2], []]
    x = np.arange(4, dtype=np.float32)
    assert (result(runtime.load_module(folder / "two_again.so"), folder, "model_a", x=x) == 2 * x).all()
    runtime.load_module(folder / "kernels.so").export_library(str(folder / "k.so"))
    assert blob(folder / "k.so") == blob(folder / "kernels.so")
    for call in (lambda: lib.export_library("x.tar"), lambda: lib.export_library("x.so", addons=["a.o"]),
                 lib["default"](heddle.cpu()).export_library):
        with pytest.raises((UnsupportedError, TypeError)):
            call()
    with pytest.raises(AttributeError):
        lib.get_lib().get_graph_json()


def test_parameters_under_old_names():
    from heddle import nnvm, relay
    from heddle.nnvm.compiler import load_param_dict, save_param_dict
    assert nnvm.compiler.save_param_dict is save_param_dict is relay.save_param_dict is runtime.save_param_dict
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (load_param_dict(save_param_dict({"a": a}))["a"].numpy() == a).all()


def test_what_is_prepared_and_linked(tmp_path):
    digits = pathlib.Path(__file__).resolve().parents[3] / "examples" / "digits"
    graph, params = digits / "digits.json", digits / "digits.params"
    heddle.pack(tmp_path / "plain", graph, params=params)
    heddle.pack(tmp_path / "digits", graph, params=params, devices="cpu,sim:0")
    assert (tmp_path / "plain").read_bytes()[8] == 1 and (tmp_path / "digits").read_bytes()[8] == 2
    said = heddle.prepared(tmp_path / "digits")
    assert heddle.prepared(tmp_path / "plain") is None and said["heddle"] and said["why"] is None
    assert [(t["for"], t["fits"], t["why"], t["bytes"] > 0) for t in said["targets"]] == [("cpu,sim:0", True, None, True)]
    assert [d["name"] for d in said["targets"][0]["devices"]] == ["cpu:0", "sim:0"]
    with pytest.raises(heddle.errors.Error):
        heddle.prepared(tmp_path / "none")
    image = np.load(digits / "images.npy")[:1].reshape(1, 1, 8, 8).astype(np.float32)
    expected = heddle.load(graph, devices="cpu,sim:0")({"image": image})
    found = heddle.load(tmp_path / "digits", devices="cpu,sim:0")({"image": image})
    assert np.asarray(found[0]).tobytes() == np.asarray(expected[0]).tobytes()
    heddle.link(tmp_path / "l", "digits_model", tmp_path / "digits")
    assert (tmp_path / "digits").read_bytes() in (tmp_path / "l" / "digits_model.o").read_bytes()
    heddle.link(tmp_path / "l", "again", graph, params=params, devices=["cpu,sim:0"])
    assert sorted(p.name for p in (tmp_path / "l").iterdir()) == ["again.h", "again.o", "digits_model.h", "digits_model.o"]
    with pytest.raises(ValueError, match="no name for a symbol"):
        heddle.link(tmp_path / "l", "1", graph)


class Scaler:
    """A module of a kind of its own: a number as text, up to a zero byte."""

    def __init__(self, text):
        self.factor = int(text)

    def get_function(self, name):
        if name == "broken":
            raise LookupError("no luck")
        return (lambda n: n * self.factor) if name == "scale" else None


def acme(path):
    """The module of the kind acme_py in a library, as bytes."""
    found, _ = packed_file.modules(packed_file.Elf(path).blob(), {"acme_py": lambda c: c.take(c.data.index(b"\0", c.at) + 1 - c.at)})
    return bytes(dict(found)["acme_py"])


def test_modules_of_the_application(folder):
    """A kind of module that Python reads, runs, and writes anew when its library is packed; without save as it was."""
    def load(data):
        text, _, _ = data.partition(b"\0")
        return Scaler(text), len(text) + 1

    def fails(module):
        raise ArithmeticError("not today")

    path, same, saved = folder / "carries.so", folder / "same.so", folder / "saved.so"
    heddle.pack(path, library=folder / "library.so", imports={"acme_py": b"7\0"})
    with pytest.raises(Error, match="acme_py"):
        runtime.load_module(path)
    runtime.register_module_loader("acme_py", load)
    module = runtime.load_module(path)
    scale = module.get_function("scale", query_imports=True)
    assert scale(6) == 42
    with pytest.raises(LookupError, match="no luck"):
        module.get_function("broken", query_imports=True)
    heddle.pack(same, library=path)
    assert acme(same) == b"7\0"
    runtime.register_module_loader("acme_py", load, lambda m: b"%d\0" % (m.factor + 1))
    heddle.pack(saved, library=path)
    assert acme(saved) == b"8\0"
    assert runtime.load_module(saved).get_function("scale", query_imports=True)(6) == 48
    assert scale(6) == 42  # what is open keeps its loader
    runtime.register_module_loader("acme_py", load, fails)
    with pytest.raises(ArithmeticError, match="not today"):
        heddle.pack(folder / "never.so", library=path)
    assert not (folder / "never.so").exists()
    for wrong, error, words in ((lambda data: 1 / 0, ZeroDivisionError, "division"), (lambda data: ({}, 99), ValueError, "99 bytes"),
                                (lambda data: ({}, "x"), ValueError, "kind")):
        runtime.register_module_loader("acme_py", wrong)
        with pytest.raises(error, match=words):
            runtime.load_module(same)
    runtime.register_module_loader("acme_py", lambda data: ({"less": lambda n: n - 1}, 2))
    listed = runtime.load_module(same)
    assert listed.get_function("less", query_imports=True)(6) == 5
    assert [m["kernels"] for m in listed.library()["modules"] if m["kind"] == "acme_py"] == [["less"]]
    runtime.register_module_loader("acme_py", None)
    with pytest.raises(Error, match="acme_py"):
        heddle.pack(folder / "never.so", library=path)
    with pytest.raises(ValueError, match="read by Heddle itself"):
        runtime.register_module_loader("opencl", load)
