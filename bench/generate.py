"""Language models: texts of different lengths in one batch against texts of equal lengths, and tokens after short and long prompts
against llama.cpp (a GGUF file, Q4_0) and onnxruntime-genai (its builder's form, int4, accuracy_level 4), each on the same file.

Eight prompts of 8 to 120 tokens have as many tokens together as eight of 64, and each makes as many new ones, so that both batches
do the same work but for the lengths. The time of the process decides, loading among it; one thread of cpu computes.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import numpy as np

import _common as common
from lm import gguf, model, speak
from lm.shapes import shape
from lm.weights import Weights

LENGTHS = (8, 16, 32, 48, 80, 96, 112, 120)
LIMIT = 1 / 0.9  # of the times
PEERS = {"llama": "llama_cpp", "genai": "onnxruntime_genai"}


def tool(args, folder, *words):
    """What heddle generate says, and the processor's time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.path.join(args.build, "bin", "heddle"), "generate", folder, "--device", "cpu", "--threads", "1", "--json",
                           "--past-stops", *words], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout), after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


class Speaker:
    """An engine in a process of its own."""

    def __init__(self, python, engine, path, *words, **variables):
        self.process = subprocess.Popen([python, speak.__file__, engine, str(path), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})

    def ask(self, prompt, count):
        self.process.stdin.write(f"{prompt} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"'{' '.join(self.process.args)}' ended")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def has(python, module):
    return os.path.exists(python) and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def against_peers(args, report, folder, prompt):
    """Seconds of the processor, of all threads: interleaved, one process of each engine at work."""
    python = {"heddle": sys.executable, **{peer: args.peers for peer in PEERS}}
    path = {"llama": os.path.join(folder, "model.gguf"), "genai": os.path.join(folder, "level4")}
    here = [peer for peer, module in PEERS.items() if has(args.peers, module)]
    for peer in PEERS.keys() - set(here):
        print(f"{peer} is left out: {args.peers} has no {PEERS[peer]} (scripts/bench makes an environment for it)")
    own = {"PYTHONPATH": os.path.join(os.path.abspath(args.build), "python")}
    if "llama" in here:
        gguf.write(pathlib.Path(path["llama"]), Weights(shape(args.family, args.size), 1, "float32"), gguf.Q4_0)
    if "genai" in here:
        model.make(path["genai"], args.family, args.size, "builder", "int4", 1, 4)
    words = [str(args.threads), "192" if args.check else "2304"]
    at = {n: prompt(f"at{n}", n)[1] for n in (1, 128, 512, 2048)}
    for peer in here:
        engines = [("heddle", own), (peer, {})]
        pair = [Speaker(python[e], e, path[peer], *words, **v) for e, v in engines]
        figures = {}
        for turn in range(min(args.rounds, 7) + 1):
            for side, (engine, v) in enumerate(engines):
                said = {n: pair[side].ask(at[n], common.runs(32)) for n in ((128,) if args.check else (128, 512, 2048))}
                first = Speaker(python[engine], engine, path[peer], *words, "start", **v)
                said[1] = first.ask(at[1], 1)
                first.close()
                if turn == 0 and not args.check:  # a warm-up
                    continue
                for n in said:
                    figures.setdefault((n, "first"), ([], []))[side].append(said[n]["first"][0])
                    figures.setdefault((n, "token"), ([], []))[side].append(said[n]["each"][0])
                    figures.setdefault((n, "clock"), ([], []))[side].append(said[n]["least"])
        for (n, what), (ours, theirs) in figures.items():
            if what == "clock" and n > 1:
                print(f"  {peer}, after {n}: the fastest token took {min(ours) * 1e3:.2f} ms of the clock against {min(theirs) * 1e3:.2f}")
            elif what == "first":
                report.ratio(f"{peer}: load to first token" if n == 1 else f"{peer}: prompt of {n}", ours, theirs, 0.5 if n == 1 else 1.0, "s")
            elif what == "token" and n > 1:
                report.ratio(f"{peer}: token after {n}", ours, theirs, 1 / 1.1, "ms", 1e3)
        for speaker in pair:
            speaker.close()


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--size", default=None, help="of the model: 0.1b by default")
    parser.add_argument("--family", default="qwen2")
    parser.add_argument("--threads", type=int, default=1, help="of comparisons with others")
    parser.add_argument("--peers", default="build/peers/bin/python", help="the Python that has llama-cpp-python and onnxruntime-genai")
    args = parser.parse_args()
    args.size = args.size or ("tiny" if args.check else "0.1b")
    report, rng = common.Report(), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "model")
        model.make(made, args.family, args.size, "builder", "int4", 1)

        def prompt(name, length):
            path = os.path.join(folder, f"{name}.npy")
            np.save(path, rng.integers(4, 150, length))
            return ["--tokens", path]

        batches = {"ragged": [w for i, n in enumerate(LENGTHS) for w in prompt(f"ragged{i}", n)],
                   "equal": [w for i in range(len(LENGTHS)) for w in prompt(f"equal{i}", sum(LENGTHS) // len(LENGTHS))]}
        times = {name: [] for name in batches}
        for _ in range(min(args.rounds, 7)):
            for name, words in batches.items():
                times[name].append(tool(args, made, *words, "--rows", str(len(LENGTHS)), "--max-tokens", str(common.runs(48)))[1])
        report.ratio("ragged against equal", times["ragged"], times["equal"], LIMIT, "s")
        for length in (128,) if args.check else (128, 2048):
            said = tool(args, made, *prompt(f"at{length}", length), "--max-tokens", str(common.runs(64)))[0]
            report.figures[f"after {length}"] = {"tokens_per_second": said["tokens_per_second"], "first_token_ms": said["first_token_ms"]}
            print(f"after {length}: {said['tokens_per_second']:.1f} tokens a second, the first after {said['first_token_ms']:.0f} ms")
        against_peers(args, report, folder, prompt)
    report.close(family=args.family, size=args.size)


if __name__ == "__main__":
    sys.exit(main())
