"""Pipeline: a stream of runs with 2 in flight against runs one after another, of models in two stages on two devices.

The time of a run in the stream, over the time of a run alone, both from one process; 0.5 would be perfect overlap. Once
two sims whose commands are delayed, so that time passes and no core is used; once cpu, on one thread, and sim, which
compute at the same time on two cores, on stages of about equal time; and cpu and OpenCL where that is built in.
"""
import json
import os
import subprocess
import sys
import tempfile

import _common as common

ELEMENTS = 1 << 16


def chain(path, stages):
    """A graph of rows of Tanh: stages has a device and a number of nodes each."""
    devices = [device for device, n in stages for _ in range(n)]
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": "Tanh", "name": f"n{i}", "device": d, "inputs": [[i, 0, 0]]} for i, d in enumerate(devices)]
    rest = [None] * len(devices)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"heddle": {"version": 1, "opset": 17}, "nodes": nodes, "arg_nodes": [0],
                   "heads": [[len(devices), 0, 0]], "node_row_ptr": list(range(len(nodes) + 1)),
                   "attrs": {"dltype": ["list_str", ["float32", *rest]],
                             "shape": ["list_shape", [[1, ELEMENTS], *rest]]}}, f)


class Bench:
    """heddle bench on a made-up graph."""

    def __init__(self, build, folder):
        self.tool, self.path = os.path.join(build, "bin", "heddle"), os.path.join(folder, "chain.json")

    def ask(self, stages, settings, *more):
        chain(self.path, stages)
        words = [w for setting in ("cpu.fuse=0", "opencl.fuse=0", *settings) for w in ("--set", setting)]
        devices = ",".join(dict.fromkeys(device for device, _ in stages))
        command = [self.tool, "bench", self.path, "--device", devices, "--threads", "1", "--optimize", "off", "--json",
                   "--number", "10", *words, *more]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def balanced(self, devices, settings):
        """Stages of about equal time, of 4 nodes on the slower device."""
        took = [self.ask([(device, 4)], settings, "--repeat", "5")["median"] for device in devices]
        return [(device, max(1, round(4 * max(took) / t))) for device, t in zip(devices, took)]

    def compare(self, report, name, stages, settings, rounds, limit):
        print(f"{name}: {', '.join(f'{n} nodes on {device}' for device, n in stages)}")
        alone, stream = [], []
        for _ in range(rounds):
            got = self.ask(stages, settings, "--repeat", "1", "--in-flight", "2")
            alone.append(got["median"])
            stream.append(got["stream"]["median"])
        report.ratio(name, stream, alone, limit, "us a run", 1e6)


def main():
    args = common.arguments(__doc__)
    report = common.Report()
    with tempfile.TemporaryDirectory(prefix="heddle-pipeline-") as folder:
        bench = Bench(args.build, folder)
        waits = ("sim.delay_us=400", "sim.capture=0")
        bench.compare(report, "pipeline_sim_sim", [("sim:0", 8), ("sim:1", 8)], waits, args.rounds, 0.6)
        bench.compare(report, "pipeline_cpu_sim", bench.balanced(("cpu", "sim:0"), ()), (), args.rounds, 0.75)
        if os.path.exists(os.path.join(args.build, "lib", "heddle", "plugins", "libheddle_plugin_opencl.so")):
            os.environ.update(POCL_DEVICES=os.environ.get("POCL_DEVICES", "pthread pthread"),
                              POCL_CACHE_DIR=os.environ.get("POCL_CACHE_DIR", folder))
            stages = bench.balanced(("cpu", "opencl:0"), ())
            bench.compare(report, "pipeline_cpu_opencl", stages, (), args.rounds, 1.0)
        else:
            print("cpu and opencl: the plugin opencl is not built")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
