/* Operators along dimensions: the reductions, cumulative sums and products, ArgMax and ArgMin, Hardmax. */
#include "more.h"

#include "plugins/common/ref/folds.h"
#include "plugins/common/ref/rank.h"

#include <math.h>

enum { SUM, MEAN, PROD, MAX, MIN, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

/* m->i: what is done, how many elements make one, how many dimensions are reduced, and then sizes and strides of these
 * from 10 on; kept ones from 24. */
enum { WHAT, PER, REDUCED, KEPT, SIZES = 8, STRIDES = 16, KEPT_SIZES = 24, KEPT_STRIDES = 32 };

static int64_t place(const int64_t *sizes, const int64_t *strides, int64_t n, int64_t i) {
  int64_t at = 0;
  for (int64_t d = n; d-- > 0; i /= sizes[d]) at += i % sizes[d] * strides[d];
  return at;
}

static double real_of(const more_op *m, const void *in, int64_t base) {
  const int64_t what = m->i[WHAT], n = m->i[PER];
  const int type = m->in[0].type;
  double x = what == PROD ? 1 : what == MAX ? more_lowest(type) : what == MIN ? more_highest(type) : 0, shift = 0;
  int64_t work = 0;
  if (what == LOG_SUM_EXP) {
    shift = -(double)INFINITY;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 8)) return 0;
      const double y = more_get(&m->in[0], in, base + place(m->i + SIZES, m->i + STRIDES, m->i[REDUCED], j));
      shift = y > shift ? y : shift;
    }
    if (isinf(shift)) shift = 0;
  }
  for (int64_t j = 0; j < n; j++) {
    if (more_tick(m, &work, 8)) return 0;
    const double y = more_get(&m->in[0], in, base + place(m->i + SIZES, m->i + STRIDES, m->i[REDUCED], j));
    switch (what) {
    case PROD: x *= y; break;
    case MAX: x = y > x || y != y ? y : x; break;
    case MIN: x = y < x || y != y ? y : x; break;
    case L1: x += fabs(y); break;
    case L2:
    case SUM_SQUARE: x += y * y; break;
    case LOG_SUM_EXP: x += exp(y - shift); break;
    default: x += y; break;
    }
  }
  if (what == MEAN) x /= (double)n;
  if (what == L2) x = sqrt(x);
  if (what == LOG_SUM || what == LOG_SUM_EXP) x = log(x) + shift;
  return x;
}

/* Sums of integers wrap; the others go through real_of where they are exact. */
static int64_t whole_of(const more_op *m, const void *in, int64_t base) {
  const int64_t what = m->i[WHAT], n = m->i[PER];
  const bool no_sign = more_type_is_unsigned(m->in[0].type);
  uint64_t x = what == PROD;
  int64_t work = 0;
  for (int64_t j = 0; j < n; j++) {
    if (more_tick(m, &work, 8)) return 0;
    const int64_t y = more_get_int(&m->in[0], in, base + place(m->i + SIZES, m->i + STRIDES, m->i[REDUCED], j));
    const bool less = no_sign ? (uint64_t)y < x : y < (int64_t)x;
    switch (what) {
    case PROD: x *= (uint64_t)y; break;
    case MAX: x = j == 0 || !less ? (uint64_t)y : x; break;
    case MIN: x = j == 0 || less ? (uint64_t)y : x; break;
    case L1: x += y < 0 && !no_sign ? 0 - (uint64_t)y : (uint64_t)y; break;
    case SUM_SQUARE: x += (uint64_t)y * (uint64_t)y; break;
    default: x += (uint64_t)y; break;
    }
  }
  return (int64_t)x;
}

static void run_reduce(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t what = m->i[WHAT];
  const bool whole = !more_type_is_real(m->in[0].type) && m->i[PER] > 0 && what != MEAN && what != L2 &&
                     what != LOG_SUM && what != LOG_SUM_EXP;
  for (int64_t i = first; i < last; i++) {
    const int64_t base = place(m->i + KEPT_SIZES, m->i + KEPT_STRIDES, m->i[KEPT], i);
    if (whole) more_store_int(m->out[0].type, a->out[0], i, whole_of(m, a->in[0], base));
    else more_put(&m->out[0], a->out[0], i, real_of(m, a->in[0], base));
  }
}

