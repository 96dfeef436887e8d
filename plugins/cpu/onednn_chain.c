/* Chains: a head and the elementwise operators behind it that oneDNN computes on the way out. Each node is read through
 * the plan of its reference kernel, so that both refuse the same things. */
#include "onednn_int8.h"
#include "plugins/common/scalar.h"

#include <math.h>

/* A region of one node cut out of another; values keep their numbers. */
typedef struct single {
  heddle_pregion region;
  int32_t inputs[ONEDNN_INPUTS];
  int32_t output;
} single;

static bool cut_out(const heddle_pregion *region, const heddle_pnode *node, single *out) {
  out->region = *region;
  out->region.struct_size = sizeof out->region;
  out->region.nodes.data = node;
  out->region.nodes.count = 1;
  out->region.inputs = out->inputs;
  out->region.outputs = &out->output;
  out->region.n_inputs = 0;
  out->region.n_outputs = 1;
  if (node->n_outputs < 1 || node->n_outputs > 1 || node->n_inputs > ONEDNN_INPUTS) return false;
  out->output = node->outputs[0];
  for (uint32_t k = 0; k < node->n_inputs; k++) {
    bool seen = node->inputs[k] < 0;
    for (uint32_t i = 0; i < out->region.n_inputs; i++) seen = seen || out->inputs[i] == node->inputs[k];
    if (!seen) out->inputs[out->region.n_inputs++] = node->inputs[k];
  }
  return true;
}

static bool is_of(const heddle_pnode *node, const char *domain) {
  return strcmp(node->domain != NULL ? node->domain : "", domain) == 0;
}

/* ---------------------------------------------------------------- post-operations */

static bool number(const heddle_pvalue *value, float absent, float *out) {
  uint64_t count = 0;
  *out = absent;
  if (value == NULL) return true;
  if (value->data == NULL || !region_value_count(value, &count) || count != 1) return false;
  memcpy(out, value->data, sizeof *out);
  return true;
}

static const struct {
  const char *op;
  dnnl_alg_kind_t alg;
} simples[] = {{"Relu", dnnl_eltwise_relu},   {"LeakyRelu", dnnl_eltwise_relu},
               {"Elu", dnnl_eltwise_elu},     {"Sigmoid", dnnl_eltwise_logistic},
               {"Tanh", dnnl_eltwise_tanh},   {"HardSwish", dnnl_eltwise_hardswish},
               {"Swish", dnnl_eltwise_swish}, {"Mish", dnnl_eltwise_mish}};

static const struct {
  const char *op;
  dnnl_alg_kind_t alg;
  bool either; /* the operands may be exchanged */
} binaries[] = {{"Add", dnnl_binary_add, true},
                {"Mul", dnnl_binary_mul, true},
                {"Sub", dnnl_binary_sub, false},
                {"Div", dnnl_binary_div, false}};

/* The other operand is of the result's rank once leading 1s are put before it, and full or repeated along each
 * dimension. */
static bool read_binary(const heddle_pregion *region, const heddle_pnode *node, int32_t on, onednn_post *out) {
  for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
    if (strcmp(node->op, binaries[i].op) != 0) continue;
    const uint32_t mine = node->inputs[0] == on ? 0 : 1;
    const heddle_pvalue *other = region_node_input(region, node, 1 - mine),
                        *result = region_node_output(region, node, 0);
    int64_t strides[DNNL_MAX_NDIMS];
    if (mine == 1 && !binaries[i].either) return false;
    if (node->inputs[1 - mine] == on || result->ndim > DNNL_MAX_NDIMS || result->ndim < 1 ||
        !region_shape_equal(region_node_input(region, node, mine), result) ||
        !region_shape_broadcast_strides(other, result, strides))
      return false;
    *out = (onednn_post){
        .alg = binaries[i].alg, .value = node->inputs[1 - mine], .full = region_shape_equal(other, result)};
    return true;
  }
  return false;
}

