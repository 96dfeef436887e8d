/* The elementwise operators by name, and their lanes for integers, bool and Where. */
#define S_REAL double
#define S_LIBM(name) name
#include "lanes_fast.h"
#include "lanes_loops.h"
#include "plugins/common/scalar.h"
#include "plugins/common/scalar_c.h"

/* ---------------------------------------------------------------- integers and bool */

#define S_INT(x) INT64_C(x)
#define S_WRAP(x) ((int64_t)(x))
#define S_WHOLE(name) signed_##name
#define S_ISNAN(x) false
#define S_POW(x, y) signed_pow(x, y)
#define S_REM(x, y) signed_rem(x, y)
#define S_MOD(x, y) signed_mod(x, y)

#define LANES_LEAST INT64_MIN
#define LANES_MOST INT64_MAX
#define LANES_INT(name, n, cost, ...) static LANES_##n(name##_i64, int64_t, int64_t, int64_t, cost, __VA_ARGS__)
#define LANES_NUMBER LANES_INT
#define LANES_TEST(name, n, cost, ...) static LANES_##n(name##_i64, int64_t, int64_t, uint8_t, cost, __VA_ARGS__)
#define LANES_LOGIC(name, n, cost, ...) static LANES_##n(name##_b8, uint8_t, bool, uint8_t, cost, __VA_ARGS__)
#define LANES_REAL(...)
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

static void square_f32(void *out, const void *const *in, int64_t n, const float *p) {
  const float *x = in[0];
  float *to = out;
  (void)p;
  REF_IVDEP
  for (int64_t i = 0; i < n; i++) to[i] = x[i] * x[i];
}

ref_lanes ref_lanes_power(float exponent) {
  return exponent == 2.0f ? square_f32 : NULL;
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

#define F32_REAL(name) ref_##name##_f32
#define F32_NUMBER F32_REAL
#define F32_TEST F32_REAL
#define F32_TEST_REAL F32_REAL
#define F32_INT(name) NULL
#define F32_LOGIC F32_INT
#define I64_INT(name) name##_i64
#define I64_NUMBER I64_INT
#define I64_TEST I64_INT
#define I64_REAL(name) NULL
#define I64_TEST_REAL I64_REAL
#define I64_LOGIC I64_REAL
#define B8_LOGIC(name) name##_b8
#define B8_TEST(name) name##_i64
#define B8_REAL(name) NULL
#define B8_INT B8_REAL
#define B8_NUMBER B8_REAL
#define B8_TEST_REAL B8_REAL

enum { MANY = 2 };

static const struct {
  char name[20];
  uint8_t kind;
  ref_lane_op lane;
} lane_ops[] = {
#define SCALAR(name, kind, n, cost, ...) \
  {#name, SCALAR_##kind, {n, false, cost, F32_##kind(name), I64_##kind(name), B8_##kind(name)}},
#include "operators/all.def"
    {"", 0, {0, false, 0, NULL, NULL, NULL}},
};

bool ref_lane_find(const char *op, ref_lane_op *out) {
  *out = (ref_lane_op){0};
  for (uint32_t i = 0; lane_ops[i].kind != 0; i++) {
    const ref_lane_op *lane = &lane_ops[i].lane;
    if (strcmp(lane_ops[i].name, op) != 0) continue;
    out->arity = lane->arity;
    out->compares = (lane_ops[i].kind & SCALAR_TEST) != 0;
    if (lane->steps > out->steps) out->steps = lane->steps;
    if (lane->f32 != NULL) out->f32 = lane->f32;
    if (lane->whole != NULL) out->whole = lane->whole;
    if (lane->truth != NULL) out->truth = lane->truth;
  }
  const ref_lanes faster = ref_lanes_faster(op);
  if (faster != NULL && out->f32 != NULL) out->f32 = faster;
  return out->arity > 0;
}
