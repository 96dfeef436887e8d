/* Gathers and scatters: elements and slices that are where indices point to. An index out of range takes zeros, and writes
 * nothing. */
#include "more.h"

enum { AXIS, N, INNER, FROM_N, MODE, INDEX_N };

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

/* An index of 4 or 8 bytes, at any address. */
static inline int64_t index_at(bool wide, const void *indices, int64_t i) {
  int64_t big;
  int32_t small;
  if (wide) {
    memcpy(&big, (const char *)indices + i * 8, sizeof big);
    return big;
  }
  memcpy(&small, (const char *)indices + i * 4, sizeof small);
  return small;
}

/* Where in x index number i points, which is number j of its row; -1: out of range. */
static inline int64_t pointed(const index_row *r, bool wide, const void *indices, int64_t i, int64_t j) {
  const int64_t k = in_range(index_at(wide, indices, i), r->limit);
  return k < 0 ? -1 : r->base + k * r->by_index + j * r->by_place;
}

/* Elements [from, to) of a row that begins at index number i. x has an element, which is read for those out of range. */
#define GATHER(name, T) \
  static void name(const index_row *r, bool wide, const void *index, const char *x, void *y, int64_t i, int64_t from, \
                   int64_t to) { \
    T *out = (T *)y + i; \
    if (wide) { \
      const char *at = (const char *)index + i * 8; \
      const uint64_t limit = (uint64_t)r->limit, by_index = (uint64_t)r->by_index; \
      for (int64_t j = from; j < to && r->by_place == 0 && by_index == 1; j++) { \
        uint64_t k; \
        T element; \
        memcpy(&k, at + j * 8, sizeof k); \
        k += (uint64_t)((int64_t)k >> 63) & limit; \
        memcpy(&element, x + ((uint64_t)r->base + (k < limit ? k : 0)) * sizeof(T), sizeof element); \
        out[j] = k < limit ? element : 0; \
      } \
      if (r->by_place == 0 && by_index == 1) return; \
      for (int64_t j = from; j < to; j++) { \
        uint64_t k; \
        T element; \
        memcpy(&k, at + j * 8, sizeof k); \
        k += (uint64_t)((int64_t)k >> 63) & limit; \
        const uint64_t place = (uint64_t)(r->base + j * r->by_place) + k * by_index; \
        memcpy(&element, x + (k < limit ? place : 0) * sizeof(T), sizeof element); \
        out[j] = k < limit ? element : 0; \
      } \
      return; \
    } \
    for (int64_t j = from; j < to; j++) { \
      const int64_t at = pointed(r, false, index, i + j, j); \
      T element = 0; \
      if (at >= 0) memcpy(&element, x + at * (int64_t)sizeof(T), sizeof element); \
      out[j] = element; \
    } \
  }

GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)

static void run_gather_elements(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const size_t size = m->out[0].size;
  const bool wide = m->in[1].type == REF_TYPE_I64;
  int64_t work = 0;
  if (a->in[0] == NULL) { /* empty */
    memset((char *)a->out[0] + (size_t)first * size, 0, (size_t)(last - first) * size);
    return;
  }
  for (int64_t i = first; i < last;) {
    const int64_t n = m->in[1].shape[m->in[1].ndim - 1], row = i / n, from = i % n;
    const int64_t to = last - i < n - from ? from + last - i : n;
    const index_row r = row_at(m, row);
    (size == 1   ? gather_1
     : size == 2 ? gather_2
     : size == 4 ? gather_4
                 : gather_8)(&r, wide, a->in[1], a->in[0], a->out[0], row * n, from, to);
    i += to - from;
    if (more_tick(m, &work, 4 * (to - from))) return;
  }
}

void more_setup_gather_elements(more_plan *p) {
  along(p);
  more_result(p, 0, p->m->in[0].type, p->m->in[1].ndim, p->m->in[1].shape);
  more_loop(p, run_gather_elements, p->m->in[1].count, 10 * (double)p->m->in[1].count);
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
  if (a->out[0] != NULL && a->out[0] != a->in[0])
    memmove(a->out[0], a->in[0], (size_t)m->out[0].count * m->out[0].size);
}

