/* Products with rows of floats that were rounded to int8, where the model and the run allow it; sums of a block are of integers, and
 * exact. Weights are blocks of a form (blocks.h), or of four bits as MatMulNBits has them (nbits.h). For AVX2. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_BLOCK_BYTES_H
#define HEDDLE_PLUGINS_COMMON_MORE_BLOCK_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "plugins/common/more/block_forms.h"
#include "plugins/common/more/nbits.h"

bool bytes_here(void);
/* F16 and BF16 stay floats. */
bool bytes_has(int form);

/* A row: each BLOCK_SUM numbers are rounded by their greatest magnitude, halves to even, with zeros behind the last to
 * whole blocks of the longest form. */
typedef struct bytes_row {
  int8_t *q;
  float *scales; /* of each BLOCK_SUM; NaN where a number is not finite */
  float *sums;   /* of each BLOCK_SUM, times the scale */
  float *halves; /* of each half of them */
} bytes_row;

int64_t bytes_laid(int64_t count); /* bytes of a row, a multiple of 64 */
bytes_row bytes_row_at(const char *laid, int64_t count);
void bytes_lay(const float *a, int64_t count, char *laid);

/* A row of count weights times a row that is laid out. NULL: the form has none. */
typedef float (*bytes_product)(const uint8_t *row, int64_t count, const char *laid);
bytes_product bytes_product_of(int form);
/* Of BYTES_ROWS rows of weights, step bytes apart. NULL: the form has none. */
enum { BYTES_ROWS = 4 };
typedef void (*bytes_products)(const uint8_t *rows, int64_t step, int64_t count, const char *laid, float *out);
bytes_products bytes_products_of(int form);

/* block_tiles.c: of many rows, out[i][n] of at most NBITS_TILE columns in rows of NBITS_TILE. form BLOCK_NONE: of w's four bits, else
 * only its q and q_step are read. tile: BYTES_TILE_FLOATS, scratch memory. */
enum { BYTES_TILE_FLOATS = 2304 };
void bytes_multiply_tiles(const nbits_rows *w, int form, int64_t columns, const char *laid, int64_t rows, int64_t depth,
                          float *tile, float *out);

#endif
