/* Attention computed: tiles of rows, of all heads of one batch or of several, go through a product, a Softmax in place
 * and the other product, while their scores are in the cache. Parts take tiles in turn; each has its own scores. */
#include "cpu.h"
#include "onednn_attention.h"
#include "onednn_rows.h"
#include "onednn_sgemm.h"

enum { KINDS = 2 };

/* Scores of a tile: the least level of cache that a core has to itself is about twice that. */
#define TILE_BYTES (INT64_C(800) << 10)

/* A size of tiles. */
typedef struct kind {
  int64_t batch, rows;
  dnnl_primitive_desc_t pd[2]; /* Q K', and scores V */
  dnnl_primitive_t product[2]; /* NULL: own has it */
  onednn_sgemm own[2];
} kind;

typedef struct heads {
  attention a;
  int64_t batch, rows; /* of a tile */
  uint32_t across, tiles, parts, n_kinds;
  bool fast;                           /* Q, K and V are bfloat16, and scores become it */
  uint64_t score_bytes, scratch_bytes; /* of a part */
  kind kinds[KINDS];
} heads;

typedef struct attention_op {
  onednn_special special;
  onednn *self;
  onednn_softmax_row softmax;
  heads h;
} attention_op;

enum { Q, K, V, OUT, SCORES, SCRATCH, MEMORIES };

/* A part: what its primitives use, for each kind of tile. */
typedef struct part {
  dnnl_stream_t stream;
  dnnl_memory_t memory[KINDS][2][MEMORIES];
  float *scores; /* in bfloat16 behind the Softmax, where the operator is fast */
  dnnl_status_t status;
  bool skipped; /* tiles, since the run was to end */
} part;

typedef struct attention_launch {
  onednn_special_launch special;
  const attention_op *op;
  char *q, *k, *v, *out;
  const float *mask;
  part parts[];
} attention_launch;

/* ---------------------------------------------------------------- tiles */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

double attention_cost(const attention *a) {
  const double scores = (double)a->batch * (double)a->heads * (double)a->rows * (double)a->keys;
  return 3000 + scores * (0.02 * (double)(a->q.dims[3] + a->v.dims[3]) + 0.5);
}

/* Whole batches where they are small, else rows of one; as many tiles as parts are worth having, where there are rows
 * enough. */
