/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, and how the other quantised operators round. Between float32
 * and integers of 8 and 16 bits there are loops that the compiler makes vectors of, on x86-64 also for AVX2; all other types go number by
 * number. */
#include "more.h"

#include <math.h>

enum { AXIS, BLOCK, PER, INNER, PRECISION, SATURATE };

/* Which scale element i has. */
static int64_t scale_of(const more_op *m, int64_t i) {
  const more_value *x = &m->in[0], *scale = &m->in[1];
  if (scale->count == 1) return 0;
  const int64_t axis = m->i[AXIS], inner = m->i[INNER], n = x->shape[axis];
  const int64_t at = i / inner % n;
  if (m->i[BLOCK] == 0) return at;
  return (i / inner / n * scale->shape[axis] + at / m->i[BLOCK]) * inner + i % inner;
}

static double saturated(double x, int type) {
  const double least = more_lowest(type), most = more_highest(type);
  return x != x ? 0 : x < least ? least : x > most ? most : x;
}

/* ---------------------------------------------------------------- between float32 and small integers */

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
#define NARROW __attribute__((target("avx2")))
#else
#define NARROW
#endif
#define INSIDE static inline __attribute__((always_inline))

/* 1.5 * 2^23: what a float of less than 2^22 is added to keeps no fraction, half going to even. */
#define MAGIC 12582912.0f
#define MAGIC_BITS 0x4B400000

/* As numbers go from 0 to top, 255 or 65535: flip is half of top + 1 for signed ones, and zero has it added. NaN gives 0,
 * as saturated says. */
INSIDE int32_t quantum(float x, float scale, int32_t zero, int32_t flip, int32_t top) {
  const float least = (float)-zero, most = (float)(top - zero), q = x / scale;
  float r = q < least ? least : q;
  int32_t bits;
  r = r > most ? most : r;
  r += MAGIC;
  memcpy(&bits, &r, sizeof bits);
  return (q != q ? flip : bits - MAGIC_BITS + zero) ^ flip;
}

#define QUANTIZE(name, T, top) \
  INSIDE void quantize_##name(const float *restrict x, void *out, int64_t n, float scale, int32_t zero, \
                              int32_t flip) { \
    T *restrict y = out; \
    for (int64_t i = 0; i < n; i++) y[i] = (T)quantum(x[i], scale, zero, flip, top); \
  } \
  INSIDE void dequantize_##name(const void *in, float *restrict y, int64_t n, float scale, int32_t zero, \
                                int32_t flip) { \
    const T *restrict x = in; \
    for (int64_t i = 0; i < n; i++) y[i] = (float)((x[i] ^ flip) - zero) * scale; \
  }
QUANTIZE(bytes, uint8_t, 255)
QUANTIZE(pairs, uint16_t, 65535)

/* limits: the least and the greatest number, and 0 among them. */
INSIDE void limits_any(const float *restrict x, int64_t n, float limits[2]) {
  enum { LANES = 16 };
  float least[LANES] = {0}, most[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) {
      least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
      most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
    }
  for (; i < n; i++) {
    least[0] = x[i] < least[0] ? x[i] : least[0];
    most[0] = x[i] > most[0] ? x[i] : most[0];
  }
  for (int k = 1; k < LANES; k++) {
    least[0] = least[k] < least[0] ? least[k] : least[0];
    most[0] = most[k] > most[0] ? most[k] : most[0];
  }
  limits[0] = least[0];
  limits[1] = most[0];
}

