/* frontends/onnx/ml_linear.c: linear models and support vector machines of ai.onnx.ml, as products of matrices. Where its
 * text leaves open what comes out for two classes, it is what ONNX Runtime gives. */
#include <string.h>

#include "frontends/onnx/ml.h"

/* [rows, columns] as [columns, rows]. */
static const float *transposed(heddle__ml *m, const float *x, size_t rows, size_t columns) {
  float *t = heddle__ml_take(m, rows * columns, sizeof *t);
  for (size_t i = 0; t != NULL && i < rows; i++)
    for (size_t k = 0; k < columns; k++) t[k * rows + i] = x[i * columns + k];
  return t;
}

/* x times n rows of coefficients. */
static const char *product(heddle__ml *m, const char *x, const float *coefficients, size_t count, size_t n) {
  if (n == 0 || count == 0 || count % n != 0) {
    heddle__ml_refuse(m, "it has %zu coefficients for %zu targets", count, n);
    return NULL;
  }
  const float *t = transposed(m, coefficients, n, count / n);
  return heddle__ml_2(m, "MatMul", x, heddle__ml_constant(m, ONNX_FLOAT, t, (int64_t)(count / n), (int64_t)n), NULL);
}

static const char *add_row(heddle__ml *m, const char *x, const float *row, size_t n, const char *out) {
  if (n == 0) return out != NULL ? heddle__ml_1(m, "Identity", x, out) : x;
  return heddle__ml_2(m, "Add", x, heddle__ml_constant(m, ONNX_FLOAT, row, (int64_t)n, -1), out);
}

static const char *arg_max(heddle__ml *m, const char *scores) {
  const char *best = heddle__ml_1(m, "ArgMax", scores, NULL);
  heddle__ml_set_int(m, "axis", 1);
  heddle__ml_set_int(m, "keepdims", 0);
  return best;
}

/* [n, 1] > least as indexes [n]. */
static const char *above(heddle__ml *m, const char *s, float least) {
  const char *flat = heddle__ml_2(m, "Squeeze", s, heddle__ml_shape(m, 1), NULL);
  return heddle__ml_cast(m, heddle__ml_2(m, "Greater", flat, heddle__ml_number(m, least), NULL), ONNX_INT64, NULL);
}

void heddle__ml_linear_classifier(heddle__ml *m) {
  size_t n_coefficients, n_intercepts, n_labels;
  const float *coefficients = heddle__ml_floats(m, "coefficients", &n_coefficients),
              *intercepts = heddle__ml_floats(m, "intercepts", &n_intercepts);
  const char *labels = heddle__ml_labels(m, "classlabels_ints", "classlabels_strings", &n_labels);
  const size_t n = n_intercepts > 0 ? n_intercepts : n_labels;
  const int post = heddle__ml_post(m);
  if (n != n_labels && !(n == 1 && n_labels == 2))
    heddle__ml_refuse(m, "it has %zu intercepts and %zu labels", n_intercepts, n_labels);
  const char *s = product(m, heddle__ml_matrix(m, 0, false, NULL), coefficients, n_coefficients, n);
  s = add_row(m, s, intercepts, n_intercepts, NULL);
  if (n == 1 && n_labels == 2) {
    heddle__ml_pick(m, labels, above(m, s, 0));
    heddle__ml_two(m, post, s, false, heddle__ml_output(m, 1));
    return;
  }
  heddle__ml_pick(m, labels, arg_max(m, s));
  heddle__ml_transform(m, post, s, heddle__ml_output(m, 1));
}

void heddle__ml_linear_regressor(heddle__ml *m) {
  size_t n_coefficients, n_intercepts;
  const float *coefficients = heddle__ml_floats(m, "coefficients", &n_coefficients),
              *intercepts = heddle__ml_floats(m, "intercepts", &n_intercepts);
  const int64_t targets = heddle__ml_int(m, "targets", 1);
  const int post = heddle__ml_post(m);
  if (targets < 1 || targets > INT32_MAX) heddle__ml_refuse(m, "targets is %lld", (long long)targets);
  if (n_intercepts > 0 && n_intercepts != (size_t)targets)
    heddle__ml_refuse(m, "it has %zu intercepts and %lld targets", n_intercepts, (long long)targets);
  const char *s = product(m, heddle__ml_matrix(m, 0, false, NULL), coefficients, n_coefficients, (size_t)targets);
  /* Of one target ONNX Runtime applies no other transform. */
  const bool transforms = targets > 1 || post == HEDDLE__ML_PROBIT;
  s = add_row(m, s, intercepts, n_intercepts, NULL);
  heddle__ml_transform(m, transforms ? post : HEDDLE__ML_NONE, s, heddle__ml_output(m, 0));
}

/* ---- support vectors */

