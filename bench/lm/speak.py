"""python speak.py ENGINE MODEL THREADS LENGTH [start]: a language model in a process of its own, asked for tokens line by line.

ENGINE is heddle, llama (llama-cpp-python) or genai (onnxruntime-genai); MODEL a GGUF file or a builder's folder;
LENGTH what it holds at most. A line has the path
of a prompt and a number of new tokens; the answer is JSON: seconds of the processor and of the clock for the prompt and its first
token, and for each of the others; and the tokens, which are the most likely ones. start: loads and answers one line, loading
among the prompt's seconds, and ends.
"""
import json
import sys
import time

import numpy as np


class Heddle:
    def __init__(self, path, threads, length):
        import heddle
        self.g = heddle.Generator(path, devices="cpu", precision="fast", max_length=length,
                                  context=heddle.Context({"threads": str(threads)}))

    def tokens(self, prompt, count):
        self.g.truncate(0)
        yield from self.g.generate(prompt, max_tokens=count, past_stops=True)


class Llama:
    def __init__(self, path, threads, length):
        import llama_cpp
        self.m = llama_cpp.Llama(path, n_ctx=length, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)

    def tokens(self, prompt, count):
        self.m.reset()
        new = list(prompt)
        for _ in range(count):
            self.m.eval(new)
            new = [int(np.ctypeslib.as_array(self.m._ctx.get_logits(), (1, self.m.n_vocab()))[-1].argmax())]
            yield new[0]


class Genai:
    def __init__(self, path, threads, length):
        import onnxruntime_genai as og
        self.og, self.length = og, length
        config = og.Config(path)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
        self.m = og.Model(config)

    def tokens(self, prompt, count):
        options = self.og.GeneratorParams(self.m)
        options.set_search_options(max_length=self.length, do_sample=False)
        g = self.og.Generator(self.m, options)
        g.append_tokens(np.array(prompt, np.int32))
        for _ in range(count):
            g.generate_next_token()
            yield int(g.get_next_tokens()[0])


def now():
    return np.array([time.process_time(), time.perf_counter()])


def answer(engine, path, count, since=None):
    start, tokens, at = now() if since is None else since, [], []
    for token in engine.tokens(np.load(path).tolist(), count):
        tokens.append(token)
        at.append(now())
    each = (at[-1] - at[0]) / max(1, len(at) - 1)
    return {"first": (at[0] - start).tolist(), "each": each.tolist(), "least": float(min(np.diff(at, axis=0)[:, 1], default=0)),
            "tokens": tokens}


def main():
    kind, path, threads = {"heddle": Heddle, "llama": Llama, "genai": Genai}[sys.argv[1]], sys.argv[2], int(sys.argv[3])
    __import__({"heddle": "heddle", "llama": "llama_cpp", "genai": "onnxruntime_genai"}[sys.argv[1]])
    since, engine = now(), kind(path, threads, int(sys.argv[4]))
    for line in sys.stdin:
        prompt, count = line.split()
        print(json.dumps(answer(engine, prompt, int(count), since if "start" in sys.argv[5:] else None)), flush=True)
        if "start" in sys.argv[5:]:
            break


if __name__ == "__main__":
    main()
