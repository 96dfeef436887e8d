"""heddle.GenerationBatch: texts of different lengths share runs; each has the tokens that it has alone, greedy and drawn ones,
whatever joins and leaves beside it. Cancels, deadlines, a full queue, failures, and models that are refused.

labels: threads
"""
import gc
import json
import pathlib
import resource
import threading
import time

import heddle
import numpy as np
import onnx
import pytest
from generating import FAMILIES, PROMPT, folder, greedy, same_tokens
from lm import gguf
from lm.shapes import shape
from lm.weights import Weights

OPTIONS = [{}, {"temperature": 0.8, "top_p": 0.9, "seed": 5}, {"temperature": 1.2, "top_k": 20, "repetition_penalty": 1.3, "seed": 1}]


def load(family="llama", form="builder", kind="float32", devices="cpu", **more):
    return heddle.Generator(folder(family, form, kind), devices=devices, precision="strict", **more)


def alone(g, prompt, n, **options):
    g.truncate(0)
    return list(g.generate(prompt, max_tokens=n, past_stops=True, **options))


def prompts(n, seed=0, longest=40):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 160, rng.integers(1, longest)).tolist() for _ in range(n)]


@pytest.mark.parametrize("form", ["builder", "plain"])
@pytest.mark.parametrize("family", FAMILIES)
def test_ragged(family, form):
    """More texts than rows: each family's windows, caps and norms in rows of different lengths."""
    g = load(family, form, chunk=16)
    texts = prompts(11, 3)
    counts = [3 + 7 * i % 40 for i in range(len(texts))]
    with heddle.GenerationBatch(g, rows=4) as b:
        made = [b.submit(t, max_tokens=n, past_stops=True, **OPTIONS[i % 3]) for i, (t, n) in enumerate(zip(texts, counts))]
        got = [r.wait() for r in made]
        stats = b.stats
    for i, (text, n) in enumerate(zip(texts, counts)):
        assert got[i] == alone(g, text, n, **OPTIONS[i % 3]), i
        assert made[i].result["end"] == "length" and made[i].result["tokens"] == n
    assert stats["finished"] == stats["requests"] == 11 and stats["running"] == stats["queued"] == stats["failed"] == 0
    assert stats["sampled"] == sum(counts) and stats["runs"] < 0.6 * sum(counts)  # not one after the other
    assert stats["computed"] + stats["reused"] == sum(map(len, texts)) + sum(counts) - len(texts)


def test_against_onnxruntime():
    """All rows with one prompt, and others beside it."""
    want = greedy("qwen2")
    with heddle.GenerationBatch(load("qwen2"), rows=3) as b:
        made = [b.submit(PROMPT if i % 2 else [i, 4], max_tokens=50, past_stops=True) for i in range(6)]
        for r in made[1::2]:
            same_tokens(r.wait(), *want)


@pytest.mark.parametrize("devices", ["sim:0", "cpu,sim:0", "opencl:0", "cpu,vulkan:0"])
@pytest.mark.parametrize("form", ["builder", "plain"])
def test_devices(devices, form):
    try:
        g = load("llama", form, devices=devices, place=["*layers.1/*=" + devices.split(",")[1]] if "," in devices else None)
    except heddle.errors.NoDeviceError as error:
        pytest.skip(str(error))
    texts = prompts(5, 8, 20)
    want = [alone(load("llama", form), t, 8) for t in texts]
    with heddle.GenerationBatch(g, rows=2) as b:
        made = [b.submit(t, max_tokens=8, past_stops=True) for t in texts]
        assert [r.wait() for r in made] == want


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_int4_and_growth(form):
    """Caches past their first rows, and texts to the last token that fits, beside short ones."""
    g = heddle.Generator(folder("qwen2", form, "int4", size="small"), devices="cpu", precision="strict", max_length=330, chunk=64)
    long = np.random.default_rng(1).integers(0, 2048, 290).tolist()
    with heddle.GenerationBatch(g, rows=3) as b:
        made = [b.submit(t, past_stops=True, max_tokens=n) for t, n in ((long, None), ([5], 60), (long[:200], 100), (long[:30], 20))]
        got = [r.wait() for r in made]
    assert [len(x) for x in got] == [40, 60, 100, 20]
    for text, tokens in zip((long, [5], long[:200], long[:30]), got):
        g.truncate(0)
        g.append(text)
        for token in tokens:  # where two logits are nearer than rows round, either may come
            row = g.logits()
            assert row[token] >= row.max() - 1e-3
            g.append([token])


