/* frontends/onnx/expand_experts.c: mixtures of experts, MoE and QMoE: a choice of experts for each token, products with the
 * matrices of those (MatMulExperts of domain "heddle"), and the sum of what they give. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frontends/onnx/expand.h"

/* One of the three layers of the experts. bits 0: its weights are numbers. */
typedef struct layer {
  const char *w, *scales, *zeros, *bias; /* "": absent */
  int64_t bits, block, rows, depth;
} layer;

typedef struct experts {
  expansion *e;
  int64_t count, width, inner; /* of experts; of a token; between the layers */
  bool is_packed;
  layer fc[3];
} experts;

/* ---- what is wrong */

__attribute__((format(printf, 2, 3))) static void wrong(const experts *m, const char *format, ...) {
  char words[200];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  x_wrong(m->e, words);
}

/* The dimensions of a value, which must be known; false and a refusal where they are not. */
static bool dims_of(const experts *m, const char *value, int64_t *dims, int32_t n) {
  char shown[44];
  for (int32_t d = 0; d < n; d++) {
    dims[d] = x_known_dim(m->e, value, d);
    if (dims[d] >= 0) continue;
    if (x_rank(m->e, value) >= 0 && x_rank(m->e, value) != n)
      wrong(m, "'%s' has %d dimensions, expected %d", heddle__onnx_show(value, shown), x_rank(m->e, value), n);
    else x_refuse(m->e, "the dimensions of '%s' are not known", heddle__onnx_show(value, shown));
    return false;
  }
  if (x_known_dim(m->e, value, n) < 0) return x_ok(m->e);
  wrong(m, "'%s' has more than %d dimensions", heddle__onnx_show(value, shown), n);
  return false;
}

/* That value k of the node is of the dimensions; the last may be left out where it is 1. */
static void expect(const experts *m, const char *value, int32_t n, const int64_t *want, const char *of) {
  char shown[44];
  int64_t dims[3] = {1, 1, 1};
  if (!x_ok(m->e) || value[0] == '\0') return;
  if (n == 3 && want[2] == 1 && x_rank(m->e, value) == 2) n = 2;
  if (!dims_of(m, value, dims, n)) return;
  for (int32_t d = 0; d < n; d++) {
    if (dims[d] == want[d]) continue;
    wrong(m, "dimension %d of '%s' is %lld, expected %lld: %s", d, heddle__onnx_show(value, shown), (long long)dims[d],
          (long long)want[d], of);
    return;
  }
}

/* ---- operands */

static int64_t bits_of(const experts *m, int k) {
  static const char *const names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  const int64_t bits = x_attr(m->e, names[k], x_attr(m->e, "expert_weight_bits", 4));
  if (bits == 3) x_refuse(m->e, "weights of 3 bits are not supported");
  else if (bits != 2 && bits != 4 && bits != 8)
    wrong(m, "its weights have %lld bits, expected 2, 4 or 8", (long long)bits);
  return bits;
}

static void read_operands(experts *m) {
  expansion *e = m->e;
  for (int k = 0; k < 3; k++) {
    layer *fc = &m->fc[k];
    const size_t at = m->is_packed ? 2 + 3 * (size_t)k : 2 + 2 * (size_t)k;
    *fc = (layer){.w = x_in(e, at),
                  .scales = m->is_packed ? x_in(e, at + 1) : "",
                  .zeros = m->is_packed ? x_in(e, 11 + (size_t)k) : "",
                  .bias = x_in(e, at + (m->is_packed ? 2 : 1))};
    if (fc->w[0] == '\0') {
      if (k < 2) wrong(m, "it has no weights of layer %d", k + 1);
      else if (fc->scales[0] != '\0' || fc->zeros[0] != '\0' || fc->bias[0] != '\0')
        wrong(m, "it has no weights of layer 3, but scales or a bias");
      continue;
    }
    if (m->is_packed) fc->bits = bits_of(m, k);
    if (m->is_packed && fc->scales[0] == '\0') wrong(m, "it has no scales of layer %d", k + 1);
  }
  if (!m->is_packed) return;
  for (size_t k = 15; k < 21; k++)
    if (x_has(e, k)) x_refuse(e, "its input %zu, of weights in floating point of 4 or 8 bits, is not supported", k);
  if (heddle__onnx_attr(e->node, "quant_type") != NULL && !heddle__onnx_attr_is(e->node, "quant_type", "int"))
    x_refuse(e, "its quant_type is not 'int'");
  if (x_attr(e, "weights_prepacked", -1) == 1)
    x_refuse(e, "weights_prepacked: weights in the order of a device's kernel");
}

