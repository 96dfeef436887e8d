/* Quantised regions as the plugin offers, prepares and runs them. An op keeps what it has of its constants, packed, so
 * that they are absorbed. A launch has memory objects of oneDNN for each task and kind of block. */
#include "onednn_int8.h"

#include "cpu.h"

#include <math.h>

#define PART_NS 30000.0

typedef enum int8_what { INT8_PRODUCT, INT8_SUM, INT8_POOL } int8_what;

/* A region as it was read. */
typedef struct reading {
  int8_what what;
  union {
    int8_product product;
    int8_sum sum;
    int8_pool pool;
  } u;
} reading;

struct onednn_int8 {
  const onednn *self;
  const int8_lanes *lanes;
  reading read;   /* without what points into the region */
  int8_plan plan; /* of a product; its primitive descriptors are the op's */
  int8_weights weights;
  dnnl_primitive_t primitives[INT8_KINDS];
  dnnl_memory_t packed[INT8_GROUPS];
  void *packed_bytes[INT8_GROUPS];
  uint64_t workspace;
  uint32_t tasks, slots[2], zero_slot, times_slot, plus_slot; /* UINT32_MAX: none */
  bool x_signed, y_signed;
  int64_t count, channels, images; /* of a sum: elements; of a pool */
  int8_mix mix;
};

/* Of a task: the arguments of each kind. */
typedef struct task {
  dnnl_stream_t stream;
  dnnl_memory_t src[INT8_KINDS], dst[INT8_KINDS], scratch[INT8_KINDS];
  dnnl_status_t status;
  uint32_t reserved;
  int32_t *acc;
} task;

struct onednn_int8_launch {
  const onednn_int8 *op;
  const char *in[2];
  char *out;
  const void *zero;
  const float *times, *plus; /* of a real product */
  float *factors;            /* one a channel, where times is one number */
  int32_t *table;
  task tasks[];
};

