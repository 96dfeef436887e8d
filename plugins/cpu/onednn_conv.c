/* Conv and ConvTranspose, with the chain behind them. Weights are left to oneDNN's choice: the planner has them packed
 * once where they are constants, and weighs a Reorder a run where they are not. */
#include "onednn_internal.h"

typedef struct setup {
  bool transposed;
  onednn_view weights;
  onednn_conv_window window;
} setup;

/* The last `spatial` of three. after is what makes the result come out at its size. */
static bool read_window(const onednn_chain *chain, setup *out) {
  const ref_window *w = &chain->op.u.conv.window;
  const int spatial = chain->node.in[0]->ndim - 2;
  for (int i = 0; i < spatial; i++) {
    const int d = REF_SPATIAL - spatial + i;
    const int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
    out->window.strides[i] = w->stride[d];
    out->window.dilations[i] = w->dilation[d] - 1;
    out->window.before[i] = w->pad[d];
    out->window.after[i] =
        (w->out[d] - 1) * w->stride[d] + reach - w->in[d] - w->pad[d]; /* ConvTranspose: seen backwards */
  }
  return true;
}

static dnnl_status_t create(const onednn *self, const onednn_chain *chain, const setup *u, const_dnnl_memory_desc_t src,
                            const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
                            const_dnnl_memory_desc_t dst, dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t attr = NULL;
  const_dnnl_memory_desc_t const operands[] = {src, weights, bias, dst};
  dnnl_status_t s = onednn_chain_attr(chain, dst, &attr);
  if (s == dnnl_success) s = onednn_conv_pd(self, out, u->transposed, operands, &u->window, attr);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return s;
}

/* Where a post-operation reads a whole tensor, its layout is that of the result, which must be known first: oneDNN is
 * asked without the chain what it would choose. */
static dnnl_status_t settle(const onednn *self, const onednn_chain *chain, const setup *u,
                            const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias, dnnl_memory_desc_t *src,
                            dnnl_memory_desc_t *dst) {
  onednn_chain bare = *chain;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_memory_desc_t chosen[2] = {NULL, NULL};
  bare.n_posts = 0;
  dnnl_status_t s = create(self, &bare, u, *src, weights, bias, *dst, &pd);
  if (s == dnnl_success)
    s = dnnl_memory_desc_clone(&chosen[0], dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SRC));
  if (s == dnnl_success)
    s = dnnl_memory_desc_clone(&chosen[1], dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_DST));
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  if (s == dnnl_success) {
    dnnl_memory_desc_destroy(*src);
    dnnl_memory_desc_destroy(*dst);
    *src = chosen[0];
    *dst = chosen[1];
  } else if (chosen[0] != NULL) {
    dnnl_memory_desc_destroy(chosen[0]);
  }
  return s;
}

/* ---------------------------------------------------------------- parts */

/* The whole, for those who cut it. Layouts are of the plan. */
typedef struct whole {
  const setup *u;
  onednn_view src, bias, dst;
  heddle_layout in, weights, out;
} whole;

/* Rows [from, from + count) of the result need rows [first, first + rows) of the input, and what lies outside it as
 * padding. */
static void rows_for(const setup *u, const onednn_range *range, int64_t height, int64_t reach, int64_t *first,
                     int64_t *rows, setup *out) {
  const int64_t low = range->from * u->window.strides[0] - u->window.before[0];
  const int64_t high = (range->from + range->count - 1) * u->window.strides[0] - u->window.before[0] + reach;
  *first = low < 0 ? 0 : low;
  *rows = (high > height ? height : high) - *first;
  out->window.before[0] = low < 0 ? -low : 0;
  out->window.after[0] = high - height > 0 ? high - height : 0;
}

