/* Operators that give a number for each number, after broadcasting: of all types, on double, or on int64 for
 * integers. A function per operator, called for each element. */
#include "elementwise.h"

#include <math.h>

#define X(name, EXPR) \
  static double name(double x, double y, const double *p) { \
    (void)x, (void)y, (void)p; \
    return (EXPR); \
  }
#define W(name, EXPR) \
  static int64_t name(int64_t x, int64_t y) { \
    (void)x, (void)y; \
    return (EXPR); \
  }
#define U(x) ((uint64_t)(x))

/* x, but no less than, or no more than, an end; NaN comes through, where fmax and fmin lose it. */
static inline double unless_below(double x, double end) {
  return x < end ? end : x;
}

static inline double unless_above(double x, double end) {
  return x > end ? end : x;
}

X(r_neg, -x)
X(r_abs, fabs(x))
X(r_sign, (x > 0) - (x < 0) + (x != x ? x : 0))
X(r_relu, x > 0 || x != x ? x : 0)
X(r_ceil, ceil(x))
X(r_floor, floor(x))
X(r_round, nearbyint(x))
X(r_sqrt, sqrt(x))
X(r_exp, exp(x))
X(r_log, log(x))
X(r_sin, sin(x))
X(r_cos, cos(x))
X(r_tan, tan(x))
X(r_asin, asin(x))
X(r_acos, acos(x))
X(r_atan, atan(x))
X(r_sinh, sinh(x))
X(r_cosh, cosh(x))
X(r_tanh, tanh(x))
X(r_asinh, asinh(x))
X(r_acosh, acosh(x))
X(r_atanh, atanh(x))
X(r_erf, erf(x))
X(r_reciprocal, 1 / x)
X(r_sigmoid, 1 / (1 + exp(-x)))
X(r_softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
X(r_softsign, x / (1 + fabs(x)))
X(r_mish, x *tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x))))
X(r_elu, x < 0 ? p[0] * expm1(x) : x)
X(r_selu, x > 0 ? p[1] * x : p[1] * p[0] * expm1(x))
X(r_celu, unless_below(x, 0) + unless_above(p[0] * expm1(x / p[0]), 0))
X(r_leaky, x < 0 ? p[0] * x : x)
X(r_thresholded, x > p[0] ? x : 0)
X(r_hard_sigmoid, unless_above(unless_below(p[0] * x + p[1], 0), 1))
X(r_hard_swish, x *unless_above(unless_below(x / 6 + 0.5, 0), 1))
X(r_swish, x / (1 + exp(-p[0] * x)))
X(r_shrink, x<-p[1] ? x + p[0] : x> p[1] ? x - p[0] : 0)
X(r_gelu, 0.5 * x * (1 + erf(x * 0.70710678118654752)))
X(r_gelu_tanh, 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
X(r_is_nan, x != x)
X(r_is_inf, isinf(x) && (x < 0 ? p[0] != 0 : p[1] != 0))

X(r_add, x + y)
X(r_sub, x - y)
X(r_mul, x *y)
X(r_div, x / y)
X(r_pow, pow(x, y))
X(r_min, x < y || x != x ? x : y)
X(r_max, x > y || x != x ? x : y)
X(r_fmod, fmod(x, y))
X(r_mod, y == 0 ? (double)NAN : isinf(y) && isfinite(x) ? (x != 0 && (x < 0) != (y < 0) ? y : x) : x - y * floor(x / y))
X(r_prelu, x < 0 ? x * y : x)
X(r_swiglu, x / (1 + exp(-p[0] * x)) * y)
X(r_equal, x == y)
X(r_less, x < y)
X(r_less_equal, x <= y)
X(r_greater, x > y)
X(r_greater_equal, x >= y)

W(w_neg, (int64_t)(0 - U(x)))
W(w_abs, x < 0 ? (int64_t)(0 - U(x)) : x)
W(w_sign, (x > 0) - (x < 0))
W(u_sign, x != 0)
W(w_relu, x > 0 ? x : 0)
W(w_same, x)
W(w_not, ~x)
W(w_add, (int64_t)(U(x) + U(y)))
W(w_sub, (int64_t)(U(x) - U(y)))
W(w_mul, (int64_t)(U(x) * U(y)))
W(w_div, y == 0 ? 0 : y == -1 ? (int64_t)(0 - U(x)) : x / y)
W(u_div, y == 0 ? 0 : (int64_t)(U(x) / U(y)))
W(w_min, x < y ? x : y)
W(u_min, U(x) < U(y) ? x : y)
W(w_max, x > y ? x : y)
W(u_max, U(x) > U(y) ? x : y)
W(w_fmod, y == 0 || y == -1 ? 0 : x % y)
W(u_mod, y == 0 ? 0 : (int64_t)(U(x) % U(y)))
W(w_prelu, x < 0 ? (int64_t)(U(x) * U(y)) : x)
W(w_and, x &y)
W(w_or, x | y)
W(w_xor, x ^ y)
W(w_shift_left, U(y) > 63 ? 0 : (int64_t)(U(x) << U(y)))
W(w_shift_right, U(y) > 63 ? (x < 0 ? -1 : 0) : x < 0 ? ~(int64_t)(U(~x) >> U(y)) : (int64_t)(U(x) >> U(y)))
W(u_shift_right, U(y) > 63 ? 0 : (int64_t)(U(x) >> U(y)))
W(w_equal, x == y)
W(w_less, x < y)
W(w_less_equal, x <= y)
W(w_greater, x > y)
W(w_greater_equal, x >= y)
W(u_less, U(x) < U(y))
W(u_less_equal, U(x) <= U(y))
W(u_greater, U(x) > U(y))
W(u_greater_equal, U(x) >= U(y))

/* The remainder has the divisor's sign. */
static int64_t w_mod(int64_t x, int64_t y) {
  const int64_t r = y == 0 || y == -1 ? 0 : x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* By squaring; a negative exponent gives what is left of the fraction. */
static int64_t w_pow(int64_t x, int64_t y) {
  uint64_t result = 1, base = U(x);
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  for (; y > 0; y >>= 1, base *= base)
    if ((y & 1) != 0) result *= base;
  return (int64_t)result;
}

static const more_lane lanes[] = {
    /* name, of real numbers, of integers, of unsigned ones, takes bool, gives bool, defaults of alpha and beta */
    {"Neg", r_neg, w_neg, w_neg, 0, 0, 0, 0},
    {"Abs", r_abs, w_abs, w_same, 0, 0, 0, 0},
    {"Sign", r_sign, w_sign, u_sign, 0, 0, 0, 0},
    {"Relu", r_relu, w_relu, w_same, 0, 0, 0, 0},
    {"Ceil", r_ceil, NULL, NULL, 0, 0, 0, 0},
    {"Floor", r_floor, NULL, NULL, 0, 0, 0, 0},
    {"Round", r_round, NULL, NULL, 0, 0, 0, 0},
    {"Sqrt", r_sqrt, NULL, NULL, 0, 0, 0, 0},
    {"Exp", r_exp, NULL, NULL, 0, 0, 0, 0},
    {"Log", r_log, NULL, NULL, 0, 0, 0, 0},
    {"Sin", r_sin, NULL, NULL, 0, 0, 0, 0},
    {"Cos", r_cos, NULL, NULL, 0, 0, 0, 0},
    {"Tan", r_tan, NULL, NULL, 0, 0, 0, 0},
    {"Asin", r_asin, NULL, NULL, 0, 0, 0, 0},
    {"Acos", r_acos, NULL, NULL, 0, 0, 0, 0},
    {"Atan", r_atan, NULL, NULL, 0, 0, 0, 0},
    {"Sinh", r_sinh, NULL, NULL, 0, 0, 0, 0},
    {"Cosh", r_cosh, NULL, NULL, 0, 0, 0, 0},
    {"Tanh", r_tanh, NULL, NULL, 0, 0, 0, 0},
    {"Asinh", r_asinh, NULL, NULL, 0, 0, 0, 0},
    {"Acosh", r_acosh, NULL, NULL, 0, 0, 0, 0},
    {"Atanh", r_atanh, NULL, NULL, 0, 0, 0, 0},
    {"Erf", r_erf, NULL, NULL, 0, 0, 0, 0},
    {"Reciprocal", r_reciprocal, NULL, NULL, 0, 0, 0, 0},
    {"Sigmoid", r_sigmoid, NULL, NULL, 0, 0, 0, 0},
    {"Softplus", r_softplus, NULL, NULL, 0, 0, 0, 0},
    {"Softsign", r_softsign, NULL, NULL, 0, 0, 0, 0},
    {"Mish", r_mish, NULL, NULL, 0, 0, 0, 0},
    {"Elu", r_elu, NULL, NULL, 0, 0, 1, 0},
    {"Selu", r_selu, NULL, NULL, 0, 0, 1.67326319217681884765625, 1.05070102214813232421875},
    {"Celu", r_celu, NULL, NULL, 0, 0, 1, 0},
    {"LeakyRelu", r_leaky, NULL, NULL, 0, 0, 0.01, 0},
    {"ThresholdedRelu", r_thresholded, NULL, NULL, 0, 0, 1, 0},
    {"HardSigmoid", r_hard_sigmoid, NULL, NULL, 0, 0, 0.2, 0.5},
    {"HardSwish", r_hard_swish, NULL, NULL, 0, 0, 0, 0},
    {"Swish", r_swish, NULL, NULL, 0, 0, 1, 0},
    {"Shrink", r_shrink, NULL, NULL, 0, 0, 0, 0.5},
    {"Gelu", r_gelu, NULL, NULL, 0, 0, 0, 0},
    {"Gelu tanh", r_gelu_tanh, NULL, NULL, 0, 0, 0, 0},
    {"IsNaN", r_is_nan, NULL, NULL, 0, 1, 0, 0},
    {"IsInf", r_is_inf, NULL, NULL, 0, 1, 1, 1},
    {"BitwiseNot", NULL, w_not, w_not, 0, 0, 0, 0},
    {"Add", r_add, w_add, w_add, 0, 0, 0, 0},
    {"Sum", r_add, w_add, w_add, 0, 0, 0, 0},
    {"Mean", r_add, NULL, NULL, 0, 0, 0, 0},
    {"Sub", r_sub, w_sub, w_sub, 0, 0, 0, 0},
    {"Mul", r_mul, w_mul, w_mul, 0, 0, 0, 0},
    {"Div", r_div, w_div, u_div, 0, 0, 0, 0},
    {"Pow", r_pow, w_pow, w_pow, 0, 0, 0, 0},
    {"Min", r_min, w_min, u_min, 0, 0, 0, 0},
    {"Max", r_max, w_max, u_max, 0, 0, 0, 0},
    {"Mod", r_mod, w_mod, u_mod, 0, 0, 0, 0},
    {"Mod fmod", r_fmod, w_fmod, u_mod, 0, 0, 0, 0},
    {"PRelu", r_prelu, w_prelu, w_same, 0, 0, 0, 0},
    {"SwiGLU", r_swiglu, NULL, NULL, 0, 0, 1, 0},
    {"BitwiseAnd", NULL, w_and, w_and, 0, 0, 0, 0},
    {"BitwiseOr", NULL, w_or, w_or, 0, 0, 0, 0},
    {"BitwiseXor", NULL, w_xor, w_xor, 0, 0, 0, 0},
    {"BitShift LEFT", NULL, w_shift_left, w_shift_left, 0, 0, 0, 0},
    {"BitShift RIGHT", NULL, w_shift_right, u_shift_right, 0, 0, 0, 0},
    {"Equal", r_equal, w_equal, w_equal, 1, 1, 0, 0},
    {"Less", r_less, w_less, u_less, 0, 1, 0, 0},
    {"LessOrEqual", r_less_equal, w_less_equal, u_less_equal, 0, 1, 0, 0},
    {"Greater", r_greater, w_greater, u_greater, 0, 1, 0, 0},
    {"GreaterOrEqual", r_greater_equal, w_greater_equal, u_greater_equal, 0, 1, 0, 0},
};

const more_lane *more_lane_find(const char *name) {
  for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
    if (strcmp(lanes[i].name, name) == 0) return &lanes[i];
  return NULL;
}

/* ---------------------------------------------------------------- kernels */

enum { IS_MEAN, PARAMS }; /* of m->i and m->f */

static void run_real(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++) {
    double x = more_get(&m->in[0], a->in[0], more_at(&m->in[0], &m->out[0], i));
    if (m->n_in == 1 && m->i[2]) x = m->lane->real(x, 0, m->f);
    for (uint32_t k = 1; k < m->n_in; k++)
      x = m->lane->real(x, more_get(&m->in[k], a->in[k], more_at(&m->in[k], &m->out[0], i)), m->f);
    more_put(&m->out[0], a->out[0], i, m->i[IS_MEAN] ? x / m->n_in : x);
  }
}

static void run_whole(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  int64_t (*const lane)(int64_t, int64_t) =
      more_type_is_unsigned(m->in[0].type) ? m->lane->without_sign : m->lane->whole;
  for (int64_t i = first; i < last; i++) {
    int64_t x = more_get_int(&m->in[0], a->in[0], more_at(&m->in[0], &m->out[0], i));
    if (m->n_in == 1 && m->i[2]) x = lane(x, 0);
    for (uint32_t k = 1; k < m->n_in; k++)
      x = lane(x, more_get_int(&m->in[k], a->in[k], more_at(&m->in[k], &m->out[0], i)));
    more_store_int(m->out[0].type, a->out[0], i, x);
  }
}

/* ---------------------------------------------------------------- setups */

static void setup(more_plan *p, const char *name, bool unary) {
  more_op *m = p->m;
  int64_t shape[MORE_DIMS];
  int32_t ndim = m->in[0].ndim;
  const more_lane *lane = more_lane_find(name);
  const int type = m->in[0].type;
  const bool power = strcmp(name, "Pow") == 0;
  memcpy(shape, m->in[0].shape, sizeof shape);
  for (uint32_t k = 1; k < m->n_in; k++) {
    if (!power) more_same_type(p, 0, k);
    more_broadcast(p, shape, &ndim, k);
  }
  if (lane == NULL) more_refuse(p, "there is no such operator here");
  if (!more_ok(p)) return;
  if (type == REF_TYPE_BOOL && !lane->truth) more_refuse(p, "it takes no bool");
  if (type != REF_TYPE_BOOL && lane->truth && strcmp(name, "Equal") != 0) more_refuse(p, "it takes bool only");
  m->lane = lane;
  m->i[2] = unary; /* Max of one operand is that operand */
  m->i[IS_MEAN] = strcmp(name, "Mean") == 0;
  more_result(p, 0, lane->compares ? REF_TYPE_BOOL : type, ndim, shape);
  const bool whole = more_type_is_whole(type) && !(power && more_type_is_real(m->in[1].type));
  const bool has = whole ? (more_type_is_unsigned(type) ? lane->without_sign : lane->whole) != NULL
                         : lane->real != NULL && (more_type_is_real(type) || power || type == REF_TYPE_BOOL);
  if (!has) more_refuse(p, "it does not take this type");
  if (strcmp(name, "IsInf") != 0 && strcmp(name, "Shrink") != 0 && (lane->alpha != 0 || lane->beta != 0)) {
    m->f[0] = more_float(p, "alpha", lane->alpha);
    m->f[1] = more_float(p, strcmp(name, "Selu") == 0 ? "gamma" : "beta", lane->beta);
  }
  more_work(p, whole ? run_whole : run_real, m->out[0].count, (double)m->out[0].count);
}

void more_setup_unary(more_plan *p) {
  const char *op = p->entry->name;
  if (strcmp(op, "Gelu") == 0 && more_choice(p, "approximate", "none", "none tanh") == 1) op = "Gelu tanh";
  setup(p, op, true);
  if (strcmp(op, "IsInf") == 0) {
    p->m->f[0] = (double)more_int(p, "detect_negative", 1);
    p->m->f[1] = (double)more_int(p, "detect_positive", 1);
  }
  if (strcmp(op, "Shrink") == 0) {
    p->m->f[0] = more_float(p, "bias", 0);
    p->m->f[1] = more_float(p, "lambd", 0.5);
  }
}

void more_setup_binary(more_plan *p) {
  const char *op = p->entry->name;
  if (strcmp(op, "Mod") == 0 && more_int(p, "fmod", 0) != 0) op = "Mod fmod";
  if (strcmp(op, "BitShift") == 0)
    op = more_choice(p, "direction", "", "LEFT RIGHT") == 0 ? "BitShift LEFT" : "BitShift RIGHT";
  if (strcmp(op, "SwiGLU") == 0) more_same_shape(p, 0, 1);
  setup(p, op, false);
}

static void run_clip(const more_op *m, const more_args *a, int64_t first, int64_t last) {
  const more_value *v = &m->in[0];
  if (more_type_is_real(v->type)) {
    const double least = a->in[1] != NULL ? more_get(&m->in[1], a->in[1], 0) : more_lowest(v->type);
    const double most = a->in[2] != NULL ? more_get(&m->in[2], a->in[2], 0) : more_highest(v->type);
    for (int64_t i = first; i < last; i++) {
      double x = more_get(v, a->in[0], i);
      x = r_max(x, least, m->f);
      more_put(&m->out[0], a->out[0], i, r_min(x, most, m->f));
    }
    return;
  }
  const bool no_sign = more_type_is_unsigned(v->type);
  for (int64_t i = first; i < last; i++) {
    int64_t x = more_get_int(v, a->in[0], i);
    if (a->in[1] != NULL) x = (no_sign ? u_max : w_max)(x, more_get_int(&m->in[1], a->in[1], 0));
    if (a->in[2] != NULL) x = (no_sign ? u_min : w_min)(x, more_get_int(&m->in[2], a->in[2], 0));
    more_store_int(v->type, a->out[0], i, x);
  }
}

void more_setup_clip(more_plan *p) {
  more_number(p, 0);
  for (uint32_t k = 1; k < 3; k++) {
    more_same_type(p, 0, k);
    if (more_operand(p, k) && p->m->in[k].count != 1) more_refuse(p, "operand %u must be one number", k);
  }
  more_result_like(p, 0, 0);
  more_work(p, run_clip, p->m->out[0].count, (double)p->m->out[0].count);
}
