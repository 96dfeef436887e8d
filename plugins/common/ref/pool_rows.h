/* Rows of pools, by the widest vectors of the CPU: the rows that a window has are put together first, then what it has of
 * that row. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_POOL_ROWS_H
#define HEDDLE_PLUGINS_COMMON_REF_POOL_ROWS_H

#include "ref_op.h"

/* A part of a row of the result: n places from `first` on, of which ref_pool_places tells how many there may be. Reads the
 * plane's elements, and writes out[0] to out[n - 1]. A NaN wins over numbers; a window without elements has the least. */
typedef void (*ref_pool_row)(const ref_window *w, const void *plane, int64_t z, int64_t y, int64_t first, int64_t n,
                             void *out);

/* 0: the window is too long for it. */
int64_t ref_pool_places(const ref_window *w);

/* The greatest of a window, of elements of that type (REF_TYPE_*); NULL: there is none. */
ref_pool_row ref_pool_max_row(int type);
ref_pool_row ref_pool_max_f32_row(void); /* alone, for a build that has no other type's */
/* The sums of float32: as float32 of a few, else as float64. */
ref_pool_row ref_pool_sum_row(bool few);

/* out[i] = sums[i] / (counts[i] * rows); 0 where that is 0. */
void ref_pool_means(bool few, const void *sums, const double *counts, double rows, int64_t n, float *out);

/* The greatest of places first to first + n of a row, and where in the plane each is: the first of those that are equal; -1:
 * the window is empty. The plane has fewer than 2^31 elements. */
void ref_pool_where(const ref_window *w, const float *plane, int64_t z, int64_t y, int64_t first, int64_t n, float *out,
                    int32_t *where);

/* The greatest of n float32: -infinity of none, NaN where one is. */
float ref_pool_max(const float *x, int64_t n);

#endif