/* Rows of one scale have a block that is longer than they are. */
static void choose_block(const experts *m, layer *fc) {
  const int64_t block = x_attr(m->e, "block_size", 0);
  char shown[44];
  fc->block = block;
  if (block > 0) {
    if (block < 16 || (block & (block - 1)) != 0)
      wrong(m, "block_size %lld is no power of two from 16 on", (long long)block);
    else if (fc->depth % block != 0)
      wrong(m, "block_size %lld does not divide the %lld columns of '%s'", (long long)block, (long long)fc->depth,
            heddle__onnx_show(fc->w, shown));
    return;
  }
  for (fc->block = 16; fc->block < fc->depth;) fc->block *= 2;
}

static void check_layer(experts *m, layer *fc, int64_t rows, int64_t depth) {
  if (fc->w[0] == '\0' || !x_ok(m->e)) return;
  fc->rows = rows;
  fc->depth = depth;
  if (fc->bits != 0 && depth * fc->bits % 8 != 0)
    wrong(m, "rows of %lld weights of %lld bits fill no bytes", (long long)depth, (long long)fc->bits);
  expect(m, fc->w, 3, (int64_t[]){m->count, rows, fc->bits != 0 ? depth * fc->bits / 8 : depth},
         fc->bits != 0 ? "experts, rows, bytes of a row" : "experts, rows, columns");
  expect(m, fc->bias, 2, (int64_t[]){m->count, rows}, "experts, rows");
  if (fc->bits == 0 || !x_ok(m->e)) return;
  choose_block(m, fc);
  if (!x_ok(m->e)) return;
  const int64_t blocks = (depth + fc->block - 1) / fc->block;
  expect(m, fc->scales, 3, (int64_t[]){m->count, rows, blocks}, "experts, rows, blocks of a row");
  if (fc->zeros[0] == '\0') return;
  if (x_attr(m->e, "block_size", 0) > 0) {
    expect(m, fc->zeros, 3, (int64_t[]){m->count, rows, (blocks * fc->bits + 7) / 8}, "experts, rows, bytes of a row");
    return;
  }
  /* Those of the rows of an expert beside each other: each gets a byte of its own. */
  expect(m, fc->zeros, 2, (int64_t[]){m->count, (rows * fc->bits + 7) / 8}, "experts, bytes of all rows");
  const char *each = fc->bits < 8 ? x_unpacked(m->e, fc->zeros, fc->bits) : fc->zeros;
  fc->zeros = x_unsqueeze(m->e, x_slice(m->e, each, x_one(m->e, 0), x_one(m->e, rows), 1), 2);
}

/* Sizes from the second layer's weights, and that all else fits them. fused: layer 1 has both halves of a gate. */
static void check_operands(experts *m, bool fused) {
  int64_t dims[3];
  const int64_t bits = m->fc[1].bits;
  if (!x_ok(m->e) || !dims_of(m, m->fc[1].w, dims, 3)) return;
  m->count = dims[0];
  m->width = dims[1];
  m->inner = bits != 0 ? dims[2] * 8 / bits : dims[2];
  const int64_t width = x_known_dim(m->e, x_in(m->e, 0), -1), of_router = x_known_dim(m->e, x_in(m->e, 1), -1);
  char shown[44];
  if (m->count < 1 || m->width < 1 || m->inner < 1 || m->inner > INT32_MAX || m->width > INT32_MAX)
    wrong(m, "'%s' is empty, or too large", heddle__onnx_show(m->fc[1].w, shown));
  if (width >= 0 && width != m->width)
    wrong(m, "its input has %lld columns, and '%s' gives %lld", (long long)width, heddle__onnx_show(m->fc[1].w, shown),
          (long long)m->width);
  if (of_router >= 0 && of_router != m->count)
    wrong(m, "its router has %lld columns, and '%s' is of %lld experts", (long long)of_router,
          heddle__onnx_show(m->fc[1].w, shown), (long long)m->count);
  check_layer(m, &m->fc[0], m->inner * (fused ? 2 : 1), m->width);
  check_layer(m, &m->fc[1], m->width, m->inner);
  check_layer(m, &m->fc[2], m->inner, m->width);
}

/* ---- the choice of experts */

static const char *constant(const experts *m, const char *like, float value) {
  return x_number(m->e, like, value);
}