/* y[i] += x[i], and y[i] *= x[i], of n elements; integers wrap. */
#define COMBINE(T) \
  { \
    T *y = (T *)to + at; \
    const T *x = (const T *)from + i; \
    if (how == ADD) \
      for (int64_t k = 0; k < n; k++) y[k] = (T)(y[k] + x[k]); \
    else \
      for (int64_t k = 0; k < n; k++) y[k] = (T)(y[k] * x[k]); \
    return; \
  }

/* n elements that lie side by side. */
static void combine_run(const more_value *v, void *to, int64_t at, const void *from, int64_t i, int64_t n,
                        int64_t how) {
  const bool adds = how == ADD || how == MUL, whole = more_type_is_whole(v->type) && !narrow_is(v->type);
  if (how == NONE) {
    memcpy((char *)to + (size_t)at * v->size, (const char *)from + (size_t)i * v->size, (size_t)n * v->size);
    return;
  }
  if (adds && (uintptr_t)from % v->size == 0) {
    if (v->type == REF_TYPE_F32) COMBINE(float)
    if (v->type == REF_TYPE_F64) COMBINE(double)
    if (whole && v->size == 4) COMBINE(uint32_t)
    if (whole && v->size == 8) COMBINE(uint64_t)
  }
  for (int64_t k = 0; k < n; k++) combine(v, to, at + k, from, i + k, how);
}

/* Elements of a row of the indices to where they point. */
#define SCATTER(name, T) \
  static void name(const index_row *r, bool wide, const void *index, const void *from, void *to, int64_t i) { \
    for (int64_t j = 0; j < r->n; j++) { \
      const int64_t at = pointed(r, wide, index, i + j, j); \
      if (at >= 0) memcpy((T *)to + at, (const char *)from + (i + j) * (int64_t)sizeof(T), sizeof(T)); \
    } \
  }

SCATTER(scatter_1, uint8_t)
SCATTER(scatter_2, uint16_t)
SCATTER(scatter_4, uint32_t)
SCATTER(scatter_8, uint64_t)

static void run_scatter_elements(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  int64_t work = 0;
  (void)first, (void)last;
  copy_all(m, a);
  const int64_t count = m->in[1].count, n = count > 0 ? m->in[1].shape[m->in[1].ndim - 1] : 1, how = m->i[MODE];
  const size_t size = m->in[0].size;
  const bool wide = m->in[1].type == REF_TYPE_I64;
  for (int64_t row = 0; row < count / n; row++) {
    const index_row r = row_at(m, row);
    if (how == NONE)
      (size == 1   ? scatter_1
       : size == 2 ? scatter_2
       : size == 4 ? scatter_4
                   : scatter_8)(&r, wide, a->in[1], a->in[2], a->out[0], row * n);
    for (int64_t j = 0; j < n && how != NONE; j++) {
      const int64_t i = row * n + j, at = pointed(&r, wide, a->in[1], i, j);
      if (at >= 0) combine_run(&m->in[0], a->out[0], at, a->in[2], i, 1, how);
    }
    if (more_tick(m, &work, 8 * n)) return;
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
    const int64_t place = in_range(index_at(index->type == REF_TYPE_I64, indices, r * n + k), size);
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
    if (at >= 0) combine_run(&m->in[0], a->out[0], at, a->in[2], r * m->i[INNER], m->i[INNER], m->i[MODE]);
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
  if (!more_operand(p, 2) || m->i[MODE] != 0 || m->in[0].slot == m->in[1].slot || m->in[0].slot == m->in[2].slot)
    return;
  m->in_place[0] = 1;
  m->extends = true; /* rows before a batch's index are as they were, and a run that is repeated writes the same ones */
}
