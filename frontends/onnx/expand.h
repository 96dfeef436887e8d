/* frontends/onnx/expand.h: what expansions share. An expansion replaces a node whose operator graphs do not have, such as
 * the fusions of domain com.microsoft, by nodes of ONNX's own operators, which every device has and which the optimiser
 * fuses again in its own way. The sources are the descriptions of the operators in ONNX Runtime's documentation, and what
 * its CPU kernels compute. */
#ifndef HEDDLE_ONNX_EXPAND_H
#define HEDDLE_ONNX_EXPAND_H

#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"
#include "graph/opschema.h"

enum { X_GIVEN = 8, X_INPUTS = 16 };

/* One expansion at work. After the first failure or problem all calls do nothing and values are "". An absent value is "",
 * too: an operand or a result that the node does not have. */
typedef struct expansion {
  heddle__onnx_reader *r;
  Onnx__NodeProto *node; /* which is replaced */
  Onnx__NodeProto *last; /* the node added last, for x_int and its like; what follows from it is noted with the next */
  bool is_noted;
  size_t first; /* of the nodes that were added */
  bool refused;
  heddle_status status;
  const char *given[X_GIVEN]; /* the values that become the node's results */
} expansion;

typedef void (*expand_fn)(expansion *e);

/* A line of the table: op of a domain. opset: of ONNX's operators that the expansion needs. attrs: as in operators.h. expand
 * NULL: the node stays as it is. */
typedef struct expansion_row {
  const char *domain, *op, *attrs;
  uint8_t opset, least_in, most_in, most_out;
  expand_fn expand;
} expansion_row;

/* The line of a node's operator; NULL: it has none. */
const expansion_row *heddle__onnx_expansion(const Onnx__NodeProto *node);

/* expand.c: the node's replacement to r->nodes. */
heddle_status heddle__onnx_expand(heddle__onnx_reader *r, Onnx__NodeProto *node, const expansion_row *row);

/* raise.c: r->target becomes the opset that the model's expansions need. */
void heddle__onnx_choose_target(heddle__onnx_reader *r);
/* raise.c: a node of the model's opset, 13 or later, becomes one of r->target, or a problem is noted. */
heddle_status heddle__onnx_raise_node(heddle__onnx_reader *r, Onnx__NodeProto *node);

/* ---- the node */

