"""heddle rpc-server with clients of the TVM that is installed: files, libraries, memory, copies, functions, executors, time
evaluators, errors, and sessions that crash, hang, allocate too much or are left.
timeout: 300
"""
import os
import subprocess
import time

import numpy as np
import pytest

import rpc_theirs
from fixtures import tvm_legacy as legacy
from rpc_case import folders, server, tracker, wait_for
from tool_case import BUILD, SOURCE

tvm = pytest.importorskip("tvm", reason="the TVM of this environment is not there")
rpc = pytest.importorskip("tvm.rpc", reason="this TVM has no RPC")

F32 = "float32"
pytestmark = pytest.mark.skipif(legacy.compiler() is None, reason="there is no C compiler to write libraries with")


def functions():
    """add1, and functions that behave badly or return what is no tensor."""
    def plain(name, body):
        return f"FUNCTION({name}) {{ (void)args_; (void)codes; (void)num_args; {body} }}\n"
    return ["#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n",
            legacy.kernel("add1", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] + 1;"),
            plain("crash", "*(volatile int *)8 = 1; return 0;"),
            plain("leave", "_exit(3);"),
            plain("hang", "for (;;) sleep(1); return 0;"),
            plain("hog", "void *volatile p = malloc((size_t)4 << 30); if (p != NULL) _exit(4); return 0;"),
            plain("child", "if (fork() == 0) for (;;) sleep(1); return 0;")]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return legacy.library(tmp_path_factory.mktemp("library") / "lib.so", "v0.14", functions())


@pytest.fixture(scope="module")
def served():
    with server("--key", "k", "--sessions", 8) as s:
        yield s


@pytest.fixture
def remote(served):
    return rpc.connect("127.0.0.1", served.port, "k")


def loaded(remote, library):
    remote.upload(str(library))
    return remote.load_module(library.name)


def arrays(remote, device=None):
    d = device or remote.cpu()
    return (tvm.runtime.tensor(np.arange(4, dtype=F32), d), tvm.runtime.tensor(np.zeros(4, F32), d))


# ---- what a session does

def test_files(remote):
    remote.upload(bytearray(b"\0\1\2" * 1000), "a.bin")
    assert bytes(remote.download("a.bin")) == b"\0\1\2" * 1000
    assert remote.listdir(".") == "a.bin,"
    path = remote.get_function("tvm.rpc.server.workpath")("b")
    assert path.endswith("/b") and "heddle-rpc-" in path
    remote.remove("a.bin")
    assert remote.listdir("/") == ""
    for name in ("../a", "/tmp/a", "a/b", ".hidden", "", "x" * 300):
        with pytest.raises(tvm.error.RPCError, match="plain file name"):
            remote.get_function("tvm.rpc.server.upload")(name, bytearray(b"x"))
    with pytest.raises(tvm.error.RPCError, match="No such file"):
        remote.download("a.bin")


@pytest.mark.parametrize("dtype,shape", [(F32, (2, 3)), ("int8", (1000,)), ("bool", (7,)), ("float64", ()), (F32, (0, 3)),
                                         ("int32", (1, 1, 1, 2))])
def test_values(remote, dtype, shape):
    value = (np.random.default_rng(1).random(shape) * 100).astype(dtype)
    a = tvm.runtime.tensor(value, remote.cpu())
    np.testing.assert_array_equal(a.numpy(), value)
    b = tvm.runtime.empty(shape, dtype, remote.cpu())
    a.copyto(b)
    np.testing.assert_array_equal(b.numpy(), value)
    assert remote.cpu().exist


def test_a_large_value(remote):
    value = np.random.default_rng(2).integers(0, 1 << 30, 1 << 20, dtype=np.int64)
    np.testing.assert_array_equal(tvm.runtime.tensor(value, remote.cpu()).numpy(), value)


def test_functions_of_a_library(remote, library):
    m = loaded(remote, library)
    x, y = arrays(remote)
    m["add1"](x, y)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    with pytest.raises(tvm.error.RPCError, match="num_args should be 2"):
        m["add1"](x)
    m["add1"](x, y)  # the session goes on
    with pytest.raises(AttributeError):
        m["nothing"]
    with pytest.raises(tvm.error.RPCError, match="nothing.so"):
        remote.load_module("nothing.so")
    remote.upload(bytearray(b"no library"), "bad.so")
    with pytest.raises(tvm.error.RPCError, match="bad.so"):
        remote.load_module("bad.so")


def test_what_is_refused(remote):
    for name in ("runtime.module.loadfile_so", "runtime.ModuleLoadFromFile", "no.such.function"):
        with pytest.raises((AttributeError, ValueError, tvm.error.RPCError)):
            remote.get_function(name)("/etc/passwd", "so")