static void cut(const onednn *self, heads *h) {
  enum { FEW_ROWS = 16, MANY_ROWS = 64 };
  const attention *a = &h->a;
  const int64_t threads = self->host->parallelism(self->host->ctx);
  int64_t wanted = onednn_parts_for(self, attention_cost(a));
  if (wanted > threads && a->batch * a->rows / wanted < MANY_ROWS) wanted = threads; /* each part packs K and V */
  const int64_t row_bytes = a->heads * a->keys * (int64_t)sizeof(float);
  h->batch = least(a->batch, TILE_BYTES / row_bytes / a->rows);
  h->batch = least(h->batch, (a->batch + wanted - 1) / wanted);
  if (h->batch < 1 || a->inner != a->batch) h->batch = 1; /* those of several outer places have no one stride */
  h->rows = a->rows;
  if (h->batch == 1) {
    const int64_t each = (wanted + a->batch - 1) / a->batch; /* tiles of a batch, for the parts */
    h->rows = least(least(TILE_BYTES / row_bytes, (a->rows + each - 1) / each), a->rows);
    h->rows = least((h->rows + FEW_ROWS - 1) / FEW_ROWS * FEW_ROWS, a->rows);
    if (h->rows < 1) h->rows = least(FEW_ROWS, a->rows);
  }
  h->across = (uint32_t)((a->rows + h->rows - 1) / h->rows);
  h->tiles = h->across * (uint32_t)((a->batch + h->batch - 1) / h->batch);
  h->parts = (uint32_t)least(wanted, h->tiles);
  h->score_bytes = (uint64_t)(h->batch * h->rows * row_bytes);
  h->score_bytes = (h->score_bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* ---------------------------------------------------------------- primitives */

static dnnl_status_t describe(const attention_view *v, int64_t batch, int64_t rows, bool fast,
                              dnnl_memory_desc_t *out) {
  onednn_view view = {.ndims = ATTENTION_DIMS, .type = fast ? dnnl_bf16 : dnnl_f32};
  memcpy(view.dims, v->dims, sizeof v->dims);
  memcpy(view.strides, v->strides, sizeof v->strides);
  if (view.dims[0] != 1) view.dims[0] = batch;
  if (rows > 0) view.dims[2] = rows;
  return onednn_plain(&view, out);
}

static bool is_fast(const_dnnl_primitive_desc_t pd) {
  const char *name = "ref";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return strstr(name, "ref") == NULL;
}

static uint64_t bytes_of(const_dnnl_primitive_desc_t pd, int arg) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
  return md != NULL ? dnnl_memory_desc_get_size(md) : 0;
}

static dnnl_status_t make_kind(const onednn *self, heads *h, kind *k) {
  const attention *a = &h->a;
  const attention_view scores = {.dims = {a->batch, a->heads, a->rows, a->keys},
                                 .strides = {a->heads * k->rows * a->keys, k->rows * a->keys, a->keys, 1}};
  dnnl_memory_desc_t q = NULL, key = NULL, v = NULL, out = NULL, s = NULL, w = NULL;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_status_t d = describe(&a->q, k->batch, k->rows, h->fast, &q);
  if (d == dnnl_success) d = describe(&a->k, k->batch, 0, h->fast, &key);
  if (d == dnnl_success) d = describe(&a->v, k->batch, 0, h->fast, &v);
  if (d == dnnl_success) d = describe(&a->out, k->batch, k->rows, false, &out);
  if (d == dnnl_success) d = describe(&scores, k->batch, k->rows, false, &s);
  if (d == dnnl_success) d = describe(&scores, k->batch, k->rows, h->fast, &w);
  if (d == dnnl_success) d = dnnl_primitive_attr_create(&attr);
  if (d == dnnl_success) d = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (d == dnnl_success) d = onednn_matmul_pd(self, &k->pd[0], q, key, NULL, s, attr);
  if (d == dnnl_success) d = onednn_matmul_pd(self, &k->pd[1], w, v, NULL, out, attr);
  for (int i = 0; i < 2 && d == dnnl_success; i++) {
    const uint64_t bytes = bytes_of(k->pd[i], DNNL_ARG_SCRATCHPAD);
    if (!is_fast(k->pd[i])) d = dnnl_unimplemented;
    if (bytes > h->scratch_bytes) h->scratch_bytes = (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
  }
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  if (w != NULL) dnnl_memory_desc_destroy(w);
  if (s != NULL) dnnl_memory_desc_destroy(s);
  if (out != NULL) dnnl_memory_desc_destroy(out);
  if (v != NULL) dnnl_memory_desc_destroy(v);
  if (key != NULL) dnnl_memory_desc_destroy(key);
  if (q != NULL) dnnl_memory_desc_destroy(q);
  return d;
}

static void drop(heads *h) {
  for (uint32_t i = 0; i < h->n_kinds; i++)
    for (int p = 0; p < 2; p++) {
      if (h->kinds[i].product[p] != NULL) dnnl_primitive_destroy(h->kinds[i].product[p]);
      if (h->kinds[i].pd[p] != NULL) dnnl_primitive_desc_destroy(h->kinds[i].pd[p]);
    }
}

/* dnnl_unimplemented where the region is no attention, or no fast one. What was made is to be dropped in any case. */
static dnnl_status_t plan(const onednn *self, const heddle_pregion *region, heads *h) {
  dnnl_status_t s = dnnl_success;
  *h = (heads){.fast = self->bf16 && (region->flags & HEDDLE_REGION_FAST) != 0};
  if (onednn_find_softmax() == NULL || !attention_read(region, &h->a)) return dnnl_unimplemented;
  if (h->a.mask == h->a.q.slot || h->a.mask == h->a.k.slot || h->a.mask == h->a.v.slot)
    h->fast = false; /* read as floats */
  cut(self, h);
  const int before = onednn_threads_enter(self);
  for (int i = 0; i < KINDS && s == dnnl_success; i++) {
    const int64_t batch = i == 0 ? h->batch : h->a.batch % h->batch;
    const int64_t rows = i == 0 ? h->rows : h->a.rows % h->rows;
    if (batch == 0 && rows == 0) break;
    kind *k = &h->kinds[h->n_kinds++];
    k->batch = batch != 0 ? batch : h->batch;
    k->rows = rows != 0 ? rows : h->rows;
    s = make_kind(self, h, k);
  }
  onednn_threads_leave(self, before);
  return s;
}

/* How lengths of a region that will change are served. */
typedef enum changes { NONE, LENGTHS, CACHE } changes;

static changes changes_of(const onednn *self, const heddle_pregion *region, const heads *h, uint64_t *workspace) {
  if ((region->flags & HEDDLE_REGION_OPEN) == 0 || h->fast) return NONE;
  if (attention_lengths_fit(&h->a, h->parts, workspace)) return LENGTHS;
  return attention_cache_fit(self, &h->a, workspace) ? CACHE : NONE;
}

static uint64_t workspace_of(const heads *h) {
  return h->parts * (h->score_bytes + h->scratch_bytes);
}

heddle_status attention_query(const onednn *self, const heddle_pregion *region, heddle_offer_fn offer, void *sink,
                              uint32_t *made, bool *only, heddle_error *err) {
  heads h;
  const dnnl_status_t d = plan(self, region, &h);
  heddle_status s = d == dnnl_out_of_memory ? onednn_fail(d, "asking for attention", err) : HEDDLE_OK;
  if (d == dnnl_success) {
    heddle_layout layouts[ONEDNN_INPUTS] = {0};
    if (h.fast) layouts[h.a.q.slot] = layouts[h.a.k.slot] = layouts[h.a.v.slot] = onednn_plain_layout(dnnl_bf16);
    uint64_t lengths = 0; /* set also where they do not fit */
    const bool resizes = changes_of(self, region, &h, &lengths) != NONE;
    const heddle_poffer answer = {
        .struct_size = sizeof answer,
        .flags = resizes ? HEDDLE_OFFER_RESIZES : 0,
        .input_layouts = layouts,
        .input_flags = h.a.flags,
        .workspace_bytes = resizes ? lengths : workspace_of(&h),
        .workspace_align = CPU_ALIGNMENT,
        .cost_ns = attention_cost(&h.a),
    };
    s = offer(sink, &answer, err);
    *made = *only = s == HEDDLE_OK;
  }
  drop(&h);
  return s;
}

/* ---------------------------------------------------------------- operators */

static void free_op(onednn_special *special) {
  attention_op *op = (attention_op *)special;
  drop(&op->h);
  op->self->host->free(op->self->host->ctx, op);
}

static void free_launch(onednn_special_launch *special) {
  attention_launch *launch = (attention_launch *)special;
  const heddle_host *host = launch->op->self->host;
  for (uint32_t i = 0; i < launch->op->h.parts; i++) {
    part *p = &launch->parts[i];
    for (uint32_t m = 0; m < KINDS * 2 * MEMORIES; m++) {
      dnnl_memory_t memory = p->memory[m / (2 * MEMORIES)][m / MEMORIES % 2][m % MEMORIES];
      if (memory != NULL) dnnl_memory_destroy(memory);
    }
    if (p->stream != NULL) dnnl_stream_destroy(p->stream);
  }
  host->free(host->ctx, launch);
}

static dnnl_status_t add_memory(const attention_op *op, const kind *k, int product, int arg, void *at,
                                dnnl_memory_t *out) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(k->pd[product], dnnl_query_exec_arg_md, arg);
  return dnnl_memory_create(out, md, op->self->engine, at);
}

static dnnl_status_t bind_part(const attention_op *op, char *workspace, part *p) {
  dnnl_status_t s = dnnl_stream_create(&p->stream, op->self->engine, dnnl_stream_default_flags);
  p->scores = (float *)(void *)workspace;
  for (uint32_t i = 0; i < op->h.n_kinds; i++) {
    const kind *k = &op->h.kinds[i];
    dnnl_memory_t(*m)[MEMORIES] = p->memory[i];
    if (s == dnnl_success) s = add_memory(op, k, 0, DNNL_ARG_SRC, NULL, &m[0][Q]);
    if (s == dnnl_success) s = add_memory(op, k, 0, DNNL_ARG_WEIGHTS, NULL, &m[0][K]);
    if (s == dnnl_success) s = add_memory(op, k, 0, DNNL_ARG_DST, p->scores, &m[0][SCORES]);
    if (s == dnnl_success) s = add_memory(op, k, 1, DNNL_ARG_SRC, p->scores, &m[1][SCORES]);
    if (s == dnnl_success) s = add_memory(op, k, 1, DNNL_ARG_WEIGHTS, NULL, &m[1][V]);
    if (s == dnnl_success) s = add_memory(op, k, 1, DNNL_ARG_DST, NULL, &m[1][OUT]);
    for (int product = 0; product < 2 && s == dnnl_success; product++)
      if (bytes_of(k->pd[product], DNNL_ARG_SCRATCHPAD) > 0)
        s = add_memory(op, k, product, DNNL_ARG_SCRATCHPAD, workspace + op->h.score_bytes, &m[product][SCRATCH]);
  }
  return s;
}

static dnnl_status_t set(const attention *a, dnnl_memory_t memory, const attention_view *v, char *base, size_t size,
                         int64_t batch, int64_t row) {
  const int64_t at = v->offset + attention_batch_at(a, v, batch) + row * v->strides[2];
  return dnnl_memory_set_data_handle(memory, base + at * (int64_t)size);
}

static dnnl_status_t execute(const kind *k, int product, const part *p, const dnnl_memory_t *m) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, m[product == 0 ? Q : SCORES]},
                                  {DNNL_ARG_WEIGHTS, m[product == 0 ? K : V]},
                                  {DNNL_ARG_DST, m[product == 0 ? SCORES : OUT]},
                                  {DNNL_ARG_SCRATCHPAD, m[SCRATCH]}};
  const int n = m[SCRATCH] != NULL ? 4 : 3;
  return onednn_sgemm_execute(&k->own[product], k->product[product], p->stream, n, args);
}

