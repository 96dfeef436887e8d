/* MaxPool, AveragePool and the global pools. A unit is a plane: one channel of one image. */
#include "pool_rows.h"
#include "sum.h"
#include "types.h"

#include <math.h>

double ref_pool_taps(const ref_window *w) {
  double taps = 1;
  for (int d = 0; d < REF_SPATIAL; d++) {
    const int64_t fit = w->in[d] / w->dilation[d] + 1;
    taps *= (double)(fit < w->kernel[d] ? fit : w->kernel[d]);
  }
  return taps;
}

/* The pads behind the operand, which the window's do not hold. */
static heddle_status read_ends(const ref_node *n, ref_pool *f, heddle_error *err) {
  const ref_window *w = &f->window;
  const int32_t spatial = n->in[0]->ndim - 2;
  const int64_t *pads;
  const char *mode;
  uint64_t given;
  heddle_status s = region_attr_string(n->node, "auto_pad", "NOTSET", &mode, err);
  if (s == HEDDLE_OK) s = region_attr_ints(n->node, "pads", &pads, &given, err);
  for (int d = 0; d < REF_SPATIAL && s == HEDDLE_OK; d++) {
    const int k = d - (REF_SPATIAL - spatial);
    f->end[d] = 0;
    if (k < 0) continue;
    if (pads != NULL) f->end[d] = pads[spatial + k];
    if (strncmp(mode, "SAME", 4) != 0) continue;
    const int64_t all = (w->out[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1 - w->in[d];
    f->end[d] = all > w->pad[d] ? all - w->pad[d] : 0;
  }
  return s;
}

heddle_status ref_pool_read(const ref_node *n, ref_pool *f, heddle_error *err) {
  const heddle_pvalue *where = region_node_output(n->region, n->node, 1);
  int64_t order = 0, count_pads = 0;
  heddle_status s = region_attr_int(n->node, "storage_order", 0, &order, err); /* says how Indices count */
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "count_include_pad", 0, &count_pads, err);
  if (s == HEDDLE_OK) s = ref_window_plan(n, NULL, &f->window, err);
  if (s == HEDDLE_OK) s = read_ends(n, f, err);
  if (s != HEDDLE_OK) return s;
  f->column_major = order != 0;
  f->count_pads = count_pads != 0;
  if (n->out->shape[0] != n->in[0]->shape[0] || n->out->shape[1] != n->in[0]->shape[1] ||
      (where != NULL && (!region_dtype_is(where->dtype, HEDDLE_DTYPE_INT, 64) || !region_shape_equal(where, n->out))))
    return ref_refuse_shape(n, err);
  return HEDDLE_OK;
}

/* The greatest of each window, and in where, unless it is NULL, its place: the first one where there are several. For
 * windows and planes of any size. NaN wins over numbers and stays. */
static void max_pool_any(const ref_op *op, const float *planes, float *out, int64_t *where, uint64_t first,
                         uint64_t last) {
  const ref_window *w = &op->u.pool.window;
  const int64_t in_plane = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  int64_t work = 0;
  for (int64_t u = (int64_t)first * positions; u < (int64_t)last * positions; u++) {
    const int64_t p = u / positions, i = u % positions;
    const float *in = planes + (in_plane > 0 ? p * in_plane : 0);
    const int64_t at[REF_SPATIAL] = {i / w->out[2] / w->out[1], i / w->out[2] % w->out[1], i % w->out[2]};
    int64_t tap0[REF_SPATIAL], tap1[REF_SPATIAL], best = 0;
    float most = -INFINITY;
    bool any = false;
    for (int d = 0; d < REF_SPATIAL; d++) ref_window_taps(w, d, at[d], at[d], &tap0[d], &tap1[d]);
    for (int64_t z = tap0[0]; z < tap1[0]; z++) {
      const int64_t iz = at[0] * w->stride[0] + z * w->dilation[0] - w->pad[0];
      for (int64_t y = tap0[1]; y < tap1[1]; y++) {
        const int64_t iy = at[1] * w->stride[1] + y * w->dilation[1] - w->pad[1];
        if (ref_tick(op, &work, 4 * (tap1[2] - tap0[2]) + 16)) return;
        for (int64_t x = tap0[2]; x < tap1[2]; x++) {
          const int64_t ix = at[2] * w->stride[2] + x * w->dilation[2] - w->pad[2];
          const float v = in[(iz * w->in[1] + iy) * w->in[2] + ix];
          if (any && !(v > most) && (v == v || most != most)) continue;
          any = true;
          most = v;
          best = op->u.pool.column_major ? iz + w->in[0] * (iy + w->in[1] * ix) : (iz * w->in[1] + iy) * w->in[2] + ix;
        }
      }
    }
    out[u] = most;
    if (where != NULL) where[u] = p * in_plane + best;
  }
}

static void max_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                         uint64_t last) {
  const ref_window *w = &op->u.pool.window;
  const uint64_t in_plane = (uint64_t)ref_product(w->in, REF_SPATIAL);
  const uint64_t out_plane = (uint64_t)ref_product(w->out, REF_SPATIAL);
  const float nothing = 0; /* stands for a plane without elements */
  int64_t work = 0;
  const int64_t row = 1 + w->out[2] * (int64_t)ref_pool_taps(w) / 4, places = ref_pool_places(w);
  (void)workspace;
  if (places == 0) {
    max_pool_any(op, inputs[op->slot[0]], outputs[0], NULL, first, last);
    return;
  }
  const ref_pool_row fast = ref_pool_max_f32_row();
  for (uint64_t p = first; p < last; p++) {
    const float *in = in_plane > 0 ? (const float *)inputs[op->slot[0]] + p * in_plane : &nothing;
    float *out = (float *)outputs[0] + p * out_plane;
    for (int64_t z = 0; z < w->out[0]; z++) {
      for (int64_t y = 0; y < w->out[1]; y++, out += w->out[2]) {
        if (ref_tick(op, &work, row)) return;
        for (int64_t x = 0; x < w->out[2]; x += places)
          fast(w, in, z, y, x, w->out[2] - x < places ? w->out[2] - x : places, out + x);
      }
    }
  }
}