/* Weights of both choices: each is the chance of the first among those that are near it, of all, and of all but the first. */
static const char *sparse_mixer(const experts *m, const char *r, const char *best, const char *index) {
  expansion *e = m->e;
  const char *of_best[2], *of_index[2], *weights[2];
  const float near = 0.02F; /* twice the jitter with which such routers are trained */
  x_split(e, best, -1, of_best, 2);
  x_split(e, index, -1, of_index, 2);
  for (int k = 0; k < 2; k++) {
    const char *scores = r;
    if (k == 1) {
      const char *out = x_2(e, "Expand", constant(m, r, -3.402823466e+38F), x_1(e, "Shape", of_index[0]));
      scores = x_3(e, "ScatterElements", r, of_index[0], out);
      x_int(e, "axis", 1);
    }
    const char *factor = x_2(e, "Max", x_1(e, "Abs", r), of_best[k]);
    const char *far = x_2(e, "Greater", x_2(e, "Sub", of_best[k], r), x_2(e, "Mul", factor, constant(m, r, near)));
    const char *each = x_1(e, "Exp", x_2(e, "Sub", scores, of_best[k]));
    const char *sum = x_2(e, "ReduceSum", x_3(e, "Where", far, constant(m, r, 0), each), x_one(e, 1));
    weights[k] = x_1(e, "Reciprocal", sum);
  }
  return x_concat(e, 1, weights, 2);
}

/* Of [tokens, k]: experts, int32; and their weights, of x's type. */
static const char *choose(const experts *m, const char *x, const char **weights) {
  expansion *e = m->e;
  const int64_t k = x_attr(e, "k", 1), sizes[] = {-1, m->count};
  const char *best[2];
  if (k < 1 || k > m->count) wrong(m, "k is %lld, and it has %lld experts", (long long)k, (long long)m->count);
  const bool is_sparse = x_attr(e, "use_sparse_mixer", 0) != 0;
  if (is_sparse && k != 2) wrong(m, "use_sparse_mixer needs k = 2");
  const int32_t type = x_type(e, x);
  const char *r = x_reshape(e, x_in(e, 1), sizes, 2);
  if (type != ONNX_DOUBLE) r = x_cast(e, r, ONNX_FLOAT);
  x_many(e, "TopK", (const char *[]){r, x_one(e, k)}, 2, best, 2);
  const char *w = best[0];
  bool normalise = x_attr(e, "normalize_routing_weights", 0) != 0;
  if (is_sparse) {
    w = sparse_mixer(m, r, best[0], best[1]);
  } else if (m->is_packed && x_has(e, 14)) {
    w = x_2(e, "GatherElements", x_reshape(e, x_in(e, 14), sizes, 2), best[1]);
    x_int(e, "axis", 1);
    if (normalise) w = x_2(e, "Div", w, x_2(e, "ReduceSum", w, x_one(e, 1)));
  } else if (normalise || m->is_packed) {
    w = x_1(e, "Softmax", w);
    x_int(e, "axis", -1);
  } else {
    const char *all = x_1(e, "Softmax", r);
    x_int(e, "axis", -1);
    w = x_2(e, "GatherElements", all, best[1]);
    x_int(e, "axis", 1);
  }
  *weights = x_cast(e, w, type);
  return x_cast(e, best[1], ONNX_INT32);
}

/* ---- layers */

static const char *product(const experts *m, const layer *fc, const char *x, const char *index) {
  expansion *e = m->e;
  const char *y = x_node(e, "MatMulExperts", (const char *[]){x, fc->w, fc->scales, fc->zeros, index, fc->bias}, 6);
  x_int(e, "K", fc->depth);
  x_int(e, "N", fc->rows);
  if (fc->bits != 0) {
    x_int(e, "bits", fc->bits);
    x_int(e, "block_size", fc->block);
    x_int(e, "accuracy_level", x_attr(e, "accuracy_level", 0) == 4 ? 4 : 0);
  }
  if (x_ok(e)) e->last->domain = (char *)(uintptr_t) "heddle";
  return y;
}

static const char *every_second(expansion *e, const char *x, int64_t first) {
  return x_node(e, "Slice", (const char *[]){x, x_one(e, first), x_one(e, INT64_MAX), x_one(e, -1), x_one(e, 2)}, 5);
}

static const char *swish(const experts *m, const char *x, float alpha) {
  const char *inner = alpha == 1.0F ? x : x_2(m->e, "Mul", x, constant(m, x, alpha));
  return x_2(m->e, "Mul", x, x_1(m->e, "Sigmoid", inner));
}

