"""heddle pack and heddle unpack: what was packed is read by a reader of its own (packed_file.py), by the system's loader, and
by Heddle, and runs as the parts did, to the bit.
labels: ctypes
timeout: 300
"""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess

import numpy as np
import pytest

import capi
from fixtures import tvm_legacy as legacy
from packed_file import Elf, mapped_blob, modules, params_records
from test_tvm_legacy import DATA, F32, MODELS, model_files, run
from tool_case import environment, failing, good
from tvm_graph import Call, tvm_graph

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "data"
SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))
LINKS = {"gnu": ["-Wl,--hash-style=gnu"], "sysv": ["-Wl,--hash-style=sysv"], "both": ["-Wl,--hash-style=both"],
         "stripped": ["-s"], "one-segment": ["-Wl,-z,noseparate-code"], "no-notes": ["-Wl,--build-id=none"]}

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


@pytest.fixture(scope="module", autouse=True)
def has_pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    legacy.library(folder / "l.so", "v0.14", MODELS["dtype_float32"])
    done = subprocess.run([str(capi.os.environ["HEDDLE_BUILD"]) + "/bin/heddle", "pack", folder / "l.so", "-o", folder / "o.so"],
                          capture_output=True, text=True, env=environment())
    if done.returncode != 0 and "HEDDLE_PACK" in done.stderr:
        pytest.skip("this build has no HEDDLE_PACK")


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=1)
    yield context
    context.close()


@pytest.fixture
def parts(tmp_path):
    """name -> files of a model in parts: lib.so, NAME.json, NAME.params."""
    def write(name, era="v0.14", link=(), stem="net"):
        graph, params, inputs, _ = model_files(name)
        (tmp_path / f"{stem}.json").write_text(graph)
        (tmp_path / f"{stem}.params").write_bytes(params)
        return legacy.library(tmp_path / "lib.so", era, MODELS[name], link=("-lm", *link)), tmp_path / f"{stem}.json", inputs
    return write


def outputs(ctx, path, inputs, name=None):
    """Of the model inside of a packed file."""
    library = capi.Library(ctx, path)
    try:
        graph, params = capi.unpack(library, name)
        try:
            return run_parts(ctx, graph, params, library, inputs)
        finally:
            params.close()
            graph.close()
    finally:
        library.close()


def run_parts(ctx, graph, params, library, inputs):
    model = capi.Model(ctx, graph, params, devices="cpu", library=library)
    executor = capi.Executor(model)
    for key, value in inputs.items():
        executor.set_input(key, value)
    executor.run()
    found = executor.outputs()
    executor.close()
    model.close()
    return found


