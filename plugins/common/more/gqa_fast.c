/* GroupQueryAttention in float32: rows of queries, of all heads that share keys, against pieces of a cache, where it lies; each
 * row keeps its greatest score, the sum of its weights and the weighted values so far. */
#include "gqa.h"
#include "plugins/common/halves.h"
#include "plugins/common/ref/lanes_fast.h"
#include "plugins/common/ref/mathf.h"
#include "rows.h"

#include <math.h>

enum { ROWS = 32, KEYS = 128 };

/* Scratch memory of a part. */
typedef struct room {
  float *queries;       /* ROWS heads */
  float *keys, *values; /* KEYS rows of a cache as floats, where they are not */
  float *scores;        /* ROWS of KEYS */
  float *sums;          /* ROWS heads of weighted values */
  float *most, *total;  /* of a row */
  char *own[2];         /* caches that nothing else holds */
} room;

static int64_t padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

static int64_t lay_room(const more_op *m, char *base, room *r) {
  const int64_t size = m->i[GQA_SIZE];
  const int64_t sizes[] = {
      padded(ROWS * size), padded(KEYS * size), padded(KEYS * size), ROWS * KEYS, padded(ROWS * size), ROWS, ROWS};
  float **places[] = {&r->queries, &r->keys, &r->values, &r->scores, &r->sums, &r->most, &r->total};
  int64_t at = 0;
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    if (base != NULL) *places[k] = (float *)(void *)(base + at);
    at += sizes[k] * (int64_t)sizeof(float);
  }
  for (int k = 0; k < 2; k++) {
    if (base != NULL) r->own[k] = base + at;
    if (m->n_out <= (uint32_t)(k + 1) || !m->out[k + 1].here || m->out[k + 1].slot == UINT32_MAX)
      at += (m->i[GQA_ROOM] * m->i[GQA_ROW_BYTES] + 63) / 64 * 64;
  }
  return at;
}

int64_t gqa_fast_bytes(const more_op *m) {
  room unused;
  return lay_room(m, NULL, &unused);
}

/* ---------------------------------------------------------------- loops */

#define INSIDE static inline __attribute__((always_inline))

#define LANES 4
#define TARGET
#define NAME(x) x##_plain
#define MULADD(t, x, w) ((t) + (x) * (w))
#define TILE_ROWS 2
#define TILE_BLOCKS 4
#include "gqa_weigh.h"

typedef void (*weigher)(const float *weights, const float *values, int64_t rows, int64_t keys, int64_t size, float *out,
                        const float *factor);

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#include <immintrin.h>

#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_narrow
#define MULADD(t, x, w) ((lanes_narrow)_mm256_fmadd_ps((__m256)(x), _mm256_set1_ps(w), (__m256)(t)))
#define TILE_ROWS 6
#define TILE_BLOCKS 2
#include "gqa_weigh.h"

#define LANES 16
#define TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define NAME(x) x##_wide
#define MULADD(t, x, w) ((t) + (x) * (w))
#define TILE_ROWS 2
#define TILE_BLOCKS 4
#include "gqa_weigh.h"

static weigher find_weigher(void) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return weigh_wide;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? weigh_narrow : weigh_plain;
}
#else
static weigher find_weigher(void) {
  return weigh_plain;
}
#endif

static void exponentials(float *x, int64_t n, float less) {
  static const float none[2] = {0};
  const ref_lanes fast = ref_lanes_faster("Exp");
  const void *in[] = {x};
  for (int64_t j = 0; j < n; j++) x[j] -= less;
  if (fast != NULL) fast(x, in, n, none);
  else
    for (int64_t j = 0; j < n; j++) x[j] = ref_exp(x[j]);
}

/* ---------------------------------------------------------------- rows of a cache */

static bool is_brain(const more_value *v) {
  return v->type == MORE_TYPE_BF16;
}

static void read_floats(const more_value *v, const void *from, int64_t at, int64_t n, float *out) {
  if (v->type == REF_TYPE_F32) memcpy(out, (const float *)from + at, (size_t)n * sizeof *out);
  else halves_widen(is_brain(v), (const uint16_t *)from + at, out, (uint64_t)n);
}

