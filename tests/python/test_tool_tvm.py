"""The tool on what TVM compiled, as a new user has it: what is in a file, a function timed by itself, how often heddle
bench calls, and what is said where something is missing. Libraries are written here as TVM v0.14 compiled them.
timeout: 300
"""
import json
import re

import numpy as np
import pytest

from fixtures import tvm_legacy as legacy
from tool_case import SOURCE, failing, good, heddle
from tvm_graph import Call, tvm_graph

F32 = "float32"
PRE = "tvmgen_default_fused_"
DATA = SOURCE / "tests" / "data" / "tvm_v0_14"

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


def stored(name):
    """A graph as TVM v0.14 wrote it."""
    return (DATA / name / "graph.json").read_text()


def empty(path, name, **more):
    """A library with all functions of a stored graph, none of which does anything: enough for what calls none."""
    names = {n["attrs"]["func_name"] for n in json.loads(stored(name))["nodes"] if n["op"] == "tvm_op"}
    return legacy.library(path, "v0.14", [f"FUNCTION({n}) {{ return 0; }}" for n in names if n[:2] != "__"], **more)


@pytest.fixture
def reshape(tmp_path):
    """A real graph of TVM's with its parameters, p9 besides, which the graph does not have."""
    path = empty(tmp_path / "lib.so", "reshape_nop")
    (tmp_path / "g.json").write_text(stored("reshape_nop"))
    values = {"p0": np.zeros((1, 16, 4), F32), "p1": np.ones((1, 2, 2), F32), "p9": np.ones(3, "int32")}
    (tmp_path / "g.params").write_bytes(
        legacy.u64(0xF7E58D4F05049CB7) + legacy.u64(0) + legacy.strings(list(values)) + legacy.u64(len(values)) +
        b"".join(legacy.array(v) for v in values.values()))
    np.save(tmp_path / "x.npy", np.zeros((2, 8), F32))
    return tmp_path / "g.json", path, tmp_path / "x.npy"


@pytest.fixture
def counting(tmp_path):
    """A graph of one function that writes a letter to a file at each call, 'g' where its input is made up."""
    count = legacy.kernel(
        "count", [("x", F32, (4,)), ("y", F32, (4,))],
        f'FILE *f = fopen("{tmp_path}/calls", "a"); if (f == NULL) return -1;\n'
        "fputc(x[0] == 7 ? 'k' : 'g', f); fclose(f); for (int i = 0; i < 4; i++) y[i] = x[i] + 1;")
    path = legacy.library(tmp_path / "count.so", "v0.14", [count])
    (tmp_path / "count.json").write_text(tvm_graph({"x": (F32, [4])}, [Call("count", ["x"], [(F32, [4])])], ["count"]))
    np.save(tmp_path / "seven.npy", np.full(4, 7, F32))

    def bench(*words):
        (tmp_path / "calls").unlink(missing_ok=True)
        got = json.loads(good("bench", *words, "--json"))
        return got, (tmp_path / "calls").read_text()

    return bench, tmp_path / "count.json", path, tmp_path / "seven.npy"


# ---- info

def test_info_of_a_library_alone(tmp_path):
    kernels = {"scale_kernel": ([(3, 64)], ["blockIdx.x", "threadIdx.x"])}
    data = legacy.blob([legacy.LIB, legacy.device_module("opencl", "cl", kernels, "// Function: scale_kernel\n")], [[1], []])
    path = empty(tmp_path / "lib.so", "dtype_float32", data=data)
    names = [PRE + n for n in ("add", "maximum", "multiply")]
    said = json.loads(good("info", path, "--json"))
    assert said["model"] is None and said["library"]["functions"] == names and said["library"]["models"] == []
    assert said["library"]["imports"] == [
        {"kind": "opencl", "format": "cl", "bytes": 26, "kernels": ["scale_kernel"]}]
    text = good("info", path)
    assert re.findall(r"^function   (.*)$", text, re.M) == names
    assert "import     opencl cl, 26 bytes, 1 kernels: scale_kernel\n" in text


