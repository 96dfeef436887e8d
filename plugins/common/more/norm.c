/* Normalizations of any shape and floating-point type: Layer, RMS, Group, MeanVariance and Lp; and the losses, which
 * end in a mean. */
#include "more.h"

#include "plugins/common/ref/norm_rows.h"

#include <math.h>

/* ---------------------------------------------------------------- over the last dimensions */

enum { N, MEAN, KEPT };

/* LayerNormalization and RMSNormalization: scale and bias broadcast to operand 0. */
static void run_rows(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N];
  for (int64_t r = first; r < last; r++) {
    double mean = 0, square = 0;
    int64_t work = 0;
    for (int64_t j = 0; j < n && m->i[MEAN]; j++) {
      mean += more_get(x, a->in[0], r * n + j);
      if (more_tick(m, &work, 1)) return;
    }
    mean /= (double)n;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 1)) return;
      const double d = more_get(x, a->in[0], r * n + j) - mean;
      square += d * d;
    }
    const double inverse = 1 / sqrt(square / (double)n + m->f[0]);
    for (int64_t j = 0; j < n && a->out[0] != NULL; j++) {
      const int64_t i = r * n + j;
      if (more_tick(m, &work, 8)) return;
      double y = more_round_to(x->type, (more_get(x, a->in[0], i) - mean) * inverse);
      y *= more_get(&m->in[1], a->in[1], more_at(&m->in[1], x, i));
      if (a->in[2] != NULL) y += more_get(&m->in[2], a->in[2], more_at(&m->in[2], x, i));
      more_put(&m->out[0], a->out[0], i, y);
    }
    if (a->out[1] != NULL) more_put(&m->out[1], a->out[1], r, mean);
    if (a->out[2] != NULL) more_put(&m->out[2], a->out[2], r, inverse);
  }
}

/* Of float64, where scale and bias have the shape of a row. */
static void run_rows_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const ref_norm_rows *rows = ref_norm_rows_of(true);
  const int64_t n = m->i[N];
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    const double *x = (const double *)a->in[0] + r * n;
    const double mean = m->i[MEAN] ? rows->sum(x, n) / (double)n : 0;
    const double inverse = 1 / sqrt(rows->squares(x, n, mean) / (double)n + m->f[0]);
    if (more_tick(m, &work, 3 * n)) return;
    if (a->out[0] != NULL) rows->scale(x, n, mean, inverse, a->in[1], a->in[2], (double *)a->out[0] + r * n);
    if (a->out[1] != NULL) more_put(&m->out[1], a->out[1], r, mean);
    if (a->out[2] != NULL) more_put(&m->out[2], a->out[2], r, inverse);
  }
}

static bool is_row(const more_op *m, uint32_t k) {
  const more_value *x = &m->in[0], *v = &m->in[k];
  bool same = v->count == m->i[N] && v->ndim <= x->ndim && v->type == x->type;
  for (int32_t d = 0; same && d < v->ndim; d++) {
    const int64_t size = x->shape[x->ndim - v->ndim + d];
    same = v->shape[d] == size || more_count(v->shape, 0, d + 1) == 1;
  }
  return same;
}

static void fits(more_plan *p, uint32_t k) {
  int64_t shape[MORE_DIMS];
  int32_t ndim = p->m->in[0].ndim;
  if (!more_operand(p, k) || !more_ok(p)) return;
  memcpy(shape, p->m->in[0].shape, sizeof shape);
  if (more_broadcast(p, shape, &ndim, k) &&
      (ndim != p->m->in[0].ndim || memcmp(shape, p->m->in[0].shape, (size_t)ndim * sizeof *shape) != 0))
    more_refuse(p, "operand %u does not broadcast to operand 0", k);
}