/* A part is a row of images, of channels (of groups, where there are any) or of rows of the picture. */
static dnnl_status_t cut_conv(const onednn_plan *plan, const onednn_chain *chain, const void *setup_of_whole,
                              const onednn_range *range, int64_t signature[ONEDNN_SIGNATURE],
                              uint64_t offsets[ONEDNN_ARGS], dnnl_primitive_desc_t *pd) {
  const whole *w = setup_of_whole;
  const onednn *self = plan->self;
  const onednn_view *weights_view = &w->u->weights;
  setup u = *w->u;
  dnnl_memory_desc_t src = NULL, weights = NULL, bias = NULL, dst = NULL;
  int64_t first = range->dim == 0 ? range->from : 0, count = range->dim == 0 ? range->count : w->src.dims[0];
  int64_t from_weights = 0, of_weights = weights_view->dims[0], from_channel = 0, channels = w->dst.dims[1];
  int src_dim = 0;
  uint64_t in_at = 0, weights_at = 0, bias_at = 0, out_at = 0;
  if (range->dim == 1) {
    const int64_t groups = weights_view->groups, each = groups > 0 ? w->dst.dims[1] / groups : 1;
    from_channel = range->from;
    channels = range->count;
    from_weights = range->from / each;
    of_weights = range->count / each;
    if (groups > 0) {
      src_dim = 1;
      first = from_weights * (w->src.dims[1] / groups);
      count = of_weights * (w->src.dims[1] / groups);
    }
  } else if (range->dim == 2) {
    const int at = weights_view->groups > 0 ? 3 : 2;
    src_dim = 2;
    rows_for(w->u, range, w->src.dims[2], (weights_view->dims[at] - 1) * (u.window.dilations[0] + 1) + 1, &first,
             &count, &u);
    if (count < 1) return dnnl_unimplemented;
  }
  signature[0] = range->count;
  signature[1] = count;
  signature[2] = u.window.before[0];
  signature[3] = u.window.after[0];
  dnnl_status_t s = onednn_slice(self, &w->src, w->in, src_dim, first, count, &src, &in_at);
  if (s == dnnl_success && of_weights == weights_view->dims[0]) /* the very descriptor: not all names of it are known */
    s = dnnl_memory_desc_clone(&weights,
                               dnnl_primitive_desc_query_md(plan->pd, dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS));
  else if (s == dnnl_success)
    s = onednn_slice(self, weights_view, w->weights, 0, from_weights, of_weights, &weights, &weights_at);
  if (s == dnnl_success && chain->node.in[2] != NULL)
    s = onednn_slice(self, &w->bias, 0, 0, from_channel, channels, &bias, &bias_at);
  if (s == dnnl_success) s = onednn_slice(self, &w->dst, w->out, range->dim, range->from, range->count, &dst, &out_at);
  if (s == dnnl_success && pd != NULL) s = create(self, chain, &u, src, weights, bias, dst, pd);
  if (s == dnnl_success) s = onednn_cut_posts(plan, chain, range, out_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_SRC, in_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_WEIGHTS, weights_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_BIAS, bias_at, offsets);
  onednn_set_offset(plan, DNNL_ARG_DST, out_at, offsets);
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (bias != NULL) dnnl_memory_desc_destroy(bias);
  if (weights != NULL) dnnl_memory_desc_destroy(weights);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  return s;
}

/* Tries pieces of 64 channels (which weights come in at most), 32 and 16, whole groups each: first those that give all
 * threads the same or make many parts, then any. */
static dnnl_status_t cut_channels(onednn_plan *plan, const onednn_chain *chain, const whole *w, int64_t each) {
  const int64_t channels = w->dst.dims[1], threads = plan->threads;
  dnnl_status_t s = dnnl_success;
  for (int even = 1; even >= 0; even--)
    for (int64_t size = 64; size >= 16 && s == dnnl_success && plan->n_parts == 0; size /= 2) {
      const int64_t granule = size % each == 0 ? size : size * each, units = (channels + granule - 1) / granule;
      if (units >= 2 && (even == 0 || units % threads == 0 || units >= 4 * threads))
        s = onednn_cut_plan(plan, chain, w, cut_conv, 1, channels, granule);
    }
  return s;
}

/* By images, else by channels, else by rows: each where the layouts have what belongs together in one piece. */
static dnnl_status_t cut(onednn_plan *plan, const onednn_chain *chain, const setup *u) {
  whole w = {.u = u};
  if ((u->transposed && u->weights.groups > 0) || !onednn_view_of(chain->node.in[0], 0, false, &w.src) ||
      !onednn_view_of(chain->out, 0, false, &w.dst))
    return dnnl_success;
  if (chain->node.in[2] != NULL && !onednn_view_of(chain->node.in[2], 0, false, &w.bias)) return dnnl_success;
  const heddle_pnode *node = chain->node.node;
  w.in = plan->inputs[region_input_slot(plan->region, node->inputs[0])];
  w.weights = plan->inputs[region_input_slot(plan->region, node->inputs[1])];
  w.out = plan->output;
  const int64_t each = u->weights.groups > 0 ? w.dst.dims[1] / u->weights.groups : 1;
  dnnl_status_t s = dnnl_success;
  if (w.dst.dims[0] > 1 && (w.dst.dims[0] >= plan->wanted_parts || plan->wanted_parts <= 2 * plan->threads))
    s = onednn_cut_plan(plan, chain, &w, cut_conv, 0, w.dst.dims[0], 1);
  const bool is_long = plan->wanted_parts > 2 * plan->threads; /* then what gives the most parts comes first */
  if (s == dnnl_success && plan->n_parts == 0 && is_long && !u->transposed && w.dst.dims[2] > w.dst.dims[1] / 16)
    s = onednn_cut_plan(plan, chain, &w, cut_conv, 2, w.dst.dims[2], 1);
  if (s == dnnl_success && plan->n_parts == 0) s = cut_channels(plan, chain, &w, each);
  if (s == dnnl_success && plan->n_parts == 0 && !u->transposed)
    s = onednn_cut_plan(plan, chain, &w, cut_conv, 2, w.dst.dims[2], 1);
  if (s == dnnl_success && plan->n_parts == 0 && w.dst.dims[0] > 1)
    s = onednn_cut_plan(plan, chain, &w, cut_conv, 0, w.dst.dims[0], 1);
  return s;
}

