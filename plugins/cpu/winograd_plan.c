/* Which convolutions go through Winograd, with what tiles, cut how, and at what estimated time. */
#include "cpu.h"
#include "onednn_internal.h"

#include "plugins/common/setting.h"

heddle_status winograd_read_mode(const heddle_host *host, int *mode, heddle_error *err) {
  char word[32] = "auto";
  *mode = WINOGRAD_AUTO;
  if (host->config(host->ctx, "winograd", word, sizeof word) < 0 || strcmp(word, "auto") == 0) return HEDDLE_OK;
  *mode = p_is_off(word) ? WINOGRAD_OFF : WINOGRAD_ALWAYS;
  if (*mode == WINOGRAD_OFF || strcmp(word, "always") == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "the setting cpu.winograd is auto, always or off, not '%s'", word);
}

/* ---------------------------------------------------------------- what fits */

static bool read_window(const onednn_chain *chain, const winograd_kind *kind, winograd_plan *out) {
  const ref_conv *c = &chain->op.u.conv;
  const ref_window *w = &c->window;
  const int y = REF_SPATIAL - 2, x = REF_SPATIAL - 1;
  for (int d = y; d <= x; d++)
    if (w->kernel[d] != kind->r || w->stride[d] != 1 || w->dilation[d] != 1) return false;
  *out = (winograd_plan){
      .kind = *kind,
      .images = c->images,
      .height = w->in[y],
      .width = w->in[x],
      .out_height = w->out[y],
      .out_width = w->out[x],
      .top = w->pad[y],
      .left = w->pad[x],
      .in_blocks = (c->in_channels + kind->lanes - 1) / kind->lanes,
      .out_channels = c->out_channels,
      .out_blocks = (c->out_channels + kind->lanes - 1) / kind->lanes,
      .tiles_y = (w->out[y] + kind->m - 1) / kind->m,
      .tiles_x = (w->out[x] + kind->m - 1) / kind->m,
      .has_bias = chain->node.in[2] != NULL,
  };
  out->groups = (out->out_blocks + 1) / 2;
  return true;
}

static void set_strides(winograd_plan *p, int64_t in_channels, bool last) {
  const int64_t lanes = p->kind.lanes;
  p->in_pixel = last ? in_channels : lanes;
  p->out_pixel = last ? p->out_channels : lanes;
  p->in_row = p->in_pixel * p->width;
  p->out_row = p->out_pixel * p->out_width;
  p->in_block = last ? lanes : p->in_row * p->height;
  p->out_block = last ? lanes : p->out_row * p->out_height;
  p->in_image = p->in_blocks * lanes * p->height * p->width;
  p->out_image = p->out_blocks * lanes * p->out_height * p->out_width;
}

/* Channels that fill a block up are 0 and have to stay so. */
static bool read_posts(const onednn_chain *chain, winograd_plan *out) {
  const bool padded = out->out_channels % out->kind.lanes != 0;
  for (uint32_t i = 0; i < chain->n_posts; i++) {
    const onednn_post *post = &chain->posts[i];
    winograd_post *to = &out->posts[out->n_posts++];
    *to = (winograd_post){.alpha = post->alpha, .beta = post->beta};
    if (post->alg == dnnl_eltwise_relu) to->kind = WINOGRAD_RELU;
    else if (post->alg == dnnl_eltwise_clip && (!padded || (post->alpha <= 0 && post->beta >= 0)))
      to->kind = WINOGRAD_CLIP;
    else if (post->alg == dnnl_eltwise_swish) to->kind = WINOGRAD_SWISH;
    else if (post->alg == dnnl_eltwise_mish) to->kind = WINOGRAD_MISH;
    else if (post->alg == dnnl_eltwise_hardswish) to->kind = WINOGRAD_HARD_SWISH;
    else if (post->alg == dnnl_binary_add && post->full) to->kind = WINOGRAD_ADD;
    else return false;
    if (to->kind == WINOGRAD_ADD) to->slot = (uint32_t)region_input_slot(chain->region, post->value);
  }
  return true;
}

