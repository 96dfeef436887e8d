"""Tokens of a language model: python generate.py MODEL_DIR [TOKEN...]. scripts/make-model writes a model with random weights.

The prompt is computed once: three answers are drawn from forks, which share its caches.
"""
import argparse
import time

import heddle


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("model", help="a folder with genai_config.json or config.json, or a .gguf file")
    words.add_argument("tokens", nargs="*", type=int, default=[1, 5, 9])
    words.add_argument("--device", help="devices in order of preference, such as cuda:0?,cpu")
    words.add_argument("--max-tokens", type=int, default=20)
    given = words.parse_args()
    prompt = heddle.Generator(given.model, devices=given.device)
    prompt.append(given.tokens)
    prompt.evaluate()
    for seed in range(3):
        begin, answer = time.perf_counter(), prompt.fork()
        tokens = list(answer.generate(max_tokens=given.max_tokens, temperature=0.8, top_p=0.95, seed=seed))
        rate = len(tokens) / (time.perf_counter() - begin)
        print(f"seed {seed}: {' '.join(map(str, tokens))} ({rate:.0f} tokens a second)")


if __name__ == "__main__":
    main()