def test_info_of_models_inside(tmp_path):
    graph = stored("dtype_float32")
    data = legacy.blob([legacy.factory(graph, {}, "first"), legacy.factory(graph, {}, "second"), legacy.LIB], [[1, 2], [2], []])
    path = empty(tmp_path / "two.so", "dtype_float32", data=data)
    assert json.loads(good("info", path, "--json"))["library"]["models"] == ["first", "second"]
    assert "holds      model 'second' (GraphExecutorFactory)" in good("info", path, "--model", "second")
    error = failing(1, "run", path, "--model", "third")
    assert "no model 'third'" in error and "first, second" in error


def test_info_of_graph_library_and_parameters(reshape):
    graph, library, _ = reshape
    said = json.loads(good("info", graph, "--lib", library, "--json"))
    assert [i["name"] for i in said["inputs"]] == ["x"]
    assert {t["name"]: t["shape"] for t in said["params"]["tensors"]} == {"p0": [1, 16, 4], "p1": [1, 2, 2], "p9": [3]}
    assert said["params"]["unused"] == ["p9"]
    assert said["annotations"] == {"cpu": 4}
    assert {n["op"]: n["device"] for n in said["node_list"]} == dict.fromkeys(
        ("__nop", PRE + "nn_contrib_dense_pack", PRE + "nn_contrib_dense_pack_1"), "cpu")
    text = good("info", graph)
    assert "param      p1  float32 [1, 2, 2]\n" in text and "param      p9" not in text and "unused     p9\n" in text
    assert "node " not in text and "node       " in good("info", graph, "--all")


def test_info_names_functions_that_the_library_lacks(tmp_path, reshape):
    graph, library, _ = reshape
    other = empty(tmp_path / "other.so", "dtype_float32")
    names = [PRE + "nn_contrib_dense_pack", PRE + "nn_contrib_dense_pack_1"]
    assert sorted(json.loads(good("info", graph, "--lib", other, "--json"))["missing_functions"]) == names
    assert f"missing    {names[0]}: " in good("info", graph, "--lib", other)
    assert json.loads(good("info", graph, "--lib", library, "--json"))["missing_functions"] == []
    assert json.loads(good("info", graph, "--json"))["missing_functions"] == []


def test_info_says_where_each_node_goes(tmp_path):
    graph = stored("hetero_shared_input")
    (tmp_path / "g.json").write_text(graph)
    attrs, nodes = json.loads(graph)["attrs"], json.loads(graph)["nodes"]
    rows = json.loads(graph)["node_row_ptr"]
    expected = [(n["name"], {1: "cpu", 4: "opencl"}[attrs["device_index"][1][row]])
                for n, row in zip(nodes, rows, strict=False) if n["op"] == "tvm_op"]
    said = json.loads(good("info", tmp_path / "g.json", "--json"))["node_list"]
    assert [(n["name"], n["device"]) for n in said] == expected
    found = re.findall(r"^node +(\S+).* on (\w+)$", good("info", tmp_path / "g.json"), re.M)
    assert found == expected


# ---- what is said

def test_a_graph_without_its_library(reshape):
    graph, _, _ = reshape
    for command in (("run", "--random"), ("bench",), ("plan",)):
        error = failing(1, command[0], graph, *command[1:])
        assert PRE + "nn_contrib_dense_pack" in error and "--lib FILE" in error


def test_a_library_without_a_model(reshape):
    _, library, _ = reshape
    for command in ("run", "bench", "plan"):
        error = failing(1, command, library)
        assert "holds no model" in error and f"--lib {library}" in error and "--func" in error


def test_options_that_a_file_has_no_use_for(reshape):
    graph, library, _ = reshape
    for command in ("run", "bench", "plan", "info"):
        assert "leave out --model" in failing(1, command, graph, "--lib", library, "--model", "default")
        assert "leave out --lib" in failing(1, command, library, "--lib", library)
    assert "leave out --params" in failing(1, "info", library, "--params", graph)


