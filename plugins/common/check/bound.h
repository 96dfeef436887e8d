/* How far a correct result of an operator may lie from its exact value, an element at a time: what the conformance kit
 * and `heddle compare` call a difference. Plain arrays in, plain arrays out; it knows no plugin and no region.
 *
 * u is the unit roundoff of the type that is computed in: 2^-24 for float32 and for the halves (whose sums a device has
 * to keep in float32), 2^-53 for float64; u_y that of the result's own type (2^-11 float16, 2^-8 bfloat16).
 * gamma(n) = n u / (1 - n u). Any order of summation, fused multiply-add and subnormals flushed to zero are allowed.
 *
 *  exact     moves, comparisons, integers, bool: nothing. Two NaN are equal, whatever their bits.
 *  step      quantised results: 1, since a quotient that lies on a tie may round either way.
 *  map       a function of an element: k ulp of the result, 2 k u_y |y|, and where the formula cancels (Gelu, Mish,
 *            Softplus) k ulp of its operand or of 1 as well. The k are those that OpenCL 3.0, section 7.4 "Relative
 *            Error as ULPs", allows (exp, log 3; sin, cos, sinh, cosh, asin, acos, asinh, acosh 4; tan, tanh, atan 5;
 *            pow, erf 16; division 2.5; sqrt 3), added up where an operator is several of them.
 *  sum       sums of products and of elements. For n terms in any order |error| <= gamma(n) sum |a||b| (Higham, Accuracy
 *            and Stability of Numerical Algorithms, 2nd ed., section 3.1). The sum of magnitudes is the operator itself of
 *            the operands' magnitudes, which evaluate computes. Where factors of the operator's own are negative,
 *            magnitudes would cancel: Gemm's operands get the sign too, and for a cubic Resize it is 3 max|x|. A 2-D
 *            convolution of stride 1 with a kernel of 3 x 3 or 5 x 5 may be computed by Winograd's filtering:
 *            32 u max|x| sum |w| more (docs/cpu.md has the source).
 *  positive  sums of terms that are all positive, and roots and logarithms of them: gamma(n + 24) |y|, for a logarithm
 *            gamma(n + 24) in absolute terms.
 *  softmax   with m the row's maximum, exp(x - m) is off by u |x - m| for the difference and by 3 ulp; the denominator is
 *            off by the same in the mean, with the results p as weights, and by gamma(n): in sum, relative to y,
 *            u (|x - m| + sum p |x - m| + n + 20). The logarithm of it has that as an absolute error.
 *  norm      y = (x - mean) r s + b, r = 1 / sqrt(var + e), over rows of n: the difference is off by
 *            u (|x| + (n + 1) mean|x|); var is off by gamma(n + 4) (mean x^2 + mean^2) when it is computed as a difference
 *            of two sums, which is allowed, and r by half of that over var + e, relatively.
 *  attention with d elements a head and n keys: scores are off by t = gamma(d + 2) scale d max|q| max|k| + u |score|, and a
 *            mean of values by max|v| (2 t + gamma(n + 20)): a softmax moves by at most a factor exp(2 t).
 *  estimate  recurrent operators, transforms, interpolation, determinants, fused expressions: the condition is measured,
 *            not derived. The operator is evaluated 4 times with every operand moved by a relative 2^-30 of a random
 *            sign; the largest change of an element of the tensor, per unit of relative error, times (n + 32) u is the
 *            bound, with (n + 32) u |y|; n is the longest row of an operand, or its elements for each of the result. A
 *            backward stable calculation stays below it; the header says "estimate" to
 *            the reader of a failure.
 *
 * Norms, attention, and what is positive may round to the result's type between their steps, as ONNX's own definitions of
 * LayerNormalization and Attention do: 2 u_y of each term more for the halves, 4 u_y for scores and for values.
 *
 * To each of them u_y |y| is added for the rounding of the result to its type, and its least normal number. fast (see
 * HEDDLE_REGION_FAST) allows bfloat16 for operands and results: 3 2^-9 in place of each u, and 2^-8 of the result. */
#ifndef HEDDLE_PLUGINS_COMMON_CHECK_BOUND_H
#define HEDDLE_PLUGINS_COMMON_CHECK_BOUND_H

#include <stdbool.h>
#include <stdint.h>

/* Types, as far as rounding is concerned. */
enum { BOUND_F32, BOUND_F64, BOUND_F16, BOUND_BF16, BOUND_WHOLE /* integers and bool */ };

/* An operand or a result, row-major. x NULL: absent. Integers are given as the doubles that are nearest. */
typedef struct bound_tensor {
  const double *x;
  const int64_t *shape;
  int32_t ndim;
  int32_t type; /* BOUND_* */
} bound_tensor;

/* A number or a row of integers; other attributes are left out. */
typedef struct bound_attr {
  const char *name;
  const int64_t *ints; /* NULL: number holds it */
  uint64_t count;
  double number;
} bound_attr;

typedef struct bound_node {
  const char *op; /* ONNX's name, or one of domain heddle */
  const bound_attr *attrs;
  const bound_tensor *in;
  uint32_t n_attrs, n_in;
  uint32_t output;  /* which result */
  bool fast;        /* computed with HEDDLE_REGION_FAST */
  bound_tensor out; /* the reference: exact, or far more exact than what is checked */
  /* Evaluates the operator, as exactly as can be, on other floating-point operands: x[k] replaces in[k].x; y gets the
   * result `output`. False where it cannot. NULL: there is none, and only bounds that need none are given. */
  bool (*evaluate)(void *ctx, const double *const *x, double *y);
  void *ctx;
} bound_node;

/* Fills err[i], as many as out has elements, and *rule with the word of the list above. False where no bound is known
 * (the operator is not known, evaluate is missing or fails, memory is out). Any thread; blocks as evaluate does. */
bool check_bound_of(const bound_node *node, double *err, const char **rule);

/* Whether got is a right result where want is the exact one: within err, both NaN, the same infinity, or an infinity
 * where want with its error reaches the end of the type. */
bool check_bound_holds(int32_t type, double want, double got, double err);

#endif