/* ---------------------------------------------------------------- how it is cut, and what it takes */

#define KIB 1024

/* Transformed inputs of a unit: of rows of tiles, at most; and of all rows, for groups of result channels. */
#define ROWS_BYTES (320 * KIB)
#define ALL_BYTES (2048 * KIB)

/* The most scratch memory of a thread: a row of tiles of a wider image is left to oneDNN. */
#define TASK_BYTES ((uint64_t)16384 * KIB)

/* Weights of more than this are not read anew for each unit. */
#define WEIGHT_BYTES (768 * KIB)

/* Units a thread, where it is one of several: then the last to finish is not late. */
#define UNITS 4

static uint64_t rounded(int64_t floats) {
  return ((uint64_t)floats * sizeof(float) + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* From one position to the next lie whole lines and one more, so that those of a tile do not meet in few cache sets. */
static int64_t step_of(int64_t floats) {
  return floats + WINOGRAD_MOST_LANES;
}

static void cut(winograd_plan *p, uint32_t threads) {
  const int64_t points = p->kind.tile * p->kind.tile, rows = p->images * p->tiles_y;
  const int64_t channels = p->in_blocks * p->kind.lanes;
  const int64_t row_bytes = points * channels * p->tiles_x * (int64_t)sizeof(float);
  const int64_t weight_bytes = points * channels * p->out_blocks * p->kind.lanes * (int64_t)sizeof(float);
  const int64_t lanes = p->out_blocks > 1 ? 2 * p->kind.lanes : p->kind.lanes;
  p->by_groups = weight_bytes > WEIGHT_BYTES && rows * row_bytes <= ALL_BYTES;
  p->unit_rows = p->by_groups ? rows : ROWS_BYTES / row_bytes;
  const int64_t few = rows / (UNITS * threads);
  if (!p->by_groups && threads > 1 && p->unit_rows > few) p->unit_rows = few;
  if (p->unit_rows > rows) p->unit_rows = rows;
  if (p->unit_rows < 1) p->unit_rows = 1;
  p->units = p->by_groups ? p->groups : (rows + p->unit_rows - 1) / p->unit_rows;
  p->tasks = threads < p->units ? threads : (uint32_t)p->units;
  p->v_point = step_of(p->unit_rows * p->tiles_x * channels);
  p->m_point = step_of(p->unit_rows * p->tiles_x * lanes);
  p->task_bytes = rounded(points * (p->v_point + p->m_point));
}

/* Nanoseconds on one thread: a product of a vector of channels, a vector of a tile on its way in or out, a byte of weights
 * from memory (docs/decisions/cpu.md). Those of 8 lanes are in the measure of onednn_product_cost. */
static const struct costs { double product, vector, weight; } costs[] = {{0.165, 1.2, 0.08}, {0.29, 1.8, 0.04}};

static double cost_of(const winograd_plan *p) {
  const struct costs *each = &costs[p->kind.lanes == 16];
  const double points = p->kind.tile * p->kind.tile;
  const double tiles = (double)(p->images * p->tiles_y * p->tiles_x);
  const double pairs = (double)(p->in_blocks * p->out_blocks) * p->kind.lanes;
  const double products = each->product * points * tiles * pairs;
  const double weights = each->weight * points * pairs * p->kind.lanes * sizeof(float);
  return 1000 + (products > weights ? products : weights) +
         each->vector * points * tiles * (double)(p->in_blocks + p->out_blocks);
}

/* The cheapest kind for the kernel; false where there is none. */
static bool choose(const onednn_chain *chain, int32_t lanes, winograd_plan *out, double *cost) {
  bool found = false;
  for (int i = 0; i < WINOGRAD_KINDS; i++) {
    winograd_plan p;
    if (!read_window(chain, winograd_kind_at(i, lanes), &p)) continue;
    const double mine = cost_of(&p);
    if (found && mine >= *cost) continue;
    found = true;
    *cost = mine;
    *out = p;
  }
  return found;
}

/* ---------------------------------------------------------------- the offer */

/* Operands by name; the plan's slots are theirs. */
static dnnl_status_t name_args(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const heddle_pnode *node = chain->node.node;
  winograd_plan *p = &plan->winograd;
  heddle_layout in = 0;
  dnnl_status_t s = onednn_form_token(self, chain->node.in[0], form, &in);
  if (s == dnnl_success) s = onednn_form_token(self, chain->out, form, &plan->output);
  if (s == dnnl_success) s = onednn_plan_input_as(plan, node->inputs[0], DNNL_ARG_SRC, in);
  if (s == dnnl_success) s = onednn_plan_input_as(plan, node->inputs[1], DNNL_ARG_WEIGHTS, winograd_token(&p->kind));
  if (s == dnnl_success && p->has_bias) s = onednn_plan_input_as(plan, node->inputs[2], DNNL_ARG_BIAS, 0);
  if (s == dnnl_success) s = onednn_plan_output_as(plan, chain->region->outputs[0], DNNL_ARG_DST, plan->output);
  if (s == dnnl_success) s = onednn_plan_posts(plan, chain);
  p->src = (uint32_t)region_input_slot(plan->region, node->inputs[0]);
  p->weights = (uint32_t)region_input_slot(plan->region, node->inputs[1]);
  p->bias = p->has_bias ? (uint32_t)region_input_slot(plan->region, node->inputs[2]) : 0;
  return s;
}

dnnl_status_t winograd_build(const onednn *self, const onednn_chain *chain, onednn_form form, onednn_plan *plan) {
  const ref_conv *c = &chain->op.u.conv;
  winograd_plan *p = &plan->winograd;
  uint64_t bytes;
  const int32_t lanes = winograd_lanes(self->block);
  if (self->winograd == WINOGRAD_OFF || lanes == 0 || strcmp(chain->node.node->op, "Conv") != 0 ||
      chain->node.in[0]->ndim != 4 || c->groups != 1 || chain->node.in[1]->data == NULL ||
      !choose(chain, lanes, p, &plan->cost_ns) ||
      !winograd_weight_bytes(chain->node.in[1], winograd_token(&p->kind), &bytes) || !read_posts(chain, p))
    return dnnl_unimplemented;
  const bool last = form == ONEDNN_FORM_CHANNELS_LAST;
  if (last && (c->in_channels % lanes != 0 || c->out_channels % lanes != 0)) return dnnl_unimplemented;
  plan->by_winograd = true;
  set_strides(p, c->in_channels, last);
  const uint32_t threads = self->host->parallelism(self->host->ctx);
  cut(p, threads < plan->wanted_parts ? threads : plan->wanted_parts);
  if (p->task_bytes > TASK_BYTES) return dnnl_unimplemented;
  return name_args(self, chain, form, plan);
}

cpu_operand winograd_operand(const winograd_plan *p, uint32_t slot, bool output) {
  const uint64_t result = (uint64_t)(p->images * p->out_image) * sizeof(float);
  const uint64_t points = (uint64_t)(p->kind.tile * p->kind.tile);
  if (!output && slot == p->weights)
    return (cpu_operand){points * (uint64_t)(p->in_blocks * p->out_blocks * p->kind.lanes * p->kind.lanes) *
                             sizeof(float),
                         CPU_ALIGNMENT};
  if (!output && slot == p->src)
    return (cpu_operand){(uint64_t)(p->images * p->in_image) * sizeof(float), CPU_ALIGNMENT};
  if (!output && p->has_bias && slot == p->bias)
    return (cpu_operand){(uint64_t)p->out_channels * sizeof(float), sizeof(float)};
  return (cpu_operand){result, CPU_ALIGNMENT};
}
