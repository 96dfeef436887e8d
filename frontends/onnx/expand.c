/* frontends/onnx/expand.c: the table of expansions, and what makes the nodes of one. */
#include "core/failure.h"
#include "frontends/onnx/expand.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MS "com.microsoft"
#define CONV "auto_pad:string,dilations:ints,group:int,kernel_shape:ints,pads:ints,strides:ints"
#define ACTIVATION "activation:string,activation_params:floats"
#define POOL \
  "auto_pad:string,ceil_mode:int,channels_last:int,count_include_pad:int,kernel_shape:ints,pads:ints,strides:ints"

#define EXPERTS \
  "activation_alpha:float,activation_beta:float,activation_type:string,k:int,normalize_routing_weights:int," \
  "swiglu_fusion:int,swiglu_limit:float,swiglu_limit_after_activation:int,use_sparse_mixer:int"

enum { ANY = HEDDLE__VARIADIC };

static const expansion_row rows[] = {
    {"", "LayerNormalization", NULL, 17, 2, 3, 3, NULL},
    {"", "SimplifiedLayerNormalization", "axis:int,epsilon:float,stash_type:int", 23, 2, 2, 2, expand_rms_norm},
    {MS, "BiasAdd", "", 13, 3, 3, 1, expand_bias_add},
    {MS, "BiasGelu", "", 20, 2, 2, 1, expand_gelu},
    {MS, "BiasSoftmax", "axis:int,is_inner_broadcast:int", 13, 2, 2, 1, expand_bias_softmax},
    {MS, "BiasSplitGelu", "", 20, 2, 2, 1, expand_bias_split_gelu},
    {MS, "FastGelu", "", 20, 1, 2, 1, expand_gelu},
    {MS, "Gelu", "", 20, 1, 1, 1, expand_gelu},
    {MS, "QuickGelu", "alpha:float", 13, 1, 1, 1, expand_quick_gelu},
    {MS, "EmbedLayerNormalization", "epsilon:float,mask_index_type:int", 17, 7, 9, 3, expand_embed_layer_norm},
    {MS, "QEmbedLayerNormalization", "epsilon:float", 17, 13, 18, 2, expand_qembed_layer_norm},
    {MS, "SkipLayerNormalization", "epsilon:float", 17, 3, 5, 4, expand_skip_layer_norm},
    {MS, "SkipSimplifiedLayerNormalization", "epsilon:float", 23, 3, 4, 4, expand_skip_rms_norm},
    {MS, "GroupNorm", "activation:int,channels_last:int,epsilon:float,groups:int", 21, 3, 3, 1, expand_group_norm},
    {MS, "FusedMatMul", "alpha:float,transA:int,transB:int,transBatchA:int,transBatchB:int", 13, 2, 2, 1,
     expand_fused_matmul},
    {MS, "TransposeMatMul", "alpha:float,transA:int,transB:int", 13, 2, 2, 1, expand_fused_matmul},
    {MS, "FusedGemm",
     "activation:string,activation_alpha:float,activation_beta:float,activation_gamma:float,alpha:float,beta:float,"
     "transA:int,transB:int",
     14, 2, 3, 1, expand_fused_gemm},
    {MS, "FusedConv", CONV "," ACTIVATION, 14, 2, 4, 1, expand_fused_conv},
    {MS, "NhwcConv", CONV, 14, 2, 3, 1, expand_fused_conv},
    {MS, "NhwcFusedConv", CONV "," ACTIVATION, 14, 2, 4, 1, expand_fused_conv},
    {MS, "Attention",
     "do_rotary:int,mask_filter_value:float,num_heads:int,past_present_share_buffer:int,qkv_hidden_sizes:ints,"
     "rotary_embedding_dim:int,scale:float,unidirectional:int",
     18, 2, 7, 2, expand_attention},
    {MS, "QAttention",
     "do_rotary:int,mask_filter_value:float,num_heads:int,past_present_share_buffer:int,scale:float,unidirectional:int",
     18, 5, 9, 2, expand_qattention},
    {MS, "MultiHeadAttention", "mask_filter_value:float,num_heads:int,scale:float,unidirectional:int", 18, 1, 10, 4,
     expand_multi_head_attention},
    {MS, "RotaryEmbedding", "interleaved:int,is_packed_batching:int,num_heads:int,rotary_embedding_dim:int,scale:float",
     23, 4, 4, 1, expand_rotary},
    {MS, "GroupQueryAttention",
     "causal:int,do_rotary:int,k_norm_epsilon:float,k_quant_type:string,kv_cache_bit_width:int,kv_num_heads:int,"
     "local_window_size:int,num_heads:int,q_norm_epsilon:float,qk_norm_epsilon:float,qk_output:int,"
     "rotary_interleaved:int,scale:float,sliding_window_cache:int,smooth_softmax:int,softcap:float,v_quant_type:string",
     13, 7, 16, 4, expand_group_query_attention},
    {MS, "MatMulNBits", "K:int,N:int,accuracy_level:int,bits:int,block_size:int,weight_prepacked:int", 13, 3, 6, 1,
     expand_matmul_nbits},
    {MS, "GatherBlockQuantized", "bits:int,block_size:int,gather_axis:int,quantize_axis:int", 21, 3, 4, 1,
     expand_gather_blocked},
    {MS, "MoE", EXPERTS, 20, 5, 8, 1, expand_experts},
    {MS, "QMoE",
     EXPERTS ",accuracy_level:int,block_size:int,expert_weight_bits:int,fc1_expert_weight_bits:int,"
             "fc2_expert_weight_bits:int,fc3_expert_weight_bits:int,quant_type:string,weights_prepacked:int",
     20, 7, 21, 1, expand_experts},
    {MS, "QuantizeLinear", "axis:int", 13, 2, 3, 1, expand_quantise},
    {MS, "DequantizeLinear", "axis:int", 13, 2, 3, 1, expand_quantise},
    {MS, "QLinearAdd", "", 13, 7, 8, 1, expand_qlinear_binary},
    {MS, "QLinearMul", "", 13, 7, 8, 1, expand_qlinear_binary},
    {MS, "QLinearLeakyRelu", "alpha:float", 13, 4, 5, 1, expand_qlinear_unary},
    {MS, "QLinearSigmoid", "", 13, 4, 5, 1, expand_qlinear_unary},
    {MS, "QLinearReduceMean", "axes:ints,keepdims:int", 18, 4, 5, 1, expand_qlinear_unary},
    {MS, "QLinearAveragePool", POOL, 13, 4, 5, 1, expand_qlinear_pool},
    {MS, "QLinearGlobalAveragePool", "channels_last:int", 13, 4, 5, 1, expand_qlinear_pool},
    {MS, "QLinearConcat", "axis:int", 13, 3, ANY, 1, expand_qlinear_concat},
    {MS, "QLinearSoftmax", "axis:int,opset:int", 15, 4, 5, 1, expand_qlinear_softmax},
    {MS, "QLinearWhere", "", 13, 8, 9, 1, expand_qlinear_where},
    {MS, "QLinearConv", CONV ",channels_last:int", 13, 8, 9, 1, expand_qlinear_conv},
    {MS, "QGemm", "alpha:float,transA:int,transB:int", 13, 6, 9, 1, expand_qgemm},
    {MS, "DynamicQuantizeMatMul", "", 13, 3, 5, 1, expand_dynamic_quantize_matmul},
    {MS, "DynamicQuantizeLSTM",
     "activation_alpha:floats,activation_beta:floats,activations:strings,clip:float,direction:string,hidden_size:int,"
     "input_forget:int",
     14, 12, 12, 3, expand_dynamic_quantize_lstm},
    {MS, "MatMulIntegerToFloat", "", 13, 4, 7, 1, expand_matmul_integer_to_float},
};

