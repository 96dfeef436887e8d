/* The error bounds of operators: float32 calculated in several orders lies within them, and what a wrong kernel gives does
 * not. Exact values come from sums in float64 that are written here. */
#include "cases.h"

#include <math.h>

#include "plugins/common/check/bound.c"

enum { M = 5, K = 300, N = 7 };

static uint32_t seed = 3;

static float next(void) {
  seed = seed * 1664525U + 1013904223U;
  return (float)(seed >> 8) / 0x1p23F - 1;
}

static double a[M * K], b[K * N], exact[M * N], err[M * N];
static const int64_t shape_a[] = {M, K}, shape_b[] = {K, N}, shape_y[] = {M, N};

static bool product(void *ctx, const double *const *x, double *y) {
  (void)ctx;
  for (int i = 0; i < M * N; i++) {
    y[i] = 0;
    for (int k = 0; k < K; k++) y[i] += x[0][i / N * K + k] * x[1][k * N + i % N];
  }
  return true;
}

static float half(float x) { /* to 11 bits; no value here is near the ends of the type */
  int e;
  const float m = frexpf(x, &e);
  return ldexpf(nearbyintf(m * 2048) / 2048, e);
}

/* kind 0: forwards, 1: backwards, 2: the last product left out, 3: rounded to half at each step, 4: a and b of a wrong
 * row. */
static float element(int i, int j, int kind) {
  float sum = 0;
  for (int k = 0; k < K; k++) {
    const int at = kind == 1 ? K - 1 - k : k, row = kind == 4 ? (i + 1) % M : i;
    if (kind == 2 && k == K - 1) continue;
    sum += (float)a[row * K + at] * (float)b[at * N + j];
    if (kind == 3) sum = half(sum);
  }
  return sum;
}

static int outside(int kind) {
  int n = 0;
  for (int i = 0; i < M * N; i++)
    n += !check_bound_holds(BOUND_F32, exact[i], (double)element(i / N, i % N, kind), err[i]);
  return n;
}

static void sums_are_within_in_any_order_and_wrong_ones_are_not(void **state) {
  const bound_tensor in[] = {{a, shape_a, 2, BOUND_F32}, {b, shape_b, 2, BOUND_F32}};
  const double *x[] = {a, b};
  const char *rule = "";
  (void)state;
  for (int i = 0; i < M * K; i++) a[i] = (double)next();
  for (int i = 0; i < K * N; i++) b[i] = (double)next();
  product(NULL, x, exact);
  bound_node n = {.op = "MatMul", .in = in, .n_in = 2, .out = {exact, shape_y, 2, BOUND_F32}, .evaluate = product};
  assert_true(check_bound_of(&n, err, &rule));
  assert_string_equal(rule, "sum");
  assert_int_equal(outside(0), 0);
  assert_int_equal(outside(1), 0);
  assert_true(outside(2) > M * N / 2);
  assert_true(outside(3) > M * N / 2);
  assert_true(outside(4) > M * N / 2);
  n.evaluate = NULL;
  assert_false(check_bound_of(&n, err, &rule));
}

/* y = c - a b of what nearly cancels: the magnitudes must not cancel too. */
static double difference_of(const double *const *x, float *single) {
  double sum = x[2][0];
  *single = 0;
  for (int k = 0; k < K; k++) sum -= x[0][k] * x[1][k], *single += (float)x[0][k] * (float)x[1][k];
  *single = (float)x[2][0] - *single;
  return sum;
}

static bool subtracted(void *ctx, const double *const *x, double *y) {
  float single;
  (void)ctx;
  y[0] = difference_of(x, &single);
  return true;
}

