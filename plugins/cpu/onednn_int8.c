/* Quantised regions as the plugin offers and prepares them. An op keeps what it has of its constants, packed, so that they
 * are absorbed. */
#include "cpu.h"
#include "onednn_int8_op.h"

#include <math.h>

#define PART_NS 30000.0
#define CALL_NS 600.0

/* Only with instructions for products of bytes are oneDNN's sums exact: older ones saturate on the way. */
bool onednn_int8_exact(void) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
         (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
}

bool onednn_int8_able(const onednn *self) {
  return self != NULL && (onednn_int8_exact() || int8_pairs_here());
}

static bool read_region(const onednn *self, const heddle_pregion *region, reading *out) {
  if (!onednn_int8_able(self)) return false;
  out->what = INT8_PRODUCT;
  if (int8_read_product(region, &out->u.product)) return true;
  out->what = INT8_POOL;
  if (int8_read_pool(region, &out->u.pool)) return true;
  out->what = INT8_SUM;
  if (int8_read_sum(region, &out->u.sum)) return true;
  out->what = INT8_TABLE;
  return int8_read_table(region, &out->u.table);
}

static uint32_t parts_for(const onednn *self, double work_ns) {
  const uint32_t threads = self->host->parallelism(self->host->ctx);
  const double most = work_ns / PART_NS;
  uint32_t parts = threads < 2 ? 1 : 2 * threads;
  if (parts > INT8_TASKS) parts = INT8_TASKS;
  return most < 2 ? 1 : most < parts ? (uint32_t)most : parts;
}

static double elements(const heddle_pvalue *value) {
  uint64_t n = 0;
  region_value_count(value, &n);
  return (double)n;
}

/* ---------------------------------------------------------------- offers */

static heddle_layout last_token(const onednn *self, const heddle_pvalue *value, bool *found) {
  dnnl_memory_desc_t md = NULL;
  onednn_view view;
  heddle_layout token = 0;
  *found = onednn_view_of(value, 0, false, &view) &&
           onednn_in_form(self, value, ONEDNN_FORM_CHANNELS_LAST, &md) == dnnl_success &&
           onednn_token_of(self, &view, md, &token);
  if (md != NULL) dnnl_memory_desc_destroy(md);
  return token;
}

/* One offer of a region: layouts by its inputs, and which of them the op reads in the run. */
typedef struct answer {
  heddle_layout in[ONEDNN_INPUTS], out;
  uint32_t flags[ONEDNN_INPUTS];
  uint64_t workspace, kept;
  double cost_ns;
} answer;

static void take_input(const heddle_pregion *region, answer *a, int32_t value, heddle_layout layout) {
  const int64_t slot = region_input_slot(region, value);
  if (slot < 0) return;
  a->in[slot] = layout;
  a->flags[slot] = 0;
}

static uint64_t workspace_of(const int8_plan *plan) {
  return plan->table_bytes + plan->times_bytes + plan->each * plan->tasks;
}

/* Of the weights as oneDNN has them. */
static uint64_t packed_bytes(const int8_plan *plan) {
  uint64_t bytes = 0;
  for (uint32_t g = 0; g < plan->groups; g++) {
    const int8_kind *kind = &plan->kinds[plan->groups > 1 ? int8_plan_block(plan, g).kind : 0];
    if (plan->pairs) bytes += int8_pairs_packed(plan->p, kind->channels + plan->ones);
    else
      bytes +=
          plan->pieces * dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(kind->pd, dnnl_query_weights_md, 0));
  }
  return bytes;
}

/* Offers of a region: sums and tables have one row-major and one channels last, everything else one. plan: made for a
 * product. */
