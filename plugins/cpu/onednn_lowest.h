/* Maxima of windows that hold no finite number. oneDNN begins a maximum at the least finite number, and so returns that
 * number where a window holds only minus infinity. Such results are looked for behind the primitive and computed again
 * by definition. */
#ifndef HEDDLE_PLUGINS_CPU_ONEDNN_LOWEST_H
#define HEDDLE_PLUGINS_CPU_ONEDNN_LOWEST_H

#include "onednn_internal.h"

enum { ONEDNN_LOWEST_DIMS = 2 + REF_SPATIAL };

/* Where an element lies: the sum of its places times the strides; blocks of a dimension lie innermost. */
typedef struct onednn_where {
  int64_t dims[ONEDNN_LOWEST_DIMS], strides[ONEDNN_LOWEST_DIMS];
  int64_t blocks[ONEDNN_LOWEST_DIMS]; /* sizes, outermost first */
  int block_dims[ONEDNN_LOWEST_DIMS];
  int n_blocks;
} onednn_where;

/* A part of a pool. */
typedef struct onednn_lowest {
  bool needed, wide; /* wide: float32, else bfloat16 */
  int spatial;
  uint64_t elements; /* of the result's memory, in one piece; 0 where it is not */
  onednn_where src, dst;
  int64_t kernel[REF_SPATIAL], stride[REF_SPATIAL], dilation[REF_SPATIAL], before[REF_SPATIAL];
} onednn_lowest;

/* Reads how pd computes. needed is false where it is no maximum. dnnl_unimplemented: a maximum that cannot be mended. */
dnnl_status_t onednn_lowest_read(const_dnnl_primitive_desc_t pd, onednn_lowest *out);

/* Mends a result behind its primitive. False where the run is to end. Any thread. */
bool onednn_lowest_mend(const onednn *self, const onednn_lowest *l, const void *src, void *dst);

#endif
