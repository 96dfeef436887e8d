/* The bounds of bound.h: which operator has which rule, and the rules. */
#include "bound.h"

#include "operators/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NONE, EXACT, STEP, MAP, SUM, POSITIVE, LOG_POSITIVE, SOFTMAX, LOG_SOFTMAX, NORM, ATTENTION, ESTIMATE };

static const char *const rule_names[] = {"",         "exact",   "step",    "map",  "sum",       "positive",
                                         "positive", "softmax", "softmax", "norm", "attention", "estimate"};

/* y, x, one: ulps of the result, of the first operand, of 1, that a map may be off. */
typedef struct rule {
  const char *op;
  float y, x, one;
  int kind;
} rule;

/* Of each operator's line in operators/. NONE: exact where the result is of integers, and not known else. */
static const rule rules[] = {
#define OPERATOR(domain, op, types, kernel, tail, general, kind, y, x, one) {#op, y, x, one, kind},
#include "operators/all.def"
};

/* ---------------------------------------------------------------- sizes */

static uint64_t count_of(const bound_tensor *t) {
  uint64_t n = 1;
  for (int32_t d = 0; d < t->ndim; d++) n *= (uint64_t)t->shape[d];
  return n;
}

static const bound_tensor *operand(const bound_node *n, uint32_t k) {
  return k < n->n_in && n->in[k].x != NULL ? &n->in[k] : NULL;
}

static const bound_attr *attr(const bound_node *n, const char *name) {
  for (uint32_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, name) == 0) return &n->attrs[i];
  return NULL;
}

static double number(const bound_node *n, const char *name, double absent) {
  const bound_attr *a = attr(n, name);
  if (a == NULL) return absent;
  return a->ints == NULL ? a->number : a->count > 0 ? (double)a->ints[0] : absent;
}

static double at_most(const bound_tensor *t) {
  double most = 0;
  const uint64_t n = t != NULL ? count_of(t) : 0;
  for (uint64_t i = 0; i < n; i++)
    if (isfinite(t->x[i]) && fabs(t->x[i]) > most) most = fabs(t->x[i]);
  return most;
}

static bool real(const bound_tensor *t) {
  return t->type != BOUND_WHOLE;
}

/* The unit roundoff of the result's type, its least normal number and its largest. */
static double unit_of(int32_t type) {
  static const double units[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8, 0};
  return units[type];
}

static double least_of(int32_t type) {
  static const double least[] = {0x1p-126, 0x1p-1022, 0x1p-24, 0x1p-126, 0};
  return least[type];
}

static double largest_of(int32_t type) {
  static const double largest[] = {0x1.fffffep127, 0x1.fffffffffffffp1023, 65504, 0x1.fep127, INFINITY};
  return largest[type];
}

/* How many terms a result is the sum of, at most. */
static double terms(const bound_node *n) {
  const bound_tensor *a = operand(n, 0), *b = operand(n, 1);
  const double outs = (double)count_of(&n->out), all = a != NULL ? (double)count_of(a) : 1;
  if (strcmp(n->op, "MatMul") == 0 && a->ndim > 0) return (double)a->shape[a->ndim - 1];
  if (strcmp(n->op, "Gemm") == 0 && a->ndim == 2) return (double)a->shape[number(n, "transA", 0) != 0 ? 0 : 1] + 3;
  if (strcmp(n->op, "Conv") == 0 && b->shape[0] > 0) return (double)count_of(b) / (double)b->shape[0] + 1;
  if (strcmp(n->op, "ConvTranspose") == 0 && b->shape[1] > 0)
    return (double)count_of(b) / ((double)b->shape[1] * number(n, "group", 1)) + 1;
  if (strcmp(n->op, "Einsum") == 0) {
    double n_all = 1;
    for (uint32_t k = 0; k < n->n_in; k++) n_all *= (double)count_of(&n->in[k]);
    return outs > 0 ? n_all / outs + n->n_in : 1;
  }
  if (strcmp(n->op, "Resize") == 0) { /* at most 4 points a dimension, whose weights are of coordinates in float32 */
    double size = 1;
    for (int32_t d = 0; a != NULL && d < a->ndim; d++) size = fmax(size, (double)a->shape[d]);
    return 64 + 4 * size;
  }
  if (strcmp(n->op, "Sum") == 0 || strcmp(n->op, "Mean") == 0) return n->n_in + 1;
  if (strcmp(n->op, "LRN") == 0) return number(n, "size", 1) + 40;
  if (strcmp(n->op, "CumSum") == 0 || strcmp(n->op, "LpNormalization") == 0 || strcmp(n->op, "RMSNormalization") == 0)
    return all;
  const bound_attr *kernel = attr(n, "kernel_shape");
  if (kernel != NULL && kernel->ints != NULL) {
    double points = 1;
    for (uint64_t i = 0; i < kernel->count; i++) points *= (double)kernel->ints[i];
    return points + 1;
  }
  return outs > 0 && all > outs ? all / outs + 2 : 2;
}

