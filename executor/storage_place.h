/* executor/storage_place.h: gives blocks their offsets, one after another in a given order. Private to storage.
 * Where a space needs several buffers, they lie in one row of addresses: buffer k begins at k * stride, and no block
 * crosses the end of one. */
#ifndef HEDDLE_EXECUTOR_STORAGE_PLACE_H
#define HEDDLE_EXECUTOR_STORAGE_PLACE_H

#include "executor/storage_blocks.h"

#define HEDDLE__UNPLACED UINT64_MAX

typedef enum heddle__fit {
  HEDDLE__FIT_FIRST, /* the lowest gap */
  HEDDLE__FIT_BEST   /* the gap that leaves least */
} heddle__fit;

typedef struct heddle__placer {
  const heddle__blocks *blocks;
  uint64_t cap;      /* bytes of one buffer */
  uint64_t stride;   /* 0: all in one buffer */
  uint64_t *offsets; /* by block */
  /* the rest is the placer's own */
  uint32_t *placed; /* by offset */
  uint32_t n_placed;
  uint32_t *marks;
  heddle__keyed *near; /* begin and end of what conflicts with a block */
} heddle__placer;

/* cap UINT64_MAX: one buffer of any size. HEDDLE_ENOMEM leaves what placer_finish frees. */
heddle_status heddle__placer_init(heddle__placer *placer, const heddle__blocks *blocks, uint64_t cap,
                                  heddle_error *err);
void heddle__placer_finish(heddle__placer *placer);

/* Places all blocks, in this order, each at an offset where it overlaps no block with which it conflicts. Gives the
 * bytes of all buffers together; UINT64_MAX as soon as one buffer needs more than bound. */
uint64_t heddle__place(heddle__placer *placer, const uint32_t *order, heddle__fit fit, uint64_t bound);

/* Bytes of buffer k, as placed; 0 where nothing is in it. */
uint64_t heddle__placed_bytes(const heddle__placer *placer, const uint64_t *offsets, uint32_t k);

#endif
