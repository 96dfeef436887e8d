"""Language models for the tests of generators, made by bench/lm with random weights, and the same loop over ONNX Runtime."""
import functools
import pathlib
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "bench"))
from lm import model as lm  # noqa: E402
from lm.shapes import FAMILIES  # noqa: E402, F401

FOLDER = tempfile.TemporaryDirectory(prefix="heddle-generate-")
PROMPT = [5, 9, 11, 7, 120, 33, 8, 64, 2, 90, 17, 17, 41, 3, 77, 150]


@functools.cache
def folder(family, form="builder", kind="float32", size="tiny", seed=0):
    """The folder of a model, which tests do not change."""
    path = pathlib.Path(FOLDER.name) / f"{family}-{form}-{kind}-{size}-{seed}"
    lm.make(path, family, size, form, kind, seed)
    return path


class Loop:
    """Tokens by ONNX Runtime: caches go from output to input."""

    def __init__(self, path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.length = 0
        self.past = {n: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float16 if "float16" in i.type else np.float32)
                     for n, i in self.inputs.items() if n.startswith("past")}

    def logits(self, tokens):
        """Of all these tokens, behind those of earlier calls."""
        feed = {"input_ids": np.array([tokens], np.int64), **self.past,
                "attention_mask": np.ones((1, self.length + len(tokens)), np.int64)}
        if "position_ids" in self.inputs:
            feed["position_ids"] = np.arange(self.length, self.length + len(tokens))[None]
        result = dict(zip(self.outputs, self.session.run(None, feed)))
        self.past = {name: result[name.replace("past_key_values", "present")] for name in self.past}
        self.length += len(tokens)
        return result["logits"][0].astype(np.float32)


@functools.cache
def greedy(family, form="builder", kind="float32", steps=50, seed=0):
    """Tokens behind PROMPT, and the gap between the best two logits at each."""
    loop, tokens, gaps, new = Loop(folder(family, form, kind, seed=seed)), [], [], PROMPT
    for _ in range(steps):
        row = loop.logits(new)[-1]
        best = np.sort(row)[-2:]
        new = [int(row.argmax())]
        tokens += new
        gaps.append(float(best[1] - best[0]))
    return tokens, gaps


def same_tokens(got, want, gaps, bound=1e-4):
    """Equal up to the first place where two logits are closer than the bound."""
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if g != w:
            assert gaps[i] < bound, f"token {i}: {g}, expected {w}, which is {gaps[i]:g} above the next one"
            return
