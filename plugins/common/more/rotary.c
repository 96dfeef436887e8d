/* Rotary of domain "heddle": x * cos + t * sin, where t is x turned: its last part, with the sign changed, before its first
 * one, or each pair of neighbours changed so. cos and sin broadcast to x, or have one number for each two of x. */
#include "more.h"
#include "plugins/common/halves.h"

enum { WIDTH, HALF, PAIRS };

/* ---- rows of float32 */

#define INSIDE static inline __attribute__((always_inline))

INSIDE void halves_any(const float *restrict x, const float *restrict c, const float *restrict s, float *restrict y,
                       int64_t half) {
  for (int64_t e = 0; e < half; e++) {
    const float low = x[e], high = x[half + e];
    y[e] = low * c[e] - high * s[e];
    y[half + e] = high * c[half + e] + low * s[half + e];
  }
}

INSIDE void pairs_any(const float *restrict x, const float *restrict c, const float *restrict s, float *restrict y,
                      int64_t half) {
  for (int64_t e = 0; e < half; e++) {
    const float low = x[2 * e], high = x[2 * e + 1];
    y[2 * e] = low * c[2 * e] - high * s[2 * e];
    y[2 * e + 1] = high * c[2 * e + 1] + low * s[2 * e + 1];
  }
}

typedef void (*row_fn)(const float *x, const float *c, const float *s, float *y, int64_t half);

#define MAKE(name, target, of) \
  target static void name(const float *x, const float *c, const float *s, float *y, int64_t half) { \
    of(x, c, s, y, half); \
  }
MAKE(halves_plain, , halves_any)
MAKE(pairs_plain, , pairs_any)

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
MAKE(halves_wide, __attribute__((target("avx2,fma"))), halves_any)
MAKE(pairs_wide, __attribute__((target("avx2,fma"))), pairs_any)

static row_fn find_row(bool pairs) {
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return pairs ? (wide ? pairs_wide : pairs_plain) : wide ? halves_wide : halves_plain;
}
#else
static row_fn find_row(bool pairs) {
  return pairs ? pairs_plain : halves_plain;
}
#endif

/* Where row r of the result begins in v, which broadcasts along what is before its last dimension. */
static int64_t row_at(const more_value *v, const more_value *out, int64_t r) {
  int64_t at = 0, step = v->ndim > 0 ? v->shape[v->ndim - 1] : 1;
  for (int32_t d = out->ndim - 1; d-- > 0;) {
    const int64_t place = r % out->shape[d], e = d - (out->ndim - v->ndim);
    r /= out->shape[d];
    if (e < 0) break;
    if (v->shape[e] != 1) at += place * step;
    step *= v->shape[e];
  }
  return at;
}

/* Which number of a row of v element e of x meets. */
static int64_t angle_of(const more_op *m, const more_value *v, int64_t e) {
  const int64_t n = v->ndim > 0 ? v->shape[v->ndim - 1] : 1;
  return n == m->i[WIDTH] ? e : n == 1 ? 0 : m->i[PAIRS] ? e / 2 : e % m->i[HALF];
}

/* Row r of v, as wide as x, as floats: where it lies, or in the room. */
static const float *floats_of(const more_op *m, const more_args *a, uint32_t k, int64_t r, float *room) {
  const more_value *v = &m->in[k];
  const int64_t width = m->i[WIDTH], n = v->ndim > 0 ? v->shape[v->ndim - 1] : 1, at = row_at(v, &m->out[0], r);
  const float *x = (const float *)a->in[k] + at;
  if (v->type != REF_TYPE_F32) {
    halves_widen(v->type == MORE_TYPE_BF16, (const uint16_t *)a->in[k] + at, room, (uint64_t)n);
    x = room;
  }
  if (n == width) return x;
  for (int64_t e = width; e-- > 0 && !m->i[PAIRS];) room[e] = x[n == 1 ? 0 : e % n];
  for (int64_t e = width; e-- > 0 && m->i[PAIRS];) room[e] = x[n == 1 ? 0 : e / 2];
  return room;
}

