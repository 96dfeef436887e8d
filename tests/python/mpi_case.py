"""What the tests over MPI share: a call of mpirun with the status and output of all ranks, and a model of four layers."""
import os
import shutil
import signal
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tool_case import BUILD, TOOL, environment

MPIRUN = shutil.which("mpirun") or shutil.which("mpiexec")
RECOVERY = ["--mca", "orte_enable_recovery", "1", "--mca", "orte_abort_on_non_zero_status", "0"]


def is_open_mpi():
    done = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, timeout=60)
    return "Open MPI" in done.stdout


def need():
    """The marks of a file that needs MPI."""
    why = None
    if not (BUILD / "lib" / "libheddle_mpi.so").exists():
        why = "libheddle_mpi is not built"
    elif MPIRUN is None or not is_open_mpi():
        why = "there is no mpirun of Open MPI"
    elif os.environ.get("HEDDLE_SANITIZE"):
        why = "MPI has leaks of its own, and is not instrumented"
    return pytest.mark.skipif(why is not None, reason=why or "")


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self.errors = [line for line in err.splitlines() if "heddle" in line]

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


def mpirun(n, *words, program=(str(TOOL),), options=(), timeout=90, **env):
    """Runs n ranks of the tool in a session of its own, which is ended as a whole where it takes too long. words that hold ":"
    alone separate ranks of one process each."""
    parts, part = [], []
    for word in [*map(str, words), ":"]:
        if word == ":":
            parts.append(part)
            part = []
        else:
            part.append(word)
    line = [MPIRUN, "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), *options]
    for k, part in enumerate(parts):
        line += [*([":"] if k else []), "-n", str(n if len(parts) == 1 else 1), *program, *part]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                             start_new_session=True, env=environment(OMPI_MCA_btl_base_warn_component_unused="0", **env))
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise
    return Result(child.returncode, out, err)


def layers(path, n=4, width=64, scale=0.2, seed=0):
    """MatMul and Relu n times, and the sum of the first and the last result."""
    rng = numpy.random.default_rng(seed)
    nodes, weights, x = [], [], "x"
    for i in range(n):
        weights.append(numpy_helper.from_array((rng.standard_normal((width, width)) * scale).astype(numpy.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], name=f"mat{i}"))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"r{i}"], name=f"relu{i}"))
        x = f"r{i}"
    nodes.append(helper.make_node("Add", [x, "r0"], ["y"], name="last"))
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, width]) for name in "xy"]
    graph = helper.make_graph(nodes, "layers", value[:1], value[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path
