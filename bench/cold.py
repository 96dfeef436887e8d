"""Cold start: a ResNet-50's first result in a new process with empty folders of caches, of the .onnx and packed for the device.

Whole processes of heddle run are timed, one after another in turn. Devices that are not here are left out, with a line. The
drivers' own caches (PoCL's, Mesa's) are in the empty folder too. --check takes a small network.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import _common as common
import _models as models

DEVICES = {"cpu": 0.5, "opencl": 0.2, "vulkan": 0.2}  # and how long packed may take, of the .onnx


class Cold:
    def __init__(self, build, folder):
        self.tool, self.folder, self.home = os.path.join(build, "bin", "heddle"), folder, folder / "home"

    def has(self, device):
        words = [self.tool, "devices", "--set", f"devices={device}"]
        return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def run(self, *words):
        """Nanoseconds of a process that finds no cache."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        env = {**os.environ, "XDG_CACHE_HOME": str(self.home), "HEDDLE_CONFIG": "off"}
        start = time.perf_counter_ns()
        subprocess.run([self.tool, *map(str, words)], env=env, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter_ns() - start


def main():
    made = common.parser(__doc__)
    made.add_argument("--devices", nargs="+", default=list(DEVICES), choices=list(DEVICES))
    made.set_defaults(rounds=5)
    args = made.parse_args()
    report = common.Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cold = Cold(args.build, folder)
        models.make("mlp" if args.check else "resnet50", str(folder / "net.onnx"))
        for device in args.devices[:1] if args.check else args.devices:
            packed = folder / f"{device}.heddle"
            if not cold.has(device):
                print(f"{device}: there is none here")
                continue
            cold.run("pack", folder / "net.onnx", "--for", device, "-o", packed)
            ours, theirs = [], []
            for _ in range(args.rounds):
                theirs.append(cold.run("run", folder / "net.onnx", "--random", "--device", device))
                ours.append(cold.run("run", packed, "--random", "--device", device))
            report.ratio(device, ours, theirs, DEVICES[device], "s", 1e-9)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
