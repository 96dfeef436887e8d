/* Loops over columns, four rows at a time; the compiler makes vectors of them. */
#include "folds.h"

#include "lanes_loops.h"

#include <math.h>

#define FOLD(kind, name, step, T, A, ONE, FOUR, ROW) \
  kind void name(void *to, const void *from, int64_t n, int64_t apart, int64_t rows, int64_t stride) { \
    A *restrict acc = to; \
    const T *restrict x = from; \
    for (; apart != 1 && n > 0; n--, x += apart, acc++) { \
      A a = *acc; \
      int64_t i = 0; \
      for (; i + 4 <= rows; i += 4) a = ROW(ONE, A, a, x[i], x[i + 1], x[i + 2], x[i + 3]); \
      for (; i < rows; i++) a = ONE(A, a, x[i]); \
      *acc = a; \
    } \
    for (; n > 0 && rows >= 4; rows -= 4, x += 4 * stride) { \
      for (int64_t j = 0; j < n; j++) \
        acc[j] = FOUR(ONE, A, acc[j], x[j], x[stride + j], x[2 * stride + j], x[3 * stride + j]); \
    } \
    for (; n > 0 && rows > 0; rows--, x += stride) { \
      for (int64_t j = 0; j < n; j++) acc[j] = ONE(A, acc[j], x[j]); \
    } \
  }

/* Integers wrap: they are added without a sign. */
#define EACH(ONE, A, a, p, q, r, s) ONE(A, ONE(A, ONE(A, ONE(A, a, p), q), r), s)
#define PAIRS(ONE, A, a, p, q, r, s) ONE(A, ONE(A, a, ONE(A, p, q)), ONE(A, r, s))
#define TOGETHER(ONE, A, a, p, q, r, s) ((a) + (A)(((p) + (q)) + ((r) + (s))))
#define MAGNITUDES(ONE, A, a, p, q, r, s) ((a) + (A)((fabs(p) + fabs(q)) + (fabs(r) + fabs(s))))
#define ADD(A, a, v) ((A)((a) + (A)(v)))
#define TIMES(A, a, v) ((A)((a) * (A)(v)))
#define ADD_SQUARE(A, a, v) ((A)((a) + (A)(v) * (A)(v)))
#define ADD_MAGNITUDE(A, a, v) ((A)((a) + fabs((A)(v))))
#define WRAPPED(A, a, v) ((A)((uint64_t)(a) * (uint64_t)(v)))
#define WRAPPED_SQUARE(A, a, v) ((A)((uint64_t)(a) + (uint64_t)(v) * (uint64_t)(v)))
#define WRAPPED_MAGNITUDE(A, a, v) ((A)((a) + ((v) < 0 ? (A)(0 - (A)(v)) : (A)(v))))
#define GREATEST(A, a, v) greatest_##A(a, v)
#define LEAST(A, a, v) least_##A(a, v)

/* NaN comes through. */
#define ENDS_OF(A) \
  static inline A greatest_##A(A a, A v) { \
    const A most = v > a ? v : a; \
    return v != v ? v : most; \
  } \
  static inline A least_##A(A a, A v) { \
    const A most = v < a ? v : a; \
    return v != v ? v : most; \
  }
ENDS_OF(float)
ENDS_OF(double)
ENDS_OF(int8_t)
ENDS_OF(int16_t)
ENDS_OF(int32_t)
ENDS_OF(int64_t)
ENDS_OF(uint8_t)
ENDS_OF(uint16_t)
ENDS_OF(uint32_t)
ENDS_OF(uint64_t)

/* The commonest are compiled for AVX2 too. */
#define FOR_ANY(name, ...) FOLD(static, name, 0, __VA_ARGS__)
#define FOR_BOTH(...) LANES_TWICE(FOLD, __VA_ARGS__)