static void max_pool_where_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                               uint64_t first, uint64_t last) {
  enum { PLACES = 256 };
  const ref_window *w = &op->u.pool.window;
  const int64_t in_plane = ref_product(w->in, REF_SPATIAL), row = 1 + PLACES * (int64_t)ref_pool_taps(w) / 2;
  int32_t at[PLACES];
  int64_t work = 0;
  (void)workspace;
#ifdef HEDDLE_NO_LANES
  const bool by_rows = false;
#else
  const bool by_rows = in_plane > 0 && in_plane <= INT32_MAX && w->kernel[2] <= w->in[2];
#endif
  if (!by_rows) {
    max_pool_any(op, inputs[op->slot[0]], outputs[0], outputs[op->result[1]], first, last);
    return;
  }
  const int64_t rows = w->out[0] * w->out[1];
  for (int64_t u = (int64_t)first * rows; u < (int64_t)last * rows; u++) {
    const int64_t p = u / rows, z = u % rows / w->out[1], y = u % w->out[1];
    for (int64_t x = 0; x < w->out[2]; x += PLACES) {
      const int64_t n = w->out[2] - x < PLACES ? w->out[2] - x : PLACES;
      int64_t *where = (int64_t *)outputs[op->result[1]] + u * w->out[2] + x;
      if (ref_tick(op, &work, row)) return;
      ref_pool_where(w, (const float *)inputs[op->slot[0]] + p * in_plane, z, y, x, n,
                     (float *)outputs[0] + u * w->out[2] + x, at);
      for (int64_t i = 0; i < n; i++) {
        int64_t best = at[i] < 0 ? 0 : at[i];
        if (op->u.pool.column_major)
          best = best / w->in[2] / w->in[1] + w->in[0] * (best / w->in[2] % w->in[1] + w->in[1] * (best % w->in[2]));
        where[i] = p * in_plane + best;
      }
    }
  }
}

