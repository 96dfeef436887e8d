/* Attention as one region: softmax(Q K' * scale + mask) V, with Q, K, V and the result read and written where they lie,
 * so that the Transposes around it move nothing. onednn_attention.c reads regions, onednn_heads.c computes them. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_ATTENTION_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_ATTENTION_H

#include <string.h>

#include "onednn_special.h"

enum { ATTENTION_DIMS = 4, ATTENTION_NODES = 24 };

/* An operand as a stack of matrices: [batch, head, row, column]; what is repeated along batch or head has 1 there. In
 * elements of float32. */
typedef struct attention_view {
  uint32_t slot; /* region input; of the result: output */
  uint32_t reserved;
  int64_t offset;
  int64_t outer; /* the stride of a dimension before batch, see inner */
  int64_t dims[ATTENTION_DIMS], strides[ATTENTION_DIMS];
} attention_view;

/* A region as it is computed. k is [batch, head, column of Q, row of V]. Scores of five dimensions are those of groups of heads that
 * share keys and values: [outer, batch, head, row, column], where keys and values are repeated along heads. */
typedef struct attention {
  attention_view q, k, v, out;
  int64_t batch, heads, rows, keys; /* of the scores; batch: of all outer places together */
  int64_t inner;                    /* batches of one outer place */
  int64_t mask_strides[ATTENTION_DIMS], mask_outer;
  uint32_t mask; /* region input; UINT32_MAX: none */
  float scale;
  bool guarded;                  /* rows that are NaN become 0 */
  uint32_t flags[ONEDNN_INPUTS]; /* of the region's inputs: HEDDLE_INPUT_ABSORBED */
} attention;

/* Where a batch begins, from the offset on: of an operand, and of the mask. */
static inline int64_t attention_batch_at(const attention *a, const attention_view *v, int64_t batch) {
  return batch / a->inner * v->outer + (v->dims[0] != 1 ? batch % a->inner * v->strides[0] : 0);
}
static inline int64_t attention_mask_at(const attention *a, int64_t batch) {
  return batch / a->inner * a->mask_outer + batch % a->inner * a->mask_strides[0];
}

/* What follows the Softmax of a row. */
static inline void attention_guard(const attention *a, float *row) {
  if (a->guarded && row[0] != row[0]) memset(row, 0, (size_t)a->keys * sizeof *row);
}

/* False where the region is no attention. Pure. */
bool attention_read(const heddle_pregion *region, attention *out);

/* Is the node one that attention_read may meet between an operand and where it comes from? */
bool attention_is_view(const heddle_pregion *region, const heddle_pnode *node);

/* ---- onednn_lengths.c: attention whose numbers of batches, rows and keys change, up to those of a. fit: false where it does
 * not work; workspace is of so many parts. */
bool attention_lengths_fit(const attention *a, uint32_t parts, uint64_t *workspace);
heddle_status attention_lengths_make(onednn *self, const attention *a, uint32_t parts, onednn_special **out,
                                     heddle_error *err);

/* Nanoseconds on one thread. */
double attention_cost(const attention *a);

/* ---- onednn_cache.c: the same where a length decides how far heads lie apart, as in caches that grow: a few rows at a
 * time, by kernels that no length is compiled into. */
bool attention_cache_fit(const onednn *self, const attention *a, uint64_t *workspace);
heddle_status attention_cache_make(onednn *self, const attention *a, onednn_special **out, heddle_error *err);

#endif