def test_prefix():
    """What prompts have in common is computed once where they follow each other."""
    g = load(chunk=8)
    start = prompts(1, 4)[0] + [1] * 30
    with heddle.GenerationBatch(g, rows=4) as b:
        made = [b.submit(start + [i], max_tokens=10, past_stops=True) for i in range(4)]
        same = b.submit(start + [3], max_tokens=10, past_stops=True)
        got = [r.wait() for r in made]
        assert same.wait() == got[3]
        assert b.stats["reused"] == 3 * len(start) + len(start) + 1
    assert got == [alone(g, start + [i], 10) for i in range(4)]


def test_stops_and_streaming():
    g = load()
    want = alone(g, PROMPT, 20)
    first = want.index(want[7])
    with heddle.GenerationBatch(g, rows=2) as b:
        stopped = b.submit(PROMPT, stop_tokens=[want[7]], past_stops=True, max_tokens=20)
        ended = b.submit(PROMPT, bias={2: 1e4})  # of the configuration
        longest = b.submit(PROMPT, past_stops=True)
        full = b.submit([1] * g.info["max_length"], past_stops=True)
        assert list(stopped) == want[:first + 1] and stopped.result["end"] == "stop"
        assert ended.wait() == [2] and ended.result["end"] == "stop"
        assert len(longest.wait()) == g.info["max_length"] - len(PROMPT)
        assert full.wait() == [] and full.result["end"] == "length"


def test_bad_requests():
    g = load()
    b = heddle.GenerationBatch(g, rows=2)
    for tokens, error in (([-1], "is -1; expected 0 to 159"), ([5, 160], "token 1 of those given for 'input_ids' is 160"), ([], "no token")):
        with pytest.raises(heddle.errors.InvalidError, match=error):
            b.submit(tokens)
    with pytest.raises(heddle.errors.LimitError, match="256"):
        b.submit([1] * 257)
    for options in ({"temperature": -1}, {"top_p": 1.5}, {"bias": {160: 1}}, {"bias": {1: np.nan}}):
        with pytest.raises(heddle.errors.InvalidError):
            b.submit([1], **options)
    bad = b.submit([1, 2, 3], bias={t: -np.inf for t in range(160)})
    good = b.submit(PROMPT, max_tokens=5, past_stops=True)
    with pytest.raises(heddle.errors.InvalidError, match="'logits'"):
        bad.wait()
    assert good.wait() == alone(g, PROMPT, 5)
    assert b.stats["failed"] == 1 and b.stats["requests"] == 2
    b.close()
    with pytest.raises(heddle.errors.CanceledError, match="closed"):
        b.submit([1])
    with pytest.raises(heddle.errors.InvalidError, match="1025 rows"):
        heddle.GenerationBatch(g, rows=1025)


def test_cancel_and_queue():
    g = load()
    b = heddle.GenerationBatch(g, rows=1, max_queue=1)
    first = b.submit(PROMPT, past_stops=True)
    next(iter(first))  # it has the row
    second = b.submit(PROMPT, max_tokens=4, past_stops=True)
    with pytest.raises(heddle.errors.BusyError, match="no room"):
        b.submit(PROMPT, wait=0)
    assert b.stats["rejected"] == 1
    with pytest.raises(heddle.errors.BusyError):
        second._core.wait(0)
    first.cancel()
    with pytest.raises(heddle.errors.CanceledError):
        first.wait()
    some = list(first)
    assert some == alone(g, PROMPT, len(some))
    assert second.wait() == alone(g, PROMPT, 4)
    second.cancel()  # it has ended
    assert len(second.wait()) == 4
    running = b.submit(PROMPT, past_stops=True)
    waiting = b.submit(PROMPT, past_stops=True)
    waiting.cancel()
    with pytest.raises(heddle.errors.CanceledError):
        waiting.wait(0)
    b.close(cancel=True)
    with pytest.raises(heddle.errors.CanceledError):
        running.wait(0)
    del b
    gc.collect()
    assert list(running) == alone(g, PROMPT, len(list(running)))  # a request outlives its batch


def test_deadlines():
    g = load()
    with heddle.GenerationBatch(g, rows=1) as b:
        late = b.submit(PROMPT, past_stops=True, deadline=1e-9)
        with pytest.raises(TimeoutError):
            late.wait()
        first = b.submit(PROMPT, past_stops=True)
        queued = b.submit(PROMPT, past_stops=True, deadline=1e-4)
        with pytest.raises(TimeoutError):
            queued.wait()
        assert len(first.wait()) == 240 and list(queued) == []


