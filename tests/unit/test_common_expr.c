/* Expressions: what the parser makes of texts, what it refuses and where, the limits, and a comma for a point. */
#include "cases.h"

#include <locale.h>
#include <math.h>

#include "plugins/common/expr.c"

static expr e;
static heddle_error err;

/* Values of a program, written apart from the kernels, for the operators that occur here. */
static double value(const double *x) {
  double of[EXPR_REFS] = {0};
  for (uint32_t k = 0; k < e.n_inputs; k++) of[k] = x[k];
  for (uint32_t k = 0; k < e.n_numbers; k++) of[EXPR_OF_NUMBER + k] = (double)e.numbers[k];
  double *out = of + EXPR_OF_STEP;
  for (uint32_t i = 0; i < e.n_steps; i++, out++) {
    const expr_step *s = &e.steps[i];
    const double a = of[s->args[0]], b = of[s->args[1]], c = of[s->args[2]];
    for (uint32_t k = 0; k < s->n_args; k++) assert_true(s->args[k] < EXPR_OF_STEP + i);
    switch (s->op) {
    case EXPR_Add: *out = a + b; break;
    case EXPR_Sub: *out = a - b; break;
    case EXPR_Mul: *out = a * b; break;
    case EXPR_Min: *out = fmin(a, b); break;
    case EXPR_Max: *out = fmax(a, b); break;
    case EXPR_Neg: *out = -a; break;
    case EXPR_Identity: *out = a; break;
    case EXPR_Clip: *out = fmin(fmax(a, b), c); break;
    case EXPR_LeakyRelu: *out = a < 0 ? (double)s->params[0] * a : a; break;
    case EXPR_HardSigmoid: *out = fmin(fmax((double)s->params[0] * a + (double)s->params[1], 0), 1); break;
    default: fail_msg("operator %u", s->op);
    }
  }
  return out[-1];
}

static void check(const char *text, uint32_t inputs, double want) {
  static const double x[EXPR_INPUTS] = {3, -5, 0.25, 7, 11, 13, 17, 19};
  if (expr_parse(text, inputs, &e, &err) != HEDDLE_OK) fail_msg("%s: %s", text, err.text);
  assert_int_equal(e.n_inputs, inputs);
  const double got = value(x);
  if (!(fabs(got - want) <= 1e-6 * fabs(want))) fail_msg("%s: %g instead of %g", text, got, want);
}

static void texts_mean_what_they_say(void **state) {
  (void)state;
  check("x0", 1, 3);
  check("Identity(x0)", 1, 3);
  check("Add(x0, x1)", 2, -2);
  check(" Sub ( x1 ,x0 ) ", 2, -8);
  check("Mul(Add(x0, 0.5), Neg(x1))", 2, 17.5);
  check("Add(Add(x0, x0), Identity(x0))", 1, 9);
  check("Min(x0)", 1, 3);
  check("Max(x0, x1, 4, Add(x0, 2.5e0))", 2, 5.5);
  check("Min(x0, Max(x1, x2, -7), 9)", 3, 0.25);
  check("Clip(x0)", 1, 3);
  check("Clip(x0, 3.5)", 1, 3.5);
  check("Add(Clip(x1, -2, 2), x0)", 2, 1);
  check("Clip(x0, x1, x2)", 3, 0.25);
}

static void attributes_and_their_defaults(void **state) {
  (void)state;
  check("LeakyRelu(Neg(x0))", 1, -0.03);
  check("LeakyRelu(Neg(x0), alpha=0.5)", 1, -1.5);
  check("HardSigmoid(Neg(x0), beta = 1)", 1, 0.4);
  check("HardSigmoid(Neg(x0), alpha=0.1,beta=0.75)", 1, 0.45);
  assert_int_equal(expr_parse("Gelu(x0)", 1, &e, &err), HEDDLE_OK);
  assert_int_equal(e.steps[0].op, EXPR_Gelu);
  assert_int_equal(expr_parse("Gelu(x0, approximate=none)", 1, &e, &err), HEDDLE_OK);
  assert_int_equal(e.steps[0].op, EXPR_Gelu);
  assert_int_equal(expr_parse("Gelu(x0, approximate=tanh)", 1, &e, &err), HEDDLE_OK);
  assert_int_equal(e.steps[0].op, EXPR_Gelu_tanh);
}