static void soften(const attention_launch *launch, const kind *k, float *scores, int64_t batch, int64_t row) {
  const attention_op *op = launch->op;
  const attention *a = &op->h.a;
  const float *mask = NULL;
  uint16_t *narrow = (uint16_t *)(void *)scores; /* never ahead of what is still to be read */
  for (int64_t b = 0; b < k->batch; b++)
    for (int64_t h = 0; h < a->heads; h++)
      for (int64_t r = 0; r < k->rows; r++, scores += a->keys, narrow += a->keys) {
        if (launch->mask != NULL)
          mask =
              launch->mask + attention_mask_at(a, batch + b) + h * a->mask_strides[1] + (row + r) * a->mask_strides[2];
        op->softmax(scores, scores, mask, a->scale, a->keys);
        attention_guard(a, scores);
        if (op->h.fast) onednn_narrow(narrow, scores, a->keys);
      }
}

static dnnl_status_t run_tile(const attention_launch *launch, part *p, uint32_t tile) {
  const heads *h = &launch->op->h;
  const attention *a = &h->a;
  const int64_t batch = tile / h->across * h->batch, row = tile % h->across * h->rows;
  const uint32_t i = a->batch - batch < h->batch || a->rows - row < h->rows ? 1 : 0;
  const kind *k = &h->kinds[i];
  dnnl_memory_t(*m)[MEMORIES] = p->memory[i];
  const size_t size = h->fast ? sizeof(uint16_t) : sizeof(float);
  dnnl_status_t s = set(a, m[0][Q], &a->q, launch->q, size, batch, row);
  if (s == dnnl_success) s = set(a, m[0][K], &a->k, launch->k, size, batch, 0);
  if (s == dnnl_success) s = set(a, m[1][V], &a->v, launch->v, size, batch, 0);
  if (s == dnnl_success) s = set(a, m[1][OUT], &a->out, launch->out, sizeof(float), batch, row);
  if (s == dnnl_success) s = execute(k, 0, p, m[0]);
  if (s != dnnl_success) return s;
  soften(launch, k, p->scores, batch, row);
  return execute(k, 1, p, m[1]);
}

