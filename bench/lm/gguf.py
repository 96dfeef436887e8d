"""A model as a GGUF file, by docs/gguf.md: the same weights as in the ONNX forms, for the families that GGUF is read for."""
import struct

import numpy as np

F32, F16, Q4_0, Q8_0, Q4_K, Q6_K, BF16 = 0, 1, 2, 8, 12, 14, 30
ALIGNMENT = 32
KINDS, ENCODED = (F16, BF16, Q4_0, Q8_0, Q4_K, Q6_K), (F32, F16, BF16, Q4_0, Q8_0)
FORMS = {F16: "f16", BF16: "bf16", Q4_0: "q4_0", Q8_0: "q8_0", Q4_K: "q4_k", Q6_K: "q6_k"}
BLOCKS = {F32: (1, 4), F16: (1, 2), BF16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}


def _text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def _value(v):
    if isinstance(v, str):
        return struct.pack("<I", 8) + _text(v)
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    return struct.pack("<IIQ", 9, 8, len(v)) + b"".join(_text(s) for s in v)


def encode(array, kind):
    """The bytes of an array as tensors of that kind have them."""
    x = np.ascontiguousarray(array, np.float32)
    if kind == F32:
        return x.tobytes()
    if kind == F16:
        return x.astype(np.float16).tobytes()
    if kind == BF16:
        return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    blocks = x.reshape(-1, 32)
    if kind == Q8_0:
        d = (np.abs(blocks).max(1) / 127).astype(np.float16)
        q = np.rint(blocks / np.where(d == 0, 1, d).astype(np.float32)[:, None]).clip(-127, 127).astype(np.int8)
        return np.concatenate([d[:, None].view(np.uint8), q.view(np.uint8)], 1).tobytes()
    assert kind == Q4_0
    far = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)[:, 0]
    d = (far / -8).astype(np.float16)
    q = (np.rint(blocks / np.where(d == 0, 1, d).astype(np.float32)[:, None]) + 8).clip(0, 15).astype(np.uint8)
    return np.concatenate([d[:, None].view(np.uint8), q[:, :16] | q[:, 16:] << 4], 1).tobytes()


