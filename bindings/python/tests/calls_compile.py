"""Compiles with today's TVM: python calls_compile.py FOLDER writes calls.so and params.bin there. A program of its own, so
that no test process has TVM in it.
"""
import pathlib
import sys

import numpy as np
import tvm
from tvm import te, tirx


def calls(name, asks_for):
    """y = 2 * f(x), where f is a function by name, called in the middle of the compiled one."""
    x = te.placeholder((4,), name="x")
    inner = te.extern((4,), [x], lambda ins, outs: tirx.call_packed(asks_for, ins[0], outs[0]), name="inner")
    y = te.compute((4,), lambda i: inner[i] * 2.0, name="y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", name)


def chain():
    x = te.placeholder((5, 7), name="x")
    return te.create_prim_func([x, te.compute((5, 7), lambda i, j: te.tanh(x[i, j] * 2.0 + 1.0) - x[i, j],
                                              name="y")]).with_attr("global_symbol", "chain")


def main():
    folder = pathlib.Path(sys.argv[1])
    names = {"middle": "test.middle", "kept": "test.kept", "missing": "test.missing"}
    functions = {name: calls(name, asks_for) for name, asks_for in names.items()}
    module = tvm.IRModule({**functions, "chain": chain()})
    tvm.compile(module, target="llvm").export_library(str(folder / "calls.so"))
    params = {"w": np.arange(12, dtype="float32").reshape(3, 4), "b": np.array([1, -2], "int64"),
              "one": np.array(2.5, "float64")}
    blob = tvm.runtime.save_param_dict({name: tvm.runtime.tensor(value) for name, value in params.items()})
    (folder / "params.bin").write_bytes(bytes(blob))


if __name__ == "__main__":
    main()