typedef struct machine {
  const float *vectors, *coefficients, *rho;
  size_t n_vectors, n_values, n_coefficients, n_rho;
  const char *x;
} machine;

static bool read_machine(heddle__ml *m, machine *v) {
  v->vectors = heddle__ml_floats(m, "support_vectors", &v->n_values);
  v->coefficients = heddle__ml_floats(m, "coefficients", &v->n_coefficients);
  v->rho = heddle__ml_floats(m, "rho", &v->n_rho);
  v->x = heddle__ml_matrix(m, 0, false, NULL);
  if (v->n_rho == 0) heddle__ml_refuse(m, "it has no rho");
  return heddle__ml_good(m);
}

/* What each row of x is to each support vector. */
static const char *kernel(heddle__ml *m, const machine *v) {
  static const char *const kinds[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  size_t n;
  const float *params = heddle__ml_floats(m, "kernel_params", &n);
  const int kind = heddle__ml_choice(m, "kernel_type", "LINEAR", "LINEAR POLY RBF SIGMOID");
  if (n != 0 && n != 3) heddle__ml_refuse(m, "kernel_params has %zu numbers, expected 3", n);
  const size_t width = v->n_vectors > 0 ? v->n_values / v->n_vectors : 0;
  if (width * v->n_vectors != v->n_values || width == 0)
    heddle__ml_refuse(m, "it has %zu support vectors of %zu numbers in all", v->n_vectors, v->n_values);
  if (!heddle__ml_good(m)) return NULL;
  const char *vectors = heddle__ml_constant(m, ONNX_FLOAT, v->vectors, (int64_t)v->n_vectors, (int64_t)width);
  const char *k = heddle__ml_2(m, "KernelMatrix", v->x, vectors, NULL);
  heddle__ml_last(m, true);
  heddle__ml_set_text(m, "kind", kinds[kind]);
  heddle__ml_set_float(m, "gamma", n == 3 ? params[0] : 0);
  heddle__ml_set_float(m, "coef0", n == 3 ? params[1] : 0);
  heddle__ml_set_float(m, "degree", n == 3 ? params[2] : 0);
  return k;
}

void heddle__ml_svm_regressor(heddle__ml *m) {
  machine v = {0};
  const int64_t n = heddle__ml_int(m, "n_supports", 0);
  heddle__ml_post(m); /* ONNX Runtime applies none */
  if (n < 0) heddle__ml_refuse(m, "n_supports is %lld", (long long)n);
  if (!read_machine(m, &v)) return;
  v.n_vectors = (size_t)n;
  if (n > 0 && v.n_coefficients != v.n_vectors)
    heddle__ml_refuse(m, "it has %zu coefficients for %lld support vectors", v.n_coefficients, (long long)n);
  const bool is_class = heddle__ml_int(m, "one_class", 0) != 0;
  const char *out = heddle__ml_output(m, 0);
  const char *s = product(m, n > 0 ? kernel(m, &v) : v.x, v.coefficients, v.n_coefficients, 1);
  s = add_row(m, s, v.rho, 1, is_class ? NULL : out);
  if (!is_class) return;
  const char *is_in = heddle__ml_2(m, "Greater", s, heddle__ml_number(m, 0), NULL);
  heddle__ml_where(m, is_in, heddle__ml_number(m, 1), heddle__ml_number(m, -1), out);
}

/* Of classes, pairs and vectors: what a vector's kernel counts for each pair, and which class a pair is for. */
static const float *pair_weights(heddle__ml *m, const machine *v, const int64_t *per_class, size_t n, size_t pairs) {
  float *w = heddle__ml_take(m, v->n_vectors * pairs, sizeof *w);
  size_t pair = 0, from_i = 0;
  for (size_t i = 0; w != NULL && i < n; from_i += (size_t)per_class[i++]) {
    size_t from_j = from_i + (size_t)per_class[i];
    for (size_t j = i + 1; j < n; from_j += (size_t)per_class[j++], pair++) {
      for (size_t k = 0; k < (size_t)per_class[i]; k++)
        w[(from_i + k) * pairs + pair] = v->coefficients[(j - 1) * v->n_vectors + from_i + k];
      for (size_t k = 0; k < (size_t)per_class[j]; k++)
        w[(from_j + k) * pairs + pair] = v->coefficients[i * v->n_vectors + from_j + k];
    }
  }
  return w;
}

/* Of each class how many pairs are for it: the sign of each pair's score, by a matrix. */
static const char *votes(heddle__ml *m, const char *scores, size_t n, size_t pairs) {
  float *first = heddle__ml_take(m, pairs * n, sizeof *first), *second = heddle__ml_take(m, pairs * n, sizeof *second);
  size_t pair = 0;
  for (size_t i = 0; second != NULL && i < n; i++) {
    for (size_t j = i + 1; j < n; j++, pair++) {
      first[pair * n + i] = 1;
      second[pair * n + j] = 1;
    }
  }
  const char *is_first = heddle__ml_2(m, "Greater", scores, heddle__ml_number(m, 0), NULL);
  const char *other = heddle__ml_1(m, "Not", is_first, NULL);
  const char *a = heddle__ml_2(m, "MatMul", heddle__ml_cast(m, is_first, ONNX_FLOAT, NULL),
                               heddle__ml_constant(m, ONNX_FLOAT, first, (int64_t)pairs, (int64_t)n), NULL);
  const char *b = heddle__ml_2(m, "MatMul", heddle__ml_cast(m, other, ONNX_FLOAT, NULL),
                               heddle__ml_constant(m, ONNX_FLOAT, second, (int64_t)pairs, (int64_t)n), NULL);
  return heddle__ml_2(m, "Add", a, b, NULL);
}

/* Vectors of each class; their sum becomes n_vectors. */
static const int64_t *read_classes(heddle__ml *m, machine *v, size_t n_labels, size_t *n) {
  const int64_t *per_class = heddle__ml_ints(m, "vectors_per_class", n);
  for (size_t i = 0; i < *n && heddle__ml_good(m); i++) {
    if (per_class[i] < 0 || per_class[i] > INT32_MAX)
      heddle__ml_refuse(m, "vectors_per_class has %lld", (long long)per_class[i]);
    else v->n_vectors += (size_t)per_class[i];
  }
  const size_t pairs = *n * (*n - (*n > 0)) / 2;
  if (*n != 0 && (*n < 2 || *n > 2000 || *n != n_labels))
    heddle__ml_refuse(m, "it has vectors of %zu classes and %zu labels", *n, n_labels);
  else if (*n != 0 && v->n_rho != pairs)
    heddle__ml_refuse(m, "rho has %zu numbers for %zu pairs of classes", v->n_rho, pairs);
  else if (*n != 0 && (v->n_vectors == 0 || v->n_coefficients != (*n - 1) * v->n_vectors))
    heddle__ml_refuse(m, "it has %zu coefficients for %zu vectors", v->n_coefficients, v->n_vectors);
  return heddle__ml_good(m) ? per_class : NULL;
}

void heddle__ml_svm_classifier(heddle__ml *m) {
  size_t n_labels, n, n_a, n_b;
  machine v = {0};
  const char *labels = heddle__ml_labels(m, "classlabels_ints", "classlabels_strings", &n_labels);
  const float *prob_a = heddle__ml_floats(m, "prob_a", &n_a), *prob_b = heddle__ml_floats(m, "prob_b", &n_b);
  const char *out = heddle__ml_output(m, 1);
  const int post = heddle__ml_post(m);
  if (!read_machine(m, &v)) return;
  const int64_t *per_class = read_classes(m, &v, n_labels, &n);
  const size_t pairs = n * (n - (n > 0)) / 2;
  if (n_a != n_b || (n_a > 0 && n_a != pairs))
    heddle__ml_refuse(m, "prob_a and prob_b have %zu and %zu numbers for %zu pairs of classes", n_a, n_b, pairs);
  if (!heddle__ml_good(m)) return;
  if (n == 0) { /* a row of coefficients for each class */
    const float *rho = v.rho;
    const char *s = product(m, v.x, v.coefficients, v.n_coefficients, n_labels);
    s = add_row(m, s, rho, 1, NULL);
    heddle__ml_pick(m, labels, arg_max(m, s));
    heddle__ml_transform(m, post, s, out);
    return;
  }
  const float *w = pair_weights(m, &v, per_class, n, pairs);
  const char *k = kernel(m, &v);
  const char *s =
      heddle__ml_2(m, "MatMul", k, heddle__ml_constant(m, ONNX_FLOAT, w, (int64_t)v.n_vectors, (int64_t)pairs), NULL);
  s = add_row(m, s, v.rho, pairs, NULL);
  heddle__ml_pick(m, labels, arg_max(m, votes(m, s, n, pairs))); /* by votes also where there are probabilities */
  if (n_a > 0) {
    const char *const in[] = {s, heddle__ml_constant(m, ONNX_FLOAT, prob_a, (int64_t)pairs, -1),
                              heddle__ml_constant(m, ONNX_FLOAT, prob_b, (int64_t)pairs, -1)};
    s = heddle__ml_make(m, "PairProbabilities", NULL, 3, in);
    heddle__ml_last(m, true);
    heddle__ml_transform(m, post, s, out);
    return;
  }
  if (n == 2) heddle__ml_two(m, post, s, post == HEDDLE__ML_NONE, out);
  else heddle__ml_transform(m, post, s, out);
}
