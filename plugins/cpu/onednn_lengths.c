/* Attention over lengths that change (attention_lengths in onednn_attention.h). Scores are made in tiles of rows and blocks
 * of keys of a few sizes, for each of which there is a primitive; no primitive depends on a length. What is left of the
 * rows or keys behind the last whole block is computed in smaller blocks, the last of which may begin a little earlier: rows
 * are then computed twice, and weights of keys that were counted are set to 0. */
#include "cpu.h"
#include "onednn_attention.h"
#include "onednn_rows.h"

enum { RUNGS = 4, BLOCKS = 4 };
static const int64_t row_sizes[RUNGS] = {1, 8, 32, 64};
static const int64_t key_sizes[BLOCKS] = {1, 8, 32, 64};

/* Scores of a tile. */
#define TILE_BYTES (INT64_C(800) << 10)

enum { Q, K, V, OUT, SCORES, SCRATCH, MEMORIES };

/* Sizes of rows and keys that the bound has; the primitives Q K' and the sum of weights times V. */
typedef struct grid {
  uint32_t rows, keys;
  int64_t pitch; /* floats of a row of scores */
  uint64_t score_bytes, edge_bytes, scratch_bytes;
  dnnl_primitive_desc_t pd[RUNGS][BLOCKS][2];
} grid;

typedef struct lengths_op {
  onednn_special special;
  onednn *self;
  onednn_softmax_row softmax;
  attention a; /* the bound */
  grid g;
  uint32_t parts;
  dnnl_primitive_t product[RUNGS][BLOCKS][2];
} lengths_op;

typedef struct part {
  dnnl_stream_t stream;
  dnnl_memory_t memory[RUNGS][BLOCKS][2][MEMORIES];
  float *scores, *edge; /* edge: the weights of a last block of keys */
  dnnl_status_t status;
  bool skipped;
} part;

typedef struct lengths_launch {
  onednn_special_launch special;
  const lengths_op *op;
  attention a; /* as it is now */
  float *q, *k, *v, *out;
  const float *mask;
  part parts[];
} lengths_launch;

/* ---------------------------------------------------------------- primitives */

static uint64_t round_up(uint64_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static dnnl_status_t describe(const attention_view *v, int64_t rows, int64_t columns, dnnl_memory_desc_t *out) {
  onednn_view view = {.ndims = ATTENTION_DIMS, .type = dnnl_f32};
  memcpy(view.dims, v->dims, sizeof v->dims);
  memcpy(view.strides, v->strides, sizeof v->strides);
  view.dims[0] = 1;
  view.dims[2] = rows;
  view.dims[3] = columns;
  return onednn_plain(&view, out);
}

static uint64_t scratch_of(const_dnnl_primitive_desc_t pd) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, DNNL_ARG_SCRATCHPAD);
  return md != NULL ? round_up(dnnl_memory_desc_get_size(md)) : 0;
}

static bool is_fast(const_dnnl_primitive_desc_t pd) {
  const char *name = "ref";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return strstr(name, "ref") == NULL;
}

static dnnl_status_t make_attr(bool sums, dnnl_primitive_attr_t *out) {
  dnnl_post_ops_t posts = NULL;
  dnnl_status_t s = dnnl_primitive_attr_create(out);
  if (s == dnnl_success) s = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
  if (s == dnnl_success && sums) s = dnnl_post_ops_create(&posts);
  if (s == dnnl_success && sums) s = dnnl_post_ops_append_sum(posts, 1.0f, 0, dnnl_data_type_undef);
  if (s == dnnl_success && sums) s = dnnl_primitive_attr_set_post_ops(*out, posts);
  if (posts != NULL) dnnl_post_ops_destroy(posts);
  return s;
}