heddle_status ref_plan_max_pool(const ref_node *n, ref_op *op, heddle_error *err) {
  const ref_window *w = &op->u.pool.window;
  uint64_t results = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = ref_pool_read(n, &op->u.pool, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->out, &results);
  const double taps = ref_pool_taps(w);
  ref_set_work(op, op->result[1] != UINT32_MAX ? max_pool_where_f32 : max_pool_f32,
               results > 0 ? (uint64_t)(n->out->shape[0] * n->out->shape[1]) : 0,
               (op->result[1] != UINT32_MAX ? 8.0 : 2.0) * (double)results * taps, 4.0 * (double)results);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- AveragePool */

/* Taps of a window along one dimension that are in the input or its padding. */
static int64_t counted(const ref_pool *f, int d, int64_t at) {
  const ref_window *w = &f->window;
  const int64_t room = w->in[d] + f->end[d] + w->pad[d] - at * w->stride[d]; /* none begins before the padding */
  const int64_t n = room <= 0 ? 0 : (room - 1) / w->dilation[d] + 1;
  return n < w->kernel[d] ? n : w->kernel[d];
}

/* Of windows that are longer than a row's loops take. */
static void average_pool_long(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                              uint64_t first, uint64_t last) {
  const ref_pool *f = &op->u.pool;
  const ref_window *w = &f->window;
  const int64_t in_plane = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  int64_t work = 0;
  (void)workspace;
  for (uint64_t p = first; p < last; p++) {
    const float *in = in_plane > 0 ? (const float *)inputs[op->slot[0]] + (int64_t)p * in_plane : NULL;
    float *out = (float *)outputs[0] + (int64_t)p * positions;
    for (int64_t i = 0; i < positions; i++) {
      const int64_t at[REF_SPATIAL] = {i / w->out[2] / w->out[1], i / w->out[2] % w->out[1], i % w->out[2]};
      int64_t tap0[REF_SPATIAL], tap1[REF_SPATIAL];
      double sum = 0, count = 1; /* padding may be far larger than the image */
      for (int d = 0; d < REF_SPATIAL; d++) {
        ref_window_taps(w, d, at[d], at[d], &tap0[d], &tap1[d]);
        count *= (double)(f->count_pads ? counted(f, d, at[d]) : tap1[d] > tap0[d] ? tap1[d] - tap0[d] : 0);
      }
      for (int64_t z = tap0[0]; z < tap1[0]; z++) {
        const int64_t iz = at[0] * w->stride[0] + z * w->dilation[0] - w->pad[0];
        for (int64_t y = tap0[1]; y < tap1[1]; y++) {
          const int64_t iy = at[1] * w->stride[1] + y * w->dilation[1] - w->pad[1];
          const float *line = in + (iz * w->in[1] + iy) * w->in[2] + at[2] * w->stride[2] - w->pad[2];
          if (ref_tick(op, &work, tap1[2] - tap0[2] + 16)) return;
          for (int64_t x = tap0[2]; x < tap1[2]; x++) sum += (double)line[x * w->dilation[2]];
        }
      }
      out[i] = count > 0 ? (float)(sum / count) : 0.0f;
    }
  }
}

/* What the sums of places from first on are divided by, along one dimension. */
static double divisor(const ref_pool *f, int d, int64_t at) {
  int64_t from, to;
  if (f->count_pads) return (double)counted(f, d, at);
  ref_window_taps(&f->window, d, at, at, &from, &to);
  return to > from ? (double)(to - from) : 0;
}

static void average_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                             uint64_t first, uint64_t last) {
  enum { PLACES = 256, FEW = 16 };
  const ref_pool *f = &op->u.pool;
  const ref_window *w = &f->window;
  const int64_t in_plane = ref_product(w->in, REF_SPATIAL), positions = ref_product(w->out, REF_SPATIAL);
  const int64_t most = ref_pool_places(w), row = 1 + w->out[2] * (int64_t)ref_pool_taps(w) / 4;
  const int64_t places = most < PLACES ? most : PLACES;
  const bool few = ref_pool_taps(w) <= FEW;
  const ref_pool_row sum = ref_pool_sum_row(few);
  const float nothing = 0; /* stands for a plane without elements */
  int64_t work = 0;
  double count[PLACES], sums[PLACES];
  if (places == 0) {
    average_pool_long(op, inputs, outputs, workspace, first, last);
    return;
  }
  for (int64_t x = 0; x < w->out[2]; x += places) {
    const int64_t n = w->out[2] - x < places ? w->out[2] - x : places;
    for (int64_t i = 0; i < n; i++) count[i] = divisor(f, 2, x + i);
    for (uint64_t p = first; p < last; p++) {
      const float *in = in_plane > 0 ? (const float *)inputs[op->slot[0]] + (int64_t)p * in_plane : &nothing;
      for (int64_t i = 0; i < w->out[0] * w->out[1]; i++) {
        const int64_t z = i / w->out[1], y = i % w->out[1];
        const double rows = divisor(f, 0, z) * divisor(f, 1, y);
        float *out = (float *)outputs[0] + (int64_t)p * positions + i * w->out[2] + x;
        if (ref_tick(op, &work, row)) return;
        sum(w, in, z, y, x, n, sums);
        ref_pool_means(few, sums, count, rows, n, out);
      }
    }
  }
}

