"""GPU: 1,000 small nodes, copies, copies beside kernels, turns of cpu and GPU, by hand on CUDA; and two networks.

Each figure is a ratio within one run of interleaved rounds: against programs written by hand on CUDA's driver API
(bench/hand_cuda.h), and ResNet-50 and an encoder, batch 1 and 32, in float32 and with precision fast, against ONNX
Runtime's CUDA provider where its package is installed. ONNX Runtime's float32 is without TF32, its fast is with it,
which is what it does by default. The share of the device's peak is that of float32, and of the tensor cores with fast.

--double runs all of it on the double of the driver (tests/fakes, built with the dev preset), on the host's cores and
small: the figures then say nothing, but the programs are seen to work. --check does this too.
"""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy as np

import _common as common
import _models
import _peers

LIMITS = {"chain": 1.1, "copy": 1 / 0.95, "overlap": 1.1, "mixed": 1.1, "network": 1.0}
TOLERANCE = {"strict": 1e-4, "fast": 2e-2}  # of the largest output of ONNX Runtime's CPU provider
PARTS = ("chain", "copy", "overlap", "mixed", "networks")
NETWORKS, BATCHES = ("resnet50", "encoder"), (1, 32)
SIZES = {False: {"bytes": 64 << 20, "floats": {"4k": 1 << 10, "16m": 1 << 22}, "turns": 40},
         True: {"bytes": 1 << 20, "floats": {"4k": 1 << 10}, "turns": 1}}
PAUSE = 0.01
DEV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "dev")  # the release preset builds no double


def arguments():
    parser = common.parser(__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="only these, with commas between")
    parser.add_argument("--folder", help="where the models are written and stay; a temporary folder without it")
    parser.add_argument("--double", action="store_true", help="on the driver's double, to see that all of it works")
    args = parser.parse_args()
    args.parts, args.double = args.parts.split(","), args.double or args.check
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return args


def use_double(build, folder):
    """The environment in which the double stands for the driver, for the plugin and the programs by hand alike."""
    places = [os.path.join(folder, "tests", "fakes", "cuda") for folder in (os.path.abspath(build), DEV)]
    fakes = next((f for f in places if os.path.exists(os.path.join(f, "libnvrtc.so.13"))), None)
    if fakes is None:
        common.skip("no build here has the double of CUDA's driver: the dev preset builds it where CUDA's headers are")
    driver, compiler = os.path.join(fakes, "libcuda.so.1"), os.path.join(fakes, "libnvrtc.so.13")
    os.environ.update(HEDDLE_CUDA_DRIVER=driver, HEDDLE_CUDA_NVRTC=compiler, HEDDLE_CUDA_LIBRARIES="0",
                      POCL_DEVICES="pthread", POCL_CACHE_DIR=folder, XDG_CACHE_HOME=folder)


def wheels_compiler(driver):
    """NVRTC of a Python package for a machine without a toolkit, of the driver's version of CUDA or an older one."""
    version = re.match(r"CUDA (\d+)\.", driver)
    found = {}
    for folder in sysconfig.get_path("purelib"), sysconfig.get_path("platlib"):
        for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so.1[0-9]")):
            found[int(path.rsplit(".", 1)[1])] = path
    fitting = [major for major in found if version and major <= int(version[1])]
    return found[max(fitting)] if fitting else None