static void write_floats(const more_value *v, const float *from, void *to, int64_t at, int64_t n) {
  if (v->type == REF_TYPE_F32) memcpy((float *)to + at, from, (size_t)n * sizeof *from);
  else halves_narrow(is_brain(v), from, (uint16_t *)to + at, (uint64_t)n);
}

/* A cache of one head. scale: of the first channel of the head, and the step to the next. */
typedef struct cache {
  const more_value *value;
  char *rows;
  const float *scale;
  int64_t step, bytes, size;
  int64_t bits;
} cache;

/* Rows first to first + count as floats. */
static const float *rows_of(const cache *c, int64_t first, int64_t count, float *out) {
  const char *from = c->rows + first * c->bytes;
  if (c->bits == 0 && c->value->type == REF_TYPE_F32) return (const float *)(const void *)from;
  if (c->bits == 0) {
    halves_widen(is_brain(c->value), from, out, (uint64_t)(count * c->size));
    return out;
  }
  for (int64_t j = 0; j < count; j++, from += c->bytes) {
    float *to = out + j * c->size;
    if (c->bits == 8)
      for (int64_t e = 0; e < c->size; e++) to[e] = (float)((const int8_t *)from)[e] * c->scale[e * c->step];
    else
      for (int64_t e = 0; e < c->size; e++)
        to[e] = (float)((((const uint8_t *)from)[e / 2] >> (4 * (e % 2)) & 15) - 8) * c->scale[e * c->step];
  }
  return out;
}

static int quantised(float x, float scale, int least) {
  const float q = rintf(x / scale);
  return isnan(q) ? 0 : q < (float)least ? least : q > (float)(-least - 1) ? -least - 1 : (int)q;
}

static void put_row(const cache *c, int64_t row, const float *x) {
  char *to = c->rows + row * c->bytes;
  if (c->bits == 0) write_floats(c->value, x, to, 0, c->size);
  else if (c->bits == 8)
    for (int64_t e = 0; e < c->size; e++) ((int8_t *)to)[e] = (int8_t)quantised(x[e], c->scale[e * c->step], -128);
  else
    for (int64_t e = 0; e < c->size; e += 2) {
      const int high = e + 1 < c->size ? quantised(x[e + 1], c->scale[(e + 1) * c->step], -8) : -8;
      ((uint8_t *)to)[e / 2] = (uint8_t)((quantised(x[e], c->scale[e * c->step], -8) + 8) | (high + 8) << 4);
    }
}

/* ---------------------------------------------------------------- new tokens */

static void rotate(const more_op *m, const more_args *a, int64_t place, float *x) {
  const int64_t half = m->i[GQA_HALF];
  if (half == 0 || place < 0 || place >= m->in[GQA_COS].shape[0]) return;
  const int64_t step = m->i[GQA_INTERLEAVED] ? 2 : 1, other = m->i[GQA_INTERLEAVED] ? 1 : half;
  const bool plain = m->in[GQA_COS].type == REF_TYPE_F32 && m->in[GQA_SIN].type == REF_TYPE_F32;
  for (int64_t e = 0; e < half; e++) {
    const int64_t at = place * half + e;
    const float c = plain ? ((const float *)a->in[GQA_COS])[at] : (float)more_get(&m->in[GQA_COS], a->in[GQA_COS], at);
    const float s = plain ? ((const float *)a->in[GQA_SIN])[at] : (float)more_get(&m->in[GQA_SIN], a->in[GQA_SIN], at);
    const float one = x[e * step], two = x[e * step + other];
    x[e * step] = one * c - two * s;
    x[e * step + other] = two * c + one * s;
  }
}

static void new_head(const more_op *m, const more_args *a, uint32_t k, int64_t b, int64_t s, int64_t h, int64_t past,
                     float *out) {
  const uint32_t from = m->i[GQA_PACKED] ? GQA_Q : k, norm = k == GQA_Q ? GQA_Q_NORM : GQA_K_NORM;
  const int64_t size = m->i[GQA_SIZE];
  read_floats(&m->in[from], a->in[from], gqa_new_at(m, k, b, s, h), size, out);
  if (k == GQA_V) return;
  if (gqa_has(m, a, norm)) {
    float square = 0;
    for (int64_t e = 0; e < size; e++) square += out[e] * out[e];
    const float inverse = 1.0F / sqrtf(square / (float)size + (float)m->f[GQA_EPSILON]);
    for (int64_t e = 0; e < size; e++) out[e] = out[e] * inverse * (float)more_get(&m->in[norm], a->in[norm], e);
  }
  rotate(m, a, gqa_position(m, a, b, s, past), out);
}