INSIDE int32_t dot_int8_any(const int16_t *restrict a, const int8_t *restrict b, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

INSIDE int32_t dot_uint8_any(const int16_t *restrict a, const uint8_t *restrict b, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

INSIDE void row_int8_any(int32_t *restrict acc, int32_t x, const int8_t *restrict row, int64_t n) {
  for (int64_t i = 0; i < n; i++) acc[i] += x * row[i];
}

INSIDE void row_uint8_any(int32_t *restrict acc, int32_t x, const uint8_t *restrict row, int64_t n) {
  for (int64_t i = 0; i < n; i++) acc[i] += x * row[i];
}

typedef struct loops {
  /* size: bytes of an integer, 1 or 2 */
  void (*quantize)(int size, const float *x, void *y, int64_t n, float scale, int32_t zero, int32_t flip);
  void (*dequantize)(int size, const void *x, float *y, int64_t n, float scale, int32_t zero, int32_t flip);
  void (*limits)(const float *x, int64_t n, float limits[2]);
  int32_t (*dot)(int type, const int16_t *a, const void *b, int64_t n);
  void (*row)(int type, int32_t *acc, int32_t x, const void *row, int64_t n);
} loops;

#define MAKE(name, target) \
  target static void quantize_##name(int size, const float *x, void *y, int64_t n, float scale, int32_t zero, \
                                     int32_t flip) { \
    if (size == 1) quantize_bytes(x, y, n, scale, zero, flip); \
    else quantize_pairs(x, y, n, scale, zero, flip); \
  } \
  target static void dequantize_##name(int size, const void *x, float *y, int64_t n, float scale, int32_t zero, \
                                       int32_t flip) { \
    if (size == 1) dequantize_bytes(x, y, n, scale, zero, flip); \
    else dequantize_pairs(x, y, n, scale, zero, flip); \
  } \
  target static void limits_##name(const float *x, int64_t n, float limits[2]) { \
    limits_any(x, n, limits); \
  } \
  target static int32_t dot_##name(int type, const int16_t *a, const void *b, int64_t n) { \
    return type == REF_TYPE_I8 ? dot_int8_any(a, b, n) : dot_uint8_any(a, b, n); \
  } \
  target static void row_##name(int type, int32_t *acc, int32_t x, const void *row, int64_t n) { \
    if (type == REF_TYPE_I8) row_int8_any(acc, x, row, n); \
    else row_uint8_any(acc, x, row, n); \
  } \
  static const loops name = {quantize_##name, dequantize_##name, limits_##name, dot_##name, row_##name};
MAKE(narrow, NARROW)

#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
MAKE(plain, )

static const loops *loops_here(void) {
  return __builtin_cpu_supports("avx2") ? &narrow : &plain;
}
#else
static const loops *loops_here(void) {
  return &narrow;
}
#endif

static bool is_small(int type) {
  return type == REF_TYPE_I8 || type == REF_TYPE_U8 || type == REF_TYPE_I16 || type == REF_TYPE_U16;
}

/* Elements from i on with one scale, up to last. */
static int64_t run_from(const more_op *m, int64_t i, int64_t last) {
  const int64_t inner = m->i[INNER];
  int64_t end = m->in[1].count == 1 ? last : (i / inner + 1) * inner;
  if (m->in[1].count != 1 && m->i[BLOCK] > 0 && inner == 1) { /* a block, or what is left of its row */
    const int64_t n = m->in[0].shape[m->i[AXIS]], row = i / n * n, block = (i - row) / m->i[BLOCK] + 1;
    end = row + (block * m->i[BLOCK] < n ? block * m->i[BLOCK] : n);
  }
  return (end < last ? end : last) - i;
}

/* Scale and zero point of element i, for integers of a type. */
static float quantum_at(const more_op *m, const more_args *a, int64_t i, int type, int32_t *zero, int32_t *flip) {
  const int64_t s = scale_of(m, i);
  *flip = type == REF_TYPE_I8 ? 1 << 7 : type == REF_TYPE_I16 ? 1 << 15 : 0;
  *zero = (a->in[2] != NULL ? (int32_t)more_get_int(&m->in[2], a->in[2], s) : 0) + *flip;
  return ((const float *)a->in[1])[s];
}

static void run_quantize_small(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const loops *l = loops_here();
  const int size = m->out[0].size;
  for (int64_t i = first, n; i < last; i += n) {
    int32_t zero, flip;
    const float scale = quantum_at(m, a, i, m->out[0].type, &zero, &flip);
    n = run_from(m, i, last);
    l->quantize(size, (const float *)a->in[0] + i, (char *)a->out[0] + i * size, n, scale, zero, flip);
  }
}

/* The same with a scale for each place of the last dimension. */
NARROW static void dequantize_columns(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  enum { COLUMNS = 512 };
  const int64_t n = m->i[INNER] == 1 ? m->in[0].shape[m->i[AXIS]] : 1, at = first % n;
  const float *scale = a->in[1];
  float zero[COLUMNS];
  for (int64_t c = 0, some; c < n; c += some) { /* a strip of columns */
    some = n - c < COLUMNS ? n - c : COLUMNS;
    for (int64_t k = 0; k < some; k++) zero[k] = a->in[2] != NULL ? (float)more_get_int(&m->in[2], a->in[2], c + k) : 0;
    for (int64_t row = first - at; row < last; row += n) {
      const int64_t begin = row + c < first ? first - row - c : 0, room = last - row - c,
                    end = room < some ? room : some;
      float *y = (float *)a->out[0] + row + c;
      const uint8_t *x = (const uint8_t *)a->in[0] + row + c;
      const int8_t *with_sign = (const int8_t *)x;
      if (m->in[0].type == REF_TYPE_I8)
        for (int64_t k = begin; k < end; k++) y[k] = ((float)with_sign[k] - zero[k]) * scale[c + k];
      else
        for (int64_t k = begin; k < end; k++) y[k] = ((float)x[k] - zero[k]) * scale[c + k];
    }
  }
}

static void run_dequantize_small(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const loops *l = loops_here();
  const int size = m->in[0].size;
  for (int64_t i = first, n; i < last; i += n) {
    int32_t zero, flip;
    const float scale = quantum_at(m, a, i, m->in[0].type, &zero, &flip);
    n = run_from(m, i, last);
    l->dequantize(size, (const char *)a->in[0] + i * size, (float *)a->out[0] + i, n, scale, zero, flip);
  }
}

/* Bytes with a scale for each element of the rows that lie behind the axis, of blocks along it. */
NARROW static void dequantize_rows(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  enum { SOME = 512 };
  static const uint8_t none[SOME];
  const int64_t inner = m->i[INNER];
  for (int64_t i = first, n; i < last; i += n) {
    const int64_t s = scale_of(m, i), left = inner - i % inner, most = left < SOME ? left : SOME;
    n = last - i < most ? last - i : most;
    const float *scale = (const float *)a->in[1] + s;
    const uint8_t *x = (const uint8_t *)a->in[0] + i, *z = a->in[2] != NULL ? (const uint8_t *)a->in[2] + s : none;
    const int8_t *with_sign = (const int8_t *)x, *zero = (const int8_t *)z;
    float *y = (float *)a->out[0] + i;
    if (m->in[0].type == REF_TYPE_I8)
      for (int64_t k = 0; k < n; k++) y[k] = (float)(with_sign[k] - zero[k]) * scale[k];
    else
      for (int64_t k = 0; k < n; k++) y[k] = (float)(x[k] - z[k]) * scale[k];
  }
}

/* int32 to float32, as run_dequantize has it. */
NARROW static void dequantize_int32(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first, n; i < last; i += n) {
    const int64_t s = scale_of(m, i);
    const double scale = (double)((const float *)a->in[1])[s];
    const double zero = a->in[2] != NULL ? (double)((const int32_t *)a->in[2])[s] : 0;
    const int32_t *x = (const int32_t *)a->in[0] + i;
    float *y = (float *)a->out[0] + i;
    n = run_from(m, i, last);
    for (int64_t k = 0; k < n; k++) y[k] = (float)(((double)x[k] - zero) * scale);
  }
}

