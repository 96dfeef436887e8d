"""Where TVM's own executor is wrong or weak, Heddle is not: a test for each of what was found in it, by the numbers of
that list, with libraries written here, on cpu, two PoCL devices and the simulated accelerator.
labels: ctypes
timeout: 300
"""
import ctypes as c
import json

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from fixtures.tvm_legacy import operators  # noqa: E402
from tool_case import failing, good  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")
F32 = "float32"
T = [(F32, [8])]
X = np.linspace(-1, 1, 8, dtype=np.float32)


class IoInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("shape", c.POINTER(c.c_int64)),
                ("ndim", c.c_uint32), ("dtype", capi.DType), ("is_param", c.c_uint32)]


@pytest.fixture(scope="module")
def ctx():
    context = capi.Context(config="off", threads=2)
    yield context
    context.close()


@pytest.fixture(scope="module")
def library(ctx, tmp_path_factory):
    """Functions of eight floats: for cpu, and of the same sense for OpenCL."""
    f = [("x", F32, (8,)), ("y", F32, (8,))]
    two = [("a", F32, (8,)), ("b", F32, (8,)), ("y", F32, (8,))]
    each = "for (int i = 0; i < 8; i++) "
    sources = [legacy.kernel("plus_one", f, each + "y[i] = x[i] + 1;"),
               legacy.kernel("sum", two, each + "y[i] = a[i] + b[i];"),
               legacy.kernel("halves", [("x", F32, (8,)), ("lo", F32, (4,)), ("hi", F32, (4,))],
                             "for (int i = 0; i < 4; i++) { lo[i] = x[i]; hi[i] = x[i + 4]; }"),
               legacy.kernel("three", [("x", F32, (4,)), ("a", "int32", (2, 2)), ("b", F32, (3,)), ("d", "int8", (1,))],
                             "for (int i = 0; i < 4; i++) a[i] = x[i] * 100; for (int i = 0; i < 3; i++) b[i] = x[i]; "
                             "d[0] = 7;"),
               legacy.kernel("flat", [("x", F32, (8,)), ("y", F32, (8,))], each + "y[i] = x[i] * 3;")]
    kernels = {}
    for name, tensors, code in (("there_twice", f, "y[i] = x[i] * 2;"), ("there_sum", two, "y[i] = a[i] + b[i];")):
        names = [t[0] for t in tensors]
        sources.append(legacy.launcher(name, tensors, [(name + "_kernel", names, [2, 4])]))
        kernels[name + "_kernel"] = ([operators.HANDLE] * len(names), operators.TAGS,
                                     ", ".join(f"__global float *{n}" for n in names), code)
    path = legacy.library(tmp_path_factory.mktemp("lib") / "lib.so", "v0.14", sources,
                          data=operators.blob("v0.14", [operators.opencl_module("v0.14", kernels)]))
    opened = capi.Library(ctx, path)
    opened.path = path
    yield opened
    opened.close()


