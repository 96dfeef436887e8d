/* Attention over lengths that change (attention_lengths in onednn_attention.h). A unit is some rows of one head of one batch:
 * their scores, the Softmax, and the sum of V, by blocks of K and V that are copied side by side: no
 * product of oneDNN's serves all sizes without code that it makes in the run. */
#include "cpu.h"
#include "onednn_attention.h"
#include "onednn_patches.h"
#include "onednn_rows.h"

#include <xmmintrin.h>

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
  const patches_kernels *kernels;
  attention a; /* the bound, whose strides are those of all lengths */
  matrix q, k, v;
  int64_t unit_rows, pitch; /* floats of a row of scores */
  uint32_t parts;
} lengths_op;

typedef struct part {
  float *scores, *block;
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
  return onednn_find_softmax() != NULL && patches_find() != NULL && is_steady(a) && read_matrix(&a->q, &op->q) &&
         read_matrix(&a->k, &op->k) && read_matrix(&a->v, &op->v) && read_matrix(&a->out, &out) && out.trans == 'N';
}

#define BLOCK_BYTES (PATCHES_BLOCK * PATCHES_DEPTH * sizeof(float))

/* The block, then the scores. */
static uint64_t part_bytes(const lengths_op *op) {
  const uint64_t bytes = (uint64_t)(op->unit_rows * op->pitch) * sizeof(float) + BLOCK_BYTES;
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

/* Rows of a block, of n columns each, from what lies row by row. */
static void copy_rows(float *block, const float *from, int64_t pitch, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++, block += PATCHES_BLOCK, from += pitch) {
    memcpy(block, from, (size_t)n * sizeof *block);
    memset(block + n, 0, (size_t)(PATCHES_BLOCK - n) * sizeof *block);
  }
}

/* The same from what lies column by column. */
static void copy_columns(float *block, const float *from, int64_t pitch, int64_t rows, int64_t n) {
  enum { FOUR = 4 };
  int64_t c = 0;
  for (; c + FOUR <= n; c += FOUR) {
    const float *x = from + c * pitch;
    int64_t r = 0;
    for (; r + FOUR <= rows; r += FOUR) {
      __m128 a = _mm_loadu_ps(x + r), b = _mm_loadu_ps(x + pitch + r), d = _mm_loadu_ps(x + 2 * pitch + r);
      __m128 e = _mm_loadu_ps(x + 3 * pitch + r);
      _MM_TRANSPOSE4_PS(a, b, d, e);
      _mm_storeu_ps(block + r * PATCHES_BLOCK + c, a);
      _mm_storeu_ps(block + (r + 1) * PATCHES_BLOCK + c, b);
      _mm_storeu_ps(block + (r + 2) * PATCHES_BLOCK + c, d);
      _mm_storeu_ps(block + (r + 3) * PATCHES_BLOCK + c, e);
    }
    for (; r < rows; r++)
      for (int64_t k = 0; k < FOUR; k++) block[r * PATCHES_BLOCK + c + k] = x[k * pitch + r];
  }
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t k = c; k < n; k++) block[r * PATCHES_BLOCK + k] = from[k * pitch + r];
    memset(block + r * PATCHES_BLOCK + n, 0, (size_t)(PATCHES_BLOCK - n) * sizeof *block);
  }
}

/* out = a b: `rows` rows of a, depth by n elements of b. */
static void multiply(const lengths_op *op, float *block, const float *a, int64_t a_pitch, int64_t rows, const float *b,
                     const matrix *how, int64_t depth, int64_t n, float *out, int64_t out_pitch) {
  const bool by_rows = how->trans == 'N';
  for (int64_t j = 0; j < n; j += PATCHES_BLOCK) {
    const int64_t columns = n - j < PATCHES_BLOCK ? n - j : PATCHES_BLOCK;
    for (int64_t k = 0; k < depth; k += PATCHES_DEPTH) {
      const int64_t some = depth - k < PATCHES_DEPTH ? depth - k : PATCHES_DEPTH;
      const float *from = b + (by_rows ? k * how->pitch + j : j * how->pitch + k);
      (by_rows ? copy_rows : copy_columns)(block, from, how->pitch, some, columns);
      patches_multiply(op->kernels, a + k, a_pitch, block, some, NULL, k == 0, 0, rows, columns, out + j, out_pitch);
    }
  }
}

static dnnl_status_t run_unit(const lengths_launch *launch, const part *p, int64_t batch, int64_t head, int64_t row) {
  const lengths_op *op = launch->op;
  const attention *a = &launch->a;
  const int64_t left = a->rows - row, rows = left < op->unit_rows ? left : op->unit_rows;
  const float *q = launch->q + place(a, &a->q, batch, head) + row * op->a.q.strides[2];
  const float *k = launch->k + place(a, &a->k, batch, head), *v = launch->v + place(a, &a->v, batch, head);
  float *out = launch->out + place(a, &a->out, batch, head) + row * op->a.out.strides[2];
  dnnl_status_t s = dnnl_success;
  if (op->q.trans == 'N')
    multiply(op, p->block, q, op->q.pitch, rows, k, &op->k, a->q.dims[3], a->keys, p->scores, op->pitch);
  else
    s = dnnl_sgemm(op->q.trans, op->k.trans, rows, a->keys, a->q.dims[3], 1.0F, q, op->q.pitch, k, op->k.pitch, 0.0F,
                   p->scores, op->pitch);
  if (s != dnnl_success) return s;
  soften(launch, p->scores, rows, batch, head, row);
  multiply(op, p->block, p->scores, op->pitch, rows, v, &op->v, a->keys, a->v.dims[3], out, op->a.out.strides[2]);
  return s;
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
    p->status = run_unit(launch, p, stack / a->heads, stack % a->heads, unit % across * launch->op->unit_rows);
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
    launch->parts[i].block = (float *)(void *)((char *)workspace + i * part_bytes(op));
  for (uint32_t i = 0; i < op->parts; i++)
    launch->parts[i].scores = launch->parts[i].block + PATCHES_BLOCK * PATCHES_DEPTH;
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status attention_lengths_make(onednn *self, const attention *a, uint32_t parts, onednn_special **out,
                                     heddle_error *err) {
  lengths_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(lengths_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op =
      (lengths_op){.self = self, .softmax = onednn_find_softmax(), .kernels = patches_find(), .a = *a, .parts = parts};
  read_op(a, op);
  op->special = (onednn_special){.workspace = parts * part_bytes(op), .free = free_op, .bind = bind, .resizes = true};
  *out = &op->special;
  return HEDDLE_OK;
}
