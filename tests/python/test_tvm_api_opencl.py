"""TVM's C API with arrays on two OpenCL devices of PoCL's: functions that launch kernels, outside of any run and from
functions of the application, and functions of the application that look at what kernels wrote.
labels: ctypes
timeout: 300
"""
import ctypes as c

import numpy as np
import pytest

import pocl

pocl.in_process()

import capi  # noqa: E402
import tvm_api as api  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

F32 = "float32"
X, Y = ("x", F32, (8,)), ("y", F32, (8,))
SOURCE = """__kernel void triple_kernel0(__global const float *x, __global float *y) {
  int i = get_group_id(0) * 4 + get_local_id(0); y[i] = 3.0f * x[i]; }"""
# triple(x, y) launches, calls test.device with y, and launches again.
TOLD = legacy.launcher("told", [X, Y], [("triple_kernel0", ["x", "y"], [2, 4])]).replace("return 0;\n}", """
static void *tell; TVMValue w[3]; int d[3] = {7, 7, 0};
if (tell == NULL && TVMBackendGetFuncFromEnv(__tvm_module_ctx, "test.device", &tell) != 0) return -1;
w[0] = args[0]; w[1] = args[1];
if (TVMFuncCall(tell, w, d, 2, &w[2], &d[2]) != 0) return -1;
v[0].v_handle = y; c[0] = 3; v[1].v_handle = y; c[1] = 3; v[2].v_int64 = 2; c[2] = 0; v[3].v_int64 = 4; c[3] = 0;
if (TVMFuncCall(f0, v, c, 4, &v[4], &c[4]) != 0) return -1;
return 0;
}""")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    pocl.need()
    module = legacy.device_module("opencl", "cl", {"triple_kernel0": ([(3, 64), (3, 64)], ["blockIdx.x", "threadIdx.x"])},
                                  SOURCE)
    functions = [legacy.launcher("triple", [X, Y], [("triple_kernel0", ["x", "y"], [2, 4])]), TOLD,
                 legacy.kernel("on_host", [X, Y], "for (int i = 0; i < 8; i++) y[i] = x[i] + 1;")]
    path = legacy.library(tmp_path_factory.mktemp("opencl") / "lib.so", "v0.14", functions,
                          data=legacy.blob([legacy.LIB, module], [[1], []]))
    with api.load(path) as m:
        m.path = path
        yield m


@pytest.mark.parametrize("number", [0, 1])
def test_a_call_on_a_device(library, number):
    x = np.arange(8, dtype=np.float32)
    with api.array(x, (4, number)) as a, api.empty((8,), device=(4, number)) as b, library["triple"] as triple:
        triple(a, b)
        np.testing.assert_array_equal(b.numpy(), 3 * x)
        triple(b.t, a.t)  # as plain DLTensors
        np.testing.assert_array_equal(a.numpy(), 9 * x)
        with library["on_host"] as f, api.empty((8,)) as host:
            api.must("TVMArrayCopyFromTo", a.p, host.p, None)
            f(host, host)
            np.testing.assert_array_equal(host.numpy(), 9 * x + 1)
            with pytest.raises(api.TVMError, match="'on_host'.*opencl"):
                f(a, b)
            with pytest.raises(api.TVMError, match="triple"):
                triple(host, host)
        with api.empty((8,), device=(4, 1 - number)) as other, pytest.raises(api.TVMError, match="a function runs on one"):
            triple(a, other)


def test_a_call_on_memory_of_others(library):
    """A cl_mem that comes as DLPack from elsewhere is used where it is."""
    class Managed(c.Structure):
        _fields_ = [("t", api.DLTensor), ("manager", c.c_void_p), ("deleter", c.c_void_p)]

    x = np.arange(8, dtype=np.float32)
    m, p, dropped = c.POINTER(Managed)(), c.c_void_p(), []
    with api.array(x, (4, 1)) as a, api.empty((8,), device=(4, 1)) as b, library["triple"] as triple:
        api.must("TVMArrayToDLPack", a.p, c.byref(m))
        deleter = c.CFUNCTYPE(None, c.c_void_p)(dropped.append)
        own = Managed(m.contents.t, None, c.cast(deleter, c.c_void_p))
        api.must("TVMArrayFromDLPack", c.byref(own), c.byref(p))
        with api.Array(p) as taken:
            triple(taken, b)
            np.testing.assert_array_equal(b.numpy(), 3 * x)
            triple(b, taken)
            np.testing.assert_array_equal(a.numpy(), 9 * x)
            assert not dropped
        assert dropped == [c.addressof(own)]
        api.LIB.TVMDLManagedTensorCallDeleter(m)


def test_a_function_of_the_application_between_launches(library):
    """It sees what the kernel wrote, what it writes is what the next one reads, and it may call what launches kernels."""
    seen = []

    def device(x, y):
        assert (y.t.device.type, y.t.ndim) == (4, 1)
        seen.append(y.numpy())
        y.write(seen[-1] + 1)
        with library["triple"] as triple, api.array(np.ones(8, np.float32), (4, 0)) as own, \
                api.empty((8,), device=(4, 0)) as result:
            triple(own, result)
            np.testing.assert_array_equal(result.numpy(), np.full(8, 3, np.float32))
        graph = tvm_graph({"x": (F32, [8])}, [Call("on_host", ["x"], [(F32, [8])])], ["on_host"])
        np.testing.assert_array_equal(run(graph, "cpu", seen[-1]), seen[-1] + 1)  # a run within

    def run(text, devices, value):
        held = [capi.Graph(text)]
        held.append(capi.Model(ctx, held[0], devices=devices, library=lib))
        held.append(capi.Executor(held[1]))
        held[2].set_input("x", value)
        held[2].run()
        out = held[2].output(0)
        for p in reversed(held):
            p.close()
        return out

    ctx = capi.Context(config="off")
    lib = capi.Library(ctx, library.path)
    api.register("test.device", device)
    x = np.arange(8, dtype=np.float32)
    with api.array(x, (4, 0)) as a, api.empty((8,), device=(4, 0)) as b, library["told"] as told:
        told(a, b)
        np.testing.assert_array_equal(b.numpy(), 3 * (3 * x + 1))
    graph = tvm_graph({"x": (F32, [8])}, [Call("told", ["x"], [(F32, [8])], device=4)], ["told"])
    for devices in ("cpu,opencl:0", "cpu,opencl:1"):
        np.testing.assert_array_equal(run(graph, devices, x), 3 * (3 * x + 1))
    assert len(seen) == 3
    for values in seen:
        np.testing.assert_array_equal(values, 3 * x)
    lib.close()
    ctx.close()
    api.remove("test.device")