class Session:
    """A graph's model and executor; closed together."""

    def __init__(self, ctx, text, library, devices="cpu", **options):
        self.held = [capi.Graph(text)]
        try:
            self.held.append(capi.Model(ctx, self.held[0], options.pop("params", None), devices=devices,
                                        library=library, **options))
            self.held.append(capi.Executor(self.held[1]))
        except BaseException:
            self.__exit__()
            raise
        self.model, self.executor = self.held[1:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in reversed(self.held):
            p.close()

    def run(self, **inputs):
        for name, value in inputs.items():
            self.executor.set_input(name, value)
        self.executor.run()
        return self.executor.outputs()

    def run_to(self, node, output=0):
        t = capi._out("heddle_executor_run_to", self.executor.p, node.encode(), c.c_uint32(output))
        try:
            return capi.numpy_of(t)
        finally:
            capi.LIB.heddle_tensor_release(t)

    def info(self, kind, i):
        info = IoInfo(struct_size=c.sizeof(IoInfo))
        capi.call(f"heddle_executor_{kind}_info", self.executor.p, c.c_uint32(i), c.byref(info))
        d = info.dtype
        return info.name.decode(), tuple(info.shape[:info.ndim]), (d.code, d.bits)


def two_opencl():
    pocl.need()
    return "cpu,opencl:0,opencl:1"


def node(name, function, *inputs, device=1):
    return Call(function, list(inputs), T, name, device=device)


# ---- 120 to 122: devices, copies, order

def test_120_two_devices_of_one_kind(ctx, library):
    """By rule, since device_index only says OpenCL. A type that a function has no code for is refused with both."""
    text = tvm_graph({"x": (F32, [8])}, [
        node("a", "there_twice", "x", device=4), node("b", "there_twice", "a", device=4),
        node("d", "there_sum", "a", "b", device=4)], ["d"])
    with Session(ctx, text, library, two_opencl(), place=["b=opencl:1"]) as s:
        plan = s.model.explain_json()
        names = {d["id"]: d["name"] for d in plan["devices"]}
        assert {n["name"]: names[n["device"]] for n in plan["nodes"] if n["name"] in "abd"} == {
            "a": "opencl:0", "b": "opencl:1", "d": "opencl:0"}
        np.testing.assert_allclose(s.run(x=X)[0], X * 6)
    for other in ("cpu", "sim:0"):
        with pytest.raises(capi.HeddleError) as caught:
            Session(ctx, text, library, "cpu,opencl:0,sim:0", place=[f"b={other}"])
        for word in ("'b'", "there_twice", "plugin 'opencl'", "sim:0" if other == "sim:0" else "cpu:0"):
            assert word in str(caught.value)


def test_120_functions_for_cpu_stay_there(ctx, library):
    text = tvm_graph({"x": (F32, [8])}, [node("a", "plus_one", "x")], ["a"])
    for other in ("opencl:0", "sim:0"):
        if other == "opencl:0":
            pocl.need()
        with pytest.raises(capi.HeddleError) as caught:
            Session(ctx, text, library, f"cpu,{other}", place=[f"a={other}"])
        for word in ("'a'", "plus_one", "type 1", other):
            assert word in str(caught.value)


def test_121_copies_between_unlike_accelerators(ctx, library):
    """TVM: "Can not copy across different device types directly". There and back; the simulated device is DLPack's
    extension type, 12, and computes an operator by name between two functions."""
    two_opencl()
    text = tvm_graph({"x": (F32, [8])}, [
        node("a", "there_twice", "x", device=4), node("over", "__copy", "a", device=12),
        node("n", "__nop", "over", device=12), node("back", "__copy", "n", device=4),
        node("b", "there_twice", "back", device=4)], ["b", "over"])
    graph = json.loads(text)
    graph["heddle"] = {"version": 1, "opset": 17}
    graph["nodes"][3] = {"op": "Neg", "name": "n", "inputs": [[2, 0, 0]], "device": "sim:0"}
    with Session(ctx, json.dumps(graph), library, "cpu,opencl:0,opencl:1,sim:0", place=["b=opencl:1"]) as s:
        plan = s.model.explain_json()
        names = {d["id"]: d["name"] for d in plan["devices"]}
        pairs = [(names.get(x["from"]), names.get(x["to"])) for x in plan["crossings"]]
        assert ("opencl:0", "sim:0") in pairs and ("sim:0", "opencl:1") in pairs, plan["crossings"]
        b, over = s.run(x=X)
        np.testing.assert_allclose(b, X * -4)
        np.testing.assert_allclose(over, X * 2)
    with pytest.raises(capi.HeddleError, match="'over'.*type 12"):
        Session(ctx, text, library, "cpu,opencl:0")


def ordered(plan):
    """Pairs of steps of which one comes before the other by streams and waits."""
    steps, before, last = plan["steps"], {}, {}
    for step in steps:
        direct = [w["step"] for w in step["waits"]] + ([last[step["stream"]]] if step["stream"] in last else [])
        before[step["id"]] = set(direct).union(*(before.get(d, set()) for d in direct))
        last[step["stream"]] = step["id"]
    return before


def test_122_branches_are_not_in_a_row(ctx, library):
    """Two branches on two devices: nothing orders them, and no step waits on the host."""
    text = tvm_graph({"x": (F32, [8])}, [
        node("l1", "there_twice", "x", device=4), node("l2", "there_twice", "l1", device=4),
        node("r1", "there_twice", "x", device=4), node("r2", "there_twice", "r1", device=4),
        node("end", "there_sum", "l2", "r2", device=4)], ["end"])
    with Session(ctx, text, library, two_opencl(), place=["r*=opencl:1"]) as s:
        plan = s.model.explain_json()
        before, region = ordered(plan), {r["id"]: r["label"] for r in plan["regions"]}
        at = {region[step["region"]]: step["id"] for step in plan["steps"] if step["kind"] == "op"}
        assert {"l1", "l2", "r1", "r2", "end"} <= set(at), at
        for left in ("l1", "l2"):
            for right in ("r1", "r2"):
                assert at[left] not in before[at[right]] and at[right] not in before[at[left]]
        assert {at["l2"], at["r2"]} <= before[at["end"]]
        assert not [w for step in plan["steps"] for w in step["waits"] if w["by"] == "host" and step["kind"] == "op"]
        np.testing.assert_allclose(s.run(x=X)[0], X * 8)


# ---- 123 to 127: what executors answer

MANY = tvm_graph({"x": (F32, [8])}, [
    Call("halves", ["x"], [(F32, [4]), (F32, [4])], "cut"),
    Call("three", ["cut:1"], [("int32", [2, 2]), (F32, [3]), ("int8", [1])], "many"),
    node("after", "plus_one", "x"), node("last", "plus_one", "after"), node("end", "plus_one", "last")],
    ["end", "many:1", "cut", "many:2", "many"])


def test_123_inner_values(ctx, library):
    """The node after one with several outputs, not the entry of its number; nor what other nodes put there later."""
    with Session(ctx, MANY, library) as s:
        s.run(x=X)
        for k in (1, 2):  # end, by way of nodes whose memory is used again
            np.testing.assert_allclose(s.run_to("after" if k == 1 else "last"), X + k)
        np.testing.assert_array_equal(s.run_to("cut", 1), X[4:])
        np.testing.assert_array_equal(s.run_to("many", 0), (X[4:] * 100).astype(np.int32).reshape(2, 2))
        np.testing.assert_array_equal(s.run_to("many", 2), np.array([7], np.int8))
        np.testing.assert_allclose(s.run_to("#3"), X + 1)
        for k in (1, 2):
            s.executor.set_input("x", X * k)
            np.testing.assert_allclose(s.run_to("end"), X * k + 3)
        with pytest.raises(capi.HeddleError, match="has 3 outputs"):
            s.run_to("many", 3)


def test_124_shapes_of_inputs_and_outputs(ctx, library):
    """By entry, not by node."""
    with Session(ctx, MANY, library) as s:
        assert [s.info("output", i) for i in range(5)] == [
            ("end", (8,), (2, 32)), ("many:1", (3,), (2, 32)), ("cut:0", (4,), (2, 32)), ("many:2", (1,), (0, 8)),
            ("many:0", (2, 2), (0, 32))]
        assert s.info("input", 0) == ("x", (8,), (2, 32))
    later = json.loads(MANY)  # an input behind a node with several outputs
    later["nodes"].insert(3, {"op": "null", "name": "late", "inputs": []})
    for n in later["nodes"]:
        n["inputs"] = [[i + (i >= 3), k, v] for i, k, v in n["inputs"]]
    later["nodes"][4]["inputs"] = [[3, 0, 0]]
    later["arg_nodes"] = [0, 3]
    later["heads"] = [[i + (i >= 3), k, v] for i, k, v in later["heads"]]
    later["node_row_ptr"] = [0, 1, 3, 6, 7, 8, 9, 10]
    for key, value in (("dltype", F32), ("shape", [8]), ("storage_id", 99), ("device_index", 1)):
        later["attrs"][key][1].insert(6, value)
    with Session(ctx, json.dumps(later), library) as s:
        assert s.info("input", 1) == ("late", (8,), (2, 32))
        np.testing.assert_allclose(s.run(x=X, late=X * 2)[0], X * 2 + 3)


def test_125_unknown_names(ctx, library, tmp_path):
    text = tvm_graph({"x": (F32, [8]), "p": (F32, [8])}, [node("a", "sum", "x", "p")], ["a"])
    blob = legacy.params_blob({"p": X, "q": X})
    params = capi.Params(blob)
    with Session(ctx, text, library, params=params) as s:
        with pytest.raises(capi.HeddleError, match="no input 'nope'.*'x'"):
            s.executor.set_input("nope", X)
        assert capi.LIB.heddle_executor_input_index(s.executor.p, b"nope") == -1
        np.testing.assert_allclose(s.run(x=X)[0], X * 2)
    params.close()
    (tmp_path / "g.json").write_text(text)
    (tmp_path / "p.params").write_bytes(blob)
    np.save(tmp_path / "x.npy", X)
    words = (tmp_path / "g.json", "--lib", library.path, "--params", tmp_path / "p.params")
    assert json.loads(good("info", *words, "--json"))["params"]["unused"] == ["q"]
    assert "nope" in failing(1, "run", *words, "--device", "cpu", "--input", f"nope={tmp_path}/x.npy")


def bind(s, kind, i, t):
    capi.call(f"heddle_executor_bind_{kind}", s.executor.p, c.c_uint32(i), t)


@pytest.mark.parametrize("where", ["opencl:0", "sim:0"])
def test_126_memory_of_a_device_is_bound(ctx, library, where):
    """A handle is no address: TVM takes OpenCL's for one, and finds it not aligned. What is there at the run counts."""
    devices = two_opencl() if where == "opencl:0" else "cpu,sim:0"
    function, device = ("there_twice", 4) if where == "opencl:0" else ("plus_one", 1)
    text = tvm_graph({"x": (F32, [8])}, [node("a", function, "x", device=device)], ["a"])
    with Session(ctx, text, library, devices) as s:
        x, y = (capi.on_device(ctx, where, v) for v in (X, X * 0))
        bind(s, "input", 0, x)
        bind(s, "output", 0, y)
        for k in (1, 2, 3):
            host = capi.tensor(values := X * k)
            capi.call("heddle_tensor_copy", x, host)
            if k != 2:
                s.executor.run()
            else:  # by the executor's own thread
                capi.call("heddle_executor_start", s.executor.p)
                capi.call("heddle_executor_wait", s.executor.p, c.c_uint64(10**10))
            expected = values * 2 if device == 4 else values + 1
            np.testing.assert_allclose(capi.from_device(y, X), expected)
            capi.LIB.heddle_tensor_release(host)
        bind(s, "output", 0, None)
        np.testing.assert_allclose(s.run(x=X)[0], X * 2 if device == 4 else X + 1)
        np.testing.assert_allclose(capi.from_device(y, X), expected)  # of the run before
        bind(s, "output", 0, x)
        with pytest.raises(capi.HeddleError, match="overlaps the memory of output 'a'"):  # one tensor for both
            bind(s, "input", 0, x)
        for t in (x, y):
            capi.LIB.heddle_tensor_release(t)


def test_126_but_not_where_it_decides_shapes(ctx):
    text = json.dumps({"heddle": {"version": 1, "opset": 17}, "nodes": [
        {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "shape", "inputs": []},
        {"op": "Reshape", "name": "r", "inputs": [[0, 0, 0], [1, 0, 0]]}], "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3], "attrs": {"dltype": ["list_str", [F32, "int64", None]],
                                                "shape": ["list_shape", [[8], [2], None]]}})
    with Session(ctx, text, None) as s:
        shape = capi.on_device(ctx, "sim:0", np.array([2, 4], np.int64))
        with pytest.raises(capi.HeddleError, match="'shape' decides shapes.*sim:0.*set_input"):
            bind(s, "input", 1, shape)
        capi.call("heddle_executor_set_input", s.executor.p, c.c_uint32(1), shape)
        np.testing.assert_array_equal(s.run(x=X)[0], X.reshape(2, 4))
        capi.LIB.heddle_tensor_release(shape)


