/* Lookup of domain "heddle": for each element its place in a sorted list of keys, and what stands at that place in a list of
 * values, or the default. NaN is the last of the keys, and equal to NaN. And PostTransform: scores of classes, made
 * probabilities in the ways that only ai.onnx.ml has. */
#include "more.h"

#include <math.h>

enum { X, KEYS, VALUES, DEFAULT };
enum { PROBIT, SOFTMAX_ZERO };
enum { KIND, WIDE };

/* < 0: x comes before key i. */
static int compare(const more_value *v, const void *keys, int64_t i, int64_t whole, double real) {
  if (!more_type_is_real(v->type)) {
    const int64_t key = more_get_int(v, keys, i);
    if (v->type == REF_TYPE_U64) return (uint64_t)whole < (uint64_t)key ? -1 : whole != key;
    return whole < key ? -1 : whole > key;
  }
  const double key = more_get(v, keys, i);
  if (isnan(real) || isnan(key)) return (isnan(real) ? 1 : 0) - (isnan(key) ? 1 : 0);
  return real < key ? -1 : real > key;
}

static void run_lookup(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *x = &m->in[X], *y = &m->out[0];
  const bool real = more_type_is_real(x->type);
  int64_t work = 0;
  for (int64_t i = first; i < last; i++) {
    const int64_t whole = real ? 0 : more_get_int(x, a->in[X], i);
    const double number = real ? more_get(x, a->in[X], i) : 0;
    int64_t from = 0, to = m->in[KEYS].count;
    const char *found = a->in[DEFAULT];
    while (from < to) {
      const int64_t at = from + (to - from) / 2;
      const int c = compare(&m->in[KEYS], a->in[KEYS], at, whole, number);
      if (c == 0) found = (const char *)a->in[VALUES] + at * y->size;
      if (c == 0) break;
      if (c < 0) to = at;
      else from = at + 1;
    }
    memcpy((char *)a->out[0] + i * y->size, found, y->size);
    if (more_tick(m, &work, 64)) return;
  }
}

void more_setup_lookup(more_plan *p) {
  more_op *m = p->m;
  more_rank(p, KEYS, 1, 1);
  more_rank(p, VALUES, 1, 1);
  more_same_type(p, X, KEYS);
  more_same_type(p, VALUES, DEFAULT);
  if (m->in[KEYS].count != m->in[VALUES].count)
    more_refuse(p, "it has %lld keys and %lld values", (long long)m->in[KEYS].count, (long long)m->in[VALUES].count);
  if (m->in[DEFAULT].count != 1) more_refuse(p, "operand %d must be one value", DEFAULT);
  more_result(p, 0, m->in[VALUES].type, m->in[X].ndim, m->in[X].shape);
  if (more_ok(p)) more_loop(p, run_lookup, m->in[X].count, (double)m->in[X].count * 40);
}

/* The inverse of the normal distribution, by the closed form of erf's inverse that ONNX's definition names. */
static double probit(double x) {
  const double a = 0.147, y = 2 * x - 1, l = log((1 - y) * (1 + y));
  const double half = 2 / (3.14159265358979323846 * a) + 0.5 * l;
  const double root = sqrt(sqrt(half * half - l / a) - half);
  return 1.41421356237309504880 * (y < 0 ? -root : root);
}

/* Softmax of the scores that are not 0. */
static void softmax_zero(const more_op *m, const more_args *a, int64_t at, int64_t n) {
  const more_value *x = &m->in[X], *y = &m->out[0];
  double most = -(double)INFINITY, sum = 0;
  for (int64_t k = 0; k < n; k++) most = fmax(most, more_get(x, a->in[X], at + k));
  for (int pass = 0; pass < 2; pass++) {
    const double all = sum;
    for (int64_t k = 0; k < n; k++) {
      const double v = more_get(x, a->in[X], at + k);
      const bool is_zero = !(v > 1e-7 || v < -1e-7);
      const double e = is_zero ? v * exp(-most) : exp(v - most);
      if (pass == 0 && !is_zero) sum += e;
      if (pass == 1) more_put(y, a->out[0], at + k, all > 0 ? e / all : e);
    }
  }
}

static void run_post(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[WIDE];
  int64_t work = 0;
  for (int64_t row = first; row < last; row++) {
    if (m->i[KIND] == SOFTMAX_ZERO) softmax_zero(m, a, row * n, n);
    for (int64_t k = 0; m->i[KIND] == PROBIT && k < n; k++)
      more_put(&m->out[0], a->out[0], row * n + k, probit(more_get(&m->in[X], a->in[X], row * n + k)));
    if (more_tick(m, &work, 40 * n + 1)) return;
  }
}

void more_setup_post_transform(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[X];
  more_real(p, X);
  more_rank(p, X, 1, MORE_DIMS);
  m->i[KIND] = more_choice(p, "kind", "PROBIT", "PROBIT SOFTMAX_ZERO");
  if (!more_ok(p)) return;
  m->i[WIDE] = x->shape[x->ndim - 1];
  more_result_like(p, 0, X);
  more_work(p, run_post, m->i[WIDE] > 0 ? x->count / m->i[WIDE] : 0, (double)x->count * 4);
}