const expansion_row *heddle__onnx_expansion(const Onnx__NodeProto *node) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(rows[i].op, node->op_type) == 0 && strcmp(rows[i].domain, node->domain) == 0) return &rows[i];
  return NULL;
}

/* ---- the node */

bool x_ok(const expansion *e) {
  return e->status == HEDDLE_OK && !e->refused;
}

const char *x_in(const expansion *e, size_t k) {
  return k < e->node->n_input ? e->node->input[k] : "";
}

bool x_has(const expansion *e, size_t k) {
  return x_in(e, k)[0] != '\0';
}

bool x_wants(const expansion *e, size_t k) {
  return k < e->node->n_output && e->node->output[k][0] != '\0' &&
         json_object_get(e->r->used, e->node->output[k]) != NULL;
}

/* Type and rank of the last node's results, which has all of its attributes now. */
static void note_last(expansion *e) {
  if (e->last == NULL || e->is_noted || !x_ok(e)) return;
  e->is_noted = true;
  e->status = heddle__onnx_learn_node(e->r, e->last);
}

heddle__onnx_known x_known(expansion *e, const char *value) {
  note_last(e);
  return heddle__onnx_known_of(e->r, value);
}

int32_t x_type(expansion *e, const char *value) {
  const int32_t type = x_known(e, value).type;
  return type != 0 ? type : ONNX_FLOAT;
}

