"""Language models: texts of different lengths in one batch against texts of equal lengths, and tokens after short and long prompts.

Eight prompts of 8 to 120 tokens have as many tokens together as eight of 64, and each makes as many new ones, so that both batches
do the same work but for the lengths. The time of the process decides, loading among it; one thread of cpu computes.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

import _common as common
from lm import model

LENGTHS = (8, 16, 32, 48, 80, 96, 112, 120)
LIMIT = 1 / 0.9  # of the times


def tool(args, folder, *words):
    """What heddle generate says, and the processor's time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([os.path.join(args.build, "bin", "heddle"), "generate", folder, "--device", "cpu", "--threads", "1", "--json",
                           "--past-stops", *words], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout), after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--size", default=None, help="of the model: 0.1b by default")
    parser.add_argument("--family", default="qwen2")
    args = parser.parse_args()
    report, rng = common.Report(), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "model")
        model.make(made, args.family, args.size or ("tiny" if args.check else "0.1b"), "builder", "int4", 1)

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
    report.close(family=args.family, size=args.size)


if __name__ == "__main__":
    sys.exit(main())