static void a_negative_factor_of_gemm_does_not_cancel_magnitudes(void **state) {
  static const int64_t row[] = {1, K}, column[] = {K, 1}, one[] = {1, 1};
  static const bound_attr alpha = {.name = "alpha", .number = -1};
  double c = 0, y, e;
  float single;
  const bound_tensor in[] = {{a, row, 2, BOUND_F32}, {b, column, 2, BOUND_F32}, {&c, one, 2, BOUND_F32}};
  const double *x[] = {a, b, &c};
  (void)state;
  for (int k = 0; k < K; k++) {
    a[k] = 1 + fabs((double)next());
    b[k] = 1 + fabs((double)next());
    c += a[k] * b[k];
  }
  c = (double)(float)c;
  y = difference_of(x, &single);
  const bound_node n = {.op = "Gemm",
                        .attrs = &alpha,
                        .in = in,
                        .n_attrs = 1,
                        .n_in = 3,
                        .out = {&y, one, 2, BOUND_F32},
                        .evaluate = subtracted};
  assert_true(check_bound_of(&n, &e, NULL));
  assert_true(e > 0x1p-24 * c);
  assert_true(check_bound_holds(BOUND_F32, y, (double)single, e));
}

static void the_scale_of_quantised_values_may_round(void **state) {
  static const int64_t none[] = {1};
  const double scale = 7812.5;
  const bound_node n = {.op = "DynamicQuantizeLinear", .output = 1, .out = {&scale, none, 0, BOUND_F32}};
  double e;
  (void)state;
  assert_true(check_bound_of(&n, &e, NULL));
  assert_true(check_bound_holds(BOUND_F32, scale, (double)nextafterf((float)scale, 9000), e));
  assert_false(check_bound_holds(BOUND_F32, scale, scale * (1 + 1e-5), e));
}

static bool cubic(void *ctx, const double *const *x, double *y) {
  (void)ctx;
  y[0] = -0.1 * x[0][0] + 0.6 * x[0][1] + 0.6 * x[0][2] - 0.1 * x[0][3];
  return true;
}

static void negative_weights_of_an_interpolation_do_not_cancel_magnitudes(void **state) {
  static const int64_t four[] = {4}, one[] = {1};
  static const double values[] = {-6, 1, 1, 6}; /* of whose magnitudes the mean is 0 */
  const bound_tensor in[] = {{values, four, 1, BOUND_F32}};
  const double *x[] = {values};
  double y, e;
  (void)state;
  cubic(NULL, x, &y);
  const bound_node n = {.op = "Resize", .in = in, .n_in = 1, .out = {&y, one, 1, BOUND_F32}, .evaluate = cubic};
  assert_true(check_bound_of(&n, &e, NULL));
  assert_true(e > 6 * 0x1p-23 && e < 6 * 1e-3);
}

static void what_moves_is_exact(void **state) {
  static const int64_t shape[] = {3};
  const double x[] = {1, 2, 3};
  const bound_tensor in[] = {{x, shape, 1, BOUND_F32}};
  const bound_node n = {.op = "Transpose", .in = in, .n_in = 1, .out = in[0]};
  double e[3];
  const char *rule;
  (void)state;
  assert_true(check_bound_of(&n, e, &rule));
  for (int i = 0; i < 3; i++) {
    assert_true(check_bound_holds(BOUND_F32, x[i], x[i], e[i]));
    assert_false(check_bound_holds(BOUND_F32, x[i], nextafter(x[i], 9), e[i]));
  }
}

static void infinities_and_nan_have_their_places(void **state) {
  const double inf = (double)INFINITY, nan = (double)NAN;
  (void)state;
  assert_true(check_bound_holds(BOUND_F32, nan, nan, 0));
  assert_false(check_bound_holds(BOUND_F32, nan, 1, inf));
  assert_false(check_bound_holds(BOUND_F32, 1, nan, inf));
  assert_true(check_bound_holds(BOUND_F32, inf, inf, 0));
  assert_false(check_bound_holds(BOUND_F32, inf, -inf, 0));
  assert_false(check_bound_holds(BOUND_F32, 1, inf, 0.5));
  assert_true(check_bound_holds(BOUND_F16, 65519, inf, 16)); /* rounded up, over the end of float16 */
  assert_false(check_bound_holds(BOUND_F16, 60000, inf, 16));
}