void more_setup_normalize(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS];
  const int64_t axis = more_axis(p, more_int(p, "axis", -1), x->ndim), stash = more_int(p, "stash_type", 1);
  m->f[0] = more_float(p, "epsilon", 1e-5);
  m->i[MEAN] = strcmp(p->entry->name, "LayerNormalization") == 0;
  more_real(p, 0);
  more_real(p, 1);
  fits(p, 1);
  fits(p, 2);
  if (!more_ok(p)) return;
  m->i[N] = more_count(x->shape, axis, x->ndim);
  for (int32_t d = 0; d < x->ndim; d++) shape[d] = d < axis ? x->shape[d] : 1;
  more_result(p, 0, m->i[MEAN] ? x->type : m->in[1].type, x->ndim, x->shape);
  more_result(p, 1, more_type_of_onnx(stash), x->ndim, shape);
  more_result(p, 2, more_type_of_onnx(stash), x->ndim, shape);
  if (!more_ok(p)) return;
  const more_value *scale = &m->in[1];
  const bool fast = !m->i[MEAN] && x->type == REF_TYPE_F32 && scale->type == REF_TYPE_F32 && x->count > 0 &&
                    scale->count == m->i[N] && scale->ndim > 0 &&
                    scale->shape[scale->ndim - 1] == x->shape[x->ndim - 1];
  if (fast) more_loop(p, more_run_rms_rows, more_count(x->shape, 0, axis), (double)x->count);
  else if (x->type == REF_TYPE_F64 && x->count > 0 && is_row(m, 1) && (!more_operand(p, 2) || is_row(m, 2)))
    more_loop(p, run_rows_fast, more_count(x->shape, 0, axis), 6 * (double)x->count);
  else more_work(p, run_rows, more_count(x->shape, 0, axis), 4 * (double)x->count);
}

/* ---------------------------------------------------------------- GroupNormalization */

enum { GROUPS, PER_GROUP, PLANE, BY_GROUP };

static void run_groups(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t plane = m->i[PLANE], n = m->i[PER_GROUP] * plane;
  for (int64_t u = first; u < last; u++) {
    const int64_t group = u % m->i[GROUPS];
    double mean = 0, square = 0;
    int64_t work = 0;
    for (int64_t j = 0; j < n; j++) {
      mean += more_get(x, a->in[0], u * n + j);
      if (more_tick(m, &work, 1)) return;
    }
    mean /= (double)n;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 1)) return;
      const double d = more_get(x, a->in[0], u * n + j) - mean;
      square += d * d;
    }
    const double inverse = 1 / sqrt(square / (double)n + m->f[0]);
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 4)) return;
      const int64_t c = m->i[BY_GROUP] ? group : group * m->i[PER_GROUP] + j / plane;
      const double y = (more_get(x, a->in[0], u * n + j) - mean) * inverse * more_get(&m->in[1], a->in[1], c);
      more_put(&m->out[0], a->out[0], u * n + j, y + more_get(&m->in[2], a->in[2], c));
    }
  }
}

/* Of float32 and float64. */
static void run_groups_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t plane = m->i[PLANE], n = m->i[PER_GROUP] * plane;
  const ref_norm_rows *rows = ref_norm_rows_of(x->type == REF_TYPE_F64);
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t group = u % m->i[GROUPS];
    const char *in = (const char *)a->in[0] + u * n * x->size;
    char *out = (char *)a->out[0] + u * n * x->size;
    double mean, variance;
    ref_norm_measure(rows, in, n, &mean, &variance);
    if (more_tick(m, &work, 3 * n)) return;
    const double inverse = 1 / sqrt(variance + m->f[0]);
    for (int64_t j = 0; j < m->i[PER_GROUP]; j++) {
      const int64_t c = m->i[BY_GROUP] ? group : group * m->i[PER_GROUP] + j, at = j * plane * x->size;
      rows->shift(in + at, plane, mean, inverse * more_get(&m->in[1], a->in[1], c), more_get(&m->in[2], a->in[2], c),
                  out + at);
    }
  }
}

void more_setup_group_norm(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  more_rank(p, 0, 2, MORE_DIMS);
  more_real(p, 0);
  more_same_type(p, 0, 1);
  more_same_type(p, 0, 2);
  m->i[GROUPS] = more_int(p, "num_groups", 0);
  m->i[BY_GROUP] = !more_defines(p, "stash_type"); /* of older definitions: scale and bias had one number a group */
  m->f[0] = more_float(p, "epsilon", 1e-5);
  more_int(p, "stash_type", 1);
  if (more_ok(p) && (m->i[GROUPS] < 1 || x->shape[1] % m->i[GROUPS] != 0))
    more_refuse(p, "num_groups does not divide its channels");
  if (!more_ok(p)) return;
  m->i[PER_GROUP] = x->shape[1] / m->i[GROUPS];
  m->i[PLANE] = more_count(x->shape, 2, x->ndim);
  more_shape_is(p, 1, 1, m->i[BY_GROUP] ? &m->i[GROUPS] : &x->shape[1]);
  more_shape_is(p, 2, 1, m->i[BY_GROUP] ? &m->i[GROUPS] : &x->shape[1]);
  more_result_like(p, 0, 0);
  if (x->type == REF_TYPE_F32 || x->type == REF_TYPE_F64)
    more_loop(p, run_groups_fast, x->shape[0] * m->i[GROUPS], 6 * (double)x->count);
  else more_work(p, run_groups, x->shape[0] * m->i[GROUPS], 4 * (double)x->count);
}