@pytest.mark.parametrize("align", [256, 4], ids=["aligned", "not aligned"])
def test_127_a_bound_input_that_is_an_output(ctx, library, align):
    for calls, heads in (([], ["x"]), ([node("a", "plus_one", "x")], ["x", "a"])):
        skip = 1 if align == 4 else 0
        given, *got = (capi.aligned(np.zeros(9, np.float32))[skip:skip + 8] for _ in range(1 + len(heads)))
        with Session(ctx, tvm_graph({"x": (F32, [8])}, calls, heads), library) as s:
            tensors = [capi.tensor(a) for a in (given, *got)]
            bind(s, "input", 0, tensors[0])
            for k in (1, 2, 3):
                given[:] = X * k
                if k == 2:
                    for i in range(len(heads)):
                        bind(s, "output", i, tensors[1 + i])
                s.executor.run()
                for i in range(len(heads)):
                    out = got[i] if k >= 2 else s.executor.output(i)
                    np.testing.assert_array_equal(out, X * k + np.float32(i))
                np.testing.assert_array_equal(given, X * k)
            for t in tensors:
                capi.LIB.heddle_tensor_release(t)


# ---- 128 to 131: files

def changed(text, change):
    graph = json.loads(text)
    change(graph)
    return json.dumps(graph)