#define ENDS(name, T) \
  FOR_BOTH(name##_max, T, T, GREATEST, EACH, PAIRS) \
  FOR_BOTH(name##_min, T, T, LEAST, EACH, PAIRS)
#define REAL(name, T) \
  FOR_BOTH(name##_sum, T, double, ADD, TOGETHER, TOGETHER) \
  FOR_BOTH(name##_square, T, double, ADD_SQUARE, EACH, EACH) \
  FOR_BOTH(name##_l1, T, double, ADD_MAGNITUDE, MAGNITUDES, MAGNITUDES) \
  FOR_ANY(name##_prod, T, double, TIMES, EACH, EACH) \
  ENDS(name, T)
REAL(f32, float)
REAL(f64, double)

#define WHOLE(bits) \
  FOR_BOTH(u##bits##_sum, uint##bits##_t, uint##bits##_t, ADD, EACH, EACH) \
  FOR_ANY(u##bits##_square, uint##bits##_t, uint##bits##_t, WRAPPED_SQUARE, EACH, EACH) \
  FOR_ANY(u##bits##_prod, uint##bits##_t, uint##bits##_t, WRAPPED, EACH, EACH) \
  FOR_ANY(i##bits##_l1, int##bits##_t, uint##bits##_t, WRAPPED_MAGNITUDE, EACH, EACH) \
  FOR_ANY(i##bits##_wide, int##bits##_t, uint64_t, ADD, EACH, EACH) \
  FOR_ANY(u##bits##_wide, uint##bits##_t, uint64_t, ADD, EACH, EACH) \
  ENDS(i##bits, int##bits##_t) \
  ENDS(u##bits, uint##bits##_t)
WHOLE(8)
WHOLE(16)
WHOLE(32)
WHOLE(64)

#define SAME(name) \
  { name, name }
#define ROW_REAL(name) \
  { \
    LANES_BOTH(name##_sum), SAME(name##_prod), LANES_BOTH(name##_max), LANES_BOTH(name##_min), LANES_BOTH(name##_l1), \
        LANES_BOTH(name##_square), LANES_NONE \
  }
#define ROW_WHOLE(name, bits, magnitudes) \
  { \
    LANES_BOTH(u##bits##_sum), SAME(u##bits##_prod), LANES_BOTH(name##bits##_max), LANES_BOTH(name##bits##_min), \
        magnitudes, SAME(u##bits##_square), SAME(name##bits##_wide) \
  }
#define ROW_I(bits) ROW_WHOLE(i, bits, SAME(i##bits##_l1))
#define ROW_U(bits) ROW_WHOLE(u, bits, LANES_BOTH(u##bits##_sum))

ref_fold ref_fold_of(int type, int what) {
  static const ref_fold folds[REF_TYPE_BOOL][REF_FOLDS][2] = {ROW_REAL(f32), ROW_REAL(f64), ROW_I(8), ROW_I(16),
                                                              ROW_I(32),     ROW_I(64),     ROW_U(8), ROW_U(16),
                                                              ROW_U(32),     ROW_U(64)};
  return type < REF_TYPE_BOOL ? folds[type][what][ref_lanes_wide()] : NULL;
}

int ref_fold_type(int type, int what) {
  if (what == REF_FOLD_WIDE) return REF_TYPE_I64;
  return type <= REF_TYPE_F64 && what != REF_FOLD_MAX && what != REF_FOLD_MIN ? REF_TYPE_F64 : type;
}

void ref_fold_join(int type, int what, void *results) {
  const ref_fold fold = ref_fold_of(type, what);
  const int64_t size = ref_type_bytes(type), few = REF_FOLD_LANES / 8;
  for (int64_t half = REF_FOLD_LANES / 2; half >= few; half /= 2)
    fold(results, (const char *)results + half * size, half, 1, 1, 0);
  fold(results, (const char *)results + size, 1, 1, few - 1, 1);
}

void ref_fold_end(int type, int what, const void *x, int64_t n, void *out) {
  const ref_fold fold = ref_fold_of(type, what);
  const int64_t size = ref_type_bytes(type), rows = n / REF_FOLD_LANES, whole = rows * REF_FOLD_LANES;
  int64_t lanes[REF_FOLD_LANES];
  ref_take(x, 0, (uint32_t)size, rows > 0 ? REF_FOLD_LANES : 1, lanes);
  if (rows > 0) fold(lanes, x, REF_FOLD_LANES, 1, rows, REF_FOLD_LANES);
  if (rows > 0) ref_fold_join(type, what, lanes);
  fold(lanes, (const char *)x + whole * size, 1, 1, n - whole, 1);
  memcpy(out, lanes, (size_t)size);
}
