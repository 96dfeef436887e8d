/* A Conv whose images change their size: the weights times patches of the image, which are gathered block by block.
 * Nothing of it depends on the size of an image but numbers, so that launches are resized. Row-major operands. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_PATCHES_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_PATCHES_H

#include "onednn_internal.h"

enum {
  PATCHES_BLOCK = 96,  /* positions of the result that are gathered at once, a row each product of the sum */
  PATCHES_DEPTH = 192, /* such rows */
  PATCHES_ROWS = 4     /* channels of the result that a tile has */
};

/* c[r][j] = first[r], or where first is NULL c[r][j], + the sum over depth of a[r][d] * b[d * PATCHES_BLOCK + j]: of
 * a tile of PATCHES_ROWS rows and as many columns as the kernel has. */
typedef void (*patches_tile)(const float *const a[PATCHES_ROWS], const float *b, int64_t depth, const float *first,
                             float *const c[PATCHES_ROWS]);

/* What follows the sum, on n elements; other: n elements, or one that stands for all (step 0); NULL: there is none. */
typedef void (*patches_post)(const onednn_post *post, float *x, const float *other, int step, int64_t n);

/* Of one plane, kept with its padding: out[r][j] = bias + the sum over taps of w[t] * in[r * apart + offset[t] + j],
 * for PATCHES_ROWS lines of as many columns as the thin tile has. */
typedef void (*patches_plane)(const float *in, int64_t apart, const int64_t *offset, const float *w, int64_t taps,
                              float bias, float *const out[PATCHES_ROWS]);

/* The kernels for this CPU. The tile's columns divide PATCHES_BLOCK; thin is a tile of fewer. */
typedef struct patches_kernels {
  patches_tile tile, thin;
  patches_plane plane;
  patches_post post;
  int64_t (*even)(float *to, const float *from, int64_t n); /* every second element, of less than n, as returned */
  int columns, thin_columns;
} patches_kernels;

/* NULL where the CPU has neither AVX-512 nor AVX2. */
const patches_kernels *patches_find(void);

/* Rows [row, end) of out, of `count` columns, PATCHES_BLOCK at most: what they have (where is_first: bias, or 0) and the
 * product of as many rows of a, from `depth` columns, with a block of `depth` rows, which are 0 behind the columns. */
void patches_multiply(const patches_kernels *kernels, const float *a, int64_t a_row, const float *block, int64_t depth,
                      const float *bias, bool is_first, int64_t row, int64_t end, int64_t count, float *out,
                      int64_t out_row);

/* Positions [at, at + count) of one image, PATCHES_BLOCK at most, for channels [begin, end) of a group. in, weights,
 * bias (or NULL) and out are the group's; block: patches_scratch bytes. */
void patches_sum(const patches_kernels *kernels, const ref_conv *c, const float *in, const float *weights,
                 const float *bias, int64_t at, int64_t count, int64_t begin, int64_t end, float *out, float *block);

/* Where a channel of the result comes from one of the image, in one or two dimensions: one such plane. */
bool patches_is_planar(const ref_conv *c);
void patches_one_plane(const patches_kernels *kernels, const ref_conv *c, const float *in, const float *weights,
                       float bias, float *out, float *scratch);

/* Bytes that either needs beside its operands. */
uint64_t patches_scratch(const ref_conv *c);

/* Which post-operations there are. */
bool patches_has_post(const onednn_post *post);

#endif
