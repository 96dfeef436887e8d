"""heddle.Generator: greedy tokens of each family and form against a loop over ONNX Runtime; prompts in chunks; truncate and
fork; stops, deadlines and cancellation; configurations that contradict the graph. HEDDLE_TEST_SCALE above 1: more devices.

labels: threads
"""
import gc
import json
import os
import pathlib
import shutil
import threading
import time

import heddle
import numpy as np
import onnx
import pytest
from generating import FAMILIES, PROMPT, Loop, folder, greedy, same_tokens

STEPS = 50
SCALE = float(os.environ.get("HEDDLE_TEST_SCALE", "1"))
DEVICES = ["sim:0", "cpu,sim:0", "cpu,opencl:0"] + (["opencl:0", "vulkan:0", "cpu,vulkan:0"] if SCALE > 1 else [])


def load(family="llama", form="builder", kind="float32", devices="cpu", **more):
    return heddle.Generator(folder(family, form, kind), devices=devices, precision="strict", **more)


def take(g, n=STEPS, prompt=None, **more):
    return list(g.generate(prompt, max_tokens=n, past_stops=True, **more))


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    for form in ("builder", "plain"):
        same_tokens(take(load(family, form), prompt=PROMPT), *greedy(family))
    same_tokens(greedy(family, "plain")[0], *greedy(family))  # one seed, one model


@pytest.mark.parametrize("family", ["qwen2", "phi3"])
def test_int4(family):
    for form in ("builder", "plain"):
        same_tokens(take(load(family, form, "int4"), 20, PROMPT), *greedy(family, form, "int4", 20))


def test_float16_logits():
    g = load("llama", "plain", "float16")
    g.append(PROMPT)
    assert g.logits().dtype == np.float32
    np.testing.assert_allclose(g.logits(), Loop(folder("llama", "plain", "float16")).logits(PROMPT)[-1], atol=0.05)
    assert g.next() == int(g.logits().argmax()) or len(g) == len(PROMPT) + 1