/* ---------------------------------------------------------------- MeanVarianceNormalization */

enum { SIZES = 8, STRIDES = 16, KEPT_SIZES = 24, KEPT_STRIDES = 32, REDUCED = 3, KEPT_DIMS, RUN, JOINED };

static int64_t place(const int64_t *sizes, const int64_t *strides, int64_t n, int64_t i) {
  int64_t at = 0;
  for (int64_t d = n; d-- > 0; i /= sizes[d]) at += i % sizes[d] * strides[d];
  return at;
}

static void run_mean_variance(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], rest = m->i[REDUCED] - m->i[JOINED], run = m->i[RUN];
  const bool rows = x->type <= REF_TYPE_F64;
  for (int64_t u = first; u < last; u++) {
    const int64_t base = place(m->i + KEPT_SIZES, m->i + KEPT_STRIDES, m->i[KEPT_DIMS], u);
    double sum = 0, square = 0;
    int64_t work = 0;
    for (int pass = 0; pass < 3; pass++) {
      const double mean = sum / (double)n, by = 1 / (sqrt(square / (double)n) + 1e-9);
      for (int64_t j = 0; j < n / run; j++) {
        const int64_t at = base + place(m->i + SIZES + m->i[JOINED], m->i + STRIDES + m->i[JOINED], rest, j);
        const void *from = (const char *)a->in[0] + at * x->size;
        void *to = (char *)a->out[0] + at * x->size;
        if (more_tick(m, &work, 2 * run + 8)) return;
        if (rows && pass == 0) sum += more_row_sum(x->type, from, run);
        else if (rows && pass == 1) square += more_row_square(x->type, from, run, mean);
        else if (rows) more_row_scale(x->type, from, to, run, mean, by);
        for (int64_t k = 0; k < run && !rows; k++) {
          const double y = more_get(x, from, k);
          if (pass == 0) sum += y;
          else if (pass == 1) square += (y - mean) * (y - mean);
          else more_put(x, to, k, (y - mean) * by);
        }
      }
    }
  }
}

void more_setup_mean_variance(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t axes[MORE_DIMS] = {0, 2, 3}, stride = 1, count = more_ints(p, "axes", axes, MORE_DIMS);
  bool reduced[MORE_DIMS] = {false};
  if (count < 0) count = 3;
  more_real(p, 0);
  more_axes(p, axes, count, x->ndim);
  for (int64_t i = 0; i < count && more_ok(p); i++) reduced[axes[i]] = true;
  if (!more_ok(p)) return;
  m->i[N] = 1;
  for (int32_t d = x->ndim; d-- > 0; stride *= x->shape[d]) {
    const int64_t k = reduced[d] ? m->i[REDUCED]++ : m->i[KEPT_DIMS]++;
    m->i[(reduced[d] ? SIZES : KEPT_SIZES) + k] = x->shape[d];
    m->i[(reduced[d] ? STRIDES : KEPT_STRIDES) + k] = stride;
    if (reduced[d]) m->i[N] *= x->shape[d];
  }
  m->i[RUN] = 1; /* elements side by side, of the innermost dimensions */
  while (m->i[JOINED] < m->i[REDUCED] && m->i[STRIDES + m->i[JOINED]] == m->i[RUN])
    m->i[RUN] *= m->i[SIZES + m->i[JOINED]++];
  if (m->i[RUN] == 0) m->i[RUN] = 1;
  more_result_like(p, 0, 0);
  more_work(p, run_mean_variance, m->i[N] > 0 ? x->count / m->i[N] : 1, 6 * (double)x->count);
}