/* Swish of the gate times the other half plus beta; both within the limit, or the gate afterwards. */
static const char *swiglu(const experts *m, const char *gate, const char *other) {
  expansion *e = m->e;
  const float limit = x_attr_float(e, "swiglu_limit", 0), alpha = x_attr_float(e, "activation_alpha", 1),
              beta = x_attr_float(e, "activation_beta", 0);
  const bool has_limit = heddle__onnx_attr(e->node, "swiglu_limit") != NULL && limit <= 3.402823466e+38F;
  const bool afterwards = x_attr(e, "swiglu_limit_after_activation", 0) != 0;
  if (has_limit && !afterwards) gate = x_2(e, "Min", gate, constant(m, gate, limit));
  if (has_limit) other = x_3(e, "Clip", other, constant(m, other, -limit), constant(m, other, limit));
  const char *y = swish(m, gate, alpha);
  if (has_limit && afterwards) y = x_2(e, "Min", y, constant(m, y, limit));
  return x_2(e, "Mul", y, beta == 0.0F ? other : x_2(e, "Add", other, constant(m, other, beta)));
}

/* fused: both halves of a gate are in y. third: what layer 3 gives, or "". */
static const char *activate(const experts *m, const char *y, const char *third, int64_t fused) {
  expansion *e = m->e;
  const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, "activation_type");
  const char *half[2] = {y, third};
  char name[16] = "relu", shown[44];
  if (a != NULL) snprintf(name, sizeof name, "%.*s", (int)(a->s.len < 16 ? a->s.len : 16), (const char *)a->s.data);
  if (fused == 1) {
    half[0] = every_second(e, y, 0);
    half[1] = every_second(e, y, 1);
  } else if (fused == 2) {
    x_split(e, y, -1, half, 2);
  }
  if (strcmp(name, "swiglu") == 0) return swiglu(m, half[0], half[1]);
  if (strcmp(name, "geglu") == 0) return x_2(e, "Mul", x_gelu(e, half[0], true), half[1]);
  if (strcmp(name, "relu") == 0) y = x_1(e, "Relu", y);
  else if (strcmp(name, "gelu") == 0) y = x_gelu(e, y, true);
  else if (strcmp(name, "silu") == 0) y = swish(m, y, 1);
  else if (strcmp(name, "relu2") == 0) y = x_1(e, "Relu", y), y = x_2(e, "Mul", y, y);
  else if (strcmp(name, "identity") != 0)
    x_refuse(e, "activation_type '%s' is not supported", heddle__onnx_show(name, shown));
  return third[0] != '\0' ? x_2(e, "Mul", y, third) : y;
}

/* How the first layer has both halves of a gate: 0 not, 1 one after the other, 2 beside each other. */
static int64_t fusion_of(const experts *m) {
  const expansion *e = m->e;
  const int64_t fusion = x_attr(e, "swiglu_fusion", 0);
  const bool is_swiglu = heddle__onnx_attr_is(e->node, "activation_type", "swiglu");
  const bool is_geglu = heddle__onnx_attr_is(e->node, "activation_type", "geglu"), has_third = m->fc[2].w[0] != '\0';
  if (fusion < 0 || fusion > 2) wrong(m, "swiglu_fusion is %lld, expected 0 to 2", (long long)fusion);
  if (!is_swiglu && !is_geglu) return 0;
  if (fusion == 0 && is_geglu) wrong(m, "geglu needs swiglu_fusion 1 or 2");
  if (fusion == 0 && !has_third) wrong(m, "swiglu without swiglu_fusion needs a third layer");
  if (fusion != 0 && has_third) wrong(m, "it has a third layer, and a first one with both halves");
  return fusion;
}

/* input, router_probs; weights, scales and bias of each layer, zero points, router_weights; of MoE weights and bias alone */
void expand_experts(expansion *e) {
  experts m = {.e = e, .is_packed = strcmp(e->node->op_type, "QMoE") == 0};
  const char *weights = "", *third = "";
  read_operands(&m);
  const int64_t fused = fusion_of(&m);
  check_operands(&m, fused != 0);
  if (!x_ok(e)) return;
  const char *x = x_in(e, 0), *rows = x_reshape(e, x, (const int64_t[]){-1, m.width}, 2);
  const char *index = choose(&m, x, &weights);
  const char *y = product(&m, &m.fc[0], rows, index);
  if (m.fc[2].w[0] != '\0') third = product(&m, &m.fc[2], rows, index);
  y = product(&m, &m.fc[1], activate(&m, y, third, fused), index);
  y = x_2(e, "Reshape", x_2(e, "MatMul", x_unsqueeze(e, weights, 1), y), x_1(e, "Shape", x));
  x_int(e, "allowzero", 1);
  x_give(e, 0, y);
}
