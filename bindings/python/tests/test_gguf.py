"""GGUF files: tokens of each family against ONNX Runtime on the same weights, each type of tensors against numpy, and files that
are cut, changed or hostile."""
import dataclasses
import gc
import struct

import heddle
import numpy as np
import pytest
from generating import PROMPT, greedy, same_tokens
from lm import gguf
from lm import model as lm
from lm.shapes import shape
from lm.weights import Weights


def take(path, n=30, **more):
    return list(heddle.Generator(path, devices="cpu", precision="strict", **more).generate(PROMPT, max_tokens=n, past_stops=True))


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_families(tmp_path, family):
    path = gguf.write(tmp_path / "m.gguf", Weights(shape(family, "tiny"), 0, "float32"))
    same_tokens(take(path), *greedy(family, steps=30))
    g = heddle.Generator(path, devices="cpu", chunk=5, max_length=100)
    assert g.info["type"] == family and g.info["layers"] == 2 and g.info["stop_tokens"] == (2,) and g.info["max_length"] == 100
    same_tokens(list(g.generate(PROMPT, max_tokens=30, past_stops=True)), *greedy(family, steps=30))
    fork = g.fork()
    assert fork.next() == g.next()


@pytest.mark.parametrize("family", ["gemma2", "gemma3"])
def test_gemma(tmp_path, family, monkeypatch):
    """Of the scale and the windows that the family has in GGUF."""
    s = dataclasses.replace(shape(family, "tiny"), attention_scale=0.0, window_every=2 if family == "gemma2" else 6)
    monkeypatch.setattr(lm, "shape", lambda *_: s)
    lm.make(tmp_path / "onnx", family, form="plain")
    path = gguf.write(tmp_path / "m.gguf", Weights(s, 0, "float32"))
    onnx, mine = (heddle.Generator(p, devices="cpu", precision="strict") for p in (tmp_path / "onnx", path))
    for g in (onnx, mine):
        g.append(PROMPT * 2)
    np.testing.assert_allclose(mine.logits(), onnx.logits(), atol=2e-5)
    assert [mine.next() for _ in range(20)] == [onnx.next() for _ in range(20)]


@pytest.mark.parametrize("kind", gguf.KINDS)
def test_types(tmp_path, kind):
    """The same logits as of a file with the numbers that numpy makes of the bytes."""
    s = dataclasses.replace(shape("llama", "tiny"), width=256, inner=256, heads=8, kv_heads=8, head=32, words=64, layers=1)
    values, arrays = gguf.contents(Weights(s, 3, "float32"))
    rng, packed, plain = np.random.default_rng(5), {}, {}
    for name, array in arrays.items():
        own = kind if array.ndim == 2 else gguf.F32
        raw = gguf.encode(array, own) if own in gguf.ENCODED else gguf.random_bytes(rng, array.size, own)
        packed[name] = (raw, array.shape, own)
        numbers = gguf.decode(raw, own) if own != gguf.F32 else array
        plain[name] = (np.asarray(numbers, np.float32).tobytes(), array.shape, gguf.F32)
    logits = []
    for i, tensors in enumerate((packed, plain)):
        path = tmp_path / f"{i}.gguf"
        path.write_bytes(gguf.file_bytes(values, tensors))
        g = heddle.Generator(path, devices="cpu", precision="strict")
        g.append([3, 1, 4, 1, 5])
        logits.append(g.logits())
    assert np.isfinite(logits[0]).all() and logits[0].std() > 0.01
    np.testing.assert_allclose(*logits, rtol=0, atol=1e-5 * np.abs(logits[1]).max())  # the sums' order differs


# ---- files that are not whole


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gguf")
    s = dataclasses.replace(shape("qwen2", "tiny"), layers=1, words=32)
    return gguf.contents(Weights(s, 0, "float32")), gguf.write(folder / "m.gguf", Weights(s, 0, "float32")).read_bytes()


def refused(tmp_path, data, match, error=(heddle.errors.FormatError, heddle.errors.UnsupportedError)):
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(error, match=match):
        heddle.Generator(path, devices="cpu")


def rewritten(contents, values=None, drop=(), **arrays):
    have, tensors = dict(contents[0]), dict(contents[1])
    have.update(values or {})
    for name in drop:
        have.pop(name, None)
        tensors.pop(name, None)
    tensors.update(arrays.get("arrays", {}))
    return gguf.file_bytes(have, {n: (gguf.encode(a, gguf.F32), a.shape, gguf.F32) for n, a in tensors.items()})