/* Weights lie with the scores, but for those of a last block, which lie side by side: both pitches are the tile's. */
static dnnl_status_t make_pair(const onednn *self, const attention *a, grid *g, uint32_t r, uint32_t k) {
  const int64_t rows = row_sizes[r], keys = key_sizes[k];
  const attention_view scores = {.dims = {1, a->heads, rows, keys},
                                 .strides = {a->heads * rows * g->pitch, rows * g->pitch, g->pitch, 1}};
  dnnl_memory_desc_t q = NULL, key = NULL, v = NULL, out = NULL, w = NULL;
  dnnl_primitive_attr_t plain = NULL, sum = NULL;
  dnnl_status_t s = describe(&a->q, rows, a->q.dims[3], &q);
  if (s == dnnl_success) s = describe(&a->k, a->k.dims[2], keys, &key);
  if (s == dnnl_success) s = describe(&a->v, keys, a->v.dims[3], &v);
  if (s == dnnl_success) s = describe(&a->out, rows, a->out.dims[3], &out);
  if (s == dnnl_success) s = describe(&scores, rows, keys, &w);
  if (s == dnnl_success) s = make_attr(false, &plain);
  if (s == dnnl_success) s = make_attr(true, &sum);
  if (s == dnnl_success) s = onednn_matmul_pd(self, &g->pd[r][k][0], q, key, NULL, w, plain);
  if (s == dnnl_success) s = dnnl_matmul_primitive_desc_create(&g->pd[r][k][1], self->engine, w, v, NULL, out, sum);
  for (int i = 0; i < 2 && s == dnnl_success; i++) {
    const uint64_t bytes = scratch_of(g->pd[r][k][i]);
    if (bytes > g->scratch_bytes) g->scratch_bytes = bytes;
    if (!is_fast(g->pd[r][k][i])) s = dnnl_unimplemented;
  }
  if (sum != NULL) dnnl_primitive_attr_destroy(sum);
  if (plain != NULL) dnnl_primitive_attr_destroy(plain);
  if (w != NULL) dnnl_memory_desc_destroy(w);
  if (out != NULL) dnnl_memory_desc_destroy(out);
  if (v != NULL) dnnl_memory_desc_destroy(v);
  if (key != NULL) dnnl_memory_desc_destroy(key);
  if (q != NULL) dnnl_memory_desc_destroy(q);
  return s;
}

static void drop(grid *g) {
  for (uint32_t i = 0; i < RUNGS * BLOCKS * 2; i++) {
    dnnl_primitive_desc_t pd = g->pd[i / (BLOCKS * 2)][i / 2 % BLOCKS][i % 2];
    if (pd != NULL) dnnl_primitive_desc_destroy(pd);
  }
}

/* Strides of rows and heads may not depend on a length; those of one row or head do not matter at the bound, and would
 * not be known for more. */
static bool is_steady(const attention *a) {
  const attention_view *views[] = {&a->q, &a->k, &a->v, &a->out};
  const int64_t longest = a->rows > a->keys ? a->rows : a->keys;
  for (int i = 0; i < 4; i++) {
    const int length = i == 1 ? 3 : 2, other = i == 1 ? 2 : 3;
    if (views[i]->strides[other] > views[i]->strides[length] && views[i]->dims[length] > 1) return false;
    if (views[i]->dims[1] > 1 && views[i]->strides[1] >= longest * views[i]->strides[length]) return false;
  }
  return a->rows > 1 && a->keys > 1;
}

/* dnnl_unimplemented where it is not worth it, or does not work. */
static dnnl_status_t plan(const onednn *self, const attention *a, grid *g) {
  dnnl_status_t s = dnnl_success;
  *g = (grid){.pitch = (a->keys + 15) / 16 * 16};
  if (onednn_find_softmax() == NULL || !is_steady(a)) return dnnl_unimplemented;
  const int64_t row_bytes = a->heads * g->pitch * (int64_t)sizeof(float);
  while (g->rows < RUNGS && row_sizes[g->rows] <= a->rows &&
         (g->rows == 0 || row_sizes[g->rows] * row_bytes <= TILE_BYTES))
    g->rows++;
  while (g->keys < BLOCKS && key_sizes[g->keys] <= a->keys) g->keys++;
  g->score_bytes = round_up((uint64_t)(row_sizes[g->rows - 1] * row_bytes));
  g->edge_bytes = g->score_bytes; /* of the same pitch, so that one primitive serves both */
  const int before = onednn_threads_enter(self);
  for (uint32_t r = 0; r < g->rows && s == dnnl_success; r++)
    for (uint32_t k = 0; k < g->keys && s == dnnl_success; k++) s = make_pair(self, a, g, r, k);
  onednn_threads_leave(self, before);
  return s;
}

static uint64_t part_bytes(const grid *g) {
  return g->score_bytes + g->edge_bytes + g->scratch_bytes;
}

bool attention_lengths_fit(const onednn *self, const attention *a, uint32_t parts, uint64_t *workspace) {
  grid g;
  const dnnl_status_t s = plan(self, a, &g);
  *workspace = parts * part_bytes(&g);
  drop(&g);
  return s == dnnl_success;
}

/* ---------------------------------------------------------------- operators and launches */

