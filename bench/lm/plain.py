"""A decoder in ONNX's own operators, as Optimum exports it: rotary by sines and cosines of the positions, keys and values
repeated for their heads, masks by Where, caches by Concat."""
import numpy as np
from onnx import TensorProto, helper

from lm.builder import Parts
from lm.weights import BLOCK, quantise

LOWEST = -65504.0  # that float16 has too


class Plain(Parts):
    def product(self, x, scope, matrix, is_small=False):
        name = scope[1:].replace("/", ".") + ".weight"
        if self.weights.kind != "int4" or is_small:
            return self.w.node("MatMul", [x, self.w.tensor(name, matrix.T)], scope)
        return self.w.node("MatMul", [x, self.dequantised(matrix, name, scope, True)], scope)

    def dequantised(self, matrix, name, scope, is_turned):
        """Of INT4 with blocks along the columns of the matrix; is_turned: [in, out]."""
        n, k = matrix.shape
        q, scales = quantise(matrix)
        q = q.reshape(n, -1)[:, :k].astype(np.int8) - np.int8(8)
        q, scales = (q.T, scales.T) if is_turned else (q, scales)
        return self.w.node("DequantizeLinear", [self.w.int4(name + "_quantized", q), self.w.tensor(name + "_scale", scales)],
                           scope, axis=0 if is_turned else 1, block_size=BLOCK)

    def norm(self, x, name, n, scope):
        w = self.w
        wide = w.node("Cast", [x], scope, to=TensorProto.FLOAT) if self.float == np.float16 else x
        square = w.node("ReduceMean", [w.node("Pow", [wide, w.constant(2, np.float32)], scope), w.constant([-1])], scope, keepdims=1)
        root = w.node("Sqrt", [w.node("Add", [square, w.constant(self.s.epsilon, np.float32)], scope)], scope)
        y = w.node("Mul", [wide, w.node("Div", [w.constant(1, np.float32), root], scope)], scope)
        y = w.node("Cast", [y], scope, to=self.elem) if self.float == np.float16 else y
        return w.node("Mul", [w.tensor(name, self.weights.norm(name, n)), y], scope)

    def rotary(self, theta):
        """Cosines and sines of the positions, [B, 1, S, head]."""
        if theta not in self.angles:
            w, scope = self.w, "/model/rotary_emb"
            at = w.node("Cast", [w.node("Unsqueeze", ["position_ids", w.constant([1, 3])], scope)], scope, to=TensorProto.FLOAT)
            angle = w.node("Mul", [at, w.constant(self.weights.rates(theta)[None, None, None], np.float32)], scope)
            both = w.node("Concat", [angle, angle], scope, axis=-1)
            pair = [w.node(op, [both], scope) for op in ("Cos", "Sin")]
            if self.float == np.float16:
                pair = [w.node("Cast", [x], scope, to=self.elem) for x in pair]
            self.angles[theta] = pair
        return self.angles[theta]

    def rotated(self, x, theta, scope):
        w, half = self.w, self.s.head // 2
        cos, sin = self.rotary(theta)
        far, last = w.constant([2 ** 63 - 1]), w.constant([3])
        low = w.node("Slice", [x, w.constant([0]), w.constant([half]), last], scope)
        high = w.node("Neg", [w.node("Slice", [x, w.constant([half]), far, last], scope)], scope)
        turned = w.node("Concat", [high, low], scope, axis=-1)
        return w.node("Add", [w.node("Mul", [x, cos], scope), w.node("Mul", [turned, sin], scope)], scope)

    def mask(self, window):
        """What is added to scores, [B, 1, S, T]."""
        if window not in self.masks:
            w, scope = self.w, "/model/mask"
            length = w.node("Gather", [w.node("Shape", ["input_ids"], scope), w.constant(1)], scope)
            past = w.node("Gather", [w.node("Shape", ["past_key_values.0.key"], scope), w.constant(2)], scope)
            total = w.node("Add", [past, length], scope)
            key = w.node("Range", [w.constant(0), total, w.constant(1)], scope)
            query = w.node("Unsqueeze", [w.node("Range", [past, total, w.constant(1)], scope), w.constant([1])], scope)
            ok = w.node("LessOrEqual", [key, query], scope)
            if window:
                ok = w.node("And", [ok, w.node("Greater", [key, w.node("Sub", [query, w.constant(window)], scope)], scope)], scope)
            seen = w.node("Cast", [w.node("Unsqueeze", ["attention_mask", w.constant([1, 2])], scope)], scope, to=TensorProto.BOOL)
            self.masks[window] = w.node("Where", [w.node("And", [ok, seen], scope), self.real(0), self.real(LOWEST)], scope)
        return self.masks[window]

    def by_heads(self, x, heads, scope):
        w = self.w
        shape = w.node("Concat", [self.batch_length, w.constant([heads, self.s.head])], scope, axis=0)
        return w.node("Reshape", [x, shape], scope)

    def repeated(self, x, scope):
        w, s = self.w, self.s
        if s.heads == s.kv_heads:
            return x
        shape = w.node("Shape", [x], scope)
        batch, length = (w.node("Gather", [shape, w.constant([k])], scope) for k in (0, 2))
        wide = w.node("Concat", [batch, w.constant([s.kv_heads, s.heads // s.kv_heads]), length, w.constant([s.head])], scope, axis=0)
        flat = w.node("Concat", [batch, w.constant([s.heads]), length, w.constant([s.head])], scope, axis=0)
        x = w.node("Expand", [w.node("Unsqueeze", [x, w.constant([2])], scope), wide], scope)
        return w.node("Reshape", [x, flat], scope)

    def attention(self, x, i):
        w, s, scope, m = self.w, self.s, f"/model/layers.{i}/self_attn", self.weights.matrix
        parts = []
        for name, heads in (("q", s.heads), ("k", s.kv_heads), ("v", s.kv_heads)):
            rows = heads * s.head
            y = self.product(x, f"{scope}/{name}_proj", m(f"{i}.{name}", rows, s.width, 1.0 if name == "v" else 1.5))
            if s.qkv_bias:
                y = w.node("Add", [y, w.tensor(f"model.layers.{i}.{name}.bias", self.weights.bias(f"{i}.{name}.bias", rows))], scope)
            y = self.by_heads(y, heads, scope)
            if s.qk_norm and name != "v":
                y = self.norm(y, f"model.layers.{i}.attn.{name}_norm.weight", s.head, f"{scope}/{name}_norm")
            y = w.node("Transpose", [y], scope, perm=[0, 2, 1, 3])
            parts.append(y if name == "v" else self.rotated(y, s.theta_of(i), scope))
        for k, kind in ((1, "key"), (2, "value")):
            w.node("Concat", [f"past_key_values.{i}.{kind}", parts[k]], scope, [f"present.{i}.{kind}"], axis=2)
        keys, values = (self.repeated(f"present.{i}.{kind}", scope) for kind in ("key", "value"))
        score = w.node("MatMul", [parts[0], w.node("Transpose", [keys], scope, perm=[0, 1, 3, 2])], scope)
        score = w.node("Mul", [score, self.real(s.scale())], scope)
        if s.attention_cap:
            score = self.cap(score, s.attention_cap, scope)
        share = w.node("Softmax", [w.node("Add", [score, self.mask(s.window_of(i))], scope)], scope, axis=-1)
        y = w.node("Transpose", [w.node("MatMul", [share, values], scope)], scope, perm=[0, 2, 1, 3])
        y = w.node("Reshape", [y, w.constant([0, 0, s.heads * s.head])], scope)
        return self.product(y, scope + "/o_proj", m(f"{i}.o", s.width, s.heads * s.head))

    def gate(self, x, scope):
        if not self.s.gelu:
            return super().gate(x, scope)
        w = self.w
        cube = w.node("Mul", [w.node("Pow", [x, self.w.constant(3, np.float32)], scope), self.real(0.044715)], scope)
        inner = w.node("Mul", [w.node("Add", [x, cube], scope), self.real((2 / np.pi) ** 0.5)], scope)
        share = w.node("Add", [w.node("Tanh", [inner], scope), self.real(1)], scope)
        return w.node("Mul", [w.node("Mul", [x, self.real(0.5)], scope), share], scope)

    def write(self, path):
        w, s, scope = self.w, self.s, "/model"
        self.angles, self.masks = {}, {}
        self.batch_length = w.node("Shape", ["input_ids"], scope)
        table = self.weights.embedding()
        if self.weights.kind == "int4" and s.tied:
            table = self.dequantised(table, "model.embed_tokens.weight", scope, False)
        else:
            table = w.tensor("model.embed_tokens.weight", table)
        x = w.node("Gather", [table, "input_ids"], scope)
        if s.embed_scale:
            x = w.node("Mul", [x, self.real(s.embed_scale)], scope)
        for i in range(s.layers):
            at = f"model.layers.{i}"
            y = self.attention(self.norm(x, f"{at}.input_layernorm.weight", s.width, f"/{at}/input_layernorm"), i)
            before = "post_attention_layernorm"
            if s.post_norms:
                y = self.norm(y, f"{at}.post_attention_layernorm.weight", s.width, f"/{at}/post_attention_layernorm")
                before = "pre_feedforward_layernorm"
            x = w.node("Add", [x, y], scope)
            y = self.feed(self.norm(x, f"{at}.{before}.weight", s.width, f"/{at}/{before}"), i)
            if s.post_norms:
                y = self.norm(y, f"{at}.post_feedforward_layernorm.weight", s.width, f"/{at}/post_feedforward_layernorm")
            x = w.node("Add", [x, y], scope)
        y = self.norm(x, "model.norm.weight", s.width, "/model/norm")
        if s.tied:
            y = w.node("MatMul", [y, w.node("Transpose", [table], "/lm_head", perm=[1, 0])], "/lm_head")
        else:
            y = self.product(y, "/lm_head", self.weights.matrix("lm_head", s.words, s.width, 2.0))
        if s.logit_cap:
            y = self.cap(y, s.logit_cap, "/lm_head")
        w.nodes[-1].output[0] = "logits"
        inputs, caches, outputs = self.ports("past_sequence_length", "past_sequence_length + sequence_length")
        positions = helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        w.save(path, [*inputs, positions, *caches], outputs, 21 if self.weights.kind == "int4" else 20, False)