def test_objects_are_linked(remote, tmp_path):
    source = tmp_path / "o.c"
    source.write_text("int f(void *a, int *c, int n, void *r, int *rc, void *s) "
                      "{ (void)a; (void)c; (void)n; (void)r; (void)s; *rc = 4; return 0; }\n")
    subprocess.run([legacy.compiler(), "-fPIC", "-c", str(source), "-o", str(tmp_path / "o.o")], check=True)
    remote.upload(str(tmp_path / "o.o"))
    remote.load_module("o.o")["f"]()
    assert bytes(remote.download_linked_module("o.o"))[:4] == b"\x7fELF"


def test_time_evaluator(remote, library):
    m = loaded(remote, library)
    x, y = arrays(remote)
    times = m.time_evaluator("add1", remote.cpu(), number=3, repeat=4)(x, y).results
    assert len(times) == 4 and all(0 < t < 1 for t in times)
    times = m.time_evaluator("add1", remote.cpu(), number=1, repeat=1, min_repeat_ms=20)(x, y).results
    assert 0 < times[0] < 1


def test_graph_executor(remote, tmp_path):
    """A graph and results that TVM v0.14 wrote."""
    folder = SOURCE / "tests" / "data" / "tvm_v0_14" / "dtype_float32"
    graph = (folder / "graph.json").read_text()
    inputs = {p.stem[len("input_"):]: np.load(p) for p in folder.glob("input_*.npy")}
    tensors = [(n, F32, (3, 5)) for n in "abc"]
    kernels = [legacy.kernel(f"tvmgen_default_fused_{name}", tensors, f"for (int i = 0; i < 15; i++) c[i] = {expression};")
               for name, expression in (("add", "a[i] + b[i]"), ("multiply", "a[i] * b[i]"),
                                        ("maximum", "a[i] > b[i] ? a[i] : b[i]"))]
    m = loaded(remote, legacy.library(tmp_path / "model.so", "v0.14", kernels))
    ex = remote.get_function("tvm.graph_executor.create")(graph, m, 1, 0)
    params = (folder / "params.bin").read_bytes()
    if len(params) > 32:
        ex["load_params"](bytearray(params))
    for key, value in inputs.items():
        ex["set_input"](key, tvm.runtime.tensor(value, remote.cpu()))
    ex["run"]()
    outputs = [np.load(folder / f"output_{i}.npy") for i in range(ex["get_num_outputs"]())]
    assert outputs
    for i, expected in enumerate(outputs):
        np.testing.assert_allclose(ex["get_output"](i).numpy(), expected, rtol=1e-6)
    name = next(iter(inputs))
    tensor = ex["get_input"](name)  # as TVM's executor sets inputs: what it gives is written to
    tensor.copyfrom(np.zeros(inputs[name].shape, inputs[name].dtype))
    assert not ex["get_input"](name).numpy().any()


def test_functions_as_arguments(remote, library):
    """A function of the server's is passed back to it: callbacks."""
    m = loaded(remote, library)
    f = remote.get_function("runtime.RPCTimeEvaluator")(m, "add1", 1, 0, 1, 1, 0, 100, 0, 1, 0, "")
    x, y = arrays(remote)
    assert len(bytes(f(x, y))) == 8


# ---- devices of plugins

@pytest.mark.parametrize("kind", ["sim", "opencl"])
def test_other_devices(tmp_path, kind):
    folder = BUILD / "lib" / "heddle" / "plugins"  # type 12 means sim where no other plugin has it
    env = {"HEDDLE_PLUGINS": ":".join(str(folder / f"libheddle_plugin_{name}.so") for name in ("cpu", "sim"))}
    if kind == "opencl":
        import pocl
        pocl.need()
        env = dict(pocl.ENV)
    with server(**env) as s:
        remote = rpc.connect("127.0.0.1", s.port)
        d = remote.ext_dev(0) if kind == "sim" else remote.cl(0)
        assert d.exist
        x, y = arrays(remote, d)
        np.testing.assert_array_equal(x.numpy(), np.arange(4))
        x.copyto(y)
        np.testing.assert_array_equal(y.numpy(), np.arange(4))
        with pytest.raises(tvm.error.RPCError):
            arrays(remote, remote.device("metal", 3))
        assert not remote.device("metal", 3).exist
        if kind == "opencl":
            check_kernels(remote, d, tmp_path)


def check_kernels(remote, device, folder):
    """Code that TVM compiled for OpenCL, on a device of the plugin."""
    import tvm_compile as c
    target = tvm.target.Target({"kind": "opencl"}, host="llvm")
    module = tvm.IRModule({"scale": c.for_device("scale", c.scale())})
    tvm.compile(module, target=target).export_library(str(folder / "scale.so"))
    m = loaded(remote, folder / "scale.so")
    x = tvm.runtime.tensor(np.arange(256, dtype=F32), device)
    y = tvm.runtime.tensor(np.zeros(256, F32), device)
    m["scale"](x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(256) * 2)
    assert m.time_evaluator("scale", device, number=2, repeat=2)(x, y).mean > 0


