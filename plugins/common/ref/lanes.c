/* The elementwise operators by name, and their lanes for integers, bool, comparisons and Where. */
#include "lanes_loops.h"

#include <math.h>

#define WHOLE1(name, EXPR) static LANES1(name##_i64, int64_t, int64_t, EXPR)
#define WHOLE2(name, EXPR) static LANES2(name##_i64, int64_t, int64_t, int64_t, EXPR)
#define TEST(name, EXPR) \
  static LANES2(test_##name##_f32, float, float, uint8_t, EXPR) static LANES2(test_##name##_i64, int64_t, int64_t, \
                                                                              uint8_t, EXPR)
#define TRUTH2(name, EXPR) static LANES2(name##_b8, uint8_t, uint8_t, uint8_t, EXPR)

/* Signed overflow is undefined, so integers go through their unsigned type, which wraps. */
#define U(x) ((uint64_t)(x))

static inline int64_t divide(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? (int64_t)(0 - U(x)) : x / y;
}

/* By squaring where the exponent is a whole number; else as the library has it. */
static int64_t power(int64_t x, double y) {
  if (y != floor(y) || y < 0 || y > 0x1p31) {
    const double z = pow((double)x, y);
    return ref_whole_of(z);
  }
  uint64_t result = 1, square = U(x);
  for (uint64_t left = (uint64_t)y; left != 0; left >>= 1, square *= square) {
    if ((left & 1) != 0) result *= square;
  }
  return (int64_t)result;
}

LANES2(ref_pow_f32_by_f64, float, double, float, pow((double)x, y))

WHOLE1(relu, x < 0 ? 0 : x)
WHOLE1(neg, 0 - U(x))
WHOLE1(abs, x < 0 ? 0 - U(x) : U(x))
static LANES1(not_b8, uint8_t, uint8_t, x == 0)

    WHOLE2(add, U(x) + U(y)) WHOLE2(sub, U(x) - U(y)) WHOLE2(mul, U(x) * U(y))
        WHOLE2(div, divide(x, y)) static LANES2(pow_i64, int64_t, double, int64_t, power(x, y))
            WHOLE2(min, x < y ? x : y) WHOLE2(max, x > y ? x : y) WHOLE2(prelu, x < 0 ? U(x) * U(y) : U(x))

                TEST(equal, x == y) TEST(greater, x > y) TEST(greater_equal, x >= y) TEST(less, x < y)
                    TEST(less_equal, x <= y) TRUTH2(and, x != 0 && y != 0) TRUTH2(or, x != 0 || y != 0)
                        TRUTH2(xor, (x != 0) != (y != 0))

                            static CLIP(clip_i64, int64_t, INT64_MIN, INT64_MAX)

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
                                WHERE(where_1, uint8_t) WHERE(where_2, uint16_t) WHERE(where_4, uint32_t)
                                    WHERE(where_8, uint64_t)

                                        ref_lanes ref_lanes_where(uint64_t size) {
  return size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : size == 8 ? where_8 : NULL;
}

static const ref_lane_op lane_ops[] = {
    {"Abs", 1, 0, 1, ref_abs_f32, abs_i64, NULL, 0, 0},
    {"Add", 2, 0, 1, ref_add_f32, add_i64, NULL, 0, 0},
    {"And", 2, 0, 1, NULL, NULL, and_b8, 0, 0},
    {"Clip", 3, 0, 1, ref_clip_f32, clip_i64, NULL, 0, 0},
    {"Div", 2, 0, 4, ref_div_f32, div_i64, NULL, 0, 0},
    {"Elu", 1, 0, 40, ref_elu_f32, NULL, NULL, 1, 0},
    {"Equal", 2, 1, 1, test_equal_f32, test_equal_i64, test_equal_i64, 0, 0},
    {"Erf", 1, 0, 60, ref_erf_f32, NULL, NULL, 0, 0},
    {"Exp", 1, 0, 12, ref_exp_f32, NULL, NULL, 0, 0},
    {"Gelu", 1, 0, 62, ref_gelu_f32, NULL, NULL, 0, 0},
    {"Gelu tanh", 1, 0, 30, ref_gelu_tanh_f32, NULL, NULL, 0, 0},
    {"Greater", 2, 1, 1, test_greater_f32, test_greater_i64, NULL, 0, 0},
    {"GreaterOrEqual", 2, 1, 1, test_greater_equal_f32, test_greater_equal_i64, NULL, 0, 0},
    {"HardSigmoid", 1, 0, 2, ref_hard_sigmoid_f32, NULL, NULL, 0.2f, 0.5f},
    {"HardSwish", 1, 0, 2, ref_hard_swish_f32, NULL, NULL, 0, 0},
    {"LeakyRelu", 1, 0, 1, ref_leaky_f32, NULL, NULL, 0.01f, 0},
    {"Less", 2, 1, 1, test_less_f32, test_less_i64, NULL, 0, 0},
    {"LessOrEqual", 2, 1, 1, test_less_equal_f32, test_less_equal_i64, NULL, 0, 0},
    {"Log", 1, 0, 40, ref_log_f32, NULL, NULL, 0, 0},
    {"Max", 2, 0, 1, ref_max_f32, max_i64, NULL, 0, 0},
    {"Min", 2, 0, 1, ref_min_f32, min_i64, NULL, 0, 0},
    {"Mul", 2, 0, 1, ref_mul_f32, mul_i64, NULL, 0, 0},
    {"Neg", 1, 0, 1, ref_neg_f32, neg_i64, NULL, 0, 0},
    {"Not", 1, 0, 1, NULL, NULL, not_b8, 0, 0},
    {"Or", 2, 0, 1, NULL, NULL, or_b8, 0, 0},
    {"PRelu", 2, 0, 1, ref_prelu_f32, prelu_i64, NULL, 0, 0},
    {"Pow", 2, 0, 100, ref_pow_f32, pow_i64, NULL, 0, 0},
    {"Relu", 1, 0, 1, ref_relu_f32, relu_i64, NULL, 0, 0},
    {"Sigmoid", 1, 0, 20, ref_sigmoid_f32, NULL, NULL, 0, 0},
    {"Sqrt", 1, 0, 6, ref_sqrt_f32, NULL, NULL, 0, 0},
    {"Sub", 2, 0, 1, ref_sub_f32, sub_i64, NULL, 0, 0},
    {"Tanh", 1, 0, 24, ref_tanh_f32, NULL, NULL, 0, 0},
    {"Xor", 2, 0, 1, NULL, NULL, xor_b8, 0, 0},
};

const ref_lane_op *ref_lane_find(const char *op) {
  for (uint32_t i = 0; i < sizeof lane_ops / sizeof lane_ops[0]; i++) {
    if (strcmp(lane_ops[i].op, op) == 0) return &lane_ops[i];
  }
  return NULL;
}