/* ---------------------------------------------------------------- QuantizeLinear and DequantizeLinear */

static void run_quantize(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const int64_t s = scale_of(m, i);
    const double zero = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], s) : 0;
    double x = more_get(&m->in[0], a->in[0], i) / more_get(&m->in[1], a->in[1], s);
    x = more_round_to((int)m->i[PRECISION], x);
    if (more_type_is_real(m->out[0].type)) { /* float8, whose zero point is 0 */
      ((uint8_t *)a->out[0])[i] = narrow_store(m->out[0].type, x, m->i[SATURATE] != 0, MORE_ROUND_UP);
      continue;
    }
    more_put(&m->out[0], a->out[0], i, saturated(nearbyint(x) + zero, m->out[0].type));
  }
}

static void run_dequantize(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    const int64_t s = scale_of(m, i);
    const double zero = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], s) : 0;
    more_put(&m->out[0], a->out[0], i, (more_get(&m->in[0], a->in[0], i) - zero) * more_get(&m->in[1], a->in[1], s));
  }
}

/* One scale; one for each place of an axis; or one for each block along it. */
static void scales(more_plan *p) {
  more_op *m = p->m;
  const more_value *x = &m->in[0], *s = &m->in[1];
  const int64_t axis = more_int(p, "axis", 1), block = more_int(p, "block_size", 0);
  more_real(p, 1);
  const more_value *z = more_operand(p, 2) ? &p->m->in[2] : s;
  if (s->count != 1 || z->count != 1 || s->ndim > 1 || z->ndim > 1) /* [] and [1] go together in exporters' files */
    more_same_shape(p, 1, 2);
  if (block < 0 || block > INT32_MAX) more_refuse(p, "block_size is %lld", (long long)block);
  if (s->count == 1 && s->ndim <= 1) return;
  m->i[AXIS] = more_axis(p, axis, x->ndim);
  if (!more_ok(p)) return;
  m->i[BLOCK] = block;
  m->i[INNER] = more_count(x->shape, m->i[AXIS] + 1, x->ndim);
  if (block == 0) {
    more_shape_is(p, 1, 1, &x->shape[m->i[AXIS]]);
    return;
  }
  int64_t shape[MORE_DIMS];
  memcpy(shape, x->shape, sizeof shape);
  shape[m->i[AXIS]] = (x->shape[m->i[AXIS]] + block - 1) / block;
  more_shape_is(p, 1, x->ndim, shape);
}

