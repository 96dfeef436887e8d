"""A decoder as onnxruntime-genai's model builder writes it: operators of com.microsoft, packed projections, shared caches."""
import numpy as np
from onnx import TensorProto, helper

from lm.weights import BLOCK, packed, quantise
from lm.writer import MS


class Parts:
    """What both forms have in common: products, gates, experts."""

    def __init__(self, w, weights):
        self.w, self.weights, self.s = w, weights, weights.shape
        self.float = weights.float
        self.elem = TensorProto.FLOAT16 if weights.kind == "float16" else TensorProto.FLOAT

    def real(self, x):
        return self.w.constant(x, self.float)

    def gate(self, x, scope):
        if self.s.gelu:
            return self.w.node("Gelu", [x], scope, approximate="tanh")
        return self.w.node("Mul", [x, self.w.node("Sigmoid", [x], scope)], scope)

    def mlp(self, x, scope, name):
        s, m = self.s, self.weights.matrix
        gate = self.product(x, scope + "/gate_proj", m(name + ".gate", s.inner, s.width))
        up = self.product(x, scope + "/up_proj", m(name + ".up", s.inner, s.width))
        y = self.w.node("Mul", [self.gate(gate, scope), up], scope)
        return self.product(y, scope + "/down_proj", m(name + ".down", s.width, s.inner))

    def experts(self, x, scope, name):
        """The plain form: all experts are computed, and weighed by what the router gives; those that it does not choose by 0."""
        s, w = self.s, self.w
        logits = self.product(x, scope + "/router", self.weights.matrix(name + ".router", s.experts, s.width, 2.0), is_small=True)
        best, which = w.node("TopK", [logits, w.constant([s.chosen])], scope, outputs=2, axis=-1)
        shares = w.node("Softmax", [best], scope, axis=-1)
        shares = w.node("ScatterElements", [w.node("Mul", [logits, self.real(0)], scope), which, shares], scope, axis=-1)
        total = None
        for e, share in enumerate(w.node("Split", [shares], scope, outputs=s.experts, axis=-1, num_outputs=s.experts)):
            y = w.node("Mul", [self.mlp(x, f"{scope}/expert_{e}", f"{name}.{e}"), share], scope)
            total = y if total is None else w.node("Add", [total, y], scope)
        return total

    def feed(self, x, i):
        scope = f"/model/layers.{i}/mlp"
        return self.experts(x, scope, f"{i}.moe") if self.s.experts else self.mlp(x, scope, f"{i}.mlp")

    def cap(self, x, cap, scope):
        return self.w.node("Mul", [self.w.node("Tanh", [self.w.node("Div", [x, self.real(cap)], scope)], scope), self.real(cap)], scope)

    def ports(self, past, total):
        s, e = self.s, self.elem
        names = [(f"{i}.{kind}") for i in range(s.layers) for kind in ("key", "value")]
        value = helper.make_tensor_value_info
        inputs = [value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
                  value("attention_mask", TensorProto.INT64, ["batch_size", total])]
        caches = [value(f"past_key_values.{n}", e, ["batch_size", s.kv_heads, past, s.head]) for n in names]
        outputs = [value("logits", e, ["batch_size", "sequence_length", s.words])]
        outputs += [value(f"present.{n}", e, ["batch_size", s.kv_heads, total, s.head]) for n in names]
        return inputs, caches, outputs


