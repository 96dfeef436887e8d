"""The choice of a token: greedy, and drawn by temperature, top-k, top-p, min-p, penalty and bias, against numpy."""
import heddle
import numpy as np
import pytest
from heddle.generating import sample

RNG = np.random.default_rng(11)
M32 = 0xFFFFFFFF


def philox(counter, key):
    x = [counter & M32, counter >> 32, 0, 0]
    k = [key & M32, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & M32, (a >> 32) ^ x[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return x


def uniform(index, seed):
    """The number of a draw."""
    w = philox(index, seed)
    return ((w[0] >> 5) * 2**26 + (w[1] >> 6) + 0.5) * 2.0**-53


def kept(logits, temperature=1.0, top_k=0, top_p=0.0, min_p=0.0):
    """Probabilities of all tokens, those that are cut 0."""
    x = logits.astype(np.float64) / temperature
    order = np.lexsort((np.arange(x.size), -x))
    p = np.exp(x - x.max())
    if 0 < top_k < x.size:
        p[order[top_k:]] = 0
    if 0 < top_p < 1:
        sums = np.cumsum(p[order]) - p[order]
        p[order[sums >= top_p * p.sum()]] = 0
    p[p < min_p] = 0
    p[order[0]] = 1
    return p / p.sum(), order


def drawn(logits, n, **options):
    return np.bincount([sample(logits, temperature=options.get("temperature", 1.0), index=i, seed=7,
                               **{k: v for k, v in options.items() if k != "temperature"}) for i in range(n)], minlength=logits.size)


OPTIONS = [{}, {"temperature": 0.5}, {"temperature": 3.0}, {"top_k": 1}, {"top_k": 5}, {"top_k": 39}, {"top_k": 40}, {"top_k": 1000},
           {"top_p": 0.5}, {"top_p": 0.9}, {"top_p": 0.01}, {"top_p": 1.0}, {"min_p": 0.1}, {"min_p": 1.0}, {"top_k": 10, "top_p": 0.6},
           {"top_p": 0.8, "min_p": 0.2}, {"top_k": 20, "top_p": 0.9, "min_p": 0.05, "temperature": 1.7}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_distribution(options):
    n = 4000
    for spread in (0.5, 3.0):
        logits = (RNG.standard_normal(40) * spread).astype(np.float32)
        p, _ = kept(logits, **options)
        counts = drawn(logits, n, **options)
        assert not counts[p == 0].any(), np.flatnonzero(counts * (p == 0))
        assert np.abs(counts - n * p).max() < 5 * np.sqrt(n * 0.25)
        wide = p * n > 5
        chi = ((counts[wide] - n * p[wide]) ** 2 / (n * p[wide])).sum()
        assert chi < wide.sum() + 6 * np.sqrt(2 * wide.sum()) + 6


def test_draws_are_philox():
    """The draw of each position, by the seed: with two tokens it is one comparison."""
    logits = np.array([0.0, 1.0], np.float32)
    p = 1 / (1 + np.e)
    for seed in (0, 1, 2**63 + 5):
        got = [sample(logits, temperature=1, index=i, seed=seed) for i in range(200)]
        assert got == [int(uniform(i, seed) >= p) for i in range(200)]
        assert got == [sample(logits, temperature=1, index=i, seed=seed) for i in range(200)]


@pytest.mark.parametrize("options", [{"top_p": 0.9}, {"top_k": 50}, {"min_p": 0.2}, {"top_p": 0.3, "min_p": 0.5}], ids=str)
def test_many_tokens(options):
    """A whole vocabulary: each token that is drawn is among those that numpy keeps."""
    for spread in (0.1, 2.0, 8.0):
        logits = (RNG.standard_normal(20001) * spread).astype(np.float32)
        p, order = kept(logits, **options)
        edge = np.flatnonzero(p[order] > 0).size
        allowed = set(order[:edge + 2].tolist())  # sums of many floats end a token sooner or later
        assert {sample(logits, temperature=1, index=i, **options) for i in range(60)} <= allowed


def test_greedy():
    logits = RNG.standard_normal(3333).astype(np.float32)
    assert sample(logits) == int(logits.argmax())
    for best in (0, 1, 15, 16, 1023, 1024, 3332):
        logits[best] = 50
        assert sample(logits) == best
        assert sample(logits, temperature=1e-300) == best == sample(logits, temperature=1, top_k=1) == sample(logits, temperature=1, top_p=1e-9)
        logits[best] = 0
    assert sample(np.zeros(100, np.float32)) == 0  # the first of equal ones
    assert sample(np.stack([np.eye(8)[1], np.eye(8)[5]]).astype(np.float32)) == 5  # of the last row
    for dtype in (np.float16, np.float32):
        assert sample(np.array([-3, 2, 7, 1], dtype)) == 2
    assert sample(np.array([np.nan, -1, np.nan, -2], np.float32)) == 1
    for options in ({}, {"top_k": 2}, {"top_p": 0.9}):
        assert {sample(np.array([-np.inf, -1, -np.inf, np.nan], np.float32), temperature=1, index=i, **options) for i in range(50)} == {1}
    for bad in (np.full(4, -np.inf, np.float32), np.full(4, np.nan, np.float32), np.array([0, np.inf], np.float32)):
        with pytest.raises(heddle.errors.InvalidError):
            sample(bad)
    for bad in (np.zeros((2, 0), np.float32), np.zeros(3, np.int64), np.zeros((), np.float32), np.zeros(3, np.float64)):
        with pytest.raises(heddle.errors.InvalidError):
            sample(bad)


def test_bias_and_penalty():
    logits = np.array([1.0, 2.0, 3.0, -1.0], np.float32)
    before = logits.copy()
    assert sample(logits, bias={3: 10}) == 3
    assert sample(logits, bias={2: -np.inf}) == 1
    assert sample(logits, bias={2: -np.inf, 1: -5.0}) == 0
    assert sample(logits, history=[2, 2, 2, 2], repetition_penalty=1.4) == 2  # once, however often it is there
    assert sample(logits, history=[2], repetition_penalty=1.6) == 1
    assert sample(np.array([-1.0, -1.5], np.float32), history=[0], repetition_penalty=2) == 1
    assert sample(logits, history=[2], repetition_penalty=0.5) == 2
    assert sample(logits, history=[-5, 99], repetition_penalty=2) == 2
    np.testing.assert_array_equal(logits, before)


def spread_logits(kind, n, rng):
    x = rng.standard_normal(n)
    if kind == "peaked":
        x *= 8
    elif kind == "equal":
        x[:] = 1.5
    elif kind == "ties":
        x = np.round(x * 2) / 2
    elif kind == "masked":
        x[rng.random(n) < 0.9] = -np.inf
    elif kind == "nan":
        x[rng.random(n) < 0.5] = np.nan
    elif kind == "one bit":
        x = np.float32(1) + np.float32(2.0**-23) * rng.integers(0, 3, n)
    return x.astype(np.float32)


def expected(logits, u, slack=0.0, **options):
    """The token of a draw u, by the rule: weights are summed in the order of logits with top_k, else in that of tokens.
    None where rounding may decide."""
    x = np.where(np.isnan(logits), -np.inf, logits)
    with np.errstate(invalid="ignore"):
        p, order = kept(x, **{"temperature": 1.0, **options})
    order = order if 0 < options.get("top_k", 0) < x.size else np.arange(x.size)
    sums = np.cumsum(p[order])
    at = np.searchsorted(sums, u, side="right")
    near = max(at - 1, 0), min(at, x.size - 1)
    return None if any(abs(sums[i] - u) < slack for i in near) else int(order[at])


@pytest.mark.parametrize("kind", ["flat", "peaked", "equal", "ties", "masked", "nan", "one bit"])
@pytest.mark.parametrize("n", [17, 1025, 30011])
def test_tokens_of_draws(kind, n):
    """The token itself, for vocabularies of less than a block and of many, and lists that end among equal logits."""
    rng = np.random.default_rng(n)
    logits = spread_logits(kind, n, rng)
    compared = 0
    for options in ({}, {"top_k": 3}, {"top_k": 40}, {"top_k": 1000}, {"top_k": 12000}, {"top_p": 0.5}, {"top_p": 0.95}, {"min_p": 0.3},
                    {"top_k": 100, "top_p": 0.7}, {"top_p": 0.9, "min_p": 0.1, "temperature": 0.6}):
        for index in range(4):
            want = expected(logits, uniform(index, 5), 2e-6 if n > 2000 else 1e-6, **options)
            if want is not None:
                compared += 1
                got = sample(logits, index=index, seed=5, **{"temperature": 1.0, **options})
                # the last digit of a sum may move the end of a nucleus by one token, and with it each draw a little
                assert got == want or "top_p" in options and logits[got] == logits[want] and abs(got - want) < 40, (options, index)
    assert compared > 20


@pytest.mark.parametrize("kind", ["equal", "ties", "one bit"])
def test_first_of_equal_ones(kind):
    logits = spread_logits(kind, 5003, np.random.default_rng(3))
    order = np.lexsort((np.arange(5003), -logits))
    for k in (2, 7, 300):
        got = {sample(logits, temperature=50, top_k=k, index=i) for i in range(400 if k < 100 else 60)}
        assert got <= set(order[:k].tolist()) and (k > 7 or got == set(order[:k].tolist()))