heddle_status ref_plan_average_pool(const ref_node *n, ref_op *op, heddle_error *err) {
  uint64_t results = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s == HEDDLE_OK) s = ref_pool_read(n, &op->u.pool, err);
  if (s != HEDDLE_OK) return s;
  region_value_count(n->out, &results);
  const double taps = ref_pool_taps(&op->u.pool.window);
  ref_set_work(op, average_pool_f32, results > 0 ? (uint64_t)(n->out->shape[0] * n->out->shape[1]) : 0,
               3.0 * (double)results * taps, 4.0 * (double)results);
  return HEDDLE_OK;
}

/* ---------------------------------------------------------------- global pools */

static void global_max_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                                uint64_t first, uint64_t last) {
  const uint64_t n = op->u.bytes / sizeof(float), PIECE = UINT64_C(1) << 20;
  int64_t work = 0;
  (void)workspace;
  for (uint64_t p = first; p < last; p++) {
    const float *in = (const float *)inputs[op->slot[0]] + (n > 0 ? p * n : 0);
    float most = -INFINITY;
    for (uint64_t i = 0, end; i < n;) {
      end = n - i < PIECE ? n : i + PIECE;
      const float here = ref_pool_max(in + i, (int64_t)(end - i));
      most = here > most || here != here ? here : most;
      i = end;
      if (ref_tick(op, &work, (int64_t)PIECE)) return;
    }
    ((float *)outputs[0])[p] = most;
  }
}

static void global_average_pool_f32(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace,
                                    uint64_t first, uint64_t last) {
  const uint64_t n = op->u.bytes / sizeof(float);
  float *out = outputs[0];
  (void)workspace;
  for (uint64_t p = first; p < last; p++) {
    out[p] = n == 0 ? NAN : (float)(ref_sum_f32((const float *)inputs[op->slot[0]] + p * n, (int64_t)n) / (double)n);
  }
}

heddle_status ref_plan_global_pool(const ref_node *n, ref_op *op, heddle_error *err) {
  const heddle_pvalue *x = n->in[0], *y = n->out;
  uint64_t planes = 0, count = 0;
  heddle_status s = ref_want_float32(n, err);
  if (s != HEDDLE_OK) return s;
  if (x->ndim < 2 || y->ndim != x->ndim || y->shape[0] != x->shape[0] || y->shape[1] != x->shape[1]) {
    return ref_refuse_shape(n, err);
  }
  for (int32_t i = 2; i < y->ndim; i++) {
    if (y->shape[i] != 1) return ref_refuse_shape(n, err);
  }
  region_value_count(x, &count);
  region_value_count(y, &planes);
  op->u.bytes = planes > 0 ? count / planes * sizeof(float) : 0; /* of a plane */
  const bool most = strcmp(n->node->op, "GlobalMaxPool") == 0;
  ref_set_work(op, most ? global_max_pool_f32 : global_average_pool_f32, planes, 2.0 * (double)count,
               2.0 * (double)count);
  return HEDDLE_OK;
}