bool x_ok(const expansion *e);
bool x_has(const expansion *e, size_t k);       /* operand k is there */
bool x_wants(const expansion *e, size_t k);     /* result k is used */
const char *x_in(const expansion *e, size_t k); /* operand k, or "" */
heddle__onnx_known x_known(expansion *e, const char *value);
int32_t x_type(expansion *e, const char *value); /* ONNX's number; float32 where it is not known */
int32_t x_rank(expansion *e, const char *value); /* -1: not known */
/* Dimension d of a value, from the end where d is negative, as the model's tensors and descriptions have it; -1: not known. */
int64_t x_known_dim(const expansion *e, const char *value, int64_t d);
int64_t x_attr(const expansion *e, const char *name, int64_t fallback);
float x_attr_float(const expansion *e, const char *name, float fallback);
/* Notes a problem with the node. */
void x_refuse(expansion *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails: the node is malformed. */
void x_wrong(expansion *e, const char *words);

/* Value becomes result k, if that is used. Once for each k; the value may be of any node or an operand. */
void x_give(expansion *e, size_t k, const char *value);

/* ---- new nodes: each returns its first result. Absent last operands are left out. */

const char *x_node(expansion *e, const char *op, const char *const *inputs, size_t n);
const char *x_1(expansion *e, const char *op, const char *a);
const char *x_2(expansion *e, const char *op, const char *a, const char *b);
const char *x_3(expansion *e, const char *op, const char *a, const char *b, const char *c);
/* A node of n results, to out. */
void x_many(expansion *e, const char *op, const char *const *inputs, size_t n_in, const char **out, size_t n_out);

/* Attributes of the node added last. */
void x_int(expansion *e, const char *name, int64_t value);
void x_float(expansion *e, const char *name, float value);
void x_text(expansion *e, const char *name, const char *value);
void x_ints(expansion *e, const char *name, const int64_t *values, size_t n);
/* Those of the replaced node, where it has them, by names between spaces. */
void x_keep(expansion *e, const char *names);

/* ---- constants */

const char *x_whole(expansion *e, const int64_t *values, size_t n); /* int64, of one dimension */
const char *x_one(expansion *e, int64_t value);                     /* int64, of shape [1] */
const char *x_number(expansion *e, const char *like, float value);  /* a scalar of the type of a value */
const char *x_zero_of(expansion *e, int32_t type);                  /* a scalar 0 of an integer type */

/* ---- several nodes */

const char *x_cast(expansion *e, const char *x, int32_t type);
const char *x_dim(expansion *e, const char *x, int64_t d); /* int64 of shape [1]: dimension d */
const char *x_reshape(expansion *e, const char *x, const int64_t *shape, size_t n);
const char *x_transpose(expansion *e, const char *x, const int64_t *perm, size_t n);
const char *x_unsqueeze(expansion *e, const char *x, int64_t axis);
const char *x_slice(expansion *e, const char *x, const char *first, const char *last, int64_t axis);
const char *x_concat(expansion *e, int64_t axis, const char *const *list, size_t n);
/* Cut in n equal parts. */
void x_split(expansion *e, const char *x, int64_t axis, const char **out, size_t n);
/* In parts of given sizes. */
void x_split_by(expansion *e, const char *x, int64_t axis, const char *sizes, const char **out, size_t n);
const char *x_sum(expansion *e, const char *a, const char *b); /* a + b, or the one that is there */
const char *x_gelu(expansion *e, const char *x, bool by_tanh);
/* 0, 1, 2, ... n - 1; n of shape [1]. */
const char *x_range(expansion *e, const char *n);

/* Numbers of 2 or 4 bits in bytes, the lowest first, along the last dimension, which becomes longer. */
const char *x_unpacked(expansion *e, const char *x, int64_t bits);

/* The functions of the families, by file. */
/* expand_norm.c */
void expand_skip_layer_norm(expansion *e);
void expand_skip_rms_norm(expansion *e);
void expand_rms_norm(expansion *e);
void expand_embed_layer_norm(expansion *e);
void expand_qembed_layer_norm(expansion *e);
void expand_group_norm(expansion *e);
/* expand_activation.c */
void expand_gelu(expansion *e); /* Gelu, BiasGelu, FastGelu */
void expand_quick_gelu(expansion *e);
void expand_bias_split_gelu(expansion *e);
void expand_bias_add(expansion *e);
void expand_bias_softmax(expansion *e);
/* expand_product.c */
void expand_fused_matmul(expansion *e);
void expand_fused_gemm(expansion *e);
void expand_fused_conv(expansion *e); /* FusedConv, NhwcConv, NhwcFusedConv */
/* The activation that attributes of the node name, after x. */
const char *x_activation(expansion *e, const char *x);
/* expand_attention.c */
void expand_attention(expansion *e);
void expand_qattention(expansion *e);
void expand_multi_head_attention(expansion *e);
/* expand_decoder.c */
void expand_rotary(expansion *e);
void expand_group_query_attention(expansion *e);
/* expand_quantised.c */
void expand_quantise(expansion *e); /* QuantizeLinear, DequantizeLinear */
void expand_qlinear_binary(expansion *e);
void expand_qlinear_unary(expansion *e);
void expand_qlinear_pool(expansion *e);
void expand_qlinear_concat(expansion *e);
void expand_qlinear_softmax(expansion *e);
void expand_qlinear_where(expansion *e);
void expand_qlinear_conv(expansion *e);
/* expand_integer.c */
void expand_qgemm(expansion *e);
void expand_dynamic_quantize_matmul(expansion *e);
void expand_matmul_integer_to_float(expansion *e);
void expand_dynamic_quantize_lstm(expansion *e);
/* expand_blocked.c */
void expand_matmul_nbits(expansion *e);
void expand_gather_blocked(expansion *e);
/* expand_experts.c */
void expand_experts(expansion *e); /* MoE, QMoE */

#endif
