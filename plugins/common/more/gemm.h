/* Sums of products of two tensors over any of their dimensions, for the types that no library multiplies and for what is
 * no matrix as it lies: MatMul, Gemm, Einsum. Halves are computed in float32, integers wrap. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_GEMM_H
#define HEDDLE_PLUGINS_COMMON_MORE_GEMM_H

#include "more.h"

enum { GEMM_DIMS = 16, GEMM_LEFT = 0, GEMM_RIGHT, GEMM_OUT, GEMM_SIDES };

/* Dimensions that are walked as one, slowest first, with the strides of both operands and of the result. */
typedef struct gemm_dims {
  int64_t count; /* product of the sizes */
  int32_t n, reserved;
  int64_t size[GEMM_DIMS], step[GEMM_SIDES][GEMM_DIMS];
} gemm_dims;

/* Of each batch, row and column of the result the sum over the depth. A result that no dimension of the depth is of is one
 * product; one of a depth of 0 is 0. */
typedef struct gemm {
  gemm_dims batch, rows, cols, depth;
  int type[GEMM_SIDES];
  /* Of reals: alpha times the sum, and beta times the element of `add` with these strides of rows and columns. */
  double alpha, beta;
  const void *add;
  int64_t add_row, add_col;
} gemm;

/* Dimensions are added slowest first; those of size 1 do not count. */
void gemm_start(gemm *g, int left, int right, int out);
void gemm_add(gemm_dims *d, int64_t size, int64_t left, int64_t right, int64_t out);

/* Once all are added: exchanges the operands where that is faster; true: it has, and so must gemm_run's caller. */
bool gemm_finish(gemm *g);

/* Units: panels of the result. steps: for more_work, counted as more_loop has it. */
int64_t gemm_units(const gemm *g);
double gemm_steps(const gemm *g);
bool gemm_run(const gemm *g, const more_op *m, const void *left, const void *right, void *out, int64_t first,
              int64_t last); /* false: the run is to end */

/* ---- gemm_tiles.c: the innermost loops for a kind of numbers, with the widest vectors of the CPU. */
enum { GEMM_F32, GEMM_F64, GEMM_W32, GEMM_W64, GEMM_KINDS };

typedef struct gemm_tiles {
  int32_t rows, cols; /* of a tile */
  /* acc += a tile's sums over n: of left as [n][rows] and right as [n][cols]; acc_row elements from row to row. */
  void (*tile)(const void *left, const void *right, int64_t n, void *acc, int64_t acc_row);
  /* acc[j] += sum over n of left[k] * right[at[k] + j], for cols < 64 elements j that lie side by side. */
  void (*row)(const void *left, const void *right, const int64_t *at, int64_t n, void *acc, int64_t cols);
  /* acc[0] += the sum over n of left[k] * right[k]. */
  void (*dot)(const void *left, const void *right, int64_t n, void *acc);
} gemm_tiles;

const gemm_tiles *gemm_tiles_of(int kind);

#endif