static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceProd",   "ReduceMax",       "ReduceMin",
                                    "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};

void more_setup_reduce(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t axes[MORE_DIMS], shape[MORE_DIMS], stride = 1;
  bool reduced[MORE_DIMS] = {false};
  int32_t ndim = 0;
  const int64_t keep = more_int(p, "keepdims", 1), nothing = more_int(p, "noop_with_empty_axes", 0);
  int64_t count = more_ints(p, "axes", axes, MORE_DIMS);
  if (more_operand(p, 1)) count = more_operand_ints(p, 1, axes, MORE_DIMS);
  for (m->i[WHAT] = 0; strcmp(names[m->i[WHAT]], p->entry->name) != 0;) m->i[WHAT]++;
  if (x->type == REF_TYPE_BOOL && m->i[WHAT] != MAX && m->i[WHAT] != MIN) more_refuse(p, "it takes no bool");
  more_axes(p, axes, count, x->ndim);
  for (int64_t i = 0; i < count && more_ok(p); i++) reduced[axes[i]] = true;
  for (int32_t d = 0; count <= 0 && nothing == 0 && d < x->ndim; d++) reduced[d] = true;
  if (!more_ok(p)) return;
  m->i[PER] = 1;
  for (int32_t d = 0; d < x->ndim; d++) {
    if (reduced[d]) m->i[SIZES + m->i[REDUCED]++] = x->shape[d];
    else m->i[KEPT_SIZES + m->i[KEPT]++] = x->shape[d];
    if (reduced[d]) m->i[PER] *= x->shape[d];
    if (!reduced[d] || keep != 0) shape[ndim++] = reduced[d] ? 1 : x->shape[d];
  }
  int64_t r = m->i[REDUCED], k = m->i[KEPT];
  for (int32_t d = x->ndim; d-- > 0; stride *= x->shape[d]) {
    if (reduced[d]) m->i[STRIDES + --r] = stride;
    else m->i[KEPT_STRIDES + --k] = stride;
  }
  more_result(p, 0, x->type, ndim, shape);
  more_work(p, run_reduce, m->out[0].count, (double)x->count);
}

/* ---------------------------------------------------------------- along one axis */

enum { N = MORE_SCAN_N, INNER, REVERSE, EXCLUSIVE, PRODUCT };

static void along(more_plan *p, int64_t axis) {
  const more_value *x = &p->m->in[0];
  axis = more_axis(p, axis, x->ndim);
  if (!more_ok(p)) return;
  p->m->i[N] = x->shape[axis];
  p->m->i[INNER] = more_count(x->shape, axis + 1, x->ndim);
}

void more_setup_cumulate(more_plan *p) {
  more_number(p, 0);
  p->m->i[REVERSE] = more_int(p, "reverse", 0);
  p->m->i[EXCLUSIVE] = more_int(p, "exclusive", 0);
  p->m->i[PRODUCT] = strcmp(p->entry->name, "CumProd") == 0;
  more_result_like(p, 0, 0);
  if (p->m->in[1].count != 1 || !more_type_is_whole(p->m->in[1].type)) more_refuse(p, "operand 1 must be one integer");
  along(p, more_operand_int(p, 1, 0));
  if (more_ok(p)) more_work(p, more_run_scan, more_scan_units(p->m), (double)p->m->in[0].count);
}

/* ---------------------------------------------------------------- an order along one axis: Hardmax, ArgMax, TopK */

enum { LARGEST = REVERSE, LAST = EXCLUSIVE, TAKEN = PRODUCT, NAN_FIRST };

/* Element i of a row comes before element j: greater (or less), and of equals the first (or the last). NaN comes before
 * all numbers, or behind them. */
