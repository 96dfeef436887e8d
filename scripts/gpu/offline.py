"""The parts of scripts/gpu-test --offline: builds and tests on a machine with a GPU and without a network, in pieces.

offline.py --from DIR --part N --out DIR [--double] [--seconds S] [--again] [--list] [--targets "T..."]

DIR of --from is what scripts/gpu-test --prepare made. Each part takes at most --seconds (480). A part is a list of
steps; the result of each is a line of results.jsonl, written when the step ends, both in --out and in build/gpu-offline,
which a later call on the same machine finds: steps that passed are not run again without --again. What a step prints is
in --out too, in part-N.log. --double runs on the doubles of the drivers, to see that all of this works; --targets builds only these, for a machine of
few cores.
"""
import argparse
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATE = os.path.join(ROOT, "build", "gpu-offline")
BUILD = os.path.join(STATE, "build")
TAIL = 3000  # characters of a failed step's output in its result
LOG = 12 << 20  # bytes of a part's log, since what comes back is limited


# ---------------------------------------------------------------- the machine

def unpack(source, root):
    """The Debian packages, without installing them: by dpkg, or by ar and tar where there is none."""
    for deb in sorted(glob.glob(os.path.join(source, "debs", "*.deb"))):
        if shutil.which("dpkg"):
            subprocess.run(["dpkg", "-x", deb, root], check=True)
            continue
        with open(deb, "rb") as f:  # an archive of ar: members behind headers of 60 bytes
            data = f.read()
        at = 8
        while at + 60 <= len(data):
            name, size = data[at:at + 16].decode().strip().rstrip("/"), int(data[at + 48:at + 58])
            if name.startswith("data.tar"):
                subprocess.run(["tar", "-x", "-C", root, {"xz": "-J", "gz": "-z", "zst": "--zstd"}[name.rsplit(".", 1)[1]]],
                               input=data[at + 60:at + 60 + size], check=True)
            at += 60 + size + size % 2


def search_folders():
    """Where the running Python finds packages."""
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
    return [p for p in dict.fromkeys(found) if p and os.path.isdir(p) and p.endswith("-packages")]