# ---- sessions that end badly

def broken(f):
    with pytest.raises(Exception):
        f()


def test_a_crash_ends_its_session_alone(served, library):
    good, bad = rpc.connect("127.0.0.1", served.port, "k"), rpc.connect("127.0.0.1", served.port, "k")
    x, y = arrays(good)
    m = loaded(good, library)
    for name in ("crash", "leave"):
        bad = rpc.connect("127.0.0.1", served.port, "k")
        broken(loaded(bad, library)[name])
        m["add1"](x, y)
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4])
    wait_for(lambda: "signal 11" in served.err() or "SEGV" in served.err())  # as a sanitizer has it


def test_time_limits(library):
    with server("--session-timeout", 60) as s:
        remote = rpc.connect("127.0.0.1", s.port, session_timeout=1)
        started = time.monotonic()
        with pytest.raises(Exception, match="expired"):
            loaded(remote, library)["hang"]()
        assert time.monotonic() - started < 20
        arrays(rpc.connect("127.0.0.1", s.port))  # the only session's place is free again
    with server("--session-timeout", 1) as s:
        with pytest.raises(Exception, match="expired"):
            loaded(rpc.connect("127.0.0.1", s.port), library)["hang"]()


def test_memory_limits(library):
    with server("--session-memory", 16, "--packet-limit", 8, "--sessions", 3) as s:
        remote = rpc.connect("127.0.0.1", s.port)
        if "HEDDLE_SANITIZE" not in os.environ:  # a sanitizer's memory is under no such limit
            loaded(remote, library)["hog"]()  # the session ends if it gets any
        with pytest.raises(tvm.error.RPCError, match="out of memory"):
            tvm.runtime.empty((17 << 20,), "int8", remote.cpu())
        held = [tvm.runtime.empty((5 << 20,), "int8", remote.cpu()) for _ in range(3)]
        with pytest.raises(tvm.error.RPCError, match="out of memory"):
            tvm.runtime.empty((5 << 20,), "int8", remote.cpu())
        del held[0]
        tvm.runtime.empty((5 << 20,), "int8", remote.cpu())
        remote.upload(bytearray(7 << 20), "a")
        with pytest.raises(tvm.error.RPCError, match="limit"):
            for name in "bc":
                remote.upload(bytearray(7 << 20), name)
        broken(lambda: remote.upload(bytearray(10 << 20), "d"))  # longer than a packet may be: the session is over
        arrays(rpc.connect("127.0.0.1", s.port))


def test_folders_and_processes_are_removed(library, tmp_path):
    with server("--sessions", 4, TMPDIR=str(tmp_path)) as s:
        remote = rpc.connect("127.0.0.1", s.port)
        loaded(remote, library)["child"]()
        assert len(folders(tmp_path)) == 1 and len(s.children()) == 1
        crashed = rpc.connect("127.0.0.1", s.port)
        broken(loaded(crashed, library)["crash"])
        del remote, crashed
        wait_for(lambda: not folders(tmp_path) and not s.children())
        rpc.connect("127.0.0.1", s.port)
        left = rpc.connect("127.0.0.1", s.port)
        left.upload(bytearray(b"x"), "x")
        assert folders(tmp_path)
    assert not folders(tmp_path)


# ---- with TVM's tracker and ours

def use(port, key):
    """Asks a tracker for a server, twice: a key is used once."""
    t = rpc.connect_tracker("127.0.0.1", port)
    wait_for(lambda: t.summary()["queue_info"].get(key, {}).get("free") == 1)
    assert key in t.text_summary()
    for _ in range(2):
        remote = t.request(key, priority=2, session_timeout=30)
        np.testing.assert_array_equal(arrays(remote)[0].numpy(), np.arange(4))
        del remote  # the server is free again
    assert t.request_and_run(key, lambda r: r.get_function("tvm.rpc.server.workpath")("")).startswith("/")


def test_our_server_at_tvms_tracker():
    with rpc_theirs.running("tracker") as t, server("--tracker", f"127.0.0.1:{t.port}", "--key", "board"):
        use(t.port, "board")


def test_our_server_at_our_tracker():
    with tracker() as t, server("--tracker", f"127.0.0.1:{t.port}", "--key", "board"):
        use(t.port, "board")


def test_tvms_server_at_our_tracker():
    with tracker() as t, rpc_theirs.running("server", "theirs", t.port):
        use(t.port, "theirs")
