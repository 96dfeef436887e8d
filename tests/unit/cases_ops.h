/* A device's operators: every elementwise one against libm in double, with broadcasting, integers and bools;
 * movement of data; what is offered is prepared; what is refused has a message. */
#ifndef HEDDLE_TESTS_UNIT_CASES_OPS_H
#define HEDDLE_TESTS_UNIT_CASES_OPS_H

#include "device_case.h"

/* ---------------------------------------------------------------- elementwise, float32 */

enum { ROWS = 3, WIDTH = 70 };

static double alpha_of(double absent) {
  return absent;
}
static double clip01(double x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* name, low and high of the first operand, allowed units in the last place, value */
#define UNARY(X) \
  X(Abs, -2, 2, 0, fabs(a)) \
  X(Elu, -3, 3, 8, a < 0 ? alpha_of(1) * expm1(a) : a) \
  X(Erf, -4, 4, 16, erf(a)) \
  X(Exp, -20, 20, 4, exp(a)) \
  X(Gelu, -4, 4, 64, 0.5 * a * (1 + erf(a / sqrt(2)))) \
  X(HardSigmoid, -4, 4, 8, clip01(0.2 * a + 0.5)) \
  X(HardSwish, -4, 4, 8, a *clip01(a / 6 + 0.5)) \
  X(LeakyRelu, -2, 2, 2, a < 0 ? 0.01 * a : a) \
  X(Log, 0.001, 50, 4, log(a)) \
  X(Neg, -2, 2, 0, -a) \
  X(Relu, -2, 2, 0, a < 0 ? 0 : a) \
  X(Sigmoid, -30, 30, 8, 1 / (1 + exp(-a))) \
  X(Sqrt, 0, 50, 1, sqrt(a)) \
  X(Tanh, -6, 6, 8, tanh(a))

#define BINARY(X) \
  X(Add, -2, 2, 1, a + b) \
  X(Sub, -2, 2, 1, a - b) \
  X(Mul, -2, 2, 1, a *b) \
  X(Div, -2, 2, 1, a / b) \
  X(Max, -2, 2, 0, a > b ? a : b) \
  X(Min, -2, 2, 0, a < b ? a : b) \
  X(PRelu, -2, 2, 1, a < 0 ? b * a : a) \
  X(Pow, 0.1, 4, 16, pow(a, b))

typedef struct unary {
  const char *op;
  double low, high, ulps;
  double (*value)(double a);
} unary;

typedef struct binary {
  const char *op;
  double low, high, ulps;
  double (*value)(double a, double b);
} binary;

#define FUNCTION1(name, low, high, ulps, expression) \
  static double value_##name(double a) { \
    return expression; \
  }
#define FUNCTION2(name, low, high, ulps, expression) \
  static double value_##name(double a, double b) { \
    return expression; \
  }
#define ENTRY(name, low, high, ulps, expression) {#name, low, high, ulps, value_##name},
UNARY(FUNCTION1)
BINARY(FUNCTION2)
static const unary unaries[] = {UNARY(ENTRY)};
static const binary binaries[] = {BINARY(ENTRY)};

static void fill_range(float *x, size_t n, double low, double high, uint32_t seed) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(low + (high - low) * ((double)op_random(&seed) + 2) / 4);
}

static void check(const char *op, size_t i, double want, double got, double ulps) {
  const double unit = ldexp(fabs(want), -23) + 1e-38;
  if (!(fabs(want - got) <= unit * (ulps + 0.51) + (ulps > 2 ? 1e-7 : 0)))
    fail_msg("%s[%zu]: %.9g instead of %.9g", op, i, got, want);
}