def stand_in_venv():
    """.venv, where there is none: the running Python and all packages that it finds, as links."""
    venv = os.path.join(ROOT, ".venv")
    if os.path.exists(os.path.join(venv, "bin", "python")):
        return
    packages = os.path.join(venv, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    os.makedirs(packages, exist_ok=True)
    os.makedirs(os.path.join(venv, "bin"), exist_ok=True)
    for folder in search_folders():
        for name in os.listdir(folder):
            link = os.path.join(packages, name)
            if not os.path.lexists(link) and not name.endswith(".pth"):
                os.symlink(os.path.join(folder, name), link)
    for name in "python", "python3":  # a link would lose the packages of a virtual environment
        path = os.path.join(venv, "bin", name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        os.chmod(path, 0o755)


def library(pattern, newest=99):
    """A library of a Python package (nvidia/cu13/lib, nvidia/cudnn/lib, ...), of the highest major up to newest."""
    found = {}
    for folder in search_folders():
        for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", pattern)):
            match = re.search(r"\.so\.(\d+)$", path)
            if match and int(match[1]) <= newest:
                found.setdefault(int(match[1]), path)
    return found[max(found)] if found else None


def loader_has(name):
    done = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False) if shutil.which("ldconfig") else None
    return done is not None and re.search(r"\b" + re.escape(name), done.stdout) is not None


def environment(root, double):
    """What the build and the tests see: the unpacked packages, and the vendor's libraries of Python packages."""
    env = dict(os.environ)
    arch = f"{platform.machine()}-linux-gnu"
    libs = [os.path.join(root, "usr", "lib", arch), os.path.join(root, "lib", arch), os.path.join(root, "usr", "lib")]
    here = lambda *parts: os.path.join(root, *parts)
    env["PATH"] = os.pathsep.join([here("usr", "bin"), env.get("PATH", "")])
    env["LD_LIBRARY_PATH"] = os.pathsep.join([*libs, *filter(None, [env.get("LD_LIBRARY_PATH")])])
    env["PKG_CONFIG_PATH"] = os.pathsep.join([os.path.join(libs[0], "pkgconfig"), here("usr", "share", "pkgconfig")])
    env["PKG_CONFIG_SYSROOT_DIR"] = root
    env["LIBRARY_PATH"] = os.pathsep.join([*libs, *filter(None, [env.get("LIBRARY_PATH")])])
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in "HEDDLE_TEST_GPU", "HEDDLE_CUDA_DRIVER":
        env.pop(name, None)
    if double:
        return env
    env["HEDDLE_TEST_GPU"] = "real"
    for key, pattern, usual in (("NVRTC", "libnvrtc.so.[0-9]*", "libnvrtc.so"), ("CUBLASLT", "libcublasLt.so.[0-9]*", "libcublasLt.so"),
                                ("CUDNN", "libcudnn.so.[0-9]*", "libcudnn.so")):
        path = library(pattern, 13 if key != "CUDNN" else 99)
        if path and not loader_has(usual) and f"HEDDLE_CUDA_{key}" not in env:
            env[f"HEDDLE_CUDA_{key}"] = path
            env["LD_LIBRARY_PATH"] = os.path.dirname(path) + os.pathsep + env["LD_LIBRARY_PATH"]
    return env


# ---------------------------------------------------------------- steps

class Step:
    """A command with a limit in seconds. counts: reads passed, failed, skipped from its JUnit file."""

    def __init__(self, name, command, limit=300, needs=None, junit=None, env=None):
        self.name, self.command, self.limit, self.needs, self.junit, self.env = name, command, limit, needs, junit, env or {}


def ctest(name, pattern, limit=400, **env):
    junit = os.path.join(STATE, re.sub(r"\W+", "_", name) + ".xml")
    return Step(name, ["ctest", "--test-dir", BUILD, "-R", pattern, "-j", str(os.cpu_count()), "--timeout", str(limit),
                       "--output-on-failure", "--no-tests=error", "--output-junit", junit], limit, "build", junit, env)


def python(name, *words, limit=300, **env):
    return Step(name, [sys.executable, *words], limit, "build", None, env)


def configure(root, env):
    words = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles",
             "-DCMAKE_BUILD_TYPE=Release", "-DHEDDLE_WERROR=OFF", "-DHEDDLE_EXAMPLES=OFF", "-DHEDDLE_PYTHON_BINDING=OFF",
             f"-DCMAKE_PREFIX_PATH={root}/usr", f"-DHEDDLE_DRIVER_CACHE={STATE}/drivers"]
    tests = subprocess.run(["pkg-config", "--exists", "cmocka"], capture_output=True, check=False, env=env).returncode == 0 \
        if shutil.which("pkg-config", path=env["PATH"]) else False
    has_pytest = subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True, check=False).returncode == 0
    words.append(f"-DHEDDLE_TESTS={'ON' if tests and has_pytest else 'OFF'}")
    for folder in [os.path.join(p, "nvidia", "*", "include") for p in search_folders()] + ["/usr/local/cuda*/include"]:
        for found in glob.glob(os.path.join(folder, "cuda.h")):
            words.append(f"-DHEDDLE_CUDA_INCLUDE={os.path.dirname(found)}")
    for name, path in (("HEDDLE_HIP_INCLUDE", "hip/hiprtc.h"), ("HEDDLE_FAKES_OPENCL", "CL/cl.h")):
        if os.path.exists(os.path.join(root, "usr", "include", path)):
            words.append(f"-D{name}={root}/usr/include")
    return words, bool(tests and has_pytest)


