/* The elementwise operators by name, and their lanes for bool, for powers of two types and for Where. */
#define S_REAL double
#define S_LIBM(name) name
#include "lanes_fast.h"
#include "lanes_loops.h"
#include "plugins/common/scalar.h"
#include "plugins/common/scalar_c.h"

/* ---------------------------------------------------------------- bool */

#define LANES_LOGIC(name, n, cost, ...) LANES_##n(name##_b8, uint8_t, bool, uint8_t, cost, __VA_ARGS__)
#define LANES_TEST LANES_LOGIC
#define S_ISNAN(x) false
#define LANES_REAL(...)
#define LANES_INT(...)
#define LANES_NUMBER(...)
#define LANES_TEST_REAL(...)
#define SCALAR(name, kind, n, cost, ...) LANES_##kind(name, n, cost, __VA_ARGS__)
#include "operators/all.def"

/* ---------------------------------------------------------------- powers of two types */

void ref_pow_f32_by_f64(void *out, const void *const *in, int64_t n, const float *p) {
  const float *x = in[0];
  const double *y = in[1];
  float *to = out;
  (void)p;
  for (int64_t i = 0; i < n; i++) to[i] = (float)pow((double)x[i], y[i]);
}

#define POWER_OF(name, ...) \
  static void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const float *x = in[0]; \
    float *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) to[i] = __VA_ARGS__; \
  }
POWER_OF(square_f32, x[i] * x[i])
POWER_OF(cube_f32, x[i] * x[i] * x[i])

ref_lanes ref_lanes_power(float exponent) {
  return exponent == 2.0f ? square_f32 : exponent == 3.0f ? cube_f32 : NULL;
}

/* By squaring where the exponent is a whole number; else as the library has it. */
void ref_pow_i64_by_f64(void *out, const void *const *in, int64_t n, const float *p) {
  const int64_t *x = in[0];
  const double *y = in[1];
  int64_t *to = out;
  (void)p;
  for (int64_t i = 0; i < n; i++) {
    const bool whole = y[i] == floor(y[i]) && y[i] >= 0 && y[i] <= 0x1p31;
    to[i] = whole ? signed_pow(x[i], (int64_t)y[i]) : ref_whole_of(pow((double)x[i], y[i]));
  }
}

/* ---------------------------------------------------------------- Where */

#define WHERE(name, T) \
  static void name(void *out, const void *const *in, int64_t n, const float *p) { \
    const uint8_t *which = in[0]; \
    const T *a = in[1], *b = in[2]; \
    T *to = out; \
    (void)p; \
    REF_IVDEP \
    for (int64_t i = 0; i < n; i++) { \
      const T x = a[i], y = b[i]; \
      to[i] = which[i] != 0 ? x : y; \
    } \
  }
WHERE(where_1, uint8_t)
WHERE(where_2, uint16_t)
WHERE(where_4, uint32_t)
WHERE(where_8, uint64_t)

ref_lanes ref_lanes_where(uint64_t size) {
  return size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : size == 8 ? where_8 : NULL;
}

/* ---------------------------------------------------------------- by name */

#define B8_LOGIC(name) LANES_BOTH(name##_b8)
#define B8_TEST B8_LOGIC
#define B8_REAL(name) LANES_NONE
#define B8_INT B8_REAL
#define B8_NUMBER B8_REAL
#define B8_TEST_REAL B8_REAL

enum { MANY = 2 };

static const struct {
  char name[20];
  uint8_t kind, arity;
  uint16_t cost;
  ref_lanes truth[2];
} lane_ops[] = {
#define SCALAR(name, kind, n, cost, ...) {#name, SCALAR_##kind, n, cost, B8_##kind(name)},
#include "operators/all.def"
    {"", 0, 0, 0, LANES_NONE},
};

bool ref_lanes_wide(void) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

static bool has_fma(void) {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(HEDDLE_NO_LANES)
  return ref_lanes_wide() && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

static void keep(const ref_lanes *found, bool wide, ref_lanes *out) {
  if (found[wide] != NULL) *out = found[wide];
}

bool ref_lane_find(const char *op, ref_lane_op *out) {
  const bool wide = ref_lanes_wide(), fma = has_fma();
  *out = (ref_lane_op){0};
  for (uint32_t i = 0; lane_ops[i].kind != 0; i++) {
    if (strcmp(lane_ops[i].name, op) != 0) continue;
    out->arity = lane_ops[i].arity;
    out->compares = (lane_ops[i].kind & SCALAR_TEST) != 0;
    if (lane_ops[i].cost > out->steps) out->steps = lane_ops[i].cost;
    keep(ref_lanes_f32[i], wide, &out->of[REF_TYPE_F32]);
    if (fma && ref_lanes_fma[i] != NULL) out->of[REF_TYPE_F32] = ref_lanes_fma[i];
    keep(ref_lanes_f64[i], wide, &out->of[REF_TYPE_F64]);
    for (int t = REF_TYPE_I8; t <= REF_TYPE_U64; t++) keep(ref_lanes_whole[i][t - REF_TYPE_I8], wide, &out->of[t]);
    keep(lane_ops[i].truth, wide, &out->of[REF_TYPE_BOOL]);
  }
  const ref_lanes faster = ref_lanes_faster(op);
  if (faster != NULL && out->of[REF_TYPE_F32] != NULL) out->of[REF_TYPE_F32] = faster;
  return out->arity > 0;
}