def device(build):
    """What the driver calls cuda:0; exits with a message where there is none. HEDDLE_CUDA_NVRTC is set where NVRTC is
    found only so."""
    tool = os.path.join(build, "bin", "heddle")
    done = subprocess.run([tool, "devices", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    for found in json.loads(done.stdout)["devices"]:
        if found["name"] != "cuda:0":
            continue
        driver = found.get("driver") or ""
        if "no compiler" in driver and not os.environ.get("HEDDLE_CUDA_NVRTC"):
            compiler = wheels_compiler(driver)
            if compiler is None:
                raise SystemExit(f"there is a GPU, and no NVRTC for it ({driver}): install CUDA's toolkit of that version")
            os.environ["HEDDLE_CUDA_NVRTC"] = compiler
            return device(build)
        return f"{found['product']} ({driver})" if driver else found["product"]
    done = subprocess.run([tool, "devices", "--all"], stdout=subprocess.PIPE, text=True, check=True)
    why = [line.strip() for line in done.stdout.splitlines() if "cuda" in line.lower()] or ["the plugin is not built"]
    print("there is no GPU that the plugin cuda can use:\n  " + "\n  ".join(why) +
          "\n--double runs the same programs on the double of the driver")
    common.skip("there is no GPU that the plugin cuda can use")


def rounds(program, names, count, n):
    """Samples of each name, interleaved, after a first of each that does not count."""
    samples = {name: [] for name in names}
    for name in names:
        program.ask(name, count)
    for turn in range(n):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            samples[name].append(program.ask(name, count))
    return samples


def least(samples, names):
    return min((samples[name] for name in names), key=statistics.median)


def chain(report, args, program):
    difference = program.ask("compare", 1)
    if not difference <= 1e-5:
        raise SystemExit(f"the results of the chain differ by {difference}: nothing is measured")
    got = rounds(program, ["chain_heddle", "chain_hand"], 1 if args.double else 20, args.rounds)
    report.ratio("cuda_graph_1000_nodes", got["chain_heddle"], got["chain_hand"], LIMITS["chain"], "us a run", 1e-3)


def copy(report, args, program, size):
    for way in ("h2d", "d2h"):
        got = rounds(program, [f"{way}_heddle", f"{way}_hand"], 2 if args.double else 10, args.rounds)
        report.ratio(f"pinned_{way}", got[f"{way}_heddle"], got[f"{way}_hand"], LIMITS["copy"], "us a copy", 1e-3)
        speeds = {who: size / statistics.median(got[f"{way}_{who}"]) for who in ("heddle", "hand")}
        print("    " + ", ".join(f"{who} {speed:.3g} GB/s" for who, speed in speeds.items()))
        report.figures[f"pinned_{way}"]["gb_per_s"] = {who: round(speed, 3) for who, speed in speeds.items()}


def overlap(report, args, sizes):
    """Of about equal length, since that is where most can be lost."""
    turns, count = sizes["turns"], 1 if args.double else 3
    if not args.double:
        program = common.Server(args.build, "bench_cuda", str(sizes["bytes"]), str(turns), "1024")
        got = rounds(program, ["copy", "compute"], count, 5)
        program.close()
        turns = max(1, round(turns * statistics.median(got["copy"]) / statistics.median(got["compute"])))
    program = common.Server(args.build, "bench_cuda", str(sizes["bytes"]), str(turns), "1024")
    got = rounds(program, ["copy", "compute", "both"], count, args.rounds)
    longer = max((got["copy"], got["compute"]), key=statistics.median)
    print(f"{sizes['bytes'] >> 20} MiB copied, {turns} products of 512 x 512 x 512")
    report.ratio("copy_beside_compute", got["both"], longer, LIMITS["overlap"], "us a run", 1e-3)
    got = rounds(program, ["hand_copy", "hand_compute", "hand_both"], count, args.rounds)
    program.close()
    alone = max(statistics.median(got["hand_copy"]), statistics.median(got["hand_compute"]))
    print(f"    by hand: {statistics.median(got['hand_both']) / alone:.3f} of the longer of the two")


def mixed(report, args, sizes):
    for size, floats in sizes["floats"].items():
        program = common.Server(args.build, "bench_cuda", "65536", "1", str(floats))
        hands = ["mixed_spin", "mixed_callback", "mixed_two"]
        got = rounds(program, ["mixed_heddle", *hands], 1, args.rounds)
        program.close()
        best = min(hands, key=lambda name: statistics.median(got[name]))
        report.ratio(f"mixed_cpu_cuda_{size}", got["mixed_heddle"], got[best], LIMITS["mixed"], "us a pair", 1e-5)
        print(f"    the best by hand: {best}")


def cuda_provider():
    """ONNX Runtime's CUDA provider, or None after saying why not."""
    try:
        import onnxruntime
    except ImportError as error:
        print(f"ONNX Runtime is not here: {error}")
        return None
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return True
    print("ONNX Runtime here has no CUDA provider (the package onnxruntime-gpu has): its times are left out")
    return None


def network(args, name, batch, precision, folder, peer_there, peaks, report):
    path = os.path.join(folder, f"{name}_{batch}.onnx")
    operations = _models.make(name, path, batch)
    title = f"{name}_batch_{batch}_{precision}"
    program = common.Server(args.build, "bench_models", "cuda:0,cpu", HEDDLE_PRECISION=precision)
    program.ask("output", path, 1, 1)
    wanted = _peers.Onnxruntime(path, 1).output().ravel()
    outputs, runs = {"heddle": np.fromfile(f"{path}.output", np.float32)}, 10
    peer = None
    if peer_there:
        options = {"use_tf32": "1" if precision == "fast" else "0"}
        peer = _peers.Onnxruntime(path, 1, providers=[("CUDAExecutionProvider", options), "CPUExecutionProvider"])
        outputs["onnxruntime"] = peer.output().ravel()
    for who, found in outputs.items():
        error = np.abs(found - wanted).max() / np.abs(wanted).max() if found.shape == wanted.shape else np.inf
        print(f"{title}: {who} differs from onnxruntime on cpu by {error:.2g} of the largest output")
        if not error <= TOLERANCE[precision]:
            raise SystemExit(f"{title}: that is more than {TOLERANCE[precision]}: nothing is measured")
    samples = {who: [] for who in outputs}
    for turn in range(args.rounds):
        for who in sorted(samples, reverse=turn % 2 == 0):
            time.sleep(PAUSE)
            samples[who].append(program.ask("run", path, 1, runs) if who == "heddle" else _peers.timed(peer, runs))
    program.close()
    middle = statistics.median(samples["heddle"])
    if peer is not None:
        report.ratio(title, samples["heddle"], samples["onnxruntime"], LIMITS["network"], "ms a run", 1e-6)
    else:
        report.figures[title] = {"ours": middle * 1e-6, "unit": "ms a run"}
        print(f"{title}: {middle / 1e6:.4g} ms a run")
    peak = peaks[precision]
    if peak:
        share = operations / middle * 1e9 / peak
        print(f"    {operations / middle / 1e3:.4g} TFLOP/s, {100 * share:.0f} % of the peak of {peak / 1e12:.4g}")
        report.figures[title]["share_of_peak"] = round(share, 4)


def small_network(args, folder, report):
    """What stands for the networks on the double: three layers, against ONNX Runtime's results."""
    path = os.path.join(folder, "mlp.onnx")
    _models.make("mlp", path)
    program = common.Server(args.build, "bench_models", "cuda:0,cpu")
    program.ask("output", path, 1, 1)
    wanted, found = _peers.Onnxruntime(path, 1).output().ravel(), np.fromfile(f"{path}.output", np.float32)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    if not error <= TOLERANCE["strict"]:
        raise SystemExit(f"mlp: it differs from onnxruntime by {error}")
    report.figures["mlp"] = {"ours": program.ask("run", path, 1, 2) * 1e-6, "unit": "ms a run"}
    program.close()
    print(f"mlp: as onnxruntime computes it, to {error:.2g} of the largest output")


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="heddle-gpu-") as temporary:
        folder = args.folder or temporary
        os.makedirs(folder, exist_ok=True)
        if args.double:
            use_double(args.build, temporary)
            args.rounds = min(args.rounds, 3)
        print(f"cuda:0 is {device(args.build)}; load of the machine: {os.getloadavg()[0]:.1f}")
        if args.double:
            print("this is the double of the driver, on the host's cores: no figure here says anything about a GPU")
        sizes, report = SIZES[args.double], common.Report(judged=not args.double)
        program = common.Server(args.build, "bench_cuda", str(sizes["bytes"]), str(sizes["turns"]), "1024")
        peaks = {"strict": program.ask("peak", 1), "fast": program.ask("tensor_peak", 1)}
        if "chain" in args.parts:
            chain(report, args, program)
        if "copy" in args.parts:
            copy(report, args, program, sizes["bytes"])
        program.close()
        if "overlap" in args.parts:
            overlap(report, args, sizes)
        if "mixed" in args.parts:
            mixed(report, args, sizes)
        if "networks" in args.parts and args.double:
            small_network(args, folder, report)
        elif "networks" in args.parts:
            there = cuda_provider()
            for name in NETWORKS:
                for batch in BATCHES:
                    for precision in TOLERANCE:
                        network(args, name, batch, precision, folder, there, peaks, report)
        report.close(**({"double": True} if args.double else {}))


if __name__ == "__main__":
    sys.exit(main())
