/* Products of rows: out[i][j] = bias[j] + the sum over k of a[i][k] b[j][k], in float32, with the widest vectors of the
 * CPU. How a sum is rounded depends on them, and not on where the rows lie or how many there are beside them. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_ROWS_H
#define HEDDLE_PLUGINS_COMMON_MORE_ROWS_H

#include <stdint.h>

typedef struct more_rows {
  const float *a, *b, *bias; /* bias: NULL for zeros */
  float *out;
  int64_t m, n, k;          /* rows of a, rows of b, and the length of both */
  int64_t a_step, out_step; /* floats from a row to the next; those of b lie without gaps */
} more_rows;

void more_rows_product(const more_rows *r);

#endif