/* ---------------------------------------------------------------- LpNormalization */

static void run_lp(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[0], inner = m->i[1];
  for (int64_t r = first; r < last; r++) {
    const int64_t base = r / inner * inner * n + r % inner;
    double sum = 0;
    int64_t work = 0;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 2)) return;
      const double y = more_get(x, a->in[0], base + j * inner);
      sum += m->i[2] == 1 ? fabs(y) : y * y;
    }
    if (m->i[2] != 1) sum = sqrt(sum);
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 2)) return;
      const double y = more_get(x, a->in[0], base + j * inner);
      more_put(x, a->out[0], base + j * inner, sum != 0 ? y / sum : 0);
    }
  }
}

/* Rows of float32 and float64 that lie side by side. */
static void run_lp_rows(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const ref_norm_rows *rows = ref_norm_rows_of(x->type == REF_TYPE_F64);
  const int64_t n = m->i[0];
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    const char *in = (const char *)a->in[0] + r * n * x->size;
    double sum = m->i[2] == 1 ? rows->sizes(in, n) : sqrt(rows->squares(in, n, 0));
    if (more_tick(m, &work, 2 * n)) return;
    rows->divisors(&sum, 1);
    rows->divide(in, n, &sum, 0, (char *)a->out[0] + r * n * x->size);
  }
}

/* The same of columns, some beside each other at a time; a unit is such a piece. */
enum { PIECE = 64 };

static bool lp_columns(const more_op *m, const void *from, int64_t width, int64_t apart, void *to, int64_t *work) {
  const more_value *x = &m->in[0];
  const ref_norm_rows *rows = ref_norm_rows_of(x->type == REF_TYPE_F64);
  const int64_t n = m->i[0], row = apart * x->size;
  double sums[PIECE] = {0};
  for (int64_t j = 0; j < n; j++) {
    rows->add_columns((const char *)from + j * row, width, m->i[2] != 1, sums);
    if (more_tick(m, work, width)) return false;
  }
  for (int64_t c = 0; c < width && m->i[2] != 1; c++) sums[c] = sqrt(sums[c]);
  rows->divisors(sums, width);
  for (int64_t j = 0; j < n; j++) {
    rows->divide((const char *)from + j * row, width, sums, 1, (char *)to + j * row);
    if (more_tick(m, work, width)) return false;
  }
  return true;
}

static void run_lp_columns(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[0], inner = m->i[1], across = (inner + PIECE - 1) / PIECE, size = m->in[0].size;
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t c = u % across * PIECE, at = (u / across * n * inner + c) * size;
    const int64_t width = inner - c < PIECE ? inner - c : PIECE;
    if (!lp_columns(m, (const char *)a->in[0] + at, width, inner, (char *)a->out[0] + at, &work)) return;
  }
}

/* Rows that are short, as columns. */
static void run_lp_short(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const uint32_t size = m->in[0].size;
  const int64_t row = m->i[0] * size, most = REF_TURN_BYTES / row < PIECE ? REF_TURN_BYTES / row : PIECE;
  int64_t work = 0;
  for (int64_t some; first < last; first += some) {
    double in[REF_TURN_BYTES / sizeof(double)], out[REF_TURN_BYTES / sizeof(double)];
    some = last - first < most ? last - first : most;
    ref_turn(size, (const char *)a->in[0] + first * row, some, m->i[0], in);
    if (!lp_columns(m, in, some, some, out, &work)) return;
    ref_turn(size, out, m->i[0], some, (char *)a->out[0] + first * row);
  }
}

void more_setup_lp_norm(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t axis = more_axis(p, more_int(p, "axis", -1), x->ndim);
  p->m->i[2] = more_int(p, "p", 2);
  if (p->m->i[2] != 1 && p->m->i[2] != 2) more_refuse(p, "p is neither 1 nor 2");
  more_real(p, 0);
  if (!more_ok(p)) return;
  p->m->i[0] = x->shape[axis];
  p->m->i[1] = more_count(x->shape, axis + 1, x->ndim);
  more_result_like(p, 0, 0);
  const bool fast = (x->type == REF_TYPE_F32 || x->type == REF_TYPE_F64) && x->count > 0;
  const int64_t across = (p->m->i[1] + PIECE - 1) / PIECE;
  if (fast && p->m->i[1] == 1 && p->m->i[0] <= REF_TURN_SHORT)
    more_loop(p, run_lp_short, x->count / p->m->i[0], 6 * (double)x->count);
  else if (fast && p->m->i[1] == 1) more_loop(p, run_lp_rows, x->count / p->m->i[0], 6 * (double)x->count);
  else if (fast) more_loop(p, run_lp_columns, x->count / p->m->i[0] / p->m->i[1] * across, 6 * (double)x->count);
  else more_work(p, run_lp, p->m->i[0] > 0 ? x->count / p->m->i[0] : 1, 2 * (double)x->count);
}