static void free_op(onednn_special *special) {
  lengths_op *op = (lengths_op *)special;
  for (uint32_t i = 0; i < RUNGS * BLOCKS * 2; i++) {
    dnnl_primitive_t p = op->product[i / (BLOCKS * 2)][i / 2 % BLOCKS][i % 2];
    if (p != NULL) dnnl_primitive_destroy(p);
  }
  drop(&op->g);
  op->self->host->free(op->self->host->ctx, op);
}

static void free_launch(onednn_special_launch *special) {
  lengths_launch *launch = (lengths_launch *)special;
  const heddle_host *host = launch->op->self->host;
  for (uint32_t i = 0; i < launch->op->parts; i++) {
    part *p = &launch->parts[i];
    dnnl_memory_t *all = &p->memory[0][0][0][0];
    for (uint32_t m = 0; m < RUNGS * BLOCKS * 2 * MEMORIES; m++)
      if (all[m] != NULL) dnnl_memory_destroy(all[m]);
    if (p->stream != NULL) dnnl_stream_destroy(p->stream);
  }
  host->free(host->ctx, launch);
}

static dnnl_status_t add_memory(const lengths_op *op, const_dnnl_primitive_desc_t pd, int arg, void *at,
                                dnnl_memory_t *out) {
  return dnnl_memory_create(out, dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg), op->self->engine, at);
}

static dnnl_status_t bind_part(const lengths_op *op, char *workspace, part *p) {
  static const int args[2][3] = {{Q, K, SCORES}, {SCORES, V, OUT}};
  dnnl_status_t s = dnnl_stream_create(&p->stream, op->self->engine, dnnl_stream_default_flags);
  p->scores = (float *)(void *)workspace;
  p->edge = (float *)(void *)(workspace + op->g.score_bytes);
  void *scratch = workspace + op->g.score_bytes + op->g.edge_bytes;
  for (uint32_t i = 0; i < op->g.rows * op->g.keys * 2 && s == dnnl_success; i++) {
    const uint32_t r = i / (op->g.keys * 2), k = i / 2 % op->g.keys, which = i % 2;
    const_dnnl_primitive_desc_t pd = op->g.pd[r][k][which];
    dnnl_memory_t *m = p->memory[r][k][which];
    s = add_memory(op, pd, DNNL_ARG_SRC, NULL, &m[args[which][0]]);
    if (s == dnnl_success) s = add_memory(op, pd, DNNL_ARG_WEIGHTS, NULL, &m[args[which][1]]);
    if (s == dnnl_success) s = add_memory(op, pd, DNNL_ARG_DST, NULL, &m[args[which][2]]);
    if (s == dnnl_success && scratch_of(pd) > 0) s = add_memory(op, pd, DNNL_ARG_SCRATCHPAD, scratch, &m[SCRATCH]);
  }
  return s;
}

static void set_operands(lengths_launch *launch, void *const *inputs, void *const *outputs) {
  const attention *a = &launch->a;
  launch->q = inputs[a->q.slot];
  launch->k = inputs[a->k.slot];
  launch->v = inputs[a->v.slot];
  launch->mask = a->mask != UINT32_MAX ? inputs[a->mask] : NULL;
  launch->out = outputs[0];
}

/* The same operands with the same strides within a batch; every length may be another. */
static bool same_view(const attention_view *a, const attention_view *b, int length) {
  for (int d = 1; d < ATTENTION_DIMS; d++) {
    if (d != length && a->dims[d] != b->dims[d]) return false;
    if (a->strides[d] != b->strides[d] && a->dims[d] != 1) return false;
  }
  return a->slot == b->slot && a->dims[length] <= b->dims[length];
}