/* ---------------------------------------------------------------- evaluations */

static double magnitude(double x, uint32_t *state) {
  (void)state;
  return fabs(x);
}

/* What a magnitude is multiplied by, so that no term is subtracted from another: Gemm has factors of its own. */
static double sign_of(const bound_node *n, uint32_t k) {
  if (strcmp(n->op, "Gemm") != 0 || k == 1) return 1;
  return number(n, k == 0 ? "alpha" : "beta", 1) < 0 ? -1 : 1;
}

/* Calls evaluate with every floating-point operand changed by change(x, state). NULL where it cannot be. */
static double *evaluated(const bound_node *n, double (*change)(double x, uint32_t *state), uint32_t *state) {
  const double *x[32] = {NULL};
  double *made[32] = {NULL}, *y = NULL;
  bool good = n->evaluate != NULL && n->n_in <= 32;
  for (uint32_t k = 0; k < n->n_in && good; k++) {
    const uint64_t count = operand(n, k) != NULL ? count_of(&n->in[k]) : 0;
    x[k] = n->in[k].x;
    if (count == 0 || !real(&n->in[k])) continue;
    made[k] = malloc(count * sizeof *made[k]);
    good = made[k] != NULL;
    const double sign = change == magnitude ? sign_of(n, k) : 1;
    for (uint64_t i = 0; i < count && good; i++) made[k][i] = sign * change(n->in[k].x[i], state);
    x[k] = made[k];
  }
  if (good) y = malloc((size_t)(count_of(&n->out) + 1) * sizeof *y);
  if (y != NULL && !n->evaluate(n->ctx, x, y)) {
    free(y);
    y = NULL;
  }
  for (uint32_t k = 0; k < 32; k++) free(made[k]);
  return y;
}

#define MOVE 0x1p-30

static double moved(double x, uint32_t *state) {
  *state = *state * 1664525U + 1013904223U;
  return x * (1 + ((*state >> 31) != 0 ? MOVE : -MOVE));
}

/* ---------------------------------------------------------------- rules */

static double gamma_of(double n, double u) {
  return n * u < 0.5 ? n * u / (1 - n * u) : INFINITY;
}

/* Winograd's filtering of a convolution: see bound.h. */
static double filtering(const bound_node *n, double u) {
  const bound_tensor *w = operand(n, 1);
  if (strcmp(n->op, "Conv") != 0 || w->ndim != 4 || w->shape[2] != w->shape[3]) return 0;
  if ((w->shape[2] != 3 && w->shape[2] != 5) || w->type != BOUND_F32) return 0;
  const char *const ones[] = {"strides", "dilations"};
  for (int i = 0; i < 2; i++) {
    const bound_attr *a = attr(n, ones[i]);
    for (uint64_t d = 0; a != NULL && d < a->count; d++)
      if (a->ints[d] != 1) return 0;
  }
  double most = 0;
  const uint64_t each = count_of(w) / (uint64_t)(w->shape[0] > 0 ? w->shape[0] : 1);
  for (int64_t m = 0; m < w->shape[0]; m++) {
    double sum = 0;
    for (uint64_t i = 0; i < each; i++) sum += fabs(w->x[(uint64_t)m * each + i]);
    if (sum > most) most = sum;
  }
  return 32 * u * at_most(operand(n, 0)) * most;
}