/* Only with instructions for products of bytes are oneDNN's sums exact: older ones saturate on the way. */
bool onednn_int8_able(const onednn *self) {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return self != NULL && ((isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
                          (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni);
}

static bool read_region(const onednn *self, const heddle_pregion *region, reading *out) {
  if (!onednn_int8_able(self)) return false;
  out->what = INT8_PRODUCT;
  if (int8_read_product(region, &out->u.product)) return true;
  out->what = INT8_POOL;
  if (int8_read_pool(region, &out->u.pool)) return true;
  out->what = INT8_SUM;
  return int8_read_sum(region, &out->u.sum);
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
  value_count(value, &n);
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
  uint64_t workspace;
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

/* Offers of a region: a sum has one row-major and one channels last, everything else one. plan: made for a product. */
static dnnl_status_t answer_of(const onednn *self, const heddle_pregion *region, const reading *r, uint32_t number,
                               int8_plan *plan, answer *a) {
  bool found = true;
  *a = (answer){.cost_ns = 600};
  *plan = (int8_plan){.self = self};
  if (number > (r->what == INT8_SUM)) return dnnl_unimplemented;
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
  } else if (r->what == INT8_POOL) {
    const ref_window *w = &r->u.pool.window;
    take_input(region, a, r->u.pool.value, last_token(self, r->u.pool.x, &found));
    if (found) a->out = last_token(self, r->u.pool.y, &found);
    a->cost_ns += elements(r->u.pool.y) * (double)(w->kernel[1] * w->kernel[2]) * 0.04;
  } else {
    const int8_sum *u = &r->u.sum;
    if (number == 1 && u->y->ndim >= 3 && u->y->ndim <= 5) a->out = last_token(self, u->y, &found);
    if (number == 1 && a->out == 0) found = false;
    for (int k = 0; k < 2; k++) take_input(region, a, u->values[k], a->out);
    a->cost_ns += elements(u->y) * 0.1;
  }
  if (!found) return dnnl_unimplemented;
  for (uint32_t i = 0; i < region->n_inputs; i++) /* what is absorbed has to be known */
    if (a->flags[i] != 0 && region_value(region, region->inputs[i])->data == NULL) return dnnl_unimplemented;
  return dnnl_success;
}

heddle_status onednn_int8_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                                uint32_t *made, heddle_error *err) {
  reading r;
  answer a;
  int8_plan plan;
  *made = 0;
  if (!read_region(self, region, &r)) return HEDDLE_OK;
  for (uint32_t number = 0; number < 2; number++) {
    dnnl_status_t d = answer_of(self, region, &r, number, &plan, &a);
    int8_plan_drop(&plan);
    if (d == dnnl_out_of_memory) return onednn_fail(d, "asking for a primitive", err);
    if (d != dnnl_success) continue;
    const heddle_poffer as = {.struct_size = sizeof as,
                              .input_layouts = a.in,
                              .output_layouts = &a.out,
                              .input_flags = a.flags,
                              .workspace_bytes = a.workspace,
                              .workspace_align = CPU_ALIGNMENT,
                              .cost_ns = a.cost_ns};
    heddle_status s = offer(sink, &as, err);
    if (s != HEDDLE_OK) return s;
    ++*made;
  }
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

static dnnl_status_t plain_weights(const int8_product *p, int64_t channels, dnnl_memory_desc_t *out) {
  const int64_t depth = p->in_channels / p->groups;
  const dnnl_dims_t matrix = {depth, channels}, dims = {channels, depth, p->window.kernel[1], p->window.kernel[2]};
  const dnnl_dims_t grouped = {p->groups, channels / p->groups, depth, p->window.kernel[1], p->window.kernel[2]};
  if (p->matmul) return dnnl_memory_desc_create_with_tag(out, 2, matrix, dnnl_s8, dnnl_ab);
  if (p->groups > 1) return dnnl_memory_desc_create_with_tag(out, 5, grouped, dnnl_s8, dnnl_abcde);
  return dnnl_memory_desc_create_with_tag(out, 4, dims, dnnl_s8, dnnl_abcd);
}

/* Reorders plain, the weights of a group as they are read, to op->packed[group]. */
static dnnl_status_t reorder(onednn_int8 *op, uint32_t group, const_dnnl_memory_desc_t md, int64_t channels,
                             void *plain) {
  const onednn *self = op->self;
  dnnl_memory_desc_t from = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_stream_t stream = NULL;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t s = dnnl_memory_create(&op->packed[group], md, self->engine, op->packed_bytes[group]);
  args[1].memory = op->packed[group];
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

static dnnl_status_t pack(onednn_int8 *op, uint32_t group) {
  const int8_plan *plan = &op->plan;
  const int8_product *p = &op->read.u.product;
  const heddle_host *host = op->self->host;
  const int8_block block = int8_plan_block(plan, group); /* the first image's blocks are its groups */
  const int8_kind *kind = &plan->kinds[plan->groups > 1 ? block.kind : 0];
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(kind->pd, dnnl_query_weights_md, 0);
  const size_t bytes = (size_t)((kind->channels + plan->ones) * (p->in_channels / p->groups) * p->taps);
  const size_t size = dnnl_memory_desc_get_size(md);
  int8_t *plain = host->alloc(host->ctx, bytes, CPU_ALIGNMENT);
  op->packed_bytes[group] = host->alloc(host->ctx, size, CPU_ALIGNMENT);
  dnnl_status_t s = plain != NULL && op->packed_bytes[group] != NULL ? dnnl_success : dnnl_out_of_memory;
  if (s == dnnl_success) {
    memset(op->packed_bytes[group], 0, size);
    gather(p, &op->weights, plan->ones, block.first_channel, kind->channels, plain);
    s = reorder(op, group, md, kind->channels + plan->ones, plain);
  }
  host->free(host->ctx, plain);
  return s;
}

static heddle_status prepare_product(onednn_int8 *op, const int8_product *p, heddle_error *err) {
  heddle_status s = int8_weights_make(op->self->host, p, &op->weights, err);
  if (s != HEDDLE_OK) return s;
  const int before = onednn_threads_enter(op->self);
  dnnl_status_t d = dnnl_success;
  for (uint32_t g = 0; g < op->plan.groups && d == dnnl_success; g++) d = pack(op, g);
  for (uint32_t k = 0; k < op->plan.n_kinds && d == dnnl_success; k++)
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
  op->workspace = a->workspace;
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
  op->slots[0] = slot_of(region, r->u.pool.value);
  op->images = r->u.pool.y->shape[0];
  op->channels = r->u.pool.y->shape[1];
  return HEDDLE_OK;
}

heddle_status onednn_int8_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                  onednn_int8 **out, uint32_t *made, heddle_error *err) {
  reading r;
  answer a;
  int8_plan plan = {.self = self};
  dnnl_status_t d = dnnl_unimplemented;
  *out = NULL;
  *made = 0;
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
  op->self = self;
  op->lanes = int8_lanes_here();
  op->read = r;
  op->plan = plan;
  heddle_status s = fill(op, region, &a, err);
  if (s != HEDDLE_OK) {
    onednn_int8_free(op);
    return s;
  }
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const bool is_input = i < region->n_inputs;
    const heddle_pvalue *v = region_value(region, is_input ? region->inputs[i] : region->outputs[i - region->n_inputs]);
    operands[i] = (cpu_operand){0, 1};
    if (is_input && a.flags[i] != 0) continue;
    value_bytes(v, &operands[i].bytes);
    operands[i].align = (uint64_t)v->dtype.bits / 8;
  }
  *out = op;
  return HEDDLE_OK;
}

void onednn_int8_free(onednn_int8 *op) {
  if (op == NULL) return;
  const heddle_host *host = op->self->host;
  for (uint32_t k = 0; k < INT8_KINDS; k++)
    if (op->primitives[k] != NULL) dnnl_primitive_destroy(op->primitives[k]);
  for (uint32_t g = 0; g < INT8_GROUPS; g++) {
    if (op->packed[g] != NULL) dnnl_memory_destroy(op->packed[g]);
    host->free(host->ctx, op->packed_bytes[g]);
  }
  int8_plan_drop(&op->plan);
  int8_weights_free(&op->weights);
  host->free(host->ctx, op);
}

uint64_t onednn_int8_workspace(const onednn_int8 *op) {
  return op->workspace;
}

/* ---------------------------------------------------------------- launches */

static dnnl_status_t bind_kind(const onednn_int8 *op, task *t, uint32_t k, char *scratch) {
  const_dnnl_primitive_desc_t pd = op->plan.kinds[k].pd;
  const_dnnl_memory_desc_t wants = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  dnnl_status_t s = dnnl_memory_create(&t->src[k], dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0),
                                       op->self->engine, DNNL_MEMORY_NONE);
  if (s == dnnl_success)
    s = dnnl_memory_create(&t->dst[k], dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0), op->self->engine,
                           t->acc);
  if (s == dnnl_success && wants != NULL && dnnl_memory_desc_get_size(wants) > 0)
    s = dnnl_memory_create(&t->scratch[k], wants, op->self->engine, scratch);
  return s;
}

