/* Winograd's minimal filtering for convolutions of stride 1 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
 * Networks", 2015): results come in tiles of m x m, for which an input tile of (m + r - 1)^2 is multiplied element by
 * element with the transformed r x r kernel, so that a result takes (m + r - 1)^2 / m^2 products instead of r^2. For
 * CPUs with AVX-512 or AVX2, on activations in blocks of channels (as many as a vector has floats) or channels last. */
#ifndef HEDDLE_PLUGINS_CPU_WINOGRAD_H
#define HEDDLE_PLUGINS_CPU_WINOGRAD_H

#include "onednn.h"

enum {
  WINOGRAD_MOST_LANES = 16,
  WINOGRAD_MOST_TILE = 8, /* positions along an input tile */
  WINOGRAD_POSTS = 6,
  WINOGRAD_KINDS = 4 /* for each number of lanes */
};

/* How a convolution is cut: tiles of m results, kernels of r, tile = m + r - 1 positions; lanes are channels of a
 * block, the floats of a vector: 16 or 8. Two blocks of result channels, a group, are multiplied together; the last
 * group may be a block. */
typedef struct winograd_kind {
  int32_t m, r, tile, lanes;
} winograd_kind;

/* Kind number i < WINOGRAD_KINDS for so many lanes. */
const winograd_kind *winograd_kind_at(int i, int32_t lanes);

/* The floats of the vectors that this CPU has: 16, 8, or 0 where it has neither. Blocks have as many channels. */
int32_t winograd_lanes(uint32_t block);

/* ---- winograd_weights.c ---- */

/* The token of a kernel [O, C, r, r] transformed for a kind: groups of result channels, then positions of the tile,
 * then channels in whole blocks, then the group's channels. Both are false for a token or a tensor that is none of
 * these. */
heddle_layout winograd_token(const winograd_kind *kind);
bool winograd_is_token(heddle_layout token, const winograd_kind **kind);
bool winograd_weight_bytes(const heddle_pvalue *tensor, heddle_layout token, uint64_t *bytes);

/* Transforms row-major weights, in double; dst has the bytes that winograd_weight_bytes gave. Needs the kind's
 * vectors. */
void winograd_pack(const heddle_pvalue *tensor, const winograd_kind *kind, float *dst);

/* ---- a convolution, planned ---- */

typedef enum winograd_post_kind {
  WINOGRAD_RELU,
  WINOGRAD_CLIP,
  WINOGRAD_ADD,
  WINOGRAD_SWISH,
  WINOGRAD_MISH,
  WINOGRAD_HARD_SWISH
} winograd_post_kind;

/* slot: the region input that is added, of the result's shape and layout. */
typedef struct winograd_post {
  winograd_post_kind kind;
  float alpha, beta;
  uint32_t slot;
} winograd_post;

/* Strides are in floats. A unit of work is unit_rows rows of tiles (through all images); or, by_groups, a group of
 * result channels, for which unit_rows are all rows. */
typedef struct winograd_plan {
  winograd_kind kind;
  int64_t images, height, width, out_height, out_width, top, left;
  int64_t in_blocks, out_channels, out_blocks, groups;
  int64_t tiles_y, tiles_x;
  int64_t in_image, in_block, in_row, in_pixel;
  int64_t out_image, out_block, out_row, out_pixel;
  int64_t units, unit_rows;
  int64_t v_point, m_point; /* from one position of the tile to the next in transformed inputs, and in products */
  uint64_t task_bytes;
  uint32_t tasks, n_posts, src, weights, bias, dst; /* operands: slots of the region */
  bool by_groups, has_bias;
  winograd_post posts[WINOGRAD_POSTS];
} winograd_plan;

uint64_t winograd_workspace(const winograd_plan *plan);

/* ---- winograd_run.c ---- */

/* The planned convolution as an operator (onednn_special.h). */
typedef struct onednn_special onednn_special;
heddle_status winograd_hold(const struct onednn *self, const winograd_plan *plan, onednn_special **out,
                            heddle_error *err);

/* ---- what a run is made of; they need the vectors of the kind ---- */

/* winograd_input.c: transforms rows [from, from + rows) of tiles (counted through all images) of one block of channels
 * into v, which is that of the unit's first tile. */
void winograd_input(const winograd_plan *plan, const float *src, int64_t from, int64_t rows, int64_t block, float *v);

/* winograd_product.c: products of `tiles` tiles (V of one position: block after block of tiles x the kind's lanes) with
 * weights of one position, of `lanes` result channels (a block or a group), into out: tiles x lanes. */
void winograd_product(const winograd_kind *kind, const float *v, int64_t tiles, int64_t blocks, const float *weights,
                      int64_t lanes, float *out);

/* winograd_output.c: from products of a group to results, with bias and post-operations; adds are those of the plan's
 * posts, each the whole tensor. */
void winograd_output(const winograd_plan *plan, const float *m, int64_t from, int64_t rows, int64_t group,
                     const float *bias, const float *const *adds, float *dst);

#endif
