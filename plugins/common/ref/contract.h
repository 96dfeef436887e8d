/* The inner part that MatMul, Gemm and Conv share: a panel of a matrix product, out[rows x cols] = A x B, where B is
 * fetched by a function in tiles, so that a transposed matrix and the patches of a convolution need no copy of their
 * own. Sums are taken in blocks of 16 products, blocks of 64, and then those: the order depends on k alone, so a
 * result is the same to the bit however the panels are cut. */
#ifndef HEDDLE_PLUGINS_COMMON_REF_CONTRACT_H
#define HEDDLE_PLUGINS_COMMON_REF_CONTRACT_H

#include <stdint.h>

enum {
  CONTRACT_PANEL = 64, /* most rows and columns of a panel */
  CONTRACT_DEPTH = 64, /* rows of a tile of B */
  CONTRACT_WIDTH = 8   /* columns of a tile of B */
};

/* Writes B[k0 .. k0 + depth) x [j0 .. j0 + width) to tile, CONTRACT_WIDTH floats a row, the rest of a row 0. */
typedef void (*contract_fetch)(const void *ctx, int64_t k0, int64_t depth, int64_t j0, int64_t width, float *tile);

/* A: element (i, k) at a[i * a_row + k * a_col]. out: row i at out + i * out_row. Column j of the panel is column
 * j0 + j of B. rows, cols at most CONTRACT_PANEL; k = 0 gives zeros and touches neither A nor B. */
void check_contract_panel(const float *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k, contract_fetch fetch,
                          const void *ctx, int64_t j0, int64_t cols, float *out, int64_t out_row);

#endif