def parts_of(root, env, double, targets):
    words, has_tests = configure(root, env)
    tool = os.path.join(BUILD, "bin", "heddle")
    sanitizer = shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")), None)
    bench = [os.path.join(ROOT, "bench", "gpu.py"), "--build", BUILD, *(["--double"] if double else [])]
    shim = os.path.join(BUILD, "tests", "fakes", "hip_on_cuda", "libamdhip64.so")
    over = {"HEDDLE_ROCM_DRIVER": shim, "HEDDLE_ROCM_HIPRTC": shim, "HEDDLE_ROCM_LIBRARIES": "0", "HEDDLE_TEST_GPU": "real"}
    if double:
        over.update(HEDDLE_CUDA_DRIVER=f"{BUILD}/tests/fakes/cuda/libcuda.so.1", HEDDLE_CUDA_NVRTC=f"{BUILD}/tests/fakes/cuda/libnvrtc.so.13")
    doubles = {"HEDDLE_CUDA_DRIVER": f"{BUILD}/tests/fakes/cuda/libcuda.so.1",
               "HEDDLE_CUDA_NVRTC": f"{BUILD}/tests/fakes/cuda/libnvrtc.so.13", "HEDDLE_CUDA_LIBRARIES": "0"} if double else {}
    build = [Step("configure", words, 120),
             Step("build", ["cmake", "--build", BUILD, "-j", str(os.cpu_count()), *(["--target", *targets] if targets else [])],
                  460, "configure"),
             Step("devices", [tool, "devices", "--all"], 60, "build", env=doubles)]
    first = [*build, ctest("cuda: the plugin's tables", "^unit/plugin_cuda_(device|drivers|ops|streams)", 300)]
    parts = {
        1: first,
        2: [ctest("cuda: the plugin's tables, all", "^unit/plugin_cuda", 460)],
        3: [ctest("cuda: executor, tensors", "^executor/.*@cuda$|^executor/cuda/", 300),
            ctest("cuda: stress", "^stress/.*@cuda$", 150)],
        4: [ctest("cuda: ONNX's node tests", "^python/onnx_nodes_cuda$", 460)],
        5: [ctest("cuda: models", "^python/onnx_models_cuda$", 300),
            ctest("cuda: precision, fused chains, modules", "^python/(precision|fused|tvm|tool)_cuda$", 170)],
        6: [ctest("cuda: random graphs", "^python/random_cuda$", 460)],
        7: [ctest("cuda: faults, each in a process of its own", "^unit/plugin_cuda_faults", 120)] +
           [Step(f"compute-sanitizer {kind}", [sanitizer, "--tool", kind, "--error-exitcode", "9", "--target-processes", "all",
                 os.path.join(BUILD, "tests", f"test_unit_plugin_cuda_{program}")], 100, "build")
            for kind, program in (("memcheck", "ops"), ("memcheck", "reduce"), ("racecheck", "reduce"), ("initcheck", "ops"))
            if sanitizer and not double],
        8: [python(f"bench: {name}", *bench, "--parts", name, limit=150) for name in ("chain", "copy", "overlap", "mixed")],
        9: [python("bench: networks", *bench, "--parts", "networks", limit=460)],
        10: [python("PyTorch", os.path.join(ROOT, "scripts", "gpu", "torch_networks.py"), limit=400)],
        11: [ctest("rocm over HIP on CUDA: the plugin's tables", "^unit/plugin_rocm", 230, **over),
             ctest("rocm over HIP on CUDA: executor", "@rocm$", 120, **over),
             ctest("GPUs of OpenCL and Vulkan", "^python/gpu_others$", 120)],
    }
    return parts, has_tests


# ---------------------------------------------------------------- running

def counted(junit):
    """passed, failed, skipped and the names of what failed, of CTest's file; pytest's own counts where it has them."""
    import xml.etree.ElementTree as tree
    passed = skipped = 0
    failed = []
    for case in tree.parse(junit).getroot().iter("testcase"):
        found = re.findall(r"(\d+) (passed|failed|skipped|error)", (case.findtext("system-out") or "").strip().rsplit("\n", 1)[-1])
        name = case.get("name")
        if found and "python" in name:
            counts = {word: int(n) for n, word in found}
            passed, skipped = passed + counts.get("passed", 0), skipped + counts.get("skipped", 0)
            failed += [name] * (counts.get("failed", 0) + counts.get("error", 0) or case.get("status") == "fail")
        elif case.get("status") == "run":
            passed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            failed.append(name)
    return {"passed": passed, "failed": len(failed), "skipped": skipped, "names": sorted(set(failed))[:40]}