def test_unknown_inputs_are_errors_everywhere(reshape):
    graph, library, x = reshape
    for command in ("run", "bench", "plan"):
        error = failing(1, command, graph, "--lib", library, "--input", f"data={x}")
        assert "no input 'data'" in error and "'x'" in error, error


# ---- bench

def test_one_call_to_warm_up_then_number_times_repeat(counting):
    bench, graph, library, _ = counting
    got, calls = bench(graph, "--lib", library, "--repeat", 3, "--number", 4)
    assert len(calls) == 1 + 3 * 4 and got["number"] == 4 and got["func"] == "run" and got["timer"] == "host"


@pytest.mark.parametrize("words", [[], ["--end-to-end"], ["--timer", "device"], ["--end-to-end", "--func", "count"]],
                         ids=["run", "end to end", "device", "func is run's"])
def test_inputs_are_set_before(counting, words):
    """Every call, the untimed one too, sees the value given."""
    bench, graph, library, seven = counting
    got, calls = bench(graph, "--lib", library, "--input", f"x={seven}", "--repeat", 2, "--number", 3, *words)
    assert calls == "k" * 7 and got["random_inputs"] == [] and got["func"] == "run"
    assert got["end_to_end"] is ("--end-to-end" in words)
    assert got["timer"] == ("device" if "--timer" in words else "host")


def test_the_number_grows_and_stays(counting):
    """All measurements: what was called besides the last one of each repeat is growth in the first repeat."""
    bench, graph, library, _ = counting
    got, calls = bench(graph, "--lib", library, "--repeat", 3, "--number", 1, "--min-repeat-ms", 100)
    assert got["number"] > 1 and len(calls) >= 1 + 1 + got["number"]
    assert all(t * got["number"] >= 0.1 * 0.999 for t in got["results"][-1:])


def test_a_function_by_itself(counting):
    bench, graph, library, seven = counting
    got, calls = bench(library, "--func", "count", "--input", f"x={seven}", "--input", "y=float32:4", "--repeat", 2,
                       "--number", 3)
    assert calls == "k" * 7 and got["func"] == "count" and got["devices"] == ["host"] and got["random_inputs"] == ["y"]
    got, calls = bench(graph, "--lib", library, "--func", "count", "--input", "x=float32:4", "--input", "y=float32:4")
    assert calls == "g" * 26 and got["random_inputs"] == ["x", "y"] and len(got["results"]) == 5


def test_arguments_of_every_kind(tmp_path):
    """The function refuses what is not the arguments that the words say."""
    check = ('FUNCTION(args) { TVMValue *a = args_;\nCHECK(num_args == 5, "args: five");\n'
             'CHECK(codes[0] == 0 && a[0].v_int64 == -3, "args: int");\n'
             'CHECK(codes[1] == 2 && a[1].v_float64 == 0.5, "args: float");\n'
             'CHECK(((DLTensor *)a[2].v_handle)->ndim == 0, "args: scalar");\n'
             'DLTensor *b = a[3].v_handle, *h = a[4].v_handle;\n'
             'CHECK(b->ndim == 2 && b->shape[0] == 2 && b->shape[1] == 3 && b->code == 1 && b->bits == 1, "args: bool");\n'
             'CHECK(h->code == 4 && h->bits == 16, "args: bfloat16");\nreturn 0; }')
    path = legacy.library(tmp_path / "lib.so", "v0.14", [check])
    words = ["bench", path, "--func", "args", "--input", "a=-3", "--input", "b=0.5", "--input", "c=int64:", "--input",
             "d=bool:2x3", "--input", "e=bfloat16:1", "--repeat", 2]
    text = good(*words)
    assert "2 x 5 calls of args on the host" in text and "input c is made up" in text and "input a" not in text
    assert "args: five" in failing(1, *words[:-4])
    assert "args: int" in failing(1, *[w.replace("a=-3", "a=3") if isinstance(w, str) else w for w in words])