static dnnl_status_t bind_product(onednn_int8_launch *launch, char *workspace) {
  const onednn_int8 *op = launch->op;
  dnnl_status_t s = dnnl_success;
  launch->table = op->plan.table_bytes > 0 ? (int32_t *)(void *)workspace : op->weights.add;
  workspace += op->plan.table_bytes;
  launch->factors = op->plan.times_bytes > 0 ? (float *)(void *)workspace : NULL;
  workspace += op->plan.times_bytes;
  for (uint32_t i = 0; i < op->tasks && s == dnnl_success; i++, workspace += op->plan.each) {
    task *t = &launch->tasks[i];
    t->acc = (int32_t *)(void *)workspace;
    s = dnnl_stream_create(&t->stream, op->self->engine, dnnl_stream_default_flags);
    for (uint32_t k = 0; k < op->plan.n_kinds && s == dnnl_success; k++)
      s = bind_kind(op, t, k, workspace + op->plan.acc_bytes);
  }
  return s;
}

heddle_status onednn_int8_bind(const onednn_int8 *op, void *const *inputs, void *const *outputs, void *workspace,
                               onednn_int8_launch **out, heddle_error *err) {
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(onednn_int8_launch) + op->tasks * sizeof(task);
  onednn_int8_launch *launch = host->alloc(host->ctx, bytes, _Alignof(onednn_int8_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->op = op;
  for (int k = 0; k < 2; k++) launch->in[k] = op->slots[k] != UINT32_MAX ? inputs[op->slots[k]] : NULL;
  launch->times = op->times_slot != UINT32_MAX ? inputs[op->times_slot] : NULL;
  launch->plus = op->plus_slot != UINT32_MAX ? inputs[op->plus_slot] : NULL;
  launch->zero = op->zero_slot != UINT32_MAX ? inputs[op->zero_slot] : NULL;
  launch->out = outputs[0];
  dnnl_status_t d = op->read.what == INT8_PRODUCT ? bind_product(launch, workspace) : dnnl_success;
  if (d != dnnl_success) {
    onednn_int8_launch_free(launch);
    return onednn_fail(d, "binding operands", err);
  }
  *out = launch;
  return HEDDLE_OK;
}

void onednn_int8_launch_free(onednn_int8_launch *launch) {
  if (launch == NULL) return;
  const onednn_int8 *op = launch->op;
  for (uint32_t i = 0; i < op->tasks; i++) {
    task *t = &launch->tasks[i];
    for (uint32_t k = 0; k < INT8_KINDS; k++) {
      dnnl_memory_t all[] = {t->src[k], t->dst[k], t->scratch[k]};
      for (int m = 0; m < 3; m++)
        if (all[m] != NULL) dnnl_memory_destroy(all[m]);
    }
    if (t->stream != NULL) dnnl_stream_destroy(t->stream);
  }
  op->self->host->free(op->self->host->ctx, launch);
}

/* ---------------------------------------------------------------- running */

/* Sums to results: runs of places in a row that have the same numbers to add. */
static void finish_block(const onednn_int8_launch *launch, const task *t, const int8_block *block) {
  const onednn_int8 *op = launch->op;
  const int8_weights *w = &op->weights;
  const int8_product *p = &op->read.u.product;
  const int8_kind *kind = &op->plan.kinds[block->kind];
  const int64_t cols = p->window.out[2], rows = p->window.out[1], first = block->first_channel;
  const bool scatter = !p->rounds && !p->matmul;
  const float *scale = p->real && p->times_one ? launch->factors : p->real ? launch->times : w->scale;
  const int8_round r = {.scale = scale != NULL ? scale + first : NULL,
                        .bias = launch->plus != NULL ? launch->plus + first : NULL,
                        .real = p->real,
                        .w_zero = w->w_zero != NULL ? w->w_zero + first : NULL,
                        .least = (float)(p->y_least - p->y_zero),
                        .most = (float)(p->y_most - p->y_zero),
                        .zero = p->y_zero,
                        .channels = kind->channels,
                        .acc_step = kind->channels + w->ones,
                        .out_step = scatter ? kind->channels + w->ones : p->out_channels};
  int32_t *acc = t->acc;
  for (int64_t i = 0; i < kind->rows; i++) {
    const int64_t row = block->row + i, at = (block->image * rows + row) * cols;
    for (int64_t col = 0, run; col < cols; col += run, acc += run * r.acc_step) {
      const int64_t place = w->row_class[row] * w->cols + w->col_class[col];
      for (run = 1; col + run < cols && w->col_class[col + run] == w->col_class[col];) run++;
      const int32_t *add = launch->table + place * p->out_channels + first;
      char *out = launch->out + ((at + col) * p->out_channels + first) * (p->rounds ? 1 : 4);
      op->lanes->round(&r, acc, add, scatter ? (void *)acc : (void *)out, run);
      if (!scatter) continue;
      int32_t *to = (int32_t *)(void *)launch->out;
      for (int64_t c = 0; c < kind->channels; c++)
        for (int64_t k = 0; k < run; k++)
          to[((block->image * p->out_channels + first + c) * rows + row) * cols + col + k] = acc[k * r.acc_step + c];
    }
  }
}

static dnnl_status_t run_block(onednn_int8_launch *launch, task *t, int64_t number) {
  const onednn_int8 *op = launch->op;
  const int8_product *p = &op->read.u.product;
  const int8_block block = int8_plan_block(&op->plan, number);
  const int64_t row_bytes = p->window.in[2] * p->in_channels;
  const char *src = launch->in[0] + (block.image * p->window.in[1] + block.in_row) * row_bytes;
  dnnl_status_t s = dnnl_memory_set_data_handle(t->src[block.kind], (void *)(uintptr_t)src);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, t->src[block.kind]},
                                  {DNNL_ARG_WEIGHTS, op->packed[block.group]},
                                  {DNNL_ARG_DST, t->dst[block.kind]},
                                  {DNNL_ARG_SCRATCHPAD, t->scratch[block.kind]}};
  if (s == dnnl_success)
    s = dnnl_primitive_execute(op->primitives[block.kind], t->stream, t->scratch[block.kind] != NULL ? 4 : 3, args);
  if (s == dnnl_success) s = dnnl_stream_wait(t->stream);
  if (s == dnnl_success) finish_block(launch, t, &block);
  return s;
}

