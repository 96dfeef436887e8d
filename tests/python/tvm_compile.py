"""Compiles libraries with today's TVM: python tvm_compile.py FOLDER writes cpu.so, opencl.so and cuda.so there, and source.tar,
p.tar and q.tar with C source and objects.

A program of its own, so that no test process has TVM in it unless it wants to.
"""
import pathlib
import sys

import tvm
from tvm import s_tir, te


def function(name, *tensors):
    return te.create_prim_func(list(tensors)).with_attr("global_symbol", name)


def placeholder(name, *shape, dtype="float32"):
    return te.placeholder(shape, name=name, dtype=dtype)


def matmul():
    a, b = placeholder("a", 16, 32), placeholder("b", 32, 8)
    k = te.reduce_axis((0, 32), name="k")
    return function("matmul", a, b, te.compute((16, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c"))


def conv2d():
    x, w = placeholder("x", 1, 3, 10, 10), placeholder("w", 4, 3, 3, 3)
    c, p, q = te.reduce_axis((0, 3)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    return function("conv2d", x, w, te.compute(
        (1, 4, 8, 8), lambda n, k, i, j: te.sum(x[n, c, i + p, j + q] * w[k, c, p, q], axis=[c, p, q]), name="y"))


def softmax():
    """Between its loops are tensors of some kilobytes: scratch memory that the host gives."""
    x = placeholder("x", 64, 100)
    k, m = te.reduce_axis((0, 100), name="k"), te.reduce_axis((0, 100), name="m")
    top = te.compute((64,), lambda i: te.max(x[i, k], axis=k), name="top")
    e = te.compute((64, 100), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((64,), lambda i: te.sum(e[i, m], axis=m), name="total")
    return function("softmax", x, te.compute((64, 100), lambda i, j: e[i, j] / total[i], name="y"))


def row_sum():
    x = placeholder("x", 20, 30)
    k = te.reduce_axis((0, 30), name="k")
    return function("row_sum", x, te.compute((20,), lambda i: te.sum(x[i, k], axis=k), name="y"))


def chain():
    x = placeholder("x", 5, 7)
    a = te.compute((5, 7), lambda i, j: x[i, j] * 2.0 + 1.0, name="a")
    b = te.compute((5, 7), lambda i, j: te.tanh(a[i, j]), name="b")
    return function("chain", x, te.compute((5, 7), lambda i, j: b[i, j] - x[i, j], name="y"))


def add1():
    a, b = placeholder("a", 1), placeholder("b", 1)
    return function("add1", a, b, te.compute((1,), lambda i: a[i] + b[i], name="c"))


def flat():
    a = placeholder("a", 12)
    return function("flat", a, te.compute((12,), lambda i: a[i] + 1.0, name="b"))


def both():
    """Two outputs, of which the second is bool."""
    a = placeholder("a", 6)
    return function("both", a, te.compute((6,), lambda i: a[i] * 3.0, name="b"),
                    te.compute((6,), lambda i: a[i] > 0.0, name="c"))


def parallel():
    x = placeholder("x", 64, 256)
    made = function("parallel", x, te.compute((64, 256), lambda i, j: te.exp(x[i, j]) + 1.0, name="y"))
    schedule = s_tir.Schedule(made)
    block = schedule.get_sblock("y") if hasattr(schedule, "get_sblock") else schedule.get_block("y")
    schedule.parallel(schedule.get_loops(block)[0])
    return schedule.mod["main"].with_attr("global_symbol", "parallel")


def for_device(name, made):
    """Each part of a function becomes a kernel of its own, and what is between them scratch memory of the device."""
    schedule = s_tir.Schedule(made)
    root = schedule.get_sblock("root") if hasattr(schedule, "get_sblock") else schedule.get_block("root")
    children = schedule.get_child_blocks(root)
    for block in children:
        kinds = [v.iter_type for v in schedule.get(block).iter_vars]
        spatial = [loop for loop, kind in zip(schedule.get_loops(block), kinds) if kind == 0]
        one = schedule.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        outer, inner = schedule.split(one, factors=[None, 32])
        schedule.bind(outer, "blockIdx.x")
        schedule.bind(inner, "threadIdx.x")
    return schedule.mod["main"].with_attr("global_symbol", name)


def scale():
    x = placeholder("x", 256)
    return function("scale", x, te.compute((256,), lambda i: x[i] * 2.0, name="y"))


def main():
    folder = pathlib.Path(sys.argv[1])
    made = [f() for f in (matmul, conv2d, softmax, row_sum, chain, add1, flat, both, parallel)]
    module = tvm.IRModule({str(f.attrs["global_symbol"]): f for f in made})
    tvm.compile(module, target="llvm").export_library(str(folder / "cpu.so"))
    for kind, functions in (("opencl", (scale, matmul, conv2d, softmax, row_sum, chain)), ("cuda", (scale,))):
        module = tvm.IRModule({f.__name__: for_device(f.__name__, f()) for f in functions})
        target = tvm.target.Target({"kind": kind, **({"arch": "sm_80"} if kind == "cuda" else {})}, host="llvm")
        tvm.compile(module, target=target).export_library(str(folder / f"{kind}.so"))
    # the same as C source, and as objects for programs: with a prefix on functions and data, or on the data only
    module = tvm.IRModule({"chain": chain(), "parallel": parallel(), "softmax": softmax()})
    tvm.compile(module, target="c").export_library(str(folder / "source.tar"))
    named = tvm.IRModule({"p_chain": chain().with_attr("global_symbol", "p_chain"),
                          "p_parallel": parallel().with_attr("global_symbol", "p_parallel")})
    tvm.compile(named.with_attr("system_lib_prefix", "p_"), target="llvm").export_library(str(folder / "p.tar"))
    module = tvm.IRModule({"scale": for_device("scale", scale())}).with_attr("system_lib_prefix", "q_")
    target = tvm.target.Target({"kind": "opencl"}, host="llvm")
    tvm.compile(module, target=target).export_library(str(folder / "q.tar"))


if __name__ == "__main__":
    main()