static bool before(const more_op *m, const void *x, int64_t base, int64_t i, int64_t j) {
  const more_value *v = &m->in[0];
  const int64_t inner = m->i[INNER];
  const bool first = m->i[LAST] != 0 ? i > j : i < j;
  if (!more_type_is_real(v->type)) {
    const int64_t p = more_get_int(v, x, base + i * inner), q = more_get_int(v, x, base + j * inner);
    const bool less = more_type_is_unsigned(v->type) ? (uint64_t)p < (uint64_t)q : p < q;
    return p == q ? first : less != (m->i[LARGEST] != 0);
  }
  const double p = more_get(v, x, base + i * inner), q = more_get(v, x, base + j * inner);
  if (p == q || (isnan(p) && isnan(q))) return first;
  if (isnan(p) || isnan(q)) return isnan(p) == (m->i[NAN_FIRST] != 0);
  return m->i[LARGEST] != 0 ? p > q : p < q;
}

static int64_t best_of(const more_op *m, const void *x, int64_t base, int64_t *work) {
  int64_t best = 0;
  for (int64_t j = 1; j < m->i[N] && !more_tick(m, work, 4); j++)
    if (before(m, x, base, j, best)) best = j;
  return best;
}

/* Columns side by side, or rows one after the other, so many at a time. */
static void run_hardmax(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER];
  const bool fast = x->type <= REF_TYPE_F64 && n <= INT32_MAX;
  int64_t work = 0, best[64];
  for (int64_t r = first, some; r < last && n > 0; r += some) {
    const int64_t base = r / inner * inner * n + r % inner, left = inner == 1 ? last - r : inner - r % inner;
    const int64_t most = left < 64 ? left : 64, apart = inner == 1 ? n : 1;
    some = last - r < most ? last - r : most;
    if (fast) ref_ends(x->type, true, false, (const char *)a->in[0] + base * x->size, n, inner, some, best);
    for (int64_t c = 0; c < some && !fast; c++) best[c] = best_of(m, a->in[0], base + c * apart, &work);
    if (more_tick(m, &work, 3 * n * some)) return;
    for (int64_t j = 0; j < (inner == 1 ? 1 : n); j++) { /* 0 of each type */
      char *to = (char *)a->out[0] + (base + j * inner) * x->size;
      memset(to, 0, (size_t)((inner == 1 ? n * some : some) * x->size));
    }
    for (int64_t c = 0; c < some; c++) more_put(x, a->out[0], base + c * apart + best[c] * inner, 1);
  }
}

void more_setup_hardmax(more_plan *p) {
  more_real(p, 0);
  along(p, more_int(p, "axis", -1));
  p->m->i[LARGEST] = p->m->i[NAN_FIRST] = 1;
  more_result_like(p, 0, 0);
  more_work(p, run_hardmax, p->m->i[N] > 0 ? p->m->in[0].count / p->m->i[N] : 1, (double)p->m->in[0].count);
}

/* Also Softmax and LogSoftmax of float64. */
static void run_softmax(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER];
  if (x->type == REF_TYPE_F64) {
    more_run_softmax_f64(m, a, first, last, n, inner, m->i[PRODUCT] != 0);
    return;
  }
  for (int64_t r = first; r < last; r++) {
    const int64_t base = r / inner * inner * n + r % inner;
    double most = -(double)INFINITY, sum = 0;
    int64_t work = 0;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 2)) return;
      most = fmax(most, more_get(x, a->in[0], base + j * inner));
    }
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 8)) return;
      sum += exp(more_get(x, a->in[0], base + j * inner) - most);
    }
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 8)) return;
      const double y = more_get(x, a->in[0], base + j * inner) - most;
      more_put(x, a->out[0], base + j * inner, m->i[PRODUCT] ? y - log(sum) : exp(y) / sum);
    }
  }
}

void more_setup_softmax(more_plan *p) {
  more_real(p, 0);
  along(p, more_int(p, "axis", -1));
  p->m->i[PRODUCT] = strcmp(p->entry->name, "LogSoftmax") == 0;
  more_result_like(p, 0, 0);
  more_work(p, run_softmax, p->m->i[N] > 0 ? p->m->in[0].count / p->m->i[N] : 1, 10 * (double)p->m->in[0].count);
}

static void run_arg(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[N], inner = m->i[INNER];
  int64_t work = 0;
  for (int64_t r = first; r < last; r++)
    ((int64_t *)a->out[0])[r] = best_of(m, a->in[0], r / inner * inner * n + r % inner, &work);
}

