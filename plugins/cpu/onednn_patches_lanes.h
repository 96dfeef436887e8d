/* The kernels of onednn_patches_tile.c for one size of vectors, given by macros: LANES, vec, NAME, TARGET and the
 * operations that begin with V_. No include guard: it is read once for each. */

#define ROW(r) \
  do { \
    const vec x = V_SET(a##r[d]); \
    s##r##0 = V_MULADD(x, b0, s##r##0); \
    s##r##1 = V_MULADD(x, b1, s##r##1); \
    s##r##2 = V_MULADD(x, b2, s##r##2); \
  } while (0)
#define BEGIN(r) \
  const float *a##r = a[r]; \
  vec s##r##0 = V_SET(0.0F), s##r##1 = s##r##0, s##r##2 = s##r##0
#define END(r) \
  do { \
    const vec one = V_SET(first != NULL ? first[r] : 0.0F); \
    V_STORE(c[r], V_ADD(s##r##0, first != NULL ? one : V_LOAD(c[r]))); \
    V_STORE(c[r] + LANES, V_ADD(s##r##1, first != NULL ? one : V_LOAD(c[r] + LANES))); \
    V_STORE(c[r] + 2 * LANES, V_ADD(s##r##2, first != NULL ? one : V_LOAD(c[r] + 2 * LANES))); \
  } while (0)

TARGET static void NAME(tile)(const float *const a[PATCHES_ROWS], const float *b, int64_t depth, const float *first,
                              float *const c[PATCHES_ROWS]) {
  BEGIN(0);
  BEGIN(1);
  BEGIN(2);
  BEGIN(3);
  for (int64_t d = 0; d < depth; d++, b += PATCHES_BLOCK) {
    const vec b0 = V_LOAD(b), b1 = V_LOAD(b + LANES), b2 = V_LOAD(b + 2 * LANES);
    ROW(0);
    ROW(1);
    ROW(2);
    ROW(3);
  }
  END(0);
  END(1);
  END(2);
  END(3);
}
#undef ROW
#undef BEGIN
#undef END

#define ROW(r) \
  do { \
    const vec x = V_SET(a##r[d]); \
    s##r##0 = V_MULADD(x, b0, s##r##0); \
    s##r##1 = V_MULADD(x, b1, s##r##1); \
  } while (0)
#define BEGIN(r) \
  const float *a##r = a[r]; \
  vec s##r##0 = V_SET(0.0F), s##r##1 = s##r##0
#define END(r) \
  do { \
    const vec one = V_SET(first != NULL ? first[r] : 0.0F); \
    V_STORE(c[r], V_ADD(s##r##0, first != NULL ? one : V_LOAD(c[r]))); \
    V_STORE(c[r] + LANES, V_ADD(s##r##1, first != NULL ? one : V_LOAD(c[r] + LANES))); \
  } while (0)

/* The same with two thirds of the columns. */
TARGET static void NAME(thin)(const float *const a[PATCHES_ROWS], const float *b, int64_t depth, const float *first,
                              float *const c[PATCHES_ROWS]) {
  BEGIN(0);
  BEGIN(1);
  BEGIN(2);
  BEGIN(3);
  for (int64_t d = 0; d < depth; d++, b += PATCHES_BLOCK) {
    const vec b0 = V_LOAD(b), b1 = V_LOAD(b + LANES);
    ROW(0);
    ROW(1);
    ROW(2);
    ROW(3);
  }
  END(0);
  END(1);
  END(2);
  END(3);
}
#undef ROW
#undef BEGIN
#undef END

#define ROW(r) \
  do { \
    const float *from = in + r * apart + offset[t]; \
    s##r##0 = V_MULADD(x, V_LOAD(from), s##r##0); \
    s##r##1 = V_MULADD(x, V_LOAD(from + LANES), s##r##1); \
  } while (0)
#define BEGIN(r) vec s##r##0 = V_SET(bias), s##r##1 = s##r##0

TARGET static void NAME(plane)(const float *in, int64_t apart, const int64_t *offset, const float *w, int64_t taps,
                               float bias, float *const out[PATCHES_ROWS]) {
  BEGIN(0);
  BEGIN(1);
  BEGIN(2);
  BEGIN(3);
  for (int64_t t = 0; t < taps; t++) {
    const vec x = V_SET(w[t]);
    ROW(0);
    ROW(1);
    ROW(2);
    ROW(3);
  }
  V_STORE(out[0], s00);
  V_STORE(out[0] + LANES, s01);
  V_STORE(out[1], s10);
  V_STORE(out[1] + LANES, s11);
  V_STORE(out[2], s20);
  V_STORE(out[2] + LANES, s21);
  V_STORE(out[3], s30);
  V_STORE(out[3] + LANES, s31);
}
#undef ROW
#undef BEGIN

/* Every second element, of all but the last: nothing behind it is read. How many there are. */
TARGET static int64_t NAME(even)(float *to, const float *from, int64_t n) {
  int64_t i = 0;
  for (; i + LANES < n; i += LANES) V_STORE(to + i, V_EVEN(V_LOAD(from + 2 * i), V_LOAD(from + 2 * i + LANES)));
  return i;
}

/* NaN stays: the maximum and the minimum give their second operand where one is NaN. */
TARGET static inline vec NAME(one)(const onednn_post *post, vec x, vec other) {
  const vec zero = V_SET(0.0F), alpha = V_SET(post->alpha), beta = V_SET(post->beta);
  switch (post->alg) {
  case dnnl_eltwise_relu:
    if (memcmp(&post->alpha, &(float){0}, sizeof post->alpha) == 0) return V_MAX(zero, x);
    return V_ADD(V_MAX(zero, x), V_MUL(alpha, V_MIN(zero, x)));
  case dnnl_eltwise_clip: return V_MIN(beta, V_MAX(alpha, x));
  case dnnl_eltwise_hardswish: return V_MUL(x, V_MIN(V_SET(1.0F), V_MAX(zero, V_MULADD(alpha, x, beta))));
  case dnnl_binary_add: return V_ADD(x, other);
  case dnnl_binary_mul: return V_MUL(x, other);
  case dnnl_binary_sub: return V_SUB(x, other);
  default: return V_DIV(x, other);
  }
}

TARGET static void NAME(post)(const onednn_post *post, float *x, const float *other, int step, int64_t n) {
  const vec single = V_SET(other != NULL && step == 0 ? *other : 0.0F);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    V_STORE(x + i, NAME(one)(post, V_LOAD(x + i), step != 0 ? V_LOAD(other + i) : single));
  if (i == n) return;
  float rest[2][LANES] = {{0}};
  const size_t bytes = (size_t)(n - i) * sizeof(float);
  memcpy(rest[0], x + i, bytes);
  if (step != 0) memcpy(rest[1], other + i, bytes);
  V_STORE(rest[0], NAME(one)(post, V_LOAD(rest[0]), step != 0 ? V_LOAD(rest[1]) : single));
  memcpy(x + i, rest[0], bytes);
}
