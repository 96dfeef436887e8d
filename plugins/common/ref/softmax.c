/* Softmax and LogSoftmax along one axis, with the greatest element subtracted first. A unit is a row where the axis is
 * the last one, else up to 16 neighbouring columns. */
#include "lanes_fast.h"
#include "mathf.h"
#include "ref_op.h"
#include "sum.h"
#include "types.h"

#include <math.h>

enum { COLUMNS = 16, PLACES = 64, SHORT = 16 }; /* rows below SHORT are done before the wide loops are entered */

/* The greatest element, NaN passed over: it comes out of the difference anyway. */
static float greatest(const float *x, int64_t n) {
  float lane[REF_SUM_LANES], most;
  int64_t i = 0;
  for (int j = 0; j < REF_SUM_LANES; j++) lane[j] = -INFINITY;
  for (; i + REF_SUM_LANES <= n; i += REF_SUM_LANES) {
    for (int j = 0; j < REF_SUM_LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  most = lane[0];
  for (int j = 1; j < REF_SUM_LANES; j++) most = lane[j] > most ? lane[j] : most;
  for (; i < n; i++) most = x[i] > most ? x[i] : most;
  return most;
}

/* out[i] = e^(in[i] - most), which is at most 1; with the CPU's widest vectors where it has them, else as LANES1_LONG
 * does it. */
static void exponentials(ref_lanes fast, const float *in, int64_t n, float most, float *out) {
  enum { STEP = 4 };
  float rest[STEP] = {0}, *to = rest;
  if (n <= 0) return;
  if (fast != NULL) {
    const void *operands[] = {out};
    const float none[2] = {0};
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] = in[i] - most;
    fast(out, operands, n, none);
    return;
  }
  if (n < STEP) {
    memcpy(rest, in, (size_t)n * sizeof *in);
    exponentials(NULL, rest, STEP, most, rest);
    memcpy(out, rest, (size_t)n * sizeof *in);
    return;
  }
  const float *from = in + n - STEP;
  for (int64_t done = 0;; done += STEP) {
    REF_IVDEP
    for (int i = 0; i < STEP; i++) {
      const float x = from[i] - most;
      to[i] = ref_exp_inside(x < REF_EXP_LEAST ? REF_EXP_LEAST : x);
    }
    if (done >= n - STEP) break;
    from = in + done;
    to = out + done;
  }
  memcpy(out + n - STEP, rest, sizeof rest);
}

/* x - most - log(sum of e^(x - most)). The result may lie on the operand, so the exponentials go through a block. */
static void log_row(const ref_op *op, ref_lanes fast, const float *in, int64_t n, float most, float *out) {
  float block[REF_SUM_BLOCK];
  double sum = 0;
  int64_t work = 0;
  for (int64_t at = 0; at < n; at += REF_SUM_BLOCK) {
    if (ref_tick(op, &work, 4 * REF_SUM_BLOCK)) return;
    const int64_t some = n - at < REF_SUM_BLOCK ? n - at : REF_SUM_BLOCK;
    exponentials(fast, in + at, some, most, block);
    sum += ref_sum_f32(block, some);
  }
  const float less = (float)log(sum);
  REF_IVDEP
  for (int64_t i = 0; i < n; i++) out[i] = in[i] - most - less;
}

static void softmax_rows(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                         uint64_t last) {
  const int64_t n = op->u.softmax.n, PIECE = INT64_C(1) << 20;
  const ref_lanes fast = n < SHORT ? NULL : ref_lanes_faster("Exp");
  int64_t work = 0;
  (void)workspace;
  for (uint64_t row = first; row < last; row++) {
    const float *in = (const float *)inputs[op->slot[0]] + row * (uint64_t)n;
    float *out = (float *)outputs[0] + row * (uint64_t)n;
    const float most = greatest(in, n);
    if (ref_tick(op, &work, n)) return;
    if (op->u.softmax.log) {
      log_row(op, fast, in, n, most, out);
      continue;
    }
    for (int64_t at = 0; at < n; at += PIECE) {
      exponentials(fast, in + at, n - at < PIECE ? n - at : PIECE, most, out + at);
      if (ref_tick(op, &work, PIECE)) return;
    }
    const float sum = (float)ref_sum_f32(out, n);
    REF_IVDEP
    for (int64_t i = 0; i < n; i++) out[i] /= sum;
  }
}

/* Columns side by side, of n rows that are inner apart; at most PLACES. False: the run has to stop. */
static bool columns(const ref_op *op, const float *in, int64_t n, int64_t inner, int64_t width, float *out,
                    int64_t *work) {
  const ref_lanes fast = ref_lanes_faster("Exp");
  float most[PLACES];
  double sum[PLACES] = {0};
  memcpy(most, in, (size_t)width * sizeof *in);
  for (int64_t i = 1; i < n; i++) {
    REF_IVDEP
    for (int64_t c = 0; c < width; c++) most[c] = in[i * inner + c] > most[c] ? in[i * inner + c] : most[c];
  }
  for (int64_t i = 0, some; i < n; i += some) { /* as many rows at once as fill the block */
    float block[REF_SUM_BLOCK], *e = block;
    if (ref_tick(op, work, REF_SUM_BLOCK)) return false;
    some = REF_SUM_BLOCK / width < n - i ? REF_SUM_BLOCK / width : n - i;
    for (int64_t r = i; r < i + some; r++, e += width) {
      REF_IVDEP
      for (int64_t c = 0; c < width; c++) e[c] = in[r * inner + c] - most[c];
    }
    e = block;
    exponentials(fast, e, some * width, 0, e);
    for (int64_t r = i; r < i + some; r++, e += width) {
      REF_IVDEP
      for (int64_t c = 0; c < width; c++) sum[c] += (double)e[c];
      if (!op->u.softmax.log) memcpy(out + r * inner, e, (size_t)width * sizeof *e);
    }
  }
  float total[PLACES];
  for (int64_t c = 0; c < width; c++) total[c] = (float)sum[c];
  if (op->u.softmax.log) {
    for (int64_t c = 0; c < width; c++) total[c] = ref_log(total[c]);
    for (int64_t i = 0; i < n; i++) {
      REF_IVDEP
      for (int64_t c = 0; c < width; c++) out[i * inner + c] = in[i * inner + c] - most[c] - total[c];
    }
    return true;
  }
  for (int64_t i = 0; i < n; i++) {
    REF_IVDEP
    for (int64_t c = 0; c < width; c++) out[i * inner + c] /= total[c];
  }
  return true;
}

static void softmax_columns(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                            uint64_t first, uint64_t last) {
  const int64_t n = op->u.softmax.n, inner = op->u.softmax.inner;
  const uint64_t across = ((uint64_t)inner + COLUMNS - 1) / COLUMNS;
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    const int64_t column = (int64_t)(unit % across) * COLUMNS;
    const int64_t width = inner - column < COLUMNS ? inner - column : COLUMNS;
    const int64_t start = (int64_t)(unit / across) * n * inner + column;
    const float *in = (const float *)inputs[op->slot[0]] + start;
    if (!columns(op, in, n, inner, width, (float *)outputs[0] + start, &work)) return;
  }
}

