"""TVM: a graph of 1,000 one-element adds that today's TVM compiled, argument checks included, against a hand-written
C loop over the same functions; a graph of 30 matrix products of 128 x 128; and what plans need of memory, against the
storage ids that TVM gave, for graphs that TVM v0.14 wrote (tests/data/tvm_v0_14).
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import _common as common

HERE = pathlib.Path(__file__).resolve().parent
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE] + [str(HERE.parent / "tests")]
import tvm  # noqa: E402 - the package, not this file
from tvm import te  # noqa: E402

from fixtures import tvm_legacy as legacy  # noqa: E402

CHAIN, REAL, SIDE = 1000, 30, 128
GRAPHS = HERE.parent / "tests" / "data" / "tvm_v0_14"
WIDTHS = {"bool": 1, "uint1": 1, "int8": 1, "uint8": 1, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4,
          "int64": 8, "uint64": 8, "float64": 8}


def library(path):
    a, b = te.placeholder((1,), name="a"), te.placeholder((1,), name="b")
    add = te.create_prim_func([a, b, te.compute((1,), lambda i: a[i] + b[i], name="c")])
    x, y = te.placeholder((SIDE, SIDE), name="x"), te.placeholder((SIDE, SIDE), name="y")
    k = te.reduce_axis((0, SIDE), name="k")
    z = te.compute((SIDE, SIDE), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name="z")
    dense = te.create_prim_func([x, y, z])
    v = te.placeholder((64, 100), name="v")
    e = te.compute((64, 100), lambda i, j: te.exp(v[i, j]), name="e")  # kept in scratch memory
    m = te.reduce_axis((0, 100), name="m")
    total = te.compute((64,), lambda i: te.sum(e[i, m], axis=m), name="total")
    softmax = te.create_prim_func([v, te.compute((64, 100), lambda i, j: e[i, j] / total[i], name="w")])
    module = tvm.IRModule({name: f.with_attr("global_symbol", name)
                           for name, f in (("add1", add), ("dense", dense), ("softmax", softmax))})
    tvm.compile(module, target="llvm").export_library(path)


def heddle(build, *words):
    """The answer of the tool as JSON; None where it refuses."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    env.update(HEDDLE_CONFIG="off", POCL_DEVICES="pthread pthread")
    done = subprocess.run([os.path.join(build, "bin", "heddle"), *map(str, words), "--json"], capture_output=True,
                          text=True, env=env, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def bytes_of_ids(attrs):
    """The sum of the graph's storage ids, each as large as the largest value in it and rounded up to 256 bytes."""
    ids = {}
    for shape, dtype, k in zip(attrs["shape"][1], attrs["dltype"][1], attrs["storage_id"][1], strict=True):
        ids[k] = max(ids.get(k, 0), math.prod(shape) * WIDTHS[dtype])
    return sum((n + 255) // 256 * 256 for n in ids.values())


def planned(build, folder, path):
    """Bytes of a plan of a graph of TVM's, and of its storage ids. A plan calls nothing, so functions and kernels that
    do nothing serve; None where there is no device that the graph is for."""
    text = (path / "graph.json").read_text()
    graph = json.loads(text)
    attrs, rows = graph["attrs"], graph["node_row_ptr"]
    types = attrs["device_index"][1] if "device_index" in attrs else [1] * rows[-1]
    wanted = {n["attrs"]["func_name"]: types[row] for n, row in zip(graph["nodes"], rows[:-1], strict=True)
              if n["op"] == "tvm_op" and not n["attrs"]["func_name"].startswith("__")}
    if not set(types) <= {1, 4}:
        return None
    kernels = {f"{name}_kernel": ([], ["blockIdx.x"]) for name, t in wanted.items() if t == 4}
    code = "".join(f"// Function: {k}\n__kernel void {k}() {{}}\n" for k in kernels)
    data = legacy.blob([legacy.LIB, legacy.device_module("opencl", "cl", kernels, code)], [[1], []]) if kernels else None
    library = legacy.library(folder / f"{path.name}.so", "v0.14", [f"FUNCTION({f}) {{ return 0; }}" for f in wanted],
                             data=data)
    plan = heddle(build, "plan", path / "graph.json", "--lib", library, "--device", "cpu,opencl:0" if kernels else "cpu")
    return None if plan is None else (sum(a["bytes"] for a in plan["allocations"]), bytes_of_ids(attrs))


def slots(report, build, folder):
    figures = {}
    for path in sorted(p for p in GRAPHS.iterdir() if (p / "graph.json").exists()):
        figure = planned(build, folder, path)
        if figure is None:
            print(f"slots of {path.name}: none of its devices is here")
            continue
        figures[path.name] = figure[0] / figure[1]
        print(f"slots of {path.name}: {figure[0]} bytes, {figure[1]} of storage ids, ratio {figures[path.name]:.4f}")
    for name in ("mlp_cpu", "conv_bn_cpu", "mobilenet_v1_cpu", "hetero_cpu_opencl"):
        if name in figures:
            report.number(f"slots_{name}", figures[name], 1.0, "of the bytes of its storage ids")
    report.number("slots_worst", max(figures.values()), 1.0, f"of the bytes of storage ids, of {len(figures)} graphs")


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
        needed = {name: program.ask(name, "slots", 1) for name in runs}
        program.close()
        report = common.Report()
        report.ratio("add_node", *samples["chain"], 1.1, "ns a node", 1 / CHAIN)
        report.ratio("real_graph", *samples["real"], 1.02, "us a run", 1e-3)
        slots(report, args.build, pathlib.Path(folder))
        called = heddle(args.build, "bench", path, "--func", "softmax", "--input", "v=float32:64x100", "--input",
                        "w=float32:64x100", "--repeat", 1, "--threads", 1)
    # TVM's planner gives such a row three storage ids: the input, and two that take turns.
    for name, each in (("chain", 4), ("real", 4 * SIDE * SIDE)):
        ids = 3 * ((each + 255) // 256 * 256)
        report.number(f"slots_{name}", needed[name] / ids, 1.0, f"of {ids} bytes of storage ids")
    print(f"scratch memory of compiled code, of all threads at most: {called['scratch_bytes']} bytes (softmax, of which a "
          f"tensor of {64 * 100 * 4} bytes is scratch)")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
