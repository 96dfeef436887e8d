"""heddle.Generator.speculate: with any draft the tokens are those of ONNX Runtime without one, greedy and drawn; runs are saved
where guesses hold; truncate, fork, limits and errors while guesses are computed ahead.

labels: threads
"""
import threading

import heddle
import numpy as np
import pytest
from generating import PROMPT, folder, greedy, same_tokens


def load(family="llama", form="builder", kind="float32", seed=0, devices="cpu", **more):
    return heddle.Generator(folder(family, form, kind, seed=seed), devices=devices, precision="strict", **more)


def take(g, n, prompt=PROMPT, **more):
    return list(g.generate(prompt, max_tokens=n, past_stops=True, **more))


def check(got, family="llama", begin=0):
    """These are the tokens from a place on."""
    tokens, gaps = greedy(family)
    same_tokens(got, tokens[begin:begin + len(got)], gaps[begin:])


@pytest.mark.parametrize("form", ["builder", "plain"])
@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_tokens_are_those_without_a_draft(family, form):
    drafts = {"itself": load(family, form), "int4": load(family, form, "int4"), "another": load(family, form, seed=7)}
    for name, draft in drafts.items():
        g = load(family, form)
        g.speculate(draft, 3)
        check(take(g, 30), family)
        stats = g.stats
        assert stats["guessed"] > 0 and 0 < stats["guess_ns"] < stats["all_ns"]
        if name == "itself":
            assert stats["accepted"] >= stats["guessed"] - 3 and stats["runs"] <= 1 + -(-29 // 4) + 1
        if name == "another":
            assert stats["accepted"] < stats["guessed"] // 2
        assert draft.tokens == []  # the draft's model is used, not its tokens


def test_drafts_elsewhere():
    for devices in ("sim:0", "cpu,opencl:0"):
        g = load()
        try:
            g.speculate(load(form="plain", devices=devices))
        except heddle.errors.NoDeviceError as error:
            pytest.skip(str(error))
        check(take(g, 20))
        assert g.stats["accepted"] > 8


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_draws(form):
    """The draw of a position is the draft's too, so that a like draft guesses it."""
    options = {"temperature": 1.5, "top_k": 40, "seed": 3, "repetition_penalty": 1.1, "bias": {4: 2.0}}
    want = take(load(form=form), 40, **options)
    g = load(form=form)
    g.speculate(load(form=form), 5)
    assert take(g, 40, **options) == want
    assert g.stats["accepted"] > 20


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_the_list_may_change(form):
    g = load(form=form)
    g.speculate(load(form=form), 4)
    g.append(PROMPT)
    first = [g.next() for _ in range(3)]  # guesses are computed behind these
    assert g.info["cache_rows"] >= len(g) - 1 and g.stats["guessed"] == 4
    fork = g.fork()
    check(first + take(fork, 10, None))
    assert fork.stats["guessed"] == 0
    check(first + take(g, 10, None))
    for keep in (len(g), len(g) - 1, len(PROMPT) + 2, len(PROMPT)):
        g.truncate(keep)
        check(take(g, 6, None), begin=keep - len(PROMPT))
    g.next()
    g.append([1, 2, 3])  # not what was guessed
    fresh = load(form=form)
    other = take(fresh, 6, g.tokens)
    assert take(g, 6, None) == other
    runs = g.stats["runs"]
    row = g.logits()
    fresh.truncate(0)
    fresh.append(g.tokens)
    np.testing.assert_allclose(row, fresh.logits(), atol=2e-4)
    g.speculate(None)
    guessed = g.stats["guessed"]
    take(g, 4, None)
    assert g.stats["guessed"] == guessed and g.stats["runs"] >= runs + 3


def test_lengths():
    g = load(max_length=40)
    g.speculate(load(), 16)
    assert len(take(g, 100)) == 40 - len(PROMPT)
    short = load()
    short.speculate(load(max_length=24), 4)
    check(take(short, 30))
    assert len(short) == len(PROMPT) + 30 and 0 < short.stats["guessed"] <= 8 + 4
    narrow = load(chunk=2)
    narrow.speculate(load(chunk=1), 16)
    check(take(narrow, 12))
    assert narrow.stats["accepted"] > 4


def test_errors():
    g = load()
    with pytest.raises(heddle.errors.InvalidError, match="17 guesses"):
        g.speculate(load(), 17)
    with pytest.raises(heddle.errors.InvalidError, match="tokens in its vocabulary"):
        g.speculate(heddle.Generator(folder("llama", size="small"), devices="cpu"))
    with pytest.raises((TypeError, AttributeError)):
        g.speculate("llama")
    g.speculate(load())
    g.append(PROMPT)
    with pytest.raises(heddle.errors.RunTimeoutError):
        g.next(timeout=0)
    check(take(g, 10, None))


def test_cancel():
    g, over, seen = load(form="plain"), threading.Event(), 0
    g.speculate(load(form="plain"))

    def cancel():
        while not over.wait(0.002):
            g.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    try:
        for _ in range(40):
            g.truncate(0)
            try:
                take(g, 20)
            except heddle.errors.CanceledError:
                seen += 1
            check(g.tokens[len(PROMPT):])
    finally:
        over.set()
        other.join()
    assert seen > 0
    g.truncate(0)
    check(take(g, 10))