/* What is computed of one operand and numbers, in either domain: Swish is in both. */
static bool read_simple(const heddle_pnode *node, int32_t on, onednn_post *out) {
  for (size_t i = 0; i < sizeof simples / sizeof simples[0]; i++) {
    scalar_call call;
    if (strcmp(node->op, simples[i].op) != 0) continue;
    if (scalar_read(node, &call, NULL) != HEDDLE_OK) return false;
    const bool is_swish = simples[i].alg == dnnl_eltwise_hardswish; /* oneDNN's numbers: of its straight part */
    out->alg = simples[i].alg;
    out->alpha = is_swish ? 1.0F / 6 : (float)call.alpha;
    out->beta = is_swish ? 0.5F : (float)call.beta;
    return node->inputs[0] == on;
  }
  return false;
}

static bool read_gelu(const heddle_pnode *node, int32_t on, onednn_post *out) {
  const char *how = "none";
  if (strcmp(node->op, "Gelu") != 0 || region_attr_string(node, "approximate", how, &how, NULL) != HEDDLE_OK)
    return false;
  out->alg = strcmp(how, "tanh") == 0 ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
  return node->inputs[0] == on;
}

bool onednn_read_post(const heddle_pregion *region, const heddle_pnode *node, int32_t on, onednn_post *out) {
  *out = (onednn_post){.value = -1};
  if (is_of(node, "heddle")) return read_gelu(node, on, out) || read_simple(node, on, out);
  if (!is_of(node, "")) return false;
  if (strcmp(node->op, "Clip") == 0) {
    out->alg = dnnl_eltwise_clip;
    return node->inputs[0] == on && number(region_node_input(region, node, 1), -INFINITY, &out->alpha) &&
           number(region_node_input(region, node, 2), INFINITY, &out->beta) &&
           out->alpha <= out->beta; /* and none is NaN */
  }
  return read_simple(node, on, out) || read_binary(region, node, on, out);
}

bool onednn_read_follower(const heddle_pregion *region, const heddle_pnode *node, int32_t on, onednn_post *out) {
  return onednn_read_post(region, node, on, out) && out->alg != dnnl_eltwise_logistic; /* which makes 0 of NaN there */
}

bool onednn_chain_has_full(const onednn_chain *chain) {
  for (uint32_t i = 0; i < chain->n_posts; i++)
    if (chain->posts[i].full) return true;
  return false;
}

/* A repeated operand with the rank of dst. Where dst is a matrix of more dimensions' rows, only what is one row, or one
 * number, can be repeated. */
static dnnl_status_t repeated(const heddle_pvalue *value, const heddle_pvalue *result, const_dnnl_memory_desc_t dst,
                              dnnl_memory_desc_t *out) {
  onednn_view view = {.ndims = 0};
  const dnnl_dims_t *dims = NULL;
  uint64_t count = 0;
  int64_t stride = 1;
  dnnl_status_t s = dnnl_memory_desc_query(dst, dnnl_query_ndims_s32, &view.ndims);
  if (s == dnnl_success) s = dnnl_memory_desc_query(dst, dnnl_query_dims, (void *)&dims);
  if (s != dnnl_success || !region_value_count(value, &count)) return s;
  const int last = view.ndims - 1;
  const bool row =
      value->ndim > 0 && value->shape[value->ndim - 1] == (*dims)[last] && count == (uint64_t)(*dims)[last];
  if (view.ndims != result->ndim && count != 1 && !row) return dnnl_unimplemented;
  for (int i = last; i >= 0; i--) {
    const int k = i - (result->ndim - value->ndim);
    view.dims[i] = view.ndims != result->ndim ? (i == last ? (int64_t)count : 1) : k < 0 ? 1 : value->shape[k];
    view.strides[i] = stride;
    stride *= view.dims[i];
    if (view.dims[i] > (*dims)[i]) view.dims[i] = (*dims)[i]; /* dst is a part of the result */
  }
  return onednn_plain(&view, out);
}