def equal(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def tools_are_silent(path):
    for words in (["readelf", "-aW"], ["objdump", "-pT"]):
        if shutil.which(words[0]):
            done = subprocess.run([*words, path], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("name, era", [*((name, "v0.14") for name in MODELS), ("reshape_nop", "v0.4"), ("multi_output", "v0.8"),
                                       ("multi_output", "v0.18")])
def test_models(ctx, parts, tmp_path, name, era):
    library, graph, inputs = parts(name, era)
    packed = tmp_path / "packed.so"
    good("pack", graph, "--lib", library, "-o", packed)
    blob = Elf(packed).blob()
    assert mapped_blob(packed) == blob
    found, below = modules(blob)
    text, params, _, _ = model_files(name)
    assert found[0][1] == (text, params_records(params), "default") and [k for k, _ in found[1:]] == ["_lib"]
    assert below == [[1], []]
    bare = capi.Library(ctx, library)
    expected = run(ctx, text, inputs, bare, params if len(params) > 32 else None)
    bare.close()
    equal(outputs(ctx, packed, inputs), expected)
    tools_are_silent(packed)
    good("unpack", packed, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "default.json").read_text() == text
    assert params_records((tmp_path / "out" / "default.params").read_bytes()) == params_records(params)
    good("pack", tmp_path / "out" / "default.json", "--lib", tmp_path / "out" / "lib.so", "-o", tmp_path / "again.so")
    assert Elf(tmp_path / "again.so").blob() == blob
    good("pack", packed, "-o", tmp_path / "same.so")
    assert (tmp_path / "same.so").read_bytes() == packed.read_bytes()


@pytest.mark.parametrize("link", LINKS)
def test_libraries_of_all_linkings(ctx, parts, tmp_path, link):
    """The symbols are found by every hash table; strip and objcopy write files that still run."""
    library, graph, inputs = parts("multi_output", link=LINKS[link])
    packed = tmp_path / "packed.so"
    good("pack", graph, "--lib", library, "-o", packed)
    elf = Elf(packed)
    assert mapped_blob(packed) == elf.blob()
    expected = outputs(ctx, packed, inputs)
    tools_are_silent(packed)
    for words in (["strip"], ["strip", "--strip-debug"], ["objcopy"]):
        if shutil.which(words[0]):
            other = tmp_path / f"{'-'.join(words)}.so"
            subprocess.run([*words, *(["-o"] if words[0] == "strip" else []), *([other, packed] if words[0] == "strip" else [packed, other])],
                           check=True, timeout=60)
            assert mapped_blob(other) == elf.blob()
            equal(outputs(ctx, other, inputs), expected)


def test_every_artifact(parts, tmp_path):
    """Graph and parameters of every artifact come back as they were, beside any library."""
    library, _, _ = parts("dtype_float32")
    for name in sorted(p.name for p in DATA.iterdir() if (p / "graph.json").exists()):
        comes_back(library, tmp_path, name)


def comes_back(library, tmp_path, name):
    graph = (DATA / name / "graph.json").read_bytes()
    blob = DATA / name / "params.bin"
    words = ["--params", blob] if blob.exists() else []
    (tmp_path / "a.json").write_bytes(graph)
    packed = tmp_path / "packed.so"
    good("pack", tmp_path / "a.json", *words, "--lib", library, "--name", "model_x", "-o", packed)
    (kind, found), _ = modules(Elf(packed).blob())[0]
    records = params_records(blob.read_bytes()) if words else {}
    assert kind == "GraphExecutorFactory" and found == (graph.decode(), records, "model_x")


@pytest.mark.parametrize("folder", ["graph_json_variants", "params_variants"])
def test_variants(parts, tmp_path, folder):
    """What is read is packed as it is, and what is refused is not packed."""
    library, graph, _ = parts("reshape_nop")
    expect = json.loads((SOURCE / folder / "expect.json").read_text())
    written = 0
    for file in sorted((SOURCE / folder).iterdir()):
        if file.name in ("expect.json", "results.json"):
            continue
        words = [file, "--params", tmp_path / "net.params"] if file.suffix == ".json" else [graph, "--params", file]
        done = subprocess.run([os.environ["HEDDLE_BUILD"] + "/bin/heddle", "pack", *words, "--lib", library, "-o", tmp_path / "p.so"],
                              capture_output=True, text=True, env=environment())
        assert done.returncode in (0, 1), (file, done)
        if done.returncode == 0:
            (_, (text, records, _)), _ = modules(Elf(tmp_path / "p.so").blob())[0]
            assert file.suffix != ".json" or text == file.read_text()
            written += 1
        else:
            assert expect.get(file.stem, expect.get(file.name, "refuse")) != "read", (file, done.stderr)
    assert written > 3


# ---- several

def scale_kernel(name, factor):
    return legacy.kernel(name, [("x", F32, (4,)), ("y", F32, (4,))], f"for (int i = 0; i < 4; i++) y[i] = x[i] * {factor};")


def scale_graph(name):
    return tvm_graph({"x": (F32, [4])}, [Call(name, ["x"], [(F32, [4])])], [name])


X = {"x": np.arange(4, dtype=np.float32)}
OPENCL = legacy.device_module("opencl", "cl", {"k_kernel": ([(3, 64)], ["blockIdx.x"])}, "// Function: k_kernel\n")
CUDA = legacy.device_module("cuda", "ptx", {"c_kernel": ([(3, 64), (0, 32)], ["threadIdx.x"])}, "//ptx")


def test_several_models_and_libraries(ctx, tmp_path):
    """Two graphs, one library with code, and two that carry code for devices: one import tree."""
    legacy.library(tmp_path / "code.so", "v0.14", [scale_kernel("twice", 2), scale_kernel("thrice", 3)],
                   data=legacy.blob([legacy.LIB, OPENCL], [[1], []]))
    (tmp_path / "more.c").write_text(f"#define ERA 14\n{legacy.blob_of(tmp_path / 'more', legacy.blob([CUDA]))}")
    subprocess.run([legacy.compiler(), "-shared", "-o", tmp_path / "more.so", tmp_path / "more.c"], check=True)
    for name in ("twice", "thrice"):
        (tmp_path / f"{name}.json").write_text(scale_graph(name))
    packed = tmp_path / "packed.so"
    good("pack", tmp_path / "twice.json", tmp_path / "thrice.json", "--name", "a", "--name", "b", "--lib", tmp_path / "more.so",
         "--lib", tmp_path / "code.so", "-o", packed)
    found, below = modules(Elf(packed).blob())
    kinds = [k for k, _ in found]
    assert kinds[0] == "GraphExecutorFactory" and sorted(kinds[1:]) == ["GraphExecutorFactory", "_lib", "cuda", "opencl"]
    at = {k: i for i, k in enumerate(kinds)}
    other = 1 + kinds[1:].index("GraphExecutorFactory")
    assert below[0] == [at["_lib"], other] and below[other] == [at["_lib"]]
    assert sorted(below[at["_lib"]]) == sorted([at["cuda"], at["opencl"]])
    assert [found[i][1][2] for i in (0, other)] == ["a", "b"]
    bodies = {k: b for k, b in found if k in ("opencl", "cuda")}
    assert legacy.string("opencl") + bodies["opencl"] == OPENCL and legacy.string("cuda") + bodies["cuda"] == CUDA
    for name, factor in (("a", 2), ("b", 3), (None, 2)):
        equal(outputs(ctx, packed, X, name), [X["x"] * np.float32(factor)])
    assert "two models are named 'a'" in failing(1, "pack", packed, tmp_path / "twice.json", "--name", "a", "-o", tmp_path / "n.so")
    good("pack", packed, tmp_path / "twice.json", "--name", "third", "-o", tmp_path / "three.so")
    for name, factor in (("a", 2), ("b", 3), ("third", 2)):
        equal(outputs(ctx, tmp_path / "three.so", X, name), [X["x"] * np.float32(factor)])
    legacy.library(tmp_path / "two.so", "v0.14", [scale_kernel("four", 4)])
    assert "cannot be joined" in failing(1, "pack", tmp_path / "code.so", tmp_path / "two.so", "-o", tmp_path / "n.so")
    assert not (tmp_path / "n.so").exists() and not list(tmp_path.glob("*.part"))


def test_without_parameters(ctx, parts, tmp_path):
    library, graph, inputs = parts("reshape_nop")
    good("pack", graph, "--lib", library, "-o", tmp_path / "full.so")
    for words in ([tmp_path / "full.so"], [graph, "--lib", library]):
        good("pack", *words, "--remove-params", "-o", tmp_path / "bare.so")
        found, below = modules(Elf(tmp_path / "bare.so").blob())
        assert found[0][1] == (graph.read_text(), {}, "default") and below == [[1], []]
    records = params_records((tmp_path / "net.params").read_bytes())
    data = (tmp_path / "bare.so").read_bytes()
    assert records and all(r[-64:] not in data for r in records.values() if len(r) > 120)


@pytest.mark.parametrize("form", ["o", "a", "tar"])
def test_objects(ctx, parts, tmp_path, form):
    """The compiler is named by CC, with words; modules in objects of their own are merged."""
    _, graph, inputs = parts("reshape_nop")
    kernels = "\n".join(MODELS["reshape_nop"])
    legacy.compile_c(tmp_path / "lib0.o", f'#define ERA 14\n#include "era.h"\n{kernels}', ["-c"])
    files = ["lib0.o"]
    if form != "o":
        for i, module in enumerate((OPENCL, CUDA)):
            data = legacy.blob([legacy.LIB, module], [[1], []])
            legacy.compile_c(tmp_path / f"devc{i}.o", legacy.blob_of(tmp_path / f"devc{i}", data), ["-c"])
            files.append(f"devc{i}.o")
    given = tmp_path / f"net.{form}" if form != "o" else tmp_path / "lib0.o"
    if form == "a":
        subprocess.run(["ar", "rc", given, *files], check=True, cwd=tmp_path)
    if form == "tar":
        subprocess.run(["tar", "cf", given, *files], check=True, cwd=tmp_path)
    packed = tmp_path / "packed.so"
    good("pack", graph, "--lib", given, "-o", packed, CC=f"{legacy.compiler()} -O1")
    found, _ = modules(Elf(packed).blob())
    assert [k for k, _ in found] == ["GraphExecutorFactory", "_lib"] + (["opencl", "cuda"] if form != "o" else [])
    good("pack", graph, "--lib", parts("reshape_nop")[0], "-o", tmp_path / "other.so")
    equal(outputs(ctx, packed, inputs), outputs(ctx, tmp_path / "other.so", inputs))
    assert "there is none here" in failing(1, "pack", graph, "--lib", given, "-o", tmp_path / "n.so", CC="no-such-compiler")
    assert "exit status" in failing(1, "pack", graph, "--lib", given, "-o", tmp_path / "n.so", CC="false")
    assert not (tmp_path / "n.so").exists()


def test_modules_of_the_application(ctx, tmp_path):
    """A loader's save writes its modules; without save the bytes that were loaded are written."""
    class Acme:
        def __init__(self, data):
            n, = struct.unpack_from("<Q", data)
            self.text, self.used = data[8:8 + n], 8 + n

        def names(self):
            return []

        def find(self, name):
            return None
    kind, body = "acme_pack", legacy.string("first")
    path = legacy.library(tmp_path / "lib.so", "v0.14", [scale_kernel("twice", 2)],
                          data=legacy.blob([legacy.LIB, legacy.string(kind) + body, OPENCL], [[1, 2], [], []]))
    status, text = packs(tmp_path / "n.so", path)
    assert status == 7 and kind in text
    passes = {kind: lambda c: c.string()}

    def load(_, data):
        module = Acme(data)
        return module, module.used

    def save(module):
        if module.text == b"bad":
            raise capi.HeddleError(4, "not this one")
        return [struct.pack("<Q", len(module.text) + 5), module.text, b" anew"]
    for hook, expected in ((None, body), (save, legacy.string("first anew"))):
        loader = capi.Loader(kind, load, None, hook)
        assert packs(tmp_path / "packed.so", path) == (0, "")
        found, below = modules(Elf(tmp_path / "packed.so").blob(), passes)
        assert found[1:] == [(kind, expected), ("opencl", OPENCL[14:])] and below == [[1, 2], [], []] and loader.live == {}
    bad = legacy.library(tmp_path / "bad.so", "v0.14", [], data=legacy.blob([legacy.LIB, legacy.string(kind) + legacy.string("bad")],
                                                                            [[1], []]))
    status, text = packs(tmp_path / "n.so", bad)
    assert status == 4 and "not this one" in text and not (tmp_path / "n.so").exists() and loader.live == {}
    capi.call("heddle_module_register_loader", kind.encode(), None, None)


# ---- what is refused

def packs(path, library):
    """Status and text of packing one library, in this process."""
    c = capi.c

    class Options(c.Structure):
        _fields_ = [("struct_size", c.c_size_t), ("libraries", c.POINTER(c.c_char_p)), ("n_libraries", c.c_size_t),
                    ("models", c.c_void_p), ("n_models", c.c_size_t), ("imports", c.c_void_p), ("n_imports", c.c_size_t),
                    ("flags", c.c_uint32), ("compiler", c.c_char_p)]
    names = (c.c_char_p * 1)(str(library).encode())
    options = Options(c.sizeof(Options), names, 1, None, 0, None, 0, 2, None)
    try:
        capi.call("heddle_pack", str(path).encode(), c.byref(options))
    except capi.HeddleError as error:
        return error.status, str(error)
    return 0, ""


def test_malformed_libraries(parts, tmp_path):
    library, graph, _ = parts("dtype_float32")
    good("pack", graph, "--lib", library, "-o", tmp_path / "seed.so")
    seed, bad, out = (tmp_path / "seed.so").read_bytes(), tmp_path / "bad.so", tmp_path / "out.so"

    def refused(data, status=4):
        bad.write_bytes(data)
        got, text = packs(out, bad)
        assert got == status and "bad.so: " in text, (got, text)
        assert not out.exists()
        return text
    for n in [0, 3, 4, 15, 63, 64, 100, 600, 4096, len(seed) // 2, len(seed) - 1]:
        refused(seed[:n])
    assert "32-bit" in refused(seed[:4] + b"\1" + seed[5:]) and "big-endian" in refused(seed[:5] + b"\2" + seed[6:])
    assert "processor" in refused(seed[:18] + b"\x08\0" + seed[20:]) and "another type" in refused(seed[:16] + b"\2\0" + seed[18:])
    assert "section headers" in refused(seed[:40] + bytes(8) + seed[48:60] + bytes(4) + seed[64:])
    at = Elf(tmp_path / "seed.so").shoff
    kinds = [i for i in range((len(seed) - at) // 64) if struct.unpack_from("<I", seed, at + 64 * i + 4)[0] == 6]
    where = at + 64 * kinds[0] + 4
    assert "no dynamic section" in refused(seed[:where] + struct.pack("<I", 1) + seed[where + 4:])


def test_mutated_libraries(parts, tmp_path):
    """Any of these is packed or refused with a reason; nothing crashes, and no half file is left."""
    library, graph, _ = parts("dtype_float32")
    good("pack", graph, "--lib", library, "-o", tmp_path / "seed.so")
    rng = random.Random(5)
    for file in (library, tmp_path / "seed.so"):
        seed = pathlib.Path(file).read_bytes()
        elf = Elf(pathlib.Path(file))
        places = [range(64), range(64, 64 + 56 * elf.phnum), range(elf.shoff, len(seed))]
        places += [range(h[4], h[4] + h[5]) for n, h in elf.sections.items()
                   if n in (".dynsym", ".dynamic", ".gnu.hash", ".dynstr", ".heddle.blob")]
        for i in range(int(120 * SCALE) + 30):
            data = bytearray(seed)
            for _ in range(rng.randint(1, 4)):
                data[rng.choice(rng.choice(places))] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
            (tmp_path / "bad.so").write_bytes(data)
            status, text = packs(tmp_path / "out.so", tmp_path / "bad.so")
            assert status in (0, 2, 3, 4, 5, 6, 7, 19) and (status == 0 or text), (i, status, text)
    assert not list(tmp_path.glob("*.part"))


def test_nothing_is_overwritten_half(parts, tmp_path):
    library, graph, _ = parts("dtype_float32")
    out = tmp_path / "out.so"
    out.write_bytes(b"old")
    failing(1, "pack", graph, "--lib", tmp_path / "net.params", "-o", out)
    failing(1, "pack", tmp_path / "net.params", "-o", out)
    assert out.read_bytes() == b"old"
    failing(2, "pack", graph, "--lib", library)
    failing(1, "pack", graph, "--lib", library, "-o", tmp_path / "no" / "folder.so")
    failing(1, "unpack", library, "-o", tmp_path / "u")
    good("pack", graph, "--lib", library, "-o", out)
    assert os.access(out, os.X_OK) and Elf(out).blob()
    good("pack", out, "-o", out)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".part") == []