ONE = tvm_graph({"x": (F32, [8])}, [node("a", "plus_one", "x"), node("b", "plus_one", "a")], ["b"])


def test_128_unknown_keys_and_metadata(ctx, library):
    """Keys that we do not know are kept, and those behind metadata read."""
    graph = json.loads(ONE)
    mixed = json.dumps({"other": {"deep": [1, None]}, "metadata": {"v": 1}, **graph})
    with Session(ctx, mixed, library) as s:
        np.testing.assert_allclose(s.run(x=X)[0], X + 2)
    with pytest.raises(capi.HeddleError, match="heads"):  # behind metadata, and wrong: TVM never looks
        del graph["heads"]
        capi.Graph(json.dumps({**graph, "metadata": {}, "heads": [[9, 0, 0]]}))


def test_129_a_scope_is_no_dtype():
    def without_dtype(g):
        del g["attrs"]["dltype"]
        g["attrs"]["storage_scope"] = ["list_str", ["", "", ""]]
    with pytest.raises(capi.HeddleError, match="dltype"):
        capi.Graph(changed(ONE, without_dtype))


def test_130_types_of_less_than_a_byte():
    """int4 would be half a byte; nothing here takes it, and nothing guesses. bool is a byte in both of its forms."""
    for word in ("int4", "uint4", "int1"):
        with pytest.raises(capi.HeddleError, match=word):
            capi.Graph(ONE.replace("float32", word))
    for word in ("bool", "uint1"):
        capi.Graph(ONE.replace("float32", word)).close()


