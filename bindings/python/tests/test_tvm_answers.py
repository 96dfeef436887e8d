"""Each call of which it is known what TVM v0.14's own executor answered (tvm_v0_14_answers.json), made here: the answer is
the same, or is in DIFFERENT, which says why ours is another, and what it is.
timeout: 300
"""
import json
import pathlib

import numpy as np
import pytest

from tvm_models import F32, legacy, write_files

import heddle as tvm
from heddle.contrib import graph_executor
from heddle.contrib.debugger import debug_executor

ANSWERS = json.loads((pathlib.Path(__file__).parent / "tvm_v0_14_answers.json").read_text())["results"]
OUT = "tvmgen_default_fused_nn_softmax"
KINDS = {"InternalError": tvm.error.InternalError, "TVMError": tvm.error.TVMError, "AttributeError": AttributeError,
         "RuntimeError": RuntimeError, "ValueError": ValueError}

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


class Bench:
    """What calls are made on: an executor of seven inputs and one output, with its parameters and input set, run once."""

    def __init__(self, folder):
        self.folder = folder
        self.x, self.expected = np.load(folder / "data.npy"), np.load(folder / "expected.npy")
        self.graph, self.blob = (folder / "deploy.json").read_text(), (folder / "deploy.params").read_bytes()
        self.lib = tvm.runtime.load_module(str(folder / "deploy.so"))
        self.functions = tvm.runtime.load_module(str(folder / "library.so"))
        self.model, self.two, self.kernels = (tvm.runtime.load_module(str(folder / n)) for n in (
            "model.so", "two.so", "kernels.so"))
        self.dev = tvm.cpu(0)
        self.g = self.fresh()
        self.g.load_params(self.blob)
        self.g.set_input("data", self.x)
        self.g.run()

    def fresh(self):
        return graph_executor.create(self.graph, self.lib, self.dev)

    def nd(self, *shape, dtype=F32):
        return tvm.nd.empty(shape, dtype)

    def off(self):
        """How far the output of a run is from numpy's."""
        self.g.run()
        return float(round(np.abs(self.g.get_output(0).numpy() - self.expected).max(), 3))

    def zero_copy(self):
        self.source = tvm.nd.array(self.x)
        self.g.set_input_zero_copy("data", self.source)
        return self.off()

    def changed_source(self):
        self.zero_copy()
        self.source.copyfrom(self.x * 0)
        return self.off() > 0

    def live(self):
        view = self.g.get_output(0)
        before = view.numpy()
        self.g.run(data=self.x * 0)
        return bool(np.abs(view.numpy() - before).max() > 0)

    def output_into(self, key):
        out = self.nd(1, 10)
        self.g.set_output_zero_copy(key, out)
        self.g.run()
        return None if isinstance(key, str) else float(round(np.abs(out.numpy() - self.expected).max(), 3))

    def share(self, holding):
        other = self.fresh()
        held = other.get_input("w0") if holding else None
        other.share_params(self.g, self.blob)
        other.run(data=self.x)
        np.testing.assert_allclose(other.get_output(0).numpy(), self.expected, rtol=1e-4, atol=1e-5)
        del held

    def misaligned(self):
        memory = np.zeros(64, F32)
        at = next(i for i in range(16) if (memory.ctypes.data + 4 * i) % 64 == 4)
        self.functions["addone"](tvm.nd.from_dlpack(memory[at:at + 8]), self.nd(8))

    def load(self, name, data):
        (self.folder / name).write_bytes(data)
        tvm.runtime.load_module(str(self.folder / name))

    def entry(self):
        a, b = tvm.nd.array(np.arange(8, dtype=F32)), self.nd(8)
        self.functions.entry_func(a, b)
        return bool((b.numpy() == np.arange(8) + 1).all())


def info(dicts):
    return {"shape": list(dicts[0]), "dtype": list(dicts[1])}


def name_of(value):
    return type(value).__name__


