/* Operators that pick elements or put them somewhere: gathers and scatters, what is true, what is not zero, what is
 * unique. An index out of range takes zeros, and writes nothing. */
#include "more.h"

#include <math.h>
#include <stdlib.h>

enum { AXIS, N, INNER, FROM_N, MODE, SORTED, INDEX_N };

static const char *element(const void *p, size_t size, int64_t i) {
  return (const char *)p + (size_t)i * size;
}

static void copy_or_zero(char *to, const char *from, size_t size) {
  if (from != NULL) memcpy(to, from, size);
  else memset(to, 0, size);
}

/* An index made positive; -1 where it is out of range. */
static int64_t in_range(int64_t i, int64_t n) {
  if (i < 0) i += n;
  return i >= 0 && i < n ? i : -1;
}

/* ---------------------------------------------------------------- GatherElements, ScatterElements */

/* Operand 1 is like operand 0 but for its size along the axis, or smaller. */
static void along(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *index = &m->in[1];
  m->i[AXIS] = more_axis(p, more_int(p, "axis", 0), x->ndim);
  if (index->type != REF_TYPE_I64 && index->type != REF_TYPE_I32) more_refuse(p, "operand 1 must be int64 or int32");
  if (index->ndim != x->ndim) more_refuse(p, "operand 1 must have as many dimensions as operand 0");
  for (int32_t d = 0; more_ok(p) && d < x->ndim; d++)
    if (d != m->i[AXIS] && index->shape[d] > x->shape[d]) more_refuse(p, "operand 1 is larger in dimension %d", d);
}

/* A row of the indices: elements along their last dimension. Its element j with index k points to
 * base + k * by_index + j * by_place of x. */
typedef struct index_row {
  int64_t base, by_index, by_place, n, limit;
} index_row;

static index_row row_at(const more_op *m, int64_t row) {
  const more_value *x = &m->in[0], *index = &m->in[1];
  const int32_t last = x->ndim - 1;
  int64_t step = x->shape[last];
  index_row r = {.by_index = 1, .n = index->shape[last], .by_place = last != m->i[AXIS], .limit = x->shape[m->i[AXIS]]};
  for (int32_t d = last; d-- > 0; step *= x->shape[d]) {
    if (d == m->i[AXIS]) r.by_index = step;
    else r.base += row % index->shape[d] * step;
    row /= index->shape[d];
  }
  return r;
}

/* Where in x index number i points, which is number j of its row; -1: out of range. */
static inline int64_t pointed(const index_row *r, int type, const void *indices, int64_t i, int64_t j) {
  int64_t wide;
  int32_t narrow;
  if (type == REF_TYPE_I64) {
    memcpy(&wide, (const char *)indices + i * 8, sizeof wide);
  } else {
    memcpy(&narrow, (const char *)indices + i * 4, sizeof narrow);
    wide = narrow;
  }
  wide = in_range(wide, r->limit);
  return wide < 0 ? -1 : r->base + wide * r->by_index + j * r->by_place;
}

/* Elements [from, to) of a row that begins at index number i; the size is known where it is called. */
static inline __attribute__((always_inline)) void gather_row(const more_op *m, const more_args *a, const index_row *r,
                                                             int64_t i, int64_t from, int64_t to, size_t size) {
  const int type = m->in[1].type;
  for (int64_t j = from; j < to; j++) {
    const int64_t at = pointed(r, type, a->in[1], i + j, j);
    copy_or_zero((char *)a->out[0] + (size_t)(i + j) * size,
                 at >= 0 && a->in[0] != NULL ? element(a->in[0], size, at) : NULL, size);
  }
}

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512dq")))

