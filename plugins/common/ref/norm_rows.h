/* Rows that are normalised, with the widest vectors of the CPU; sums are in float64. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_NORM_ROWS_H
#define HEDDLE_PLUGINS_COMMON_REF_NORM_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* Loops over n elements of float32, or of float64. */
typedef struct ref_norm_rows {
  double (*sum)(const void *x, int64_t n);                  /* of the elements */
  double (*sizes)(const void *x, int64_t n);                /* of their absolute values */
  double (*squares)(const void *x, int64_t n, double mean); /* of the squares of their distances from the mean */
  /* out[i] = (x[i] - mean) * times + plus */
  void (*shift)(const void *x, int64_t n, double mean, double times, double plus, void *out);
  /* out[i] = (x[i] - mean) * times * scale[i] + bias[i]; no bias: NULL */
  void (*scale)(const void *x, int64_t n, double mean, double times, const void *scale, const void *bias, void *out);
  /* sums[i] += |x[i]|, or its square. */
  void (*add_columns)(const void *from, int64_t n, bool squares, double *sums);
  /* What divide takes for sums, by which x[i] is divided, or by the first of which all are, with apart 0; 0 gives 0. */
  void (*divisors)(double *sums, int64_t n);
  void (*divide)(const void *from, int64_t n, const double *by, int64_t apart, void *to);
} ref_norm_rows;

const ref_norm_rows *ref_norm_rows_of(bool wide); /* float64 */

/* Mean and variance of n elements. */
static inline void ref_norm_measure(const ref_norm_rows *r, const void *x, int64_t n, double *mean, double *variance) {
  *mean = r->sum(x, n) / (double)n;
  *variance = r->squares(x, n, *mean) / (double)n;
}

#endif
