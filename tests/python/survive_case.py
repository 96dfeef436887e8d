"""What test_survive.py and test_survive_all.py share: the digits net and three random graphs over two accelerators and the
cpu, and bin/survive_sweep on them: a device fails at the k-th call for every k, under each policy."""
import subprocess

from reference import graphs, io
from tool_case import BUILD, DIGITS, environment

POLICIES = ("error", "retry", "failover")
LOST = ("open", "alloc", "view", "import", "map", "h2d", "d2h", "d2d", "fill", "peer", "stream", "submit", "sync",
        "event", "record", "wait", "signal", "query", "prepare", "bind", "run", "pack", "begin", "end", "replay")
# Lost at the k-th call of each kind; lost when a command runs; a failed call; no memory; any call at all; one device
# after the other.
FAULTS = ([f"sim.fail={call}:#@0:fault" for call in LOST]
          + ["sim.fail=run:#@0:async:fault", "sim.fail=replay:#@1:async:fault", "sim.fail=h2d:#@0:async:fault"]
          + [f"sim.fail={call}:#@0" for call in ("run", "alloc", "stream", "submit", "signal", "bind")]
          + ["sim.fail=alloc:#@1", "sim.fail=run:#@0:async", "fault.fail=any:#@sim:0", "fault.fail=any:#@sim:1",
             "sim.fail=run:#@0:fault,run:#@1:fault", "sim.fail=submit:#@0:fault,h2d:#@1:fault"])
DEVICES = "sim:0,sim:1,cpu"


def write_graphs(folder):
    """Four models; the operators of the random ones take turns on the three devices, in rows of three."""
    models = [DIGITS]
    for seed in (3, 5, 8):
        graph, params, _ = graphs.random_graph(seed, max_nodes=30)
        operators = [n for n in graph["nodes"] if n["op"] != "null"]
        for i, node in enumerate(operators):
            node["device"] = DEVICES.split(",")[i // 3 % 3]
        path = folder / f"random_{seed}.json"
        io.write_graph(path, graph)
        io.write_params(path.with_suffix(".params"), params)
        models.append(path)
    return models


def sweep(model, policy, fault, stride):
    """Gives how many calls there were, and how many times it was an error, or saved, or not to be noticed. Without oneDNN
    the cpu computes the same bits as sim."""
    done = subprocess.run([str(BUILD / "bin" / "survive_sweep"), str(model), DEVICES, policy, str(stride), fault,
                           "cpu.onednn=off"], capture_output=True, text=True, timeout=3000,
                          env=environment(HEDDLE_PLUGIN_PATH=str(BUILD / "lib" / "heddle" / "plugins")))
    assert done.returncode == 0, (str(model), policy, fault, done.stdout, done.stderr)
    words = done.stdout.split()
    return int(words[2]), int(words[4]), int(words[6]), int(words[8])
