/* contract_panel: see contract.h for the order of the sums. The innermost loops run over the CONTRACT_WIDTH columns of
 * a tile that lies on the stack, with as many rows of A at once as leave the sums in registers. */
#include "contract.h"

#include <stdbool.h>
#include <string.h>

enum { ROWS = 4, RUN = 16, LANES = 4 };

/* Four columns. The compilers' own vectors, because gcc does not find them in plain loops over a local array; their
 * arithmetic is that of each float alone. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes load(const float *from) {
  lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* sum[r][j] = sum over d of a(r, d) * tile[d][j] for four rows of A, in runs of RUN. */
static void four_rows(const float *a, int64_t a_row, int64_t a_col, const float *tile, int64_t depth,
                      float sum[ROWS][CONTRACT_WIDTH]) {
  lanes all[ROWS][2] = {{{0}}};
  for (int64_t d0 = 0; d0 < depth; d0 += RUN) {
    const int64_t run = depth - d0 < RUN ? depth - d0 : RUN;
    lanes r00 = {0}, r01 = {0}, r10 = {0}, r11 = {0}, r20 = {0}, r21 = {0}, r30 = {0}, r31 = {0};
    const float *x = a + d0 * a_col, *b = tile + d0 * CONTRACT_WIDTH;
    for (int64_t d = 0; d < run; d++, x += a_col, b += CONTRACT_WIDTH) {
      const lanes b0 = load(b), b1 = load(b + LANES);
      const float x0 = x[0], x1 = x[a_row], x2 = x[2 * a_row], x3 = x[3 * a_row];
      r00 += x0 * b0, r01 += x0 * b1;
      r10 += x1 * b0, r11 += x1 * b1;
      r20 += x2 * b0, r21 += x2 * b1;
      r30 += x3 * b0, r31 += x3 * b1;
    }
    all[0][0] += r00, all[0][1] += r01;
    all[1][0] += r10, all[1][1] += r11;
    all[2][0] += r20, all[2][1] += r21;
    all[3][0] += r30, all[3][1] += r31;
  }
  memcpy(sum, all, sizeof all);
}

/* The same for one row, to the bit. */
static void one_row(const float *a, int64_t a_col, const float *tile, int64_t depth, float sum[CONTRACT_WIDTH]) {
  lanes all[2] = {{0}, {0}};
  for (int64_t d0 = 0; d0 < depth; d0 += RUN) {
    const int64_t run = depth - d0 < RUN ? depth - d0 : RUN;
    lanes r0 = {0}, r1 = {0};
    const float *x = a + d0 * a_col, *b = tile + d0 * CONTRACT_WIDTH;
    for (int64_t d = 0; d < run; d++, x += a_col, b += CONTRACT_WIDTH) r0 += *x * load(b), r1 += *x * load(b + LANES);
    all[0] += r0;
    all[1] += r1;
  }
  memcpy(sum, all, sizeof all);
}

/* Sums of a row to the result: the first ones as they are, later ones added. */
static void put(float *to, const float *sum, int64_t width, bool first) {
  if (width < CONTRACT_WIDTH) {
    for (int64_t c = 0; c < width; c++) to[c] = first ? sum[c] : to[c] + sum[c];
    return;
  }
  for (int c = 0; c < CONTRACT_WIDTH; c += LANES) {
    const lanes v = first ? load(sum + c) : load(to + c) + load(sum + c);
    memcpy(to + c, &v, sizeof v);
  }
}

void check_contract_panel(const float *a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k, contract_fetch fetch,
                          const void *ctx, int64_t j0, int64_t cols, float *out, int64_t out_row) {
  float tile[CONTRACT_DEPTH * CONTRACT_WIDTH], sum[ROWS][CONTRACT_WIDTH];
  if (k == 0) {
    for (int64_t i = 0; i < rows; i++) memset(out + i * out_row, 0, (size_t)cols * sizeof *out);
    return;
  }
  for (int64_t k0 = 0; k0 < k; k0 += CONTRACT_DEPTH) {
    const int64_t depth = k - k0 < CONTRACT_DEPTH ? k - k0 : CONTRACT_DEPTH;
    for (int64_t j = 0; j < cols; j += CONTRACT_WIDTH) {
      const int64_t width = cols - j < CONTRACT_WIDTH ? cols - j : CONTRACT_WIDTH;
      fetch(ctx, k0, depth, j0 + j, width, tile);
      for (int64_t i = 0, some; i < rows; i += some) {
        const float *from = a + i * a_row + k0 * a_col;
        some = rows - i < ROWS ? 1 : ROWS;
        if (some == ROWS) four_rows(from, a_row, a_col, tile, depth, sum);
        else one_row(from, a_col, tile, depth, sum[0]);
        for (int64_t r = 0; r < some; r++) put(out + (i + r) * out_row + j, sum[r], width, k0 == 0);
      }
    }
  }
}
