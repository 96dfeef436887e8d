"""OpenCL: a chain of 1,000 Adds on the first device (PoCL where nothing else is there), against a loop written by hand
of clSetKernelArg and clEnqueueNDRangeKernel with one clFinish."""
import os
import sys
import tempfile

import _common as common

RUNS = 10


def main():
    args = common.arguments(__doc__)
    with tempfile.TemporaryDirectory(prefix="heddle-pocl-") as cache:
        os.environ.setdefault("POCL_DEVICES", "pthread pthread")
        os.environ.setdefault("POCL_CACHE_DIR", cache)
        server = common.Server(args.build, "bench_opencl")
        ours, theirs = [], []
        for name in ("heddle", "hand"):
            server.ask(name, RUNS)
        for _ in range(args.rounds):
            ours.append(server.ask("heddle", RUNS))
            theirs.append(server.ask("hand", RUNS))
        server.close()
    report = common.Report()
    report.ratio("opencl_add_chain", ours, theirs, 1.1, "us a run", 1e-3)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
