/* ReduceSum, ReduceMean, ReduceMax, ReduceMin and ReduceProd over any axes. Neighbouring axes that are both reduced or
 * both kept are one. A unit is an element of the result, or up to COLUMNS neighbours where the last axis is kept. Sums
 * are in float64, those of integers in int64. */
#include "ref_op.h"
#include "sum.h"
#include "types.h"

#include <math.h>

enum { COLUMNS = 64, SUM, MEAN, MAX, MIN, PROD };

#define FOLD(T, SELF) \
  for (int64_t i = 0; i < n; i++) { \
    const T v = x[i]; \
    T *a = &acc[SELF]; \
    switch (what) { \
    case MAX: *a = v > *a || v != v ? v : *a; break; \
    case MIN: *a = v < *a || v != v ? v : *a; break; \
    case PROD: *a = PRODUCT(*a, v); break; \
    default: *a = TOTAL(*a, v); break; \
    } \
  }

/* acc[i * step] takes x[i]: a row into one with step 0, a row of columns with step 1. */
#define PRODUCT(a, b) ((a) * (b))
#define TOTAL(a, b) ((a) + (b))
static void fold_real(uint32_t what, double *acc, int64_t step, const double *x, int64_t n) {
  FOLD(double, i *step)
}
#undef PRODUCT
#undef TOTAL

#define PRODUCT(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define TOTAL(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
static void fold_whole(uint32_t what, int64_t *acc, int64_t step, const int64_t *x, int64_t n) {
  FOLD(int64_t, i * step)
}

typedef struct sums {
  double real[COLUMNS];
  int64_t whole[COLUMNS];
} sums;

/* n elements at in: all into the first sum, or each into its own. */
static void take(const ref_reduce *r, const char *in, int64_t n, bool columns, sums *s) {
  double real[COLUMNS];
  int64_t whole[COLUMNS];
  const uint32_t size = ref_type_bytes((int)r->type);
  if (!columns && r->type == REF_TYPE_F32 && (r->what == SUM || r->what == MEAN)) {
    s->real[0] += ref_sum_f32((const float *)(const void *)in, n);
    return;
  }
  for (int64_t at = 0; at < n; at += COLUMNS) {
    const int64_t some = n - at < COLUMNS ? n - at : COLUMNS;
    if (r->type == REF_TYPE_F32) {
      ref_cast(REF_TYPE_F32, in + at * size, REF_TYPE_F64, real, some);
      fold_real(r->what, s->real, columns, real, some);
    } else {
      ref_cast((int)r->type, in + at * size, REF_TYPE_I64, whole, some);
      fold_whole(r->what, s->whole, columns, whole, some);
    }
  }
}

static void finish(const ref_reduce *r, sums *s, int64_t n, char *out) {
  for (int64_t i = 0; i < n && r->what == MEAN; i++) {
    s->real[i] /= (double)r->count;
    s->whole[i] = r->count > 0 ? s->whole[i] / r->count : 0;
  }
  if (r->type == REF_TYPE_F32) ref_cast(REF_TYPE_F64, s->real, REF_TYPE_F32, out, n);
  else ref_cast(REF_TYPE_I64, s->whole, (int)r->type, out, n);
}

int64_t ref_reduce_start(const ref_reduce *r) {
  if (r->type == REF_TYPE_F32) return 0;
  return r->what == MAX ? ref_type_least((int)r->type) : r->what == MIN ? ref_type_most((int)r->type) : r->what == PROD;
}

static void reduce(const ref_op *op, void *const *inputs, void *const *outputs, void *workspace, uint64_t first,
                   uint64_t last) {
  const ref_reduce *r = &op->u.reduce;
  const uint32_t size = ref_type_bytes((int)r->type);
  const uint64_t across = r->row_kept ? ((uint64_t)r->row + COLUMNS - 1) / COLUMNS : 1;
  const double start = r->what == MAX ? -INFINITY : r->what == MIN ? INFINITY : r->what == PROD ? 1 : 0;
  const int64_t whole = ref_reduce_start(r);
  int64_t work = 0;
  (void)workspace;
  for (uint64_t unit = first; unit < last; unit++) {
    uint64_t rest = unit / across;
    const int64_t column = r->row_kept ? (int64_t)(unit % across) * COLUMNS : 0;
    const int64_t width = !r->row_kept ? 1 : r->row - column < COLUMNS ? r->row - column : COLUMNS;
    int64_t at[REF_MAX_DIMS] = {0}, offset = column;
    sums s;
    for (int64_t i = 0; i < width; i++) s.real[i] = start, s.whole[i] = whole;
    for (int32_t d = r->kept - 1; d >= 0; d--) {
      offset += (int64_t)(rest % (uint64_t)r->kept_dim[d]) * r->kept_stride[d];
      rest /= (uint64_t)r->kept_dim[d];
    }
    for (bool more = r->count > 0; more;) {
      const int64_t n = r->row_kept ? width : r->row;
      take(r, (const char *)inputs[op->slot[0]] + offset * size, n, r->row_kept != 0, &s);
      if (ref_tick(op, &work, n + 8)) return;
      more = false;
      for (int32_t d = r->reduced - 1; d >= 0 && !more; d--) {
        offset += r->stride[d];
        more = ++at[d] < r->dim[d];
        if (more) break;
        at[d] = 0;
        offset -= r->stride[d] * r->dim[d];
      }
    }
    finish(r, &s, width,
           (char *)outputs[0] + ((unit / across) * (uint64_t)(r->row_kept ? r->row : 1) + (uint64_t)column) * size);
  }
}

