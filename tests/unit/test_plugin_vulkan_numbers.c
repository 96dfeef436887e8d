/* timeout: 300
 * What the vulkan plugin's shaders do with numbers that are no ordinary ones, against libm: infinities, NaN, numbers below
 * the normal range, negative bases; in shaders and in chains. And operands that are too large for a shader, or
 * take too long a loop. */
#define CASE_PLUGIN_VULKAN
#include "device_case.h"

enum { CHAINED = 9 }; /* of the functions below, the first ones are computed in chains too */

static const float special[] = {0.0f,    -0.0f,     1.0f,    -1.0f,    0.5f,       -0.5f,       2.0f,
                                -2.0f,   3.0f,      -3.0f,   INFINITY, -INFINITY,  NAN,         1e-40f,
                                -1e-40f, 1.17e-38f, 3.4e38f, -3.4e38f, 1e-10f,     88.7f,       88.8f,
                                -87.3f,  -103.9f,   100.0f,  -100.0f,  8388609.0f, 16777217.0f, 2147483648.0f};
enum { COUNT = sizeof special / sizeof special[0] };

/* Within units in the last place, which below the normal range are the least number; NaN for NaN, zeros of one sign. */
static void check(const char *op, float a, float b, double want, float got, double ulps) {
  const float near = (float)want;
  if (isnan(want) ? isnan(got) : isinf(near) ? got == near : false) return;
  const double unit = fabs((double)near) < 1.18e-38 ? ldexp(1, -149) : ldexp(1, ilogb((double)near) - 23);
  if (isnan(want) || isnan(got) || fabs(want - (double)got) > unit * (ulps + 0.5))
    fail_msg("%s(%g, %g): %.9g instead of %.9g", op, a, b, got, want);
  if (want == 0 && !signbit(got) != !signbit(want)) fail_msg("%s(%g, %g): a zero of the other sign", op, a, b);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double relu(double x) {
  return x < 0 ? 0 : x;
}
static double elu(double x) {
  return x < 0 ? expm1(x) : x;
}
static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double rounded(double x) {
  return rint(x);
}

static void functions_of_special_numbers(void **state) {
  static const struct {
    const char *op;
    double (*value)(double);
  } functions[] = {{"Exp", exp},     {"Log", log},   {"Tanh", tanh},     {"Erf", erf},          {"Sigmoid", sigmoid},
                   {"Sqrt", sqrt},   {"Abs", fabs},  {"Relu", relu},     {"Elu", elu},          {"Sin", sin},
                   {"Cos", cos},     {"Tan", tan},   {"Asin", asin},     {"Acos", acos},        {"Atan", atan},
                   {"Sinh", sinh},   {"Cosh", cosh}, {"Asinh", asinh},   {"Acosh", acosh},      {"Atanh", atanh},
                   {"Floor", floor}, {"Ceil", ceil}, {"Round", rounded}, {"Softplus", softplus}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    for (int chained = 0; chained < (f < CHAINED ? 2 : 1); chained++) { /* chains take long to check */
      op_case c;
      char text[64];
      op_case_init(&c, chained ? "FusedElementwise" : functions[f].op);
      if (chained) c.node.domain = "heddle";
      snprintf(text, sizeof text, "%s(x0)", functions[f].op);
      if (chained) op_attr_string(&c, "expression", text);
      float *x = op_input(&c, F32, SHAPE(1, COUNT)), *y = op_output(&c, F32, SHAPE(1, COUNT));
      memcpy(x, special, sizeof special);
      run(&r, &c);
      for (int i = 0; i < COUNT; i++) check(functions[f].op, x[i], 0, functions[f].value((double)x[i]), y[i], 3);
      op_case_free(&c);
    }
  }
  rig_close(&r);
}

static double greatest(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double least(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

/* Each with each. Of zeros of either sign Max and Min give the one or the other. */
static void pairs_of_special_numbers(void **state) {
  static const struct {
    const char *op;
    double (*value)(double, double);
  } functions[] = {{"Pow", pow}, {"Max", greatest}, {"Min", least}};
  rig r;
  (void)state;
  rig_open(&r);
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    op_case c;
    op_case_init(&c, functions[f].op);
    float *x = op_input(&c, F32, SHAPE(2, COUNT, 1)), *b = op_input(&c, F32, SHAPE(1, COUNT));
    float *y = op_output(&c, F32, SHAPE(2, COUNT, COUNT));
    memcpy(x, special, sizeof special);
    memcpy(b, special, sizeof special);
    run(&r, &c);
    for (int i = 0; i < COUNT; i++) {
      for (int k = 0; k < COUNT; k++) {
        const double want = functions[f].value((double)x[i], (double)b[k]);
        if (want == 0 && f > 0) assert_true(y[i * COUNT + k] == 0);
        else check(functions[f].op, x[i], b[k], want, y[i * COUNT + k], 3);
      }
    }
    op_case_free(&c);
  }
  rig_close(&r);
}

/* Sizes of more than there is memory for: only asked about. A copy needs no shader, so it may have any size. */
static void what_is_too_large_is_refused(void **state) {
  rig r;
  op_case c;
  (void)state;
  rig_open(&r);
  op_case_init(&c, "Exp");
  op_input(&c, F32, SHAPE(1, 4));
  op_output(&c, F32, SHAPE(1, 4));
  c.shapes[0][0] = c.shapes[1][0] = INT64_C(1) << 30;
  op_expect_refused(&r.d, &c, "4294967296 bytes, and a shader of this device reaches");
  c.shapes[0][0] = c.shapes[1][0] = INT64_C(1) << 31;
  op_expect_refused(&r.d, &c, "more elements than its shaders count");
  op_case_free(&c);
  op_case_init(&c, "MatMul"); /* lavapipe ends a loop after 65,535 turns */
  op_input(&c, F32, SHAPE(2, 2, 4));
  op_input(&c, F32, SHAPE(2, 4, 2));
  op_output(&c, F32, SHAPE(2, 2, 2));
  c.shapes[0][1] = c.shapes[1][0] = 400000;
  op_expect_refused(&r.d, &c, "this device's driver stops at 65535");
  op_case_free(&c);
  op_case_init(&c, "Softmax");
  op_input(&c, F32, SHAPE(2, 1, 4));
  op_output(&c, F32, SHAPE(2, 1, 4));
  c.shapes[0][1] = c.shapes[1][1] = 6000000;
  op_expect_refused(&r.d, &c, "this device's driver stops at 65535");
  op_case_free(&c);
  op_case_init(&c, "Identity");
  op_input(&c, F32, SHAPE(1, 4));
  op_output(&c, F32, SHAPE(1, 4));
  c.shapes[0][0] = c.shapes[1][0] = INT64_C(1) << 31;
  OK(&r.t, r.t.p->op->query(r.t.self, 0, &c.region, op_take_offer, &c, &r.t.err));
  op_case_free(&c);
  rig_close(&r);
}

CASES(CASE(functions_of_special_numbers), CASE(pairs_of_special_numbers), CASE(what_is_too_large_is_refused))