def test_contradictions(tmp_path, good):
    contents, _ = good
    for name in list(contents[1]):
        if ".bias" not in name and "_norm" not in name or name.endswith("attn_norm.weight"):
            refused(tmp_path, rewritten(contents, drop=[name]), name.replace(".", r"\."))
    wrong = np.zeros((3, 5), np.float32)
    refused(tmp_path, rewritten(contents, arrays={"blk.0.ffn_up.weight": wrong}), "'blk.0.ffn_up.weight' has 15 elements")
    for key, value, words in (("qwen2.block_count", 2, "blk.1."), ("qwen2.attention.head_count", 3, "heads|attn_q"),
                              ("qwen2.block_count", 0, "block_count"), ("qwen2.embedding_length", 2**30, "embedding_length"),
                              ("qwen2.attention.key_length", 15, "heads"), ("general.architecture", "bert", "bert"),
                              ("qwen2.embedding_length", "many", "embedding_length"), ("qwen2.rope.freq_base", -1.0, "freq_base"),
                              ("qwen2.expert_count", 4, "experts"), ("qwen2.attn_logit_softcapping", 1e12, "softcapping"), ("general.alignment", 7, "alignment"),
                              ("qwen2.rope.scaling.factor", 4.0, "scaling")):
        refused(tmp_path, rewritten(contents, {key: value}), words)
    refused(tmp_path, rewritten(contents, drop=["qwen2.context_length"]), "context_length")


def test_tokens_that_contradict(tmp_path, good):
    contents, _ = good
    for key, value in (("tokenizer.ggml.eos_token_id", 32), ("tokenizer.ggml.bos_token_id", 2**31), ("qwen2.vocab_size", 5),
                       ("tokenizer.ggml.tokens", ["a"] * 7), ("qwen2.rope.scaling.type", "yarn"), ("qwen2.rope.freq_base", 0.0)):
        refused(tmp_path, rewritten(contents, {key: value}), key.split(".", 1)[1])
    path = tmp_path / "none.gguf"
    path.write_bytes(rewritten(contents, {"qwen2.rope.scaling.type": "none"}, drop=["tokenizer.ggml.bos_token_id"]))
    heddle.Generator(path, devices="cpu")


@pytest.mark.parametrize("kind, at, bad", [(gguf.F32, 4, np.float32(np.nan)), (gguf.F16, 2, np.float16(np.inf)),
                                           (gguf.Q4_0, 18, np.float16(np.nan)), (gguf.Q8_0, 34, np.float16(-np.inf))])
def test_what_is_no_number_is_named(tmp_path, good, kind, at, bad):
    """A scale or a weight: the error of the first token says in which tensor it is; norms and biases too."""
    values, arrays = good[0]
    names = ["blk.0.ffn_up.weight", "blk.0.attn_q.weight"] if kind != gguf.F32 else ["blk.0.attn_q.bias", "output_norm.weight"]
    for name in names:
        tensors = {}
        for n, array in arrays.items():
            own = kind if array.ndim == 2 else gguf.F32
            raw = bytearray(gguf.encode(array, own))
            if n == name:
                raw[at:at + bad.nbytes] = bad.tobytes()
            tensors[n] = (bytes(raw), array.shape, own)
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(gguf.file_bytes(values, tensors))
        for precision in ("strict", "fast"):
            g = heddle.Generator(path, devices="cpu", precision=precision)
            g.append([3, 1, 4])
            with pytest.raises(heddle.errors.InvalidError, match=f"tensor '{name}' is not finite"):
                g.next()


def test_cut(tmp_path, good):
    """Each shorter file is refused, in the head and in each tensor."""
    _, data = good
    for n in [*range(0, 200), *range(200, 6000, 97), *range(6000, len(data), len(data) // 40), len(data) - 1]:
        refused(tmp_path, data[:n], "bad.gguf")


def test_changed(tmp_path, good):
    """Bytes of the head that are changed: an error, or a model that runs."""
    _, data = good
    rng = np.random.default_rng(1)
    path = tmp_path / "bad.gguf"
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, 3000))
            bad[at:at + 8] = rng.choice([bytes(8), b"\xff" * 8, struct.pack("<Q", 2**63), rng.bytes(8)])
        path.write_bytes(bad)
        try:
            heddle.Generator(path, devices="cpu").append([1])
        except heddle.errors.Error as error:
            assert str(error)


def test_trust(tmp_path, good):
    """A file that must be signed and is not."""
    (tmp_path / "trust").write_text("")
    path = tmp_path / "m.gguf"
    path.write_bytes(good[1])
    with pytest.raises(heddle.errors.Error):
        heddle.Generator(path, devices="cpu", trust=tmp_path / "trust")


def private(clean_mib):
    """MiB of the process that are no file's."""
    gc.collect()
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:")) / 1024 - clean_mib


def test_weights_stay_in_the_file(tmp_path):
    """Memory of its own is a small part of the weights, at any alignment of the tensors."""
    s = dataclasses.replace(shape("qwen2", "tiny"), width=512, inner=2048, layers=6, words=8192)
    for kind, alignment in ((gguf.Q8_0, 32), (gguf.F16, 8)):
        path = gguf.write(tmp_path / "m.gguf", Weights(s, 0, "float32"), kind, alignment)
        heddle.Generator(path, devices="cpu").append([1])
        before = private(0)
        g = heddle.Generator(path, devices="cpu", max_length=64)
        g.append([1, 2, 3])
        assert g.next() >= 0
        assert private(before) < 0.3 * path.stat().st_size / 2**20, (kind, alignment)