#ifndef HEDDLE_NO_LANES /* a build for its size has one loop for rows */
/* Rows that are short, as columns. */
static void softmax_short(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                          uint64_t last) {
  const int64_t n = op->u.softmax.n;
  float in[REF_TURN_SHORT * PLACES], out[REF_TURN_SHORT * PLACES];
  int64_t work = 0;
  (void)workspace;
  for (uint64_t some; first < last; first += some) {
    some = last - first < PLACES ? last - first : PLACES;
    const int64_t at = (int64_t)first * n, rows = (int64_t)some;
    ref_turn(sizeof *in, (const float *)inputs[op->slot[0]] + at, rows, n, in);
    if (!columns(op, in, n, rows, rows, out, &work)) return;
    ref_turn(sizeof *in, out, n, rows, (float *)outputs[0] + at);
  }
}
#endif

heddle_status ref_plan_softmax(const ref_node *n, ref_op *op, heddle_error *err) {
  ref_softmax *f = &op->u.softmax;
  const heddle_pvalue *x = n->in[0];
  int64_t axis = -1;
  uint64_t count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "axis", -1, &axis, err);
  if (s != HEDDLE_OK) return s;
  if (!region_shape_equal(x, n->out)) return ref_refuse_shape(n, err);
  if (axis < -x->ndim || axis >= x->ndim) {
    return ref_refuse(n, err, "axis %lld of %d dimensions", (long long)axis, x->ndim);
  }
  if (axis < 0) axis += x->ndim;
  region_value_count(x, &count);
  f->n = x->shape[axis];
  f->inner = 1;
  f->log = strcmp(n->node->op, "LogSoftmax") == 0;
  op->in_place = 1;
  if (count == 0) {
    ref_set_work(op, softmax_rows, 0, 0, 0);
    return HEDDLE_OK;
  }
  for (int32_t i = (int32_t)axis + 1; i < x->ndim; i++) f->inner *= x->shape[i];
  uint64_t outer = count / (uint64_t)f->n / (uint64_t)f->inner;
  uint64_t across = ((uint64_t)f->inner + COLUMNS - 1) / COLUMNS;
#ifndef HEDDLE_NO_LANES
  if (f->inner == 1 && f->n <= REF_TURN_SHORT) {
    ref_set_work(op, softmax_short, outer, 15.0 * (double)count, 0);
    return HEDDLE_OK;
  }
#endif
  if (f->inner == 1) ref_set_work(op, softmax_rows, outer, 15.0 * (double)count, 0);
  else ref_set_work(op, softmax_columns, outer * across, 15.0 * (double)count, 0);
  return HEDDLE_OK;
}