void more_setup_quantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "output_dtype", 0), precision = more_int(p, "precision", 0);
  int to = more_operand(p, 2) ? p->m->in[2].type : named != 0 ? more_type_of_onnx(named) : REF_TYPE_U8;
  p->m->i[SATURATE] = more_int(p, "saturate", 1);
  scales(p);
  p->m->i[PRECISION] = precision != 0 ? more_type_of_onnx(precision) : p->m->in[1].type;
  if (!more_type_is_real((int)p->m->i[PRECISION]) || p->m->i[PRECISION] == REF_TYPE_NONE)
    more_refuse(p, "precision is not a floating-point type");
  if (!more_type_is_whole(to) && !narrow_is(to)) more_refuse(p, "it quantizes to integers, float8 and float4 only");
  more_result(p, 0, to, x->ndim, x->shape);
  const bool small = x->type == REF_TYPE_F32 && p->m->in[1].type == REF_TYPE_F32 && is_small(to) &&
                     p->m->i[PRECISION] == REF_TYPE_F32 && (p->m->i[BLOCK] == 0 || p->m->i[INNER] == 1);
  if (small) more_loop(p, run_quantize_small, x->count, 4 * (double)x->count);
  else more_work(p, run_quantize, x->count, 2 * (double)x->count);
}

