"""TVM: a graph of 1,000 one-element adds that today's TVM compiled, argument checks included, against a hand-written
C loop over the same functions; and a graph of 30 matrix products of 128 x 128.
"""
import os
import sys
import tempfile

import _common as common

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
import tvm  # noqa: E402 - the package, not this file
from tvm import te  # noqa: E402

CHAIN, REAL, SIDE = 1000, 30, 128


def library(path):
    a, b = te.placeholder((1,), name="a"), te.placeholder((1,), name="b")
    add = te.create_prim_func([a, b, te.compute((1,), lambda i: a[i] + b[i], name="c")])
    x, y = te.placeholder((SIDE, SIDE), name="x"), te.placeholder((SIDE, SIDE), name="y")
    k = te.reduce_axis((0, SIDE), name="k")
    z = te.compute((SIDE, SIDE), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name="z")
    dense = te.create_prim_func([x, y, z])
    module = tvm.IRModule({"add1": add.with_attr("global_symbol", "add1"),
                           "dense": dense.with_attr("global_symbol", "dense")})
    tvm.compile(module, target="llvm").export_library(path)


def main():
    args = common.arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.so")
        library(path)
        program = common.Server(args.build, "bench_tvm", path)
        runs = {"chain": 300, "real": 3}
        samples = {name: ([], []) for name in runs}
        for name in runs:
            for how in ("ours", "hand"):
                program.ask(name, how, runs[name])
        for i in range(args.rounds):
            for name in runs:
                for k in ((0, 1), (1, 0))[i % 2]:
                    samples[name][k].append(program.ask(name, ("ours", "hand")[k], runs[name]))
        slots = {name: program.ask(name, "slots", 1) for name in runs}
        scratch = program.ask("chain", "scratch", 1)
        program.close()
    report = common.Report()
    report.ratio("add_node", *samples["chain"], 1.1, "ns a node", 1 / CHAIN)
    report.ratio("real_graph", *samples["real"], 1.02, "us a run", 1e-3)
    # TVM's planner gives such a chain three storage ids: the input, and two that take turns. Ours has an output of
    # its own besides, which shows where all values are of one size and large.
    ids = {name: 3 * ((each + 255) // 256 * 256) for name, each in (("chain", 4), ("real", 4 * SIDE * SIDE))}
    report.number("slots_chain", slots["chain"] / ids["chain"], 1.0, f"of {ids['chain']} bytes of storage ids")
    print(f"slots_real: {slots['real']:.0f} bytes, {ids['real']} of storage ids")
    print(f"scratch memory of compiled code: {scratch:.0f} bytes at most")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