/* Cubic interpolation has negative weights, of which magnitudes cancel: what shows it is a mean that is less than a
 * result or lies outside of its operands. At most 3 dimensions, with weights of 1.375 together in each. */
static double interpolated(const bound_node *n, const double *m, uint64_t count) {
  if (strcmp(n->op, "Resize") != 0) return 0;
  const double most = at_most(operand(n, 0)), little = most * 0x1p-20;
  for (uint64_t i = 0; i < count; i++)
    if (m[i] < -little || m[i] > most + little || fabs(n->out.x[i]) > m[i] + little) return 3 * most;
  return 0;
}

static bool sum_rule(const bound_node *n, double u, uint64_t count, double *err) {
  double *m = evaluated(n, magnitude, NULL);
  if (m == NULL) return false;
  const double g = gamma_of(terms(n) + 2, u) + (n->fast ? 3 * 0x1p-9 : 0), more = filtering(n, u);
  const double least = interpolated(n, m, count);
  for (uint64_t i = 0; i < count; i++) err[i] = g * fmax(fabs(m[i]), least) + more + terms(n) * least_of(n->out.type);
  free(m);
  return true;
}

static bool estimate_rule(const bound_node *n, double u, uint64_t count, double *err) {
  double most = 0, length = 32;
  uint32_t state = 7;
  bool good = true;
  for (int round = 0; round < 4 && good; round++) {
    double *y = evaluated(n, moved, &state);
    good = y != NULL;
    for (uint64_t i = 0; i < count && good; i++)
      if (isfinite(y[i]) && isfinite(n->out.x[i]) && fabs(y[i] - n->out.x[i]) > most) most = fabs(y[i] - n->out.x[i]);
    free(y);
  }
  for (uint32_t k = 0; k < n->n_in; k++) {
    const bound_tensor *t = operand(n, k);
    if (t == NULL || t->ndim == 0 || count == 0) continue;
    length = fmax(length, (double)t->shape[t->ndim - 1] + 32);
    length = fmax(length, (double)count_of(t) / (double)count + 32);
  }
  for (uint64_t i = 0; i < count && good; i++) err[i] = length * u * (most / MOVE + fabs(n->out.x[i]));
  return good;
}

static void softmax_row(const double *x, const double *y, double *err, int64_t n, int64_t stride, double u, bool log) {
  double m = -INFINITY, sum = 0, mean = 0;
  for (int64_t i = 0; i < n; i++) m = fmax(m, x[i * stride]);
  for (int64_t i = 0; i < n; i++) sum += exp(x[i * stride] - m);
  for (int64_t i = 0; i < n; i++) {
    const double far = m - x[i * stride], p = exp(-far) / sum;
    if (p > 0) mean += p * far;
  }
  for (int64_t i = 0; i < n; i++) {
    const double far = m - x[i * stride], rel = u * (mean + (double)n + 20 + (isfinite(far) ? far : 0));
    err[i * stride] = log ? rel + 2 * u * fabs(y[i * stride]) : rel * y[i * stride];
  }
}

static bool softmax_rule(const bound_node *n, double u, double *err, bool log) {
  const bound_tensor *x = operand(n, 0);
  int64_t axis = (int64_t)number(n, "axis", -1), inner = 1, outer = 1;
  if (x == NULL || x->ndim == 0) return false;
  if (axis < 0) axis += x->ndim;
  if (axis < 0 || axis >= x->ndim) return false;
  for (int32_t d = 0; d < x->ndim; d++) *(d < axis ? &outer : &inner) *= d == axis ? 1 : x->shape[d];
  const int64_t size = x->shape[axis];
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < inner; i++) {
      const int64_t at = o * size * inner + i;
      softmax_row(x->x + at, n->out.x + at, err + at, size, inner, u, log);
    }
  }
  return true;
}