static void numbers_are_exact(void **state) {
  static const struct {
    const char *text;
    float want;
  } all[] = {{"Add(x0, 0.1)", 0.1f},
             {"Add(x0, -16777217)", -16777216.0f},
             {"Add(x0, 3.4028235e38)", 0x1.fffffep127f},
             {"Add(x0, 1E-45)", 0x1p-149f},
             {"Add(x0, 1e-60)", 0},
             {"Add(x0, -0.0)", -0.0f},
             {"Add(x0, inf)", INFINITY},
             {"Add(x0, -inf)", -INFINITY},
             {"Add(x0, 12e+1)", 120}};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (expr_parse(all[i].text, 1, &e, &err) != HEDDLE_OK) fail_msg("%s: %s", all[i].text, err.text);
    assert_int_equal(e.n_numbers, 1);
    assert_memory_equal(&e.numbers[0], &all[i].want, sizeof(float));
  }
  assert_int_equal(expr_parse("Add(x0, nan)", 1, &e, &err), HEDDLE_OK);
  assert_true(isnan(e.numbers[0]));
}

/* The place, from 1, and a word of what is said. */
static const struct {
  const char *text;
  uint32_t inputs;
  heddle_status status;
  int at;
  const char *words;
} wrong_texts[] = {
    {"", 1, HEDDLE_EFORMAT, 1, "expected an operator, an input or a number"},
    {"Relu", 1, HEDDLE_EFORMAT, 5, "'('"},
    {"Relu(", 1, HEDDLE_EFORMAT, 6, "expected an operator"},
    {"Relu()", 1, HEDDLE_EFORMAT, 6, "expected an operator"},
    {"Relu(x0", 1, HEDDLE_EFORMAT, 8, "')'"},
    {"Relu(x0))", 1, HEDDLE_EFORMAT, 9, "the end"},
    {"Relu(x0) x", 1, HEDDLE_EFORMAT, 10, "the end"},
    {"Relu(x0, x0)", 1, HEDDLE_EFORMAT, 10, "at most 1"},
    {"Add(x0)", 1, HEDDLE_EFORMAT, 1, "needs 2"},
    {"Add(x0,,x0)", 1, HEDDLE_EFORMAT, 8, "expected an operator"},
    {"relu(x0)", 1, HEDDLE_EFORMAT, 1, "no operator 'relu'"},
    {"Conv(x0)", 1, HEDDLE_EFORMAT, 1, "no operator 'Conv'"},
    {"Add(x0, x2)", 2, HEDDLE_EFORMAT, 9, "no input 'x2'"},
    {"Add(x0, x00)", 1, HEDDLE_EFORMAT, 9, "no input"},
    {"Add(x0, x)", 1, HEDDLE_EFORMAT, 9, "no operator 'x'"},
    {"Relu(x0)", 2, HEDDLE_EFORMAT, 9, "x1 is not used"},
    {"Add(x0, 1.)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, .5)", 1, HEDDLE_EFORMAT, 9, "expected an operator"},
    {"Add(x0, +5)", 1, HEDDLE_EFORMAT, 9, "expected an operator"},
    {"Add(x0, -)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, 1e)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, 1x)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, 0x10)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, 1,5)", 1, HEDDLE_EFORMAT, 11, "at most 2"},
    {"Add(x0, 1e39)", 1, HEDDLE_EFORMAT, 9, "too large"},
    {"Add(x0, infinity)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, -nan)", 1, HEDDLE_EFORMAT, 9, "expected a number"},
    {"Add(x0, 10000000000000000000000000000000000000000000)", 1, HEDDLE_ELIMIT, 9, "40 characters"},
    {"Elu(x0, beta=1)", 1, HEDDLE_EFORMAT, 9, "no attribute 'beta'"},
    {"Elu(alpha=1, x0)", 1, HEDDLE_EFORMAT, 14, "before attributes"},
    {"Elu(x0, alpha=x0)", 1, HEDDLE_EFORMAT, 15, "expected a number"},
    {"Elu(x0, alpha=)", 1, HEDDLE_EFORMAT, 15, "expected a number"},
    {"Gelu(x0, approximate=erf)", 1, HEDDLE_EFORMAT, 22, "no value of approximate"},
    {"Gelu tanh(x0)", 1, HEDDLE_EFORMAT, 6, "'('"},
    {"Clip(x0, Neg(x0))", 1, HEDDLE_EFORMAT, 10, "bounds of Clip"},
    {"Relu(\tx0)", 1, HEDDLE_EFORMAT, 6, "expected an operator"},
    {"Relu(x0)\xc3\xa4", 1, HEDDLE_EFORMAT, 9, "the end"},
    {"x0", 9, HEDDLE_ELIMIT, 1, "8 inputs"},
    {"BitShift(x0, x0)", 1, HEDDLE_EFORMAT, 1, "no operator 'BitShift'"},
    {"Max(0,1,2,3,4,5,6,7,8,x0)", 1, HEDDLE_ELIMIT, 21, "8 different numbers"},
};