def random_bytes(rng, count, kind):
    """Blocks of any numbers, with small scales."""
    elements, size = BLOCKS[kind]
    blocks = rng.integers(0, 256, (count // elements, size), np.uint8)
    if kind in (F16, BF16):
        return encode(rng.standard_normal(count).astype(np.float32) * 0.1, kind)
    for at, scale in {Q4_K: ((0, 2e-4), (2, 1e-3)), Q6_K: ((208, 2e-4),)}.get(kind, ((0, 1e-2),)):
        scales = (scale * rng.uniform(-1, 1, (len(blocks), 1))).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8)
    return blocks.tobytes()


def decode(raw, kind):
    """Of bytes of a kind, by the definitions in docs/gguf.md."""
    b = np.frombuffer(raw, np.uint8)
    if kind == F16:
        return b.view(np.float16).astype(np.float32)
    if kind == BF16:
        return (b.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if kind in (Q4_0, Q8_0):
        b = b.reshape(-1, 18 if kind == Q4_0 else 34)
        d = np.ascontiguousarray(b[:, :2]).view(np.float16).astype(np.float32)
        q = b[:, 2:]
        q = np.concatenate([q & 15, q >> 4], 1).astype(np.int32) - 8 if kind == Q4_0 else q.view(np.int8).astype(np.int32)
        return (d * q.astype(np.float32)).reshape(-1)
    out = []
    for block in b.reshape(-1, 144 if kind == Q4_K else 210):
        if kind == Q4_K:
            d, least = (np.float32(x) for x in block[:4].view(np.float16))
            six = block[4:16].astype(int)
            for j in range(8):
                sc = six[j] & 63 if j < 4 else (six[j + 4] & 15) | (six[j - 4] >> 6) << 4
                mn = six[j + 4] & 63 if j < 4 else six[j + 4] >> 4 | (six[j] >> 6) << 4
                q = block[16 + 32 * (j // 2):48 + 32 * (j // 2)]
                q = q & 15 if j % 2 == 0 else q >> 4
                out.append(d * np.float32(sc) * q.astype(np.float32) - least * np.float32(mn))
        else:
            low, high, scales = block[:128], block[128:192], block[192:208].view(np.int8)
            d = np.float32(block[208:210].view(np.float16)[0])
            for n in range(2):
                for j in range(4):
                    part = low[64 * n + 32 * (j % 2):64 * n + 32 * (j % 2) + 32]
                    part = (part & 15 if j < 2 else part >> 4).astype(int)
                    q = (part | (high[32 * n:32 * n + 32].astype(int) >> 2 * j & 3) << 4) - 32
                    sc = np.repeat(scales[8 * n + 2 * j:8 * n + 2 * j + 2].astype(np.float32), 16)
                    out.append(d * sc * q.astype(np.float32))
    return np.concatenate(out)


def file_bytes(values, tensors, alignment=ALIGNMENT):
    """tensors: (bytes, shape as numpy has it, kind) by name."""
    if alignment != ALIGNMENT:
        values = {**values, "general.alignment": alignment}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_text(k) + _value(v) for k, v in values.items())
    data = b""
    for name, (raw, shape, kind) in tensors.items():
        data += b"\0" * (-len(data) % alignment)
        head += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += raw
    return head + b"\0" * (-len(head) % alignment) + data


def contents(weights):
    """Values, and arrays by name."""
    s, m, n = weights.shape, weights.matrix, weights.norm
    f = s.family
    values = {"general.architecture": f, "general.name": "made up", f"{f}.context_length": s.context, f"{f}.embedding_length": s.width,
              f"{f}.block_count": s.layers, f"{f}.feed_forward_length": s.inner, f"{f}.attention.head_count": s.heads,
              f"{f}.attention.head_count_kv": s.kv_heads, f"{f}.attention.key_length": s.head, f"{f}.attention.value_length": s.head,
              f"{f}.attention.layer_norm_rms_epsilon": s.epsilon, f"{f}.rope.freq_base": s.theta,
              f"{f}.vocab_size": s.words, "tokenizer.ggml.model": "none", "tokenizer.ggml.tokens": [f"w{i}" for i in range(s.words)], "tokenizer.ggml.bos_token_id": 1,
              "tokenizer.ggml.eos_token_id": 2}
    if s.window:
        values[f"{f}.attention.sliding_window"] = s.window
    if s.attention_cap:
        values[f"{f}.attn_logit_softcapping"] = s.attention_cap
    if s.logit_cap:
        values[f"{f}.final_logit_softcapping"] = s.logit_cap

    def pairs(w):  # of llama: elements that are rotated together are neighbours
        if f != "llama":
            return w
        return w.reshape(-1, 2, s.head // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    arrays = {"token_embd.weight": weights.embedding(), "output_norm.weight": n("model.norm.weight", s.width)}
    if not s.tied:
        arrays["output.weight"] = m("lm_head", s.words, s.width, 2.0)
    q, kv = s.heads * s.head, s.kv_heads * s.head
    for i in range(s.layers):
        at, blk = f"model.layers.{i}", f"blk.{i}"
        arrays[f"{blk}.attn_norm.weight"] = n(f"{at}.input_layernorm.weight", s.width)
        for name, rows, gain in (("q", q, 1.5), ("k", kv, 1.5), ("v", kv, 1.0)):
            turn = pairs if name != "v" else (lambda w: w)
            arrays[f"{blk}.attn_{name}.weight"] = turn(m(f"{i}.{name}", rows, s.width, gain))
            if s.qkv_bias:
                arrays[f"{blk}.attn_{name}.bias"] = turn(weights.bias(f"{i}.{name}.bias", rows))
            if s.qk_norm and name != "v":
                arrays[f"{blk}.attn_{name}_norm.weight"] = n(f"{at}.attn.{name}_norm.weight", s.head)
        arrays[f"{blk}.attn_output.weight"] = m(f"{i}.o", s.width, q)
        middle = "pre_feedforward_layernorm" if s.post_norms else "post_attention_layernorm"
        arrays[f"{blk}.ffn_norm.weight"] = n(f"{at}.{middle}.weight", s.width)
        if s.post_norms:
            arrays[f"{blk}.post_attention_norm.weight"] = n(f"{at}.post_attention_layernorm.weight", s.width)
            arrays[f"{blk}.post_ffw_norm.weight"] = n(f"{at}.post_feedforward_layernorm.weight", s.width)
        for name, rows, columns in (("gate", s.inner, s.width), ("up", s.inner, s.width), ("down", s.width, s.inner)):
            arrays[f"{blk}.ffn_{name}.weight"] = m(f"{i}.mlp.{name}", rows, columns)
    return values, arrays


def write(path, weights, kind=F32, alignment=ALIGNMENT):
    """Matrices of that kind; norms and biases are float32, as llama.cpp has them."""
    values, arrays = contents(weights)
    tensors = {}
    for name, array in arrays.items():
        own = kind if array.ndim == 2 and array.shape[1] % 32 == 0 else F32
        tensors[name] = (encode(array, own), array.shape, own)
    path.write_bytes(file_bytes(values, tensors, alignment))
    return path