@pytest.mark.parametrize("words,hint", [
    (["--func", "no_such"], "no function 'no_such'"), (["--func", "count", "--input", "x=float32:4,2"], "16x32"),
    (["--func", "count", "--input", "x=no_such.npy"], "DTYPE:SHAPE"),
    (["--func", "count", "--input", "x=float32:4"], "num_args should be 2"),
    (["--func", "count", "--device", "sim:77"], "sim:77")])
def test_calls_that_are_wrong(counting, words, hint):
    _, _, library, _ = counting
    assert hint in failing(1, "bench", library, *words)


@pytest.mark.parametrize("words", [
    ["--timer", "sun"], ["--timer", "device", "--end-to-end"], ["--func", "count", "--timer", "device"],
    ["--func", "count", "--place", "a=cpu"], ["--func", "count", "--memory", "cpu=1MB"],
    ["--limit-zero-time-iterations", "0"], ["--repeats-to-cooldown", "0"]])
def test_words_of_bench_that_are_wrong(counting, words):
    _, graph, library, _ = counting
    assert words[0] in failing(2, "bench", graph, "--lib", library, *words)


def test_a_graph_is_no_library_of_functions(counting):
    _, graph, _, _ = counting
    assert "--lib FILE" in failing(1, "bench", graph, "--func", "count")


def test_help_names_every_option_of_a_benchmark():
    text = heddle("bench", "--help").out
    for name in ("func", "repeat", "number", "min-repeat-ms", "limit-zero-time-iterations", "end-to-end",
                 "cooldown-interval-ms", "repeats-to-cooldown", "timer", "input", "lib", "model", "params", "json"):
        assert re.search(rf"^  --{name}\b", text, re.M), name


# ---- plans, times and traces name functions

def test_profile_and_trace_name_the_function(counting, tmp_path):
    _, _, library, seven = counting
    (tmp_path / "named.json").write_text(tvm_graph(
        {"x": (F32, [4])}, [Call("count", ["x"], [(F32, [4])], "first"), Call("count", ["first"], [(F32, [4])])], ["count"]))
    words = (tmp_path / "named.json", "--lib", library, "--device", "cpu")
    text = good("run", *words, "--input", f"x={seven}", "--profile", "--trace", tmp_path / "t.json")
    assert re.search(r"^first +count +cpu:0 ", text, re.M) and "tvm_op" not in text
    spans = [e["name"] for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert "count first" in spans and "count" in spans


def test_a_device_that_is_not_in_use(tmp_path):
    graph = stored("hetero_shared_input")
    (tmp_path / "g.json").write_text(graph)
    path = empty(tmp_path / "lib.so", "identity")
    error = failing(1, "run", tmp_path / "g.json", "--lib", path, "--device", "cpu", "--random")
    assert "type 4 (device_index; plugin 'opencl' has those)" in error and "cpu:0" in error
    error = failing(1, "run", tmp_path / "g.json", "--lib", path, "--device", "sim", "--random")
    assert "plugin 'cpu' has those" in error and "sim:0" in error


def test_many_operands(tmp_path):
    """A hundred calls have more operands than the table that shares them begins with."""
    kernel = legacy.kernel("more", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;")
    path = legacy.library(tmp_path / "lib.so", "v0.14", [kernel])
    calls = [Call("more", ["x" if k == 0 else f"c{k - 1}"], [(F32, [4])], name=f"c{k}") for k in range(100)]
    (tmp_path / "g.json").write_text(tvm_graph({"x": (F32, [4])}, calls, [c.name for c in calls]))
    np.save(tmp_path / "x.npy", np.arange(4, dtype=F32))
    good("run", tmp_path / "g.json", "--lib", path, "--input", f"x={tmp_path}/x.npy", "--device", "cpu",
         "--output-dir", tmp_path)
    for k in range(100):
        assert np.array_equal(np.load(tmp_path / f"output_{k}.npy"), np.arange(k + 1, k + 5, dtype=F32))