static dnnl_status_t answer_of(const onednn *self, const heddle_pregion *region, const reading *r, uint32_t number,
                               int8_plan *plan, answer *a) {
  bool found = true;
  *a = (answer){.cost_ns = CALL_NS};
  *plan = (int8_plan){.self = self};
  if (number > (r->what == INT8_SUM || r->what == INT8_TABLE)) return dnnl_unimplemented;
  for (uint32_t i = 0; i < region->n_inputs; i++) a->flags[i] = HEDDLE_INPUT_ABSORBED;
  if (r->what == INT8_PRODUCT) {
    const int8_product *p = &r->u.product;
    const double products = elements(p->y) * (double)(p->in_channels / p->groups) * (double)p->taps;
    const int before = onednn_threads_enter(self);
    dnnl_status_t s = int8_plan_make(self, p, parts_for(self, products * 0.006), plan);
    onednn_threads_leave(self, before);
    if (s != dnnl_success) return s;
    take_input(region, a, p->x_value, plan->in);
    const int32_t more[] = {p->x_zero_value, p->times_value, p->plus_value};
    for (int k = 0; k < 3; k++)
      if (more[k] >= 0) take_input(region, a, more[k], 0);
    a->out = plan->out;
    a->workspace = workspace_of(plan);
    a->cost_ns = plan->cost_ns;
    a->kept = int8_weights_kept(p) + packed_bytes(plan);
  } else if (r->what == INT8_POOL) {
    const ref_window *w = &r->u.pool.window;
    take_input(region, a, r->u.pool.value, last_token(self, r->u.pool.x, &found));
    if (found) a->out = last_token(self, r->u.pool.y, &found);
    a->cost_ns += elements(r->u.pool.y) * (double)(w->kernel[1] * w->kernel[2]) * 0.04;
  } else {
    const heddle_pvalue *y = r->what == INT8_SUM ? r->u.sum.y : r->u.table.y;
    uint8_t table[256];
    if (number == 1 && y->ndim >= 3 && y->ndim <= 5) a->out = last_token(self, y, &found);
    if (number == 1 && a->out == 0) found = false;
    for (int k = 0; r->what == INT8_SUM && k < 2; k++) take_input(region, a, r->u.sum.values[k], a->out);
    if (r->what == INT8_TABLE) take_input(region, a, r->u.table.value, a->out);
    if (r->what == INT8_TABLE && int8_table_make(self->host, &r->u.table, table, NULL) != HEDDLE_OK) found = false;
    a->cost_ns += elements(y) * (r->what == INT8_SUM ? 0.1 : 0.5);
  }
  if (!found) return dnnl_unimplemented;
  for (uint32_t i = 0; i < region->n_inputs; i++) /* what is absorbed has to be known */
    if (a->flags[i] != 0 && region_value(region, region->inputs[i])->data == NULL) return dnnl_unimplemented;
  return dnnl_success;
}