static void run_product(onednn_int8_launch *launch, uint32_t i, uint32_t n) {
  const onednn_int8 *op = launch->op;
  const int before = onednn_threads_enter(op->self);
  for (uint32_t k = i; k < op->tasks; k += n) {
    task *t = &launch->tasks[k];
    const int64_t first = op->plan.blocks * k / op->tasks, last = op->plan.blocks * (k + 1) / op->tasks;
    t->status = dnnl_success;
    for (int64_t b = first; b < last && t->status == dnnl_success; b++) t->status = run_block(launch, t, b);
  }
  onednn_threads_leave(op->self, before);
}

static void run_sum(const onednn_int8_launch *launch, uint32_t i, uint32_t n) {
  const onednn_int8 *op = launch->op;
  const int64_t first = op->count * i / n, last = op->count * (i + 1) / n;
  op->lanes->mix(&op->mix, (const uint8_t *)launch->in[0] + first, (const uint8_t *)launch->in[1] + first,
                 (uint8_t *)launch->out + first, last - first);
}

/* Rows of the result of all images; channels lie side by side. */
static void run_pool(const onednn_int8_launch *launch, uint32_t part, uint32_t parts) {
  const onednn_int8 *op = launch->op;
  const ref_window *w = &op->read.u.pool.window;
  const int64_t rows = op->images * w->out[1], channels = op->channels;
  const uint8_t flip = op->y_signed ? 128 : 0;
  for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; r++) {
    const uint8_t *image = (const uint8_t *)launch->in[0] + r / w->out[1] * w->in[1] * w->in[2] * channels;
    int64_t i0, i1, j0, j1;
    ref_window_taps(w, 1, r % w->out[1], r % w->out[1], &i0, &i1);
    for (int64_t col = 0; col < w->out[2]; col++) {
      uint8_t *out = (uint8_t *)launch->out + (r * w->out[2] + col) * channels;
      ref_window_taps(w, 2, col, col, &j0, &j1);
      memset(out, flip, (size_t)channels);
      for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
          const int64_t y = r % w->out[1] * w->stride[1] + i * w->dilation[1] - w->pad[1];
          const int64_t x = col * w->stride[2] + j * w->dilation[2] - w->pad[2];
          op->lanes->most(out, image + (y * w->in[2] + x) * channels, flip, channels);
        }
    }
  }
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  onednn_int8_launch *launch = arg;
  const int8_what what = launch->op->read.what;
  if (what == INT8_PRODUCT) run_product(launch, i, n);
  else if (what == INT8_SUM) run_sum(launch, i, n);
  else run_pool(launch, i, n);
}

heddle_status onednn_int8_run(onednn_int8_launch *launch, heddle_error *err) {
  const onednn_int8 *op = launch->op;
  const heddle_host *host = op->self->host;
  if (launch->zero != NULL) {
    const int32_t zero = op->x_signed ? *(const int8_t *)launch->zero : *(const uint8_t *)launch->zero;
    int8_weights_add(&op->weights, zero, launch->table);
  }
  for (int64_t c = 0; launch->factors != NULL && c < op->read.u.product.out_channels; c++)
    launch->factors[c] = *launch->times;
  if (op->tasks > 1) host->run_parallel(host->ctx, op->tasks, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  for (uint32_t i = 0; i < op->tasks; i++)
    if (launch->tasks[i].status != dnnl_success)
      return onednn_fail(launch->tasks[i].status, "running a primitive", err);
  return HEDDLE_OK;
}
