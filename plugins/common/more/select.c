/* Operators that pick elements: what is true, what is not zero, what is unique, what is greatest. */
#include "more.h"

#include <math.h>
#include <stdlib.h>

enum { AXIS, N, INNER, FROM_N, MODE, SORTED, INDEX_N };

static const char *element(const void *p, size_t size, int64_t i) {
  return (const char *)p + (size_t)i * size;
}

/* ---------------------------------------------------------------- Compress, NonZero */

static void run_compress(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[N], inner = m->i[INNER], conditions = m->in[1].count, kept = m->i[FROM_N];
  const size_t bytes = (size_t)inner * m->out[0].size;
  (void)first, (void)last;
  int64_t work = 0;
  if (kept == 0 || inner == 0) return;
  for (int64_t o = 0; o < m->out[0].count / kept / inner; o++) {
    for (int64_t j = 0, to = 0; j < n && j < conditions && to < kept; j++) {
      if (more_tick(m, &work, 4 + inner)) return;
      if (more_get_int(&m->in[1], a->in[1], j) == 0) continue;
      memcpy((char *)a->out[0] + (size_t)(o * kept + to++) * bytes,
             (const char *)a->in[0] + (size_t)(o * n + j) * bytes, bytes);
    }
  }
}

void more_setup_compress(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS], axis = more_int(p, "axis", INT64_MIN);
  int32_t ndim = x->ndim;
  memcpy(shape, x->shape, sizeof shape);
  if (m->in[1].type != REF_TYPE_BOOL || m->in[1].ndim != 1) more_refuse(p, "operand 1 must be a list of bool");
  if (axis == INT64_MIN) {
    shape[0] = x->count;
    ndim = 1;
    axis = 0;
  }
  axis = more_axis(p, axis, ndim);
  const void *condition = more_operand_bytes(p, 1);
  if (!more_ok(p)) return;
  m->i[N] = shape[axis];
  m->i[INNER] = more_count(shape, axis + 1, ndim);
  for (int64_t j = 0; j < m->i[N] && j < m->in[1].count; j++)
    m->i[FROM_N] += more_get_int(&m->in[1], condition, j) != 0;
  shape[axis] = m->i[FROM_N];
  more_result(p, 0, x->type, ndim, shape);
  more_work(p, run_compress, 1, 0);
}

static void run_non_zero(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t kept = m->i[N];
  int64_t *out = a->out[0];
  (void)first, (void)last;
  for (int64_t i = 0, to = 0; i < x->count && to < kept; i++) {
    if (more_get(x, a->in[0], i) == 0) continue;
    int64_t rest = i;
    for (int32_t d = x->ndim; d-- > 0; rest /= x->shape[d]) out[d * kept + to] = rest % x->shape[d];
    to++;
  }
}

void more_setup_non_zero(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const void *bytes = more_operand_bytes(p, 0);
  if (bytes == NULL) return;
  for (int64_t i = 0; i < x->count; i++) p->m->i[N] += more_get(x, bytes, i) != 0;
  const int64_t shape[2] = {x->ndim, p->m->i[N]};
  more_result(p, 0, REF_TYPE_I64, 2, shape);
  more_work(p, run_non_zero, 1, (double)x->count);
}

/* ---------------------------------------------------------------- Unique */

/* Slice i along the axis against slice j: less, equal, greater. NaN is equal to itself and greater than numbers. */
static int compare(const more_op *m, const void *x, int64_t i, int64_t j) {
  const more_value *v = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER], outer = n > 0 && inner > 0 ? v->count / n / inner : 0;
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t k = 0; k < inner; k++) {
      const int64_t at = (o * n + i) * inner + k, bt = (o * n + j) * inner + k;
      if (!more_type_is_real(v->type)) {
        const int64_t a = more_get_int(v, x, at), b = more_get_int(v, x, bt);
        const bool less = more_type_is_unsigned(v->type) ? (uint64_t)a < (uint64_t)b : a < b;
        if (a != b) return less ? -1 : 1;
        continue;
      }
      const double p = more_get(v, x, at), q = more_get(v, x, bt);
      if (p < q || (p == p && q != q)) return -1;
      if (p > q || (p != p && q == q)) return 1;
    }
  }
  return 0;
}

/* The n slices in order, equal ones by index, in one of the two lists of n numbers; the other is free. work NULL: of a
 * setup, which is not asked to end. NULL: the run is to end. */