def test_130_flatten_data_is_seen_by_the_function_alone(ctx, library):
    """Not by another node of the same value, nor by who reads inputs and outputs."""
    t = [(F32, [2, 4])]
    text = tvm_graph({"x": (F32, [2, 4])}, [Call("flat", ["x"], t, "f", flatten=1),
                                            Call("flat", ["f"], t, "g", flatten=1)], ["g", "f", "x"])
    with Session(ctx, text, library) as s:
        for _ in range(2):
            x = X.reshape(2, 4)
            for out, expected in zip(s.run(x=x), (x * 9, x * 3, x), strict=True):
                assert out.shape == (2, 4)
                np.testing.assert_allclose(out, expected, rtol=1e-6)
            assert s.info("input", 0)[1] == s.info("output", 0)[1] == s.run_to("f").shape == (2, 4)


def put(*path):
    *keys, last, value = path

    def change(graph):
        at = graph
        for k in keys:
            at = at[k]
        at[last] = value
    return change


@pytest.mark.parametrize("change", [
    put("heads", [[7, 0, 0]]), put("heads", [[2, 5, 0]]), put("heads", [[-1, 0, 0]]), put("heads", [[2**40, 0, 0]]),
    put("arg_nodes", [9]), put("arg_nodes", [-1]), put("arg_nodes", [1]), put("nodes", 1, "inputs", [[2, 0, 0]]),
    put("nodes", 1, "inputs", [[1, 0, 0]]), put("nodes", 1, "inputs", [[99, 0, 0]]),
    put("nodes", 1, "inputs", [[0, 3, 0]]), put("node_row_ptr", [0, 1, 2]), put("node_row_ptr", [0, 9, 2, 3]),
    put("node_row_ptr", [3, 2, 1, 0]), put("node_row_ptr", [0, -1, 2, 3]), put("attrs", "storage_id", 1, [0, -5, 2]),
    put("attrs", "storage_id", 1, [0, 2**40, 2]), put("attrs", "storage_id", 1, [0]), put("attrs", "shape", 1, [[8]]),
    put("attrs", "shape", 1, 1, [2**62, 2**62]), put("attrs", "device_index", 1, [1, 1]),
    put("nodes", 1, "attrs", "num_inputs", "4294967297"), put("nodes", 1, "attrs", "num_outputs", "1000000000")])