static void run_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[WIDTH];
  const row_fn row = find_row(m->i[PAIRS] != 0);
  float *room = a->scratch;
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    if (more_tick(m, &work, 2 * n)) return;
    const float *of[3];
    for (uint32_t k = 0; k < 3; k++) of[k] = floats_of(m, a, k, r, room + k * n);
    const bool is_plain = m->out[0].type == REF_TYPE_F32;
    row(of[0], of[1], of[2], is_plain ? (float *)a->out[0] + r * n : room + 3 * n, m->i[HALF]);
    if (!is_plain)
      halves_narrow(m->out[0].type == MORE_TYPE_BF16, room + 3 * n, (uint16_t *)a->out[0] + r * n, (uint64_t)n);
  }
}

/* ---- numbers of any type */

static void run_plain(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t n = m->i[WIDTH], half = m->i[HALF], step = m->i[PAIRS] ? 1 : half;
  int64_t work = 0;
  for (int64_t r = first; r < last; r++) {
    if (more_tick(m, &work, 4 * n)) return;
    const int64_t c_at = row_at(&m->in[1], &m->out[0], r), s_at = row_at(&m->in[2], &m->out[0], r);
    for (int64_t e = 0; e < n; e++) {
      const int64_t at = r * n + e;
      const bool second = m->i[PAIRS] ? e % 2 != 0 : e >= half;
      const double c = more_get(&m->in[1], a->in[1], c_at + angle_of(m, &m->in[1], e)),
                   s = more_get(&m->in[2], a->in[2], s_at + angle_of(m, &m->in[2], e)),
                   x = more_get(&m->in[0], a->in[0], at),
                   other = more_get(&m->in[0], a->in[0], second ? at - step : at + step);
      const double own = x * c, cross = other * s;
      more_put(&m->out[0], a->out[0], at, second ? own + cross : own - cross);
    }
  }
}

/* ---- the setup */

/* Operand k broadcasts to operand 0, but that its last dimension may be half as long. */
static void fits(more_plan *p, uint32_t k) {
  const more_value *x = &p->m->in[0], *v = &p->m->in[k];
  bool good = v->ndim <= x->ndim;
  if (!more_ok(p)) return;
  for (int32_t d = 0; good && d < v->ndim; d++) {
    const int64_t n = v->shape[d], of = x->shape[x->ndim - v->ndim + d];
    good = n == of || n == 1 || (d == v->ndim - 1 && 2 * n == of);
  }
  if (!good) more_refuse(p, "operand %u does not broadcast to operand 0", k);
}

void more_setup_rotate(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0];
  const bool fast = x->type == REF_TYPE_F32 || x->type == MORE_TYPE_F16 || x->type == MORE_TYPE_BF16;
  more_rank(p, 0, 1, MORE_DIMS);
  more_real(p, 0);
  m->i[PAIRS] = more_int(p, "interleaved", 0) != 0;
  for (uint32_t k = 1; k < 3; k++) {
    more_same_type(p, 0, k);
    fits(p, k);
  }
  if (!more_ok(p)) return;
  m->i[WIDTH] = x->shape[x->ndim - 1];
  m->i[HALF] = more_int(p, "half", m->i[WIDTH] / 2);
  if (m->i[WIDTH] % 2 != 0 || m->i[HALF] != m->i[WIDTH] / 2)
    more_refuse(p, "%lld numbers are not two times %lld", (long long)m->i[WIDTH], (long long)m->i[HALF]);
  if (!more_ok(p)) return;
  more_result_like(p, 0, 0);
  const int64_t rows = m->i[WIDTH] > 0 ? x->count / m->i[WIDTH] : 0;
  if (fast && m->i[WIDTH] < 1 << 16) {
    more_loop(p, run_fast, rows, 2 * (double)x->count);
    m->part_scratch = 4 * (uint64_t)m->i[WIDTH] * sizeof(float);
  } else {
    more_work(p, run_plain, rows, 8 * (double)x->count);
  }
}