/* Rows of n->in[0] that are normalised together: contiguous, `row` elements each; scale and bias of element i of the
 * tensor are element (i / per) % count of theirs. */
static bool norm_rule(const bound_node *n, double u, double step_u, uint64_t count, double *err) {
  const bound_tensor *x = operand(n, 0), *s = operand(n, 1), *b = operand(n, 2);
  const double e = number(n, "epsilon", 1e-5);
  uint64_t row = 1, per = 1;
  if (x == NULL || s == NULL || n->output > 0) return false; /* mean and deviation: as estimate */
  if (strcmp(n->op, "LayerNormalization") == 0) {
    int64_t axis = (int64_t)number(n, "axis", -1);
    if (axis < 0) axis += x->ndim;
    for (int64_t d = axis; d < x->ndim; d++) row *= (uint64_t)x->shape[d];
  } else {
    for (int32_t d = 2; d < x->ndim; d++) per *= (uint64_t)x->shape[d];
    row = per;
    if (strcmp(n->op, "GroupNormalization") == 0) {
      const uint64_t channels = (uint64_t)x->shape[1], groups = (uint64_t)number(n, "num_groups", 1);
      row = per * channels / (groups > 0 ? groups : 1);
      if (count_of(s) != channels) per = row; /* to opset 20 they are of a group */
    }
  }
  const bool batch = strcmp(n->op, "BatchNormalization") == 0;
  const uint64_t scales = count_of(s), biases = b != NULL ? count_of(b) : 1;
  for (uint64_t i = 0, step = row > 0 ? row : 1; i < count; i += step) {
    double mean = 0, square = 0, size = 0, var = 0;
    for (uint64_t j = i; j < i + step && !batch; j++)
      mean += x->x[j] / (double)step, size += fabs(x->x[j]) / (double)step;
    for (uint64_t j = i; j < i + step && !batch; j++) {
      square += x->x[j] * x->x[j] / (double)step;
      var += (x->x[j] - mean) * (x->x[j] - mean) / (double)step;
    }
    for (uint64_t j = i; j < i + step; j++) {
      if (batch) {
        const uint64_t c = j / per % scales;
        mean = n->in[3].x[c];
        var = n->in[4].x[c];
        size = fabs(mean);
      }
      const double r = 1 / sqrt(var + e), scale = fabs(s->x[j / per % scales]);
      const double bias = b != NULL ? fabs(b->x[j / per % biases]) : 0, length = batch ? 2 : (double)step + 4;
      const double wrong = batch ? 4 * u : 0.5 * gamma_of(length, u) * (square + mean * mean) / (var + e) + 4 * u;
      err[j] = scale * r * (u * fabs(x->x[j]) + gamma_of(length, u) * size + wrong * fabs(x->x[j] - mean)) +
               (4 * u + 2 * step_u) * (fabs(n->out.x[j]) + bias);
    }
  }
  return true;
}

static bool attention_rule(const bound_node *n, double u, double step_u, uint64_t count, double *err) {
  const bound_tensor *q = operand(n, 0), *k = operand(n, 1), *v = operand(n, 2);
  if (q == NULL || k == NULL || v == NULL) return false;
  const double heads = q->ndim == 3 ? number(n, "q_num_heads", 1) : 1, d = (double)q->shape[q->ndim - 1] / heads;
  const double keys = (double)k->shape[k->ndim - 2] + (operand(n, 4) != NULL ? (double)n->in[4].shape[2] : 0);
  const double values = fmax(at_most(v), at_most(operand(n, 5)));
  const double score = number(n, "scale", 1 / sqrt(d)) * d * at_most(q) * fmax(at_most(k), at_most(operand(n, 4)));
  const double t = gamma_of(d + 2, u) * fabs(score) + 4 * (u + step_u) * (fabs(score) + at_most(operand(n, 3)));
  const double most =
      n->output == 0 ? values * (2 * t + gamma_of(keys + 20, u) + 4 * step_u) : t + gamma_of(keys + 20, u);
  for (uint64_t i = 0; i < count; i++) err[i] = most;
  return true;
}

