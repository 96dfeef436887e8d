/* executor/storage_arena.h: looks for a placement of blocks that needs few bytes. Private to storage. */
#ifndef HEDDLE_EXECUTOR_STORAGE_ARENA_H
#define HEDDLE_EXECUTOR_STORAGE_ARENA_H

#include "executor/storage_place.h"

/* A placement: by block its offset (in the row of addresses of storage_place.h), and the bytes of all buffers. */
typedef struct heddle__packing {
  uint64_t *offsets; /* freed with heddle__free */
  uint64_t stride;
  uint64_t bytes; /* UINT64_MAX: nothing was placed */
} heddle__packing;

/* Tries several orders, keeps the best and, with few blocks, moves what makes the peak to the front while that helps.
 * The same blocks give the same placement. Places nothing where no placement can need less than target bytes. cap: the
 * largest buffer. HEDDLE_ENOMEM; then packing holds nothing. */
heddle_status heddle__arena_pack(const heddle__blocks *blocks, uint64_t cap, uint64_t target, heddle__packing *packing,
                                 heddle_error *err);

/* Colours the blocks instead: slots[block] is the number of a buffer that it uses whole, bytes[slot] its size; both
 * have room for one a block. HEDDLE_ENOMEM. */
heddle_status heddle__slots_pack(const heddle__blocks *blocks, uint32_t *slots, uint64_t *bytes, uint32_t *n_slots,
                                 heddle_error *err);

#endif
