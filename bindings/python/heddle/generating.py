"""Generators: tokens, and text, of language models. `heddle generate --prompt` starts this module's main()."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from . import _core
from .errors import Error
from .model import _DEFAULTS, _nanoseconds, _options

__all__ = ["GenerationBatch", "GenerationRequest", "Generator", "sample"]

_FOREVER = 2**64 - 1
_BROKEN = "\N{REPLACEMENT CHARACTER}"


def _sampling(temperature: float, top_k: int, top_p: float, min_p: float, repetition_penalty: float, seed: int,
              bias: Mapping[int, float] | None) -> tuple[Any, ...]:
    pairs = [(int(token), float(value)) for token, value in bias.items()] if bias else []
    return (float(temperature), int(top_k), float(top_p), float(min_p), float(repetition_penalty), int(seed), pairs)


def _limit(timeout: float | None) -> int:
    return _FOREVER if timeout is None else _nanoseconds(timeout)


def _row(tokens: Any) -> np.ndarray[Any, Any]:
    row = np.asarray(tokens)
    if row.size and row.dtype.kind not in "iu":
        raise TypeError(f"tokens are whole numbers, not {row.dtype}")
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    if row.ndim != 1:
        raise TypeError(f"tokens are one row, not of shape {row.shape}")
    return np.ascontiguousarray(row, np.int64)


def sample(logits: Any, *, history: Any = (), index: int = 0, temperature: float = 0, top_k: int = 0, top_p: float = 0,
           min_p: float = 0, repetition_penalty: float = 0, seed: int = 0, bias: Mapping[int, float] | None = None) -> int:
    """Chooses a token by logits, as Generator.next does; index is the position that the draw depends on besides the seed."""
    options = _sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed, bias)
    return _core.sample(logits, _row(history), index, options)


class Generator:
    """A language model in a folder, and its tokens.

    path         a folder with genai_config.json (onnxruntime-genai) or config.json (Optimum) and the ONNX model, or that model
    max_length   tokens at most, the prompt's included; 0: as the configuration says
    chunk        tokens of a prompt that one run computes at most; 0: 256, or fewer where logits are large
    tokenizer    an object with encode(text) and decode(ids), such as tokenizers.Tokenizer; None: tokenizer.json of the folder,
                 when it is first needed (pip install heddle[generate])
    options      of heddle.load: devices, place, memory, precision, optimize, trust, context and others

    generate() gives tokens as they come, text() pieces of text. Tokens stay: the next call goes on behind them, truncate()
    cuts them, fork() gives a second generator that shares what was computed. One thread at a time; cancel() from any.
    Errors are those of heddle.load and of runs; InvalidError: configuration and graph contradict each other, or a token is not
    in the vocabulary. docs/generate.md has more.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_length: int = 0, chunk: int = 0, tokenizer: Any = None,
                 context: _core.Context | None = None, **options: Any):
        unknown = options.keys() - (_DEFAULTS.keys() - {"library", "name", "state", "pool", "in_flight"})
        if unknown:
            raise TypeError(f"a Generator has no option {sorted(unknown)[0]!r}")
        self._path = pathlib.Path(os.fspath(path))
        self._tokenizer = tokenizer
        words = (_core.Context() if context is None else context, os.fspath(path))
        self._core = _core.open_generator(words, _options(**{**_DEFAULTS, **options}), max_length, chunk)

    # ---- tokens

    def append(self, tokens: Any) -> None:
        """Adds tokens, or a text's; they are computed when logits are needed."""
        self._core.append(_row(self.encode(tokens) if isinstance(tokens, str) else tokens))

    @property
    def tokens(self) -> list[int]:
        return self._core.tokens()

    def __len__(self) -> int:
        return self._core.length()

    def __bool__(self) -> bool:
        return True

    def truncate(self, n: int = 0) -> None:
        """Keeps the first n tokens and what was computed for them."""
        self._core.truncate(n)

    def fork(self) -> Generator:
        """Another generator with the same tokens, which shares what was computed for them."""
        other = object.__new__(Generator)
        other._path, other._tokenizer = self._path, self._tokenizer
        other._core = self._core.fork()
        return other

    def speculate(self, draft: Generator | None, tokens: int = 0) -> None:
        """A smaller model with the same vocabulary guesses so many tokens (0: 4; at most 16), which one run computes. The
        tokens are those that come without it. None: no more guesses. docs/generate.md has more."""
        self._core.speculate(None if draft is None else draft._core, tokens)

    # ---- computing

    def evaluate(self, timeout: float | None = None) -> None:
        """Computes what was appended."""
        self._core.evaluate(_limit(timeout))

    def logits(self, timeout: float | None = None) -> np.ndarray[Any, Any]:
        """Of the next token: a row of float32."""
        return np.asarray(self._core.logits(_limit(timeout)))

    def next(self, *, temperature: float = 0, top_k: int = 0, top_p: float = 0, min_p: float = 0, repetition_penalty: float = 0,
             seed: int = 0, bias: Mapping[int, float] | None = None, timeout: float | None = None) -> int:
        """Chooses a token, and adds it. Without a temperature it is the best one."""
        return self._core.next(_sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed, bias), _limit(timeout))

    def cancel(self) -> None:
        """Ends the call that computes, or else the next one, with CanceledError. Any thread."""
        self._core.cancel()

    def generate(self, prompt: Any = None, *, max_tokens: int | None = None, stop_tokens: Sequence[int] = (),
                 past_stops: bool = False, temperature: float = 0, top_k: int = 0, top_p: float = 0, min_p: float = 0,
                 repetition_penalty: float = 0, seed: int = 0, bias: Mapping[int, float] | None = None,
                 timeout: float | None = None) -> Iterator[int]:
        """Adds the prompt, and gives tokens as they come, until a stop token (which is added too, but not given), max_tokens or
        max_length. past_stops: the configuration's stop tokens are like others. timeout: seconds for all of it."""
        options = _sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed, bias)
        stops = {*stop_tokens, *(() if past_stops else self.info["stop_tokens"])}
        if prompt is not None:
            self.append(prompt)
        return self._loop(options, stops, max_tokens, None if timeout is None else time.monotonic() + timeout)

    def _loop(self, options: tuple[Any, ...], stops: set[int], max_tokens: int | None, until: float | None) -> Iterator[int]:
        most = self.info["max_length"]
        count = 0
        while (max_tokens is None or count < max_tokens) and len(self) < most:
            token = self._core.next(options, _limit(None if until is None else max(0.0, until - time.monotonic())))
            if token in stops:
                return
            yield token
            count += 1

    # ---- text

    @property
    def tokenizer(self) -> Any:
        if self._tokenizer is None:
            try:
                from tokenizers import Tokenizer  # pylint: disable=import-outside-toplevel
            except ImportError as error:
                raise ImportError("text needs the package tokenizers: pip install heddle[generate]") from error
            folder = self._path if self._path.is_dir() else self._path.parent
            file = folder / "tokenizer.json"
            if not file.is_file():
                raise FileNotFoundError(f"{file}: there is no tokenizer; give tokens, or a tokenizer")
            self._tokenizer = Tokenizer.from_file(str(file))
        return self._tokenizer

    def encode(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        return list(getattr(ids, "ids", ids))

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(list(tokens))

    def text(self, prompt: Any = None, *, stop: str | Sequence[str] = (), **options: Any) -> Iterator[str]:
        """As generate(), as pieces of text. stop: strings that end it, which are not given. A character of several tokens
        comes when it is whole."""
        stops = [s for s in ([stop] if isinstance(stop, str) else stop) if s]
        return self._pieces(self.generate(prompt, **options), stops)

    def _pieces(self, tokens: Iterator[int], stops: list[str]) -> Iterator[str]:
        done, given = [], 0
        for token in tokens:
            done.append(token)
            text = self.decode(done)
            at = min((i for i in (text.find(s, max(0, given - len(s))) for s in stops) if i >= 0), default=-1)
            if at >= 0:
                if at > given:
                    yield text[given:at]
                return
            end = len(text) - _held(text, stops)
            if end > given:
                yield text[given:end]
                given = end
        rest = self.decode(done)[given:] if done else ""
        if rest:
            yield rest

    # ---- what there is

    @property
    def info(self) -> dict[str, Any]:
        """type, model_path, stop_tokens, vocabulary, max_length, layers, bos_token, cache_rows, cache_bytes."""
        return self._core.info()

    @property
    def stats(self) -> dict[str, int]:
        """runs, computed, sampled, guessed, accepted, all_ns, run_ns, sample_ns, guess_ns."""
        return self._core.stats()

    def __reduce__(self) -> Any:
        raise TypeError("a heddle.Generator has memory on devices and cannot be pickled")


class GenerationRequest:
    """A text of a GenerationBatch. Iterating gives its tokens as they come; a stop token is the last one. Any thread."""

    def __init__(self, core: _core.GenerationRequest):
        self._core = core

    def wait(self, timeout: float | None = None) -> list[int]:
        """Its tokens, when it has ended. CanceledError, or TimeoutError after its deadline; BusyError: it has not ended."""
        self._core.wait(_limit(timeout))
        return list(self)

    @property
    def result(self) -> dict[str, Any]:
        """tokens, first_ns, rest_ns and end ("stop" or "length") of one that has ended."""
        return self._core.wait(0)

    def __iter__(self) -> Iterator[int]:
        count = 0
        while some := self._core.read(count, _FOREVER):
            count += len(some)
            yield from some

    def cancel(self) -> None:
        """Ends it with CanceledError; tokens up to then stay."""
        self._core.cancel()


class GenerationBatch:
    """Several texts of one model share its runs: continuous batching. docs/generate.md has more.

    generator    whose model, max_length and chunk are used; it stays the caller's
    rows         texts in one run; others wait for a row
    max_queue    how many may wait; 0: 4 times rows

    submit() gives a GenerationRequest. Leaving the with block waits for all texts; after an exception they are cancelled.
    Any thread. UnsupportedError: texts cannot share a run of the graph.
    """

    def __init__(self, generator: Generator, *, rows: int = 0, max_queue: int = 0):
        self._core = _core.open_generation_batch(generator._core, rows, max_queue)
        self._encode = generator.encode

    def submit(self, prompt: Any, *, max_tokens: int | None = None, stop_tokens: Sequence[int] = (), past_stops: bool = False,
               temperature: float = 0, top_k: int = 0, top_p: float = 0, min_p: float = 0, repetition_penalty: float = 0,
               seed: int = 0, bias: Mapping[int, float] | None = None, deadline: float | None = None,
               wait: float | None = None) -> GenerationRequest:
        """prompt: tokens or a text. deadline: seconds from now until it ends with TimeoutError. wait: seconds for room in the
        queue, None: as long as it takes; BusyError. The other options are Generator.generate's."""
        if max_tokens is not None and max_tokens < 1:
            raise ValueError("max_tokens is 1 or more, or None")
        options = _sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed, bias)
        tokens = _row(self._encode(prompt) if isinstance(prompt, str) else prompt)
        core = self._core.submit(tokens, options, _row(list(stop_tokens)), max_tokens or 0, past_stops,
                                 0 if deadline is None else max(1, _nanoseconds(deadline)), _limit(wait))
        return GenerationRequest(core)

    def close(self, *, cancel: bool = False, timeout: float | None = None) -> None:
        """Accepts no more requests, and waits for those that there are; cancel: they end with CanceledError."""
        self._core.close(cancel, _limit(timeout))

    def __enter__(self) -> GenerationBatch:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close(cancel=kind is not None)

    @property
    def stats(self) -> dict[str, int]:
        """requests, finished, failed, rejected, runs, chunks, computed, reused, sampled, run_ns, join_ns, queued, running, rows."""
        return self._core.stats()

    def __reduce__(self) -> Any:
        raise TypeError("a heddle.GenerationBatch has memory on devices and cannot be pickled")