int32_t x_rank(expansion *e, const char *value) {
  return x_known(e, value).rank;
}

static const Onnx__ValueInfoProto *described(Onnx__ValueInfoProto *const *values, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (values[i]->name != NULL && strcmp(values[i]->name, name) == 0) return values[i];
  return NULL;
}

int64_t x_known_dim(const expansion *e, const char *value, int64_t d) {
  const Onnx__TensorProto *t = heddle__onnx_find_tensor(e->r, value);
  const Onnx__GraphProto *g = e->r->graph;
  if (t != NULL) {
    if (d < 0) d += (int64_t)t->n_dims;
    return d >= 0 && d < (int64_t)t->n_dims ? t->dims[d] : -1;
  }
  const Onnx__ValueInfoProto *v = described(g->value_info, g->n_value_info, value);
  if (v == NULL) v = described(g->input, g->n_input, value);
  if (v == NULL || v->type == NULL || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
      v->type->tensor_type->shape == NULL)
    return -1;
  const Onnx__TensorShapeProto *shape = v->type->tensor_type->shape;
  if (d < 0) d += (int64_t)shape->n_dim;
  if (d < 0 || d >= (int64_t)shape->n_dim) return -1;
  const Onnx__TensorShapeProto__Dimension *one = shape->dim[d];
  const bool has_number = one->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
  return has_number && one->dim_value >= 0 ? one->dim_value : -1;
}

int64_t x_attr(const expansion *e, const char *name, int64_t fallback) {
  return heddle__onnx_attr_int(e->node, name, fallback);
}

float x_attr_float(const expansion *e, const char *name, float fallback) {
  return heddle__onnx_attr_float(e->node, name, fallback);
}

void x_refuse(expansion *e, const char *format, ...) {
  char words[200];
  va_list args;
  va_start(args, format);
  if (vsnprintf(words, sizeof words, format, args) < 0) words[0] = '\0';
  va_end(args);
  if (!x_ok(e)) return;
  heddle__onnx_problem(e->r, e->node, "%s", words);
  e->refused = true;
}

void x_wrong(expansion *e, const char *words) {
  char name[44], op[44];
  if (!x_ok(e)) return;
  heddle__onnx_fail(e->r, HEDDLE_EFORMAT, "node '%s' (%s): %s",
                    heddle__onnx_show(heddle__onnx_node_name(e->node), name), heddle__onnx_show(e->node->op_type, op),
                    words);
  e->status = heddle__at_node(HEDDLE_EFORMAT, e->r->err, HEDDLE__NO_NODE, heddle__onnx_node_name(e->node));
}

void x_give(expansion *e, size_t k, const char *value) {
  if (x_ok(e) && k < X_GIVEN && x_wants(e, k)) e->given[k] = value;
}