static bool map_rule(const bound_node *n, const rule *r, double u, uint64_t count, double *err) {
  const bound_tensor *x = operand(n, 0);
  const bool same = x != NULL && count_of(x) == count;
  for (uint64_t i = 0; i < count; i++) {
    const double own = same ? fabs(x->x[i]) : at_most(x);
    err[i] = 2 * u * ((double)r->y * fabs(n->out.x[i]) + (double)r->x * (r->x > 0 ? own : 0) + (double)r->one);
  }
  return true;
}

static bool positive_rule(const bound_node *n, double u, double step_u, uint64_t count, double *err, bool log) {
  const double g = gamma_of(terms(n) + 24, u) + 2 * step_u;
  for (uint64_t i = 0; i < count; i++) err[i] = g * (log ? 1 + 2 * fabs(n->out.x[i]) : fabs(n->out.x[i]));
  return true;
}

bool check_bound_of(const bound_node *n, double *err, const char **name) {
  const rule *r = NULL;
  const uint64_t count = count_of(&n->out);
  const bool whole = n->out.type == BOUND_WHOLE;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0] && r == NULL; i++)
    if (rules[i].kind != NONE && strcmp(rules[i].op, n->op) == 0) r = &rules[i];
  const int kind = r == NULL || (whole && r->kind != STEP) ? EXACT : r->kind;
  if (r == NULL && !whole) return false;
  if (name != NULL) *name = rule_names[kind];
  for (uint64_t i = 0; i < count; i++)
    err[i] = kind != STEP ? 0 : whole ? 1 : 16 * unit_of(n->out.type) * fabs(n->out.x[i]);
  if (kind == EXACT || kind == STEP || count == 0) return true;
  /* A map may be computed in the result's own type, and sums may not. */
  const bool half = n->out.type == BOUND_F16 || n->out.type == BOUND_BF16;
  const double own = n->fast ? 3 * 0x1p-9 : unit_of(n->out.type), u = n->fast && kind != SUM ? own
                                                                      : half                 ? 0x1p-24
                                                                                             : unit_of(n->out.type);
  const double step_u = half && !n->fast ? own : 0;
  bool good = false;
  if (kind == MAP) good = map_rule(n, r, own, count, err);
  else if (kind == SUM) good = sum_rule(n, u, count, err);
  else if (kind == POSITIVE || kind == LOG_POSITIVE)
    good = positive_rule(n, u, step_u, count, err, kind == LOG_POSITIVE);
  else if (kind == SOFTMAX || kind == LOG_SOFTMAX) good = softmax_rule(n, u, err, kind == LOG_SOFTMAX);
  else if (kind == NORM) good = norm_rule(n, u, step_u, count, err);
  else if (kind == ATTENTION) good = attention_rule(n, u, step_u, count, err);
  if (kind == ESTIMATE || (kind == NORM && !good)) good = estimate_rule(n, u, count, err);
  for (uint64_t i = 0; i < count; i++)
    err[i] += (n->fast ? 0x1p-8 : unit_of(n->out.type)) * fabs(n->out.x[i]) + least_of(n->out.type);
  return good;
}

bool check_bound_holds(int32_t type, double want, double got, double err) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (want == got) return true;
  if (isinf(want)) return false; /* whatever err is */
  if (isinf(got)) return fabs(want) + err >= largest_of(type) && (got > 0) == (want > 0);
  return fabs(got - want) <= err;
}