static void softmax_is_within_and_one_without_its_maximum_is_not(void **state) {
  enum { SIZE = 64 };
  static const int64_t shape[] = {SIZE};
  double x[SIZE], y[SIZE], e[SIZE], sum = 0;
  float sums[2] = {0, 0};
  const bound_tensor in[] = {{x, shape, 1, BOUND_F32}};
  const bound_node n = {.op = "Softmax", .in = in, .n_in = 1, .out = {y, shape, 1, BOUND_F32}};
  const char *rule;
  (void)state;
  for (int i = 0; i < SIZE; i++) x[i] = 60 + 20 * (double)next();
  for (int i = 0; i < SIZE; i++) sum += exp(x[i] - 80);
  for (int i = 0; i < SIZE; i++) y[i] = exp(x[i] - 80) / sum;
  assert_true(check_bound_of(&n, e, &rule));
  for (int i = 0; i < SIZE; i++) sums[0] += expf((float)x[i] - 80);
  for (int i = 0; i < SIZE - 1; i++) sums[1] += expf((float)x[i] - 80); /* one too few */
  int wrong = 0;
  for (int i = 0; i < SIZE; i++) {
    assert_true(check_bound_holds(BOUND_F32, y[i], (double)(expf((float)x[i] - 80) / sums[0]), e[i]));
    wrong += !check_bound_holds(BOUND_F32, y[i], y[i] * (1 + 1e-4), e[i]);
  }
  assert_int_equal(wrong, SIZE);
  assert_false(check_bound_holds(BOUND_F32, y[0], y[0] * (double)(sums[0] / sums[1]) + 1e-3 * y[0], e[0]));
}

static void norms_may_be_of_two_sums_but_not_of_fewer_elements(void **state) {
  enum { SIZE = 40 };
  static const int64_t shape[] = {1, SIZE}, of[] = {SIZE};
  double x[SIZE], s[SIZE], y[SIZE], e[SIZE], mean = 0, var = 0;
  float sum = 0, squares = 0;
  const bound_tensor in[] = {{x, shape, 2, BOUND_F32}, {s, of, 1, BOUND_F32}};
  const bound_node n = {.op = "LayerNormalization", .in = in, .n_in = 2, .out = {y, shape, 2, BOUND_F32}};
  const char *rule;
  (void)state;
  for (int i = 0; i < SIZE; i++) x[i] = 3 + (double)next(), s[i] = (double)next();
  for (int i = 0; i < SIZE; i++) mean += x[i] / SIZE;
  for (int i = 0; i < SIZE; i++) var += (x[i] - mean) * (x[i] - mean) / SIZE;
  for (int i = 0; i < SIZE; i++) y[i] = (x[i] - mean) / sqrt(var + 1e-5) * s[i];
  assert_true(check_bound_of(&n, e, &rule));
  assert_string_equal(rule, "norm");
  for (int i = 0; i < SIZE; i++) sum += (float)x[i], squares += (float)x[i] * (float)x[i];
  const float m = sum / SIZE, r = 1 / sqrtf(squares / SIZE - m * m + 1e-5F),
              wrong = 1 / sqrtf((float)var * SIZE / (SIZE - 1));
  int outside_of = 0;
  for (int i = 0; i < SIZE; i++) {
    assert_true(check_bound_holds(BOUND_F32, y[i], (double)(((float)x[i] - m) * r * (float)s[i]), e[i]));
    outside_of += !check_bound_holds(BOUND_F32, y[i], (double)(((float)x[i] - m) * wrong * (float)s[i]), e[i]);
  }
  assert_true(outside_of > SIZE / 2);
}

static void unknown_operators_have_no_bound(void **state) {
  static const int64_t shape[] = {1};
  const double x[] = {1};
  double e[1];
  const bound_tensor in[] = {{x, shape, 1, BOUND_F32}};
  const bound_node n = {.op = "NoSuchOperator", .in = in, .n_in = 1, .out = in[0]};
  (void)state;
  assert_false(check_bound_of(&n, e, NULL));
}

CASES(CASE(sums_are_within_in_any_order_and_wrong_ones_are_not),
      CASE(a_negative_factor_of_gemm_does_not_cancel_magnitudes), CASE(the_scale_of_quantised_values_may_round),
      CASE(negative_weights_of_an_interpolation_do_not_cancel_magnitudes), CASE(what_moves_is_exact),
      CASE(infinities_and_nan_have_their_places), CASE(softmax_is_within_and_one_without_its_maximum_is_not),
      CASE(norms_may_be_of_two_sums_but_not_of_fewer_elements), CASE(unknown_operators_have_no_bound))
