/* Attention over lengths that change (attention_lengths in onednn_attention.h). A unit is some rows of one head of one batch:
 * their scores, the Softmax, and the sum of V, by products of any size, for which nothing is made beforehand: our own, or
 * oneDNN's sgemm where that is the faster. */
#include "cpu.h"
#include "onednn_attention.h"
#include "onednn_rows.h"
#include "onednn_sgemm.h"

/* Scores of a unit: what is read again soon. */
#define UNIT_BYTES (INT64_C(256) << 10)

/* A matrix as the product takes it: row-major, or the transpose of such a one. */
typedef struct matrix {
  char trans;
  int64_t pitch;
} matrix;

typedef struct lengths_op {
  onednn_special special;
  onednn *self;
  onednn_softmax_row softmax;
  attention a; /* the bound, whose strides are those of all lengths */
  matrix q, k, v;
  int64_t unit_rows, pitch; /* floats of a row of scores */
  uint32_t parts;
} lengths_op;

typedef struct part {
  float *scores;
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

/* ---------------------------------------------------------------- what fits */

/* false: neither rows nor columns are dense. */
static bool read_matrix(const attention_view *v, matrix *out) {
  const bool rows = v->strides[3] == 1 && v->strides[2] >= v->dims[3];
  *out = (matrix){rows ? 'N' : 'T', rows ? v->strides[2] : v->strides[3]};
  return rows || (v->strides[2] == 1 && v->strides[3] >= v->dims[2]);
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

static bool read_op(const attention *a, lengths_op *op) {
  matrix out;
  op->pitch = (a->keys + 15) / 16 * 16;
  op->unit_rows = UNIT_BYTES / (op->pitch * (int64_t)sizeof(float));
  if (op->unit_rows > a->rows) op->unit_rows = a->rows;
  if (op->unit_rows < 1) op->unit_rows = 1;
  return onednn_find_softmax() != NULL && is_steady(a) && read_matrix(&a->q, &op->q) && read_matrix(&a->k, &op->k) &&
         read_matrix(&a->v, &op->v) && read_matrix(&a->out, &out) && out.trans == 'N';
}

static uint64_t part_bytes(const lengths_op *op) {
  const uint64_t bytes = (uint64_t)(op->unit_rows * op->pitch) * sizeof(float);
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

bool attention_lengths_fit(const attention *a, uint32_t parts, uint64_t *workspace) {
  lengths_op op;
  const bool fits = read_op(a, &op);
  *workspace = parts * part_bytes(&op);
  return fits;
}

/* ---------------------------------------------------------------- launches */

static void free_op(onednn_special *special) {
  const heddle_host *host = ((lengths_op *)special)->self->host;
  host->free(host->ctx, special);
}

static void free_launch(onednn_special_launch *special) {
  const heddle_host *host = ((lengths_launch *)special)->op->self->host;
  host->free(host->ctx, special);
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

/* Where a head of a batch begins. */
static int64_t place(const attention *a, const attention_view *v, int64_t batch, int64_t head) {
  return v->offset + attention_batch_at(a, v, batch) + (v->dims[1] != 1 ? head * v->strides[1] : 0);
}

static void soften(const lengths_launch *launch, float *scores, int64_t rows, int64_t batch, int64_t head,
                   int64_t row) {
  const attention *a = &launch->a;
  const float *mask = launch->mask;
  if (mask != NULL) mask += attention_mask_at(a, batch) + head * a->mask_strides[1] + row * a->mask_strides[2];
  for (int64_t r = 0; r < rows; r++, scores += launch->op->pitch) {
    launch->op->softmax(scores, scores, mask, a->scale, a->keys);
    attention_guard(a, scores);
    if (mask != NULL) mask += a->mask_strides[2];
  }
}

static dnnl_status_t multiply(const onednn *self, const matrix *x, const matrix *y, int64_t rows, int64_t columns,
                              int64_t depth, const float *a, const float *b, float *out, int64_t out_row) {
  if (!onednn_sgemm_fits(self))
    return dnnl_sgemm(x->trans, y->trans, rows, columns, depth, 1.0F, a, x->pitch, b, y->pitch, 0.0F, out, out_row);
  const bool x_rows = x->trans == 'N', y_rows = y->trans == 'N';
  const onednn_sgemm_matrix m = {.rows = rows,
                                 .columns = columns,
                                 .depth = depth,
                                 .a_row = x_rows ? x->pitch : 1,
                                 .a_col = x_rows ? 1 : x->pitch,
                                 .b_row = y_rows ? y->pitch : 1,
                                 .b_col = y_rows ? 1 : y->pitch,
                                 .out_row = out_row};
  onednn_sgemm_run(&m, a, b, out, NULL, NULL, 0);
  return dnnl_success;
}

static dnnl_status_t run_unit(const lengths_launch *launch, float *scores, int64_t batch, int64_t head, int64_t row) {
  const lengths_op *op = launch->op;
  const attention *a = &launch->a;
  const int64_t left = a->rows - row, rows = left < op->unit_rows ? left : op->unit_rows;
  const float *q = launch->q + place(a, &a->q, batch, head) + row * op->a.q.strides[2];
  const float *k = launch->k + place(a, &a->k, batch, head), *v = launch->v + place(a, &a->v, batch, head);
  float *out = launch->out + place(a, &a->out, batch, head) + row * op->a.out.strides[2];
  const matrix weights = {'N', op->pitch};
  const dnnl_status_t s = multiply(op->self, &op->q, &op->k, rows, a->keys, a->q.dims[3], q, k, scores, op->pitch);
  if (s != dnnl_success) return s;
  soften(launch, scores, rows, batch, head, row);
  return multiply(op->self, &weights, &op->v, rows, a->v.dims[3], a->keys, scores, v, out, op->a.out.strides[2]);
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  lengths_launch *launch = arg;
  const onednn *self = launch->op->self;
  const attention *a = &launch->a;
  part *p = &launch->parts[i];
  const int64_t across = (a->rows + launch->op->unit_rows - 1) / launch->op->unit_rows;
  const int64_t units = a->batch * a->heads * across;
  const int before = onednn_threads_enter(self);
  for (int64_t unit = i; unit < units && p->status == dnnl_success && !p->skipped; unit += n) {
    const int64_t stack = unit / across;
    p->skipped = unit > 0 && onednn_stops(self);
    if (p->skipped) break;
    p->status = run_unit(launch, p->scores, stack / a->heads, stack % a->heads, unit % across * launch->op->unit_rows);
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
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run, .resize = resize};
  launch->op = op;
  launch->a = op->a;
  set_operands(launch, inputs, outputs);
  for (uint32_t i = 0; i < op->parts; i++)
    launch->parts[i].scores = (float *)(void *)((char *)workspace + i * part_bytes(op));
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status attention_lengths_make(onednn *self, const attention *a, uint32_t parts, onednn_special **out,
                                     heddle_error *err) {
  lengths_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(lengths_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = (lengths_op){.self = self, .softmax = onednn_find_softmax(), .a = *a, .parts = parts};
  read_op(a, op);
  op->special = (onednn_special){.workspace = parts * part_bytes(op), .free = free_op, .bind = bind, .resizes = true};
  *out = &op->special;
  return HEDDLE_OK;
}