static void wrong_texts_are_refused_at_their_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wrong_texts / sizeof wrong_texts[0]; i++) {
    char place[32];
    snprintf(place, sizeof place, "character %d: ", wrong_texts[i].at);
    memset(&err, 0, sizeof err);
    const heddle_status s = expr_parse(wrong_texts[i].text, wrong_texts[i].inputs, &e, &err);
    if (s != wrong_texts[i].status || err.status != s || strncmp(err.text, place, strlen(place)) != 0 ||
        strstr(err.text, wrong_texts[i].words) == NULL)
      fail_msg("'%s': %d, %s", wrong_texts[i].text, (int)s, err.text);
    assert_int_equal(expr_parse(wrong_texts[i].text, wrong_texts[i].inputs, &e, NULL), s);
  }
}

static void nested(char *text, size_t size, int calls, const char *inner) {
  size_t used = 0;
  for (int i = 0; i < calls; i++) used += (size_t)snprintf(text + used, size - used, "Neg(");
  used += (size_t)snprintf(text + used, size - used, "%s", inner);
  for (int i = 0; i < calls; i++) used += (size_t)snprintf(text + used, size - used, ")");
}

static void limits_hold(void **state) {
  static char text[8192];
  (void)state;
  nested(text, sizeof text, 24, "x0");
  check(text, 1, 3);
  nested(text, sizeof text, 25, "x0");
  assert_int_equal(expr_parse(text, 1, &e, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "24 deep"));
  nested(text, sizeof text, 1600, "x0");
  assert_int_equal(expr_parse(text, 1, &e, &err), HEDDLE_ELIMIT);
  assert_non_null(strstr(err.text, "2048 characters"));
  nested(text, sizeof text, 23, "Max(x0, x0)");
  check(text, 1, -3);
  nested(text, sizeof text, 23, "Max(x0, x0, x0)");
  assert_int_equal(expr_parse(text, 1, &e, &err), HEDDLE_ELIMIT);
  memset(text, ' ', 2046);
  memcpy(text + 2046, "x0", 3);
  check(text, 1, 3);
  memset(text, ' ', 2047);
  memcpy(text + 2047, "x0", 3);
  assert_int_equal(expr_parse(text, 1, &e, &err), HEDDLE_ELIMIT);
}

static void a_comma_locale_changes_nothing(void **state) {
  (void)state;
  if (setlocale(LC_ALL, "") == NULL || localeconv()->decimal_point[0] != ',')
    SKIP("the locale of the environment has no decimal comma");
  check("Add(x0, 0.5)", 1, 3.5);
  assert_int_equal(expr_parse("Relu(0,5)", 1, &e, &err), HEDDLE_EFORMAT);
}

CASES(CASE(texts_mean_what_they_say), CASE(attributes_and_their_defaults), CASE(numbers_are_exact),
      CASE(wrong_texts_are_refused_at_their_place), CASE(limits_hold), CASE(a_comma_locale_changes_nothing))