def _held(text: str, stops: list[str]) -> int:
    """How many characters at the end may still change, or begin a stop string."""
    held = len(text) - len(text.rstrip(_BROKEN))
    for s in stops:
        for n in range(min(len(s) - 1, len(text)), held, -1):
            if text.endswith(s[:n]):
                held = n
                break
    return held


# ---- heddle generate --prompt


def _words(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="heddle generate")
    parser.add_argument("model")
    parser.add_argument("--prompt", required=True)
    for name in ("device", "memory", "optimize", "precision", "on-failure", "draft", "draft-device"):
        parser.add_argument(f"--{name}")
    for name in ("place", "set", "stop", "logit-bias"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--stop-token", action="append", type=int, default=[])
    parser.add_argument("--max-tokens", type=int, default=128)
    for name in ("max-length", "chunk", "top-k", "seed", "threads", "draft-tokens"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("temperature", "top-p", "min-p", "repetition-penalty", "timeout"):
        parser.add_argument(f"--{name}", type=float, default=0)
    parser.add_argument("--past-stops", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def _run(o: argparse.Namespace) -> None:
    settings = dict(pair.split("=", 1) for pair in o.set)
    if o.threads:
        settings["threads"] = str(o.threads)
    context = _core.Context(settings) if settings else None
    g = Generator(o.model, max_length=o.max_length, chunk=o.chunk, devices=o.device, place=o.place, memory=o.memory,
                  optimize=o.optimize, precision=o.precision, on_failure=o.on_failure, context=context)
    if o.draft is not None:
        g.speculate(Generator(o.draft, max_length=o.max_length, devices=o.draft_device or o.device, optimize=o.optimize,
                              precision=o.precision, on_failure=o.on_failure, context=context), o.draft_tokens)
    bias = {int(token): float(value) for token, value in (pair.split("=", 1) for pair in o.logit_bias)}
    g.append(o.prompt)
    prompt, parts, times = len(g), [], [time.perf_counter()]
    for piece in g.text(None, stop=o.stop, max_tokens=o.max_tokens, stop_tokens=o.stop_token, past_stops=o.past_stops,
                        temperature=o.temperature, top_k=o.top_k, top_p=o.top_p, min_p=o.min_p,
                        repetition_penalty=o.repetition_penalty, seed=o.seed, bias=bias, timeout=o.timeout or None):
        times.append(time.perf_counter())
        parts.append(piece)
        if not o.json:
            print(piece, end="", flush=True)
    new, first = len(g) - prompt, (times[1] if len(times) > 1 else time.perf_counter()) - times[0]
    rest = times[-1] - times[1] if len(times) > 2 else 0.0
    rate = (new - 1) / rest if rest > 0 else 0.0
    if o.json:
        print(json.dumps({"text": "".join(parts), "prompt_tokens": prompt, "new_tokens": new, "first_token_ms": first * 1e3,
                          "tokens_per_second": rate}, indent=2))
    else:
        print(f"\n{new} tokens after a prompt of {prompt}; the first after {first * 1e3:.1f} ms, then {rate:.1f} a second")


def main(arguments: list[str] | None = None) -> None:
    try:
        _run(_words(arguments))
    except (Error, ImportError, OSError) as error:
        sys.exit(f"heddle generate: {error}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