/* As gather_row, of int64 indices and elements of 4 or 8 bytes, eight at a time: where it ends. */
WIDE static int64_t gather_wide(const index_row *r, const int64_t *index, const void *x, char *out, int64_t from,
                                int64_t to, size_t size) {
  const __m512i limit = _mm512_set1_epi64(r->limit), step = _mm512_set1_epi64(r->by_index);
  const __m512i places = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), by_place = _mm512_set1_epi64(r->by_place);
  int64_t j = from;
  for (; j + 8 <= to; j += 8) {
    const __m512i k = _mm512_loadu_si512(index + j);
    const __m512i i = _mm512_mask_add_epi64(k, _mm512_movepi64_mask(k), k, limit);
    const __mmask8 in = _mm512_cmplt_epu64_mask(i, limit);
    const __m512i line = _mm512_mullo_epi64(_mm512_add_epi64(_mm512_set1_epi64(j), places), by_place);
    const __m512i row = _mm512_add_epi64(_mm512_mullo_epi64(i, step), _mm512_set1_epi64(r->base));
    const __m512i at = _mm512_add_epi64(row, line);
    if (size == 4)
      _mm256_storeu_ps((float *)(void *)out + j, _mm512_mask_i64gather_ps(_mm256_setzero_ps(), in, at, x, 4));
    else _mm512_storeu_si512(out + j * 8, _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), in, at, x, 8));
  }
  return j;
}

static bool has_wide(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

#else

static int64_t gather_wide(const index_row *r, const int64_t *index, const void *x, char *out, int64_t from, int64_t to,
                           size_t size) {
  (void)r, (void)index, (void)x, (void)out, (void)to, (void)size;
  return from;
}

static bool has_wide(void) {
  return false;
}

#endif

static void run_gather_elements(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const size_t size = m->out[0].size;
  const bool wide = (size == 4 || size == 8) && m->in[1].type == REF_TYPE_I64 && a->in[0] != NULL && has_wide();
  int64_t work = 0;
  for (int64_t i = first; i < last;) {
    const int64_t n = m->in[1].shape[m->in[1].ndim - 1], row = i / n, from = i % n;
    const int64_t to = last - i < n - from ? from + last - i : n;
    const index_row r = row_at(m, row);
    int64_t next = from;
    if (wide)
      next = gather_wide(&r, (const int64_t *)a->in[1] + row * n, a->in[0],
                         (char *)a->out[0] + (size_t)(row * n) * size, from, to, size);
    if (size == 4) gather_row(m, a, &r, row * n, next, to, 4);
    else if (size == 8) gather_row(m, a, &r, row * n, next, to, 8);
    else gather_row(m, a, &r, row * n, next, to, size);
    i += to - from;
    if (more_tick(m, &work, 4 * (to - from))) return;
  }
}

void more_setup_gather_elements(more_plan *p) {
  along(p);
  more_result(p, 0, p->m->in[0].type, p->m->in[1].ndim, p->m->in[1].shape);
  more_loop(p, run_gather_elements, p->m->in[1].count, 20 * (double)p->m->in[1].count);
}

enum { NONE, ADD, MUL, MAX, MIN };

static void combine(const more_value *v, void *to, int64_t at, const void *from, int64_t i, int64_t how) {
  const double x = more_get(v, to, at), y = more_get(v, from, i);
  const int64_t wx = more_get_int(v, to, at), wy = more_get_int(v, from, i);
  const bool real = more_type_is_real(v->type), no_sign = more_type_is_unsigned(v->type);
  const bool less = real ? y < x : no_sign ? (uint64_t)wy < (uint64_t)wx : wy < wx;
  const bool wins = real && (x != x || y != y) ? y != y : how == MIN ? less : how == MAX && !less; /* NaN stays */
  if (how == NONE || ((how == MAX || how == MIN) && wins))
    memcpy((char *)to + (size_t)at * v->size, (const char *)from + (size_t)i * v->size, v->size);
  else if (how == ADD && real) more_put(v, to, at, x + y);
  else if (how == MUL && real) more_put(v, to, at, x * y);
  else if (how == ADD) more_store_int(v->type, to, at, (int64_t)((uint64_t)wx + (uint64_t)wy));
  else if (how == MUL) more_store_int(v->type, to, at, (int64_t)((uint64_t)wx * (uint64_t)wy));
}

static void copy_all(const more_op *m, const more_args *a) {
  if (a->out[0] != NULL) memmove(a->out[0], a->in[0], (size_t)m->out[0].count * m->out[0].size);
}

static void run_scatter_elements(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  int64_t work = 0;
  (void)first, (void)last;
  copy_all(m, a);
  const int64_t count = m->in[1].count, n = count > 0 ? m->in[1].shape[m->in[1].ndim - 1] : 1;
  const bool words = m->i[MODE] == NONE && m->in[0].size == 4;
  for (int64_t row = 0; row < count / n; row++) {
    const index_row r = row_at(m, row);
    for (int64_t j = 0; j < n; j++) {
      const int64_t i = row * n + j, at = pointed(&r, m->in[1].type, a->in[1], i, j);
      if (at >= 0 && words) memcpy((char *)a->out[0] + at * 4, (const char *)a->in[2] + i * 4, 4);
      else if (at >= 0) combine(&m->in[0], a->out[0], at, a->in[2], i, m->i[MODE]);
      if (more_tick(m, &work, 8)) return;
    }
  }
}

void more_setup_scatter_elements(more_plan *p) {
  along(p);
  more_same_type(p, 0, 2);
  more_same_shape(p, 1, 2);
  p->m->i[MODE] = more_choice(p, "reduction", "none", "none add mul max min");
  more_result_like(p, 0, 0);
  more_work(p, run_scatter_elements, 1, (double)p->m->in[0].count + (double)p->m->in[1].count);
}

/* ---------------------------------------------------------------- GatherND, ScatterND */

/* Where the slice begins that row r of the indices points to; its elements are m->i[INNER]. */
static int64_t slice_of(const more_op *m, const void *indices, int64_t r, int64_t batch_dims) {
  const more_value *x = &m->in[0], *index = &m->in[1];
  const int64_t n = m->i[INDEX_N];
  int64_t at = 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t size = x->shape[batch_dims + k];
    const int64_t place = in_range(more_get_int(index, indices, r * n + k), size);
    if (place < 0) return -1;
    at = at * size + place;
  }
  return at * m->i[INNER];
}

