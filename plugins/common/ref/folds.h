/* What reductions are made of: rows of elements folded into a row of results, in every type. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_FOLDS_H
#define HEDDLE_PLUGINS_COMMON_REF_FOLDS_H

#include <stdbool.h>
#include <stdint.h>

/* What an element adds: itself, as a factor, where it is the greatest or the least, its magnitude, its square. REF_FOLD_WIDE:
 * itself, to a sum of int64. */
enum {
  REF_FOLD_SUM,
  REF_FOLD_PROD,
  REF_FOLD_MAX,
  REF_FOLD_MIN,
  REF_FOLD_L1,
  REF_FOLD_SQUARE,
  REF_FOLD_WIDE,
  REF_FOLDS
};

/* Result j of n takes x[i * stride + j] for all i below rows; where apart is not 1, x[j * apart + i]. Results lie apart
 * from what is read. */
typedef void (*ref_fold)(void *to, const void *x, int64_t n, int64_t apart, int64_t rows, int64_t stride);

/* That of a type, REF_TYPE_F32 to REF_TYPE_U64; and the type that its results have: the same one; of sums, products,
 * magnitudes and squares of reals float64; of REF_FOLD_WIDE int64. NULL where there is none. */
ref_fold ref_fold_of(int type, int what);
int ref_fold_type(int type, int what);

/* Makes one of REF_FOLD_LANES results of that type, in place. */
enum { REF_FOLD_LANES = 64 };
void ref_fold_join(int type, int what, void *results);

/* The greatest or the least of n elements, at least 1; NaN, where there is one. */
void ref_fold_end(int type, int what, const void *x, int64_t n, void *out);

/* ends.c: the places of the greatest or the least, the first or the last of them, of count rows of n elements, or, where
 * inner is not 1, of columns side by side, of rows inner elements apart. n is from 1 to INT32_MAX; any type that has folds. */
void ref_ends(int type, bool largest, bool last, const void *x, int64_t n, int64_t inner, int64_t count, int64_t *out);

#endif
