"""The tool on what Python loads: compiled models as objects (net.o) and as archives of them (net.tar, compressed or not).
timeout: 300"""

import json
import tarfile

import numpy as np
import pytest
from fixtures import tvm_legacy as legacy
from tool_case import DIGITS, failing, good, heddle
from tvm_graph import Call, tvm_graph

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to link objects with")
F32 = "float32"
GRAPH = tvm_graph({"x": (F32, [4])}, [Call("twice", ["x"], [(F32, [4])])], ["twice"])


def compiled(path, data):
    """An object with a function, and with the blob of a model where data asks for it."""
    kernel = legacy.kernel("twice", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] * 2;")
    source = [f"#define ERA {legacy.ERAS['v0.14']}", '#include "era.h"', kernel]
    return legacy.compile_c(path, "\n".join(source + ([legacy.blob_of(path, data)] if data else [])), ["-c"], link=())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("objects")
    model = legacy.blob([legacy.factory(GRAPH, {}), legacy.LIB], [[1], []])
    compiled(path / "net.o", model)
    compiled(path / "lib0.o", None)
    for name, mode, member in (("net.tar", "w", "net.o"), ("packed.tar", "w:gz", "net.o"), ("lib.tar", "w:gz", "lib0.o")):
        with tarfile.open(path / name, mode) as archive:
            archive.add(path / member, arcname=member)
    (path / "graph.json").write_text(GRAPH)
    np.save(path / "x.npy", np.arange(4, dtype=np.float32))
    return path


@pytest.mark.parametrize("name", ["net.o", "net.tar", "packed.tar"])
def test_a_model_in_objects(folder, name, tmp_path):
    shown = json.loads(good("info", folder / name, "--json"))
    assert "twice" in json.dumps(shown), shown
    assert shown["model"] == str(folder / name) and shown["library"]["file"] == str(folder / name)
    assert f"library    {folder / name}: " in good("info", folder / name)
    assert good("info", folder / name) and "twice" in good("plan", folder / name, "--device", "cpu")
    good("run", folder / name, "--device", "cpu", "--input", f"x={folder / 'x.npy'}", "--output-dir", tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), np.arange(4, dtype=np.float32) * 2)
    good("bench", folder / name, "--device", "cpu", "--repeat", 1, "--number", 1)
    assert sorted(p.name for p in folder.glob("*.so")) == []  # nothing is left beside it


@pytest.mark.parametrize("name", ["lib0.o", "lib.tar"])
def test_a_library_in_objects(folder, name, tmp_path):
    assert "twice" in good("info", folder / name)
    words = (folder / "graph.json", "--lib", folder / name, "--device", "cpu")
    assert "twice" in good("plan", *words)
    good("run", *words, "--input", f"x={folder / 'x.npy'}", "--output-dir", tmp_path, TMPDIR=str(tmp_path))
    np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), np.arange(4, dtype=np.float32) * 2)
    assert not list(tmp_path.glob("heddle-*"))


def test_an_object_that_link_wrote(tmp_path):
    """It is read as the packed graph that it holds; one that is cut off is an error."""
    shown = good("info", DIGITS).splitlines()[1:]
    good("link", DIGITS, "--name", "net", "-o", tmp_path)
    assert good("info", tmp_path / "net.o", PATH="/nowhere").splitlines()[1:] == [
        line.replace(str(DIGITS.with_suffix(".params")), str(tmp_path / "net.o")) for line in shown]
    assert json.loads(good("info", tmp_path / "net.o", "--json"))["model"] == str(tmp_path / "net.o")
    for model, to in ((DIGITS, "a"), (tmp_path / "net.o", "b")):
        good("run", model, "--device", "sim,cpu", "--random", "--seed", 3, "--output-dir", tmp_path / to)
    same, = {p.name for p in (tmp_path / "a").iterdir()} & {p.name for p in (tmp_path / "b").iterdir()}
    assert (tmp_path / "a" / same).read_bytes() == (tmp_path / "b" / same).read_bytes()
    good("unpack", tmp_path / "net.o", "-o", tmp_path / "u")
    assert (tmp_path / "u" / "default.json").read_bytes() == DIGITS.read_bytes()
    good("link", tmp_path / "net.o", "-o", tmp_path / "again")
    assert (tmp_path / "again" / "net.h").read_bytes() == (tmp_path / "net.h").read_bytes()
    (tmp_path / "cut.o").write_bytes((tmp_path / "net.o").read_bytes()[:5000])
    assert "cut.o" in failing(1, "info", tmp_path / "cut.o")


def test_a_compiled_graph_without_its_library(folder, tmp_path):
    """What is written has no code: a warning names the functions."""
    for words in (("link", folder / "graph.json", "-o", tmp_path), ("pack", folder / "graph.json", "-o", tmp_path / "graph.heddle")):
        r = heddle(*words)
        assert r.status == 0 and f"heddle {words[0]}: warning: the graph calls compiled functions (twice), and " in r.err, r
        assert "it runs with the library that has them" in r.err
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    for model in ("graph.o", "graph.heddle"):
        good("run", tmp_path / model, "--lib", folder / "lib0.o", "--device", "cpu", "--input", f"x={tmp_path / 'x.npy'}",
             "--output-dir", tmp_path)
        np.testing.assert_array_equal(np.load(tmp_path / "output_0.npy"), np.arange(4, dtype=np.float32) * 2)
    good("pack", folder / "graph.json", "--lib", folder / "lib0.o", "-o", tmp_path / "whole.so")


def test_what_cannot_be_linked(folder, tmp_path):
    (tmp_path / "bad.tar").write_bytes(b"no archive" * 100)
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    (tmp_path / "text.o").write_text("no object")
    assert "bad.tar: this is no tar archive" in failing(1, "info", tmp_path / "bad.tar")
    assert "empty.tar: the archive holds no objects" in failing(1, "info", tmp_path / "empty.tar")
    assert "text.o: the compiler could not link it" in failing(1, "plan", tmp_path / "text.o")
    assert "nowhere.tar: No such file" in failing(1, "run", tmp_path / "nowhere.tar")
    r = heddle("info", folder / "net.o", PATH="/nowhere", CC="")
    assert r.status == 1 and "objects are linked with a C compiler, and there is none" in r.err
    r = heddle("info", folder / "net.tar", PATH="/nowhere")
    assert r.status == 1 and "the program tar" in r.err