/* The cache of one head: the past, unless it is there already, the new rows behind it, and zeros. */
static cache keep(const more_op *m, const more_args *a, uint32_t k, int64_t b, int64_t h, int64_t past, const room *r) {
  const uint32_t new = k == GQA_PRESENT_K ? GQA_K : GQA_V, old = k == GQA_PRESENT_K ? GQA_PAST_K : GQA_PAST_V,
                 scales = k == GQA_PRESENT_K ? GQA_K_SCALE : GQA_V_SCALE;
  const int64_t bytes = m->i[GQA_ROW_BYTES], size = m->i[GQA_SIZE], space = m->i[GQA_ROOM],
                head = b * m->i[GQA_KV_HEADS] + h, length = m->i[GQA_LENGTH],
                per = m->i[k == GQA_PRESENT_K ? GQA_K_PER : GQA_V_PER];
  char *rows = a->out[k] != NULL ? (char *)a->out[k] + head * space * bytes : r->own[k - 1];
  cache c = {.value = &m->out[k], .rows = rows, .bytes = bytes, .size = size, .bits = m->i[GQA_BITS]};
  if (c.bits != 0) c.scale = (const float *)a->in[scales] + (per == 1 ? 0 : h * size);
  c.step = per == 1 ? 0 : 1;
  if (!gqa_has(m, a, old) || a->in[old] != a->out[k]) {
    const int64_t all = gqa_has(m, a, old) ? (past < m->i[GQA_PAST] ? past : m->i[GQA_PAST]) : 0;
    if (all > 0) memcpy(rows, (const char *)a->in[old] + head * m->i[GQA_PAST] * bytes, (size_t)(all * bytes));
    const int64_t behind = past + length < space ? past + length : space;
    memset(rows + all * bytes, 0, (size_t)((past - all) * bytes));
    memset(rows + behind * bytes, 0, (size_t)((space - behind) * bytes));
  }
  for (int64_t s = 0; s < length && past + s < space; s++) {
    new_head(m, a, new, b, s, h, past, r->queries);
    put_row(&c, past + s, r->queries);
  }
  return c;
}

/* ---------------------------------------------------------------- attention */

/* Rows are of one head of keys: row t is query t / SHARE of head t % SHARE of those that share it. */
typedef struct rows_at {
  int64_t b, kv, first, count, end;
} rows_at;

static int64_t query_of(const more_op *m, const rows_at *t, int64_t r) {
  return (t->first + r) / m->i[GQA_SHARE];
}

static int64_t head_of(const more_op *m, const rows_at *t, int64_t r) {
  return t->kv * m->i[GQA_SHARE] + (t->first + r) % m->i[GQA_SHARE];
}

static void begin_rows(const more_op *m, const more_args *a, const rows_at *t, const room *r) {
  const int64_t size = m->i[GQA_SIZE], past = gqa_past(m, t->end);
  const bool has_sink = gqa_has(m, a, GQA_SINK);
  for (int64_t i = 0; i < t->count; i++) {
    float *q = r->queries + i * size;
    const int64_t h = head_of(m, t, i);
    new_head(m, a, GQA_Q, t->b, query_of(m, t, i), h, past, q);
    for (int64_t e = 0; e < size; e++) q[e] *= (float)m->f[GQA_SCALE];
    r->most[i] = has_sink ? (float)more_get(&m->in[GQA_SINK], a->in[GQA_SINK], h) : m->i[GQA_SMOOTH] ? 0 : -INFINITY;
    r->total[i] = has_sink || m->i[GQA_SMOOTH] ? 1 : 0;
  }
  memset(r->sums, 0, (size_t)(t->count * size) * sizeof(float));
}