static void slices(more_plan *p, int64_t batch_dims) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *index = &m->in[1];
  if (index->type != REF_TYPE_I64 && index->type != REF_TYPE_I32) more_refuse(p, "operand 1 must be int64");
  if (index->ndim < 1 || x->ndim < 1) more_refuse(p, "its operands have at least one dimension");
  if (batch_dims < 0 || batch_dims >= index->ndim || batch_dims >= x->ndim)
    more_refuse(p, "batch_dims is %lld", (long long)batch_dims);
  if (!more_ok(p)) return;
  m->i[INDEX_N] = index->shape[index->ndim - 1];
  if (m->i[INDEX_N] < 1 || m->i[INDEX_N] > x->ndim - batch_dims)
    more_refuse(p, "the last dimension of operand 1 is %lld", (long long)m->i[INDEX_N]);
  for (int64_t d = 0; d < batch_dims && more_ok(p); d++)
    if (x->shape[d] != index->shape[d]) more_refuse(p, "its operands differ in batch dimension %lld", (long long)d);
  if (more_ok(p)) m->i[INNER] = more_count(x->shape, batch_dims + m->i[INDEX_N], x->ndim);
}

static void run_gather_nd(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->i[FROM_N], batch = m->i[N], inner = m->i[INNER];
  const size_t size = m->out[0].size;
  for (int64_t r = first; r < last; r++) {
    const int64_t at = slice_of(m, a->in[1], r, m->i[AXIS]), from = r / rows * batch;
    copy_or_zero((char *)a->out[0] + (size_t)(r * inner) * size,
                 at >= 0 && a->in[0] ? element(a->in[0], size, from + at) : NULL, (size_t)inner * size);
  }
}

void more_setup_gather_nd(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *index = &m->in[1];
  int64_t shape[2 * MORE_DIMS];
  int32_t ndim = 0;
  const int64_t batch_dims = m->i[AXIS] = more_int(p, "batch_dims", 0);
  slices(p, batch_dims);
  if (!more_ok(p)) return;
  for (int32_t d = 0; d < index->ndim - 1; d++) shape[ndim++] = index->shape[d];
  for (int64_t d = batch_dims + m->i[INDEX_N]; d < x->ndim; d++) shape[ndim++] = x->shape[d];
  m->i[N] = more_count(x->shape, batch_dims, x->ndim);
  m->i[FROM_N] = more_count(index->shape, batch_dims, index->ndim - 1);
  more_result(p, 0, x->type, ndim, shape);
  more_work(p, run_gather_nd, index->count / m->i[INDEX_N], (double)index->count);
}