/* ---------------------------------------------------------------- losses */

enum { CLASSES, INNER, REDUCTION, IGNORES, IGNORED, CROSS_ENTROPY };
enum { NONE, MEAN_OF, SUM };

/* The logarithm of the softmax over the classes, at element base + c * inner. */
static double shifted(const more_op *m, const void *x, int64_t base, double *most) {
  double sum = 0;
  *most = -(double)INFINITY;
  for (int64_t c = 0; c < m->i[CLASSES]; c++) *most = fmax(*most, more_get(&m->in[0], x, base + c * m->i[INNER]));
  for (int64_t c = 0; c < m->i[CLASSES]; c++) sum += exp(more_get(&m->in[0], x, base + c * m->i[INNER]) - *most);
  return log(sum);
}

static void run_loss(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t classes = m->i[CLASSES], inner = m->i[INNER];
  double total = 0, weights = 0;
  int64_t work = 0;
  (void)first, (void)last;
  for (int64_t i = 0; i < m->in[1].count; i++) {
    const int64_t base = i / inner * inner * classes + i % inner, label = more_get_int(&m->in[1], a->in[1], i);
    double most = 0, log_sum = 0, loss = 0, weight = 0;
    if (more_tick(m, &work, 16 * classes)) return;
    if (m->i[CROSS_ENTROPY]) log_sum = shifted(m, a->in[0], base, &most);
    for (int64_t c = 0; c < classes && a->out[1] != NULL; c++)
      more_put(&m->out[1], a->out[1], base + c * inner,
               more_get(&m->in[0], a->in[0], base + c * inner) - most - log_sum);
    const bool ignored = m->i[IGNORES] && label == m->i[IGNORED];
    if (!ignored && label >= 0 && label < classes) {
      weight = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], label) : 1;
      loss = weight * -(more_get(&m->in[0], a->in[0], base + label * inner) - most - log_sum);
    }
    total += loss;
    weights += weight;
    if (m->i[REDUCTION] == NONE && a->out[0] != NULL) more_put(&m->out[0], a->out[0], i, loss);
  }
  if (m->i[REDUCTION] != NONE && a->out[0] != NULL)
    more_put(&m->out[0], a->out[0], 0, m->i[REDUCTION] == MEAN_OF ? total / weights : total);
}

static void loss(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS];
  more_rank(p, 0, 2, MORE_DIMS);
  more_real(p, 0);
  more_same_type(p, 0, 2);
  more_index_type(p, 1);
  m->i[REDUCTION] = more_choice(p, "reduction", "mean", "none mean sum");
  m->i[IGNORES] = region_attr_find(p->n->node, "ignore_index") != NULL;
  m->i[IGNORED] = more_int(p, "ignore_index", 0);
  if (!more_ok(p)) return;
  m->i[CLASSES] = x->shape[1];
  m->i[INNER] = more_count(x->shape, 2, x->ndim);
  for (int32_t d = 0; d < x->ndim - 1; d++) shape[d] = x->shape[d == 0 ? 0 : d + 1];
  more_shape_is(p, 1, x->ndim - 1, shape);
  more_shape_is(p, 2, 1, &x->shape[1]);
  more_result(p, 0, x->type, m->i[REDUCTION] == NONE ? x->ndim - 1 : 0, shape);
  more_result(p, 1, x->type, x->ndim, x->shape);
  more_work(p, run_loss, 1, 10 * (double)x->count);
}

void more_setup_nll(more_plan *p) {
  loss(p);
}

void more_setup_sce(more_plan *p) {
  p->m->i[CROSS_ENTROPY] = 1;
  loss(p);
}
