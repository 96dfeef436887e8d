/* A quantised product in blocks: rows of the result, so many that their int32 sums stay in the cache while they are
 * rounded, or, where there are few rows and several threads, channels. Blocks are shared out to tasks, a row of blocks
 * each; a task has its own sums and scratch memory. */
#include "cpu.h"
#include "onednn_int8.h"

/* Bytes of sums of a block; channels of a group and places of a block that are worth a part of their own. */
#define BLOCK_BYTES 262144
enum { GROUP_CHANNELS = 64, FEW_PLACES = 32, ROWS = 16 };

/* The largest table of what is added by place. */
#define MOST_TABLE (INT64_C(1) << 24)

static bool is_matmul(const int8_plan *plan) {
  return plan->p->matmul;
}

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Rows [row, row + rows) of the result want which of the input? False where one of them has none. */
static bool reach_of(const int8_plan *plan, int64_t row, int8_kind *kind, int64_t *in_row) {
  const ref_window *w = &plan->p->window;
  const int64_t low = row * w->stride[1] - w->pad[1];
  const int64_t high = (row + kind->rows - 1) * w->stride[1] - w->pad[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
  *in_row = low < 0 ? 0 : low;
  kind->in_rows = least_of(high, w->in[1]) - *in_row;
  kind->before = low < 0 ? -low : 0;
  kind->after = high > w->in[1] ? high - w->in[1] : 0;
  return kind->in_rows > 0;
}

static bool same_kind(const int8_kind *a, const int8_kind *b) {
  return a->in_rows == b->in_rows && a->rows == b->rows && a->before == b->before && a->after == b->after &&
         a->channels == b->channels;
}

/* Block i without its kind, which is given with what it is known by. */
static bool block_at(const int8_plan *plan, int64_t i, int8_block *block, int8_kind *kind) {
  const int64_t rows = plan->p->window.out[1], channels = plan->p->out_channels;
  *block = (int8_block){.kind = 0};
  *kind = (int8_kind){.rows = rows, .channels = channels};
  if (plan->groups > 1) {
    block->image = i / plan->groups;
    block->group = (uint32_t)(i % plan->groups);
    block->first_channel = block->group * plan->channels_each;
    kind->channels = least_of(plan->channels_each, channels - block->first_channel);
  } else {
    const int64_t of_image = (rows + plan->rows_each - 1) / plan->rows_each;
    block->image = i / of_image;
    block->row = i % of_image * plan->rows_each;
    kind->rows = least_of(plan->rows_each, rows - block->row);
  }
  return reach_of(plan, block->row, kind, &block->in_row);
}

int8_block int8_plan_block(const int8_plan *plan, int64_t i) {
  int8_block block;
  int8_kind kind;
  block_at(plan, i, &block, &kind);
  while (block.kind + 1 < plan->n_kinds && !same_kind(&plan->kinds[block.kind], &kind)) block.kind++;
  return block;
}

/* ---------------------------------------------------------------- primitives */

static dnnl_data_type_t type_of(const heddle_pvalue *value) {
  return value->dtype.code == HEDDLE_DTYPE_INT ? dnnl_s8 : dnnl_u8;
}

static dnnl_status_t create_conv(const int8_plan *plan, const int8_kind *kind, const_dnnl_memory_desc_t src,
                                 const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t dst,
                                 const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out) {
  const ref_window *w = &plan->p->window;
  const int64_t reach = (w->kernel[2] - 1) * w->dilation[2] + 1;
  const dnnl_dims_t strides = {w->stride[1], w->stride[2]}, dilations = {w->dilation[1] - 1, w->dilation[2] - 1};
  const dnnl_dims_t before = {kind->before, w->pad[2]};
  const dnnl_dims_t after = {kind->after, (w->out[2] - 1) * w->stride[2] + reach - w->in[2] - w->pad[2]};
  return dnnl_convolution_forward_primitive_desc_create(out, plan->self->engine, dnnl_forward_inference,
                                                        dnnl_convolution_direct, src, weights, NULL, dst, strides,
                                                        dilations, before, after, attr);
}

/* chosen: the weights' format, where another kind has settled it. */
static dnnl_status_t create(const int8_plan *plan, int8_kind *kind, const_dnnl_memory_desc_t chosen) {
  const int8_product *p = plan->p;
  const ref_window *w = &p->window;
  const int64_t channels = kind->channels + plan->ones, depth = p->in_channels / p->groups;
  const bool grouped = p->groups > 1;
  dnnl_memory_desc_t src = NULL, weights = NULL, dst = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t s = dnnl_primitive_attr_create(&attr);
  if (s == dnnl_success) s = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (is_matmul(plan)) {
    const dnnl_dims_t a = {kind->rows, depth}, b = {depth, channels}, c = {kind->rows, channels};
    if (s == dnnl_success) s = dnnl_memory_desc_create_with_tag(&src, 2, a, type_of(p->x), dnnl_ab);
    if (s == dnnl_success && chosen == NULL)
      s = dnnl_memory_desc_create_with_tag(&weights, 2, b, dnnl_s8, dnnl_format_tag_any);
    if (s == dnnl_success) s = dnnl_memory_desc_create_with_tag(&dst, 2, c, dnnl_s32, dnnl_ab);
    if (s == dnnl_success)
      s = dnnl_matmul_primitive_desc_create(&kind->pd, plan->self->engine, src, chosen != NULL ? chosen : weights, NULL,
                                            dst, attr);
  } else {
    const dnnl_dims_t a = {1, p->in_channels, kind->in_rows, w->in[2]}, c = {1, channels, kind->rows, w->out[2]};
    const dnnl_dims_t b = {channels, depth, w->kernel[1], w->kernel[2]};
    const dnnl_dims_t g = {p->groups, channels / p->groups, depth, w->kernel[1], w->kernel[2]};
    if (s == dnnl_success) s = dnnl_memory_desc_create_with_tag(&src, 4, a, type_of(p->x), dnnl_acdb);
    if (s == dnnl_success && chosen == NULL)
      s = dnnl_memory_desc_create_with_tag(&weights, grouped ? 5 : 4, grouped ? g : b, dnnl_s8, dnnl_format_tag_any);
    if (s == dnnl_success) s = dnnl_memory_desc_create_with_tag(&dst, 4, c, dnnl_s32, dnnl_acdb);
    if (s == dnnl_success) s = create_conv(plan, kind, src, chosen != NULL ? chosen : weights, dst, attr, &kind->pd);
  }
  if (dst != NULL) dnnl_memory_desc_destroy(dst);
  if (weights != NULL) dnnl_memory_desc_destroy(weights);
  if (src != NULL) dnnl_memory_desc_destroy(src);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  return s;
}

/* Most of oneDNN's kernels for bytes take the sum through float32 on its way to int32, which is exact up to 2^24. */
static bool is_exact(const int8_plan *plan, const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return plan->most_sum <= INT64_C(1) << 24 ||
         (plan->p->x->dtype.code == HEDDLE_DTYPE_UINT && strncmp(name, "brg", 3) == 0);
}

/* oneDNN's plain loops are slower than anything. */
static bool is_plain(const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return strstr(name, "ref") != NULL;
}

/* oneDNN 3.2's convolution with AMX folds an even stride's width into the channels of a kernel of even width: for channels
 * that do not fill blocks of 64 it then gives wrong sums and writes behind its memory. */
static bool is_broken(const int8_plan *plan, const_dnnl_primitive_desc_t pd) {
  const ref_window *w = &plan->p->window;
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return !is_matmul(plan) && w->kernel[2] % 2 == 0 && w->stride[2] % 2 == 0 &&
         strncmp(name, "brgconv:avx512_core_amx", 23) == 0;
}

static uint64_t padded(uint64_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* A primitive of oneDNN for the last of the plan's kinds; *scratch: the bytes that it wants. */
static dnnl_status_t choose(int8_plan *plan, int8_kind *kind, uint64_t *scratch) {
  const bool others = plan->groups == 1 && plan->n_kinds > 1;
  dnnl_status_t s =
      create(plan, kind, others ? dnnl_primitive_desc_query_md(plan->kinds[0].pd, dnnl_query_weights_md, 0) : NULL);
  if (s != dnnl_success) return s;
  while (is_broken(plan, kind->pd)) {
    s = dnnl_primitive_desc_next_impl(kind->pd);
    if (s != dnnl_success) return s;
  }
  while (!is_exact(plan, kind->pd)) {
    if (plan->pieces == INT8_PIECES) return dnnl_unimplemented;
    plan->most_sum = int8_most_sum(plan->p, ++plan->pieces);
  }
  if (is_plain(kind->pd) && plan->self->mode != ONEDNN_ALWAYS) return dnnl_unimplemented;
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(kind->pd, dnnl_query_scratchpad_md, 0);
  *scratch = md != NULL ? dnnl_memory_desc_get_size(md) : 0;
  return dnnl_success;
}

static dnnl_status_t add_kind(int8_plan *plan, const int8_kind *like) {
  if (plan->n_kinds == INT8_KINDS) return dnnl_unimplemented;
  int8_kind *kind = &plan->kinds[plan->n_kinds++];
  *kind = *like;
  const int64_t channels = kind->channels + plan->ones;
  uint64_t scratch = 0;
  dnnl_status_t s = dnnl_success;
  if (plan->pairs) scratch = int8_pairs_scratch(plan->p, kind, channels);
  else s = choose(plan, kind, &scratch);
  if (s != dnnl_success) return s;
  const uint64_t sums = padded((uint64_t)(kind->rows * plan->p->window.out[2] * channels) * sizeof(int32_t));
  if (sums > plan->acc_bytes) plan->acc_bytes = sums;
  if (padded(scratch) > plan->each) plan->each = padded(scratch); /* the sums come on top */
  return dnnl_success;
}

static void forget_kinds(int8_plan *plan) {
  for (uint32_t i = 0; i < plan->n_kinds; i++)
    if (plan->kinds[i].pd != NULL) dnnl_primitive_desc_destroy(plan->kinds[i].pd);
  plan->n_kinds = 0;
  plan->acc_bytes = plan->each = 0;
}

/* The last of an image's blocks of rows_each rows that reaches over neither edge; 0: there is none, or it is the first. */
static int64_t last_inside(const int8_plan *plan) {
  const ref_window *w = &plan->p->window;
  const int64_t rows = (w->in[1] - 1 - (w->kernel[1] - 1) * w->dilation[1] + w->pad[1]) / w->stride[1] + 1;
  const int64_t inside = (rows < w->out[1] ? rows : w->out[1]) / plan->rows_each - 1;
  return inside > 0 ? inside : 0;
}

/* The kinds of all blocks of an image; other images have the same. */
static dnnl_status_t make_kinds(int8_plan *plan) {
  const int64_t of_image = plan->blocks / plan->p->images;
  dnnl_status_t s = dnnl_success;
  forget_kinds(plan);
  int64_t first = 0, last = of_image;
  while (first < last && s == dnnl_success) {
    int8_block block;
    int8_kind kind;
    bool known = false;
    if (!block_at(plan, first, &block, &kind)) return dnnl_unimplemented;
    for (uint32_t k = 0; k < plan->n_kinds; k++) known = known || same_kind(&plan->kinds[k], &kind);
    if (!known) s = add_kind(plan, &kind);
    first++;
    if (plan->groups > 1 || kind.before > 0 || kind.after > 0) continue;
    /* All that reach over neither edge are alike, but the last, which may be shorter. */
    const int64_t whole = last_inside(plan);
    if (whole > first) first = whole;
  }
  return s;
}

/* ---------------------------------------------------------------- how it is cut */

static void cut(int8_plan *plan, int64_t parts) {
  const int8_product *p = plan->p;
  const int64_t rows = p->window.out[1], cols = p->window.out[2], each = cols * (p->out_channels + plan->ones);
  int64_t groups = least_of(parts, p->out_channels / GROUP_CHANNELS);
  if (groups > INT8_GROUPS) groups = INT8_GROUPS;
  if (rows * cols * p->images / parts >= FEW_PLACES || p->groups > 1 || groups < 2) groups = 1;
  plan->channels_each = (p->out_channels + groups - 1) / groups;
  if (groups > 1) plan->channels_each = (plan->channels_each + GROUP_CHANNELS - 1) / GROUP_CHANNELS * GROUP_CHANNELS;
  plan->groups = (uint32_t)((p->out_channels + plan->channels_each - 1) / plan->channels_each);
  const int64_t of_image = (parts + p->images - 1) / p->images;
  plan->rows_each = (rows + of_image - 1) / of_image;
  plan->rows_each = least_of(plan->rows_each, BLOCK_BYTES / (int64_t)sizeof(int32_t) / each);
  if (plan->p->matmul) plan->rows_each = (plan->rows_each + ROWS - 1) / ROWS * ROWS;
  if (plan->rows_each < 1) plan->rows_each = 1;
  plan->rows_each = least_of(plan->rows_each, rows);
  plan->blocks = p->images * (plan->groups > 1 ? plan->groups : (rows + plan->rows_each - 1) / plan->rows_each);
}

static dnnl_status_t token_for(const onednn *self, const heddle_pvalue *value, heddle_layout *out) {
  dnnl_memory_desc_t md = NULL;
  onednn_view view;
  if (!onednn_view_of(value, 0, false, &view)) return dnnl_unimplemented;
  dnnl_status_t s = onednn_in_form(self, value, ONEDNN_FORM_CHANNELS_LAST, &md);
  if (s == dnnl_success && !onednn_token_of(self, &view, md, out)) s = dnnl_unimplemented;
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return s;
}

dnnl_status_t int8_plan_make(const onednn *self, const int8_product *p, uint32_t parts, int8_plan *plan) {
  int32_t shift;
  *plan = (int8_plan){.self = self, .p = p, .ones = int8_keeps_zero(p, &shift)};
  if (plan->ones && p->groups > 1) return dnnl_unimplemented;
  const int64_t classes = int8_classes(p, 1, NULL) * int8_classes(p, 2, NULL);
  if (classes > MOST_TABLE / p->out_channels) return dnnl_unimplemented;
  if (p->x_zero_value >= 0) plan->table_bytes = padded((uint64_t)(classes * p->out_channels) * sizeof(int32_t));
  if (p->real && p->times_one) plan->times_bytes = padded((uint64_t)p->out_channels * sizeof(float));
  dnnl_status_t s = p->matmul ? dnnl_success : token_for(self, p->x, &plan->in);
  if (s == dnnl_success && p->rounds && !p->matmul) s = token_for(self, p->y, &plan->out);
  if (s != dnnl_success) return s;
  plan->pieces = 1;
  plan->pairs = !onednn_int8_exact();
  plan->most_sum = plan->pairs ? 0 : int8_most_sum(p, 1);
  cut(plan, parts);
  s = make_kinds(plan);
  if (s != dnnl_success && s != dnnl_out_of_memory && (plan->rows_each < p->window.out[1] || plan->groups > 1)) {
    plan->rows_each = p->window.out[1]; /* it cannot be cut so: an image is a block */
    plan->channels_each = p->out_channels;
    plan->groups = 1;
    plan->blocks = p->images;
    s = make_kinds(plan);
  }
  if (s != dnnl_success) {
    int8_plan_drop(plan);
    return s;
  }
  plan->tasks = (uint32_t)least_of(least_of(plan->blocks, (int64_t)parts), INT8_TASKS);
  if (plan->pieces > 1) plan->acc_bytes *= 2; /* of all pieces so far, and of one */
  plan->each += plan->acc_bytes;
  const double places = (double)(p->images * p->window.out[1] * p->window.out[2]);
  plan->cost_ns = 600 + places * (double)p->out_channels *
                            (0.1 + (plan->pairs ? 0.015 : 0.005) * plan->pieces * (double)(p->in_channels / p->groups) *
                                       (double)p->taps);
  return dnnl_success;
}

void int8_plan_drop(int8_plan *plan) {
  forget_kinds(plan);
}
