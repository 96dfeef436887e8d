"""Writes what the Go tests and samples load: prepare.py FOLDER [tvm]. Needs a C compiler and numpy; with "tvm" TVM's wheel
compiles a library too.

net.so, net.json, net.params: the net of examples/tvm-c-api, 224 x 224 in and 1,000 scores out, with image.npy and what
numpy makes of it, scores.npy. calls.so: compiled code that calls functions it is given, by name or as an argument.
outer.so: a model that imports a library, so that its functions are among the imports'. add.json: z = x + y.
batch.json: the same with an open first dimension of x. node.json: one node, squared, that is the function node of calls.so.
mutants: the models of tests/mutants, and some mutants of each; they need the package onnx.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "tests" / "python"), str(SOURCE / "examples" / "tvm-c-api")]
import net  # noqa: E402
from fixtures import tvm_legacy as legacy  # noqa: E402
from tvm_graph import Call, tvm_graph  # noqa: E402

F32 = "float32"

# by_name and node hand all that they get to the functions go.seen and go.node, and back what those return; apply calls its
# first argument with the others; reword does, and fails with a text of its own where that fails; parts calls go.part from each task of a parallel loop, on threads that Go does not know.
FORWARD = """
FUNCTION(%s) {
  void *f;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "%s", &f) != 0) return -1;
  return TVMFuncCall(f, args_, codes, num_args, out_ret, out_code);
}
"""
CALLS = FORWARD % ("by_name", "go.seen") + FORWARD % ("node", "go.node") + """
FUNCTION(apply) {
  TVMValue *args = args_;
  if (num_args < 1 || codes[0] != 10) { TVMAPISetLastError("apply: expected a function"); return -1; }
  return TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code);
}
FUNCTION(reword) {
  TVMValue *args = args_;
  if (TVMFuncCall(args[0].v_handle, args + 1, codes + 1, num_args - 1, out_ret, out_code) == 0) return 0;
  TVMAPISetLastError("reword: it did not work");
  return -1;
}
static int part(int task, Group *group, void *data) {
  void *f;
  TVMValue v[2]; int c[2] = {0, 0};
  v[0].v_int64 = task;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "go.part", &f) != 0) return -1;
  return TVMFuncCall(f, v, c, 1, &v[1], &c[1]);
}
FUNCTION(parts) { return TVMBackendParallelLaunch(part, 0, 0); }
"""
ADD = legacy.kernel("add", [(n, F32, (4,)) for n in "abc"], "for (int i = 0; i < 4; i++) c[i] = a[i] + b[i];")
SCALE = legacy.kernel("scale", [("x", F32, (4,)), ("y", F32, (4,))], "for (int i = 0; i < 4; i++) y[i] = x[i] * 3;")


def graph(inputs, shapes, op):
    """One node of ONNX's on inputs of float32."""
    nodes = [{"op": "null", "name": name, "inputs": []} for name in inputs]
    nodes.append({"op": op, "name": "out", "inputs": [[i, 0, 0] for i in range(len(inputs))]})
    return json.dumps({"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": list(range(len(inputs))),
                       "heads": [[len(inputs), 0, 0]], "node_row_ptr": list(range(len(inputs) + 2)),
                       "attrs": {"dltype": ["list_str", [F32] * len(inputs) + [None]],
                                 "shape": ["list_shape", shapes + [None]]}})


def write_mutants(folder, each=20):
    try:
        from mutants import models, mutate
    except ImportError:
        return  # there is no onnx
    folder.mkdir(exist_ok=True)
    models.write(folder)
    for name, make in models.MODELS.items():
        for k in range(each):
            (folder / f"{name}_{k}.onnx").write_bytes(mutate.mutant(make(), f"{name}:{k}"))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    net.write(folder)
    image = np.random.default_rng(3).random((1, 3, 224, 224)).astype(np.float32)
    np.save(folder / "image.npy", image)
    np.save(folder / "scores.npy", net.scores(image, net.parameters()).astype(np.float32))
    legacy.library(folder / "calls.so", "v0.14", [CALLS, ADD])
    model = tvm_graph({"x": (F32, [4])}, [Call("scale", ["x"], [(F32, [4])])], ["scale"])
    data = legacy.blob([legacy.factory(model, {}), legacy.LIB], [[1], []])
    legacy.library(folder / "outer.so", "v0.14", [SCALE], data=data)
    (folder / "add.json").write_text(graph(["x", "y"], [[4], [4]], "Add"))
    (folder / "batch.json").write_text(graph(["x", "y"], [["n", 4], [1, 4]], "Add"))
    node = Call("node", ["x"], [(F32, [4])], name="squared")
    (folder / "node.json").write_text(tvm_graph({"x": (F32, [4])}, [node], ["squared"]))
    write_mutants(folder / "mutants")
    if "tvm" in sys.argv[2:]:
        subprocess.run([sys.executable, str(SOURCE / "tests" / "python" / "tvm_compile.py"), str(folder)], check=True)


if __name__ == "__main__":
    main()