static void unary_operators_are_right(void **state) {
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t u = 0; u < sizeof unaries / sizeof unaries[0]; u++) {
    op_case c;
    op_case_init(&c, unaries[u].op);
    if (strcmp(unaries[u].op, "Gelu") == 0) c.node.domain = "heddle";
    if (strcmp(unaries[u].op, "HardSwish") == 0) c.node.opset = 14; /* its first */
    float *x = op_input(&c, F32, SHAPE(2, ROWS, WIDTH)), *y = op_output(&c, F32, SHAPE(2, ROWS, WIDTH));
    fill_range(x, ROWS * WIDTH, unaries[u].low, unaries[u].high, 5);
    run(&r, &c);
    for (size_t i = 0; i < ROWS * WIDTH; i++) check(unaries[u].op, i, unaries[u].value(x[i]), y[i], unaries[u].ulps);
    assert_int_equal(c.n_pairs, 1);
    c.in_place = 0;
    memset(y, 0, sizeof *y * ROWS * WIDTH);
    run(&r, &c);
    for (size_t i = 0; i < ROWS * WIDTH; i++) check(unaries[u].op, i, unaries[u].value(x[i]), y[i], unaries[u].ulps);
    op_case_free(&c);
  }
  rig_close(&r);
}

static void binary_operators_are_right_and_broadcast(void **state) {
  /* Shapes of the second operand under [3, 2, 70]. */
  static const op_shape shapes[] = {{3, {3, 2, 70}}, {1, {70}}, {0, {0}}, {3, {3, 1, 1}}, {3, {3, 1, 70}}, {2, {2, 1}}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof binaries / sizeof binaries[0]; k++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      op_case c;
      op_case_init(&c, binaries[k].op);
      const int64_t full[3] = {3, 2, 70};
      float *x = op_input(&c, F32, SHAPE(3, 3, 2, 70)), *b = op_input(&c, F32, shapes[s]);
      float *y = op_output(&c, F32, SHAPE(3, 3, 2, 70));
      fill_range(x, 420, binaries[k].low, binaries[k].high, 7);
      fill_range(b, op_count(shapes[s]), 0.25, 2, 9);
      run(&r, &c);
      for (size_t i = 0; i < 420; i++) {
        size_t rest = i, at = 0, step = 1;
        for (int d = 2; d >= 0; d--) {
          const size_t here = rest % (size_t)full[d];
          const int own = d - (3 - shapes[s].ndim);
          rest /= (size_t)full[d];
          if (own < 0) continue;
          if (shapes[s].dims[own] != 1) at += here * step;
          step *= (size_t)shapes[s].dims[own];
        }
        check(binaries[k].op, i, binaries[k].value(x[i], b[at]), y[i], binaries[k].ulps);
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* ---------------------------------------------------------------- expressions */

static double silu(double x) {
  return x / (1 + exp(-x));
}

/* A generated kernel whose inputs all lie like the result, or are one element, and one that walks; in place too. */
static void expressions_are_right(void **state) {
  static const op_shape shapes[] = {{3, {3, 2, 70}}, {1, {70}}, {0, {0}}, {3, {3, 1, 1}}, {2, {2, 1}}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (int in_place = 0; in_place < 2; in_place++) {
      op_case c;
      op_case_init(&c, "FusedElementwise");
      c.node.domain = "heddle";
      c.node.opset = 1;
      op_attr_string(&c, "expression", "Add(Mul(Sub(x0, 0.25), Sigmoid(Sub(x0, 0.25))), LeakyRelu(x1, alpha=0.5))");
      float *x = op_input(&c, F32, SHAPE(3, 3, 2, 70)), *b = op_input(&c, F32, shapes[s]);
      float *y = op_output(&c, F32, SHAPE(3, 3, 2, 70));
      fill_range(x, 420, -4, 4, 7);
      fill_range(b, op_count(shapes[s]), -2, 2, 9);
      if (in_place == 1) c.in_place = 0;
      run(&r, &c);
      assert_int_equal(c.n_pairs, s == 0 ? 2 : 1);
      for (size_t i = 0; i < 420; i++) {
        const size_t row = i / 70 % 2, at[] = {i, i % 70, 0, i / 140, row};
        const double other = (double)b[at[s]];
        const double want = silu((double)x[i] - 0.25) + (other < 0 ? 0.5 * other : other);
        if (!(fabs(want - (double)y[i]) <= 2e-6)) fail_msg("[%zu]: %.9g instead of %.9g", i, (double)y[i], want);
      }
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* ---------------------------------------------------------------- other types */

static void integers_wrap_and_compare(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
  static const int32_t xs[6] = {INT32_MAX, INT32_MIN, -7, 7, 0, 123456}, ys[6] = {1, -1, 2, -2, 5, 1000000};
  for (size_t k = 0; k < 6; k++) {
    op_case_init(&c, ops[k]);
    int32_t *a = op_input(&c, I32, SHAPE(1, 6)), *b = op_input(&c, I32, SHAPE(1, 6)),
            *y = op_output(&c, I32, SHAPE(1, 6));
    memcpy(a, xs, sizeof xs);
    memcpy(b, ys, sizeof ys);
    run(&r, &c);
    for (int i = 0; i < 6; i++) {
      const int64_t p = xs[i], q = ys[i];
      const int64_t want[6] = {p + q, p - q, p * q, p / q, p > q ? p : q, p < q ? p : q};
      assert_int_equal(y[i], (int32_t)(uint32_t)(uint64_t)want[k]);
    }
    op_case_free(&c);
  }
  static const char *const compare[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  for (size_t k = 0; k < 5; k++) {
    op_case_init(&c, compare[k]);
    int64_t *a = op_input(&c, I64, SHAPE(2, 2, 3)), *b = op_input(&c, I64, SHAPE(1, 3));
    uint8_t *y = op_output(&c, BOOL, SHAPE(2, 2, 3));
    for (int i = 0; i < 6; i++) a[i] = i - 2 + (INT64_C(1) << 40);
    for (int i = 0; i < 3; i++) b[i] = INT64_C(1) << 40;
    run(&r, &c);
    for (int i = 0; i < 6; i++) {
      const int64_t d = i - 2;
      const bool want[5] = {d == 0, d<0, d <= 0, d> 0, d >= 0};
      assert_int_equal(y[i], want[k]);
    }
    op_case_free(&c);
  }
  static const char *const logic[] = {"And", "Or", "Xor"};
  for (size_t k = 0; k < 3; k++) {
    op_case_init(&c, logic[k]);
    uint8_t *a = op_input(&c, BOOL, SHAPE(1, 4)), *b = op_input(&c, BOOL, SHAPE(1, 4));
    uint8_t *y = op_output(&c, BOOL, SHAPE(1, 4));
    for (int i = 0; i < 4; i++) a[i] = i & 1, b[i] = (uint8_t)(i >> 1);
    run(&r, &c);
    for (int i = 0; i < 4; i++) assert_int_equal(y[i], k == 0 ? i == 3 : k == 1 ? i > 0 : i == 1 || i == 2);
    op_case_free(&c);
  }
  rig_close(&r);
}

static void where_clip_cast_and_many_operands(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Where");
  uint8_t *cond = op_input(&c, BOOL, SHAPE(2, 4, 1));
  int64_t *p = op_input(&c, I64, SHAPE(1, 5)), *q = op_input(&c, I64, NO_DIMS), *y = op_output(&c, I64, SHAPE(2, 4, 5));
  for (int i = 0; i < 4; i++) cond[i] = i % 2 == 0;
  for (int i = 0; i < 5; i++) p[i] = 100 + i;
  q[0] = -9;
  run(&r, &c);
  for (int i = 0; i < 20; i++) assert_int_equal(y[i], i / 5 % 2 == 0 ? 100 + i % 5 : -9);
  op_case_free(&c);

  for (int bounds = 0; bounds < 4; bounds++) {
    op_case_init(&c, "Clip");
    float *x = op_input(&c, F32, SHAPE(1, 100));
    if ((bounds & 1) != 0) *(float *)op_input(&c, F32, NO_DIMS) = -0.5f;
    else op_input_again(&c, -1);
    if ((bounds & 2) != 0) *(float *)op_input(&c, F32, NO_DIMS) = 0.75f;
    float *out = op_output(&c, F32, SHAPE(1, 100));
    op_fill(x, 100, 3);
    x[5] = NAN;
    run(&r, &c);
    for (int i = 0; i < 100; i++) {
      float want = x[i];
      if ((bounds & 1) != 0 && want < -0.5f) want = -0.5f;
      if ((bounds & 2) != 0 && want > 0.75f) want = 0.75f;
      assert_true(i == 5 ? isnan(out[i]) : out[i] == want);
    }
    op_case_free(&c);
  }

  op_case_init(&c, "Cast");
  float *f = op_input(&c, F32, SHAPE(1, 6));
  int64_t *whole = op_output(&c, I64, SHAPE(1, 6));
  const float some[6] = {-2.7f, -0.5f, 0, 0.5f, 2.7f, 1e9f};
  op_attr_int(&c, "to", 7);
  memcpy(f, some, sizeof some);
  run(&r, &c);
  for (int i = 0; i < 6; i++) assert_int_equal(whole[i], (int64_t)some[i]);
  op_case_free(&c);

  op_case_init(&c, "Max");
  float *x[4];
  for (int k = 0; k < 4; k++)
    op_fill(x[k] = op_input(&c, F32, k == 2 ? SHAPE(2, 3, 1) : SHAPE(2, 3, 50)), k == 2 ? 3 : 150, 20 + (uint32_t)k);
  float *most = op_output(&c, F32, SHAPE(2, 3, 50));
  run(&r, &c);
  for (int i = 0; i < 150; i++) {
    float want = fmaxf(fmaxf(x[0][i], x[1][i]), fmaxf(x[2][i / 50], x[3][i]));
    assert_true(most[i] == want);
  }
  op_case_free(&c);
  rig_close(&r);
}

/* ---------------------------------------------------------------- movement */

static void data_is_moved(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  static const int64_t perms[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 3, 1}, {1, 0, 3, 2}};
  static const int64_t dims[4] = {2, 3, 5, 7};
  for (size_t k = 0; k < 4; k++) {
    op_case_init(&c, "Transpose");
    int64_t shape[4], at[4];
    for (int i = 0; i < 4; i++) shape[i] = dims[perms[k][i]];
    uint8_t *x = op_input(&c, U8, SHAPE(4, 2, 3, 5, 7));
    uint8_t *y = op_output(&c, U8, SHAPE(4, shape[0], shape[1], shape[2], shape[3]));
    op_attr_ints(&c, "perm", 4, perms[k]);
    for (int i = 0; i < 210; i++) x[i] = (uint8_t)i;
    run(&r, &c);
    for (int i = 0; i < 210; i++) {
      int64_t rest = i, from = 0;
      for (int d = 3; d >= 0; d--) at[perms[k][d]] = rest % shape[d], rest /= shape[d];
      for (int d = 0; d < 4; d++) from = from * dims[d] + at[d];
      assert_int_equal(y[i], x[from]);
    }
    op_case_free(&c);
  }
  op_case_init(&c, "Concat"); /* rows of 3, 0 and 4 halves */
  uint16_t *a = op_input(&c, F16, SHAPE(3, 5, 3, 1)), *e = op_input(&c, F16, SHAPE(3, 5, 0, 1));
  uint16_t *b = op_input(&c, F16, SHAPE(3, 5, 4, 1)), *y = op_output(&c, F16, SHAPE(3, 5, 7, 1));
  op_attr_int(&c, "axis", -2);
  (void)e;
  for (int i = 0; i < 15; i++) a[i] = (uint16_t)i;
  for (int i = 0; i < 20; i++) b[i] = (uint16_t)(100 + i);
  run(&r, &c);
  for (int i = 0; i < 35; i++) assert_int_equal(y[i], i % 7 < 3 ? i / 7 * 3 + i % 7 : 100 + i / 7 * 4 + i % 7 - 3);
  op_case_free(&c);

  op_case_init(&c, "Expand");
  int32_t *small = op_input(&c, I32, SHAPE(2, 3, 1));
  int64_t *shape = op_input(&c, I64, SHAPE(1, 3));
  int32_t *large = op_output(&c, I32, SHAPE(3, 2, 3, 4));
  shape[0] = 2, shape[1] = 3, shape[2] = 4;
  op_constant(&c, 1);
  for (int i = 0; i < 3; i++) small[i] = 10 + i;
  run(&r, &c);
  assert_int_equal(c.flags[1], HEDDLE_INPUT_ABSORBED);
  for (int i = 0; i < 24; i++) assert_int_equal(large[i], 10 + i / 4 % 3);
  op_case_free(&c);
  rig_close(&r);
}

/* ---------------------------------------------------------------- against the reference kernels */

/* Runs the case here and on the plugin cpu; results agree to within tolerance of the largest. */
static void same_as_cpu(rig *r, op_case *c, double tolerance) {
  fake_device cpu;
  const int32_t v = c->outputs[0];
  const size_t n = (size_t)bytes_of(c, v) / 4;
  double most = 1e-30;
  fake_device_open(&cpu, "cpu");
  op_case_run(&cpu, c);
  fake_device_close(&cpu);
  float *want = malloc(n * 4 + 1), *got = c->data[v];
  for (size_t i = 0; i < n; i++) {
    want[i] = got[i];
    most = fmax(most, fabs((double)want[i]));
  }
  run(r, c);
  for (size_t i = 0; i < n; i++)
    if (!(fabs((double)want[i] - (double)got[i]) <= tolerance * most))
      fail_msg("%s[%zu]: %.9g instead of %.9g", c->node.op, i, (double)got[i], (double)want[i]);
  free(want);
}

static void rows_are_those_of_cpu(void **state) {
  static const op_shape shapes[] = {{2, {3, 10}},   {2, {2, 1000}}, {3, {2, 200, 7}},
                                    {3, {4, 5, 6}}, {1, {127}},     {1, {128}}};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    op_case_init(&c, "Softmax");
    op_fill(op_input(&c, F32, shapes[k]), op_count(shapes[k]), 11);
    op_output(&c, F32, shapes[k]);
    op_attr_int(&c, "axis", shapes[k].ndim == 3 ? 1 : -1);
    same_as_cpu(&r, &c, 1e-6);
    op_case_free(&c);
  }
  for (int64_t side = 1; side < 40; side += 12) {
    op_case_init(&c, "GlobalAveragePool");
    op_fill(op_input(&c, F32, SHAPE(4, 2, 3, side, side)), (size_t)(6 * side * side), 12);
    op_output(&c, F32, SHAPE(4, 2, 3, 1, 1));
    same_as_cpu(&r, &c, 1e-6);
    op_case_free(&c);
  }
  rig_close(&r);
}

static void products_are_those_of_cpu(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  static const int64_t sizes[][3] = {{1, 1, 1}, {32, 32, 16}, {33, 31, 17}, {70, 5, 100}, {3, 80, 0}};
  for (size_t k = 0; k < 5; k++) {
    const int64_t m = sizes[k][0], n = sizes[k][1], d = sizes[k][2];
    op_case_init(&c, "MatMul");
    op_fill(op_input(&c, F32, SHAPE(4, 2, 1, m, d)), (size_t)(2 * m * d), 1);
    op_fill(op_input(&c, F32, SHAPE(3, 3, d, n)), (size_t)(3 * d * n), 2);
    op_output(&c, F32, SHAPE(4, 2, 3, m, n));
    same_as_cpu(&r, &c, 2e-6);
    op_case_free(&c);
    for (int trans = 0; trans < 4; trans++) {
      op_case_init(&c, "Gemm");
      op_fill(op_input(&c, F32, (trans & 1) != 0 ? SHAPE(2, d, m) : SHAPE(2, m, d)), (size_t)(m * d), 3);
      op_fill(op_input(&c, F32, (trans & 2) != 0 ? SHAPE(2, n, d) : SHAPE(2, d, n)), (size_t)(d * n), 4);
      op_fill(op_input(&c, F32, SHAPE(2, m, 1)), (size_t)m, 5);
      op_output(&c, F32, SHAPE(2, m, n));
      op_attr_int(&c, "transA", trans & 1);
      op_attr_int(&c, "transB", trans >> 1);
      op_attr_float(&c, "alpha", 0.5);
      op_attr_float(&c, "beta", -2);
      same_as_cpu(&r, &c, 2e-6);
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

/* Groups of many channels go by tiles, of few by items; one, two and three dimensions. */
static void windows_are_those_of_cpu(void **state) {
  static const struct {
    int32_t spatial;
    int64_t groups, in, out; /* channels in all */
  } shapes[] = {{1, 1, 3, 40}, {2, 1, 16, 33}, {2, 2, 8, 32}, {2, 12, 12, 12}, {3, 1, 2, 9}, {3, 3, 6, 9}};
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    const int32_t dims = shapes[k].spatial + 2;
    const int64_t strides[3] = {2, 1, 2}, dilations[3] = {1, 2, 1}, pads[6] = {1, 1, 1, 1, 1, 1};
    op_shape x = {dims, {2, shapes[k].in, 9, 9, 9}}, y = {dims, {2, shapes[k].out}};
    op_shape w = {dims, {shapes[k].out, shapes[k].in / shapes[k].groups, 3, 3, 3}};
    int64_t all[6];
    for (int32_t d = 0; d < shapes[k].spatial; d++) y.dims[2 + d] = (9 + 2 - 2 * dilations[d] - 1) / strides[d] + 1;
    memcpy(all, pads, sizeof all);
    op_case_init(&c, "Conv");
    op_fill(op_input(&c, F32, x), op_count(x), 6);
    op_fill(op_input(&c, F32, w), op_count(w), 7);
    if (k % 2 == 0) op_fill(op_input(&c, F32, SHAPE(1, shapes[k].out)), (size_t)shapes[k].out, 8);
    op_output(&c, F32, y);
    op_attr_ints(&c, "strides", (uint64_t)shapes[k].spatial, strides);
    op_attr_ints(&c, "dilations", (uint64_t)shapes[k].spatial, dilations);
    op_attr_ints(&c, "pads", 2 * (uint64_t)shapes[k].spatial, all);
    op_attr_int(&c, "group", shapes[k].groups);
    same_as_cpu(&r, &c, 4e-6);
    op_case_free(&c);

    y.dims[1] = shapes[k].in;
    op_case_init(&c, "MaxPool");
    op_fill(op_input(&c, F32, x), op_count(x), 9);
    ((float *)c.data[0])[7] = -INFINITY;
    op_output(&c, F32, y);
    const int64_t kernel[3] = {3, 3, 3};
    op_attr_ints(&c, "kernel_shape", (uint64_t)shapes[k].spatial, kernel);
    op_attr_ints(&c, "strides", (uint64_t)shapes[k].spatial, strides);
    op_attr_ints(&c, "dilations", (uint64_t)shapes[k].spatial, dilations);
    op_attr_ints(&c, "pads", 2 * (uint64_t)shapes[k].spatial, all);
    same_as_cpu(&r, &c, 0);
    op_case_free(&c);
  }
  rig_close(&r);
}

/* ---------------------------------------------------------------- what cannot be */

static void refusals_have_words(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  static const struct {
    const char *op, *words;
  } cases[] = {{"NoSuchOperator", "no kernel"}, {"Exp", "it takes float32"}, {"Not", "it takes bool"}};
  for (size_t k = 0; k < 3; k++) {
    op_case_init(&c, cases[k].op);
    op_input(&c, I32, SHAPE(1, 4));
    op_output(&c, I32, SHAPE(1, 4));
    op_expect_refused(&r.d, &c, cases[k].words);
    op_case_free(&c);
  }
  op_case_init(&c, "Add");
  op_input(&c, F32, SHAPE(1, 4));
  op_input(&c, F32, SHAPE(1, 3));
  op_output(&c, F32, SHAPE(1, 4));
  op_expect_refused(&r.d, &c, "do not give a result");
  c.node.opset = 19;
  op_expect_refused(&r.d, &c, "opset 19");
  op_case_free(&c);
  op_case_init(&c, "Exp");
  op_input(&c, F32, SHAPE(1, 4));
  op_output(&c, F32, SHAPE(1, 4));
  op_attr_int(&c, "flavour", 1);
  op_expect_refused(&r.d, &c, "'flavour'");
  op_case_free(&c);
  rig_close(&r);
}

static void bind_checks_its_operands(void **state) {
  rig r;
  op_case c;
  heddle_pop *op = NULL;
  heddle_plaunch *launch = NULL;
  (void)state;
  rig_open(&r);
  sim_test *t = &r.t;
  op_case_init(&c, "Exp");
  op_input(&c, F32, SHAPE(1, 64));
  op_output(&c, F32, SHAPE(1, 64));
  OK(t, t->p->op->prepare(t->dev[0], &c.region, 0, &op, &t->err));
  heddle_pbuffer *b = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 1024);
  heddle_pbuffer *pinned = sim_buf(t, t->dev[0], HEDDLE_MEMORY_PINNED, 1024);
  const heddle_pslice good[2] = {{b, 0, 256}, {b, 512, 256}};
  const heddle_pslice bad[4] = {{NULL, 0, 0}, {b, 0, 255}, {b, 4, 256}, {pinned, 0, 256}};
  static const char *const words[4] = {"is given 0", "is given 255", "no multiple", "kind device"};
  for (int i = 0; i < 4; i++) {
    heddle_pbind bind = {sizeof bind, 0, &bad[i], &good[1], 1, 1, {NULL, 0, 0}};
    FAILS(t, HEDDLE_EINVAL, words[i], t->p->op->bind(op, r.d.stream, &bind, &launch, &t->err));
  }
  heddle_pbind bind = {sizeof bind, 0, good, good + 1, 1, 1, {NULL, 0, 0}};
  OK(t, t->p->op->bind(op, r.d.stream, &bind, &launch, &t->err));
  t->p->op->launch_free(launch);
  FAILS(t, HEDDLE_EINVAL, "offer 1", t->p->op->prepare(t->dev[0], &c.region, 1, &op, &t->err));
  t->p->op->op_free(op);
  t->p->memory->free(t->dev[0], b);
  t->p->memory->free(t->dev[0], pinned);
  op_case_free(&c);
  rig_close(&r);
}

static heddle_status count_operator(void *sink, const char *domain, const char *op, uint32_t first, uint32_t last,
                                    const char *dtypes, heddle_error *err) {
  (void)err;
  const bool own = strcmp(domain, "heddle") == 0;
  assert_true((own || domain[0] == '\0') && op[0] != '\0' && dtypes[0] != '\0');
  assert_true(own ? first == 1 && last == 1 : first >= 13 && first <= last && last <= 28);
  ++*(int *)sink;
  return HEDDLE_OK;
}

static void operators_are_listed(void **state) {
  rig r;
  int n = 0;
  (void)state;
  rig_open(&r);
  OK(&r.t, r.t.p->op->list(r.t.self, 0, count_operator, &n, &r.t.err));
  assert_true(n >= 62);
  rig_close(&r);
}

CASES(CASE(unary_operators_are_right), CASE(expressions_are_right), CASE(binary_operators_are_right_and_broadcast),
      CASE(integers_wrap_and_compare), CASE(where_clip_cast_and_many_operands), CASE(data_is_moved),
      CASE(rows_are_those_of_cpu), CASE(products_are_those_of_cpu), CASE(windows_are_those_of_cpu),
      CASE(refusals_have_words), CASE(bind_checks_its_operands), CASE(operators_are_listed))

#endif