/* Tiles i, i + n, ...: a nested call computes them all. */
static void run_part(void *arg, uint32_t i, uint32_t n) {
  attention_launch *launch = arg;
  const onednn *self = launch->op->self;
  part *p = &launch->parts[i];
  const int before = onednn_threads_enter(self);
  p->status = dnnl_success;
  p->skipped = false;
  for (uint32_t tile = i; tile < launch->op->h.tiles && p->status == dnnl_success && !p->skipped; tile += n) {
    p->skipped = tile > 0 && onednn_stops(self);
    if (!p->skipped) p->status = run_tile(launch, p, tile);
  }
  onednn_threads_leave(self, before);
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  attention_launch *launch = (attention_launch *)special;
  const heddle_host *host = launch->op->self->host;
  const uint32_t parts = launch->op->h.parts;
  if (parts > 1) host->run_parallel(host->ctx, parts, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  for (uint32_t i = 0; i < parts; i++) {
    if (launch->parts[i].status != dnnl_success) return onednn_fail(launch->parts[i].status, "running attention", err);
    if (launch->parts[i].skipped) return onednn_stopped(launch->op->self, err);
  }
  return HEDDLE_OK;
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  attention_op *op = (attention_op *)special;
  const attention *a = &op->h.a;
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(attention_launch) + op->h.parts * sizeof(part);
  attention_launch *launch = host->alloc(host->ctx, bytes, _Alignof(attention_launch));
  dnnl_status_t s = dnnl_success;
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run};
  launch->op = op;
  launch->q = inputs[a->q.slot];
  launch->k = inputs[a->k.slot];
  launch->v = inputs[a->v.slot];
  launch->mask = a->mask != UINT32_MAX ? inputs[a->mask] : NULL;
  launch->out = outputs[0];
  for (uint32_t i = 0; i < op->h.parts && s == dnnl_success; i++)
    s = bind_part(op, (char *)workspace + i * (op->h.score_bytes + op->h.scratch_bytes), &launch->parts[i]);
  if (s != dnnl_success) {
    free_launch(&launch->special);
    return onednn_fail(s, "binding operands", err);
  }
  *out = &launch->special;
  return HEDDLE_OK;
}

