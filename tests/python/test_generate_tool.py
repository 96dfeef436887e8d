"""heddle generate: tokens as they come, JSON, stop tokens, and what it says of wrong words and models."""
import json
import pathlib
import sys

import numpy as np
import onnx_files as files  # noqa: F401: skips where ONNX is not read
import pytest
from tool_case import good, failing

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from lm import model as lm  # noqa: E402

PROMPT = [5, 9, 11]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    lm.make(path, "llama", form="builder")
    np.save(path / "prompt.npy", np.array(PROMPT, np.int64))
    np.save(path / "short.npy", np.array([PROMPT], np.int32))
    np.save(path / "bad.npy", np.array(PROMPT, np.float32))
    np.save(path / "far.npy", np.array([1, 160], np.int64))
    return path


def tokens(folder, *words, prompt="prompt.npy"):
    return json.loads(good("generate", folder, "--tokens", folder / prompt, "--device", "cpu", "--past-stops", "--json", *words))


def test_tokens(folder):
    whole = tokens(folder, "--max-tokens", "12")
    assert len(whole["tokens"]) == whole["new_tokens"] == 12 and whole["end"] == "length" and whole["prompt_tokens"] == 3
    assert whole["first_token_ms"] > 0 and whole["tokens_per_second"] > 0 and whole["loop_us"] >= 0
    lines = good("generate", folder / "model.onnx", "--tokens", folder / "short.npy", "--device", "cpu", "--past-stops",
                 "--max-tokens", "12").splitlines()
    assert [int(t) for t in lines[0].split()] == whole["tokens"]
    assert lines[1].startswith("12 tokens after a prompt of 3 (length); the first after ") and len(lines) == 2
    third = whole["tokens"][3]
    stopped = tokens(folder, "--max-tokens", "12", "--stop-token", third)
    assert stopped["end"] == "stop" and stopped["tokens"] == whole["tokens"][:whole["tokens"].index(third)]
    drawn = [tokens(folder, "--max-tokens", "12", "--temperature", "2", "--top-k", "20", "--seed", seed)["tokens"] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert tokens(folder, "--max-length", "8")["new_tokens"] == 5
    guided = tokens(folder, "--max-tokens", "12", "--draft", folder, "--draft-tokens", "3", "--draft-device", "sim:0,cpu")
    assert guided["tokens"] == whole["tokens"] and whole["guessed"] == 0 < guided["accepted"] <= guided["guessed"]
    lines = good("generate", folder, "--tokens", folder / "prompt.npy", "--device", "cpu", "--past-stops", "--max-tokens", "5",
                 "--draft", folder).splitlines()
    assert lines[-1].endswith(" guesses of the draft were taken")
    assert tokens(folder, "--max-tokens", "3", "--logit-bias", "7=1e4")["tokens"] == [7, 7, 7]
    first = whole["tokens"][0]
    assert tokens(folder, "--max-tokens", "1", "--logit-bias", f"{first}=-inf")["tokens"] != [first]


def test_several_prompts(folder):
    """Each text has the tokens that it has alone, whatever rows there are."""
    paths = ["prompt.npy", "other.npy", "long.npy"]
    np.save(folder / "other.npy", np.array([1, 2], np.int64))
    np.save(folder / "long.npy", np.array([7] * 9, np.int64))
    alone = [tokens(folder, "--max-tokens", "6", prompt=path)["tokens"] for path in paths]
    words = [word for path in paths for word in ("--tokens", folder / path)]
    common = ["--device", "cpu", "--past-stops", "--max-tokens", "6"]
    for rows in ([], ["--rows", "1"], ["--rows", "2"], ["--rows", "5"]):
        whole = json.loads(good("generate", folder, *words, *common, *rows, "--json"))
        assert [text["tokens"] for text in whole["texts"]] == alone and whole["new_tokens"] == 18
        assert [text["prompt_tokens"] for text in whole["texts"]] == [3, 2, 9]
    lines = good("generate", folder, *words, *common).splitlines()
    assert [[int(t) for t in line.partition(":")[2].split()] for line in lines[:3]] == alone
    assert lines[3].startswith("18 tokens of 3 texts in ")
    for wrong in (["--rows", "x"], ["--rows", "1025"], ["--draft", folder]):
        assert wrong[0] in failing(2, "generate", folder, *words, *wrong)
    assert "--rows" in failing(2, "generate", folder, *words[:2], "--rows", "2")
    assert "missing.npy" in failing(1, "generate", folder, *words, "--tokens", folder / "missing.npy")


def test_wrong_words(folder):
    prompt = folder / "prompt.npy"
    for words in ([], ["--tokens", prompt, "--prompt", "x"], ["--tokens", prompt, "--stop", "x"], ["--tokens", prompt, "--stop-token", "x"]):
        assert "heddle generate" in failing(2, "generate", folder, *words)
    for bias in ("7", "7=", "=1", "7=x", "x=1", "-1=2"):
        assert "TOKEN=X" in failing(2, "generate", folder, "--tokens", prompt, "--logit-bias", bias)
    assert "--draft" in failing(2, "generate", folder, "--tokens", prompt, "--draft-tokens", "3")
    assert "17 guesses" in failing(1, "generate", folder, "--tokens", prompt, "--device", "cpu", "--draft", folder, "--draft-tokens", "17")
    assert "160" in failing(1, "generate", folder, "--tokens", prompt, "--device", "cpu", "--logit-bias", "160=1")
    assert "expected tokens" in failing(1, "generate", folder, "--tokens", folder / "bad.npy")
    assert "'input_ids' is 160" in failing(1, "generate", folder, "--tokens", folder / "far.npy", "--device", "cpu")
    for name, tokens, words in (("rows", np.ones((2, 3), np.int64), "several rows"), ("none", np.zeros(0, np.int64), "no tokens"),
                                ("less", np.array([1, -2]), "'input_ids' is -2")):
        np.save(folder / f"{name}.npy", tokens)
        said = failing(1, "generate", folder, "--tokens", folder / f"{name}.npy", "--device", "cpu")
        assert words in said and f"{name}.npy" in said
    for word in ("--max-tokens", "--chunk", "--max-length"):
        assert f"{word} needs a whole number from 1 on" in failing(2, "generate", folder, "--tokens", prompt, word, "0")
    assert "top_p" in failing(1, "generate", folder, "--tokens", prompt, "--device", "cpu", "--temperature", "1", "--top-p", "2")
    assert "max_length" in failing(1, "generate", folder, "--tokens", prompt, "--device", "cpu", "--max-length", "300")
    assert "config.json" in failing(1, "generate", folder.parent, "--tokens", prompt)
