"""A model's folder: the ONNX file, the weights beside it, and the configuration that its exporter would write."""
import json
import pathlib

from lm.builder import Builder
from lm.plain import Plain
from lm.shapes import shape
from lm.weights import Weights
from lm.writer import Writer

FORMS, KINDS = ("builder", "plain"), ("float32", "float16", "int4")
WITHIN = 16 << 20  # bytes of weights that lie in the model's file


def genai_config(s, filename):
    past = {f"past_{k}_names": f"past_key_values.%d.{'key' if k == 'key' else 'value'}" for k in ("key", "value")}
    present = {f"present_{k}_names": f"present.%d.{k}" for k in ("key", "value")}
    return {"model": {
        "bos_token_id": 1, "context_length": s.context, "eos_token_id": [2, 3], "pad_token_id": 2, "type": s.family,
        "vocab_size": s.words,
        "decoder": {
            "session_options": {"log_id": "onnxruntime-genai", "provider_options": []}, "filename": filename,
            "head_size": s.head, "hidden_size": s.width, "num_attention_heads": s.heads, "num_hidden_layers": s.layers,
            "num_key_value_heads": s.kv_heads,
            "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **past},
            "outputs": {"logits": "logits", **present}}},
        "search": {"diversity_penalty": 0.0, "do_sample": False, "early_stopping": True, "length_penalty": 1.0,
                   "max_length": s.context, "min_length": 0, "no_repeat_ngram_size": 0, "num_beams": 1,
                   "num_return_sequences": 1, "past_present_share_buffer": True, "repetition_penalty": 1.0,
                   "temperature": 1.0, "top_k": 50, "top_p": 1.0}}


def config(s):
    return {"architectures": [f"{s.family.capitalize()}ForCausalLM"], "bos_token_id": 1, "eos_token_id": [2, 3],
            "head_dim": s.head, "hidden_size": s.width, "intermediate_size": s.inner, "max_position_embeddings": s.context,
            "model_type": s.family, "num_attention_heads": s.heads, "num_hidden_layers": s.layers,
            "num_key_value_heads": s.kv_heads, "rms_norm_eps": s.epsilon, "rope_theta": s.theta,
            "tie_word_embeddings": s.tied, "vocab_size": s.words}


def weight_bytes(s):
    matrix = s.width * s.head * (2 * s.heads + 2 * s.kv_heads) + 3 * s.width * s.inner * max(1, s.experts)
    return 4 * (s.layers * matrix + s.words * s.width * (1 if s.tied else 2))


def make(folder, family, size="tiny", form="builder", kind="float32", seed=0, accuracy=1):
    """Writes the model into the folder; the path of its ONNX file."""
    if form not in FORMS or kind not in KINDS:
        raise ValueError(f"the form is one of {', '.join(FORMS)}, and the weights are one of {', '.join(KINDS)}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    s = shape(family, size)
    name = "model.onnx"
    w = Writer(folder, f"{name}{'.data' if form == 'builder' else '_data'}" if weight_bytes(s) > WITHIN else None)
    (Builder if form == "builder" else Plain)(w, Weights(s, seed, kind, accuracy)).write(folder / name)
    if form == "builder":
        (folder / "genai_config.json").write_text(json.dumps(genai_config(s, name), indent=2) + "\n")
    else:
        (folder / "config.json").write_text(json.dumps(config(s), indent=2) + "\n")
    return folder / name
