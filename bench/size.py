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


def main():
    args = common.arguments(__doc__)
    library = stripped(os.path.join(args.build, "lib", "libheddle.so"))
    cpu = stripped(os.path.join(args.build, "lib", "heddle", "plugins", "libheddle_plugin_cpu.so"))
    report = common.Report()
    report.number("libheddle_bytes", library, 300_000, "bytes")
    report.number("libheddle_and_cpu_bytes", library + cpu, 400_000, "bytes")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
