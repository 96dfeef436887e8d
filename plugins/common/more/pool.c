/* Pools of any type: AveragePool, LpPool, MaxPool with its indices; MaxUnpool, GlobalLpPool. */
#include "plugins/common/ref/pool_rows.h"
#include "window.h"

#include <math.h>

enum { WHAT = W_OWN, POWER, COUNT_PADS, COLUMNS };
enum { AVERAGE, LP, MAXIMUM };

/* The index of a spatial element where the first dimension varies fastest. */
static int64_t column_major(const more_op *m, int64_t at) {
  int64_t out = 0, place[REF_SPATIAL];
  for (int64_t d = m->i[W_SPATIAL]; d-- > 0; at /= m->i[W_IN + d]) place[d] = at % m->i[W_IN + d];
  for (int64_t d = m->i[W_SPATIAL]; d-- > 0;) out = out * m->i[W_IN + d] + place[d];
  return out;
}

/* A unit is a place of the result. */
static void run_pool(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t places = window_places(m), plane = more_count(m->i + W_IN, 0, m->i[W_SPATIAL]);
  const more_value *x = &m->in[0];
  const double power = (double)m->i[POWER];
  const bool squares = m->i[POWER] == 2, sizes = m->i[POWER] == 1;
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    const int64_t base = u / places * plane;
    window_reach r;
    more_window_at_place(m, u % places, &r);
    double sum = 0;
    int64_t best = -1;
    for (int64_t t = 0; t < r.taps; t++) {
      const int64_t at = window_tap(&r, t);
      const double y = more_get(x, a->in[0], base + at);
      if (more_tick(m, &work, m->i[WHAT] == LP ? 16 : 4)) return;
      if (m->i[WHAT] == MAXIMUM && (best < 0 || y > sum || (y != y && sum == sum))) {
        sum = y;
        best = at;
      } else if (m->i[WHAT] != MAXIMUM) {
        sum += m->i[WHAT] != LP ? y : squares ? y * y : sizes ? fabs(y) : pow(fabs(y), power);
      }
    }
    const double count = m->i[COUNT_PADS] != 0 ? r.padded : (double)r.taps;
    if (m->i[WHAT] == AVERAGE) sum = count > 0 ? sum / count : 0;
    if (m->i[WHAT] == LP && !sizes) sum = squares ? sqrt(sum) : pow(sum, 1 / power);
    if (m->i[WHAT] == MAXIMUM && best < 0) sum = more_lowest(x->type);
    if (a->out[0] != NULL) more_put(&m->out[0], a->out[0], u, sum);
    if (a->out[1] != NULL)
      ((int64_t *)a->out[1])[u] = base + (best < 0 ? 0 : m->i[COLUMNS] != 0 ? column_major(m, best) : best);
  }
}

static ref_window window_of(const more_op *m) {
  ref_window w;
  for (int d = 0; d < REF_SPATIAL; d++) {
    const int64_t k = d - (REF_SPATIAL - m->i[W_SPATIAL]);
    w.in[d] = k < 0 ? 1 : m->i[W_IN + k];
    w.out[d] = k < 0 ? 1 : m->i[W_OUT + k];
    w.kernel[d] = k < 0 ? 1 : m->i[W_KERNEL + k];
    w.stride[d] = k < 0 ? 1 : m->i[W_STRIDE + k];
    w.dilation[d] = k < 0 ? 1 : m->i[W_DILATION + k];
    w.pad[d] = k < 0 ? 0 : m->i[W_PAD + k];
  }
  return w;
}

/* The greatest, without where it is. A unit is a plane. */
static void run_max_planes(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const ref_window w = window_of(m);
  const ref_pool_row row = ref_pool_max_row(m->in[0].type);
  const int64_t places = ref_pool_places(&w), size = m->in[0].size, in = w.in[0] * w.in[1] * w.in[2];
  int64_t work = 0;
  for (int64_t u = first; u < last; u++) {
    char *out = (char *)a->out[0] + u * w.out[0] * w.out[1] * w.out[2] * size;
    for (int64_t i = 0; i < w.out[0] * w.out[1]; i++, out += w.out[2] * size) {
      if (more_tick(m, &work, 1 + w.out[2] * (int64_t)ref_pool_taps(&w) / 4)) return;
      for (int64_t x = 0; x < w.out[2]; x += places)
        row(&w, (const char *)a->in[0] + u * in * size, i / w.out[1], i % w.out[1], x,
            w.out[2] - x < places ? w.out[2] - x : places, out + x * size);
    }
  }
}

void more_setup_pool(more_plan *p) {
  more_op *m = p->m;
  int64_t shape[MORE_DIMS];
  m->i[WHAT] = strcmp(p->entry->name, "AveragePool") == 0 ? AVERAGE
               : strcmp(p->entry->name, "LpPool") == 0    ? LP
                                                          : MAXIMUM;
  m->i[POWER] = more_int(p, "p", 2);
  m->i[COUNT_PADS] = more_int(p, "count_include_pad", 0);
  m->i[COLUMNS] = more_int(p, "storage_order", 0);
  more_number(p, 0);
  if (m->i[WHAT] != MAXIMUM) more_real(p, 0);
  if (m->i[POWER] < 1) more_refuse(p, "p is %lld", (long long)m->i[POWER]);
  more_window(p, NULL);
  if (!more_ok(p)) return;
  shape[0] = m->in[0].shape[0];
  shape[1] = m->in[0].shape[1];
  memcpy(shape + 2, m->i + W_OUT, (size_t)m->i[W_SPATIAL] * sizeof *shape);
  more_result(p, 0, m->in[0].type, m->in[0].ndim, shape);
  more_result(p, 1, REF_TYPE_I64, m->in[0].ndim, shape);
  const ref_window w = window_of(m);
  const double taps = (double)m->out[0].count * more_window_most_taps(m);
  if (m->i[WHAT] == MAXIMUM && !m->out[1].here && m->in[0].count > 0 && ref_pool_max_row(m->in[0].type) != NULL &&
      ref_pool_places(&w) > 0)
    more_loop(p, run_max_planes, m->out[0].count > 0 ? shape[0] * shape[1] : 0, taps);
  else more_work(p, run_pool, m->out[0].count, taps * 4);
}

