/* Attention over caches (attention_cache in onednn_attention.h). A unit is a few rows of one head of one batch: their
 * scores, the Softmax, and the sum of V. All strides are those of the present shapes, so that any length is served. */
#include "cpu.h"
#include "onednn_attention.h"
#include "onednn_rows.h"

enum { ROWS = 8 };

typedef struct cache_op {
  onednn_special special;
  onednn *self;
  onednn_softmax_row softmax;
  onednn_few_rows dots, sums;
  attention a; /* the bound */
  int64_t pitch;
  uint32_t parts;
} cache_op;

typedef struct cache_launch {
  onednn_special_launch special;
  const cache_op *op;
  attention a; /* as it is now */
  const float *q, *k, *v, *mask;
  float *out, *scores; /* of a part: ROWS rows */
  bool skipped[];
} cache_launch;

/* ---------------------------------------------------------------- what fits */

static bool is_dense(const attention_view *v, int d) {
  return v->dims[d] == 1 || v->strides[d] == 1;
}

/* Columns are dense, of K rows or columns. */
static bool is_read(const attention *a) {
  return is_dense(&a->q, 3) && is_dense(&a->v, 3) && is_dense(&a->out, 3) && (is_dense(&a->k, 2) || is_dense(&a->k, 3));
}

static int64_t pitch_of(const attention *a) {
  return (a->keys + 15) / 16 * 16;
}

static uint64_t units_of(const attention *a) {
  return (uint64_t)(a->batch * a->heads * ((a->rows + ROWS - 1) / ROWS));
}

static uint32_t parts_of(const onednn *self, const attention *a) {
  const uint32_t parts = onednn_parts_for(self, attention_cost(a));
  const uint64_t units = units_of(a);
  return parts < units ? parts : units > 0 ? (uint32_t)units : 1;
}

static uint64_t part_bytes(int64_t pitch) {
  return (uint64_t)(ROWS * pitch) * sizeof(float);
}

bool attention_cache_fit(const onednn *self, const attention *a, uint64_t *workspace) {
  *workspace = parts_of(self, a) * part_bytes(pitch_of(a));
  return onednn_find_softmax() != NULL && is_read(a);
}

/* ---------------------------------------------------------------- runs */

static int64_t place(const attention_view *v, int64_t batch, int64_t head, int64_t row) {
  return v->offset + (v->dims[0] != 1 ? batch * v->strides[0] : 0) + (v->dims[1] != 1 ? head * v->strides[1] : 0) +
         row * v->strides[2];
}

static void run_unit(const cache_launch *launch, float *scores, uint64_t unit) {
  const cache_op *op = launch->op;
  const attention *a = &launch->a;
  const int64_t blocks = (a->rows + ROWS - 1) / ROWS, row = (int64_t)(unit % (uint64_t)blocks) * ROWS;
  const int64_t head = (int64_t)(unit / (uint64_t)blocks) % a->heads;
  const int64_t batch = (int64_t)(unit / (uint64_t)blocks) / a->heads;
  const int64_t rows = a->rows - row < ROWS ? a->rows - row : ROWS;
  const float *q = launch->q + place(&a->q, batch, head, row), *k = launch->k + place(&a->k, batch, head, 0);
  if (is_dense(&a->k, 2))
    op->dots(scores, op->pitch, q, a->q.strides[2], rows, k, a->k.strides[3], a->keys, a->k.dims[2]);
  else op->sums(scores, op->pitch, q, a->q.strides[2], rows, k, a->k.strides[2], a->k.dims[2], a->keys);
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = batch * a->mask_strides[0] + head * a->mask_strides[1] + (row + r) * a->mask_strides[2];
    float *line = scores + r * op->pitch;
    op->softmax(line, line, launch->mask != NULL ? launch->mask + at : NULL, a->scale, a->keys);
  }
  op->sums(launch->out + place(&a->out, batch, head, row), a->out.strides[2], scores, op->pitch, rows,
           launch->v + place(&a->v, batch, head, 0), a->v.strides[2], a->keys, a->v.dims[3]);
}

