/* The kernels of onednn_rows.c for one size of vectors, given by macros: LANES, vec, NAME, TARGET and the operations that
 * begin with V_. No include guard: it is read once for each. */

#include "onednn_exp_lanes.h"

/* Scaled and masked, into out; the greatest, NaN passed over. */
TARGET static inline float NAME(shift)(float *out, const float *in, const float *mask, float scale, int64_t n) {
  const vec by = V_SET(scale);
  vec most = V_SET(-INFINITY);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vec x = V_MUL(V_LOAD(in + i), by);
    if (mask != NULL) x = V_ADD(x, V_LOAD(mask + i));
    V_STORE(out + i, x);
    most = V_MAX(x, most);
  }
  float greatest = NAME(most_of)(most);
  for (; i < n; i++) {
    out[i] = in[i] * scale;
    if (mask != NULL) out[i] += mask[i];
    greatest = out[i] > greatest ? out[i] : greatest;
  }
  return greatest;
}

TARGET static void NAME(softmax)(float *out, const float *in, const float *mask, float scale, int64_t n) {
  enum { BLOCK = 4096 }; /* elements that are summed in float32 */
  const float greatest = NAME(shift)(out, in, mask, scale, n);
  const vec most = V_SET(greatest);
  double sum = 0;
  int64_t i = 0;
  for (; n - i >= LANES;) {
    const int64_t end = n - i < BLOCK ? n - LANES : i + BLOCK - LANES;
    vec part = V_SET(0.0f);
    for (; i <= end; i += LANES) {
      const vec e = NAME(exponential)(V_MAX(V_SET(-110.0f), V_SUB(V_LOAD(out + i), most)));
      V_STORE(out + i, e);
      part = V_ADD(part, e);
    }
    sum += (double)NAME(sum_of)(part);
  }
  if (i < n) { /* the rest of the row, in a vector of its own */
    float rest[LANES];
    for (int k = 0; k < LANES; k++) rest[k] = i + k < n ? out[i + k] - greatest : -INFINITY;
    V_STORE(rest, NAME(exponential)(V_MAX(V_SET(-110.0f), V_LOAD(rest))));
    for (int k = 0; i + k < n; k++) sum += (double)(out[i + k] = rest[k]);
  }
  const float less = (float)(1.0 / sum);
  const vec by = V_SET(less);
  for (i = 0; i + LANES <= n; i += LANES) V_STORE(out + i, V_MUL(V_LOAD(out + i), by));
  for (; i < n; i++) out[i] *= less;
}

/* One row of out for each of ROWS rows of x: its products with KEYS rows of y. */
#define DOTS(ROWS, KEYS) \
  do { \
    vec sum[ROWS][KEYS]; \
    for (int r = 0; r < ROWS; r++) \
      for (int k = 0; k < KEYS; k++) sum[r][k] = V_SET(0.0f); \
    int64_t c = 0; \
    for (; c + LANES <= n; c += LANES) { \
      vec part[KEYS]; \
      for (int k = 0; k < KEYS; k++) part[k] = V_LOAD(y + k * y_pitch + c); \
      for (int r = 0; r < ROWS; r++) { \
        const vec one = V_LOAD(x + r * x_pitch + c); \
        for (int k = 0; k < KEYS; k++) sum[r][k] = V_MULADD(one, part[k], sum[r][k]); \
      } \
    } \
    for (int r = 0; r < ROWS; r++) \
      for (int k = 0; k < KEYS; k++) { \
        float all = NAME(sum_of)(sum[r][k]); \
        for (int64_t i = c; i < n; i++) all += x[r * x_pitch + i] * y[k * y_pitch + i]; \
        out[r * out_pitch + k] = all; \
      } \
  } while (0)

TARGET static void NAME(dots)(float *out, int64_t out_pitch, const float *x, int64_t x_pitch, int64_t rows,
                              const float *y, int64_t y_pitch, int64_t keys, int64_t n) {
  const float *first = y;
  for (; rows > 0; x += 4 * x_pitch, out += 4 * out_pitch, rows -= 4) {
    if (rows < 4) break;
    float *const begin = out;
    int64_t k = 0;
    for (y = first; k + 2 <= keys; k += 2, y += 2 * y_pitch, out += 2) DOTS(4, 2);
    for (; k < keys; k++, y += y_pitch, out++) DOTS(4, 1);
    out = begin;
  }
  for (; rows > 0; x += x_pitch, out += out_pitch, rows--) {
    float *const begin = out;
    int64_t k = 0;
    for (y = first; k + 4 <= keys; k += 4, y += 4 * y_pitch, out += 4) DOTS(1, 4);
    for (; k < keys; k++, y += y_pitch, out++) DOTS(1, 1);
    out = begin;
  }
}
#undef DOTS

/* A block of columns of the sums of rows of y, by the weights in ROWS rows of x. */
#define SUMS(ROWS, VECS) \
  do { \
    vec sum[ROWS][VECS]; \
    for (int r = 0; r < ROWS; r++) \
      for (int v = 0; v < VECS; v++) sum[r][v] = V_SET(0.0f); \
    for (int64_t k = 0; k < keys; k++) { \
      vec part[VECS]; \
      for (int v = 0; v < VECS; v++) part[v] = V_LOAD(y + k * y_pitch + c + v * LANES); \
      for (int r = 0; r < ROWS; r++) \
        for (int v = 0; v < VECS; v++) sum[r][v] = V_MULADD(V_SET(x[r * x_pitch + k]), part[v], sum[r][v]); \
    } \
    for (int r = 0; r < ROWS; r++) \
      for (int v = 0; v < VECS; v++) V_STORE(out + r * out_pitch + c + v * LANES, sum[r][v]); \
  } while (0)

#define SUMS_OF_ROWS(ROWS) \
  do { \
    int64_t c = 0; \
    for (; c + 2 * LANES <= n; c += 2 * LANES) SUMS(ROWS, 2); \
    for (; c + LANES <= n; c += LANES) SUMS(ROWS, 1); \
    for (; c < n; c++) \
      for (int r = 0; r < ROWS; r++) { \
        float all = 0; \
        for (int64_t k = 0; k < keys; k++) all += x[r * x_pitch + k] * y[k * y_pitch + c]; \
        out[r * out_pitch + c] = all; \
      } \
  } while (0)

TARGET static void NAME(sums)(float *out, int64_t out_pitch, const float *x, int64_t x_pitch, int64_t rows,
                              const float *y, int64_t y_pitch, int64_t keys, int64_t n) {
  for (; rows >= 4; x += 4 * x_pitch, out += 4 * out_pitch, rows -= 4) SUMS_OF_ROWS(4);
  for (; rows > 0; x += x_pitch, out += out_pitch, rows--) SUMS_OF_ROWS(1);
}
#undef SUMS
#undef SUMS_OF_ROWS