CALLS = {
    "module type_key": lambda b: b.g.module.type_key,
    "lib type_key": lambda b: b.lib.type_key,
    "lib entry/main missing": lambda b: b.lib.entry_func,
    "lib missing func": lambda b: b.lib["nope"],
    "num_inputs": lambda b: b.g.get_num_inputs(),
    "num_outputs": lambda b: b.g.get_num_outputs(),
    "get_input_index data": lambda b: b.g.get_input_index("data"),
    "get_input_index w0": lambda b: b.g.get_input_index("w0"),
    "get_input_index unknown": lambda b: b.g.get_input_index("nope"),
    "get_input unknown str": lambda b: b.g.get_input("nope"),
    "get_input idx range": lambda b: b.g.get_input(99),
    "get_output idx range": lambda b: b.g.get_output(9),
    "get_output neg": lambda b: b.g.get_output(-1),
    "get_output by node name": lambda b: b.g.get_output(OUT),
    "get_output bad name": lambda b: b.g.get_output("nope"),
    "py set_input unknown": lambda b: b.g.set_input("nope", b.x),
    "C set_input unknown ignored": lambda b: b.g["set_input"]("nope", tvm.nd.array(b.x)),
    "C set_input wrong size": lambda b: b.g["set_input"]("data", b.nd(1, 10)),
    "C set_input reshaped same bytes": lambda b: b.g["set_input"]("data", tvm.nd.array(b.x.reshape(784))),
    "C set_input f64": lambda b: b.g["set_input"]("data", tvm.nd.array(b.x.astype("float64"))),
    "C set_input int32 same bytes": lambda b: b.g["set_input"]("data", b.nd(1, 784, dtype="int32")),
    "py set_input f64 numpy converts": lambda b: b.g.set_input("data", b.x.astype("float64")),
    "py set_input by index": lambda b: b.g.set_input(0, b.x),
    "py set_input list": lambda b: b.g.set_input("data", b.x.tolist()),
    "output equal": lambda b: b.off(),
    "get_output(0,out) copy": lambda b: b.g.get_output(0, b.nd(1, 10)).shape,
    "get_output out wrong shape": lambda b: b.g.get_output(0, b.nd(10)),
    "get_output out wrong dtype": lambda b: b.g.get_output(0, b.nd(1, 10, dtype="float64")),
    "get_output handle is a live view (changes after next run)": lambda b: b.live(),
    "set_input_zero_copy": lambda b: b.zero_copy(),
    "zero copy then change source buffer": lambda b: b.changed_source(),
    "get_input(data) after zero-copy shows old buffer": lambda b: (
        b.changed_source(), float(np.abs(b.g.get_input("data").numpy()).max()))[1],
    "zero copy wrong shape": lambda b: b.g.set_input_zero_copy("data", b.nd(784, 1)),
    "zero copy unknown name (C)": lambda b: b.g["set_input_zero_copy"]("nope", tvm.nd.array(b.x)),
    "zero copy f64 same shape (no dtype check?)": lambda b: b.g.set_input_zero_copy("data", b.nd(1, 784, dtype="float64")),
    "set_output_zero_copy by index": lambda b: b.output_into(0),
    "set_output_zero_copy by plain node name": lambda b: b.output_into(OUT),
    "set_output_zero_copy by name:idx": lambda b: b.output_into(OUT + ":0"),
    "get_output name:idx": lambda b: name_of(b.g.get_output(OUT + ":0")),
    "run_from_inputs": lambda b: [o.shape for o in b.g["run_from_inputs"](1, 0, "data", tvm.nd.array(b.x))],
    "run_from_inputs bad name": lambda b: b.g["run_from_inputs"](1, 0, "nope", tvm.nd.array(b.x)),
    "get_input_info after load_params excludes params": lambda b: info(b.g.get_input_info()),
    "get_input_info before load_params": lambda b: sorted(b.fresh().get_input_info()[0]),
    "get_output_info": lambda b: b.g.get_output_info()[0],
    "unknown method": lambda b: b.g["foo"],
    "share_params from fresh": lambda b: b.share(False),
    "share_params when an input handle is held (use_count != 1)": lambda b: b.share(True),
    "GraphModule.benchmark": lambda b: name_of(b.g.benchmark(b.dev, repeat=1, number=1)),
    "create with wrong device cuda": lambda b: graph_executor.create(b.graph, b.lib, tvm.cuda(99)),
    "load nonexist": lambda b: tvm.runtime.load_module("none.so"),
    "load non-ELF": lambda b: b.load("notelf.so", b"no"),
    "load unknown ext": lambda b: tvm.runtime.load_module("gen.xyz"),
    "main via entry_func": lambda b: b.entry(),
    "call shape mismatch": lambda b: b.functions["addone"](b.nd(8), b.nd(9)),
    "call dtype mismatch": lambda b: b.functions["addone"](b.nd(8), b.nd(8, dtype="float64")),
    "call argc mismatch": lambda b: b.functions["addone"](b.nd(8)),
    "call ndim mismatch": lambda b: b.functions["addone"](b.nd(8), b.nd(8, 1)),
    "call misaligned view": lambda b: b.misaligned(),
    "two models type": lambda b: (b.two.type_key, [m.type_key for m in b.two.imported_modules]),
    "factory get default on named": lambda b: b.two["default"],
    "factory get_graph_json": lambda b: len(b.model["get_graph_json"]()) == len(b.graph),
    "factory get_graph_params": lambda b: sorted(b.model["get_graph_params"]()),
    "factory w/o params create": lambda b: b.model["remove_params"]()["default"](b.dev).type_key,
    "factory debug_create": lambda b: b.model["debug_create"]("default", b.dev).type_key,
    "func in imported module via root (query_imports False)": lambda b: b.two["extra_answer"],
    "func via root query_imports True": lambda b: b.two.get_function("extra_answer", True)(),
    "device kernel by name via query_imports": lambda b: name_of(b.kernels.get_function("scale_kernel", True)),
}