def test_131_numbers_out_of_range(change):
    with pytest.raises(capi.HeddleError) as caught:
        capi.Graph(changed(ONE, change))
    assert "graph" in str(caught.value) and len(str(caught.value)) > 25


# ---- 134: a library for a device that is not here

def test_134_names_the_plugin(ctx, tmp_path):
    """It opens, its functions for cpu run, and a function for the device says what would serve it."""
    cuda = legacy.device_module("cuda", "ptx", {"far_kernel": ([operators.HANDLE] * 2, operators.TAGS)}, "//ptx")
    f = [("x", F32, (8,)), ("y", F32, (8,))]
    path = legacy.library(tmp_path / "lib.so", "v0.14", [
        legacy.launcher("far", f, [("far_kernel", ["x", "y"], [2, 4])], device_type=2),
        legacy.kernel("near", f, "for (int i = 0; i < 8; i++) y[i] = -x[i];")], data=operators.blob("v0.14", [cuda]))
    opened = capi.Library(ctx, path)
    with Session(ctx, tvm_graph({"x": (F32, [8])}, [node("n", "near", "x")], ["n"]), opened) as s:
        np.testing.assert_array_equal(s.run(x=X)[0], -X)
    for device_index in (True, False):
        text = tvm_graph({"x": (F32, [8])}, [node("n", "far", "x", device=2)], ["n"], device_index=device_index)
        with pytest.raises(capi.HeddleError, match="plugin 'cuda'"):
            Session(ctx, text, opened)
    opened.close()
    other = legacy.library(tmp_path / "other.so", "v0.14", [legacy.kernel("near", f, "")],
                           data=operators.blob("v0.14", [legacy.string("ethos-n") + legacy.string("x")]))
    with pytest.raises(capi.HeddleError, match="ethos-n"):
        capi.Library(ctx, other)