@pytest.mark.parametrize("devices", DEVICES)
def test_devices(devices):
    place = ["*layers.1/*=" + devices.split(",")[1]] if "," in devices else None
    for family, form in (("llama", "builder"), ("llama", "plain"), ("gemma3", "builder")):
        try:
            g = load(family, form, devices=devices, place=place)
        except heddle.errors.NoDeviceError as error:
            pytest.skip(str(error))
        same_tokens(take(g, prompt=PROMPT), *greedy(family))


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_chunks(form):
    want = greedy("llama")
    for chunk in (1, 3, 5, 8):
        g = load(form=form, chunk=chunk)
        same_tokens(take(g, 8, PROMPT), want[0][:8], want[1])
        assert g.stats["runs"] == -(-len(PROMPT) // chunk) + 7
        assert g.tokens == PROMPT + want[0][:8]


def test_caches_grow():
    """Twice as many rows when they run out; the prompt in chunks that are padded, and to the last row."""
    path = folder("qwen2", size="small")
    prompt = np.random.default_rng(3).integers(0, 2048, 700).tolist()
    g = heddle.Generator(path, devices="cpu", precision="strict", max_length=720, chunk=128)
    got = []
    for begin in (0, 200, 250, 260):
        end = {0: 200, 200: 250, 250: 260, 260: 700}[begin]
        g.append(prompt[begin:end])
        got.append(g.logits())
    assert g.info["cache_rows"] == 720
    rows = Loop(path).logits(prompt)
    np.testing.assert_allclose(np.array(got), rows[[199, 249, 259, 699]], atol=2e-4)
    assert len(take(g)) == 20 and len(g) == 720
    with pytest.raises(heddle.errors.LimitError, match="720 tokens"):
        g.next()


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_truncate(form):
    g, want = load(form=form), greedy("llama")
    take(g, 20, PROMPT)
    g.truncate(len(PROMPT) + 5)
    assert g.tokens == PROMPT + want[0][:5]
    same_tokens(take(g, 15), want[0][5:20], want[1][5:])
    computed = g.stats["computed"]
    g.truncate(len(PROMPT))
    assert g.next() == want[0][0] and g.stats["computed"] == computed + 1
    g.truncate(0)
    assert g.tokens == [] and len(g) == 0
    same_tokens(take(g, 20, PROMPT), want[0][:20], want[1])
    with pytest.raises(heddle.errors.InvalidError, match="cannot be kept"):
        g.truncate(1000)


@pytest.mark.parametrize("form", ["builder", "plain"])
def test_fork(form):
    g, want = load(form=form), greedy("llama")
    take(g, 4, PROMPT)
    forks = [g.fork() for _ in range(3)]
    computed = g.stats["computed"]
    forks[1].append([1, 2, 3])
    other = take(forks[1], 6)
    for one in (g, forks[0], forks[2]):
        same_tokens(take(one, 10), want[0][4:14], want[1][4:])
    assert g.stats["computed"] == computed + 9 and forks[0].stats["computed"] == 9  # not the prompt again
    fresh = load(form=form)
    assert take(fresh, 6, PROMPT + want[0][:4] + [1, 2, 3]) == other
    assert load(form=form).fork().tokens == []


# ---- stops, limits, cancellation


def test_stops():
    g, want = load(), greedy("llama")[0]
    stop = want[7]
    first = want.index(stop)
    assert list(g.generate(PROMPT, stop_tokens=[stop], past_stops=True)) == want[:first]
    assert g.tokens == PROMPT + want[:first + 1]
    g.truncate(0)
    g.append(PROMPT)
    assert list(g.generate(max_tokens=5, bias={2: 1e4})) == [] and g.tokens[-1] == 2  # of the configuration
    g.truncate(len(PROMPT))
    assert take(g, 3, bias={2: 1e4}) == [2, 2, 2]
    g.truncate(len(PROMPT))
    assert set(take(g, 10, bias={w: -np.inf for w in want[:10]})).isdisjoint(want[:10])


def test_bad_tokens():
    g = load()
    for tokens, error in (([-1], "is -1; expected 0 to 159"), ([5, 160], "token 1 of those given for 'input_ids' is 160"),
                          ([2**40], "1099511627776")):
        with pytest.raises(heddle.errors.InvalidError, match=error):
            g.append(tokens)
    with pytest.raises(heddle.errors.LimitError, match="256"):
        g.append([1] * 257)
    for tokens in ([1.0], [[1], [2]], ["a"]):
        with pytest.raises(TypeError):
            g.append(tokens)
    assert g.tokens == []
    with pytest.raises(heddle.errors.InvalidError, match="no token"):
        g.next()
    for options in ({"temperature": -1}, {"temperature": np.nan}, {"top_p": 1.5}, {"min_p": -1}, {"repetition_penalty": -1},
                    {"bias": {160: 1}}, {"bias": {-1: 1}}, {"bias": {1: np.nan}}):
        with pytest.raises(heddle.errors.InvalidError):
            g.next(**options)
    g.append([1])
    with pytest.raises(heddle.errors.InvalidError, match="logits"):
        g.next(bias={t: -np.inf for t in range(160)})
    same_tokens(take(g, 5, PROMPT), take(load(), 5, [1, *PROMPT]), [1] * 5)


def test_deadline():
    g = load()
    g.append(PROMPT)
    with pytest.raises(TimeoutError):
        g.next(timeout=0)
    with pytest.raises(TimeoutError):
        list(g.generate(timeout=1e-9))
    same_tokens(take(g, 10), greedy("llama")[0][:10], [1] * 10)


def test_cancel():
    """From another thread at any moment: tokens up to then stay, and the next call goes on."""
    g, want = load(devices="sim:0"), greedy("llama")
    g.append(PROMPT)
    cancels, stopped = 0, threading.Event()

    def cancel():
        while not stopped.wait(0.0005):
            g.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        until = time.monotonic() + 60
        while len(g) < len(PROMPT) + STEPS and time.monotonic() < until:
            try:
                g.next()
            except heddle.errors.CanceledError:
                cancels += 1
                if cancels > 20:
                    stopped.set()
    finally:
        stopped.set()
        thread.join()
    assert cancels > 0
    same_tokens(g.tokens[len(PROMPT):], *want)
    g.cancel()
    g.truncate(len(PROMPT))  # drops it
    assert g.next() == want[0][0]
    g.cancel()
    with pytest.raises(heddle.errors.CanceledError):
        g.next()
    assert g.next() == want[0][1]


def test_one_thread():
    g = load(devices="sim:0", context=heddle.Context({"sim.delay_us": "2000"}))
    g.append(PROMPT)
    thread = threading.Thread(target=g.evaluate)
    thread.start()
    seen = False
    while thread.is_alive():
        try:
            g.next()
        except heddle.errors.BusyError:
            seen = True
    thread.join()
    assert seen or len(g) > len(PROMPT)


def test_memory():
    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4

    g = load()
    g.append(PROMPT)
    rng = np.random.default_rng(0)

    def once(i):
        g.truncate(int(rng.integers(0, len(g) + 1)))
        if len(g) == 0:
            g.append(PROMPT)
        if i % 3 == 0:
            g.cancel()
        try:
            for _ in range(int(rng.integers(1, 5))):
                g.next(temperature=1, top_k=int(rng.integers(0, 20)), top_p=float(rng.random()), seed=i, repetition_penalty=1.1)
        except heddle.errors.CanceledError:
            pass
        if i % 50 == 0:
            g.fork().append([1])

    for i in range(200):
        once(i)
    gc.collect()
    before = resident()
    for i in range(int(400 * SCALE)):
        once(i)
    gc.collect()
    assert resident() - before < 4096


# ---- configurations


def changed(tmp_path, form, change, family="llama"):
    """A copy of a model whose configuration is changed."""
    path = tmp_path / f"changed-{len(list(tmp_path.iterdir()))}"
    shutil.copytree(folder(family, form), path)
    file = path / ("genai_config.json" if form == "builder" else "config.json")
    config = json.loads(file.read_text())
    change(config)
    file.write_text(json.dumps(config))
    return path


def put(*keys, value):
    def change(config):
        for key in keys[:-1]:
            config = config[key]
        config[keys[-1]] = value
    return change


CONTRADICTIONS = [
    ("builder", put("model", "decoder", "num_hidden_layers", value=3), "past_key_values.2.key"),
    ("builder", put("model", "decoder", "num_hidden_layers", value=1), "past_key_values.1"),
    ("builder", put("model", "decoder", "num_key_value_heads", value=4), "past_key_values.0.key"),
    ("builder", put("model", "decoder", "head_size", value=32), "dimension 3 of 'past_key_values.0.key' is 16"),
    ("builder", put("model", "vocab_size", value=200), "'logits'"),
    ("builder", put("model", "eos_token_id", value=160), "'logits'"),
    ("builder", put("model", "bos_token_id", value=160), "bos_token_id"),
    ("builder", put("model", "decoder", "inputs", "input_ids", value="ids"), "'input_ids'"),
    ("builder", put("model", "decoder", "outputs", "logits", value="scores"), "'scores'"),
    ("builder", put("model", "decoder", "inputs", "past_key_names", value="past.%d.key"), r"past\."),
    ("plain", put("num_hidden_layers", value=5), "past_key_values.2.key"),
    ("plain", put("head_dim", value=8), "past_key_values.0.key"),
    ("plain", put("vocab_size", value=1), "'logits'"),
    ("plain", put("num_key_value_heads", value=1), "past_key_values.0.key"),
]


@pytest.mark.parametrize("form, change, words", CONTRADICTIONS)
def test_contradictions(tmp_path, form, change, words):
    with pytest.raises((heddle.errors.InvalidError, heddle.errors.UnsupportedError), match=words):
        heddle.Generator(changed(tmp_path, form, change), devices="cpu")


def spoilt(tmp_path, change):
    """A copy of a builder's model with weights of 4 bits whose graph is changed."""
    path = tmp_path / "spoilt"
    shutil.copytree(folder("qwen2", "builder", "int4"), path)
    proto = onnx.load(path / "model.onnx")
    change(proto.graph)
    onnx.save(proto, path / "model.onnx")
    return path


def test_scales_that_are_no_numbers_are_named(tmp_path):
    def change(graph):
        scales = next(t for t in graph.initializer if t.name.endswith("qkv_proj.scales"))
        array = onnx.numpy_helper.to_array(scales).copy()
        array.reshape(-1)[3] = np.nan
        scales.CopyFrom(onnx.numpy_helper.from_array(array, scales.name))

    path = spoilt(tmp_path, change)
    for precision in ("strict", "fast"):
        g = heddle.Generator(path, devices="cpu", precision=precision)
        g.append([1, 2])
        with pytest.raises(heddle.errors.InvalidError, match="tensor '[a-z0-9_.]*qkv_proj.scales' has no number at element 3"):
            g.next()


@pytest.mark.parametrize("name", ["scale", "softcap"])
def test_attention_with_numbers_that_are_none(tmp_path, name):
    def change(graph):
        node = next(n for n in graph.node if n.op_type == "GroupQueryAttention")
        for attr in [a for a in node.attribute if a.name == name]:
            node.attribute.remove(attr)
        node.attribute.append(onnx.helper.make_attribute(name, float("nan")))

    path = spoilt(tmp_path, change)
    with pytest.raises(heddle.errors.Error, match=f"{name} is no number"):
        heddle.Generator(path, devices="cpu").generate([1, 2], max_tokens=1).__next__()


MALFORMED = [
    ("builder", put("model", value=3)), ("builder", put("model", "decoder", value=None)), ("builder", put("search", value=[])),
    ("builder", put("model", "vocab_size", value=-1)), ("builder", put("model", "vocab_size", value="many")),
    ("builder", put("model", "context_length", value=2**70 // 1)), ("builder", put("model", "eos_token_id", value=[1, -1])),
    ("builder", put("model", "eos_token_id", value=list(range(100)))), ("builder", put("model", "decoder", "filename", value="../x.onnx")),
    ("builder", put("model", "decoder", "filename", value="/etc/passwd")), ("builder", put("model", "decoder", "filename", value="a\0b")),
    ("builder", put("model", "decoder", "inputs", "past_key_names", value="past")),
    ("builder", put("model", "decoder", "inputs", "past_key_names", value="%d%d")),
    ("builder", put("model", "decoder", "inputs", "past_key_names", value="%n%d")),
    ("builder", put("model", "decoder", "inputs", "past_key_names", value="%d" + "x" * 1000)),
    ("plain", put("num_hidden_layers", value=0)), ("plain", put("eos_token_id", value=1.5)), ("plain", put("text_config", value=1)),
]


@pytest.mark.parametrize("form, change", MALFORMED)
def test_malformed(tmp_path, form, change):
    with pytest.raises(heddle.errors.FormatError, match="config.json"):
        heddle.Generator(changed(tmp_path, form, change), devices="cpu")


def test_not_what_it_says(tmp_path):
    """Caches that are said to be shared are not, and the other way round."""
    path = tmp_path / "plain"
    shutil.copytree(folder("llama", "plain"), path)
    shutil.copy(folder("llama", "builder") / "genai_config.json", path)
    g = heddle.Generator(path, devices="cpu")
    g.append(PROMPT)
    with pytest.raises(heddle.errors.Error):
        g.next()
    same_tokens(take(heddle.Generator(changed(tmp_path, "builder", put("search", "past_present_share_buffer", value=False)),
                                      devices="cpu", precision="strict"), 12, PROMPT), greedy("llama")[0][:12], [1] * 12)


def test_folders(tmp_path):
    with pytest.raises(heddle.errors.NotFoundError, match="neither genai_config.json nor config.json"):
        heddle.Generator(tmp_path)
    with pytest.raises(heddle.errors.FileError):
        heddle.Generator(tmp_path / "none")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(heddle.errors.NotFoundError, match="no ONNX model"):
        heddle.Generator(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(heddle.errors.FormatError):
        heddle.Generator(tmp_path)
    named = heddle.Generator(folder("llama", "plain") / "model.onnx", devices="cpu", precision="strict")
    assert take(named, 5, PROMPT) == greedy("llama")[0][:5]
    with pytest.raises(TypeError, match="in_flight"):
        heddle.Generator(folder("llama"), in_flight=2)
    with pytest.raises(heddle.errors.InvalidError, match="max_length"):
        heddle.Generator(folder("llama"), max_length=257)


def test_unknown_input(tmp_path):
    path = tmp_path / "merged"
    shutil.copytree(folder("llama", "plain"), path)
    model = onnx.load(path / "model.onnx")
    model.graph.input.append(onnx.helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1]))
    onnx.save(model, path / "model.onnx")
    with pytest.raises(heddle.errors.UnsupportedError, match="use_cache_branch"):
        heddle.Generator(path, devices="cpu")


# ---- text


class Bytes:
    """A tokenizer whose token i is the byte of i; those from 128 on are halves of characters."""

    def encode(self, text):
        return list(text.encode())

    def decode(self, tokens):
        return bytes(tokens).decode("utf-8", "replace")


def test_text(monkeypatch):
    """Pieces as they are whole, and none of a stop string, however tokens cut it."""
    g = load(tokenizer=Bytes())
    g.append("abc")
    assert g.tokens == [97, 98, 99] and g.decode(g.tokens) == "abc"

    def pieces(text, stop=()):
        monkeypatch.setattr(g, "generate", lambda prompt, **options: iter(text.encode()))
        return list(g.text("x", stop=stop))

    assert pieces("añb") == ["a", "ñ", "b"]
    assert pieces("no stop", stop="END") == list("no stop")
    assert "".join(pieces("one END two", stop=["END", "never"])) == "one "
    assert "".join(pieces("EEND", stop="END")) == "E"
    assert "".join(pieces("EN", stop="END")) == "EN"
    assert pieces("aXY", stop="XYZ") == ["a", "XY"]
    assert pieces("stop at once", stop="stop") == []
    assert "".join(pieces("aabaac", stop="aac")) == "aab"
    monkeypatch.undo()
    bias = {t: -1e9 for t in range(128, 160)}
    assert "".join(g.text("q", max_tokens=5, past_stops=True, bias=bias)) == bytes(g.tokens[-5:]).decode()


def test_text_needs_a_tokenizer():
    with pytest.raises((ImportError, FileNotFoundError), match="tokenizer"):
        load().append("text")