class Builder(Parts):
    def product(self, x, scope, matrix, is_small=False):
        """is_small: the router, which stays in floats."""
        n, k = matrix.shape
        if self.weights.kind != "int4" or is_small:
            return self.w.node("MatMul", [x, self.w.tensor(scope[1:].replace("/", ".") + ".weight", matrix.T)], scope)
        q, scales = quantise(matrix)
        return self.of_blocks(x, scope, self.w.tensor(scope[1:].replace("/", ".") + ".qweight", packed(q)), scales, n, k)

    def of_blocks(self, x, scope, q, scales, n, k):
        scales = self.w.tensor(scope[1:].replace("/", ".") + ".scales", scales)
        return self.w.node("MatMulNBits", [x, q, scales], scope, domain=MS, K=k, N=n, bits=4, block_size=BLOCK, accuracy_level=self.weights.accuracy)

    def layer_of_experts(self, tensors, scope):
        """[experts, rows, columns], and of packed ones the scales; "" for the bias."""
        if self.weights.kind != "int4":
            return [self.w.tensor(scope + ".weight", np.stack(tensors)), ""]
        parts = [quantise(t) for t in tensors]
        q = np.stack([packed(q).reshape(q.shape[0], -1) for q, _ in parts])
        return [self.w.tensor(scope + ".qweight", q), self.w.tensor(scope + ".scales", np.stack([s for _, s in parts])), ""]

    def experts(self, x, scope, name):
        """One MoE or QMoE: the rows of gate and up of an expert by turns, so that silu(gate) * up is swiglu."""
        s, w, m = self.s, self.w, self.weights.matrix
        logits = self.product(x, scope + "/router", m(name + ".router", s.experts, s.width, 2.0), is_small=True)
        logits = w.node("Reshape", [logits, w.constant([-1, s.experts])], scope)
        both, down = [], []
        for e in range(s.experts):
            gate, up = (m(f"{name}.{e}.{n}", s.inner, s.width) for n in ("gate", "up"))
            both.append(np.stack([gate, up], 1).reshape(2 * s.inner, s.width))
            down.append(m(f"{name}.{e}.down", s.width, s.inner))
        at, is_packed = scope[1:].replace("/", "."), self.weights.kind == "int4"
        layers = self.layer_of_experts(both, at + ".gate_up_proj") + self.layer_of_experts(down, at + ".down_proj")[:2 if is_packed else 1]
        more = {"expert_weight_bits": 4, "block_size": BLOCK} if is_packed else {}
        return w.node("QMoE" if is_packed else "MoE", [x, logits] + layers, scope, domain=MS, k=s.chosen, activation_type="swiglu",
                      swiglu_fusion=1, normalize_routing_weights=1, **more)

    def norm(self, x, name, n, scope):
        weight = self.w.tensor(name, self.weights.norm(name, n))
        return self.w.node("SimplifiedLayerNormalization", [x, weight], scope, axis=-1, epsilon=self.s.epsilon, stash_type=1)

    def skip(self, x, y, name, scope, is_last=False):
        """The norm of the sum, and the sum."""
        weight = self.w.tensor(name, self.weights.norm(name, self.s.width))
        norm, total = f"{scope}/output_0", f"{scope}/output_3"
        self.w.node("SkipSimplifiedLayerNormalization", [x, y, weight], scope, [norm] if is_last else [norm, "", "", total],
                    domain=MS, epsilon=self.s.epsilon)
        return norm, total

    def head_norm(self, x, name, heads, scope):
        """[B, S, heads * head] as [B, S * heads, head] and back."""
        w, s = self.w, self.s
        y = self.norm(w.node("Reshape", [x, w.constant([0, -1, s.head])], scope), name, s.head, scope)
        return w.node("Reshape", [y, w.constant([0, -1, heads * s.head])], scope)

    def attention(self, x, i):
        w, s = self.w, self.s
        scope, m = f"/model/layers.{i}/attn", self.weights.matrix
        q, kv = s.heads * s.head, s.kv_heads * s.head
        packed_rows = np.concatenate([m(f"{i}.q", q, s.width, 1.5), m(f"{i}.k", kv, s.width, 1.5), m(f"{i}.v", kv, s.width)])
        y = self.product(x, scope + "/qkv_proj", packed_rows)
        if s.qkv_bias:
            bias = np.concatenate([self.weights.bias(f"{i}.{n}.bias", rows) for n, rows in (("q", q), ("k", kv), ("v", kv))])
            y = w.node("Add", [y, w.tensor(f"model.layers.{i}.attn.qkv_proj.bias", bias)], scope)
        inputs = [y, "", ""]
        if s.qk_norm:
            inputs = w.node("Split", [y, w.constant([q, kv, kv])], scope, outputs=3, axis=-1)
            inputs[0] = self.head_norm(inputs[0], f"model.layers.{i}.attn.q_norm.weight", s.heads, scope + "/q_norm")
            inputs[1] = self.head_norm(inputs[1], f"model.layers.{i}.attn.k_norm.weight", s.kv_heads, scope + "/k_norm")
        inputs += [f"past_key_values.{i}.key", f"past_key_values.{i}.value", self.seqlens, self.total,
                   *self.caches(s.theta_of(i)), "", ""]
        out = w.node("GroupQueryAttention", inputs, scope, [f"{scope}/GroupQueryAttention/output_0", f"present.{i}.key",
                     f"present.{i}.value"], domain=MS, num_heads=s.heads, kv_num_heads=s.kv_heads, scale=s.scale(),
                     local_window_size=s.window_of(i) or -1, softcap=s.attention_cap, do_rotary=1, rotary_interleaved=0)
        return self.product(out[0], scope + "/o_proj", m(f"{i}.o", s.width, q))

    def caches(self, theta):
        if theta not in self.rotary:
            names = [f"{n}_cache" if not self.rotary else f"{n}_cache_{len(self.rotary)}" for n in ("cos", "sin")]
            self.rotary[theta] = [self.w.tensor(n, x) for n, x in zip(names, self.weights.rotary(theta))]
        return self.rotary[theta]

    def embed(self):
        w, s, table = self.w, self.s, self.weights.embedding()
        scope = "/model/embed_tokens"
        if s.tied and self.weights.kind == "int4":
            q, scales = quantise(table)
            q = packed(q)
            self.head = (w.tensor("lm_head.qweight", q), scales)
            flat = w.node("Reshape", [self.head[0], w.constant([s.words, q.shape[1] * q.shape[2]])], scope)
            x = w.node("GatherBlockQuantized", [flat, "input_ids", w.tensor("model.embed_tokens.scales", scales)], scope,
                       domain=MS, bits=4, block_size=BLOCK, gather_axis=0, quantize_axis=1)
        else:
            self.table = w.tensor("model.embed_tokens.weight", table)
            x = w.node("Gather", [self.table, "input_ids"], scope)
        return w.node("Mul", [x, self.real(s.embed_scale)], scope) if s.embed_scale else x

    def logits(self, x):
        w, s, scope = self.w, self.s, "/lm_head"
        if not s.tied:
            y = self.product(x, scope, self.weights.matrix("lm_head", s.words, s.width, 2.0))
        elif self.weights.kind == "int4":
            y = self.of_blocks(x, scope, *self.head, s.words, s.width)
        else:
            y = w.node("MatMul", [x, w.node("Transpose", [self.table], scope, perm=[1, 0])], scope)
        if s.logit_cap:
            y = self.cap(y, s.logit_cap, scope)
        w.nodes[-1].output[0] = "logits"

    def write(self, path):
        w, s = self.w, self.s
        self.rotary = {}
        scope = "/model/attn_mask"
        ends = w.node("Sub", [w.node("ReduceSum", ["attention_mask", w.constant([1])], scope, keepdims=0), w.constant([1])], scope)
        self.seqlens = w.node("Cast", [ends], scope, to=TensorProto.INT32)
        total = w.node("Gather", [w.node("Shape", ["attention_mask"], scope), w.constant(1)], scope, axis=0)
        self.total = w.node("Cast", [total], scope, to=TensorProto.INT32)
        x = self.embed()
        y = self.norm(x, "model.layers.0.input_layernorm.weight", s.width, "/model/layers.0/input_layernorm")
        for i in range(s.layers):
            at, next_at = f"model.layers.{i}", f"model.layers.{i + 1}"
            last = i + 1 == s.layers
            y = self.attention(y, i)
            middle = "post_attention_layernorm"
            if s.post_norms:
                y = self.norm(y, f"{at}.post_attention_layernorm.weight", s.width, f"/{at.replace('.', '/', 1)}/post_attention_layernorm")
                middle = "pre_feedforward_layernorm"
            y, x = self.skip(x, y, f"{at}.{middle}.weight", f"/{at}/{middle}/Skip")
            y = self.feed(y, i)
            if s.post_norms:
                y = self.norm(y, f"{at}.post_feedforward_layernorm.weight", s.width, f"/{at}/post_feedforward_layernorm")
            after = "model.norm" if last else f"{next_at}.input_layernorm"
            y, x = self.skip(x, y, f"{after}.weight", f"/{after}/Skip", last)
        self.logits(y)
        inputs, caches, outputs = self.ports("past_sequence_length", "total_sequence_length")
        w.save(path, inputs + caches, outputs, 21, True)