static void run_scatter_nd(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t rows = m->in[1].count / m->i[INDEX_N];
  int64_t work = 0;
  (void)first, (void)last;
  copy_all(m, a);
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = slice_of(m, a->in[1], r, 0);
    if (more_tick(m, &work, 8 * (m->i[INNER] + m->i[INDEX_N]))) return;
    for (int64_t j = 0; at >= 0 && j < m->i[INNER]; j++)
      combine(&m->in[0], a->out[0], at + j, a->in[2], r * m->i[INNER] + j, m->i[MODE]);
  }
}

void more_setup_scatter_nd(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *index = &m->in[1];
  int64_t shape[2 * MORE_DIMS];
  int32_t ndim = 0;
  slices(p, 0);
  m->i[MODE] = more_choice(p, "reduction", "none", "none add mul max min");
  more_same_type(p, 0, 2);
  if (!more_ok(p)) return;
  for (int32_t d = 0; d < index->ndim - 1; d++) shape[ndim++] = index->shape[d];
  for (int64_t d = m->i[INDEX_N]; d < x->ndim; d++) shape[ndim++] = x->shape[d];
  more_shape_is(p, 2, ndim, shape);
  more_result_like(p, 0, 0);
  more_work(p, run_scatter_nd, 1, (double)x->count + (double)p->m->in[2].count);
}

/* ---------------------------------------------------------------- TensorScatter */

static void run_tensor_scatter(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0], *update = &m->in[1];
  const int64_t n = m->i[N], from_n = m->i[FROM_N], inner = m->i[INNER];
  const int64_t outer = n > 0 && inner > 0 ? x->count / n / inner : 0,
                per_batch = x->shape[0] > 0 ? outer / x->shape[0] : 0;
  int64_t work = 0;
  (void)first, (void)last;
  copy_all(m, a);
  for (int64_t o = 0; o < outer && update->count > 0; o++) {
    if (more_tick(m, &work, from_n * (8 + inner))) return;
    const int64_t write = a->in[2] != NULL ? more_get_int(&m->in[2], a->in[2], o / per_batch) : 0;
    for (int64_t s = 0; s < from_n; s++) {
      int64_t at = (int64_t)((uint64_t)write + (uint64_t)s);
      if (m->i[MODE] != 0) at = at % n < 0 ? at % n + n : at % n;
      if (at < 0 || at >= n) continue;
      memcpy((char *)a->out[0] + (size_t)((o * n + at) * inner) * x->size,
             element(a->in[1], x->size, (o * from_n + s) * inner), (size_t)inner * x->size);
    }
  }
}

void more_setup_tensor_scatter(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t shape[MORE_DIMS];
  const int64_t axis = more_axis(p, more_int(p, "axis", -2), x->ndim);
  m->i[MODE] = more_choice(p, "mode", "linear", "linear circular");
  more_same_type(p, 0, 1);
  if (axis == 0) more_refuse(p, "axis is that of the batch");
  if (m->in[1].ndim != x->ndim) more_refuse(p, "operand 1 must have as many dimensions as operand 0");
  if (!more_ok(p)) return;
  memcpy(shape, x->shape, sizeof shape);
  m->i[N] = x->shape[axis];
  shape[axis] = m->i[FROM_N] = m->in[1].shape[axis];
  m->i[INNER] = more_count(x->shape, axis + 1, x->ndim);
  more_shape_is(p, 1, x->ndim, shape);
  more_shape_is(p, 2, 1, x->shape);
  more_whole(p, 2);
  if (m->i[FROM_N] > m->i[N]) more_refuse(p, "operand 1 is longer than operand 0");
  more_result_like(p, 0, 0);
  more_work(p, run_tensor_scatter, 1, 0);
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