/* ---- new nodes */

static void fail(expansion *e) {
  if (e->status == HEDDLE_OK) e->status = heddle__onnx_no_memory(e->r);
}

void x_many(expansion *e, const char *op, const char *const *inputs, size_t n_in, const char **out, size_t n_out) {
  for (size_t k = 0; k < n_out; k++) out[k] = "";
  note_last(e);
  if (!x_ok(e)) return;
  while (n_in > 0 && inputs[n_in - 1][0] == '\0') n_in--;
  Onnx__NodeProto *node = heddle__onnx_take(&e->r->arena, sizeof *node);
  char **values = heddle__onnx_take(&e->r->arena, (n_in + n_out) * sizeof *values);
  if (node == NULL || values == NULL) {
    fail(e);
    return;
  }
  onnx__node_proto__init(node);
  node->op_type = (char *)(uintptr_t)op;
  node->domain = (char *)(uintptr_t) "";
  node->input = values;
  node->n_input = n_in;
  node->output = values + n_in;
  node->n_output = n_out;
  for (size_t i = 0; i < n_in; i++) values[i] = (char *)(uintptr_t)inputs[i];
  for (size_t k = 0; k < n_out; k++) {
    out[k] = heddle__onnx_new_value(e->r, e->node, op);
    values[n_in + k] = (char *)(uintptr_t)out[k];
    if (out[k] == NULL) {
      out[k] = "";
      fail(e);
      return;
    }
  }
  node->name = values[n_in];
  e->status = heddle__onnx_add_node(e->r, node);
  e->last = node;
  e->is_noted = false;
}

const char *x_node(expansion *e, const char *op, const char *const *inputs, size_t n) {
  const char *out;
  x_many(e, op, inputs, n, &out, 1);
  return out;
}

const char *x_1(expansion *e, const char *op, const char *a) {
  return x_node(e, op, &a, 1);
}

const char *x_2(expansion *e, const char *op, const char *a, const char *b) {
  return x_node(e, op, (const char *[]){a, b}, 2);
}

const char *x_3(expansion *e, const char *op, const char *a, const char *b, const char *c) {
  return x_node(e, op, (const char *[]){a, b, c}, 3);
}

static void keep_status(expansion *e, heddle_status s) {
  if (e->status == HEDDLE_OK) e->status = s;
}

void x_int(expansion *e, const char *name, int64_t value) {
  if (x_ok(e)) keep_status(e, heddle__onnx_set_int(e->r, e->last, name, value));
}

void x_float(expansion *e, const char *name, float value) {
  if (x_ok(e)) keep_status(e, heddle__onnx_set_float(e->r, e->last, name, value));
}

void x_text(expansion *e, const char *name, const char *value) {
  if (x_ok(e)) keep_status(e, heddle__onnx_set_text(e->r, e->last, name, value));
}

void x_ints(expansion *e, const char *name, const int64_t *values, size_t n) {
  if (x_ok(e)) keep_status(e, heddle__onnx_set_ints(e->r, e->last, name, values, n));
}

void x_keep(expansion *e, const char *names) {
  char name[40];
  for (const char *at = names; x_ok(e) && *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
    const Onnx__AttributeProto *a = heddle__onnx_attr(e->node, name);
    if (a == NULL) continue;
    Onnx__NodeProto *to = e->last;
    Onnx__AttributeProto **list = heddle__onnx_take(&e->r->arena, (to->n_attribute + 1) * sizeof *list);
    if (list == NULL) {
      fail(e);
      return;
    }
    for (size_t i = 0; i < to->n_attribute; i++) list[i] = to->attribute[i];
    list[to->n_attribute++] = (Onnx__AttributeProto *)(uintptr_t)a;
    to->attribute = list;
  }
}

/* ---- the whole */

