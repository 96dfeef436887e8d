/* Weights of 2, 4 or 8 bits in blocks, as MatMulNBits has them: a row for each result, cut into blocks along the depth, each
 * with a scale and a zero point. They stay as they lie in the model's file. */
#ifndef HEDDLE_PLUGINS_COMMON_MORE_NBITS_H
#define HEDDLE_PLUGINS_COMMON_MORE_NBITS_H

#include <stdbool.h>
#include <stdint.h>

/* Four bits: a group is 64 bytes, 128 weights, whose lane i of 16 has weights 8 i to 8 i + 7. Numbers of the other operand
 * are laid out for these lanes: */
enum {
  NBITS_GROUP = 128, /* weights */
  NBITS_LANES = 16,
  NBITS_DEEP = 8,                                      /* weights of a lane */
  NBITS_GROUP_FLOATS = (NBITS_DEEP + 1) * NBITS_LANES, /* number j of each lane, and the lanes' sums */
  NBITS_GROUP_BYTES = NBITS_GROUP + NBITS_LANES * 2 * (int)sizeof(float), /* even, odd; minus sums; scales */
  NBITS_AT_ONCE = 4                                                       /* rows of weights */
};

/* Rows of one product. scales and zeros: floats, a row every scale_step of them; zeros are from half of the range, NULL
 * where all are 0. */
typedef struct nbits_rows {
  const uint8_t *q;
  const float *scales, *zeros;
  int64_t q_step, scale_step;
  int64_t bytes, blocks; /* of a row */
  int64_t block;         /* weights: 16, 32, 64, ... */
  const void *a;         /* laid out */
} nbits_rows;

/* Lays out n numbers for float and for integer products. */
void nbits_lay_floats(const float *a, int64_t n, float *out);
/* Each block is rounded to int8 by its greatest magnitude, halves to even. block: at most a group. */
void nbits_lay_bytes(const float *a, int64_t n, int64_t block, int8_t *out);

/* For rows of weights, at most NBITS_AT_ONCE. */
typedef void (*nbits_product)(const nbits_rows *w, int rows, float *out);
typedef struct nbits_products {
  nbits_product floats, bytes; /* out[r] = row r times a */
  nbits_product
      eight; /* as floats, of weights of 8 bits, in lanes; a lies in order, with zeros up to the end of its blocks */
  void (*unpack)(const uint8_t *row, int64_t bits, int64_t count, float *out); /* integers as floats */
} nbits_products;
const nbits_products *nbits_products_here(void);

/* nbits_tiles.c: products of many rows, where the CPU has what they need: out[i][n] of at most NBITS_TILE columns, in rows of
 * NBITS_TILE. tile: NBITS_TILE_DEPTH rows of it, scratch memory. */
enum { NBITS_TILE = 32, NBITS_TILE_DEPTH = 128 };
bool nbits_has_tiles(void);
void nbits_multiply_tiles(const nbits_rows *w, int64_t bits, int64_t columns, const float *a, int64_t rows,
                          int64_t depth, float *tile, float *out);

/* nbits_narrow.c: the same of weights that fill writes: number k to k + count of row n, of those of `of`. tile:
 * NBITS_NARROW_FLOATS. */
enum { NBITS_DEEPEST = 256, NBITS_NARROW_FLOATS = NBITS_DEEPEST * (NBITS_TILE / 2 + 8) };
typedef void (*nbits_fill)(const void *of, int64_t n, int64_t k, int64_t count, float *out);
bool nbits_has_narrow(void); /* not where the CPU has wider ones */
void nbits_multiply_narrow(nbits_fill fill, const void *of, int64_t columns, const float *a, int64_t rows,
                           int64_t depth, float *tile, float *out);

#endif