void more_setup_arg(more_plan *p) {
  const more_value *x = &p->m->in[0];
  int64_t shape[MORE_DIMS], axis = more_axis(p, more_int(p, "axis", 0), x->ndim);
  int32_t ndim = 0;
  const int64_t keep = more_int(p, "keepdims", 1);
  more_number(p, 0);
  along(p, axis);
  p->m->i[LAST] = more_int(p, "select_last_index", 0);
  p->m->i[LARGEST] = strcmp(p->entry->name, "ArgMax") == 0;
  p->m->i[NAN_FIRST] = 1;
  for (int32_t d = 0; d < x->ndim; d++)
    if (d != axis || keep != 0) shape[ndim++] = d == axis ? 1 : x->shape[d];
  if (p->m->i[N] == 0) more_refuse(p, "there is nothing to choose from");
  more_result(p, 0, REF_TYPE_I64, ndim, shape);
  more_work(p, run_arg, p->m->out[0].count, (double)x->count);
}

/* ---------------------------------------------------------------- TopK */

typedef struct column {
  const more_value *v;
  const void *x;
  int64_t base, inner;
} column;

/* Halves are float32 without loss, and integers of less than 64 bits are, as they are ordered, uint32. */
static void top_keys(const void *ctx, int64_t first, int64_t n, uint64_t *out) {
  const column *c = ctx;
  const bool wide = c->v->size == 8, no_sign = more_type_is_unsigned(c->v->type);
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = c->base + (first + i) * c->inner;
    if (more_type_is_real(c->v->type)) {
      const double x = more_get(c->v, c->x, at);
      out[i] = wide ? ref_rank_double(x) : ref_rank_float((float)x);
      continue;
    }
    const uint64_t x = (uint64_t)more_get_int(c->v, c->x, at);
    out[i] = wide ? x ^ (no_sign ? 0 : UINT64_C(1) << 63) : (uint32_t)x ^ (no_sign ? 0 : UINT32_C(1) << 31);
  }
}

static void run_top_k(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER], k = m->i[TAKEN];
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    const column c = {x, a->in[0], r / inner * inner * n + r % inner, inner};
    const ref_rank rank = {
        .n = n, .k = k, .wide = x->size == 8, .largest = m->i[LARGEST] != 0, .keys = top_keys, .ctx = &c};
    const int64_t to = r / inner * inner * k + r % inner;
    if (!ref_rank_run(&rank, more_ref_op(m), &work, a->scratch)) return;
    for (int64_t i = 0; i < k; i++) {
      const int64_t from = ref_rank_index(&rank, a->scratch, i);
      if (a->out[0] != NULL)
        memcpy((char *)a->out[0] + (size_t)(to + i * inner) * x->size,
               (const char *)a->in[0] + (size_t)(c.base + from * inner) * x->size, x->size);
      if (a->out[1] != NULL) ((int64_t *)a->out[1])[to + i * inner] = from;
    }
  }
}

void more_setup_top_k(more_plan *p) {
  const more_value *x = &p->m->in[0];
  int64_t shape[MORE_DIMS], k;
  const int64_t axis = more_axis(p, more_int(p, "axis", -1), x->ndim);
  more_number(p, 0);
  along(p, axis);
  p->m->i[LARGEST] = p->m->i[NAN_FIRST] = more_int(p, "largest", 1) != 0;
  more_int(p, "sorted", 1);
  if (more_operand_ints(p, 1, &k, 1) != 1) more_refuse(p, "operand 1 must be one int64");
  if (!more_ok(p)) return;
  if (k < 0 || k > p->m->i[N])
    more_refuse(p, "it has %lld elements and is asked for %lld", (long long)p->m->i[N], (long long)k);
  memcpy(shape, x->shape, sizeof shape);
  shape[axis] = p->m->i[TAKEN] = k;
  more_result(p, 0, x->type, x->ndim, shape);
  more_result(p, 1, REF_TYPE_I64, x->ndim, shape);
  more_work(p, run_top_k, p->m->i[N] > 0 ? x->count / p->m->i[N] : 1, 4 * (double)x->count);
  p->m->part_scratch = ref_rank_bytes(p->m->i[N], k, x->size == 8);
}