/* ---------------------------------------------------------------- GlobalLpPool, MaxUnpool */

static void run_global(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[1];
  for (int64_t u = first; u < last; u++) {
    double sum = 0;
    int64_t work = 0;
    for (int64_t j = 0; j < n; j++) {
      if (more_tick(m, &work, 16)) return;
      const double y = fabs(more_get(&m->in[0], a->in[0], u * n + j));
      sum += m->i[0] == 2 ? y * y : m->i[0] == 1 ? y : pow(y, (double)m->i[0]);
    }
    more_put(&m->out[0], a->out[0], u, m->i[0] == 2 ? sqrt(sum) : pow(sum, 1 / (double)m->i[0]));
  }
}

void more_setup_global_lp_pool(more_plan *p) {
  const more_value *x = &p->m->in[0];
  int64_t shape[MORE_DIMS];
  p->m->i[0] = more_int(p, "p", 2);
  if (p->m->i[0] < 1) more_refuse(p, "p is %lld", (long long)p->m->i[0]);
  more_real(p, 0);
  more_rank(p, 0, 3, MORE_DIMS);
  if (!more_ok(p)) return;
  p->m->i[1] = more_count(x->shape, 2, x->ndim);
  for (int32_t d = 0; d < x->ndim; d++) shape[d] = d < 2 ? x->shape[d] : 1;
  more_result(p, 0, x->type, x->ndim, shape);
  more_work(p, run_global, p->m->out[0].count, 20 * (double)x->count);
}

/* Indices are those of the tensor that the attributes make; a larger output_shape has it in its first corner. */
static void run_unpool(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[0], *y = &m->out[0];
  int64_t work = 0;
  (void)first, (void)last;
  memset(a->out[0], 0, (size_t)y->count * y->size);
  const bool same = memcmp(m->i + 8, y->shape, (size_t)y->ndim * sizeof *y->shape) == 0;
  const int64_t *indices = a->in[1];
  for (int64_t i = 0; i < x->count && same; i++) { /* indices are places of the result */
    if (more_tick(m, &work, 2)) return;
    if (indices[i] < 0 || indices[i] >= y->count) continue;
    if (y->size == 4) ((float *)a->out[0])[indices[i]] = ((const float *)a->in[0])[i];
    else memcpy((char *)a->out[0] + indices[i] * y->size, (const char *)a->in[0] + i * y->size, y->size);
  }
  for (int64_t i = 0; i < x->count && !same; i++) {
    int64_t index = more_get_int(&m->in[1], a->in[1], i), at = 0, step = 1;
    if (more_tick(m, &work, 8)) return;
    if (index < 0) continue;
    for (int32_t d = y->ndim; d-- > 0; step *= y->shape[d]) {
      const int64_t place = index % m->i[8 + d];
      index /= m->i[8 + d];
      if (place >= y->shape[d]) at = -1;
      if (at >= 0) at += place * step;
    }
    if (at >= 0 && index == 0)
      memcpy((char *)a->out[0] + (size_t)at * y->size, (const char *)a->in[0] + (size_t)i * y->size, y->size);
  }
}

void more_setup_max_unpool(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  int64_t kernel[REF_SPATIAL], strides[REF_SPATIAL] = {1, 1, 1}, pads[2 * REF_SPATIAL] = {0}, shape[MORE_DIMS];
  more_rank(p, 0, 3, 2 + REF_SPATIAL);
  more_real(p, 0);
  more_same_shape(p, 0, 1);
  if (m->in[1].type != REF_TYPE_I64) more_refuse(p, "operand 1 must be int64");
  const int64_t n = x->ndim - 2, given = more_ints(p, "strides", strides, REF_SPATIAL);
  const int64_t padded = more_ints(p, "pads", pads, 2 * REF_SPATIAL);
  if (more_ints(p, "kernel_shape", kernel, REF_SPATIAL) != n || (given >= 0 && given != n) ||
      (padded >= 0 && padded != 2 * n))
    more_refuse(p, "kernel_shape, strides and pads must have numbers for each spatial dimension");
  memcpy(shape, x->shape, sizeof shape);
  for (int64_t d = 0; d < n && more_ok(p); d++) {
    const int64_t list[] = {kernel[d], strides[d], pads[d], pads[n + d]};
    for (int k = 0; k < 4; k++)
      if (list[k] < (k < 2) || list[k] > INT32_MAX || x->shape[2 + d] > INT32_MAX)
        more_refuse(p, "a size is out of range");
  }
  for (int64_t d = 0; d < n && more_ok(p); d++)
    shape[2 + d] = (x->shape[2 + d] - 1) * strides[d] - pads[d] - pads[n + d] + kernel[d];
  memcpy(m->i + 8, shape, sizeof shape);
  for (int32_t d = 0; d < x->ndim && more_ok(p); d++)
    if (shape[d] < 1) more_refuse(p, "dimension %d of its result would be %lld", d, (long long)shape[d]);
  if (more_operand(p, 2) && more_operand_ints(p, 2, shape, MORE_DIMS) != x->ndim)
    more_refuse(p, "operand 2 must have a size for each dimension");
  more_result(p, 0, x->type, x->ndim, shape);
  more_work(p, run_unpool, 1, (double)x->count);
}