heddle_status onednn_int8_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                uint32_t *made, bool *only, heddle_error *err) {
  reading r;
  answer a;
  int8_plan plan;
  if (!read_region(self, region, &r)) return HEDDLE_OK;
  for (uint32_t number = 0; number < 2; number++) {
    dnnl_status_t d = answer_of(self, region, &r, number, &plan, &a);
    int8_plan_drop(&plan);
    if (d == dnnl_out_of_memory) return onednn_fail(d, "asking for a primitive", err);
    if (d != dnnl_success) continue;
    const uint32_t threads = self->host->parallelism(self->host->ctx);
    const uint32_t tasks = r.what == INT8_PRODUCT ? plan.tasks : parts_for(self, a.cost_ns);
    const uint32_t at_once = tasks < threads ? tasks : threads;
    const heddle_poffer as = {.struct_size = sizeof as,
                              .input_layouts = a.in,
                              .output_layouts = &a.out,
                              .input_flags = a.flags,
                              .workspace_bytes = a.workspace,
                              .workspace_align = CPU_ALIGNMENT,
                              .cost_ns = at_once > 1 ? CALL_NS + (a.cost_ns - CALL_NS) / at_once : a.cost_ns,
                              .kept_bytes = a.kept};
    heddle_status s = offer(sink, &as, err);
    if (s != HEDDLE_OK) return s;
    ++*made;
  }
  /* The reference kernel of a product packs its weights in each run, so it is there for sizes that change alone. */
  const bool better = r.what == INT8_PRODUCT && (region->flags & HEDDLE_REGION_OPEN) == 0;
  *only = *made > 0 && (self->mode == ONEDNN_ALWAYS || region->nodes.count > 1 || better);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- prepared products */

/* Weights of a group as they are read: [channel][in][tap], of a matrix product [in][channel]; ones behind them. */
static void gather(const int8_product *p, const int8_weights *w, bool ones, int64_t first, int64_t n, int8_t *to) {
  const int64_t each = p->in_channels / p->groups * p->taps;
  if (!p->matmul) {
    memcpy(to, w->bytes + first * each, (size_t)(n * each));
    if (ones) memset(to + n * each, 1, (size_t)each);
    return;
  }
  for (int64_t k = 0; k < p->in_channels; k++, to += n + ones) {
    memcpy(to, w->bytes + k * p->out_channels + first, (size_t)n);
    if (ones) to[n] = 1;
  }
}

/* Keeps a piece of them, and clears the rest. */
static void clear_rest(const int8_product *p, uint32_t piece, uint32_t pieces, int64_t channels, int8_t *plain) {
  const int64_t each = p->in_channels / p->groups * p->taps;
  int64_t first, last;
  int8_piece(p, piece, pieces, &first, &last);
  if (p->matmul) {
    memset(plain, 0, (size_t)(first * channels));
    memset(plain + last * channels, 0, (size_t)((each - last) * channels));
    return;
  }
  for (int64_t c = 0; c < channels; c++, plain += each) {
    memset(plain, 0, (size_t)first);
    memset(plain + last, 0, (size_t)(each - last));
  }
}

static dnnl_status_t plain_weights(const int8_product *p, int64_t channels, dnnl_memory_desc_t *out) {
  const int64_t depth = p->in_channels / p->groups;
  const dnnl_dims_t matrix = {depth, channels}, dims = {channels, depth, p->window.kernel[1], p->window.kernel[2]};
  const dnnl_dims_t grouped = {p->groups, channels / p->groups, depth, p->window.kernel[1], p->window.kernel[2]};
  if (p->matmul) return dnnl_memory_desc_create_with_tag(out, 2, matrix, dnnl_s8, dnnl_ab);
  if (p->groups > 1) return dnnl_memory_desc_create_with_tag(out, 5, grouped, dnnl_s8, dnnl_abcde);
  return dnnl_memory_desc_create_with_tag(out, 4, dims, dnnl_s8, dnnl_abcd);
}

/* Reorders plain, weights as they are read, to op->packed[at]. */
static dnnl_status_t reorder(onednn_int8 *op, uint32_t at, const_dnnl_memory_desc_t md, int64_t channels, void *plain) {
  const onednn *self = op->self;
  dnnl_memory_desc_t from = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t s = dnnl_memory_create(&op->packed[at], md, self->engine, op->packed_bytes[at]);
  args[1].memory = op->packed[at];
  if (s == dnnl_success) s = plain_weights(&op->read.u.product, channels, &from);
  if (s == dnnl_success) s = dnnl_memory_create(&args[0].memory, from, self->engine, plain);
  if (s == dnnl_success) s = dnnl_reorder_primitive_desc_create(&pd, from, self->engine, md, self->engine, NULL);
  if (s == dnnl_success) s = dnnl_primitive_create(&primitive, pd);
  if (s == dnnl_success) s = dnnl_stream_create(&stream, self->engine, dnnl_stream_default_flags);
  if (s == dnnl_success) s = dnnl_primitive_execute(primitive, stream, 2, args);
  if (s == dnnl_success) s = dnnl_stream_wait(stream);
  if (stream != NULL) dnnl_stream_destroy(stream);
  if (primitive != NULL) dnnl_primitive_destroy(primitive);
  if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  if (args[0].memory != NULL) dnnl_memory_destroy(args[0].memory);
  if (from != NULL) dnnl_memory_desc_destroy(from);
  return s;
}

/* Packed weights are piece after piece, each with all groups. */
static dnnl_status_t pack(onednn_int8 *op, uint32_t at) {
  const int8_plan *plan = &op->plan;
  const uint32_t group = at % plan->groups, piece = at / plan->groups;
  const int8_product *p = &op->read.u.product;
  const heddle_host *host = op->self->host;
  const int8_block block = int8_plan_block(plan, group); /* the first image's blocks are its groups */
  const int8_kind *kind = &plan->kinds[plan->groups > 1 ? block.kind : 0];
  const int64_t channels = kind->channels + plan->ones;
  const_dnnl_memory_desc_t md = plan->pairs ? NULL : dnnl_primitive_desc_query_md(kind->pd, dnnl_query_weights_md, 0);
  const size_t bytes = (size_t)(channels * (p->in_channels / p->groups) * p->taps);
  const size_t size = plan->pairs ? (size_t)int8_pairs_packed(p, channels) : dnnl_memory_desc_get_size(md);
  int8_t *plain = host->alloc(host->ctx, bytes, CPU_ALIGNMENT);
  op->packed_bytes[at] = host->alloc(host->ctx, size, CPU_ALIGNMENT);
  dnnl_status_t s = plain != NULL && op->packed_bytes[at] != NULL ? dnnl_success : dnnl_out_of_memory;
  if (s == dnnl_success) gather(p, &op->weights, plan->ones, block.first_channel, kind->channels, plain);
  if (s == dnnl_success && plan->pairs) {
    int8_pairs_pack(p, channels, plain, op->packed_bytes[at]);
  } else if (s == dnnl_success) {
    memset(op->packed_bytes[at], 0, size);
    if (plan->pieces > 1) clear_rest(p, piece, plan->pieces, channels, plain);
    s = reorder(op, at, md, channels, plain);
  }
  host->free(host->ctx, plain);
  return s;
}

static heddle_status prepare_product(onednn_int8 *op, const int8_product *p, heddle_error *err) {
  heddle_status s = int8_weights_make(op->self->host, p, &op->weights, err);
  if (s != HEDDLE_OK) return s;
  const int before = onednn_threads_enter(op->self);
  dnnl_status_t d = dnnl_success;
  for (uint32_t i = 0; i < op->plan.groups * op->plan.pieces && d == dnnl_success; i++) d = pack(op, i);
  for (uint32_t k = 0; k < op->plan.n_kinds && !op->plan.pairs && d == dnnl_success; k++)
    d = dnnl_primitive_create(&op->primitives[k], op->plan.kinds[k].pd);
  onednn_threads_leave(op->self, before);
  op->self->host->free(op->self->host->ctx, op->weights.bytes);
  op->weights.bytes = NULL;
  return onednn_fail(d, "packing the weights of a quantised product", err);
}

static void prepare_sum(onednn_int8 *op, const int8_sum *u) {
  const heddle_pvalue *const operands[] = {u->a, u->b};
  for (int k = 0; k < 2; k++) {
    op->mix.flip[k] = operands[k]->dtype.code == HEDDLE_DTYPE_INT ? 128 : 0;
    op->mix.zero[k] = u->zero[k] + op->mix.flip[k];
  }
  memcpy(op->mix.scale, u->scale, sizeof op->mix.scale);
  op->mix.times = u->times;
  op->mix.zero[2] = u->zero[2];
  op->mix.least = (float)((op->y_signed ? -128 : 0) - u->zero[2]);
  op->mix.most = op->mix.least + 255;
  op->mix.floor = u->relu ? 0 : -INFINITY;
  op->count = (int64_t)elements(u->y);
}

static uint32_t slot_of(const heddle_pregion *region, int32_t value) {
  const int64_t slot = value >= 0 ? region_input_slot(region, value) : -1;
  return slot >= 0 ? (uint32_t)slot : UINT32_MAX;
}

static heddle_status fill(onednn_int8 *op, const heddle_pregion *region, const answer *a, heddle_error *err) {
  const heddle_pvalue *y = region_value(region, region->outputs[0]);
  reading *r = &op->read;
  op->slots[0] = op->slots[1] = op->zero_slot = op->times_slot = op->plus_slot = UINT32_MAX;
  op->special.workspace = a->workspace;
  op->y_signed = y->dtype.code == HEDDLE_DTYPE_INT;
  op->tasks = parts_for(op->self, a->cost_ns);
  if (r->what == INT8_PRODUCT) {
    op->plan.p = &r->u.product;
    op->tasks = op->plan.tasks;
    op->slots[0] = slot_of(region, r->u.product.x_value);
    op->zero_slot = slot_of(region, r->u.product.x_zero_value);
    op->times_slot = slot_of(region, r->u.product.times_value);
    op->plus_slot = slot_of(region, r->u.product.plus_value);
    op->x_signed = r->u.product.x->dtype.code == HEDDLE_DTYPE_INT;
    return prepare_product(op, &r->u.product, err);
  }
  if (r->what == INT8_SUM) {
    for (int k = 0; k < 2; k++) op->slots[k] = slot_of(region, r->u.sum.values[k]);
    prepare_sum(op, &r->u.sum);
    return HEDDLE_OK;
  }
  if (r->what == INT8_TABLE) {
    op->slots[0] = slot_of(region, r->u.table.value);
    op->count = (int64_t)elements(y);
    return int8_table_make(op->self->host, &r->u.table, op->table, err);
  }
  op->slots[0] = slot_of(region, r->u.pool.value);
  op->images = r->u.pool.y->shape[0];
  op->channels = r->u.pool.y->shape[1];
  return HEDDLE_OK;
}

/* What points into the region is not to outlive it. */
static void forget_region(reading *r) {
  if (r->what == INT8_PRODUCT) {
    int8_product *p = &r->u.product;
    p->region = NULL;
    p->node = NULL;
    p->x = p->w = p->y = p->x_zero = p->w_zero = p->bias = NULL;
    p->x_scale = p->w_scale = p->y_scale = NULL;
  } else if (r->what == INT8_SUM) {
    r->u.sum.a = r->u.sum.b = r->u.sum.y = NULL;
  } else if (r->what == INT8_POOL) {
    r->u.pool.x = r->u.pool.y = NULL;
  } else {
    r->u.table = (int8_table){.region = NULL};
  }
}

static void free_op(onednn_special *special) {
  onednn_int8 *op = (onednn_int8 *)special;
  const heddle_host *host = op->self->host;
  for (uint32_t k = 0; k < INT8_KINDS; k++)
    if (op->primitives[k] != NULL) dnnl_primitive_destroy(op->primitives[k]);
  for (uint32_t g = 0; g < INT8_GROUPS * INT8_PIECES; g++) {
    if (op->packed[g] != NULL) dnnl_memory_destroy(op->packed[g]);
    host->free(host->ctx, op->packed_bytes[g]);
  }
  int8_plan_drop(&op->plan);
  int8_weights_free(&op->weights);
  host->free(host->ctx, op);
}

heddle_status onednn_int8_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                  onednn_special **out, uint32_t *made, heddle_error *err) {
  reading r;
  answer a;
  int8_plan plan = {.self = self};
  dnnl_status_t d = dnnl_unimplemented;
  if (!read_region(self, region, &r)) return HEDDLE_OK;
  for (uint32_t number = 0; number < 2 && *made <= offer; number++) {
    int8_plan_drop(&plan);
    d = answer_of(self, region, &r, number, &plan, &a);
    if (d == dnnl_out_of_memory) return onednn_fail(d, "asking for a primitive", err);
    *made += d == dnnl_success;
  }
  if (*made <= offer || d != dnnl_success) {
    int8_plan_drop(&plan);
    return HEDDLE_OK;
  }
  onednn_int8 *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(onednn_int8));
  if (op == NULL) {
    int8_plan_drop(&plan);
    return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  }
  memset(op, 0, sizeof *op);
  op->special = (onednn_special){.free = free_op, .bind = onednn_int8_bind};
  op->self = self;
  op->lanes = int8_lanes_here();
  op->read = r;
  op->plan = plan;
  heddle_status s = fill(op, region, &a, err);
  forget_region(&op->read);
  if (s != HEDDLE_OK) {
    free_op(&op->special);
    return s;
  }
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const bool is_input = i < region->n_inputs;
    const heddle_pvalue *v = region_value(region, is_input ? region->inputs[i] : region->outputs[i - region->n_inputs]);
    operands[i] = (cpu_operand){0, 1};
    if (is_input && a.flags[i] != 0) continue;
    region_value_bytes(v, &operands[i].bytes);
    operands[i].align = (uint64_t)v->dtype.bits / 8;
  }
  *out = &op->special;
  return HEDDLE_OK;
}