heddle_status ref_plan_reduce(const ref_node *n, ref_op *op, heddle_error *err) {
  static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  ref_reduce *r = &op->u.reduce;
  const heddle_pvalue *x = n->in[0], *y = n->out;
  int64_t axes[REF_MAX_DIMS], noop = 0, keep = 1, strides[REF_MAX_DIMS], stride = 1;
  const int64_t *list;
  uint64_t given, results = 0, elements = 0;
  uint32_t count, mask = 0;
  heddle_status s = region_attr_ints(n->node, "axes", &list, &given, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "noop_with_empty_axes", 0, &noop, err);
  if (s == HEDDLE_OK) s = region_attr_int(n->node, "keepdims", 1, &keep, err);
  if (s == HEDDLE_OK) s = ref_ints(n, 1, axes, REF_MAX_DIMS, &count, err);
  if (s != HEDDLE_OK) return s;
  for (r->what = SUM; strcmp(n->node->op, names[r->what - SUM]) != 0; r->what++) continue;
  r->type = (uint32_t)ref_type_of(x->dtype);
  const bool known = r->type == REF_TYPE_F32 || (ref_type_is_whole((int)r->type) && r->type != REF_TYPE_BOOL);
  if (!known || !region_dtype_equal(x->dtype, y->dtype)) return ref_refuse(n, err, "it does not take this type");
  if (x->ndim > REF_MAX_DIMS || given > REF_MAX_DIMS)
    return ref_refuse(n, err, "more than %d dimensions", REF_MAX_DIMS);
  if (count == UINT32_MAX) {
    for (count = 0; count < given; count++) axes[count] = list[count];
  }
  if (count == 0 && noop == 0) count = UINT32_MAX; /* all */
  s = ref_axes(n, axes, &count, x->ndim, err);
  if (s != HEDDLE_OK) return s;
  for (uint32_t i = 0; i < count; i++) mask |= UINT32_C(1) << axes[i];

  int32_t k = 0;
  for (int32_t d = 0; d < x->ndim; d++) {
    const bool gone = (mask >> d & 1) != 0;
    if (gone && keep == 0) continue;
    if (k >= y->ndim || y->shape[k++] != (gone ? 1 : x->shape[d])) return ref_refuse_shape(n, err);
  }
  if (k != y->ndim) return ref_refuse_shape(n, err);
  for (int32_t d = x->ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->shape[d] > 0 ? x->shape[d] : 1;
  }
  r->row = 1;
  r->count = 1;
  int32_t last = x->ndim - 1;
  while (last >= 0 && x->shape[last] == 1) last--;
  if (last >= 0) r->row_kept = (mask >> last & 1) == 0;
  for (; last >= 0 && ((mask >> last & 1) == 0) == (r->row_kept != 0); last--) r->row *= x->shape[last];
  if (!r->row_kept) r->count = r->row;
  for (int32_t d = 0; d <= last; d++) {
    if ((mask >> d & 1) != 0) {
      r->count *= x->shape[d];
      r->dim[r->reduced] = x->shape[d];
      r->stride[r->reduced++] = strides[d];
    } else {
      r->kept_dim[r->kept] = x->shape[d];
      r->kept_stride[r->kept++] = strides[d];
    }
  }
  op->absorbed = 2;
  region_value_count(y, &results);
  region_value_count(x, &elements);
  uint64_t units = results;
  if (r->row_kept && results > 0) units = results / (uint64_t)r->row * (((uint64_t)r->row + COLUMNS - 1) / COLUMNS);
  ref_set_work(op, reduce, units, 8.0 * (double)elements, (double)elements * (double)region_dtype_bytes(x->dtype));
  return HEDDLE_OK;
}