# (Why, what): an exception's class, or a function that looks at the result.
DIFFERENT = {
    "get_output by node name": ("TVM shows memory that no run wrote", lambda got: got.shape == (1, 10)),
    "C set_input unknown ignored": ("A name that is none is an error, not silence", tvm.TVMError),
    "C set_input int32 same bytes": ("Integers are not taken for the bits of floats", tvm.TVMError),
    "get_input(data) after zero-copy shows old buffer": ("The memory that runs read is shown", lambda got: got == 0),
    "zero copy unknown name (C)": ("A name that is none is an error, not silence", tvm.TVMError),
    "zero copy f64 same shape (no dtype check?)": ("The dtype is checked", tvm.TVMError),
    "get_output name:idx": ("Outputs have one name in all calls", lambda got: got == "NDArray"),
    "get_input_info before load_params": ("TVM's order is by chance", lambda got: got == [
        "b0", "b1", "b2", "data", "w0", "w1", "w2"]),
    "get_output_info": ("TVM's own answer could not be read", lambda got: got == {OUT: (1, 10)}),
    "share_params when an input handle is held (use_count != 1)": ("It works", lambda got: got is None),
    "factory get_graph_json": ("Of another model", lambda got: got is True),
    "factory get_graph_params": ("Of another model", lambda got: got == ["b0", "b1", "b2", "w0", "w1", "w2"]),
    "call misaligned view": ("Code for aligned memory is not given other memory", tvm.TVMError),
    "device kernel by name via query_imports": ("Kernels are launched by functions of their library", AttributeError),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("answers"))


def test_every_answer_is_looked_at():
    assert set(CALLS) == set(ANSWERS) and set(DIFFERENT) <= set(ANSWERS)


@pytest.mark.parametrize("name", CALLS)
def test_answer(name, folder):
    bench, answer = Bench(folder), ANSWERS[name]
    wanted = DIFFERENT[name][1] if name in DIFFERENT else None if answer["ok"] else KINDS[answer["type"]]
    if isinstance(wanted, type):
        with pytest.raises(wanted) as caught:
            CALLS[name](bench)
        assert str(caught.value)
        return
    got = CALLS[name](bench)
    if wanted is None:
        assert repr(got) == answer["result"]
    else:
        assert wanted(got)


def test_debug_executor_is_the_same_module(folder):
    bench = Bench(folder)
    assert debug_executor.create(bench.graph, bench.lib, bench.dev, folder / "d").module.type_key == "GraphExecutor"