def test_random_cancels():
    """Texts that are left have the tokens that they have alone, and memory stays."""
    g = load(chunk=4)
    texts = prompts(8, 5, 30)
    want = [alone(g, t, 12) for t in texts]
    rng = np.random.default_rng(2)
    with heddle.GenerationBatch(g, rows=3, max_queue=100) as b:
        for turn in range(40):
            if turn == 10:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            made = [b.submit(t, max_tokens=12, past_stops=True) for t in texts]
            chosen = rng.permutation(len(texts))[:4]
            thread = threading.Thread(target=lambda: [time.sleep(float(rng.random()) * 2e-3) or made[i].cancel() for i in chosen])  # noqa: B023
            thread.start()
            for i, r in enumerate(made):
                try:
                    assert r.wait() == want[i]
                except heddle.errors.CanceledError:
                    assert i in chosen and list(r) == want[i][:len(list(r))]
            thread.join()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10
        stats = b.stats
        assert stats["requests"] == stats["finished"] + stats["failed"] == 320


# ---- models that are refused


def changed(tmp_path, form, change):
    source = folder("llama", form)
    model = onnx.load(source / "model.onnx")
    change(model)
    onnx.save(model, tmp_path / "model.onnx")
    name = "genai_config.json" if form == "builder" else "config.json"
    (tmp_path / name).write_text((source / name).read_text())
    return heddle.Generator(tmp_path, devices="cpu")


@pytest.mark.parametrize("name", ["input_ids", "attention_mask", "past_key_values.1.value", "logits"])
def test_fixed_batch(tmp_path, name):
    def change(model):
        port = next(p for p in [*model.graph.input, *model.graph.output] if p.name == name)
        port.type.tensor_type.shape.dim[0].Clear()
        port.type.tensor_type.shape.dim[0].dim_value = 1
    g = changed(tmp_path, "builder", change)
    with pytest.raises(heddle.errors.UnsupportedError, match=f"'{name}' is 1"):
        heddle.GenerationBatch(g)
    assert len(alone(g, PROMPT, 3)) == 3


def test_gguf(tmp_path):
    g = heddle.Generator(gguf.write(tmp_path / "m.gguf", Weights(shape("llama", "tiny"), 0, "float32")), devices="cpu")
    with pytest.raises(heddle.errors.UnsupportedError, match="m.gguf: several texts cannot share a run: its caches have one length"):
        heddle.GenerationBatch(g)
    assert len(alone(g, PROMPT, 3)) == 3


def test_branches(tmp_path):
    """Rotary tables by the length, as Phi-3 has them: that of one text would decide for all."""
    def change(model):
        graph, tables = model.graph, {t.name: t for t in model.graph.initializer}
        total = next(n for n in graph.node if n.op_type == "GroupQueryAttention").input[6]
        branch = onnx.helper.make_graph([onnx.helper.make_node("Constant", [], ["table"], value=tables["cos_cache"])], "branch", [],
                                        [onnx.helper.make_tensor_value_info("table", 1, list(tables["cos_cache"].dims))])
        for n in graph.node:
            n.input[:] = ["chosen_cache" if x == "cos_cache" else x for x in n.input]
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(30, np.int32), "original"))
        at = next(i for i, n in enumerate(graph.node) if total in n.output) + 1
        graph.node.insert(at, onnx.helper.make_node("Greater", [total, "original"], ["is_long"]))
        graph.node.insert(at + 1, onnx.helper.make_node("If", ["is_long"], ["chosen_cache"], then_branch=branch, else_branch=branch))
    g = changed(tmp_path, "builder", change)
    with pytest.raises(heddle.errors.UnsupportedError, match="its branches may depend on the longest one"):
        heddle.GenerationBatch(g)
    assert alone(g, PROMPT, 3) == alone(load(), PROMPT, 3)


def test_pickle_and_types():
    g = load()
    b = heddle.GenerationBatch(g)
    assert b.stats["rows"] == 8
    with pytest.raises(TypeError):
        json.dumps(b)
    with pytest.raises(TypeError, match="cannot be pickled"):
        b.__reduce__()
    with pytest.raises(ValueError, match="max_tokens"):
        b.submit([1], max_tokens=0)
    assert pathlib.Path(g.info["model_path"]).name == "model.onnx"