/* Scores of a row become weights; returns the factor of what was summed up before. */
static float weights_of(const more_op *m, const more_args *a, const rows_at *t, int64_t i, int64_t first, int64_t keys,
                        const room *r) {
  float *score = r->scores + i * KEYS, most = r->most[i], sum = 0;
  const float cap = (float)m->f[GQA_SOFTCAP];
  const int64_t s = query_of(m, t, i);
  int64_t from, to;
  gqa_seen(m, t->end, s, &from, &to);
  from = from < first ? 0 : from - first > keys ? keys : from - first;
  to = to < first ? 0 : to - first > keys ? keys : to - first;
  if (cap > 0)
    for (int64_t j = from; j < to; j++) score[j] = cap * ref_tanh(score[j] / cap);
  if (gqa_has(m, a, GQA_BIAS))
    for (int64_t j = from; j < to; j++) score[j] += (float)gqa_bias(m, a, t->b, head_of(m, t, i), s, first + j);
  for (int64_t j = from; j < to; j++) most = score[j] > most || isnan(score[j]) ? score[j] : most;
  for (int64_t j = 0; j < from; j++) score[j] = 0;
  for (int64_t j = to; j < keys; j++) score[j] = 0;
  if (most == -INFINITY) { /* nothing is seen so far */
    for (int64_t j = from; j < to; j++) score[j] = 0;
    return 1;
  }
  if (to > from) exponentials(score + from, to - from, most);
  for (int64_t j = from; j < to; j++) sum += score[j];
  const float factor = r->most[i] == -INFINITY ? 0 : expf(r->most[i] - most);
  r->total[i] = r->total[i] * factor + sum;
  r->most[i] = most;
  return factor;
}

static void attend(const more_op *m, const more_args *a, const rows_at *t, const cache *keys, const cache *values,
                   weigher weigh, const room *r) {
  const int64_t size = m->i[GQA_SIZE];
  int64_t first, last, unused;
  float factors[ROWS];
  gqa_seen(m, t->end, query_of(m, t, 0), &first, &unused);
  gqa_seen(m, t->end, query_of(m, t, t->count - 1), &unused, &last);
  begin_rows(m, a, t, r);
  for (int64_t j = first; j < last; j += KEYS) {
    const int64_t n = last - j < KEYS ? last - j : KEYS;
    const more_rows product = {.a = r->queries,
                               .b = rows_of(keys, j, n, r->keys),
                               .out = r->scores,
                               .m = t->count,
                               .n = n,
                               .k = size,
                               .a_step = size,
                               .out_step = KEYS};
    more_rows_product(&product);
    for (int64_t i = 0; i < t->count; i++) factors[i] = weights_of(m, a, t, i, j, n, r);
    weigh(r->scores, rows_of(values, j, n, r->values), t->count, n, size, r->sums, factors);
  }
  for (int64_t i = 0; i < t->count; i++) {
    const float inverse = r->total[i] == 0 ? 0 : 1.0F / r->total[i];
    const int64_t row = t->b * m->i[GQA_LENGTH] + query_of(m, t, i);
    for (int64_t e = 0; e < size; e++) r->sums[i * size + e] *= inverse;
    write_floats(&m->out[GQA_Y], r->sums + i * size, a->out[GQA_Y], (row * m->i[GQA_HEADS] + head_of(m, t, i)) * size,
                 size);
  }
}

/* A unit is a head of keys of a row of the batch. */
void gqa_run_fast(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const int64_t share = m->i[GQA_SHARE], all = m->i[GQA_LENGTH] * share;
  const weigher weigh = find_weigher();
  int64_t work = 0;
  room r;
  lay_room(m, a->scratch, &r);
  for (int64_t u = first; u < last; u++) {
    const int64_t b = u / m->i[GQA_KV_HEADS], kv = u % m->i[GQA_KV_HEADS], end = gqa_end(m, a, b),
                  past = gqa_past(m, end);
    const cache keys = keep(m, a, GQA_PRESENT_K, b, kv, past, &r), values = keep(m, a, GQA_PRESENT_V, b, kv, past, &r);
    for (int64_t at = 0; at < all && a->out[GQA_Y] != NULL; at += ROWS) {
      const rows_at t = {.b = b, .kv = kv, .first = at, .count = all - at < ROWS ? all - at : ROWS, .end = end};
      if (more_tick(m, &work, t.count * end * m->i[GQA_SIZE])) return;
      attend(m, a, &t, &keys, &values, weigh, &r);
    }
  }
}