def run(step, seconds, env):
    """Its result. What it starts ends with it."""
    begin = time.monotonic()
    result = {"step": step.name, "status": "failed"}
    try:
        process = subprocess.Popen(step.command, cwd=ROOT, env={**env, **step.env}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        return {**result, "seconds": 0, "tail": str(error)}, str(error)
    try:
        out = process.communicate(timeout=seconds)[0]
        status = {0: "passed", 77: "skipped"}.get(process.returncode, "failed")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, status = process.communicate()[0], "late"
    text = out.decode(errors="replace")
    result.update(status=status, seconds=round(time.monotonic() - begin, 1))
    if step.junit and os.path.exists(step.junit):
        try:
            result["counts"] = counted(step.junit)
        except Exception as error:  # what ctest was cut off in
            result["counts"] = {"passed": 0, "failed": 0, "skipped": 0, "names": [str(error)]}
    figures = [line for line in text.splitlines() if line.startswith("{")]
    if figures and not step.junit:
        try:
            result["figures"] = json.loads(figures[-1])
        except ValueError:
            pass
    if step.name == "devices":
        result["text"] = text
    if status != "passed":
        result["tail"] = text[-TAIL:]
    return result, text


class Results:
    """The lines so far, of this machine; each is on the disk when write returns."""

    def __init__(self, out):
        self.paths = [os.path.join(STATE, "results.jsonl"), os.path.join(out, "results.jsonl")]
        self.lines = []
        if os.path.exists(self.paths[0]):
            with open(self.paths[0], encoding="utf-8") as f:
                self.lines = [json.loads(line) for line in f if line.strip()]

    def passed(self, name):
        return any(x["step"] == name and x["status"] == "passed" for x in self.lines)

    def write(self, line=None):
        if line is not None:
            self.lines = [x for x in self.lines if x["step"] != line["step"]] + [line]
        for path in self.paths:
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.writelines(json.dumps(x) + "\n" for x in self.lines)
                f.flush()
                os.fsync(f.fileno())
            os.replace(path + ".new", path)


def machine(env):
    about = {"step": "machine", "status": "passed", "seconds": 0, "date": time.strftime("%Y-%m-%d", time.gmtime()),
             "python": platform.python_version(), "cores": os.cpu_count(),
             "libraries": {k: v for k, v in env.items() if k.startswith("HEDDLE_CUDA_")}}
    for name, words in (("compiler", ["gcc", "--version"]), ("nvidia_smi", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])):
        if shutil.which(words[0]):
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
            about[name] = (done.stdout.strip().splitlines() or [""])[0]
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False) if shutil.which("git") else None
    about["commit"] = git.stdout.strip() if git and git.returncode == 0 else "not from a repository"
    return about


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--part", default="1")
    parser.add_argument("--out", required=True)
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--seconds", type=int, default=480)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--targets")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    root = os.path.join(STATE, "root")
    os.makedirs(root, exist_ok=True)
    os.makedirs(args.out, exist_ok=True)
    if not os.path.isdir(os.path.join(root, "usr")):
        unpack(args.source, root)
    stand_in_venv()
    env = environment(root, args.double)
    parts, has_tests = parts_of(root, env, args.double, (args.targets or "").split())
    wanted = sorted(parts) if args.part == "all" else [int(n) for n in args.part.split(",")]
    unknown = [n for n in wanted if n not in parts]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are 1 to {max(parts)}, and all")
    if args.list:
        for number in wanted:
            print(f"{number}: " + ", ".join(step.name for step in parts[number]))
        return 0
    results = Results(args.out)
    results.write({**machine(env), "double": args.double, "tests": has_tests})
    if not has_tests:
        print("cmocka or pytest is missing: the tests are left out")
    failed = False
    with open(os.path.join(args.out, "part-" + args.part.replace(",", "-") + ".log"), "w", encoding="utf-8") as log:
        for number in wanted:
            # What a step needs is made first, also where the machine is a fresh one and the part is a later one.
            needed = [s for s in parts[1] if s.name in ("configure", "build")] if number != 1 else []
            for step in needed + parts[number]:
                if results.passed(step.name) and (step in needed or not args.again):
                    continue
                left = end - time.monotonic()
                if step.needs and not results.passed(step.needs):
                    line, text = {"step": step.name, "status": "not run", "seconds": 0, "tail": f"{step.needs} failed"}, ""
                elif left < 5:
                    line, text = {"step": step.name, "status": "not run", "seconds": 0, "tail": "no time was left"}, ""
                elif step.junit and not has_tests:
                    line, text = {"step": step.name, "status": "not run", "seconds": 0, "tail": "cmocka or pytest is missing"}, ""
                else:
                    line, text = run(step, min(step.limit, left), env)
                line["part"] = number
                results.write(line)
                if log.tell() < LOG:
                    log.write(f"==== {step.name}: {line['status']}, {line['seconds']} s\n{text[-(1 << 20):]}\n")
                    log.flush()
                counts = line.get("counts")
                words = f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped" if counts else ""
                print(f"{step.name}: {line['status']}, {line['seconds']} s {words}", flush=True)
                if line["status"] in ("failed", "late"):
                    failed = True
                    print(line.get("tail", "")[-1200:], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
