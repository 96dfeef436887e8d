/* The parameters that kernels take by value, in words that C and the languages of kernels share. Whole structs are
 * multiples of 8 bytes without gaps, so that both sides lay them out alike. */
#ifndef HEDDLE_PLUGINS_COMMON_KERNELS_PARAMS_H
#define HEDDLE_PLUGINS_COMMON_KERNELS_PARAMS_H

#ifdef K_GROUP /* behind the prelude */
#define K_I64 long
#define K_I32 int
#else
#include <stdint.h>
#define K_I64 int64_t
#define K_I32 int32_t
#define K_GROUP 64
#endif

#define K_DIMS 8     /* dimensions of a walk, after those that can be are joined */
#define K_OPERANDS 3 /* operands of an elementwise kernel */
#define K_SPATIAL 3
#define K_INPUTS 8 /* inputs of an expression */

/* Elementwise over neighbours: operand k is read at i * step[k], a step being 0 or 1. */
typedef struct k_flat {
  K_I64 count;
  float alpha, beta;
  K_I32 step[K_OPERANDS];
  K_I32 unused;
} k_flat;

/* Elementwise over a box: element (i0, i1, ...) of operand k is read at base[k] + sum of i * step[k]; the result is
 * written at out_base + sum of i * out_step. */
typedef struct k_walk {
  K_I64 count;
  float alpha, beta;
  K_I64 dims;
  K_I64 dim[K_DIMS];
  K_I64 out_base, out_step[K_DIMS];
  K_I64 base[K_OPERANDS], step[K_OPERANDS][K_DIMS];
} k_walk;

/* Columns of n elements, inner apart, as k_rows has them. k: how many are wanted. largest: the greatest or the least;
 * last: of equals the last or the first; nan_first: NaN before all numbers, or behind them. */
typedef struct k_along {
  K_I64 columns, n, inner, k;
  K_I32 largest, last, nan_first, unused;
} k_along;

/* out[m x n] = alpha * A x B + beta * C for each batch. tiles: of the result, down and across. count: results in all. */
typedef struct k_matmul {
  K_I64 m, n, k, tiles_m, tiles_n, count;
  K_I64 a_row, a_col, b_row, b_col, c_row, c_col;
  float alpha, beta;
  K_I64 batch_dims;
  K_I64 batch_dim[K_DIMS], batch_a[K_DIMS], batch_b[K_DIMS];
} k_matmul;

/* A convolution: m channels of a group, n positions, k = channels of the input's group * taps. For the kernel direct
 * tiles_n are the items of a line, and count those in all. */
typedef struct k_conv {
  K_I64 m, n, k, tiles_m, tiles_n, groups, in_channels, taps, count;
  K_I64 in[K_SPATIAL], out[K_SPATIAL], window[K_SPATIAL], stride[K_SPATIAL], dilation[K_SPATIAL], pad[K_SPATIAL];
} k_conv;

/* Rows along one axis: element i of row r lies at (r / inner) * n * inner + r % inner + i * inner. */
typedef struct k_rows {
  K_I64 rows, n, inner;
} k_rows;

/* Result r is made of count elements: outer rows of row, row_step apart, which the reduced dimensions besides the row
 * place; kept dimensions place the first. by_row: a group's items share the rows, else each has rows of its own. */
typedef struct k_reduce {
  K_I64 results, count, outer, row, row_step, by_row;
  K_I64 start; /* what a whole number begins as: the limit of the type, for the greatest and the least */
  K_I64 kept_dims, kept_dim[K_DIMS], kept_step[K_DIMS];
  K_I64 dims, dim[K_DIMS], step[K_DIMS];
} k_reduce;

#define K_STRETCH 8 /* elements of an item in batch_plane */

/* rows of n elements; a row is a plane of one of channels. size, alpha, beta, bias: LRN's. */
typedef struct k_norm {
  K_I64 rows, n, channels, size;
  float epsilon, alpha, beta, bias;
} k_norm;

/* An expression over a box: input k of element (i0, i1, ...) lies at the sum of i * step[k]. */
typedef struct k_fused {
  K_I64 count, dims;
  K_I64 dim[K_DIMS], step[K_INPUTS][K_DIMS];
} k_fused;

#define K_STRUCT(name, members) \
  typedef struct name { \
    members \
  } name;
#include "portable_params.h"

#endif