/* Attributes as the table has them, and as many operands. */
static void check(expansion *e, const expansion_row *row) {
  const heddle__version version = {.name = row->op, .attrs = row->attrs};
  char shown[44];
  size_t n = e->node->n_input, n_out = e->node->n_output;
  while (n > 0 && e->node->input[n - 1][0] == '\0') n--;
  while (n_out > 0 && e->node->output[n_out - 1][0] == '\0') n_out--;
  if (n < row->least_in || (n > row->most_in && row->most_in != ANY)) {
    x_refuse(e, "it has %zu inputs, expected %u to %u", n, row->least_in, row->most_in);
    return;
  }
  if (n_out > row->most_out) {
    x_refuse(e, "it has %zu outputs, expected at most %u", n_out, row->most_out);
    return;
  }
  for (size_t i = 0; i < e->node->n_attribute; i++) {
    const Onnx__AttributeProto *a = e->node->attribute[i];
    const uint32_t kind = heddle__version_attr(&version, a->name);
    heddle__onnx_show(a->name, shown);
    if (kind == 0) {
      x_refuse(e, "it has no attribute '%s'; expected one of %s", shown, row->attrs);
      return;
    }
    if (kind != heddle__onnx_attr_kind(a)) {
      x_refuse(e, "attribute '%s' is of another kind", shown);
      return;
    }
  }
}

/* The name of a value is changed in the nodes that were added. */
static void rename_value(expansion *e, const char *from, const char *to) {
  for (size_t i = e->first; i < e->r->n_nodes; i++) {
    Onnx__NodeProto *n = e->r->nodes[i];
    for (size_t k = 0; k < n->n_input; k++)
      if (n->input[k] == from) n->input[k] = (char *)(uintptr_t)to;
    for (size_t k = 0; k < n->n_output; k++) {
      if (n->output[k] != from) continue;
      n->output[k] = (char *)(uintptr_t)to;
      if (n->n_output == 1) n->name = (char *)(uintptr_t)to;
    }
  }
}

static bool is_made(const expansion *e, const char *value) {
  for (size_t i = e->first; i < e->r->n_nodes; i++)
    for (size_t k = 0; k < e->r->nodes[i]->n_output; k++)
      if (e->r->nodes[i]->output[k] == value) return true;
  return false;
}

/* Values that the expansion made get the names of the results; others, and those that were given before, are copied. */
static void finish(expansion *e) {
  for (size_t k = 0; k < X_GIVEN && x_ok(e); k++) {
    const char *from = e->given[k], *to = k < e->node->n_output ? e->node->output[k] : "";
    if (from == NULL) {
      if (x_wants(e, k)) x_refuse(e, "its output %zu is used, which is not supported", k);
      continue;
    }
    const heddle__onnx_known known = x_known(e, from);
    bool is_given = false;
    for (size_t j = 0; j < k; j++) is_given = is_given || from == e->node->output[j];
    if (is_given || !is_made(e, from)) from = x_1(e, "Identity", from);
    rename_value(e, from, to);
    for (size_t j = k + 1; j < X_GIVEN; j++)
      if (e->given[j] == from) e->given[j] = to;
    if (x_ok(e)) keep_status(e, heddle__onnx_note(e->r, to, known.type, known.rank));
  }
  for (size_t i = e->first; x_ok(e) && e->given[0] != NULL && i < e->r->n_nodes; i++)
    if (e->r->nodes[i]->n_output == 1 && e->r->nodes[i]->output[0] == e->node->output[0] && e->node->name[0] != '\0')
      e->r->nodes[i]->name = e->node->name;
}

heddle_status heddle__onnx_expand(heddle__onnx_reader *r, Onnx__NodeProto *node, const expansion_row *row) {
  expansion e = {.r = r, .node = node, .first = r->n_nodes};
  check(&e, row);
  if (x_ok(&e)) row->expand(&e);
  if (x_ok(&e)) finish(&e);
  /* A problem was noted: the node stays, so that its results have a maker. */
  if (e.refused && e.status == HEDDLE_OK) {
    r->n_nodes = e.first;
    return heddle__onnx_add_node(r, node);
  }
  return e.status;
}