/* ---------------------------------------------------------------- the whole */

static dnnl_status_t name_args(const onednn_chain *chain, const setup *u, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  dnnl_status_t s = onednn_plan_input(plan, node->inputs[0], DNNL_ARG_SRC, NULL);
  if (s == dnnl_success) s = onednn_plan_input(plan, node->inputs[1], DNNL_ARG_WEIGHTS, &u->weights);
  if (s == dnnl_success && chain->node.in[2] != NULL) s = onednn_plan_input(plan, node->inputs[2], DNNL_ARG_BIAS, NULL);
  if (s == dnnl_success) s = onednn_plan_output(plan, chain->region->outputs[0], DNNL_ARG_DST);
  if (s == dnnl_success) s = onednn_plan_posts(plan, chain);
  return s;
}

static bool is_float32(const_dnnl_primitive_desc_t pd) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
  dnnl_data_type_t type = dnnl_f32;
  return md == NULL || dnnl_memory_desc_query(md, dnnl_query_data_type, &type) != dnnl_success || type == dnnl_f32;
}

/* oneDNN's gemm writes the windows out side by side first, and goes over the result once more (measured). */
static double cost_of(const onednn_chain *chain, const onednn_plan *plan) {
  const double NS_PER_ELEMENT = 0.6;
  const ref_conv *c = &chain->op.u.conv;
  const heddle_pvalue *w = chain->node.in[1];
  const bool transposed = strcmp(chain->node.node->op, "ConvTranspose") == 0;
  const char *name = "";
  uint64_t results = 0, taps = 0, images = 0;
  region_value_count(transposed ? chain->node.in[0] : chain->out, &results);
  region_value_count(w, &taps);
  images = results / (uint64_t)(transposed ? chain->node.in[0] : chain->out)->shape[1];
  const double each = (double)taps / (double)w->shape[0];
  double products = (double)results * each;
  if (transposed && c->groups == 1 &&
      is_float32(plan->pd)) { /* whole blocks of result channels, at 0.4 of the speed of a Conv (measured) */
    const int64_t block = chain->op.u.conv.out_channels, more = (block + 15) / 16 * 16;
    products *= 2.5 * (double)more / (double)block;
  }
  double cost = onednn_product_cost(plan->pd, products, c->groups > 1);
  dnnl_primitive_desc_query(plan->pd, dnnl_query_impl_info_str, 0, (void *)&name);
  if (strstr(name, "gemm") == NULL) return cost;
  cost += NS_PER_ELEMENT * (double)results;
  if (taps > (uint64_t)(w->shape[0] * w->shape[1])) cost += NS_PER_ELEMENT * (double)images * each;
  return cost;
}

/* A ConvTranspose to a few channels, which oneDNN fills up to 16: several times slower than the plain kernel (measured). */
static bool is_thin(const onednn *self, const onednn_chain *chain, const setup *u) {
  return self->mode != ONEDNN_ALWAYS && u->transposed && chain->op.u.conv.out_channels <= 4;
}

dnnl_status_t onednn_build_conv(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const ref_conv *c = &chain->op.u.conv;
  const uint32_t groups = c->groups > 1 ? (uint32_t)c->groups : 0;
  setup u = {.transposed = strcmp(chain->node.node->op, "ConvTranspose") == 0};
  dnnl_memory_desc_t src = NULL, weights = NULL, bias = NULL, dst = NULL;
  onednn_view of_bias;
  if (c->groups > UINT32_MAX || !onednn_view_of(chain->node.in[1], groups, u.transposed, &u.weights) ||
      !read_window(chain, &u) || is_thin(self, chain, &u))
    return dnnl_unimplemented;
  u.weights.type = onednn_form_type(form);
  dnnl_status_t s = onednn_in_form(self, chain->node.in[0], form, &src);
  if (s == dnnl_success) s = onednn_in_form(self, chain->out, onednn_form_out(form), &dst);
  if (s == dnnl_success) s = onednn_any(&u.weights, &weights);
  if (s == dnnl_success && chain->node.in[2] != NULL) {
    s = onednn_view_of(chain->node.in[2], 0, false, &of_bias) ? onednn_plain(&of_bias, &bias) : dnnl_unimplemented;
  }
  if (s == dnnl_success && onednn_base(form) == ONEDNN_FORM_ANY && onednn_chain_has_full(chain))
    s = settle(self, chain, &u, weights, bias, &src, &dst);
  if (s == dnnl_success) s = create(self, chain, &u, src, weights, bias, dst, &plan->pd);
  if (s == dnnl_success) s = name_args(chain, &u, plan);
  if (s == dnnl_success) {
    plan->cost_ns = cost_of(chain, plan);
    s = cut(plan, chain, &u);
  }
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (bias != NULL) dnnl_memory_desc_destroy(bias);
  if (weights != NULL) dnnl_memory_desc_destroy(weights);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  return s;
}
