/* Sums of products of bytes, some rows and columns at a time, with AVX2. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_BYTE_TILES_H
#define HEDDLE_PLUGINS_COMMON_MORE_BYTE_TILES_H

#include <stdbool.h>
#include <stdint.h>

enum { BYTE_ROWS = 32, BYTE_COLS = 256 };

typedef struct byte_block {
  const uint8_t *left, *right; /* the first row of the left one; the first of the columns of the right one */
  int64_t rows, cols, depth;   /* at most BYTE_ROWS and BYTE_COLS */
  int64_t right_row;           /* bytes from row to row of the right one */
  bool left_signed, right_signed;
  int16_t zero[BYTE_ROWS]; /* what is subtracted from the elements of a row */
} byte_block;

bool byte_tiles_here(void);

/* sums[r][c], which wrap, and all[r], the sum of the row of the left one. */
void byte_tiles_run(const byte_block *b, int32_t sums[BYTE_ROWS][BYTE_COLS], int32_t *all);

#endif