static void run_part(void *arg, uint32_t i, uint32_t n) {
  cache_launch *launch = arg;
  const uint64_t units = units_of(&launch->a);
  float *scores = launch->scores + (int64_t)i * ROWS * launch->op->pitch;
  for (uint64_t unit = i; unit < units && !launch->skipped[i]; unit += n) {
    launch->skipped[i] = unit > 0 && onednn_stops(launch->op->self);
    if (!launch->skipped[i]) run_unit(launch, scores, unit);
  }
}

static heddle_status run(onednn_special_launch *special, heddle_error *err) {
  cache_launch *launch = (cache_launch *)special;
  const onednn *self = launch->op->self;
  const heddle_host *host = self->host;
  uint32_t parts = parts_of(self, &launch->a);
  if (parts > launch->op->parts) parts = launch->op->parts;
  memset(launch->skipped, 0, parts * sizeof *launch->skipped);
  if (parts > 1) host->run_parallel(host->ctx, parts, 0, run_part, launch, NULL);
  else run_part(launch, 0, 1);
  for (uint32_t i = 0; i < parts; i++)
    if (launch->skipped[i]) return onednn_stopped(self, err);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- operators and launches */

static void free_op(onednn_special *special) {
  const heddle_host *host = ((cache_op *)special)->self->host;
  host->free(host->ctx, special);
}

static void free_launch(onednn_special_launch *special) {
  const heddle_host *host = ((cache_launch *)special)->op->self->host;
  host->free(host->ctx, special);
}

static void set_operands(cache_launch *launch, void *const *inputs, void *const *outputs) {
  const attention *a = &launch->a;
  launch->q = inputs[a->q.slot];
  launch->k = inputs[a->k.slot];
  launch->v = inputs[a->v.slot];
  launch->mask = a->mask != UINT32_MAX ? inputs[a->mask] : NULL;
  launch->out = outputs[0];
}

static heddle_status resize(onednn_special_launch *special, const heddle_pregion *region, void *const *inputs,
                            void *const *outputs, heddle_error *err) {
  cache_launch *launch = (cache_launch *)special;
  attention a;
  if (!attention_read(region, &a) || pitch_of(&a) > launch->op->pitch || !is_read(&a))
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "cpu: these shapes are no smaller attention of that kind");
  launch->a = a;
  set_operands(launch, inputs, outputs);
  return HEDDLE_OK;
}

static heddle_status bind(onednn_special *special, void *const *inputs, void *const *outputs, void *workspace,
                          onednn_special_launch **out, heddle_error *err) {
  cache_op *op = (cache_op *)special;
  const heddle_host *host = op->self->host;
  const size_t bytes = sizeof(cache_launch) + op->parts * sizeof(bool);
  cache_launch *launch = host->alloc(host->ctx, bytes, _Alignof(cache_launch));
  if (launch == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for a launch");
  memset(launch, 0, bytes);
  launch->special = (onednn_special_launch){.free = free_launch, .run = run, .resize = resize};
  launch->op = op;
  launch->a = op->a;
  launch->scores = workspace;
  set_operands(launch, inputs, outputs);
  *out = &launch->special;
  return HEDDLE_OK;
}

heddle_status attention_cache_make(onednn *self, const attention *a, onednn_special **out, heddle_error *err) {
  cache_op *op = self->host->alloc(self->host->ctx, sizeof *op, _Alignof(cache_op));
  if (op == NULL) return p_fail(err, HEDDLE_ENOMEM, 0, "cpu: no memory for an operator");
  *op = (cache_op){.self = self,
                   .softmax = onednn_find_softmax(),
                   .dots = onednn_find_dots(),
                   .sums = onednn_find_sums(),
                   .a = *a,
                   .pitch = pitch_of(a),
                   .parts = parts_of(self, a)};
  op->special =
      (onednn_special){.workspace = op->parts * part_bytes(op->pitch), .free = free_op, .bind = bind, .resizes = true};
  *out = &op->special;
  return HEDDLE_OK;
}