dnnl_status_t onednn_chain_attr(const onednn_chain *chain, const_dnnl_memory_desc_t dst, dnnl_primitive_attr_t *out) {
  dnnl_post_ops_t posts = NULL;
  dnnl_status_t s = dnnl_primitive_attr_create(out);
  if (s == dnnl_success) s = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
  if (s == dnnl_success && chain->n_posts > 0) s = dnnl_post_ops_create(&posts);
  for (uint32_t i = 0; i < chain->n_posts && s == dnnl_success; i++) {
    const onednn_post *post = &chain->posts[i];
    dnnl_memory_desc_t other = NULL;
    if (post->value < 0) {
      s = dnnl_post_ops_append_eltwise(posts, post->alg, post->alpha, post->beta);
    } else if (post->full) {
      s = dnnl_post_ops_append_binary(posts, post->alg, dst);
    } else {
      s = repeated(region_value(chain->region, post->value), chain->out, dst, &other);
      if (s == dnnl_success) s = dnnl_post_ops_append_binary(posts, post->alg, other);
    }
    if (other != NULL) dnnl_memory_desc_destroy(other);
  }
  if (s == dnnl_success && posts != NULL) s = dnnl_primitive_attr_set_post_ops(*out, posts);
  if (posts != NULL) dnnl_post_ops_destroy(posts);
  return s;
}

/* ---------------------------------------------------------------- reading a region */

static bool readable(const heddle_pregion *region, const heddle_pnode *node, ref_node *n, ref_op *op, single *cut) {
  const ref_entry *entry;
  return cut_out(region, node, cut) && ref_plan_region(&cut->region, n, op, &entry, NULL) == HEDDLE_OK;
}

/* The most elements of a tensor and of an image of one channel, and the largest dimension: oneDNN counts with 32 bits here
 * and there, and the time that it takes to choose how to compute grows with the size of an image. */
#define MOST_ELEMENTS (UINT64_C(1) << 28)
#define MOST_PIXELS (INT64_C(1) << 24)
#define MOST_DIM (INT64_C(1) << 20)

/* oneDNN takes float32 with elements. */
static bool takes(const heddle_pvalue *value) {
  uint64_t count = 0;
  int64_t pixels = 1;
  if (!region_dtype_is(value->dtype, HEDDLE_DTYPE_FLOAT, 32) || !region_value_count(value, &count) || count == 0 ||
      count > MOST_ELEMENTS || value->ndim > DNNL_MAX_NDIMS)
    return false;
  for (int32_t i = 0; i < value->ndim; i++) {
    if (value->shape[i] > MOST_DIM) return false;
    if (i >= 2) pixels *= value->shape[i]; /* at most MOST_ELEMENTS */
  }
  return pixels <= MOST_PIXELS;
}

bool onednn_chain_read(const heddle_pregion *region, onednn_chain *out) {
  single cut;
  ref_node follower;
  ref_op ignored;
  *out = (onednn_chain){.region = region};
  if (region->nodes.count < 1 || region->nodes.count > ONEDNN_NODES || region->n_inputs > ONEDNN_INPUTS ||
      region->n_outputs != 1)
    return false;
  const heddle_pnode *node = region_node(region, 0);
  if (!readable(region, node, &out->node, &out->op, &cut)) return false;
  out->node.region = region; /* the cut goes */
  int32_t on = node->outputs[0];
  for (uint64_t i = 1; i < region->nodes.count; i++) {
    node = region_node(region, i);
    if (region_output_slot(region, on) >= 0 || !readable(region, node, &follower, &ignored, &cut) ||
        !onednn_read_follower(region, node, on, &out->posts[out->n_posts++]))
      return false;
    on = node->outputs[0];
  }
  out->out = region_value(region, on);
  if (region_output_slot(region, on) != 0 || !region_shape_equal(out->out, out->node.out)) return false;
  for (uint32_t i = 0; i < region->n_inputs; i++)
    if (!takes(region_value(region, region->inputs[i]))) return false;
  for (uint32_t i = 0; i < out->n_posts; i++) /* what comes from inside is no operand of ours */
    if (out->posts[i].value >= 0 && region_input_slot(region, out->posts[i].value) < 0) return false;
  return takes(out->out);
}

/* ---------------------------------------------------------------- proposals */

bool onednn_is_product(const heddle_pnode *node) {
  static const char *const heads[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  bool is = false;
  if (node->op == NULL || !is_of(node, "")) return false;
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) is = is || strcmp(node->op, heads[i]) == 0;
  return is;
}

