"""Size: the stripped library, alone and with the cpu plugin without oneDNN, in bytes."""
import os
import subprocess
import sys
import tempfile

import _common as common


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "lib")
        subprocess.run(["strip", "--strip-unneeded", "-o", out, os.path.realpath(path)], check=True)
        return os.path.getsize(out)


def without_onednn(build):
    """The cpu plugin of the same compiler and options, built beside `build` with -DHEDDLE_ONEDNN=OFF."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    other = build.rstrip("/") + "-plain"
    configure = ["cmake", "--preset", "release", "-B", other, "-DHEDDLE_ONEDNN=OFF", "-DHEDDLE_TESTS=OFF",
                 "-DHEDDLE_BENCH=OFF", "-DHEDDLE_EXAMPLES=OFF"]
    for command in configure, ["cmake", "--build", other, "--target", "heddle_plugin_cpu"]:
        subprocess.run(command, cwd=source, check=True, stdout=sys.stderr)
    return os.path.join(other, "lib", "heddle", "plugins", "libheddle_plugin_cpu.so")


def main():
    args = common.arguments(__doc__)
    args.build = os.path.abspath(args.build)
    library = stripped(os.path.join(args.build, "lib", "libheddle.so"))
    if args.check:  # the other build takes minutes
        cpu = stripped(os.path.join(args.build, "lib", "heddle", "plugins", "libheddle_plugin_cpu.so"))
    else:
        cpu = stripped(without_onednn(args.build))
    report = common.Report()
    report.number("libheddle_bytes", library, 300_000, "bytes")
    report.number("libheddle_and_cpu_bytes", library + cpu, 400_000, "bytes")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