static void set_operands(const heads *h, const heddle_pregion *region, cpu_operand *operands) {
  for (uint32_t i = 0; i < region->n_inputs + region->n_outputs; i++) {
    const bool in = i < region->n_inputs;
    operands[i] = (cpu_operand){0, 1};
    if (in && (h->a.flags[i] & HEDDLE_INPUT_ABSORBED) != 0) continue;
    region_value_bytes(region_value(region, in ? region->inputs[i] : region->outputs[0]), &operands[i].bytes);
    operands[i].align = sizeof(float);
    if (in && h->fast && (i == h->a.q.slot || i == h->a.k.slot || i == h->a.v.slot)) operands[i].bytes /= 2;
  }
}

heddle_status attention_prepare(onednn *self, const heddle_pregion *region, uint32_t offer, cpu_operand *operands,
                                onednn_special **out, uint32_t *made, heddle_error *err) {
  heads h;
  attention_op *op = NULL;
  uint64_t workspace;
  dnnl_status_t d = plan(self, region, &h);
  *made = d == dnnl_success;
  if (d != dnnl_success && d != dnnl_out_of_memory) d = dnnl_unimplemented; /* as query has it */
  if (offer > 0 && d == dnnl_success) d = dnnl_unimplemented;
  const changes how = d == dnnl_success ? changes_of(self, region, &h, &workspace) : NONE;
  if (how != NONE) {
    drop(&h);
    set_operands(&h, region, operands);
    return how == CACHE ? attention_cache_make(self, &h.a, out, err)
                        : attention_lengths_make(self, &h.a, h.parts, out, err);
  }
  const int before = onednn_threads_enter(self);
  for (uint32_t i = 0; i < h.n_kinds && d == dnnl_success; i++)
    for (int p = 0; p < 2 && d == dnnl_success; p++)
      d = onednn_sgemm_or_primitive(self, h.kinds[i].pd[p], &h.kinds[i].own[p], &h.kinds[i].product[p]);
  onednn_threads_leave(self, before);
  if (d == dnnl_success) op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(attention_op));
  if (op == NULL) {
    drop(&h);
    if (d == dnnl_success) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
    return d == dnnl_unimplemented ? HEDDLE_OK : onednn_fail(d, "making attention", err);
  }
  *op = (attention_op){.special = {.workspace = workspace_of(&h), .free = free_op, .bind = bind},
                       .self = self,
                       .softmax = onednn_find_softmax(),
                       .h = h};
  set_operands(&h, region, operands);
  *out = &op->special;
  return HEDDLE_OK;
}