static heddle_status resize(onednn_special_launch *special, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err) {
  lengths_launch *launch = (lengths_launch *)special;
  const attention *bound = &launch->op->a;
  attention a;
  if (!attention_read(region, &a) || a.heads != bound->heads || a.mask != bound->mask || a.keys > bound->keys ||
      a.rows > bound->rows || memcmp(&a.scale, &bound->scale, sizeof a.scale) != 0 || !same_view(&a.q, &bound->q, 2) ||
      !same_view(&a.k, &bound->k, 3) || !same_view(&a.v, &bound->v, 2) || !same_view(&a.out, &bound->out, 2))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: these shapes differ in more than lengths");
  launch->a = a;
  set_operands(launch, inputs, outputs);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- runs */

static dnnl_status_t execute(const lengths_op *op, part *p, uint32_t r, uint32_t k, int which, const float *src,
                             const float *weights, float *dst) {
  static const int args[2][3] = {{Q, K, SCORES}, {SCORES, V, OUT}};
  const dnnl_memory_t *m = p->memory[r][k][which];
  const dnnl_exec_arg_t list[] = {{DNNL_ARG_SRC, m[args[which][0]]},
                                  {DNNL_ARG_WEIGHTS, m[args[which][1]]},
                                  {DNNL_ARG_DST, m[args[which][2]]},
                                  {DNNL_ARG_SCRATCHPAD, m[SCRATCH]}};
  dnnl_status_t s = dnnl_memory_set_data_handle(list[0].memory, (void *)(uintptr_t)src);
  if (s == dnnl_success) s = dnnl_memory_set_data_handle(list[1].memory, (void *)(uintptr_t)weights);
  if (s == dnnl_success) s = dnnl_memory_set_data_handle(list[2].memory, dst);
  if (s == dnnl_success)
    s = dnnl_primitive_execute(op->product[r][k][which], p->stream, m[SCRATCH] != NULL ? 4 : 3, list);
  return s == dnnl_success ? dnnl_stream_wait(p->stream) : s;
}

/* The next block of [from, to) behind at, of so many sizes, and where it begins: earlier, where most of the next size is
 * left, or some of the least blocks. */
static uint32_t next_block(const int64_t *sizes, uint32_t n, int64_t from, int64_t to, int64_t at, int64_t *begin) {
  const int64_t left = to - at;
  uint32_t i = 0;
  while (i + 1 < n && sizes[i + 1] <= left) i++;
  *begin = at;
  if (i + 1 == n || left == sizes[i] || sizes[i + 1] > to - from) return i;
  if (i == 0 ? left < 3 : 4 * left < 3 * sizes[i + 1]) return i;
  *begin = to - sizes[i + 1];
  return i + 1;
}

/* The weights of a block of keys that begins before at: those before it count as 0. */
static const float *edge_of(const lengths_op *op, const part *p, int64_t rows, int64_t begin, int64_t at,
                            int64_t keys) {
  const int64_t pitch = op->g.pitch;
  for (int64_t i = 0; i < op->a.heads * rows; i++) {
    float *to = p->edge + i * pitch;
    memset(to, 0, (size_t)(at - begin) * sizeof *to);
    memcpy(to + (at - begin), p->scores + i * pitch + at, (size_t)(keys - (at - begin)) * sizeof *to);
  }
  return p->edge;
}

static void clear(const lengths_launch *launch, float *out, int64_t rows) {
  const attention_view *o = &launch->a.out;
  for (int64_t h = 0; h < launch->a.heads; h++)
    for (int64_t r = 0; r < rows; r++) {
      float *to = out + h * o->strides[1] + r * o->strides[2];
      for (int64_t c = 0; c < o->dims[3]; c++) to[c * o->strides[3]] = 0;
    }
}

static void soften(const lengths_launch *launch, const part *p, int64_t rows, int64_t batch, int64_t row) {
  const attention *a = &launch->a;
  const int64_t pitch = launch->op->g.pitch;
  const float *mask = NULL;
  for (int64_t h = 0; h < a->heads; h++)
    for (int64_t r = 0; r < rows; r++) {
      float *scores = p->scores + (h * rows + r) * pitch;
      if (launch->mask != NULL)
        mask = launch->mask + attention_mask_at(a, batch) + h * a->mask_strides[1] + (row + r) * a->mask_strides[2];
      launch->op->softmax(scores, scores, mask, a->scale, a->keys);
      attention_guard(a, scores);
    }
}

static int64_t batch_of(const attention *a, const attention_view *v, int64_t batch) {
  return v->offset + attention_batch_at(a, v, batch);
}

static dnnl_status_t run_rows(const lengths_launch *launch, part *p, uint32_t r, int64_t batch, int64_t row) {
  const lengths_op *op = launch->op;
  const attention *a = &launch->a;
  const float *q = launch->q + batch_of(a, &a->q, batch) + row * a->q.strides[2];
  const float *k = launch->k + batch_of(a, &a->k, batch), *v = launch->v + batch_of(a, &a->v, batch);
  float *out = launch->out + batch_of(a, &a->out, batch) + row * a->out.strides[2];
  dnnl_status_t s = dnnl_success;
  for (int64_t at = 0, begin; at < a->keys && s == dnnl_success;) {
    const uint32_t b = next_block(key_sizes, op->g.keys, 0, a->keys, at, &begin);
    s = execute(op, p, r, b, 0, q, k + begin * a->k.strides[3], p->scores + begin);
    at = begin + key_sizes[b];
  }
  if (s != dnnl_success) return s;
  soften(launch, p, row_sizes[r], batch, row);
  clear(launch, out, row_sizes[r]);
  for (int64_t at = 0, begin; at < a->keys && s == dnnl_success;) {
    const uint32_t b = next_block(key_sizes, op->g.keys, 0, a->keys, at, &begin);
    const float *weights = begin == at ? p->scores + at : edge_of(op, p, row_sizes[r], begin, at, key_sizes[b]);
    s = execute(op, p, r, b, 1, weights, v + begin * a->v.strides[2], out);
    at = begin + key_sizes[b];
  }
  return s;
}

/* Rows of a tile are computed by one part, which alone may compute some of them twice. */
static dnnl_status_t run_tile(const lengths_launch *launch, part *p, uint64_t tile, int64_t tile_rows, int64_t across) {
  const lengths_op *op = launch->op;
  const int64_t batch = (int64_t)tile / across, from = (int64_t)tile % across * tile_rows;
  const int64_t to = from + tile_rows < launch->a.rows ? from + tile_rows : launch->a.rows;
  dnnl_status_t s = dnnl_success;
  for (int64_t at = from, begin; at < to && s == dnnl_success;) {
    const uint32_t r = next_block(row_sizes, op->g.rows, from, to, at, &begin);
    s = run_rows(launch, p, r, batch, begin);
    at = begin + row_sizes[r];
  }
  return s;
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  lengths_launch *launch = arg;
  const onednn *self = launch->op->self;
  part *p = &launch->parts[i];
  const int64_t tile_rows = row_sizes[launch->op->g.rows - 1];
  const int64_t across = (launch->a.rows + tile_rows - 1) / tile_rows;
  const uint64_t tiles = (uint64_t)(across * launch->a.batch);
  const int before = onednn_threads_enter(self);
  for (uint64_t tile = i; tile < tiles && p->status == dnnl_success && !p->skipped; tile += n) {
    p->skipped = tile > 0 && onednn_stops(self);
    if (!p->skipped) p->status = run_tile(launch, p, tile, tile_rows, across);
  }
  onednn_threads_leave(self, before);
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  lengths_launch *launch = (lengths_launch *)special;
  const heddle_host *host = launch->op->self->host;
  const uint32_t parts = launch->op->parts;
  for (uint32_t i = 0; i < parts; i++) {
    launch->parts[i].status = dnnl_success;
    launch->parts[i].skipped = false;
  }
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
  lengths_op *op = (lengths_op *)special;
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(lengths_launch) + op->parts * sizeof(part);
  lengths_launch *launch = host->alloc(host->ctx, bytes, _Alignof(lengths_launch));
  dnnl_status_t s = dnnl_success;
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run, .resize = resize};
  launch->op = op;
  launch->a = op->a;
  set_operands(launch, inputs, outputs);
  for (uint32_t i = 0; i < op->parts && s == dnnl_success; i++)
    s = bind_part(op, (char *)workspace + i * part_bytes(&op->g), &launch->parts[i]);
  if (s != dnnl_success) {
    free_launch(&launch->special);
    return onednn_fail(s, "binding operands", err);
  }
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status attention_lengths_make(onednn *self, const attention *a, uint32_t parts, onednn_special **out,
                                     heddle_error *err) {
  lengths_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(lengths_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  memset(op, 0, sizeof *op);
  op->self = self;
  op->softmax = onednn_find_softmax();
  op->a = *a;
  op->parts = parts;
  dnnl_status_t s = plan(self, a, &op->g);
  op->special =
      (onednn_special){.workspace = parts * part_bytes(&op->g), .free = free_op, .bind = bind, .resizes = true};
  const int before = onednn_threads_enter(self);
  for (uint32_t i = 0; i < op->g.rows * op->g.keys * 2 && s == dnnl_success; i++) {
    const uint32_t r = i / (op->g.keys * 2), k = i / 2 % op->g.keys;
    s = dnnl_primitive_create(&op->product[r][k][i % 2], op->g.pd[r][k][i % 2]);
  }
  onednn_threads_leave(self, before);
  if (s == dnnl_success) *out = &op->special;
  else free_op(&op->special);
  return onednn_fail(s, "making attention", err);
}