void more_setup_dequantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  const int64_t named = more_int(p, "output_dtype", 0);
  const int to = named != 0 ? more_type_of_onnx(named) : p->m->in[1].type;
  scales(p);
  if (!narrow_is(x->type)) more_whole(p, 0);
  more_same_type(p, 0, 2);
  if (!more_type_is_real(to) || to == REF_TYPE_NONE) more_refuse(p, "output_dtype is not a floating-point type");
  more_result(p, 0, to, x->ndim, x->shape);
  const bool floats = p->m->in[1].type == REF_TYPE_F32 && to == REF_TYPE_F32;
  const bool lines = p->m->i[BLOCK] == 0 || p->m->i[INNER] == 1; /* elements with one scale lie side by side */
  const bool small = is_small(x->type) && floats && lines;
  const bool columns = small && x->size == 1 && p->m->in[1].count > 1 && p->m->i[BLOCK] == 0 && p->m->i[INNER] == 1;
  if (floats && x->type == REF_TYPE_I32 && lines) more_loop(p, dequantize_int32, x->count, 2 * (double)x->count);
  else if (floats && x->size == 1 && is_small(x->type) && !lines)
    more_loop(p, dequantize_rows, x->count, 2 * (double)x->count);
  else if (columns) more_loop(p, dequantize_columns, x->count, 2 * (double)x->count);
  else if (small) more_loop(p, run_dequantize_small, x->count, 2 * (double)x->count);
  else more_work(p, run_dequantize, x->count, (double)x->count);
}

/* ---------------------------------------------------------------- DynamicQuantizeLinear */

/* Each part looks for the limits by itself: that takes less than waiting for the others. A part is not sliced, since each
 * slice would look for them again. */
static void run_dynamic(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const loops *l = loops_here();
  const int64_t PIECE = INT64_C(1) << 22;
  float limits[2] = {0, 0};
  int64_t work = 0;
  if (last > m->in[0].count) last = m->in[0].count; /* the one unit of an empty tensor */
  for (int64_t i = 0, n = 0; i < m->in[0].count || i == 0; i += n) {
    float some[2];
    n = m->in[0].count - i < PIECE ? m->in[0].count - i : PIECE;
    l->limits((const float *)a->in[0] + i, n, some);
    if (i == 0 || some[0] < limits[0] || some[0] != some[0]) limits[0] = some[0];
    if (i == 0 || some[1] > limits[1] || some[1] != some[1]) limits[1] = some[1];
    if (n < PIECE) break;
    if (more_tick(m, &work, n)) return;
  }
  const float scale = (limits[1] - limits[0]) / 255;
  const double zero = scale != 0 ? saturated(nearbyint((double)((0 - limits[0]) / scale)), REF_TYPE_U8) : 0;
  if (a->out[0] != NULL && scale == 0) memset((uint8_t *)a->out[0] + first, 0, (size_t)(last - first));
  else if (a->out[0] != NULL)
    l->quantize(1, (const float *)a->in[0] + first, (uint8_t *)a->out[0] + first, last - first, scale, (int32_t)zero,
                0);
  if (first > 0) return;
  if (a->out[1] != NULL) more_put(&m->out[1], a->out[1], 0, (double)scale);
  if (a->out[2] != NULL) more_put(&m->out[2], a->out[2], 0, zero);
}

void more_setup_dynamic_quantize(more_plan *p) {
  const more_value *x = &p->m->in[0];
  if (x->type != REF_TYPE_F32) more_refuse(p, "it takes float32");
  more_result(p, 0, REF_TYPE_U8, x->ndim, x->shape);
  more_result(p, 1, REF_TYPE_F32, 0, NULL);
  more_result(p, 2, REF_TYPE_U8, 0, NULL);
  more_loop(p, run_dynamic, x->count, 6 * (double)x->count);
  p->m->unsliced = true;
}

/* ---------------------------------------------------------------- products */

double more_rescale(const more_op *m, uint32_t k, double sum, double x, double w, double y) {
  if (m->in[k].type != REF_TYPE_F32) return sum * (x * w / y);
  return (double)((float)sum * ((float)x * (float)w / (float)y));
}

int32_t more_dot(int type, const int16_t *a, const void *b, int64_t n) {
  return loops_here()->dot(type, a, b, n);
}

void more_add_row(int type, int32_t *acc, int32_t x, const void *row, int64_t n) {
  loops_here()->row(type, acc, x, row, n);
}