uint64_t onednn_only_user(const heddle_pregion *region, int32_t value, uint64_t from) {
  uint64_t user = UINT64_MAX;
  if (region_output_slot(region, value) >= 0) return UINT64_MAX;
  for (uint64_t i = from; i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (user != UINT64_MAX) return UINT64_MAX;
      user = i;
    }
  }
  return user;
}

bool onednn_pick(const heddle_pregion *region, const uint32_t *picks, uint32_t count, onednn_picked *out) {
  out->region = *region;
  out->region.struct_size = sizeof out->region;
  out->region.nodes = (heddle_parray){out->nodes, count, sizeof out->nodes[0]};
  out->region.inputs = out->inputs;
  out->region.outputs = &out->output;
  out->region.n_inputs = 0;
  out->region.n_outputs = 1;
  for (uint32_t i = 0; i < count; i++) {
    const heddle_pnode *node = region_node(region, picks[i]);
    memcpy(&out->nodes[i], node, sizeof *node < node->struct_size ? sizeof *node : node->struct_size);
    if (node->n_outputs < 1) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
      bool known = node->inputs[k] < 0;
      for (uint32_t j = 0; j < i; j++)
        for (uint32_t o = 0; o < out->nodes[j].n_outputs; o++)
          known = known || out->nodes[j].outputs[o] == node->inputs[k];
      for (uint32_t j = 0; j < out->region.n_inputs; j++) known = known || out->inputs[j] == node->inputs[k];
      if (known) continue;
      if (out->region.n_inputs == ONEDNN_INPUTS) return false;
      out->inputs[out->region.n_inputs++] = node->inputs[k];
    }
    out->output = node->outputs[0];
  }
  return true;
}

static heddle_status no_offer(void *sink, const heddle_poffer *offer, heddle_error *err) {
  (void)sink, (void)offer, (void)err;
  return HEDDLE_OK;
}

heddle_status onednn_takes_picks(const onednn *self, const heddle_pregion *region, const uint32_t *picks,
                                 uint32_t count, bool *out, heddle_error *err) {
  onednn_picked p;
  uint32_t made = 0;
  bool only;
  *out = false;
  if (!onednn_pick(region, picks, count, &p)) return HEDDLE_OK;
  heddle_status s = onednn_query(self, &p.region, no_offer, NULL, &made, &only, err);
  *out = made > 0;
  return s;
}

heddle_status onednn_propose(const onednn *self, const heddle_pregion *region, unsigned char *taken,
                             heddle_propose_fn propose, void *sink, heddle_error *err) {
  heddle_status s = onednn_propose_attention(self, region, taken, propose, sink, err);
  if (s == HEDDLE_OK) s = onednn_int8_propose(self, region, taken, propose, sink, err);
  if (s != HEDDLE_OK) return s;
  for (uint64_t i = 0; self != NULL && i < region->nodes.count; i++) {
    const heddle_pnode *node = region_node(region, i);
    uint32_t picks[ONEDNN_NODES] = {(uint32_t)i}, count = 1;
    bool whole = false;
    if (taken[i] != 0 || !onednn_is_product(node) || node->n_outputs != 1) continue;
    while (count < ONEDNN_NODES) {
      const int32_t on = region_node(region, picks[count - 1])->outputs[0];
      const uint64_t next = onednn_only_user(region, on, picks[count - 1] + 1);
      onednn_post post;
      if (next == UINT64_MAX || taken[next] != 0) break;
      const heddle_pnode *follower = region_node(region, next);
      if (follower->op == NULL || follower->n_outputs != 1 || follower->n_inputs < 1 ||
          region_node_output(region, follower, 0) == NULL || !onednn_read_follower(region, follower, on, &post))
        break;
      picks[count++] = (uint32_t)next;
    }
    for (; count > 1 && !whole; count -= !whole) {
      s = onednn_takes_picks(self, region, picks, count, &whole, err);
      if (s != HEDDLE_OK) return s;
    }
    if (!whole) continue;
    s = propose(sink, picks, count, err);
    if (s != HEDDLE_OK) return s;
    for (uint32_t k = 0; k < count; k++) taken[picks[k]] = 1;
  }
  return HEDDLE_OK;
}