static int64_t *in_order(const more_op *m, const void *x, int64_t *list, int64_t *other, int64_t *work) {
  const int64_t n = m->i[N], steps = n > 0 ? 4 * (m->in[0].count / n) : 0;
  for (int64_t i = 0; i < n; i++) list[i] = i;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t low = 0; low < n; low += 2 * run) {
      const int64_t middle = low + run < n ? low + run : n, high = low + 2 * run < n ? low + 2 * run : n;
      int64_t a = low, b = middle;
      for (int64_t to = low; to < high; to++) {
        if (work != NULL && more_tick(m, work, 4 + steps)) return NULL;
        other[to] = b == high || (a < middle && compare(m, x, list[a], list[b]) <= 0) ? list[a++] : list[b++];
      }
    }
    int64_t *const sorted = other;
    other = list;
    list = sorted;
  }
  return list;
}

/* How many different slices there are; a refusal where there is no memory to sort them in. */
static int64_t different(more_plan *p, const void *x) {
  const int64_t n = p->m->i[N];
  int64_t found = 0, *lists = malloc(2 * (size_t)n * sizeof *lists + 1);
  if (lists == NULL) {
    p->status = p_fail(p->err, HEDDLE_ENOMEM, 0, "%s: no memory to sort %lld slices", p->n->node->name, (long long)n);
    return 0;
  }
  const int64_t *order = in_order(p->m, x, lists, lists + n, NULL);
  for (int64_t i = 0; i < n; i++) found += i == 0 || compare(p->m, x, order[i - 1], order[i]) != 0;
  free(lists);
  return found;
}

/* In scratch memory: the order of slices; which slice is the first of each one's value; and that value's place among the
 * results. */
static void run_unique(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0];
  const int64_t n = m->i[N], inner = m->i[INNER], kept = m->i[FROM_N];
  const int64_t outer = n > 0 && inner > 0 ? x->count / n / inner : 0;
  int64_t *index = a->out[1], *inverse = a->out[2], *counts = a->out[3], *lists = a->scratch, *rank = lists + 2 * n;
  int64_t work = 0, found = -1;
  (void)first, (void)last;
  const int64_t *order = in_order(m, a->in[0], lists, lists + n, &work);
  if (order == NULL) return;
  int64_t *same = order == lists ? lists + n : lists;
  for (int64_t i = 0, of = 0; i < n; i++) {
    if (more_tick(m, &work, 4 + 4 * outer * inner)) return;
    if (i == 0 || compare(m, a->in[0], order[i - 1], order[i]) != 0) {
      of = order[i];
      found++;
    }
    same[order[i]] = of;
    rank[order[i]] = found;
  }
  if (m->i[SORTED] == 0) {
    found = 0;
    for (int64_t i = 0; i < n; i++) rank[i] = same[i] == i ? found++ : rank[same[i]];
  }
  for (int64_t r = 0; r < kept && counts != NULL; r++) counts[r] = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t r = rank[i];
    if (more_tick(m, &work, 4 + outer * inner)) return;
    if (r >= kept) continue;
    if (inverse != NULL) inverse[i] = r;
    if (counts != NULL) counts[r]++;
    if (same[i] != i) continue;
    if (index != NULL) index[r] = i;
    for (int64_t o = 0; o < outer && a->out[0] != NULL; o++)
      memcpy((char *)a->out[0] + (size_t)((o * kept + r) * inner) * x->size,
             element(a->in[0], x->size, (o * n + i) * inner), (size_t)inner * x->size);
  }
}

void more_setup_unique(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS], axis = more_int(p, "axis", INT64_MIN);
  int32_t ndim = x->ndim;
  memcpy(shape, x->shape, sizeof shape);
  m->i[SORTED] = more_int(p, "sorted", 1);
  if (axis == INT64_MIN) {
    shape[0] = x->count;
    ndim = 1;
    axis = 0;
  }
  axis = more_axis(p, axis, ndim);
  const void *bytes = more_operand_bytes(p, 0);
  if (!more_ok(p)) return;
  m->i[N] = shape[axis];
  m->i[INNER] = more_count(shape, axis + 1, ndim);
  const double steps = (double)(x->count > m->i[N] ? x->count : m->i[N]) * log2((double)m->i[N] + 2);
  if (steps > 0x1p29) more_refuse(p, "it is too large to be sorted in a plan");
  if (!more_ok(p)) return;
  m->i[FROM_N] = different(p, bytes);
  shape[axis] = m->i[FROM_N];
  more_result(p, 0, x->type, ndim, shape);
  more_result(p, 1, REF_TYPE_I64, 1, &m->i[FROM_N]);
  more_result(p, 2, REF_TYPE_I64, 1, &m->i[N]);
  more_result(p, 3, REF_TYPE_I64, 1, &m->i[FROM_N]);
  more_scratch(p, 3.0 * (double)m->i[N] * sizeof(int64_t));
  more_work(p, run_unique, 1, steps);
}
