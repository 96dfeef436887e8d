"""Size: libheddle, a minimal static program, an installation without oneDNN, stripped, in bytes; and libheddle's growth."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import _common as common

SOURCE = pathlib.Path(__file__).resolve().parent.parent
RELEASE = SOURCE / "bench" / "size.json"  # libheddle_bytes of the last release
MOST_MINIMAL = 300_000


def stripped(path, folder):
    out = os.path.join(folder, "stripped")
    subprocess.run(["strip", "--strip-unneeded", "-o", out, os.path.realpath(path)], check=True)
    return os.path.getsize(out)


def run(*words):
    subprocess.run([str(word) for word in words], cwd=SOURCE, check=True, stdout=sys.stderr)


def minimal(folder):
    """examples/static with the operators of its graph alone; all but the C library is linked statically."""
    jansson = os.environ.get("HEDDLE_JANSSON_SOURCE", SOURCE / ".venv" / "src" / "jansson")
    words = [f"-DHEDDLE_JANSSON_SOURCE={jansson}"] if os.path.isdir(jansson) else []
    run("cmake", "-S", "examples/static", "-B", folder, "-DMINIMAL=ON", "-DSHARED_LIBC=ON", *words)
    run("cmake", "--build", folder, "--target", "digits")
    return os.path.join(folder, "digits")


def installation(build, prefix):
    """Bytes of the files that an installation without oneDNN has, stripped; without libraries for linking, and headers."""
    other = build.rstrip("/") + "-plain"
    run("cmake", "--preset", "release", "-B", other, "-DHEDDLE_ONEDNN=OFF", "-DHEDDLE_TESTS=OFF", "-DHEDDLE_BENCH=OFF",
        "-DHEDDLE_EXAMPLES=OFF", "-DHEDDLE_PYTHON_BINDING=OFF")
    run("cmake", "--build", other)
    run("cmake", "--install", other, "--prefix", prefix, "--strip")
    return sum(path.stat().st_size for path in pathlib.Path(prefix).rglob("*")
               if path.is_file() and not path.is_symlink() and path.suffix not in (".a", ".h", ".hpp", ".c", ".cl", ".inc"))


def main():
    args = common.arguments(__doc__)
    args.build = os.path.abspath(args.build)
    before = json.loads(RELEASE.read_text())["libheddle_bytes"]
    report = common.Report()
    with tempfile.TemporaryDirectory() as folder:
        library = stripped(os.path.join(args.build, "lib", "libheddle.so"), folder)
        figures = {"libheddle_bytes": library, "libheddle_growth_bytes": library - before}
        if not args.check:  # the other builds take minutes
            program = stripped(minimal(os.path.join(folder, "minimal")), folder)
            report.number("minimal_static_bytes", program, MOST_MINIMAL, "bytes")
            figures["installation_without_onednn_bytes"] = installation(args.build, os.path.join(folder, "prefix"))
    for name, value in figures.items():
        report.figures[name] = {"ours": value, "unit": "bytes"}
        print(f"{name}: {value} bytes")
    report.close()


if __name__ == "__main__":
    sys.exit(main())
